"""What the driver switches: enable lines, actuators' outputs, and the watchdog behind them."""

from dataclasses import replace

import numpy as np
import pytest
from nidaqmx import DaqError, Task

from hil.devices.nidaq.channels import AnalogOutput
from hil.errors import DeviceError

from .cards import ESTOP, FORCE, HIP, PERIOD_S, SUPPLY, Bench, plan

MOTOR = AnalogOutput("motor", "ao0", units_per_V=0.5, range_V=10.0)
VALVE = AnalogOutput("valve", "ao1", units_per_V=1.0, range_V=10.0, rest=2.0)


def test_an_enable_line_is_high_from_before_the_start_until_a_trip_and_low_at_the_end():
    with Bench(plan(lines=(SUPPLY,)), ai0=1.0) as bench:
        bench.daq.open()
        levels = [bench.level("port0/line1")]

        def noted(action, *words):
            action(*words)
            levels.append(bench.level("port0/line1"))

        noted(bench.daq.arm)
        noted(bench.daq.enable)
        bench.start_s = bench.system.now_s
        noted(bench.tick, 0)
        bench.commands.enabled[:] = False  # as the guard does when it trips
        noted(bench.tick, 1)
        bench.commands.enabled[:] = True  # armed again: it goes high in its turn, after the supply
        noted(bench.tick, 2)
        noted(bench.daq.enable)
        noted(bench.tick, 3)
        assert bench.column("daq_line_bits") == 1
        noted(bench.daq.disable)
        noted(bench.daq.enable)
        noted(bench.daq.safe)
    assert levels == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("kind", ["block", "on_demand"])
def test_a_tick_changes_the_state_of_no_task(kind):
    """NI: reserve, commit and start once, before the loop; a write is then a write."""
    asked = plan(FORCE, HIP, kind=kind, lines=(ESTOP, SUPPLY), outputs=(MOTOR,))
    with Bench(asked, ai0=1.0, port0_line0=1.0, ctr0=0.0) as bench:
        bench.start().tick(0)
        before = bench.system.n_transitions
        for k in range(1, 50):
            bench.commands.outputs[:] = 0.1 * k % 3.0
            bench.commands.enabled[:] = k != 20  # a trip, which is a write as well
            bench.tick(k)
        assert bench.system.n_transitions == before


@pytest.mark.parametrize("add", [
    lambda task: task.do_channels.add_do_chan("Dev1/port0/line1"),
    lambda task: task.di_channels.add_di_chan("Dev1/port0/line0"),
    lambda task: task.ao_channels.add_ao_voltage_chan("Dev1/ao0"),
], ids=["enable line", "e-stop line", "actuator"])  # fmt: skip
def test_another_program_cannot_take_a_terminal_between_two_ticks(add):
    asked = plan(lines=(ESTOP, SUPPLY), outputs=(MOTOR,))
    with Bench(asked, ai0=1.0, port0_line0=1.0) as bench, Task("another program") as other:
        add(other)
        bench.start().ticks(3)
        with pytest.raises(DaqError) as refused:
            other.start()
        assert refused.value.error_code == -50103
        bench.tick(3)
        assert bench.level("port0/line1") == 1.0
        bench.daq.safe()
        bench.daq.close()
        other.start()


def test_a_line_that_another_program_holds_is_refused_before_it_goes_high():
    with Bench(plan(lines=(SUPPLY,)), ai0=1.0) as bench, Task("another program") as other:
        other.do_channels.add_do_chan("Dev1/port0/line1")
        other.start()
        bench.daq.open()
        with pytest.raises(DeviceError, match=r"held by another task or program.*-50103"):
            bench.daq.enable()
        assert bench.level("port0/line1") == 0.0


def test_what_an_enable_line_feeds_has_its_time_to_come_up_while_the_watchdog_is_fed():
    asked = plan(lines=(SUPPLY,), watchdog_s=0.01, enable_settle_s=0.2)
    with Bench(asked, ai0=1.0) as bench:
        bench.daq.open()
        bench.daq.enable()
        high_s = bench.system.now_s
        assert not bench.daq.ready()
        bench.daq.wait()
        assert bench.daq.ready()
        assert bench.system.now_s - high_s == pytest.approx(0.2)
        assert bench.level("port0/line1") == 1.0


def test_within_a_run_the_time_to_come_up_goes_by_ticks():
    with Bench(plan(lines=(SUPPLY,), enable_settle_s=0.003), ai0=1.0) as bench:
        bench.start().tick(0)
        bench.commands.enabled[:] = False
        bench.tick(1)
        bench.commands.enabled[:] = True
        bench.daq.enable()
        ready = []
        for k in (2, 3, 4, 5):
            bench.tick(k)
            bench.daq.enable()
            ready.append(bench.daq.ready())
    assert ready == [False, False, True, True]  # 3 ms after tick 1


def test_a_host_that_dies_before_the_boards_are_armed_leaves_the_line_to_the_watchdog():
    asked = plan(lines=(SUPPLY,), watchdog_s=0.05, enable_settle_s=0.2)
    with Bench(asked, ai0=1.0) as bench:
        bench.daq.open()
        bench.daq.enable()
        died_s = bench.system.now_s
        bench.system.advance_to(died_s + 0.049)
        assert bench.level("port0/line1") == 1.0
        bench.system.advance_to(died_s + 0.051)
        assert bench.level("port0/line1") == 0.0


def test_after_the_proof_the_line_is_low_and_nothing_has_to_be_fed():
    with Bench(plan(lines=(SUPPLY,), watchdog_s=0.05), ai0=1.0) as bench:
        bench.daq.open()
        bench.daq.enable()
        (tested,) = bench.daq.self_test(print)
        assert tested == "supply high during the boards' self-test, then low"
        assert bench.level("port0/line1") == 0.0
        bench.system.advance_to(bench.system.now_s + 1.0)
        bench.daq.enable()
        assert bench.level("port0/line1") == 1.0
        said = [r.text for r in bench.daq.messages()]
        assert sum("watchdog" in text for text in said) == 1  # that it is there, not that it acted


def test_outputs_take_the_nearest_of_sixteen_bits_and_stay_in_their_range():
    with Bench(plan(outputs=(MOTOR, VALVE)), ai0=1.0) as bench:
        bench.start()
        assert [bench.level("ao0"), bench.level("ao1")] == pytest.approx([0.0, 2.0], abs=2e-4)
        for k, value in enumerate((0.0, 1.2345, -4.9999, 7.0, -7.0)):
            bench.commands.outputs[:] = value, -value
            bench.tick(k)
            step_V = 20.0 / 2**16
            for found, wished in ((bench.level("ao0"), value / 0.5), (bench.level("ao1"), -value)):
                assert abs(found - np.clip(wished, -10.0, 10.0)) <= step_V
        bench.daq.safe()
        assert [bench.level("ao0"), bench.level("ao1")] == pytest.approx([0.0, 2.0], abs=2e-4)


def test_safe_and_close_may_be_called_at_any_time_and_any_number_of_times():
    bench = Bench(plan(lines=(SUPPLY,), outputs=(MOTOR,)), ai0=1.0)
    bench.daq.safe()
    bench.daq.close()
    bench.start().tick(0)
    for _ in range(3):
        bench.daq.safe()
    for _ in range(3):
        bench.daq.close()
    assert bench.level("port0/line1") == 0.0


def test_the_watchdog_switches_off_when_the_program_falls_silent():
    with Bench(plan(lines=(SUPPLY,), watchdog_s=0.05), ai0=1.0) as bench:
        bench.start()
        said = [r.text for r in bench.daq.messages()]
        assert any("watchdog: enable lines low after 0.05 s" in text for text in said)
        bench.ticks(200)  # four times as long as it waits: it is fed
        assert bench.level("port0/line1") == 1.0
        end_s = bench.start_s + 199 * PERIOD_S
        bench.system.advance_to(end_s + 0.036)  # last fed at most a quarter of its time before
        assert bench.level("port0/line1") == 1.0
        bench.system.advance_to(end_s + 0.051)
        assert bench.level("port0/line1") == 0.0


def test_a_run_after_the_watchdog_has_expired_says_so_and_goes_on():
    with Bench(plan(lines=(SUPPLY,), watchdog_s=0.05), ai0=1.0) as bench:
        bench.start().ticks(5)
        bench.system.advance_to(bench.start_s + 1.0)
        bench.tick(1000)
        bench.tick(1001)
        assert bench.faults() == ["watchdog_expired"]
        bench.daq.close()
        bench.start().tick(0)
        assert bench.level("port0/line1") == 1.0


def test_a_card_without_a_watchdog_says_it_plainly():
    with Bench(plan(lines=(SUPPLY,)), product="PCIe-6251", ai0=1.0) as bench:
        bench.start()
        message = next(r for r in bench.daq.messages() if "watchdog" in r.text)
    assert message.level == "warning"
    assert "no watchdog, outputs stay as they are if the program is killed" in message.text
    assert "-200662" in message.text


def test_what_the_watchdog_does_not_cover_is_said():
    """X Series watchdogs hold digital lines only."""
    with Bench(plan(lines=(SUPPLY,), outputs=(MOTOR,)), ai0=1.0) as bench:
        bench.start()
        texts = [r.text for r in bench.daq.messages()]
    assert any("does not cover analogue outputs" in text for text in texts)
    assert any("watchdog: enable lines low" in text for text in texts)


def test_a_watchdog_that_is_required_and_not_there_is_refused_with_all_off():
    asked = plan(lines=(SUPPLY,), watchdog="required")
    with Bench(asked, product="PCIe-6251", ai0=1.0) as bench:
        with pytest.raises(DeviceError, match=r"no watchdog.*-200662"):
            bench.start()
        assert bench.level("port0/line1") == 0.0


def test_an_estop_that_opens_is_a_fault_at_the_next_tick():
    with Bench(plan(lines=(ESTOP, SUPPLY)), ai0=1.0, port0_line0=1.0) as bench:
        bench.start().ticks(3)
        assert bench.column("daq_line_bits") == 0b11
        assert bench.faults() == []
        bench.feed("port0/line0", 0.0)
        bench.tick(3)
        assert bench.faults() == ["estop_open"]
        assert bench.bits("daq_fault_bits") & 1


def test_an_open_estop_refuses_to_arm():
    with Bench(plan(lines=(ESTOP, SUPPLY)), ai0=1.0, port0_line0=0.0) as bench:
        with pytest.raises(DeviceError, match="e-stop loop 'loop' on port0/line0 is open"):
            bench.start()
        assert bench.level("port0/line1") == 0.0


def test_a_card_that_is_unplugged_in_mid_run_is_one_line_and_all_tasks_go():
    asked = replace(plan(lines=(SUPPLY,)), inputs=(FORCE,))
    with Bench(asked, ai0=1.0) as bench:
        bench.start().ticks(5)
        bench.system.unplug("Dev1")
        with pytest.raises(DeviceError, match=r"daq: .*(unplugged|cable).*-201003"):
            bench.tick(5)
        with pytest.raises(DeviceError, match="cannot be switched off"):
            bench.daq.safe()
        bench.daq.close()
        bench.system.plug("Dev1")
        bench.start().tick(0)
        assert bench.readings.valid[0]
