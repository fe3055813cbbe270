"""Controllers of cells on soft links that follow the set point of one channel."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from hil.control.build import build_signal, check_signal, signals_in
from hil.control.pid import Pid, PidGains, Switching
from hil.control.reference import NoReference
from hil.control.steering import Steerable
from hil.control.tables import PidTable, ScheduleTable, SignalsReferenceTable, SignalTable
from hil.errors import ModelError
from hil.experiment.kind import ControlInputs, ControllerKind, Faults, SystemRun
from hil.loop.frame import units
from hil.rig.instruments import signals_of
from hil.systems.array.build import cell_indices
from hil.systems.array.build_recruitment import SEED_BITS, unknown_cells
from hil.systems.array.checks import check_schedule
from hil.systems.array.controllers import (
    plan_bounds,
    plan_broadcast,
    plan_switches,
    schedule_of,
    switches,
)
from hil.systems.array.recruitment.broadcast import Broadcaster, BroadcastLaw
from hil.systems.array.recruitment.control import BroadcastRecruiter
from hil.systems.array.recruitment.stage import ForceControl
from hil.systems.array.tables_recruitment import BroadcastTable
from hil.systems.soft.build import first_that_falls, static_levels
from hil.systems.soft.control import FollowedChannel, MaskRecruiter, SignalCells

REACH_SLACK = 0.02  # relative amount by which a set point may exceed the reach of the cells


def _order_of(run: SystemRun) -> list[int]:
    """Return the cells (from 0) that the controller can switch, in recruitment order."""
    return cell_indices(getattr(run.tables.controller, "order", None) or "all", run.model.arrays)


def _followed(run: SystemRun) -> tuple[str, SignalTable]:
    """Return the followed channel and its set point."""
    return next(iter(signals_in(run.tables.reference).items()))


def _levels(run: SystemRun) -> NDArray[np.float64]:
    """Return the followed signal at rest with the first 0, 1, 2, ... cells on."""
    signal = signals_of(run.tables.devices)[_followed(run)[0]]
    return static_levels(run.model, run.forces_on_N, _order_of(run), signal)


def _signal_cells(
    inputs: ControlInputs, recruiter: MaskRecruiter | BroadcastRecruiter, rest: float
) -> SignalCells:
    name, follows = _followed(inputs)
    index = inputs.layout.index(name)
    channel = inputs.layout.channels[index]
    followed = FollowedChannel(
        index, channel.column("reference"), channel.column("demand"), units(channel.suffix), rest
    )
    reference = Steerable(build_signal(follows))
    return SignalCells(reference, recruiter, followed, inputs.model.arrays.n_cells)


def _build_schedule(inputs: ControlInputs) -> ForceControl:
    return ForceControl(NoReference(), schedule_of(inputs), None)


def _build_pid(inputs: ControlInputs) -> SignalCells:
    table = inputs.tables.controller
    gains = PidGains(table.k_p, table.k_i_per_s, table.k_d_s, table.derivative_filter_s)
    order, levels = _order_of(inputs), _levels(inputs)
    pid = Pid(gains, levels, order, Switching(table.hysteresis, table.dwell_s), inputs.period_s)
    return _signal_cells(inputs, MaskRecruiter(pid), 0.0)


def _build_broadcast(inputs: ControlInputs) -> SignalCells:
    table, levels = inputs.tables.controller, _levels(inputs)
    levels_apart = np.diff(levels)
    zone = 0.5 * float(levels_apart.max()) * (1.0 + 1e-9)
    caster = Broadcaster(BroadcastLaw(table.law, table.gain, zone, table.period_s), levels_apart)
    recruiter = BroadcastRecruiter(caster, levels_apart, "measured", inputs.seed % 2**SEED_BITS)
    return _signal_cells(inputs, recruiter, float(levels[0]))


def _check_schedule(run: SystemRun) -> Faults:
    if run.tables.reference is not None:
        yield "reference", "a schedule uses no reference: remove it"
    if run.tables.controller.outputs:
        yield "controller.outputs", "a soft body has no outputs: remove it"
    yield from check_schedule(run.tables.controller, run.model.arrays)


def _check_pid(run: SystemRun) -> Faults:
    wrong, order = list(_check_followed(run)), run.tables.controller.order
    if order is not None:
        wrong += unknown_cells("controller.order", order, run.model.arrays)
        twice = [c for c, n in Counter(map(str, order)).items() if n > 1]
        wrong += [("controller.order", f"cell '{twice[0]}' is listed twice")] if twice else []
    yield from wrong
    if not wrong:
        yield from _check_reach(run)


def _check_broadcast(run: SystemRun) -> Faults:
    wrong, table = list(_check_followed(run)), run.tables.controller
    if table.error != "measured":
        key = "controller.error = 'commanded'"
        text = (
            "a soft rig forms it from the channel: give 'measured', and a period_s beyond the "
            "time in which cells and links settle"
        )
        wrong.append((key, text))
    if table.dead_zone_N is not None:
        text = "is a force: remove it; half the largest step is used"
        wrong.append(("controller.dead_zone_N", text))
    yield from wrong
    if not wrong:
        yield from _check_reach(run)


def _check_followed(run: SystemRun) -> Faults:
    """Check that there is one set point, of a channel of the rig."""
    tables, channels = run.tables, list(signals_of(run.tables.devices))
    follows = tables.reference
    if not isinstance(follows, SignalsReferenceTable) or len(follows.signals) != 1:
        yield (
            "reference",
            f"a {tables.controller.kind} controller follows the set point of one channel: give "
            f"kind = 'signals' and signals of one of {', '.join(channels)}",
        )
        return
    for name, signal in follows.signals.items():
        if name not in channels:
            yield f"reference.signals.{name}", f"no such channel: choose {', '.join(channels)}"
        yield from check_signal(f"reference.signals.{name}", signal)


def _check_reach(run: SystemRun) -> Faults:
    """Check that every cell raises the followed signal, and that the set point is in reach."""
    name, table = _followed(run)
    signal = signals_of(run.tables.devices)[name]
    if signal not in run.model.outputs:
        return  # the rig's own check reports it
    try:
        levels = _levels(run)
    except ModelError as error:
        yield "model", str(error)
        return
    if (falls := first_that_falls(levels, _order_of(run))) is not None:
        cell = run.model.arrays.cell_names[falls]
        yield "controller", f"cell '{cell}' does not raise '{signal}': choose another"
        return
    low, high = float(levels.min()), float(levels.max())
    wanted = build_signal(table).extremes(run.duration_s)
    slack = REACH_SLACK * (high - low)
    if wanted[0] < low - slack or wanted[1] > high + slack:
        yield (
            f"reference.signals.{name}",
            f"asks for {wanted[0]:g} to {wanted[1]:g}; the cells give {low:.4g} to {high:.4g}",
        )


def _plan_pid(run: SystemRun) -> list[str]:
    return plan_bounds(run, len(_order_of(run)))


def _plan_schedule(run: SystemRun) -> list[str]:
    model, links = run.model, run.tables.model.links

    def settles(F_N: NDArray[np.float64]) -> str:
        y = dict(zip(model.outputs, model.settled(F_N).tolist(), strict=True))
        bent = {link: round(y[f"{link}.curvature_1_per_m"], 3) + 0.0 for link in links}
        return "with " + ", ".join(f"{link} at {value:g} 1/m" for link, value in bent.items())

    return plan_switches(run, settles)


CONTROLLERS = {
    "schedule": ControllerKind(
        ScheduleTable, _build_schedule, _check_schedule, _plan_schedule, switches=switches
    ),
    "pid": ControllerKind(PidTable, _build_pid, _check_pid, _plan_pid),
    "broadcast": ControllerKind(BroadcastTable, _build_broadcast, _check_broadcast, plan_broadcast),
}
