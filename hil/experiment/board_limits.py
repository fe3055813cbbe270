"""What the limits of a rig's boards protect: `hil.mechanics.sma.limits` on its tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from pathlib import Path
from typing import Any, TypeVar

from hil.devices.board import protocol
from hil.devices.board.scan import scan_s
from hil.errors import ConfigError, one_line
from hil.experiment.registry import controller_kind, system_kind
from hil.mechanics.sma.limits import (
    Bench,
    CellWire,
    NoTableError,
    Peak,
    Thermal,
    held_for_s,
    peak,
    protecting,
)
from hil.rig.instruments import boards_of, supplies_of
from hil.rig.run_tables import RigTables, RunTables
from hil.rig.tables import CellBoardTable
from hil.rig.wires import build_wire

T = TypeVar("T", bound=RigTables)
ON_TIME = "on_time_max_ms"
SHOWN_C = 1000.0  # beyond this a wire has melted or burnt through: the figure says nothing more


@dataclass(frozen=True)
class Protection:
    """A board, the wires behind its gates and what may come to them.

    Attributes
    ----------
    name : str
    limits : the board's whole table
    cells : sequence of CellWire
        Those of its cells that somebody has described.
    unknown : names of its other cells
    bench : Bench
    derived : entries of the table that the rig leaves out and its guard asks for
    """

    name: str
    limits: Mapping[str, int]
    cells: Sequence[CellWire]
    unknown: Sequence[str]
    bench: Bench
    derived: Mapping[str, int] = field(default_factory=dict)

    def peaks(self) -> list[Peak]:
        """What its table allows, a cell each."""
        thermal = Thermal.of(self.limits)
        return [peak(cell, thermal, self.bench) for cell in self.cells]

    def wanted(self) -> dict[str, int]:
        """The entries of a table that protects them and lets them be on for as long as the guard.

        Raises
        ------
        NoTableError
        """
        found = protecting(self.cells, self.bench, self.limits)
        for name, value in found.items():
            highest = protocol.LIMITS[name].highest
            if value > highest:
                raise NoTableError(
                    f"'{self.cells[0].cell}': needs {name} = {value}, and a board has at most "
                    f"{highest}: choose a thinner wire, or a lower voltage"
                )
        return {**self.derived, **found}


def protections(tables: RigTables, model: Any) -> list[Protection]:
    """Every board of a rig with its wires, those of a thermal model or of its own table."""
    thermal = thermal_cells(tables.model, model)
    found = []
    for name, board in boards_of(tables.devices).items():
        cells = {cell: thermal[cell] for cell in board.cells if cell in thermal}
        if board.wire is not None:
            one, highest_C = build_wire(board.wire), board.wire.temperature_max_C
            cells = {cell: CellWire(cell, one, highest_C) for cell in board.cells} | cells
        known = [cells[cell] for cell in board.cells if cell in cells]
        unknown = [cell for cell in board.cells if cell not in cells]
        limits = protocol.default_limits() | board.limits
        found.append(Protection(name, limits, known, unknown, _bench(tables, board, known)))
    return found


def completed(tables: T) -> tuple[T, dict[str, dict[str, int]]]:
    """The same, its boards with the limits that they leave out and the guard asks for; those."""
    found, devices = {}, dict(tables.devices)
    on_ms = ceil(1e3 * (tables.guard.cell_on_max_s or 0.0))
    for name, board in boards_of(tables.devices).items():
        shown_A = Thermal.of(protocol.default_limits() | board.limits).reading_max_A
        most_mA = max(1, round(1e3 * shown_A) - 1)  # what the sensor can show: written anew below
        limits = board.limits | {"current_max_mA": min(most_mA, _current_max_mA(board))}
        devices[name] = board = board.model_copy(update={"limits": limits})
        if (
            ON_TIME not in limits
            and protocol.LIMITS[ON_TIME].default < on_ms <= protocol.LIMITS[ON_TIME].highest
        ):
            found[name] = {ON_TIME: on_ms}
            devices[name] = board.model_copy(update={"limits": board.limits | found[name]})
    return tables.model_copy(update={"devices": devices}), found


def _current_max_mA(board: CellBoardTable) -> int:
    return (protocol.default_limits() | board.limits)["current_max_mA"]


def thermal_cells(table: Any, model: Any) -> dict[str, CellWire]:
    """The cells that are wires in this model, by name."""
    wires = system_kind(table).wires
    if wires is None:
        return {}
    found = wires(table, model)
    return {name: CellWire(name, wire, highest_C) for name, (wire, highest_C) in found.items()}


def _bench(tables: RigTables, board: CellBoardTable, cells: Sequence[CellWire]) -> Bench:
    supplies = list(supplies_of(tables.devices).values())
    limits_A = [supply.current_A for supply in supplies]
    if board.supply_current_max_A is not None:
        limits_A.append(board.supply_current_max_A)
    volts = [s.voltage_V for s in supplies] or [cell.wire.cell_V for cell in cells]
    cold_C, warm_C = board.ambient_range_C
    return Bench(
        cold_C,
        warm_C,
        supply_V=max(volts, default=0.0),
        supply_A=min(limits_A, default=None),
        scan_s=scan_s(_command(tables, board), board.every * tables.loop.period_s),
    )


def _command(tables: RigTables, board: CellBoardTable) -> str:
    """What a board gets from this run; from any run on this rig, what keeps its scan longest."""
    system = system_kind(tables.model)
    if isinstance(tables, RunTables):
        controllers = [controller_kind(system, tables.controller)]
    else:
        controllers = list(system.controllers.values())
    broadcasts = any(kind is not None and kind.broadcasts for kind in controllers)
    # A broadcast is repeated in every period: no run has one with `every` above 1.
    return "broadcast" if broadcasts and board.every == 1 else "set_mask"


def faults(found: Sequence[Protection]) -> Iterator[tuple[str, str]]:
    """Key and text of every board that could take a wire beyond its maximum."""
    for board in found:
        peaks = [p for p in board.peaks() if not p.protected]
        if not peaks:
            continue
        worst = max(peaks, key=lambda p: p.worst_C - p.cell.temperature_max_C)
        yield (
            f"devices.{board.name}.limits.heat_max_cA2ms = {board.limits['heat_max_cA2ms']}",
            f"the board could take the wire of '{worst.cell.cell}' to {_celsius(worst.worst_C)} in "
            f"a room of {board.bench.warm_C:g} C; its temperature_max_C is "
            f"{worst.cell.temperature_max_C:g}: take the limits that `hil board limits --from RIG` "
            "writes",
        )


def refuse(path: Path, found: Sequence[Protection]) -> None:
    """ConfigError where a board could take a wire beyond its maximum, a line each."""
    lines = [one_line(f"{path}: {key}: {text}") for key, text in faults(found)]
    if lines:
        raise ConfigError("\n".join(lines))


def doubts(found: Sequence[Protection]) -> list[str]:
    """What keeps hil from saying what the boards protect, a line a board."""
    lines = []
    for board in found:
        key = f"devices.{board.name}"
        if board.unknown:
            lines.append(
                f"{key}: hil cannot say what its limits protect: the wire of '{board.unknown[0]}' "
                f"is not described: add [{key}.wire]"
            )
        if board.cells and board.bench.supply_A is None:
            full_A = 1e-3 * board.limits["current_full_scale_mA"]
            lines.append(
                f"{key}: nothing is known to limit the supply's current, and the board cannot "
                f"measure a short beyond {full_A:g} A: add a supply, or supply_current_max_A"
            )
    return lines


def as_text(found: Sequence[Protection]) -> list[str]:
    """A line a board and kind of wire: what its table lets the wires come to."""
    lines = []
    for board in found:
        thermal = Thermal.of(board.limits)
        kinds: dict[tuple[float, ...], list[str]] = {}
        for p in board.peaks():
            held_s = held_for_s(p.cell.ordinary_A(board.bench.supply_V), thermal)
            kind = (p.cold_C, p.warm_C, p.cell.temperature_max_C, held_s)
            kinds.setdefault(kind, []).append(p.cell.cell)
        for (cold_C, warm_C, highest_C, held_s), cells in kinds.items():
            who = cells[0] if len(cells) == 1 else f"{cells[0]} to {cells[-1]}"
            held = "" if held_s == inf else f"; one that is held on trips after {held_s:.3g} s"
            lines.append(
                f"'{board.name}' lets {who} come to {_celsius(warm_C)} in a room of "
                f"{board.bench.warm_C:g} C, {_celsius(cold_C)} in one of {board.bench.cold_C:g} C; "
                f"allowed are {highest_C:g} C{held}"
            )
    return lines


def _celsius(T_C: float) -> str:
    return f"{T_C:.0f} C" if T_C < SHOWN_C else f"more than {SHOWN_C:g} C"


def limits_as_toml(board: Protection) -> str:
    """The board's [limits] with what protects its wires, and where each figure comes from.

    Raises
    ------
    NoTableError
    """
    wanted = board.wanted()
    bench = board.bench
    severest = min(
        board.cells, key=lambda c: (c.temperature_max_C - bench.warm_C) / c.heating_K_per_A2s
    )
    late_K = severest.heating_K_per_A2s * Thermal.of({**board.limits, **wanted}).late_A2s(bench)
    supply = "nobody limits" if bench.supply_A is None else f"of {bench.supply_A:g} A"
    comments = {
        ON_TIME: "as guard.cell_on_max_s",
        "heat_max_cA2ms": (
            f"{severest.temperature_max_C:g} C less a room of {bench.warm_C:g} C, less "
            f"{late_K:.0f} K until a trip with a supply {supply}"
        ),
        "heat_time_constant_ms": "of the slowest wire, in still warm air",
        "current_max_mA": f"a quarter above what an unbroken cell draws from {bench.supply_V:g} V",
    }
    defaults = protocol.default_limits()
    others = {
        name: value
        for name, value in board.limits.items()
        if name not in wanted and value != defaults[name]
    }
    lines = [f"[devices.{board.name}.limits]"]
    lines += [f"{name} = {value}  # as the rig has it" for name, value in others.items()]
    lines += [f"{name} = {value}  # {comments[name]}" for name, value in wanted.items()]
    return "\n".join(lines)
