"""The arithmetic of the descent over duties of `hil.systems.array.recruitment.wire_plan`.

Around a plan, forces and changes of austenite are linear in the changes u of its duties:

    minimise  |e - F u|^2 + sum_n |v_n + W_n u_n|^2 + p u + mu u' H u,    0 <= d + u <= 1

with the errors e at the ends of the blocks, and the rows v of a wire: its changes of austenite
times the root of their price over twice their size. Their squares have the slope of the price of
|change| there and, but for a constant, bound it from above (iterative reweighting). H is the
diagonal of the problem and mu its damping (Levenberg and Marquardt). Coordinate descent solves it;
the next plan is the better one of the old and the new, each predicted by the law itself.

Source: Nocedal & Wright 2006, ch. 10 (Gauss-Newton, Levenberg-Marquardt); Lawson 1961
(reweighting); Wright 2015 (coordinate descent).
"""

from typing import NamedTuple

import numpy as np

from hil.compiled import borrowed, njit, put
from hil.mechanics.arrays import Array, Records, record_type
from hil.systems.array.recruitment.wire_plan_kernel import named, running, step

SWEEPS = 6  # for one linearisation
PRODUCTS_A_STEP = 40  # multiplications that take as long as a predicted cell step
STEPS_A_DERIVATIVE = 5  # predicted cell steps a block: 4, and the products
DAMPING_FIRST, DAMPING_LEAST, DAMPING_MOST = 1e-2, 1e-3, 1e2
GAIN_LEAST = 1e-3  # relative gain below which the descent ends
AT_K, AT_XI, AT_DUTY = 1e-3, 1e-5, 1e-3  # steps of the derivatives
TURN_LEAST = 5e-3  # change of austenite below which its price is quadratic


PROGRESS = record_type("step", "finished", "damping", "cost", "trial_cost")
"""Number of the next step since the last plan was taken; 1 once it has finished; damping; cost of
the plan, and of the trial."""


class Descent(NamedTuple):
    """What a descent keeps between its steps, for N cells and M blocks.

    Attributes
    ----------
    F, W : (N, M, M) arrays, derivatives of forces and of changes of austenite; first index duty
    v, H : (N, M) arrays
    e_left, v_left : (M,) and (N, M) arrays, what the changes so far leave of e and v
    trial, y : (N, M) arrays, the next duties, and their forces
    now : (1,) array of PROGRESS
    """

    F: Array
    W: Array
    v: Array
    H: Array
    e_left: Array
    v_left: Array
    trial: Array
    y: Array
    now: Records


@njit(cache=True)
def descend(problem, descent, done, n_steps):  # type: ignore[no-untyped-def]
    """Continue until about `n_steps` cell steps have been predicted, `done` of them before.

    Return how many have been. A step linearises one cell, or sweeps once over its duties, or
    predicts its new forces. The first one is done however long it takes.
    """
    p, d = named(problem), Descent(*borrowed(descent))
    n_cells, n_blocks = p.plan.shape
    now = d.now[0]
    while done < n_steps and now.finished == 0.0:
        turn, n = int(now.step) // n_cells, int(now.step) % n_cells
        if turn == 0:
            needed = STEPS_A_DERIVATIVE * n_blocks
        elif turn <= SWEEPS:
            needed = 2 * n_blocks**2 // PRODUCTS_A_STEP
        else:
            needed = n_blocks
        if done > 0 and done + needed > n_steps:
            break
        done += needed
        now.step += 1.0
        if turn == 0:
            _linearise_next(p, d, n)
        elif turn <= SWEEPS:
            if turn == 1 and n == 0:
                put(p.plan, d.trial)
                put(p.error, d.e_left)
                put(d.v, d.v_left)
            of_cell = d.F[n], d.W[n], d.H[n]
            weights = p.prices.power_N2, now.damping
            left = d.e_left, d.v_left[n]
            sweep(of_cell, left, p.plan[n], d.trial[n], p.locked[n], weights)
        else:
            if n == 0:
                now.trial_cost = 0.0
            if p.usable[n]:
                cell = p.cells[n]
                now.trial_cost += predict(cell, p.prices, p.state[n], d.trial[n], d.y[n])
            if n == n_cells - 1:
                _take_the_better(p, d)
    return done


@njit(cache=True)
def _linearise_next(p, d, n):  # type: ignore[no-untyped-def]
    now = d.now[0]
    if n == 0:
        now.cost = np.sum(p.error * p.error)
    d.H[n] = 0.0
    if p.usable[n]:
        into = d.F[n], d.W[n], d.v[n], d.H[n]
        now.cost += linearise(p.cells[n], p.prices, p.state[n], p.plan[n], p.locked[n], into)


@njit(cache=True)
def _take_the_better(p, d):  # type: ignore[no-untyped-def]
    """Take the trial if it costs less; else look from the same derivatives with more damping."""
    now = d.now[0]
    error = p.error.copy()
    for n in range(len(p.plan)):
        if p.usable[n]:
            error += p.y[n] - d.y[n]
    cost = now.trial_cost + np.sum(error * error)
    if cost < now.cost:
        put(d.trial, p.plan)
        put(error, p.error)
        for n in range(len(p.plan)):
            if p.usable[n]:
                put(d.y[n], p.y[n])
        now.finished = cost > now.cost * (1.0 - GAIN_LEAST)
        now.damping = max(DAMPING_LEAST, now.damping / 4.0)
        now.step = 0.0
    else:
        now.damping *= 8.0
        now.finished = now.damping > DAMPING_MOST
        now.step = len(p.plan)


@njit(cache=True)
def linearise(cell, prices, state, plan, locked, into):  # type: ignore[no-untyped-def]
    """Write to `into` a cell's derivatives F, W (M, M), first index duty, and its rows v, H.

    Return its cost beside the error.
    """
    F, W, v, H = into
    n_blocks = len(plan)
    gain_N, direct, lag = cell.gain_N, cell.direct, cell.lag
    T, xi, z = state
    cost = 0.0
    tangents = np.zeros((3, n_blocks))
    dT, dx, dz = tangents[0], tangents[1], tangents[2]
    for j in range(n_blocks):
        duty = plan[j]
        T1, xi1, z1, _ = step(cell, duty, T, xi, z)
        warmer_T, warmer_xi, _, _ = step(cell, duty, T + AT_K, xi, z)
        dxi = AT_XI if xi < 0.5 else -AT_XI
        more_T, more_xi, _, _ = step(cell, duty, T, xi + dxi, z)
        up = AT_DUTY if duty < 0.5 else -AT_DUTY
        powered_T, powered_xi, _, _ = step(cell, duty + up, T, xi, z)
        T_T, x_T = (warmer_T - T1) / AT_K, (warmer_xi - xi1) / AT_K
        T_x, x_x = (more_T - T1) / dxi, (more_xi - xi1) / dxi
        weight = np.sqrt(0.5 * prices.turn_N2 / max(abs(xi1 - xi), TURN_LEAST))
        v[j] = weight * (xi1 - xi)
        for b in range(locked, j + 1):
            before = dx[b]
            if b == j:
                dT[b], dx[b] = (powered_T - T1) / up, (powered_xi - xi1) / up
            else:
                dT[b], dx[b] = T_T * dT[b] + T_x * before, x_T * dT[b] + x_x * before
            dz[b] = lag[0] * dz[b] + lag[1] * before + lag[2] * dx[b]
            F[b, j] = gain_N * (direct * dx[b] + (1.0 - direct) * dz[b])
            W[b, j] = weight * (dx[b] - before)
        cost += running(prices, duty, duty, xi1 - xi)
        T, xi, z = T1, xi1, z1
    for b in range(locked, n_blocks):
        H[b] = 0.0
        for j in range(b, n_blocks):
            H[b] += F[b, j] ** 2 + W[b, j] ** 2
    return cost


@njit(cache=True)
def sweep(problem, left, plan, trial, locked, weights):  # type: ignore[no-untyped-def]
    """Minimise over every duty of a cell; `left` = e, v of what the changes so far leave.

    `weights` are the price of power, and the damping.
    """
    power_price, damping = weights
    F, W, H = problem
    e, v = left
    n_blocks = len(plan)
    for b in range(locked, n_blocks):
        if H[b] <= 0.0:
            continue
        down = 0.5 * power_price + damping * H[b] * (trial[b] - plan[b])
        for j in range(b, n_blocks):
            down += W[b, j] * v[j] - F[b, j] * e[j]
        to = min(1.0, max(0.0, trial[b] - down / (H[b] * (1.0 + damping))))
        u = to - trial[b]
        if u != 0.0:
            trial[b] = to
            for j in range(b, n_blocks):
                e[j] -= F[b, j] * u
                v[j] += W[b, j] * u


@njit(cache=True)
def predict(cell, prices, state, duties, y):  # type: ignore[no-untyped-def]
    """Write the forces (M,) of a cell with these duties; return its cost beside the error."""
    cost = 0.0
    T, xi, z = state
    for b in range(len(duties)):
        x = xi
        T, xi, z, y[b] = step(cell, duties[b], T, xi, z)
        cost += running(prices, duties[b], duties[b], xi - x)
    return cost
