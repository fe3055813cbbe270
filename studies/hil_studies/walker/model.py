"""The compass walker with a torso and round feet, and its heel strike.

Coordinates q = (x_s, y_s, q3, q4, q5): the centre of the stance foot, then the absolute angles of
stance leg, swing leg and torso from the vertical, clockwise (forward) positive. Links are point
masses; a leg has length l from hip to sole, so that the hip is l - R above the foot's centre. With
u(q) = (sin q, cos q) every mass is at::

    r_p = (x_s, y_s) + sum_j alpha_pj u(q_j)

At heel strike the material point of the swing foot on the ground stops: v_P = c' - R q4' x = 0,
with the foot's centre c. Just before, the stance foot rolls, x_s' = R q3', and both legs have the
same angular velocity, while the torso does not rotate.

Source: Font-Llagunes & Koevecses, section 4, Fig. 1 and Table I.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.impact import Decomposition, decompose_many


@dataclass(frozen=True)
class Walker:
    """Masses and lengths; defaults are Table I, with central values of the paper's sweeps.

    Attributes
    ----------
    rho : R / l
    mu : m_T / (2 m), torso over legs; the total mass is constant

    Raises
    ------
    ModelError
        A value is out of range; for example, a torso without mass would have no inertia.
    """

    rho: float = 0.25
    mu: float = 1.0
    m_W_kg: float = 30.0
    m_H_kg: float = 10.0
    l_m: float = 0.8
    b_m: float = 0.4
    l_T_m: float = 0.4

    def __post_init__(self) -> None:
        for name in ("mu", "m_H_kg", "l_m", "b_m"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"{name} = {value:g}: must be above zero")
        if not 0.0 <= self.rho < 1.0:
            raise ModelError(f"rho = {self.rho:g}: choose 0 (point feet) up to below 1")
        if not self.m_W_kg > self.m_H_kg:
            raise ModelError(f"m_W_kg = {self.m_W_kg:g}: must be above m_H_kg = {self.m_H_kg:g}")
        if not (np.isfinite(self.l_T_m) and self.l_T_m >= 0.0):
            raise ModelError(f"l_T_m = {self.l_T_m:g}: must not be below zero")

    @property
    def R_m(self) -> float:
        return self.rho * self.l_m

    @property
    def masses_kg(self) -> Array:
        """Stance leg, swing leg, hip, torso: m = (m_W - m_H) / (2 (1 + mu)), m_T = 2 m mu."""
        m = (self.m_W_kg - self.m_H_kg) / (2.0 * (1.0 + self.mu))
        return np.array([m, m, self.m_H_kg, 2.0 * m * self.mu])

    @property
    def alpha_m(self) -> Array:
        """(4, 3): distance of each mass along every link, from the foot's centre."""
        up = self.l_m - self.R_m
        return np.array(
            [[up - self.b_m, 0, 0], [up, -self.b_m, 0], [up, 0, 0], [up, 0, self.l_T_m]],
            dtype=float,
        )

    def mass_matrix(self, angles_rad: ArrayLike) -> Array:
        """Return (k, 5, 5) for the angles (k, 3) of stance leg, swing leg and torso."""
        q = np.atleast_2d(np.asarray(angles_rad, dtype=float))
        m, alpha = self.masses_kg, self.alpha_m
        first, second = m @ alpha, alpha.T @ (m[:, None] * alpha)
        M = np.zeros((len(q), 5, 5))
        M[:, 0, 0] = M[:, 1, 1] = m.sum()
        M[:, 0, 2:] = M[:, 2:, 0] = first * np.cos(q)
        M[:, 1, 2:] = M[:, 2:, 1] = -first * np.sin(q)
        M[:, 2:, 2:] = second * np.cos(q[:, :, None] - q[:, None, :])
        return M

    def contact_rows(self, angles_rad: ArrayLike) -> Array:
        """Return (k, 2, 5): forward and upward velocity of the swing foot's contact point."""
        q = np.atleast_2d(np.asarray(angles_rad, dtype=float))
        up = self.l_m - self.R_m
        A = np.zeros((len(q), 2, 5))
        A[:, 0, 0] = A[:, 1, 1] = 1.0
        A[:, 0, 2] = up * np.cos(q[:, 0])
        A[:, 0, 3] = -up * np.cos(q[:, 1]) - self.R_m
        A[:, 1, 2] = -up * np.sin(q[:, 0])
        A[:, 1, 3] = up * np.sin(q[:, 1])
        return A


@dataclass(frozen=True)
class HeelStrikes:
    """k heel strikes on level ground.

    Attributes
    ----------
    split : `impulse` is (k, 2): lambda_t forward, lambda_n up, in N s, on the new stance foot
    lift_off : (k,) bool array
        The old stance foot leaves the ground: its sole moves up after the event.
    friction_needed : (k,) array, |lambda_t| / lambda_n
    """

    split: Decomposition
    lift_off: NDArray[np.bool_]
    friction_needed: Array


def heel_strikes(
    walker: Walker, theta_deg: ArrayLike, torso_deg: ArrayLike = 0.0, rate_rad_per_s: float = 1.0
) -> HeelStrikes:
    """Return heel strikes for angles theta between the legs and torso angles; (k,) or scalar.

    Raises
    ------
    ModelError
        theta is out of range, the torso has no lever, or the legs do not rotate forward.
    """
    theta, torso = np.broadcast_arrays(
        np.atleast_1d(np.asarray(theta_deg, dtype=float)), np.asarray(torso_deg, dtype=float)
    )
    for value in theta:
        if not 0.0 < value < 180.0:
            raise ModelError(
                f"theta_deg = {value:g}: the angle between the legs must be above 0 and below 180"
            )
    if not np.all(np.isfinite(torso)):
        raise ModelError("torso_deg: must be finite")
    if walker.l_T_m == 0.0:
        raise ModelError("l_T_m = 0: the torso's angle has no inertia: give it a lever")
    if not (np.isfinite(rate_rad_per_s) and rate_rad_per_s > 0.0):
        raise ModelError(
            f"rate_rad_per_s = {rate_rad_per_s:g}: separating: legs that do not turn forward do "
            "not strike the ground"
        )
    half = np.deg2rad(theta) / 2.0
    angles = np.column_stack((half, -half, np.deg2rad(torso)))
    qdot = np.zeros((len(theta), 5))
    qdot[:, 0] = walker.R_m * rate_rad_per_s
    qdot[:, 2] = qdot[:, 3] = rate_rad_per_s
    split = decompose_many(
        walker.mass_matrix(angles), walker.contact_rows(angles), qdot, closing=[0.0, -1.0]
    )
    lambda_t, lambda_n = split.impulse.T
    return HeelStrikes(split, split.qdot_after[:, 1] > 0.0, np.abs(lambda_t) / lambda_n)


def largest_lift_off_deg(walker: Walker, torso_deg: float = 0.0) -> float | None:
    """Return the leg angle above which the old stance foot does not lift off; None without one.

    Finds the first change on a grid of half a degree, then bisects.
    """
    theta_deg = np.arange(0.5, 179.6, 0.5)
    stays = np.flatnonzero(~heel_strikes(walker, theta_deg, torso_deg).lift_off)
    if not stays.size or stays[0] == 0:
        return None
    low, high = float(theta_deg[stays[0] - 1]), float(theta_deg[stays[0]])
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        lifts = heel_strikes(walker, middle, torso_deg).lift_off[0]
        low, high = (middle, high) if lifts else (low, middle)
    return low
