"""Control stage that modulates the power of wires: PI on force around the inverse wire model.

    u = r + Kp e + Ki int(e) dt,    e = r - measured

A `Sharing` gives every cell its fraction of austenite, and
`hil.systems.array.recruitment.wire_duties` inverts the wire model for it. `Together` shares by

    xi_n* = u / sum_m g_m,    xi_n = (twin's) + (measured - twin's force) / sum_m g_m

with the static gains g of the usable cells. The second is what is fed back: not the array's own
lag. `hil.systems.array.antagonists` shares between two sides.

Anti-windup: while all cells that could give more force have their largest duty (full power, the
temperature limit or the boards' heat budget) the integral ignores errors that ask for more, and
while none could give less, errors that ask for less.

A duty holds for one command, in which the force's readings are averaged. Without a reading the last
mean stands, and the integral waits for the next one: dt is the time since the last. Before a cell
has been on for BREAK_AT of `guard.cell_on_max_s` it gets a break of one command: an on-time limit
restarts there, and the board's heat budget does not (docs/modulation.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, isnan, nan
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hil.control.steering import Steerable
from hil.loop.frame import Column
from hil.mechanics.arrays import Array, Mask
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.recruitment.stage import FORCE_COLUMNS, CellStage, OnTimeBreaks
from hil.systems.array.recruitment.wire_duties import WireDuties

BREAK_AT = 0.9
GAINS = ("k_p", "k_i_per_s")
ROUNDING = 1e-9  # of a period


@dataclass
class ForceLaw:
    """PI on force with anti-windup.

    Attributes
    ----------
    k_p, k_i_per_s : gains
    integral_N : the integral term
    """

    k_p: float
    k_i_per_s: float
    integral_N: float = 0.0
    _added_N: float = field(default=0.0, repr=False)
    _force_N: float = field(default=nan, repr=False)
    _unread_s: float = field(default=0.0, repr=False)

    def restart(self) -> None:
        """Forget the integral and the last reading."""
        self.integral_N, self._force_N, self._unread_s = 0.0, nan, 0.0

    def demand_N(self, reference_N: float, force_N: float, for_s: float) -> float:
        """u, a time after the last call; `force_N` is NaN without a reading since then."""
        self._added_N = 0.0
        self._unread_s += for_s
        if not isnan(force_N):
            self._force_N = force_N
            self._added_N = self.k_i_per_s * self._unread_s * (reference_N - force_N)
            self.integral_N += self._added_N
            self._unread_s = 0.0
        if isnan(self._force_N):
            return reference_N + self.integral_N
        return reference_N + self.k_p * (reference_N - self._force_N) + self.integral_N

    def saturated(self, *, high: bool, low: bool) -> None:
        """Take the last addition back if the command could not follow it."""
        if (high and self._added_N > 0.0) or (low and self._added_N < 0.0):
            self.integral_N -= self._added_N


class Fractions(NamedTuple):
    """Fractions of austenite (N,): what a demand takes, and what the measured force says."""

    wanted: Array
    measured: Array


class Sharing(Protocol):
    """How a demand is shared among cells.

    Attributes
    ----------
    pulls : (N,) bool array, cells that it uses
    """

    pulls: NDArray[np.bool_]

    def fractions(self, demand_N: float, surplus_N: float, able: NDArray[np.bool_]) -> Fractions:
        """The fractions for a demand, where the measured force exceeds the twin's by a surplus."""
        ...

    def at_ends(self, duties: WireDuties, able: NDArray[np.bool_]) -> tuple[bool, bool]:
        """Whether the last duties could give no more force, and no less."""
        ...


class Together:
    """Every cell takes the same fraction.

    Parameters
    ----------
    gains_N : (N,) array, static force of every cell; one without a positive force stays off
    twin : its wires have the austenite
    """

    def __init__(self, gains_N: Array, twin: ArraySystem) -> None:
        self._gains_N, self._twin = gains_N, twin
        self.pulls = gains_N > 0.0

    def fractions(self, demand_N: float, surplus_N: float, able: NDArray[np.bool_]) -> Fractions:
        whole_N = float(self._gains_N @ able) or np.inf
        wanted = np.full(len(able), demand_N / whole_N)
        return Fractions(wanted, self._twin.wires.xi + surplus_N / whole_N)

    def at_ends(self, duties: WireDuties, able: NDArray[np.bool_]) -> tuple[bool, bool]:
        return bool(duties.high[able].all()), bool(duties.low[able].all())


class Sensed(NamedTuple):
    """The force, and the cells that may produce it.

    Attributes
    ----------
    channel : index of the force among the readings
    output : index of the same force among the twin's outputs
    usable : (N,) uint8 array, 0 for cells that have failed; may change between steps
    """

    channel: int
    output: int
    twin: ArraySystem
    usable: Mask


class Timing(NamedTuple):
    """Periods of the loop and of a command (in periods), and `guard.cell_on_max_s`."""

    period_s: float
    every: int
    on_max_s: float


class Modulation(CellStage):
    """A reference, and duties that make the measured force follow it."""

    def __init__(
        self,
        reference: Steerable,
        law: ForceLaw,
        duties: WireDuties,
        sharing: Sharing,
        sensed: Sensed,
        timing: Timing,
    ) -> None:
        limited = Column(
            "cells_limited", "1", "commanded",
            "number of cells whose duty a limit of temperature or heat holds down",
        )  # fmt: skip
        super().__init__(reference, [*FORCE_COLUMNS, limited])
        self._force_law, self._duties, self._sharing = law, duties, sharing
        self._channel, self._output, self._twin, self._usable = sensed
        self._period_s, self._every, on_max_s = timing
        most = np.floor(BREAK_AT * on_max_s / (self._every * self._period_s) + ROUNDING)
        self._breaks = OnTimeBreaks(len(sensed.usable), max(1.0, most))
        self._duty = np.zeros(len(sensed.usable))
        self._demand_N = float("nan")
        self.restart()

    def restart(self) -> None:
        """Forget the integral, and command at the next step."""
        self._force_law.restart()
        self._duties.restart()
        self._breaks.restart()
        self._last, self._last_surplus_N = -1, 0.0
        self._sum_N, self._surplus_N, self._n = 0.0, 0.0, 0

    def set_gain(self, key: str, value: float) -> None:
        """Change a gain of the controller; KeyError for an unknown name."""
        if key not in GAINS:
            raise KeyError(key)
        setattr(self._force_law, key, value)

    def step(self, t_s: float) -> None:
        values, force_N = self._values, float(self._measured[self._channel])
        values[0] = reference_N = self.reference.at(t_s)
        if not isnan(force_N):
            self._sum_N += force_N
            self._surplus_N += force_N - float(self._twin.y[self._output])
            self._n += 1
        turn = int(t_s / self._period_s + ROUNDING) // self._every
        if turn > self._last:
            n_commands = turn - self._last if self._last >= 0 else 1
            self._last = turn
            self._command(reference_N, n_commands)
        self._commands.duty[:] = self._duty
        values[1] = self._demand_N
        values[2] = np.count_nonzero(self._duties.limited & (self._usable != 0))

    def _command(self, reference_N: float, n_commands: int) -> None:
        force_N = nan
        if self._n:
            force_N, self._last_surplus_N = self._sum_N / self._n, self._surplus_N / self._n
        self._sum_N, self._surplus_N, self._n = 0.0, 0.0, 0
        able = (self._usable != 0) & self._sharing.pulls
        has_demand = bool(able.any()) and not isnan(reference_N)
        self._demand_N = 0.0
        if has_demand:
            for_s = n_commands * self._every * self._period_s
            self._demand_N = self._force_law.demand_N(reference_N, force_N, for_s)
        wanted, measured = self._sharing.fractions(self._demand_N, self._last_surplus_N, able)
        runs = able & ~self._breaks.due(self._duty > 0.0, n_commands) & has_demand
        self._duty[:] = self._duties.step(wanted, measured, runs, self._twin, n_commands)
        high, low = self._sharing.at_ends(self._duties, able)
        self._force_law.saturated(high=high, low=low)


def command_periods(command_s: float, period_s: float, every: Sequence[int]) -> int:
    """Periods of a command: whole turns of every board, and at least `command_s`."""
    turn = int(np.lcm.reduce(np.array([1, *every])))
    return turn * max(1, ceil(command_s / (turn * period_s) - ROUNDING))
