"""The arm as a plant and as a model beside it: activations in, angles and places out, compiled.

State: a quaternion and Omega of every link, singular nowhere, so that an arm may fall and hang.
Nine pairs of muscles, about x, y and z of the outer link of every joint, and tendons over several
joints. Runge-Kutta's fourth order on `hil.models.bodies.recursion`; `STEP_S` keeps the angles to
1e-7 rad over seconds of movement (tests/models/arm).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from hil.models.activation import Drive
from hil.models.arm.actuators import Muscle, Path
from hil.models.arm.links import AXES, JOINTS, LINKS, Arm
from hil.models.bodies.recursion import ROWS, Recursion, accelerations
from hil.models.bodies.rotations import quaternion
from hil.models.network import ModelError
from hil.models.sma_wire import SmaWires

Array = NDArray[np.float64]

STEP_S = 0.00025
PLACES = ("elbow", "wrist", "tip")
PITCHES = 3  # a tendon's path runs over the pitch of the three links


@dataclass(frozen=True)
class Pairs:
    """The muscle pairs of shoulder, elbow and wrist, alike about their three axes.

    Attributes
    ----------
    torque_max_N_m, viscosity_N_m_s : (3,)
        Of a muscle fully activated, and of a pair.
    """

    torque_max_N_m: tuple[float, float, float]
    viscosity_N_m_s: tuple[float, float, float]

    def of_nine(self) -> tuple[Array, Array]:
        """One value a pair: the joint's, three times."""
        return np.repeat(self.torque_max_N_m, 3), np.repeat(self.viscosity_N_m_s, 3)


def signal_names() -> tuple[str, ...]:
    """Bryant angles of every link, then elbow, wrist and fingertip."""
    turned = [f"{link}.{axis}_rad" for link in LINKS for axis in AXES]
    return (*turned, *(f"{place}.{axis}_m" for place in PLACES for axis in "xyz"))


def pair_inputs() -> tuple[str, ...]:
    """Activations of the muscle that raises the angle, then of its antagonist, pair by pair."""
    return tuple(
        f"{joint}_{axis}_{way}.activation"
        for joint in JOINTS for axis in AXES for way in ("plus", "minus")
    )  # fmt: skip


class ArmSystem:
    """An arm behind the interface of every plant (`hil.models.system`).

    Parameters
    ----------
    start : (9,) Bryant angles, rad, in which a run starts at rest
    tendons : muscles over several joints, their paths over the pitch of the three links

    Attributes
    ----------
    inputs
        Activations of the pairs, then alpha of every tendon, `<name>.activation`, then gamma of
        those that have spindles, `<name>.gamma_m`.
    q, omega : (3, 4), (3, 3) arrays
        Quaternions and angular velocities, each in its link's frame. May be written.
    """

    cell_names: tuple[str, ...] = ()

    def __init__(
        self,
        arm: Arm,
        pairs: Pairs,
        start: ArrayLike,
        period_s: float,
        tendons: Mapping[str, tuple[Muscle, Path]] | None = None,
        step_s: float = STEP_S,
    ) -> None:
        self.arm, self.pairs, self.period_s = arm, pairs, period_s
        theta = np.asarray(start, dtype=float)
        if theta.shape != (9,) or not np.isfinite(theta).all():
            raise ModelError("start: give nine angles in rad")
        tendons = {} if tendons is None else tendons
        alphas = (*pair_inputs(), *(f"{name}.activation" for name in tendons))
        spindles = [i for i, (m, _) in enumerate(tendons.values()) if m.stiffness_N_per_m > 0.0]
        self.inputs = (*alphas, *(f"{list(tendons)[i]}.gamma_m" for i in spindles))
        self._n_alphas = len(alphas)
        self._gammas = np.array([len(alphas) + i for i in spindles], dtype=np.int64)
        self.outputs = signal_names()
        self.wires = SmaWires([], np.zeros(0))
        self._tree = Recursion(arm.bodies(), fixed=True)
        self._lengths = arm.lengths_m
        self._torque_max, self._viscosity = pairs.of_nine()
        self._arms, self._muscles = _tendons(list(tendons.values()))
        self._n = max(1, ceil(period_s / step_s - 1e-9))
        self.q = quaternion(theta.reshape(3, 3))
        self.omega = np.zeros((3, 3))
        self._q_room = tuple(np.zeros((3, 4)) for _ in range(4))
        self._w_room = tuple(np.zeros((3, 3)) for _ in range(4))
        self._spare = (
            np.zeros((3, 3, 3)), *(np.zeros((3, 3)) for _ in range(4)), np.zeros((3, ROWS))
        )  # fmt: skip
        self._inputs = np.zeros(len(alphas) + len(tendons))
        self._y = np.zeros(len(self.outputs))
        self.look()

    @property
    def y(self) -> Array:
        """Outputs now, in the order of `outputs`."""
        return self._y

    def step(self, drive: Drive, inputs: Array) -> None:
        """Advance one period with these inputs held, activations within 0 and 1."""
        n = self._n_alphas
        np.clip(inputs[:n], 0.0, 1.0, out=self._inputs[:n])
        self._inputs[self._gammas] = inputs[n:]
        tree = self._tree
        _advance(
            self.q, self.omega, self._inputs, self._torque_max, self._viscosity, self._arms,
            self._muscles, tree.parent, tree.geo, self.arm.gravity, self.period_s / self._n,
            self._n, self._q_room, self._w_room, self._spare,
        )  # fmt: skip
        self.look()

    def look(self) -> None:
        """Bring `y` up to the state."""
        _look(self.q, self._lengths, self._y)


def _tendons(tendons: Sequence[tuple[Muscle, Path]]) -> tuple[Array, Array]:
    """Slopes dl/dpitch (m, 3), and F, k, b of every muscle (m, 3)."""
    slopes, muscles = np.zeros((len(tendons), PITCHES)), np.zeros((len(tendons), 3))
    for i, (muscle, path) in enumerate(tendons):
        if path.n_angles != PITCHES or path.further is not None:
            raise ModelError("a tendon of the arm runs over caps on the pitch of its three links")
        slopes[i] = path.slope()
        muscles[i] = muscle.force_max_N, muscle.stiffness_N_per_m, muscle.viscosity_N_s_per_m
    return slopes, muscles


@njit(cache=True, error_model="numpy")
def _turn(q, A):  # type: ignore[no-untyped-def]
    """`attitude_of_quaternion`, compiled: (n, 4) -> (n, 3, 3)."""
    for i in range(len(q)):
        w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        k = 2.0 / (w * w + x * x + y * y + z * z)
        A[i, 0, 0] = 1.0 - k * (y * y + z * z)
        A[i, 0, 1] = k * (x * y - w * z)
        A[i, 0, 2] = k * (x * z + w * y)
        A[i, 1, 0] = k * (x * y + w * z)
        A[i, 1, 1] = 1.0 - k * (x * x + z * z)
        A[i, 1, 2] = k * (y * z - w * x)
        A[i, 2, 0] = k * (x * z - w * y)
        A[i, 2, 1] = k * (y * z + w * x)
        A[i, 2, 2] = 1.0 - k * (x * x + y * y)


@njit(cache=True, error_model="numpy")
def torques(A, omega, activations, torque_max, viscosity, arms, muscles, N):  # type: ignore[no-untyped-def]
    """Torques (3, 3) on the links, each in its own frame, of activations (18 + m), then gammas (m).

    A pair's torque (`actuators.pair_torque`) acts on the joint's outer link; its reaction, turned
    into that frame, on the inner one. A tendon's torque about the pitch axis of a link is in the
    link's frame (0, sin, cos of the yaw, turned): the second row of B, which no attitude makes
    large.
    """
    for i in range(3):
        for k in range(3):
            N[i, k] = 0.0
    for i in range(3):
        for k in range(3):
            spin = omega[i, k]
            if i > 0:  # of the inner link, in the outer one's frame
                for r in range(3):
                    turned = 0.0
                    for c in range(3):
                        turned += A[i - 1, r, c] * omega[i - 1, c]
                    spin -= A[i, r, k] * turned
            j = 3 * i + k
            half = 0.5 * viscosity[j] * spin
            up = max(torque_max[j] * activations[2 * j] - half, 0.0)
            tau = up - max(torque_max[j] * activations[2 * j + 1] + half, 0.0)
            N[i, k] += tau
            if i > 0:
                for c in range(3):
                    share = 0.0
                    for r in range(3):
                        share += A[i - 1, r, c] * A[i, r, k]
                    N[i - 1, c] -= share * tau
    for m in range(len(arms)):
        stretch, rate = 0.0, 0.0
        for i in range(3):
            c2 = np.hypot(A[i, 0, 0], A[i, 0, 1])
            s3, c3 = (-A[i, 0, 1] / c2, A[i, 0, 0] / c2) if c2 > 1e-9 else (0.0, 1.0)
            stretch += arms[m, i] * np.arctan2(A[i, 0, 2], c2)
            rate += arms[m, i] * (s3 * omega[i, 0] + c3 * omega[i, 1])
        over = stretch - activations[18 + len(arms) + m]  # Muscle.tension_N
        pull = muscles[m, 0] * activations[18 + m] + muscles[m, 1] * over + muscles[m, 2] * rate
        tension = max(pull, 0.0)
        for i in range(3):
            c2 = np.hypot(A[i, 0, 0], A[i, 0, 1])
            s3, c3 = (-A[i, 0, 1] / c2, A[i, 0, 0] / c2) if c2 > 1e-9 else (0.0, 1.0)
            N[i, 0] -= arms[m, i] * tension * s3
            N[i, 1] -= arms[m, i] * tension * c3


@njit(cache=True, error_model="numpy")
def _slope(  # type: ignore[no-untyped-def]
    q,
    omega,
    activations,
    torque_max,
    viscosity,
    arms,
    muscles,
    parent,
    geo,
    gravity,
    solve,
    spare,
    q_rate,
    omega_rate,
):
    """Derivatives of quaternions and angular velocities."""
    A, N, none, V_rate, Gamma = spare
    _turn(q, A)
    torques(A, omega, activations, torque_max, viscosity, arms, muscles, N)
    accelerations(
        parent,
        geo,
        True,
        A,
        omega,
        N,
        none,
        gravity,
        (0.0, 0.0, 0.0),
        solve,
        V_rate,
        omega_rate,
        Gamma,
    )
    for i in range(3):
        w, x, y, z = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        p, r, s = omega[i, 0], omega[i, 1], omega[i, 2]
        q_rate[i, 0] = 0.5 * (-x * p - y * r - z * s)
        q_rate[i, 1] = 0.5 * (w * p + y * s - z * r)
        q_rate[i, 2] = 0.5 * (w * r + z * p - x * s)
        q_rate[i, 3] = 0.5 * (w * s + x * r - y * p)


@njit(cache=True, error_model="numpy")
def _advance(  # type: ignore[no-untyped-def]
    q,
    omega,
    activations,
    torque_max,
    viscosity,
    arms,
    muscles,
    parent,
    geo,
    gravity,
    h,
    n,
    q_room,
    w_room,
    spare,
):
    """Take n steps of h by Runge-Kutta's fourth order."""
    q_was, q_now, q_rate, q_sum = q_room
    w_was, w_now, w_rate, w_sum = w_room
    A, N, none, V_rate, Gamma, scratch = spare
    for _ in range(n):
        q_was[:], w_was[:], q_now[:], w_now[:] = q, omega, q, omega
        q_sum[:], w_sum[:] = 0.0, 0.0
        for stage in range(4):
            _slope(
                q_now,
                w_now,
                activations,
                torque_max,
                viscosity,
                arms,
                muscles,
                parent,
                geo,
                gravity,
                scratch,
                (A, N, none, V_rate, Gamma),
                q_rate,
                w_rate,
            )
            weight = h / 6.0 if stage in (0, 3) else h / 3.0
            ahead = h if stage == 2 else 0.5 * h
            for i in range(3):
                for k in range(4):
                    q_sum[i, k] += weight * q_rate[i, k]
                    q_now[i, k] = q_was[i, k] + ahead * q_rate[i, k]
                for k in range(3):
                    w_sum[i, k] += weight * w_rate[i, k]
                    w_now[i, k] = w_was[i, k] + ahead * w_rate[i, k]
        for i in range(3):
            size = 0.0
            for k in range(4):
                q[i, k] = q_was[i, k] + q_sum[i, k]
                size += q[i, k] * q[i, k]
            for k in range(4):
                q[i, k] /= np.sqrt(size)
            for k in range(3):
                omega[i, k] = w_was[i, k] + w_sum[i, k]


@njit(cache=True, error_model="numpy")
def _look(q, lengths, y):  # type: ignore[no-untyped-def]
    """Bryant angles and places of (3, 4) quaternions."""
    place = (0.0, 0.0, 0.0)
    for i in range(3):
        w, a, b, c = q[i, 0], q[i, 1], q[i, 2], q[i, 3]
        xx, xy, xz = 1.0 - 2.0 * (b * b + c * c), 2.0 * (a * b - w * c), 2.0 * (a * c + w * b)
        yx, zx = 2.0 * (a * b + w * c), 2.0 * (a * c - w * b)
        yz, zz = 2.0 * (b * c - w * a), 1.0 - 2.0 * (a * a + b * b)
        yy, zy = 1.0 - 2.0 * (a * a + c * c), 2.0 * (b * c + w * a)
        c2 = np.hypot(xx, xy)
        t1 = np.arctan2(-yz, zz) if c2 > 1e-9 else 0.0
        s1, c1 = np.sin(t1), np.cos(t1)
        y[3 * i] = t1
        y[3 * i + 1] = np.arctan2(xz, c2)
        y[3 * i + 2] = np.arctan2(c1 * yx + s1 * zx, c1 * yy + s1 * zy)
        place = (
            place[0] + lengths[i] * xx, place[1] + lengths[i] * yx, place[2] + lengths[i] * zx
        )  # fmt: skip
        for k in range(3):
            y[9 + 3 * i + k] = place[k]
