"""The one plant behind every simulated device of a rig."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.devices.board.native import N_CELLS
from hil.loop.frame import CELL_UNKNOWN
from hil.mechanics.sma.clamp import Clamps
from hil.mechanics.system import System

AMBIENT_C = 20.0
AMBIENT = -1
ON_FROM_DUTY = 0.5  # of a period: a cell that knows only on and off is what it was for longer
POWERED_BEFORE_US = 100_000  # long enough for a board to have looked at every cell


class Gates(Protocol):
    """The far end of a simulated board, as the plant sees it."""

    def advance(self, duration_us: int) -> None:
        """Time passes before the run."""
        ...

    def step(self, period_us: int) -> NDArray[np.float64]:
        """A period of the run passes: the duty of every gate in it, 0 to 1."""
        ...

    def sense(
        self, cell: int, current_A: float, leakage_A: float, temperature_C: float
    ) -> None: ...

    def set_estop(self, is_open: bool) -> None: ...


@dataclass(frozen=True)
class Wired:
    """A board and the cells (from 0) behind its gates."""

    board: Gates
    gates: NDArray[np.int64]


class SimPlant:
    """What simulated boards and outputs move and simulated instruments measure.

    Parameters
    ----------
    current_on_A : current of a cell whose wire the plant does not model

    Attributes
    ----------
    cells : (N,) uint8 array
        Cells that were on over the last period.
    inputs : (M,) array
        Values of the system's inputs, which simulated outputs set.
    temperature_C, current_A, resistance_Ohm : (N,) arrays
        Of the wires now, the current as a mean over the PWM; NaN where a cell is not thermal.
    clamp_C : (N,) array
        Of the clamps at their ends, which is what boards measure; NaN likewise.
    """

    def __init__(self, system: System, period_s: float, current_on_A: float) -> None:
        self._system = system
        self._period_s = period_s
        self._period_us = round(1e6 * period_s)
        self._current_on_A = current_on_A
        self._wired: list[Wired] = []
        self._followed: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._n = 0
        n_cells, wires = len(system.cell_names), system.wires
        self.cells: NDArray[np.uint8] = np.zeros(n_cells, dtype=np.uint8)
        self.inputs = np.zeros(len(system.inputs))
        self.temperature_C, self.current_A = wires.T_C, wires.current_A
        self.resistance_Ohm, self.clamp_C = wires.resistance_Ohm, wires.clamp_C
        self._clamps = Clamps(wires.cells, wires.clamp_C, period_s)
        self._supply_V = wires.supply_V
        self._wires = wires
        self._fed = False  # by a supply of the rig's; else by one that is always there
        self._volts, self._limit_A = math.inf, math.inf
        self._enabled: dict[str, bool] = {}
        self._thermal = np.isfinite(self._supply_V)
        room_C = wires.ambient_C
        self._ambient_C = room_C if room_C == room_C else AMBIENT_C
        self._has_wires = bool(self._thermal.any())
        self._duty = np.zeros(n_cells)
        self._off = np.zeros(n_cells, dtype=np.uint8)
        self._no_current_A = np.zeros(n_cells)
        self._given_V, self._drawn_A = math.inf, 0.0

    def feed(self, volts: float, limit_A: float) -> None:
        """The cells hang on a supply that gives so many volts, and no more than this current."""
        if (volts, limit_A) != (self._volts, self._limit_A):
            self._fed, self._volts, self._limit_A = True, volts, limit_A
            self._set_field(volts)
            self._show_currents()

    def enable(self, line: str, high: bool) -> None:
        """A card's line lets the cells have power, or does not."""
        before = self.powered
        self._enabled[line] = high
        if self.powered != before:
            self._show_currents()

    @property
    def powered(self) -> bool:
        """Whether a gate that is on heats its cell, and finds a current."""
        return all(self._enabled.values()) and self._volts > 0.0

    def fed(self) -> tuple[float, float]:
        """What the supply measures now: volts, and the current that all cells draw."""
        return self._given_V, self._drawn_A

    def _set_field(self, volts: float) -> None:
        self._given_V = volts
        self._wires.feed(volts)

    def _limit_current(self) -> None:
        """Let the voltage give way where the cells would draw more than the supply gives."""
        if not self._fed or not self.powered:
            self._drawn_A = 0.0
            return
        duty = np.where(self._thermal, self._duty, self.cells)
        plain_A = float(self._current_on_A * duty[~self._thermal].sum())
        per_V = float((duty[self._thermal] / self.resistance_Ohm[self._thermal]).sum())
        wire_A = per_V * self._volts
        given_V = self._volts
        if wire_A + plain_A > self._limit_A:
            share = self._limit_A / (wire_A + plain_A)
            given_V, wire_A, plain_A = share * self._volts, share * wire_A, share * plain_A
        if given_V != self._given_V:
            self._set_field(given_V)
        self._drawn_A = wire_A + plain_A

    def _show_currents(self) -> None:
        """What the boards would see of cells that are on, with the power that there is."""
        amps = self._current_on_A if self.powered else 0.0
        for wired in self._wired:
            for gate, cell in enumerate(wired.gates):
                if not self._thermal[cell]:
                    wired.board.sense(gate, amps, 0.0, AMBIENT_C)
        if self._has_wires:
            self._sense()

    def wire(self, board: Gates, gates: Sequence[int]) -> None:
        """Put these cells behind the board's gates."""
        self._wired.append(Wired(board, np.array(gates)))
        for gate in range(N_CELLS):
            board.sense(gate, self._current_on_A, 0.0, AMBIENT_C)
        if self._has_wires:
            self._sense()
        board.advance(POWERED_BEFORE_US)

    def follow(self, gates: Sequence[int]) -> None:
        """These cells are switched by a real board: do as it reports."""
        self._followed = np.concatenate((self._followed, np.array(gates)))

    def report(self, cells_reported: NDArray[np.uint8]) -> None:
        """What the boards report at this tick, before the plant comes to it."""
        if len(self._followed):
            reported = cells_reported[self._followed]
            known = reported != CELL_UNKNOWN
            self.cells[self._followed[known]] = reported[known]

    def advance(self, t_s: float) -> None:
        """Bring the plant to t_s in whole periods, boards and cells in step."""
        n = round(t_s / self._period_s)
        while self._n < n:
            for wired in self._wired:
                duty = wired.board.step(self._period_us)
                _switch(duty, wired.gates, self.cells, self._duty)
            if self._has_wires or self._fed:
                self._duty[self._followed] = self.cells[self._followed]
                self._limit_current()
            if not self.powered:
                self._system.step(self._off, self.inputs)
            elif self._has_wires:
                self._system.step(np.where(self._thermal, self._duty, self.cells), self.inputs)
            else:
                self._system.step(self.cells, self.inputs)
            if self._has_wires:
                self._clamps.step(self.temperature_C, self._wires.air_C)
                self._sense()
            self._n += 1

    def _sense(self) -> None:
        """Show the boards what the wires of their cells carry when on, and their clamps' heat."""
        on_A = self._supply_V / self.resistance_Ohm if self.powered else self._no_current_A
        for wired in self._wired:
            for gate, cell in enumerate(wired.gates):
                if self._thermal[cell]:
                    wired.board.sense(gate, on_A[cell], 0.0, self.clamp_C[cell])

    def output(self, index: int) -> float:
        """One of the system's outputs, now; with AMBIENT the room's temperature."""
        return self._ambient_C if index == AMBIENT else float(self._system.y[index])


@njit(cache=True)
def _switch(duty_of_gate, gates, cells, duty):  # type: ignore[no-untyped-def]
    """Every gate drives its cell."""
    for i in range(len(gates)):
        cells[gates[i]] = duty_of_gate[i] >= ON_FROM_DUTY
        duty[gates[i]] = duty_of_gate[i]
