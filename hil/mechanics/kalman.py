"""Steady-state Kalman gain of a discrete model with one measured output.

    x_hat += K (y - y_hat),    K = P C^T (C P C^T + R)^-1

with P from the discrete Riccati equation and process noise on every cell's force. With a
disturbance the state has one more entry: an unknown force d that follows a random walk
(d+ = d + w) and adds to the output.

Of n states the equation takes n^3. But an output shows no more of a model than the space V of C^T,
A^T C^T, (A^T)^2 C^T, ... with A^T V = V H, which alike parts end early. Its states z = V^T x have a
model of their own, z' = H^T z + V^T B u, whose gain K gives V K: the estimate of the output is that
of the whole equation, and what the output does not show is not corrected.

Source: Anderson & Moore, Optimal Filtering, ch. 4; ch. 3.4 for the wandering disturbance; Saad,
Iterative Methods for Sparse Linear Systems, ch. 6.3 (Arnoldi's V and H, orthogonalised twice).
"""

import warnings

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from hil.errors import ModelError, one_line
from hil.mechanics.arrays import Array
from hil.mechanics.discrete import Discrete, discretise

SHOWN_MAX = 600  # states of z
ALIKE = 1e-9  # share of A^T v outside V, below which V has all of it


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


def kalman_gain_shown(
    model: tuple[sp.csr_array, sp.csr_array, Array], period_s: float, noises: tuple[float, ...]
) -> NDArray[np.float64] | None:
    """Return the gain of a large model, as `kalman_gain`; None where V does not end early.

    Parameters
    ----------
    model : A (n, n), B (n, m) of the cells' forces, and the output's row of C (n,), in continuous
        time; all states of one unit
    noises : of `kalman_gain`

    Raises
    ------
    ModelError
        No stable observer exists.
    """
    A, B, row = model
    V = row[None] / np.linalg.norm(row)
    H = np.zeros((SHOWN_MAX + 1, SHOWN_MAX))
    for k in range(SHOWN_MAX):
        along = A.T @ V[k]
        size = np.linalg.norm(along)
        for _ in range(2):
            share = V @ along
            H[: k + 1, k] += share
            along -= share @ V
        H[k + 1, k] = np.linalg.norm(along)
        if H[k + 1, k] <= ALIKE * size:
            noise = np.asarray(np.linalg.qr(B.T @ V.T, mode="r")).T  # of the covariance of V^T B u
            H = H[: k + 1, : k + 1]
            z = discretise(H.T, noise, (V @ row)[None], np.zeros((1, noise.shape[1])), period_s)
            gain = kalman_gain(z, 0, *noises)
            return np.concatenate([gain[: k + 1] @ V, gain[k + 1 :]])
        V = np.vstack([V, along / H[k + 1, k]])
    return None
