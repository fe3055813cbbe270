"""Bits that turn over in RAM and flash: what protects is noticed, all goes off, until a reset."""

import ctypes
import os
import re
import signal
import subprocess

import numpy as np
import pytest

from firmware.boards import RAM_START
from hil.devices.board import protocol

CELL = 3
NOTICED_US = 20_000  # on a line that is quiet
PROGRAM_MS = 1500  # with a command every 50 ms


class Protected(ctypes.Structure):
    """The head of struct cell, core/cell.h and heat.h."""

    _fields_ = [
        ("cA2ms", ctypes.c_uint32), ("not_cA2ms", ctypes.c_uint32), ("rest", ctypes.c_uint16),
        ("on_ticks", ctypes.c_uint16), ("counted_ticks", ctypes.c_uint16),
        ("full_ticks", ctypes.c_uint16), ("cooled_ticks", ctypes.c_uint16),
        ("not_cooled_ticks", ctypes.c_uint16), ("on_since_ms", ctypes.c_uint16),
        ("not_on_since_ms", ctypes.c_uint16),
    ]  # fmt: skip


KEPT = ("cA2ms", "not_cA2ms", "cooled_ticks", "not_cooled_ticks", "on_since_ms", "not_on_since_ms")
KEPT_BITS = [
    8 * getattr(Protected, name).offset + bit
    for name in KEPT
    for bit in range(8 * getattr(Protected, name).size)
]


VALUE_BITS = [  # a bit and the same one of its complement would cancel
    8 * getattr(Protected, name).offset + bit
    for name in KEPT[::2]
    for bit in range(8 * getattr(Protected, name).size)
]


def running(board):
    board.recover()
    board.arm()
    assert board.set(CELL) == "done"


def stays_lost(board):
    """All is off with the fault, whatever is commanded, until a reset."""
    board.advance(NOTICED_US)
    assert not any(board.gates())
    assert board.faults() == ["memory_corrupt"]
    assert board.result("clear_faults") == "condition_present"
    assert board.set(CELL) == "is_faulted"
    board.reset()
    assert board.faults() == []


def _flip(place, bits):
    for bit in bits:
        place[bit // 8] ^= 1 << bit % 8


def _cell(board):
    return board.lib.libboard_cell(board.memory, CELL, ctypes.byref(ctypes.c_size_t()))


def test_every_bit_of_a_cell_s_heat_and_on_time_has_a_complement(board):
    board.limit()
    for bit in KEPT_BITS:
        running(board)
        _flip(_cell(board), [bit])
        stays_lost(board)


def test_every_bit_of_a_cell_s_duty_has_a_complement(board):
    size = ctypes.c_size_t()
    board.limit()
    board.lib.libboard_duty(board.memory, CELL, ctypes.byref(size))
    assert size.value == 2
    for cell in (CELL, CELL + 1):  # on, and off
        for bit in range(8 * size.value):
            running(board)
            _flip(board.lib.libboard_duty(board.memory, cell, ctypes.byref(size)), [bit])
            stays_lost(board)


def test_two_bits_of_a_cell_s_heat_and_on_time_are_noticed(board):
    rng = np.random.default_rng(5)
    board.limit()
    for _ in range(150):
        running(board)
        _flip(_cell(board), rng.choice(VALUE_BITS, 2, replace=False).tolist())
        stays_lost(board)


def test_every_bit_of_the_board_s_complements_is_compared(board):
    size = ctypes.c_size_t()
    board.lib.libboard_complements(board.memory, ctypes.byref(size))
    board.limit()
    for bit in range(8 * size.value):
        running(board)
        _flip(board.lib.libboard_complements(board.memory, ctypes.byref(size)), [bit])
        stays_lost(board)


def test_a_program_that_has_changed_is_not_armed_and_switches_all_off(board):
    board.limit()
    running(board)
    board.lib.libboard_set_program(board.memory, 0)
    board.advance(1000)
    assert not any(board.gates())
    board.reset()
    assert board.faults() == ["memory_corrupt"]
    crc = board.command("identify")["limits_crc"]
    assert board.result("arm", limits_crc=crc, cells=1) == "is_faulted"
    board.lib.libboard_set_program(board.memory, 1)
    board.reset()
    assert board.faults() == []


# --- on the chip ---


def _symbols(chip):
    names = subprocess.run(["avr-nm", "-S", chip.image], capture_output=True, text=True).stdout
    board = re.search(r"^0080(\w{4}) (\w{8}) . the_board", names, re.MULTILINE)
    end = re.search(r"^(\w{8}) . __data_load_end", names, re.MULTILINE)
    return int(board[1], 16) - RAM_START, int(board[2], 16), int(end[1], 16)


def _heats(chip):
    """Where cells have heat: a word of 32 bits, and its complement behind it."""
    at, size, _ = _symbols(chip)
    ram = ctypes.create_string_buffer(size)
    chip.lib.emulate_ram(chip.chip, at, ram, size, 0)
    words = [int.from_bytes(ram.raw[i : i + 4], "little") for i in range(size - 7)]
    return [
        at + i
        for i in range(len(words) - 4)
        if words[i] > 1000 and words[i] ^ words[i + 4] == 0xFFFFFFFF
    ]


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("bits", [[16, 12], [17], [9, 8]])
def test_on_the_chip_bits_of_heat_that_are_cleared_are_noticed(chip, bits):
    chip.limit(heat_max_cA2ms=1_000_000, heat_time_constant_ms=600)
    chip.recover()
    chip.cool()
    chip.arm()
    assert chip.advance_fed(60_000, CELL)
    (at,) = _heats(chip)
    heat = ctypes.create_string_buffer(4)
    chip.lib.emulate_ram(chip.chip, at, heat, 4, 0)
    changed = int.from_bytes(heat.raw, "little") ^ sum(1 << bit for bit in bits)
    chip.lib.emulate_ram(chip.chip, at, changed.to_bytes(4, "little"), 4, 1)
    assert not chip.advance_fed(20_000, CELL)
    assert chip.faults() == ["memory_corrupt"]


def _noticed(chip):
    """Whether gates went off for good, without a trip of another kind."""
    for _ in range(PROGRAM_MS // 50):
        chip.try_command("set_mask", valid_for_ms=100, cells_on=1 << CELL)
        chip.advance(50_000)
    return not any(chip.gates())


def _is_found(chip, at, mask):
    """Whether this flip switches all off, and is found again at the next start."""
    chip.lib.emulate_flip_flash(chip.chip, at, mask)
    if not _noticed(chip):
        return False
    chip.reset()
    resets = chip.resets()
    for _ in range(10):  # what runs before the flip is found may reset the chip, which looks again
        chip.advance(100_000)
        answers = chip.try_command("identify")
        if answers and answers[0]["state"] == protocol.STATES["faulted"]:
            return True
    # or it is reset again and again before wires that count as hot may be armed
    return not answers or (chip.resets() > resets + 5 and not any(chip.gates()))


def _apart(function, *arguments):
    """Its answer, in a process of its own; None where a program that runs wild ends the emulator.

    It has no memory beyond the flash, and no instructions that the chip's sheet does not have.
    """
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if function(*arguments) else 1)
        except AssertionError as error:
            os._exit(2 if str(error).startswith("the chip has crashed") else 3)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: True, 1: False, 2: None, -signal.SIGSEGV: None}[ended]


def _flips(chip, n, seed):
    _, _, end = _symbols(chip)
    rng = np.random.default_rng(seed)
    chip.limit()
    chip.ready()
    assert chip.set(CELL) == "done"
    places = [(int(rng.integers(0, end)), 1 << int(rng.integers(8))) for _ in range(n)]
    found = {place: _apart(_is_found, chip, *place) for place in places}
    assert [hex(at) for (at, _), noticed in found.items() if noticed is False] == []
    assert list(found.values()).count(None) <= max(1, n // 5)  # 37 of 300: not decided


def test_on_the_chip_some_bits_of_the_flash_are_noticed(chip):
    _flips(chip, 4, 1)


@pytest.mark.slow
def test_on_the_chip_every_bit_of_a_large_sample_of_the_flash_is_noticed(chip):
    _flips(chip, 300, 2)
