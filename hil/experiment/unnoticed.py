"""How far too low a current may be read unnoticed, and how hot its wire may come meanwhile.

A board trips `current_low` when it reads less than I_min = `current_on_min_mA` of a cell that is
on. Where it measures resistance, V / I beyond (1 + m) R_max trips `resistance_out_of_range`. A
metre of wire with the field E and the resistance r is heated by E^2 / r, and its board counts
r_max I^2 of the current I that it reads. So it is heated by at most `times` what is counted,

    times = E_most^2 / (r_min r_max I_min^2)    and    ((1 + m) (1 + q))^2 r_max / r_min

whichever is less, with q for half a count of current and of voltage. It comes to what `times` H_max
stands for (`hil.mechanics.sma.limits`), but no further than an intact wire comes when it is held on
for ever (`hil.mechanics.sma.loop_budget`):

    theta <= E_most^2 / (r_min G)

E_most is that of the supply at its highest: SUPPLY_ERROR above its voltage, or as far as its
`voltage_tolerance_V` leaves unnoticed, if that is more.

I_min is derived from the least current of an intact cell at the lowest supply, when the board reads
too low by its ordinary error and the wire's resistance is m above the described one, in series with
its leads. Of wires in parallel it is the current of one: the last, when the others have broken.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf

from hil.devices.board.resistance import FULL_COUNTS, Chain
from hil.devices.tables import BoardResistanceTable
from hil.experiment.board_resistance import limits_Ohm
from hil.mechanics.sma.limits import COLDEST_C, SUPPLY_ERROR, Bench, CellWire, Thermal


@dataclass(frozen=True)
class Unnoticed:
    """The least that a board may read of a current unnoticed.

    Attributes
    ----------
    share : of the largest current of an intact cell
    times : by how much more than what the board counts the wire is heated then, at most
    worst_C : how hot the wire may come
    """

    cell: CellWire
    share: float
    times: float
    worst_C: float

    @property
    def protected(self) -> bool:
        return self.worst_C <= self.cell.temperature_max_C


def unnoticed(
    cell: CellWire, bench: Bench, limits: Mapping[str, int], table: BoardResistanceTable
) -> Unnoticed:
    """What of this cell's current may go unread; module, equations."""
    wire, most_A = cell.wire, cell.ordinary_A((1.0 + bench.supply_error) * bench.supply_V)
    least, most = wire.extremes_Ohm_per_m(COLDEST_C, cell.temperature_max_C)
    heated = (most_A / _in_parallel(cell)) ** 2 * least / most  # one wire's heat over r_max, A2
    readings_A = [1e-3 * limits["current_on_min_mA"]]
    if limits["sense_every_ms"]:
        [(_, most_Ohm)] = limits_Ohm([cell.cell], table, [cell])
        readings_A.append(_lowest_A(bench, limits, most_Ohm))
    times = max(1.0, min((heated / A**2 if A > 0.0 else inf) for A in readings_A))
    thermal = Thermal.of(limits)
    forgotten = max(1.0, cell.time_constant_s / thermal.time_constant_s)
    more_A2s = thermal.late_A2s(bench) + cell.time_constant_s * bench.leak_A**2
    counted_A2s = times * forgotten * thermal.heat_max_A2s + more_A2s
    rise_A2s = min(counted_A2s, heated * cell.time_constant_s)
    worst_C = cell.highest_C(bench.warm_C + cell.heating_K_per_A2s * rise_A2s)
    return Unnoticed(cell, min(1.0, max(readings_A) / most_A), times, worst_C)


def _lowest_A(bench: Bench, limits: Mapping[str, int], most_Ohm: float) -> float:
    """The least reading at the highest supply that may belong to this resistance."""
    chain = Chain.of(limits, 0.0, 0.0)
    supply_mV = 1e3 * (1.0 + bench.supply_error) * bench.supply_V
    supply_counts = FULL_COUNTS * min(1.0, supply_mV / limits["supply_full_scale_mV"])
    counts = (supply_counts - 0.5) * chain.ohm_per_ratio / most_Ohm - 0.5
    return 1e-3 * limits["current_full_scale_mA"] * counts / FULL_COUNTS


def drawn_A(cells: Sequence[CellWire], supply_V: float, limits: Mapping[str, int]) -> float:
    """What a board's cells draw from this supply at most, when as many are on as may be."""
    on_max = min(limits["cells_on_max"], len(cells))
    return sum(sorted((c.ordinary_A(supply_V) for c in cells), reverse=True)[:on_max])


def lowest_supply_V(cells: Sequence[CellWire], bench: Bench, limits: Mapping[str, int]) -> float:
    """The supply when as many cells are on as may be: its current limit may let it sag."""
    all_A = drawn_A(cells, bench.supply_V, limits) + bench.others_A
    share = 1.0 if bench.supply_A is None else min(1.0, bench.supply_A / all_A)
    return (1.0 - SUPPLY_ERROR) * share * bench.supply_V


def on_min_mA(
    cells: Sequence[CellWire],
    bench: Bench,
    limits: Mapping[str, int],
    tolerance: float,
    lead_Ohm: float = 0.0,
) -> int:
    """The largest `current_on_min_mA` below every reading of an intact cell; module, last part."""
    lowest_V = lowest_supply_V(cells, bench, limits)
    most_Ohm = max(_in_parallel(c) / c.least_A(1.0) for c in cells)
    least_A = lowest_V / ((1.0 + tolerance) * most_Ohm + lead_Ohm)
    read_mA = 1e3 * (1.0 - bench.current_error) * least_A
    count_mA = limits["current_full_scale_mA"] / FULL_COUNTS  # it may be rounded down
    return max(1, floor(read_mA - count_mA) - 1)


def _in_parallel(cell: CellWire) -> int:
    return cell.wire.n_wires if cell.wire.wiring == "parallel" else 1
