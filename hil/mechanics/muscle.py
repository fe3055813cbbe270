"""A muscle with alpha and gamma inputs, which only pulls: the law of an arm's and a body's tendons.

Source: Hemami & Hemami, section 5; the spindle's law: Hemami & Stokes 1983 [linear form assumed].
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hil.mechanics.arrays import Array


@dataclass(frozen=True)
class Muscle:
    """A muscle: maximum force (alpha), stiffness of its spindles (gamma), viscosity."""

    force_max_N: float
    stiffness_N_per_m: float = 0.0
    viscosity_N_s_per_m: float = 0.0

    def tension_N(
        self, alpha: ArrayLike, gamma_m: ArrayLike, elongation_m: ArrayLike,
        elongation_rate_m_per_s: ArrayLike,
    ) -> Array:  # fmt: skip
        """T = [F alpha + k (dl - gamma) + b dl']_+, never below zero."""
        pull = self.force_max_N * np.asarray(alpha, dtype=float)
        pull = pull + self.stiffness_N_per_m * np.subtract(elongation_m, gamma_m)
        pull = pull + self.viscosity_N_s_per_m * np.asarray(elongation_rate_m_per_s, dtype=float)
        tension: Array = np.maximum(pull, 0.0)
        return tension
