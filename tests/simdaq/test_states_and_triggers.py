"""NI's task states, triggers beyond edges, and functions that NI's tests of nidaqmx ask for."""

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    AcquisitionType,
    DigitalPatternCondition,
    LineGrouping,
    RegenerationMode,
    TaskMode,
    TriggerType,
    WindowTriggerCondition1,
)

from simdaq import Pulses, System, install
from simdaq.pytest_plugin import simdaq_card, simdaq_system  # noqa: F401
from simdaq.teds import Teds

LSB_V = 20.0 / 2**16


def code_of(action):
    with pytest.raises(nidaqmx.DaqError) as caught:
        action()
    return caught.value.error_code


def _timed_lines(Task):
    task = Task()
    task.do_channels.add_do_chan("Dev1/port0/line0")
    task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=4)
    return task


def test_a_stop_frees_what_a_write_has_reserved(system, Task):
    with _timed_lines(Task) as first, _timed_lines(Task) as second:
        first.write([True, False, True, False])
        assert code_of(lambda: second.write([True] * 4)) == -50103
        first.start()
        system.advance_to(0.01)
        first.stop()
        second.write([True] * 4)
        second.start()
        system.advance_to(0.02)
        second.stop()
        first.start()  # what was written is still there
        system.advance_to(0.03)
        first.stop()


def test_what_the_program_reserved_itself_stays_reserved_after_a_stop(system, Task):
    with _timed_lines(Task) as first, _timed_lines(Task) as second:
        first.write([True] * 4)
        first.control(TaskMode.TASK_RESERVE)
        first.start()
        system.advance_to(0.01)
        first.stop()
        assert code_of(second.start) == -50103


def test_a_start_that_fails_reserves_nothing(system, Task):
    with Task() as fails, Task() as other:
        for task in (fails, other):
            task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        fails.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=4)
        assert code_of(fails.start) == -200462  # nothing was written
        other.start()


def test_an_on_demand_task_is_done_at_once(Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.start()
        task.wait_until_done(0.0)
        assert task.is_task_done()


def test_inputs_and_outputs_share_a_port_on_different_lines(system, Task):
    system.feed("Dev1/port0/line6", 1.0)
    with Task() as drives, Task() as reads:
        drives.do_channels.add_do_chan("Dev1/port0/line0:3")
        reads.di_channels.add_di_chan("Dev1/port0/line4:7")
        drives.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=3)
        reads.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=3)
        drives.write([5, 10, 5])
        drives.start()
        reads.start()
        system.advance_to(0.01)
        assert reads.read(3) == [1 << 6] * 3


def test_a_window_trigger_starts_when_the_signal_enters(system, Task):
    system.feed("Dev1/ai0", lambda t_s: 100.0 * t_s)  # 1 V at 10 ms
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-10.0, max_val=10.0)
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=3)
        task.triggers.start_trigger.cfg_anlg_window_start_trig(
            2.0, 1.0, trigger_source="Dev1/ai0",
            trigger_when=WindowTriggerCondition1.ENTERING_WINDOW,
        )  # fmt: skip
        task.start()
        for k in range(1, 30):
            system.advance_to(1e-3 * k)
        # One sample period late at most.
        assert task.read(3)[0] == pytest.approx(1.05, abs=0.06)


def test_a_pattern_trigger_waits_for_its_lines(system, Task):
    system.feed("Dev1/port0/line0", Pulses(period_s=1.0, high_s=0.5, first_s=0.0102))
    system.feed("Dev1/port0/line1", 0.0)
    with Task() as task:
        task.di_channels.add_di_chan("Dev1/port0/line0:1")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=2)
        task.triggers.start_trigger.cfg_dig_pattern_start_trig(
            "Dev1/port0/line0:1", "01", DigitalPatternCondition.PATTERN_MATCHES
        )
        task.start()
        system.advance_to(0.0101)
        assert task.in_stream.avail_samp_per_chan == 0
        system.advance_to(0.02)
        assert task.read(2) == [1, 1]


def test_an_armed_counter_starts_at_its_edge(system, Task):
    system.feed("Dev1/PFI0", Pulses(period_s=9.0, high_s=0.1, first_s=0.02))
    with Task() as task:
        task.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=100.0)
        task.timing.cfg_implicit_timing(sample_mode=AcquisitionType.CONTINUOUS)
        arm = task.triggers.arm_start_trigger
        arm.trig_type = TriggerType.DIGITAL_EDGE
        arm.dig_edge_src = "/Dev1/PFI0"
        task.start()
        system.advance_to(0.019)
        assert system.output("Dev1/ctr0") == 0.0
        system.advance_to(0.021)
        assert system.output("Dev1/ctr0") == 1.0


def test_a_trigger_without_a_clock_is_refused(Task):
    """DAQmxErrors.TRIG_WHEN_ON_DEMAND_SAMP_TIMING."""
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.triggers.start_trigger.cfg_dig_edge_start_trig("PFI0")
        assert task.triggers.start_trigger.dig_edge_src == "/Dev1/PFI0"
        assert code_of(lambda: task.control(TaskMode.TASK_VERIFY)) == -200262


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("force", ["force0", "force1", "force2"]),
        ("force8", ["force8", "force9", "force10"]),
        ("force08", ["force08", "force09", "force10"]),
        ("a, b", ["a", "b0", "b1"]),
        ("a, b7", ["a", "b7", "b8"]),
        ("", ["Dev1/ai0", "Dev1/ai1", "Dev1/ai2"]),
    ],
)
def test_the_last_name_counts_up(Task, given, names):
    """NI's tests of nidaqmx, add_ai_chans_with_name."""
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0:2", name_to_assign_to_channel=given)
        assert task.channel_names == names


def test_a_generation_without_repetition_fills_the_cards_memory_first(Task):
    """PCIe-6363 data sheet: the onboard memory holds 8191 samples."""
    with Task() as task:
        task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        task.timing.cfg_samp_clk_timing(
            1000.0, source="/Dev1/PFI0", sample_mode=AcquisitionType.CONTINUOUS
        )
        task.out_stream.regen_mode = RegenerationMode.DONT_ALLOW_REGENERATION
        task.write(np.zeros(1000), auto_start=False)
        task.start()
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.write(np.zeros(20_000), timeout=0.0)
        assert (caught.value.error_code, caught.value.samps_per_chan_written) == (-200292, 8191)


@pytest.fixture
def powered():
    found = System("free")
    found.add("TS-15000", "TS1")
    found.add("TS-15200", "TS1Mod1", chassis="TS1")
    install(found)
    return found


def test_a_power_module_measures_its_set_points_while_it_is_on(powered):
    with nidaqmx.Task() as task:
        channel = task.ai_channels.add_ai_power_chan("TS1Mod1/power", 4.5, 1.5, True)
        task.start()
        found = task.read()
        assert (found.voltage, found.current) == pytest.approx((4.5, 1.5), abs=1e-3)
        channel.pwr_output_enable = False
        assert np.isnan(task.read().voltage)


def test_a_power_module_refuses_more_than_it_has(powered):
    with nidaqmx.Task() as task:
        task.ai_channels.add_ai_power_chan("TS1Mod1/power", 100.0, 1.0, True)
        assert code_of(task.start) == -200077


def test_calculated_power_is_voltage_times_current(system, Task):
    system.feed("Dev1/ai0", 4.0)
    system.feed("Dev1/ai1", 0.25)
    with Task() as task:
        task.ai_channels.add_ai_calculated_power_chan(
            "Dev1/ai0", "Dev1/ai1", ext_shunt_resistor_val=1.0, voltage_min_val=-10.0,
            voltage_max_val=10.0, current_min_val=-1.0, current_max_val=1.0,
        )  # fmt: skip
        assert task.read() == pytest.approx(1.0, abs=1e-3)


def test_the_basic_teds_has_its_fields_where_ieee_1451_4_puts_them():
    """14 bits manufacturer, 15 model, 5 letter, 6 version number, 24 serial number."""
    whole = 17 | (5 << 14) | (1 << 29) | (3 << 34) | (123456 << 40) | (30 << 66)
    found = Teds(whole.to_bytes(12, "little")).properties
    assert found["teds_mfg_id"] == 17
    assert found["teds_model_num"] == 5
    assert found["teds_version_letter"] == "A"
    assert found["teds_version_num"] == 3
    assert found["teds_serial_num"] == 123456
    assert found["teds_template_ids"] == [30]


def test_a_device_of_the_fixture_is_the_only_one(simdaq_card):  # noqa: F811
    system = simdaq_card("Dev7", "USB-6009")
    assert [d.name for d in nidaqmx.system.System.local().devices] == ["Dev7"]
    system.feed("Dev7/ai0", 1.25)
    with nidaqmx.Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev7/ai0", min_val=-5.0, max_val=5.0)
        assert task.read() == pytest.approx(1.25, abs=10.0 / 2**13)


def test_the_fixtures_cards_are_gone_in_the_next_test(simdaq_system):  # noqa: F811
    assert not list(nidaqmx.system.System.local().devices)


def test_a_whole_port_in_a_waveform_runs_from_its_highest_line(system, Task):
    """NI's tests of nidaqmx, read_waveform_lines_and_port."""
    system.feed("Dev1/port1/line7", 1.0)
    with Task() as task:
        task.di_channels.add_di_chan("Dev1/port1", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES)
        assert task.read_waveform(1).data.tolist() == [[1, 0, 0, 0, 0, 0, 0, 0]]
