"""A short in a cell that is switched in any rhythm trips, on host and chip.

What counts is how long the gate has been on since the short: the bound of firmware/README.md.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.boards import NativeBoard

EVERY = range(12)
SHORT = 1000  # counts: 1.95 A of 2 A
READINGS = 2 * 3 * 12  # two readings with the gate on, 36 apart at most (core/scan.h)
HOST_US = READINGS * 250 + 1000  # scans of 3 ms, commands of 1 ms
CHIP_US = 25_000  # measured: 16 to 21 ms
AT_MOST_MS = 1000
PATTERNS = [(on, off) for on in range(1, 12) for off in range(1, 13 - on)]


def _on_us_until_trip(board, cell, masks):
    """Gate-on time of a shorted cell until the board trips, commanded once a millisecond."""
    board.set_analog(cell, on=SHORT)
    start_us, on_us, was_on = board.now_us(), 0, False
    for k in range(AT_MOST_MS):
        due_us = start_us + 1000 * k
        board.advance(max(0, due_us - board.now_us()))
        mask = masks(k)
        at_us = board.now_us()
        done = board.result("set_mask", valid_for_ms=100, cells_on=mask) == "done"
        on_us += was_on * min(1000, at_us - start_us)
        was_on = bool(mask >> cell & 1)
        if not done:
            assert board.faults() == ["current_high"]
            return on_us
    raise AssertionError("the short was never found")


def _start(board, phase_us):
    board.limit()
    board.ready()
    board.set()
    board.advance(phase_us)


def _pattern(cells, on, off):
    mask = sum(1 << cell for cell in cells)
    return lambda k: mask if k % (on + off) < on else 0


@pytest.mark.parametrize("cells", [(3,), EVERY], ids=["one", "all"])
def test_a_short_is_found_in_every_rhythm_of_up_to_12_ms(board, cells):
    for n, (on, off) in enumerate(PATTERNS):
        board.set_good_pins()
        _start(board, 131 * n)
        on_us = _on_us_until_trip(board, 3, _pattern(cells, on, off))
        assert on_us <= HOST_US, (on, off)


@pytest.mark.parametrize("cells", [(3,), EVERY], ids=["one", "all"])
def test_the_chip_finds_a_short_in_every_rhythm_of_up_to_12_ms(chip, cells):
    longest_us = 0
    for n, (on, off) in enumerate(PATTERNS):
        chip.set_good_pins()
        _start(chip, 131 * n)
        on_us = _on_us_until_trip(chip, 3, _pattern(cells, on, off))
        longest_us = max(on_us, longest_us)
        assert on_us <= CHIP_US, (on, off)
    print(f"on for {longest_us} us at most")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    cell=st.integers(0, 11),
    masks=st.lists(st.integers(0, 0xFFF), min_size=1, max_size=30),
    hold=st.integers(1, 5),
    phase_us=st.integers(0, 4000),
)
def test_a_short_is_found_however_cells_are_switched(libboard, cell, masks, hold, phase_us):
    board = NativeBoard(libboard)
    _start(board, phase_us)
    masks = [*masks, 1 << cell]  # in every pattern it is on for a while
    longest_us = _on_us_until_trip(board, cell, lambda k: masks[k // hold % len(masks)])
    assert longest_us <= HOST_US


@settings(max_examples=25, deadline=None, derandomize=True)
@given(number=st.integers(0, 10**6), share=st.sampled_from([0.1, 0.3, 0.5, 0.8]))
def test_the_chip_finds_a_short_however_cells_are_switched(chip_of_all, number, share):
    seed = Random(number)
    chip, cell = chip_of_all, seed.randrange(12)
    chip.set_good_pins()
    _start(chip, seed.randrange(4000))
    masks = [sum((seed.random() < share) << c for c in EVERY) for _ in range(997)]
    assert _on_us_until_trip(chip, cell, lambda k: masks[k % 997]) <= CHIP_US


def test_the_chip_finds_a_short_in_the_shortest_pulses_that_commands_can_make(chip):
    """Two commands in one burst, on and off: the gate is on for 0.6 to 0.9 ms."""
    for cells in ((3,), EVERY):
        chip.set_good_pins()
        _start(chip, 0)
        chip.set_analog(3, on=SHORT)
        before_us, mask = chip.on_us()[3], sum(1 << cell for cell in cells)
        for k in range(AT_MOST_MS):
            burst = b"".join(
                chip.frame("set_mask", valid_for_ms=100, cells_on=on) for on in (mask, 0)
            )
            chip.exchange_part(burst)
            chip.advance(2000 + 137 * k % 3000)
            chip.exchange_part(b"\0")  # the answers are read
            if chip.on_us()[3] - before_us > CHIP_US or not _is_armed(chip):
                break
        assert not _is_armed(chip)
        assert 0 < chip.on_us()[3] - before_us <= CHIP_US


def _is_armed(chip):
    return chip.state() == "armed"
