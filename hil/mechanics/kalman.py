"""Steady-state Kalman gain of a discrete model with one measured output.

    x_hat += K (y - y_hat),    K = P C^T (C P C^T + R)^-1

with P from the discrete Riccati equation and process noise on every cell's force. With a
disturbance the state has one more entry: an unknown force d that follows a random walk
(d+ = d + w) and adds to the output.

Source: Anderson & Moore, Optimal Filtering, ch. 4; ch. 3.4 for the wandering disturbance.
"""

import warnings

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hil.errors import ModelError, one_line
from hil.mechanics.discrete import Discrete


def kalman_gain(
    discrete: Discrete,
    output: int,
    cell_force_noise_N: float,
    force_noise_N: float,
    disturbance_N_per_sqrt_s: float = 0.0,
) -> NDArray[np.float64]:
    """Return the gain (n,), or (n + 1,) with a disturbance, whose gain is the last element.

    Raises
    ------
    ModelError
        No stable observer exists.
    """
    Ad, C = discrete.Ad, discrete.C[output : output + 1]
    B = discrete.B0 + discrete.B1
    Q = cell_force_noise_N**2 * B @ B.T
    R = np.array([[force_noise_N**2]])
    if disturbance_N_per_sqrt_s > 0.0:
        wander = np.array([[disturbance_N_per_sqrt_s**2 * discrete.period_s]])
        Ad, Q = scipy.linalg.block_diag(Ad, 1.0), scipy.linalg.block_diag(Q, wander)
        C = np.hstack([C, [[1.0]]])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # base class of LinAlgWarning
            P = scipy.linalg.solve_discrete_are(Ad.T, C.T, Q, R)
        gain: NDArray[np.float64] = (P @ C.T / (C @ P @ C.T + R)).ravel()
        largest = float(np.abs(np.linalg.eigvals(Ad - np.outer(gain, C @ Ad))).max())
    except (np.linalg.LinAlgError, ValueError, RuntimeWarning) as error:
        raise ModelError(one_line(f"no stable observer for this model: {error}")) from None
    if not largest < 1.0:
        raise ModelError(
            f"the observer is not stable: an eigenvalue of size {largest:.6g} is not below 1"
        )
    return gain
