"""How long the chip's scan takes while a host commands it: the figures of firmware/README.md."""

import pytest

from firmware.test_avr import EXCHANGES
from hil.devices.board.scan import scan_s

STEP_US = 25
PORT_C, SELECT = 0x28, 0x0F
# With one command a millisecond.
MEASURED_US = {"set_mask": 7_100, "set_duties": 13_600, "broadcast": 14_300}
QUIET_US = 4_350


class _Scan:
    """The longest time from one turn of a cell to its next, by the multiplexers' address."""

    def __init__(self, chip):
        self._chip, self._pass = chip, chip.advance
        self._last, self._since_us = None, {}
        self.longest_us = 0
        chip.advance = self._advance

    def _advance(self, duration_us):
        for passed_us in range(0, duration_us, STEP_US):
            self._pass(min(STEP_US, duration_us - passed_us))
            address = self._chip.lib.emulate_read(self._chip.chip, PORT_C) & SELECT
            if address != self._last:
                self._last, now_us = address, self._chip.now_us()
                if address in self._since_us and address < self._chip.n_cells:
                    self.longest_us = max(self.longest_us, now_us - self._since_us[address])
                self._since_us[address] = now_us


def _longest_us(chip, kind, every_us, off_us, commands):
    """Of a scan while a host commands so often, its commands at most so far from their time."""
    chip.limit()
    chip.cool()
    chip.ready()
    scan = _Scan(chip)
    begin_us = chip.now_us()
    for k in range(1, commands + 1):
        assert chip.result(kind, valid_for_ms=100, **EXCHANGES[kind][1](k)) == "done"
        due_us = begin_us + k * every_us + k * 37 % (off_us + 1)
        chip.advance(max(0, due_us - chip.now_us()))
    return scan.longest_us


@pytest.mark.parametrize("off_us", [0, 100])
@pytest.mark.parametrize("every_ms", [1, 2, 4, 5, 10])
@pytest.mark.parametrize("kind", ["set_mask", "broadcast"])
def test_no_scan_takes_longer_than_what_the_limits_of_wires_reckon_with(
    chip, kind, every_ms, off_us
):
    longest_us = _longest_us(chip, kind, 1000 * every_ms, off_us, 100 + 400 // every_ms)
    print(f"{kind} every {every_ms} ms, {off_us} us off: {longest_us} us")
    assert longest_us <= 1e6 * scan_s(kind, 1e-3 * every_ms)
    assert longest_us >= 0.7e6 * scan_s(kind, 1e-3 * every_ms)


@pytest.mark.parametrize(("kind", "longest_us"), MEASURED_US.items())
def test_a_scan_under_a_command_a_millisecond_takes_what_the_page_says(chip, kind, longest_us):
    chip.limit()
    chip.cool()
    chip.ready()
    scan = _Scan(chip)
    for k in range(1, 400):
        start_us = chip.now_us()
        assert chip.result(kind, valid_for_ms=100, **EXCHANGES[kind][1](k)) == "done"
        chip.advance(max(0, 1000 - (chip.now_us() - start_us)))
    print(f"{kind}: {scan.longest_us} us")
    assert 0.8 * longest_us <= scan.longest_us <= longest_us


def test_a_scan_with_a_command_every_10_ms_takes_no_longer_than_declared(chip):
    chip.limit()
    chip.cool()
    chip.ready()
    scan = _Scan(chip)
    for k in range(1, 60):
        assert chip.result("set_mask", valid_for_ms=100, cells_on=0x555 * (1 + k % 2)) == "done"
        chip.advance(10_000)
    print(f"{scan.longest_us} us")
    assert 0 < scan.longest_us <= chip.command("identify")["scan_period_us"] == QUIET_US
