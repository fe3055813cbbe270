"""Gates against commands, and the multiplexers' own test: what is wrong with either trips.

Twelve cells' readings pass two multiplexers whose four address lines can each be stuck at 0 or 1.
"""

import pytest

from hil.devices.board import protocol

CELL = 3
FAULTS = [(bit, level) for bit in range(4) for level in (0, 1)]
SEEN = {"scan_untrue", "current_when_off", "current_high", "current_low", "temperature_high",
        "temperature_range"}  # fmt: skip


def _within_us(board, scans):
    return round((scans + 1) * 1.1 * board.scan_us) + board.reaction_us


def _armed(board, *cells):
    board.limit()
    board.ready()
    assert board.set(*cells) == "done"
    board.advance(2000)


def _trips(board, duration_us, *cells):
    """Whether it has tripped in this time, commanded all along."""
    start_us = board.now_us()
    while board.now_us() - start_us < duration_us:
        if board.set(*cells) != "done":
            return True
        board.advance(1000)
    return board.set(*cells) != "done"


@pytest.mark.parametrize("multiplexers", [1, 2, 3])
@pytest.mark.parametrize(("bit", "level"), FAULTS)
@pytest.mark.parametrize("cells", [(), (CELL,), tuple(range(12))], ids=["off", "one", "all"])
def test_an_address_bit_stuck_while_armed_trips(any_board, multiplexers, bit, level, cells):
    """Every reference has its turn in three scans; persistence asks for two of its turns."""
    board = any_board
    _armed(board, *cells)
    board.set_address(multiplexers, 0 if level else 1 << bit, 1 << bit if level else 0)
    assert _trips(board, _within_us(board, 6), *cells)
    assert set(board.faults()) & SEEN
    assert not any(board.gates())
    board.advance(3 * 3 * board.scan_us)
    assert board.result("clear_faults") == "condition_present"
    board.set_address(3, 0, 0)
    board.advance(4 * 3 * board.scan_us)
    assert board.result("clear_faults") == "done"


# --- gates ---


@pytest.mark.parametrize("cell", [0, 3, 5, 6, 10, 11])
@pytest.mark.parametrize(("how", "on"), [("high", False), ("low", True)])
def test_a_gate_that_is_not_as_commanded_trips(any_board, cell, how, on):
    board = any_board
    cells = (cell, (cell + 1) % 12) if on else ((cell + 1) % 12,)
    _armed(board, *cells)
    board.set_analog(cell, on=256, off=256 if on else 0)  # its current tells nothing
    board.set_stuck(cell, how)
    assert _trips(board, _within_us(board, 2), *cells)
    assert "gate_stuck" in board.faults()
    assert board.command("read")["fault_cells"] == 1 << cell
    if how == "high":
        assert board.result("clear_faults") == "condition_present"


@pytest.mark.parametrize("cell", [0, 5, 6, 10, 11])
@pytest.mark.parametrize("on", [False, True])
def test_a_gate_s_register_is_written_anew_every_scan(any_board, cell, on):
    """Too soon for the second reading in a row that a fault takes."""
    board = any_board
    cells = (cell,) if on else ()
    _armed(board, *cells)
    board.advance(3 * board.scan_us)  # cells just switched on are read out of turn
    board.flip_gate(cell)
    assert (board.gates()[cell] > 0) is not on
    board.advance(board.scan_us + 300)
    assert (board.gates()[cell] > 0) is on
    assert not _trips(board, _within_us(board, 4), *cells)
    assert board.faults() == []


def test_a_gate_set_though_nobody_commands_it_trips(board):
    """Where what registers are written from is spoilt, the pin is as it was set."""
    _armed(board)
    board.flip_gate(CELL, in_table=True)
    assert board.gates()[CELL] == 255
    assert _trips(board, _within_us(board, 2))
    assert board.faults() == ["gate_stuck"]
    assert board.command("read")["fault_cells"] == 1 << CELL
    assert not any(board.gates())


@pytest.mark.parametrize("on_us", [500, 1000, 3000])
@pytest.mark.parametrize("off_us", [500, 1000, 3000])
def test_switching_in_any_rhythm_is_no_fault(any_board, on_us, off_us):
    board = any_board
    _armed(board)
    for n in range(400 if not board.exchange_us else 60):
        for cells, us in (((CELL, 4, 11), on_us), ((), off_us)):
            assert board.set(*cells) == "done", board.faults()
            board.advance(us + (n % 7 if off_us == 1000 else 0))
    assert board.faults() == []


def test_duties_of_every_size_are_no_fault(chip):
    chip.limit(current_on_min_mA=0)
    chip.ready()
    for n in range(40):
        duties = [16 + (29 * n + 31 * i) % 240 for i in range(12)] + [0] * 4
        command = {"valid_for_ms": 100, "duty_per_255": duties}
        assert chip.result("set_duties", **command) == "done"
        chip.advance(4000 + 173 * n % 4000)
    assert chip.faults() == []


def test_the_scan_is_as_fast_as_the_board_declares(any_board):
    assert any_board.scan_us <= any_board.command("identify")["scan_period_us"]
    assert protocol.FAULTS["gate_stuck"] == 12
