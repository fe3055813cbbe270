"""Benches from files: NI MAX exports, cards of one's own, scenes."""

import json
import sys

import nidaqmx
import numpy as np
import pytest

from simdaq import catalog, install, scene
from simdaq.command import main
from simdaq.errors import SetupError
from simdaq.scene import BenchPlan

MAX = """\ufeff[DAQmx]
MajorVersion = 23

[DAQmxCDAQModule cDAQ1Mod3]
ProductType = NI 9215
CompactDAQ.ChassisDevName = cDAQ1
CompactDAQ.SlotNum = 3

[DAQmxCDAQChassis cDAQ1]
ProductType = cDAQ-9178

[DAQmxDevice Real1]
ProductType = PCIe-6363
DevIsSimulated = 0

[DAQmxScale doubled]
Lin.Slope = 2
Lin.YIntercept = 1
PreScaledUnits = Volts
ScaleType = Linear
Author = "A. Body"

[DAQmxChannel load/force]
AI.MeasType = Voltage
AI.TermCfg = Differential
AI.Max = 5
AI.Min = -5
ChanType = Analog Input
PhysicalChanName = cDAQ1Mod3/ai1

[DAQmxTask load]
Channels = load/force
SampQuant.SampMode = Finite Samples
SampClk.ActiveEdge = Rising
SampQuant.SampPerChan = 40
SampClk.Rate = 1000
SampTimingType = Sample Clock
"""


@pytest.fixture
def of_max(tmp_path):
    file = tmp_path / "bench.ini"
    file.write_text(MAX, encoding="utf-8")
    system = scene.build(BenchPlan(max_files=[str(file)]), "free")
    install(system)
    return system


def test_an_ni_max_export_gives_cards_with_their_slots(of_max):
    module = nidaqmx.system.Device("cDAQ1Mod3")
    assert module.compact_daq_chassis_device.name == "cDAQ1"
    assert module.compact_daq_slot_num == 3
    assert module.is_simulated
    assert not nidaqmx.system.Device("Real1").is_simulated


def test_a_saved_task_loads_and_reads(of_max):
    saved = nidaqmx.system.System.local().tasks["load"]
    with saved.load() as task:
        assert task.channel_names == ["force"]
        assert len(task.read(nidaqmx.constants.READ_ALL_AVAILABLE)) == 40


def test_a_saved_scale_scales(of_max):
    scale = nidaqmx.system.System.local().scales["doubled"]
    assert scale.author == "A. Body"
    of_max.feed("cDAQ1Mod3/ai0", 1.5)
    with nidaqmx.Task() as task:
        task.ai_channels.add_ai_voltage_chan(
            "cDAQ1Mod3/ai0", units=nidaqmx.constants.VoltageUnits.FROM_CUSTOM_SCALE,
            custom_scale_name="doubled", min_val=-9.0, max_val=9.0,
        )  # fmt: skip
        assert task.read() == pytest.approx(4.0, abs=2e-3)


def test_a_task_is_saved_and_loaded_by_the_program(of_max):
    with nidaqmx.Task("mine") as task:
        task.ai_channels.add_ai_voltage_chan("Real1/ai0:1", name_to_assign_to_channel="a")
        task.save(author="me")
    saved = nidaqmx.system.storage.PersistedTask("mine")
    assert saved.author == "me"
    with saved.load() as again:
        assert again.channel_names == ["a0", "a1"]
    saved.delete()
    with pytest.raises(nidaqmx.DaqError) as caught:
        _ = saved.author
    assert caught.value.error_code == -200485


def test_a_card_of_ones_own_is_a_table_in_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('["My-1"]\nlike = "USB-6001"\nnumber = 1\nai = {bits = 12}\n')
    model = catalog.model(str(file))
    assert (model.product, model.ai.bits, model.ai.n_channels) == ("My-1", 12, 8)
    system = scene.build(BenchPlan(scene.parse([f"{file}=Dev1"])), "free")
    assert system.cards["Dev1"].model.ports == catalog.model("USB-6001").ports


@pytest.mark.parametrize("key", ["in_module", "own"])
@pytest.mark.parametrize("value", [True, False])
def test_a_card_says_whether_its_counters_are_in_the_module_under_either_name_of_the_key(
    tmp_path, key, value
):
    file = tmp_path / f"{key}-{value}.toml"  # a file is read once, by its path
    counters = f"counters = {{n = 4, {key} = {str(value).lower()}}}"
    file.write_text(f'["My-1"]\nlike = "NI 9361"\nnumber = 1\n{counters}\n')
    assert catalog.model(str(file)).counters.in_module is value


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('["My-1"]\nlike = "USB-6001"\nnumbr = 1\n', "numbr"),
        ('["My-1"]\nlike = "USB-9999"\n', "like = 'USB-9999' is not known"),
        ("[a]\n[b]\n", "2 tables"),
        ("[a\n", "Expected"),
    ],
)
def test_a_wrong_card_file_is_one_line(tmp_path, capsys, text, line):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    assert main(["--card", f"{file}=Dev1"]) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


@pytest.fixture
def bench(tmp_path):
    """Builds the bench of a scene file's text."""

    def build(text):
        file = tmp_path / "scene.toml"
        file.write_text(text)
        system = scene.build(BenchPlan([("PCIe-6363", "Dev1")], scene=str(file)), "free")
        install(system)
        return system

    return build


def read(terminal, n=1000, rate_Hz=1000.0):
    with nidaqmx.Task() as task:
        task.ai_channels.add_ai_voltage_chan(terminal, min_val=-10.0, max_val=10.0)
        task.timing.cfg_samp_clk_timing(rate_Hz, samps_per_chan=n)
        return np.array(task.read(n))


def test_a_scene_gives_shapes(bench):
    bench(
        '[signals."Dev1/ai0"]\nkind = "sine"\namplitude = 2\noffset = 1.0\nfrequency_Hz = 5\n'
        '[signals."Dev1/ai1"]\nvalue = 3.0\n'
        '[signals."Dev1/ai2"]\nkind = "triangle"\namplitude = 4.0\n'
    )
    t_s = np.arange(1000) / 1000.0
    assert read("Dev1/ai0") == pytest.approx(1.0 + 2.0 * np.sin(10.0 * np.pi * t_s), abs=1e-3)
    assert read("Dev1/ai1") == pytest.approx(3.0, abs=1e-3)
    triangle = read("Dev1/ai2")
    assert [triangle.min(), triangle.max()] == pytest.approx([-4.0, 4.0], abs=0.02)


def test_a_scene_plays_a_recording_over_and_over(bench, tmp_path):
    (tmp_path / "measured.csv").write_text("t_s,force\n0.0,0.0\n0.1,1.0\n0.2,0.0\n0.3,-1.0\n")
    system = bench(
        '[signals."Dev1/ai0"]\nkind = "recording"\nfile = "measured.csv"\ncolumn = "force"\n'
    )
    source = system.cards["Dev1"].terminal("ai0").source
    assert source(np.array([0.05, 0.1, 0.25, 0.45, 0.5])) == pytest.approx([0.5, 1, -0.5, 0.5, 1])


def test_a_scene_calls_a_function(bench, tmp_path):
    (tmp_path / "own.py").write_text("def ramp(t_s):\n    return 2.0 * t_s\n")
    bench('[signals."Dev1/ai0"]\nkind = "function"\nfunction = "own.py:ramp"\n')
    volts = read("Dev1/ai0")
    assert volts[-1] - volts[0] == pytest.approx(2.0 * 0.999, abs=2e-3)


def test_a_scene_couples_a_plant_to_outputs_and_inputs(bench, tmp_path):
    """A first-order lag of 50 ms: after one time constant 1 - 1/e of a step."""
    (tmp_path / "oven.py").write_text(
        "class Oven:\n"
        "    def __init__(self):\n"
        "        self.volts = 0.0\n"
        "    def step(self, t_s, outputs):\n"
        "        self.volts += (outputs['Dev1/ao0'] - self.volts) * 1e-3 / 0.05\n"
        "        return {'Dev1/ai0': self.volts}\n"
    )
    system = bench(
        '[plant]\nclass = "oven.py:Oven"\nstep_s = 0.001\noutputs = ["Dev1/ao0"]\n'
        'inputs = ["Dev1/ai0"]\n'
    )
    with nidaqmx.Task() as drives, nidaqmx.Task() as reads:
        drives.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        reads.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        drives.write(5.0)
        system.advance_to(system.now_s + 0.05)
        assert reads.read() == pytest.approx(5.0 * (1.0 - np.exp(-1.0)), rel=0.02)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[signals."Dev1/ai0"]\nkind = "sin"\n', "write one of constant, sine"),
        ('[signals."Dev1/ai0"]\nkind = "sine"\nfrequency = 2\n', "frequency: unknown key"),
        ('[signals."Dev1/ai0"]\nkind = "sine"\namplitude = "2"\n', "not a number"),
        ('[signals."Dev9/ai0"]\nvalue = 1.0\n', "no such terminal"),
        ('[signals."Dev1/ai0"]\nkind = "recording"\nfile = "no.csv"\ncolumn = "a"\n', "no.csv"),
        ('[signals."Dev1/ai0"]\nkind = "function"\nfunction = "no.py:f"\n', "is no file"),
        ("[signal]\n", "unknown table"),
        ('[plant]\nclass = "no.py:P"\ninputs = []\nstep_s = 0.0\n', "must be above 0"),
    ],
)
def test_a_wrong_scene_is_one_line(bench, text, line):
    with pytest.raises(SetupError) as caught:
        bench(text)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_environment_carries_files_by_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ini").write_text(MAX, encoding="utf-8")
    carried = json.loads(BenchPlan(max_files=["a.ini"], fast=True).to_environment())
    assert carried["max_files"] == [str(tmp_path / "a.ini")]
    assert carried["fast"] is True


def test_the_options_import_nothing(tmp_path):
    import subprocess

    code = (
        "import sys; before = set(sys.modules); import simdaq.options;"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['__future__', 'simdaq', 'simdaq.options']\n"
