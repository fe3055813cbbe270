"""One rigid body about its centre of mass, in four state spaces, and on a hinge.

With f = -Omega x J Omega and the torque N in the body's frame (rotations:
`hil.mechanics.rotations`)::

    Newton-Euler    (Theta, Omega)   Theta' = B Omega,  J Omega' = f + N
    Lagrange, Kane  (Theta, Theta')  B^-T J B^-1 Theta'' = B^-T (f + N - J (B^-1)' Theta')
    Hamilton        (Theta, P)       Theta' = B J^-1 B^T P,
                                     P' = -(d(P^T B)/dTheta) J^-1 B^T P + B^-T N
    quaternions     (q, Omega)       q' = q * [0, Omega] / 2,  J Omega' = f + N

with P = B^-T J Omega and H = P^T J_L^-1 P / 2 = P^T B J^-1 B^T P / 2.

Source: Hemami & Hemami, eqs (1)-(9) and section 3. Corrected misprints: H is printed with J_L
instead of its inverse, J_L = B^-T J B^-1; eq (8) without its minus sign and without the torque;
Kane's inertia force F_r* without its minus sign.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.rotations import (
    angles,
    attitude,
    attitude_of_quaternion,
    omega_to_rates,
    omega_to_rates_slopes,
    quaternion_of_attitude,
    quaternion_rate,
    rates_to_omega,
    rates_to_omega_rate,
    skew,
)

Form = Literal["newton_euler", "lagrange", "hamilton", "quaternion"]
FORMS: tuple[Form, ...] = ("newton_euler", "lagrange", "hamilton", "quaternion")
# The chart is switched where |cos t2| falls below this value; the equations grow as 1 / cos^2.
CHART_COSINE = 0.3
TOLERANCE = 3e-14  # close to the smallest tolerance that scipy.integrate.solve_ivp accepts
TRIANGLE = 1e-9

Torque = Callable[[float], ArrayLike]


def checked_inertia(inertia_kg_m2: ArrayLike) -> Array:
    """Return a moment of inertia about the centre of mass as (3, 3); accepts principal moments (3).

    Raises
    ------
    ModelError
        The matrix is not symmetric, not positive definite, or not physical (one principal moment
        above the sum of the other two).
    """
    try:
        J = np.asarray(inertia_kg_m2, dtype=float)
    except ValueError:  # rows of different lengths
        J = np.zeros(0)
    if J.shape == (3,):
        J = np.diag(J)
    if J.shape != (3, 3) or not np.all(np.isfinite(J)):
        raise ModelError("inertia_kg_m2: give three principal moments or a 3 x 3 matrix")
    if np.abs(J - J.T).max() > 1e-12 * np.abs(J).max():
        raise ModelError("inertia_kg_m2: must be symmetric")
    moments = np.linalg.eigvalsh(J)
    shown = ", ".join(f"{moment:.4g}" for moment in moments)
    if moments[0] <= 0.0:
        raise ModelError(
            f"inertia_kg_m2: not positive definite (principal moments {shown}): give the moments "
            "about the centre of mass, all above 0"
        )
    if moments[2] > (1.0 + TRIANGLE) * (moments[0] + moments[1]):
        raise ModelError(
            f"inertia_kg_m2: principal moments {shown} are not physical: the largest must not "
            "exceed the sum of the other two"
        )
    return J


@dataclass(frozen=True)
class OneBody:
    """A body that rotates about its centre of mass.

    Attributes
    ----------
    J : (3, 3) array, moment of inertia about the centre of mass, in the body's frame
    """

    J: Array

    @classmethod
    def of(cls, inertia_kg_m2: ArrayLike) -> "OneBody":
        return cls(checked_inertia(inertia_kg_m2))

    # The four state spaces: derivatives of (6,) or (7,) states.

    def newton_euler(self, x: Array, N: ArrayLike) -> Array:
        """Return the derivative of [Theta, Omega]."""
        theta, omega = x[:3], x[3:]
        return np.concatenate((omega_to_rates(theta) @ omega, self.omega_rate(omega, N)))

    def lagrange(self, x: Array, N: ArrayLike) -> Array:
        """Return the derivative of [Theta, Theta'], eq (6); Kane's equations are identical."""
        theta, rate = x[:3], x[3:]
        B_i = rates_to_omega(theta)
        omega = B_i @ rate
        inner = -np.cross(omega, self.J @ omega) + np.asarray(N, dtype=float)
        inner = inner - self.J @ (rates_to_omega_rate(theta, rate) @ rate)
        return np.concatenate((rate, np.linalg.solve(B_i.T @ self.J @ B_i, B_i.T @ inner)))

    def hamilton(self, x: Array, N: ArrayLike) -> Array:
        """Return the derivative of [Theta, P], eq (8) with its sign and the torque."""
        theta, P = x[:3], x[3:]
        omega = np.linalg.solve(self.J, omega_to_rates(theta).T @ P)
        slope = np.einsum("i,kij->kj", P, omega_to_rates_slopes(theta))  # d(P^T B)/dTheta
        push = rates_to_omega(theta).T @ np.asarray(N, dtype=float)
        return np.concatenate((omega_to_rates(theta) @ omega, push - slope @ omega))

    def quaternion(self, x: Array, N: ArrayLike) -> Array:
        """Return the derivative of [q, Omega]."""
        return np.concatenate((quaternion_rate(x[:4], x[4:]), self.omega_rate(x[4:], N)))

    def omega_rate(self, omega: Array, N: ArrayLike) -> Array:
        """Omega' = J^-1 (N - Omega x J Omega)."""
        torque = np.asarray(N, dtype=float) - np.cross(omega, self.J @ omega)
        omega_rate: Array = np.asarray(np.linalg.solve(self.J, torque), dtype=np.float64)
        return omega_rate

    # Conversions between the forms, through the attitude and Omega.

    def state(self, form: Form, A: Array, omega: Array) -> Array:
        """Return the state of a form at an attitude A and an angular velocity."""
        if form == "quaternion":
            return np.concatenate((quaternion_of_attitude(A), omega))
        theta = angles(A)
        if form == "lagrange":
            return np.concatenate((theta, omega_to_rates(theta) @ omega))
        if form == "hamilton":
            return np.concatenate((theta, self.momentum(theta, omega)))
        return np.concatenate((theta, omega))

    def motion(self, form: Form, x: Array) -> tuple[Array, Array]:
        """Return attitude A and Omega of a form's state."""
        if form == "quaternion":
            return attitude_of_quaternion(x[:4]), x[4:]
        theta = x[:3]
        if form == "lagrange":
            return attitude(theta), rates_to_omega(theta) @ x[3:]
        if form == "hamilton":
            omega = np.linalg.solve(self.J, omega_to_rates(theta).T @ x[3:])
            return attitude(theta), np.asarray(omega, dtype=np.float64)
        return attitude(theta), x[3:]

    def momentum(self, theta: ArrayLike, omega: Array) -> Array:
        """Return P = B^-T J Omega, eq (9): the momenta conjugate to the angles."""
        P: Array = rates_to_omega(theta).T @ self.J @ omega
        return P

    # Outputs.

    def angle_accelerations(self, theta: ArrayLike, omega: Array, N: ArrayLike) -> Array:
        """Return Theta'' as an output of the Newton-Euler form (Mealy), eq (5)."""
        B = omega_to_rates(theta)
        rate = B @ omega
        accelerations: Array = B @ (
            self.omega_rate(omega, N) - rates_to_omega_rate(theta, rate) @ rate
        )
        return accelerations

    def kinetic_J(self, omega: Array) -> float:
        """Omega^T J Omega / 2."""
        return float(omega @ self.J @ omega) / 2.0

    def hamiltonian_J(self, theta: ArrayLike, P: Array) -> float:
        """H = P^T B J^-1 B^T P / 2."""
        turned = omega_to_rates(theta).T @ P
        return float(turned @ np.linalg.solve(self.J, turned)) / 2.0

    def angular_momentum(self, A: Array, omega: Array) -> Array:
        """Return A J Omega, in the inertial frame: constant without torque."""
        L: Array = A @ self.J @ omega
        return L

    def run(
        self, form: Form, A: ArrayLike, omega: ArrayLike, N: Torque, t_s: ArrayLike
    ) -> tuple[Array, Array]:
        """Integrate a form from t_s[0]; return attitudes (n, 3, 3) and Omega (n, 3) at t_s.

        Near the singularity of the angles the chart is switched: the inertial frame is rotated
        so that the angles are zero, and the integration continues. Clipping the cosine instead
        would give errors of degrees without a warning.
        """
        times = np.asarray(t_s, dtype=float)
        A_now, w_now = np.asarray(A, dtype=float), np.asarray(omega, dtype=float)
        As, omegas = np.empty((len(times), 3, 3)), np.empty((len(times), 3))
        As[0], omegas[0] = A_now, w_now
        rates = getattr(self, form)
        done, t_now = 1, float(times[0])

        def derivative(t: float, x: Array) -> Array:
            derived: Array = rates(x, N(t))
            return derived

        def near_singular(_t: float, x: Array) -> float:
            return abs(float(np.cos(x[1]))) - CHART_COSINE

        near_singular.terminal = True  # type: ignore[attr-defined]
        while done < len(times):
            chart = np.eye(3) if form == "quaternion" else A_now
            answer = scipy.integrate.solve_ivp(
                derivative, (t_now, times[-1]), self.state(form, chart.T @ A_now, w_now),
                method="DOP853", rtol=TOLERANCE, atol=TOLERANCE, t_eval=times[done:],
                events=None if form == "quaternion" else near_singular,
            )  # fmt: skip
            if not answer.success:
                raise ModelError(f"the {form} form could not be integrated: {answer.message}")
            for x in answer.y.T:
                turned, omegas[done] = self.motion(form, x)
                As[done] = chart @ turned
                done += 1
            if answer.status == 1:
                t_now = float(answer.t_events[0][0])
                turned, w_now = self.motion(form, answer.y_events[0][0])
                A_now = chart @ turned
        return As, omegas


# Lyapunov functions: kinetic energy plus potential of the controller.


def hold_angles(theta: Array, omega: Array, K: Array, D: Array) -> Array:
    """N = -B^T (K Theta + D Theta'): springs K and dampers D on the angles; K, D (3,)."""
    B = omega_to_rates(theta)
    N: Array = -B.T @ (K * theta + D * (B @ omega))
    return N


def lyapunov_angles_J(body: OneBody, theta: Array, omega: Array, K: Array) -> float:
    """The function v = T + Theta^T K Theta / 2; with `hold_angles` v' = -Theta'^T D Theta'."""
    return body.kinetic_J(omega) + float(theta @ (K * theta)) / 2.0


def hold_quaternion(q: Array, omega: Array, k: float, d: float) -> Array:
    """N = -k sgn(w) [x, y, z] - d Omega: returns to the upright attitude the shorter way."""
    N: Array = -k * np.copysign(1.0, q[0]) * q[1:] - d * omega
    return N


def lyapunov_quaternion_J(body: OneBody, q: Array, omega: Array, k: float) -> float:
    """The function v = T + 2 k (1 - |w|), singular nowhere.

    With `hold_quaternion` v' = -d |Omega|^2.
    """
    return body.kinetic_J(omega) + 2.0 * k * (1.0 - abs(float(q[0])))


# A body on a hinge.


@dataclass(frozen=True)
class Hinge:
    """A body on a hinge, which is at `at_m` in the body's frame."""

    body: OneBody
    mass_kg: float
    at_m: ArrayLike


@dataclass(frozen=True)
class Hinged:
    """Motion of a hinged body: Omega' (body frame), X'' and the hinge force Gamma (inertial)."""

    omega_rate: Array
    X_acceleration: Array
    Gamma: Array


def hinge_simultaneous(hinge: Hinge, A: Array, omega: Array, N: ArrayLike, F: ArrayLike) -> Hinged:
    """Differentiate the constraint X + A r = const twice and solve all equations together.

    m X'' = F + Gamma, J Omega' = f + N + r x A^T Gamma, X'' + A (Omega' x r + Omega x Omega x r)
    = 0: nine equations. r is the hinge in the body's frame, F the sum of forces at the centre of
    mass, including weight. Source: section 3, after D. A. Smith (1973).
    """
    body, r = hinge.body, np.asarray(hinge.at_m, dtype=float)
    rx, one, zero = skew(r), np.eye(3), np.zeros((3, 3))
    matrix = np.block(
        [[hinge.mass_kg * one, zero, -one], [zero, body.J, -rx @ A.T], [one, -A @ rx, zero]]
    )
    right = np.concatenate((
        np.asarray(F, dtype=float),
        np.asarray(N, dtype=float) - np.cross(omega, body.J @ omega),
        -A @ np.cross(omega, np.cross(omega, r)),
    ))  # fmt: skip
    solution = np.linalg.solve(matrix, right)
    return Hinged(solution[3:6], solution[:3], solution[6:])


def hinge_eliminated(hinge: Hinge, A: Array, omega: Array, N: ArrayLike, F: ArrayLike) -> Hinged:
    """Substitute the accelerations into the constraint: Gamma as a function of state and inputs.

    (1/m + A r^ J^-1 r^T A^T) Gamma = -(F/m + A (J^-1 (f + N) x r + Omega x (Omega x r)));
    hinged at the centre of mass (r = 0), Gamma = -F. Source: section 3, after Hemami & Wyman
    (1979).
    """
    body, mass_kg = hinge.body, hinge.mass_kg
    r, F = np.asarray(hinge.at_m, dtype=float), np.asarray(F, dtype=float)
    rx = skew(r)
    free = body.omega_rate(omega, N)
    mobility = np.eye(3) / mass_kg + A @ rx @ np.linalg.solve(body.J, rx.T @ A.T)
    drift = F / mass_kg + A @ (np.cross(free, r) + np.cross(omega, np.cross(omega, r)))
    Gamma = np.linalg.solve(mobility, -drift)
    return Hinged(free + np.linalg.solve(body.J, rx @ A.T @ Gamma), (F + Gamma) / mass_kg, Gamma)
