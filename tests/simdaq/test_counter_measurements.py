"""What counters measure, count and make, against NI's X Series User Manual."""

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    AcquisitionType,
    CountDirection,
    CounterFrequencyMethod,
    Edge,
    Level,
    TaskMode,
    TriggerType,
)
from nidaqmx.stream_readers import CounterReader
from nidaqmx.stream_writers import CounterWriter

from simdaq import EdgeList, Pulses, System

CONTINUOUS = AcquisitionType.CONTINUOUS


@pytest.fixture
def free():
    """Time passes while a call waits."""
    found = System("free")
    found.add("PCIe-6363", "Dev1")
    return found


@pytest.mark.parametrize("hz", [1234.5, 7e6])
def test_the_error_of_a_frequency_follows_from_its_method(free, connect, hz):
    """One counter: a tick in a period. High frequency: a count in the measurement time. Large
    range: a tick in as many periods as the divisor. (Table "Frequency Measurement Methods")
    """
    Task = connect(free).Task
    free.feed("Dev1/PFI9", Pulses(1.0 / hz, 0.5 / hz))
    tick, time_s, divisor = 1e-8 * hz, 0.1, 4
    bounds = {
        CounterFrequencyMethod.LOW_FREQUENCY_1_COUNTER: tick / (1.0 - tick),
        CounterFrequencyMethod.HIGH_FREQUENCY_2_COUNTERS: 1.0 / (hz * time_s),
        CounterFrequencyMethod.LARGE_RANGE_2_COUNTERS: tick / divisor / (1.0 - tick / divisor),
    }
    for method, bound in bounds.items():
        with Task() as task:
            channel = task.ci_channels.add_ci_freq_chan(
                "Dev1/ctr0",
                min_val=2.0,
                max_val=1e7,
                meas_method=method,
                meas_time=time_s,
                divisor=divisor,
            )
            channel.ci_freq_term = "/Dev1/PFI9"
            before_s = free.now_s
            assert abs(task.read(timeout=5.0) / hz - 1.0) <= bound * (1.0 + 1e-9)
            if method is CounterFrequencyMethod.HIGH_FREQUENCY_2_COUNTERS:
                assert free.now_s - before_s == pytest.approx(time_s, abs=2e-3)


def test_a_method_with_two_counters_takes_the_other_one_of_the_pair(system, Task):
    with Task() as measures, Task() as counts:
        measures.ci_channels.add_ci_freq_chan(
            "Dev1/ctr0", meas_method=CounterFrequencyMethod.HIGH_FREQUENCY_2_COUNTERS
        )
        counts.ci_channels.add_ci_count_edges_chan("Dev1/ctr1")
        counts.start()
        with pytest.raises(nidaqmx.DaqError) as caught:
            measures.start()
    assert caught.value.error_code == -50103


def test_sample_clocks_average_the_periods_between_them(system, Task):
    """Periods of 9 and 11 ms in turn, sampled after each tenth one of 9 ms: the mean is 10 ms."""
    rising = np.cumsum(np.tile([0.009, 0.011], 200))
    system.feed("Dev1/PFI9", EdgeList(rising, rising + 0.003))
    system.feed("Dev1/PFI0", Pulses(period_s=0.2, high_s=0.1, first_s=0.21))
    for averages, expected in ((True, [100.0] * 4), (False, [1.0 / 0.009] * 4)):
        with Task() as task:
            channel = task.ci_channels.add_ci_freq_chan("Dev1/ctr0", min_val=2.0, max_val=1000.0)
            channel.ci_freq_enable_averaging = averages
            task.timing.cfg_samp_clk_timing(1000.0, "/Dev1/PFI0", samps_per_chan=5)
            task.start()
            system.advance_to(system.now_s + 1.05)
            assert task.read(5)[1:] == pytest.approx(expected, rel=1e-5)


def test_a_recorded_signal_is_measured_edge_by_edge(system, Task):
    system.feed("Dev1/PFI9", EdgeList([0.01, 0.03, 0.07], [0.012, 0.045, 0.0701]))
    expected = {
        "add_ci_period_chan": [0.02, 0.04],
        "add_ci_pulse_width_chan": [0.002, 0.015, 0.0001],
        "add_ci_semi_period_chan": [0.002, 0.018, 0.015, 0.025, 0.0001],
    }
    with Task() as a, Task() as b, Task() as c:
        for i, (task, add) in enumerate(zip((a, b, c), expected, strict=True)):
            getattr(task.ci_channels, add)(f"Dev1/ctr{i}", min_val=1e-6, max_val=1.0)
            stem = add.removeprefix("add_").removesuffix("_chan")
            setattr(task.ci_channels.all, f"{stem}_term", "/Dev1/PFI9")
            task.timing.cfg_implicit_timing(sample_mode=CONTINUOUS)
            task.start()
        system.advance_to(0.1)
        for task, values in zip((a, b, c), expected.values(), strict=True):
            assert task.read(-1) == pytest.approx(values, abs=2e-8)


def test_a_divided_period_is_that_of_whole_groups_since_the_start(system, Task):
    """Two periods each: 10 + 20 ms and 30 + 40 ms; the group that is open does not count."""
    rising = np.cumsum([0.01, 0.01, 0.02, 0.03, 0.04, 0.05])
    system.feed("Dev1/PFI8", EdgeList(rising, rising + 0.001))
    with Task() as task:
        task.ci_channels.add_ci_period_chan(
            "Dev1/ctr0", min_val=1e-4, max_val=1.0, divisor=2,
            meas_method=CounterFrequencyMethod.LARGE_RANGE_2_COUNTERS,
        )  # fmt: skip
        task.start()
        system.advance_to(1.0)
        assert task.read() == pytest.approx(0.035, abs=1e-8)


def test_two_edges_are_apart_by_the_delay_between_both_signals(system, Task):
    """By default AUX starts and GATE stops: PFI 10 and PFI 9 of counter 0."""
    system.feed("Dev1/PFI10", Pulses(period_s=0.1, high_s=0.01, first_s=0.02))
    system.feed("Dev1/PFI9", Pulses(period_s=0.1, high_s=0.01, first_s=0.0234))
    with Task() as task:
        task.ci_channels.add_ci_two_edge_sep_chan(
            "Dev1/ctr0", min_val=1e-6, max_val=1.0, second_edge=Edge.RISING
        )
        task.timing.cfg_implicit_timing(samps_per_chan=4)
        task.start()
        system.advance_to(0.5)
        assert task.read(4) == pytest.approx([0.0034] * 4, abs=2e-8)


def test_more_first_edges_and_a_second_edge_without_one_count_for_nothing(system, Task):
    """NI "X Series User Manual": "The counter ignores additional edges on the Aux input"."""
    system.feed("Dev1/PFI10", EdgeList([0.02, 0.03, 0.06], [0.021, 0.031, 0.061]))
    system.feed("Dev1/PFI9", EdgeList([0.01, 0.05, 0.055, 0.09], [0.011, 0.051, 0.056, 0.091]))
    with Task() as task:
        task.ci_channels.add_ci_two_edge_sep_chan(
            "Dev1/ctr0", min_val=1e-6, max_val=1.0, second_edge=Edge.RISING
        )
        task.timing.cfg_implicit_timing(sample_mode=CONTINUOUS)
        task.start()
        system.advance_to(0.1)
        assert task.read(-1) == pytest.approx([0.03, 0.03], abs=2e-8)


def test_a_pause_trigger_leaves_edges_out_while_it_is_active(system, Task):
    """1 kHz under a gate that is high for 60 ms of 200: 300 edges of 1000, or the other 700."""
    system.feed("Dev1/PFI8", Pulses(1e-3, 0.5e-3, first_s=0.5e-3))
    system.feed("Dev1/PFI9", Pulses(0.2, 0.06, first_s=0.1))
    for pauses, expected in ((Level.LOW, 300), (Level.HIGH, 700)):
        with Task() as task:
            channel = task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0")
            pause = task.triggers.pause_trigger
            pause.trig_type = TriggerType.DIGITAL_LEVEL
            pause.dig_lvl_src, pause.dig_lvl_when = "/Dev1/PFI9", pauses
            task.start()
            system.advance_to(system.now_s + 1.0)
            assert task.read() == expected == channel.ci_count


def test_a_line_of_the_card_pauses_a_count_when_the_program_writes_it(system, Task):
    system.feed("Dev1/PFI8", Pulses(1e-3, 0.5e-3, first_s=0.5e-3))
    with Task() as task, Task() as line:
        task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0")
        pause = task.triggers.pause_trigger
        pause.trig_type = TriggerType.DIGITAL_LEVEL
        pause.dig_lvl_src, pause.dig_lvl_when = "/Dev1/PFI9", Level.HIGH
        line.do_channels.add_do_chan("Dev1/port0/line0")
        system.feed("Dev1/PFI9", lambda t_s: system.output("Dev1/port0/line0") + 0.0 * t_s)
        task.start()
        for k, level in enumerate((True, False), start=1):
            line.write(level)
            system.advance_to(0.1 * k)
        assert task.read() == 100


def test_a_line_controls_the_direction_of_a_count(system, Task):
    """High counts up: 60 edges up and 40 down from 1000."""
    system.feed("Dev1/PFI8", Pulses(1e-3, 0.5e-3, first_s=0.5e-3))
    system.feed("Dev1/PFI10", Pulses(0.1, 0.06))
    with Task() as task:
        task.ci_channels.add_ci_count_edges_chan(
            "Dev1/ctr0", initial_count=1000, count_direction=CountDirection.EXTERNAL_SOURCE
        )
        task.start()
        system.advance_to(0.1)
        assert task.read() == 1000 + 60 - 40


def test_the_count_before_the_start_is_the_initial_one(system, Task):
    with Task() as task:
        channel = task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0", initial_count=10)
        assert channel.ci_count == 10


def test_an_arm_start_trigger_begins_a_count_that_is_read_on_demand(system, Task):
    system.feed("Dev1/PFI8", Pulses(1e-3, 0.5e-3, first_s=0.5e-3))
    system.feed("Dev1/PFI0", Pulses(9.0, 0.1, first_s=0.25))
    with Task() as task:
        task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0")
        arm = task.triggers.arm_start_trigger
        arm.trig_type, arm.dig_edge_src = TriggerType.DIGITAL_EDGE, "/Dev1/PFI0"
        arm.dig_edge_edge = Edge.RISING
        task.start()
        system.advance_to(1.0)
        assert task.read() == 750


def test_encoder_and_direction_inputs_have_the_default_pins(system, Task):
    with Task() as task:
        channel = task.ci_channels.add_ci_ang_encoder_chan("Dev1/ctr0")
        found = [channel.ci_encoder_a_input_term, channel.ci_encoder_b_input_term,
                 channel.ci_encoder_z_input_term]  # fmt: skip
    assert found == ["/Dev1/PFI8", "/Dev1/PFI10", "/Dev1/PFI9"]


def test_a_simple_usb_card_counts_falling_edges_of_its_one_pin(connect):
    system = System("held")
    system.add("USB-6009", "Dev1")
    system.feed("Dev1/PFI0", Pulses(0.01, 0.005))
    with connect(system).Task() as task:
        task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0", edge=Edge.FALLING)
        task.start()
        system.advance_to(1.0)
        assert task.read() == 100


# Pulses


def _edges(system, counter="Dev1/ctr0"):
    """Times of the rising and the falling edges so far."""
    card = system.cards["Dev1"].pulse_output(counter.rpartition("/")[2]).edges
    return [
        card.time(np.arange(float(card.count(system.now_s, rising=r))), rising=r)
        for r in (True, False)
    ]


def test_other_pulses_begin_when_the_present_one_has_ended(system, Task):
    """Source: NI-DAQmx Help, "Changing Pulse Width or Frequency during a Generation"."""
    with Task() as task:
        channel = task.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=100.0, duty_cycle=0.25)
        task.timing.cfg_implicit_timing(sample_mode=CONTINUOUS)
        task.start()
        system.advance_to(0.0134)
        channel.co_pulse_duty_cyc = 0.5
        system.advance_to(0.0399)
        rising, falling = _edges(system)
    assert rising == pytest.approx([0.0, 0.01, 0.02, 0.03], abs=1e-9)
    assert falling == pytest.approx([0.0025, 0.0125, 0.025, 0.035], abs=1e-9)


def test_a_pulse_that_cannot_be_made_is_refused_while_others_go_out(system, Task):
    with Task() as task:
        channel = task.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=100.0)
        task.timing.cfg_implicit_timing(sample_mode=CONTINUOUS)
        task.start()
        for key, value in (("co_pulse_duty_cyc", 1.5), ("co_pulse_freq", 0.0)):
            with pytest.raises(nidaqmx.DaqError) as caught:
                setattr(channel, key, value)
            assert caught.value.error_code == -200077
        assert channel.co_pulse_freq == pytest.approx(100.0)


def test_a_retriggerable_task_makes_its_pulses_at_every_trigger_that_finds_it_idle(system, Task):
    system.feed("Dev1/PFI0", EdgeList([0.1, 0.13, 0.2, 0.3], [0.11, 0.14, 0.21, 0.31]))
    with Task() as task, Task() as counts:
        task.co_channels.add_co_pulse_chan_time(
            "Dev1/ctr0", initial_delay=0.005, low_time=0.01, high_time=0.01
        )
        task.timing.cfg_implicit_timing(samps_per_chan=2)
        task.triggers.start_trigger.cfg_dig_edge_start_trig("/Dev1/PFI0")
        task.triggers.start_trigger.retriggerable = True
        counts.ci_channels.add_ci_count_edges_chan("Dev1/ctr1")
        counts.ci_channels.all.ci_count_edges_term = "/Dev1/Ctr0InternalOutput"
        counts.start()
        task.start()
        system.advance_to(1.0)  # one big step
        assert not task.is_task_done()
        assert counts.read() == 6
        # The trigger at 0.13 finds it busy until 0.145.
        starts = np.add.outer([0.105, 0.205, 0.305], [0.0, 0.02]).ravel()
        assert _edges(system)[0] == pytest.approx(starts, abs=1e-9)


def test_pulses_pause_in_the_middle_and_go_on(system, Task):
    """50 ms of pause in a train of 10 ms: all later edges are 50 ms late."""
    system.feed("Dev1/PFI1", EdgeList([0.012], [0.062]))
    with Task() as task:
        task.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=100.0)
        task.timing.cfg_implicit_timing(sample_mode=CONTINUOUS)
        pause = task.triggers.pause_trigger
        pause.trig_type = TriggerType.DIGITAL_LEVEL
        pause.dig_lvl_src, pause.dig_lvl_when = "/Dev1/PFI1", Level.HIGH
        task.start()
        system.advance_to(0.0899)
        rising, falling = _edges(system)
    assert rising == pytest.approx([0.0, 0.01, 0.07, 0.08], abs=1e-9)
    assert falling == pytest.approx([0.005, 0.065, 0.075, 0.085], abs=1e-9)


def test_written_pulses_are_idle_first_and_another_counter_measures_each(free, connect):
    """Pulse k of a line that idles high is its high part, then its low one: the measurement
    between rising edges gives every pulse but the first.
    """
    Task = connect(free).Task
    hz, duty = np.array([1000.0, 2000.0, 1250.0, 5000.0]), np.array([0.5, 0.25, 0.3, 0.6])
    with Task() as makes, Task() as measures:
        makes.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", idle_state=Level.HIGH)
        makes.timing.cfg_implicit_timing(samps_per_chan=4)
        makes.control(TaskMode.TASK_COMMIT)  # the line is high from here on
        measures.ci_channels.add_ci_pulse_chan_freq("Dev1/ctr1", min_val=500.0, max_val=1e4)
        measures.ci_channels.all.ci_pulse_freq_term = "/Dev1/Ctr0InternalOutput"
        measures.timing.cfg_implicit_timing(samps_per_chan=3)
        CounterWriter(makes.out_stream, auto_start=False).write_many_sample_pulse_frequency(
            hz, duty
        )
        measures.start()
        makes.start()
        found = np.zeros(3), np.zeros(3)
        CounterReader(measures.in_stream).read_many_sample_pulse_frequency(*found, 3, timeout=1.0)
    np.testing.assert_allclose(found, (hz[1:], duty[1:]), rtol=1e-4)


def test_a_pin_carries_the_pulses_that_go_out_there(system, Task):
    with Task() as pulses, Task() as counts:
        pulses.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=1000.0)
        pulses.timing.cfg_implicit_timing(samps_per_chan=20)
        counts.ci_channels.add_ci_count_edges_chan("Dev1/ctr1")
        counts.ci_channels.all.ci_count_edges_term = pulses.co_channels.all.co_pulse_term
        counts.start()
        pulses.start()
        system.advance_to(0.1)
        assert counts.read() == 20


def test_counts_are_latched_by_the_falling_edges_of_another_counter(free, connect):
    """Counter 1 begins with the clock's first rising edge: k edges at the k-th falling one."""
    Task = connect(free).Task
    with Task() as clock, Task() as makes, Task() as counts:
        clock.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=3000.0)
        clock.timing.cfg_implicit_timing(samps_per_chan=10)
        makes.co_channels.add_co_pulse_chan_freq("Dev1/ctr1", freq=3000.0)
        makes.timing.cfg_implicit_timing(samps_per_chan=10)
        arm = makes.triggers.arm_start_trigger
        arm.trig_type, arm.dig_edge_src = TriggerType.DIGITAL_EDGE, "/Dev1/Ctr0InternalOutput"
        counts.ci_channels.add_ci_count_edges_chan("Dev1/ctr2")
        counts.ci_channels.all.ci_count_edges_term = "/Dev1/Ctr1InternalOutput"
        counts.timing.cfg_samp_clk_timing(
            3000.0, "/Dev1/Ctr0InternalOutput", Edge.FALLING, samps_per_chan=10
        )
        counts.start()
        makes.start()
        clock.start()
        assert counts.read(10) == list(range(1, 11))


def test_modules_of_a_chassis_share_its_counters(connect):
    system = System("held")
    system.add("cDAQ-9178", "cDAQ1")
    for slot in (1, 2):
        system.add("NI 9401", f"cDAQ1Mod{slot}", chassis="cDAQ1")
    Task = connect(system).Task
    with Task() as one, Task() as other:
        one.co_channels.add_co_pulse_chan_freq("cDAQ1Mod1/ctr0", freq=10.0)
        other.ci_channels.add_ci_count_edges_chan("cDAQ1Mod2/ctr0")
        other.start()
        with pytest.raises(nidaqmx.DaqError) as caught:
            one.start()
    assert caught.value.error_code == -50103


@pytest.mark.parametrize(("terminal", "code"), [("/Dev1/PFI99", -89120), ("/Dev7/PFI0", -89130)])
def test_a_terminal_that_does_not_exist_is_refused_at_the_start(system, Task, terminal, code):
    with Task() as task:
        task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0")
        task.ci_channels.all.ci_count_edges_term = terminal
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.start()
    assert caught.value.error_code == code


def test_a_terminal_may_be_written_without_the_leading_slash(system, Task):
    """As NI's example cont_ai_ci_tdms_sync.py does."""
    system.feed("Dev1/PFI0", Pulses(0.01, 0.005, first_s=0.005))
    with Task() as task:
        task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0").ci_count_edges_term = "Dev1/PFI0"
        task.start()
        system.advance_to(1.0)
        assert task.read() == 100


def test_pulses_by_ticks_last_as_long_as_their_timebase_says(system, Task):
    """200 and 300 ticks of 100 kHz are 2 and 3 ms."""
    with Task() as task:
        task.co_channels.add_co_pulse_chan_ticks(
            "Dev1/ctr0", "/Dev1/100kHzTimebase", high_ticks=100, low_ticks=100
        )
        task.timing.cfg_implicit_timing(samps_per_chan=2)
        task.out_stream.auto_start = False
        writer = CounterWriter(task.out_stream)
        ticks = np.array([200, 200], np.uint32), np.array([300, 300], np.uint32)
        writer.write_many_sample_pulse_ticks(*ticks)
        task.start()
        system.advance_to(0.1)
        rising, falling = _edges(system)
    assert rising == pytest.approx([0.003, 0.008], abs=1e-9)  # idle first
    assert falling == pytest.approx([0.005, 0.010], abs=1e-9)


def test_a_chassis_names_its_timing_engines_as_terminals(connect):
    """te0 is the engine of the first input task: 50 samples are 50 pulses."""
    system = System("free")
    system.add("cDAQ-9189", "cDAQ1")
    system.add("NI 9215", "cDAQ1Mod1", chassis="cDAQ1")
    Task = connect(system).Task
    with Task() as ai, Task() as counts:
        ai.ai_channels.add_ai_voltage_chan("cDAQ1Mod1/ai0")
        ai.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=50)
        counts.ci_channels.add_ci_count_edges_chan("cDAQ1/_ctr0")
        counts.ci_channels.all.ci_count_edges_term = "/cDAQ1/te0/SampleClock"
        counts.start()
        ai.start()
        ai.wait_until_done()
        assert counts.read() == 50
