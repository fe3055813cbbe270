"""Strain and temperature of a wire from its resistance, and from the duty that heats it.

An ensemble Kalman filter. Every member is a wire with a temperature T, an austenite fraction xi and
its own heating, convection and air, which are not known exactly. All members advance by the wire's
law. A resistance R with the standard uncertainty u corrects whatever varies with it among them:

    z_i <- z_i + K (R + u e_i - R(T_i, xi_i)),    K = cov(z, R) / (var(R) + u^2)

for z = (T, xi, heating, convection, air) and e_i of variance 1. So a wire that does not transform
corrects its temperature, and one that does both; what a step cannot tell, the next ones do. A
corrected wire stays within its hysteresis: T not past the heating branch at xi < 1, nor below the
cooling branch at xi > 0.

Source: Evensen 1994, J. Geophys. Res. 99; Burgers, van Leeuwen & Evensen 1998, Mon. Wea. Rev. 126,
eqs. (13) to (16), for the perturbed observations.
"""

from dataclasses import dataclass
from math import nan

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.mechanics.sma.stress import StressLaw
from hil.mechanics.sma.stressed import COOLING_AT, HEATING_AT, PIECES, places, row, stroke
from hil.mechanics.sma.stressed import advance as advance_stressed
from hil.mechanics.sma.wire import (
    E2_AT,
    G_AT,
    T_A_AT,
    SmaWire,
    advance,
    ohm_per_m_of,
    wire_laws,
)

N_MEMBERS = 64
U_HEATING, U_COOLING, U_AIR_K = 0.05, 0.12, 3.0  # assumed: of what the model believes
WANDERS_PER_SQRT_S = 0.02  # of these, so that the members do not agree too early
JITTER_K_PER_SQRT_S = 0.3  # what no parameter explains
T, XI = 0, 1


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
    seed : of the ensemble
    """

    def __init__(
        self, wire: SmaWire, stress: tuple[StressLaw, float] | None = None, seed: int = 0
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._law = wire_laws([wire])[0]
        self._laws = np.repeat(self._law[None], N_MEMBERS, axis=0)
        self._cell_m, self.strain_max = wire.cell_m, wire.resistivity.strain
        shares = np.linspace(0.0, 1.0, PIECES + 1)
        heating = wire.A_s_C + shares * (wire.A_f_C - wire.A_s_C)
        cooling = wire.M_f_C + shares * (wire.M_s_C - wire.M_f_C)
        self._c, self._place = np.zeros(0), (0.0, 1.0, 0.0, 1.0)
        if stress is not None:
            self._c = row(stress[0])
            self.strain_max, slope = stroke(self._c, stress[1])
            p = self._place = places(self._c, stress[1], slope)
            heating = p[0] + p[1] * self._c[HEATING_AT : HEATING_AT + len(shares)]
            cooling = p[2] + p[3] * self._c[COOLING_AT : COOLING_AT + len(shares)]
        self._branches = np.stack([shares, heating, np.minimum(cooling, heating)])
        u = np.array([[U_HEATING], [U_COOLING], [U_AIR_K]])
        self._u = u
        self._parameters = u * self._rng.standard_normal((3, N_MEMBERS))
        self._states = np.zeros((2, N_MEMBERS))
        self._since_s = 0.0
        self._believe()
        self._states[T] = self._laws[:, T_A_AT]
        self._limit()

    def step(
        self, duty: float, period_s: float, R_Ohm: float = nan, u_Ohm: float = 0.0
    ) -> WireState:
        """Advance by a period at a duty, then take a resistance; NaN: there is none."""
        _advance(self._laws, self._c, self._place, duty, period_s, self._states)
        self._since_s += period_s
        if R_Ohm == R_Ohm:
            self._wander(self._since_s)
            self._correct(R_Ohm, u_Ohm)
            self._since_s = 0.0
        T_C, strain = self._states[T], self.strain_max * (1.0 - self._states[XI])
        return WireState(
            float(T_C.mean()), float(strain.mean()), float(T_C.std()), float(strain.std())
        )

    def _wander(self, since_s: float) -> None:
        """Let the members drift apart, for what is not modelled."""
        root_s = since_s**0.5
        own = self._rng.standard_normal((4, N_MEMBERS)) * root_s
        self._parameters += WANDERS_PER_SQRT_S * self._u * own[:3]
        self._states[T] += JITTER_K_PER_SQRT_S * own[3]

    def _correct(self, R_Ohm: float, u_Ohm: float) -> None:
        told = self._cell_m * _ohm(self._laws, self.strain_max, self._states)
        away = told - told.mean()
        variance = away @ away / (N_MEMBERS - 1)
        noisy = R_Ohm + u_Ohm * self._rng.standard_normal(N_MEMBERS) - told
        for z in (self._states, self._parameters):
            covariance = (z - z.mean(axis=1, keepdims=True)) @ away / (N_MEMBERS - 1)
            z += np.outer(covariance / (variance + u_Ohm**2 + 1e-12), noisy)
        self._limit()
        self._believe()

    def _limit(self) -> None:
        shares, heating, cooling = self._branches
        T_C, xi = self._states
        np.clip(xi, 0.0, 1.0, out=xi)
        most = np.where(xi < 1.0, np.interp(xi, shares, heating), np.inf)
        least = np.where(xi > 0.0, np.interp(xi, shares, cooling), -np.inf)
        np.clip(T_C, least, most, out=T_C)

    def _believe(self) -> None:
        heating, cooling, air_K = self._parameters
        self._laws[:, E2_AT] = self._law[E2_AT] * np.exp(heating)
        self._laws[:, G_AT] = self._law[G_AT] * np.exp(cooling)
        self._laws[:, T_A_AT] = self._law[T_A_AT] + air_K


@njit(cache=True)
def _advance(laws, c, place, duty, h, states):  # type: ignore[no-untyped-def]
    for i in range(len(laws)):
        if len(c):
            states[0, i], states[1, i] = advance_stressed(
                laws[i], c, place, duty, states[0, i], states[1, i], h
            )
        else:
            states[0, i], states[1, i] = advance(laws[i], duty, states[0, i], states[1, i], h)


@njit(cache=True)
def _ohm(laws, strain_max, states) -> Array:  # type: ignore[no-untyped-def]
    found = np.empty(len(laws))
    for i in range(len(laws)):
        xi = states[1, i]
        found[i] = ohm_per_m_of(laws[i], states[0, i], xi, strain_max * (1.0 - xi))
    return found
