"""Muscles with alpha and gamma inputs, pairs, and paths over several joints; muscles only pull.

A muscle of elongation dl (m, of its path, relative to zero angles) pulls with

    T = [F alpha + k (dl - gamma) + b dl']_+

alpha drives it directly. gamma is the reference elongation of its spindles, above which the muscle
pulls against the stretch. b is its linear viscosity. By virtual work, dW = -T dl, a tension
applies the generalised torques -(dl/dTheta) T to the angles: its moment arm about an angle is
-dl/dTheta, positive if the muscle raises the angle.

Two muscles with arms +-r form a pair. The difference of their tensions gives the torque; their
common tension is co-activation, which lets viscosity and reflex act in both directions. While
neither is slack, the torque of a pair is exactly

    tau = r F (a+ - a-) + 2 r^2 k (theta_gamma - theta) - 2 r^2 b theta'

"Co-activation amounts to position and velocity feedback" (section 4).

Source: Hemami & Hemami, section 5, Fig. 6; viscosity 0.2 of the gain, appendix B. The spindle's
law: Hemami & Stokes 1983 [linear form assumed here].
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hil.errors import ModelError
from hil.mechanics.arrays import Array


@dataclass(frozen=True)
class Cap:
    """A cap of this radius around which a tendon wraps with an angle, or a difference of two.

    Attributes
    ----------
    angle, minus : int
        Indices of the angles; r1 theta_1 is Cap(r1, 0), r2 (theta_2 - theta_1) is Cap(r2, 1, 0).
    radius_m : negative if the tendon runs on the other side
    """

    radius_m: float
    angle: int
    minus: int | None = None


@dataclass(frozen=True)
class Path:
    """Path of a tendon over caps, dl = r1 theta_1 + r2 (theta_2 - theta_1) + dl3 (Fig. 6).

    Attributes
    ----------
    further : function, optional, dl3 (m) and its gradient (m/rad, n_angles) for all angles
    """

    n_angles: int
    caps: tuple[Cap, ...]
    further: Callable[[Array], tuple[float, Array]] | None = None

    def __post_init__(self) -> None:
        for cap in self.caps:
            for which in (cap.angle, cap.minus):
                if which is not None and not 0 <= which < self.n_angles:
                    raise ModelError(
                        f"caps: there is no angle {which}: they are 0 to {self.n_angles - 1}"
                    )

    def slope(self) -> Array:
        """Return the contribution of the caps to dl/dTheta, m/rad."""
        slope = np.zeros(self.n_angles)
        for cap in self.caps:
            slope[cap.angle] += cap.radius_m
            if cap.minus is not None:
                slope[cap.minus] -= cap.radius_m
        return slope

    def elongation_m(self, theta: ArrayLike) -> float:
        """Return the elongation dl of the path relative to zero angles."""
        angles = np.asarray(theta, dtype=float)
        beyond = self.further(angles)[0] if self.further else 0.0
        return float(self.slope() @ angles) + beyond

    def arms_m(self, theta: ArrayLike) -> Array:
        """Return the moment arms -dl/dTheta: torque on each angle per newton of tension."""
        angles = np.asarray(theta, dtype=float)
        beyond = self.further(angles)[1] if self.further else 0.0
        arms: Array = -(self.slope() + beyond)
        return arms


def pair_torque(
    plus: ArrayLike, minus: ArrayLike, spin: ArrayLike, torque_max: ArrayLike, viscosity: ArrayLike
) -> Array:
    """Return the torque of a pair, N m; each muscle contributes half of the viscosity.

    tau = [t a+ - b w / 2]_+ - [t a- + b w / 2]_+, which is t (a+ - a-) - b w while neither is
    slack. This requires a co-activation of b |w| / (2 t).

    Parameters
    ----------
    plus, minus : activations, 0 to 1
    spin : angular velocity w about the axis of the pair, rad/s
    torque_max, viscosity : t in N m, b in N m s
    """
    half = 0.5 * np.asarray(viscosity, dtype=float) * np.asarray(spin, dtype=float)
    t = np.asarray(torque_max, dtype=float)
    up = np.maximum(t * np.asarray(plus, dtype=float) - half, 0.0)
    torque: Array = up - np.maximum(t * np.asarray(minus, dtype=float) + half, 0.0)
    return torque


def generalised_torques(paths: Sequence[Path], tensions_N: ArrayLike, theta: ArrayLike) -> Array:
    """Return the sum of -(dl/dTheta) T over muscles, N m on every angle."""
    arms = np.array([path.arms_m(theta) for path in paths])
    torques: Array = np.asarray(tensions_N, dtype=float) @ arms
    return torques
