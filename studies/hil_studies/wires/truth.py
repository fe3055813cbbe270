"""`hil study truth`: what nobody has measured, and what error it makes.

Every number marked `# assumed` in a bundled rig with wires is listed with the instrument that would
measure it. A number of the model is varied to both ends of its range while cells are heated and
let cool; the error is the difference of the simulated force (or displacement) from that of the rig
as it is, over its largest value. A number of a channel changes the reading. All other numbers are
limits, addresses and choices of the rig: they change no force.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from hil.bundled_configs import root
from hil.config.files import merge, read_toml
from hil.config.table import Positive, Table, as_list
from hil.errors import ModelError
from hil.pages.study import as_markdown, as_table
from hil.platform.whole_files import write_whole
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.model.response import responses
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.tables import ModelTable

PERIOD_S = 0.002
REST_S = 0.2
ASSUMED = re.compile(r"#.*\bassumed\b")
HEADING = re.compile(r"^\[+([^\[\]]+)\]+")
NUMBER = re.compile(r"^-?[\d_]*\.?[\d_]+(?:[eE][+-]?\d+)?$")


@dataclass(frozen=True)
class Rule:
    """Range of a number, relative, absolute or between two ends, and what would measure it."""

    measure: str
    share: float = 0.1
    absolute: float | None = None
    between: tuple[float, float] | None = None

    def ends(self, value: float) -> tuple[float, float]:
        """Both ends of the range."""
        if self.between is not None:
            return self.between
        half = self.absolute if self.absolute is not None else self.share * abs(value)
        return value - half, value + half

    def text(self) -> str:
        """The range as text."""
        if self.between is not None:
            return "{:g} to {:g}".format(*self.between)
        return f"{self.absolute:g}" if self.absolute is not None else f"{100 * self.share:g} %"


# Ranges are this project's judgement, from makers' tolerances and the uncertainty of usual methods.
MODEL = {
    "ambient_C": Rule("thermometer beside the wire", absolute=2.0),
    "austenite_Ohm_per_m": Rule("four-wire resistance, hot and cold", 0.09),
    "b_N_s_per_m": Rule("hil calibrate damping", 0.5),
    "convection_W_per_m2_K": Rule("cooling curve: hil test step-battery", 0.12),
    "force_on_N": Rule("hil calibrate cell_force", 0.1),
    "k_ae_N_per_m": Rule("hil calibrate spring_constants", 0.1),
    "k_pe_N_per_m": Rule("hil calibrate spring_constants", 0.5),
    "k_se_N_per_m": Rule("hil calibrate spring_constants", 0.05),
    "mass_kg": Rule("hil calibrate masses", 0.5),
    "minor_loop_slope": Rule("partial loops at constant stress", between=(0.0, 1.0)),
    "pretension_N": Rule("force transducer when mounting", 0.1),
    "specific_heat_J_per_kg_K": Rule("calorimeter (DSC)", 0.22),
    "latent_heat_J_per_kg": Rule("calorimeter (DSC); hil identify", 0.3),
    "spring_N_per_m": Rule("hil calibrate spring_constants", 0.05),
    "supply_V": Rule("voltmeter across a cell that is on", 0.02),
}
OTHERWISE = Rule("a measurement of its own")
READING = {
    "bandwidth_Hz": Rule("step of a known signal", 0.5),
    "delay_s": Rule("hil calibrate latency", 0.5),
    "metres_per_V": Rule("hil calibrate displacement_sensor", 0.01),
    "newtons_per_V": Rule("hil calibrate force_transducer", 0.01),
    "noise_rms_V": Rule("hil calibrate daq_channel", 0.5),
    "offset_V": Rule("hil calibrate daq_channel", 0.5),
    "units_per_V": Rule("two known temperatures", 0.01),
}
LIMIT = "a limit: acts only when it trips"
CHOICE = "a choice of this rig"
PLAIN = (
    ("guard.", LIMIT),
    (".fingerprint", "looking at the array; a topology has no range"),
    ("devices.board.limits.", LIMIT),
    ("temperature_max_C", LIMIT),
    ("strength_MPa", LIMIT),
    ("devices.supply.", LIMIT),
    ("observer.", "noise of the estimate, not of the array"),
)


class Values(Table):
    """How long the cells are heated and cool, and which rigs (all with wires if empty)."""

    heat_s: Positive = 6.0
    cool_s: Positive = 6.0
    rigs: Annotated[list[str], Field(default=[])]


@dataclass(frozen=True)
class Assumed:
    """One assumed number of a rig; `path` is its key."""

    rig: str
    path: str
    value: str

    @property
    def key(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def number(self) -> float | None:
        """Its value; None if it is a text or a list."""
        text = self.value.replace("_", "")
        return float(text) if NUMBER.match(text) else None


def assumed(rig: str, text: str) -> Iterator[Assumed]:
    """Every key of a rig's file whose comment has the word assumed."""
    table = ""
    for line in text.splitlines():
        heading = HEADING.match(line)
        if heading:
            table = heading.group(1).strip()
        elif ASSUMED.search(line) and "=" in line.partition("#")[0]:
            key, _, value = line.partition("#")[0].partition("=")
            yield Assumed(rig, f"{table}.{key.strip()}", value.strip())


def rigs_with_wires() -> dict[str, str]:
    """Text of every bundled rig whose cells are wires, by its folder."""
    texts = {}
    for path in sorted((root() / "configs").glob("*/rig.toml")):
        table = read_toml(path)
        arrays = table.get("model", {}).get("arrays", {})
        activations = [as_list(array.get("activation", {})) for array in arrays.values()]
        kinds = {one.get("kind") for of_array in activations for one in of_array}
        if table["model"]["kind"] == "cell_array" and kinds & {"thermal", "sma"}:
            texts[path.parent.name] = path.read_text(encoding="utf-8")
    return texts


@dataclass(frozen=True)
class Effect:
    """Error that a number makes, over the largest value of what is measured."""

    what: Assumed
    range: str
    measure: str
    rms: float
    peak: float


class Rig:
    """A rig's plant, simulated with changed numbers."""

    def __init__(self, name: str, values: Values) -> None:
        table = read_toml(root() / "configs" / name / "rig.toml")
        self.table, self._values = table, values
        channels = [c for d in table["devices"].values() for c in d.get("channels", {}).values()]
        signals = [c.get("signal", "") for c in channels if c.get("kind", "force") == "force"]
        moves = [c["signal"] for c in channels if c.get("signal", "").endswith("_m")]
        array = next(iter(table["model"]["arrays"]))
        force = (signals[0] or f"{array}.right_N") if signals else ""
        self.signal = force or moves[0]
        self.unit = "N" if force else "mm"
        [self.y] = self.responses([()])

    def responses(
        self, changes: Iterable[tuple[tuple[str, float], ...]]
    ) -> list[NDArray[np.float64]]:
        """Force [N] or displacement [mm] over time, each with these keys changed.

        The model may refuse values, such as an A_f below A_s: that end is no wire, and left out.
        """
        systems = []
        for change in changes:
            plant = merge(self.table["model"], self.table.get("plant", {}))
            for path, value in change:
                _set(plant, path.split(".")[1:], value)
            with contextlib.suppress(ValidationError, ModelError):
                table = ModelTable.model_validate(plant)
                systems.append(ArraySystem(build_model(table), build_activation(table), PERIOD_S))
        if not systems:
            return []
        times_s = PERIOD_S * np.arange(
            round((REST_S + self._values.heat_s + self._values.cool_s) / PERIOD_S)
        )
        on = (times_s >= REST_S) & (times_s < REST_S + self._values.heat_s)
        model = systems[0].model
        first = next(iter(model.arrays.values())).topology.n_cells
        duties = np.outer(on, np.arange(model.n_cells) < first).astype(float)
        at = np.array([model.outputs.index(self.signal)])
        scale = 1.0 if self.unit == "N" else 1e3
        return [scale * y[1:, 0] for y in responses(systems, at, duties)]

    def effect(self, one: Assumed) -> Effect:
        """The error of a number: of both ends of its range, the larger one."""
        for part, why in PLAIN:
            if one.path.startswith(part) or one.path.endswith(part):
                return Effect(one, "–", why, 0.0, 0.0)
        number = one.number
        if number is None or not one.path.startswith(("model.", "plant.")):
            return self._reading(one, number)
        rule = MODEL.get(one.key, OTHERWISE)
        ends = [((one.path, end),) for end in rule.ends(number)]
        errors = [y - self.y for y in self.responses(ends)] or [np.zeros_like(self.y)]
        return self._of(one, rule, max(errors, key=lambda e: float(np.sqrt(np.mean(e**2)))))

    def _reading(self, one: Assumed, number: float | None) -> Effect:
        """The error that a number of a channel makes in its reading."""
        rule = READING.get(one.key)
        parts = one.path.split(".")
        if rule is None or number is None or "channels" not in parts:
            return Effect(one, "–", CHOICE, 0.0, 0.0)
        channel = self.table["devices"][parts[1]]["channels"][parts[3]]
        if channel.get("signal", self.signal) != self.signal:
            return Effect(one, rule.text(), rule.measure + "; not of this force", 0.0, 0.0)
        y = self.y
        if one.key in ("newtons_per_V", "metres_per_V"):
            error = rule.share * y
        elif one.key in ("bandwidth_Hz", "delay_s"):
            late_s = number if one.key == "delay_s" else 1.0 / (2.0 * np.pi * number)
            error = rule.share * late_s * np.gradient(y, PERIOD_S)
        else:
            per_V = channel.get("newtons_per_V", 1e3 * channel.get("metres_per_V", 0.0))
            error = np.full(len(y), rule.share * number * per_V)
        return self._of(one, rule, error)

    def _of(self, one: Assumed, rule: Rule, error: NDArray[np.float64]) -> Effect:
        most = float(np.abs(self.y).max())
        rms, peak = float(np.sqrt(np.mean(error**2))), float(np.abs(error).max())
        return Effect(one, rule.text(), rule.measure, rms / most, peak / most)


def _set(table: dict[str, Any], path: list[str], value: float) -> None:
    """Set a key of nested tables in place; the tables on the way are copied first."""
    for part in path[:-1]:
        table[part] = dict(table.get(part, {}))
        table = table[part]
    table[path[-1]] = value


def run(out: Path, values: Values) -> dict[str, Any]:
    """Vary every assumed number of the rigs; the tables, and truth.md in the folder `out`."""
    texts = rigs_with_wires()
    unknown = [name for name in values.rigs if name not in texts]
    if unknown:
        raise ModelError(f"rigs: '{unknown[0]}' is no rig with wires: choose {', '.join(texts)}")
    tables = []
    for name in values.rigs or texts:
        rig = Rig(name, values)
        effects = [rig.effect(one) for one in assumed(name, texts[name])]
        effects.sort(key=lambda e: (-e.rms, e.what.path))
        what = "force" if rig.unit == "N" else "displacement"
        title = f"configs/{name}: errors of the {what}, over {np.abs(rig.y).max():.3g} {rig.unit}"
        columns = ["assumed", "value", "range ±", "RMS error", "peak error", "what measures it"]
        tables.append(as_table(title, columns, [_row(e) for e in effects]))
    results = {"title": TITLE, "figures": [], "tables": tables, "notes": list(NOTES)}
    write_whole(out / "truth.md", _page(results))
    return results


TITLE = "What nobody has measured, and what error it makes"
NOTES = (
    "Ranges are judgements, from makers' tolerances and the uncertainty of usual methods.",
    "Errors hold for all cells of the first array heated at once and let cool, and for one number"
    " changed at a time.",
    "A zero error of a model's number means that this run does not depend on it.",
)


def _row(e: Effect) -> list[str]:
    errors = [f"{100 * e.rms:.2g} %", f"{100 * e.peak:.2g} %"] if e.range != "–" else ["–", "–"]
    return [e.what.path, e.what.value, e.range, *errors, e.measure]


def _page(results: Mapping[str, Any]) -> str:
    """The results as Markdown, docs/truth.md."""
    lines = [
        f"# {TITLE}", "",
        "This page is made by `hil study truth`, which writes it as `truth.md` into its folder. It",
        "lists every number marked `# assumed` in the bundled rigs with wires, the largest error",
        "first.", "", *(f"- {note}" for note in results["notes"]),
    ]  # fmt: skip
    for table in results["tables"]:
        rows = [[f"`{row[0]}`", f"`{row[1]}`", *row[2:]] for row in table["rows"]]
        lines += ["", f"## {table['title']}", "", *as_markdown(table["columns"], rows)]
    return "\n".join(lines) + "\n"
