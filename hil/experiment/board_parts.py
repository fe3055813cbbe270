"""`hil board bom RIG`: parts of the driver board, rated for the wires of a rig.

Numbers and ratings stand in `firmware/board/parts.toml`; `firmware/board/circuit.py` joins the same
parts to circuits. There are two builds: `board`, one board for twelve cells, and `modules`, bought
modules for six.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from hil.config.values import TomlTable
from hil.errors import ConfigError
from hil.experiment.board_limits import Protection, leak_A
from hil.experiment.current_error import FIVE_V, catalogue, reading_error
from hil.mechanics.sma.limits import SUPPLY_ERROR, Thermal, severest_table

Kind = Literal["board", "modules"]
CELLS_MAX = {"board": 12, "modules": 6}
COUNTS = 1023
SWING_V = 0.03  # of the amplifier below its supply
ERROR_MAX = 0.1  # of a reading of an intact cell's current
DROP_MAX = 0.03  # of the supply's voltage, at a shunt
SHUNT_MAX_W = 0.5  # half of its rating
COPPER_OHM_M = 1.75e-8
CURRENT_DENSITY_A_PER_MM2 = 4.0  # of a single lead in air; IEC 60204-1 permits more
SECTIONS_MM2 = (0.25, 0.5, 0.75, 1.0, 1.5, 2.5)  # 2.5: the connector takes no thicker lead
LEAK_SEEN_A = 0.075  # firmware/board/rules.py, tests/firmware/board: the leak cut certainly trips
HOT = 1.6  # a MOSFET's resistance at 125 C over that at 25 C
K_PER_W = 100.0  # of a SOT-23 on a board
MODULE_SHUNTS_OHM = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1)
MEASURING = ("mux_module", "sense_module", "sensor", "reference")


@dataclass(frozen=True)
class Row:
    """A line of the bill of materials."""

    count: int
    name: str
    part: str
    rating: str
    protects: str
    alternatives: Sequence[str]
    data_sheet: str
    check: str = ""


@dataclass(frozen=True)
class Bill:
    """The parts of one board of a rig.

    Attributes
    ----------
    board : its name in the rig
    facts : what the ratings were computed from, one line each
    warnings : what the parts do not protect
    """

    board: str
    facts: Sequence[str]
    rows: Sequence[Row]
    warnings: Sequence[str]


@dataclass(frozen=True)
class Load:
    """Currents and voltage of a board's wires.

    Attributes
    ----------
    cell_A : largest current of an intact cell
    total_A : of the cells that may be on at once
    trip_A : `current_max_mA`
    full_A : `current_full_scale_mA`
    limit_A : current limit of the rig's supply; None if unknown
    """

    cells: int
    on_max: int
    supply_V: float
    cell_A: float
    total_A: float
    trip_A: float
    full_A: float
    limit_A: float | None

    @classmethod
    def of(cls, board: Protection) -> "Load":
        """The load of a board whose wires are all described."""
        volts = board.bench.supply_V * (1.0 + SUPPLY_ERROR)
        currents = sorted((cell.ordinary_A(volts) for cell in board.cells), reverse=True)
        on_max = min(board.limits["cells_on_max"], len(currents))
        return cls(
            len(currents), on_max, board.bench.supply_V, currents[0], sum(currents[:on_max]),
            1e-3 * board.limits["current_max_mA"], 1e-3 * board.limits["current_full_scale_mA"],
            board.bench.supply_A,
        )  # fmt: skip


def bill(path: Path, board: Protection, kind: Kind) -> Bill:
    """The parts of a board.

    Raises
    ------
    ConfigError
        The build cannot feed or measure the board's wires.
    """
    key = f"{path}: devices.{board.name}"
    if board.unknown or not board.cells:
        missing = board.unknown[0] if board.unknown else "its cells"
        remedy = f"add [devices.{board.name}.wire]"
        raise ConfigError(f"{key}: the wire of '{missing}' is not described: {remedy}")
    load, parts = Load.of(board), catalogue()
    _refuse_load(key, load, parts, kind)
    fuse_A = _fuse_A(key, load, parts, kind)
    sense = _sense(key, load, parts, kind) if board.measures else None
    facts, ratings = _ratings(load, parts, kind, fuse_A, sense)
    rows = [
        _row(name, part, load.cells, ratings.get(name, ""))
        for name, part in parts.items()
        if kind in part["builds"] and (board.measures or name not in MEASURING)
    ]
    error = 0.0 if sense is None else sense.error
    return Bill(board.name, facts, rows, list(_warnings(load, parts, kind, error, board)))


def _row(name: str, part: TomlTable, cells: int, rating: str) -> Row:
    count = part.get("count", 0) + part.get("per_cell", 0) * cells
    text = "; ".join(filter(None, (part["what"], rating)))
    return Row(count, name, part["part"], text, part["protects"], part["alternatives"],
               part["data_sheet"], part.get("check", ""))  # fmt: skip


def _refuse_load(key: str, load: Load, parts: TomlTable, kind: Kind) -> None:
    if load.cells > CELLS_MAX[kind]:
        other = "leave out --modules" if kind == "modules" else "use two boards"
        raise ConfigError(
            f"{key}.cells: {load.cells} cells, and this build has {CELLS_MAX[kind]}: {other}"
        )
    highest_V = parts["clamp"]["stand_off_V"]
    if load.supply_V * (1.0 + SUPPLY_ERROR) > highest_V:
        raise ConfigError(
            f"{key}: the cells' supply of {load.supply_V:g} V is above {highest_V:g} V, where the "
            "suppressor of the board conducts: use shorter or thicker wires, at a lower voltage"
        )
    lowest_V = parts["sense_module"]["rail_min_V"]
    if kind == "modules" and load.supply_V < lowest_V:
        raise ConfigError(
            f"{key}: the modules measure currents from {lowest_V:g} V on, and the cells' supply is "
            f"{load.supply_V:g} V: build the board (without --modules), which measures at ground"
        )
    switch = parts["mosfet" if kind == "board" else "mosfet_module"]
    if load.cell_A > switch["current_A"]:
        raise ConfigError(
            f"{key}: a cell draws {load.cell_A:.2f} A, and {switch['part']} bears "
            f"{switch['current_A']:g} A: lower the supply's voltage, or split the cell"
        )


def _fuse_A(key: str, load: Load, parts: TomlTable, kind: Kind) -> float:
    """The smallest fuse that carries the load for good, within what the parts behind it bear."""
    relay = parts["relay" if kind == "board" else "relay_module"]
    bears = {
        f"the contact of {relay['part']}": relay["contact_A"],
        "the supply's connector": parts["supply_connector"]["current_A"],
        f"a lead of {SECTIONS_MM2[-1]:g} mm2": SECTIONS_MM2[-1] * CURRENT_DENSITY_A_PER_MM2,
    }
    weakest = min(bears, key=lambda what: bears[what])
    share = parts["fuse"]["load_share"]
    usable_A = [value for value in parts["fuse"]["values_A"] if value <= bears[weakest]]
    for value in usable_A:
        if load.total_A <= share * value:
            return float(value)
    on_max = int(load.on_max * share * usable_A[-1] / load.total_A)
    remedy = (
        f"set limits.cells_on_max = {on_max}, or use two boards" if on_max else "use two boards"
    )
    raise ConfigError(
        f"{key}.limits.cells_on_max = {load.on_max}: these cells draw {load.total_A:.2f} A, and a "
        f"fuse of {usable_A[-1]:g} A, the largest that {weakest} permits ({bears[weakest]:g} A), "
        f"carries {share * usable_A[-1]:.2f} A: {remedy}"
    )


def _shunts_Ohm(parts: TomlTable, kind: Kind) -> tuple[float, ...]:
    if kind == "modules":
        return MODULE_SHUNTS_OHM
    return tuple(1e-3 * value for value in parts["shunt"]["values_mOhm"])


def _full_scale_A(sense: TomlTable, shunt_Ohm: float) -> float:
    return FIVE_V / float(sense["gain"] * shunt_Ohm)


class Sense(NamedTuple):
    """The shunt of a measured current, and the relative error of an intact cell's reading."""

    shunt_Ohm: float
    error: float


def _sense(key: str, load: Load, parts: TomlTable, kind: Kind) -> Sense:
    """The shunt for the board's full scale, and the error of an intact cell's reading."""
    sense = parts["sense" if kind == "board" else "sense_module"]
    values_Ohm = _shunts_Ohm(parts, kind)
    wanted_Ohm = FIVE_V / (sense["gain"] * load.full_A)
    shunt_Ohm = min(values_Ohm, key=lambda value: abs(value / wanted_Ohm - 1.0))
    full = f"{key}.limits.current_full_scale_mA = {1e3 * load.full_A:.0f}"
    better = next(_full_scales_mA(load, sense, values_Ohm), None)
    remedy = f"set it to {better}" if better else "no shunt fits: change the wires' current"
    if abs(shunt_Ohm / wanted_Ohm - 1.0) > 0.01:
        raise ConfigError(f"{full}: needs a shunt of {1e3 * wanted_Ohm:.3g} mOhm, which is not "
                          f"made: {remedy}")  # fmt: skip
    if not _range_holds(load, sense, shunt_Ohm):
        raise ConfigError(f"{full}: current_max_mA = {1e3 * load.trip_A:.0f} saturates the "
                          f"amplifier: {remedy}")  # fmt: skip
    error = reading_error(sense, _full_scale_A(sense, shunt_Ohm), load.cell_A)
    if error > ERROR_MAX:
        raise ConfigError(f"{full}: an intact cell's {load.cell_A:.3g} A is measured with an error "
                          f"of {100 * error:.0f} %: {remedy}")  # fmt: skip
    return Sense(shunt_Ohm, error)


def _range_holds(load: Load, sense: TomlTable, shunt_Ohm: float) -> bool:
    largest_V = FIVE_V * (1.0 - catalogue()["regulator"]["error"]) - SWING_V
    return bool(sense["gain"] * shunt_Ohm * load.trip_A * (1.02 + sense["gain_error"]) < largest_V)


def _full_scales_mA(load: Load, sense: TomlTable, values_Ohm: Sequence[float]) -> Iterator[int]:
    """The full scales that show `current_max_mA`, smallest first."""
    for shunt_Ohm in values_Ohm:  # largest first
        if (
            _range_holds(load, sense, shunt_Ohm)
            and reading_error(sense, _full_scale_A(sense, shunt_Ohm), load.cell_A) <= ERROR_MAX
            and shunt_Ohm * load.trip_A**2 <= SHUNT_MAX_W
            and shunt_Ohm * load.cell_A <= DROP_MAX * load.supply_V
        ):
            yield round(1e3 * _full_scale_A(sense, shunt_Ohm))


def _heat_max_cA2ms(load: Load, board: Protection, sense: TomlTable) -> int:
    """The largest heat budget that protects wires whose currents this part measures."""
    full_A = Thermal.of(board.limits).full_scale_A
    here, counted = (
        reading_error(part, full_A, load.cell_A) for part in (sense, catalogue()["sense"])
    )
    error = board.bench.current_error + here - counted
    bench = replace(board.bench, current_error=error, leak_A=leak_A(sense, board.limits))
    return severest_table(board.cells, bench, board.limits)["heat_max_cA2ms"]


def _section_mm2(current_A: float) -> float:
    return next(area for area in SECTIONS_MM2 if current_A <= CURRENT_DENSITY_A_PER_MM2 * area)


def _ratings(
    load: Load, parts: TomlTable, kind: Kind, fuse_A: float, sense: Sense | None
) -> tuple[list[str], dict[str, str]]:
    """What was computed from the wires: lines for the whole, and a rating for each part."""
    lead_A = fuse_A if load.limit_A is None else min(fuse_A, load.limit_A)
    ground_mm2, cell_mm2 = _section_mm2(fuse_A), _section_mm2(lead_A)
    drop_mV = 1e3 * load.total_A * COPPER_OHM_M / (1e-6 * ground_mm2)
    switch = parts["mosfet" if kind == "board" else "mosfet_module"]
    on_W = load.cell_A**2 * switch["on_Ohm"] * HOT
    limit = "no limit known" if load.limit_A is None else f"limited to {load.limit_A:g} A"
    facts = [
        f"{load.cells} cells of at most {load.cell_A:.3f} A, {load.on_max} on at once: "
        f"{load.total_A:.2f} A",
        f"cells' supply: {load.supply_V:g} V, at least {load.total_A:.2f} A; {limit}",
        f"leads of the supply and ground: {ground_mm2:g} mm2, {drop_mV:.0f} mV a metre in each; "
        f"of a cell: {cell_mm2:g} mm2",
    ]
    ratings = {
        "fuse": f"{fuse_A:g} A",
        "supply_connector": f"{load.total_A:.2f} A of {parts['supply_connector']['current_A']:g} A",
        "cell_connector": f"{load.cell_A:.3f} A of {parts['cell_connector']['current_A']:g} A",
        "relay": f"{fuse_A:g} A of {parts['relay']['contact_A']:g} A at "
                 f"{load.supply_V:g} V of {parts['relay']['contact_V']:g} V direct current",
        "relay_module": f"{fuse_A:g} A of {parts['relay_module']['contact_A']:g} A at "
                        f"{load.supply_V:g} V of {parts['relay_module']['contact_V']:g} V "
                        "direct current",
        "clamp": f"supply {load.supply_V:g} V",
    }  # fmt: skip
    warm = f", {K_PER_W * on_W:.1f} K" if kind == "board" else ""
    ratings["mosfet"] = ratings["mosfet_module"] = (
        f"{load.cell_A:.3f} A of {switch['current_A']:g} A, {1e3 * on_W:.1f} mW{warm}; "
        f"{load.supply_V:g} V of {switch['drain_V']:g} V"
    )
    if sense is not None:
        count_mA = 1e3 * load.full_A / COUNTS
        facts.append(
            f"sense: {load.full_A:g} A full scale, {count_mA:.2f} mA a count; error at "
            f"{load.cell_A:.3f} A: {100 * sense.error:.1f} %"
        )
        shunt_Ohm = sense.shunt_Ohm
        drop_V = shunt_Ohm * load.cell_A
        ratings["shunt"] = ratings["sense_module"] = (
            f"{1e3 * shunt_Ohm:g} mOhm, {1e3 * drop_V:.0f} mV and {1e3 * drop_V * load.cell_A:.1f} "
            f"mW at {load.cell_A:.3f} A"
        )
    return facts, ratings


def _warnings(
    load: Load, parts: TomlTable, kind: Kind, error: float, board: Protection
) -> Iterator[str]:
    """What these parts do not protect."""
    if load.limit_A is None:
        yield "the supply's current limit is unknown: add a supply, or supply_current_max_A"
    elif load.limit_A < load.total_A:
        yield (
            f"the supply is limited to {load.limit_A:g} A, and {load.on_max} cold cells draw "
            f"{load.total_A:.2f} A: its voltage sags when all are on"
        )
    if load.trip_A < load.cell_A:
        yield (
            f"limits.current_max_mA = {1e3 * load.trip_A:.0f} is below the "
            f"{1e3 * load.cell_A:.0f} mA of an intact cell, which then trips as a short"
        )
    elif board.measures:
        yield from _reading_warnings(load, parts, kind, error, board)
    if kind == "board" and load.cell_A < LEAK_SEEN_A:
        yield (
            f"the leak cut may not see a shorted MOSFET: it sees {1e3 * LEAK_SEEN_A:g} mA for "
            "certain; the host's trip still cuts the supply"
        )
    if kind == "modules":
        yield "no leak cut, and K2 closes by itself when the e-stop is released: see the page"
    if not board.measures:
        yield 'build = "arduino" measures nothing: multiplexers and sense modules are left out'


def _reading_warnings(
    load: Load, parts: TomlTable, kind: Kind, error: float, board: Protection
) -> Iterator[str]:
    """A sensor that leaves the wires a larger heat budget, or the smaller one of bad readings."""
    sense = parts["sense" if kind == "board" else "sense_module"]
    counted = reading_error(parts["sense"], load.full_A, load.cell_A)
    now = _heat_max_cA2ms(load, board, sense)
    if error > counted:
        yield (
            f"the error of a reading, {100 * error:.1f} %, is above the {100 * counted:.1f} % that "
            f"the wires' limits assume: set heat_max_cA2ms to at most {now}"
        )
    heats = {
        full_mA: _heat_max_cA2ms(load, board.with_full_scale(full_mA), sense)
        for full_mA in _full_scales_mA(load, sense, _shunts_Ohm(parts, kind))
    }
    best_mA = max(heats, key=lambda full_mA: heats[full_mA], default=0)
    if best_mA and heats[best_mA] > now:
        yield (
            f"limits.current_full_scale_mA = {best_mA} with its shunt is better: its readings "
            f"allow heat_max_cA2ms = {heats[best_mA]}, in place of {now}"
        )


def as_text(made: Bill, kind: Kind) -> str:
    """The bill of materials as a table."""
    title = "one board" if kind == "board" else "bought modules"
    lines = [f"'{made.board}', {title}", *(f"  {fact}" for fact in made.facts), ""]
    for row in made.rows:
        lines.append(f"{row.count:4d}  {row.part}")
        lines.append(f"      {row.rating}")
        lines.append(f"      protects: {row.protects}")
        lines.append(f"      or: {', '.join(row.alternatives)}  [{row.data_sheet}]")
        if row.check:
            lines.append(f"      check before ordering: {row.check}")
    lines.append("      and the resistors and capacitors of firmware/board/circuit.py")
    lines += ["", *(f"warning: {text}" for text in made.warnings)]
    return "\n".join(lines).rstrip()


def as_data(made: Bill) -> dict[str, object]:
    """The bill of materials for JSON."""
    return asdict(made)
