"""Energise plan: what a run would switch on, without running it."""

from collections.abc import Iterator, Sequence
from math import ceil, exp, log
from sys import float_info
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.devices.board import protocol
from hil.experiment import board_limits, loop_limits
from hil.experiment.loaded import Experiment, LoadedRig
from hil.experiment.source_checks import as_lines
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


def trips(config: Experiment) -> list[tuple[str, str]]:
    """(key, text) of each limit of guard and boards that the plan of a schedule certainly meets.

    Nothing of a run that expects to trip. `unusual` has what may trip, from the least time on.
    """
    if any(one.outcome == "tripped" for one in config.tables.expect):
        return []
    states = _states(config)
    return [*_too_many(config, states), *_too_long(config, states)]


States = Sequence[tuple[float, NDArray[np.uint8]]]


def _states(config: Experiment) -> States:
    """Times of the ticks at which a schedule switches, each with the cells that are on from then.

    Of the steps between two ticks only the last acts, at the second tick.
    """
    switches, period_s = config.controller.switches, config.tables.loop.period_s
    if switches is None:
        return []
    last = {ceil((t_s - 1e-9) / period_s): cells for t_s, cells in switches(config.run)}
    return [(tick * period_s, cells) for tick, cells in last.items() if tick < config.n_ticks]


def _too_many(config: Experiment, states: States) -> list[tuple[str, str]]:
    """The first state with more cells on than a limit permits."""
    tables, names = config.tables, list(config.run.model.cell_names)
    limits: list[tuple[str, int | None, Sequence[int]]] = [
        ("guard.cells_on_max", tables.guard.cells_on_max, range(len(names)))
    ]
    for name, board in boards_of(tables.devices).items():
        on_board = (protocol.default_limits() | board.limits)["cells_on_max"]
        gates = [names.index(cell) for cell in board.cells]
        limits.append((f"devices.{name}.limits.cells_on_max", on_board, gates))
    for t_s, cells in states:
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


def _too_long(config: Experiment, states: States) -> list[tuple[str, str]]:
    """For each limit, the first cell that is on for longer."""
    tables, names = config.tables, list(config.run.model.cell_names)
    longest = [max(_times_on(config, states, cell)) for cell in range(len(names))]
    guard = tables.guard
    limits: list[tuple[str, float, str, Sequence[str]]] = []
    if guard.cell_on_max_s is not None:
        held_s = guard.cell_on_max_s + guard.hold_s.get("cell_on_too_long", 0.0)
        key = f"guard.cell_on_max_s = {guard.cell_on_max_s:g}"
        limits.append((key, held_s, "cell_on_too_long", names))
    for name, board in boards_of(tables.devices).items():
        most_ms = (protocol.default_limits() | board.limits)["on_time_max_ms"]
        key = f"devices.{name}.limits.on_time_max_ms = {most_ms}"
        limits.append((key, 1e-3 * most_ms, "cell_on_too_long", board.cells))
    for key, heat in _heat_limits(config):
        limits.append((key, heat.trips_by_s, "cell_energy_high", [heat.cell]))
    faults: dict[str, str] = {}
    for key, most_s, fault, cells in limits:
        for cell in cells:
            on_s, from_s = longest[names.index(cell)]
            if on_s > most_s + 1e-9:
                faults.setdefault(key, (
                    f"controller.steps has '{cell}' on for {on_s:g} s from t_s = {from_s:g}: the "
                    f"run would trip ({fault}) after {most_s:.3g} s: switch it off sooner, or "
                    "raise the limit"
                ))  # fmt: skip
    return list(faults.items())


class _Heat(NamedTuple):
    """When a heat budget trips at the earliest and the latest from cold, and how it cools."""

    cell: str
    held_s: float
    trips_by_s: float
    time_constant_s: float


def _heat_limits(config: Experiment) -> Iterator[tuple[str, _Heat]]:
    """Every heat budget with its key."""
    for one in config.protections:
        key = f"devices.{one.name}.limits.heat_max_cA2ms = {one.limits['heat_max_cA2ms']}"
        leak_s, by_s = 1e-3 * one.limits["heat_time_constant_ms"], one.trips_by_s()
        for cell, held_s in one.held_s().items():
            yield key, _Heat(cell, held_s, by_s[cell], leak_s)
    late_s = loop_limits.LATE_TICKS * config.tables.loop.period_s
    late_s += config.tables.guard.hold_s.get("cell_energy_high", 0.0)
    for loop in config.loop_protections:
        for cell, budget in loop.budgets.items():
            held_s = budget.held_for_s()
            heat = _Heat(cell, held_s, held_s + late_s, budget.time_constant_s)
            yield f"devices.{loop.name}.switches", heat


def _too_hot(config: Experiment, states: States) -> list[tuple[str, str]]:
    """For each heat budget, the first time that a cell may be on for too long, cold or warm.

    What of a budget is free goes as exp(-t/tau) while a cell is on, and what is filled so while it
    is off. With a share u free, the time until it trips is shorter by -tau ln u than from cold.
    """
    names = list(config.run.model.cell_names)
    faults: dict[str, str] = {}
    for key, (cell, held_s, trips_by_s, leak_s) in _heat_limits(config):
        free, off_s = 1.0, 0.0
        for on_s, from_s in _times_on(config, states, names.index(cell)):
            if on_s > trips_by_s:
                break  # `_too_long` has it
            free = 1.0 - (1.0 - free) * exp((off_s - from_s) / leak_s)
            lasts_s = max(0.0, held_s + leak_s * log(free or float_info.min))
            if lasts_s < on_s:
                warm = f"on again from t_s = {from_s:g}, still warm,"
                again = f"on from t_s = {from_s:g}" if on_s > held_s else warm
                faults.setdefault(key, (
                    f"controller.steps has '{cell}' {again} for {on_s:g} s: the run may trip "
                    f"(cell_energy_high) after {lasts_s:.3g} s: let it cool for longer, or switch "
                    "it off sooner"
                ))  # fmt: skip
                break
            free, off_s = free * exp(-on_s / leak_s), from_s + on_s
    return list(faults.items())


def _times_on(config: Experiment, states: States, cell: int) -> Iterator[tuple[float, float]]:
    """How long a cell is on, each time, and from when; at least (0, 0)."""
    end_s = config.n_ticks * config.tables.loop.period_s
    since_s: float | None = None
    yield 0.0, 0.0
    for t_s, cells in states:
        if cells[cell] and since_s is None:
            since_s = t_s
        elif not cells[cell] and since_s is not None:
            yield t_s - since_s, since_s
            since_s = None
    if since_s is not None:
        yield end_s - since_s, since_s


def unusual(rig: LoadedRig) -> list[str]:
    """A line for each value that is possible but unusual, and for a plan that meets a limit."""
    plans = [*trips(rig), *_may_trip(rig)] if isinstance(rig, Experiment) else []
    return [*rig.unusual, *as_lines(rig.merged, plans)]


def _may_trip(config: Experiment) -> list[tuple[str, str]]:
    """(key, text) of each heat budget and force limit that the plan of a schedule may meet."""
    if any(one.outcome == "tripped" for one in config.tables.expect):
        return []
    return [*_too_hot(config, _states(config)), *_settles_above(config)]


def _settles_above(config: Experiment) -> list[tuple[str, str]]:
    """(key, text) of a force limit that the plan of a schedule settles above."""
    settles, most_N = config.controller.settles, config.tables.guard.force_max_N
    if settles is None or most_N is None:
        return []
    worst_N, t_s = max(((abs(force_N), t_s) for t_s, force_N in settles(config.run)),
                       default=(0.0, 0.0))  # fmt: skip
    if worst_N <= most_N:
        return []
    return [(
        f"guard.force_max_N = {most_N:g}",
        f"controller.steps settles at {worst_N:.4g} N from t_s = {t_s:g}: the run may trip "
        "(force_high): switch fewer on, or raise the limit",
    )]  # fmt: skip
