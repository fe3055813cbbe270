"""Commissioning: each cell is pulsed alone, and a fit to the readings identifies it.

The run starts at rest. First the force is read for ZERO_S with all cells off: the zero offset of
the transducer. Then each cell in turn follows PULSES_S: one full pulse, and a second one while it
still cools. With a single pulse, late readings and slow wires are hard to distinguish (Cramer-Rao:
23 % for heating and cooling with an unknown delay); a second one of 0.4 s resolves them (0.7 %).
A least-squares fit of a wire's law (`hil.mechanics.sma.wire`) gives the static force, the rate of
the lag, and the supply, convection and specific heat of the wire. Latent heat and transition
temperatures keep the manufacturer's values: latent heat and width of a transition have the same
effect on force as specific heat and distance from the ambient temperature. The delay of the
reading is fitted too, but not passed on. In the array, a cell's force also acts through the
dampers of the others. Therefore the identified array itself is probed and corrected by the
difference between its own fits and the fits of the plant, ROUNDS times (indirect inference). All
controllers get the same result.

Source: Ljung 1999, System Identification, ch. 7 (output-error, least squares);
Gourieroux, Monfort & Renault 1993 (indirect inference).
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numba import njit
from scipy.optimize import least_squares

from hil.mechanics.arrays import Array
from hil.mechanics.sma.wire import T_A_AT, SmaWire, advance, wire_laws
from hil.systems.array import cells
from hil.systems.array.activation import CellActivation
from hil.systems.array.cell_array import CellArray
from hil.systems.array.recruitment.study_plant import (
    ARRAYS,
    CELL,
    FORCE_ON_N,
    MASS_KG,
    PERIOD_S,
    RIGHT,
    KnownArray,
    Plant,
    Transducer,
    later,
    nominal,
    plant,
)
from hil.systems.array.system import ArraySystem

ZERO_S = 1.0
PULSES_S = (2.0, 0.9, 0.4, 2.7)  # on, off, on, off
RATE_PER_S = (CELL["k_se_N_per_m"] + CELL["k_ae_N_per_m"]) / CELL["b_N_s_per_m"]
ROUNDS = 2
LATE_S = 0.1  # prior standard deviation of the delay, divided by SURE
SURE = 0.3  # prior standard deviation of a parameter's logarithm


def seconds(n_cells: int) -> float:
    """Return the duration of the probing run."""
    return ZERO_S + n_cells * sum(PULSES_S)


def probe(array: Plant | KnownArray, sensor: Transducer | None) -> Array:
    """Return one reading per tick; without a transducer, the true force."""
    n_cells = array.model.n_cells
    system = ArraySystem(array.model, array.activation, PERIOD_S)
    output = array.model.outputs.index(RIGHT)
    n_zero, pulses = round(ZERO_S / PERIOD_S), _pulses()
    n_each = len(pulses)
    on = np.zeros(n_cells, dtype=np.uint8)
    read = np.empty(n_zero + n_cells * n_each)
    for k in range(len(read)):
        force_N = float(system.y[output])
        read[k] = force_N if sensor is None else sensor.read(force_N)
        at = k - n_zero
        on[:] = 0
        if at >= 0:
            on[at // n_each] = pulses[at % n_each]
        system.step(on)
    return read


def _pulses() -> Array:
    """Return on (1) or off (0) for every tick."""
    each = [np.full(round(t / PERIOD_S), 1.0 - i % 2) for i, t in enumerate(PULSES_S)]
    return np.concatenate(each)


def commission(truth: Plant, seed: int) -> KnownArray:
    """Return the array as identified by pulsing every cell alone."""
    n_cells = truth.model.n_cells
    read = probe(truth, Transducer(seed, turn=1))
    zero_N = float(read[: round(ZERO_S / PERIOD_S)].mean())
    found = _fits(read - zero_N, n_cells)
    own = found[:, :5]
    know = known_array(own, zero_N)
    for _ in range(ROUNDS):
        own = own + found[:, :5] - _fits(probe(know, None), n_cells)[:, :5]
        know = known_array(own, zero_N)
    return know


def known_array(own: Array, zero_N: float) -> KnownArray:
    """Return the array whose cells differ from nominal by these logarithms (N, 5); see `fit`."""
    n_cells = len(own)
    factor = np.exp(own)
    stiffness = CELL["k_se_N_per_m"] + CELL["k_ae_N_per_m"]
    laws = [cells.miga(**{**CELL, "b_N_s_per_m": stiffness / (RATE_PER_S * f[1])}) for f in factor]
    model = CellArray.from_fingerprint(ARRAYS[n_cells], cell=laws, mass_kg=MASS_KG)
    activation = tuple(
        CellActivation(float(FORCE_ON_N * f[0]), "thermal", wire=_wire(f)) for f in factor
    )
    return KnownArray(model, activation, nominal(n_cells).static_gains_N * factor[:, 0], zero_N)


def _wire(factor: Array) -> SmaWire:
    base = SmaWire()
    return replace(
        base,
        supply_V=float(base.cell_V * factor[2]),
        convection_W_per_m2_K=float(base.convection_W_per_m2_K * factor[3]),
        specific_heat_J_per_kg_K=float(base.specific_heat_J_per_kg_K * factor[4]),
    )


def _fits(read_N: Array, n_cells: int) -> Array:
    n_zero, n_each = round(ZERO_S / PERIOD_S), len(_pulses())
    return np.array([
        fit(read_N[n_zero + n * n_each : n_zero + (n + 1) * n_each], gain_N)
        for n, gain_N in enumerate(nominal(n_cells).static_gains_N)
    ])  # fmt: skip


def fit(read_N: Array, nominal_N: float) -> Array:
    """Return a cell's deviations from nominal, as natural logarithms, and the reading's delay.

    The order is: static force, rate of the lag, supply, convection and specific heat of the wire,
    delay over LATE_S.
    """
    on = _pulses()
    y = np.empty(len(read_N))
    t_s = PERIOD_S * np.arange(len(read_N))
    scale_N = 0.01 * nominal_N

    def residuals(p: Array) -> Array:
        gain_N, rate = nominal_N * np.exp(p[0]), RATE_PER_S * np.exp(p[1])
        pulse(wire_laws([_wire(np.exp(p))])[0], gain_N, rate, PERIOD_S, on, y)
        late = np.interp(t_s - p[5] * LATE_S, t_s, y)
        return np.concatenate(((late - read_N) / scale_N, p / SURE))

    return np.asarray(least_squares(residuals, np.zeros(6), x_scale=0.1).x)


@njit(cache=True)
def pulse(law, gain_N, rate, period_s, on, y):  # type: ignore[no-untyped-def]
    """Write into y the force at every tick of a cell driven by `on`."""
    T, xi, lag = law[T_A_AT], 0.0, 0.0
    a = np.exp(-rate * period_s)
    ramp = 1.0 - (1.0 - a) / (rate * period_s)
    for k in range(len(y)):
        y[k] = gain_N * lag
        before = xi
        T, xi = advance(law, on[k], T, xi, period_s)
        lag = a * lag + (1.0 - a - ramp) * before + ramp * xi


@lru_cache(maxsize=4)
def commissioned_plant(n_cells: int, seed: int) -> tuple[Plant, KnownArray]:
    """Return a plant on the day of its trials, and the result of its commissioning."""
    first = plant(n_cells, seed)
    return later(first, seed), commission(first, seed)
