"""Noise that grows with the force: variance sigma_0^2 + (k F)^2.

sigma_0 is that at rest. k comes from third differences of the residual,

    d_k = (w_k - 3 w_(k-1) + 3 w_(k-2) - w_(k-3)) / sqrt(20),

which keep the variance of white noise and suppress what a model lacks, since that is slow: 2 % are
left of 70 Hz, read at 1 kHz. Readings just after a cell switches are left out. Then

    E[d^2] = E[d_rest^2] (1 + g F^2),     g = (k / sigma_0)^2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.identification.noise import Noise
from hil.mechanics.arrays import Array

ORDER = 3
SQUARES = 20.0  # sum of the squares of the coefficients 1, -3, 3, -1
# Variance of the mean of d^2 over that of independent squares: the differences are correlated by
# 15/20, 6/20 and 1/20.
CORRELATED = 1.0 + 2.0 * (0.75**2 + 0.3**2 + 0.05**2)
QUIET_MIN = 200


@dataclass(frozen=True)
class Growth:
    """Growth of the noise with the force.

    Attributes
    ----------
    per_N2 : g, increase of the variance over that at rest, per newton squared
    variance : of g
    """

    per_N2: float = 0.0
    variance: float = 0.0

    def scale(self, force_N: Array) -> Array:
        """Standard deviation of the noise at this force over that at rest."""
        return np.asarray(np.sqrt(1.0 + self.per_N2 * force_N**2))

    def level_variance(self, force_N: Array) -> float:
        """Relative variance of the mean noise variance that the error of g causes."""
        share = float(np.mean(force_N**2 / (1.0 + self.per_N2 * force_N**2)))
        return share**2 * self.variance


def growth_of(
    white_N: Sequence[Array],
    force_N: Sequence[Array],
    quiet: Sequence[NDArray[np.bool_]],
    noise: Noise,
) -> Growth:
    """Growth of the noise in whitened residuals.

    Parameters
    ----------
    white_N, force_N, quiet : of every run: residuals, the force beyond that at rest, and which of
        the readings are not just after a switching
    noise : of the channel, from its rest or as stated
    """
    if not np.isfinite(noise.rms_N):
        return Growth()
    d2 = np.concatenate([_squares(w)[q[ORDER:]] for w, q in zip(white_N, quiet, strict=True)])
    f2 = np.concatenate([f[ORDER:][q[ORDER:]] ** 2 for f, q in zip(force_N, quiet, strict=True)])
    level, level_variance = noise.rms_N**2, 0.0
    if noise.rest_white_N:
        at_rest = np.concatenate([_squares(w) for w in noise.rest_white_N])
        level, level_variance = float(at_rest.mean()), 2.0 * CORRELATED / len(at_rest)
    f4 = float(f2 @ f2)
    if len(d2) < QUIET_MIN or f4 <= 0.0:
        return Growth()
    g = max(0.0, float(f2 @ (d2 / level - 1.0)) / f4)
    grown = 1.0 + g * f2
    variance = 2.0 * CORRELATED * float(f2**2 @ grown**2) / f4**2
    of_level = (float(f2 @ grown) / f4) ** 2 * level_variance
    return Growth(g, variance + of_level)


def _squares(white_N: Array) -> Array:
    return np.asarray(np.diff(white_N, ORDER) ** 2 / SQUARES)
