"""Counters through the unmodified nidaqmx package and the simulated library."""

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    AcquisitionType,
    AngleUnits,
    CountDirection,
    EncoderType,
    Level,
    TaskMode,
)
from nidaqmx.stream_readers import AnalogMultiChannelReader, CounterReader

from simdaq import Pulses, System, Track

LINES = 1024


def encoder(task, decoding=EncoderType.X_4, counter="Dev1/ctr0", **kwargs):
    return task.ci_channels.add_ci_ang_encoder_chan(
        counter,
        decoding_type=decoding,
        units=AngleUnits.RADIANS,
        pulses_per_rev=LINES,
        **kwargs,
    )


@pytest.mark.parametrize(
    ("decoding", "counts"), [(EncoderType.X_1, 1), (EncoderType.X_2, 2), (EncoderType.X_4, 4)]
)
def test_an_encoder_resolves_a_line_divided_by_its_decoding(system, decoding, counts, Task):
    angle = Track(0.0)
    system.feed("Dev1/ctr0", angle)
    step_rad = 2.0 * np.pi / (LINES * counts)
    with Task() as task:
        encoder(task, decoding)
        task.start()
        for k, turns in enumerate((0.1234, -0.77, 3.9), start=1):
            angle.put(0.1 * k, turns)
            system.advance_to(0.1 * k)
            read_rad = task.read()
            # The count is the last line passed: at most a step below the angle, never above.
            assert -1e-9 <= turns * 2.0 * np.pi - read_rad < step_rad * (1.0 + 1e-9)
            assert read_rad / step_rad == pytest.approx(round(read_rad / step_rad), abs=1e-6)


def test_an_encoder_begins_at_its_initial_angle_wherever_the_shaft_stands(system, Task):
    system.feed("Dev1/ctr0", 17.25)
    with Task() as task:
        encoder(task, initial_angle=0.5)
        task.start()
        assert task.read() == pytest.approx(0.5)


def test_the_index_sets_the_angle_once_a_revolution_from_both_sides(system, Task):
    angle = Track(0.4)
    system.feed("Dev1/ctr0", angle)
    with Task() as task:
        encoder(task, zidx_enable=True, zidx_val=0.0)
        task.start()
        for k, (turns, expected) in enumerate([(0.9, 0.5), (1.25, 0.25), (0.75, -0.25)], 1):
            angle.put(0.1 * k, turns)  # the index is at whole revolutions
            system.advance_to(0.1 * k)
            assert task.read() / (2.0 * np.pi) == pytest.approx(expected, abs=1.0 / LINES)


def test_angle_and_voltage_of_one_clock_share_their_instants(system, Task):
    """The counter takes the converter's sample clock: one signal on both is one signal."""
    system.feed("Dev1/ai0", lambda t_s: np.sin(40.0 * t_s))
    system.feed("Dev1/ctr2", lambda t_s: np.sin(40.0 * t_s))
    n = 200
    with Task() as ai, Task() as ci:
        ai.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-1.0, max_val=1.0)
        ai.timing.cfg_samp_clk_timing(10_000.0, sample_mode=AcquisitionType.CONTINUOUS)
        encoder(ci, counter="Dev1/ctr2")
        ci.timing.cfg_samp_clk_timing(
            10_000.0, "/Dev1/ai/SampleClock", sample_mode=AcquisitionType.CONTINUOUS
        )
        ci.start()
        ai.start()
        for k in range(1, 21):
            system.advance_to(1e-3 * k)
        volts = np.empty((1, n))
        angle = np.empty(n)
        assert AnalogMultiChannelReader(ai.in_stream).read_many_sample(volts, n) == n
        assert CounterReader(ci.in_stream).read_many_sample_double(angle, n) == n
    step = 1.0 / (4 * LINES) + 2.0 / 2**16
    assert np.max(np.abs(volts[0] - angle / (2.0 * np.pi))) <= step


def test_edges_are_counted_from_the_start_up_and_down(system, Task):
    system.feed("Dev1/PFI8", Pulses(period_s=0.01, high_s=0.005))
    system.feed("Dev1/PFI3", Pulses(period_s=0.01, high_s=0.005))
    system.advance_to(0.0951)
    with Task() as up, Task() as down:
        up.ci_channels.add_ci_count_edges_chan("Dev1/ctr0", initial_count=7)
        down.ci_channels.add_ci_count_edges_chan(
            "Dev1/ctr1", initial_count=1000, count_direction=CountDirection.COUNT_DOWN
        )
        up.start()
        down.start()
        system.advance_to(0.2951)  # rising edges at 0.10, 0.11, ... 0.29
        assert up.read() == 7 + 20
        assert down.read() == 1000 - 20


def test_frequency_width_and_duty_cycle_of_a_pulse_train(system, Task):
    train = Pulses(period_s=1.0 / 440.0, high_s=0.25 / 440.0)
    system.feed("Dev1/PFI9", train)
    tick_s = 1e-8  # of the 100 MHz timebase: a period is known to one of them
    system.advance_to(1.0)
    with Task() as task:
        task.ci_channels.add_ci_freq_chan("Dev1/ctr0", min_val=2.0, max_val=1000.0)
        task.start()
        system.advance_to(1.1)
        assert task.read() == pytest.approx(440.0, rel=440.0 * tick_s)
    with Task() as task:
        task.ci_channels.add_ci_pulse_width_chan("Dev1/ctr0")
        task.start()
        system.advance_to(1.2)
        assert task.read() == pytest.approx(0.25 / 440.0, abs=tick_s)
    with Task() as task:
        task.ci_channels.add_ci_pulse_chan_freq("Dev1/ctr0")
        task.start()
        system.advance_to(1.3)
        pulse = task.read()
    assert pulse.freq == pytest.approx(440.0, rel=440.0 * tick_s)
    assert pulse.duty_cycle == pytest.approx(0.25, abs=2 * 440.0 * tick_s)


def test_a_silent_line_has_no_frequency_but_a_timeout(system, Task):
    with Task() as task:
        task.ci_channels.add_ci_freq_chan("Dev1/ctr0")
        with pytest.raises(nidaqmx.errors.DaqReadError) as caught:
            task.read()
    assert caught.value.samps_per_chan_read == 0
    assert caught.value.error_code == -200284


def test_implicit_timing_makes_every_period_a_sample(system, Task):
    system.feed("Dev1/PFI9", Pulses(period_s=0.002, high_s=0.001))
    with Task() as task:
        task.ci_channels.add_ci_period_chan("Dev1/ctr0", min_val=1e-4, max_val=1.0)
        task.timing.cfg_implicit_timing(sample_mode=AcquisitionType.CONTINUOUS)
        task.start()
        system.advance_to(0.1001)  # edges after the start at 2, 4 ... 100 ms: 49 periods
        assert task.in_stream.avail_samp_per_chan == 49
        assert task.read(49) == pytest.approx([0.002] * 49, abs=1e-8)


def test_a_counter_needs_an_outer_sample_clock(system, Task):
    with Task() as task:
        task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0")
        task.timing.cfg_samp_clk_timing(1000.0)
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.start()
    assert caught.value.error_code == -200303


def test_four_encoders_do_not_fit_on_a_card_with_two_counters(connect):
    system = System("held")
    system.add("PCIe-6251", "Dev1")
    Task = connect(system).Task
    with Task() as task:
        encoder(task, counter="Dev1/ctr0:1")
        with pytest.raises(nidaqmx.DaqError) as caught:
            encoder(task, counter="Dev1/ctr2")
    assert caught.value.error_code == -200170


def test_one_counter_serves_one_task(system, Task):
    with Task() as counts, Task() as pulses:
        counts.ci_channels.add_ci_count_edges_chan("Dev1/ctr1")
        pulses.co_channels.add_co_pulse_chan_freq("Dev1/ctr1", freq=10.0)
        counts.control(TaskMode.TASK_RESERVE)
        with pytest.raises(nidaqmx.DaqError) as caught:
            pulses.start()
    assert caught.value.error_code == -50103


def test_a_pulse_train_is_high_for_its_duty_cycle_and_idles_after(system, Task):
    with Task() as task:
        task.co_channels.add_co_pulse_chan_freq(
            "Dev1/ctr0", idle_state=Level.LOW, initial_delay=0.02, freq=100.0, duty_cycle=0.3
        )
        task.timing.cfg_implicit_timing(samps_per_chan=5)
        task.start()
        times_s = np.arange(0.0005, 0.1, 0.001)
        levels = []
        for t_s in times_s:
            system.advance_to(t_s)
            levels.append(system.output("Dev1/ctr0"))
        assert task.is_task_done()
    phase = (times_s - 0.02) % 0.01
    inside = (times_s >= 0.02) & (times_s < 0.07)
    assert levels == list(np.where(inside & (phase < 0.003), 1.0, 0.0))


def test_an_initial_delay_that_is_set_after_the_channel_was_made_delays_the_pulses(system, Task):
    def level(t_s):
        system.advance_to(t_s)
        return system.output("Dev1/ctr0")

    with Task() as task:
        channel = task.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=100.0)
        channel.co_pulse_freq_initial_delay = 0.003
        task.start()
        assert [level(t_s) for t_s in (0.0025, 0.0035, 0.0075, 0.0085)] == [0.0, 1.0, 1.0, 0.0]


def test_a_counter_hears_another_counters_pulses(system, Task):
    with Task() as pulses, Task() as counts:
        pulses.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=1000.0)
        pulses.timing.cfg_implicit_timing(sample_mode=AcquisitionType.CONTINUOUS)
        channel = counts.ci_channels.add_ci_count_edges_chan("Dev1/ctr1")
        channel.ci_count_edges_term = "/Dev1/Ctr0InternalOutput"
        counts.start()
        system.advance_to(0.5)
        pulses.start()
        system.advance_to(0.6005)
        assert counts.read() == 101  # the first at the start itself
