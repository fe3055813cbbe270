"""The best sequence of powers that is found for an array and its set point, once a run is over.

A sequence gives every cell a duty in every block. What it is judged by is

    sum_k (set point - force)_k^2    over the periods that count,

with the force of the array's own law (`hil.systems.array.model.period`, the one of the loop), not
the tabulated law of the planner, and over the whole run at once, without horizon or price.

- Between off and on: Gauss-Newton in a trust region with bounds (`scipy.optimize.least_squares`).
  Its Jacobian is the effect of every duty on the periods that follow within `reach`, by differences
  of two runs of the array from the state that it has there.
- Off or on: the rounded duties (by sums, so that no heat is lost), and the run's own sequence, each
  improved by passes over all blocks. In a block every change of a cell for 1, 2 or 4 blocks, every
  exchange of two cells, and every exchange of a block with the next one is tried; the best is kept.

The run's own sequence is among those compared, so that none is worse.

Source: Branch, Coleman & Li 1999 (trust region with bounds); Sager, Reinelt & Bock 2009 (sum-up
rounding).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import least_squares

from hil.compiled import njit, put
from hil.errors import ModelError
from hil.mechanics.arrays import Array, Indices
from hil.systems.array.model.period import period
from hil.systems.array.model.system import ArraySystem

STEP = 1e-2  # of a duty, for derivatives; the law is smooth but for the ends of its branches
STEPS_OF_DESCENT = 12
PASSES = 12
GAIN_LEAST = 2e-3  # of the cost, below which no further pass is made
LENGTHS = np.array([1, 2, 4])


class Course(NamedTuple):
    """What a sequence is judged by, and where it may change.

    Attributes
    ----------
    wanted_N : (n,) array, set point at the end of every period
    counts : (n,) array, 1 for a period that counts, else 0
    ends : (B + 1,) array, periods at which blocks begin, from 0 to n
    reach : number of periods after which the effect of a block is neglected
    live : (m,) array, cells that may be switched
    """

    wanted_N: Array
    counts: Array
    ends: Indices
    reach: int
    live: Indices

    def rms_N(self, force_N: Array) -> float:
        """RMS error over the periods that count."""
        return float(np.sqrt((self.counts * (self.wanted_N - force_N) ** 2).sum() / self._n))

    @property
    def _n(self) -> float:
        return max(1.0, float(self.counts.sum()))


class Sequence(NamedTuple):
    """A sequence and what it does.

    Attributes
    ----------
    duties : (n, N) array, power of every cell in every period
    force_N : (n,) array, at the end of every period
    cycles : mean number of full transformations of a wire, there and back; NaN without wires
    """

    duties: Array
    force_N: Array
    cycles: float


class Arrays:
    """An array that is stepped again and again from rest, and from any state in between.

    Parameters
    ----------
    new : returns the array at rest
    output : index of the force

    Raises
    ------
    ModelError
        The array has too many states for the compiled period, or driven points.
    """

    def __init__(self, new: Callable[[], ArraySystem], output: int) -> None:
        system = new()
        if not system.compiled or system.inputs:
            raise ModelError(
                "no search for the best sequence: the array has driven points, or too many states "
                "for the compiled period"
            )
        kernel = system.kernel(np.array([output]))
        self._system, self.kernel = system, (kernel, np.zeros(0), np.zeros((0, 2, 0)))
        x, _, y = kernel[3]
        now, wires = system.activation, system.wires
        loads = np.zeros(0) if system.loaded is None else system.loaded.kernel.loads.view(float)
        self.state = (x, y, now.theta, now.F_before_N, now.F_N, wires.state.reshape(-1), loads)
        self._rest = [part.copy() for part in self.state]
        self.room = tuple(part.copy() for part in self.state)
        self.has_wires = bool(now.has_wires) and not now.has_switched

    def rest(self) -> None:
        """Put the array at rest."""
        for part, at_rest in zip(self.state, self._rest, strict=True):
            part[:] = at_rest

    def run(self, duties: Array) -> Sequence:
        """Run a sequence from rest."""
        self.rest()
        force_N, turned = np.empty(len(duties)), np.zeros(len(self._system.cells))
        _run(duties, self.kernel, self._system.wires.xi, force_N, turned)
        return Sequence(duties, force_N, 0.5 * float(np.mean(turned)))


def best_sequence(arrays: Arrays, course: Course, sequence: Array, *, modulated: bool) -> Sequence:
    """The best sequence found; the run's own one if none is better.

    Parameters
    ----------
    sequence : (n, N) array, the run's own sequence
    modulated : duties may lie between off and on
    """
    candidates = [arrays.run(sequence)]
    if arrays.has_wires:
        duties = _descended(arrays, course, sequence)
        if modulated:
            candidates.append(arrays.run(duties))
        else:
            candidates.append(_improved(arrays, course, _rounded(course, duties)))
    if not modulated:
        candidates.append(_improved(arrays, course, sequence))
    return min(candidates, key=lambda one: course.rms_N(one.force_N))


def _blocks(course: Course) -> Iterator[slice]:
    for first, last in zip(course.ends[:-1], course.ends[1:], strict=True):
        yield slice(first, last)


def _descended(arrays: Arrays, course: Course, sequence: Array) -> Array:
    """The duties of least cost near those of the run, each constant in its block."""
    n_blocks, m = len(course.ends) - 1, len(course.live)
    means = [sequence[block][:, course.live].mean(axis=0) for block in _blocks(course)]
    x0 = np.array(means).reshape(-1)

    def duties(x: Array) -> Array:
        lengths = np.diff(course.ends)
        whole = np.zeros_like(sequence)
        whole[:, course.live] = np.repeat(x.reshape(n_blocks, m), lengths, axis=0)
        return whole

    def residuals(x: Array) -> Array:
        return course.counts * (arrays.run(duties(x)).force_N - course.wanted_N)

    def jacobian(x: Array) -> sp.csr_array:
        arrays.rest()
        by = np.zeros((n_blocks, m, course.reach))
        _sensitivities(duties(x), course, arrays.kernel, (arrays.state, arrays.room), by)
        rows = course.ends[:-1, None, None] + np.arange(course.reach)[None, None, :]
        columns = np.arange(n_blocks * m).reshape(n_blocks, m)[:, :, None]
        rows, columns = np.broadcast_arrays(rows, columns)
        within = rows < len(sequence)
        values = by[within] * course.counts[rows[within]]
        shape = len(sequence), len(x)
        return sp.csr_array((values, (rows[within], columns[within])), shape=shape)

    fit = least_squares(
        residuals, x0, jacobian, bounds=(0.0, 1.0), tr_solver="lsmr",
        max_nfev=STEPS_OF_DESCENT, ftol=GAIN_LEAST, xtol=1e-6, gtol=1e-12,
    )  # fmt: skip
    return duties(fit.x)


def _rounded(course: Course, duties: Array) -> Array:
    """Off or on in every block, such that sums over time stay within half a block."""
    rounded, owed = np.zeros_like(duties), np.zeros(duties.shape[1])
    for block in _blocks(course):
        owed += duties[block.start]
        on = owed >= 0.5
        rounded[block] = on
        owed -= on
    return rounded


def _improved(arrays: Arrays, course: Course, start: Array) -> Sequence:
    """The sequence after passes over all blocks, off or on in each of them."""
    now = arrays.run(start)
    for _ in range(PASSES):
        duties = now.duties.copy()
        arrays.rest()
        _improve(duties, course, arrays.kernel, (arrays.state, arrays.room), LENGTHS)
        then, cost = arrays.run(duties), course.rms_N(now.force_N) ** 2
        gain = cost - course.rms_N(then.force_N) ** 2
        if gain > 0.0:
            now = then
        if gain <= GAIN_LEAST * cost:
            break
    return now


@njit(cache=True, nogil=True)
def _put(to, of):  # type: ignore[no-untyped-def]
    for i in range(len(of)):
        put(of[i], to[i])


@njit(cache=True, nogil=True)
def _run(duties, array, xi, force_N, turned):  # type: ignore[no-untyped-def]
    """Forces after every period, and how far every wire's austenite moved in all."""
    system, still, unwritten = array
    y, before = system[3][2], xi.copy()
    for k in range(len(duties)):
        period(duties[k], still, system, unwritten)
        force_N[k] = y[0]
        for n in range(len(xi)):
            turned[n] += abs(xi[n] - before[n])
            before[n] = xi[n]


@njit(cache=True, nogil=True)
def _sensitivities(duties, course, array, states, by):  # type: ignore[no-untyped-def]
    """Derivatives (B, m, reach) of the forces after every period of a block's reach."""
    wanted, _, ends, reach, live = course
    (system, still, unwritten), (state, room) = array, states
    y, row, base = system[3][2], np.zeros(duties.shape[1]), np.zeros(reach)
    for b in range(len(ends) - 1):
        first, last = ends[b], ends[b + 1]
        stop = min(first + reach, len(wanted))
        _put(room, state)
        for k in range(first, stop):
            period(duties[k], still, system, unwritten)
            base[k - first] = y[0]
        for i in range(len(live)):
            _put(state, room)
            step = STEP if duties[first, live[i]] < 0.5 else -STEP
            for k in range(first, stop):
                put(duties[k], row)
                if k < last:
                    row[live[i]] += step
                period(row, still, system, unwritten)
                by[b, i, k - first] = (y[0] - base[k - first]) / step
        _put(state, room)
        for k in range(first, last):
            period(duties[k], still, system, unwritten)


@njit(cache=True, nogil=True)
def _cost(duties, course, span, array, most):  # type: ignore[no-untyped-def]
    """Cost of these periods, as far as it takes to exceed `most`."""
    wanted, counts, _, _, _ = course
    system, still, unwritten = array
    y, cost = system[3][2], 0.0
    for k in range(span[0], span[1]):
        period(duties[k], still, system, unwritten)
        cost += counts[k] * (wanted[k] - y[0]) ** 2
        if cost >= most:
            break
    return cost


@njit(cache=True, nogil=True)
def _change(duties, course, b, move):  # type: ignore[no-untyped-def]
    """Write a change that begins with block b; see `_improve`."""
    ends, live = course[2], course[4]
    kind, i, j, to = move
    last = len(ends) - 1
    if kind == 0:  # cell i for j blocks
        duties[ends[b] : ends[min(b + j, last)], live[i]] = to
    elif kind == 1:  # cells i and j
        duties[ends[b] : ends[b + 1], live[i]] = to
        duties[ends[b] : ends[b + 1], live[j]] = 1.0 - to
    elif b + 2 <= last:  # cell i in this block and in the next one
        duties[ends[b] : ends[b + 1], live[i]] = to
        duties[ends[b + 1] : ends[b + 2], live[i]] = 1.0 - to


@njit(cache=True, nogil=True)
def _improve(duties, course, array, states, lengths):  # type: ignore[no-untyped-def]
    """Improve a sequence, block by block, by the best of all changes that begin with it."""
    wanted, _, ends, reach, live = course
    (system, still, unwritten), (state, room) = array, states
    m = len(live)
    for b in range(len(ends) - 1):
        first = ends[b]
        span = first, min(first + reach, len(wanted))
        _put(room, state)
        best = _cost(duties, course, span, array, np.inf)
        changed = duties[first : ends[min(b + lengths.max(), len(ends) - 1)]]
        kept = changed.copy()
        taken = kept
        for i in range(m):
            for to in (0.0, 1.0):
                for which in range(len(lengths) + m + 1):
                    if which < len(lengths):
                        move = 0, i, lengths[which], to
                    elif which < len(lengths) + m:
                        move = 1, i, which - len(lengths), to
                        if move[2] == i:
                            continue
                    else:
                        move = 2, i, 0, to
                    _change(duties, course, b, move)
                    _put(state, room)
                    cost = _cost(duties, course, span, array, best)
                    if cost < best * (1.0 - 1e-9):
                        best, taken = cost, changed.copy()
                    put(kept, changed)
        put(taken, changed)
        _put(state, room)
        for k in range(first, ends[b + 1]):
            period(duties[k], still, system, unwritten)
