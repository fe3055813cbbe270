"""The one plant behind every simulated device of a rig."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.devices.board.native import N_CELLS
from hil.loop.channels import Readings
from hil.loop.frame import CELL_UNKNOWN
from hil.mechanics.sma.clamp import Clamps
from hil.mechanics.system import System

AMBIENT_C = 20.0
PLAIN_V = 8.0  # of the supply of cells without a wire model; assumed
CURRENT_ON_A = 0.2  # current of a simulated cell that is on and has no wire model; assumed
AMBIENT = -1
WIRE_SUFFIX = ".wire_C"
WIRES = -2  # and below: the temperature of the wire of cell WIRES - index
ON_FROM_DUTY = 0.5  # duty in a period from which a cell without a thermal model counts as on
POWERED_BEFORE_US = 100_000  # long enough for a board to scan every cell before the run


class Gates(Protocol):
    """Interface of a simulated board to the plant."""

    def advance(self, duration_us: int) -> None:
        """Advance the board's time before the run."""
        ...

    def step(self, period_us: int) -> NDArray[np.float64]:
        """Advance the board by a period of the run; returns the duty of every gate, 0 to 1."""
        ...

    def sense(
        self, cell: int, current_A: float, leakage_A: float, temperature_C: float
    ) -> None: ...

    def sense_supply(self, supply_V: float) -> None: ...

    def set_estop(self, is_open: bool) -> None: ...


@dataclass(frozen=True)
class Wired:
    """A board and the indices of the cells at its gates; with gate and cell of every wire."""

    board: Gates
    gates: NDArray[np.int64]
    thermal: Sequence[tuple[int, int]]


class SimPlant:
    """The plant that simulated boards and outputs drive and simulated instruments measure.

    Parameters
    ----------
    current_on_A : current of a cell whose wire the plant does not model

    Attributes
    ----------
    cells : (N,) uint8 array, cells that were on over the last period
    inputs : (M,) array, values of the system's inputs, which simulated outputs set
    temperature_C, current_A, resistance_Ohm : (N,) arrays, state of the wires, the current averaged
        over the PWM; NaN for a cell without a thermal model
    clamp_C : (N,) array
        Temperature of the clamps at the wires' ends, which boards measure; NaN as above.
    powered : whether the cells have power: all enable lines high and the supply on
    turned : sum of all changes of the wires' fractions of austenite, over all periods and wires
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
        self._fed = False  # whether the rig has a supply; otherwise power is always on
        self._volts, self._limit_A = math.inf, math.inf
        self._enabled: dict[str, bool] = {}
        self.powered = True
        self._thermal = np.isfinite(self._supply_V)
        all_thermal = bool(self._thermal.all())
        # A slice where it can be one, and then no cell is plain.
        self._wired_at = slice(None) if all_thermal else np.flatnonzero(self._thermal)
        self._plain_at = np.flatnonzero(~self._thermal)
        room_C = wires.ambient_C
        self._ambient_C = room_C if room_C == room_C else AMBIENT_C
        self._has_wires = bool(self._thermal.any())
        self.turned, self._xi = 0.0, wires.xi.copy()
        self._duty = np.zeros(n_cells)
        self._off = np.zeros(n_cells, dtype=np.uint8)
        self._no_current_A = np.zeros(n_cells)
        self._field_V, self._drawn_A = math.inf, 0.0

    def set_supply(self, volts: float, limit_A: float) -> None:
        """Set the supply's voltage and current limit."""
        if (volts, limit_A) != (self._volts, self._limit_A):
            self._fed, self._volts, self._limit_A = True, volts, limit_A
            self._set_powered()
            self._set_field(volts)
            self._show_currents()

    def enable(self, line: str, high: bool) -> None:
        """Set the level of an enable line; the cells have power only if all are high."""
        before = self.powered
        self._enabled[line] = high
        self._set_powered()
        if self.powered != before:
            self._show_currents()

    def _set_powered(self) -> None:
        self.powered = all(self._enabled.values()) and self._volts > 0.0

    def fed(self) -> tuple[float, float]:
        """Voltage of the supply and total current of the cells now."""
        return self._field_V, self._drawn_A

    def _set_field(self, volts: float) -> None:
        self._field_V = volts
        self._wires.set_supply_V(volts)

    def _limit_current(self) -> None:
        """Reduce the voltage if the cells would draw more than the supply's current limit."""
        if not self._fed or not self.powered:
            self._drawn_A = 0.0
            return
        plain_A = float(self._current_on_A * self.cells[self._plain_at].sum())
        at = self._wired_at
        per_V = float(np.add.reduce(self._duty[at] / self.resistance_Ohm[at]))
        wire_A = per_V * self._volts
        field_V = self._volts
        if wire_A + plain_A > self._limit_A:
            share = self._limit_A / (wire_A + plain_A)
            field_V, wire_A, plain_A = share * self._volts, share * wire_A, share * plain_A
        if field_V != self._field_V:
            self._set_field(field_V)
        self._drawn_A = wire_A + plain_A

    def _show_currents(self) -> None:
        """Set the boards' current inputs to the currents of cells that are on."""
        amps = self._current_on_A if self.powered else 0.0
        for wired in self._wired:
            wired.board.sense_supply(self._supply_of(wired))
            for gate, cell in enumerate(wired.gates):
                if not self._thermal[cell]:
                    wired.board.sense(gate, amps, 0.0, AMBIENT_C)
        if self._has_wires:
            self._sense()

    def wire(self, board: Gates, gates: Sequence[int]) -> None:
        """Connect these cells to the gates of a simulated board."""
        thermal = [(gate, cell) for gate, cell in enumerate(gates) if self._thermal[cell]]
        self._wired.append(Wired(board, np.array(gates), thermal))
        for gate in range(N_CELLS):
            board.sense(gate, self._current_on_A, 0.0, AMBIENT_C)
        board.sense_supply(self._supply_of(self._wired[-1]))
        if self._has_wires:
            self._sense()
        board.advance(POWERED_BEFORE_US)

    def follow(self, gates: Sequence[int]) -> None:
        """Let these cells follow the reports of a real board."""
        self._followed = np.concatenate((self._followed, np.array(gates)))

    def report(self, readings: Readings) -> None:
        """Take the boards' reports of this tick; call it before `advance`."""
        if len(self._followed):
            reported = readings.cells_reported[self._followed]
            known = self._followed[reported != CELL_UNKNOWN]
            self.cells[known] = readings.cells_reported[known]
            of_cells = readings.duty_reported if len(readings.duty_reported) else self.cells
            self._duty[known] = of_cells[known]

    def advance(self, t_s: float) -> None:
        """Advance plant and boards together to t_s, in whole periods."""
        n = round(t_s / self._period_s)
        while self._n < n:
            for wired in self._wired:
                duty = wired.board.step(self._period_us)
                _switch(duty, wired.gates, self.cells, self._duty)
            if self._has_wires or self._fed:
                self._limit_current()
            if not self.powered:
                self._system.step(self._off, self.inputs)
            elif not self._has_wires:
                self._system.step(self.cells, self.inputs)
            elif len(self._plain_at):
                self._system.step(np.where(self._thermal, self._duty, self.cells), self.inputs)
            else:
                self._system.step(self._duty, self.inputs)
            if self._has_wires:
                self._turn()
                self._clamps.step(self.temperature_C, self._wires.air_C)
                self._sense()
            self._n += 1

    def _turn(self) -> None:
        """Count what a period has changed of the wires' austenite."""
        xi = self._wires.xi
        self.turned += float(np.add.reduce(np.abs(xi - self._xi)[self._wired_at]))
        self._xi[:] = xi

    @property
    def wear_per_h(self) -> float | None:
        """Full transformations there and back in an hour of the run, mean over all wires.

        Small cycles count by their size. None without wires, or before the first period.
        """
        if not (self._has_wires and self._n):
            return None
        hours = self._n * self._period_s / 3600.0
        return 0.5 * self.turned / float(self._thermal.sum()) / hours

    def _sense(self) -> None:
        """Set the boards' inputs: the wires' currents when on, and the clamp temperatures."""
        on = self._supply_V / self.resistance_Ohm if self.powered else self._no_current_A
        on_A, clamp_C = on.tolist(), self.clamp_C.tolist()  # plain numbers: each is used alone
        for wired in self._wired:
            wired.board.sense_supply(self._supply_of(wired))
            for gate, cell in wired.thermal:
                wired.board.sense(gate, on_A[cell], 0.0, clamp_C[cell])

    def _supply_of(self, wired: Wired) -> float:
        """Voltage of the supply of a board's cells; 0 if it is off."""
        if not self.powered:
            return 0.0
        return float(self._supply_V[wired.thermal[0][1]]) if wired.thermal else PLAIN_V

    def output(self, index: int) -> float:
        """Current value of a system output; temperatures of the air and of wires in °C."""
        if index <= WIRES:
            return float(self.temperature_C[WIRES - index])
        return self._ambient_C if index == AMBIENT else float(self._system.y[index])


def output_index(system: System, signal: str, ambient: str) -> int:
    """Index of a signal for `SimPlant.output`; `ambient` is the air temperature's signal."""
    if signal == ambient:
        return AMBIENT
    cell = signal.removesuffix(WIRE_SUFFIX)
    if cell != signal and cell in system.cell_names:
        return WIRES - list(system.cell_names).index(cell)
    return list(system.outputs).index(signal)


@njit(cache=True)
def _switch(duty_of_gate, gates, cells, duty):  # type: ignore[no-untyped-def]
    """Copy the duty of every gate to its cell; a cell is on from ON_FROM_DUTY."""
    for i in range(len(gates)):
        cells[gates[i]] = duty_of_gate[i] >= ON_FROM_DUTY
        duty[gates[i]] = duty_of_gate[i]
