"""Lines of a card that switch cells: their order, their dead man, their gates read back."""

from math import inf

import numpy as np
import pytest
from nidaqmx import Task

from hil.devices.nidaq.channels import CellLine, Line
from hil.devices.nidaq.outputs import Outputs
from hil.errors import DeviceError
from hil.loop.channels import RigLayout
from rows import row_of
from simdaq import watchdog

from .cards import ESTOP, FORCE, SUPPLY, Bench, plan

CELLS = (CellLine("a.1", "port0/line8", 0), CellLine("a.2", "port0/line9", 1))
GATES = (Line("a.1", "port0/line16", "readback"), Line("a.2", "port0/line17", "readback"))
LINES = ("port0/line8", "port0/line9")


class SwitchBench(Bench):
    """A card whose lines 8 and 9 switch two cells; 16 and 17 read their gates back."""

    def __init__(self, product="PCIe-6363", gates=GATES, cells=CELLS, **changes):
        asked = plan(
            FORCE, lines=(ESTOP, SUPPLY, *gates), cells=cells, watchdog="required",
            watchdog_s=0.05, **changes,
        )  # fmt: skip
        super().__init__(asked, product=product, ai0=1.0, port0_line0=1.0)
        self.layout = RigLayout(
            self.layout.channels, (), (), ("daq",), 2, cell_names=("a.1", "a.2")
        )
        self.frame = row_of(self.layout, *self.daq.columns)
        self.readings, self.commands = self.layout.bind(self.frame)
        self.commands.enabled[:] = True
        self.daq.bind(self.frame, self.readings)
        self.stuck = {}
        for i, line in enumerate(gates):
            self.feed(line.terminal, lambda t_s, i=i: np.full(np.shape(t_s), self.gate(i)))

    def gate(self, i):
        return self.stuck.get(i, self.level(LINES[i]))

    def levels(self):
        return [self.level(line) for line in (*LINES, "port0/line1")]

    def cells(self, *on):
        self.commands.cells[:] = on


def _tick_on(bench):
    for k in range(1, 50):
        bench.tick(k)


def test_lines_follow_the_commands_and_are_reported_by_their_gates():
    with SwitchBench() as bench:
        bench.start()
        before = [0, 0]
        for k, on in enumerate([(1, 0), (1, 1), (0, 1), (0, 0)]):
            bench.cells(*on)
            bench.tick(k)
            assert bench.levels() == [*on, 1.0]
            assert bench.readings.cells_reported.tolist() == before
            before = [*on]


def test_before_the_enable_line_goes_high_the_watchdog_runs_and_every_line_is_held_low(monkeypatch):
    seen = []
    start, enable = Outputs.start, Outputs.enable

    def started(self):
        said = start(self)
        seen.append(("started", said[0].text, bench.levels()))
        return said

    monkeypatch.setattr(Outputs, "start", started)
    monkeypatch.setattr(
        Outputs, "enable", lambda self, on: (seen.append(("enable", on)), enable(self, on))
    )
    with SwitchBench() as bench:
        bench.start()
    what, said, levels = seen[0]
    assert (what, levels) == ("started", [0.0, 0.0, 0.0])
    assert "watchdog: cells off, enable lines low after 0.05 s" in said
    assert seen[1] == ("enable", True)


def test_a_line_that_another_program_has_left_high_is_low_before_there_is_power():
    with SwitchBench() as bench, Task("another program") as other:
        other.do_channels.add_do_chan("Dev1/port0/line8")
        other.write(True, auto_start=True)
        other.stop()
        assert bench.levels() == [1.0, 0.0, 0.0]
        bench.start()
        assert bench.levels() == [0.0, 0.0, 1.0]


def test_in_the_tick_of_a_trip_the_enable_line_goes_low_first_then_all_cells():
    with SwitchBench() as bench:
        bench.start()
        bench.cells(1, 1)
        bench.tick(0)
        order = []
        outputs = bench.daq._outputs
        for name in ("enable", "switch"):
            inner = getattr(outputs, name)

            def noted(value, name=name, inner=inner):
                inner(value)
                order.append((name, bench.levels()))

            setattr(outputs, name, noted)
        bench.cells(0, 0)
        bench.commands.enabled[:] = False
        bench.tick(1)
        assert order == [("enable", [1.0, 1.0, 0.0]), ("switch", [0.0, 0.0, 0.0])]


@pytest.mark.parametrize("on", [(1, 1), (0, 1)])
def test_a_program_that_is_killed_leaves_every_line_low_when_the_watchdog_expires(on):
    with SwitchBench() as bench:
        bench.start()
        bench.cells(*on)
        bench.ticks(100)  # twice the timeout: it is fed
        assert bench.levels() == [*on, 1.0]
        died_s = bench.system.now_s
        bench.system.advance_to(died_s + 0.03)
        assert bench.levels() == [*on, 1.0]
        bench.system.advance_to(died_s + 0.051)
        assert bench.levels() == [0.0, 0.0, 0.0]


def test_a_watchdog_that_has_expired_or_is_lost_ends_the_run_and_nothing_goes_on_again():
    with SwitchBench() as bench:
        bench.start()
        bench.cells(1, 1)
        bench.tick(0)
        bench.system.advance_to(bench.start_s + 0.5)  # the machine stalled
        bench.tick(500)
        assert bench.levels() == [0.0, 0.0, 0.0]
        bench.tick(501)
        assert "watchdog_expired" in bench.faults()  # the guard trips
        bench.commands.enabled[:] = False
        bench.tick(502)
        bench.daq.disable()
        bench.daq.safe()  # the watchdog holds them off: that is no failure
        assert bench.levels() == [0.0, 0.0, 0.0]
        bench.daq.close()
    with SwitchBench() as bench:
        bench.start()
        bench.cells(1, 1)
        bench.tick(0)
        for dog in bench.daq._outputs.watchdogs._running.values():
            dog.stop()  # as when another program resets the device
        with pytest.raises(DeviceError) as lost:
            _tick_on(bench)
        assert "\n" not in str(lost.value)
        bench.daq.safe()
        assert bench.levels() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("cell", "level"), [(0, 1.0), (1, 1.0), (0, 0.0)])
def test_a_gate_that_stays_where_it_is_not_commanded_is_a_fault_of_its_cell(cell, level):
    with SwitchBench() as bench:
        bench.start()
        bench.cells(*(int(level == 0.0),) * 2)
        bench.ticks(5)
        assert bench.faults() == []
        bench.stuck[cell] = level
        bench.tick(5)  # one reading may be of a gate that switches
        assert bench.faults() == []
        bench.tick(6)
        assert bench.faults() == [f"{CELLS[cell].cell}_stuck"]
        assert bench.readings.cells_reported[cell] == level


def test_a_gate_that_switches_with_every_tick_is_no_fault():
    with SwitchBench() as bench:
        bench.start()
        for k in range(50):
            bench.cells(k % 2, 1 - k % 2)
            bench.tick(k)
            assert bench.faults() == []


def test_without_a_readback_a_cell_is_reported_as_its_line_was_written():
    with SwitchBench(gates=()) as bench:
        bench.start()
        bench.cells(1, 0)
        bench.tick(0)
        bench.tick(1)
        assert bench.readings.cells_reported.tolist() == [1, 0]


def test_the_self_test_lets_the_watchdog_expire_with_all_off_and_waits_until_wires_have_cooled():
    with SwitchBench(cools_s=1.5) as bench:
        bench.daq.open()
        bench.daq.enable()
        began_s = bench.system.now_s
        tested = bench.daq.self_test(print)
        assert tested[0] == "its watchdog expires within 0.075 s without the program"
        assert bench.system.now_s - began_s >= 0.075 + 1.5
        assert bench.levels() == [0.0, 0.0, 0.0]
        bench.daq.enable()
        bench.daq.arm()
        bench.start_s = bench.system.now_s
        bench.cells(1, 1)
        bench.tick(0)
        assert bench.levels() == [1.0, 1.0, 1.0]


def test_a_card_whose_watchdog_does_not_act_is_refused(monkeypatch):
    monkeypatch.setattr(watchdog.WatchdogRun, "reset", lambda run: setattr(run, "deadline_s", inf))
    with SwitchBench() as bench:
        bench.daq.open()
        bench.daq.enable()
        with pytest.raises(DeviceError, match=r"daq: the watchdog of Dev1 did not expire.*do not"):
            bench.daq.self_test(print)
        bench.daq.safe()
        assert bench.levels() == [0.0, 0.0, 0.0]


def test_a_card_without_a_watchdog_is_refused_before_anything_is_on():
    few = tuple(CellLine(line.cell, f"port0/line{i}", i) for i, line in enumerate(CELLS, start=2))
    bench = SwitchBench(product="PCIe-6251", gates=(), cells=few)
    with bench, pytest.raises(DeviceError, match="-200662"):
        bench.daq.open()


def test_safe_switches_the_cells_off_even_if_the_enable_line_cannot_be_written():
    with SwitchBench() as bench:
        bench.start()
        bench.cells(1, 1)
        bench.tick(0)
        bench.daq._outputs._lines.task.stop()
        with pytest.raises(DeviceError, match="cannot be switched off"):
            bench.daq.safe()
        assert bench.levels()[:2] == [0.0, 0.0]


def test_lines_that_cannot_be_set_low_are_low_by_the_watchdog_before_the_card_is_let_go():
    with SwitchBench() as bench:
        bench.start()
        bench.cells(1, 1)
        bench.tick(0)
        bench.daq._outputs._lines.task.stop()
        with pytest.raises(DeviceError, match=r"its watchdog does it within 0\.05 s"):
            bench.daq.safe()
        assert bench.levels() == [0.0, 0.0, 1.0]
        bench.daq.close()
        assert bench.levels() == [0.0, 0.0, 0.0]
