"""Rules of NI-DAQmx that a program can break: each has NI's code, and the table of docs/daq.md.

`python tests/simdaq/test_rules.py` prints the table.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import AcquisitionType, StrainGageBridgeType, TriggerType
from nidaqmx.errors import DaqError

from simdaq import System, install

CONTINUOUS, FINITE = AcquisitionType.CONTINUOUS, AcquisitionType.FINITE
PAGE = Path(__file__).resolve().parents[2] / "docs" / "daq.md"


def inputs(task, device="Dev1", mode=CONTINUOUS, rate_Hz=1000.0, source=""):
    task.ai_channels.add_ai_voltage_chan(f"{device}/ai0")
    if rate_Hz:
        task.timing.cfg_samp_clk_timing(rate_Hz, source, sample_mode=mode, samps_per_chan=1000)


def outputs(task, n):
    task.ao_channels.add_ao_voltage_chan("Dev1/ao0").ao_use_only_on_brd_mem = True
    task.timing.cfg_samp_clk_timing(1000.0, sample_mode=CONTINUOUS, samps_per_chan=n)
    task.write(np.zeros(n))
    task.start()


def paused(task):
    task.triggers.pause_trigger.trig_type = TriggerType.DIGITAL_LEVEL
    task.triggers.pause_trigger.dig_lvl_src = "/Dev1/PFI0"


def pause_and_reference(task):
    inputs(task, mode=FINITE)
    paused(task)
    task.triggers.reference_trigger.cfg_dig_edge_ref_trig("/Dev1/PFI1", 10)
    task.start()


def pause_on_demand(task):
    inputs(task, rate_Hz=None)
    paused(task)
    task.start()


def changes_of(task, line):
    task.di_channels.add_di_chan("Dev1/port0/line0:3")
    task.timing.cfg_change_detection_timing(line, "", CONTINUOUS)
    task.start()


def rate(task, rate_Hz):
    inputs(task, rate_Hz=rate_Hz)
    task.start()


def every_n(task, n, rate_Hz=1000.0):
    inputs(task, rate_Hz=rate_Hz)
    if rate_Hz:
        task.in_stream.input_buf_size = 1000
    task.register_every_n_samples_acquired_into_buffer_event(n, lambda *_: 0)
    task.start()


def acquired_by_an_output(task):
    task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
    task.register_every_n_samples_acquired_into_buffer_event(10, lambda *_: 0)


def write_while_running(task):
    outputs(task, 1000)
    task.write(np.zeros(1000))


def pretrigger(task, n):
    inputs(task, mode=FINITE)
    task.triggers.reference_trigger.cfg_dig_edge_ref_trig("/Dev1/PFI1", n)
    task.start()


def excitation(task, volts):
    task.ai_channels.add_ai_bridge_chan("cDAQ1Mod1/ai0", voltage_excit_val=volts)
    task.timing.cfg_samp_clk_timing(2000.0)
    task.start()


def clock_of(task, device, source):
    inputs(task, device, source=source)
    task.start()


def two_cards(task, *names):
    for name in names:
        task.ai_channels.add_ai_voltage_chan(f"{name}/ai0")
    task.timing.cfg_samp_clk_timing(1000.0)
    task.start()


class Rule(NamedTuple):
    """What a program must not do, NI's code, how it does so, and the nearest that it may do."""

    text: str
    code: int
    breaks: Callable
    keeps: Callable | None = None


RULES = (
    Rule("reference and pause trigger in one task", -200628, pause_and_reference),
    Rule("a pause trigger on demand", -200906, pause_on_demand),
    Rule("change detection on lines that are not in the task", -200926,
         lambda t: changes_of(t, "Dev1/port0/line7"), lambda t: changes_of(t, "Dev1/port0/line3")),
    Rule("change detection without a line", -200751, lambda t: changes_of(t, "")),
    Rule("a sample clock below 100 kHz / 2^32 (23.3 uHz, X Series)", -200331,
         lambda t: rate(t, 23.2e-6), lambda t: rate(t, 0.001)),
    Rule("Every N Samples on demand", -200848, lambda t: every_n(t, 10, rate_Hz=None)),
    Rule("a buffer set to no multiple of Every N", -200877, lambda t: every_n(t, 300),
         lambda t: every_n(t, 250)),
    Rule("samples acquired, as an event of an output", -200981, acquired_by_an_output),
    Rule("regeneration on board of more than its memory holds", -200341,
         lambda t: outputs(t, 20_000), lambda t: outputs(t, 1000)),
    Rule("writing on board while it runs", -200295, write_while_running),
    Rule("fewer than 2 pretrigger samples", -200077, lambda t: pretrigger(t, 1),
         lambda t: pretrigger(t, 2)),
    Rule("an excitation that the module does not give", -200077, lambda t: excitation(t, 7.0),
         lambda t: excitation(t, 5.0)),
    Rule("a clock of another card without a cable (RTSI) or a common PXI chassis", -89125,
         lambda t: clock_of(t, "Dev2", "/Dev1/ai/SampleClock"),
         lambda t: clock_of(t, "Dev3", "/Dev1/ai/SampleClock")),
    Rule("a clock of a PCI card on a USB device", -89136,
         lambda t: clock_of(t, "USB1", "/Dev1/ai/SampleClock"),
         lambda t: clock_of(t, "PXI1", "/PXI2/ai/SampleClock")),
    Rule("channels of two cards without a cable in one task", -89125,
         lambda t: two_cards(t, "Dev1", "Dev2"), lambda t: two_cards(t, "PXI1", "PXI2")),
)  # fmt: skip
HEAD = "| a program must not have | NI's code | here |\n|---|---|---|\n"


def table():
    """The table of docs/daq.md."""
    return HEAD + "".join(f"| {rule.text} | {rule.code} | the same |\n" for rule in RULES)


@pytest.fixture
def bench():
    system = System("held")
    for name in ("Dev1", "Dev2", "Dev3"):
        system.add("PCIe-6363", name)
    system.connect("Dev1", "Dev3")
    for name in ("PXI1", "PXI2"):
        system.add("PXIe-6363", name)
    system.add("USB-6363", "USB1")
    system.add("cDAQ-9174", "cDAQ1")
    system.add("NI 9237", "cDAQ1Mod1", chassis="cDAQ1")
    install(system)
    return system


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text)
def test_what_nis_driver_refuses_is_refused_with_its_code(rule, bench):
    with nidaqmx.Task() as task, pytest.raises(DaqError) as refused:
        rule.breaks(task)
    assert refused.value.error_code == rule.code
    if rule.keeps is not None:
        with nidaqmx.Task() as task:
            rule.keeps(task)


def test_the_page_has_the_table_of_these_rules():
    assert table() in PAGE.read_text(encoding="utf-8")


# e = -4 V_r / (GF (1 + 2 V_r)) and the like at V_r = -1 mV/V, GF = 2, nu = 0.3, by hand
# (NI, "Strain Gauge Configuration Types").
STRAINS = {
    StrainGageBridgeType.QUARTER_BRIDGE_I: 0.004 / (2 * 0.998),
    StrainGageBridgeType.HALF_BRIDGE_I: 0.004 / (2 * (1.3 - 0.0014)),
    StrainGageBridgeType.HALF_BRIDGE_II: 0.001,
    StrainGageBridgeType.FULL_BRIDGE_I: 0.0005,
    StrainGageBridgeType.FULL_BRIDGE_II: 0.002 / 2.6,
    StrainGageBridgeType.FULL_BRIDGE_III: 0.002 / (2 * (1.3 - 0.0007)),
}
LSB = 0.025 / 2**23  # of an NI 9237, V/V


@pytest.mark.parametrize("bridge", STRAINS)
def test_a_specimens_strain_gives_the_ratio_of_its_bridge_and_reads_as_configured(bridge, bench):
    strain = STRAINS[bridge]
    bench.feed("cDAQ1Mod1/ai0", strain)
    with nidaqmx.Task() as task:
        channel = task.ai_channels.add_ai_strain_gage_chan(
            "cDAQ1Mod1/ai0", min_val=-0.005, max_val=0.005, strain_config=bridge, gage_factor=2.0,
            poisson_ratio=0.3, voltage_excit_val=2.5,
        )  # fmt: skip
        (simulated,) = (one for task in bench.tasks.values() for one in task.channels)
        assert simulated.sample(np.zeros(1)) * LSB == pytest.approx(-1e-3, abs=LSB)
        assert task.read() == pytest.approx(strain, abs=4 * LSB)
        channel.ai_strain_gage_gage_factor = 4.0  # not that of the gages on the specimen
        assert task.read() == pytest.approx(0.5 * strain, abs=4 * LSB)


def test_a_bridge_at_rest_is_taken_off_a_force_and_its_shunt_gain_is_one(bench):
    bench.feed("cDAQ1Mod1/ai0", 1.5e-3)
    with nidaqmx.Task() as task:
        channel = task.ai_channels.add_ai_force_bridge_two_point_lin_chan(
            "cDAQ1Mod1/ai0", min_val=-100.0, max_val=100.0, voltage_excit_val=2.5,
            first_electrical_val=0.0, second_electrical_val=2.0, first_physical_val=0.0,
            second_physical_val=100.0,
        )  # fmt: skip
        assert channel.ai_bridge_shunt_cal_gain_adjust == 1.0
        assert task.read() == pytest.approx(75.0, abs=1e-3)
        channel.ai_bridge_initial_voltage = 2.5 * 0.5e-3
        assert task.read() == pytest.approx(50.0, abs=1e-3)


def test_an_analog_pin_starts_a_task(bench):
    bench.feed("Dev1/APFI0", lambda t_s: 10.0 * np.asarray(t_s))
    with nidaqmx.Task() as task:
        inputs(task, mode=FINITE)
        task.triggers.start_trigger.cfg_anlg_edge_start_trig("APFI0", trigger_level=1.0)
        task.start()
        bench.advance_to(0.05)
        assert task.in_stream.total_samp_per_chan_acquired == 0
        bench.advance_to(0.2)
        assert task.in_stream.total_samp_per_chan_acquired == pytest.approx(100, abs=2)


@pytest.mark.parametrize(
    ("source", "taken"), [("/Dev1/Ctr1InternalOutput", 500), ("/Dev1/PFI13", 500),
                          ("/Dev1/Ctr0InternalOutput", 800), ("/Dev1/PFI12", 800)],
)  # fmt: skip
def test_a_counters_output_pauses_a_task_by_name_and_by_pin(source, taken, bench):
    """Half of each ms is high at counter 1; counter 0 makes two pulses of 0.1 ms in each."""
    with nidaqmx.Task() as clock, nidaqmx.Task() as pulses, nidaqmx.Task() as task:
        retriggered(clock, pulses)
        inputs(task, rate_Hz=10_000.0)
        paused(task)
        task.triggers.pause_trigger.dig_lvl_src = source
        task.start()
        bench.advance_to(0.1)
        assert task.in_stream.total_samp_per_chan_acquired == pytest.approx(taken, abs=1)


def retriggered(clock, pulses):
    clock.co_channels.add_co_pulse_chan_freq("Dev1/ctr1", freq=1000.0)
    clock.timing.cfg_implicit_timing(sample_mode=CONTINUOUS)
    pulses.co_channels.add_co_pulse_chan_time("Dev1/ctr0", high_time=1e-4, low_time=1e-4)
    pulses.timing.cfg_implicit_timing(sample_mode=FINITE, samps_per_chan=2)
    pulses.triggers.start_trigger.cfg_dig_edge_start_trig("/Dev1/Ctr1InternalOutput")
    pulses.triggers.start_trigger.retriggerable = True
    pulses.start()
    clock.start()


def test_pulses_of_a_million_triggers_are_counted_in_closed_form(bench):
    with nidaqmx.Task() as clock, nidaqmx.Task() as pulses, nidaqmx.Task() as count:
        retriggered(clock, pulses)
        bench.advance_to(1000.0)
        count.ci_channels.add_ci_count_edges_chan("Dev1/ctr2")
        count.ci_channels[0].ci_count_edges_term = "/Dev1/Ctr0InternalOutput"
        count.start()
        bench.advance_to(1001.0)
        assert count.read() == pytest.approx(2000, abs=2)


if __name__ == "__main__":
    print(table())
