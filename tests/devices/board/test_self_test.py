"""A board that does not stop by itself, or whose e-stop nobody opens, is refused before arming."""

import numpy as np
import pytest

from hil.devices.board import protocol
from hil.devices.board.native import NativeBoard
from hil.devices.board.self_test import (
    SimulatedOperator,
    SomebodyAtTheBench,
    check_estop,
    check_silence,
)
from hil.errors import DeviceError


class Bench:
    """A board, and the asking that a driver does; time passes only when somebody waits."""

    def __init__(self):
        self.limits = protocol.default_limits()
        self.board = NativeBoard(1, self.limits, np.random.default_rng(0))
        for cell in range(12):
            self.board.sense(cell, 0.2, 0.0, 20.0)
        self.board.advance(100_000)
        self.number = 1  # its limits were stored with that
        self.decoder = protocol.Decoder()

    def ask(self, command, **fields):
        self.number = protocol.following(self.number)
        if command in protocol.SET_COMMANDS:
            fields["arming"] = self.number >> 8
        self.board.write(protocol.encode(command, self.number & 255, **fields))
        self.board.advance(1000)
        (answer,) = self.decoder.feed(self.board.read(0.1))
        return answer

    def arm(self):
        waits = protocol.RESULTS["supply_waits"]
        answer = {"result": waits}
        while answer["result"] == waits:
            answer = self.ask("arm", limits_crc=protocol.limits_crc(self.limits), cells=0b111)
        assert protocol.result_name(answer["result"]) == "done"
        self.number = answer["arming"] << 8 | answer.seq


def test_a_board_left_alone_latches_and_is_clear_again_afterwards():
    bench = Bench()
    check_silence("board", bench.ask, bench.arm, SimulatedOperator(bench.board))
    assert bench.ask("read")["fault_bits"] == 0
    assert protocol.STATES["disarmed"] == bench.ask("read")["state"]


def test_a_board_that_goes_on_without_its_host_is_refused():
    bench = Bench()

    class Chatterbox(SimulatedOperator):
        """Keeps the board fed, as a board that has lost its sense of time would be."""

        def wait(self, duration_s):
            for _ in range(round(duration_s / 0.01)):
                bench.ask("set_mask", valid_for_ms=50, cells_on=0)
                super().wait(0.009)

    with pytest.raises(DeviceError, match="did not stop by itself"):
        check_silence("board", bench.ask, bench.arm, Chatterbox(bench.board))


def test_an_estop_is_seen_open_and_closed_by_a_simulated_operator_without_asking():
    bench, said = Bench(), []
    check_estop("board", bench.ask, SimulatedOperator(bench.board), said.append)
    assert said == []
    assert bench.ask("read")["fault_bits"] == 0


def test_somebody_is_asked_and_waited_for():
    bench, said, waited = Bench(), [], []

    def sleep_s(duration_s):
        waited.append(duration_s)
        bench.board.set_estop(10 <= len(waited) < 20)
        bench.board.advance(round(1e6 * duration_s))

    check_estop("board", bench.ask, SomebodyAtTheBench(sleep_s), said.append)
    assert said == ["board: open its e-stop now (30 s)", "board: close its e-stop now (30 s)"]
    assert 20 <= len(waited) < 30


def test_an_estop_that_nobody_opens_is_refused_after_its_time():
    bench = Bench()
    waited = []

    def sleep_s(duration_s):
        waited.append(duration_s)
        bench.board.advance(1000)

    with pytest.raises(DeviceError, match="not seen open within 30 s: nothing was armed"):
        check_estop("board", bench.ask, SomebodyAtTheBench(sleep_s), lambda text: None)
    assert sum(waited) == pytest.approx(30.0)


def test_an_estop_that_opens_its_loop_and_leaves_the_supply_on_is_refused():
    """Relay K2 is welded; the supply is on during the self-test."""
    bench = Bench()
    bench.board.set_relays(k2="welded")
    found = r"its e-stop is open: the cells' supply stays on though it is cut: a relay is welded"
    with pytest.raises(DeviceError, match=found):
        check_estop("board", bench.ask, SimulatedOperator(bench.board), print)


def test_a_relay_that_welds_in_the_watchdog_test_is_named_and_not_armed():
    bench = Bench()

    class Welding(SimulatedOperator):
        def wait(self, duration_s):
            bench.board.set_relays(k1="welded")
            super().wait(1.0)

    with pytest.raises(DeviceError, match=r"persists: .*supply_stuck: .* a relay is welded"):
        check_silence("board", bench.ask, bench.arm, Welding(bench.board))
