"""The cells' supply: relay K1 is closed only while armed, and both sides of it are looked at."""

import pytest

from firmware.test_avr import BLINKS, running
from hil.devices.board import protocol

SCAN_US = 3250  # of the chip; every fourth has a reading of the supply
STUCK_US = 32 * 4 * SCAN_US  # docs/decisions/0016: nothing sound is called stuck before
SLOWEST = {"closes_us": 40_000, "opens_us": 155_000}  # pump and relay: docs/how-to/build-a-board.md


def arms(board, duration_us, cells=0xFFF):
    """What arming is answered when it is asked for again and again for a while."""
    crc, found = board.command("identify")["limits_crc"], []
    end_us = board.now_us() + duration_us
    while board.now_us() < end_us:
        found.append(board.result("arm", limits_crc=crc, cells=cells))
        if found[-1] != "supply_waits":
            break
        board.advance(5_000)
    return found


def gone(board):
    """Time that any relay and rail may take."""
    board.advance(200_000)


def rested(board):
    """Disarmed for long, its wires cold."""
    board.recover()
    board.limit()
    gone(board)


@pytest.mark.parametrize("how", ["disarm", "silence", "estop", "leak", "reset"])
def test_the_cells_have_power_only_while_the_board_is_armed(any_board, how):
    board = any_board
    rested(board)
    assert not board.rail_is_alive()
    board.arm()
    assert board.rail_is_alive()
    if how == "disarm":
        board.command("disarm")
    elif how == "estop":
        board.set_estop(True)
        board.advance(30_000)
        board.set_estop(False)
    elif how == "leak":
        board.set_analog(3, off=200)
        board.advance(60_000)
        assert board.faults()[0] == "current_when_off"
    elif how == "reset":
        board.reset()
    else:
        board.advance(150_000)
        assert board.faults() == ["host_silent"]
    gone(board)
    assert not board.rail_is_alive()


def test_a_last_relay_that_welds_is_found_after_the_run_and_prevents_every_arming(any_armed):
    board = any_armed
    board.set_relays(k1="welded")
    assert board.set(0) == "done"
    board.command("disarm")
    board.advance(2 * STUCK_US)
    assert board.faults() == ["supply_stuck"]
    assert board.result("clear_faults") == "condition_present"
    assert arms(board, 100_000) == ["is_faulted"]
    board.set_relays()
    gone(board)
    assert board.faults() == ["supply_stuck"]  # latched
    assert board.result("clear_faults") == "done"
    board.arm()


def test_a_supply_that_comes_on_behind_a_welded_relay_arms_nothing(any_board):
    board = any_board
    rested(board)
    board.set_supply(0)
    board.set_relays(k1="welded")
    board.advance(2 * STUCK_US)
    assert board.faults() == []
    board.set_supply(409)
    found = arms(board, 4 * STUCK_US)
    assert set(found) == {"supply_waits", "is_faulted"}
    assert board.faults() == ["supply_stuck"]
    assert not any(board.gates())


def test_an_estop_that_cuts_nothing_is_found(any_board):
    """K2 welded: the loop at PD2 opens, and the supply before K1 stays."""
    board = any_board
    rested(board)
    board.set_relays(k2="welded")
    board.set_estop(True)
    board.advance(2 * STUCK_US)
    assert board.faults() == ["estop_open", "supply_stuck"]
    board.set_estop(False)
    gone(board)
    assert board.result("clear_faults") == "done"  # now it may be fed


@pytest.mark.parametrize("dead", ["supply", "k1", "k2"])
def test_arming_waits_for_a_supply_that_does_not_come_and_pulses_nothing(any_board, dead):
    board = any_board
    rested(board)
    if dead == "supply":
        board.set_supply(0)
    else:
        board.set_relays(**{dead: "dead"})
    gone(board)
    assert set(arms(board, 1_000_000)) == {"supply_waits"}
    found = board.command("read")
    assert found["rail_per_255"] == 0
    assert (found["feed_per_255"] > 0) == (dead == "k1")
    assert protocol.state_name(found["state"]) == "disarmed"
    assert not any(board.gates())
    board.set_good_pins()
    assert arms(board, 1_000_000)[-1] == "done"


def test_a_host_that_asks_once_leaves_no_power_behind(any_board):
    board = any_board
    rested(board)
    assert arms(board, 1) == ["supply_waits"]
    board.advance(60_000)
    assert board.rail_is_alive()
    board.advance(2 * STUCK_US)
    assert not board.rail_is_alive()
    assert board.state() == "disarmed"


def test_a_question_without_cells_closes_the_relay_and_arms_nothing(any_board):
    """So a host closes the relays of several boards before it arms the first."""
    board = any_board
    rested(board)
    assert arms(board, 200_000, cells=0)[-1] == "not_armed"
    for _ in range(20):  # for as long as it is asked
        board.advance(100_000)
        assert arms(board, 1, cells=0) == ["not_armed"]
        assert board.state() == "disarmed"
        assert board.rail_is_alive()
    assert not any(board.gates())
    assert arms(board, 1) == ["done"]
    board.command("disarm")
    gone(board)
    assert not board.rail_is_alive()


@pytest.mark.parametrize("limit", [40, 41])
def test_the_rail_is_alive_from_41_counts_on(any_board, limit):
    """4 % of full scale: 0.8 V of 20 V."""
    board = any_board
    rested(board)
    board.set_supply(limit)
    assert (arms(board, 300_000)[-1] == "done") == (limit == 41)


def test_what_is_dead_within_32_readings_is_not_stuck(board):
    """The host's board reads the supply at every fourth scan of 3 ms."""
    rested(board)
    for readings, stuck in ((31, False), (33, True)):
        board.ready()
        board.set_relays(k1="welded")
        board.command("disarm")
        board.advance(readings * 4 * 3_000)
        board.set_relays()
        board.advance(20_000)
        assert (board.faults() == ["supply_stuck"]) == stuck


def test_the_slowest_relay_that_the_parts_permit_is_not_stuck_and_can_be_armed(chip):
    chip.set_relay_times(**SLOWEST)
    rested(chip)
    chip.arm()
    for _ in range(3):
        assert chip.set(1) == "done"
        chip.command("disarm")
        found = arms(chip, 1_000_000)
        assert found[-1] == "done"
    chip.command("disarm")
    chip.advance(4 * STUCK_US)
    assert chip.faults() == []


def test_arming_takes_no_longer_than_relay_and_readings(chip):
    """K1 at its slowest, and two readings of the supply, 13 ms apart: 66 ms, and the exchanges."""
    chip.set_relay_times(**SLOWEST)
    rested(chip)
    began_us = chip.now_us()
    assert arms(chip, 1_000_000)[-1] == "done"
    assert 40_000 < chip.now_us() - began_us < 40_000 + 4 * 2 * SCAN_US + 20_000


def test_a_program_that_hangs_drops_the_relay(chip):
    chip.ready()
    chip.hang()
    chip.advance(25_000)  # the reset comes after 16 ms
    assert chip.resets() == 1
    for _ in range(20):
        assert not chip.rail_is_alive()
        chip.advance(20_000)


def test_a_boot_loader_that_blinks_the_permit_closes_no_relay(avr_build, tmp_path):
    """It turns no multiplexer. A programmer clocks the same pin."""
    chip = running(avr_build, tmp_path, BLINKS)
    for _ in range(400):
        chip.advance(1_000)
        assert not chip.rail_is_alive()
    chip.close()
