"""The first-order low-pass of a conditioner, sampled once a period.

Exact for a signal x that is linear between its samples. With the time constant
tau = 1 / (2 pi bandwidth), tau y' + y = x:

    y_k - x_k = keep (y_(k-1) - x_(k-1)) - lag (x_k - x_(k-1))
    keep = exp(-period / tau),    lag = (1 - keep) tau / period

so that y follows a ramp by tau late. A tau below a twentieth of the period is neglected.
"""

from math import expm1, pi

LEAST_PERIODS = 0.05


def low_pass(bandwidth_Hz: float, period_s: float) -> tuple[float, float]:
    """Return keep and lag; without a filter (infinite bandwidth) both are 0."""
    per_tau = 2.0 * pi * bandwidth_Hz * period_s
    if per_tau * LEAST_PERIODS > 1.0:
        return 0.0, 0.0
    left = -expm1(-per_tau)
    return 1.0 - left, left / per_tau
