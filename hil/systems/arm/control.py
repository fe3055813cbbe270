"""Control stage of the pointing movement: the attention set moves, the other pairs hold.

Every pair's torque is the feed-forward torque of the movement plus feedback of its error,

    u = tau + g (k e + d e' + k_i int(e)),   a+ = (c t + [u]+) / t,   a- = (c t + [-u]+) / t

e is the rotation from the outer link to its set point, in the link's frame; k is from eq (24); t is
the torque of a fully activated muscle. g and the co-activation c have one value for the pairs whose
angles the movement changes, the attention set, and another for the pairs that hold: co-activation
amounts to position and velocity feedback.

The stage uses only the estimate, which comes from the instruments.

Source: Hemami & Hemami 2016, sections 1, 5, 6; Evarts, Shinoda & Wise 1984 (attention set).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.loop.frame import Column, Commands, Frame
from hil.mechanics.arrays import Array

TIP = tuple(f"tip_{axis}_reference_m" for axis in "xyz")


@dataclass
class ArmEstimate:
    """Estimated state of the arm at the current tick.

    Attributes
    ----------
    A : (3, 3, 3) array, attitudes of upper arm, forearm and hand
    omega : (3, 3) array, angular velocities, each in its link's frame
    """

    A: Array = field(default_factory=lambda: np.tile(np.eye(3), (3, 1, 1)))
    omega: Array = field(default_factory=lambda: np.zeros((3, 3)))


@dataclass(frozen=True)
class Movement:
    """Set points of the arm: at rest in row 0, then one row per tick, at rest in the last row.

    Attributes
    ----------
    first_tick : tick of row 1
    theta, A, omega, torque, tip_m : (n, 9), (n, 3, 3, 3), (n, 3, 3), (n, 3, 3), (n, 3)
        Torques are those of the pairs, including viscosity.
    """

    first_tick: int
    theta: Array
    A: Array
    omega: Array
    torque: Array
    tip_m: Array


@dataclass(frozen=True)
class PairLaw:
    """Gains, muscle limits and co-activation of nine pairs.

    Attributes
    ----------
    k, d, k_i : (9,), N m/rad, N m s/rad, N m/(rad s); g is included
    torque_max, coactivation : (9,), N m, and a fraction of it
    """

    k: Array
    d: Array
    k_i: Array
    torque_max: Array
    coactivation: Array


@dataclass(frozen=True)
class Drives:
    """The muscles among the commands.

    Attributes
    ----------
    outputs : (18,) indices of the activations, pair by pair
    high : (18,) the largest activations
    tonic : indices of other inputs, and their constant values
    """

    outputs: Sequence[int]
    high: Sequence[float]
    tonic: Sequence[tuple[int, float]]


GOAL = np.dtype([("A", float, (3, 3, 3)), ("omega", float, (3, 3)), ("torque", float, (3, 3))])
PAIR = np.dtype(
    [(name, float) for name in ("k", "d", "k_i", "torque_max", "coactivation", "total")]
    + [("outputs", np.int64, (2,)), ("high", float, (2,))]
)


class Pointing:
    """Control stage of the arm.

    Parameters
    ----------
    angles : nine names of columns, the angles' set points
    """

    def __init__(
        self,
        movement: Movement,
        law: PairLaw,
        estimate: ArmEstimate,
        angles: Sequence[str],
        drives: Drives,
        period_s: float,
    ) -> None:
        self._movement, self._estimate = movement, estimate
        self._goals, self._pairs = np.zeros(len(movement.theta), GOAL), np.zeros(9, PAIR)
        for name in ("A", "omega", "torque"):
            self._goals[name] = getattr(movement, name)
        for name in ("k", "d", "k_i", "torque_max", "coactivation"):
            self._pairs[name] = getattr(law, name)
        self._pairs["outputs"] = np.reshape(drives.outputs, (9, 2))
        self._pairs["high"] = np.reshape(drives.high, (9, 2))
        self._tonic = drives.tonic
        self._period_s = period_s
        self.columns = [
            *(Column(name, "rad", "reference", "set point of a Bryant angle") for name in angles),
            *(Column(name, "m", "reference", "set point of the fingertip") for name in TIP),
        ]

    def bind(self, frame: Frame, measured: Array, commands: Commands) -> None:
        self._row = frame.span([column.name for column in self.columns])
        self._outputs = commands.outputs

    def restart(self) -> None:
        self._pairs["total"] = 0.0

    def step(self, t_s: float) -> None:
        """Write set points and every muscle's activation of this tick."""
        m, now = self._movement, self._estimate
        tick = round(t_s / self._period_s)
        row = min(max(tick - m.first_tick + 1, 0), len(m.theta) - 1)
        self._row[:9] = m.theta[row]
        self._row[9:] = m.tip_m[row]
        goal = self._goals[row : row + 1]
        _activate(goal, now.A, now.omega, self._pairs, self._period_s, self._outputs)
        for at, activation in self._tonic:
            self._outputs[at] = activation


def pair(u: ArrayLike, coactivation: ArrayLike) -> tuple[Array, Array]:
    """Return activations a+ = c + [u]+, a- = c + [-u]+; their difference is u for every c >= 0."""
    u, c = np.asarray(u, dtype=float), np.asarray(coactivation, dtype=float)
    return c + np.maximum(u, 0.0), c + np.maximum(-u, 0.0)


@njit(cache=True)
def _activate(
    goals: NDArray[np.void], A: Array, omega: Array, pairs: NDArray[np.void], period_s: float,
    outputs: Array,
) -> None:  # fmt: skip
    """Convert torques of pairs to activations; integration stops while a muscle is saturated."""
    A_goal, omega_goal, torque = goals[0]["A"], goals[0]["omega"], goals[0]["torque"]
    for i in range(3):
        for axis in range(3):
            # e = half the vector of R - R^T, R = A^T A_goal: the rotation, to third order
            j, h = (axis + 1) % 3, (axis + 2) % 3
            e = 0.0
            for r in range(3):
                e += 0.5 * (A[i, r, h] * A_goal[i, r, j] - A[i, r, j] * A_goal[i, r, h])
            pair = pairs[3 * i + axis]
            late = omega_goal[i, axis] - omega[i, axis]
            grown = pair["total"] + period_s * e
            u = torque[i, axis] + pair["k"] * e + pair["d"] * late + pair["k_i"] * grown
            share, c, high = u / pair["torque_max"], pair["coactivation"], pair["high"]
            top = high[0] if u > 0.0 else high[1]
            if c + abs(share) <= top or u * e < 0.0:
                pair["total"] = grown
            outputs[pair["outputs"][0]] = min(c + max(share, 0.0), high[0])
            outputs[pair["outputs"][1]] = min(c + max(-share, 0.0), high[1])
