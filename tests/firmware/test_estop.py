"""No gate rises after the e-stop has opened: at every moment of arming and of switching."""

import pytest

from hil import wire

EVERY_CELL = 0xFFF
INTERRUPT_US = 50  # until all gates are low; what holds the interrupt up may end in a rising edge
ARMING_US = 3_500  # frame, twelve pulses of 0.15 ms and the answer


def _arm(board, cells=EVERY_CELL):
    crc = board.command("identify")["limits_crc"]
    return board.command("arm", limits_crc=crc, cells=cells)


def _faults(answer):
    return wire.fault_names(answer["fault_bits"])


def test_an_opening_at_any_moment_of_arming_ends_it_with_that_fault_alone(board):
    """A moment is a look at the loop, or either side of a gate's edge: each pulse has three."""
    moment = 0
    while True:
        moment += 1
        board.recover()
        crc = board.command("identify")["limits_crc"]
        board.open_estop_at(moment)
        answer = board.command("arm", limits_crc=crc, cells=EVERY_CELL)
        board.open_estop_at(0)
        if not board.is_open():
            break
        board.advance(100)
        reading = board.command("read")
        assert _faults(reading) == ["estop_open"], moment
        assert reading["fault_cells"] == 0
        assert wire.result_name(answer["result"]) in ("is_faulted", "condition_present")
        assert board.rises() == 0
        assert board.pulses() <= 1  # the one that began as the loop opened
        assert not any(board.gates())
    assert moment > 12 * 3


@pytest.mark.parametrize("name", ["set_mask", "set_duties", "broadcast"])
def test_an_opening_at_any_moment_of_a_set_command_raises_no_gate(board, name):
    fields = {
        "set_mask": {"cells_on": EVERY_CELL},
        "set_duties": {"duty_per_255": (100,) * 12 + (0,) * 4},
        "broadcast": {
            "p_on_per_65536": wire.PROBABILITY_ONE,
            "q_off_per_65536": 0,
            "tick": 1,
            "seed": 1,
            "first_cell": 0,
        },
    }[name]
    for moment in (1, 2, 3):
        board.ready()
        board.open_estop_at(moment)
        board.command(name, valid_for_ms=100, **fields)
        board.advance(1000)
        assert board.is_open()
        assert board.rises() == 0
        assert not any(board.gates())
        assert board.faults() == ["estop_open"]


def test_a_short_at_the_first_cell_ends_arming_before_the_others_are_pulsed(any_board):
    any_board.recover()
    any_board.set_analog(0, on=1023)
    any_board.set_analog(5, on=0)
    answer = _arm(any_board)
    assert _faults(answer) == ["current_high"]
    assert answer["fault_cells"] == 1


def _chip_arms_as_it_opens(chip, cycles, for_cycles=0):
    """What the chip says of itself afterwards; the interrupt may cost it a byte of the command."""
    chip.recover()
    crc = chip.command("identify")["limits_crc"]
    chip.open_estop_in(cycles, for_cycles)
    chip.try_command("arm", limits_crc=crc, cells=EVERY_CELL)
    chip.advance(1_000 + (cycles + for_cycles) // 16)
    return chip.command("read")


def test_no_gate_of_the_chip_rises_later_than_its_interrupt_whenever_the_loop_opens(chip):
    """Every 7.7 us of arming, as odd cycles as even ones."""
    latest_us = -1e9
    for cycles in range(1, 16 * ARMING_US, 123):
        reading = _chip_arms_as_it_opens(chip, cycles)
        assert "estop_open" in _faults(reading), cycles
        latest_us = max(latest_us, chip.last_rise_us())
        assert chip.last_rise_us() < INTERRUPT_US, cycles
        assert not any(chip.gates())
    print(f"last rising edge {latest_us:.1f} us after the opening")


def test_an_opening_of_20_us_at_any_moment_of_arming_is_latched(chip):
    for cycles in range(1, 16 * ARMING_US, 1231):
        reading = _chip_arms_as_it_opens(chip, cycles, for_cycles=320)
        assert "estop_open" in _faults(reading), cycles
        assert chip.last_rise_us() < INTERRUPT_US, cycles
        assert not any(chip.gates())
