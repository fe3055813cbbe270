"""`hil new rig`: from what is on a bench to a rig that is checked, drawn and simulated.

The stiffness of wires is E A / l with E = 17.8 GPa, as in configs/isotonic (assumed: softer than
austenite, so that a weight is lifted over the wire's whole stroke).
"""

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from math import inf, sqrt
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import jinja2
import numpy as np
import pydantic
from pydantic import Field
from pydantic_core import PydanticUndefined

from hil.bundled_configs import root
from hil.config.files import read_toml
from hil.config.table import NotNegative, Positive, Table
from hil.config.values import Figures, TomlTable
from hil.devices.board import protocol
from hil.errors import ConfigError, one_line, remedy, writing
from hil.experiment import board_limits, loop_limits
from hil.experiment.load import check_rig, interchangeable, load, load_rig
from hil.experiment.loaded import Experiment, LoadedRig
from hil.experiment.wire_catalogue import Actuator, Wire, actuators, wire, wires
from hil.mechanics.sma.limits import SUPPLY_ERROR, NoTableError
from hil.platform.terminal import word
from hil.platform.whole_files import write_whole
from hil.procedures.questions import QUESTIONS
from hil.runs.calibration_status import statuses_of
from hil.runs.opened import interrupted_by_signals
from hil.runs.simulate import simulate
from hil.systems.array.drawing import drawing
from hil.systems.array.model.fingerprint import FingerprintError, parse

MODULUS_Pa, STROKE = 17.8e9, 0.043  # assumed: module; of Flexinol at 100 MPa (docs/wires.md)
BIAS_Pa, SPRING_Pa, PULL_Pa = 69e6, 65e6, 172e6  # the maker's; a spring's over the stroke (assumed)
SOFTNESSES = (1.0, 0.6, 0.3)
FRAME_SHARE = 2.0  # assumed: stiffness of clamps and frame, over that of a cell's wires
BOARD_MAX_A = 1e-3 * protocol.LIMITS["current_max_mA"].highest
MASS_kg = 0.02  # assumed: of a slide between wires and spring
G_m_per_s2 = 9.81
SUPPLY_SHARES = tuple(0.025 * n for n in range(40, 27, -1))  # of the maker's current, cold
SUPPLY_MARGIN = 1.15  # assumed: a supply's limit over what all cells draw
CAPACITY_SHARE = 0.9  # of a transducer, beyond which the guard trips
FORCE_MARGIN = 1.25  # of the guard's limit over the wires' largest working force
USB_PERIOD_s, FAST_PERIOD_s = 0.01, 0.001
FULL_SCALES_mA = (500, 1000, 2000, 5000)
COMMENT_AT = 34
LABJACKS, CELLS_MAX = ("T4", "T7", "T8"), 12
JOINED = ("parallel", "series", "antagonists")
INSTRUMENTS = {
    "futek": "futek", "phidget": "phidget_bridge", "indicator": "serial_indicator",
}  # fmt: skip
MEASURES = ("USB-6009", "USB-6211", "PCIe-6321", *(f"labjack-{m}" for m in LABJACKS), *INSTRUMENTS)
FIXED = {"support": "fixed", "mass_kg": 0.0, "spring_N_per_m": 0.0}
TEMPLATES = Path(__file__).parent / "templates"
RECORD = "calibration/futek_9N.toml"


class Answers(Table):
    """What is on the bench; `hil.procedures.questions` has the question of each key."""

    wire: str
    cells: Annotated[int, Field(ge=1, le=CELLS_MAX)] = 1
    wires_per_cell: Annotated[int, Field(ge=1, le=20)] = 1
    length_m: Annotated[float, Field(ge=0.005, le=5.0)] = 0.1
    joined: str = JOINED[0]
    against: Literal["fixed", "spring", "weight"] = "fixed"
    mass_kg: NotNegative | None = None
    spring_N_per_m: Positive | None = None
    switches: Literal["board", "arduino", "card", "device"]
    measures: str
    capacity_N: Annotated[float, Field(ge=0.01, le=1e5)] = 10.0
    cut: Literal["supply", "card", "labjack", "none"]
    supply_V: Positive | None = None
    supply_current_max_A: Positive | None = None


def choices(key: str) -> tuple[str, ...]:
    """The words of an answer: all where it has no others, else those that are usual."""
    kind = Answers.model_fields[key].annotation
    usual = {"wire": (*wires(), *actuators()), "joined": JOINED, "measures": MEASURES}
    return get_args(kind) if get_origin(kind) is Literal else usual.get(key, ())


def default(key: str) -> str:
    """What an empty answer means; empty where one must be given, or hil chooses."""
    value = Answers.model_fields[key].get_default()
    return "" if value is None or value is PydanticUndefined else str(value)


@dataclass(frozen=True)
class Made:
    """What was written, and what there is to say.

    Attributes
    ----------
    files : rig and first experiment
    drawing : the array as text
    checked : what the check says of the wires
    ran : what the simulated run did
    open : what must still be measured or calibrated
    """

    files: tuple[Path, ...]
    drawing: list[str]
    checked: list[str]
    ran: list[str]
    open: list[str]

    def as_text(self) -> str:
        """All of it, as lines."""
        first = word(self.files[1])
        return "\n".join([
            *(f"{file}: written" for file in self.files), "",
            *(f"  {line}" for line in self.drawing), "",
            *self.checked, *self.ran,
            "still to be measured or calibrated:", *(f"  {line}" for line in self.open),
            f"next: hil check {first} --energise-plan; hil run {first}; hil gui {first}",
        ])  # fmt: skip

    @property
    def facts(self) -> Figures:
        """The same for JSON."""
        return {"files": [str(file) for file in self.files], "drawing": self.drawing,
                "checked": self.checked, "ran": self.ran, "open": self.open}  # fmt: skip


def answers_of(options: Mapping[str, str], file: Path | None, ask: Callable[[str], str]) -> Answers:
    """The answers of a file and of options; without both, those of a person.

    Parameters
    ----------
    options : texts of the options by key; they replace what is in the file
    ask : prints a question and returns the answer

    Raises
    ------
    ConfigError
        An answer is missing or impossible; one line.
    """
    table: TomlTable = {} if file is None else read_toml(file)
    where = f"{file}" if file is not None else "hil new rig"
    for key, text in options.items():
        table[key] = _typed(key, text)
    if file is None and not options:
        for key, question in QUESTIONS.items():
            hint = f" [{default(key)}]" if default(key) else ""
            text = ask(f"{key}: {question}{hint}: ").strip()
            if text or Answers.model_fields[key].is_required():
                table[key] = _typed(key, text)
                _validated({**_PLACEHOLDERS, key: table[key]}, where)
    return _validated(table, where)


FILES = ("rig.toml", "first_cell.toml")
_PLACEHOLDERS: TomlTable = {
    "wire": "flexinol_100_HT", "switches": "board", "measures": "USB-6009", "cut": "none"
}  # fmt: skip


def _typed(key: str, text: str) -> object:
    """The value that a text means: a number where the key has one."""
    kind = Answers.model_fields[key].annotation
    if kind is str or get_origin(kind) is Literal:
        return text
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text


def _validated(table: TomlTable, where: str) -> Answers:
    try:
        return Answers.model_validate(table)
    except pydantic.ValidationError as error:
        lines = []
        for detail in error.errors(include_url=False):
            key = ".".join(map(str, detail["loc"][:1]))
            if detail["type"] == "missing":
                text = f"missing: {QUESTIONS[key]}"
            elif detail["type"] == "extra_forbidden":
                text = f"unknown{remedy(key, Answers.model_fields)}"
            elif detail["type"] == "literal_error":
                text = f"'{detail['input']}'{remedy(str(detail['input']), choices(key))}"
            else:
                rule = detail["msg"].replace("Input should", "must")
                text = f"{detail['input']!r}: {rule[0].lower() + rule[1:]}"
            option = key if where != "hil new rig" else f"--{key.replace('_', '-')}"
            lines.append(one_line(f"{where}: {option}: {text}"))
        raise ConfigError("\n".join(lines)) from None


def refuse_taken(folder: Path) -> None:
    """Refuse a folder that has a rig already."""
    for file in (folder / name for name in FILES):
        if file.exists():
            raise ConfigError(f"{file}: exists already: choose another folder")


def make(folder: Path, answers: Answers) -> Made:
    """Write `rig.toml` and `first_cell.toml` into a folder, check them, run them simulated.

    Raises
    ------
    ConfigError
        The folder has such files, a part is missing, or no limits protect these wires.
    """
    bench = _Bench(answers, wire(answers.wire))
    bench.refuse_what_is_missing()
    refuse_taken(folder)
    rig, first = (folder / name for name in FILES)
    new_folders = [one for one in (folder, *folder.parents) if not one.exists()]
    with interrupted_by_signals(), writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files = [rig, first]
        try:
            if answers.switches == "device":
                files.append(folder / "relays.py")
                write_whole(files[-1], (root() / "examples/own/relays.py").read_bytes())
            _write_rig(rig, bench)
            write_whole(first, _rendered("first_cell.toml.j2", bench.facts).encode())
            checked = check_rig(rig)
            ran = _simulated(load(first))
        except BaseException:
            for file in files:
                file.unlink(missing_ok=True)
            for one in new_folders:
                with suppress(OSError):
                    one.rmdir()
            raise
    wires = [*board_limits.as_text(checked.protections), *loop_limits.as_text(
        checked.loop_protections)]  # fmt: skip
    text = rig.read_text(encoding="utf-8")
    return Made(
        tuple(files), bench.drawing, [f"{rig}: a valid rig", *(f"  {line}" for line in wires)],
        ran, [*bench.open(text), *_still(checked)],
    )  # fmt: skip


def sketch(answers: Answers) -> list[str]:
    """The array as text, before anything is written; ConfigError names what is missing."""
    bench = _Bench(answers, wire(answers.wire))
    bench.refuse_what_is_missing()
    return bench.drawing


def _write_rig(rig: Path, bench: "_Bench") -> None:
    """Write the rig with as many cells on at once as its limits permit, at the best voltage.

    Where the spring in series with fixed cells is open, a softer one is tried too: stress makes a
    wire contract at a higher temperature. The best voltage is the highest at which a cell may be
    held on for ever, else that with the longest time. Of an actuator nobody knows the wire: its
    board has the limits that it is sold with.
    """
    if bench.actuator:
        write_whole(rig, bench.text().encode())
        return
    why = ""
    for n_on, soft in product(bench.numbers_on(), bench.softnesses()):
        bench.n_on, bench.soft = n_on, soft
        best, reason = _best(rig, bench)
        why = reason or why
        if best is not None:
            _, share, bench.full_scale_mA, limits = best
            bench.choose(share)
            write_whole(rig, bench.text(limits).encode())
            return
    if bench.answers.supply_V is not None:
        why += " (without --supply-V hil chooses the voltage)"
    if why.startswith(f"{rig}: "):  # the rig itself is refused
        raise ConfigError(why)
    raise ConfigError(f"{rig.parent}: no limits protect this wire and let it contract: {why}")


def _best(rig: Path, bench: "_Bench") -> tuple[tuple[float, float, int, str] | None, str]:
    """Time on, share of the maker's current, sensor and limits; or why there are none."""
    best, why = None, ""
    for share in SUPPLY_SHARES if bench.answers.supply_V is None else (1.0,):
        bench.choose(share)
        for full_scale_mA in bench.full_scales_mA():
            bench.full_scale_mA = full_scale_mA
            write_whole(rig, bench.text().encode())
            try:
                limits, held_s = _limits(load_rig(rig, complete=True))
            except (NoTableError, ConfigError) as error:
                why = why or str(error)
                if "never contracts" in str(error):
                    return best, why
            else:
                if best is None or held_s > best[0]:
                    best = held_s, share, full_scale_mA, limits
                break
        if best is not None and best[0] == inf:
            break
    return best, why


def _limits(rig: LoadedRig) -> tuple[str, float]:
    """Limits that protect the wires as TOML, and how long they let a cell be held on."""
    for key, text in loop_limits.faults(rig.tables, rig.models[0]):
        raise ConfigError(f"{key}: {text}")
    held = [
        budget.held_for_s() for loop in rig.loop_protections for budget in loop.budgets.values()
    ]
    doubts = loop_limits.doubts(rig.loop_protections, rig.tables)
    for line in doubts:
        if "to contract" in line:
            raise ConfigError(line)
    texts = []
    for board in rig.protections:
        texts.append(board_limits.limits_as_toml(board))
        held += replace(board, limits={**board.limits, **board.wanted()}).held_s().values()
    return "\n".join(texts), min(held, default=inf)


class _Bench:
    """The figures of a rig that follow from the answers."""

    def __init__(self, answers: Answers, of: Wire | Actuator) -> None:
        self.answers, self.of = answers, of
        self.actuator = of if isinstance(of, Actuator) else None
        self.full_scale_mA, self.n_on, self.soft = 0, 1 if self.actuator else answers.cells, 1.0
        self.card = _card(answers.measures)
        self.labjack = _labjack(answers.measures)
        n, joined = answers.cells, answers.joined
        halves = 2 if joined == "antagonists" else 1
        if n % halves:
            raise ConfigError(f"cells = {n}: antagonists have as many cells on both sides: even")
        each = n // halves
        self.fingerprint = {
            "parallel": f"-:{each} | &{(1 << each) - 1:X}:-1",
            "antagonists": f"-:{each} | &{(1 << each) - 1:X}:-1",
            "series": " | ".join(["-:1", *["&1:1"] * (n - 1), "&1:-1"]),
        }.get(joined, joined)
        try:
            topology = parse(self.fingerprint)
        except FingerprintError as error:
            near = remedy(joined, JOINED)
            why = near if near.startswith(": did") else f": {error}: or choose {', '.join(JOINED)}"
            raise ConfigError(one_line(f"joined = '{joined}'{why}")) from None
        if topology.n_cells != each:
            raise ConfigError(f"joined = '{joined}': has {topology.n_cells} cells, and cells = {n}")
        self.n_parallel = len([1 for left in topology.left if left == 0])
        names = ["first", "second"] if halves == 2 else ["muscle"]
        self.cells = [f"{name}.{i + 1}" for name in names for i in range(each)]
        ends = (
            [("left", "transducer"), ("transducer", "right")] if halves == 2
            else [("load", "hook") if answers.against != "fixed" else ("ground", "transducer")]
        )  # fmt: skip
        self.arrays = [
            {"name": name, "start": start, "end": end}
            for name, (start, end) in zip(names, ends, strict=True)
        ]
        if halves == 2 and answers.against != "fixed":
            raise ConfigError("joined = 'antagonists': the two sides pull on a fixed transducer: "
                              "against = 'fixed'")  # fmt: skip
        self.signal = "transducer.net_N" if halves == 2 else ""
        usb = self.card is None or self.card["product"].startswith(("USB", "NI my"))
        slow = usb and answers.against == "fixed"  # a free load swings faster than a USB card reads
        self.period_s = USB_PERIOD_s if slow else FAST_PERIOD_s
        self.choose(1.0)

    @property
    def wires_N_per_m(self) -> float:
        """Stiffness of the wires of a cell."""
        a = self.answers
        if isinstance(self.of, Actuator):
            return self.of.k_ae_N_per_m
        return MODULUS_Pa * self.of.area_m2 * a.wires_per_cell / a.length_m

    @property
    def stroke_m(self) -> float:
        """What a cell contracts without load."""
        if isinstance(self.of, Actuator):
            return self.of.pull_N / self.of.k_ae_N_per_m
        return STROKE * self.answers.length_m

    def _at_N(self, stress_Pa: float) -> float:
        """Force of one wire at this stress; of an actuator the share of Flexinol's pull force."""
        if isinstance(self.of, Actuator):
            return stress_Pa / PULL_Pa * self.of.pull_N
        return stress_Pa * self.of.area_m2

    def choose(self, share: float) -> None:
        """Take this share of the maker's current, in cold wires."""
        a, of = self.answers, self.of
        if isinstance(of, Actuator):
            self.supply_V, self.per_cell_A = a.supply_V or 0.0, 0.0
            self.supply_A = a.supply_current_max_A or 0.0
            return
        n = a.wires_per_cell
        own_V = of.martensite_Ohm_per_m * a.length_m * n * of.current_A
        self.supply_V = a.supply_V or float(f"{share * own_V:.3g}")
        per_cell_A = self.supply_V / (of.hot_Ohm_per_m * a.length_m * n)
        self.per_cell_A = per_cell_A
        self.supply_A = a.supply_current_max_A or float(
            f"{SUPPLY_MARGIN * per_cell_A * self.n_on:.2g}"
        )

    def numbers_on(self) -> list[int]:
        """Numbers of cells that may be on at once, which decide the supply's limit."""
        n = self.answers.cells
        if self.answers.supply_current_max_A is not None:
            return [n]
        return sorted({n, n // 2 or 1, 1}, reverse=True)

    def softnesses(self) -> tuple[float, ...]:
        """Shares of the maker's pull force, beyond the bias, that a series spring may bring."""
        a = self.answers
        return SOFTNESSES if a.against == "fixed" and a.spring_N_per_m is None else (1.0,)

    def full_scales_mA(self) -> tuple[int, ...]:
        """Sensors of hil's board that show the current of a cell; 0: the board has none."""
        if self.answers.switches != "board":
            return (0,)
        wanted = [x for x in FULL_SCALES_mA if x > 1.4e3 * self.per_cell_A]
        return tuple(wanted[:2]) or FULL_SCALES_mA[-1:]

    def refuse_what_is_missing(self) -> None:
        """Refuse a bench that cannot be safe: one sentence, the part and what it costs."""
        a = self.answers
        missing = self._missing_of_an_actuator() if self.actuator else ""
        if missing:
            raise ConfigError(missing)
        if a.cut == "labjack" and self.labjack is None:
            missing = (
                "cut = 'labjack': no LabJack measures: measures = 'labjack-T7' (about 600 EUR)"
            )
        elif a.cut == "card" and self.card is None:
            missing = "cut = 'card': no NI card measures: measures = 'USB-6009', or cut = 'supply'"
        elif a.switches == "card" and self.card is None:
            missing = (
                "switches = 'card': no NI card is there: measures = 'PCIe-6321', or another of X "
                "Series, whose watchdog switches the cells off without the program (from 900 EUR)"
            )
        elif a.switches == "card" and self.card is not None and not self.card["watchdog"]:
            missing = (
                f"switches = 'card': a {self.card['product']} has no watchdog, so that nothing "
                "switches the cells off if the program dies: take an Arduino for the gates "
                "(switches = 'arduino', 25 EUR), or a card of X Series (from 900 EUR)"
            )
        elif a.switches == "card" and len(self.terminals()["gates"]) < a.cells:
            missing = (
                f"cells = {a.cells}: a {a.measures} has {len(self.terminals()['gates'])} lines "
                "left for them: take fewer cells, or a card with more lines"
            )
        elif a.cut == "none" and a.switches != "board":
            have = (
                "cut = 'labjack'" if self.labjack else "cut = 'card'" if self.card
                else "cut = 'supply', a supply that hil commands (from 100 EUR)"
            )  # fmt: skip
            part = "a relay with two contacts in the cells' supply (5 to 15 EUR): "
            missing = (
                "cut = 'none': a transistor that stays on is not noticed, and nothing could cut "
                f"its power: add {part if self.labjack or self.card else ''}{have}"
            )
        elif (
            isinstance(self.of, Wire)
            and a.switches in ("board", "arduino")
            and SUPPLY_SHARES[-1] * self.of.current_A > BOARD_MAX_A
        ):
            missing = (
                f"wire = '{a.wire}': needs {self.of.current_A:g} A, and a board switches "
                f"{BOARD_MAX_A:g} A of a cell: take a thinner wire, several to a cell in series "
                "(wires_per_cell), or lines of a card (switches = 'card')"
            )
        elif isinstance(self.of, Wire) and a.supply_current_max_A is not None:
            least_A = self.per_cell_A * (1.0 if a.supply_V else SUPPLY_SHARES[-1])
            if a.supply_current_max_A < least_A:
                missing = (
                    f"supply_current_max_A = {a.supply_current_max_A:g}: a cell takes "
                    f"{least_A:.2g} A: take a supply that gives this, or a thinner wire"
                )
        if missing:
            raise ConfigError(missing)

    def _missing_of_an_actuator(self) -> str:
        """What keeps an actuator from being safe, whose wire and current nobody states."""
        a = self.answers
        if a.switches != "board":
            return (
                f"switches = '{a.switches}': nobody states the wire of a {a.wire}, so that no heat "
                "can be computed: take hil's board, which measures currents (its parts: "
                "hil board bom RIG): switches = 'board'"
            )
        for key in {"wires_per_cell", "length_m"} & a.model_fields_set:
            return f"{key}: a {a.wire} is a cell as it is sold: leave this out"
        if a.cut == "supply" and not (a.supply_V and a.supply_current_max_A):
            return (
                f"supply_V, supply_current_max_A: missing: nobody states what a {a.wire} takes: "
                "give both as you set them"
            )
        return ""

    def terminals(self) -> dict[str, Any]:
        """Lines of the card: the e-stop's, the relay's, those of the cells' gates, and back."""
        if self.card is None:
            return {}
        free_in, free_out = list(self.card["inputs"]), list(self.card["outputs"])
        taken: dict[str, Any] = {"power": "", "back": {}}
        if self.answers.switches == "card":
            taken["estop"] = free_in[0]
            free_out = [line for line in free_out if line != taken["estop"]]
        if self.answers.cut == "card" and free_out:
            taken["power"] = free_out.pop(0)
        if self.answers.switches == "card":
            taken["gates"] = dict(zip(self.cells, free_out, strict=False))
            used = {taken["estop"], taken["power"], *taken["gates"].values()}
            back = [line for line in free_in if line not in used]
            if len(back) >= len(self.cells):
                taken["back"] = dict(zip(self.cells, back, strict=False))
        return taken

    @property
    def pretension_N(self) -> tuple[float, str]:
        a = self.answers
        if a.against == "weight":
            wires = self.n_parallel * a.wires_per_cell
            return self.mass_kg * G_m_per_s2 / wires, "the weight"
        return self._at_N(BIAS_Pa), "assumed: of each wire, the maker's bias of 69 MPa"

    @property
    def mass_kg(self) -> float:
        a = self.answers
        if a.mass_kg is not None:
            return a.mass_kg
        wires = self.n_parallel * a.wires_per_cell
        lifts_kg = 0.5 * wires * self.of.pull_N / G_m_per_s2
        return float(f"{lifts_kg:.2g}") if a.against == "weight" else MASS_kg

    @property
    def k_se_N_per_m(self) -> tuple[float, str]:
        """What is in series with the wires of a cell; between fixed ends it bounds their force."""
        a, k_N_per_m = self.answers, self.wires_N_per_m
        if isinstance(self.of, Actuator):
            return self.of.k_se_N_per_m, ""
        if a.against != "fixed":
            return FRAME_SHARE * k_N_per_m, "assumed: clamps and frame"
        if a.spring_N_per_m is not None:
            return a.spring_N_per_m, "the spring in series with the wires of a cell"
        more_N = (self.of.pull_N - self._at_N(BIAS_Pa)) * a.wires_per_cell
        both_N_per_m = self.soft * more_N / self.stroke_m
        about = (
            f"assumed: a spring in series with each cell, {self.soft:g} of the maker's pull force"
        )
        return both_N_per_m * k_N_per_m / (k_N_per_m - both_N_per_m), about

    @property
    def spring_N_per_m(self) -> float:
        a, wires = self.answers, self.n_parallel * self.answers.wires_per_cell
        return a.spring_N_per_m or float(f"{self._at_N(SPRING_Pa) * wires / self.stroke_m:.2g}")

    @property
    def points(self) -> dict[str, TomlTable]:
        """The ends of the arrays."""
        a = self.answers
        if a.joined == "antagonists":
            return dict.fromkeys(("left", "transducer", "right"), FIXED)
        if a.against == "fixed":
            return dict.fromkeys(("ground", "transducer"), FIXED)
        load = {
            "support": "free", "mass_kg": self.mass_kg,
            "about": "" if a.mass_kg is not None else "assumed",
            "spring_N_per_m": self.spring_N_per_m if a.against == "spring" else 0.0,
        }  # fmt: skip
        return {"load": load, "hook": FIXED}

    @property
    def force_max_N(self) -> tuple[float, str]:
        a = self.answers
        pulls_N = FORCE_MARGIN * self.of.pull_N * a.wires_per_cell * self.n_parallel
        if pulls_N < CAPACITY_SHARE * a.capacity_N:
            return float(f"{pulls_N:.3g}"), "1.25 times the maker's pull force of all wires"
        return CAPACITY_SHARE * a.capacity_N, "nine tenths of the transducer's capacity"

    @property
    def facts(self) -> TomlTable:
        """Everything that the templates print."""
        a, of = self.answers, self.of
        k_N_per_m = self.wires_N_per_m
        moved_kg = max(self.mass_kg if a.against != "fixed" else 0.0, 1e-3)
        damping = 2.2 * sqrt(k_N_per_m * moved_kg)
        pretension_N, pretension_about = self.pretension_N
        force_max_N, force_about = self.force_max_N
        channel = [
            f"newtons_per_V = {a.capacity_N / 10.0:g}   # assumed: {a.capacity_N:g} N at 10 V; "
            "hil calibrate force_transducer"
        ]
        if self.signal:
            channel.append(f'signal = "{self.signal}"')
        chosen = "chosen by hil: set your supply to it"
        own_A = "of the supply, or of its fuse"
        return {
            "title": f"{a.cells} cells of {answers_wire(a)}, {a.joined}, on {a.against}",
            "command": command(a), "drawing": self.drawing, "points": self.points,
            "arrays": self.arrays, "fingerprint": self.fingerprint, "cells": self.cells,
            "force_on_N": float(f"{k_N_per_m * self.stroke_m:.4g}"),
            "k_ae_N_per_m": float(f"{k_N_per_m:.4g}"), "k_se_N_per_m": self.k_se_N_per_m[0],
            "k_se_about": self.k_se_N_per_m[1],
            "modulus_GPa": MODULUS_Pa / 1e9, "b_N_s_per_m": damping, "wire": of,
            "actuator": self.actuator,
            "wire_name": a.wire, "length_m": a.length_m, "n_wires": a.wires_per_cell,
            "supply_V": self.supply_V, "supply_about": "" if a.supply_V else chosen,
            "pretension_N": pretension_N, "pretension_about": pretension_about,
            "spring_about": "" if a.spring_N_per_m else "assumed: adds 65 MPa over the stroke",
            "period_s": self.period_s, "every": 1 if self.period_s > 0.005 else 4,
            "switches": a.switches, "cut": a.cut, "plain_supply": a.cut != "supply",
            "supply_current_max_A": self.supply_A,
            "current_about": own_A if a.supply_current_max_A else f"{chosen}, or take such a fuse",
            "assumed_mA": int(np.ceil(1e3 * (1 + SUPPLY_ERROR) * self.per_cell_A * 1.05)),
            "full_scale_mA": self.full_scale_mA, "card": self.card,
            "terminals": self.terminals(),
            "labjack": self.labjack, "measures_labjack": self.labjack is not None,
            "instrument": {"kind": INSTRUMENTS.get(a.measures)} if a.measures in INSTRUMENTS else 0,
            "record": str(root() / RECORD), "signal": self.signal,
            "force_channel": "\n".join(channel), "force_max_N": force_max_N,
            "force_about": force_about, "cell_on_max_s": 2.0 if self.actuator else 5.0,
            "n_on": self.n_on,
        }  # fmt: skip

    @property
    def drawing(self) -> list[str]:
        """The array as text."""
        return drawing(
            {a["name"]: (a["start"], a["end"], self.fingerprint) for a in self.arrays}, self.points
        )

    def text(self, limits: str = "") -> str:
        """The rig's file."""
        return _rendered("rig.toml.j2", {**self.facts, "limits": limits})

    def open(self, text: str) -> list[str]:
        """What the file assumes, each with the way to a value of one's own."""
        a = self.answers
        measured = (
            "springs, damper, force"
            if self.actuator
            else "length, resistance (four contacts), current"
        )
        of_wire = f"{a.wire}: {measured}: {self.of.source}"
        calibrated = a.measures in ("futek", "indicator")
        force = "its own calibration" if calibrated else "hil calibrate force_transducer"
        lines = [of_wire, f"force: the scale of your transducer: {force}"]
        if self.actuator:
            lines.append("its wire, and what the maker permits: [devices.board.wire]; until then "
                         "guard.cell_on_max_s = 2, guard.cells_on_max = 1")  # fmt: skip
        elif a.supply_V is None and a.cut != "supply":
            lines.append(f"the supply: set it to {self.supply_V:g} V and {self.supply_A:g} A")
        if self.n_on < a.cells and not self.actuator:
            lines.append(
                f"guard.cells_on_max = {self.n_on}: with a supply for more, a short could burn a "
                "wire before the board trips; cells in series, or longer wires, need less current"
            )
        lines.append("cells: force, stroke and times: hil calibrate cell_force, hil test")
        n = text.count("# assumed")
        return [*lines, f"{n} more values with 'assumed' in the rig, each with its reason"]


def answers_wire(answers: Answers) -> str:
    """The wires of a cell in words."""
    n = answers.wires_per_cell
    return answers.wire if n == 1 else f"{n} wires {answers.wire}"


def command(answers: Answers) -> str:
    """The command that makes this rig again."""
    options = answers.model_dump(exclude_defaults=True)
    words = [
        f"--{key.replace('_', '-')} {shlex.quote(str(value))}" for key, value in options.items()
    ]
    return f"hil new rig DIR {' '.join(words)}"


def _labjack(measures: str) -> str | None:
    kind, _, model = measures.partition("-")
    if kind.lower() != "labjack":
        return None
    if model.upper() not in LABJACKS:
        raise ConfigError(f"measures = '{measures}': choose labjack-{', labjack-'.join(LABJACKS)}")
    return model.upper()


def _card(measures: str) -> dict[str, Any] | None:
    """The NI card of this product, as the templates need it."""
    if measures in INSTRUMENTS or measures.lower().startswith("labjack"):
        return None
    from simdaq import catalog

    models = catalog.models()
    if measures not in models:
        known = [*models, *INSTRUMENTS, *(f"labjack-{model}" for model in LABJACKS)]
        near = remedy(measures, known)
        choice = (
            near
            if near.startswith(": did")
            else (
                ": choose an NI product such as USB-6009, labjack-T7, futek, phidget or indicator"
            )
        )
        raise ConfigError(one_line(f"measures = '{measures}': unknown{choice}"))
    model = models[measures]
    if model.ai is None or not model.ports:
        raise ConfigError(f"measures = '{measures}': has no voltage inputs and lines of its own: "
                          "write its rig by hand, docs/daq.md")  # fmt: skip
    lines = [(f"port{p}/line{i}", port) for p, port in enumerate(model.ports)
             for i in range(port.n_lines)]  # fmt: skip
    return {
        "product": measures, "bits": model.ai.bits, "watchdog": "do" in model.watchdog,
        "wiring": "differential", "rate_Hz": min(10e3, model.ai.max_multi_Hz),
        "outputs": [line for line, port in lines if port.output],
        "inputs": [line for line, port in lines if port.input],
    }  # fmt: skip


def _simulated(experiment: Experiment) -> list[str]:
    """What a cell that is on for a second does on the simulated rig."""
    run = simulate(experiment)
    force_N = np.asarray(run.force_measured_N)
    rise_N = float(np.nanmax(np.abs(force_N - force_N[0])))
    outcome = run.attrs["outcome"]
    if outcome != "complete":
        faults = np.asarray(run.event_text)[np.asarray(run.event_level) == "fault"]
        why = faults[0] if len(faults) else outcome
        raise ConfigError(one_line(f"{experiment.path}: one cell on for 1 s does not pass: {why}"))
    return [f"simulated: {outcome}: with one cell on for 1 s the force changes by {rise_N:.3g} N"]


def _still(rig: LoadedRig) -> list[str]:
    """What a check and a bench say of this rig, without the name of its file."""
    today = datetime.now(UTC).date()
    refused = [line for status in statuses_of(rig, today) for line in status.refused(on_bench=True)]
    lines = [
        *rig.doubts, *rig.unusual, *interchangeable(rig), *rig.protection_doubts, *refused
    ]  # fmt: skip
    return [*dict.fromkeys(line.removeprefix(f"{rig.path}: ") for line in lines)]


def _aligned(text: str) -> str:
    """The same TOML with its comments in one column, where they fit."""
    lines = []
    for line in text.splitlines():
        code, mark, comment = line.partition("  # ")
        lines.append(f"{code.rstrip():<{COMMENT_AT}} # {comment.strip()}" if mark else line)
    return "\n".join(lines) + "\n"


def _rendered(name: str, facts: TomlTable) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["g"] = lambda value: f"{value:.5g}"
    environment.filters["inline"] = lambda table: (
        "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
    )
    environment.filters["comment"] = lambda text: f"   # {text}" if text else ""
    return _aligned(environment.get_template(name).render(facts))
