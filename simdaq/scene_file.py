"""Scene files: which signals the inputs of a bench carry.

```toml
cables = [["Dev1", "Dev2"]]    # a trigger cable (RTSI); cards of one PXI chassis need none

[signals."Dev1/ai0"]
kind = "sine"                # constant, sine, square, triangle, ramp
amplitude = 2.0              # in the input's unit: V, degC, V/V of a bridge
frequency_Hz = 5.0
offset = 1.0
noise_rms = 0.01

[signals."Dev1/ai1"]
kind = "recording"           # a CSV file with a header line
file = "measured.csv"
time = "t_s"
column = "force_V"
repeat = true

[signals."Dev1/ai2"]
kind = "function"            # value = function(t_s); t_s is a float or an array
function = "signals.py:drift"

[plant]                      # a simulation of your own, one step after the other
class = "oven.py:Oven"       # Oven().step(t_s, outputs) -> {"Dev1/ai3": value, ...}
step_s = 0.001
outputs = ["Dev1/ao0", "Dev1/port0/line0"]
inputs = ["Dev1/ai3"]
```
"""

from __future__ import annotations

import csv
import runpy
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from simdaq.edges import Pulses
from simdaq.errors import SetupError
from simdaq.system import Plant, System
from simdaq.terminals import Source, Track

Table = dict[str, Any]
SHAPES: dict[str, Callable[[Any], Any]] = {
    "sine": lambda turns: np.sin(2.0 * np.pi * turns),
    "square": lambda turns: np.where(turns % 1.0 < 0.5, 1.0, -1.0),
    "triangle": lambda turns: 1.0 - 4.0 * np.abs((turns + 0.25) % 1.0 - 0.5),
    "ramp": lambda turns: 2.0 * (turns % 1.0) - 1.0,
}
SHAPE_KEYS = {"amplitude": 1.0, "frequency_Hz": 1.0, "offset": 0.0, "phase_turns": 0.0,
              "noise_rms": 0.0}  # fmt: skip


def apply(system: System, file: Path) -> None:
    """Feed the inputs of a system as a scene file says.

    Raises
    ------
    SetupError
        The file, a terminal, a key or a value is wrong.
    """
    try:
        table = tomllib.loads(file.read_text())
    except OSError as error:
        raise SetupError(f"--scene {file}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"--scene {file}: {error}") from None
    for terminal, signal in table.pop("signals", {}).items():
        place = f"{file}: signals.{terminal!r}"
        try:
            if signal.get("kind") == "square" and "/PFI" in terminal:
                system.feed(terminal, _pulses(place, signal))
            else:
                system.feed(terminal, _source(place, signal, file.parent))
        except SetupError as error:
            raise SetupError(_placed(place, error)) from None
    for cards in table.pop("cables", []):
        try:
            system.connect(*cards)
        except SetupError as error:
            raise SetupError(f"{file}: cables: {error}") from None
    plant = table.pop("plant", None)
    if plant is not None:
        _couple(system, f"{file}: plant", plant, file.parent)
    if table:
        raise SetupError(
            f"{file}: {next(iter(table))}: unknown table: write cables, signals or plant"
        )


def _placed(place: str, error: SetupError) -> str:
    text = str(error)
    return text if text.startswith(place) else f"{place}: {text}"


def _take(place: str, table: Table, allowed: dict[str, Any]) -> Table:
    """Values of a table over their defaults; None: no default."""
    for key in table:
        if key not in allowed and key != "kind":
            raise SetupError(f"{place}: {key}: unknown key: write {', '.join(allowed)}")
    values = {key: table.get(key, default) for key, default in allowed.items()}
    for key, value in values.items():
        if value is None:
            raise SetupError(f"{place}: {key}: missing")
        default = allowed[key]
        number = isinstance(default, float)
        if number and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise SetupError(f"{place}: {key} = {value!r}: not a number")
    return values


def _source(place: str, table: Table, folder: Path) -> Source:
    kind = table.get("kind", "constant")
    if kind == "constant":
        return float(_take(place, table, {"value": 0.0})["value"])
    if kind in SHAPES:
        return _shape(SHAPES[kind], _take(place, table, SHAPE_KEYS))
    if kind == "recording":
        return _recording(place, table, folder)
    if kind == "function":
        name = _take(place, table, {"function": None})["function"]
        return _checked(place, _loaded(f"{place}: function", name, folder))
    known = ", ".join(["constant", *SHAPES, "recording", "function"])
    raise SetupError(f"{place}: kind = {kind!r}: write one of {known}")


def _shape(shape: Callable[[Any], Any], k: Table) -> Source:
    rng = np.random.default_rng(0)

    def signal(t_s: Any) -> Any:
        turns = k["frequency_Hz"] * np.asarray(t_s) + k["phase_turns"]
        noise = k["noise_rms"] * rng.standard_normal(np.shape(t_s))
        return k["offset"] + k["amplitude"] * shape(turns) + noise

    return signal


def _pulses(place: str, table: Table) -> Pulses:
    """A square wave by its edges, which counters and triggers hear."""
    k = _take(place, table, SHAPE_KEYS)
    if k["frequency_Hz"] <= 0.0:
        raise SetupError(f"{place}: frequency_Hz = {k['frequency_Hz']}: must be above 0")
    period_s = 1.0 / k["frequency_Hz"]
    return Pulses(period_s, 0.5 * period_s, -(k["phase_turns"] % 1.0) * period_s)


def _recording(place: str, table: Table, folder: Path) -> Source:
    keys = {"file": None, "time": "t_s", "column": None, "repeat": True, "scale": 1.0}
    k = _take(place, table, keys)
    path = folder / k["file"]
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        time_s = np.array([float(row[k["time"]]) for row in rows])
        values = k["scale"] * np.array([float(row[k["column"]]) for row in rows])
    except OSError as error:
        raise SetupError(f"{place}: file: {path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise SetupError(f"{place}: {path}: no number in column {error}") from None
    if len(time_s) < 2 or np.any(np.diff(time_s) <= 0.0):
        raise SetupError(f"{place}: {path}: {k['time']} must rise from row to row")
    time_s = time_s - time_s[0]
    length_s = time_s[-1] + (time_s[-1] - time_s[-2])

    def signal(t_s: Any) -> Any:
        return np.interp(np.mod(t_s, length_s) if k["repeat"] else t_s, time_s, values)

    return signal


def _loaded(place: str, name: str, folder: Path) -> Any:
    file, _, attribute = str(name).rpartition(":")
    path = folder / file
    if not file or not path.is_file():
        raise SetupError(f"{place} = {name!r}: write FILE.py:NAME; {path} is no file")
    try:
        contents = runpy.run_path(str(path))
    except Exception as error:
        raise SetupError(f"{place} = {name!r}: {type(error).__name__}: {error}") from None
    if attribute not in contents:
        raise SetupError(f"{place} = {name!r}: {path} has no {attribute!r}")
    return contents[attribute]


def _checked(place: str, function: Any) -> Source:
    """The function, tried once with an array of times."""
    try:
        np.broadcast_to(np.asarray(function(np.zeros(2)), dtype=float), 2)
    except Exception as error:
        raise SetupError(f"{place}: function of an array of times: {error}") from None
    return lambda t_s: np.broadcast_to(np.asarray(function(t_s), dtype=float), np.shape(t_s))


def _couple(system: System, place: str, table: Table, folder: Path) -> None:
    k = _take(place, table, {"class": None, "step_s": 1e-3, "outputs": [], "inputs": None})
    if k["step_s"] <= 0.0:
        raise SetupError(f"{place}: step_s = {k['step_s']}: must be above 0")
    simulation = _loaded(f"{place}: class", k["class"], folder)()
    tracks = {terminal: Track() for terminal in k["inputs"]}
    for terminal, track in tracks.items():
        system.feed(terminal, track)
    for terminal in k["outputs"]:
        system.output(terminal)

    def step(t_s: float) -> None:
        outputs = {terminal: system.output(terminal) for terminal in k["outputs"]}
        for terminal, value in simulation.step(t_s, outputs).items():
            tracks[terminal].put(t_s, float(value))

    step(0.0)
    system.couple(Plant(float(k["step_s"]), step))
