"""Protection of cells that no board of hil switches: what their rig lacks, and what stands in.

hil's board measures every current, and has limits, a dead man and an e-stop of its own. Digital
lines of a card, or a plug-in device, have none of that. So a rig needs a watchdog or another dead
man in the device, a way to cut the supply, a limit of the supply's current, and a described wire,
from which the loop keeps a heat budget (`hil.mechanics.sma.loop_budget`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf

from hil.devices.tables import NidaqTable
from hil.experiment.board_limits import air_C, thermal_cells, wires_at
from hil.experiment.kind import Model
from hil.experiment.registry import controller_kind, system_kind
from hil.mechanics.sma.limits import SUPPLY_ERROR, CellWire
from hil.mechanics.sma.loop_budget import HeatBudget, budget_of, peak_C
from hil.rig.calibrated import cards_of
from hil.rig.instruments import can_be_cut, supplies_of, switching
from hil.rig.run_tables import RigTables, RunTables

LATE_TICKS = 2  # from a look at the budget to the line low, while the loop lives
LACKING = (
    "a current limit for every cell (a shorted wire)",
    "detection of broken wires, and of transistors that stay on",
    "temperatures of the clamps",
    "an on-time limit and an e-stop that work without the program",
)
"""What hil's board has beside a dead man, and lines or a plug-in device do not."""


@dataclass(frozen=True)
class LoopProtection:
    """A device that switches cells without measuring them, and the budgets of their wires.

    Attributes
    ----------
    cells : names, in the order of the file
    wires : the described wires, by cell
    budgets : heat budgets of these wires, by cell
    dead_man_s : time without the program after which the device switches all cells off
    supply_A : largest current of a short circuit; None if unknown
    """

    name: str
    cells: tuple[str, ...]
    wires: Mapping[str, CellWire]
    budgets: Mapping[str, HeatBudget]
    cold_C: float
    warm_C: float
    supply_V: float
    supply_A: float | None
    dead_man_s: float

    def worst_C(self, cell: str) -> float:
        """The highest temperature that a wire can reach, whatever is commanded."""
        wire, budget = self.wires[cell], self.budgets[cell]
        return max(peak_C(wire, budget, air_C) for air_C in (self.cold_C, self.warm_C))


def protections(tables: RigTables, model: Model) -> list[LoopProtection]:
    """Every device of a rig that switches cells and is no board of hil."""
    devices = {n: d for n, d in switching(tables.devices).items() if d.role != "board"}
    thermal = thermal_cells(tables.model, model) if devices else {}
    supplies = list(supplies_of(tables.devices).values())
    loops = []
    for name, device in devices.items():
        table = device.switches
        is_card = isinstance(device, NidaqTable)
        dead_man_s = device.watchdog_s if is_card else table.dead_man_s
        wires = wires_at(table.names, thermal, table.wire)
        cold_C, warm_C = air_C(table.ambient_range_C, table.names, thermal)
        volts = [s.voltage_V for s in supplies] or [wire.wire.cell_V for wire in wires.values()]
        limits_A = [supply.current_A for supply in supplies]
        if table.supply_current_max_A is not None:
            limits_A.append(table.supply_current_max_A)
        supply_V = max(volts, default=0.0)
        held_s = tables.guard.hold_s.get("cell_energy_high", 0.0)
        acts_s = dead_man_s if is_card else table.proven_s
        late_s = acts_s + LATE_TICKS * tables.loop.period_s + held_s
        loops.append(
            LoopProtection(
                name, table.names, wires,
                {c: budget_of(wire, supply_V, warm_C, late_s) for c, wire in wires.items()},
                cold_C, warm_C, supply_V, min(limits_A, default=None), dead_man_s,
            )
        )  # fmt: skip
    return loops


def budgets(tables: RigTables, model: Model) -> dict[str, HeatBudget]:
    """The heat budgets that the loop keeps, by cell; none for cells of boards."""
    return {cell: b for loop in protections(tables, model) for cell, b in loop.budgets.items()}


def faults(tables: RigTables, model: Model) -> Iterator[tuple[str, str]]:
    """Yield (key, text) for each missing substitute of a board's protection, and each bad key."""
    for loop in protections(tables, model):
        key = f"devices.{loop.name}.switches"
        device = tables.devices[loop.name]
        if isinstance(device, NidaqTable):
            yield from _lines(loop.name, device)
        elif loop.dead_man_s <= tables.loop.period_s:
            yield (
                f"{key}.dead_man_s = {loop.dead_man_s:g}",
                f"it switches all cells off before the next command, one in every "
                f"{tables.loop.period_s:g} s, which nobody notices: lower loop.period_s",
            )
        if getattr(device, "every", 1) > 1:
            yield f"devices.{loop.name}.every", "it switches cells, in every period: give 1"
        yield from _controller(tables, key)
        yield from _power(tables, loop, key)
        yield from _wires(loop, key)


def unnoticed(tables: RigTables) -> Iterator[tuple[str, str]]:
    """Yield (key, text) for a supply that may be off by more than a computed heat counts with."""
    cells = switching(tables.devices).values()
    if all(device.role == "board" and getattr(device, "measures", True) for device in cells):
        return
    for name, supply in supplies_of(tables.devices).items():
        most_V = SUPPLY_ERROR * supply.voltage_V
        if supply.voltage_tolerance_V > most_V * (1.0 + 1e-9):
            yield (
                f"devices.{name}.voltage_tolerance_V = {supply.voltage_tolerance_V:g}",
                "the heat of wires is computed from voltage_V, with an error of "
                f"{100 * SUPPLY_ERROR:g} %: give at most {most_V:g}",
            )


def _lines(name: str, card: NidaqTable) -> Iterator[tuple[str, str]]:
    """Check that a card's lines have a watchdog, and that what is read back is switched."""
    table = card.switches
    assert table is not None
    key = f"devices.{name}.switches"
    if card.watchdog != "required":
        yield (
            f"devices.{name}.watchdog = '{card.watchdog}'",
            "its lines switch cells, and nothing else switches them off if the program dies: give "
            "'required'",
        )
    for cell in table.readback:
        if cell not in table.lines:
            yield f"{key}.readback.{cell}", "no line switches this cell: remove it"


def _controller(tables: RigTables, key: str) -> Iterator[tuple[str, str]]:
    if not isinstance(tables, RunTables):
        return
    kind = controller_kind(system_kind(tables.model), tables.controller)
    if kind is None:
        return
    where = f"controller.kind = '{tables.controller.kind}'"
    if kind.broadcasts:
        yield where, f"only hil's board draws for its cells, not {key}: choose another"
    elif kind.modulates(tables.controller):
        yield where, f"commands duties, and {key} only switches on and off: choose another"


def _power(tables: RigTables, loop: LoopProtection, key: str) -> Iterator[tuple[str, str]]:
    """Check the supply, which alone stops a short or a transistor that stays on."""
    if not can_be_cut(tables.devices):
        yield (
            key,
            "a transistor that fails stays on, and nothing could cut its power: add an enable line "
            "to a card, or a supply",
        )
    if loop.supply_A is None:
        yield (
            f"{key}.supply_current_max_A",
            "missing: nothing measures the current of a short circuit: add a supply, or give the "
            "fuse's current",
        )


def _wires(loop: LoopProtection, key: str) -> Iterator[tuple[str, str]]:
    unknown = [cell for cell in loop.cells if cell not in loop.wires]
    if unknown:
        yield (
            f"{key}.wire",
            f"missing: the loop computes the heat of '{unknown[0]}' from its wire: "
            f"add [{key}.wire]",
        )
    for cell, budget in loop.budgets.items():
        most_C = loop.wires[cell].temperature_max_C
        late_K = budget.heats_K_per_s * budget.late_s
        if budget.rise_max_K <= 0.0:
            yield (
                key,
                f"until the dead man acts, after {budget.late_s:.3g} s, {loop.supply_V:g} V heat "
                f"the wire of '{cell}' by {late_K:.0f} K, from {loop.warm_C:g} C to above its "
                f"{most_C:g} C: shorten the dead man's time, or lower the voltage",
            )
            return
        if loop.worst_C(cell) > most_C:
            yield (
                key,
                f"the wire of '{cell}' could reach {ceil(loop.worst_C(cell))} C, and its "
                f"temperature_max_C is {most_C:g}: choose a maximum above A_f_C",
            )
            return


def doubts(loops: Sequence[LoopProtection], tables: RigTables) -> list[str]:
    """Warnings about what such a rig should have, and about cells that cannot work."""
    lines = []
    estop = any(
        line.kind == "estop" for card in cards_of(tables.devices).values()
        for line in card.lines.values()
    )  # fmt: skip
    for one in loops:
        key = f"devices.{one.name}.switches"
        if not estop:
            lines.append(f"{key}: no e-stop is read: add a line of kind 'estop' to a card")
        table = getattr(tables.devices[one.name], "switches", None)
        if set(getattr(table, "readback", one.cells)) != set(one.cells):
            lines.append(
                f"{key}.readback: a line that is stuck is not noticed: read back each gate"
            )
        for cell, budget in one.budgets.items():
            held_s = budget.held_for_s()
            takes_s = one.wires[cell].contracts_in_s(one.supply_V, one.cold_C)
            if takes_s >= held_s:
                lines.append(
                    f"{key}: the budget lets '{cell}' be on for {held_s:.3g} s, and it needs "
                    f"{takes_s:.3g} s to contract: change the voltage, or shorten the dead man's "
                    "time"
                )
                break
    return lines


def as_text(loops: Sequence[LoopProtection]) -> list[str]:
    """Wire temperatures that the budgets permit, one line for each device and type of wire."""
    lines = []
    for one in loops:
        cells = [cell for cell in one.cells if cell in one.wires]
        kinds: dict[tuple[float, float], list[str]] = {}
        for cell in cells:
            kind = one.worst_C(cell), one.budgets[cell].held_for_s()
            kinds.setdefault(kind, []).append(cell)
        for (worst_C, held_s), names in kinds.items():
            who = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
            held = "" if held_s == inf else f"; a cell held on trips after {held_s:.3g} s"
            lines.append(
                f"'{one.name}' permits {who} to reach {worst_C:.0f} C, by the loop's heat budget; "
                f"the maximum is {one.wires[names[0]].temperature_max_C:g} C{held}"
            )
    return lines


def plan(loops: Sequence[LoopProtection], tables: RigTables) -> list[str]:
    """Lines of the energise plan: who switches, what is lacking, what stands in for it."""
    lines = []
    for one in loops:
        device = tables.devices[one.name]
        if isinstance(device, NidaqTable):
            what, dead_man = f"lines of {device.card}", "the card's watchdog"
        else:
            what, dead_man = f"plug-in {device.kind}", "its dead man"
        lines += [
            f"'{one.name}' ({what}) switches {', '.join(one.cells)}; {dead_man} switches all of "
            f"them off {one.dead_man_s:g} s after the program's last command",
            f"'{one.name}' lacks, beside hil's board: {'; '.join(LACKING)}",
            f"in their place: {dead_man}; the supply's limit of {one.supply_A:g} A; a heat budget "
            f"of every wire in the loop; an enable line or supply that a trip switches off",
        ]
    return lines
