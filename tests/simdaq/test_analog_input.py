"""Analogue inputs through the unmodified nidaqmx package and the simulated library."""

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    READ_ALL_AVAILABLE,
    AcquisitionType,
    OverwriteMode,
    ReadRelativeTo,
    TerminalConfiguration,
)
from nidaqmx.stream_readers import AnalogMultiChannelReader

from simdaq import System, Track

LSB_V = 20.0 / 2**16  # a 16-bit converter over +/-10 V: what quantisation may take is half of it


def continuous(task, rate_Hz, samples=1000):
    task.timing.cfg_samp_clk_timing(
        rate_Hz, sample_mode=AcquisitionType.CONTINUOUS, samps_per_chan=samples
    )


def test_a_voltage_is_read_to_half_a_step_of_the_converter(system, Task):
    system.feed("Dev1/ai3", 1.2345)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai3", min_val=-10.0, max_val=10.0)
        assert task.read() == pytest.approx(1.2345, abs=LSB_V / 2)


def test_a_smaller_range_has_smaller_steps_and_clips_beyond(system, Task):
    system.feed("Dev1/ai0", 0.1234567)
    system.feed("Dev1/ai1", 0.7)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0:1", min_val=-0.2, max_val=0.2)
        fine_V, clipped_V = task.read()
    assert fine_V == pytest.approx(0.1234567, abs=0.4 / 2**16 / 2)
    assert clipped_V == pytest.approx(0.2, abs=0.4 / 2**16)


def test_sample_k_of_a_clock_is_taken_k_periods_after_the_start(system, Task):
    system.feed("Dev1/ai0", lambda t_s: 3.0 * np.sin(2.0 * np.pi * 37.0 * t_s))
    system.advance_to(0.25)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-5.0, max_val=5.0)
        continuous(task, 10_000.0)
        task.start()
        system.advance_to(0.2599)
        read_V = task.read(100)
    t_s = 0.25 + np.arange(100) / 10_000.0
    assert np.max(np.abs(read_V - 3.0 * np.sin(2.0 * np.pi * 37.0 * t_s))) <= LSB_V / 4 * 1.001


def test_samples_between_two_steps_of_a_plant_lie_on_a_straight_line(system, Task):
    track = Track(0.0)
    system.feed("Dev1/ai0", track)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        continuous(task, 10_000.0)
        task.start()
        for k in range(1, 4):
            track.put(1e-3 * k, 1.0 * k)
            system.advance_to(1e-3 * k)
        read_V = task.read(31)
    assert read_V == pytest.approx(np.linspace(0.0, 3.0, 31), abs=LSB_V / 2)


@pytest.mark.slow_beyond(1)
def test_blocks_of_four_channels_lose_no_sample_in_a_minute(system, Task):
    """10 kHz in blocks of a thousand: every sample carries its own number."""
    for i in range(4):
        system.feed(f"Dev1/ai{i}", lambda t_s, i=i: np.round(t_s * 10_000.0) % 10_000 * 1e-3 - i)
    tick_s, per_tick, ticks = 0.1, 1_000, 600
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0:3", min_val=-10.0, max_val=10.0)
        continuous(task, 10_000.0, 4_000)
        reader = AnalogMultiChannelReader(task.in_stream)
        block_V = np.empty((4, per_tick))
        task.start()
        numbers = np.empty((4, ticks * per_tick))
        for k in range(ticks):
            system.advance_to(tick_s * (k + 1))
            assert reader.read_many_sample(block_V, per_tick, timeout=0.0) == per_tick
            numbers[:, k * per_tick : (k + 1) * per_tick] = block_V
    expected = np.arange(ticks * per_tick) % 10_000 * 1e-3 - np.arange(4)[:, None]
    assert np.max(np.abs(numbers - expected)) <= LSB_V / 2 * 1.001


def test_a_held_clock_times_a_read_out_at_once_and_hands_over_what_there_is(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        continuous(task, 1000.0)
        task.start()
        system.advance_to(0.0045)
        with pytest.raises(nidaqmx.DaqReadError) as caught:
            task.read(10, timeout=5.0)
    assert caught.value.error_code == -200284
    assert caught.value.samps_per_chan_read == 5


def test_unread_samples_that_were_overwritten_are_an_error(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        continuous(task, 1000.0, 50)
        task.in_stream.input_buf_size = 50
        task.start()
        system.advance_to(0.051)
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.read(10)
    assert caught.value.error_code == -200279


@pytest.mark.parametrize(
    ("relative_to", "offset", "expected"),
    [
        (ReadRelativeTo.MOST_RECENT_SAMPLE, -10, 0.991),
        (ReadRelativeTo.MOST_RECENT_SAMPLE, -100, 0.901),
        (ReadRelativeTo.MOST_RECENT_SAMPLE, -150, -200279),
        (ReadRelativeTo.MOST_RECENT_SAMPLE, -1500, -200277),
        (ReadRelativeTo.FIRST_SAMPLE, 901, 0.901),
        (ReadRelativeTo.FIRST_SAMPLE, 0, -200279),
    ],
)
def test_a_sample_that_was_overwritten_or_never_taken_is_not_read(
    system, Task, relative_to, offset, expected
):
    """A ramp of 1 V/s at 1 kHz, 1001 samples, of which the buffer holds the last 100."""
    system.feed("Dev1/ai0", lambda t_s: 1.0 * t_s)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.in_stream.input_buf_size = 100
        task.in_stream.overwrite = OverwriteMode.OVERWRITE_UNREAD_SAMPLES
        task.in_stream.relative_to, task.in_stream.offset = relative_to, offset
        task.start()
        system.advance_to(1.0)
        if expected > 0.0:
            assert task.read(10, timeout=0.0)[0] == pytest.approx(expected, abs=3e-4)
            return
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.read(10, timeout=0.0)
    assert caught.value.error_code == expected


def test_a_finite_task_ends_and_has_no_sample_more(system, Task):
    system.feed("Dev1/ai0", 1.0)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=20)
        task.start()
        system.advance_to(0.5)
        assert task.is_task_done()
        assert len(task.read(READ_ALL_AVAILABLE)) == 20
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.read(1)
    assert caught.value.error_code == -200278


def test_a_free_clock_goes_on_by_itself_while_one_waits(connect):
    system = System("free")
    system.add("PCIe-6363", "Dev1")
    Task = connect(system).Task
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(100.0, samps_per_chan=101)
        assert len(task.read(101)) == 101
    assert system.now_s == pytest.approx(1.0, abs=1e-9)  # 101 samples are 100 periods


def test_a_single_point_is_the_newest_that_was_not_read_yet(system, Task):
    system.feed("Dev1/ai0", lambda t_s: t_s)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-10.0, max_val=10.0)
        task.timing.cfg_samp_clk_timing(
            1000.0, sample_mode=AcquisitionType.HW_TIMED_SINGLE_POINT, samps_per_chan=1
        )
        task.start()
        system.advance_to(0.0103)
        assert task.read() == pytest.approx(0.010, abs=LSB_V)
        with pytest.raises(nidaqmx.DaqError) as caught:  # the next has not been taken
            task.read(timeout=0.0)
    assert caught.value.error_code == -200284


def test_a_usb_card_has_no_hardware_timed_single_point(system, Task):
    system.add("USB-6361", "Dev2")
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev2/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.HW_TIMED_SINGLE_POINT)
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.start()
    assert caught.value.error_code == -200077


@pytest.mark.parametrize(
    ("wiring", "volts", "bits"),
    [(TerminalConfiguration.DIFF, 20.0, 12), (TerminalConfiguration.RSE, 10.0, 11)],
)
def test_a_usb_6008_has_a_bit_less_single_ended(system, Task, wiring, volts, bits):
    """Source: "USB-6008/6009 User Guide", AI resolution: 12 bits differential, 11 single-ended."""
    system.add("USB-6008", "Dev2")
    step = 2.0 * volts / 2**bits
    with Task() as task:
        found = task.ai_channels.add_ai_voltage_chan(
            "Dev2/ai0", min_val=-volts, max_val=volts, terminal_config=wiring
        )
        assert found.ai_resolution == bits
        system.feed("Dev2/ai0", 0.4 * step)
        assert task.read() == 0.0
        system.feed("Dev2/ai0", 0.6 * step)
        assert task.read() == pytest.approx(step)


@pytest.mark.parametrize(
    ("rate_Hz", "asked", "size"),
    [(50.0, 10, 1_000), (5e3, 10, 10_000), (1e5, 1_000, 100_000), (1e5, 300_000, 300_000)],
)
def test_a_continuous_task_has_the_buffer_of_nis_table(Task, system, rate_Hz, asked, size):
    """Source: NI-DAQmx Help, "How Is Buffer Size Determined?"."""
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        continuous(task, rate_Hz, asked)
        assert task.in_stream.input_buf_size == size
