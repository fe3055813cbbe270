"""Answers that NI documents: timing and synchronisation, limits, logging, time stamps."""

import time

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    AcquisitionType,
    LoggingMode,
    LoggingOperation,
    ReadRelativeTo,
    RegenerationMode,
    SampleTimingType,
    Signal,
    TerminalConfiguration,
    ThermocoupleType,
    TimestampEvent,
    TriggerType,
)
from nidaqmx.stream_readers import PowerBinaryReader

from simdaq import Pulses, System, catalog

FINITE, CONTINUOUS = AcquisitionType.FINITE, AcquisitionType.CONTINUOUS


def code_of(action):
    with pytest.raises(nidaqmx.DaqError) as caught:
        action()
    return caught.value.error_code


@pytest.fixture
def free(connect):
    """A system whose time passes while a call waits, and its Task."""
    system = System("free")
    system.add("PCIe-6363", "Dev1")
    return system, connect(system).Task


def test_outputs_by_the_clock_of_the_inputs_are_read_sample_by_sample(free):
    """One clock and one start: sample k of the input is sample k of the output."""
    _, Task = free
    volts = np.sin(np.arange(200) / 10.0)
    with Task() as ai, Task() as ao:
        ao.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        ai.ai_channels.add_ai_voltage_chan("Dev1/_ao0_vs_aognd")
        ai.timing.cfg_samp_clk_timing(10_000.0, samps_per_chan=200)
        ao.timing.cfg_samp_clk_timing(10_000.0, "/Dev1/ai/SampleClock", samps_per_chan=200)
        ao.triggers.start_trigger.cfg_dig_edge_start_trig("/Dev1/ai/StartTrigger")
        ao.write(volts)
        ao.start()
        ai.start()
        assert np.max(np.abs(np.array(ai.read(200)) - volts)) < 20.0 / 2**16


def test_a_trigger_of_a_task_reaches_one_that_was_made_before_it(free):
    """Inputs wait for an outer edge, outputs for the inputs' start, whichever was made first."""
    system, Task = free
    system.feed("Dev1/PFI0", Pulses(9.0, 1.0, first_s=0.5))
    changes = system.watch("Dev1/ao0").changes
    with Task() as ao, Task() as ai:
        ao.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        ao.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=2)
        ao.triggers.start_trigger.cfg_dig_edge_start_trig("/Dev1/ai/StartTrigger")
        ao.write([1.0, 2.0])
        ai.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        ai.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=100)
        ai.triggers.start_trigger.cfg_dig_edge_start_trig("/Dev1/PFI0")
        ao.start()
        ai.start()
        ai.read(100)
    assert [t_s for t_s, _ in changes] == pytest.approx([0.5, 0.501])


@pytest.mark.parametrize(
    ("card", "channel", "right"),
    [("PCIe-6363", "ai7", True), ("PCIe-6363", "ai8", False), ("PCIe-6363", "ai16", True),
     ("USB-6009", "ai3", True), ("USB-6009", "ai4", False), ("NI 9205", "ai15", False)],
)  # fmt: skip
def test_half_of_the_inputs_are_the_other_ends_of_differential_ones(card, channel, right, connect):
    """Inputs i and i + 8 of 16 are a pair, of the USB-6009 i and i + 4 (NI's user manuals)."""
    system = System("held")
    place = "Dev1"
    if card.startswith("NI"):
        system.add("cDAQ-9178", "cDAQ1")
        place = "cDAQ1Mod1"
    system.add(card, place, chassis="cDAQ1" if place != "Dev1" else None)
    with connect(system).Task() as task:

        def add():
            task.ai_channels.add_ai_voltage_chan(
                f"{place}/{channel}", terminal_config=TerminalConfiguration.DIFF
            )

        if right:
            add()
            assert task.ai_channels.all.ai_term_cfg == TerminalConfiguration.DIFF
        else:
            assert code_of(add) == -200077


def test_an_input_without_a_partner_is_single_ended_by_default(system, Task):
    with Task() as task:
        chan = task.ai_channels.add_ai_voltage_chan("Dev1/ai8")
        assert chan.ai_term_cfg == TerminalConfiguration.RSE


def test_single_ended_inputs_of_the_usb_6009_take_10_V_and_differential_ones_20_V(connect):
    system = System("held")
    system.add("USB-6009", "Dev1")
    Task = connect(system).Task
    for way, code in ((TerminalConfiguration.DIFF, 0), (TerminalConfiguration.RSE, -200077)):
        with Task() as task:
            task.ai_channels.add_ai_voltage_chan(
                "Dev1/ai0", terminal_config=way, min_val=-20.0, max_val=20.0
            )
            if code:
                assert code_of(task.start) == code
            else:
                task.start()


def test_asking_for_too_few_samples_is_an_error_as_soon_as_they_are_read_back(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=1)
        assert code_of(lambda: task.timing.samp_quant_samp_per_chan) == -200077


def test_a_new_file_can_be_named_before_the_start(system, Task, tmp_path):
    """The log goes to the file that was named last."""
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=10)
        task.in_stream.configure_logging(
            str(tmp_path / "a.tdms"), LoggingMode.LOG_AND_READ,
            operation=LoggingOperation.CREATE_OR_REPLACE,
        )  # fmt: skip
        task.in_stream.start_new_file(str(tmp_path / "b.tdms"))
        assert task.in_stream.logging_file_path == tmp_path / "b.tdms"
        task.start()
        system.advance_to(0.1)
    assert [f.name for f in tmp_path.glob("*.tdms")] == ["b.tdms"]


def test_the_first_sample_and_the_arm_trigger_have_time_stamps(free):
    system, Task = free
    system.origin_unix_s = 1.7e9
    system.advance_to(2.0)
    with Task() as ai, Task() as ci:
        ai.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        ai.timing.cfg_samp_clk_timing(1000.0)
        ai.start()
        ci.ci_channels.add_ci_count_edges_chan("Dev1/ctr0")
        ci.timing.cfg_samp_clk_timing(1000.0, "/Dev1/PFI0")
        ci.triggers.arm_start_trigger.trig_type = TriggerType.TIME  # at once, where unset
        ci.triggers.arm_start_trigger.timestamp_enable = True
        ci.start()
        found = [
            ai.wait_for_valid_timestamp(TimestampEvent.FIRST_SAMPLE),
            ai.timing.first_samp_timestamp_val,
            ci.wait_for_valid_timestamp(TimestampEvent.ARM_START_TRIGGER),
        ]
    assert [t.timestamp() for t in found] == pytest.approx([1.7e9 + 2.0] * 3, abs=1e-3)


def test_a_power_module_that_is_off_reads_no_codes(connect):
    """NI: simulated data are 0 for binary reads while the output is disabled."""
    system = System("held")
    system.add("TS-15000", "TS1")
    system.add("TS-15200", "TS1Mod1", chassis="TS1")
    volts, amperes = np.full((1, 5), -1, np.int16), np.full((1, 5), -1, np.int16)
    with connect(system).Task() as task:
        task.ai_channels.add_ai_power_chan("TS1Mod1/power", 2.0, 0.03, output_enable=False)
        task.start()
        PowerBinaryReader(task.in_stream).read_many_sample(volts, amperes, 5)
    assert not volts.any()
    assert not amperes.any()


def test_thermocouple_leads_are_nulled_and_other_channels_refused(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_thrmcpl_chan(
            "Dev1/ai0", "hot", thermocouple_type=ThermocoupleType.K
        )
        task.perform_thrmcpl_lead_offset_nulling_cal()
        task.ai_channels.add_ai_voltage_chan("Dev1/ai1", "volts")
        assert code_of(task.perform_thrmcpl_lead_offset_nulling_cal) == -200452
        task.perform_thrmcpl_lead_offset_nulling_cal(skip_unsupported_channels=True)


def test_a_pattern_card_has_pipelined_and_burst_clocks_and_a_handshake_that_nobody_answers(
    connect,
):
    system = System("held")
    system.add("PCIe-6535", "Dev1")
    Task = connect(system).Task
    with Task() as task:
        task.di_channels.add_di_chan("Dev1/port0")
        for clock in (
            lambda: task.timing.cfg_pipelined_samp_clk_timing(1000.0, samps_per_chan=5),
            lambda: task.timing.cfg_burst_handshaking_timing_export_clock(
                1000.0, "PFI4", samps_per_chan=5
            ),
        ):
            clock()
            task.start()
            system.advance_to(system.now_s + 0.1)
            assert len(task.read(5)) == 5
            task.stop()
        task.timing.cfg_handshaking_timing(FINITE, 5)
        assert task.timing.samp_timing_type == SampleTimingType.HANDSHAKE
        task.start()
        system.advance_to(system.now_s + 1.0)
        assert code_of(lambda: task.read(5)) == -200284
    system.add("PCIe-6363", "Dev2")
    with Task() as task:
        task.di_channels.add_di_chan("Dev2/port0")
        assert code_of(lambda: task.timing.cfg_handshaking_timing(FINITE, 5)) == -200077


# Product numbers as sources print them: NI's MAX configuration files of nidaqmx-python, and the
# public list of PCI identifiers of vendor 0x1093.
PRINTED = {
    "PCIe-6363": 0x7435C4C4, "PXIe-6368": 0x7439C4C4, "PXIe-4331": 0x74A9C4C4,
    "PXIe-4353": 0x74B2C4C4, "PXIe-4322": 0x76ABC4C4, "PXIe-4340": 0x7829C4C4,
    "PXIe-4480": 0x7844C4C4, "PXIe-4466": 0x7A8DC4C4, "PXIe-4311": 0x7B90C4C4,
    "NI myDAQ": 0x755B, "USB-6423": 0x7B40, "PCIe-6535": 0x719F, "PCIe-6251": 0x717D,
}  # fmt: skip


def test_product_numbers_are_as_printed_and_all_others_are_marked_as_assumed():
    models = catalog.models()
    assert {name: models[name].number for name in PRINTED} == PRINTED
    unmarked = {name for name, model in models.items() if "number" not in model.assumed}
    assert unmarked == set(PRINTED)


@pytest.mark.parametrize("terminal", ["/Dev1/PFI5", "/Dev1/ai/SampleClock"])
def test_a_sample_clock_is_heard_inside_the_card_and_at_the_pin_it_is_exported_to(free, terminal):
    """A finite acquisition of 100 samples gives 100 pulses: counted, and as a clock."""
    _, Task = free
    with Task() as ai, Task() as counts, Task() as di:
        ai.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        ai.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=100)
        ai.export_signals.export_signal(Signal.SAMPLE_CLOCK, "/Dev1/PFI5")
        counts.ci_channels.add_ci_count_edges_chan("Dev1/ctr0")
        counts.ci_channels.all.ci_count_edges_term = terminal
        di.di_channels.add_di_chan("Dev1/port0/line0")
        di.timing.cfg_samp_clk_timing(1000.0, terminal, samps_per_chan=100)
        counts.start()
        di.start()
        ai.start()
        ai.wait_until_done()
        assert counts.read() == 100
        assert len(di.read(100)) == 100


def test_changes_of_a_line_clock_the_inputs(free):
    """A rising edge every 10 ms: the ramp of 1 V/s is sampled in steps of 10 mV."""
    system, Task = free
    system.feed("Dev1/port0/line0", Pulses(0.01, 0.005, first_s=0.002))
    system.feed("Dev1/ai0", lambda t_s: 1.0 * t_s)
    with Task() as changes, Task() as ai:
        changes.di_channels.add_di_chan("Dev1/port0/line0")
        changes.timing.cfg_change_detection_timing("Dev1/port0/line0", sample_mode=CONTINUOUS)
        ai.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        ai.timing.cfg_samp_clk_timing(1000.0, "/Dev1/ChangeDetectionEvent", samps_per_chan=5)
        ai.start()
        changes.start()
        expected = [0.002, 0.012, 0.022, 0.032, 0.042]
        assert ai.read(5) == pytest.approx(expected, abs=20.0 / 2**16)


def test_every_pulse_of_a_counter_is_an_event(free):
    system, Task = free
    calls = []
    with Task() as task:
        task.co_channels.add_co_pulse_chan_freq("Dev1/ctr0", freq=100.0)
        task.timing.cfg_implicit_timing(samps_per_chan=20)
        task.register_signal_event(
            Signal.COUNTER_OUTPUT_EVENT, lambda *_: calls.append(system.now_s) or 0
        )
        task.start()
        task.wait_until_done()
        system.advance_to(1.0)
        deadline_s = time.monotonic() + 300.0
        while len(calls) < 20 and time.monotonic() < deadline_s:  # gRPC calls from a thread
            time.sleep(0.01)
    assert len(calls) == 20


def test_a_reference_trigger_must_leave_samples_and_an_end(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        reference = task.triggers.reference_trigger
        for mode, before, code in ((FINITE, 99, -200213), (CONTINUOUS, 10, -200358)):
            task.timing.cfg_samp_clk_timing(1000.0, sample_mode=mode, samps_per_chan=100)
            reference.cfg_dig_edge_ref_trig("/Dev1/PFI0", before)
            assert code_of(task.start) == code


def test_samples_are_read_relative_to_the_reference_trigger(system, Task):
    """A ramp of 1 V/s, 10 samples before an edge at 0.5 s, read from there and from the first."""
    system.feed("Dev1/ai0", lambda t_s: 1.0 * t_s)
    system.feed("Dev1/PFI0", Pulses(9.0, 1.0, first_s=0.5))
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=50)
        task.in_stream.relative_to = ReadRelativeTo.REFERENCE_TRIGGER
        assert code_of(lambda: task.read(5)) == -200282
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=50)
        task.in_stream.relative_to = ReadRelativeTo.REFERENCE_TRIGGER
        task.triggers.reference_trigger.cfg_dig_edge_ref_trig("/Dev1/PFI0", 10)
        task.start()
        assert code_of(lambda: task.read(5)) == -200281
        system.advance_to(1.0)
        assert task.read(1)[0] == pytest.approx(0.5, abs=2e-3)
        task.in_stream.relative_to = ReadRelativeTo.FIRST_PRETRIGGER_SAMPLE
        assert task.read(1)[0] == pytest.approx(0.49, abs=2e-3)


def test_resistances_of_temperature_sensors_are_kept(system, Task):
    with Task() as rtd, Task() as thermistor:
        one = rtd.ai_channels.add_ai_rtd_chan("Dev1/ai0", r_0=1000.0)
        other = thermistor.ai_channels.add_ai_thrmstr_chan_vex("Dev1/ai1", r_1=4700.0)
        assert (one.ai_rtd_r0, other.ai_thrmstr_r1) == (1000.0, 4700.0)


def test_a_write_that_cannot_fit_says_that_nothing_was_written(system, Task):
    """Without regeneration the buffer and the card's memory of 8191 samples are all there is."""
    with Task() as task:
        task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=CONTINUOUS, samps_per_chan=100)
        task.out_stream.regen_mode = RegenerationMode.DONT_ALLOW_REGENERATION
        task.out_stream.output_buf_size = 100
        with pytest.raises(nidaqmx.errors.DaqWriteError) as caught:
            task.write(np.zeros(100 + 8191 + 1))
    assert (caught.value.error_code, caught.value.samps_per_chan_written) == (-200293, 0)
