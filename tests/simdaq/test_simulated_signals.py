"""What inputs give that nobody feeds, as NI's simulated devices do, and what the card reads back.

Source: NI's tests of nidaqmx (component tests): a noisy sine between the channel's limits, digital
lines that count samples by eights; NI "X Series User Manual": internal channels, timebases.
"""

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    AcquisitionType,
    Edge,
    LineGrouping,
    TemperatureUnits,
    TerminalConfiguration,
    ThermocoupleType,
    UsageTypeAI,
)

from simdaq import System
from simdaq.catalog import models


@pytest.fixture
def system():
    found = System("free")
    found.add("PCIe-6363", "Dev1", idle="simulated")
    return found


@pytest.mark.parametrize(
    ("low", "high", "range_V"),
    [(-10.0, 10.0, 10.0), (1.0, 1.001, 2.0), (1.0, 1.001, 10.0), (-0.05, 0.02, 0.1)],
)
def test_an_unfed_input_gives_a_noisy_sine_between_its_limits(Task, low, high, range_V):
    """Its highest code is one below the upper limit, as that of a converter is (16 bits)."""
    with Task() as task:
        channel = task.ai_channels.add_ai_voltage_chan("Dev1/ai3", min_val=low, max_val=high)
        channel.ai_rng_high, channel.ai_rng_low = range_V, -range_V
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=500)
        volts = np.array(task.read(500))
    assert volts.min() >= low
    assert volts.max() <= high - range_V / 2**15 + 1e-12
    assert np.ptp(volts) > 0.6 * (high - low)


def test_a_thermocouple_is_simulated_and_fed_in_the_unit_of_its_channel(system, Task):
    def read(units):
        with Task() as task:
            task.ai_channels.add_ai_thrmcpl_chan(
                "Dev1/ai0", min_val=250.0, max_val=320.0, units=units,
                thermocouple_type=ThermocoupleType.K,
            )  # fmt: skip
            return task.read()

    assert 250.0 <= read(TemperatureUnits.K) <= 320.0
    system.feed("Dev1/ai0", 20.0)  # degC
    assert read(TemperatureUnits.K) == pytest.approx(293.15, abs=0.02)


def test_unfed_lines_count_samples_by_eights(Task):
    with Task() as task:
        task.di_channels.add_di_chan("Dev1/port0", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES)
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=300)
        words = task.read(300)
    counted = [k % 256 for k in range(300)]
    assert words == [k * 0x01010101 for k in counted]


def test_a_line_that_a_task_drives_reads_what_is_driven(Task):
    with Task() as drives, Task() as reads:
        drives.do_channels.add_do_chan(
            "Dev1/port0/line0:3", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES
        )
        reads.di_channels.add_di_chan(
            "Dev1/port0/line0:3", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES
        )
        reads.di_channels.all.di_tristate = False  # reads without reserving the lines
        drives.start()
        reads.start()
        for word in (5, 10, 0):
            drives.write(word)
            assert reads.read() == word
            assert drives.read() == word  # an output task reads its own lines back


def test_an_internal_channel_reads_an_analog_output_back(Task):
    with Task() as drives, Task() as reads:
        drives.ao_channels.add_ao_voltage_chan("Dev1/ao1")
        reads.ai_channels.add_ai_voltage_chan("Dev1/_ao1_vs_aognd", min_val=-10.0, max_val=10.0)
        drives.write(3.25)
        assert reads.read() == pytest.approx(3.25, abs=1e-3)


def test_a_waveform_on_an_output_is_read_back_sample_by_sample(Task):
    n = 50
    volts = np.linspace(-5.0, 5.0, n)
    with Task() as clock, Task() as drives, Task() as reads:
        clock.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=1000.0)
        clock.timing.cfg_implicit_timing(samps_per_chan=n)
        source = "/Dev1/Ctr0InternalOutput"
        drives.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        drives.timing.cfg_samp_clk_timing(1000.0, source=source, samps_per_chan=n)
        reads.ai_channels.add_ai_voltage_chan("Dev1/_ao0_vs_aognd", min_val=-10.0, max_val=10.0)
        reads.timing.cfg_samp_clk_timing(
            1000.0, source=source, active_edge=Edge.FALLING, samps_per_chan=n
        )
        drives.write(volts)
        drives.start()
        reads.start()
        clock.start()
        clock.wait_until_done(10.0)
        assert reads.read(n) == pytest.approx(volts.tolist(), abs=1e-3)


def test_a_counter_counts_a_timebase(system, Task):
    with Task() as task:
        channel = task.ci_channels.add_ci_count_edges_chan("Dev1/ctr0")
        channel.ci_count_edges_term = "/Dev1/100kHzTimebase"
        task.start()
        before = task.read()
        system.advance_to(system.now_s + 0.25)
        assert task.read() - before == 25_000


def test_reading_limits_gives_those_of_the_range_that_was_chosen(Task):
    """NI-DAQmx Help, "AI.Max": the property reads as coerced."""
    with Task() as task:
        channel = task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-2.5, max_val=2.5)
        assert (channel.ai_min, channel.ai_max) == (-5.0, 5.0)


def test_every_analog_card_of_the_catalogue_gives_a_voltage_or_its_own_quantity():
    from simdaq import install

    read = []
    for model in models().values():
        if model.ai is None or UsageTypeAI.VOLTAGE not in model.ai.usages or model.slots:
            continue
        system = System("free")
        system.add(model.product, "DevX", idle="simulated")
        install(system)
        top = 0.8 * model.ai.ranges[-1]
        with nidaqmx.Task() as task:
            task.ai_channels.add_ai_voltage_chan(
                "DevX/ai0", terminal_config=TerminalConfiguration.DEFAULT, min_val=-top, max_val=top
            )
            rate_Hz = min(model.ai.max_single_Hz, 2000.0)
            task.timing.cfg_samp_clk_timing(
                rate_Hz, sample_mode=AcquisitionType.FINITE, samps_per_chan=10
            )
            volts = task.read(10)
        assert all(-top <= v <= top for v in volts), model.product
        read.append(model.product)
    assert {"USB-6001", "USB-6008", "USB-6210", "USB-6421", "NI 9213", "NI 9219"} <= set(read)


def test_raw_samples_are_codes_of_the_converter(system, Task):
    """PCIe-6363: 16 bits over +/-10 V."""
    system.feed("Dev1/ai0", 5.0)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-10.0, max_val=10.0)
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=10)
        codes = task.in_stream.read(10)
    assert codes.dtype == np.int16
    assert codes.tolist() == [2**14] * 10


def test_a_start_trigger_has_a_time_stamp(system, Task):
    system.origin_unix_s = 1.7e9
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=10)
        system.advance_to(2.0)
        task.triggers.start_trigger.timestamp_enable = True
        task.start()
        when = task.wait_for_valid_timestamp(nidaqmx.constants.TimestampEvent.START_TRIGGER)
        assert when.timestamp() == pytest.approx(1.7e9 + 2.0, abs=1e-3)
