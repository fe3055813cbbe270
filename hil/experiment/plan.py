"""Energise plan: what a run would switch on, without running it."""

from collections.abc import Sequence

from hil.devices.board import protocol
from hil.experiment import board_limits, loop_limits
from hil.experiment.loaded import Experiment
from hil.rig.instruments import boards_of, supplies_of


def energise_plan(config: Experiment) -> list[str]:
    """Lines for the supplies, then for each switching time or the controller's bounds."""
    then = "the boards test their wires" if boards_of(config.tables.devices) else "the first tick"
    supplies = [
        f"'{name}' ({where}) is high from arming until a trip or the end, "
        f"{getattr(device, 'enable_settle_s', 0.0):g} s before {then}"
        for device in config.tables.devices.values()
        for name, where in device.enable_lines.items()
    ]
    supplies += [
        f"'{name}' ({supply.resource}) outputs {supply.voltage_V:g} V and at most "
        f"{supply.current_A:g} A from arming until a trip or the end"
        for name, supply in supplies_of(config.tables.devices).items()
    ]
    switches = loop_limits.plan(config.loop_protections, config.tables)
    boards = board_limits.plan(config.protections)
    return [*supplies, *boards, *switches, *config.controller.plan(config.run)]


def cells_beyond(config: Experiment) -> list[tuple[str, str]]:
    """Check the number of cells on in a schedule; returns (key, text) of the first excess."""
    tables, switches = config.tables, config.controller.switches
    if switches is None:
        return []
    names = list(config.run.model.cell_names)
    limits: list[tuple[str, int | None, Sequence[int]]] = [
        ("guard.cells_on_max", tables.guard.cells_on_max, range(len(names)))
    ]
    for name, board in boards_of(tables.devices).items():
        on_board = (protocol.default_limits() | board.limits)["cells_on_max"]
        gates = [names.index(cell) for cell in board.cells]
        limits.append((f"devices.{name}.limits.cells_on_max", on_board, gates))
    for t_s, cells in switches(config.run):
        for key, most, members in limits:
            n_on = int(cells[members].sum())
            if most is not None and n_on > most:
                return [
                    (
                        f"{key} = {most}",
                        f"controller.steps has {n_on} cells on from t_s = {t_s:g}: the run would "
                        "trip (too_many_cells_on): switch fewer on at once, or raise the limit",
                    )
                ]
    return []
