"""Heat budget of a wire whose current nobody measures: kept in the loop, from supply and wire.

Per metre of wire, with theta its temperature above the air (`hil.mechanics.sma.wire`),

    C theta' + L xi' = P - G theta,    P <= P_max = E^2 / r_min while the line is high

where E is the largest supply along the wire, in V/m, and r_min bounds its resistance per metre from
below. The loop keeps of every cell

    B' = P_max / C - B / tau  while its line is high,    B' = -B / tau  while it is low

in K, with tau >= C / G, and switches everything off when B > B_max. With K H replaced by B the
proposition of `hil.mechanics.sma.limits` holds: whatever is commanded,

    theta <= B + (L / C) (1 - xi)

The loop looks at B once a tick, and a loop that has died does not look: until the dead man of the
device acts, B grows by at most (P_max / C) t_late, which B_max leaves free:

    B_max = T_max - T_air,warmest - (P_max / C) t_late

Margins: the least cooling is COOLING_LEAST of the wire's convection; the supply may be SUPPLY_ERROR
too high. What the law does not hold for is a current other than V / R: wires of a cell that short
each other, or a transistor that stays on.
"""

from dataclasses import dataclass
from math import exp, inf, log

from hil.mechanics.sma.limits import COLDEST_C, SUPPLY_ERROR, CellWire

SHARE_TO_ARM = 1.0 / 8.0  # of the budget that may be used when a run begins, as on a board


@dataclass(frozen=True)
class HeatBudget:
    """The budget of one cell.

    Attributes
    ----------
    heats_K_per_s : P_max / C
    time_constant_s : tau
    rise_max_K : B_max; not above 0 if no budget protects the wire
    late_s : longest time from a tick until the line is low, whatever has failed
    """

    heats_K_per_s: float
    time_constant_s: float
    rise_max_K: float
    late_s: float

    @property
    def settles_K(self) -> float:
        """B of a cell that is held on for ever."""
        return self.heats_K_per_s * self.time_constant_s

    @property
    def cools_in_s(self) -> float:
        """Time with the line low after which a run may begin, whatever run was before."""
        return -self.time_constant_s * log(SHARE_TO_ARM)

    @property
    def begins_K(self) -> float:
        """B when a run begins: what `cools_in_s` leaves of the most that a run may have left.

        One that has died with a full budget has heated its wire until the dead man acted.
        """
        most_K = min(self.settles_K, self.rise_max_K + self.heats_K_per_s * self.late_s)
        return SHARE_TO_ARM * max(self.rise_max_K, most_K)

    def after_s(self, rise_K: float, on: bool, duration_s: float) -> float:
        """B after a time with the line high or low, exactly."""
        keep = exp(-duration_s / self.time_constant_s)
        return rise_K * keep + (self.settles_K * (1.0 - keep) if on else 0.0)

    def held_for_s(self) -> float:
        """How long a line may be high, from an unused budget, until it trips; infinite for ever."""
        if self.settles_K <= self.rise_max_K:
            return inf
        return max(0.0, -self.time_constant_s * log(1.0 - self.rise_max_K / self.settles_K))


def budget_of(cell: CellWire, supply_V: float, warm_C: float, late_s: float) -> HeatBudget:
    """The budget that keeps a wire below its maximum.

    Parameters
    ----------
    supply_V : across the cell while its line is high
    warm_C : the warmest air
    late_s : longest time from a tick until the line is low, whatever has failed
    """
    wire = cell.wire
    least_Ohm_per_m, _ = wire.extremes_Ohm_per_m(COLDEST_C, cell.temperature_max_C)
    field_V_per_m = wire.field_V_per_m * supply_V / wire.cell_V * (1.0 + SUPPLY_ERROR)
    heats_K_per_s = field_V_per_m**2 / least_Ohm_per_m / wire.capacity_J_per_m_K
    return HeatBudget(
        heats_K_per_s,
        cell.time_constant_s,
        cell.temperature_max_C - warm_C - heats_K_per_s * late_s,
        late_s,
    )


def peak_C(cell: CellWire, budget: HeatBudget, air_C: float) -> float:
    """The highest temperature of the wire in air of this temperature, whatever is commanded."""
    return cell.highest_C(air_C + budget.rise_max_K + budget.heats_K_per_s * budget.late_s)
