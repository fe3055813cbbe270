"""Outputs of a soft tree's motion: positions, element torques, energies."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.systems.soft import outside
from hil.systems.soft.kernel import kinematics
from hil.systems.soft.parts import REST, REST_RATE, C, K, carve
from hil.systems.soft.stepper import History, SoftStepper
from hil.systems.soft.tree import Place

_FIRST = np.zeros(1, dtype=np.int64)


def trace_m(stepper: SoftStepper, place: Place, q: Array) -> Array:
    """Return the position of a place for joint positions q (k, N): (k, 3)."""
    x = np.empty((len(q), 3))
    _trace(stepper.ints, stepper.floats, np.ascontiguousarray(q), np.array([place.body]),
           np.array([place.at_m], dtype=float), x)  # fmt: skip
    return x


class Bodies(NamedTuple):
    """Mass (B,), centre (B, 3) and inertia (B, 3, 3) of every body, in its frame."""

    mass_kg: Array
    centre_m: Array
    inertia: Array


@dataclass(frozen=True)
class Energies:
    """Energies of a history, one value per step, J; work and loss count from its start.

    Attributes
    ----------
    kinetic, potential, stored : (k+1,) arrays, kinetic, gravitational, and elastic energy
    work, dissipated : (k+1,) arrays
        Work of drives, loads, tendons and ground; loss in the elements' dampers.
    """

    kinetic: Array
    potential: Array
    stored: Array
    work: Array
    dissipated: Array

    @property
    def balance(self) -> Array:
        """Work minus loss minus rise of energy; zero except for integration errors."""
        energy = self.kinetic + self.potential + self.stored
        return np.asarray(self.work - self.dissipated - (energy - energy[0]))


def energies(stepper: SoftStepper, history: History, u: Array) -> Energies:
    """Return the energies of a history of `stepper` with the inputs u (k+1, m), initial ones first.

    A drive's power is torque x q' - (k (q - q0) + c (q' - q0')) q0': moving q0 does work.
    """
    tree, p, h = stepper.tree, stepper.parts, history
    driven = u[:, : 3 * len(tree.drives)].reshape(len(u), -1, 3)
    at = list(tree.drives)
    rest = np.broadcast_to([body.rest for body in tree.bodies], h.q.shape).copy()
    rest_rate = np.zeros_like(rest)
    rest[:, at], rest_rate[:, at] = driven[:, :, 0], driven[:, :, 1]
    k, c = p.joints[K], p.joints[C]
    stretch, slip = h.q - rest, h.v - rest_rate
    stored = 0.5 * (k * stretch**2).sum(axis=1)
    loss = (c * slip**2).sum(axis=1)
    pairs = [pair for body in tree.bodies if body.element for pair in body.element.branches]
    for b, (kM, tau_s) in enumerate(pairs):
        stored = stored + 0.5 * h.R[:, b] ** 2 / kM
        loss = loss + h.R[:, b] ** 2 / (kM * tau_s)
    motor = k[at] * stretch[:, at] + c[at] * slip[:, at]
    power = (driven[:, :, 2] * h.v[:, at] - motor * rest_rate[:, at]).sum(axis=1)
    moving = np.empty((len(u), 3))
    bodies = Bodies(
        mass_kg=np.array([body.mass_kg for body in tree.bodies]),
        centre_m=np.array([body.centre_m for body in tree.bodies], dtype=float),
        inertia=np.array([body.inertia for body in tree.bodies]),
    )
    _moving((stepper.ints, stepper.floats), (h.q, h.v, u), bodies, moving)
    step_s = float(h.t_s[1] - h.t_s[0])
    return Energies(
        kinetic=moving[:, 0],
        potential=moving[:, 1],
        stored=stored,
        work=_integral(power + moving[:, 2], step_s),
        dissipated=_integral(loss, step_s),
    )


def torques_N_m(stepper: SoftStepper, history: History) -> Array:
    """Return the torque of every joint's element, (k+1, N), with drives at their current rest."""
    p = stepper.parts
    torque = p.joints[K] * (history.q - p.joints[REST])
    torque += p.joints[C] * (history.v - p.joints[REST_RATE])
    np.add.at(torque.T, p.branch_joint, history.R.T)
    return np.asarray(torque)


def _integral(power_W: Array, step_s: float) -> Array:
    total = scipy.integrate.cumulative_simpson(power_W, dx=step_s, initial=0.0)
    return np.asarray(total, dtype=float)


@njit(cache=True, error_model="numpy")
def _trace(ints, floats, q, body, at, out):  # type: ignore[no-untyped-def]
    p = carve(ints, floats)
    v, x_dot = np.zeros(q.shape[1]), np.zeros((1, 3))
    for k in range(len(q)):
        kinematics(p, q[k], v)
        outside.locate(p.pose if p.is_planar else p.w, body, at, out[k : k + 1], x_dot)


@njit(cache=True, error_model="numpy")
def _moving(parts, motion, bodies, out):  # type: ignore[no-untyped-def]
    """Compute kinetic and gravitational energy, and the power of external forces."""
    p = carve(*parts)
    q, v, u = motion
    mass, centre, inertia = bodies.mass_kg, bodies.centre_m, bodies.inertia
    turned, x, x_dot = np.empty(3), np.empty((1, 3)), np.empty((1, 3))
    for k in range(len(q)):
        kinematics(p, q[k], v[k])
        pose = p.pose if p.is_planar else p.w
        outside.forces(p, pose, u[k])
        kinetic, potential, power = 0.0, 0.0, 0.0
        for i in range(len(mass)):
            outside.locate(pose[i : i + 1], _FIRST, centre[i : i + 1], x, x_dot)
            for a in range(3):  # omega in the body's frame
                turned[a] = (
                    pose[i, a] * pose[i, 12] + pose[i, 3 + a] * pose[i, 13]
                    + pose[i, 6 + a] * pose[i, 14]
                )  # fmt: skip
            for a in range(3):
                kinetic += 0.5 * mass[i] * x_dot[0, a] ** 2
                potential -= mass[i] * p.gravity[a] * x[0, a]
                for b in range(3):
                    kinetic += 0.5 * turned[a] * inertia[i, a, b] * turned[b]
                power += p.wrench[i, a] * pose[i, 12 + a] + p.wrench[i, 3 + a] * pose[i, 15 + a]
        out[k, 0], out[k, 1], out[k, 2] = kinetic, potential, power
