"""Passive steps of the compass walker down a slope: flight, heel strike, step-to-step map.

The hip has no motor. A torso hinged there without torque would fall, so its mass is at the hip
(assumed), and the coordinates are z = (q3, q4), angles from the slope's normal. The stance foot
rolls without slipping, x_s' = R q3'. With N = dq/dz constant::

    N^T M N z'' = N^T (Q - c),   c_i = sum_j S_ij sin(q_i - q_j) q_j'^2

and gravity g (sin s, -cos s) in the slope's frame. Straight legs would scuff at mid-stance, as in
all compass walkers; contact is ignored until the foot comes down in front of the stance foot. At
q4 = -q3 the event is the ideal inert constraint of `hil_studies.walker.model`, and the legs
exchange roles. The event is located between the integrator's steps.

The step-to-step map takes (theta, q3', q4') from just after a heel strike to just after the next.

Source: the paper's section 4; McGeer 1990; Goswami, Thuilot & Espiau 1998 (compass gait).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.impact import decompose
from hil_studies.walker.model import Walker

STANDARD_GRAVITY_M_PER_S2 = 9.80665
FALLEN_RAD = 1.2
LONGEST_STEP_S = 20.0
TOLERANCE = 1e-10
SETTLING_STEPS = 8


@dataclass(frozen=True)
class Step:
    """One step, from just after a heel strike to just after the next.

    Attributes
    ----------
    t_s : (n,) array, time since the start of the step; the last is the heel strike
    z : (n, 4) array, q3, q4 in rad and their rates, before the legs exchange roles
    after : (3,) array, theta in rad, q3' and q4' in rad/s, after the heel strike
    T_c_J : energy lost at the heel strike
    impulse_N_s : (2,) array, along the slope, and normal to it, on the new stance foot
    """

    t_s: Array
    z: Array
    after: Array
    T_c_J: float
    impulse_N_s: Array
    lift_off: bool

    @property
    def friction_needed(self) -> float:
        return float(abs(self.impulse_N_s[0]) / self.impulse_N_s[1])


class PassiveWalker:
    """A walker on a slope, without hip torque.

    Raises
    ------
    ModelError
        The slope is out of range. Methods: the walker falls instead of stepping.
    """

    def __init__(
        self, walker: Walker, slope_deg: float, g_m_per_s2: float = STANDARD_GRAVITY_M_PER_S2
    ) -> None:
        if not (np.isfinite(slope_deg) and 0.0 <= slope_deg < 45.0):
            raise ModelError(f"slope_deg = {slope_deg:g}: choose 0 to below 45")
        self.walker, self.g_m_per_s2 = walker, g_m_per_s2
        self.slope_rad = float(np.deg2rad(slope_deg))
        m, alpha = walker.masses_kg, walker.alpha_m[:, :2]
        self.mass_kg = float(m.sum())
        self._first = m @ alpha
        self._second = alpha.T @ (m[:, None] * alpha)

    def energy_J(self, z: ArrayLike) -> tuple[Array, Array]:
        """Return kinetic and potential energy; the foot's centre starts at 0 and rolls R q3."""
        q3, q4, w3, w4 = np.asarray(z, dtype=float).T
        s, R = self.slope_rad, self.walker.R_m
        (a, b), S = self._first, self._second
        vx = R * w3
        kinetic = (
            0.5 * self.mass_kg * vx**2
            + vx * (a * np.cos(q3) * w3 + b * np.cos(q4) * w4)
            + 0.5 * (S[0, 0] * w3**2 + S[1, 1] * w4**2)
            + S[0, 1] * np.cos(q3 - q4) * w3 * w4
        )
        up = self.mass_kg * R + a * np.cos(q3) + b * np.cos(q4)
        along = self.mass_kg * R * q3 + a * np.sin(q3) + b * np.sin(q4)
        return kinetic, self.g_m_per_s2 * (np.cos(s) * up - np.sin(s) * along)

    def accelerations_rad_per_s2(self, z: Array) -> Array:
        """Return q3'' and q4'' at (q3, q4, q3', q4') with a rolling foot."""
        return self._rates(0.0, z)[2:]

    def _rates(self, _t: float, z: Array) -> Array:
        walker = self.walker
        rates: Array = _motion(
            z, self._first, self._second, walker.R_m, self.mass_kg, self.g_m_per_s2, self.slope_rad
        )
        return rates

    def step(self, start: ArrayLike, samples_s: float | None = None) -> Step:
        """Simulate a step from (theta, q3', q4') just after a heel strike to just after the next.

        `samples_s` sets the spacing of the states; the heel strike is located between them.
        """
        theta, w3, w4 = (float(part) for part in np.asarray(start, dtype=float))
        if not 0.0 < theta < np.pi:
            raise ModelError(f"theta = {np.rad2deg(theta):g} deg: no step")
        z = np.array([-theta / 2.0, theta / 2.0, w3, w4])
        upright = self._until(0.0, z, _upright)
        strike = self._until(upright[0][-1], upright[1][-1], _foot_down)
        t_s = np.concatenate((upright[0], strike[0][1:]))
        states = np.concatenate((upright[1], strike[1][1:]))
        if samples_s is not None:
            grid = np.arange(0.0, t_s[-1], samples_s)
            early = grid < upright[0][-1]
            states = np.vstack((upright[2](grid[early]).T, strike[2](grid[~early]).T, states[-1:]))
            t_s = np.append(grid, t_s[-1])
        return self._heel_strike(t_s, states)

    def _until(
        self, t_s: float, z: Array, event: Callable[[float, Array], float]
    ) -> tuple[Array, Array, Callable[[Array], Array]]:
        solution = scipy.integrate.solve_ivp(
            self._rates, (t_s, t_s + LONGEST_STEP_S), z, "DOP853", events=(event, _fallen),
            rtol=TOLERANCE, atol=TOLERANCE, dense_output=True,
        )  # fmt: skip
        if not solution.success or solution.t_events[0].size == 0:
            raise ModelError("the walker falls: no heel strike follows from this start")
        return solution.t, solution.y.T, solution.sol

    def _heel_strike(self, t_s: Array, states: Array) -> Step:
        q3, q4, w3, w4 = states[-1]
        walker = self.walker
        angles = np.array([[q3, q4, 0.0]])
        M = walker.mass_matrix(angles)[0, :4, :4]
        A = walker.contact_rows(angles)[0, :, :4]
        d = decompose(M, A, [walker.R_m * w3, 0.0, w3, w4], closing=[0.0, -1.0])
        after = np.array([q3 - q4, d.qdot_after[3], d.qdot_after[2]])
        return Step(t_s, states, after, d.T_c_J, d.impulse, bool(d.qdot_after[1] > 0.0))

    def walk(self, start: ArrayLike, n_steps: int, samples_s: float | None = None) -> list[Step]:
        """Return consecutive steps."""
        steps: list[Step] = []
        state = np.asarray(start, dtype=float)
        for _ in range(n_steps):
            steps.append(self.step(state, samples_s))
            state = steps[-1].after
        return steps

    def slope_of_map(self, start: ArrayLike, h: float = 1e-5) -> Array:
        """Return the (3, 3) derivative of the step-to-step map, by central differences."""
        start = np.asarray(start, dtype=float)
        columns = [
            (self.step(start + h * e).after - self.step(start - h * e).after) / (2.0 * h)
            for e in np.eye(3)
        ]
        return np.column_stack(columns)

    def gait(self) -> Array:
        """Return a fixed point; the search uses starts at which the legs swing like pendula.

        Raises
        ------
        ModelError
            No start leads to a gait.
        """
        pace = np.sqrt(self.g_m_per_s2 / self.walker.l_m)
        for theta in np.arange(0.2, 1.2, 0.1):
            try:
                state = theta * np.array([1.0, 0.57 * pace, 0.35 * pace])
                return self.fixed_point(self.walk(state, SETTLING_STEPS)[-1].after)
            except ModelError:
                continue
        raise ModelError(
            f"no gait found on a slope of {np.rad2deg(self.slope_rad):g} deg: the walker falls, or "
            "its steps do not repeat: try another slope"
        )

    def fixed_point(self, guess: ArrayLike) -> Array:
        """Return the fixed point (theta, q3', q4') of the map, by Newton's method."""
        state = np.asarray(guess, dtype=float)
        for _ in range(30):
            miss = self.step(state).after - state
            if np.max(np.abs(miss)) < 1e-9:
                return state
            state = state + np.linalg.solve(np.eye(3) - self.slope_of_map(state), miss)
        raise ModelError("no gait near this start")


def multipliers(slope_of_map: Array) -> NDArray[np.complex128]:
    """Return eigenvalues of the map's derivative, largest first; stable if all are below 1."""
    values = np.linalg.eigvals(slope_of_map).astype(np.complex128)
    return values[np.argsort(-np.abs(values))]


def _upright(_t: float, z: Array) -> float:
    return float(z[0])


def _foot_down(_t: float, z: Array) -> float:
    return float(z[0] + z[1])


def _fallen(_t: float, z: Array) -> float:
    return float(FALLEN_RAD - abs(z[0]))


for _event in (_upright, _foot_down, _fallen):
    _event.terminal = True  # type: ignore[attr-defined]
_upright.direction = _foot_down.direction = 1.0  # type: ignore[attr-defined]


@njit(cache=True)
def _motion(
    z: Array, first: Array, S: Array, R: float, mass: float, g: float, slope: float
) -> Array:
    """Return z' of z = (q3, q4, q3', q4')."""
    q3, q4, w3, w4 = z[0], z[1], z[2], z[3]
    a, b = first[0], first[1]
    turn = q3 - q4
    M33 = mass * R * R + 2.0 * R * a * np.cos(q3) + S[0, 0]
    M34 = R * b * np.cos(q4) + S[0, 1] * np.cos(turn)
    M44 = S[1, 1]
    # N^T (Q - c)
    along = mass * g * np.sin(slope) + a * np.sin(q3) * w3 * w3 + b * np.sin(q4) * w4 * w4
    f3 = R * along + a * g * np.sin(q3 + slope) - S[0, 1] * np.sin(turn) * w4 * w4
    f4 = b * g * np.sin(q4 + slope) + S[0, 1] * np.sin(turn) * w3 * w3
    det = M33 * M44 - M34 * M34
    return np.array([w3, w4, (M44 * f3 - M34 * f4) / det, (M33 * f4 - M34 * f3) / det])
