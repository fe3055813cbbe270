"""Resistance: current and supply at the same time, of cells on, off and modulated."""

from itertools import pairwise

import pytest

from firmware.boards import ON_COUNTS, SUPPLY_COUNTS
from hil.devices.board import protocol

EVERY_MS = 24
PULSE_MAX_US = 300
PULSE_MIN_US = 120  # settling and a conversion
ESTOP_US = 50  # until its interrupt has switched all gates off
DUTIES_MIN = {"name": "set_duties", "duty_per_255": [protocol.DUTY_MIN_PER_255] * 12 + [0] * 4}


@pytest.fixture
def sensing(any_board):
    """An armed board that measures every cell each EVERY_MS."""
    any_board.limit(sense_every_ms=EVERY_MS)
    any_board.ready()
    return any_board


def rest(board, duration_us: int, **command) -> None:
    board.sensed(duration_us, **(command or {"cells_on": 0}))


def pulsed_us(board, duration_us: int, **command) -> list[float]:
    """Time for which each gate of the chip is high meanwhile."""
    before = board.on_us()
    rest(board, duration_us, **command)
    return [after - start for start, after in zip(before, board.on_us(), strict=True)]


def test_without_the_limit_nothing_is_measured_and_no_gate_rises(any_armed):
    assert any_armed.sensed(100_000, cells_on=0) == []
    if hasattr(any_armed, "on_us"):
        assert pulsed_us(any_armed, 100_000) == [0.0] * 12


@pytest.mark.parametrize("cells_on", [0, 0xFFF, 0x001], ids=["off", "on", "one"])
def test_every_cell_is_measured_whether_it_is_on_or_off(sensing, cells_on):
    for cell in range(12):
        sensing.set_analog(cell, on=300 + 10 * cell)
    found = sensing.sensed(150_000, cells_on=cells_on)
    assert {cell for cell, *_ in found} == set(range(12))
    seventh = {(current, supply) for cell, current, supply, _ in found if cell == 7}
    assert seventh == {(370, SUPPLY_COUNTS)}
    assert all(current == 300 + 10 * cell for cell, current, *_ in found)
    assert all(age_ms <= 30 for *_, age_ms in found)


def test_the_smallest_duties_of_all_cells_are_measured(sensing):
    found = sensing.sensed(400_000, **DUTIES_MIN)
    assert {cell for cell, *_ in found} == set(range(12))
    assert {found[1:3] for found in found} == {(ON_COUNTS, SUPPLY_COUNTS)}


def test_cells_switched_in_every_millisecond_are_measured(sensing):
    found = []
    for k in range(400):
        found += sensing.sensed(1000, cells_on=0xFFF * (k % 2))
    assert {cell for cell, *_ in found} == set(range(12))


def test_a_modulated_cell_is_measured_within_its_on_time(chip):
    chip.limit(sense_every_ms=EVERY_MS)
    chip.ready()
    duty = {"name": "set_duties", "duty_per_255": [128] + [0] * 15}
    rest(chip, 20_000, **duty)
    begin_us = chip.now_us()
    us = pulsed_us(chip, 480_000, **duty)[0]
    plain_us = (chip.now_us() - begin_us) * 128 / 255
    assert us - plain_us < 2100, (
        "a period of the modulation, where the time begins; 12 pulses are 1800 us"
    )


def test_the_pulses_of_a_cell_that_is_off_are_short_and_rare(chip):
    chip.limit(sense_every_ms=EVERY_MS)
    chip.ready()
    us = pulsed_us(chip, 480_000)
    assert all(0 < on_us <= PULSE_MAX_US * 480 / EVERY_MS for on_us in us)
    print(f"mean pulse {sum(us) / 12 / (480 / (12 * (EVERY_MS // 12 + 1))):.0f} us")


def test_a_wire_that_is_not_named_at_arming_is_not_pulsed(any_board):
    any_board.limit(sense_every_ms=EVERY_MS)
    any_board.recover()
    any_board.arm_cells(0x003)
    assert {cell for cell, *_ in any_board.sensed(100_000, cells_on=0)} == {0, 1}


def test_no_pulse_comes_while_as_many_cells_are_on_as_may_be(any_board):
    any_board.limit(sense_every_ms=EVERY_MS, cells_on_max=2)
    any_board.ready()
    assert {cell for cell, *_ in any_board.sensed(100_000, cells_on=0x003)} == {0, 1}
    rest(any_board, 5_000)
    assert {cell for cell, *_ in any_board.sensed(100_000, cells_on=0x001)} == set(range(12))


@pytest.mark.parametrize("end", ["disarm", "estop", "hold"])
def test_no_pulse_comes_after_disarming_the_estop_or_the_end_of_a_command(any_board, end):
    """At six phases of a request that is due every 6 ms."""
    risen = getattr(any_board, "on_us", None) or any_board.rises
    for phase_ms in range(6):
        any_board.recover()
        any_board.limit(sense_every_ms=60, silence_max_ms=100)
        any_board.ready()
        assert any_board.sensed(20_000 + 1000 * phase_ms, cells_on=0)
        if end == "disarm":
            any_board.command("disarm")
        elif end == "estop":
            any_board.set_estop(True)
            any_board.advance(any_board.reaction_us)
        else:
            any_board.result("set_mask", valid_for_ms=1, cells_on=0)
            any_board.advance(1_500)
        before = risen()
        any_board.advance(80_000)
        assert risen() == before


def test_no_pulse_comes_between_arming_and_the_first_command(board):
    board.limit(sense_every_ms=20)
    board.set_supply(700)
    board.ready()
    assert board.set(ms=100) == "done"
    board.command("disarm")
    board.arm()  # the validity of the command before says nothing of this arming
    rises = board.rises()
    board.advance(50_000)
    assert board.rises() == rises


def test_no_reading_is_lost_where_the_scan_ends_during_its_pulse(chip):
    """Gates are written anew at the end of a scan; a request comes every 6 ms, in step with it."""
    chip.limit(sense_every_ms=60)
    chip.ready()
    for phase_us in range(0, 750, 50):
        chip.advance(phase_us)
        read_us = []
        for _ in range(80):
            answer = chip.command("set_mask", valid_for_ms=100, cells_on=0)
            if answer["first_cell"] >= protocol.SENSED:
                read_us.append(chip.now_us())
        assert max(b - a for a, b in pairwise(read_us)) < 9_000, phase_us


def _commanded_for_a_while(chip):
    """The chip has no fault, is armed, and its next command is followed by a pulse."""
    chip.set_estop(False)
    chip.advance(8_000)
    chip.command("disarm")
    chip.number = chip.command("identify")["seq_taken"]
    assert chip.result("clear_faults") == "done"
    chip.arm()
    for _ in range(3):
        chip.command("set_mask", valid_for_ms=100, cells_on=0)
        chip.advance(1_500)


def test_an_estop_that_opens_around_a_pulse_prevents_it_or_ends_it(chip):
    """Every 3.6 us, from the request for the pulse until after it."""
    chip.limit(sense_every_ms=20)
    chip.ready()
    n_within = 0
    for cycles in range(14_000, 19_000, 57):
        _commanded_for_a_while(chip)
        low_us = chip.now_us() + cycles // 16 + 2 * ESTOP_US  # the emulation may be ahead of now_us
        chip.open_estop_in(cycles)
        chip.try_command("set_mask", valid_for_ms=100, cells_on=0)
        chip.advance(low_us - chip.now_us())
        assert chip.last_rise_us() < ESTOP_US, cycles
        assert chip.gates() == [0] * 12
        before = chip.on_us()
        chip.advance(1_000)
        assert chip.on_us() == before
        n_within += chip.last_rise_us() > -PULSE_MIN_US
    assert n_within > 10, "the loop has opened within a pulse"


def test_a_short_of_a_cell_that_is_off_trips(sensing):
    sensing.set_analog(4, on=1000)
    sensing.advance_fed(EVERY_MS * 4000)
    assert sensing.faults() == ["current_high"]
    assert sensing.command("read")["fault_cells"] == 1 << 4


def test_a_wire_that_breaks_while_it_is_off_trips_or_is_isolated(any_board):
    for open_max, faults, cells_open in ((0, ["current_low"], 0), (1, [], 1 << 4)):
        any_board.recover()
        any_board.limit(sense_every_ms=EVERY_MS, open_cells_max=open_max)
        any_board.ready()
        any_board.set_analog(4, on=0)
        any_board.advance_fed(EVERY_MS * 5000)
        assert any_board.faults() == faults
        assert any_board.command("read")["cells_open"] == cells_open
        any_board.command("disarm")


def test_without_a_supply_no_current_is_no_broken_wire(sensing):
    sensing.set_supply(0)
    for cell in range(12):
        sensing.set_analog(cell, on=0)
    assert sensing.advance_fed(EVERY_MS * 5000)
    sensing.set_analog(4, on=1000)
    sensing.advance_fed(EVERY_MS * 5000)
    assert sensing.faults() == ["current_high"], "a short may have taken the supply down"


def test_an_isolated_cell_is_pulsed_no_more(any_board):
    any_board.limit(sense_every_ms=EVERY_MS, open_cells_max=1)
    any_board.ready()
    any_board.set_analog(4, on=0)
    any_board.advance_fed(EVERY_MS * 5000)
    any_board.set_analog(4)
    rest(any_board, 5_000)
    assert 4 not in {cell for cell, *_ in any_board.sensed(100_000, cells_on=0)}


@pytest.mark.slow_beyond(1)  # the chip's cells cool for 44 s
def test_the_heat_of_pulses_counts(any_board):
    """20 pulses a second of 300 us at 0.5 A: 0.25 A2 0.3 ms each, in 5 s without loss."""
    any_board.limit(
        sense_every_ms=50, heat_max_cA2ms=1_000_000, heat_time_constant_ms=20_000, on_time_max_ms=1
    )
    any_board.cool() if any_board.scan_us == 3000 else any_board.advance(44_000_000)
    any_board.recover()
    assert protocol.result_name(any_board.arm_cells()["result"]) == "done"
    before = any_board.command("read")["heat_per_255"][3]
    any_board.advance_fed(5_000_000 if any_board.whole_ms else 1_000_000)
    rise = any_board.command("read")["heat_per_255"][3] - before
    pulses = (5_000 if any_board.whole_ms else 1_000) / 60
    counted = pulses * 2500 * 0.3 / 1_000_000 * 255
    assert rise == pytest.approx(counted, abs=2 + 0.3 * counted)


def test_too_frequent_a_measurement_is_a_bad_value(any_board):
    any_board.command("disarm")
    table = protocol.default_limits() | {"sense_every_ms": protocol.SENSE_EVERY_MIN_MS - 1}
    assert any_board.result("set_limits", limits=table) == "bad_value"
    assert any_board.result("set_limits", limits=table | {"sense_every_ms": 20}) == "done"


def test_zero_and_full_scale_are_passed_on_as_they_are(sensing):
    sensing.limit(sense_every_ms=EVERY_MS, current_on_min_mA=0, current_max_mA=1900)
    sensing.set_supply(1023)
    sensing.ready()
    sensing.set_supply(0)
    assert {found[2] for found in sensing.sensed(80_000, cells_on=0)[-12:]} == {0}


def test_other_readings_of_cells_come_at_least_every_other_time(sensing):
    firsts = []
    for k in range(200):
        sensing.advance(200 if k < 150 else 6000)
        answer = sensing.command("set_mask", valid_for_ms=100, cells_on=0)
        firsts.append(answer["first_cell"])
    resistance = [first >= protocol.SENSED for first in firsts]
    assert any(resistance)
    assert not any(a and b for a, b in pairwise(resistance))
    assert {first for first in firsts if first < protocol.SENSED} == {0, 2, 4, 6, 8, 10}
