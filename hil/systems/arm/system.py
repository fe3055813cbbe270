"""The arm as plant and as model: activations in, angles and positions out, compiled.

The state is a quaternion and Omega of every link. It has no singularity, so the arm can fall and
hang. There are nine pairs of muscles, about x, y and z of the outer link of every joint, and
tendons over several joints. The integration uses the fourth-order Runge-Kutta method on
`hil.mechanics.recursion`; with `STEP_S` the error of the angles is about 1e-7 rad over seconds of
movement (tests/systems/arm).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.muscle import Muscle
from hil.mechanics.recursion import ROWS, Recursion
from hil.mechanics.rotations import quaternion
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.systems.arm.actuators import Path
from hil.systems.arm.links import AXES, JOINTS, LINKS, Arm
from hil.systems.arm.motion import Links, Muscles, advance, look

STEP_S = 0.00025
PLACES = ("elbow", "wrist", "tip")
PITCHES = 3  # a tendon's path depends on the pitch of the three links


@dataclass(frozen=True)
class Pairs:
    """Muscle pairs of shoulder, elbow and wrist, equal about their three axes.

    Attributes
    ----------
    torque_max_N_m, viscosity_N_m_s : (3,)
        Torque of a fully activated muscle, and viscosity of a pair.
    """

    torque_max_N_m: tuple[float, float, float]
    viscosity_N_m_s: tuple[float, float, float]

    def of_nine(self) -> tuple[Array, Array]:
        """Return one value per pair: each joint's value three times."""
        return np.repeat(self.torque_max_N_m, 3), np.repeat(self.viscosity_N_m_s, 3)


def signal_names() -> tuple[str, ...]:
    """Return Bryant angles of every link, then elbow, wrist and fingertip."""
    turned = [f"{link}.{axis}_rad" for link in LINKS for axis in AXES]
    return (*turned, *(f"{place}.{axis}_m" for place in PLACES for axis in "xyz"))


def pair_inputs() -> tuple[str, ...]:
    """Return activations of the muscle that raises the angle and its antagonist, pair by pair."""
    return tuple(
        f"{joint}_{axis}_{way}.activation"
        for joint in JOINTS for axis in AXES for way in ("plus", "minus")
    )  # fmt: skip


class ArmSystem:
    """An arm with the interface of a plant (`hil.mechanics.system`).

    Parameters
    ----------
    start : (9,) Bryant angles, rad, in which a run starts at rest
    tendons : muscles over several joints, with paths that depend on the pitch of the three links

    Attributes
    ----------
    inputs
        Activations of the pairs, then alpha of every tendon, `<name>.activation`, then gamma of
        those with spindles, `<name>.gamma_m`.
    q, omega : (3, 4), (3, 3) arrays
        Quaternions and angular velocities, each in its link's frame. They can be written.
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
        tree = Recursion(arm.bodies(), fixed=True)
        self._lengths = arm.lengths_m
        self._n = max(1, ceil(period_s / step_s - 1e-9))
        self.q = quaternion(theta.reshape(3, 3))
        self.omega = np.zeros((3, 3))
        q, w = np.zeros((4, 3, 4)), np.zeros((8, 3, 3))
        self._links = Links(
            Muscles(*pairs.of_nine(), *_tendons(list(tendons.values()))), tree.parent, tree.geo,
            arm.gravity, np.zeros((3, 3, 3)), w[4], w[5], w[6], w[7], np.zeros((3, ROWS)),
            (q[0], q[1], q[2], q[3]), (w[0], w[1], w[2], w[3]),
        )  # fmt: skip
        self._inputs = np.zeros(len(alphas) + len(tendons))
        self._y = np.zeros(len(self.outputs))
        self.look()

    @property
    def y(self) -> Array:
        """Current outputs, in the order of `outputs`."""
        return self._y

    def step(self, drive: Drive, inputs: Array) -> None:
        """Advance one period with these inputs held constant; activations are clipped to 0..1."""
        n = self._n_alphas
        np.clip(inputs[:n], 0.0, 1.0, out=self._inputs[:n])
        self._inputs[self._gammas] = inputs[n:]
        h_s = self.period_s / self._n
        advance(self.q, self.omega, self._inputs, self._links, h_s, self._n)
        self.look()

    def look(self) -> None:
        """Update `y` from the state."""
        look(self.q, self._lengths, self._y)


def _tendons(tendons: Sequence[tuple[Muscle, Path]]) -> tuple[Array, Array]:
    """Return slopes dl/dpitch (m, 3), and F, k, b of every muscle (m, 3)."""
    slopes, muscles = np.zeros((len(tendons), PITCHES)), np.zeros((len(tendons), 3))
    for i, (muscle, path) in enumerate(tendons):
        if path.n_angles != PITCHES or path.further is not None:
            raise ModelError("a tendon of the arm runs over caps on the pitch of its three links")
        slopes[i] = path.slope()
        muscles[i] = muscle.force_max_N, muscle.stiffness_N_per_m, muscle.viscosity_N_s_per_m
    return slopes, muscles
