"""The firmware's core behind a board's pins: bytes in and out, time on demand."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

from hil import wire

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
ROOM_COUNTS = 153  # 24.7 C
ON_COUNTS = 256  # 500 mA of 2 A


def make(build: Path, *targets: str, source: Path = FIRMWARE) -> Path:
    """Builds targets of the firmware into a folder; a failure says what is missing."""
    for tool in ("make", "cc"):
        assert shutil.which(tool), f"{tool} is missing: apt-get install -y make gcc libc6-dev"
    done = subprocess.run(
        ["make", "-C", source, f"BUILD={build}", *targets],
        capture_output=True,
        text=True,
        env=os.environ | {"MAKEFLAGS": ""},
    )
    assert done.returncode == 0, done.stderr
    return build


def need_avr() -> None:
    """What it takes to compile the image and to emulate the chip; scripts/emulation installs it."""
    packages = "gcc-avr avr-libc simavr libsimavr-dev libelf-dev"
    there = shutil.which("avr-gcc") and Path("/usr/include/simavr/sim_avr.h").exists()
    assert there, f"the chip cannot be emulated: apt-get install -y {packages}"


def load(path: Path) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(path))
    u8, u16, u32, pointer = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_void_p
    size = ctypes.c_size_t
    for name, result, *arguments in [
        ("size", size),
        ("init", ctypes.c_int, pointer, u8, u32, u32, u32),
        ("reset", None, pointer, u8),
        ("receive", None, pointer, ctypes.c_char_p, size),
        ("send", size, pointer, pointer, size),
        ("advance", None, pointer, u32),
        ("now_us", u32, pointer),
        ("set_analog", None, pointer, u8, u16, u16, u16),
        ("set_estop", None, pointer, ctypes.c_int),
        ("open_estop_at", None, pointer, u32),
        ("estop_is_open", ctypes.c_int, pointer),
        ("pulses", u32, pointer),
        ("rises", u32, pointer),
        ("set_scan", None, pointer, ctypes.c_int),
        ("gates", None, pointer, pointer),
        ("watchdog_feeds", u32, pointer),
        ("memory", ctypes.POINTER(u8), pointer, ctypes.POINTER(size)),
        ("draw", u16, u32, u32, u16),
    ]:
        function = getattr(lib, f"libboard_{name}")
        function.restype, function.argtypes = result, arguments
    return lib


class Bench:
    """What a test does with a board, whatever carries its pins."""

    n_cells = 12
    reaction_us = 0  # from a pin or a byte to the core, at most
    exchange_us = 0  # that a command and its answer take, at most
    scan_us = 0  # in which every cell is looked at once, while whole duties leave gates alone
    whole_ms = True  # the board's milliseconds begin with those of now_us
    every = 1  # a sweep far away from a limit takes every n-th value
    phases_ms = (0, 1, 2)  # of a command in the scan

    def __init__(self) -> None:
        self.decoder = wire.Decoder()
        self.seq = 0

    def try_command(self, name: str, **fields) -> list[wire.Message]:
        """One exchange: its answers."""
        self.seq = (self.seq + 1) % 256
        return self.decoder.feed(self.exchange(wire.encode(name, self.seq, **fields)))

    def command(self, name: str, **fields) -> wire.Message:
        """One exchange; there is exactly one answer and it repeats the number."""
        answers = self.try_command(name, **fields)
        assert [a.seq for a in answers] == [self.seq]
        return answers[0]

    def result(self, name: str, **fields) -> str:
        return wire.result_name(self.command(name, **fields)["result"])

    def faults(self) -> list[str]:
        return wire.fault_names(self.command("read")["fault_bits"])

    def state(self) -> str:
        return wire.state_name(self.command("read")["state"])

    def set(self, *cells: int, ms: int = 100) -> str:
        """Switches these cells on and the others off."""
        return self.result("set_mask", valid_for_ms=ms, cells_on=sum(1 << c for c in cells))

    def set_good_pins(self) -> None:
        self.set_estop(False)
        self.set_scan(True)
        for cell in range(self.n_cells):
            self.set_analog(cell)

    def recover(self) -> None:
        """Good pins, no faults, disarmed."""
        self.set_good_pins()
        self.advance(40_000)
        self.command("disarm")
        assert self.result("clear_faults") == "done"

    def arm_cells(self, cells: int = 0) -> wire.Message:
        """The answer to arming, all cells by default, once they have cooled."""
        cells = cells or (1 << self.n_cells) - 1
        crc = self.command("identify")["limits_crc"]
        end_us = self.now_us() + 300_000_000
        while self.now_us() < end_us:
            answer = self.command("arm", limits_crc=crc, cells=cells)
            if wire.result_name(answer["result"]) != "cooling":
                return answer
            self.advance(20_000)
        raise AssertionError("the cells do not cool")

    def arm(self) -> None:
        assert wire.result_name(self.arm_cells()["result"]) == "done"

    def cool(self) -> None:
        """Nothing is left of the heat of any cell."""
        while any(self.command("read")["heat_per_255"]):
            self.advance(100_000)

    def ready(self) -> None:
        self.recover()
        self.arm()

    def limit(self, **limits: int) -> None:
        """A table of limits that differs from the default only in these, and in its heat.

        Of heat there is plenty, and it is gone at once: a test that means it says so.
        """
        self.command("disarm")
        plenty = {"heat_max_cA2ms": 4_000_000_000, "heat_time_constant_ms": 1}
        table = wire.default_limits() | plenty | limits
        assert self.result("set_limits", limits=table) == "done"

    def sweep(self, *limits: int) -> list[int]:
        """Counts of the converter, each one near limits."""
        near = {counts for limit in limits for counts in range(limit - 5, limit + 6)}
        return [n for n in range(1024) if n in near or n % self.every == 0]

    def sweep_ms(self, end: int) -> range:
        """Times that a command can be told to hold, from the first that an exchange fits into."""
        first = 1 if self.exchange_us == 0 else 3
        return range(first, end, 1 if self.every == 1 else 7)

    def advance_fed(self, duration_us: int, *cells: int) -> bool:
        """Time passes with a command a millisecond; false as soon as the board has tripped."""
        for _ in range(duration_us // 1000):
            self.advance(1000)
            if self.set(*cells) != "done":
                return False
        return True


class NativeBoard(Bench):
    """libboard.so. Bytes take no time; the main loop turns every 50 us."""

    reaction_us = 50

    def __init__(self, lib: ctypes.CDLL, n_cells=12, serial=7, scan_period_us=3000, now_us=0):
        super().__init__()
        self.lib, self.n_cells, self.scan_us = lib, n_cells, scan_period_us
        self.memory = ctypes.create_string_buffer(lib.libboard_size())
        assert lib.libboard_init(self.memory, n_cells, serial, scan_period_us, now_us) == 0
        self._answers = ctypes.create_string_buffer(4096)
        self._gates = (ctypes.c_uint8 * 16)()
        self.set_good_pins()

    def exchange(self, data: bytes) -> bytes:
        self.lib.libboard_receive(self.memory, data, len(data))
        n = self.lib.libboard_send(self.memory, self._answers, 4096)
        return self._answers.raw[:n]

    def advance(self, duration_us: int) -> None:
        self.lib.libboard_advance(self.memory, duration_us)

    def now_us(self) -> int:
        return self.lib.libboard_now_us(self.memory)

    def set_analog(self, cell, on=ON_COUNTS, off=0, temperature=ROOM_COUNTS) -> None:
        self.lib.libboard_set_analog(self.memory, cell, on, off, temperature)

    def set_estop(self, is_open: bool) -> None:
        self.lib.libboard_set_estop(self.memory, is_open)

    def open_estop_at(self, moment: int) -> None:
        """The loop opens at a moment at which the core looks at it or switches; 0: it does not."""
        self.lib.libboard_open_estop_at(self.memory, moment)

    def is_open(self) -> bool:
        return self.lib.libboard_estop_is_open(self.memory) != 0

    def pulses(self) -> int:
        """Pulses that the core has asked for since the e-stop opened."""
        return self.lib.libboard_pulses(self.memory)

    def rises(self) -> int:
        """Rising edges of gates since the e-stop opened."""
        return self.lib.libboard_rises(self.memory)

    def set_scan(self, runs: bool) -> None:
        self.lib.libboard_set_scan(self.memory, runs)

    def gates(self) -> list[int]:
        self.lib.libboard_gates(self.memory, self._gates)
        return list(self._gates)[: self.n_cells]

    def reset(self, cause: str = "external") -> None:
        self.lib.libboard_reset(self.memory, wire.RESETS[cause])
        self.decoder = wire.Decoder()

    def _stored(self):
        size = ctypes.c_size_t()
        bytes_ = self.lib.libboard_memory(self.memory, ctypes.byref(size))
        return (ctypes.c_uint8 * size.value).from_address(ctypes.addressof(bytes_.contents))

    def stored(self) -> bytes:
        """The memory of limits."""
        return bytes(self._stored())

    def store(self, memory: bytes) -> None:
        self._stored()[:] = memory


class AvrBoard(Bench):
    """The ATmega328P image under libsimavr: bytes take their time on a 1 Mbaud line."""

    reaction_us = 300  # a cell's turn and the work on it
    exchange_us = 1000
    scan_us = 3000
    whole_ms = False
    every = 128
    phases_ms = (0,)
    patience_us = 200_000  # storing limits: 40 bytes of 3.4 ms

    def __init__(self, build: Path):
        super().__init__()
        self.image = build / "board.elf"
        self.lib = ctypes.CDLL(str(build / "libemulate.so"))
        self.lib.emulate_open.restype = ctypes.c_void_p
        self.lib.emulate_now_us.restype = ctypes.c_uint64
        self.lib.emulate_last_rise.restype = ctypes.c_int64
        opened = self.lib.emulate_open(str(self.image).encode())
        assert opened, "the image cannot be emulated"
        self.chip = ctypes.c_void_p(opened)
        self._answers = ctypes.create_string_buffer(4096)
        self._estop = False
        self.set_good_pins()
        self.advance(5000)

    def close(self) -> None:
        self.lib.emulate_close(self.chip)

    def exchange(self, data: bytes) -> bytes:
        self.lib.emulate_receive(self.chip, data, len(data))
        answer = b""
        end_us = self.now_us() + self.patience_us
        while self.now_us() < end_us:
            self.advance(50)
            n = self.lib.emulate_send(self.chip, self._answers)
            answer += self._answers.raw[:n]
            if answer.endswith(b"\0"):
                break
        return answer

    def advance(self, duration_us: int) -> None:
        if duration_us > 0:
            assert self.lib.emulate_advance(self.chip, duration_us) == 0, "the chip has crashed"

    def now_us(self) -> int:
        return self.lib.emulate_now_us(self.chip)

    def set_analog(self, cell, on=ON_COUNTS, off=0, temperature=ROOM_COUNTS) -> None:
        self.lib.emulate_set_analog(self.chip, cell, on, off, temperature)

    def set_estop(self, is_open: bool) -> None:
        self.lib.emulate_set_estop(self.chip, int(is_open))

    def open_estop_in(self, cycles: int, for_cycles: int = 0) -> None:
        """The loop opens so many cycles from now, and closes again after some; 0: it stays open."""
        self.lib.emulate_open_estop_in(self.chip, cycles, for_cycles)

    def last_rise_us(self) -> float:
        """From the e-stop's opening to the last rising edge of a gate; negative: it was before."""
        return self.lib.emulate_last_rise(self.chip) / 16

    def set_scan(self, runs: bool) -> None:
        self.lib.emulate_set_converter(self.chip, int(runs))

    def gates(self) -> list[int]:
        high = self.lib.emulate_gates(self.chip)
        return [255 * (high >> cell & 1) for cell in range(12)]

    def on_us(self) -> list[float]:
        """How long each gate has been high."""
        cycles = (ctypes.c_uint64 * 12)()
        self.lib.emulate_on_cycles(self.chip, cycles)
        return [n / 16 for n in cycles]

    def reset(self, cause: str = "external") -> None:
        self.lib.emulate_reset(self.chip, wire.RESETS[cause])
        self.decoder = wire.Decoder()
        self.advance(5000)

    def resets(self) -> int:
        return self.lib.emulate_resets(self.chip)

    def untouched_ram(self) -> int:
        return self.lib.emulate_untouched_ram(self.chip)

    def lost_bytes(self) -> int:
        return self.lib.emulate_lost_bytes(self.chip)

    def hang(self) -> None:
        """The main loop turns no more."""
        self.lib.emulate_hang(self.chip)

    def stored(self) -> bytes:
        memory = ctypes.create_string_buffer(wire.layout("limits").size + 2)
        self.lib.emulate_memory(self.chip, memory, len(memory), 0)
        return memory.raw

    def store(self, memory: bytes) -> None:
        self.lib.emulate_memory(self.chip, memory, len(memory), 1)
