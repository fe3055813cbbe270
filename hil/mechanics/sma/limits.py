"""A board's limits that protect a wire, and what a board's limits let a wire come to.

Per metre of wire, with theta its temperature above the air and I the current while its gate is on
(`hil.mechanics.sma.wire` has the whole law),

    C theta' + L xi' = r(xi) I^2 - G theta

The board keeps of every cell a budget H' = I^2 - H / tau, at most H_max, after a reset H = H_max.

Proposition. Let r_max bound r, tau >= C / G, K = r_max / C and theta <= K H at the start. Then
theta <= K H + (L / C) (1 - xi) at all times, whatever is commanded.

Proof. D = theta - K H obeys C D' <= -G D - L xi', for r <= r_max and C / tau <= G. Multiply by
exp(t G / C), integrate, and the last term by parts: with lambda = G / C and D(0) <= 0,

    D(t) <= -(L / C) (xi(t) - xi(0) exp(-lambda t) - integral of lambda exp(-lambda (t - s)) xi ds)

The weights of xi(0) and of the integral add up to 1 and xi <= 1, so that
D(t) <= (L / C) (1 - xi(t)).

A wire at T has at least the austenite of the heating branch, xi >= F(T), which rises with T. So T
is at most the solution of T - (L / C) (1 - F(T)) = T_air + K H, and T <= max(A_f, T_air + K H).

Stress moves the branch (`hil.mechanics.sma.stress`), and a sudden change of stress transforms the
wire with C dT = -L dxi. Neither enters the proof before F. There, F is taken under the largest
stress, which gives the least austenite at every T. A wire whose contraction is blocked carries more
than that of the table, but while it does not turn to martensite it releases no heat: then
xi(s) <= xi(t), and T <= T_air + K H. The mechanical work is left out, as in the wire's law: over a
whole cycle of 4 % at 216 MPa it is at most 3 K.

With tau < C / G, H forgets too soon: then
D <= (C / (G tau) - 1) K H_max in addition, thus theta <= C / (G tau) K H_max.

H is looked at once a scan, so a trip comes late. Of what is added meanwhile the largest counts:

    current_max^2 (scan_age_max + 2 ms)               the converter has died: the scan is too old
    current_max^2 20 ms                               the firmware hangs until its watchdog acts
    n I_s^2 t - (n - 1) min(I_s, I_full)^2 t          a short that lets the supply's limit I_s flow,
                                                      n = 1 .. persistence_scans + 1 scans of t

A scan takes t, which depends on the commands that the board obeys (`hil.devices.board.scan`).
The second is what a short adds beyond H_max where the budget, which counts no more than the full
scale I_full of the board's sensor, or `current_high` ends it, whichever is first. Where the sensor
ends at or below current_max (its amplifier does so up to 1 % early), `current_high` never trips:
H counts (I_full / I_s)^2 of what flows, and a wire comes to (I_s / I_full)^2 times what H_max
stands for.

A cell that is off may conduct I_off, what `current_off_max` lets pass, and H does not count it. It
adds r_max I_off^2 to C D', thus K (C / G) I_off^2 to theta.

A board measures the sum of wires that are electrically in parallel. Each is taken to carry all of
it, as the last one does when the others have broken.

Margins: the least cooling is COOLING_LEAST of the wire's convection, and a reading may be
`Bench.current_error` below its current.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, inf

import numpy as np

from hil.compiled import njit
from hil.mechanics.sma.board_heat import SCAN_LEAST_S, SENSOR_COUNTS, HeatLaw
from hil.mechanics.sma.stressed import AS_TABULATED, PIECES, advance, settled
from hil.mechanics.sma.wire import SmaWire, wire_laws

COOLING_LEAST = 0.85  # assumed: still warm air; the convection's own uncertainty is 12 %
SUPPLY_ERROR = 0.03  # assumed: of a bench supply, its leads drop some of it
CURRENT_MARGIN = 1.25  # assumed: of a current limit over the ordinary current
REACTION_S = 0.5e-3  # from a sample to gates off; firmware/README.md has what was measured
STALE_LATE_S = 2.0e-3  # the scan's age is counted in whole milliseconds
WATCHDOG_S = 20e-3  # until a hanging program is reset: 16 ms, its oscillator up to a fifth slow
CONTRACTED = 0.9  # austenite of a wire that works: the rest is the branch's tail
STEPS_A_TIME_CONSTANT, LONGEST_TIME_CONSTANTS = 20, 100
TEMPERATURE_MAX_C = 180.0
"""Of a wire whose maximum nobody states; assumed.

The maker's F1140 prints none. Under 216 MPa, 90 % of a contraction is reached at 116 degC and 95 %
at 127 degC (docs/wires.md), and a wire loses its training where it anneals, from about 300 degC.
"""

COLDEST_C = -20.0  # assumed: of a wire at rest, for the bounds of its resistance
CA2MS_PER_A2S = 1e7


class NoTableError(ValueError):
    """No table of limits protects these wires and lets them work; the text says why."""


@dataclass(frozen=True)
class CellBranches:
    """Branches of a wire under stress: temperatures at equally spaced austenite fractions, deg C.

    Attributes
    ----------
    working_C : (N_KNOTS,), heating and cooling branch under the tension of its cell
    stressed_C : (PIECES + 1,), heating branch under the largest stress of its work
    """

    working_C: tuple[float, ...]
    stressed_C: tuple[float, ...]

    @classmethod
    def unstressed(cls, wire: SmaWire) -> "CellBranches":
        """The lines of a wire that stress does not move."""
        heating = np.linspace(wire.A_s_C, wire.A_f_C, PIECES + 1).tolist()
        cooling = np.linspace(wire.M_f_C, wire.M_s_C, PIECES + 1).tolist()
        return cls((*heating, *cooling), tuple(heating))


@dataclass(frozen=True)
class CellWire:
    """The wire of a cell, and the temperature that it may reach.

    Attributes
    ----------
    branches : None for a wire that stress does not move
    """

    cell: str
    wire: SmaWire
    temperature_max_C: float = TEMPERATURE_MAX_C
    branches: CellBranches | None = None

    @property
    def own_branches(self) -> CellBranches:
        return self.branches or CellBranches.unstressed(self.wire)

    def highest_C(self, budget_C: float) -> float:
        """The highest temperature for T_air + K H = budget_C; module, proposition."""
        T_C = np.array(self.own_branches.stressed_C)
        martensite = np.linspace(1.0, 0.0, len(T_C))
        latent_K = self.wire.latent_J_per_m / self.wire.capacity_J_per_m_K
        left = np.interp(budget_C, T_C - latent_K * martensite, martensite)
        return budget_C + latent_K * float(left)

    @property
    def heating_K_per_A2s(self) -> float:
        """K = r_max / C."""
        _, most = self._extremes_Ohm_per_m
        return most / self.wire.capacity_J_per_m_K

    @property
    def _extremes_Ohm_per_m(self) -> tuple[float, float]:
        return self.wire.extremes_Ohm_per_m(COLDEST_C, self.temperature_max_C)

    @property
    def time_constant_s(self) -> float:
        """C / G in the least cooling."""
        return self.wire.capacity_J_per_m_K / (COOLING_LEAST * self.wire.loss_W_per_m_K)

    def ordinary_A(self, supply_V: float) -> float:
        """The largest current that an unbroken cell draws."""
        least, _ = self._extremes_Ohm_per_m
        return supply_V / (self.wire.cell_m * least)

    def least_A(self, supply_V: float) -> float:
        """The least current that an unbroken cell draws."""
        _, most = self._extremes_Ohm_per_m
        return supply_V / (self.wire.cell_m * most)

    def contracts_in_s(self, supply_V: float, air_C: float) -> float:
        """How long its gate must be on, from cold, for CONTRACTED; infinite: it never is."""
        fed = replace(self.wire, supply_V=supply_V, ambient_C=air_C)
        return float(_contracts_in_s(wire_laws([fed]), np.array(self.own_branches.working_C)))


@dataclass(frozen=True)
class Bench:
    """What is around the wires of a board.

    Attributes
    ----------
    cold_C, warm_C : the air, at its coldest and at its warmest
    supply_V : across a cell whose gate is on
    supply_A : what a short draws at most; None where nobody knows
    scan_s : the board's longest scan under the commands that it gets
    current_error : how far below a current its reading may be, relative
    leak_A : what a cell that is off may conduct unnoticed
    others_A : what the cells of other boards draw from the same supply at most
    supply_error : how far above `supply_V` the supply may be unnoticed, relative
    """

    cold_C: float
    warm_C: float
    supply_V: float
    supply_A: float | None
    scan_s: float
    current_error: float
    leak_A: float = 0.0
    others_A: float = 0.0
    supply_error: float = SUPPLY_ERROR


@dataclass(frozen=True)
class Thermal:
    """What of a board's table of limits bears on a wire's temperature."""

    heat_max_A2s: float
    time_constant_s: float
    current_max_A: float
    full_scale_A: float
    scan_age_max_s: float
    persistence_scans: int

    @classmethod
    def of(cls, limits: Mapping[str, int]) -> "Thermal":
        """From the board's own table (firmware/core/protocol.h)."""
        return cls(
            heat_max_A2s=limits["heat_max_cA2ms"] / CA2MS_PER_A2S,
            time_constant_s=1e-3 * limits["heat_time_constant_ms"],
            current_max_A=1e-3 * limits["current_max_mA"],
            full_scale_A=1e-3 * limits["current_full_scale_mA"],
            scan_age_max_s=1e-3 * limits["scan_age_max_ms"],
            persistence_scans=limits["persistence_scans"],
        )

    @property
    def reading_max_A(self) -> float:
        """What a board says at least of any current beyond its sensor, in whole mA."""
        return 1e-3 * (SENSOR_COUNTS * round(1e3 * self.full_scale_A) // 1024)

    @property
    def assumed_A(self) -> float:
        """What a board that measures nothing counts of a cell that is on; a count above it."""
        return self.current_max_A + 1e-3 + self.full_scale_A / 1024.0

    def unseen(self, cell: CellWire, bench: Bench) -> float:
        """How many times more heat may flow than the budget counts; module, last paragraph."""
        if self.reading_max_A > self.current_max_A:
            return 1.0
        ordinary_A = cell.ordinary_A(bench.supply_V)
        most_A = max(self.full_scale_A, ordinary_A) if bench.supply_A is None else bench.supply_A
        return max(1.0, most_A / self.full_scale_A) ** 2

    def late_A2s(self, bench: Bench) -> float:
        """What is added to H_max until gates are off; module, last equation."""
        blind_s = max(self.scan_age_max_s + STALE_LATE_S, WATCHDOG_S)
        stale = self.current_max_A**2 * blind_s
        short_A = self.short_A(bench)
        seen_A = min(short_A, self.full_scale_A)
        shorts = [
            (n * short_A**2 - (n - 1) * seen_A**2) * self._scan_s(bench)
            for n in range(1, self.persistence_scans + 2)
        ]
        return max(stale, *shorts)

    def short_A(self, bench: Bench) -> float:
        """The current of a short, as far as the board sees it where nobody knows the supply's."""
        return self.full_scale_A if bench.supply_A is None else bench.supply_A

    def found_s(self, bench: Bench) -> float:
        """How long a condition may last until gates are off for it, without the heat budget."""
        return (self.persistence_scans + 1) * self._scan_s(bench)

    def _scan_s(self, bench: Bench) -> float:
        # Where a scan takes longer than its age may be, the board trips for that.
        return min(bench.scan_s, self.scan_age_max_s + STALE_LATE_S) + REACTION_S


@dataclass(frozen=True)
class Peak:
    """What a board's limits let a wire come to, and what it may come to."""

    cell: CellWire
    cold_C: float
    warm_C: float

    @property
    def worst_C(self) -> float:
        return max(self.cold_C, self.warm_C)

    @property
    def protected(self) -> bool:
        return self.worst_C <= self.cell.temperature_max_C


def peak(cell: CellWire, thermal: Thermal, bench: Bench) -> Peak:
    """The highest temperature of a wire, whatever is commanded, in a cold and in a warm room."""
    believed = thermal.heat_max_A2s / (1.0 - bench.current_error) ** 2
    forgotten = max(1.0, cell.time_constant_s / thermal.time_constant_s)
    counted_A2s = forgotten * believed * thermal.unseen(cell, bench)
    leaked_A2s = cell.time_constant_s * bench.leak_A**2
    rise_K = cell.heating_K_per_A2s * (counted_A2s + thermal.late_A2s(bench) + leaked_A2s)
    cold_C, warm_C = (cell.highest_C(air_C + rise_K) for air_C in (bench.cold_C, bench.warm_C))
    return Peak(cell, cold_C, warm_C)


def held_for_s(
    current_A: float,
    thermal: Thermal,
    scan_s: float,
    counts_most: Callable[[Iterable[float]], float] = min,
) -> float:
    """How long this current flows from an unused budget until it trips; infinite for ever.

    Parameters
    ----------
    scan_s : longest time between two readings that a board may have
    counts_most : of the shortest and the longest such time, `min` for the earliest trip, `max` for
        the latest
    """
    law = HeatLaw(
        round(thermal.heat_max_A2s * CA2MS_PER_A2S),
        round(1e3 * thermal.time_constant_s),
        round(1e3 * thermal.full_scale_A),
    )
    longest_s = min(scan_s, thermal.scan_age_max_s)
    counts = law.counts(current_A)
    return counts_most(law.trips_after_s(counts, t_s) for t_s in (SCAN_LEAST_S, longest_s))


def protecting(
    cells: Sequence[CellWire], bench: Bench, limits: Mapping[str, int]
) -> dict[str, int]:
    """The entries of a board's table that protect the wires of all its cells.

    Parameters
    ----------
    limits : the table that they are to change; its other entries stand

    Raises
    ------
    NoTableError
        None does, or the one that does lets a cell never contract.
    """
    table = severest_table(cells, bench, limits)
    thermal = Thermal.of({**limits, **table})
    for cell in cells:
        ordinary_A = cell.ordinary_A(bench.supply_V)
        if ordinary_A >= thermal.reading_max_A:
            raise NoTableError(
                f"'{cell.cell}' draws {ordinary_A:.3g} A from {bench.supply_V:g} V, and the sensor "
                f"of its board ends at {thermal.reading_max_A:g} A: take one that shows more, and "
                "say so in current_full_scale_mA"
            )
        held_s = held_for_s(ordinary_A, thermal, bench.scan_s)
        if cell.contracts_in_s(bench.supply_V, bench.cold_C) >= held_s:
            raise NoTableError(_why_not(cell, cells, thermal, bench, limits))
    return table


def severest_table(
    cells: Sequence[CellWire], bench: Bench, limits: Mapping[str, int]
) -> dict[str, int]:
    """What protects every one of them, whether they can work with it or not."""
    ordinary_A = max(cell.ordinary_A(bench.supply_V) for cell in cells)
    table = {
        "heat_max_cA2ms": 0,
        "heat_time_constant_ms": ceil(1e3 * max(cell.time_constant_s for cell in cells)),
        "current_max_mA": ceil(1e3 * CURRENT_MARGIN * ordinary_A),
    }
    reading_max_mA = round(1e3 * Thermal.of({**limits, **table}).reading_max_A)
    table["current_max_mA"] = max(1, min(table["current_max_mA"], reading_max_mA - 1))
    late_A2s = Thermal.of({**limits, **table}).late_A2s(bench)
    left_A2s = min(
        (cell.temperature_max_C - bench.warm_C) / cell.heating_K_per_A2s
        - late_A2s
        - cell.time_constant_s * bench.leak_A**2
        for cell in cells
    )
    heat_A2s = max(0.0, left_A2s) * (1.0 - bench.current_error) ** 2
    return {**table, "heat_max_cA2ms": floor(heat_A2s * CA2MS_PER_A2S)}


def _why_not(
    cell: CellWire,
    cells: Sequence[CellWire],
    thermal: Thermal,
    bench: Bench,
    limits: Mapping[str, int],
) -> str:
    """What keeps a cell from working under the table that protects all of them."""
    others = [c for c in cells if replace(c, cell=cell.cell) != cell]
    if others:
        try:
            protecting([cell], bench, limits)
        except NoTableError as error:
            return str(error)
        return (
            f"'{cell.cell}' and '{others[0].cell}' differ too much for one table of limits: give "
            "them boards of their own"
        )
    late_K = cell.heating_K_per_A2s * thermal.late_A2s(bench)
    room_K = cell.temperature_max_C - bench.warm_C
    held_s = held_for_s(cell.ordinary_A(bench.supply_V), thermal, bench.scan_s)
    takes_s = cell.contracts_in_s(bench.supply_V, bench.cold_C)
    if takes_s == inf:
        return (
            f"'{cell.cell}': {bench.supply_V:g} V never contracts its wire in a room of "
            f"{bench.cold_C:g} C: raise the supply's voltage"
        )
    if cell.wire.wiring == "parallel" and cell.wire.n_wires > 1:
        remedy = "a board sees only the sum of wires in parallel: wire them in series"
    elif late_K > 0.1 * room_K:
        limit = "limit the supply's current, or raise the board's `every`"
        remedy = f"a fault heats it by {late_K:.0f} K before a trip: {limit}"
    else:
        remedy = "lower the supply's voltage, or state the maximum that the wire really bears"
    return (
        f"'{cell.cell}': of {room_K:.0f} K from the warmest room to its maximum, its board lets it "
        f"be on for {held_s:.3g} s, and it takes {takes_s:.3g} s to contract: {remedy}"
    )


@njit(cache=True, error_model="numpy")
def _contracts_in_s(laws, knots_C):  # type: ignore[no-untyped-def]
    """`CellWire.contracts_in_s` of one wire, (1,), with these branches."""
    law = laws[0]
    T_C, xi, _ = settled(knots_C, AS_TABULATED, law.L / law.C, law.T_a, 0.0)
    step_s = law.C / law.G / STEPS_A_TIME_CONSTANT
    for n in range(LONGEST_TIME_CONSTANTS * STEPS_A_TIME_CONSTANT):
        if xi >= CONTRACTED:
            return n * step_s
        T_C, xi = advance(law, knots_C, AS_TABULATED, 1.0, T_C, xi, step_s)
    return np.inf
