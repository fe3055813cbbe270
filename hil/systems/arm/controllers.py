"""The pointing movement: set points, gains, and checks."""

from collections.abc import Mapping, Sequence

import numpy as np

from hil.devices.tables import ActuatorTable
from hil.errors import ModelError
from hil.experiment.kind import ControlInputs, ControllerKind, Faults, SystemRun
from hil.experiment.signal_pid import SIGNAL_PID
from hil.loop.channels import RigLayout
from hil.mechanics.rotations import attitude, rates_to_omega
from hil.rig.instruments import outputs_of, signals_of
from hil.rig.run_tables import RunTables
from hil.systems.arm.build import build_arm
from hil.systems.arm.control import Drives, Movement, PairLaw, Pointing
from hil.systems.arm.links import JOINTS, Arm
from hil.systems.arm.observer import LinkObserver, link_observer
from hil.systems.arm.pointing import MOVEMENT_S, Motion, motion_through, printed_motion
from hil.systems.arm.system import ArmSystem, pair_inputs, signal_names
from hil.systems.arm.tables import ArmTable, PointingTable

ANGLES = signal_names()[:9]
MOVED = 1e-9  # rad: an angle that changes by less is considered constant
MAX_START_RAD = 0.1  # a larger initial distance would make the arm jump to its set point


def _nine(values: Sequence[float]) -> np.ndarray:
    return np.repeat(values, 9 // len(values))


def motion_of(table: PointingTable, model: ArmTable, arm: Arm, t_s: np.ndarray) -> Motion:
    """Return the movement's angles; ModelError if they are out of reach."""
    if table.fingertip_m:
        first = arm.places_m(np.array(model.start_rad))[2]
        return motion_through(arm, [table.start_s, *table.t_s], [first, *table.fingertip_m], t_s)
    return printed_motion(t_s - table.start_s)


def _span_s(table: PointingTable) -> tuple[float, float]:
    return table.start_s, table.t_s[-1] if table.t_s else table.start_s + MOVEMENT_S


def build_movement(table: PointingTable, model: ArmTable, period_s: float) -> Movement:
    """Return set points and torques of every tick of the movement, at rest before and after."""
    arm = build_arm(model)
    first, last = (round(t / period_s) for t in _span_s(table))
    t_s = np.clip(np.arange(first, last + 1) * period_s, *_span_s(table))
    motion = motion_of(table, model, arm, t_s)
    still = np.zeros((1, 9))
    theta = np.concatenate((motion.theta[:1], motion.theta, motion.theta[-1:]))
    rate = np.concatenate((still, motion.rate, still))
    acceleration = np.concatenate((still, motion.acceleration, still))
    A = attitude(theta.reshape(-1, 3, 3))
    B_i = rates_to_omega(theta.reshape(-1, 3, 3))
    omega = np.einsum("nkij,nkj->nki", B_i, rate.reshape(-1, 3, 3))
    spin = omega.copy()  # angular velocity relative to the inner link, in the outer link's frame
    inner = np.einsum("nkij,nkj->nki", A, omega)[:, :2]
    spin[:, 1:] -= np.einsum("nkji,nkj->nki", A[:, 1:], inner)
    torque = arm.pair_torques(theta, rate, acceleration)
    torque += np.array(model.viscosity_N_m_s_per_rad)[:, None] * spin
    return Movement(first, theta, A, omega, torque, arm.places_m(theta)[:, 2])


def law_of(table: PointingTable, model: ArmTable, movement: Movement) -> PairLaw:
    """Return gains and co-activation of every pair, of the attention set or of the others."""
    moves = np.ptp(movement.theta, axis=0) > MOVED
    gain = np.where(moves, table.attention.gain, table.hold.gain)
    k = gain * _nine(table.gain_N_m_per_rad)
    return PairLaw(
        k,
        gain * _nine(table.damping_N_m_s_per_rad),
        table.integral_per_s * k,
        np.repeat(np.array(model.torque_max_N_m), 3),
        np.where(moves, table.attention.coactivation, table.hold.coactivation),
    )


def _kept(table: PointingTable) -> dict[str, float]:
    """Return inputs that stay constant, and their values."""
    alphas = {f"{name}.activation": value for name, value in table.tendons.items()}
    return alphas | {f"{name}.gamma_m": value for name, value in table.gammas_m.items()}


def _build(inputs: ControlInputs) -> Pointing:
    tables, table, model = inputs.tables, inputs.tables.controller, inputs.tables.model
    measured, outputs = signals_of(tables.devices), outputs_of(tables.devices)
    channels, estimate, period_s = (
        inputs.layout.channels,
        inputs.estimator.estimate,
        inputs.period_s,
    )
    movement = build_movement(table, model, period_s)
    names = {measured[channel.name]: channel for channel in channels}
    drives = [output.drives for output in outputs.values()]
    at = [drives.index(name) for name in pair_inputs()]
    limits = list(outputs.values())
    return Pointing(
        movement,
        law_of(table, model, movement),
        estimate,
        [
            names[a].column("reference") if a in names
            else f"{a[:-4].replace('.', '_')}_reference_rad"
            for a in ANGLES
        ],
        Drives(
            at,
            [limits[i].max for i in at],
            [(drives.index(name), value) for name, value in _kept(table).items()],
        ),
        period_s,
    )  # fmt: skip


def _check(run: SystemRun) -> Faults:
    tables, table, model = run.tables, run.tables.controller, run.tables.model
    if tables.reference is not None:
        yield "reference", "the pointing movement sets its own set points: remove it"
    measured, period_s, duration_s = signals_of(tables.devices), run.period_s, run.duration_s
    drives = {output.drives: output for output in outputs_of(tables.devices).values()}
    wrong = [
        ("devices", f"no output drives '{name}', which the pointing movement needs")
        for name in pair_inputs() if name not in drives
    ]  # fmt: skip
    wrong += [
        ("devices", f"no channel measures '{name}', which the pointing movement needs")
        for name in ANGLES if name not in measured.values()
    ]  # fmt: skip
    wrong += [
        ("controller", f"no output drives '{name}'") for name in _kept(table) if name not in drives
    ]
    wrong += _times(table)
    yield from wrong
    if wrong:
        return
    try:
        movement = build_movement(table, model, period_s)
    except ModelError as error:
        key, _, text = str(error).partition(": ")
        yield f"controller.{key}", text
        return
    start = float(np.abs(movement.theta[0] - np.array(model.start_rad)).max())
    if start > MAX_START_RAD:
        yield (
            "model.start_rad",
            f"the movement starts {start:.3g} rad away: give "
            f"[{', '.join(f'{v:.6g}' for v in movement.theta[0])}]",
        )
    if duration_s < _span_s(table)[1] - period_s:
        yield (
            f"experiment.duration_s = {duration_s:g}",
            f"the movement ends at {_span_s(table)[1]:g} s: make it longer",
        )
    yield from _strength(table, model, movement, drives)


def _times(table: PointingTable) -> Faults:
    if len(table.t_s) != len(table.fingertip_m):
        yield (
            "controller.t_s",
            f"{len(table.t_s)} times for {len(table.fingertip_m)} fingertips: give one a fingertip",
        )
    elif np.any(np.diff([table.start_s, *table.t_s]) <= 0.0):
        yield "controller.t_s", f"times must rise, from start_s = {table.start_s:g} on"


def _strength(
    table: PointingTable, model: ArmTable, movement: Movement,
    drives: Mapping[str, ActuatorTable],
) -> Faults:  # fmt: skip
    """Check that the pairs can deliver the torques of the movement."""
    law, inputs = law_of(table, model, movement), pair_inputs()
    for pair, needed in enumerate(movement.torque.reshape(-1, 9).T):
        for name, most in ((inputs[2 * pair], needed.max()), (inputs[2 * pair + 1], -needed.min())):
            share = law.coactivation[pair] + max(float(most), 0.0) / law.torque_max[pair]
            if share > drives[name].max:
                yield (
                    f"model.torque_max_N_m = {list(model.torque_max_N_m)}",
                    f"the {JOINTS[pair // 3]} needs {most:.4g} N m and co-activation, an "
                    f"activation of {share:.3g} of '{name}', which has {drives[name].max:g}",
                )


def _observer(tables: RunTables, system: ArmSystem, layout: RigLayout) -> LinkObserver:
    return link_observer(tables.controller, system, layout, tables.devices)


CONTROLLERS = {
    **SIGNAL_PID,
    "pointing": ControllerKind(
        PointingTable, _build, _check, estimator=_observer,
        sections="hil.systems.arm.report:sections",
    ),
}  # fmt: skip
