"""A shape memory alloy wire heated by its own resistance and cooled by still air.

A cell is n equal wires of length l, mechanically in parallel. Per metre of wire, with the
temperature T, the austenite fraction xi and the duty D (0 to 1) of a supply of V_w per wire:

    rho A c T' + rho A L xi' = P - pi d h (T - T_a)
    P = D (V_w / l)^2 / r(xi),    r(xi) = r_M + (r_A - r_M) xi

`resistivity` makes r depend on temperature and strain too (`hil.mechanics.sma.resistance`); P is
then multiplied by r(xi) / r(T, xi, e), taken at the beginning of the step: an error of the first
order in the period, 0.03 K at 10 ms for a wire of 1e-3 per K that warms by 34 K in 0.2 s.

P is the mean over a PWM period, which is far below the wire's time constant. In series every
wire has V_w = V / n; in parallel V_w = V.

Hysteresis (a play operator): xi is constant between the heating branch, its lower limit, and the
cooling branch, its upper limit,

    g_h(T) = clip((T - A_s) / (A_f - A_s), 0, 1)
    g_c(T) = clip((T - M_f) / (M_s - M_f), 0, 1),    g_h(T) <= xi <= g_c(T)

so that (T, xi) is the whole state: minor loops need no other memory, and minor loops close.
Transition temperatures do not depend on stress, and an overheated wire is not damaged.

On a branch xi' = T' / (A_f - A_s) (or M_s - M_f): the latent heat adds to the heat capacity. Off
the branches P is constant: an exponential step is exact, and the time until a branch is reached
has a closed form. Along a branch P is linearised over at most a 16th of the branch's width. Without
`resistivity` the result depends on the period by no more than that.

Source
------
Dynalloy, Technical Characteristics of Flexinol Actuator Wires, F1140 (TCF1140): density
6.45 g/cm3, latent heat 5.78 cal/g, specific heat 0.2 cal/g K. The maker's wire table, 0.10 mm (not
seen in print here): 126 Ohm/m, 200 mA for a contraction in 1 s, 0.9 s to cool (HT), 143 g pull;
cooling times exclude the last 0.5 % of deformation, according to a seller's table for Flexinol
springs. Transitions of HT wire 88, 98, 72, 62 degC: from N. Baraghini, Modeling and Simulation of
Mechatronic Systems (GitHub).

No single h gives both times with the printed heats (837 J/kg K and 24.2 kJ/kg): 145 W/m2 K gives
1.6 s and 1.2 s. The defaults keep the latent heat and assume 450 J/kg K for the effective specific
heat, 46 % below print and close to calorimetry of NiTi, and h = 125 W/m2 K (Morgan 1975,
Nu = 0.675 Ra^0.058, gives 138). The resistance of austenite is assumed to be 0.9 of the
martensite's, as in loaded wires; F1140 prints the opposite, 100 to 80 microOhm cm. The
conductivity of 18 W/m K is F1140's.

The clamp at the wires' end (`hil.mechanics.sma.clamp`) is assumed to be 0.25 g of brass, 0.1 J/K,
and to lose 2.5 mW/K to the air and its leads: with four wires its time constant is 36 s, and it
warms a tenth as much as they do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hil.compiled import borrowed, njit
from hil.mechanics.arrays import Records, record_type
from hil.mechanics.sma.resistance import RESISTIVITY, Resistivity, ohm_per_m, vertex_C

MAKERS_CURRENT_A = 0.2
PHASES_ALONE = Resistivity()
PIECES = 16


@dataclass(frozen=True)
class SmaWire:
    """The wires of one cell; defaults are Flexinol 0.10 mm HT, see the module.

    Attributes
    ----------
    length_m, n_wires
        Length of one wire; number of wires mechanically in parallel.
    wiring : {"series", "parallel"}
        Electrical connection. In series (the default) one current flows through all.
    supply_V : voltage across the cell while its gate is on; None: the voltage that drives 0.2 A,
        the maker's current, through every cold wire
    """

    length_m: float = 0.1  # assumed
    n_wires: int = 1
    wiring: Literal["series", "parallel"] = "series"
    supply_V: float | None = None
    ambient_C: float = 25.0
    diameter_m: float = 100e-6
    density_kg_per_m3: float = 6450.0
    specific_heat_J_per_kg_K: float = 450.0  # assumed
    latent_heat_J_per_kg: float = 24.2e3
    convection_W_per_m2_K: float = 125.0  # assumed
    martensite_Ohm_per_m: float = 126.0
    austenite_Ohm_per_m: float = 113.0  # assumed
    A_s_C: float = 88.0
    A_f_C: float = 98.0
    M_s_C: float = 72.0
    M_f_C: float = 62.0
    conductivity_W_per_m_K: float = 18.0
    clamp_capacity_J_per_K: float = 0.1  # assumed
    clamp_loss_W_per_K: float = 2.5e-3  # assumed
    resistivity: Resistivity = PHASES_ALONE

    def __post_init__(self) -> None:
        if not self.A_s_C < self.A_f_C or not self.M_f_C < self.M_s_C:
            raise ValueError("A_s_C must be below A_f_C, and M_f_C below M_s_C")
        if self.M_f_C > self.A_s_C or self.M_s_C > self.A_f_C:
            raise ValueError("M_f_C must not be above A_s_C, nor M_s_C above A_f_C")

    @property
    def _kg_per_m(self) -> float:
        return self.density_kg_per_m3 * pi * self.diameter_m**2 / 4.0

    @property
    def capacity_J_per_m_K(self) -> float:
        return self._kg_per_m * self.specific_heat_J_per_kg_K

    @property
    def latent_J_per_m(self) -> float:
        return self._kg_per_m * self.latent_heat_J_per_kg

    @property
    def loss_W_per_m_K(self) -> float:
        return pi * self.diameter_m * self.convection_W_per_m2_K

    @property
    def cell_V(self) -> float:
        """The voltage across the cell while its gate is on."""
        if self.supply_V is not None:
            return self.supply_V
        n = self.n_wires if self.wiring == "series" else 1
        return MAKERS_CURRENT_A * n * self.martensite_Ohm_per_m * self.length_m

    @property
    def field_V_per_m(self) -> float:
        """V_w / l: the voltage per metre of every wire."""
        n = self.n_wires if self.wiring == "series" else 1
        return self.cell_V / (n * self.length_m)

    def resistance_Ohm(self, xi: float) -> float:
        """The cell's resistance at an austenite fraction."""
        per_m = self.martensite_Ohm_per_m + xi * (
            self.austenite_Ohm_per_m - self.martensite_Ohm_per_m
        )
        return per_m * self.cell_m

    @property
    def cell_m(self) -> float:
        """The cell's resistance divided by a wire's resistance per metre."""
        return self.length_m * (self.n_wires if self.wiring == "series" else 1.0 / self.n_wires)

    @property
    def ends_Ohm(self) -> tuple[float, float]:
        """The cell's resistance at both ends of its stroke, at the resistivity's temperature."""
        law, phases = self.resistivity, (self.martensite_Ohm_per_m, self.austenite_Ohm_per_m)
        cold, hot = (
            ohm_per_m(law.constants, *phases, law.at_C, xi, law.strain * (1.0 - xi))
            for xi in (0.0, 1.0)
        )
        return self.cell_m * cold, self.cell_m * hot

    def extremes_Ohm_per_m(self, cold_C: float, hot_C: float) -> tuple[float, float]:
        """The least and the greatest resistance in any phase between two temperatures.

        The resistance is linear in the fraction, in the strain and, outside the R-phase's corners,
        in the temperature; between them that of the parent phase is a parabola. So its extremes are
        at the ends and corners, or at the vertex.
        """
        law = self.resistivity
        r = law.constants, self.martensite_Ohm_per_m, self.austenite_Ohm_per_m
        at_C = [T for T in (law.R_f_C, law.R_s_C, vertex_C(*r, 1.0)) if cold_C < T < hot_C]
        values = [
            ohm_per_m(*r, T, xi, e)
            for T in (cold_C, *at_C, hot_C)
            for xi in (0.0, 1.0)
            for e in (0.0, law.strain)
        ]
        return min(values), max(values)

    def heating_branch(self, T_C: float) -> float:
        """g_h: the least austenite fraction at a temperature."""
        return min(1.0, max(0.0, (T_C - self.A_s_C) / (self.A_f_C - self.A_s_C)))

    def cooling_branch(self, T_C: float) -> float:
        """g_c: the largest austenite fraction at a temperature."""
        return min(1.0, max(0.0, (T_C - self.M_f_C) / (self.M_s_C - self.M_f_C)))


LAW = record_type(
    "C", "L", "G", "T_a", "E2", "r_martensite", "r_change", "A_s", "A_f", "M_s", "M_f", "cell_V",
    "cell_Ohm_m", "strain", "varies", resistivity=RESISTIVITY,
)  # fmt: skip
"""Constants of a wire per metre, then the factors that scale them to a cell."""


class SmaWires:
    """The thermal cells of a model, stepped together.

    Attributes
    ----------
    T_C, xi : (N,) arrays
        The state: temperature and austenite fraction; NaN where a cell has no wire.
    clamp_C : (N,) array
        Temperature of the clamps at their ends, which a plant steps (`hil.mechanics.sma.clamp`);
        NaN where a cell has no wire.
    state : (4, N) array with the rows T_C, xi, current_A and resistance_Ohm
    current_A : (N,) array, mean current of a PWM period through the cell, after the last step
    resistance_Ohm : (N,) array, resistance of the cell
    supply_V : (N,) array
        Voltage across the cell while its gate is on; supply_V / resistance_Ohm flows.

    Parameters
    ----------
    loaded : cells whose wires are under stress and stepped by `hil.mechanics.sma.stressed`
    """

    def __init__(
        self,
        wires: Sequence[SmaWire | None],
        force_on_N: NDArray[np.float64],
        loaded: frozenset[int] = frozenset(),
    ) -> None:
        self.cells = wires
        self._force_on = force_on_N
        self._where = np.array([n for n, w in enumerate(wires) if w is not None], dtype=np.int64)
        self._unloaded = np.array(
            [k for k, n in enumerate(self._where) if n not in loaded], dtype=int
        )
        self._laws = wire_laws([w for w in wires if w is not None])
        self.state = np.full((4, len(wires)), np.nan)
        self.T_C, self.xi, self.current_A, self.resistance_Ohm = self.state
        self.clamp_C = np.full(len(wires), np.nan)
        self.supply_V = np.array([np.nan if w is None else w.cell_V for w in wires])
        self._nominal_V = self.supply_V[self._where]
        self._field2 = np.array([w.field_V_per_m**2 for w in wires if w is not None])

    def set_supply_V(self, supply_V: float) -> None:
        """Set the supply voltage of every cell."""
        if len(self._where):
            self._laws["E2"] = self._field2 * (supply_V / self._nominal_V) ** 2
            self._laws["cell_V"] = self.supply_V[self._where] = supply_V

    @property
    def laws(self) -> Records:
        """The law of every cell that has a wire (`wire_laws`), with the present supply and air."""
        return self._laws

    def rows(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Indices of these cells in `laws`."""
        return np.searchsorted(self._where, cells)

    @property
    def ambient_C(self) -> float:
        """Temperature of the air around the first cell that has a wire; NaN if none has."""
        return float(self._laws["T_a"][0]) if len(self._laws) else float("nan")

    @property
    def air_C(self) -> NDArray[np.float64]:
        """Temperature of the air around every cell that has a wire, in order."""
        return self._laws["T_a"]

    def set_ambient(self, T_a_C: float, *, settled: bool) -> None:
        """Set the temperature of the air around every wire; of settled wires and clamps too."""
        self._laws["T_a"] = T_a_C
        if settled:
            self.T_C[self._where] = self.clamp_C[self._where] = T_a_C

    def reset(self, F_before: NDArray[np.float64], F: NDArray[np.float64]) -> None:
        """Set equilibrium at ambient temperature, reached by warming up, without current."""
        for n in self._where:
            wire = self.cells[n]
            assert wire is not None
            self.T_C[n] = self.clamp_C[n] = wire.ambient_C
            self.xi[n] = wire.heating_branch(wire.ambient_C)
            self.current_A[n] = 0.0
            law = self._laws[np.searchsorted(self._where, n)]
            ohm = heated_ohm_per_m(law, self.T_C[n], self.xi[n])
            self.resistance_Ohm[n] = wire.cell_m * ohm
            F_before[n] = F[n] = self._force_on[n] * self.xi[n]

    def branches_C(self, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        """(2, n) temperatures of the heating and of the cooling branch at these fractions (n,), for
        the n cells that have a wire; fractions outside 0 to 1 extrapolate the branches.
        """
        A_s, A_f, M_s, M_f = (self._laws[name] for name in ("A_s", "A_f", "M_s", "M_f"))
        return np.stack([A_s + fraction * (A_f - A_s), M_f + fraction * (M_s - M_f)])

    def step(
        self,
        drive: NDArray[np.uint8] | NDArray[np.float64],
        period_s: float,
        F_before: NDArray[np.float64],
        F: NDArray[np.float64],
    ) -> None:
        """Advance by one period at constant duties (clipped to 0..1, NaN is 0)."""
        if len(self._unloaded):
            step_wires(drive, period_s, self.arrays, F_before, F)

    @property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """Arguments of `step_wires` for the cells that it steps."""
        parts = (self._unloaded, self._where, self._laws, self._force_on)
        return (*parts, self.T_C, self.xi, self.current_A, self.resistance_Ohm)


def wire_laws(wires: Sequence[SmaWire]) -> Records:
    """The constants of every wire, (N,) array of LAW."""
    laws: Records = np.zeros(len(wires), LAW)
    for law, wire in zip(laws, wires, strict=True):
        law.C, law.L, law.G = wire.capacity_J_per_m_K, wire.latent_J_per_m, wire.loss_W_per_m_K
        law.T_a, law.E2 = wire.ambient_C, wire.field_V_per_m**2
        law.r_martensite = wire.martensite_Ohm_per_m
        law.r_change = wire.austenite_Ohm_per_m - wire.martensite_Ohm_per_m
        law.A_s, law.A_f, law.M_s, law.M_f = wire.A_s_C, wire.A_f_C, wire.M_s_C, wire.M_f_C
        law.cell_V, law.cell_Ohm_m = wire.cell_V, wire.cell_m
        law.strain, law.varies = wire.resistivity.strain, wire.resistivity.varies
        law.resistivity = wire.resistivity.constants
    return laws


@njit(cache=True, error_model="numpy")
def ohm_per_m_of(law, T, xi, strain):  # type: ignore[no-untyped-def]
    """r(T, xi, e) of a wire's law."""
    if law.varies == 0.0:
        return law.r_martensite + law.r_change * xi
    r_austenite = law.r_martensite + law.r_change
    return ohm_per_m(law.resistivity, law.r_martensite, r_austenite, T, xi, strain)


@njit(cache=True, error_model="numpy")
def heated_ohm_per_m(law, T, xi):  # type: ignore[no-untyped-def]
    """r(T, xi, e) by which a wire is heated: it loses its strain e as it transforms."""
    return ohm_per_m_of(law, T, xi, law.strain * (1.0 - xi))


@njit(cache=True, error_model="numpy")
def heated_ohms_per_m(laws, T_C, xi):  # type: ignore[no-untyped-def]
    """`heated_ohm_per_m` of every wire, (N,)."""
    ohms = np.empty(len(laws))
    for n in range(len(laws)):
        ohms[n] = heated_ohm_per_m(laws[n], T_C[n], xi[n])
    return ohms


@njit(cache=True, error_model="numpy")
def heats(law, T, xi):  # type: ignore[no-untyped-def]
    """r(xi) / r(T, xi, e): heating power relative to a resistance without `varies`."""
    if law.varies == 0.0:
        return 1.0
    plain = law.r_martensite + law.r_change * xi
    return plain / heated_ohm_per_m(law, T, xi)


@njit(cache=True, error_model="numpy")
def step_wires(drive, h, arrays, F_before, F):  # type: ignore[no-untyped-def]
    """Advance the wires whose transitions do not depend on stress by one period."""
    constants, where, laws, force_on, T, xi, current, resistance = borrowed(arrays)
    for k in constants:
        n = where[k]
        law = laws[k]
        duty = min(1.0, float(drive[n])) if drive[n] > 0 else 0.0
        T[n], xi[n] = advance(law, duty, T[n], xi[n], h)
        ohm = heated_ohm_per_m(law, T[n], xi[n])
        resistance[n] = law.cell_Ohm_m * ohm
        current[n] = duty * law.cell_V / resistance[n]
        F_before[n] = F[n]
        F[n] = force_on[n] * xi[n]


@njit(cache=True, error_model="numpy")
def advance(law, duty, T, xi, remaining):  # type: ignore[no-untyped-def]
    """(T, xi) after a time at a constant duty.

    Every pass ends where the law changes: at a branch, after a piece of a branch, at the end of a
    branch, or at the end of the time. T is monotone within the time, so there are few passes.
    """
    G, T_a, dr = law.G, law.T_a, law.r_change
    E2 = law.E2 * heats(law, T, xi)
    while remaining > 0.0:
        r = law.r_martensite + dr * xi
        P = duty * E2 / r
        q = P - G * (T - T_a)
        if q == 0.0:
            break
        if q > 0.0:
            start, width, movable = law.A_s, law.A_f - law.A_s, xi < 1.0
        else:
            start, width, movable = law.M_f, law.M_s - law.M_f, xi > 0.0
        meets = start + xi * width
        along = movable and (T - meets) * q >= 0.0
        if along:
            limit = min(1.0, xi + 1.0 / PIECES) if q > 0.0 else max(0.0, xi - 1.0 / PIECES)
            capacity, slope = law.C + law.L / width, -P * dr / (r * width)
            target = start + limit * width
        else:
            limit, capacity, slope, target = xi, law.C, 0.0, meets
        # T' = (q - (G - slope) (T - T0)) / capacity
        rate = (G - slope) / capacity
        T_next = T + q / capacity * remaining * phi(rate * remaining)
        took = remaining
        if movable and (T_next - target) * q >= 0.0:
            took = min(remaining, max(0.0, time_to(target - T, q / capacity, rate)))
            T_next = target
        if along:
            xi = limit if T_next == target else min(1.0, max(0.0, (T_next - start) / width))
        # Rounding must not cool a wire below the air's temperature.
        T = T_next if q > 0.0 else max(T_next, T_a)
        remaining -= took
    return T, xi


@njit(cache=True, error_model="numpy")
def phi(z):  # type: ignore[no-untyped-def]
    """(1 - exp(-z)) / z."""
    return 1.0 - 0.5 * z if abs(z) < 1e-9 else -np.expm1(-z) / z


@njit(cache=True, error_model="numpy")
def time_to(dT, speed, rate):  # type: ignore[no-untyped-def]
    """Time until T has changed by dT, with T' = speed - rate (T - T0)."""
    x = rate * dT / speed
    if abs(x) < 1e-9:
        return dT / speed * (1.0 + 0.5 * x)
    return -np.log1p(-x) / rate if x < 1.0 else np.inf
