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

import numpy as np

from hil.compiled import borrowed, njit
from hil.systems.array.recruitment.wire_plan_kernel import Cell, PlanPrices, running, step

AT_K, AT_XI, AT_DUTY = 1e-3, 1e-5, 1e-3  # steps of the derivatives
TURN_LEAST = 5e-3  # change of austenite below which its price is quadratic


@njit(cache=True)
def linearise(of_cell, of_power, state, plan, locked, into):  # type: ignore[no-untyped-def]
    """Write to `into` a cell's derivatives F, W (M, M), first index duty, and its rows v, H.

    Return its cost beside the error.
    """
    cell, prices = Cell(*borrowed(of_cell)), PlanPrices(*of_power)
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
def predict(of_cell, of_power, state, duties, y):  # type: ignore[no-untyped-def]
    """Write the forces (M,) of a cell with these duties; return its cost beside the error."""
    cell, prices = Cell(*borrowed(of_cell)), PlanPrices(*of_power)
    cost = 0.0
    T, xi, z = state
    for b in range(len(duties)):
        x = xi
        T, xi, z, y[b] = step(cell, duties[b], T, xi, z)
        cost += running(prices, duties[b], duties[b], xi - x)
    return cost
