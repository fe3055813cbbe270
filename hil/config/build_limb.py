"""A limb's tables -> plant, twin, control stage, and what is wrong with them."""

from collections.abc import Iterator, Mapping

import numpy as np

from hil.config import schema
from hil.config.limb import AntagonistsTable, LimbTable, MuscleTable, PlaceTable
from hil.control.antagonists import Antagonists, Movement, Wiring
from hil.control.pid import PidGains
from hil.control.reference import Reference
from hil.frame import units
from hil.models import ModelError
from hil.models.leg.limb import Body, Joint, Limb, PathMuscle, PathPoint, Vector
from hil.models.leg.muscle import ActivationTimes, Hill
from hil.models.leg.plan import AT_ONCE, SLOWER, PlanSettings, rehearse
from hil.models.leg.statics import JointStatics
from hil.models.leg.stepper import LimbStepper
from hil.models.leg.system import LimbSystem
from hil.slots import Channel

Found = Iterator[tuple[str, str]]
CHECKED = 50  # set points that are tried over a reference's range


def build_limb(table: LimbTable) -> Limb:
    """Bodies, joints and muscles; ModelError naming the key."""
    bodies = tuple(
        Body(name, b.mass_kg * b.mass_scale, _vector(b.inertia_kg_m2))
        for name, b in table.bodies.items()
    )
    joints = tuple(
        Joint(name, j.kind, j.parent, j.child, _vector(j.at_parent_m), _vector(j.at_child_m),
              _vector(j.axis), tuple(j.angles_rad), j.damping_N_m_s_per_rad)
        for name, j in table.joints.items()
    )  # fmt: skip
    muscles = tuple(_muscle(name, m) for name, m in table.muscles.items())
    return Limb(bodies, joints, muscles, _vector(table.gravity_m_per_s2))


def build_limb_system(table: LimbTable, period_s: float) -> LimbSystem:
    """The limb as a plant or a twin; ModelError naming the key."""
    points = {name: _place(point) for name, point in table.points.items()}
    return LimbSystem(build_limb(table), points, period_s, _times(table))


def _times(table: LimbTable) -> ActivationTimes | None:
    return None if table.activation is None else ActivationTimes(**table.activation.model_dump())


def _muscle(name: str, table: MuscleTable) -> PathMuscle:
    try:
        hill = Hill(**table.model_dump(exclude={"path"}))
    except ModelError as error:
        raise ModelError(f"muscles.{name}.{error}") from None
    return PathMuscle(name, hill, tuple(_place(point) for point in table.path))


def _place(table: PlaceTable) -> PathPoint:
    return PathPoint(table.body, _vector(table.at_m))


def _vector(values: list[float]) -> Vector:
    return values[0], values[1], values[2]


def statics_of(
    table: AntagonistsTable, model: LimbTable, signal: str, drives: Mapping[str, str]
) -> JointStatics:
    """The joint's equilibria, as the channel of this signal shows them.

    Parameters
    ----------
    drives : the model's input of every output

    Raises
    ------
    ModelError
        Naming the key below `controller`.
    """
    own, _, axis = signal.rpartition(".")
    point = None
    if signal != f"{table.joint}.angle_rad":
        if own not in model.points or axis != "z_m":
            raise ModelError(
                f"channel = '{table.channel}': measures '{signal}': choose one that measures "
                f"{table.joint}.angle_rad or the z_m of a point"
            )
        point = _place(model.points[own])
    muscles = drives[table.raises], drives[table.lowers]
    names = muscles[0].rpartition(".")[0], muscles[1].rpartition(".")[0]
    stepper = LimbStepper(build_limb(model), _times(model))
    return JointStatics(stepper, table.joint, point, names, table.least)


def plan_movement(
    table: AntagonistsTable,
    statics: JointStatics,
    reference: Reference,
    rate_max_per_s: float,
    period_s: float,
    n_ticks: int,
) -> Movement:
    """What the muscles do without an error; ModelError where the set point is out of reach."""
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
    usual = SLOWER if len(statics.stepper.room.times) else AT_ONCE
    settings = PlanSettings(
        usual.smooth_s if table.smooth_s is None else table.smooth_s,
        table.plan_rad_per_s or usual.w_rad_per_s, table.tendon_s or usual.T_s, rate_max_per_s,
    )  # fmt: skip
    plan = rehearse(statics, wanted, period_s, settings)
    return Movement(plan.height_m, plan.activation[:, up], plan.activation[:, down])


def build_antagonists(
    table: AntagonistsTable,
    model: LimbTable,
    reference: Reference,
    channels: Mapping[str, tuple[int, Channel, str]],
    outputs: Mapping[str, schema.ActuatorTable],
    period_s: float,
    n_ticks: int,
) -> Antagonists:
    """The control stage.

    Parameters
    ----------
    channels : every channel's slot, itself, and its signal
    outputs : of every card, under the names of their columns, in the order of the commands
    """
    slot, channel, signal = channels[table.channel]
    own = {name.partition("_commanded")[0]: output for name, output in outputs.items()}
    names = list(own)
    statics = statics_of(table, model, signal, {name: o.drives for name, o in own.items()})
    pair = own[table.raises], own[table.lowers]
    rate_max_per_s = min(output.rate_max_per_s for output in pair)
    movement = plan_movement(table, statics, reference, rate_max_per_s, period_s, n_ticks)
    return Antagonists(
        reference,
        movement,
        PidGains(table.k_p, table.k_i_per_s, table.k_d_s, table.derivative_filter_s),
        Wiring(
            slot, names.index(table.raises), names.index(table.lowers),
            channel.column("reference"), channel.column("demand"), units(channel.suffix),
        ),
        (max(table.least, pair[0].min), max(table.least, pair[1].min)),
        (pair[0].max, pair[1].max),
        period_s,
        round(table.delay_s / period_s),
    )  # fmt: skip


def check_activations(outputs: Mapping[str, schema.ActuatorTable]) -> Found:
    """Outputs that activate muscles: within 0 to 1."""
    for key, output in outputs.items():
        if output.drives.endswith(".activation") and not 0.0 <= output.min < output.max <= 1.0:
            yield (
                key,
                f"an activation is 0 to 1: {output.min:g} to {output.max:g} is not within",
            )


def check_antagonists(
    table: AntagonistsTable,
    model: LimbTable,
    extremes: Mapping[str, tuple[float, float]],
    signals: Mapping[str, str],
    outputs: Mapping[str, schema.ActuatorTable],
    limits: Mapping[str, schema.SignalLimitTable],
) -> Found:
    """The experiment against its rig: (key, text) pairs.

    Parameters
    ----------
    extremes : smallest and largest set point of every channel that has one
    signals : what every channel measures
    limits : of channels, as the guard has them
    """
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
    drives = {name.partition("_commanded")[0]: o.drives for name, o in outputs.items()}
    for key, name in (("raises", table.raises), ("lowers", table.lowers)):
        if name not in drives:
            choice = f"choose {', '.join(drives)}" if drives else "the rig has none"
            yield f"controller.{key} = '{name}'", f"no output of that name: {choice}"
            return
    try:
        statics = statics_of(table, model, signals[table.channel], drives)
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
