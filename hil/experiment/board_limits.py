"""Protection of SMA wires by the limits of a rig's boards (`hil.mechanics.sma.limits`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, sqrt
from pathlib import Path
from typing import TypeVar

from hil.config.values import TomlTable
from hil.devices.board import protocol
from hil.devices.board.scan import scan_s
from hil.devices.switch_tables import BoardWireTable, build_wire
from hil.devices.tables import BoardResistanceTable, CellBoardTable
from hil.errors import ConfigError, one_line
from hil.experiment import board_resistance
from hil.experiment.current_error import catalogue, largest_A, reading_error
from hil.experiment.kind import KindOfTable, Model
from hil.experiment.registry import controller_kind, system_kind
from hil.experiment.unnoticed import Unnoticed, drawn_A, lowest_supply_V, on_min_mA, unnoticed
from hil.loop.wire_watch import WatchedWire
from hil.mechanics.sma.bounds import Surroundings
from hil.mechanics.sma.clamp import clamp_share
from hil.mechanics.sma.limits import (
    SUPPLY_ERROR,
    Bench,
    CellWire,
    NoTableError,
    Peak,
    Thermal,
    held_for_s,
    peak,
    protecting,
)
from hil.rig.instruments import boards_of, can_be_cut, supplies_of
from hil.rig.run_tables import RigTables, RunTables

T = TypeVar("T", bound=RigTables)
ON_TIME = "on_time_max_ms"
LOW_SHARE = 0.5  # of the derived current_on_min_mA: a smaller one compares nothing
CLAMP_ERROR_K = 2.0  # assumed: of a clamp's sensor, with two counts of the converter
DEAD_MAN_S = 1e-3 * protocol.LIMITS["silence_max_ms"].highest
SHOWN_C = 1000.0  # largest temperature shown: a hotter wire has melted, so the value has no meaning


@dataclass(frozen=True)
class Protection:
    """A board, its wires and the worst conditions that they can meet.

    Attributes
    ----------
    limits : the board's complete table of limits
    cells : sequence of CellWire
        The cells whose wire is described, by the model or by the board's `wire` table.
    unknown : names of the cells whose wire is not described
    bench : supply, ambient temperatures and scan time
    derived : limits that the rig leaves out, derived from its guard
    measures : whether its build measures currents; an Arduino's assumes `current_max_mA`
    cut : whether a trip can switch its cells' supply off
    resistance : its chain of resistance, and the range of its cells where the rig gives one
    """

    name: str
    limits: Mapping[str, int]
    cells: Sequence[CellWire]
    unknown: Sequence[str]
    bench: Bench
    derived: Mapping[str, int] = field(default_factory=dict)
    measures: bool = True
    cut: bool = True
    resistance: BoardResistanceTable = field(default_factory=BoardResistanceTable)

    @property
    def assumed_mA(self) -> int:
        """The least current that a board which measures none must assume."""
        ordinary_A = max((c.ordinary_A(self.bench.supply_V) for c in self.cells), default=0.0)
        return ceil(1e3 * (1.0 + SUPPLY_ERROR) * ordinary_A)

    @property
    def on_min_mA(self) -> int:
        """The largest `current_on_min_mA` below every reading of an intact cell."""
        table = self.resistance
        return on_min_mA(self.cells, self.bench, self.limits, table.tolerance, table.lead_Ohm)

    def peaks(self) -> list[Peak]:
        """The worst wire temperatures that its limits permit, one entry for each cell."""
        thermal = Thermal.of(self.limits)
        return [peak(cell, thermal, self.reserve) for cell in self.cells]

    @property
    def reserve(self) -> Bench:
        """The bench from which the heat until a trip is computed.

        A board that measures nothing finds no short, so it keeps nothing in reserve for one. Nor
        does it read a current too low: it counts `assumed_mA`.
        """
        if self.measures:
            return self.bench
        return replace(self.bench, supply_A=1e-3 * self.assumed_mA, current_error=0.0, leak_A=0.0)

    def with_full_scale(self, full_mA: int) -> "Protection":
        """The same board with another current sensor."""
        limits = {**self.limits, "current_full_scale_mA": full_mA}
        error = _current_error(self.cells, self.bench.supply_V, limits)
        leak = leak_A(catalogue()["sense"], limits)
        bench = replace(self.bench, current_error=error, leak_A=leak)
        return replace(self, limits=limits, bench=bench)

    def wanted(self) -> dict[str, int]:
        """Limits that protect the wires and permit cells to be on as long as the guard does.

        Raises
        ------
        NoTableError
            No limits within the board's ranges protect the wires.
        """
        limits = protecting(self.cells, self.reserve, self.limits)
        if self.measures:
            limits |= self._compared(limits)
        else:
            limits["current_max_mA"] = self.assumed_mA
            self._let_work(limits)
        for name, value in limits.items():
            highest = protocol.LIMITS[name].highest
            if value > highest:
                raise NoTableError(
                    f"'{self.cells[0].cell}': needs {name} = {value}, and a board has at most "
                    f"{highest}: choose a thinner wire, or a lower voltage"
                )
        return {**self.derived, **limits}

    def held_s(self) -> dict[str, float]:
        """How long the board lets each described cell be on, from cold; infinite for ever."""
        thermal = Thermal.of(self.limits)
        return {
            cell.cell: held_for_s(
                cell.ordinary_A(self.bench.supply_V) if self.measures else thermal.assumed_A,
                thermal, self.bench.scan_s,
            )
            for cell in self.cells
        }  # fmt: skip

    def trips_by_s(self) -> dict[str, float]:
        """When the board has tripped at the latest for a cell held on from cold; or infinite.

        With the least current of the described wire behind its leads, read too low, and the supply
        at its lowest.
        """
        if not self.cells:
            return {}
        thermal, V = Thermal.of(self.limits), lowest_supply_V(self.cells, self.bench, self.limits)
        read = 1.0 - self.bench.current_error
        return {
            cell.cell: held_for_s(
                read * cell.least_A(V * _across(cell, self.resistance))
                if self.measures
                else thermal.assumed_A,
                thermal, self.bench.scan_s, max,
            )
            for cell in self.cells
        }  # fmt: skip

    def unnoticed(self) -> list[Unnoticed]:
        """How far too low each cell's current may be read; nothing if it reads none."""
        cells = self.cells if self.measures else ()
        return [unnoticed(cell, self.bench, self.limits, self.resistance) for cell in cells]

    def _compared(self, limits: Mapping[str, int]) -> dict[str, int]:
        """The limit below which a current is read too low, and where it can be less heat.

        The heat budget then protects the wires from currents that are read too low unnoticed.
        """
        least = {"current_on_min_mA": self.on_min_mA}
        compared = replace(self, limits={**self.limits, **limits, **least}).unnoticed()
        if all(one.protected for one in compared):
            return least
        error = 1.0 - 1.0 / sqrt(max(one.times for one in compared))
        try:
            return least | protecting(
                self.cells, replace(self.bench, current_error=error), self.limits
            )
        except NoTableError:
            return least  # `doubts` has the temperature

    def _let_work(self, limits: Mapping[str, int]) -> None:
        """Require that the assumed current lets every cell contract before the board trips."""
        thermal = Thermal.of({**self.limits, **limits})
        held_s = held_for_s(thermal.assumed_A, thermal, self.bench.scan_s)
        for cell in self.cells:
            takes_s = cell.contracts_in_s(self.bench.supply_V, self.bench.cold_C)
            if takes_s >= held_s:
                raise NoTableError(
                    f"'{cell.cell}': an Arduino assumes {limits['current_max_mA']} mA and trips "
                    f"after {held_s:.3g} s, and it takes {takes_s:.3g} s to contract: change the "
                    "supply's voltage"
                )


def protections(tables: RigTables, model: Model) -> list[Protection]:
    """Every board of a rig with its wires, from the thermal model or from the board's table."""
    thermal = thermal_cells(tables.model, model)
    boards = []
    for name, board in boards_of(tables.devices).items():
        cells = wires_at(board.cells, thermal, board.wire)
        known = [cells[cell] for cell in board.cells if cell in cells]
        unknown = [cell for cell in board.cells if cell not in cells]
        limits = protocol.default_limits() | board.limits
        bench = _bench(tables, board, known, air_C(board.ambient_range_C, board.cells, thermal))
        boards.append(
            Protection(
                name, limits, known, unknown, bench,
                measures=board.measures, cut=can_be_cut(tables.devices),
                resistance=board.resistance,
            )
        )  # fmt: skip
    return _sharing(tables, boards)


def _sharing(tables: RigTables, boards: Sequence[Protection]) -> list[Protection]:
    """The boards, each with what the others draw from the one supply of the rig.

    Which of several supplies feeds a board is not known; one with a current limit of its own has a
    fuse or supply of its own.
    """
    if len(supplies_of(tables.devices)) != 1:
        return list(boards)
    tabled = boards_of(tables.devices)
    shared = [board for board in boards if tabled[board.name].supply_current_max_A is None]
    drawn_at = {
        board.name: drawn_A(board.cells, board.bench.supply_V, board.limits) for board in shared
    }
    return [
        replace(board, bench=replace(board.bench, others_A=sum(drawn_at.values()) - own_A))
        if (own_A := drawn_at.get(board.name)) is not None
        else board
        for board in boards
    ]


def resistance_limits_Ohm(table: CellBoardTable, board: Protection) -> list[tuple[float, float]]:
    """The least and greatest resistance of every cell of a board."""
    return board_resistance.limits_Ohm(table.cells, table.resistance, board.cells)


def clamps_at_rest_C(table: CellBoardTable, board: Protection) -> list[tuple[float, float]]:
    """What the clamp of every cell of a board may read before a run, between two temperatures.

    It is at most as warm as a run before has left it. Where the wire is not described nothing is
    known.
    """
    known = {}
    for one in board.unnoticed():
        cell, cold_C, warm_C = one.cell, board.bench.cold_C, board.bench.warm_C
        rise_K = min(one.worst_C, cell.temperature_max_C) - warm_C
        left_K = clamp_share(cell.wire) * max(0.0, rise_K)
        known[cell.cell] = (cold_C - CLAMP_ERROR_K, warm_C + left_K + CLAMP_ERROR_K)
    return [
        (-inf, inf) if cell in table.without_clamp_sensor else known.get(cell, (-inf, inf))
        for cell in table.cells
    ]


def watched(
    tables: RigTables, boards: Sequence[Protection], cell_names: Sequence[str]
) -> list[WatchedWire]:
    """The cells of boards whose readings the loop compares with their described wires."""
    wires = []
    for board in boards:
        table = boards_of(tables.devices)[board.name]
        resistance = table.resistance
        ranged = resistance.min_Ohm is not None or resistance.max_Ohm is not None
        left_A2s = Thermal.of(board.limits).heat_max_A2s / protocol.HEAT_TO_ARM
        for cell in board.cells if board.measures else ():
            wires.append(
                WatchedWire(
                    board.name, cell, list(cell_names).index(cell.cell),
                    Surroundings(
                        _across(cell, resistance)
                        * lowest_supply_V(board.cells, board.bench, board.limits),
                        (1.0 + SUPPLY_ERROR) * board.bench.supply_V,
                        board.bench.cold_C, board.bench.warm_C,
                        cell.heating_K_per_A2s * left_A2s, resistance.tolerance,
                    ),
                    senses=board.limits["sense_every_ms"] > 0 and not ranged,
                    has_clamp_sensor=cell.cell not in table.without_clamp_sensor,
                    every=table.every,
                )
            )  # fmt: skip
    return wires


def _across(cell: CellWire, table: BoardResistanceTable) -> float:
    """The least share of the supply's voltage that its leads leave a cell."""
    least_Ohm = (1.0 - table.tolerance) / cell.ordinary_A(1.0)
    return least_Ohm / (least_Ohm + table.lead_Ohm)


def completed(tables: T) -> tuple[T, dict[str, dict[str, int]]]:
    """Complete the boards' limits from the guard.

    Returns
    -------
    tables
        The same tables with complete limits of the boards.
    derived : dict
        The limits that were added, by board.
    """
    additions, devices = {}, dict(tables.devices)
    on_ms = ceil(1e3 * (tables.guard.cell_on_max_s or 0.0))
    for name, board in boards_of(tables.devices).items():
        shown_A = Thermal.of(protocol.default_limits() | board.limits).reading_max_A
        most_mA = max(1, round(1e3 * shown_A) - 1)  # largest current below the sensor's range
        limits = board.limits | {"current_max_mA": min(most_mA, _current_max_mA(board))}
        devices[name] = board = board.model_copy(update={"limits": limits})
        if (
            ON_TIME not in limits
            and protocol.LIMITS[ON_TIME].default < on_ms <= protocol.LIMITS[ON_TIME].highest
        ):
            additions[name] = {ON_TIME: on_ms}
            devices[name] = board.model_copy(update={"limits": board.limits | additions[name]})
    return tables.model_copy(update={"devices": devices}), additions


def _current_max_mA(board: CellBoardTable) -> int:
    return (protocol.default_limits() | board.limits)["current_max_mA"]


def wires_at(
    names: Sequence[str], modelled: Mapping[str, CellWire], table: BoardWireTable | None
) -> dict[str, CellWire]:
    """Wires of a device's cells: the model's, else the device's; of two maxima the lower."""
    if table is None:
        return {name: modelled[name] for name in names if name in modelled}
    one, most_C = build_wire(table), table.temperature_max_C
    wires = {name: modelled.get(name, CellWire(name, one, most_C)) for name in names}
    return {
        name: replace(wire, temperature_max_C=min(wire.temperature_max_C, most_C))
        for name, wire in wires.items()
    }


def thermal_cells(table: KindOfTable, model: Model) -> dict[str, CellWire]:
    """Cells that have a wire in this model, by name."""
    wires = system_kind(table).wires
    return {} if wires is None else dict(wires(table, model))


def air_C(
    room_C: Sequence[float], names: Sequence[str], modelled: Mapping[str, CellWire]
) -> tuple[float, float]:
    """The air at its coldest and warmest: of the room, and as the model states it for a wire."""
    all_C = [*room_C, *(modelled[name].wire.ambient_C for name in names if name in modelled)]
    return min(all_C), max(all_C)


def _bench(
    tables: RigTables,
    board: CellBoardTable,
    cells: Sequence[CellWire],
    around_C: tuple[float, float],
) -> Bench:
    supplies = list(supplies_of(tables.devices).values())
    limits_A = [supply.current_A for supply in supplies]
    if board.supply_current_max_A is not None:
        limits_A.append(board.supply_current_max_A)
    volts = [s.voltage_V for s in supplies] or [cell.wire.cell_V for cell in cells]
    cold_C, warm_C = around_C
    limits = protocol.default_limits() | board.limits
    return Bench(
        cold_C,
        warm_C,
        supply_V=max(volts, default=0.0),
        supply_A=min(limits_A, default=None),
        scan_s=scan_s(
            _command(tables, board),
            board.every * tables.loop.period_s,
            len(board.cells),
            limits["sense_every_ms"],
        ),
        current_error=_current_error(cells, max(volts, default=0.0), limits),
        supply_error=max([SUPPLY_ERROR, *(s.voltage_tolerance_V / s.voltage_V for s in supplies)]),
        leak_A=leak_A(catalogue()["sense"], limits),
    )


def leak_A(sense: TomlTable, limits: Mapping[str, int]) -> float:
    """The largest current of a cell that is off which a board with this part does not notice.

    It cuts off what is below a whole count and a whole milliamp.
    """
    full_A = Thermal.of(limits).full_scale_A
    shown_A = 1e-3 * (limits["current_off_max_mA"] + 1.0) + full_A / 1024
    return largest_A(sense, full_A, shown_A)


def _current_error(cells: Sequence[CellWire], supply_V: float, limits: Mapping[str, int]) -> float:
    """Of the cell that draws the least: an amplifier's offset counts most there."""
    sense, full_A = catalogue()["sense"], Thermal.of(limits).full_scale_A
    lowest_V = (1.0 - SUPPLY_ERROR) * supply_V
    errors = [reading_error(sense, full_A, cell.least_A(lowest_V)) for cell in cells]
    return max(errors, default=0.0)


def _command(tables: RigTables, board: CellBoardTable) -> str:
    """The board's command in this run; for a rig, the command with the longest scan of any run."""
    system = system_kind(tables.model)
    if isinstance(tables, RunTables):
        kind = controller_kind(system, tables.controller)
        broadcasts = kind is not None and kind.broadcasts
        modulates = kind is not None and kind.modulates(tables.controller)
    else:
        broadcasts = any(kind.broadcasts for kind in system.controllers.values())
        modulates = True  # a plug-in may
    if broadcasts and board.every == 1:  # a broadcast is sent in every period
        return "broadcast"
    return "set_duties" if modulates else "set_mask"


def faults(boards: Sequence[Protection]) -> Iterator[tuple[str, str]]:
    """Yield (key, text) for every board that could heat a wire above its maximum temperature.

    And for one whose measurement of resistance would warm a wire that is off.
    """
    for board in boards:
        yield from board_resistance.faults(
            f"devices.{board.name}", board.cells, board.bench.supply_V, board.limits
        )
        yield from board_resistance.too_wide(f"devices.{board.name}", board.resistance, board.cells)
        yield from _unmeasured(board)
        yield from _late(board)
        peaks = [p for p in board.peaks() if not p.protected]
        if not peaks:
            continue
        worst = max(peaks, key=lambda p: p.worst_C - p.cell.temperature_max_C)
        yield (
            f"devices.{board.name}.limits.heat_max_cA2ms = {board.limits['heat_max_cA2ms']}",
            f"the board could heat the wire of '{worst.cell.cell}' to {_rounded_up(worst.worst_C)} "
            f"at an ambient temperature of {board.bench.warm_C:g} C; its temperature_max_C is "
            f"{worst.cell.temperature_max_C:g}: use the limits that `hil board limits --from RIG` "
            "prints",
        )


def _late(board: Protection) -> Iterator[tuple[str, str]]:
    """A persistence that leaves a short, or a transistor that stays on, to other protections."""
    scans, thermal = board.limits["persistence_scans"], Thermal.of(board.limits)
    if not board.measures or scans <= protocol.LIMITS["persistence_scans"].default:
        return
    key = f"devices.{board.name}.limits.persistence_scans = {scans}"
    found_s, short_A = thermal.found_s(board.bench), thermal.short_A(board.bench)
    if found_s > DEAD_MAN_S:
        yield (
            key,
            f"a short would end after {found_s:.2g} s, and without its host the board stops within "
            f"{DEAD_MAN_S:g} s: lower it",
        )
        return
    for cell in board.cells:
        heats_K = cell.heating_K_per_A2s * short_A**2 * found_s
        if heats_K > cell.temperature_max_C - board.bench.warm_C:
            yield (
                key,
                f"until `current_high` trips, {short_A:g} A could heat the wire of '{cell.cell}' "
                f"by {heats_K:.0f} K, and from {board.bench.warm_C:g} C to its temperature_max_C "
                f"of {cell.temperature_max_C:g}: lower it",
            )
            return


def _unmeasured(board: Protection) -> Iterator[tuple[str, str]]:
    """What a board that measures nothing needs in its place."""
    if board.measures:
        return
    key, limits = f"devices.{board.name}", board.limits
    if board.unknown:
        yield (
            f"{key}.wire",
            f"missing: an Arduino computes the heat of '{board.unknown[0]}' from an assumed "
            f"current: add [{key}.wire]",
        )
    if limits["current_max_mA"] < board.assumed_mA:
        yield (
            f"{key}.limits.current_max_mA = {limits['current_max_mA']}",
            f"an Arduino counts this current as heat, and an intact cell can draw "
            f"{board.assumed_mA} mA at {board.bench.supply_V:g} V: give at least that",
        )
    if not board.cut:
        yield (
            key,
            "a transistor that stays on is not noticed, and nothing could cut its power: add an "
            "enable line to a card, or a supply",
        )
    if board.bench.supply_A is None:
        yield (
            f"{key}.supply_current_max_A",
            "missing: nothing measures the current of a short circuit: add a supply, or give the "
            "fuse's current",
        )
    for name in ("open_cells_max", "sense_every_ms"):
        if limits[name]:
            yield f"{key}.limits.{name} = {limits[name]}", "an Arduino measures nothing: remove it"


def refuse(path: Path, boards: Sequence[Protection]) -> None:
    """Refuse boards that could heat a wire above its maximum temperature.

    Raises
    ------
    ConfigError
        One line for each board.
    """
    lines = [one_line(f"{path}: {key}: {text}") for key, text in faults(boards)]
    if lines:
        raise ConfigError("\n".join(lines))


def doubts(boards: Sequence[Protection]) -> list[str]:
    """Warnings about missing information on the boards' wires and supply."""
    lines = []
    for board in boards:
        key = f"devices.{board.name}"
        if board.unknown and board.measures:
            lines.append(
                f"{key}: hil cannot check that its limits protect the wires: the wire of "
                f"'{board.unknown[0]}' is not described: add [{key}.wire]"
            )
        if board.cells and board.bench.supply_A is None and board.measures:
            full_A = 1e-3 * board.limits["current_full_scale_mA"]
            lines.append(
                f"{key}: the supply's current limit is unknown, and the board cannot measure a "
                f"short-circuit current above {full_A:g} A: add a supply, or supply_current_max_A"
            )
        lines += _uncompared(board)
    return lines


def _uncompared(board: Protection) -> Iterator[str]:
    """Yield a line if nothing would notice a current that is read too low."""
    key, compared = f"devices.{board.name}.limits", board.unnoticed()
    if not compared:
        return
    on_min, sense = board.limits["current_on_min_mA"], board.limits["sense_every_ms"]
    least = board.on_min_mA
    if not sense and on_min < LOW_SHARE * least:
        yield (
            f"{key}.current_on_min_mA = {on_min}: no current is compared with what its wire can "
            f"draw: give {least}, or sense_every_ms = 100 with the supply's divider connected"
        )
    elif (
        sense
        and board.limits["supply_full_scale_mV"]
        <= 1e3 * (1.0 + board.bench.supply_error) * board.bench.supply_V
    ):
        yield (
            f"{key}.supply_full_scale_mV = {board.limits['supply_full_scale_mV']}: the divider "
            f"shows no more, so that {board.bench.supply_V:g} V give no resistance, and no current "
            "is compared with what its wire can draw: give another divider's full scale"
        )
    worst = max(compared, key=lambda one: one.worst_C - one.cell.temperature_max_C)
    if not worst.protected:
        yield (
            f"{key}.current_on_min_mA = {on_min}: a current of "
            f"'{worst.cell.cell}' that is read {100.0 * (1.0 - worst.share):.0f} % too low is not "
            f"noticed, and its wire could reach {_rounded_up(worst.worst_C)}; its "
            f"temperature_max_C is {worst.cell.temperature_max_C:g}: use the limits that "
            "`hil board limits --from RIG` prints, or lower the supply's voltage"
        )


def plan(boards: Sequence[Protection]) -> list[str]:
    """Lines of the energise plan for boards that cannot find every fault."""
    lacking = ", ".join(protocol.fault_names(protocol.FAULTS_MEASURED))
    return [
        f"'{board.name}' (Arduino) measures nothing: it cannot find {lacking}, and counts "
        f"{board.limits['current_max_mA']} mA as heat of every cell that is on"
        for board in boards
        if not board.measures
    ]


def as_text(boards: Sequence[Protection]) -> list[str]:
    """Wire temperatures that the limits permit, one line for each board and type of wire."""
    lines = []
    for board in boards:
        kinds: dict[tuple[float, ...], list[str]] = {}
        held_for = board.held_s()
        for p in board.peaks():
            kind = (p.cold_C, p.warm_C, p.cell.temperature_max_C, held_for[p.cell.cell])
            kinds.setdefault(kind, []).append(p.cell.cell)
        for (cold_C, warm_C, highest_C, held_s), cells in kinds.items():
            held = "" if held_s == inf else f"; a cell held on trips after {held_s:.3g} s"
            lines.append(
                f"'{board.name}' permits {_range_of(cells)} to reach {_celsius(warm_C)} at an "
                f"ambient temperature of {board.bench.warm_C:g} C, {_celsius(cold_C)} at "
                f"{board.bench.cold_C:g} C; the maximum is {highest_C:g} C{held}"
            )
        lines += _compared(board)
        lines += board_resistance.facts(board.name, board.cells, board.bench.supply_V, board.limits)
    return lines


def _compared(board: Protection) -> Iterator[str]:
    """Yield how far too low currents may be read, one line for each type of wire."""
    kinds: dict[tuple[float, float], list[str]] = {}
    for one in board.unnoticed():
        kinds.setdefault((one.share, one.worst_C), []).append(one.cell.cell)
    for (share, worst_C), cells in kinds.items():
        yield (
            f"'{board.name}' trips if a current of {_range_of(cells)} is read "
            f"{100.0 * (1.0 - share):.0f} % too low; with less error a wire reaches "
            f"{_celsius(worst_C)} at most"
        )


def _range_of(cells: Sequence[str]) -> str:
    return cells[0] if len(cells) == 1 else f"{cells[0]} to {cells[-1]}"


def _celsius(T_C: float) -> str:
    return f"{T_C:.0f} C" if T_C < SHOWN_C else f"more than {SHOWN_C:g} C"


def _rounded_up(T_C: float) -> str:
    """Never rounded down to a maximum that it exceeds."""
    return f"{ceil(10.0 * T_C) / 10.0:g} C" if T_C < SHOWN_C else _celsius(T_C)


def limits_as_toml(board: Protection) -> str:
    """The board's [limits] that protect its wires, each with its derivation as a comment.

    Raises
    ------
    NoTableError
        No limits within the board's ranges protect the wires.
    """
    wanted = board.wanted()
    bench = board.reserve
    severest = min(
        board.cells, key=lambda c: (c.temperature_max_C - bench.warm_C) / c.heating_K_per_A2s
    )
    late_K = severest.heating_K_per_A2s * Thermal.of({**board.limits, **wanted}).late_A2s(bench)
    leak_K = severest.heating_K_per_A2s * severest.time_constant_s * bench.leak_A**2
    leak = f", minus {leak_K:.0f} K by a leak" if bench.leak_A else ""
    limit = "without a limit" if bench.supply_A is None else f"of {bench.supply_A:g} A"
    supply = f" with a supply {limit}" if board.measures else ""
    comments = {
        ON_TIME: "as guard.cell_on_max_s",
        "heat_max_cA2ms": (
            f"{severest.temperature_max_C:g} C minus ambient {bench.warm_C:g} C, minus "
            f"{late_K:.0f} K until a trip{supply}{leak}"
        ),
        "heat_time_constant_ms": "of the slowest wire, in still warm air",
        "current_max_mA": (
            f"{25 if board.measures else 3} % above the current of an intact cell at "
            f"{bench.supply_V:g} V"
        ),
        "current_on_min_mA": "below every reading of an intact cell",
    }
    defaults = protocol.default_limits()
    rig_values = {
        name: value
        for name, value in board.limits.items()
        if name not in wanted and value != defaults[name]
    }
    lines = [f"[devices.{board.name}.limits]"]
    lines += [f"{name} = {value}  # from the rig" for name, value in rig_values.items()]
    lines += [f"{name} = {value}  # {comments[name]}" for name, value in wanted.items()]
    return "\n".join(lines)
