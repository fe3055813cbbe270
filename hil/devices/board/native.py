"""The far end of a simulated board: the shipped firmware core, compiled for this machine.

`firmware/port/host/libboard.so` runs the same C that a board carries. It sees bytes through the
Port interface, its gates drive cells of the plant, and the plant's currents and temperatures come
back to it as counts of its converter.
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hil.devices.board import protocol
from hil.devices.tables import SimBoardTable
from hil.errors import ConfigError

N_CELLS = 12
SCAN_PERIOD_US = 4000
COUNTS_FULL = 1023
ROOM_B = 1024
PATIENT_S = 0.1
SUPPLY_V = 8.0  # of the cells, before anything tells it
PERFECT = SimBoardTable()
Relay = Literal["sound", "dead", "welded"]
RELAYS: tuple[Relay, ...] = ("sound", "dead", "welded")  # by their numbers in libboard.h, emulate.c


def places_of(name: str) -> tuple[Path, Path]:
    """Where a product of the firmware lies: in a wheel's package, or where make puts it."""
    package = Path(__file__).resolve().parents[2]
    return package / "firmware" / name, package.parent / "firmware" / "build" / name


def built(name: str) -> Path:
    """A host product of the firmware.

    Raises
    ------
    ConfigError
        It has not been built.
    """
    places = places_of(name)
    for place in places:
        if place.is_file():
            return place
    raise ConfigError(
        f"{places[1]}: the simulated board has not been built: make -C firmware host "
        "(needs a C compiler: apt-get install gcc make)"
    )


@cache
def library() -> ctypes.CDLL:
    """The firmware as a library; ConfigError where it has not been built."""
    loaded = ctypes.CDLL(str(built("libboard.so")))
    loaded.libboard_size.restype = ctypes.c_size_t
    loaded.libboard_send.restype = ctypes.c_size_t
    loaded.libboard_limits.restype = ctypes.POINTER(ctypes.c_uint8)
    loaded.libboard_limits.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
    loaded.libboard_reset.argtypes = [ctypes.c_void_p, ctypes.c_uint8]
    loaded.libboard_set_measures.argtypes = [ctypes.c_void_p, ctypes.c_int]
    loaded.libboard_set_scan.argtypes = [ctypes.c_void_p, ctypes.c_int]
    loaded.libboard_send.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    loaded.libboard_receive.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    loaded.libboard_gates.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    loaded.libboard_step.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p]
    byte = ctypes.c_uint8
    loaded.libboard_set_stuck.argtypes = [ctypes.c_void_p, byte, byte]
    loaded.libboard_set_wiring.argtypes = [ctypes.c_void_p, byte, byte]
    loaded.libboard_set_address.argtypes = [ctypes.c_void_p, byte, byte, byte]
    loaded.libboard_set_program.argtypes = [ctypes.c_void_p, ctypes.c_int]
    loaded.libboard_rest.argtypes = [ctypes.c_void_p]
    loaded.libboard_advance.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    loaded.libboard_set_supply.argtypes = [ctypes.c_void_p, ctypes.c_uint16]
    loaded.libboard_set_relays.argtypes = [ctypes.c_void_p, byte, byte]
    loaded.libboard_set_estop.argtypes = [ctypes.c_void_p, ctypes.c_int]
    loaded.libboard_set_analog.argtypes = [
        ctypes.c_void_p, ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint16, ctypes.c_uint16,
    ]  # fmt: skip
    loaded.libboard_init.argtypes = [
        ctypes.c_void_p, ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32,
    ]  # fmt: skip
    return loaded


class NativeBoard:
    """A simulated board and the port to it. It has been powered for long, with every gate off.

    Parameters
    ----------
    serial : its serial number
    limits : its stored table of limits
    sim : its imperfections
    measures : False: the build for an Arduino, without currents and temperatures
    """

    def __init__(
        self,
        serial: int,
        limits: dict[str, int],
        rng: np.random.Generator,
        sim: SimBoardTable = PERFECT,
        n_cells: int = N_CELLS,
        measures: bool = True,
    ) -> None:
        self._library = library()
        self._memory = ctypes.create_string_buffer(self._library.libboard_size())
        # An address is passed to C in a third of the time that its buffer takes.
        self._board = ctypes.addressof(self._memory)
        self._scale = Scale.of(limits)
        self._pins: dict[int, tuple[int, int, int]] = {}
        self._supply_counts = -1
        self._lost, self._noise_counts = sim.reply_lost_probability, sim.noise_counts
        self._rng = rng
        self._room = ctypes.create_string_buffer(ROOM_B)
        self._room_view = memoryview(self._room)
        self._room_at = ctypes.addressof(self._room)
        self.duty_per_255: NDArray[np.uint8] = np.zeros(protocol.CELLS_MAX, dtype=np.uint8)
        self._shares = np.zeros(protocol.CELLS_MAX)
        self._shares_at = self._shares.ctypes.data
        self._duty_at = self.duty_per_255.ctypes.data
        self._lived_us = 0
        self._library.libboard_init(self._board, n_cells, serial, SCAN_PERIOD_US, 0)
        if not measures:
            self._library.libboard_set_measures(self._board, 0)
        self.sense_supply(SUPPLY_V)
        self.write(protocol.encode("set_limits", 1, limits=limits))
        self._receive()
        self._library.libboard_rest(self._board)

    def write(self, data: bytes) -> None:
        self._library.libboard_receive(self._board, data, len(data))

    def read(self, timeout_s: float) -> bytes:
        """What the board has sent. An answer gets lost only to those who wait a tick or so."""
        data = self._receive()
        hasty = timeout_s < PATIENT_S
        return b"" if data and hasty and self._lost and self._rng.random() < self._lost else data

    def _receive(self) -> bytes:
        n = self._library.libboard_send(self._board, self._room_at, ROOM_B)
        return bytes(self._room_view[:n])

    def sent_s(self) -> float:
        """The time that has passed for the board: bytes take none."""
        return 1e-6 * self._lived_us

    def arrived_s(self) -> float:
        return self.sent_s()

    def close(self) -> None:
        """Does nothing: a board keeps its state when its port is closed."""

    def step(self, period_us: int) -> NDArray[np.float64]:
        """A period of the run passes: the duty of every gate in it, as it was commanded before."""
        self._library.libboard_step(self._board, period_us, self._shares_at)
        self._lived_us += period_us
        return self._shares

    def gates(self) -> NDArray[np.uint8]:
        """Duty of every gate, in 1/255."""
        self._library.libboard_gates(self._board, self._duty_at)
        return self.duty_per_255

    def advance(self, duration_us: int) -> None:
        """Let the board's time pass."""
        self._library.libboard_advance(self._board, duration_us)
        self._lived_us += duration_us

    def sense(self, cell: int, current_A: float, leakage_A: float, temperature_C: float) -> None:
        """What a gate's current is when on and when off, and the cell's temperature."""
        if self._noise_counts:
            current_A += 1e-3 * self._scale.current_mA / COUNTS_FULL * self._noise()
        pins = self._scale.counts_of(current_A, leakage_A, temperature_C)
        if pins != self._pins.get(cell):
            self._pins[cell] = pins
            self._library.libboard_set_analog(self._board, cell, *pins)

    def sense_supply(self, supply_V: float) -> None:
        """The voltage of the cells' supply, before both relays."""
        if self._noise_counts:
            supply_V += 1e-3 * self._scale.supply_mV / COUNTS_FULL * self._noise()
        counts = self._scale.supply_counts(supply_V)
        if counts != self._supply_counts:
            self._supply_counts = counts
            self._library.libboard_set_supply(self._board, counts)

    def _noise(self) -> float:
        """Noise of a reading [counts]."""
        return self._noise_counts * self._rng.standard_normal()

    def set_relays(self, k1: Relay = "sound", k2: Relay = "sound") -> None:
        """Spoil or repair relay K1, which the firmware closes, and K2, which the e-stop opens."""
        self._library.libboard_set_relays(self._board, RELAYS.index(k1), RELAYS.index(k2))

    def set_estop(self, is_open: bool) -> None:
        """Open or close the e-stop loop."""
        self._library.libboard_set_estop(self._board, is_open)

    def reset(self, cause: str = "watchdog") -> None:
        """Reset, by its watchdog unless another cause is named."""
        self._library.libboard_reset(self._board, protocol.RESETS[cause])

    def stop_clock(self) -> None:
        """Stop the processor; its watchdog resets it. Nothing but the reset is simulated here."""
        self.reset()

    def set_converter(self, works: bool) -> None:
        """Enable or stop the converter."""
        self._library.libboard_set_scan(self._board, works)

    def hold_low(self, gate: int | None) -> None:
        """Hold the pin of this gate low, whatever drives it; of no other."""
        for i in range(protocol.CELLS_MAX):
            self._library.libboard_set_stuck(self._board, i, int(i == gate))

    def switch_by(self, cell: int, gate: int) -> None:
        """Let this gate switch the current that this cell's input measures."""
        self._library.libboard_set_wiring(self._board, cell, gate)

    def clear_address(self, bits: int) -> None:
        """Leave these bits of both multiplexers' address at 0."""
        self._library.libboard_set_address(self._board, 3, bits, 0)

    def spoil_limits(self) -> None:
        """Flip a bit of the table that the core works with."""
        self._library.libboard_limits(self._board, ctypes.byref(ctypes.c_size_t()))[0] ^= 1

    def spoil_program(self) -> None:
        """Let the check of the program find it changed."""
        self._library.libboard_set_program(self._board, 0)


@dataclass(frozen=True)
class Scale:
    """The converter of a board: the full scale of its inputs."""

    current_mA: int
    supply_mV: int
    temperature_cC: int
    zero_cC: int

    @classmethod
    def of(cls, limits: dict[str, int]) -> "Scale":
        """From the board's table of limits."""
        names = "current_full_scale_mA", "supply_full_scale_mV", "temperature_full_scale_cC"
        return cls(*(limits[name] for name in (*names, "temperature_zero_cC")))

    def counts_of(
        self, current_A: float, leakage_A: float, temperature_C: float
    ) -> tuple[int, int, int]:
        """Counts of the current when on, when off, and of the temperature."""
        on, off = _counts(1e3 * current_A / self.current_mA), 0
        if leakage_A:
            off = _counts(1e3 * leakage_A / self.current_mA)
        return on, off, _counts((100.0 * temperature_C - self.zero_cC) / self.temperature_cC)

    def supply_counts(self, supply_V: float) -> int:
        """Counts of the voltage of the cells' supply."""
        return _counts(1e3 * supply_V / self.supply_mV)


def _counts(share: float) -> int:
    """A share of full scale as the converter gives it."""
    counts = round(share * COUNTS_FULL)
    return 0 if counts < 0 else COUNTS_FULL if counts > COUNTS_FULL else counts
