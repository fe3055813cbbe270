"""Exact discretisation of x' = A x + B u, y = C x + D u, and its compiled step."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from hil.compiled import njit, put
from hil.errors import ModelError
from hil.mechanics.arrays import Array

# Ad, B0, B1, C, D of a discrete model, their columns as rows: a step adds them up by vectors.
Columns = tuple[Array, Array, Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Discrete:
    """Discrete model x1 = Ad x0 + B0 u0 + B1 u1, exact for u linear between u0 and u1.

    A constant input has u0 = u1; the step is exact for it too.
    """

    Ad: Array
    B0: Array
    B1: Array
    C: Array
    D: Array
    period_s: float

    @cached_property
    def columns(self) -> Columns:
        """The matrices as `advanced` takes them."""
        return self.columns_of(slice(None))

    def columns_of(self, outputs: slice | NDArray[np.int64]) -> Columns:
        """The matrices as `advanced` takes them, with these outputs only."""
        Ad, B0, B1 = self.Ad.T.copy(), self.B0.T.copy(), self.B1.T.copy()
        return Ad, B0, B1, self.C[outputs].T.copy(), self.D[outputs].T.copy()


def discretise(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, period_s: float) -> Discrete:
    """Discretise with one matrix exponential.

    exp([[A, B, 0], [0, 0, I/h], [0, 0, 0]] h) contains Ad, the integral of a constant input,
    and the integral of an input that is a unit ramp over h.

    Parameters
    ----------
    A, B, C, D : (n, n), (n, m), (p, n), (p, m) arrays
    period_s : above zero

    Raises
    ------
    ModelError
        The exponential overflows.

    Notes
    -----
    Source: Van Loan 1978; Franklin, Powell & Workman, first-order hold.
    """
    a, b = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    n, m = b.shape
    big = np.zeros((n + 2 * m, n + 2 * m))
    big[:n, :n] = a * period_s
    big[:n, n : n + m] = b * period_s
    big[n : n + m, n + m :] = np.eye(m)
    with np.errstate(over="ignore", invalid="ignore"):
        e = scipy.linalg.expm(big)
    if not np.isfinite(e).all():
        raise ModelError(
            "its states cannot be calculated over a period: a mass or spring is many orders off: "
            "give masses in kg and springs in N/m"
        )
    held, ramp = e[:n, n : n + m], e[:n, n + m :]
    return Discrete(
        Ad=np.ascontiguousarray(e[:n, :n]),
        B0=held - ramp,
        B1=np.ascontiguousarray(ramp),
        C=np.ascontiguousarray(C, dtype=float),
        D=np.ascontiguousarray(D, dtype=float),
        period_s=period_s,
    )


class LinearStepper:
    """A discrete model with its state.

    Attributes
    ----------
    x : (n,) array, current state
    y : (p,) array, current outputs, with the input of the last step
    """

    def __init__(self, discrete: Discrete, x0: ArrayLike, u0: ArrayLike) -> None:
        self.discrete, self._columns = discrete, discrete.columns
        self.x = np.array(x0, dtype=float)
        self.y: Array = discrete.C @ self.x + discrete.D @ np.asarray(u0, dtype=float)
        self._next = np.empty_like(self.x)

    def becomes(self, discrete: Discrete) -> None:
        """Go on from the present state as another model with the same states."""
        self.discrete, self._columns = discrete, discrete.columns

    def step(self, u0: Array, u1: Array) -> None:
        """Advance one period with the input linear from u0 to u1."""
        advanced(self._columns, self.x, self._next, u0, u1, self.y)

    def follow(self, path: Array) -> None:
        """Advance by k periods, (k, 2, m): the input is linear from the first to the second."""
        _follow(self._columns, (self.x, self._next), path, self.y)

    def run(self, u: Array) -> Array:
        """Return outputs (k, p) after each of k periods, with inputs u (k, m) held constant."""
        y = np.empty((len(u), len(self.y)))
        _run(self._columns, (self.x, self._next), u, self.y, y)
        return y

    def correct(self, gain: Array, output: int, error: float, u1: Array) -> None:
        """Add gain x error to the state and update that output."""
        d = self.discrete
        self.y[output] = corrected((d.C, d.D), output, gain, error, self.x, u1)


@njit(cache=True)
def advanced(columns, x, x_next, u0, u1, y):  # type: ignore[no-untyped-def]
    """Advance state x and outputs y by one period, given `Columns`; x_next is scratch."""
    Ad, B0, B1, C, D = columns
    x_next[:] = 0.0
    for j in range(len(x)):
        for i in range(len(x_next)):
            x_next[i] += Ad[j, i] * x[j]
    for j in range(len(u0)):
        for i in range(len(x_next)):
            x_next[i] += B0[j, i] * u0[j] + B1[j, i] * u1[j]
    put(x_next, x)
    y[:] = 0.0
    for j in range(len(x)):
        for i in range(len(y)):
            y[i] += C[j, i] * x[j]
    for j in range(len(u1)):
        for i in range(len(y)):
            y[i] += D[j, i] * u1[j]


@njit(cache=True)
def corrected(rows, output, gain, error, x, u1):  # type: ignore[no-untyped-def]
    """Add gain x error to the state x and return that output, given the rows (C, D)."""
    C, D = rows
    total = 0.0
    for i in range(len(x)):
        x[i] += gain[i] * error
        total += C[output, i] * x[i]
    for j in range(len(u1)):
        total += D[output, j] * u1[j]
    return total


@njit(cache=True)
def _run(columns, states, u, y, ys):  # type: ignore[no-untyped-def]
    x, x_next = states
    for k in range(len(u)):
        advanced(columns, x, x_next, u[k], u[k], y)
        ys[k] = y


@njit(cache=True)
def _follow(columns, states, path, y):  # type: ignore[no-untyped-def]
    x, x_next = states
    for k in range(len(path)):
        advanced(columns, x, x_next, path[k, 0], path[k, 1], y)
