"""A board whose wires are warm is armed once they have cooled, and the person at it knows why."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from hil.__main__ import main
from hil.devices.board import protocol
from hil.devices.board.arming import Heat, armed_once_ready, seconds_to_cool
from hil.devices.board.link import WRAP_S
from hil.devices.board.native import NativeBoard
from hil.devices.board.self_test import SimulatedOperator
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.errors import DeviceError
from hil.experiment.load import load
from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.loop.states import NUMBERS
from hil.runs import assembly
from hil.runs.plan import Plan


def _board(**limits):
    table = protocol.default_limits() | limits
    board = NativeBoard(1, table, np.random.default_rng(0))
    for cell in range(12):
        board.sense(cell, 0.2, 0.0, 25.0)
    return board, table, _ask(board)


def _ask(board):
    decoder, numbers = protocol.Decoder(), itertools.count(2)  # its limits were stored with 1

    def ask(command, **fields):
        board.write(protocol.encode(command, next(numbers) % 256, **fields))
        return decoder.feed(board.read(1.0))[0]

    return ask


def _arm(board, table, ask, operator=None):
    return armed_once_ready("board", ask, operator or SimulatedOperator(board), table, 0xFFF)


def test_a_simulated_board_has_been_powered_for_long_and_is_armed_at_once(capsys):
    board, table, ask = _board(heat_time_constant_ms=60_000)
    board.advance(10_000)
    before_s = board.sent_s()
    assert protocol.result_name(_arm(board, table, ask)["result"]) == "done"
    assert board.sent_s() - before_s < 0.1  # relay K1, and two readings of the supply
    assert capsys.readouterr().err == ""


def test_after_a_reset_it_waits_for_two_time_constants_and_says_so(capsys):
    board, table, ask = _board(heat_time_constant_ms=14_000)
    ask("set_limits", limits=table)  # all heat counts as used up
    board.advance(10_000)
    before_s = board.sent_s()
    assert protocol.result_name(_arm(board, table, ask)["result"]) == "done"
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


TAU_S, RESET_S, ASKED = 0.6, 0.010, 15
RELAY_S = 2 * 4 * 3.25e-3  # two readings of the supply, four scans each (firmware/core/guard.h)


class Window(assembly.NoSink):
    """Arms at a tick and keeps every row."""

    def __init__(self, frame):
        self._frame, self.rows = frame, []

    def requests(self, tick):
        return [("arm", 1.0, "")] if tick == ASKED else []

    def push(self):
        self.rows.append(self._frame.row[0].copy())
        return True


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("hot", [["board_a"], ["board_b"], ["board_a", "board_b"], []])
def test_a_window_that_arms_warm_boards_waits_tick_by_tick_until_all_have_cooled(configs, hot):
    """Heat counts as used up after a reset and falls to an eighth within tau ln 8, 1.25 s."""
    boards = ("board_a", "board_b")
    tau_ms = round(1e3 * TAU_S)
    sets = [f"devices.{b}.limits.heat_time_constant_ms={tau_ms}" for b in boards]
    config = load(configs / "array14/pid.toml", [*sets, "experiment.duration_s=0.02"])
    faults = [FaultTable(kind="board_reset", at_s=RESET_S, device=name) for name in hot]
    pipeline = assembly.build(Plan(config, seed=1, injection=Injection(faults)))
    sink = Window(pipeline.frame)
    pipeline.rig.open()
    pipeline.rig.self_test(print)
    parts = pipeline.context(VirtualClock(), sink, armed=False)
    assert loop.run(parts) == "complete"
    rows = np.array(sink.rows)
    state, t_s = rows["guard_state"], rows["t_s"]
    began = int(np.flatnonzero(state == NUMBERS["running"])[0])
    wait_s = RESET_S + TAU_S * np.log(8) - 1e-3 * ASKED if hot else 0.0
    waited_s = 1e-3 * (began - ASKED)
    assert 0.95 * wait_s <= waited_s <= 1.05 * wait_s + RELAY_S
    assert (state[ASKED:began] == NUMBERS["armed"]).all()
    assert not rows["cells_commanded"][:began].any()
    assert not rows["cells_reported"][1 : began + 1].any()
    assert rows["cells_commanded"][began:].any()
    # a board that is waited for within a tick would let its own time pass there
    np.testing.assert_allclose(t_s, 1e-3 * np.arange(len(rows)), atol=1e-9)
    for name in boards:
        passed_s = np.diff(rows[f"{name}_t_s"][ASKED:]) % WRAP_S
        np.testing.assert_allclose(passed_s, 1e-3, atol=2e-4)
        assert (rows[f"{name}_age_s"][1:] < 2e-3).all()


def test_the_wait_that_is_told_is_that_of_the_cells_to_be_armed(capsys):
    """255 / 255 falls to an eighth in ln 8 = 2.08 time constants, 64 / 255 in ln 2.008 = 0.70."""
    results = iter((protocol.RESULTS["cooling"], protocol.RESULTS["done"]))

    def ask(command, **fields):
        if command == "arm":
            return {"result": next(results)}
        return {"heat_per_255": (64, 255, 0)}

    operator = SimpleNamespace(wait=lambda duration_s: None)
    limits = protocol.default_limits() | {"heat_time_constant_ms": 10_000}
    armed_once_ready("board", ask, operator, limits, cells=0b101)
    assert "waits 7 s until" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("k1", "supply_V", "said"),
    [
        ("sound", 0.0, r"no supply before relay K1 \(0\.0 V\): .* check its poles, the fuse"),
        ("dead", 8.0, r"relay K1 does not close: 8\.0 V before it, 0\.0 V behind it: check its"),
    ],
)
def test_a_supply_that_does_not_come_is_given_up_with_one_line(k1, supply_V, said):
    board, table, ask = _board()
    board.sense_supply(supply_V)
    board.set_relays(k1=k1)
    board.advance(100_000)
    with pytest.raises(DeviceError, match=f"^board: refused to be armed: {said}") as one:
        _arm(board, table, ask)
    assert "\n" not in str(one.value)


def test_a_relay_that_has_welded_is_never_armed():
    board, table, ask = _board()
    board.set_relays(k1="welded")
    board.advance(10_000)
    answer = _arm(board, table, ask)
    assert protocol.result_name(answer["result"]) in ("is_faulted", "condition_present")
    assert protocol.fault_names(answer["fault_bits"]) == ["supply_stuck"]


def test_a_board_that_is_hot_is_asked_for_its_heat_every_20_ms_and_a_cold_one_never():
    heat = Heat(2, {"heat_time_constant_ms": 1000})
    assert [t_ms for t_ms in range(0, 90, 3) if heat.is_due(1e-3 * t_ms)] == [0, 21, 42, 63, 84]
    heat.note({"heat_per_255": [31, 31, 255]})  # no more than an eighth; its third gate has no cell
    assert not heat.is_due(1.0)
