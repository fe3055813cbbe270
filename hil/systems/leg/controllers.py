"""Controller of antagonist muscles at a joint; it follows the set point of one channel."""

from collections.abc import Mapping

import numpy as np

from hil.control.build import build_signal, check_signal, signals_in
from hil.control.pid import PidGains
from hil.control.reference import Reference
from hil.devices.tables import ActuatorTable
from hil.errors import ModelError
from hil.experiment.kind import ControlInputs, ControllerKind, Faults, SystemRun
from hil.experiment.signal_pid import SIGNAL_PID
from hil.loop.frame import units
from hil.rig.calibrated import cards_of
from hil.rig.instruments import outputs_of, signals_of
from hil.rig.run_tables import RigTables
from hil.systems.leg.build import activation_times, build_limb, place
from hil.systems.leg.control import Antagonists, Movement, Wiring
from hil.systems.leg.plan import AT_ONCE, SLOWER, PlanSettings, rehearse
from hil.systems.leg.statics import JointStatics
from hil.systems.leg.stepper import LimbStepper
from hil.systems.leg.tables import AntagonistsTable, LimbTable

CHECKED = 50  # number of set points checked over a reference's range


def statics_of(
    table: AntagonistsTable, model: LimbTable, signal: str, drives: Mapping[str, str]
) -> JointStatics:
    """Return the joint's equilibria, as the channel of this signal measures them.

    Parameters
    ----------
    drives : the model's input of every output

    Raises
    ------
    ModelError
        The message names the key below `controller`.
    """
    base, _, axis = signal.rpartition(".")
    point = None
    if signal != f"{table.joint}.angle_rad":
        if base not in model.points or axis != "z_m":
            raise ModelError(
                f"channel = '{table.channel}': measures '{signal}': choose one that measures "
                f"{table.joint}.angle_rad or the z_m of a point"
            )
        point = place(model.points[base])
    muscles = drives[table.raises], drives[table.lowers]
    names = muscles[0].rpartition(".")[0], muscles[1].rpartition(".")[0]
    stepper = LimbStepper(build_limb(model), activation_times(model), path_rates=model.path_rates)
    return JointStatics(stepper, table.joint, point, names, table.least)


def plan_movement(
    table: AntagonistsTable,
    statics: JointStatics,
    reference: Reference,
    rate_max_per_s: float,
    period_s: float,
    n_ticks: int,
) -> Movement:
    """Return the planned movement; ModelError if the set point is out of reach."""
    wanted = np.array([reference.at(k * period_s) for k in range(n_ticks)])
    up, down = statics.up, statics.down
    if table.feed_forward == "none":
        least = np.full(n_ticks, table.least)
        return Movement(wanted, least, least)
    if table.feed_forward == "static":
        grid = np.linspace(wanted.min(), wanted.max() + 1e-9, CHECKED)
        held = np.array([statics.holding(float(h)).activation for h in grid])
        return Movement(
            wanted, np.interp(wanted, grid, held[:, up]), np.interp(wanted, grid, held[:, down])
        )
    usual = SLOWER if len(statics.stepper.scratch.times) else AT_ONCE
    settings = PlanSettings(
        usual.smooth_s if table.smooth_s is None else table.smooth_s,
        table.plan_rad_per_s or usual.w_rad_per_s, table.tendon_s or usual.T_s, rate_max_per_s,
    )  # fmt: skip
    plan = rehearse(statics, wanted, period_s, settings)
    return Movement(plan.height_m, plan.activation[:, up], plan.activation[:, down])


def _outputs(tables: RigTables) -> dict[str, ActuatorTable]:
    """Return the rig's outputs by name, in the order of the commands."""
    return {
        name.partition("_commanded")[0]: output
        for name, output in outputs_of(tables.devices).items()
    }


def _drives(tables: RigTables) -> dict[str, str]:
    """Return the model input that each output sets."""
    return {name: output.drives for name, output in _outputs(tables).items()}


def _build(inputs: ControlInputs) -> Antagonists:
    tables, table = inputs.tables, inputs.tables.controller
    signal = signals_of(tables.devices)[table.channel]
    index = inputs.layout.index(table.channel)
    channel = inputs.layout.channels[index]
    reference = build_signal(signals_in(tables.reference)[table.channel])
    outputs, period_s = _outputs(tables), inputs.period_s
    names = list(outputs)
    statics = statics_of(table, tables.model, signal, _drives(tables))
    pair = outputs[table.raises], outputs[table.lowers]
    rate_max_per_s = min(output.rate_max_per_s for output in pair)
    n_ticks = max(1, round(inputs.duration_s / period_s))
    movement = plan_movement(table, statics, reference, rate_max_per_s, period_s, n_ticks)
    return Antagonists(
        reference,
        movement,
        PidGains(table.k_p, table.k_i_per_s, table.k_d_s, table.derivative_filter_s),
        Wiring(
            index, names.index(table.raises), names.index(table.lowers),
            (max(table.least, pair[0].min), max(table.least, pair[1].min)),
            (pair[0].max, pair[1].max), round(table.delay_s / period_s),
            channel.column("reference"), channel.column("demand"), units(channel.suffix),
        ),
        period_s,
        table.relative_from,
    )  # fmt: skip


def check_activations(tables: RigTables, model: object) -> Faults:
    """Check that outputs that activate muscles have a range within 0 to 1."""
    for name, card in cards_of(tables.devices).items():
        for written, output in card.outputs.items():
            key = f"devices.{name}.outputs.{written}"
            if output.drives.endswith(".activation") and not 0.0 <= output.min < output.max <= 1.0:
                yield (
                    key,
                    f"an activation is 0 to 1: {output.min:g} to {output.max:g} is not within",
                )


def _check(run: SystemRun) -> Faults:
    tables, table, signals = run.tables, run.tables.controller, signals_of(run.tables.devices)
    extremes = {}
    for name, signal in signals_in(tables.reference).items():
        wrong = list(check_signal(f"reference.signals.{name}", signal))
        yield from wrong
        if wrong:
            return
        extremes[name] = build_signal(signal).extremes(np.inf)
    drives, limits = _drives(tables), tables.guard.signals
    if table.channel not in signals:
        yield (
            f"controller.channel = '{table.channel}'",
            f"no channel of that name: choose {', '.join(signals)}",
        )
        return
    if list(extremes) != [table.channel]:
        yield (
            "reference",
            f"follows the set point of one channel: give kind = 'signals' and signals of "
            f"{table.channel}",
        )
        return
    for key, name in (("raises", table.raises), ("lowers", table.lowers)):
        if name not in drives:
            choice = f"choose {', '.join(drives)}" if drives else "the rig has none"
            yield f"controller.{key} = '{name}'", f"no output of that name: {choice}"
            return
    try:
        statics = statics_of(table, tables.model, signals[table.channel], drives)
    except ModelError as error:
        yield f"controller.{str(error).partition(': ')[0]}", str(error).partition(": ")[2]
        return
    limit = limits.get(table.channel)
    for wanted in extremes[table.channel]:
        if limit is not None and not limit.min <= wanted <= limit.max:
            yield (
                f"reference.signals.{table.channel}",
                f"asks for {wanted:g}, beyond guard.signals.{table.channel}: {limit.min:g} to "
                f"{limit.max:g}",
            )
            continue
        try:
            statics.holding(wanted)
        except ModelError as error:
            yield f"reference.signals.{table.channel}", str(error)


CONTROLLERS = {**SIGNAL_PID, "antagonists": ControllerKind(AntagonistsTable, _build, _check)}
