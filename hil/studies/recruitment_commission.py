"""Commissioning: every cell is pulsed once, alone, and what is read says what it is.

From rest, force is first read for ZERO_S with all cells off: the transducer's zero. Then one cell
after the other is on for ON_S and off for OFF_S. Its static force, the rate of its lag, and its
wire's supply, convection and specific heat are those that leave the least sum of squares between
what was read and a wire's law (`hil.models.sma_wire`); latent heat and transition temperatures
stay the maker's, and the transducer's delay is not told: what the fit has no parameter for, others
take up. Every controller gets the same result.

Source: Ljung 1999, System Identification, ch. 7 (output-error, least squares).
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import least_squares

from hil.models import CellArray, cells
from hil.models.activation import CellActivation
from hil.models.array_system import ArraySystem
from hil.models.recruitment import shares_N
from hil.models.sma_wire import SmaWire, advance, wire_laws
from hil.studies.recruitment_plant import (
    ARRAYS,
    CELL,
    FORCE_ON_N,
    MASS_KG,
    PERIOD_S,
    RIGHT,
    Plant,
    Told,
    Transducer,
    later,
    nominal,
    plant,
)

ZERO_S, ON_S, OFF_S = 1.0, 2.0, 3.0
SURE = 0.3  # how far a parameter may be from its nominal value before that is held against it

Vector = NDArray[np.float64]


def seconds(n_cells: int) -> float:
    """How long the probing run takes."""
    return ZERO_S + n_cells * (ON_S + OFF_S)


def probe(truth: Plant, seed: int) -> Vector:
    """What the transducer reads, a value a tick."""
    n_cells = truth.model.n_cells
    system = ArraySystem(truth.model, truth.activation, PERIOD_S)
    output = truth.model.outputs.index(RIGHT)
    sensor = Transducer(seed, turn=1)
    n_zero, n_on, n_each = (round(t / PERIOD_S) for t in (ZERO_S, ON_S, ON_S + OFF_S))
    on = np.zeros(n_cells, dtype=np.uint8)
    read = np.empty(n_zero + n_cells * n_each)
    for k in range(len(read)):
        read[k] = sensor.read(float(system.y[output]))
        at = k - n_zero
        on[:] = 0
        if at >= 0:
            on[at // n_each] = at % n_each < n_on
        system.step(on)
    return read


def commission(truth: Plant, seed: int) -> Told:
    """What a controller is told after every cell has been pulsed once."""
    n_cells = truth.model.n_cells
    read = probe(truth, seed)
    n_zero, n_each = (round(t / PERIOD_S) for t in (ZERO_S, ON_S + OFF_S))
    zero_N = float(read[:n_zero].mean())
    fits = [
        fit(read[n_zero + n * n_each : n_zero + (n + 1) * n_each] - zero_N, share)
        for n, share in enumerate(nominal(n_cells).shares_N)
    ]
    return told([one[0] for one in fits], [one[1] for one in fits], [one[2] for one in fits],
                n_cells, zero_N)  # fmt: skip


def told(
    share_N: list[float], rate_per_s: list[float], wires: list[SmaWire], n_cells: int,
    zero_N: float,
) -> Told:  # fmt: skip
    """The array with cells of these static forces, lags and wires."""
    stiffness = CELL["k_se_N_per_m"] + CELL["k_ae_N_per_m"]
    laws = [cells.miga(**{**CELL, "b_N_s_per_m": stiffness / rate}) for rate in rate_per_s]
    model = CellArray.from_fingerprint(ARRAYS[n_cells], cell=laws, mass_kg=MASS_KG)
    F_N = FORCE_ON_N * np.array(share_N) / nominal(n_cells).shares_N
    activation = tuple(
        CellActivation(float(F), "thermal", wire=wire) for F, wire in zip(F_N, wires, strict=True)
    )
    return Told(model, activation, shares_N(model, F_N, RIGHT), zero_N)


def fit(read_N: Vector, nominal_N: float) -> tuple[float, float, SmaWire]:
    """Static force, rate of the lag and wire of a cell, from its pulse."""
    base = SmaWire()
    rate = (CELL["k_se_N_per_m"] + CELL["k_ae_N_per_m"]) / CELL["b_N_s_per_m"]
    n_on = round(ON_S / PERIOD_S)
    y = np.empty(len(read_N))
    scale_N = 0.01 * nominal_N

    def cell(p: Vector) -> tuple[float, float, SmaWire]:
        factor = np.exp(p)
        wire = replace(
            base,
            supply_V=float(base.cell_V * factor[2]),
            convection_W_per_m2_K=float(base.convection_W_per_m2_K * factor[3]),
            specific_heat_J_per_kg_K=float(base.specific_heat_J_per_kg_K * factor[4]),
        )
        return float(nominal_N * factor[0]), float(rate * factor[1]), wire

    def residuals(p: Vector) -> Vector:
        share, own_rate, wire = cell(p)
        pulse(wire_laws([wire])[0], share, own_rate, PERIOD_S, n_on, y)
        return np.concatenate(((y - read_N) / scale_N, p / SURE))

    return cell(least_squares(residuals, np.zeros(5), x_scale=0.1).x)


@njit(cache=True)
def pulse(law, share, rate, period_s, n_on, y):  # type: ignore[no-untyped-def]
    """Write into y the force at every tick of a cell that is on for the first n_on of them."""
    T, xi, lag = law[3], 0.0, 0.0
    a = np.exp(-rate * period_s)
    ramp = 1.0 - (1.0 - a) / (rate * period_s)
    for k in range(len(y)):
        y[k] = share * lag
        before = xi
        T, xi = advance(law, 1.0 if k < n_on else 0.0, T, xi, period_s)
        lag = a * lag + (1.0 - a - ramp) * before + ramp * xi


@lru_cache(maxsize=4)
def met(n_cells: int, seed: int) -> tuple[Plant, Told]:
    """A plant on the day of its trials, and what commissioning had found."""
    first = plant(n_cells, seed)
    return later(first, seed), commission(first, seed)
