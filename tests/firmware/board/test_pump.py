"""What feeds the pump of the driver board: the scan's address line SEL0, on the emulated chip."""

from itertools import pairwise
from random import Random

import pytest

from firmware.boards import AvrBoard
from hil.devices.board import protocol
from lazily import Lazily

rules = Lazily("rules")

PORT_C, ADCSRA, STEP_US = 0x28, 0x7A, 50


class Watched(AvrBoard):
    """A chip whose address line is looked at every 50 us."""

    def __init__(self, build):
        self.changes_us, self.level = [], 0
        super().__init__(build)

    def advance(self, duration_us):
        end_us = self.now_us() + duration_us
        while self.now_us() < end_us:
            super().advance(min(STEP_US, end_us - self.now_us()))
            level = self.lib.emulate_read(self.chip, PORT_C) & 1
            if level != self.level:
                self.changes_us.append(self.now_us())
            self.level = level

    def longest_gap_us(self, since_us):
        """The longest time between two changes, up to now."""
        seen = [since_us, *(at for at in self.changes_us if at >= since_us), self.now_us()]
        return max(b - a for a, b in pairwise(seen))


@pytest.fixture
def watched(avr_build):
    board = Watched(avr_build)
    yield board
    board.close()


@pytest.mark.slow
def test_the_scan_feeds_the_pump_under_any_commands(watched):
    """Quiet, while it is armed, and while commands switch random cells or all, with duties."""
    start_us = watched.now_us()
    watched.ready()
    random = Random(26)
    for k in range(150):
        if k % 3 == 0:
            duties = [random.choice((0, 100, 255)) for _ in range(16)]
            watched.command("set_duties", valid_for_ms=100, duty_per_255=duties)
        else:
            watched.command("set_mask", valid_for_ms=100, cells_on=random.getrandbits(12))
    watched.advance(20_000)
    assert watched.longest_gap_us(start_us) < 1e6 * rules.LONGEST_GAP_S


@pytest.mark.slow
def test_nothing_feeds_the_pump_when_the_scan_stops_until_the_watchdog_ends_the_arming(watched):
    """The converter is switched off, so no reading ends and the address stays."""
    watched.ready()
    watched.set(0)
    watched.lib.emulate_write(watched.chip, ADCSRA, 0)
    start_us = watched.now_us()
    watched.advance(50_000)
    identity = watched.command("identify")
    assert protocol.RESETS["watchdog"] == identity["reset_cause"]
    assert watched.state() != "armed"
    assert watched.longest_gap_us(start_us) > 1e6 * rules.LONGEST_GAP_S
    before_reset = [at for at in watched.changes_us if start_us + 100 < at < start_us + 30_000]
    assert before_reset == []
