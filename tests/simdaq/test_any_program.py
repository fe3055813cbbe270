"""Whatever a program does, it gets an answer or an error of NI's, never a defect."""

import warnings

import nidaqmx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from nidaqmx.constants import (
    AcquisitionType,
    Edge,
    LineGrouping,
    OverwriteMode,
    ReadRelativeTo,
    RegenerationMode,
    TaskMode,
)
from nidaqmx.types import CtrFreq

from simdaq import Pulses, System, install

DEFECT = -50202
CARD = st.sampled_from(["Dev1", "Dev1", "Dev1", "Dev2", "Dev3"])
INDEX = st.sampled_from(["0", "0", "1", "0:1", "9", "99"])
RATE = st.sampled_from([0.0, 0.1, 100.0, 1e3, 3e3, 1e5, 1e9])
N = st.sampled_from([-1, 0, 1, 2, 7, 50, 2000])
MODE = st.sampled_from(list(AcquisitionType))
SOURCE = st.sampled_from(
    ["", "OnboardClock", "/Dev1/PFI0", "/Dev1/ai/SampleClock", "/Dev1/Ctr0InternalOutput", "PFI9",
     "/Dev9/PFI0", "/Dev1/nowhere", "ai/SampleClock", "/Dev1/do/SampleClock"]
)  # fmt: skip


def bench():
    """Three cards, something on every input that can be read."""
    system = System("free")
    system.add("PCIe-6363", "Dev1")
    system.add("USB-6001", "Dev2")
    system.add("PCIe-6251", "Dev3")
    for i in range(2):
        system.feed(f"Dev1/ai{i}", lambda t_s: np.sin(t_s))
        system.feed(f"Dev1/ctr{i}", lambda t_s: 3.0 * t_s)
    system.feed("Dev1/PFI0", Pulses(1e-2, 3e-3))
    system.feed("Dev1/PFI9", Pulses(1e-3, 3e-4))
    return system


PROPERTIES = {
    "relative_to": lambda t, v: setattr(t.in_stream, "relative_to", list(ReadRelativeTo)[v % 5]),
    "offset": lambda t, v: setattr(t.in_stream, "offset", v),
    "overwrite": lambda t, v: setattr(t.in_stream, "overwrite", list(OverwriteMode)[v % 2]),
    "input_buf_size": lambda t, v: setattr(t.in_stream, "input_buf_size", abs(v)),
    "output_buf_size": lambda t, v: setattr(t.out_stream, "output_buf_size", abs(v)),
    "regen": lambda t, v: setattr(t.out_stream, "regen_mode", list(RegenerationMode)[v % 2]),
    "retriggerable": lambda t, v: setattr(t.triggers.start_trigger, "retriggerable", v > 0),
    "read state": lambda t, v: (t.in_stream.avail_samp_per_chan, t.timing.samp_clk_rate,
                                t.in_stream.total_samp_per_chan_acquired, t.is_task_done()),
    "write state": lambda t, v: (t.out_stream.space_avail, t.out_stream.curr_write_pos),
    "names": lambda t, v: (t.channel_names, [d.name for d in t.devices]),
}  # fmt: skip
STEPS = {
    "ai": st.tuples(CARD, INDEX, st.sampled_from([-10.0, 0.0]), st.sampled_from([10.0, 0.1, 0.0])),
    "ao": st.tuples(CARD, INDEX),
    "ci": st.tuples(CARD, INDEX, st.sampled_from(["edges", "encoder", "freq", "pulse", "width"])),
    "co": st.tuples(CARD, st.sampled_from(["0", "1", "9"]), st.sampled_from([10.0, 0.0, 1e4])),
    "di": st.tuples(CARD, st.sampled_from(["line0", "line0:3", "line40", ""]), st.booleans()),
    "do": st.tuples(CARD, st.sampled_from(["line0", "line0:3", ""]), st.booleans()),
    "clock": st.tuples(RATE, SOURCE, MODE, st.sampled_from([0, 1, 2, 50, 3000])),
    "implicit": st.tuples(MODE, st.sampled_from([1, 20])),
    "trigger": st.tuples(SOURCE, st.sampled_from(list(Edge))),
    "reference": st.tuples(SOURCE, st.sampled_from([0, 2, 40])),
    "control": st.tuples(st.sampled_from(list(TaskMode))),
    "read": st.tuples(N, st.sampled_from([0.0, 0.05])),
    "write": st.tuples(st.sampled_from([0, 1, 3, 50]), st.booleans()),
    "property": st.tuples(st.sampled_from(sorted(PROPERTIES)), st.integers(-100, 100)),
    "wait": st.tuples(st.sampled_from([0.0, 0.1])),
    "advance": st.tuples(st.sampled_from([1e-4, 1e-2, 1.0])),
    "plug": st.tuples(CARD, st.sampled_from(["unplug", "plug", "stall"])),
}
OFTEN = ["ai", "ao", "ci", "do", "clock", "clock", "read", "read", "write", "write", "advance"]
STEP = st.sampled_from([*OFTEN, *sorted(STEPS)]).flatmap(
    lambda kind: st.tuples(st.just(kind), st.integers(0, 2), STEPS[kind])
)


def channel_of(task, kind, card, index, what):
    counter = f"{card}/ctr{index}"
    if kind == "ci":
        make = {
            "edges": task.ci_channels.add_ci_count_edges_chan,
            "encoder": task.ci_channels.add_ci_ang_encoder_chan,
            "freq": task.ci_channels.add_ci_freq_chan,
            "pulse": task.ci_channels.add_ci_pulse_chan_freq,
            "width": task.ci_channels.add_ci_pulse_width_chan,
        }
        make[what[0]](counter)
    elif kind == "co":
        task.co_channels.add_co_pulse_chan_freq(counter, freq=what[0])
    elif kind == "ai":
        low, high = what
        task.ai_channels.add_ai_voltage_chan(f"{card}/ai{index}", min_val=low, max_val=high)
    else:
        task.ao_channels.add_ao_voltage_chan(f"{card}/ao{index}")


def lines_of(task, kind, card, lines, together):
    grouping = LineGrouping(int(together))
    physical = f"{card}/port0/{lines}".rstrip("/")
    channels = task.di_channels if kind == "di" else task.do_channels
    getattr(channels, f"add_{kind}_chan")(physical, line_grouping=grouping)


def write(task, kind, n, auto_start):
    value = {"co": CtrFreq(50.0, 0.5), "ao": 1.0}.get(kind, True)
    single = n == 0 or (kind == "co" and n == 1)  # the package wants one pulse bare
    row = value if single else [value] * n
    channels = task.number_of_channels
    data = row if channels < 2 else [row] * channels
    task.write(data, auto_start=auto_start, timeout=0.05)


def do(system, tasks, kind, which, what):
    """One step of a program."""
    task, kinds = tasks[which]
    if kind in ("ai", "ao", "ci", "co"):
        channel_of(task, kind, what[0], what[1], what[2:])
        tasks[which] = (task, kind)
    elif kind in ("di", "do"):
        lines_of(task, kind, *what)
        tasks[which] = (task, kind)
    elif kind == "clock":
        rate, source, mode, samples = what
        task.timing.cfg_samp_clk_timing(rate, source, Edge.RISING, mode, samples)
    elif kind == "implicit":
        task.timing.cfg_implicit_timing(*what)
    elif kind == "trigger":
        task.triggers.start_trigger.cfg_dig_edge_start_trig(*what)
    elif kind == "reference":
        task.triggers.reference_trigger.cfg_dig_edge_ref_trig(what[0], what[1])
    elif kind == "control":
        task.control(*what)
    elif kind == "read":
        task.read(what[0], timeout=what[1])
    elif kind == "write":
        write(task, kinds, *what)
    elif kind == "property":
        PROPERTIES[what[0]](task, what[1])
    elif kind == "wait":
        task.wait_until_done(*what)
    elif kind == "advance":
        system.advance_to(system.now_s + what[0])
    else:
        getattr(system, what[1])(what[0])


def answer(action):
    """Status and text of a step."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nidaqmx.DaqWarning)
        try:
            action()
        except nidaqmx.DaqError as error:
            return error.error_code, str(error)
    return 0, ""


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(STEP, max_size=25))
def test_every_program_gets_answers_or_errors_of_nis(steps):
    system = bench()
    install(system)
    tasks = [(nidaqmx.Task(), "") for _ in range(3)]
    try:
        for kind, which, what in steps:
            before_s = system.now_s
            code, text = answer(lambda k=kind, w=which, x=what: do(system, tasks, k, w, x))
            assert code != DEFECT, text
            assert system.now_s >= before_s
    finally:
        for task, _ in tasks:
            task.close()
    assert not system.tasks
