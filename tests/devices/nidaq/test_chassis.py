"""A CompactDAQ chassis: each terminal's own module is asked, one watchdog holds all of them."""

from dataclasses import replace

import pytest
from nidaqmx import Task
from nidaqmx.constants import LineGrouping
from nidaqmx.system.device import Device

from hil.calibration.signal_chain import Encoder
from hil.devices.nidaq.channels import AnalogOutput, Line
from hil.errors import DeviceError

from .cards import FORCE, HIP, Bench, plan

FEED = Line("feed", "/cDAQ1Mod2/port0/line1", "enable")
LOOP = Line("loop", "/cDAQ1Mod4/port0/line0", "estop")
MOTOR = AnalogOutput("motor", "/cDAQ1Mod3/ao0", units_per_V=1.0, range_V=10.0, rest=1.0)
LINE = "cDAQ1Mod2/port0/line1"


def on_modules(*inputs, lines=(FEED, LOOP), outputs=(MOTOR,), **changes):
    """What a rig asks of a voltage module, with lines and an output on other modules."""
    asked = plan(*inputs, lines=lines, outputs=outputs, **changes)
    return replace(asked, card="cDAQ1Mod1")


class Chassis(Bench):
    """A chassis with a voltage module, two of lines, and one of outputs."""

    def __init__(self, asked, product="cDAQ-9185", **sources):
        super().__init__(asked)
        add = self.system.add
        add(product, "cDAQ1")
        modules = ("NI 9205", "NI 9401", "NI 9263", "NI 9401")
        for i, module in enumerate(modules, 1):
            add(module, f"cDAQ1Mod{i}", chassis="cDAQ1")
        self.system.feed("cDAQ1Mod1/ai0", 1.0)
        self.system.feed("cDAQ1Mod4/port0/line0", 1.0)

    def feed_line(self):
        return self.system.output(LINE)


@pytest.mark.parametrize("watchdog", ["required", "if_present"])
def test_the_chassis_switches_its_modules_off_when_the_program_falls_silent(watchdog):
    with Chassis(on_modules(watchdog=watchdog, watchdog_s=0.05)) as bench:
        bench.start()
        said = [r for r in bench.daq.messages() if "watchdog" in r.text]
        assert [r.level for r in said] == ["info"]
        assert "enable lines low, analogue outputs at rest after 0.05 s" in said[0].text
        assert "by cDAQ1" in said[0].text
        bench.commands.outputs[:] = 4.0
        bench.ticks(200)  # four times as long as it waits: it is fed
        assert bench.feed_line() == 1.0
        bench.system.advance_to(bench.system.now_s + 0.051)
        assert bench.feed_line() == 0.0
        assert bench.system.output("cDAQ1Mod3/ao0") == pytest.approx(1.0, abs=1e-3)


def test_a_required_watchdog_is_looked_for_before_anything_comes_on():
    """The chassis on USB has none; the supply of a rig comes on before its cards' lines."""
    with Chassis(on_modules(watchdog="required"), product="cDAQ-9174") as bench:
        with pytest.raises(DeviceError, match=r"daq: watchdog of cDAQ1: .*-200662.*if_present"):
            bench.daq.open()
        assert bench.feed_line() == 0.0


def test_a_run_that_waits_to_be_armed_has_its_watchdog_before_it_samples():
    """NI: no other task of the chassis may be there while its watchdog starts."""
    with Chassis(on_modules(watchdog="required")) as bench:
        bench.daq.open()
        bench.start_s = bench.system.now_s
        bench.commands.enabled[:] = False
        bench.ticks(300)
        bench.daq.enable()
        bench.daq.arm()
        bench.commands.enabled[:] = True
        bench.tick(300)
        assert bench.readings.valid[0]
        assert bench.feed_line() == 1.0


def test_the_run_after_the_proof_and_the_run_after_a_run_start_their_watchdog_again():
    with Chassis(on_modules(watchdog="required")) as bench:
        for _ in range(2):
            bench.daq.open()
            bench.daq.enable()
            bench.daq.self_test(print)
            bench.daq.enable()
            bench.daq.wait()
            bench.daq.arm()
            bench.start_s = bench.system.now_s
            bench.ticks(20)
            bench.daq.safe()
            assert bench.feed_line() == 0.0
            bench.system.advance_to(bench.system.now_s + 5.0)  # others take their time to go off
            bench.daq.close()


def test_a_chassis_that_waits_for_its_reset_is_one_line_that_says_so():
    with Chassis(on_modules(watchdog_s=0.05)) as bench:
        bench.start().ticks(5)
        bench.system.advance_to(bench.system.now_s + 1.0)
        with pytest.raises(DeviceError, match=r"-201478"):
            bench.tick(1000)
        bench.daq.close()
        with pytest.raises(DeviceError, match=r"nothing until it is reset.*reset_device.*-201478"):
            bench.start()
        bench.daq.close()
        Device("cDAQ1").reset_device()
        bench.start().tick(0)
        assert bench.feed_line() == 1.0


def test_another_program_on_the_chassis_is_named_where_its_watchdog_is_required():
    with Chassis(on_modules(watchdog="required")) as bench:
        bench.daq.open()
        with Task("someone else's") as other:
            other.do_channels.add_do_chan("cDAQ1Mod2/port0/line7", "", LineGrouping.CHAN_PER_LINE)
            other.start()
            with pytest.raises(DeviceError, match=r"before any other of its tasks.*-201477"):
                bench.daq.enable()
        assert bench.feed_line() == 0.0


FAST = replace(FORCE, name="fast", terminal="/cDAQ1Mod5/ai0")
WIDE = replace(MOTOR, range_V=12.0)

# (module in slot 5, what is asked, what the line says)
ASKED_OF_ITS_OWN = {
    "a range of another module": (
        "NI 9215", on_modules(FORCE, replace(FAST, range_raw=11.0)), ["NI 9215", "10 V"],
    ),
    "a rate of another module": (
        "NI 9211", on_modules(replace(FAST, range_raw=0.05)), ["NI 9211", "takes 14 Hz"],
    ),
    "an output of another module": ("NI 9215", on_modules(outputs=(WIDE,)), ["NI 9263", "10 V"]),
    "single point of another module": (
        "NI 9215", on_modules(FAST, kind="single_point"), ["NI 9215", "single point"],
    ),
    "a module that is not there": (
        "NI 9215", on_modules(replace(FORCE, terminal="/cDAQ1Mod9/ai0")), ["no card 'cDAQ1Mod9'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED_OF_ITS_OWN)
def test_what_a_terminal_asks_is_asked_of_its_own_module(case):
    module, asked, wanted = ASKED_OF_ITS_OWN[case]
    with Chassis(asked) as bench:
        bench.system.add(module, "cDAQ1Mod5", chassis="cDAQ1")
        with pytest.raises(DeviceError) as refused:
            bench.start()
        assert bench.feed_line() == 0.0
    for words in wanted:
        assert words in str(refused.value)


def test_a_fast_module_may_sample_faster_than_the_plans_card():
    """NI 9205 shares 250 kHz among its channels, NI 9215 has 100 kHz for each."""
    three = (FORCE, FAST, replace(FAST, name="faster", terminal="/cDAQ1Mod5/ai1"))
    with Chassis(on_modules(*three, per_tick=100)) as bench:
        bench.system.add("NI 9215", "cDAQ1Mod5", chassis="cDAQ1")
        bench.system.feed("cDAQ1Mod5/ai0", 2.0)
        bench.start().ticks(3)
        assert bench.readings.measured[1] == pytest.approx(4.0, abs=1e-3)


def test_counters_of_the_chassis_and_outputs_of_a_module_need_no_card_that_has_them():
    hip = replace(HIP, terminal="/cDAQ1/_ctr0", encoder=Encoder(2000))
    asked = replace(on_modules(FORCE, hip), card="cDAQ1")
    asked = replace(asked, inputs=(replace(FORCE, terminal="/cDAQ1Mod1/ai0"), hip))
    with Chassis(asked) as bench:
        bench.system.feed("cDAQ1/ctr0", 0.25)
        bench.start().ticks(3)
        assert bench.readings.valid.all()
