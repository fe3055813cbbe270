"""What is possible but unusual: values out of the ranges of `usual.toml`, and that do not fit."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from math import pi
from pathlib import Path
from typing import Any

import numpy as np

from hil.config.values import TomlTable
from hil.experiment.kind import Model
from hil.experiment.wire_catalogue import usual_A, usual_Ohm_per_m
from hil.mechanics.sma.limits import CellWire
from hil.mechanics.sma.wire import SmaWire

HOT_SHARES = 0.75, 1.35  # resistance of austenite over martensite's; F1140 prints 1.25
RESISTANCE_OFF = 0.2  # of the usual one of a diameter; neighbouring sizes differ by more
CURRENT_LEAST, CURRENT_MOST = 0.4, 3.0  # times the maker's current of a diameter
RINGS_BELOW, TICKS_A_PERIOD = 0.3, 10  # damping ratio of what rings; ticks that show it
ORDER_MAX = 200  # of a model whose poles are looked at
Faults = Iterator[tuple[str, str]]


@cache
def ranges() -> TomlTable:
    """The tables of `usual.toml`."""
    return tomllib.loads(Path(__file__).with_name("usual.toml").read_text(encoding="utf-8"))


def out_of_range(table: TomlTable) -> Faults:
    """Yield (key, text) for each value of a merged file that is out of its usual range."""
    patterns = dict(ranges()["rig"])
    model = table.get("model")
    if isinstance(model, dict) and model.get("kind") == "cell_array":
        patterns |= ranges()["cell_array"]
        for place in ("model.arrays.*.activation", "devices.*.wire", "devices.*.switches.wire"):
            patterns |= {f"{place}.{key}": usual for key, usual in ranges()["wire"].items()}
    for pattern, usual in patterns.items():
        for key, value in _values(table, pattern.split("."), ()):
            for one in value if isinstance(value, list) else [value]:
                if _is_number(one) and not usual["from"] <= abs(one) <= usual["to"]:
                    yield f"{key} = {one:g}", f"unusual: usual is {usual['usual']}"
                    break


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values(table: object, parts: list[str], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The values at a pattern, with their keys; lists of tables count from 0."""
    if isinstance(table, list) and parts:
        for i, entry in enumerate(table):
            yield from _values(entry, parts, (*path, str(i)))
    elif not parts:
        yield ".".join(path), table
    elif isinstance(table, dict):
        for key in table if parts[0] == "*" else (parts[0],):
            if key in table:
                yield from _values(table[key], parts[1:], (*path, key))


def wires_that_do_not_fit(wires: Mapping[str, CellWire], key_of: Mapping[str, str]) -> Faults:
    """Yield (key, text) once for each table of a wire whose values contradict each other.

    Parameters
    ----------
    key_of : the key of the table that describes each cell's wire
    """
    keys: set[str] = set()
    for cell, one in wires.items():
        key, wire = key_of[cell], one.wire
        if key not in keys:
            keys.add(key)
            yield from _wire(key, wire)


def _wire(key: str, wire: SmaWire) -> Faults:
    um, r = 1e6 * wire.diameter_m, wire.martensite_Ohm_per_m
    usual, nearest = usual_Ohm_per_m(wire.diameter_m)
    if abs(r / usual - 1.0) > RESISTANCE_OFF:
        yield (
            f"{key}.martensite_Ohm_per_m = {r:g}",
            f"unusual for diameter_m = {wire.diameter_m:g}: a NiTi wire of {um:.3g} um has about "
            f"{usual:.3g} Ohm/m ({nearest} in wires.toml): correct one of them",
        )
        return
    share = wire.austenite_Ohm_per_m / r
    if not HOT_SHARES[0] <= share <= HOT_SHARES[1]:
        yield (
            f"{key}.austenite_Ohm_per_m = {wire.austenite_Ohm_per_m:g}",
            f"unusual: it is {share:.3g} of the martensite's, usual is 0.9 to 1.25",
        )
    current_A = wire.field_V_per_m / r
    usual_current_A = usual_A(wire.diameter_m)
    if not CURRENT_LEAST <= current_A / usual_current_A <= CURRENT_MOST:
        yield (
            f"{key}.supply_V = {wire.cell_V:g}",
            f"unusual: drives {current_A:.3g} A through a cold wire of {um:.3g} um and "
            f"{wire.length_m:g} m, whose maker gives {usual_current_A:.3g} A: correct "
            "the voltage, the length, or the number of wires",
        )


def ringing(model: Model, period_s: float) -> Faults:
    """Yield (key, text) if a period of the loop is long for a free load that rings."""
    A = getattr(model, "A", None)
    ends = getattr(model, "points", {}).values()
    if A is None or len(A) > ORDER_MAX or all(end.support != "free" for end in ends):
        return
    poles = np.linalg.eigvals(np.asarray(A, dtype=float))
    swings = poles[np.abs(poles.imag) > 0.0]
    rings = swings[-swings.real / np.abs(swings) < RINGS_BELOW]
    if not len(rings):
        return
    slowest_rad_per_s = float(np.abs(rings.imag).min())
    longest_s = 2.0 * pi / slowest_rad_per_s / TICKS_A_PERIOD
    if period_s > longest_s:
        yield (
            f"loop.period_s = {period_s:g}",
            f"unusual: a load swings at {slowest_rad_per_s / 2.0 / pi:.3g} Hz with little damping, "
            f"and a tenth of its period is {longest_s:.2g} s: give at most that, or damp it "
            "(cell.b_N_s_per_m)",
        )
