"""A board whose wires are warm is armed once they have cooled, and the person at it knows why."""

import itertools

import numpy as np
import pytest

from hil import wire
from hil.__main__ import main
from hil.devices.cooling import armed_once_cool, seconds_to_cool
from hil.devices.native_board import NativeBoard
from hil.devices.proof import SimulatedOperator
from hil.errors import DeviceError


def _board(**limits):
    table = wire.default_limits() | limits
    board = NativeBoard(1, table, 0.0, np.random.default_rng(0))
    for cell in range(12):
        board.sense(cell, 0.2, 0.0, 25.0)
    return board, table, _ask(board)


def _ask(board):
    decoder, numbers = wire.Decoder(), itertools.count(2)  # its limits were stored with 1

    def ask(command, **fields):
        board.write(wire.encode(command, next(numbers) % 256, **fields))
        return decoder.feed(board.read(1.0))[0]

    return ask


def _arm(board, table, ask, operator=None):
    crc = wire.limits_crc(table)
    tau_s = 1e-3 * table["heat_time_constant_ms"]
    return armed_once_cool("board", ask, operator or SimulatedOperator(board), tau_s, crc, 0xFFF)


def test_a_simulated_board_has_been_powered_for_long_and_is_armed_at_once(capsys):
    board, table, ask = _board(heat_time_constant_ms=60_000)
    board.advance(10_000)
    before_s = board.sent_s()
    assert wire.result_name(_arm(board, table, ask)["result"]) == "done"
    assert board.sent_s() == before_s
    assert capsys.readouterr().err == ""


def test_after_a_reset_it_waits_for_two_time_constants_and_says_so(capsys):
    board, table, ask = _board(heat_time_constant_ms=14_000)
    ask("set_limits", limits=table)  # all heat counts as used up
    board.advance(10_000)
    before_s = board.sent_s()
    assert wire.result_name(_arm(board, table, ask)["result"]) == "done"
    waited_s = board.sent_s() - before_s
    assert 14.0 * np.log(8) - 0.1 <= waited_s <= 14.0 * np.log(8) * 1.03 + 0.2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "board: waits 30 s until its wires have cooled"
    assert len(lines) == 3  # every ten seconds


def test_a_board_that_never_cools_is_given_up_with_one_line():
    board, table, ask = _board()
    ask("set_limits", limits=table)
    board.advance(10_000)

    class Idle(SimulatedOperator):
        def wait(self, duration_s):
            pass

    with pytest.raises(DeviceError, match=r"^board: refused to be armed: .*have not cooled") as one:
        _arm(board, table, ask, Idle(board))
    assert "\n" not in str(one.value)


@pytest.mark.parametrize(
    ("heat", "seconds"), [([0, 31], 0.0), ([255, 3], 2.079), ([], 0.0), ([0, 64], 0.697)]
)
def test_the_hottest_cell_says_how_long(heat, seconds):
    assert seconds_to_cool(heat, 1.0) == pytest.approx(seconds, abs=2e-3)


def test_the_limit_that_the_budget_replaces_is_still_accepted(configs, tmp_path, capsys):
    old = "devices.board.limits.current_continuous_mA=200"
    words = ["check", str(configs / "miga6/all_on.toml"), "--set", old]
    assert main(words) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "current_continuous_mA" in said[0]
    assert "heat_max_cA2ms with heat_time_constant_ms replaces it" in said[0]
