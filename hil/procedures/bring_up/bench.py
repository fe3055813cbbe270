"""A simulated bench for rehearsals: supply, loads, meter and e-stop around a simulated board.

Every fault is in the wiring or in the chip; the firmware is the one that a real board carries.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from hil.devices.board.native import N_CELLS, Relay
from hil.devices.board.self_test import FarEnd
from hil.errors import ConfigError, remedy
from hil.procedures.bring_up.setup import Setup

ROOM_C = 25.0
SHORT_A = 1.9  # of a link in place of a load, as far as the input can read
METER_DIGIT_A, METER_DIGIT_V = 1e-4, 1e-2
GAIN_SPREAD = 0.01  # of sound boards: shunt and amplifier
STUCK_BIT = 4  # of the multiplexers' address

#: What a fault is, in words.
FAULTS = {
    "no_pull_down": "a gate without its resistor to ground floats while the chip is in reset",
    "stuck_mux": "bit 2 of the multiplexers' address stays at 0",
    "dead_estop": "the e-stop's loop stays closed when it is pressed",
    "dead_watchdog": "the watchdog does not reset a chip whose clock has stopped",
    "dead_brown_out": "the chip runs on when its 5 V sag",
    "low_supply": "the cells' supply is a fifth too low",
    "shorted_gate": "a MOSFET conducts with its gate off",
    "welded_relay": "the e-stop opens its loop, and relay K2 does not cut the supply",
    "welded_k1": "relay K1 does not open",
    "dead_k1": "relay K1 does not close",
    "swapped_gates": "two gates switch each other's cells",
    "dead_gate": "a gate switches nothing",
    "gain_double": "a current reads twice what it is",
    "gain_half": "a current reads half of what it is",
    "blind_short": "a link in place of a load draws no more than the load did",
    "broken_wire": "the wire is broken",
}


class Chip(FarEnd, Protocol):
    """A simulated board, native or emulated."""

    def sense(
        self, cell: int, current_A: float, leakage_A: float, temperature_C: float
    ) -> None: ...

    def reset(self, cause: str = "watchdog") -> None: ...

    def stop_clock(self) -> None: ...

    def switch_by(self, cell: int, gate: int) -> None: ...

    def clear_address(self, bits: int) -> None: ...

    def sense_supply(self, supply_V: float) -> None: ...

    def set_relays(self, k1: Relay = "sound", k2: Relay = "sound") -> None: ...

    def sent_s(self) -> float: ...


def check_faults(names: Sequence[str]) -> None:
    """ConfigError for a fault that does not exist."""
    for name in names:
        if name not in FAULTS:
            raise ConfigError(f"--fault {name}: unknown{remedy(name, FAULTS)}")


class SimulatedBench:
    """The bench, and somebody who does at it whatever is asked for.

    Parameters
    ----------
    faults : names from FAULTS
    seed : of the gains, and of the cells that have the faults
    """

    def __init__(self, chip: Chip, setup: Setup, faults: Sequence[str], seed: int) -> None:
        check_faults(faults)
        self._chip, self._setup, self._faults = chip, setup, frozenset(faults)
        n = len(setup.cells)
        rng = np.random.default_rng(seed)
        self.cell = int(rng.integers(n))  # that has the fault
        self.other = (self.cell + 1) % n
        self.gain = 1.0 + rng.uniform(-GAIN_SPREAD, GAIN_SPREAD, n)
        self.gain[self.cell] *= 2.0 * ("gain_double" in faults) or 1.0
        self.gain[self.cell] *= 0.5 * ("gain_half" in faults) or 1.0
        self._Ohm = [math.inf] * n
        self._link: int | None = None
        self._V = 0.0
        self._pressed = False
        if "swapped_gates" in faults:
            chip.switch_by(self.cell, self.other)
            chip.switch_by(self.other, self.cell)
        if "stuck_mux" in faults:
            chip.clear_address(STUCK_BIT)
        k1: Relay = "welded" if "welded_k1" in faults else "sound"
        chip.set_relays(
            k1="dead" if "dead_k1" in faults else k1,
            k2="welded" if "welded_relay" in faults else "sound",
        )
        for spare in range(n, N_CELLS):
            chip.sense(spare, 0.0, 0.0, ROOM_C)
        self._settle()

    # --- as an operator ---

    def wait(self, duration_s: float) -> None:
        self._chip.advance(round(1e6 * duration_s))

    def now_s(self) -> float:
        return self._chip.sent_s()

    def set_estop(self, is_open: bool) -> bool:
        self._pressed = is_open
        self._chip.set_estop(is_open and "dead_estop" not in self._faults)
        self._settle()
        return True

    # --- what somebody does and reads ---

    def connect(self, stage: str) -> None:
        """Wire the bench for a stage."""
        n, setup = len(self._Ohm), self._setup
        wire_A = setup.wire_A or setup.load_A
        self._Ohm = [setup.load_Ohm if stage == "dummy loads" else math.inf] * n
        self._link = None
        if stage == "one wire" and "broken_wire" not in self._faults:
            self._Ohm[0] = setup.supply_V / wire_A
        self._V = 0.0 if stage == "no wire" else setup.supply_V
        self._V *= 0.8 if "low_supply" in self._faults else 1.0
        self.set_estop(False)

    def do(self, key: str) -> float:
        """Do what a step asks for; returns the meter's reading, where it has one."""
        kind, _, number = key.partition(".")
        if kind == "gates_in_reset":
            self._chip.reset("external")
            return 1.9 if "no_pull_down" in self._faults else 0.01
        if kind == "watchdog" and "dead_watchdog" not in self._faults:
            self._chip.stop_clock()
        if kind == "brown_out" and "dead_brown_out" not in self._faults:
            self._chip.reset("brown_out")
        if kind in ("supply", "estop_cuts", "estop_released"):
            self.set_estop(kind == "estop_cuts")
        if kind in ("shorted", "silence"):
            self._link = 0 if kind == "shorted" and "blind_short" not in self._faults else None
            self._settle()
        if kind == "current":
            return _digits(self._metered_A(int(number) - 1), METER_DIGIT_A)
        rests = kind == "rail_dead" and "welded_k1" not in self._faults
        return _digits(0.0 if rests else self._volts(), METER_DIGIT_V)

    def _volts(self) -> float:
        cut = self._pressed and "welded_relay" not in self._faults
        return 0.0 if cut else self._V

    def _drawn_A(self, cell: int) -> float:
        return SHORT_A if cell == self._link else self._volts() / self._Ohm[cell]

    def _metered_A(self, gate: int) -> float:
        """With one gate on. Where the board measures nothing, its own output alone has a load."""
        pair = {self.cell, self.other}
        swapped = "swapped_gates" in self._faults and gate in pair
        dead = "dead_gate" in self._faults and gate == self.cell
        alone = not self._setup.measures
        return 0.0 if dead or (swapped and alone) else self._drawn_A(gate)

    def _settle(self) -> None:
        """Bring what the board's inputs see up to date."""
        self._chip.sense_supply(self._V)
        for cell, gain in enumerate(self.gain):
            I_A = gain * self._drawn_A(cell)
            leaks = "shorted_gate" in self._faults and cell == self.cell
            dead = "dead_gate" in self._faults and cell == self.cell
            self._chip.sense(cell, 0.0 if dead else I_A, I_A if leaks else 0.0, ROOM_C)


def _digits(value: float, digit: float) -> float:
    """As a meter shows it."""
    return float(f"{round(value / digit) * digit:.6g}")
