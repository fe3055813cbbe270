"""Outputs, watchdogs and events, by library and by gRPC."""

import queue
import threading

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    AcquisitionType,
    Edge,
    Level,
    LineGrouping,
    RegenerationMode,
    TaskMode,
    WatchdogAOExpirState,
)
from nidaqmx.system.device import Device
from nidaqmx.types import AOExpirationState, COExpirationState, DOExpirationState
from nitypes.waveform import DigitalWaveform

from simdaq import Pulses, System

LSB_V = 20.0 / 2**16


def code_of(action):
    with pytest.raises(nidaqmx.DaqError) as caught:
        action()
    return caught.value.error_code


def test_a_voltage_goes_out_to_half_a_step_and_none_beyond_the_limits(system, Task):
    with Task() as task:
        task.ao_channels.add_ao_voltage_chan("Dev1/ao1", min_val=-5.0, max_val=5.0)
        task.write(1.2345)
        assert system.output("Dev1/ao1") == pytest.approx(1.2345, abs=LSB_V / 2)
        assert code_of(lambda: task.write(5.1)) == -200561
        assert system.output("Dev1/ao1") == pytest.approx(1.2345, abs=LSB_V / 2)


def test_a_buffer_repeats_and_every_sample_is_put_out_at_its_time(system, Task):
    changes = system.watch("Dev1/ao0").changes
    wave = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    with Task() as task:
        task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.write(wave)
        task.start()
        system.advance_to(0.0119)
    times, volts = np.array(changes).T
    assert times == pytest.approx(1e-3 * np.arange(12), abs=1e-12)
    assert volts == pytest.approx(wave[np.arange(12) % 5], abs=LSB_V / 2)


def test_what_repeats_is_replaced_from_the_write_position_on(system, Task):
    """NI-DAQmx Help, "Write.RelativeTo": by default the current write position."""
    changes = system.watch("Dev1/ao0").changes
    with Task() as task:
        task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.write([1.0, 2.0, 3.0, 4.0, 5.0])
        task.start()
        task.write([6.0, 7.0])
        task.write([8.0, 9.0, -1.0, -2.0])
        system.advance_to(0.0095)
    assert [volts for _, volts in changes[-5:]] == pytest.approx(
        [-2.0, 7.0, 8.0, 9.0, -1.0], abs=1e-3
    )


def test_a_finite_buffer_ends_and_the_last_value_stays(system, Task):
    with Task() as task:
        task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=3)
        task.write([1.0, 2.0, 3.0], auto_start=True)
        assert code_of(lambda: task.wait_until_done(timeout=0.0)) == -200560
        system.advance_to(0.1)
        task.wait_until_done(timeout=0.0)
    assert system.output("Dev1/ao0") == pytest.approx(3.0, abs=LSB_V / 2)


def test_without_regeneration_a_starved_generation_stops_with_an_error(system, Task):
    with Task() as task:
        task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.out_stream.regen_mode = RegenerationMode.DONT_ALLOW_REGENERATION
        task.write(np.linspace(0.0, 1.0, 10))
        task.start()
        system.advance_to(0.0055)
        task.write([2.0] * 5)  # in time
        system.advance_to(0.0145)
        assert not task.is_task_done()
        system.advance_to(0.05)
        assert code_of(lambda: task.write([3.0])) == -200290
    assert system.output("Dev1/ao0") == pytest.approx(2.0, abs=LSB_V / 2)


def test_lines_go_out_by_the_clock_of_the_inputs(system, Task):
    changes = system.watch("Dev1/port0/line0").changes
    with Task() as do, Task() as ai:
        ai.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        ai.timing.cfg_samp_clk_timing(100.0, sample_mode=AcquisitionType.CONTINUOUS)
        do.do_channels.add_do_chan(
            "Dev1/port0/line0:7", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES
        )
        do.timing.cfg_samp_clk_timing(
            100.0, "/Dev1/ai/SampleClock", sample_mode=AcquisitionType.CONTINUOUS
        )
        do.write([1, 0, 1, 1], auto_start=True)
        system.advance_to(1.0)
        assert not changes
        ai.start()
        system.advance_to(1.055)
    assert changes == [
        (pytest.approx(1.0 + 0.01 * k), level) for k, level in [(0, 1), (1, 0), (2, 1), (5, 0)]
    ]


def test_lines_are_read_as_a_word_and_one_by_one(system, Task):
    for line, level in enumerate([1.0, 0.0, 1.0, 1.0]):
        system.feed(f"Dev1/port0/line{line + 4}", level)
    with Task() as task:
        task.di_channels.add_di_chan("Dev1/port0/line4:7", line_grouping=LineGrouping.CHAN_PER_LINE)
        assert task.read() == [True, False, True, True]
    with Task() as task:
        task.di_channels.add_di_chan("Dev1/port0", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES)
        assert task.read() == 0b1101_0000


def test_a_change_of_a_line_is_a_sample(system, Task):
    system.feed("Dev1/port0/line0", Pulses(period_s=0.1, high_s=0.03, first_s=0.05))
    with Task() as task:
        task.di_channels.add_di_chan("Dev1/port0/line0")
        task.timing.cfg_change_detection_timing(
            rising_edge_chan="Dev1/port0/line0",
            falling_edge_chan="Dev1/port0/line0",
            sample_mode=AcquisitionType.CONTINUOUS,
        )
        task.start()
        system.advance_to(0.2)
        assert task.read(4) == [True, False, True, False]


def test_a_watchdog_that_nobody_resets_puts_outputs_into_their_safe_states(system, connect):
    Task, Watchdog, _ = connect(system)
    changes = system.watch("Dev1/port0/line0").changes
    with Task() as task, Watchdog("Dev1", timeout=0.1) as watchdog:
        task.do_channels.add_do_chan("Dev1/port0/line0")
        watchdog.cfg_watchdog_do_expir_states([DOExpirationState("Dev1/port0/line0", Level.LOW)])
        watchdog.start()
        task.write(True)
        for k in range(1, 10):
            system.advance_to(0.05 * k)
            watchdog.reset_timer()
        assert not watchdog.expired
        system.advance_to(1.0)
        assert watchdog.expired
        assert code_of(lambda: task.write(True)) == -200678
        watchdog.clear_expiration()
        task.write(True)
    assert changes == [
        (0.0, 1.0), (pytest.approx(0.45 + 0.1), 0.0), (pytest.approx(1.0), 1.0),
    ]  # fmt: skip


def test_a_watchdog_holds_lines_that_a_clock_drives(system, connect):
    Task, Watchdog, _ = connect(system)
    changes = system.watch("Dev1/port0/line0").changes
    with Task() as task, Watchdog("Dev1", timeout=0.025) as watchdog:
        task.do_channels.add_do_chan("Dev1/port0/line0")
        task.timing.cfg_samp_clk_timing(100.0, sample_mode=AcquisitionType.CONTINUOUS)
        watchdog.cfg_watchdog_do_expir_states([DOExpirationState("Dev1/port0/line0", Level.LOW)])
        task.write([False, False, True])
        task.start()
        watchdog.start()
        system.advance_to(0.5)
        assert watchdog.expired
    assert changes == [(pytest.approx(0.02), 1.0), (pytest.approx(0.025), 0.0)]


def test_cards_refuse_watchdogs_that_they_have_not(connect):
    system = System("held")
    system.add("USB-6001", "Dev1")
    system.add("PCIe-6363", "Dev2")
    Watchdog = connect(system).Watchdog
    assert code_of(lambda: Watchdog("Dev1", timeout=0.1)) == -200662
    assert code_of(lambda: Watchdog("Dev2", timeout=100.0)) == -200077
    with Watchdog("Dev2", timeout=0.1) as watchdog:  # of an X Series card: digital lines only
        state = AOExpirationState("Dev2/ao0", 0.0, WatchdogAOExpirState.VOLTAGE)
        assert code_of(lambda: watchdog.cfg_watchdog_ao_expir_states([state])) == -200662


@pytest.fixture
def chassis():
    """A chassis with a watchdog, a voltage output and lines in it."""
    found = System("held")
    found.add("cDAQ-9185", "cDAQ1")
    found.add("NI 9263", "cDAQ1Mod1", chassis="cDAQ1")
    found.add("NI 9401", "cDAQ1Mod2", chassis="cDAQ1")
    return found


def test_the_watchdog_of_a_module_is_its_chassis(chassis, connect):
    """As NI's own example has it: made on the chassis, states for channels of its modules."""
    Task, Watchdog, _ = connect(chassis)
    assert code_of(lambda: Watchdog("cDAQ1Mod2", timeout=0.1)) == -200662
    with Task() as line, Task() as volts, Watchdog("cDAQ1", timeout=0.1) as watchdog:
        line.do_channels.add_do_chan("cDAQ1Mod2/port0/line0")
        volts.ao_channels.add_ao_voltage_chan("cDAQ1Mod1/ao0")
        watchdog.cfg_watchdog_do_expir_states(
            [DOExpirationState("cDAQ1Mod2/port0/line0", Level.LOW)]
        )
        watchdog.cfg_watchdog_ao_expir_states(
            [AOExpirationState("cDAQ1Mod1/ao0", 1.5, WatchdogAOExpirState.VOLTAGE)]
        )
        watchdog.start()
        line.write(True)
        volts.write(4.0)
        chassis.advance_to(0.2)
        assert watchdog.expired
        found = [chassis.output("cDAQ1Mod2/port0/line0"), chassis.output("cDAQ1Mod1/ao0")]
    assert found == [0.0, pytest.approx(1.5, abs=LSB_V)]


def test_a_watchdog_holds_a_counter_that_made_pulses(chassis, connect):
    Task, Watchdog, _ = connect(chassis)
    with Task() as pulses, Watchdog("cDAQ1", timeout=0.1) as watchdog:
        pulses.co_channels.add_co_pulse_chan_freq("cDAQ1Mod2/ctr0", freq=100.0)
        pulses.timing.cfg_implicit_timing(sample_mode=AcquisitionType.CONTINUOUS)
        watchdog.cfg_watchdog_co_expir_states([COExpirationState("cDAQ1Mod2/ctr0", Level.HIGH)])
        watchdog.start()
        pulses.start()
        for t_s in (0.101, 0.2):
            chassis.advance_to(t_s)
            assert chassis.output("cDAQ1Mod2/ctr0") == 1.0
        pulses.stop()
        assert chassis.output("cDAQ1Mod2/ctr0") == 1.0


def test_a_chassis_whose_watchdog_has_expired_does_nothing_until_it_is_reset(chassis, connect):
    """NI, cDAQ-9185/9189 User Manual, "Watchdog Timer"."""
    Task, Watchdog, keywords = connect(chassis)
    with Watchdog("cDAQ1", timeout=0.1) as watchdog:
        watchdog.start()
        chassis.advance_to(0.2)
        assert code_of(watchdog.clear_expiration) == -201478
    with Task() as line, Watchdog("cDAQ1", timeout=0.1) as watchdog:
        line.do_channels.add_do_chan("cDAQ1Mod2/port0/line0")
        assert code_of(lambda: line.write(True)) == -201478
        assert code_of(watchdog.start) == -201478
        Device("cDAQ1", **keywords).reset_device()
        watchdog.start()
        line.write(True)


def test_the_watchdog_of_a_chassis_starts_before_any_other_of_its_tasks(chassis, connect):
    Task, Watchdog, _ = connect(chassis)
    with Task() as line, Watchdog("cDAQ1", timeout=0.1) as watchdog:
        line.do_channels.add_do_chan("cDAQ1Mod2/port0/line0")
        line.start()
        assert code_of(watchdog.start) == -201477
        line.stop()
        watchdog.start()
        line.start()


def test_a_write_to_a_task_that_runs_changes_no_state_and_one_to_another_starts_and_stops_it(
    system, Task
):
    """NI-DAQmx Help, "Explicit Versus Implicit State Transitions"."""
    with Task() as line:
        line.do_channels.add_do_chan("Dev1/port0/line0")
        line.control(TaskMode.TASK_VERIFY)
        before = system.n_transitions
        line.write(True)
        # reserved, committed, running, committed, verified
        assert system.n_transitions - before == 5
        line.start()
        before = system.n_transitions
        line.write(False)
        assert system.n_transitions == before


def test_every_n_samples_calls_back_at_the_very_sample_and_done_at_the_end(system, Task):
    seen, done = queue.SimpleQueue(), threading.Event()
    system.feed("Dev1/ai0", lambda t_s: t_s)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-10.0, max_val=10.0)
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=100)

        def every(handle, what, n, data):
            seen.put((n, np.mean(task.read(n, timeout=0.0))))
            return 0

        def finished(handle, status, data):
            done.set()
            return 0

        task.register_every_n_samples_acquired_into_buffer_event(25, every)
        task.register_done_event(finished)
        task.start()
        system.advance_to(0.2)
        assert done.wait(300.0)  # over gRPC events come by a stream
        found = [seen.get(timeout=300.0) for _ in range(4)]
        task.register_every_n_samples_acquired_into_buffer_event(25, None)
        task.register_done_event(None)
    expected = [0.012, 0.037, 0.062, 0.087]
    assert [n for n, _ in found] == [25] * 4
    assert [mean for _, mean in found] == pytest.approx(expected, abs=LSB_V)


def test_a_start_trigger_is_waited_for(system, Task):
    system.feed("Dev1/PFI0", Pulses(period_s=1.0, high_s=0.1, first_s=0.3))
    system.feed("Dev1/ai0", lambda t_s: t_s)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(100.0, samps_per_chan=5)
        task.triggers.start_trigger.cfg_dig_edge_start_trig("/Dev1/PFI0", Edge.FALLING)
        task.start()
        system.advance_to(0.35)
        assert task.in_stream.avail_samp_per_chan == 0
        system.advance_to(0.5)
        read_s = task.read(5)
    assert read_s == pytest.approx(0.4 + 0.01 * np.arange(5), abs=LSB_V)


@pytest.mark.parametrize("step_s", [1e-4, 0.02, 0.5])
def test_an_analogue_edge_starts_however_the_time_is_stepped(system, Task, step_s):
    """sin(2 pi t) rises through 0.5 at 1/12 s."""
    system.feed("Dev1/ai0", lambda t_s: np.sin(2.0 * np.pi * t_s))
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-2.0, max_val=2.0)
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=10)
        task.triggers.start_trigger.cfg_anlg_edge_start_trig("Dev1/ai0", trigger_level=0.5)
        task.start()
        for k in range(1, round(0.5 / step_s) + 1):
            system.advance_to(k * step_s)
        first_V = task.read(10)[0]
    crossed_s = 1.0 / 12.0  # found at most one sample period late
    late_V = np.sin(2.0 * np.pi * (crossed_s + 1e-3))
    assert 0.5 - LSB_V <= first_V <= late_V + LSB_V


def test_a_pause_trigger_leaves_out_the_samples_while_it_is_active(system, Task):
    # High from 2.5 to 5.5 ms of every 10 ms: the samples at 3, 4 and 5 ms fall out.
    system.feed("Dev1/PFI0", Pulses(period_s=0.01, high_s=0.003, first_s=0.0025))
    system.feed("Dev1/ai0", lambda t_s: 1e3 * t_s)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-10.0, max_val=10.0)
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=5)
        pause = task.triggers.pause_trigger
        pause.trig_type = nidaqmx.constants.TriggerType.DIGITAL_LEVEL
        pause.dig_lvl_src = "PFI0"
        pause.dig_lvl_when = nidaqmx.constants.Level.HIGH
        assert pause.dig_lvl_src == "/Dev1/PFI0"
        task.start()
        system.advance_to(0.02)
        assert task.read(5) == pytest.approx([0.0, 1.0, 2.0, 6.0, 7.0], abs=LSB_V)


def test_a_retriggerable_start_takes_a_record_at_every_trigger(system, Task):
    system.feed("Dev1/PFI0", Pulses(period_s=0.1, high_s=0.05, first_s=0.1))
    system.feed("Dev1/ai0", lambda t_s: t_s)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=3)
        task.triggers.start_trigger.cfg_dig_edge_start_trig("/Dev1/PFI0")
        task.triggers.start_trigger.retriggerable = True
        task.start()
        system.advance_to(0.35)
        read_s = task.read(9)
    expected = [0.1, 0.101, 0.102, 0.2, 0.201, 0.202, 0.3, 0.301, 0.302]
    assert read_s == pytest.approx(expected, abs=LSB_V)


def test_a_reference_trigger_keeps_samples_from_before_it(system, Task):
    system.feed("Dev1/PFI8", Pulses(period_s=9.0, high_s=0.5, first_s=0.2505))
    system.feed("Dev1/ai0", lambda t_s: t_s)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=20)
        task.triggers.reference_trigger.cfg_dig_edge_ref_trig("/Dev1/PFI8", pretrigger_samples=15)
        task.start()
        system.advance_to(0.2)
        assert code_of(lambda: task.read(20, timeout=0.0)) == -200284
        system.advance_to(0.3)
        read_s = task.read(20)
    # The first sample after the trigger is at 0.251 s; fifteen lie before it.
    assert read_s == pytest.approx(0.251 + 1e-3 * np.arange(-15, 5), abs=LSB_V)


def test_a_waveform_knows_its_time_and_its_name(system, Task):
    system.feed("Dev1/ai2", 1.5)
    system.advance_to(10.0)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai2", "pressure")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=50)
        task.start()
        system.advance_to(11.0)
        waveform = task.read_waveform(50)
    assert waveform.scaled_data == pytest.approx([1.5] * 50, abs=LSB_V / 2)
    assert waveform.channel_name == "pressure"
    assert waveform.timing.sample_interval.total_seconds() == pytest.approx(1e-3)
    start = waveform.timing.start_time  # the system's time 0 is that of Unix
    assert (start.year, start.hour, start.minute, start.second) == (1970, 0, 0, 10)


def test_lines_of_a_waveform_have_their_names_and_levels(system, Task):
    """Columns are the lines in the channel's order; nitypes counts signals from the last column."""
    for line, level in enumerate([1.0, 0.0, 0.0, 1.0]):
        system.feed(f"Dev1/port0/line{line}", level)
    with Task() as task:
        task.di_channels.add_di_chan(
            "Dev1/port0/line0:3", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES
        )
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=3)
        task.start()
        system.advance_to(0.01)
        waveform = task.read_waveform(3)
    names = [signal.name for signal in waveform.signals]
    assert names == [f"Dev1/port0/line{i}" for i in (3, 2, 1, 0)]
    assert [list(signal.data) for signal in waveform.signals] == [
        [1] * 3,
        [0] * 3,
        [0] * 3,
        [1] * 3,
    ]


def test_a_waveform_of_lines_goes_out_line_by_line(system, Task):
    waveform = DigitalWaveform(1, 4)
    waveform.data[0] = [0, 1, 1, 1]
    with Task() as task:
        task.do_channels.add_do_chan(
            "Dev1/port0/line0:3", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES
        )
        task.write(waveform, auto_start=True)
    assert [system.output(f"Dev1/port0/line{i}") for i in range(4)] == [0.0, 1.0, 1.0, 1.0]
