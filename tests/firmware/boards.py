"""The firmware's core behind a board's pins: bytes in and out, time on demand."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

from hil.devices.board import emulated, protocol

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
ROOM_COUNTS = 153  # 24.7 C
PLENTY = {"heat_max_cA2ms": 4_000_000_000, "heat_time_constant_ms": 1}  # of heat, gone at once
BOOT_US = 5_000
RAM_START = 0x100  # of the ATmega328P
ON_COUNTS = 256  # 500 mA of 2 A
SUPPLY_COUNTS = 409  # 8 V of 20 V
KNOWN_COUNTS = (1023, 839, 512)  # full scale, 4.096 V, half supply
SUPPLY_ADDRESS = 15  # of the temperature multiplexer
STUCK = {"no": 0, "low": 1, "high": 2}
RELAY = {"good": 0, "dead": 1, "welded": 2}
PORTS = {"B": 0x25, "C": 0x28, "D": 0x2B}  # addresses of the registers
GATE_BITS = [
    *(("B", i) for i in range(5)), ("C", 5), *(("D", i) for i in range(3, 8)), ("C", 4),
]  # fmt: skip


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
    """Leave the test out where the chip cannot be emulated (`tests/conftest.py`)."""
    emulated.check_tools()


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
        ("set_supply", None, pointer, u16),
        ("set_relays", None, pointer, u8, u8),
        ("rail_is_alive", ctypes.c_int, pointer),
        ("set_estop", None, pointer, ctypes.c_int),
        ("open_estop_at", None, pointer, u32),
        ("estop_is_open", ctypes.c_int, pointer),
        ("pulses", u32, pointer),
        ("rises", u32, pointer),
        ("set_scan", None, pointer, ctypes.c_int),
        ("set_measures", None, pointer, ctypes.c_int),
        ("gates", None, pointer, pointer),
        ("set_stuck", None, pointer, u8, u8),
        ("flip_gate", None, pointer, u8, ctypes.c_int),
        ("set_address", None, pointer, u8, u8, u8),
        ("set_reference", None, pointer, u8, u16),
        ("set_late", None, pointer, ctypes.c_int),
        ("set_memory", None, pointer, ctypes.c_int),
        ("watchdog_feeds", u32, pointer),
        ("limits", ctypes.POINTER(u8), pointer, ctypes.POINTER(size)),
        ("memory", ctypes.POINTER(u8), pointer, ctypes.POINTER(size)),
        ("cell", ctypes.POINTER(u8), pointer, u8, ctypes.POINTER(size)),
        ("duty", ctypes.POINTER(u8), pointer, u8, ctypes.POINTER(size)),
        ("complements", ctypes.POINTER(u8), pointer, ctypes.POINTER(size)),
        ("set_program", None, pointer, ctypes.c_int),
        ("draw", u16, u32, u32, u16),
    ]:
        function = getattr(lib, f"libboard_{name}")
        function.restype, function.argtypes = result, arguments
    return lib


class Host:
    """Whoever commands a board: counts its frames."""

    n_cells = 12

    def __init__(self, exchange=None, advance=None) -> None:
        self.decoder = protocol.Decoder()
        self.number = 0  # of the last command: 24 bits
        if exchange is not None:
            self.exchange = exchange
            self.advance = advance

    def frame(self, name: str, **fields) -> bytes:
        """The next command."""
        self.number = protocol.following(self.number)
        if name in protocol.SET_COMMANDS:
            fields = {"arming": self.number >> 8} | fields
        return protocol.encode(name, self.number & 255, **fields)

    def try_command(self, name: str, **fields) -> list[protocol.Message]:
        """One exchange: its answers."""
        answers = self.decoder.feed(self.exchange(self.frame(name, **fields)))
        for answer in answers:
            if answer.name == "armed" and answer["arming"]:
                self.number = answer["arming"] << 8 | answer.seq
        return answers

    def command(self, name: str, **fields) -> protocol.Message:
        """One exchange; there is exactly one answer and it repeats the number."""
        answers = self.try_command(name, **fields)
        assert [a.seq for a in answers] == [self.number & 255]
        return answers[0]

    def _forget(self) -> None:
        """After a reset the board counts from 0."""
        self.decoder, self.number = protocol.Decoder(), 0

    def result(self, name: str, **fields) -> str:
        return protocol.result_name(self.command(name, **fields)["result"])

    def faults(self) -> list[str]:
        return protocol.fault_names(self.command("read")["fault_bits"])

    def state(self) -> str:
        return protocol.state_name(self.command("read")["state"])

    def set(self, *cells: int, ms: int = 100) -> str:
        """Switches these cells on and the others off."""
        return self.result("set_mask", valid_for_ms=ms, cells_on=sum(1 << c for c in cells))

    def ask_to_arm(self, cells: int = 0) -> protocol.Message:
        """The answer to arming, all cells by default, once their supply is there."""
        cells = cells or (1 << self.n_cells) - 1
        crc = self.command("identify")["limits_crc"]
        for _ in range(200):
            answer = self.command("arm", limits_crc=crc, cells=cells)
            if protocol.result_name(answer["result"]) != "supply_waits":
                return answer
            self.advance(2_000)
        raise AssertionError("the supply does not come")

    def arm(self) -> None:
        assert protocol.result_name(self.ask_to_arm()["result"]) == "done"

    def take_over(self) -> None:
        """What a host does at its start, as if no other were there."""
        self.number = self.command("identify")["seq_taken"]
        self.command("disarm")
        self.command("clear_faults")
        self.arm()


class Bench(Host):
    """What a test does with a board, whatever carries its pins."""

    reaction_us = 0  # from a pin or a byte to the core, at most
    exchange_us = 0  # that a command and its answer take, at most
    scan_us = 0  # in which every cell is looked at once, while whole duties leave gates alone
    whole_ms = True  # the board's milliseconds begin with those of now_us
    every = 1  # a sweep far away from a limit takes every n-th value
    phases_ms = (0, 1, 2)  # of a command in the scan

    def set_good_pins(self) -> None:
        self.set_estop(False)
        self.set_scan(True)
        self.set_address(3, 0, 0)
        self.set_supply(SUPPLY_COUNTS)
        self.set_relays()
        for reference, counts in enumerate(KNOWN_COUNTS):
            self.set_reference(reference, counts)
        for cell in range(self.n_cells):
            self.set_analog(cell)
            self.set_stuck(cell, "no")

    def recover(self) -> None:
        """Good pins, no faults, disarmed."""
        self.set_good_pins()
        self.advance(40_000)
        self.command("disarm")
        self.number = self.command("identify")["seq_taken"]
        assert self.result("clear_faults") == "done"

    def arm_cells(self, cells: int = 0) -> protocol.Message:
        """The answer to arming, all cells by default, once they have cooled."""
        end_us = self.now_us() + 300_000_000
        while self.now_us() < end_us:
            answer = self.ask_to_arm(cells)
            if protocol.result_name(answer["result"]) != "cooling":
                return answer
            self.advance(20_000)
        raise AssertionError("the cells do not cool")

    def power(self) -> None:
        """K1 has closed for an arming that has not come yet: the next one is not told to wait."""
        while self.command("read")["rail_per_255"] > 0:
            self.advance(2_000)
        crc = self.command("identify")["limits_crc"]
        assert self.result("arm", limits_crc=crc, cells=(1 << self.n_cells) - 1) == "supply_waits"
        while self.command("read")["rail_per_255"] == 0:
            self.advance(2_000)

    def arm(self) -> None:
        assert protocol.result_name(self.arm_cells()["result"]) == "done"

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
        table = protocol.default_limits() | PLENTY | limits
        assert self.result("set_limits", limits=table) == "done"

    def sweep(self, *limits: int) -> list[int]:
        """Counts of the converter, each one near limits."""
        near = {counts for limit in limits for counts in range(limit - 5, limit + 6)}
        return [n for n in range(1024) if n in near or n % self.every == 0]

    def sweep_ms(self, end: int) -> range:
        """Times that a command can be told to hold, from the first that an exchange fits into."""
        first = 1 if self.exchange_us == 0 else 3
        return range(first, end, 1 if self.every == 1 else 7)

    def sensed(self, duration_us: int, **command) -> list[tuple[int, int, int, int]]:
        """Cell, counts of current and supply, and age in ms of every reading of resistance."""
        found = []
        for _ in range(duration_us // 1000):
            self.advance(max(0, 1000 - self.exchange_us))
            answer = self.command(**{"name": "set_mask", "valid_for_ms": 100} | command)
            if answer["first_cell"] >= protocol.SENSED:
                cell = answer["first_cell"] - protocol.SENSED
                found.append((cell, *answer["current_mA"], answer["temperature_cC"][0]))
        return found

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
        return ctypes.string_at(self._answers, n)

    exchange_part = exchange  # bytes that are no whole frame

    def advance(self, duration_us: int) -> None:
        self.lib.libboard_advance(self.memory, duration_us)

    def now_us(self) -> int:
        return self.lib.libboard_now_us(self.memory)

    def set_analog(self, cell, on=ON_COUNTS, off=0, temperature=ROOM_COUNTS) -> None:
        self.lib.libboard_set_analog(self.memory, cell, on, off, temperature)

    def set_supply(self, counts: int) -> None:
        self.lib.libboard_set_supply(self.memory, counts)

    def set_relays(self, k1: str = "good", k2: str = "good") -> None:
        self.lib.libboard_set_relays(self.memory, RELAY[k1], RELAY[k2])

    def rail_is_alive(self) -> bool:
        return self.lib.libboard_rail_is_alive(self.memory) != 0

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

    def without_sensors(self) -> None:
        """Power it on with the build for an Arduino, which measures nothing."""
        self.lib.libboard_set_measures(self.memory, 0)
        self._forget()

    def set_scan(self, runs: bool) -> None:
        self.lib.libboard_set_scan(self.memory, runs)

    def gates(self) -> list[int]:
        self.lib.libboard_gates(self.memory, self._gates)
        return list(self._gates)[: self.n_cells]

    def set_stuck(self, gate: int, how: str) -> None:
        """A gate's pin is `low` or `high` whatever drives it; `no`: it is not."""
        self.lib.libboard_set_stuck(self.memory, gate, STUCK[how])

    def flip_gate(self, gate: int, in_table: bool = False) -> None:
        """A bit of a gate's register turns over by itself."""
        self.lib.libboard_flip_gate(self.memory, gate, in_table)

    def set_late(self, late: bool) -> None:
        """Samples show a gate as it was a scan ago."""
        self.lib.libboard_set_late(self.memory, late)

    def set_address(self, multiplexers: int, low: int, high: int) -> None:
        """Bits of the address that are stuck, for currents (1), temperatures (2) or both (3)."""
        self.lib.libboard_set_address(self.memory, multiplexers, low, high)

    def set_reference(self, reference: int, counts: int) -> None:
        self.lib.libboard_set_reference(self.memory, reference, counts)

    def reset(self, cause: str = "external") -> None:
        self.lib.libboard_reset(self.memory, protocol.RESETS[cause])
        self._forget()

    def _stored(self):
        size = ctypes.c_size_t()
        bytes_ = self.lib.libboard_memory(self.memory, ctypes.byref(size))
        return (ctypes.c_uint8 * size.value).from_address(ctypes.addressof(bytes_.contents))

    def stored(self) -> bytes:
        """The memory of limits."""
        return bytes(self._stored())

    def store(self, memory: bytes) -> None:
        self._stored()[:] = memory

    def set_memory(self, works: bool) -> None:
        self.lib.libboard_set_memory(self.memory, works)

    def _limits(self):
        size = ctypes.c_size_t()
        limits = self.lib.libboard_limits(self.memory, ctypes.byref(size))
        self._size = size.value
        return limits

    def limits_size(self) -> int:
        """Bytes of the table that the core works with; some may be padding."""
        self._limits()
        return self._size

    def flip_limit(self, byte: int, bit: int) -> None:
        """Flips a bit of the table of limits that the core works with."""
        self._limits()[byte] ^= 1 << bit


class AvrBoard(Bench):
    """The ATmega328P image under libsimavr: bytes take their time on a 1 Mbaud line."""

    reaction_us = 300  # a cell's turn and the work on it
    exchange_us = 1000
    scan_us = 3250
    whole_ms = False
    every = 128
    phases_ms = (0,)
    patience_us = 200_000  # storing limits: 40 bytes of 3.4 ms

    def __init__(self, build: Path, image: str = "board.elf"):
        super().__init__()
        self.image = build / image
        self.lib = ctypes.CDLL(str(build / "libemulate.so"))
        self.lib.emulate_open.restype = ctypes.c_void_p
        self.lib.emulate_now_us.restype = ctypes.c_uint64
        self.lib.emulate_last_rise.restype = ctypes.c_int64
        opened = self.lib.emulate_open(str(self.image).encode())
        assert opened, "the image cannot be emulated"
        self.chip = ctypes.c_void_p(opened)
        self._answers = ctypes.create_string_buffer(4096)
        self._limits_at = None
        self.set_good_pins()
        self.advance(BOOT_US)

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

    def exchange_part(self, data: bytes) -> None:
        """Bytes that are no whole frame: nobody waits for an answer."""
        self.lib.emulate_receive(self.chip, data, len(data))
        self.advance(10 * len(data) + 1000)
        self.lib.emulate_send(self.chip, self._answers)

    def advance(self, duration_us: int) -> None:
        if duration_us > 0:
            assert self.lib.emulate_advance(self.chip, duration_us) == 0, "the chip has crashed"

    def now_us(self) -> int:
        return self.lib.emulate_now_us(self.chip)

    def set_analog(self, cell, on=ON_COUNTS, off=0, temperature=ROOM_COUNTS) -> None:
        self.lib.emulate_set_analog(self.chip, cell, on, off, temperature)

    def set_supply(self, counts: int) -> None:
        self.lib.emulate_set_analog(self.chip, SUPPLY_ADDRESS, 0, 0, counts)

    def set_relays(self, k1: str = "good", k2: str = "good") -> None:
        self.lib.emulate_set_relays(self.chip, RELAY[k1], RELAY[k2])

    def set_relay_times(self, closes_us: int, opens_us: int) -> None:
        """Of K1, with its pump."""
        self.lib.emulate_set_relay_times(self.chip, closes_us, opens_us)

    def rail_is_alive(self) -> bool:
        return self.lib.emulate_rail_is_alive(self.chip) != 0

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

    def set_stuck(self, gate: int, how: str) -> None:
        self.lib.emulate_set_stuck(self.chip, gate, STUCK[how])

    def flip_gate(self, gate: int) -> None:
        port, bit = GATE_BITS[gate]
        now = self.lib.emulate_read(self.chip, PORTS[port])
        self.lib.emulate_write(self.chip, PORTS[port], now ^ 1 << bit)

    def set_address(self, multiplexers: int, low: int, high: int) -> None:
        self.lib.emulate_set_address(self.chip, multiplexers, low, high)

    def set_reference(self, reference: int, counts: int) -> None:
        self.lib.emulate_set_analog(self.chip, 12 + reference, counts, counts, counts)

    def on_us(self) -> list[float]:
        """How long each gate has been high."""
        cycles = (ctypes.c_uint64 * 12)()
        self.lib.emulate_on_cycles(self.chip, cycles)
        return [n / 16 for n in cycles]

    def reset(self, cause: str = "external") -> None:
        self.lib.emulate_reset(self.chip, protocol.RESETS[cause])
        self._forget()
        self.advance(BOOT_US)

    def set_fuses(self, low: int, high: int, extended: int) -> None:
        """They hold from the next reset on."""
        self.lib.emulate_set_fuses(self.chip, low, high, extended)

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
        memory = ctypes.create_string_buffer(protocol.layout("limits").size + 2)
        self.lib.emulate_memory(self.chip, memory, len(memory), 0)
        return memory.raw

    def store(self, memory: bytes) -> None:
        self.lib.emulate_memory(self.chip, memory, len(memory), 1)

    def _find(self, wanted: bytes) -> int:
        """Where these bytes lie in the core's part of the RAM: in one place."""
        names = subprocess.run(["avr-nm", "-S", self.image], capture_output=True, text=True).stdout
        found = re.search(r"^0080(\w{4}) (\w{8}) . the_board", names, re.MULTILINE)
        at, size = int(found[1], 16) - RAM_START, int(found[2], 16)
        ram = ctypes.create_string_buffer(size)
        self.lib.emulate_ram(self.chip, at, ram, size, 0)
        assert ram.raw.count(wanted) == 1
        return at + ram.raw.index(wanted)

    def limits_size(self) -> int:
        """Bytes of the table that the core works with."""
        return protocol.layout("limits").size

    def flip_limit(self, byte: int, bit: int) -> None:
        """Flips a bit of the table of limits that the core works with."""
        if self._limits_at is None:
            table = protocol.layout("limits").pack(self.command("identify")["limits"])
            self._limits_at = self._find(table)
        one = ctypes.create_string_buffer(1)
        self.lib.emulate_ram(self.chip, self._limits_at + byte, one, 1, 0)
        one[0] = one.raw[0] ^ 1 << bit
        self.lib.emulate_ram(self.chip, self._limits_at + byte, one, 1, 1)

    def flood(self, frame: bytes, duration_us: int) -> None:
        """The line never rests: this again and again."""
        chunk = frame * (2000 // len(frame) + 1)
        for _ in range(duration_us // 1000):
            if self.lib.emulate_receive_room(self.chip) >= len(chunk):
                self.lib.emulate_receive(self.chip, chunk, len(chunk))
            self.advance(1000)
            self.lib.emulate_send(self.chip, self._answers)
