"""Duties that bring wires to fractions of austenite, without exceeding their limits.

Per metre of wire (`hil.mechanics.sma.wire`), the heat content h = C T + L xi obeys

    h' = D E^2 / r - G (T - T_a)

which is linear in the duty D; the resistance r follows phase, temperature and strain. So with the
temperature T* at which a wire at the fraction xi* is on its branch, and h* = C T* + L xi*, the duty

    D = (G (T - T_a) + (h* - h) / tau) r / E^2                                                  (1)

lets h approach h* with the time constant tau. xi is the measured fraction.
T is the twin's, moved between the branches at xi, where a wire at xi must be. So the force is fed
back in terms of heat: a missing fraction calls for the power L (xi* - xi) / tau.

Hysteresis: a wire that must transform to austenite goes to its heating branch, one that must
transform back to its cooling branch, and one that is where it should be keeps its temperature.

Limits saturate the duty instead of tripping. With a margin that shrinks with the rate 1 / s,

    T' <= (T_max - T) / s:    D <= (G (T - T_a) + C (T_max - T) / s) r / E^2                    (2)
    B' <= (B_max - B) / s:    c(D) <= (B / tau_b + (B_max - B) / s) / I_max^2                   (3)

with the twin's T and xi in (2), which no measured force can change, and the current I_max of the
least resistance that the wire may have in (3). T never exceeds T_max then, whatever (1) asks for,
and B, the heat budget that the board counts as B' = c I^2 - B / tau_b, never exceeds B_max. A new
duty counts in full for its on-time in the first of its modulation's periods and in proportion
afterwards (firmware/core/heat.h). Over a command that lasts 1 / k periods,

    c(D) = D + k D (1 - D)                                                                      (4)

Source
------
A supervisor that saturates the input of an arbitrary controller, such that the temperature of a
linear thermal model stays below its limit: Sabelhaus, Patterson, Wertz & Majidi 2022, Safe
Supervisory Control of Soft Robot Actuators, arXiv 2208.01547. (3) and the inverse (1) are this
project's.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.loop.duty import STEPS
from hil.mechanics.arrays import Array
from hil.mechanics.sma.wire import SmaWires, heated_ohms_per_m

MODULATION_S = 4.096e-3  # longest period of a board's modulation, PORT_MODULATION_MAX_US
SUPPLY_ERROR = 0.01  # assumed: of the supply's voltage
RAMP = 4.0  # in dead bands, see `WireDuties._wanted_C`
TINY = 1e-9  # keeps a whole step from being rounded down, and divides by no zero


@dataclass(frozen=True)
class Budget:
    """How boards count the heat of their cells; every value is an (N,) array.

    Attributes
    ----------
    most_A2s, time_constant_s : largest heat, and time constant with which it cools
    count_A : resolution of the current
    least_Ohm : the least resistance of a cell, at any temperature up to its largest
    """

    most_A2s: Array
    time_constant_s: Array
    count_A: Array
    least_Ohm: Array


class Branching(Protocol):
    """Wires with their state, and the temperatures of their branches."""

    wires: SmaWires

    def branches_C(self, fraction: Array) -> Array:
        """(2, N) temperatures of the heating and the cooling branch at fractions (N,)."""
        ...


class WireDuties:
    """Duties of wires, one command after the other.

    Parameters
    ----------
    temperature_max_C : (N,) array, T_max of equation (2)
    response_s : tau of equation (1)
    command_s : time between two commands
    duty_min : smallest duty above 0
    dead_band : fraction of austenite within which a wire is where it should be

    Attributes
    ----------
    limited : (N,) bool array, duty held down by (2) or (3) in the last command
    high, low : (N,) bool arrays, duty at its largest value, or at 0, in the last command
    """

    def __init__(
        self,
        temperature_max_C: Array,
        budget: Budget,
        *,
        response_s: float,
        command_s: float,
        duty_min: float,
        dead_band: float,
    ) -> None:
        n = len(temperature_max_C)
        self._max_C, self._budget = temperature_max_C, budget
        self._response_s, self._command_s = response_s, command_s
        self._margin_s = max(0.5 * response_s, 2.0 * command_s)  # s
        self._steps_min, self._band = round(duty_min * STEPS), dead_band
        self._periods = MODULATION_S / command_s  # k of equation (4)
        self._used_A2s = np.zeros(n)
        self._carry, self._duty = np.zeros(n), np.zeros(n)
        self._is_new = np.zeros(n, dtype=bool)
        self.limited = self.high = self.low = np.zeros(n, dtype=bool)
        self.restart()

    def restart(self) -> None:
        """Start after arming, when boards have at most 1 / 8 of the heat budget in use."""
        self._used_A2s[:] = self._budget.most_A2s / 8.0
        self._carry[:] = self._duty[:] = 0.0

    def step(
        self,
        fraction: Array,
        measured_fraction: Array,
        able: NDArray[np.bool_],
        system: Branching,
        held: int = 1,
    ) -> Array:
        """Duties for the next command, (N,), each 0 or from `duty_min` to 1.

        Parameters
        ----------
        fraction : (N,) array, xi*; beyond 0 to 1 the temperatures of the branches go on
        measured_fraction : (N,) array, measured fraction
        able : (N,) array, wires that may be on
        system : the wires, in their present state
        held : for how many commands the last duties have been held
        """
        wires, laws = system.wires, system.wires.laws
        C, L, G, air_C = (laws[name] for name in ("C", "L", "G", "T_a"))
        xi = np.clip(measured_fraction, 0.0, 1.0)
        T_C = self._between(wires.T_C, system.branches_C(xi), xi)
        full_W_per_m = laws["E2"] / heated_ohms_per_m(laws, T_C, xi)
        wanted_C = self._wanted_C(fraction, T_C, xi, system.branches_C(fraction), air_C)
        error = np.clip(fraction, 0.0, 1.0) - xi
        beyond = np.sign(error) * np.maximum(np.abs(error) - self._band, 0.0)
        missing = C * (wanted_C - T_C) + L * beyond
        demand = (G * (T_C - air_C) + missing / self._response_s) / full_W_per_m
        twin_Ohm_per_m = heated_ohms_per_m(laws, wires.T_C, wires.xi)
        cooler = G * (wires.T_C - air_C) + C * (self._max_C - wires.T_C) / self._margin_s
        full_A = laws["cell_V"] / self._budget.least_Ohm
        counted_A2 = ((1.0 + SUPPLY_ERROR) * full_A + self._budget.count_A) ** 2
        self._count(counted_A2, held)
        most = np.minimum(cooler * twin_Ohm_per_m / laws["E2"], self._within_budget(counted_A2))
        most = np.where(able, most, 0.0)
        duty = self._rounded(np.clip(demand, 0.0, 1.0), np.clip(most, 0.0, 1.0))
        self.limited = (demand > most) & (most < 1.0)
        self.high, self.low = demand >= np.minimum(most, 1.0), demand <= 0.0
        self._is_new, self._duty = duty != self._duty, duty
        return duty

    def _wanted_C(
        self, fraction: Array, T_C: Array, xi: Array, branches_C: Array, air_C: Array
    ) -> Array:
        """T*: from the present temperature towards the branch that the missing fraction needs.

        All the way to it if RAMP dead bands are missing: a shorter way for less prevents bursts
        of power where noise leaves the dead band.
        """
        hot, cold = branches_C
        needed = fraction > self._band
        cold = np.where(needed, cold, air_C)
        kept = np.where(needed, np.clip(T_C, cold, hot), air_C)
        beyond = np.abs(fraction - xi) - self._band
        way = np.clip(beyond / max(RAMP * self._band, TINY), 0.0, 1.0)
        return np.asarray(kept + way * (np.where(fraction > xi, hot, cold) - kept))

    def _between(self, T_C: Array, branches_C: Array, xi: Array) -> Array:
        """Temperatures, moved between the branches of these fractions; the ends are open."""
        hot, cold = branches_C
        least = np.where(xi > self._band, cold, -np.inf)
        return np.clip(T_C, least, np.where(xi < 1.0 - self._band, hot, np.inf))

    def _within_budget(self, counted_A2: Array) -> Array:
        """Equation (3), solved for D with (4); a duty that stays counts as it is."""
        used, budget = self._used_A2s, self._budget
        rate = (budget.most_A2s - used) / self._margin_s
        counted = (used / budget.time_constant_s + rate) / counted_A2
        k, inside = self._periods, np.clip(counted, 0.0, 1.0)
        root = np.sqrt((1.0 + k) ** 2 - 4.0 * k * inside)
        changed = np.where(counted >= 1.0, counted, (1.0 + k - root) / (2.0 * k))
        return np.where(self._duty <= counted, np.maximum(changed, self._duty), changed)

    def _rounded(self, demand: Array, most: Array) -> Array:
        """Whole steps, of which the rest is carried on; never above `most`.

        A duty that is right to a step stays, since boards count a new one as more heat.
        """
        wanted = np.minimum(demand, most) + self._carry
        last = np.rint(STEPS * self._duty)
        stays = np.abs(STEPS * wanted - last) <= 1.0
        steps = np.where(stays, last, np.rint(STEPS * wanted))
        steps = np.minimum(steps, np.floor(STEPS * most + TINY))
        steps = np.where(steps < self._steps_min, 0.0, np.clip(steps, 0.0, STEPS))
        duty = steps / STEPS
        one = max(self._steps_min, 1) / STEPS
        self._carry = np.clip(wanted - duty, -one, one)
        return duty

    def _count(self, counted_A2: Array, held: int) -> None:
        """Add what the board has counted of the last duties, equation (4)."""
        duty, used = self._duty, self._used_A2s
        extra = np.where(self._is_new, self._periods * duty * (1.0 - duty), 0.0)
        kept = np.exp(-held * self._command_s / self._budget.time_constant_s)
        settles = counted_A2 * duty * self._budget.time_constant_s
        used[:] = settles + (used - settles) * kept + counted_A2 * extra * self._command_s
