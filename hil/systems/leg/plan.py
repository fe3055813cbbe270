"""Plans a movement of one joint by simulating the model: activations and resulting heights.

At every period the model's state is known. The set point's angle phi_r is smoothed so that it has
an acceleration. Then

    phi''_d = phi''_r + 2 w (phi'_r - phi') + w^2 (phi_r - phi)
    tau     = M phi''_d - Q                                   inverse dynamics
    F_d     = relaxed tensions, plus what tau requires of the muscle in its direction
    v_d     = l_MTC' - (l_SEE(F_d) - l_SEE) / T               tendons stretched to F_d within T

and the activation is the one at which the fibre's rate is v_d, limited to [least, 1] and to the
rate of its output. It is constant for one period, as the loop's outputs are, so the same
activations reproduce the movement. If activation has dynamics, the stimulation is the one that
moves the activation to its value within the period.

Source: computed muscle control, Thelen & Anderson 2006, J. Biomech. 39(6), with Makkonen's muscle
(`muscle.rate`) inverted by bisection; w, T and the smoothing are ours.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array, Indices, Records
from hil.systems.leg import muscle
from hil.systems.leg.statics import JointStatics

_BISECTIONS = 50


@dataclass(frozen=True)
class PlanSettings:
    """Settings of the planned motion: assumed."""

    smooth_s: float = 0.01
    w_rad_per_s: float = 250.0
    T_s: float = 0.0015
    rate_max_per_s: float = np.inf
    """Largest rate of either activation, as limited by its output."""


AT_ONCE = PlanSettings()
"""For muscles without activation dynamics."""
SLOWER = PlanSettings(0.04, 60.0, 0.01)
"""For muscles with activation dynamics: faster poles would oscillate."""


@dataclass(frozen=True)
class Plan:
    """A planned movement, one row per period.

    Attributes
    ----------
    height_m : (N,) array
        Height of the point at the start of each period, by the moved joint's angle alone: what the
        other joints give way is for the correction. With thigh and shin 1e4 (1000) times as heavy
        this is up to 5 um (47 um).
    activation : (N, M) array, held during the period
    """

    height_m: Array
    activation: Array


def smoothed(values: Array, width: int) -> Array:
    """Apply a moving average twice; it preserves straight lines and the number of values."""
    for _ in range(2):
        half = width // 2
        if half:
            padded = np.concatenate((np.full(half, values[0]), values, np.full(half, values[-1])))
            values = np.convolve(padded, np.full(2 * half + 1, 1.0 / (2 * half + 1)), "valid")
    return values


def rehearse(
    statics: JointStatics,
    height_m: Array,
    period_s: float,
    settings: PlanSettings = AT_ONCE,
) -> Plan:
    """Simulate a movement from the model's start; the stepper of `statics` keeps the last state.

    Parameters
    ----------
    height_m : (N,) array, set point at the start of every period

    Raises
    ------
    ModelError
        A height is out of reach.
    """
    s, n, w = statics.stepper, len(height_m), settings.w_rad_per_s
    phi = smoothed(_angles(statics, height_m), round(settings.smooth_s / period_s))
    phi_dot = np.gradient(phi, period_s)
    phi_ddot = np.gradient(phi_dot, period_s)
    before = np.full(s.n_m, muscle.ACTIVATION_MIN)  # initial activation of every run
    s.start(before)
    heights, activations = np.empty(n), np.tile(before, (n, 1))
    pair = np.array([statics.up, statics.down])
    change = settings.rate_max_per_s * period_s
    for k in range(n):
        angle, rate = float(s.x[statics.at]), float(s.x[s.n_q + statics.at])
        heights[k] = statics.height(angle)
        wanted = phi_ddot[k] + 2.0 * w * (phi_dot[k] - rate) + w**2 * (phi[k] - angle)
        demand = statics.demand(angle, rate, wanted)
        tension = statics.relaxed(angle)
        arms = statics.arms(angle)
        missing = demand - float(arms @ tension)
        works = statics.up if missing * statics.sign > 0.0 else statics.down
        tension[works] += missing / arms[works]
        s.look(before)
        fibres = _Fibres(s.x[2 * s.n_q :], s.work.length, s.work.rate, tension)
        limits = (settings.T_s, statics.least)
        _activations(s.scratch.muscles, fibres, pair, limits, activations[k])
        if len(s.scratch.times):
            _stimulations(
                s.scratch.times, s.x[-s.n_m :], pair, period_s, statics.least, activations[k]
            )
        most = change if k else 0.0  # outputs can change from their second period on
        np.clip(activations[k], before - most, before + most, out=activations[k])
        before = activations[k]
        s.step(period_s, activations[k])
    return Plan(heights, activations)


def _angles(statics: JointStatics, height_m: Array) -> Array:
    """Return the joint's angle at every height."""
    low, high = (statics.angle(float(h)) for h in (height_m.min(), height_m.max()))
    grid = np.linspace(low, high, 400)
    heights = np.array([statics.height(float(a)) for a in grid])
    angles: Array = np.asarray(np.interp(height_m, heights, grid), dtype=float)
    return angles


class _Fibres(NamedTuple):
    """Lengths, rate and the tension demanded, (M,) each."""

    l_CE: Array
    l_MTC: Array
    v_MTC: Array
    tension: Array


@njit(cache=True, error_model="numpy")
def _activations(
    parameters: Records, fibres: _Fibres, pair: Indices, limits: tuple[float, float], q: Array
) -> None:
    """Compute activations at which the fibres stretch their tendons to these tensions.

    `limits` is the time within which they do, and the least activation.
    """
    l_CE, l_MTC, v_MTC, tension = fibres
    within_s, least = limits
    for i in pair:
        p = parameters[i]
        stretch = muscle.serial_length(p, tension[i]) - (l_MTC[i] - l_CE[i])
        wanted = v_MTC[i] - stretch / within_s
        low, high = least, 1.0
        for _ in range(_BISECTIONS):
            q[i] = 0.5 * (low + high)
            v, _, _ = muscle.rate(p, l_CE[i], l_MTC[i], v_MTC[i], q[i])
            if v > wanted:
                low = q[i]
            else:
                high = q[i]
        if low == least:
            q[i] = least


@njit(cache=True, error_model="numpy")
def _stimulations(times, active, pair, period_s, least, q):  # type: ignore[no-untyped-def]
    """Compute stimulations that bring activation to q within a period, as far as possible."""
    for i in pair:
        slow = 0.5 + 1.5 * active[i]
        tau = times[0] * slow if q[i] > active[i] else times[1] / slow
        u = active[i] + (q[i] - active[i]) / (1.0 - np.exp(-period_s / tau))
        q[i] = min(max(u, least), 1.0)
