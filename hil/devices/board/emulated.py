"""An emulated board: the image of the real chip under libsimavr, in lock step.

`firmware/build/board.elf` is the image of a real board, byte for byte. `libemulate.so` runs it: a
1 Mbaud line delays every byte, the on-time of the gates' pins is the plant's duty, and currents and
temperatures are levels on the converter's inputs. The library is GPLv3 through libsimavr: it is
compiled on the user's machine and never shipped.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import weakref
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil.devices.board import protocol
from hil.devices.board.native import (
    RELAYS,
    SUPPLY_V,
    Relay,
    Scale,
    built,
    places_of,
)
from hil.errors import ConfigError, DeviceError
from hil.platform import locks

PACKAGES = "gcc-avr avr-libc simavr libsimavr-dev libelf-dev"
SIMAVR = Path("/usr/include/simavr/sim_avr.h")
N_CELLS = 12
SUPPLY_ADDRESS = 15  # of the temperature multiplexer
SERIAL_AT = 64  # in its EEPROM; the limits lie at 0
CYCLES_PER_US = 16
ROOM_B = 4096
RAM_B, FLASH_B = 2048, 32768
POLL_US = 20
HUNG_US = 300_000  # longer than its watchdog waits
ROOM_C = 25.0
CLOSES_US, OPENS_US = 40_000, 155_000  # relay K1 with its pump, at its slowest (build-a-board.md)
# An eighth of the heat is left after 2.08 time constants; the board is slower than the law.
POWERED_TIME_CONSTANTS, POWERED_S = 2.2, 0.1

#: Emulated boards of this process by number, for `emulated://NUMBER`.
BOARDS: "weakref.WeakValueDictionary[int, EmulatedBoard]" = weakref.WeakValueDictionary()


def check_tools() -> None:
    """Check that the chip can be emulated here.

    Raises
    ------
    ConfigError
        It says which Debian packages are missing.
    """
    if _checkout() is None and not places_of("board.elf")[0].is_file():
        raise ConfigError(
            "--backend emulated: this hil was packed without the board's image: run it from a "
            "checkout, or build the wheel where avr-gcc is"
        )
    lacks_compiler = _checkout() is not None and shutil.which("avr-gcc") is None
    if lacks_compiler or not SIMAVR.exists() or shutil.which("cc") is None:
        raise ConfigError(
            "--backend emulated: the board's chip cannot be emulated here: "
            f"sudo apt-get install gcc make {PACKAGES}"
        )


def _checkout() -> Path | None:
    """The firmware's sources, where hil runs from a checkout."""
    folder = Path(__file__).resolve().parents[3] / "firmware"
    return folder if (folder / "Makefile").is_file() else None


def _compiled() -> tuple[Path, Path]:
    """The library, and the folder of the images, made or brought up to date."""
    sources = _checkout()
    if sources is not None:
        folder = sources / "build"
        folder.mkdir(exist_ok=True)
        with (folder / ".emulate.lock").open("w") as lock:
            locks.acquire(lock, wait=True)  # several processes may come here at once
            _do(["make", "--silent", "-C", str(sources), "avr", "emulate"])
        return folder / "libemulate.so", folder
    source = built("emulate.c")
    name = f"libemulate-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}.so"
    cached = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "hil" / name
    if not cached.is_file():
        cached.parent.mkdir(parents=True, exist_ok=True)
        part = cached.with_suffix(f".{os.getpid()}.part")
        _do(["cc", "-O2", "-fPIC", "-shared", "-isystem", str(SIMAVR.parent),
             "-o", str(part), str(source), "-lsimavr", "-lelf"])  # fmt: skip
        part.replace(cached)
    return cached, built("board.elf").parent


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ConfigError(f"--backend emulated: {' '.join(command[:2])} failed: {last}")


@cache
def _library() -> tuple[ctypes.CDLL, Path]:
    check_tools()
    path, images = _compiled()
    loaded = ctypes.CDLL(str(path))
    chip, u8, u16, u32 = ctypes.c_void_p, ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32
    for name, result, *arguments in [
        ("open", chip, ctypes.c_char_p),
        ("close", None, chip),
        ("advance", ctypes.c_int, chip, u32),
        ("receive", None, chip, ctypes.c_char_p, u32),
        ("send", u32, chip, ctypes.c_void_p),
        ("now_us", ctypes.c_uint64, chip),
        ("arrived_us", ctypes.c_uint64, chip),
        ("on_cycles", None, chip, ctypes.c_void_p),
        ("set_analog", None, chip, u8, u16, u16, u16),
        ("set_estop", None, chip, ctypes.c_int),
        ("set_relays", None, chip, u8, u8),
        ("set_relay_times", None, chip, u32, u32),
        ("set_stuck", None, chip, u8, u8),
        ("set_wiring", None, chip, u8, u8),
        ("hang", None, chip),
        ("set_address", None, chip, u8, u8, u8),
        ("memory", None, chip, ctypes.c_char_p, u32, ctypes.c_int),
        ("ram", None, chip, u32, ctypes.c_char_p, u32, ctypes.c_int),
        ("flash", None, chip, u32, ctypes.c_char_p, u32),
        ("flip_flash", None, chip, u32, u8),
        ("reset", None, chip, u8),
        ("set_converter", None, chip, ctypes.c_int),
        ("lost_bytes", u32, chip),
    ]:
        function = getattr(loaded, f"emulate_{name}")
        function.restype, function.argtypes = result, arguments
    return loaded, images


def _packed(limits: dict[str, int]) -> bytes:
    layout = protocol.layout("limits")
    assert layout is not None
    return layout.pack(limits)


class EmulatedBoard:
    """An emulated chip, its gates and sensors, and the far end of its serial line.

    Parameters
    ----------
    number : the board is reached at `emulated://NUMBER`
    limits : its stored table of limits
    build : of the firmware, as `devices.BOARD.build`
    serial : its serial number, by default `number`

    Raises
    ------
    ConfigError
        The chip cannot be emulated here.
    """

    def __init__(
        self, number: int, limits: dict[str, int], build: str = "board", serial: int | None = None
    ) -> None:
        self._library, images = _library()
        image = images / f"{build}.elf"
        opened = self._library.emulate_open(str(image).encode())
        if not opened:
            raise ConfigError(f"{image}: cannot be emulated: make -C firmware clean avr emulate")
        self._chip = ctypes.c_void_p(opened)
        weakref.finalize(self, self._library.emulate_close, self._chip)
        self._limits, self._scale = limits, Scale.of(limits)
        self._room = ctypes.create_string_buffer(ROOM_B)
        self._counters = np.zeros(N_CELLS, dtype=np.uint64)
        self._on_cycles = np.zeros(N_CELLS)
        self._arrived = b""
        self._ahead_us = 0
        self._runs = False
        self._library.emulate_set_relay_times(self._chip, CLOSES_US, OPENS_US)
        self.sense_supply(SUPPLY_V)
        self._store(number if serial is None else serial, limits)
        self._rest(1e-3 * limits["heat_time_constant_ms"])
        self.url = f"emulated://{number}"
        BOARDS[number] = self

    def _store(self, serial: int, limits: dict[str, int]) -> None:
        table = _packed(limits)
        table += protocol.limits_crc(limits).to_bytes(2, "little")
        memory = table.ljust(SERIAL_AT, b"\xff") + serial.to_bytes(4, "little")
        self._library.emulate_memory(self._chip, memory, len(memory), 1)

    def _rest(self, time_constant_s: float) -> None:
        """Time passes in a room until the board may be armed: it has not just been reset."""
        for cell in range(N_CELLS):
            self.sense(cell, 0.0, 0.0, ROOM_C)
        self._pass(round(1e6 * (POWERED_TIME_CONSTANTS * time_constant_s + POWERED_S)))

    # --- the line ---

    def write(self, data: bytes) -> None:
        """Bytes to the chip, which take 10 us each."""
        self._library.emulate_receive(self._chip, data, len(data))

    def read(self, n: int, timeout_s: float) -> bytes:
        """At most n bytes; the chip goes on by itself for as long as none has come."""
        left_us = round(1e6 * timeout_s)
        self._take()
        while not self._arrived and left_us > 0:
            self._pass(POLL_US)
            self._ahead_us += POLL_US
            left_us -= POLL_US
            self._take()
        data, self._arrived = self._arrived[:n], self._arrived[n:]
        return data

    @property
    def in_waiting(self) -> int:
        """Bytes that have arrived."""
        self._take()
        return len(self._arrived)

    def _take(self) -> None:
        n = self._library.emulate_send(self._chip, self._room)
        if n:
            self._arrived += self._room.raw[:n]

    def sent_s(self) -> float:
        """The chip's time."""
        return 1e-6 * float(self._library.emulate_now_us(self._chip))

    def arrived_s(self) -> float:
        """When the last byte taken from the line had arrived."""
        return 1e-6 * float(self._library.emulate_arrived_us(self._chip))

    @property
    def lost_bytes(self) -> int:
        """Bytes that the chip's receiver has lost."""
        return int(self._library.emulate_lost_bytes(self._chip))

    # --- the pins ---

    def advance(self, duration_us: int) -> None:
        """Time passes before the run."""
        self._pass(duration_us)

    def step(self, period_us: int) -> NDArray[np.float64]:
        """A period of the run passes: the share of it for which each gate has been high.

        Time that the chip has spent beyond the last period, while a late answer was waited for,
        is part of this one.
        """
        ahead_us = min(self._ahead_us, period_us) if self._runs else 0
        self._ahead_us = self._ahead_us - ahead_us if self._runs else 0
        if not self._runs:
            self._runs = True
            self._high_cycles()
        before = self._on_cycles.copy()
        self._pass(period_us - ahead_us)
        share = (self._high_cycles() - before) / (CYCLES_PER_US * period_us)
        return np.minimum(share, 1.0)

    def _high_cycles(self) -> NDArray[np.float64]:
        self._library.emulate_on_cycles(self._chip, self._counters.ctypes.data)
        self._on_cycles = self._counters.astype(np.float64)
        return self._on_cycles

    def _pass(self, duration_us: int) -> None:
        if duration_us > 0 and self._library.emulate_advance(self._chip, duration_us) != 0:
            raise DeviceError(f"{self.url}: the emulated chip has crashed")

    def sense(self, cell: int, current_A: float, leakage_A: float, temperature_C: float) -> None:
        """What a gate's current is when on and when off, and the cell's temperature."""
        counts = self._scale.counts_of(current_A, leakage_A, temperature_C)
        self._library.emulate_set_analog(self._chip, cell, *counts)

    def sense_supply(self, supply_V: float) -> None:
        """The voltage of the cells' supply, before both relays."""
        counts = self._scale.supply_counts(supply_V)
        self._library.emulate_set_analog(self._chip, SUPPLY_ADDRESS, 0, 0, counts)

    def set_relays(self, k1: Relay = "sound", k2: Relay = "sound") -> None:
        """Spoil or repair relay K1, which the firmware closes, and K2, which the e-stop opens."""
        self._library.emulate_set_relays(self._chip, RELAYS.index(k1), RELAYS.index(k2))

    def set_estop(self, is_open: bool) -> None:
        """Open or close the e-stop loop."""
        self._library.emulate_set_estop(self._chip, int(is_open))

    def reset(self, cause: str = "watchdog") -> None:
        """Reset, by its watchdog unless another cause is named."""
        self._library.emulate_reset(self._chip, protocol.RESETS[cause])

    def stop_clock(self) -> None:
        """Stop the program in one instruction, as without a clock; its watchdog resets it."""
        self._library.emulate_hang(self._chip)
        self._pass(HUNG_US)

    def set_converter(self, works: bool) -> None:
        """Enable or stop the converter."""
        self._library.emulate_set_converter(self._chip, int(works))

    def hold_low(self, gate: int | None) -> None:
        """Hold the pin of this gate low, whatever drives it; of no other."""
        for i in range(N_CELLS):
            self._library.emulate_set_stuck(self._chip, i, int(i == gate))

    def switch_by(self, cell: int, gate: int) -> None:
        """Let this gate switch the current that this cell's input measures."""
        self._library.emulate_set_wiring(self._chip, cell, gate)

    def clear_address(self, bits: int) -> None:
        """Leave these bits of both multiplexers' address at 0."""
        self._library.emulate_set_address(self._chip, 3, bits, 0)

    def spoil_limits(self) -> None:
        """Flip a bit of the table that the core works with, in its RAM."""
        ram = ctypes.create_string_buffer(RAM_B)
        self._library.emulate_ram(self._chip, 0, ram, RAM_B, 0)
        at = ram.raw.index(_packed(self._limits))  # what the stack still has of it lies above
        spoilt = bytes([ram.raw[at] ^ 1])
        self._library.emulate_ram(self._chip, at, spoilt, 1, 1)

    def spoil_program(self) -> None:
        """Flip a bit of its flash, in the text by which hosts recognise an image."""
        flash = ctypes.create_string_buffer(FLASH_B)
        self._library.emulate_flash(self._chip, 0, flash, FLASH_B)
        self._library.emulate_flip_flash(self._chip, flash.raw.index(b"HILBOARD"), 1)
