"""Balanced reduction of an array's model, with a bound on its error.

Gramians:  A P + P A^T + B B^T = 0,   A^T Q + Q A + C^T C = 0.
With P = L L^T, Q = R R^T and the singular value decomposition R^T L = U S V^T, the states
T = L V S^{-1/2} are equally reachable and observable; S holds the Hankel singular values. With the
first k states kept, the error of any frequency response is at most 2 sum_{i>k} s_i.

Source: Moore 1981; Glover 1984, theorem 9.6 (bound); Laub et al. 1987 (square-root method).
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.array.model.analysis import check_order
from hil.systems.array.model.cell_array import CellArray


@dataclass(frozen=True)
class Reduced:
    """Reduced model x' = A x + B u, y = C x + D u.

    Attributes
    ----------
    hankel_singular_values : (n,) array
        Of the full model, descending; values below 1e-14 of the first are rounding errors.
    error_bound : upper bound of the gain error at any frequency, in units of y per unit of u
    """

    A: Array
    B: Array
    C: Array
    D: Array
    hankel_singular_values: Array
    error_bound: float


def reduce(model: CellArray, order: int, outputs: list[str] | None = None) -> Reduced:
    """Keep the `order` states that contribute most from the inputs to these outputs.

    Parameters
    ----------
    outputs : names of the model's outputs, default all. Forces in N and positions in m differ
        by orders of magnitude, so list only the outputs that matter.

    Raises
    ------
    ModelError
        The model is unstable or too large, the order is not 1..n, or an output is unknown.
    """
    check_order(model, "reducing the model")
    n = len(model.states)
    if not 1 <= order <= n:
        raise ModelError(f"order {order}: choose 1 to {n}")
    unknown = [name for name in outputs or [] if name not in model.outputs]
    if unknown:
        raise ModelError(f"'{unknown[0]}' is not an output of this model")
    rows = [model.outputs.index(name) for name in outputs or model.outputs]
    A, B, C, D = model.A, model.B, model.C[rows], model.D[rows]
    poles = np.linalg.eigvals(A)
    if poles.real.max() >= -1e-9 * np.abs(poles).max():
        raise ModelError("the model is not stable: it has no Gramians")
    L = _factor(scipy.linalg.solve_continuous_lyapunov(A, -B @ B.T))
    R = _factor(scipy.linalg.solve_continuous_lyapunov(A.T, -C.T @ C))
    U, s, Vt = np.linalg.svd(R.T @ L)
    kept = s[:order]
    if kept[-1] <= 1e-14 * s[0]:
        raise ModelError(
            f"order {order}: its last states are rounding errors; "
            f"choose {int(np.sum(s > 1e-14 * s[0]))} at most"
        )
    to_full = L @ Vt[:order].T / np.sqrt(kept)
    to_reduced = (U[:, :order] / np.sqrt(kept)).T @ R.T
    return Reduced(
        to_reduced @ A @ to_full, to_reduced @ B, C @ to_full, D, s, float(2.0 * s[order:].sum())
    )


def _factor(gramian: Array) -> Array:
    """Return L with L L^T = gramian; negative eigenvalues are rounding errors, set to zero."""
    values, vectors = np.linalg.eigh((gramian + gramian.T) / 2.0)
    factor: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return factor
