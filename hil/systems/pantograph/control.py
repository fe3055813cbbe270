"""Control stage of the impact experiment: repeated approach, contact and retreat.

The tip first travels to the first start. Every trial then has these phases. *Rest*: the tip stands
at its start. *Approach*: the tip moves along a straight line towards the point of contact; it
accelerates for `accelerate_s` and then keeps the commanded velocity. There is no feedback in the
last `coast_s` of the approach and in *contact*, which starts when the normal force exceeds
`touch_N`: quantised angles would jerk the tip, and the motors would push against the plate.
*Retreat*: a smooth curve from the current position of the tip to the next start. An approach
without contact ends `miss_s` after its planned end.

Both joints follow the line with a PID on their angles plus the torque from the model,

    tau = M q''_ref + c + b q'_ref + Kp e + Ki int(e) + Kd e' / (1 + T_f s),   e = q_ref - q

Without feedback only the model's torque remains. The stage uses only the readings of the
instruments; dt is the time since the last one.

Source: Font-Llagunes & Koevecses, section 6 (the procedure); phases and gains are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, nan, pi, sin
from typing import NamedTuple, Protocol

import numpy as np

from hil.compiled import njit
from hil.control.pid import since_reading_s
from hil.loop.frame import Column, Commands, Frame
from hil.mechanics.arrays import Array

REST, APPROACH, CONTACT, RETREAT, DONE = range(5)
_INTEGRAL, _ANGLE, _RATE, _ERROR, _FED_BACK = range(5)
PHASES = ("rest", "approach", "contact", "retreat", "done")


class Arm(Protocol):
    """Interface to the arm."""

    def joint_reference(
        self, x_m: float, y_m: float, vx: float, vy: float, ax: float, ay: float
    ) -> tuple[float, float, float, float]:
        """Return angles and torques of motors 1 and 3 for the tip's motion."""
        ...

    def tip_of(
        self, q1: float, q3: float, w1: float, w3: float
    ) -> tuple[float, float, float, float]:
        """Return position and velocity of the tip for angles and rates of the motors."""
        ...


@dataclass(frozen=True)
class Gains:
    """PID gains of each joint."""

    k_p_N_m_per_rad: float
    k_i_N_m_per_rad_s: float
    k_d_N_m_s_per_rad: float
    derivative_filter_s: float


@dataclass(frozen=True)
class Timing:
    """Durations of the phases; `coast_s` is the last part of `cruise_s` (constant velocity).

    `travel_s` is the duration of the first travel. All cases run in turn, `repeats` times; a normal
    force of `touch_N` ends an approach.
    """

    repeats: int
    touch_N: float
    travel_s: float
    rest_s: float
    accelerate_s: float
    cruise_s: float
    coast_s: float
    contact_s: float
    retreat_s: float
    miss_s: float

    @property
    def trial_s(self) -> float:
        """Longest duration of a trial."""
        return (
            self.rest_s + self.accelerate_s + self.cruise_s + self.miss_s + self.contact_s
            + self.retreat_s
        )  # fmt: skip

    @property
    def run_up_s(self) -> float:
        """Length of the approach divided by its speed."""
        return self.accelerate_s / 2.0 + self.cruise_s


@dataclass(frozen=True)
class Case:
    """One kind of impact, given by the tip's velocity at the point of contact."""

    gamma_rad: float
    v_m_per_s: tuple[float, float]
    start_m: tuple[float, float]


class Wiring(NamedTuple):
    """Where readings and commands are.

    Attributes
    ----------
    angles, normal : indices of q1 and q3, and of the normal force, in the readings
    torques : indices of the torques of motors 1 and 3 in the commands
    torque_max_N_m : the largest that both outputs can give
    """

    angles: tuple[int, int]
    normal: int
    torques: tuple[int, int]
    torque_max_N_m: float


class ImpactControl:
    """Control stage of the pantograph."""

    columns = [  # noqa: RUF012  never changed
        Column("trial", "1", "state", "number of the trial, from 0; -1 before the first"),
        Column("phase", "1", "state", "of the trial: " + ", ".join(
            f"{i} {name}" for i, name in enumerate(PHASES))),
        Column("gamma_reference_rad", "rad", "reference", "approach, from the plate's normal"),
        Column("tip_x_reference_m", "m", "reference", "set point of the tip"),
        Column("tip_y_reference_m", "m", "reference", "set point of the tip"),
        Column("tip_vx_reference_m_per_s", "m/s", "reference", "set point of the tip's velocity"),
        Column("tip_vy_reference_m_per_s", "m/s", "reference", "set point of the tip's velocity"),
        Column("q1_reference_rad", "rad", "reference", "set point of motor 1"),
        Column("q3_reference_rad", "rad", "reference", "set point of motor 3"),
    ]  # fmt: skip

    def __init__(
        self, arm: Arm, cases: Sequence[Case], timing: Timing, gains: Gains, wiring: Wiring,
        period_s: float,
    ) -> None:  # fmt: skip
        self.cases, self.timing = cases, timing
        self._arm = arm
        self._gains = np.array([
            gains.k_p_N_m_per_rad, gains.k_i_N_m_per_rad_s, gains.k_d_N_m_s_per_rad,
            gains.derivative_filter_s, wiring.torque_max_N_m,
        ])  # fmt: skip
        self._period_s, self._read_s = period_s, nan
        self._angles, self._normal, self._torques, _ = wiring
        self._state = np.zeros((2, 5))  # see _pid
        self._started = False
        self._trial, self._phase, self._since_s = -1, RETREAT, 0.0
        self._curve = _Quintic(np.zeros(2), np.zeros(2), cases[0], timing.travel_s)

    def bind(self, frame: Frame, measured: Array, commands: Commands) -> None:
        self._row = frame.span([column.name for column in self.columns])
        self._measured = measured
        self._outputs = commands.outputs

    @property
    def n_trials(self) -> int:
        """Number of impacts of the experiment."""
        return self.timing.repeats * len(self.cases)

    @property
    def duration_s(self) -> float:
        """Longest duration of the experiment."""
        return self.timing.travel_s + self.n_trials * self.timing.trial_s

    @property
    def _case(self) -> Case:
        return self.cases[max(self._trial, 0) % len(self.cases)]

    def restart(self) -> None:
        """Restart from the current position of the arm."""
        self._started = False
        self._state[:] = 0.0
        self._read_s = nan

    def step(self, t_s: float) -> None:
        """Write the tip's set points and both torques of this tick."""
        q = self._measured[self._angles[0]], self._measured[self._angles[1]]
        seen = bool(np.isfinite(q[0]) and np.isfinite(q[1]))
        if not self._started:
            self._row[:] = np.nan
            if not seen:
                return
            self._started = True
            self._state[:, _ANGLE] = q
            self._move(t_s, self.cases[0], self.timing.travel_s)
        self._advance(t_s, float(self._measured[self._normal]))
        x, y, vx, vy, ax, ay = self._set_point(t_s)
        q1, q3, tau1, tau3 = self._arm.joint_reference(x, y, vx, vy, ax, ay)
        self._row[:] = (self._trial, self._phase, self._case.gamma_rad, x, y, vx, vy, q1, q3)
        if not seen:
            return  # torques keep their values; the guard checks the age of the readings
        passed_s = since_reading_s(self._read_s, t_s, self._period_s)
        self._read_s = t_s
        timing = self.timing
        fed_back = self._phase != CONTACT and not (
            self._phase == APPROACH
            and t_s - self._since_s > timing.accelerate_s + timing.cruise_s - timing.coast_s
        )
        for i, angles, known in ((0, (q[0], q1), tau1), (1, (q[1], q3), tau3)):
            self._outputs[self._torques[i]] = _pid(
                self._gains, self._state[i], angles, known, passed_s, fed_back
            )

    def _advance(self, t_s: float, normal_N: float) -> None:
        """Change the phase according to time and touch."""
        timing, since = self.timing, t_s - self._since_s
        tolerance = 1e-9
        if self._phase == REST and since > timing.rest_s - tolerance:
            self._go_to(APPROACH, t_s)
        elif self._phase == APPROACH:
            longest = timing.accelerate_s + timing.cruise_s + timing.miss_s
            if normal_N > timing.touch_N and since > timing.accelerate_s:
                self._go_to(CONTACT, t_s)
            elif since > longest - tolerance:
                self._retreat(t_s)
        elif self._phase == CONTACT and since > timing.contact_s - tolerance:
            self._retreat(t_s)
        elif self._phase == RETREAT and since > self._curve.duration_s - tolerance:
            self._trial += 1
            last = self._trial >= self.n_trials
            if last:
                self._trial -= 1
            self._go_to(DONE if last else REST, t_s)

    def _go_to(self, phase: int, t_s: float) -> None:
        self._phase, self._since_s = phase, t_s

    def _retreat(self, t_s: float) -> None:
        nth = min(self._trial + 1, self.n_trials - 1)
        self._move(t_s, self.cases[nth % len(self.cases)], self.timing.retreat_s)

    def _move(self, t_s: float, goal: Case, duration_s: float) -> None:
        """Move from the tip's current position and velocity to the start of a trial."""
        (q1, q3), (w1, w3) = self._state[:, _ANGLE], self._state[:, _RATE]
        x, y, vx, vy = self._arm.tip_of(q1, q3, w1, w3)
        self._curve = _Quintic(np.array([x, y]), np.array([vx, vy]), goal, duration_s)
        self._go_to(RETREAT, t_s)

    def _set_point(self, t_s: float) -> tuple[float, float, float, float, float, float]:
        """Return position, velocity and acceleration set points of the tip."""
        since, timing, case = t_s - self._since_s, self.timing, self._case
        if self._phase == RETREAT:
            return self._curve.at(since)
        (x, y), (vx, vy) = case.start_m, case.v_m_per_s
        if self._phase == APPROACH:
            # speed v (1 - cos(pi t / t_a)) / 2 up to t_a, then v
            t_a = timing.accelerate_s
            elapsed, pace, gain = since - t_a / 2.0, 1.0, 0.0
            if since < t_a:
                turn = pi * since / t_a
                elapsed, pace = (since - t_a / pi * sin(turn)) / 2.0, (1.0 - cos(turn)) / 2.0
                gain = pi / (2.0 * t_a) * sin(turn)
            return x + elapsed * vx, y + elapsed * vy, pace * vx, pace * vy, gain * vx, gain * vy
        if self._phase == CONTACT:
            return x + timing.run_up_s * vx, y + timing.run_up_s * vy, 0.0, 0.0, 0.0, 0.0
        if self._phase == DONE:
            x, y = self._curve.end.tolist()
        return x, y, 0.0, 0.0, 0.0, 0.0


class _Quintic:
    """Curve from a position and velocity (no acceleration) to rest at a case's start."""

    def __init__(self, place: Array, velocity: Array, goal: Case, duration_s: float) -> None:
        self.end = np.array(goal.start_m)
        self.duration_s = duration_s
        d, v = self.end - place, velocity * duration_s
        self._c = np.array([place, v, 0.0 * d, 10.0 * d - 6.0 * v, 8.0 * v - 15.0 * d,
                            6.0 * d - 3.0 * v])  # fmt: skip

    def at(self, t_s: float) -> tuple[float, float, float, float, float, float]:
        s, T = min(max(t_s / self.duration_s, 0.0), 1.0), self.duration_s
        (x, y) = np.array([1.0, s, s**2, s**3, s**4, s**5]) @ self._c
        (vx, vy) = np.array([0.0, 1.0, 2.0 * s, 3.0 * s**2, 4.0 * s**3, 5.0 * s**4]) @ self._c / T
        bend = np.array([0.0, 0.0, 2.0, 6.0 * s, 12.0 * s**2, 20.0 * s**3])
        (ax, ay) = bend @ self._c / T**2
        return float(x), float(y), float(vx), float(vy), float(ax), float(ay)


@njit(cache=True)
def _pid(
    gains: Array, state: Array, angles: tuple[float, float], known: float, passed_s: float,
    fed_back: bool,
) -> float:  # fmt: skip
    """Return the torque of one motor.

    `angles` are the measured one and its set point; `known` is the torque from the model,
    `passed_s` the time since the last reading.

    State: integral, filtered angle, its rate, filtered error, whether feedback was on.
    """
    k_p, k_i, k_d, filter_s, most = gains
    angle, set_point = angles
    blend = passed_s / (filter_s + passed_s)
    change = blend * (angle - state[_ANGLE])
    state[_ANGLE] += change
    state[_RATE] = change / passed_s
    demand, error = known, set_point - angle
    if fed_back:
        if state[_FED_BACK] == 0.0:
            state[_ERROR] = error
        change = blend * (error - state[_ERROR])
        state[_ERROR] += change
        step = k_i * passed_s * error
        demand += k_p * error + state[_INTEGRAL] + step + k_d * change / passed_s
        if abs(demand) > most and demand * error > 0.0:
            demand -= step  # anti-windup
        else:
            state[_INTEGRAL] += step
    state[_FED_BACK] = 1.0 if fed_back else 0.0
    return float(min(max(demand, -most), most))
