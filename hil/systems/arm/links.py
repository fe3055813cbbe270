"""Lengths, masses and inertias of an arm; fingertip position; inverse dynamics."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Vector
from hil.mechanics.one_body import checked_inertia
from hil.mechanics.recursion import Carried
from hil.mechanics.rotations import attitude, rates_to_omega, rates_to_omega_rate

Moments = tuple[float, float, float]

LINKS = ("upper_arm", "forearm", "hand")
JOINTS = ("shoulder", "elbow", "wrist")
AXES = ("roll", "pitch", "yaw")


@dataclass(frozen=True)
class Link:
    """A link along x from its joint; `com_m` is the distance of its centre of mass from it."""

    mass_kg: float
    inertia_kg_m2: Moments
    com_m: float
    length_m: float


# Table 1, as printed: moments about x, y, z.
TABLE_1 = (
    Link(2.40, (0.0080, 0.0080, 0.0010), 0.14, 0.27),
    Link(2.00, (0.0070, 0.0070, 0.0040), 0.13, 0.25),
    Link(1.20, (0.0070, 0.0070, 0.0050), 0.07, 0.16),
)
GRAVITY_M_PER_S2 = 10.0  # Table 1


@dataclass(frozen=True)
class Arm:
    """Three links on a fixed shoulder, in a frame x front, y left, z up.

    Attributes
    ----------
    long_axis : {"as_printed", "x"}, moments of inertia as Table 1 prints them, or with those about
        x and z exchanged, as they are for a link along x
    """

    links: tuple[Link, Link, Link] = TABLE_1
    gravity_m_per_s2: float = GRAVITY_M_PER_S2
    long_axis: Literal["as_printed", "x"] = "as_printed"

    def __post_init__(self) -> None:
        for name, link in zip(LINKS, self.links, strict=True):
            try:
                checked_inertia(link.inertia_kg_m2)
            except ModelError as error:
                raise ModelError(f"{name}.{error}") from None
            if link.com_m > link.length_m:
                raise ModelError(
                    f"{name}.com_m = {link.com_m:g}: beyond the link's length_m = "
                    f"{link.length_m:g}: measure it from the joint"
                )

    @property
    def inertia_kg_m2(self) -> Array:
        """Moments about x, y, z of every link, (3, 3)."""
        printed = np.array([link.inertia_kg_m2 for link in self.links])
        return printed[:, ::-1].copy() if self.long_axis == "x" else printed

    @property
    def lengths_m(self) -> Array:
        return np.array([link.length_m for link in self.links])

    @property
    def gravity(self) -> Vector:
        """Gravity vector."""
        return 0.0, 0.0, -self.gravity_m_per_s2

    def bodies(self) -> list[Carried]:
        """Return the links as a tree for `hil.mechanics.recursion`."""
        carried = []
        for i, (link, J) in enumerate(zip(self.links, self.inertia_kg_m2, strict=True)):
            below = self.links[i - 1]
            at_m = (below.length_m - below.com_m, 0.0, 0.0) if i else (0.0, 0.0, 0.0)
            carried.append(Carried(i - 1, link.mass_kg, J, (-link.com_m, 0.0, 0.0), at_m))
        return carried

    def places_m(self, theta: ArrayLike) -> Array:
        """Return elbow, wrist and fingertip, eq (14); (..., 9) angles -> (..., 3, 3)."""
        theta = np.asarray(theta, dtype=float)
        along = attitude(theta.reshape(*theta.shape[:-1], 3, 3))[..., :, 0]
        places: Array = np.cumsum(along * self.lengths_m[:, None], axis=-2)
        return places

    def pair_torques(self, theta: ArrayLike, rate: ArrayLike, acceleration: ArrayLike) -> Array:
        """Return the torques at the joints for a motion, in the frame of each joint's outer link.

        From the hand inwards, with c from a link's centre of mass to its joint and d to the next,

            Gamma_i = m (X'' - g) + Gamma_i+1
            tau_i = A (J Omega' + Omega x J Omega) - c x Gamma_i + d x Gamma_i+1 + tau_i+1

        The reaction acts on the inner link, transformed into its frame.

        Parameters
        ----------
        theta, rate, acceleration : (..., 9) Bryant angles and their derivatives

        Returns
        -------
        (..., 3, 3) : shoulder, elbow, wrist; about x, y, z of upper arm, forearm, hand
        """
        shape = np.shape(theta)[:-1]
        angle, first, second = (
            np.asarray(v, dtype=float).reshape(*shape, 3, 3) for v in (theta, rate, acceleration)
        )
        A, B_i = attitude(angle), rates_to_omega(angle)
        omega = _by(B_i, first)
        omega_rate = _by(B_i, second) + _by(rates_to_omega_rate(angle, first), first)
        alpha, spin = _by(A, omega_rate), _by(A, omega)
        along = A[..., :, 0]
        inertial = self.inertia_kg_m2 * omega_rate
        inertial = _by(A, inertial + _cross(omega, self.inertia_kg_m2 * omega))
        pull, joint = [], np.zeros((*shape, 3))
        for i, link in enumerate(self.links):
            turn = _cross(alpha[..., i, :], along[..., i, :])
            turn += _cross(spin[..., i, :], _cross(spin[..., i, :], along[..., i, :]))
            pull.append(link.mass_kg * (joint + link.com_m * turn - np.array(self.gravity)))
            joint = joint + link.length_m * turn
        tau, Gamma = np.zeros((*shape, 3)), np.zeros((*shape, 3))
        torques = np.empty((*shape, 3, 3))
        for i in (2, 1, 0):
            link, axis = self.links[i], along[..., i, :]
            beyond = _cross((link.length_m - link.com_m) * axis, Gamma)
            Gamma = Gamma + pull[i]
            tau = tau + inertial[..., i, :] + _cross(link.com_m * axis, Gamma) + beyond
            torques[..., i, :] = np.einsum("...ji,...j->...i", A[..., i, :, :], tau)
        return torques


def _by(matrix: Array, vector: Array) -> Array:
    product: Array = np.einsum("...ij,...j->...i", matrix, vector)
    return product


def _cross(a: Array, b: Array) -> Array:
    """Return the cross product; several times faster than NumPy's for few vectors."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack((y * w - z * v, z * u - x * w, x * v - y * u), axis=-1)
