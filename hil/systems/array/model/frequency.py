"""Frequency response of an array, from the share of its cells that are on to its forces.

The input s drives every cell with F_n = s F_on,n, as `hil test bode` does; an output is the force
at the right end of an array. With b = B F_on and c, d of that output::

    G(f) = c (j w I - A)^-1 b + d,   w = 2 pi f

The zeros are the finite generalised eigenvalues of [[A, b], [c, d]] over diag(I, 0). A mode that
the common input cannot move, or that the force does not show, is a pole and a zero at one place.

Source: Emami-Naeini & Van Dooren 1982, "Computation of zeros of linear multivariable systems".
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from hil.mechanics.arrays import Array
from hil.systems.array.model.analysis import Pole, check_order, grouped
from hil.systems.array.model.cell_array import CellArray

POINTS = 600
FINITE = 1e8  # a zero beyond this multiple of the fastest pole is at infinity


@dataclass(frozen=True)
class SignalPath:
    """One input and one output of a model."""

    A: Array
    b: Array
    c: Array
    d: float

    def gain(self, frequency_Hz: Array) -> "np.typing.NDArray[np.complex128]":
        """Return G at these frequencies, (n,)."""
        identity = np.eye(len(self.A))
        gains = [
            self.c @ np.linalg.solve(2j * np.pi * f * identity - self.A, self.b) + self.d
            for f in frequency_Hz
        ]
        return np.array(gains, dtype=np.complex128)

    def zeros(self) -> list[Pole]:
        """Return the zeros from slow to fast, equal ones counted."""
        n = len(self.A)
        whole = np.block([[self.A, self.b[:, None]], [self.c[None], np.array([[self.d]])]])
        unit = np.diag([*np.ones(n), 0.0])
        alpha, beta = scipy.linalg.eigvals(whole, unit, homogeneous_eigvals=True)
        largest = np.abs(np.linalg.eigvals(self.A)).max(initial=1.0)
        finite = np.abs(alpha) < FINITE * largest * np.abs(beta)
        return grouped(alpha[finite] / beta[finite])


def path(model: CellArray, force_on_N: Array, output: str) -> SignalPath:
    """Return the path from the share of cells that are on to an output.

    Raises
    ------
    ModelError
        The model is too large for dense matrices.
    """
    check_order(model, "the frequency response")
    at, n = model.outputs.index(output), model.n_cells
    return SignalPath(
        model.A, model.B[:, :n] @ force_on_N, model.C[at], float(model.D[at, :n] @ force_on_N)
    )


def intact(model: CellArray) -> CellArray:
    """Return the same arrays without dead and broken cells."""
    arrays = {
        name: replace(array, dead=frozenset(), broken=frozenset())
        for name, array in model.arrays.items()
    }
    return CellArray(model.points, arrays)


def frequencies_Hz(model: CellArray) -> Array:
    """Return frequencies from a tenth of the slowest pole to three times the fastest that rings."""
    values = np.linalg.eigvals(model.A)
    speeds = np.abs(values[np.abs(values) > 1e-9 * np.abs(values).max(initial=1.0)]) / (2.0 * np.pi)
    rings = speeds if len(speeds) else np.ones(1)
    return np.geomspace(0.1 * rings.min(), 3.0 * rings.max(), POINTS)
