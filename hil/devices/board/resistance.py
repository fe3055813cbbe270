"""The resistance of every cell, from a board's counts of current and supply at the same time.

    R = (N_V / N_I) (V_full / I_full) - R_lead

    u(R)^2 = (R + R_lead)^2 ((u_N / N_I)^2 + (u_N / N_V)^2 + u_cal^2),    u_N^2 = 1 / 12 + s^2

u_N is of the converter's resolution, a uniform distribution one count wide, and its noise s; u_cal
the relative standard uncertainty of shunt, amplifier and divider together (GUM, JCGM 100:2008,
4.3.7 and 5.1). The converter's reference cancels.

A reading whose current or voltage is at the end of the scale, or too small, is not a value: NaN.
It still bounds the resistance, from below if no current flows and from above if the sensor is
full. The guard's row `resistance_out_of_range` is tripped by PERSISTENCE such readings in a row of
which nothing lies within the limits. Where a board may go on with open cells, a reading without a
current is not one of them: an open cell that is off is the board's to find, when it comes on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.devices.board import protocol
from hil.loop.frame import Column, Frame
from hil.loop.stages import Message

FULL_COUNTS = 1023
LEAST_COUNTS = 8  # below, the resolution alone is above 3 %
RESOLUTION = 1.0 / math.sqrt(12.0)
PERSISTENCE = 2
NO_SUPPLY = (
    "cells draw current, and it measures no voltage of their supply, so that there is no "
    "resistance: connect the supply's divider to input 15 of the temperature multiplexer"
)
OUT_OF_RANGE = ("resistance_low", "resistance_high")
_LOW, _HIGH = (1 << i for i in range(len(OUT_OF_RANGE)))


@dataclass(frozen=True)
class Chain:
    """From counts to ohms.

    Attributes
    ----------
    ohm_per_ratio : V_full / I_full
    lead_Ohm : of what is in series with the wire: shunt, switch, leads
    u_relative : u_cal
    noise_counts : s
    """

    ohm_per_ratio: float
    lead_Ohm: float
    u_relative: float
    noise_counts: float = 0.0

    @classmethod
    def of(
        cls, limits: Mapping[str, int], lead_Ohm: float, u_relative: float,
        noise_counts: float = 0.0,
    ) -> "Chain":  # fmt: skip
        """From a board's table of limits."""
        ratio = limits["supply_full_scale_mV"] / limits["current_full_scale_mA"]
        return cls(ratio, lead_Ohm, u_relative, noise_counts)

    @property
    def _u_counts(self) -> float:
        return math.hypot(RESOLUTION, self.noise_counts)

    def ohms(self, current_counts: int, supply_counts: int) -> tuple[float, float]:
        """Value and standard uncertainty; NaN if the counts give none."""
        if not all(LEAST_COUNTS <= n < FULL_COUNTS for n in (current_counts, supply_counts)):
            return math.nan, math.nan
        whole = self.ohm_per_ratio * supply_counts / current_counts
        return whole - self.lead_Ohm, whole * math.hypot(
            self._u_counts / current_counts, self._u_counts / supply_counts, self.u_relative
        )

    def bounds_Ohm(self, current_counts: int, supply_counts: int) -> tuple[float, float]:
        """What the resistance may be, given counts that may be half a count off."""
        least = max(supply_counts - 0.5, 0.0) / (current_counts + 0.5)
        most = (supply_counts + 0.5) / (current_counts - 0.5) if current_counts else math.inf
        low = 0.0 if current_counts >= FULL_COUNTS else least
        high = math.inf if supply_counts >= FULL_COUNTS else most
        return self.ohm_per_ratio * low - self.lead_Ohm, self.ohm_per_ratio * high - self.lead_Ohm

    def resolution(self, current_A: float, supply_V: float, limits: Mapping[str, int]) -> float:
        """u(R) / R of the converter alone, at this current and voltage."""
        counts = (
            FULL_COUNTS * 1e3 * current_A / limits["current_full_scale_mA"],
            FULL_COUNTS * 1e3 * supply_V / limits["supply_full_scale_mV"],
        )
        return math.hypot(*(self._u_counts / n for n in counts))


class Resistances:
    """The columns of the cells of a board that measures resistance, written at every tick.

    Parameters
    ----------
    limits_Ohm : the least and greatest resistance of every cell
    open_stays : whether the board may go on with open cells
    """

    def __init__(
        self,
        board: str,
        cells: Sequence[str],
        chain: Chain,
        limits_Ohm: Sequence[tuple[float, float]],
        simulated: bool,
        open_stays: bool = False,
    ) -> None:
        self._open_stays = open_stays
        self._board, self._cells, self._chain, self._limits = board, cells, chain, limits_Ohm
        self._simulated = simulated
        self._measured_s = [math.nan] * len(cells)
        self._streaks = [0] * len(cells)
        self._messages: list[Message] = []
        self._warned = False
        self._troubles: dict[int, list[str]] = {_LOW: [], _HIGH: []}
        self._tick_s = math.nan

    @property
    def columns(self) -> list[Column]:
        simulated = self._simulated
        cells = [
            column
            for cell in self._cells
            for column in (
                Column(f"{cell}.resistance_Ohm", "Ohm", "measured",
                       f"resistance of {cell}; NaN if not measured", simulated=simulated),
                Column(f"{cell}.resistance_u_Ohm", "Ohm", "measured",
                       f"standard uncertainty of {cell}'s resistance", simulated=simulated),
                Column(f"{cell}.age_of_resistance_s", "s", "timing",
                       f"age of the last resistance of {cell}; NaN before the first",
                       simulated=simulated),
            )
        ]  # fmt: skip
        about = f"cells of {self._board} whose resistance is out of range; latched"
        return [
            *cells,
            Column(self._bits_name, "1", "fault", about, flags=OUT_OF_RANGE, simulated=simulated),
        ]

    @property
    def _bits_name(self) -> str:
        return f"{self._board}_resistance_bits"

    def bind(self, frame: Frame) -> None:
        names = ("resistance_Ohm", "resistance_u_Ohm", "age_of_resistance_s")
        self._row = frame.span([f"{cell}.{name}" for cell in self._cells for name in names])
        self._bits = frame.bits
        self._at = frame.bit_index(self._bits_name)
        self._row[:] = math.nan

    def begin(self, t_s: float) -> None:
        """Start a tick: no value yet, and every age."""
        self._tick_s = t_s
        self._row[0::3] = self._row[1::3] = math.nan
        for i, measured_s in enumerate(self._measured_s):
            self._row[3 * i + 2] = t_s - measured_s

    def take(self, t_s: float, cell: int, counts: Sequence[int], age_ms: int) -> None:
        """A reading that was age_ms old when the command of t_s was answered."""
        if cell >= len(self._cells):
            return
        R, u = self._chain.ohms(counts[0], counts[1])
        if counts[1] < LEAST_COUNTS <= counts[0] and not self._warned:
            self._warned = True
            self._messages.append(Message("warning", f"{self._board}: {NO_SUPPLY}"))
        self._judge(cell, counts)
        if R != R:
            return
        self._measured_s[cell] = t_s - 1e-3 * age_ms
        self._row[3 * cell + 2] = self._tick_s - self._measured_s[cell]
        self._row[3 * cell], self._row[3 * cell + 1] = R, u

    def _judge(self, cell: int, counts: Sequence[int]) -> None:
        least, most = self._limits[cell]
        low, high = self._chain.bounds_Ohm(counts[0], counts[1])
        side = _LOW if high < least else _HIGH if low > most else 0
        if self._open_stays and counts[0] < LEAST_COUNTS:
            side = 0
        self._streaks[cell] = self._streaks[cell] + 1 if side else 0
        if self._streaks[cell] == PERSISTENCE:
            self._bits[self._at] |= side
            what, limit = (
                (f"at most {high:.4g}", f"{least:.4g} Ohm (devices.{self._board}.resistance.min")
                if side == _LOW
                else (
                    f"at least {low:.4g}",
                    f"{most:.4g} Ohm (devices.{self._board}.resistance.max",
                )
            )
            self._troubles[side].append(f"{self._cells[cell]} {what} Ohm, limit {limit}_Ohm)")

    @property
    def has_news(self) -> bool:
        """Whether there is a message that nobody has had."""
        return bool(self._messages)

    def messages(self) -> list[Message]:
        """That a current flows and the supply's voltage is not measured, once."""
        fresh, self._messages = self._messages, []
        return fresh

    def troubles(self) -> list[str]:
        """Values out of range, as text."""
        return [text for texts in self._troubles.values() for text in texts]

    def reset(self) -> None:
        """Forget values out of range, at arming."""
        self._streaks = [0] * len(self._cells)
        for texts in self._troubles.values():
            texts.clear()


def measures(limits: Mapping[str, int]) -> bool:
    """Whether a board with this table measures resistance."""
    return (protocol.default_limits() | dict(limits))["sense_every_ms"] > 0
