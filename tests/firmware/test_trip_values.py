"""What the board says of a trip: the sample that tripped, whatever its pins show later."""

import pytest

from firmware.boards import ROOM_COUNTS
from hil.devices.board import protocol

CELL = 3
SHORT, SHORT_mA = 998, 1949  # counts of 2 A
HOT, HOT_cC = 300, 9648  # counts of 500 K from -50 C
NONE = protocol.CELLS_MAX


def as_stated(board, current_mA, temperature_cC, cell=CELL):
    """On the chip a level is a voltage, which the converter may read a count beside it."""
    slack = 1 if board.exchange_us else 0
    read = board.command("read")
    assert read["trip_cell"] == cell
    assert abs(read["trip_current_mA"] - current_mA) <= 2 * slack, read["trip_current_mA"]
    assert abs(read["trip_temperature_cC"] - temperature_cC) <= 49 * slack


def scanned(board):
    board.ready()
    board.set_analog(CELL, on=SHORT)
    assert not board.advance_fed(30_000, CELL)
    return "current_high", SHORT_mA, ROOM_cC


def scanned_low(board):
    board.ready()
    board.set_analog(CELL, on=5)
    assert not board.advance_fed(30_000, CELL)
    return "current_low", 9, ROOM_cC


def pulsed_at_arming(board):
    board.recover()
    board.set_analog(CELL, on=SHORT)
    assert protocol.result_name(board.arm_cells()["result"]) == "is_faulted"
    return "current_high", SHORT_mA, ROOM_cC


def sensed(board):
    """The cell is off: only pulses that measure its resistance see the short."""
    board.limit(sense_every_ms=20)
    board.ready()
    board.set_supply(800)
    board.set_analog(CELL, on=SHORT)
    assert not board.advance_fed(400_000)
    board.limit()
    return "current_high", SHORT_mA, ROOM_cC


def off(board):
    board.ready()
    board.set_analog(CELL, off=512)
    assert not board.advance_fed(30_000)
    return "current_when_off", 1000, ROOM_cC


def hot(board):
    board.ready()
    board.set_analog(CELL, temperature=HOT)
    assert not board.advance_fed(30_000)
    return "temperature_high", 0, HOT_cC


def heated(board):
    """The current that its heat was counted with, also where the gate was off since."""
    board.limit(heat_max_cA2ms=100_000, heat_time_constant_ms=1000)
    board.recover()
    board.cool()
    board.arm()
    board.set_analog(CELL, on=512)
    assert not board.advance_fed(60_000, CELL)
    return "cell_energy_high", 1000, ROOM_cC


ROOM_cC = (ROOM_COUNTS * 50000 >> 10) - 5000
TRIPS = [scanned, scanned_low, pulsed_at_arming, sensed, off, hot, heated]


@pytest.mark.parametrize("trip", TRIPS, ids=lambda trip: trip.__name__)
def test_the_sample_that_tripped_is_quoted_long_after_it(any_board, trip):
    any_board.limit()
    fault, current_mA, temperature_cC = trip(any_board)
    assert any_board.faults() == [fault]
    as_stated(any_board, current_mA, temperature_cC)
    any_board.set_good_pins()
    any_board.advance(50_000)
    as_stated(any_board, current_mA, temperature_cC)


def test_a_second_fault_leaves_the_first_sample_and_clearing_forgets_it(any_board):
    any_board.limit()
    scanned(any_board)
    any_board.set_analog(CELL + 2, off=512)
    any_board.advance(30_000)
    assert any_board.faults() == ["current_high", "current_when_off"]
    as_stated(any_board, SHORT_mA, ROOM_cC)
    any_board.recover()
    as_stated(any_board, 0, 0, cell=NONE)


def test_a_fault_of_no_cell_leaves_the_sample_to_the_first_cell_after_it(any_board):
    any_board.limit()
    any_board.ready()
    any_board.advance(150_000)
    assert any_board.faults() == ["host_silent"]
    as_stated(any_board, 0, 0, cell=NONE)
    any_board.set_analog(CELL, off=512)
    any_board.advance(30_000)
    as_stated(any_board, 1000, ROOM_cC)
