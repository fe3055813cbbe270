"""Contact of a point with a stiff plate: a nonlinear spring-damper, and friction.

Normal force f = k d (1 + alpha d') at penetration d > 0, never pulling; it is zero at touch and at
release, unlike a linear damper's. Friction is Coulomb's, smoothed around zero sliding speed::

    f_t = -mu f v_t / sqrt(v_t^2 + v_s^2)

The spring's energy k d^2 / 2 is given back, k alpha d d'^2 is lost. A mass that arrives at v
leaves at e v, whatever k and the mass (the law's exact integral over d)::

    alpha v - log(1 + alpha v) = -alpha e v - log(1 - alpha e v)

Source: Hunt & Crossley 1975.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def normal_force(d: float, d_rate: float, k_N_per_m: float, alpha_s_per_m: float) -> float:
    """The plate's push at penetration d and its rate, at or above zero.

    For d slightly below zero, where an integrator looks while it finds the moment of touch, the
    law goes on smoothly.
    """
    damping = 1.0 + alpha_s_per_m * d_rate
    return k_N_per_m * d * damping if damping > 0.0 else 0.0


@njit(cache=True)
def friction_force(normal_N: float, v: float, mu: float, slip_m_per_s: float) -> float:
    """Against sliding at v; linear in v below about the speed `slip_m_per_s`."""
    return float(-mu * normal_N * v / np.sqrt(v * v + slip_m_per_s * slip_m_per_s))
