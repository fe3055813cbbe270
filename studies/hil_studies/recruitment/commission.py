"""Commissioning: each cell is pulsed alone, and a fit to the readings identifies it.

The run starts at rest. First the force is read for ZERO_S with all cells off: the zero offset of
the transducer. Then each cell in turn follows PULSES_S of its law: one full pulse, and a second one
while it still cools. With a single pulse, late readings and slow wires are hard to distinguish
(Cramer-Rao: 23 % for heating and cooling with an unknown delay); a second one of 0.4 s resolves
them (0.7 %).
A least-squares fit of a wire's law, with or without stress, gives the static force, the rate of
the lag, and the supply, convection and specific heat of the wire. Latent heat and transition
temperatures keep their nominal values: latent heat and width of a transition have the same
effect on force as specific heat and distance from the ambient temperature. The delay of the
reading is fitted too, but not passed on. In the array, a cell's force also acts through the
dampers of the others. Therefore the identified array itself is probed and corrected by the
difference between its own fits and the fits of the plant, ROUNDS times (indirect inference). All
controllers get the same result.

Source: Ljung 1999, System Identification, ch. 7 (output-error, least squares);
Gourieroux, Monfort & Renault 1993 (indirect inference).
"""

from dataclasses import replace
from functools import cache, lru_cache

import numpy as np
from scipy.optimize import least_squares

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.mechanics.sma.limits import CellBranches
from hil.mechanics.sma.stressed import AS_TABULATED, advance
from hil.mechanics.sma.wire import T_A_AT, SmaWire, wire_laws
from hil.systems.array.model import cells
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.model.response import response
from hil.systems.array.model.system import ArraySystem
from hil_studies.recruitment.plant import (
    ARRAYS,
    CELLS,
    FORCE_ON_N,
    MASS_KG,
    PERIOD_S,
    RIGHT,
    KnownArray,
    Plant,
    Transducer,
    WireLaw,
    activated,
    later,
    nominal,
    plant,
)

ZERO_S = 1.0
PULSES_S: dict[WireLaw, tuple[float, ...]] = {  # on, off, on, off, by the law of the plant
    "thermal": (2.0, 0.9, 0.4, 2.7),
    "sma": (3.0, 1.5, 0.8, 8.0),  # the shoulders of its branches: slower ends
}
ROUNDS = 2
LATE_S = 0.1  # prior standard deviation of the delay, divided by SURE
LEFT_TICKS = 20
MOST = 2.0  # largest logarithm of a parameter over its nominal value
SURE = 0.3  # prior standard deviation of a parameter's logarithm


def seconds(n_cells: int, law: WireLaw = "thermal") -> float:
    """Return the duration of the probing run of a plant of this law."""
    return ZERO_S + n_cells * sum(PULSES_S[law])


def probe(array: Plant | KnownArray, sensor: Transducer | None, pulses: Array) -> Array:
    """Return one reading per tick; without a transducer, the true force."""
    system = ArraySystem(array.model, array.activation, PERIOD_S)
    on = np.kron(np.eye(array.model.n_cells), pulses[:, None]).astype(np.uint8)
    rest = np.zeros((round(ZERO_S / PERIOD_S), array.model.n_cells), dtype=np.uint8)
    force_N = response(system, array.model.outputs.index(RIGHT), np.concatenate([rest, on]))[:-1]
    return force_N if sensor is None else np.array([sensor.read(float(F)) for F in force_N])


def pulses_of(law: WireLaw) -> Array:
    """Return on (1) or off (0) for every tick of a cell."""
    each = [np.full(round(t / PERIOD_S), 1.0 - i % 2) for i, t in enumerate(PULSES_S[law])]
    return np.concatenate(each)


def commission(truth: Plant, seed: int, law: WireLaw = "thermal") -> KnownArray:
    """Return the array as identified by pulsing every cell alone, with wires of this law."""
    built: WireLaw = "sma" if truth.activation[0].loaded is not None else "thermal"
    pulses = pulses_of(built)
    n_cells = truth.model.n_cells
    read = probe(truth, Transducer(seed, turn=1), pulses)
    zero_N = float(read[: round(ZERO_S / PERIOD_S)].mean())
    found = _fits(read - zero_N, n_cells, built, law)
    own = found[:, :5]
    know = known_array(own, zero_N, built, law)
    for _ in range(ROUNDS):
        again = _fits(probe(know, None, pulses), n_cells, built, law)
        own = np.clip(own + found[:, :5] - again[:, :5], -MOST, MOST)
        know = known_array(own, zero_N, built, law)
    return know


def known_array(own: Array, zero_N: float, built: WireLaw, law: WireLaw) -> KnownArray:
    """Return the array whose cells differ from nominal by these logarithms (N, 5); see `fit`.

    `built` has the springs and dampers of the plant's cells, `law` is that of the wires.
    """
    springs_of = CELLS[built]
    n_cells = len(own)
    factor = np.exp(own)
    damper = springs_of["b_N_s_per_m"]
    springs = [{**springs_of, "b_N_s_per_m": damper / f[1]} for f in factor]
    laws = [cells.miga(**one) for one in springs]
    model = CellArray.from_fingerprint(ARRAYS[n_cells], cell=laws, mass_kg=MASS_KG)
    activation = tuple(
        activated(law, float(FORCE_ON_N * f[0]), _wire(f), one)
        for f, one in zip(factor, springs, strict=True)
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


def _fits(read_N: Array, n_cells: int, built: WireLaw, law: WireLaw) -> Array:
    on = pulses_of(built)
    n_zero, n_each = round(ZERO_S / PERIOD_S), len(on)
    rate_per_s = _rate_per_s(CELLS[built])
    found = []
    for n, nominal_N in enumerate(nominal(n_cells).static_gains_N):
        first = n_zero + n * n_each
        # what the cells before have left: a cooled wire under stress keeps some austenite
        left_N = float(read_N[first - LEFT_TICKS : first].mean())
        own_N = read_N[first : first + n_each] - left_N
        found.append(fit(own_N, on, nominal_N, rate_per_s, _knots_C(n_cells, built, law)[n]))
    return np.array(found)


def _rate_per_s(springs: dict[str, float]) -> float:
    return (springs["k_se_N_per_m"] + springs["k_ae_N_per_m"]) / springs["b_N_s_per_m"]


@cache
def _knots_C(n_cells: int, built: WireLaw, law: WireLaw) -> Array:
    """Branches of the nominal wires, each with its cell alone on, (N, N_KNOTS)."""
    known = known_array(np.zeros((n_cells, 5)), 0.0, built, law)
    found = []
    for n, one in enumerate(known.activation):
        if one.loaded is None:
            branches = CellBranches.unstressed(one.wire)
        else:
            alone = one.force_on_N * (np.arange(n_cells) == n)
            tension_N = known.model.solve_statics(alone).tension_N[n]
            branches = one.loaded.branches(one.wire, float(tension_N))
        found.append(branches.working_C)
    return np.array(found)


def fit(read_N: Array, on: Array, nominal_N: float, rate_per_s: float, knots_C: Array) -> Array:
    """Return a cell's deviations from nominal, as natural logarithms, and the reading's delay.

    The order is: static force, rate of the lag, supply, convection and specific heat of the wire,
    delay over LATE_S.
    """
    y = np.empty(len(read_N))
    t_s = PERIOD_S * np.arange(len(read_N))
    scale_N = 0.01 * nominal_N

    def residuals(p: Array) -> Array:
        gain_N, rate = nominal_N * np.exp(p[0]), rate_per_s * np.exp(p[1])
        pulse(wire_laws([_wire(np.exp(p))])[0], knots_C, gain_N, rate, PERIOD_S, on, y)
        late = np.interp(t_s - p[5] * LATE_S, t_s, y)
        return np.concatenate(((late - read_N) / scale_N, p / SURE))

    return np.asarray(least_squares(residuals, np.zeros(6), x_scale=0.1, bounds=(-MOST, MOST)).x)


@njit(cache=True)
def pulse(law, knots, gain_N, rate, period_s, on, y):  # type: ignore[no-untyped-def]
    """Write into y the force at every tick of a cell driven by `on`."""
    T, xi, lag = law[T_A_AT], 0.0, 0.0
    a = np.exp(-rate * period_s)
    ramp = 1.0 - (1.0 - a) / (rate * period_s)
    for k in range(len(y)):
        y[k] = gain_N * lag
        before = xi
        T, xi = advance(law, knots, AS_TABULATED, on[k], T, xi, period_s)
        lag = a * lag + (1.0 - a - ramp) * before + ramp * xi


@lru_cache(maxsize=4)
def commissioned_plant(
    n_cells: int, seed: int, law: WireLaw = "thermal", known_by: WireLaw = "thermal"
) -> tuple[Plant, KnownArray]:
    """Return a plant on the day of its trials, and the result of its commissioning.

    `law` is that of its wires, `known_by` that of the fit.
    """
    first = plant(n_cells, seed, law)
    return later(first, seed), commission(first, seed, known_by)


def exact_array(truth: Plant, seed: int) -> KnownArray:
    """Return the plant on the day of its trials as known to the last digit."""
    F_N = np.array([a.force_on_N for a in truth.activation])
    gains_N = static_gains_N(truth.model, F_N, RIGHT)
    return KnownArray(truth.model, truth.activation, gains_N, Transducer(seed).zero_N)
