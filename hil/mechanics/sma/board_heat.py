"""The heat budget of a cell that is held on, in the integers of firmware/core/heat.c.

H' = I^2 - H / tau in cA^2 ms. The board rounds every current and every time up and every loss down,
so it trips before the law does: `hil check` promises what the board does.
`tests/firmware/test_board_heat.py` holds both together, reading by reading.
"""

from dataclasses import dataclass
from math import ceil, floor, inf

TICK_S = 4e-6
COUNTS_FULL = 1023
SENSOR_COUNTS = 1015
"""What a board reads at least of any current beyond its sensor, of 1024.

The amplifier of `firmware/board/parts.toml` ends 30 mV below its 5 V, the converter's reference,
which may be 4.905 V unnoticed. The converter may read two counts less.
"""
SCAN_LEAST_S = 3.25e-3  # twelve cells and one reference, 250 us each
ROUND = 1 << 32
LONG_TIME_CONSTANTS = 30  # after which H does not grow any more


@dataclass(frozen=True)
class HeatLaw:
    """A board's entries `heat_max_cA2ms`, `heat_time_constant_ms` and `current_full_scale_mA`."""

    heat_max_cA2ms: int
    time_constant_ms: int
    full_scale_mA: int

    def counts(self, current_A: float) -> int:
        """The reading of this current; the board adds a count for what it rounds down."""
        return min(COUNTS_FULL, floor(1024e3 * current_A / self.full_scale_mA))

    def gained_cA2ms(self, counts: int, n_ticks: int) -> int:
        """What a reading adds, of a gate that was on for so long."""
        gain = (2 * self.full_scale_mA**2 + 3124) // 3125
        square = (counts + 1) ** 2
        a_tick_65536 = ((square >> 16) * gain << 8) + ((square & 0xFFFF) * gain >> 8) + 1
        return (a_tick_65536 >> 16) * n_ticks + ((a_tick_65536 & 0xFFFF) * n_ticks >> 16) + 1

    def lost_share(self, n_ticks: int) -> int:
        """The share of H that cools away meanwhile, of 2^32: below 1 - exp(-x)."""
        span = self.time_constant_ms * round(1e-3 / TICK_S)
        if n_ticks >= span < 0xFFFF:
            return ROUND // 2
        x = (ROUND - 1) // span * n_ticks
        at_most = (x >> 16) + 1
        return x - (at_most * at_most >> 1) - (x != 0)

    def after(self, heat_cA2ms: int, rest: int, n_ticks: int) -> tuple[int, int]:
        """H that has cooled so long, and what remains of the loss below one, of 2^16."""
        share = self.lost_share(n_ticks)
        middle = (heat_cA2ms >> 16) * (share & 0xFFFF)
        low = (heat_cA2ms & 0xFFFF) * (share >> 16)
        remains = (middle & 0xFFFF) + (low & 0xFFFF) + rest
        whole = (heat_cA2ms >> 16) * (share >> 16) + (middle >> 16) + (low >> 16)
        return heat_cA2ms - whole - (remains >> 16), remains & 0xFFFF

    def trips_after_s(self, counts: int, reading_every_s: float) -> float:
        """How long a cell is on from an unused budget until the reading that trips; or infinite."""
        n_ticks = round(reading_every_s / TICK_S)
        gain = self.gained_cA2ms(counts, n_ticks + 1)
        if (gain + 1) * ROUND <= self.heat_max_cA2ms * self.lost_share(n_ticks):
            return inf
        heat_cA2ms, rest = 0, 0
        most = ceil(LONG_TIME_CONSTANTS * 1e-3 * self.time_constant_ms / reading_every_s)
        for reading in range(1, most + 2):
            heat_cA2ms, rest = self.after(heat_cA2ms, rest, n_ticks)
            heat_cA2ms += gain
            if heat_cA2ms > self.heat_max_cA2ms:
                return reading * reading_every_s
        return inf
