"""The thesis's PID on the leg, without instruments: continuous or sampled.

    q = min(1, Kp e + Ki int(e) dt + Kd e'),  at least 0.001                            (44)

In (44) Ki and Kd are exchanged; with standard symbols Table 3's Ki multiplies the integral.
Section 2.3 compares heights: for TA e = target - height in metres, for SOL -e. A second
interpretation reduces the derivative part and, near the target, the proportional part; the text
says so for Kp, but gives no number. The third is the thesis's program, whose states are length
errors of the muscles (appendix I): for each e = l_MTC - its length at the target height.

Source: Makkonen 2021, section 2.3, Table 3.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.leg import stepper as leg_stepper
from hil.systems.leg.limb import PathPoint
from hil.systems.leg.muscle import ACTIVATION_MIN
from hil.systems.leg.statics import JointStatics
from hil.systems.leg.stepper import LimbStepper
from hil.systems.leg.system import LimbSystem

TABLE_3 = np.array([[30.0, 20.0, 10.0], [40.0, 5.0, 2.5]])
"""Kp, Ki, Kd of TA and SOL."""


@dataclass(frozen=True)
class Reading:
    """An interpretation of the thesis's PID: factors of Kd, and of Kp near the target.

    `lengths`: errors are those of the muscles' lengths, not of the point's height.
    """

    k_d_share: float = 1.0
    near_m: float = 0.0
    near_share: float = 1.0
    lengths: bool = False


STANDARD = Reading()
WEAK_D = Reading(k_d_share=0.02, near_m=0.003, near_share=0.1)
LENGTHS = Reading(lengths=True)
GRID = 301
"""Heights at which lengths are computed; between them they are interpolated, within 1e-8 m."""
CONTINUOUS_S = 1e-4
"""At this sampling period and with the plant's exact e', the law is practically continuous: halving
the period changes the drop by less than a micrometre."""


@dataclass(frozen=True)
class Sensing:
    """Input of the law: sampled, delayed and noisy; its derivative is then a difference.

    With `ideal` the law gets exact height and rate.
    """

    period_s: float = CONTINUOUS_S
    ideal: bool = True
    delay_s: float = 0.0
    noise_m: float = 0.0
    seed: int = 0


class Law(NamedTuple):
    """A PID as a kernel follows it.

    Attributes
    ----------
    target, slope : (N, 2) arrays
        What TA and SOL follow at every millisecond, and its rate to the next one.
    gains : (2, 3) array, Kp, Ki, Kd of TA and SOL
    near_m, near_share, lengths, ideal : of `Reading` and `Sensing`
    per_ms, every, late : steps in a millisecond, in a sampling period, and in the delay
    """

    target: Array
    slope: Array
    gains: Array
    near_m: float
    near_share: float
    lengths: bool
    ideal: bool
    per_ms: int
    every: int
    late: int


@dataclass(frozen=True)
class Trace:
    """Motion of the leg, one row per millisecond."""

    t_s: Array
    target_m: Array
    height_m: Array
    activation: Array  # (N, 2) TA, SOL
    tension_N: Array
    least_tension_N: float
    """Smallest tendon force at any time; below zero a tendon would push."""


def simulate(
    system: LimbSystem, point: str, target_m: Array, reading: Reading, sensing: Sensing
) -> Trace:
    """Simulate the closed loop of a limb whose muscles are TA and SOL, in this order.

    Parameters
    ----------
    target_m : (N,) array, target height at every millisecond

    Raises
    ------
    ModelError
        The integration of the limb fails.
    """
    per_ms = max(1, round(1e-3 / sensing.period_s))
    every = max(1, round(sensing.period_s / 1e-3))
    s, n = system.stepper, len(target_m)
    place = system.points[point]
    link = s.body_link[place.body]
    at = np.array(place.at_m) + s.links.centre[link]
    wanted = _lengths(s, place, target_m) if reading.lengths else np.outer(target_m, [-1.0, 1.0])
    slope = np.diff(wanted, axis=0, append=wanted[-1:]) / 1e-3  # of the line to the next sample
    gains = TABLE_3 * np.array([1.0, 1.0, reading.k_d_share])
    noise = sensing.noise_m * np.random.default_rng(sensing.seed).standard_normal(n * per_ms)
    late = round(sensing.delay_s / min(sensing.period_s, 1e-3))
    rows = np.empty((n, 5))
    law = Law(
        wanted, slope, gains, reading.near_m, reading.near_share, reading.lengths, sensing.ideal,
        per_ms, every, late,
    )  # fmt: skip
    least = _run((s.links, s.work, s.scratch, s.x), (link, at), law, noise, rows)
    if np.isnan(least):
        raise ModelError("model: the leg under the thesis's PID cannot be stepped")
    t_s: Array = np.array([1e-3 * k for k in range(n)])
    return Trace(t_s, target_m, rows[:, 0], rows[:, 1:3].copy(), rows[:, 3:].copy(), least)


def _lengths(stepper: LimbStepper, place: PathPoint, height_m: Array) -> Array:
    """Return the muscles' lengths, (N, 2), where only the ankle moves the point to the heights."""
    statics = JointStatics(stepper, "ankle", place, ("TA", "SOL"))
    grid = np.linspace(height_m.min(), height_m.max() + 1e-9, GRID)
    lengths = []
    for height in grid:
        statics.height(statics.angle(float(height)))
        lengths.append(stepper.work.length.copy())
    stepper.start(np.full(2, ACTIVATION_MIN))
    return np.column_stack([np.interp(height_m, grid, of) for of in np.array(lengths).T])


@njit(cache=True, error_model="numpy")
def _run(leg, point, law, noise, rows):  # type: ignore[no-untyped-def]
    p, k, r, x = leg
    link, at = point
    target, slope, gains, per_ms = law.target, law.slope, law.gains, law.per_ms
    h = 1e-3 / per_ms
    control_s = h * law.every
    u, integral, before = np.full(2, ACTIVATION_MIN), np.zeros(2), np.full(2, np.nan)
    # a muscle shortens what is too long: its length, or for SOL the height, for TA minus the height
    seen, rate = np.empty((len(noise), 2)), np.empty(2)
    least = np.inf
    leg_stepper.look(p, k, r, x, u)
    for n in range(len(noise)):
        ms, part = n // per_ms, (n % per_ms) * h
        z = k.place[link, 2]
        rise = k.v[link, 2]
        w, turned = k.w[link], k.turn[link] @ at
        z += turned[2]
        rise += w[0] * turned[1] - w[1] * turned[0]
        for i in range(2):
            sign = 2.0 * i - 1.0
            seen[n, i] = (k.length[i] if law.lengths else sign * z) + sign * noise[n]
            rate[i] = k.rate[i] if law.lengths else sign * rise
        if n % per_ms == 0:
            rows[ms, 0] = z
        if n % law.every == 0:
            for i in range(2):
                e = seen[max(n - law.late, 0), i] - (target[ms, i] + slope[ms, i] * part)
                if law.ideal:
                    e_dot = rate[i] - slope[ms, i]
                else:
                    e_dot = 0.0 if np.isnan(before[i]) else (e - before[i]) / control_s
                before[i] = e
                k_p = gains[i, 0] * (law.near_share if abs(e) < law.near_m else 1.0)
                q = k_p * e + gains[i, 1] * integral[i] + gains[i, 2] * e_dot
                u[i] = min(max(q, ACTIVATION_MIN), 1.0)
                integral[i] += e * control_s
        if n % per_ms == 0:
            leg_stepper.look(p, k, r, x, u)
            rows[ms, 1], rows[ms, 2] = u[0], u[1]
            rows[ms, 3], rows[ms, 4] = r.force[0, 0], r.force[1, 0]
        if not leg_stepper.advance(p, k, r, x, u, h):
            return np.nan
        least = min(least, r.force[0, 0], r.force[1, 0])
    return least
