"""What a run would switch on, found without running it."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hil import wire
from hil.config import recruit_schema, schema
from hil.config.arm import PointingTable
from hil.config.build import build_activation, build_controller
from hil.config.build_soft import build_schedule, recruited_order
from hil.config.cards import cards_of
from hil.config.crosscheck import force_signal
from hil.config.instruments import outputs_of, supplies_of
from hil.config.limb import AntagonistsTable
from hil.config.load import Config
from hil.config.own import OwnTable
from hil.config.pantograph import ImpactTable
from hil.control.controller import CellController
from hil.control.pid import Pid
from hil.models.soft.arrays import SoftArraySystem


def energise_plan(config: Config) -> list[str]:
    """Supplies that are enabled, then a line a switching time or the controller's bounds."""
    supplies = [
        f"'{name}' ({card.card}/{line.terminal}) is high from arming until a trip or the end, "
        f"{card.enable_settle_s:g} s before the boards look for their wires"
        for card in cards_of(config.tables.devices).values()
        for name, line in card.lines.items()
        if line.kind == "enable"
    ]
    supplies += [
        f"'{name}' ({supply.resource}) gives {supply.voltage_V:g} V and at most "
        f"{supply.current_A:g} A from arming until a trip or the end"
        for name, supply in supplies_of(config.tables.devices).items()
    ]
    return [*supplies, *_commands(config)]


def _commands(config: Config) -> list[str]:
    tables = config.tables
    controller_table = tables.controller
    if isinstance(controller_table, OwnTable):
        return _own(config, controller_table)
    if isinstance(
        controller_table, schema.SignalPidTable | ImpactTable | AntagonistsTable | PointingTable
    ):
        return [
            f"the controller decides: {name} between {output.min:g} and {output.max:g}, at most "
            f"{output.rate_max_per_s:g} a second"
            for name, output in outputs_of(tables.devices).items()
        ]
    if isinstance(tables.model, schema.SoftTable):
        return _soft(config, tables.model)
    model = config.model
    duration_s = tables.experiment.duration_s
    F_N = [a.force_on_N for a in config.activation()]
    signal = force_signal(tables, model)
    table = controller_table
    if not isinstance(table, schema.ScheduleTable):
        most, who = model.n_cells, "the controller decides"
        if isinstance(table, schema.PidTable):
            pid = build_controller(table, model, F_N, signal, tables.loop.period_s)
            most = len(pid.order) if isinstance(pid, Pid) else most
        elif isinstance(table, recruit_schema.GroupsTable):
            most = sum(len(group) for group in table.groups)
        elif isinstance(table, recruit_schema.BroadcastTable):
            who = "the cells draw by themselves"
        return [
            f"{who}: at most {most} of {model.n_cells} cells at once, "
            f"for up to {duration_s:g} s, no cell longer than {tables.guard.cell_on_max_s:g} s"
        ]
    lines = []
    for t_s, cells in _switched(config, table):
        on = [name for name, lit in zip(model.cell_names, cells, strict=True) if lit]
        force_N = model.force_at(signal, model.solve_statics(np.array(F_N) * cells).tension_N)
        what = f"{len(on)} on: {', '.join(on)}" if on else "all off"
        lines.append(f"{t_s:8.3f} s  {what} (settles at {force_N:.4g} N)")
    lines.append(f"{duration_s:8.3f} s  all off, the run ends")
    return lines


def _switched(
    config: Config, table: schema.ScheduleTable
) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """The times at which a schedule switches, and the cells that are on from then."""
    tables, system = config.tables, config.system()
    cells = np.zeros(len(system.cell_names), dtype=np.uint8)
    controller: CellController
    if isinstance(system, SoftArraySystem):
        controller = build_schedule(table, system.arrays)
    else:
        model, F_N = config.model, [a.force_on_N for a in config.activation()]
        signal = force_signal(tables, model)
        controller = build_controller(table, model, F_N, signal, tables.loop.period_s)
    for t_s in sorted({s.t_s for s in table.steps if s.t_s < tables.experiment.duration_s}):
        controller.step(t_s, float("nan"), float("nan"), cells)
        yield t_s, cells


def cells_beyond(config: Config) -> list[tuple[str, str]]:
    """The first time at which a schedule has more cells on than may be; key and text."""
    tables, table = config.tables, config.tables.controller
    if not isinstance(table, schema.ScheduleTable):
        return []
    names = list(config.system().cell_names)
    limits: list[tuple[str, int | None, Sequence[int]]] = [
        ("guard.cells_on_max", tables.guard.cells_on_max, range(len(names)))
    ]
    for name, board in tables.devices.items():
        if isinstance(board, schema.CellBoardTable):
            on_board = (wire.default_limits() | board.limits)["cells_on_max"]
            gates = [names.index(cell) for cell in board.cells]
            limits.append((f"devices.{name}.limits.cells_on_max", on_board, gates))
    for t_s, cells in _switched(config, table):
        for key, most, behind in limits:
            n_on = int(cells[behind].sum())
            if most is not None and n_on > most:
                return [
                    (
                        f"{key} = {most}",
                        f"controller.steps has {n_on} cells on from t_s = {t_s:g}: the run would "
                        "trip (too_many_cells_on): switch fewer on at once, or let more be on",
                    )
                ]
    return []


def _own(config: Config, table: OwnTable) -> list[str]:
    """Of a controller of one's own nothing is known but what the guard lets through."""
    guard, n_cells = config.tables.guard, len(config.system().cell_names)
    lines = [
        f"{table.kind} decides: {name} between {output.min:g} and {output.max:g}, at most "
        f"{output.rate_max_per_s:g} a second"
        for name, output in outputs_of(config.tables.devices).items()
    ]
    if n_cells:
        longest = (
            ""
            if guard.cell_on_max_s is None
            else f", no cell longer than {guard.cell_on_max_s:g} s"
        )
        lines.append(
            f"{table.kind} decides: at most {guard.cells_on_max or n_cells} of {n_cells} cells at "
            f"once{longest}"
        )
    return lines


def _soft(config: Config, table: schema.SoftTable) -> list[str]:
    """Of cells on soft links: what is switched, and how far each link bends by it."""
    tables, system = config.tables, config.system()
    assert isinstance(system, SoftArraySystem)
    n, duration_s = len(system.cell_names), tables.experiment.duration_s
    controller = tables.controller
    if not isinstance(controller, schema.ScheduleTable):
        most = len(recruited_order(controller, system.arrays))
        drawn = isinstance(controller, recruit_schema.BroadcastTable)
        who = "the cells draw by themselves" if drawn else "the controller decides"
        return [
            f"{who}: at most {most} of {n} cells at once, for up to {duration_s:g} s, no cell "
            f"longer than {tables.guard.cell_on_max_s:g} s"
        ]
    lines = []
    F_N = np.array([a.force_on_N for a in build_activation(table)])
    for t_s, cells in _switched(config, controller):
        on = [name for name, lit in zip(system.cell_names, cells, strict=True) if lit]
        y = dict(zip(system.outputs, system.settled(F_N * cells).tolist(), strict=True))
        bent = {link: round(y[f"{link}.curvature_1_per_m"], 3) + 0.0 for link in table.links}
        rest = ", ".join(f"{link} at {value:g} 1/m" for link, value in bent.items())
        what = f"{len(on)} on: {', '.join(on)}" if on else "all off"
        lines.append(f"{t_s:8.3f} s  {what} (settles with {rest})")
    return [*lines, f"{duration_s:8.3f} s  all off, the run ends"]
