"""Time integration of the pantograph with its tip against a flat plate.

M(q) q'' + c = tau - b q' + J^T f, with tau constant over the period. Free flight uses steps of up
to FREE_STEP_S, contact uses the plate's step. Touch and release are located within a step, so that
the law is smooth in every step and the method keeps its fourth order. Work is integrated together
with the motion, so the energy balance closes to the integrator's error.

State (8): q1, q3, their rates, and the work done so far by motors, by the plate along its normal,
by friction and by joint damping.
"""

from dataclasses import dataclass

import numpy as np

from hil.compiled import njit, put
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.contact import friction_force, normal_force
from hil.systems.pantograph.linkage import Pantograph, Pose, dynamics, solve_forward

FREE_STEP_S = 5e-4
N_STATES = 8
ROOT_STEPS = 60
# Indices of the law's parameters in the vector that the kernels read.
N_LAW = 8
Y, K, ALPHA, MU, SLIP, DAMPING, SIDE, STEP = range(N_LAW)


@dataclass(frozen=True)
class Plate:
    """A flat plate normal to y, touched from below.

    Attributes
    ----------
    y_m : position of its surface
    k_N_per_m, alpha_s_per_m : the defaults give contacts of about 10 ms with the arm's 0.5 kg, and
        a restitution of about 0.7 at 0.2 m/s
    step_s : step of the integrator during contact
    """

    y_m: float
    k_N_per_m: float = 5.2e4  # assumed
    alpha_s_per_m: float = 3.2  # assumed
    mu: float = 0.1  # assumed
    slip_m_per_s: float = 1e-3  # assumed
    step_s: float = 2.5e-5

    def __post_init__(self) -> None:
        if not np.isfinite(self.y_m):
            raise ModelError("plate.y_m: must be finite")
        for name in ("k_N_per_m", "slip_m_per_s", "step_s"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"plate.{name} = {value:g}: must be above zero")
        for name in ("alpha_s_per_m", "mu"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ModelError(f"plate.{name} = {value:g}: must not be below zero")

    def duration_s(self, mass_kg: float) -> float:
        """Return the approximate duration of a contact with this mass: pi sqrt(m / k)."""
        return float(np.pi * np.sqrt(mass_kg / self.k_N_per_m))


class ArmOnPlate:
    """State of the arm over time.

    Parameters
    ----------
    damping_N_m_s_per_rad : damping of each motor's joint
    start : initial pose, at rest

    Attributes
    ----------
    x : (8,) array, state; the module lists its elements

    Raises
    ------
    ModelError
        The loop cannot close at some motor angles, the plate's step is too coarse for its
        contact, or the start is inside the plate.
    """

    def __init__(
        self, rig: Pantograph, plate: Plate, start: Pose, damping_N_m_s_per_rad: float = 0.0
    ) -> None:
        p = rig.parameters
        if not p.l_5_m + 2.0 * p.l_1_m < 2.0 * p.l_2_m:
            raise ModelError("l_2_m: too short: links 2 and 4 come into line in the arm's range")
        if start.E_m[1] >= plate.y_m:
            raise ModelError(
                f"home_m: y = {start.E_m[1]:g} m is at or beyond the plate at {plate.y_m:g} m"
            )
        A_m = start.A_m
        mass_kg = 1.0 / (A_m @ np.linalg.solve(start.M_kg_m2, A_m.T))[0, 0]
        if plate.step_s > plate.duration_s(mass_kg) / 50.0:
            raise ModelError(
                f"plate.step_s = {plate.step_s:g}: a contact lasts about "
                f"{plate.duration_s(mass_kg):.4g} s: take a fiftieth of it or less"
            )
        self.rig, self.plate = rig, plate
        self.side = 1.0 if start.assembly == "upper" else -1.0
        self._law = _law(plate, damping_N_m_s_per_rad, self.side)
        self._start = start
        self.x = np.zeros(N_STATES)
        self.in_contact = False
        self.reset()

    def reset(self) -> None:
        """Return to the initial pose, at rest."""
        self.x[:] = 0.0
        self.x[:2] = self._start.q_rad[[0, 2]]
        self.in_contact = False

    def place(self, q_rad: Array) -> None:
        """Set these angles, at rest."""
        self.x[:] = 0.0
        self.x[:2] = q_rad
        self._see_contact()

    def correct(self, angles_rad: Array, rates_rad_per_s: Array) -> None:
        """Add these corrections to angles and rates, as an observer does."""
        self.x[:2] += angles_rad
        self.x[2:4] += rates_rad_per_s
        self._see_contact()

    def _see_contact(self) -> None:
        y = solve_forward(self.rig.vector, self.x[0], self.x[1], self.side)[9]
        self.in_contact = bool(y > self.plate.y_m)

    def advance(self, torques_N_m: Array, duration_s: float) -> None:
        """Advance by this time with both motors' torques constant."""
        tau = float(torques_N_m[0]), float(torques_N_m[1])
        self.in_contact = advance(
            self.x, self.rig.vector, self._law, tau, duration_s, self.in_contact
        )

    def tip(self) -> tuple[float, float, float, float, float, float]:
        """Return position and velocity of the tip, and the plate's force on it.

        The order is x, y in m, x', y' in m/s, f_t, f_n in N: f_n is the magnitude, f_t the force
        along x.
        """
        _, x, y, v_x, v_y, f_t, f_n = _motion(
            self.x, self.rig.vector, self._law, (0.0, 0.0), self.in_contact
        )
        return x, y, v_x, v_y, f_t, f_n

    def energies_J(self) -> tuple[float, float]:
        """Return T_c and T_a of the motion, with respect to the plate."""
        T_c, T_a = _energies(self.x, self.rig.vector, self.side)
        return T_c, T_a

    def kinetic_energy_J(self) -> float:
        """Return the kinetic energy of all links and the end effector."""
        return sum(self.energies_J())


def _law(plate: Plate, damping_N_m_s_per_rad: float, side: float) -> Array:
    """Return plate law, joint damping and assembly side as the vector that the kernels read."""
    law = np.empty(N_LAW)
    law[Y], law[K], law[ALPHA] = plate.y_m, plate.k_N_per_m, plate.alpha_s_per_m
    law[MU], law[SLIP], law[STEP] = plate.mu, plate.slip_m_per_s, plate.step_s
    law[DAMPING], law[SIDE] = damping_N_m_s_per_rad, side
    return law


@njit(cache=True, error_model="numpy")
def _energies(x: Array, p: Array, side: float) -> tuple[float, float]:
    f = solve_forward(p, x[0], x[1], side)
    c, s = np.array((f[0], f[2], f[4], f[6])), np.array((f[1], f[3], f[5], f[7]))
    M, _, J, _ = dynamics(p, c, s, 0.0, 0.0)
    w1, w3, a1, a3 = x[2], x[3], J[1, 0], J[1, 1]
    det = M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0]
    mobility = (M[1, 1] * a1 * a1 - 2.0 * M[0, 1] * a1 * a3 + M[0, 0] * a3 * a3) / det
    T = (M[0, 0] * w1 * w1 + 2.0 * M[0, 1] * w1 * w3 + M[1, 1] * w3 * w3) / 2.0
    T_c = (a1 * w1 + a3 * w3) ** 2 / (2.0 * mobility)
    return T_c, T - T_c


@njit(cache=True, error_model="numpy")
def _motion(
    x: Array, p: Array, law: Array, tau: tuple[float, float], touching: bool
) -> tuple[Array, float, float, float, float, float, float]:
    """Return the state's rates, and the tip: x, y, x', y', f_t, f_n."""
    rates = np.zeros(N_STATES)
    tau1, tau3 = tau
    w1, w3 = x[2], x[3]
    f = solve_forward(p, x[0], x[1], law[SIDE])
    c, s = np.array((f[0], f[2], f[4], f[6])), np.array((f[1], f[3], f[5], f[7]))
    M, coriolis, J, _ = dynamics(p, c, s, w1, w3)
    vx, vy = J[0, 0] * w1 + J[0, 1] * w3, J[1, 0] * w1 + J[1, 1] * w3
    f_n = f_t = 0.0
    if touching:
        f_n = normal_force(f[9] - law[Y], vy, law[K], law[ALPHA])
        f_t = friction_force(f_n, vx, law[MU], law[SLIP])
    b = law[DAMPING]
    r1 = tau1 - b * w1 - coriolis[0] + J[0, 0] * f_t - J[1, 0] * f_n
    r3 = tau3 - b * w3 - coriolis[1] + J[0, 1] * f_t - J[1, 1] * f_n
    det = M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0]
    rates[0], rates[1] = w1, w3
    rates[2] = (M[1, 1] * r1 - M[0, 1] * r3) / det
    rates[3] = (M[0, 0] * r3 - M[1, 0] * r1) / det
    rates[4] = tau1 * w1 + tau3 * w3
    rates[5], rates[6] = -f_n * vy, f_t * vx
    rates[7] = -b * (w1 * w1 + w3 * w3)
    return rates, f[8], f[9], vx, vy, f_t, f_n


@njit(cache=True, error_model="numpy")
def _step(
    x: Array, p: Array, law: Array, tau: tuple[float, float], h: float, touching: bool
) -> tuple[Array, float]:
    """Take a classical fourth-order Runge-Kutta step; return state and final penetration."""
    k1 = _motion(x, p, law, tau, touching)[0]
    k2 = _motion(x + 0.5 * h * k1, p, law, tau, touching)[0]
    k3 = _motion(x + 0.5 * h * k2, p, law, tau, touching)[0]
    k4 = _motion(x + h * k3, p, law, tau, touching)[0]
    y = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return y, solve_forward(p, y[0], y[1], law[SIDE])[9] - law[Y]


@njit(cache=True, error_model="numpy")
def advance(
    x: Array, p: Array, law: Array, tau: tuple[float, float], duration: float, touching: bool
) -> bool:
    """Advance x in place; return whether the tip touches at the end."""
    t, plate_step = 0.0, law[STEP]
    while duration - t > 1e-12:
        h = min(plate_step if touching else FREE_STEP_S, duration - t)
        y, d = _step(x, p, law, tau, h, touching)
        if (d > 0.0) != touching:
            # Touch or release within this step: locate it by the Illinois method.
            before = solve_forward(p, x[0], x[1], law[SIDE])[9] - law[Y]
            low, high, f_low, f_high = 0.0, 1.0, before, d
            share = 1.0
            if f_low * f_high < 0.0:
                for _ in range(ROOT_STEPS):
                    share = (low * f_high - high * f_low) / (f_high - f_low)
                    y, d = _step(x, p, law, tau, share * h, touching)
                    if d == 0.0 or (high - low) * h < 1e-15:
                        break
                    if (d > 0.0) == (f_high > 0.0):
                        high, f_high = share, d
                        f_low *= 0.5
                    else:
                        low, f_low = share, d
                        f_high *= 0.5
            touching = not touching
            h *= share
        put(y, x)
        t += h
    return touching
