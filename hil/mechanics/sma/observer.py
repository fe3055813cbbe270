"""Strain and temperature of a wire from its resistance, and from the duty that heats it.

An ensemble Kalman filter. Every member is a wire with a temperature T, an austenite fraction xi and
what is not known exactly of it: the parameters of `Uncertain`. All members advance by the wire's
law. A resistance R with the standard uncertainty u corrects whatever varies with it among them:

    z_i <- z_i + K (R + u e_i - R(T_i, xi_i)),    K = cov(z, R) / (var(R) + u^2)

for z = (T, xi, parameters) and e_i of variance 1. So a wire that does not transform corrects its
temperature, one that is at an end corrects the resistance of that phase, and one that transforms
corrects all that moves it; what a step cannot tell, the next ones do. A corrected wire stays within
its hysteresis: T not past the heating branch at xi < 1, nor below the cooling branch at xi > 0.

Source: Evensen 1994, J. Geophys. Res. 99; Burgers, van Leeuwen & Evensen 1998, Mon. Wea. Rev. 126,
eqs. (13) to (16), for the perturbed observations.
"""

from dataclasses import astuple, dataclass
from math import nan

import numpy as np

from hil.compiled import njit
from hil.mechanics.sma.resistance import NO_R_PHASE
from hil.mechanics.sma.stress import StressLaw
from hil.mechanics.sma.stressed import STRESSED, branches, constants_of, places, stroke
from hil.mechanics.sma.stressed import advance as advance_stressed
from hil.mechanics.sma.wire import SmaWire, advance, heated_ohms_per_m, wire_laws

N_MEMBERS = 192
WANDERS_PER_SQRT_S = 0.04  # of each parameter, so that the members do not agree too early
JITTER_K_PER_SQRT_S = 0.3  # what no parameter explains
UNEXPLAINED = 0.001  # of a resistance, by no parameter
T, XI = 0, 1


@dataclass(frozen=True)
class Uncertain:
    """Standard uncertainties of what the observer believes of a wire; the defaults are assumed.

    Attributes
    ----------
    heating, cooling : of the power and of the convection, relative
    air_K : of the air
    martensite, austenite : of the resistance of each phase, relative
    r_phase : of the resistance of R-phase over that of austenite
    branches_K, hysteresis_K : of the temperature of both branches, and of their distance
    stress_Pa : of a wire under stress
    """

    heating: float = 0.05
    cooling: float = 0.12
    air_K: float = 3.0
    martensite: float = 0.003
    austenite: float = 0.03
    r_phase: float = 0.02
    branches_K: float = 3.0
    hysteresis_K: float = 1.0
    stress_Pa: float = 20e6


@dataclass(frozen=True)
class WireState:
    """What is estimated of a wire; u_ are standard uncertainties, strain 0 is austenite's."""

    T_C: float
    strain: float
    u_T_K: float
    u_strain: float


class ResistanceObserver:
    """See the module. It begins with a cold wire in equilibrium with the air.

    Parameters
    ----------
    wire : as the model has it, with its supply and ambient temperature
    stress : law and constant stress in Pa of a wire under stress; None: the law without stress
    uncertain : of all that; `measured_ends` gives that of the resistances
    seed : of the ensemble
    """

    def __init__(
        self,
        wire: SmaWire,
        stress: tuple[StressLaw, float] | None = None,
        uncertain: Uncertain = Uncertain(),
        seed: int = 0,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._law = wire_laws([wire])[0]
        self._laws = np.repeat(self._law, N_MEMBERS)
        self._laws["varies"] = 1.0
        self._cell_m = wire.cell_m
        law = [] if stress is None else [constants_of(stress[0])]
        self._stressed = np.array(law, STRESSED)  # none, or one
        self._stress_Pa = 0.0 if stress is None else stress[1]
        self._places = np.zeros((N_MEMBERS, 4))
        self.strain_max = wire.resistivity.strain
        if stress is not None:
            self.strain_max = stroke(self._stressed[0], stress[1])[0]
        self._u = np.array(astuple(uncertain))[:, None]
        self._parameters = self._u * self._rng.standard_normal((len(self._u), N_MEMBERS))
        self._states = np.zeros((2, N_MEMBERS))
        self._since_s = 0.0
        self._believe()
        self._states[T] = self._laws["T_a"]
        _limit(self._laws, self._stressed, self._places, self._states)

    def step(
        self, duty: float, period_s: float, R_Ohm: float = nan, u_Ohm: float = 0.0
    ) -> WireState:
        """Advance by a period at a duty, then take a resistance; NaN: there is none."""
        _advance(self._laws, self._stressed, self._places, duty, period_s, self._states)
        self._since_s += period_s
        if R_Ohm == R_Ohm:
            self._wander(self._since_s)
            self._correct(R_Ohm, u_Ohm)
            self._since_s = 0.0
        T_C, strain = self._states[T], self._laws["strain"] * (1.0 - self._states[XI])
        return WireState(
            float(T_C.mean()), float(strain.mean()), float(T_C.std()), float(strain.std())
        )

    def _wander(self, since_s: float) -> None:
        """Let the members drift apart, for what is not modelled."""
        root_s = since_s**0.5
        normal = self._rng.standard_normal((1 + len(self._u), N_MEMBERS)) * root_s
        self._parameters += WANDERS_PER_SQRT_S * self._u * normal[1:]
        self._states[T] += JITTER_K_PER_SQRT_S * normal[0]

    def _correct(self, R_Ohm: float, u_Ohm: float) -> None:
        R = self._cell_m * heated_ohms_per_m(self._laws, self._states[0], self._states[1])
        away = R - R.mean()
        variance = away @ away / (N_MEMBERS - 1)
        u_Ohm = float(np.hypot(u_Ohm, UNEXPLAINED * R_Ohm))
        noisy = R_Ohm + u_Ohm * self._rng.standard_normal(N_MEMBERS) - R
        for z in (self._states, self._parameters):
            covariance = (z - z.mean(axis=1, keepdims=True)) @ away / (N_MEMBERS - 1)
            z += np.outer(covariance / (variance + u_Ohm**2 + 1e-12), noisy)
        self._believe()
        _limit(self._laws, self._stressed, self._places, self._states)

    def _believe(self) -> None:
        """Give every member's law its parameters."""
        heating, cooling, air_K, martensite, austenite, r_phase = self._parameters[:6]
        branches_K, hysteresis_K, stress_Pa = self._parameters[6:]
        law, laws = self._law, self._laws
        laws["E2"] = law.E2 * np.exp(heating)
        laws["G"] = law.G * np.exp(cooling)
        laws["T_a"] = law.T_a + air_K
        laws["r_martensite"] = law.r_martensite * np.exp(martensite)
        r_A = (law.r_martensite + law.r_change) * np.exp(austenite)
        laws["r_change"] = r_A - laws["r_martensite"]
        by = law.resistivity
        r_R = by.r_phase_Ohm_per_m
        if r_R == NO_R_PHASE:  # as austenite's where R-phase would be
            r_R = r_A * (1.0 + by.austenite_per_K * (0.5 * (by.R_s_C + by.R_f_C) - by.at_C))
        laws["resistivity"]["r_phase_Ohm_per_m"] = r_R * np.exp(r_phase)
        hot_K, cold_K = branches_K + 0.5 * hysteresis_K, branches_K - 0.5 * hysteresis_K
        for name, shift_K in (("A_s", hot_K), ("A_f", hot_K), ("M_s", cold_K), ("M_f", cold_K)):
            laws[name] = law[name] + shift_K
        for c in self._stressed:
            s = np.maximum(0.0, self._stress_Pa + stress_Pa)
            laws["strain"], slope = stroke(c, s)
            self._places[:] = np.column_stack(places(c, s, slope))
            self._places[:, 0] += hot_K
            self._places[:, 2] += cold_K


@njit(cache=True)
def _advance(laws, stressed, place, duty, h, states):  # type: ignore[no-untyped-def]
    for i in range(len(laws)):
        if len(stressed):
            states[0, i], states[1, i] = advance_stressed(
                laws[i], stressed[0].knots_K, place[i], duty, states[0, i], states[1, i], h
            )
        else:
            states[0, i], states[1, i] = advance(laws[i], duty, states[0, i], states[1, i], h)


@njit(cache=True)
def _limit(laws, stressed, place, states):  # type: ignore[no-untyped-def]
    """Bring every member between its branches, and its fraction between 0 and 1."""
    for i in range(len(laws)):
        xi = min(1.0, max(0.0, states[1, i]))
        if len(stressed):
            hot, cold = branches(stressed[0].knots_K, place[i], xi)
        else:
            law = laws[i]
            hot = law.A_s + xi * (law.A_f - law.A_s)
            cold = law.M_f + xi * (law.M_s - law.M_f)
        if xi < 1.0:
            states[0, i] = min(states[0, i], hot)
        if xi > 0.0:
            states[0, i] = max(states[0, i], min(hot, cold))
        states[1, i] = xi
