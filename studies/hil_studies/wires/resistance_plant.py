"""Simulated wires whose resistance a board measures, and which differ from what is believed.

Every wire is heated by duties at random. Current and supply pass the converter of a board, with
noise. How a wire differs is one deviation (`DEVIATIONS`), or drawn from what the observer believes
to be uncertain (`drawn`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hil.devices.board import protocol
from hil.devices.board.resistance import FULL_COUNTS, Chain
from hil.mechanics.arrays import Array
from hil.mechanics.sma.observer import Uncertain
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.stress import Branch, StressLaw
from hil.mechanics.sma.stressed import advance as advance_stressed
from hil.mechanics.sma.stressed import places, row, stroke
from hil.mechanics.sma.wire import SmaWire, advance, ohm_per_m_of, wire_laws

PERIOD_S, HOLD_S = 0.004, 1.2
LEVELS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COLD_S, HOT_S = 2.0, 8.0  # of the record that measures both ends
SUPPLY_FULL_mV = 10000
LIVELY = Resistivity(martensite_per_K=8e-4, austenite_per_K=3e-4, per_strain=2.0)  # assumed
STRESS_Pa = 150e6
FLEXINOL = StressLaw(  # docs/wires.md, fitted to loops at 50 and 200 MPa
    heating=Branch(78.3, 8.3e6, 1.05, 8.2, -3.9, 0.52, 0.0020e-6),
    cooling=Branch(56.3, 7.5e6, 1.23, 8.0, -3.4, 0.52, 0.0008e-6),
    stroke_min=0.040,
    stroke_max=0.041,
    stroke_rate_per_Pa=0.012e-6,
    modulus_A_Pa=70e9,
    modulus_M_Pa=1.0 / (1.0 / 70e9 + 25e-12),
)


@dataclass(frozen=True)
class Record:
    """What an observer gets, and what it is held against: (n,) arrays; NaN where there is none."""

    t_s: Array
    duty: Array
    R_Ohm: Array
    u_Ohm: Array
    strain: Array


@dataclass(frozen=True)
class Case:
    """A wire, and the law and stress that it is under."""

    name: str
    wire: SmaWire
    stress: tuple[StressLaw, float] | None = None


@dataclass(frozen=True)
class Board:
    """How often a board measures, how exactly, and by a current sensor of which full scale."""

    every_s: float
    noise_counts: float
    full_scale_mA: int


def cases(n_wires: int, supply_V: float) -> list[Case]:
    """The wires that the observer believes in."""
    plain = SmaWire(n_wires=n_wires, supply_V=supply_V)
    cold = 1.0 + LIVELY.per_strain * LIVELY.strain  # so that the cold wire is the same
    lively = replace(
        plain, martensite_Ohm_per_m=plain.martensite_Ohm_per_m / cold, resistivity=LIVELY
    )
    return [
        Case("phases alone", plain),
        Case("temperature and strain too", lively),
        Case("the same under 150 MPa", lively, (FLEXINOL, STRESS_Pa)),
    ]


def other_air(case: Case) -> Case:
    """Air 2 K colder, convection 10 % and latent heat 5 % different."""
    wire = replace(
        case.wire,
        ambient_C=case.wire.ambient_C - 2.0,
        convection_W_per_m2_K=1.1 * case.wire.convection_W_per_m2_K,
        latent_heat_J_per_kg=0.95 * case.wire.latent_heat_J_per_kg,
    )
    return replace(case, wire=wire)


def other_austenite(case: Case, factor: float = 1.03) -> Case:
    """Austenite of another resistance."""
    ohm = factor * case.wire.austenite_Ohm_per_m
    return replace(case, wire=replace(case.wire, austenite_Ohm_per_m=ohm))


def moved_branches(case: Case, both_K: float = 4.0, apart_K: float = 0.0) -> Case:
    """Both branches at another temperature, and further apart."""
    hot_K, cold_K = both_K + 0.5 * apart_K, both_K - 0.5 * apart_K
    wire = case.wire
    shifts = {"A_s_C": hot_K, "A_f_C": hot_K, "M_s_C": cold_K, "M_f_C": cold_K}
    wire = replace(wire, **{key: getattr(wire, key) + shift for key, shift in shifts.items()})
    if case.stress is None:
        return replace(case, wire=wire)
    law, stress_Pa = case.stress
    heating = replace(law.heating, middle_C=law.heating.middle_C + hot_K)
    cooling = replace(law.cooling, middle_C=law.cooling.middle_C + cold_K)
    return replace(
        case, wire=wire, stress=(replace(law, heating=heating, cooling=cooling), stress_Pa)
    )


def more_stress(case: Case, more_Pa: float = 30e6) -> Case:
    """Another stress, of a wire that is under one."""
    if case.stress is None:
        return case
    law, stress_Pa = case.stress
    return replace(case, stress=(law, stress_Pa + more_Pa))


def with_r_phase(case: Case, factor: float = 1.05) -> Case:
    """R-phase of that resistance over austenite's."""
    wire = case.wire
    r_phase = factor * wire.austenite_Ohm_per_m
    resistivity = replace(wire.resistivity, r_phase_Ohm_per_m=r_phase)
    return replace(case, wire=replace(wire, resistivity=resistivity))


DEVIATIONS: dict[str, Callable[[Case], Case]] = {
    "other air": other_air,
    "austenite +3 %": other_austenite,
    "branches +4 K": moved_branches,
    "stress +30 MPa": more_stress,
    "R-phase +5 %": with_r_phase,
}


def drawn(case: Case, uncertain: Uncertain, rng: np.random.Generator) -> Case:
    """A wire of which everything differs, as the observer believes it to be uncertain."""
    normal = rng.standard_normal
    wire = replace(
        case.wire,
        ambient_C=case.wire.ambient_C + uncertain.air_K * normal(),
        convection_W_per_m2_K=case.wire.convection_W_per_m2_K
        * np.exp(uncertain.cooling * normal()),
        latent_heat_J_per_kg=case.wire.latent_heat_J_per_kg * np.exp(0.05 * normal()),
        martensite_Ohm_per_m=case.wire.martensite_Ohm_per_m
        * np.exp(uncertain.martensite * normal()),
    )
    other = other_austenite(replace(case, wire=wire), np.exp(uncertain.austenite * normal()))
    other = with_r_phase(other, np.exp(uncertain.r_phase * normal()))
    other = more_stress(other, uncertain.stress_Pa * normal())
    return moved_branches(other, uncertain.branches_K * normal(), uncertain.hysteresis_K * normal())


def random_duty(duration_s: float, seed: int) -> Array:
    """A duty for every period, held for a while each."""
    n, held = round(duration_s / PERIOD_S), round(HOLD_S / PERIOD_S)
    levels = np.random.default_rng(seed).choice(np.array(LEVELS), -(-n // held))
    return np.repeat(levels, held)[:n]


def duty_of_ends() -> Array:
    """Cold at rest, then hot."""
    return np.repeat([0.0, 1.0], [round(COLD_S / PERIOD_S), round(HOT_S / PERIOD_S)])


def simulated(true: Case, board: Board, duty: Array, seed: int) -> Record:
    """A wire and its resistance through the chain of a board."""
    rng = np.random.default_rng(seed)
    limits = protocol.default_limits() | {
        "current_full_scale_mA": board.full_scale_mA,
        "supply_full_scale_mV": SUPPLY_FULL_mV,
    }
    chain, every = Chain.of(limits, 0.0, 0.0), max(1, round(board.every_s / PERIOD_S))
    supply_mV, n = 1e3 * true.wire.cell_V, len(duty)
    R, u = np.full((2, n), np.nan)
    ohm, strain, _ = stepped(true, duty, np.full(n, PERIOD_S))
    for k in range(0, n, every):
        volts = _counts(supply_mV / SUPPLY_FULL_mV, board, rng)
        amps = _counts(supply_mV / ohm[k] / board.full_scale_mA, board, rng)
        R[k], u[k] = chain.ohms(amps, volts)
        u[k] *= np.hypot(1.0, board.noise_counts * 12.0**0.5)
    return Record(np.arange(1, n + 1, dtype=np.float64) * PERIOD_S, duty, R, u, strain)


def stepped(case: Case, duty: Array, periods_s: Array) -> tuple[Array, Array, Array]:
    """Resistance of the cell, strain and temperature of the wire after each of the periods."""
    wire = case.wire
    law, T, xi = wire_laws([wire])[0], wire.ambient_C, 0.0
    ohm, strain, T_C = np.empty((3, len(duty)))
    strain_max = wire.resistivity.strain
    if case.stress is not None:
        c = row(case.stress[0])
        strain_max, slope = stroke(c, case.stress[1])
        place = places(c, case.stress[1], slope)
    for k, (d, h) in enumerate(zip(duty, periods_s, strict=True)):
        if case.stress is None:
            T, xi = advance(law, d, T, xi, h)
        else:
            T, xi = advance_stressed(law, c, place, d, T, xi, h)
        strain[k], T_C[k] = strain_max * (1.0 - xi), T
        ohm[k] = wire.cell_m * ohm_per_m_of(law, T, xi, strain[k])
    return ohm, strain, T_C


def _counts(share: float, board: Board, rng: np.random.Generator) -> int:
    noisy = share * FULL_COUNTS + board.noise_counts * rng.standard_normal()
    return int(min(FULL_COUNTS, max(0, round(noisy))))
