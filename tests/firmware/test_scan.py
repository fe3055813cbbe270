"""How long the chip leaves a cell unread under commands: the figures of firmware/README.md."""

import random

import pytest

from firmware.test_avr import EXCHANGES
from hil.devices.board import protocol
from hil.devices.board.scan import scan_s
from hil.mechanics.sma.limits import REACTION_S

CELLS = range(12)
SHORT = 1000  # counts: 1.95 A of 2 A


def _masks(cell):
    """Hold this cell on; all the others change at every command."""
    return lambda k: {"cells_on": 0xFFF * (k % 2) | 1 << cell}


def _duties(cell, duty):
    """Hold this cell at a duty; all the others change at every command."""
    return lambda k: {
        "duty_per_255": [duty if i == cell else 255 * (k % 2) for i in CELLS] + [0] * 4
    }


def _unread_us(chip, kind, fields, every_us, cell, phase_us):
    """Gate-on time from a short to the trip, of a board that trips at the first reading of it."""
    chip.set_good_pins()
    chip.limit(persistence_scans=1)
    chip.ready()
    chip.advance(phase_us)
    begin_us, on_us = chip.now_us(), 0.0
    for k in range(1, 400):
        if k == 20:
            chip.set_analog(cell, on=SHORT)
            on_us = chip.on_us()[cell]
        if chip.result(kind, valid_for_ms=100, **fields(k)) != "done":
            assert chip.faults() == ["current_high"]
            return chip.on_us()[cell] - on_us
        chip.advance(max(0, begin_us + k * every_us - chip.now_us()))
    raise AssertionError("the short was never found")


@pytest.mark.parametrize("every_ms", [1, 2, 4, 10])
@pytest.mark.parametrize("kind", ["set_mask", "broadcast"])
def test_no_cell_is_on_unread_for_longer_than_the_limits_of_wires_reckon_with(chip, kind, every_ms):
    fields = {"set_mask": _masks, "broadcast": lambda cell: EXCHANGES["broadcast"][1]}[kind]
    longest_us = max(
        _unread_us(chip, kind, fields(cell), 1000 * every_ms, cell, 377 * cell)
        for cell in CELLS[::2]
    )
    print(f"{kind} every {every_ms} ms: {longest_us} us")
    assert longest_us <= 1e6 * (scan_s(kind, 1e-3 * every_ms) + REACTION_S)
    assert longest_us > 0


@pytest.mark.parametrize("every_ms", [1, 2, 4])
def test_from_the_smallest_duty_on_a_cell_is_read_in_the_time_that_is_reckoned_with(chip, every_ms):
    """The smallest duty of one slot and the largest one, at other phases than above."""
    found_us = [
        _unread_us(chip, "set_duties", _duties(cell, duty), 1000 * every_ms, cell, 377 * cell + 131)
        for duty in (protocol.DUTY_MIN_PER_255, 254)
        for cell in CELLS[1::2]
    ]
    assert max(found_us) <= 1e6 * (scan_s("set_duties", 1e-3 * every_ms) + REACTION_S)


def _any_pattern(rng, kind, cell):
    """Hold this cell on, or at a duty; the others follow a pattern of up to eleven commands."""
    n, duty = rng.choice([1, 2, 3, 5, 11]), rng.choice([255, 254, 253, rng.randrange(16, 255)])
    if kind == "set_mask":
        masks = [rng.choice([0, 0xFFF, rng.randrange(1 << 12)]) | 1 << cell for _ in range(n)]
        return lambda k: {"cells_on": masks[k % n]}
    levels = [0, 255, 254, 128, protocol.DUTY_MIN_PER_255]
    rows = [[rng.choice(levels) for _ in CELLS] + [0] * 4 for _ in range(n)]
    for row in rows:
        row[cell] = duty
    return lambda k: {"duty_per_255": rows[k % n]}


WORST = (0xEA2, 0xFFF, 0xEF3, 0x20, 0xFFF, 0x20, 0x20, 0x28, 0x20, 0xEB3, 0x20)  # cell 5 stays on


def test_the_worst_pattern_that_was_met_leaves_its_cell_unread_no_longer(chip):
    """At phases to the scan, 80 us apart."""
    found_us = [
        _unread_us(chip, "set_mask", lambda k: {"cells_on": WORST[k % 11]}, 2000, 5, 80 * i)
        for i in range(50)
    ]
    print(f"{max(found_us)} us")
    assert 8500 < max(found_us) <= 1e6 * (scan_s("set_mask", 2e-3) + REACTION_S)


@pytest.mark.slow
@pytest.mark.parametrize("every_ms", [1, 2, 4, 10])
@pytest.mark.parametrize("kind", ["set_mask", "set_duties"])
def test_no_pattern_of_commands_that_is_tried_leaves_a_cell_unread_for_longer(chip, kind, every_ms):
    rng = random.Random(every_ms)
    longest_us = 0.0
    for _ in range(1000):
        cell, phase_us = rng.randrange(12), rng.randrange(20_000)
        fields = _any_pattern(rng, kind, cell)
        found_us = _unread_us(chip, kind, fields, 1000 * every_ms, cell, phase_us)
        longest_us = max(longest_us, found_us)
    print(f"{kind} every {every_ms} ms: {longest_us} us")
    assert longest_us <= 1e6 * (scan_s(kind, 1e-3 * every_ms) + REACTION_S)


@pytest.mark.parametrize("kind", EXCHANGES)
def test_the_fastest_commands_do_not_make_the_scan_stale(chip, kind):
    """Twelve cells that all change, for half a second; scan_age_max_ms is 20 by default."""
    chip.limit(scan_age_max_ms=20)
    chip.ready()
    for k in range(1, 500):
        start_us = chip.now_us()
        assert chip.result(kind, valid_for_ms=100, **EXCHANGES[kind][1](k)) == "done"
        chip.advance(max(0, 1000 - (chip.now_us() - start_us)))
    assert chip.faults() == []
