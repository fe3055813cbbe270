"""What a card cannot do is refused before the run: one line with the reason, nothing energised."""

from dataclasses import replace

import pytest
from nidaqmx import Task

from hil.devices.nidaq.channels import AnalogOutput, Bridge, Line
from hil.errors import DeviceError

from .cards import FORCE, HIP, SUPPLY, Bench, plan

HIPS = tuple(replace(HIP, name=f"hip{i}", terminal=f"ctr{i}") for i in range(4))
CELL = replace(FORCE, range_raw=2.0, bridge=Bridge(10.0, 350.0))

# (card, what is asked of it, what the line says)
REFUSED = {
    "another card": ("USB-6361", replace(plan(), card="Dev2"), ["no card 'Dev2'", "Dev1"]),
    "no such input": ("PCIe-6321", plan(replace(FORCE, terminal="ai99")), ["'Dev1/ai99'", "ai0"]),
    "no such counter": ("PCIe-6321", plan(FORCE, replace(HIP, terminal="ctr9")), ["'Dev1/ctr9'"]),
    "no such line": (
        "PCIe-6321", plan(lines=(Line("x", "port9/line0", "enable"),)), ["'Dev1/port9/line0'"],
    ),
    "no such output": (
        "PCIe-6321", plan(outputs=(AnalogOutput("m", "ao7", 1.0, 10.0),)), ["'Dev1/ao7'"],
    ),
    "too wide a range": (
        "PCIe-6321", plan(replace(FORCE, range_raw=30.0)), ["30 V", "up to 10 V", "'force'"],
    ),
    "too wide an output": (
        "PCIe-6321", plan(outputs=(AnalogOutput("m", "ao0", 1.0, 12.0),)), ["12 V", "up to 10 V"],
    ),
    "a rate beyond the card": (
        "PCIe-6321", plan(per_tick=1000), ["1e+06 Hz", "250000 Hz", "rate_Hz"],
    ),
    "a rate beyond the card with two channels": (
        "PCIe-6321",
        plan(FORCE, replace(FORCE, name="other", terminal="ai1"), per_tick=200),
        ["200000 Hz on 2 channels", "125000 Hz"],
    ),
    "four encoders for two counters": (
        "PCIe-6251", plan(FORCE, *HIPS), ["2 counters", "4 encoders"],
    ),
    "counters without a clock": ("USB-6001", plan(FORCE, HIP), ["no sample clock", "on_demand"]),
    "encoders without inputs to clock them": ("PCIe-6321", plan(HIP), ["analogue", "on_demand"]),
    "single point over USB": (
        "USB-6361", plan(kind="single_point"), ["single point", "'block' or 'on_demand'"],
    ),
    "a bridge on a voltage card": ("PCIe-6321", plan(CELL), ["no inputs for mV/V"]),
    "one terminal twice": (
        "PCIe-6321", plan(FORCE, replace(FORCE, name="again")), ["'Dev1/ai0'", "twice"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_with_the_reason_and_nothing_is_energised(case):
    product, asked, wanted = REFUSED[case]
    asked = replace(asked, lines=(*asked.lines, SUPPLY))
    with Bench(asked, product=product, ai0=1.0, ai1=1.0) as bench:
        with pytest.raises(DeviceError) as refused:
            bench.start()
        assert bench.level("port0/line1") == 0.0
    line = str(refused.value)
    assert line.startswith("daq: ")
    assert "\n" not in line
    for words in wanted:
        assert words in line


def test_an_unplugged_card_is_refused():
    with Bench(plan(), ai0=1.0) as bench:
        bench.system.unplug("Dev1")
        with pytest.raises(DeviceError, match=r"daq: .*(cable|no card)"):
            bench.start()


def test_inputs_that_another_task_holds_are_refused_and_free_again_afterwards():
    with Bench(plan(), ai0=1.0) as bench:
        with Task("someone else's") as other:
            other.ai_channels.add_ai_voltage_chan("Dev1/ai3")
            other.timing.cfg_samp_clk_timing(100.0)
            other.start()
            with pytest.raises(DeviceError, match=r"held by another.*-50103"):
                bench.start()
        bench.start().tick(0)
        assert bench.readings.valid[0]


def test_a_simulated_card_does_not_pass_for_a_real_one():
    with (
        Bench(plan(), simulated=False, ai0=1.0) as bench,
        pytest.raises(DeviceError, match=r"simulated device.*daq=emulated"),
    ):
        bench.start()
