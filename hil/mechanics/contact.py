"""Contact of a point with a stiff plate: nonlinear spring-damper and friction.

The normal force at penetration d > 0 is f = k d (1 + alpha d'), never below zero. Unlike the force
of a linear damper it is zero at touch and at release. Friction is Coulomb friction, smoothed around
zero sliding speed::

    f_t = -mu f v_t / sqrt(v_t^2 + v_s^2)

The energy k d^2 / 2 is elastic; k alpha d d'^2 is dissipated. A mass that arrives with speed v
leaves with speed e v, whatever k and the mass (the exact integral of the law over d)::

    alpha v - log(1 + alpha v) = -alpha e v - log(1 - alpha e v)

Source: Hunt & Crossley 1975.
"""

import numpy as np

from hil.compiled import njit


@njit(cache=True)
def normal_force(d: float, d_rate: float, k_N_per_m: float, alpha_s_per_m: float) -> float:
    """Return the plate's normal force (N, >= 0) at penetration d and its rate.

    The law continues smoothly to d slightly below zero, where an integrator evaluates it while it
    locates the moment of touch.
    """
    damping = 1.0 + alpha_s_per_m * d_rate
    return k_N_per_m * d * damping if damping > 0.0 else 0.0


@njit(cache=True)
def friction_force(normal_N: float, v: float, mu: float, slip_m_per_s: float) -> float:
    """Return the friction force against sliding at v; linear in v below about `slip_m_per_s`."""
    return float(-mu * normal_N * v / np.sqrt(v * v + slip_m_per_s * slip_m_per_s))
