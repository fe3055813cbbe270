"""Student's intervals of a fit, as a user computes them from value, covariance and dof."""

import numpy as np
from scipy.stats import t as student


def half_width(fit, i):
    """Half width of the 95 % interval of value i: t_{0.975, nu} sqrt(C_ii)."""
    return student.ppf(0.975, fit.dof) * np.sqrt(fit.covariance[i, i])
