"""How long the chip leaves a cell unread under commands: the figures of firmware/README.md."""

import pytest

from firmware.test_avr import EXCHANGES
from hil.devices.board.scan import scan_s
from hil.mechanics.sma.limits import REACTION_S

CELLS = range(12)
SHORT = 1000  # counts: 1.95 A of 2 A


def _masks(cell):
    """Hold this cell on; all the others change at every command."""
    return lambda k: {"cells_on": 0xFFF * (k % 2) | 1 << cell}


def _unread_us(chip, kind, every_us, cell, phase_us):
    """Gate-on time from a short to the trip, of a board that trips at the first reading of it."""
    chip.set_good_pins()
    chip.limit(persistence_scans=1)
    chip.ready()
    chip.advance(phase_us)
    fields = _masks(cell) if kind == "set_mask" else EXCHANGES[kind][1]
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
    longest_us = max(_unread_us(chip, kind, 1000 * every_ms, cell, 377 * cell) for cell in CELLS)
    print(f"{kind} every {every_ms} ms: {longest_us} us")
    assert longest_us <= 1e6 * (scan_s(kind, 1e-3 * every_ms) + REACTION_S)
    assert longest_us > 0


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
