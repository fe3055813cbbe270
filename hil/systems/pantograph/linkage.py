"""The pantograph: kinematics and dynamics of a planar five-bar linkage with two motors.

Motors at O1 = (-l5/2, 0) and O2 = (+l5/2, 0), absolute link angles q_i, u(q) = (cos q, sin q)::

    E = O1 + l1 u(q1) + l2 u(q2) = O2 + l3 u(q3) + l4 u(q4),   coordinates q = (q1, q3)

The velocities of the loop, with n = du/dq, follow from u2.E' = l1 q1' u2.n1 and u4.E' = l3 q3'
u4.n3. M is summed over four links and the end effector, and c holds the velocity terms, so that
M q'' + c = tau + J^T f with the motors' torques and a force f on E. Gravity acts normal to the
plane.

The loop can close in two ways for given motor angles (the assembly: E on the upper or the lower
side of the line of the elbows), and in four ways for given E (the elbows; outward in the
experiment).

Source: Font-Llagunes & Koevecses, section 6, Fig. 7 and Table II. Centres of mass are measured
from the proximal joint, I about each centre of mass (derived: these reproduce Table III).
"""

from dataclasses import astuple, dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array

Assembly = Literal["upper", "lower"]
Elbows = Literal["outward", "inward", "left", "right"]

LEAST_SINE = 1e-4  # minimum angle in rad between two links; at smaller angles E or q is singular


@dataclass(frozen=True)
class Parameters:
    """Table II, as printed; links 3 and 4 equal links 1 and 2."""

    l_1_m: float = 0.1449
    l_2_m: float = 0.1984
    a_1_m: float = 0.0519
    a_2_m: float = 0.1081
    l_5_m: float = 0.0445
    m_1_kg: float = 0.1202
    m_2_kg: float = 0.1084
    m_EE_kg: float = 0.3144
    I_1_kg_m2: float = 0.0004
    I_2_kg_m2: float = 0.0007

    @property
    def vector(self) -> Array:
        return np.array(astuple(self))


ROUNDING = 0.5e-4  # half a unit of the last digit: every value of Table II has four decimals
_NAMES = tuple(Parameters.__dataclass_fields__)
# Where `Parameters.vector` has each of them.
L_1, L_2, A_1, A_2, L_5, M_1, M_2, M_EE, I_1, I_2 = range(len(_NAMES))


@dataclass(frozen=True)
class Pose:
    """One configuration of the mechanism.

    Attributes
    ----------
    q_rad : (4,) array, absolute angles of the links
    E_m : (2,) array
    M_kg_m2 : (2, 2) array, over (q1, q3)
    J_m : (2, 2) array, E' = J (q1', q3')
    """

    q_rad: Array
    E_m: Array
    assembly: Assembly
    M_kg_m2: Array
    J_m: Array

    @property
    def A_m(self) -> Array:
        """(1, 2): the plate, normal to y, stops dy_E/dt = A q'."""
        return self.J_m[1:]

    def qdot(self, v_m_per_s: ArrayLike) -> Array:
        """Return (q1', q3') for this velocity of E."""
        qdot: Array = np.linalg.solve(self.J_m, np.asarray(v_m_per_s, dtype=float))
        return qdot


class Pantograph:
    """Kinematics and dynamics for one set of parameters.

    Parameters
    ----------
    q1_range_rad, q3_range_rad : pairs, optional
        Minimum and maximum angle of each motor; poses beyond raise an error.

    Raises
    ------
    ModelError
        A parameter is not finite and above zero. Methods: a pose is out of reach or singular.
    """

    def __init__(
        self,
        parameters: Parameters | None = None,
        q1_range_rad: tuple[float, float] | None = None,
        q3_range_rad: tuple[float, float] | None = None,
    ) -> None:
        self.parameters = parameters or Parameters()
        free = (-np.inf, np.inf)
        self.ranges_rad = (q1_range_rad or free, q3_range_rad or free)
        for name, (low, high) in zip(("q1", "q3"), self.ranges_rad, strict=True):
            if not low < high:
                raise ModelError(f"{name}_range_rad = [{low:g}, {high:g}]: give [least, largest]")
        for name, value in zip(_NAMES, astuple(self.parameters), strict=True):
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"{name} = {value:g}: must be above zero")
        self.vector = self.parameters.vector

    def with_(self, **changes: float) -> "Pantograph":
        return Pantograph(replace(self.parameters, **changes), *self.ranges_rad)

    @property
    def reach_m(self) -> tuple[float, float]:
        """Minimum and maximum distance of E from each motor."""
        p = self.parameters
        return abs(p.l_1_m - p.l_2_m), p.l_1_m + p.l_2_m

    def inverse(self, E_m: ArrayLike, elbows: Elbows = "outward") -> Pose:
        """Return the pose with the end effector at E and these elbows (seen from E's side).

        "outward": left leg bent to the left, right leg to the right; "inward" the reverse;
        "left" and "right": both to that side.
        """
        E = np.asarray(E_m, dtype=float)
        if E.shape != (2,) or not np.all(np.isfinite(E)):
            raise ModelError(f"pose_m = {np.array2string(E)}: give two finite numbers, [x, y]")
        where = f"pose_m = [{E[0]:g}, {E[1]:g}]"
        if E[1] == 0.0:
            raise ModelError(
                f"{where}: on the line of the motors both assembly modes are possible and elbows "
                "have no sides: choose y above or below 0"
            )
        near, far = self.reach_m
        for side, x in (("left", -0.5), ("right", 0.5)):
            distance = float(np.hypot(E[0] - x * self.parameters.l_5_m, E[1]))
            if not near <= distance <= far:
                raise ModelError(
                    f"{where}: unreachable: {distance:.4f} m from the {side} motor, whose leg "
                    f"reaches from {near:.4f} to {far:.4f} m"
                )
        turn = TURNS[elbows]
        q, ok = solve_inverse(self.vector, E[0], E[1], *turn)
        if not ok:  # differs from the check above by rounding only
            raise ModelError(f"{where}: unreachable: at the edge of a leg's reach")
        return self._pose(q, E, "upper" if np.sin(q[3] - q[1]) > 0.0 else "lower", where)

    def forward(self, q1_rad: float, q3_rad: float, assembly: Assembly | None = None) -> Pose:
        """Return the pose at these motor angles; if two exist, `assembly` selects one."""
        where = f"q1 = {q1_rad:g} rad, q3 = {q3_rad:g} rad"
        if not np.isfinite(q1_rad) or not np.isfinite(q3_rad):
            raise ModelError(f"{where}: must be finite")
        side = -1.0 if assembly == "lower" else 1.0
        f = solve_forward(self.vector, float(q1_rad), float(q3_rad), side)
        if not f[-1]:
            raise ModelError(f"{where}: unreachable: the elbows are too far apart for the links")
        if assembly is None:
            raise ModelError(
                f"{where}: both assembly modes are possible: name assembly = 'upper' or 'lower'"
            )
        q = np.array([q1_rad, np.arctan2(f[3], f[2]), q3_rad, np.arctan2(f[7], f[6])])
        return self._pose(q, np.array(f[8:10]), assembly, where)

    def _pose(self, q: Array, E: Array, assembly: Assembly, where: str) -> Pose:
        if abs(np.sin(q[1] - q[0])) < LEAST_SINE or abs(np.sin(q[3] - q[2])) < LEAST_SINE:
            raise ModelError(f"{where}: singular: a leg is stretched and cannot be driven")
        if abs(np.sin(q[3] - q[1])) < LEAST_SINE:
            raise ModelError(
                f"{where}: singular: links 2 and 4 are in line, where both assembly modes meet"
            )
        for name, angle, (low, high) in (
            ("q1", q[0], self.ranges_rad[0]),
            ("q3", q[2], self.ranges_rad[1]),
        ):
            if not low <= angle <= high:
                raise ModelError(
                    f"{where}: unreachable: {name} = {angle:.4f} rad, whose motor turns from "
                    f"{low:g} to {high:g} rad"
                )
        M, _, J, _ = dynamics(self.vector, np.cos(q), np.sin(q), 0.0, 0.0)
        return Pose(q, E, assembly, M, J)


# Direction of links 1 and 3, +1 anticlockwise from the line motor-E, for E above the motors.
TURNS: dict[Elbows, tuple[float, float]] = {
    "outward": (1.0, -1.0),
    "inward": (-1.0, 1.0),
    "left": (1.0, 1.0),
    "right": (-1.0, -1.0),
}


@njit(cache=True, error_model="numpy")
def solve_inverse(p: Array, x: float, y: float, turn_1: float, turn_3: float) -> tuple[Array, bool]:
    """Return angles (q1, q2, q3, q4) for E = (x, y), and whether it is in reach."""
    l_1, l_2, l_5 = p[L_1], p[L_2], p[L_5]
    q = np.zeros(4)
    side = 1.0 if y > 0.0 else -1.0
    for leg in range(2):
        dx = x + l_5 / 2.0 if leg == 0 else x - l_5 / 2.0
        r = np.hypot(dx, y)
        if r == 0.0:
            return q, False
        cosine = (l_1 * l_1 + r * r - l_2 * l_2) / (2.0 * l_1 * r)
        if not abs(cosine) <= 1.0:
            return q, False
        turn = side * (turn_1 if leg == 0 else turn_3)
        q[2 * leg] = np.arctan2(y, dx) + turn * np.arccos(cosine)
        q[2 * leg + 1] = np.arctan2(y - l_1 * np.sin(q[2 * leg]), dx - l_1 * np.cos(q[2 * leg]))
    return q, True


@njit(cache=True, error_model="numpy")
def matrices(
    p: Array, E: Array, turn_1: float, turn_3: float
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return M and J (k, 2, 2) for k sets of parameters (k, 10) and positions (k, 2).

    The third result is False, with identity matrices, for positions out of reach or singular.
    """
    n = len(E)
    M, J, good = np.zeros((n, 2, 2)), np.zeros((n, 2, 2)), np.zeros(n, dtype=np.bool_)
    for i in range(n):
        M[i, 0, 0] = M[i, 1, 1] = J[i, 0, 0] = J[i, 1, 1] = 1.0
        if E[i, 1] == 0.0:
            continue
        q, ok = solve_inverse(p[i], E[i, 0], E[i, 1], turn_1, turn_3)
        straight = min(abs(np.sin(q[1] - q[0])), abs(np.sin(q[3] - q[2])), abs(np.sin(q[3] - q[1])))
        if ok and straight >= LEAST_SINE:
            M[i], _, J[i], _ = dynamics(p[i], np.cos(q), np.sin(q), 0.0, 0.0)
            good[i] = True
    return M, J, good


@njit(cache=True, error_model="numpy")
def solve_forward(
    p: Array, q1: float, q3: float, side: float
) -> tuple[float, float, float, float, float, float, float, float, float, float, bool]:
    """Return cos, sin of q1, q2, q3, q4 in turn, E, and whether the loop closes."""
    l_1, l_2, l_5 = p[L_1], p[L_2], p[L_5]
    c1, s1, c3, s3 = np.cos(q1), np.sin(q1), np.cos(q3), np.sin(q3)
    dx, dy = l_5 + l_1 * (c3 - c1), l_1 * (s3 - s1)
    half_2 = (dx * dx + dy * dy) / 4.0
    if not 0.0 < half_2 <= l_2 * l_2:
        return c1, s1, 0.0, 0.0, c3, s3, 0.0, 0.0, 0.0, 0.0, False
    rise = side * np.sqrt((l_2 * l_2 - half_2) / half_2) / 2.0
    rx, ry = dx / 2.0 - rise * dy, dy / 2.0 + rise * dx
    return (
        c1, s1, rx / l_2, ry / l_2, c3, s3, (rx - dx) / l_2, (ry - dy) / l_2,
        -l_5 / 2.0 + l_1 * c1 + rx, l_1 * s1 + ry, True,
    )  # fmt: skip


@njit(cache=True, error_model="numpy")
def dynamics(
    p: Array, c: Array, s: Array, w1: float, w3: float
) -> tuple[Array, Array, Array, Array]:
    """Return M (2, 2), velocity terms c (2,), J (2, 2) and J' q' (2,) for motor angles and rates.

    `c`, `s` are cosines and sines of the four angles. The pose must not be singular.
    """
    l_1, l_2, a_1, a_2 = p[L_1], p[L_2], p[A_1], p[A_2]
    m_1, m_2, m_EE, J_1, J_2 = p[M_1], p[M_2], p[M_EE], p[I_1], p[I_2]
    det = c[1] * s[3] - s[1] * c[3]
    d1 = l_1 * (s[1] * c[0] - c[1] * s[0])
    d3 = l_1 * (s[3] * c[2] - c[3] * s[2])
    J = np.empty((2, 2))
    J[0, 0], J[1, 0] = d1 * s[3] / det, -d1 * c[3] / det
    J[0, 1], J[1, 1] = -d3 * s[1] / det, d3 * c[1] / det
    # Rates of links 2 and 4 per unit rate of each motor.
    W = np.empty((2, 2))
    for i in range(2):
        e2 = -s[1] * J[0, i] + c[1] * J[1, i]
        e4 = -s[3] * J[0, i] + c[3] * J[1, i]
        W[0, i] = (e2 - (l_1 * (s[1] * s[0] + c[1] * c[0]) if i == 0 else 0.0)) / l_2
        W[1, i] = (e4 - (l_1 * (s[3] * s[2] + c[3] * c[2]) if i == 1 else 0.0)) / l_2
    w2, w4 = W[0, 0] * w1 + W[0, 1] * w3, W[1, 0] * w1 + W[1, 1] * w3
    # Accelerations with the motors' own accelerations at zero.
    r2 = -l_1 * w1 * w1 * (c[1] * c[0] + s[1] * s[0]) - l_2 * w2 * w2
    r4 = -l_1 * w3 * w3 * (c[3] * c[2] + s[3] * s[2]) - l_2 * w4 * w4
    ex, ey = (s[3] * r2 - s[1] * r4) / det, (-c[3] * r2 + c[1] * r4) / det
    bias = np.array([ex, ey])
    M, cor = np.zeros((2, 2)), np.zeros(2)
    for leg in range(2):
        k = 2 * leg
        w_p, w_d = (w1, w2) if leg == 0 else (w3, w4)
        alpha = (-s[k + 1] * (ex + l_1 * w_p * w_p * c[k])
                 + c[k + 1] * (ey + l_1 * w_p * w_p * s[k])) / l_2  # fmt: skip
        ax = -l_1 * w_p * w_p * c[k] - a_2 * (w_d * w_d * c[k + 1] + alpha * s[k + 1])
        ay = -l_1 * w_p * w_p * s[k] - a_2 * (w_d * w_d * s[k + 1] - alpha * c[k + 1])
        M[leg, leg] += m_1 * a_1 * a_1 + J_1
        for i in range(2):
            own_i = l_1 if i == leg else 0.0
            vx_i = -own_i * s[k] - a_2 * W[leg, i] * s[k + 1]
            vy_i = own_i * c[k] + a_2 * W[leg, i] * c[k + 1]
            cor[i] += m_2 * (vx_i * ax + vy_i * ay) + J_2 * W[leg, i] * alpha
            for j in range(2):
                own_j = l_1 if j == leg else 0.0
                vx_j = -own_j * s[k] - a_2 * W[leg, j] * s[k + 1]
                vy_j = own_j * c[k] + a_2 * W[leg, j] * c[k + 1]
                M[i, j] += m_2 * (vx_i * vx_j + vy_i * vy_j) + J_2 * W[leg, i] * W[leg, j]
    for i in range(2):
        cor[i] += m_EE * (J[0, i] * ex + J[1, i] * ey)
        for j in range(2):
            M[i, j] += m_EE * (J[0, i] * J[0, j] + J[1, i] * J[1, j])
    M[1, 0] = M[0, 1]
    return M, cor, J, bias
