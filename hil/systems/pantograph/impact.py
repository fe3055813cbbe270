"""Impact of the pantograph's tip on a flat plate: energies, impulse, and their ranges.

The plate's normal is y, and the approach is along +y. gamma is the angle of the tip's velocity
from the normal, positive towards +x. The contact stops y_E' = A q' and is ideal: T_c is lost.

Source: Font-Llagunes & Koevecses, section 6, eq. (22); xi = 1 along q' = M^-1 A^T.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.impact import Decomposition, NonIdeal, decompose_many, nonideal
from hil.systems.pantograph.linkage import ROUNDING, TURNS, Elbows, Pantograph, Pose, matrices

SYMMETRIC_M = (0.0, 0.22538)  # the poses of Fig. 8, derived from Tables III and V
ASYMMETRIC_M = (0.19981, 0.22538)
GRAZING_DEG = 90.0

# Printed values for 10 mJ, by gamma in deg. Computed: |v| in m/s, T_c, T_a in mJ, xi. Measured:
# T_c, T_a, T_a after in mJ, xi, F_n and F_t in N ms. Tables III and IV: symmetric pose. Of Tables V
# and VI, asymmetric pose, the rows are missing in the text used: here is what section 6.2 states,
# and F_n by its ratio to the computed impulse, +6.2, +3.6, +6.0, +1.7 and -3.5 %.
TABLE_III = {
    0.0: ("0.1974", "10", "0", "1"),
    15.0: ("0.1975", "9.34", "0.66", "0.93"),
    30.0: ("0.1978", "7.53", "2.47", "0.75"),
    45.0: ("0.1981", "5.03", "4.97", "0.50"),
}
TABLE_IV = {
    0.0: (9.844, 0.010, 0.012, 1.00, 120.53, 0.61),
    15.0: (9.374, 0.706, 0.519, 0.93, 107.85, -2.07),
    30.0: (7.553, 2.621, 1.987, 0.74, 101.95, -4.26),
    45.0: (5.026, 5.270, 4.443, 0.49, 82.00, -5.47),
}
TABLE_V = {-7.58: ("", "10", "0", "1")}
TABLE_VI_F_N = {-7.58: "109.6", 0.0: "105.9", 15.0: "101.2", 30.0: "85.0", 45.0: "65.2"}
TABLE_VI_F_T = {-7.58: "> 0", 0.0: "1.40", 15.0: "> 0", 30.0: "< 0", 45.0: "< 0"}


@dataclass(frozen=True)
class Impacts:
    """k impacts with the same energy, each at its angle.

    Attributes
    ----------
    gamma_deg, speed_m_per_s, impulse_N_s : (k,) arrays
        The impulse is the magnitude of the plate's impulse on the tip.
    tip_velocity_after_m_per_s : (k, 2) array, at the end of compression
    split : of the k events
    """

    gamma_deg: Array
    speed_m_per_s: Array
    impulse_N_s: Array
    tip_velocity_after_m_per_s: Array
    split: Decomposition


def approach(gamma_deg: ArrayLike) -> Array:
    """Return (k, 2) unit velocities at these angles.

    Raises
    ------
    ModelError
        At one of the angles the tip moves along the plate or away from it.
    """
    gamma = np.atleast_1d(np.asarray(gamma_deg, dtype=float))
    for value in gamma:
        turned = abs((value + 180.0) % 360.0 - 180.0)
        if not np.isfinite(value):
            raise ModelError(f"gamma_deg = {value:g}: must be finite")
        if np.isclose(turned, GRAZING_DEG, rtol=0.0, atol=1e-9):
            raise ModelError(
                f"gamma_deg = {value:g}: the tip moves along the plate and there is no impact: "
                "choose an angle between -90 and 90"
            )
        if turned > GRAZING_DEG:
            raise ModelError(
                f"gamma_deg = {value:g}: separating: the tip moves away from the plate and there "
                "is no impact: choose an angle between -90 and 90"
            )
    angle = np.deg2rad(gamma)
    return np.column_stack((np.sin(angle), np.cos(angle)))


def predict(pose: Pose, gamma_deg: ArrayLike, energy_J: float) -> Impacts:
    """Return the impacts at one pose, with the speeds that give this kinetic energy."""
    directions = approach(gamma_deg)
    k = len(directions)
    return _impacts(
        np.broadcast_to(pose.M_kg_m2, (k, 2, 2)), np.broadcast_to(pose.J_m, (k, 2, 2)),
        np.atleast_1d(np.asarray(gamma_deg, dtype=float)), directions, energy_J,
    )  # fmt: skip


def _impacts(
    M: Array, J: Array, gamma_deg: Array, directions: Array, energy_J: float,
    speed_m_per_s: float | None = None,
) -> Impacts:  # fmt: skip
    if not (np.isfinite(energy_J) and energy_J > 0.0):
        raise ModelError(f"energy_J = {energy_J:g}: must be above zero")
    qdot = np.linalg.solve(J, directions[..., None])[..., 0]
    if speed_m_per_s is None:
        speed = np.sqrt(2.0 * energy_J / np.einsum("ki,kij,kj->k", qdot, M, qdot))
    else:
        speed = np.full(len(qdot), speed_m_per_s)
    split = decompose_many(M, J[:, 1:, :], speed[:, None] * qdot, closing=[1.0])
    after = np.einsum("kij,kj->ki", J, split.qdot_after)
    return Impacts(gamma_deg, speed, np.abs(split.impulse[:, 0]), after, split)


def with_friction(pose: Pose, ideal: Impacts, mu: float) -> list[NonIdeal | None]:
    """Return the same impacts with Coulomb friction; None if the sliding direction reverses.

    F_t = -mu s F_n with the sign s of sliding, which must be the same before and after. After a
    reversal, the result would depend on how the impulse is distributed over time.
    """
    events: list[NonIdeal | None] = []
    for i in range(len(ideal.gamma_deg)):
        qdot = ideal.split.v_c[i] + ideal.split.v_a[i]
        before = float(pose.J_m[0] @ qdot)
        slides = np.sign(round(before + float(ideal.tip_velocity_after_m_per_s[i, 0]), 12))
        event = nonideal(pose.M_kg_m2, pose.A_m, qdot, D=mu * slides * pose.J_m[:1].T)
        after = float(pose.J_m[0] @ event.qdot_after)
        turns = min(slides * before, slides * after) < -1e-9
        events.append(None if turns else event)
    return events


def gamma_of_xi_1_deg(pose: Pose) -> float:
    """Return the angle at which the impact removes all kinetic energy."""
    x, y = pose.J_m @ np.linalg.solve(pose.M_kg_m2, pose.A_m[0])
    return float(np.rad2deg(np.arctan2(x, y)))


def bands(
    pantograph: Pantograph, pose: Pose, gamma_deg: ArrayLike, energy_J: float,
    elbows: Elbows = "outward", speeds_m_per_s: ArrayLike | None = None,
) -> dict[str, Array]:  # fmt: skip
    """Return minimum and maximum (2, k) of every figure over the rounding of the parameters.

    The energy, or the speeds (k,) if given, and the tip's position are constant. All corners of
    the box of printed values are computed; the box is so small that every figure is monotone in
    every parameter, so its extremes are at corners.
    """
    directions = approach(gamma_deg)
    gamma = np.atleast_1d(np.asarray(gamma_deg, dtype=float))
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(pantograph.vector))))
    corners = pantograph.vector + ROUNDING * signs
    M, J, ok = matrices(corners, np.broadcast_to(pose.E_m, (len(corners), 2)).copy(),
                        *TURNS[elbows])  # fmt: skip
    if not ok.all():
        raise ModelError("the pose is out of reach within the rounding of the parameters")
    keys = ("speed_m_per_s", "T_c_J", "T_a_J", "xi", "impulse_N_s")
    extremes = {key: np.empty((2, len(gamma))) for key in keys}
    for i, direction in enumerate(directions):
        same = np.broadcast_to(direction, (len(corners), 2))
        speed = None if speeds_m_per_s is None else float(np.atleast_1d(speeds_m_per_s)[i])
        one = _impacts(M, J, np.full(len(corners), gamma[i]), same, energy_J, speed)
        values = (one.speed_m_per_s, one.split.T_c_J, one.split.T_a_J, one.split.xi,
                  one.impulse_N_s)  # fmt: skip
        for key, value in zip(keys, values, strict=True):
            extremes[key][:, i] = value.min(), value.max()
    best = np.array([_best_angle_deg(M[i], J[i]) for i in range(len(corners))])
    extremes["gamma_of_xi_1_deg"] = np.array([best.min(), best.max()])
    return extremes


def _best_angle_deg(M: Array, J: Array) -> float:
    x, y = J @ np.linalg.solve(M, J[1])
    return float(np.rad2deg(np.arctan2(x, y)))


def workspace_map(
    pantograph: Pantograph, x_m: ArrayLike, y_m: ArrayLike, gamma_deg: float = 0.0,
    elbows: Elbows = "outward",
) -> tuple["np.ma.MaskedArray", "np.ma.MaskedArray"]:  # fmt: skip
    """Return xi and the effective mass along y (kg) on a grid; masked out of reach.

    1 / m_y = A M^-1 A^T.
    """
    x, y = np.meshgrid(np.asarray(x_m, dtype=float), np.asarray(y_m, dtype=float))
    places = np.column_stack((x.ravel(), y.ravel()))
    many = np.broadcast_to(pantograph.vector, (len(places), len(pantograph.vector))).copy()
    M, J, ok = matrices(many, places, *TURNS[elbows])
    directions = np.broadcast_to(approach(gamma_deg)[0], places.shape)
    impacts = _impacts(M, J, np.full(len(places), gamma_deg), directions, 1.0)
    shape, hidden = x.shape, ~ok.reshape(x.shape)
    speed_y = directions[:, 1] * impacts.speed_m_per_s
    mass = impacts.impulse_N_s / speed_y
    return (
        np.ma.masked_array(impacts.split.xi.reshape(shape), hidden),
        np.ma.masked_array(mass.reshape(shape), hidden),
    )
