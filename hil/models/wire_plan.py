"""Plans for cells that heat and cool: every cell's switches over the next seconds, cell by cell.

Cells that are wires do not add up block by block: what a switch brings depends on how hot the wire
is. Each is therefore predicted with its own law (`hil.models.sma_wire`) and lag,

    f(t) = sum_n s_n (c_n xi_n + (1 - c_n) z_n) + d,    z_n' = r_n (xi_n - z_n),

and the plan minimises over M blocks, sampled at their ends,

    sum_j (set point - f)_j^2 + price x (number of switches)

by coordinate descent: one cell after the other gets the best sequence of at most two switches,
all others as they are; of all pairs of switching times those are followed whose error so far is
below the best one's. A cell that was switched stays so for its smallest on or off time. The search
starts from the last plan carried on, so that cutting it off leaves a plan.

Source: Tseng 2001 (convergence of block coordinate descent); Camacho & Bordons 2007, ch. 2
(receding horizon).
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.models.sma_wire import advance
from hil.models.wire_cells import WireModel

Matrix = NDArray[np.float64]
Mask = NDArray[np.uint8]


class WirePlanner:
    """The search; see the module.

    Parameters
    ----------
    block_s : float
        Between times at which cells may be switched.
    n_blocks : int
        Looked ahead.
    price_N2 : float
        Of a switch.
    on_blocks, off_blocks : int
        For how many blocks at least a cell stays on, and off.

    Attributes
    ----------
    plan : (N, M) array
        On or off in every block.
    n_looked_at : int
        Steps of a cell predicted for the last problem.
    """

    def __init__(
        self,
        model: WireModel,
        block_s: float,
        n_blocks: int,
        price_N2: float,
        on_blocks: int,
        off_blocks: int,
    ) -> None:
        n_cells = len(model.shares_N)
        self._model = model
        self._block_s = block_s
        self._price = price_N2
        self._least = np.array([off_blocks, on_blocks], dtype=np.int64)
        self._lag = _lag_weights(model.rate_per_s, block_s)
        self.plan = np.zeros((n_cells, n_blocks), dtype=np.uint8)
        self._state = np.zeros((n_cells, 3))
        self._on = np.zeros(n_cells, dtype=np.uint8)
        self._locked = np.zeros(n_cells, dtype=np.int64)
        self._usable = np.ones(n_cells, dtype=np.uint8)
        self._y = np.zeros((n_cells, n_blocks))
        self._error = np.zeros(n_blocks)
        self._work = np.zeros((2, n_blocks + 1, 4))
        self._rest = np.zeros(n_blocks)
        self._next = 0
        self._since_better = 0
        self.n_looked_at = 0

    @property
    def finished(self) -> bool:
        """No cell's sequence alone can be made better."""
        return self._since_better >= len(self.plan)

    @property
    def error_N(self) -> Matrix:
        """Set point less force at every block's end, by the plan."""
        return self._error

    def pose(self, state: Matrix, on: Mask, locked: NDArray[np.int64], usable: Mask,
             wanted_N: Matrix) -> None:  # fmt: skip
        """Take a new problem; the plan, carried on by a block, is where it starts.

        Parameters
        ----------
        state : (N, 3) array
            Temperature (degC), austenite and lag of every cell when the first block begins.
        on : (N,) array
            Just before it.
        locked : (N,) array
            Blocks for which each cell must stay as it is.
        wanted_N : (M,) array
            Set point less the unknown force, at every block's end.
        """
        self._state[:], self._on[:] = state, on
        self._locked[:], self._usable[:] = locked, usable
        m = self._model
        _pose(
            m.laws, m.shares_N, m.direct, self._lag, self._block_s, self._state, self._on,
            self._locked, self._usable, wanted_N, self.plan, self._y, self._error,
        )  # fmt: skip
        self._since_better = 0
        self.n_looked_at = 0

    def search(self, n_steps: int) -> None:
        """Go on, cell after cell, until about this many steps of a cell have been predicted."""
        m, done = self._model, 0
        while done < n_steps and not self.finished:
            n = self._next
            self._next = (n + 1) % len(self.plan)
            self._since_better += 1
            if not self._usable[n] or m.shares_N[n] == 0.0:
                continue
            steps, better = _improve(
                m.laws[n], m.shares_N[n], m.direct[n], self._lag[n], self._block_s, self._state[n],
                self._on[n], self._locked[n], self._least, self._price, self.plan[n],
                self._y[n], self._error, self._rest, self._work,
            )  # fmt: skip
            done += steps
            if better:
                self._since_better = 0
        self.n_looked_at += done


class WiresAhead:
    """Where the wires are, and will be.

    Attributes
    ----------
    shares_N : (N,) array
    """

    def __init__(self, model: WireModel) -> None:
        self._model = model
        self.shares_N = model.shares_N
        self._lag, self._xi = np.zeros((2, len(model.shares_N)))
        self._state = np.zeros((len(model.shares_N), 3))
        self._before_s = float("nan")

    def set_air(self, T_C: float) -> None:
        """Plan for wires in such air from now on."""
        self._model.laws[:, 3] = T_C

    def follow(self, t_s: float, xi: Matrix) -> float:
        """Let every lag come to now, with the austenite of now; the wires' force in N."""
        m = self._model
        h, self._before_s = t_s - self._before_s, t_s
        return float(_follow(m.shares_N, m.rate_per_s, m.direct, h, xi, self._xi, self._lag))

    def ahead(self, lead_s: float, on: Mask, T_C: Matrix, xi: Matrix) -> Matrix:
        """Temperature, austenite and lag (N, 3) after a time with these cells on."""
        m = self._model
        _ahead(m.laws, m.rate_per_s, lead_s, on, T_C, xi, self._lag, self._state)
        return self._state


def _lag_weights(rate_per_s: Matrix, h: float) -> Matrix:
    """(N, 3): z after h is w0 z + w1 xi before + w2 xi after, xi linear between."""
    a = np.exp(-rate_per_s * h)
    ramp = 1.0 - (1.0 - a) / (rate_per_s * h)
    return np.column_stack([a, 1.0 - a - ramp, ramp])


@njit(cache=True)
def _step(law, lag, h, on, T, xi, z):  # type: ignore[no-untyped-def]
    T_new, xi_new = advance(law, on, T, xi, h)
    return T_new, xi_new, lag[0] * z + lag[1] * xi + lag[2] * xi_new


@njit(cache=True)
def _pose(  # type: ignore[no-untyped-def]
    laws, shares, direct, lag, h, state, on, locked, usable, wanted, plan, y, error
):
    n_cells, n_blocks = plan.shape
    error[:] = wanted
    for n in range(n_cells):
        for b in range(n_blocks - 1):
            plan[n, b] = plan[n, b + 1]
        for b in range(n_blocks):
            if not usable[n]:
                plan[n, b] = 0
            elif b < locked[n]:
                plan[n, b] = on[n]
        T, xi, z = state[n]
        for b in range(n_blocks):
            T, xi, z = _step(laws[n], lag[n], h, float(plan[n, b]), T, xi, z)
            y[n, b] = shares[n] * (direct[n] * xi + (1.0 - direct[n]) * z)
            error[b] -= y[n, b]


@njit(cache=True)
def _improve(  # type: ignore[no-untyped-def]
    law, share, direct, lag, h, state, on, locked, least, price, plan, y, error, rest, work
):
    """The best sequence of this cell; steps predicted, and whether it is a better one."""
    n_blocks = len(plan)
    best = 0.0
    for b in range(n_blocks):
        rest[b] = error[b] + y[b]
        best += error[b] * error[b]
        before = on if b == 0 else plan[b - 1]
        if plan[b] != before:
            best += price
    now, then = float(on), 1.0 - float(on)
    first, second = work[0], work[1]
    first[0, 0], first[0, 1], first[0, 2], first[0, 3] = state[0], state[1], state[2], 0.0
    steps, at_1, at_2 = 0, -1, -1
    # as it is: to the end, or to where its error alone is too large
    stop = n_blocks
    for b in range(n_blocks):
        T, xi, z = _step(law, lag, h, now, first[b, 0], first[b, 1], first[b, 2])
        e = rest[b] - share * (direct * xi + (1.0 - direct) * z)
        first[b + 1, 0], first[b + 1, 1], first[b + 1, 2] = T, xi, z
        first[b + 1, 3] = first[b, 3] + e * e
        steps += 1
        if first[b + 1, 3] >= best:
            stop = b
            break
    if stop == n_blocks and first[n_blocks, 3] < best * (1.0 - 1e-12):
        best, at_1 = first[n_blocks, 3], n_blocks
    hold = least[1 - on]
    for a in range(locked, min(stop + 1, n_blocks)):
        if first[a, 3] + price >= best:
            break
        second[a] = first[a]
        second[a, 3] += price
        end = n_blocks
        for b in range(a, n_blocks):
            T, xi, z = _step(law, lag, h, then, second[b, 0], second[b, 1], second[b, 2])
            e = rest[b] - share * (direct * xi + (1.0 - direct) * z)
            second[b + 1, 0], second[b + 1, 1], second[b + 1, 2] = T, xi, z
            second[b + 1, 3] = second[b, 3] + e * e
            steps += 1
            if second[b + 1, 3] >= best:
                end = b
                break
        if end == n_blocks and second[n_blocks, 3] < best * (1.0 - 1e-12):
            best, at_1, at_2 = second[n_blocks, 3], a, n_blocks
        for c in range(a + hold, min(end + 1, n_blocks)):
            if second[c, 3] + price >= best:
                break
            T, xi, z, cost = second[c, 0], second[c, 1], second[c, 2], second[c, 3] + price
            for b in range(c, n_blocks):
                T, xi, z = _step(law, lag, h, now, T, xi, z)
                e = rest[b] - share * (direct * xi + (1.0 - direct) * z)
                cost += e * e
                steps += 1
                if cost >= best:
                    break
            if cost < best * (1.0 - 1e-12):
                best, at_1, at_2 = cost, a, c
    if at_1 < 0:
        return steps, False
    if at_1 == n_blocks:
        at_2 = n_blocks
    T, xi, z = state
    for b in range(n_blocks):
        plan[b] = 1 - on if at_1 <= b < at_2 else on
        T, xi, z = _step(law, lag, h, float(plan[b]), T, xi, z)
        y[b] = share * (direct * xi + (1.0 - direct) * z)
        error[b] = rest[b] - y[b]
    return steps, True


@njit(cache=True)
def _follow(shares, rates, direct, h, xi_now, xi, lag):  # type: ignore[no-untyped-def]
    """Let every lag come to now; the wires' force."""
    force = 0.0
    for n in range(len(lag)):
        if h > 0.0:
            a = np.exp(-rates[n] * h)
            ramp = 1.0 - (1.0 - a) / (rates[n] * h)
            lag[n] = a * lag[n] + (1.0 - a - ramp) * xi[n] + ramp * xi_now[n]
        xi[n] = xi_now[n]
        force += shares[n] * (direct[n] * xi[n] + (1.0 - direct[n]) * lag[n])
    return force


@njit(cache=True)
def _ahead(laws, rates, lead, on, T, xi, lag, state):  # type: ignore[no-untyped-def]
    for n in range(len(on)):
        T_then, xi_then = advance(laws[n], float(on[n]), T[n], xi[n], lead)
        a = np.exp(-rates[n] * lead)
        ramp = 1.0 - (1.0 - a) / (rates[n] * lead)
        state[n, 0], state[n, 1] = T_then, xi_then
        state[n, 2] = a * lag[n] + (1.0 - a - ramp) * xi[n] + ramp * xi_then
