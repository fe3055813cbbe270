"""One command a millisecond, cells that change all the time, and not one error."""

import numpy as np
import pytest

from hil.bench import board as bench_board
from hil.devices.board import protocol
from hil.devices.board.emulated import EmulatedBoard
from hil.devices.board.native import NativeBoard
from hil.devices.board.port import SerialPort


def on_the_chip(n):
    chip = EmulatedBoard(1, protocol.default_limits())
    port = SerialPort("board", chip.url, chip.sent_s, chip.arrived_s)
    return chip, bench_board.exchange(chip, port, n)


def test_two_thousand_exchanges_with_the_emulated_chip_have_no_error():
    chip, found = on_the_chip(2_000)
    assert found.errors == 0
    assert chip.lost_bytes == 0
    assert max(found.round_trips_s) < 0.001


def test_two_thousand_exchanges_with_the_core_on_this_machine_have_no_error():
    board = NativeBoard(1, protocol.default_limits(), np.random.default_rng(0))
    assert bench_board.exchange(board, board, 2_000).errors == 0


@pytest.mark.slow
def test_a_hundred_thousand_exchanges_have_no_error():
    chip, found = on_the_chip(100_000)
    print(bench_board.as_text({"native": found.figures(), "emulated": found.figures()}))
    assert found.errors == 0
    assert chip.lost_bytes == 0
    assert max(found.round_trips_s) < 0.001
