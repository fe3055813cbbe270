"""A movement of one joint rehearsed on the model: activations, and the heights they make.

At every period the model's state is known. With the set point's angle phi, smoothed so that it has
an acceleration,

    phi''_d = phi''_r + 2 w (phi'_r - phi') + w^2 (phi_r - phi)
    tau     = M phi''_d - Q                                   inverse dynamics
    F_d     = relaxed tensions, and what tau asks for beyond, by the muscle that gives it
    v_d     = l_MTC' - (l_SEE(F_d) - l_SEE) / T               tendons stretched to F_d within T

and the activation is the one at which the fibre's rate is v_d, held to [least, 1] and to the rate
of its output. It acts for one period, as the loop's outputs do, so that the same activations make
the same movement again. Where activation has dynamics of its own, the stimulation is the one that
brings activation there within the period.

Source: computed muscle control, Thelen & Anderson 2006, J. Biomech. 39(6), with Makkonen's muscle
(`muscle.rate`) inverted by bisection; w, T and the smoothing are ours.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.systems.leg import muscle
from hil.systems.leg.statics import JointStatics

Matrix = NDArray[np.float64]
_BISECTIONS = 50


@dataclass(frozen=True)
class PlanSettings:
    """How the rehearsal moves the model: assumed."""

    smooth_s: float = 0.01
    w_rad_per_s: float = 250.0
    T_s: float = 0.0015
    rate_max_per_s: float = np.inf
    """Of either activation, as its output has it."""


AT_ONCE = PlanSettings()
"""For muscles whose activation is what they are told."""
SLOWER = PlanSettings(0.04, 60.0, 0.01)
"""For muscles whose activation has dynamics: faster poles than its own would swing."""


@dataclass(frozen=True)
class Plan:
    """A rehearsed movement, a row a period.

    Attributes
    ----------
    height_m : (N,) array
        Of the point, at the periods' starts.
    activation : (N, M) array
        Held from there on.
    """

    height_m: Matrix
    activation: Matrix


def smoothed(values: Matrix, width: int) -> Matrix:
    """A moving average, twice over, that ends where it began: straight lines stay what they are."""
    for _ in range(2):
        half = width // 2
        if half:
            padded = np.concatenate((np.full(half, values[0]), values, np.full(half, values[-1])))
            values = np.convolve(padded, np.full(2 * half + 1, 1.0 / (2 * half + 1)), "valid")
    return values


def rehearse(
    statics: JointStatics,
    height_m: Matrix,
    period_s: float,
    settings: PlanSettings = AT_ONCE,
) -> Plan:
    """Rehearse a movement from the model's start; its state is the rehearsal's afterwards.

    Parameters
    ----------
    height_m : (N,) array
        The set point at every period's start.

    Raises
    ------
    ModelError
        A height out of reach.
    """
    s, n, w = statics.stepper, len(height_m), settings.w_rad_per_s
    phi = smoothed(_angles(statics, height_m), round(settings.smooth_s / period_s))
    phi_dot = np.gradient(phi, period_s)
    phi_ddot = np.gradient(phi_dot, period_s)
    before = np.full(s.n_m, muscle.ACTIVATION_MIN)  # as every run starts
    s.start(before)
    heights, activations = np.empty(n), np.tile(before, (n, 1))
    pair = np.array([statics.up, statics.down])
    change = settings.rate_max_per_s * period_s
    for k in range(n):
        angle, rate = float(s.x[statics.at]), float(s.x[s.n_q + statics.at])
        heights[k] = statics.height(angle)
        wished = phi_ddot[k] + 2.0 * w * (phi_dot[k] - rate) + w**2 * (phi[k] - angle)
        demand = statics.demand(angle, rate, wished)
        tension = statics.relaxed(angle)
        arms = statics.arms(angle)
        missing = demand - float(arms @ tension)
        works = statics.up if missing * statics.sign > 0.0 else statics.down
        tension[works] += missing / arms[works]
        s.look(before)
        _activations(s.room.muscles, s.x[2 * s.n_q :], s.work.length, s.work.rate, tension,
                     pair, settings.T_s, statics.least, activations[k])  # fmt: skip
        if len(s.room.times):
            _stimulations(
                s.room.times, s.x[-s.n_m :], pair, period_s, statics.least, activations[k]
            )
        most = change if k else 0.0  # outputs begin to move in their second period
        np.clip(activations[k], before - most, before + most, out=activations[k])
        before = activations[k]
        s.step(period_s, activations[k])
    return Plan(heights, activations)


def _angles(statics: JointStatics, height_m: Matrix) -> Matrix:
    """The joint's angle at every height."""
    low, high = (statics.angle(float(h)) for h in (height_m.min(), height_m.max()))
    grid = np.linspace(low, high, 400)
    heights = np.array([statics.height(float(a)) for a in grid])
    angles: Matrix = np.asarray(np.interp(height_m, heights, grid), dtype=float)
    return angles


@njit(cache=True, error_model="numpy")
def _activations(  # type: ignore[no-untyped-def]
    parameters, l_ce, l_mtc, v_mtc, tension, pair, within_s, least, q
):
    """Activations at which the fibres of these muscles stretch their tendons to the tensions."""
    for i in pair:
        p = parameters[i]
        stretch = muscle.serial_length(p, tension[i]) - (l_mtc[i] - l_ce[i])
        wished = v_mtc[i] - stretch / within_s
        low, high = least, 1.0
        for _ in range(_BISECTIONS):
            q[i] = 0.5 * (low + high)
            v, _, _ = muscle.rate(p, l_ce[i], l_mtc[i], v_mtc[i], q[i])
            if v > wished:
                low = q[i]
            else:
                high = q[i]
        if low == least:
            q[i] = least


@njit(cache=True, error_model="numpy")
def _stimulations(times, active, pair, period_s, least, q):  # type: ignore[no-untyped-def]
    """Stimulations under which activation comes to q within a period, as far as they can."""
    for i in pair:
        slow = 0.5 + 1.5 * active[i]
        tau = times[0] * slow if q[i] > active[i] else times[1] / slow
        u = active[i] + (q[i] - active[i]) / (1.0 - np.exp(-period_s / tau))
        q[i] = min(max(u, least), 1.0)
