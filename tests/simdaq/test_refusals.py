"""What a simulated card refuses, with NI's codes; nothing is energised by a refusal."""

import ctypes

import nidaqmx
import pytest
from nidaqmx.constants import AcquisitionType, LineGrouping, TaskMode

from simdaq import install, library


@pytest.fixture
def system(system):
    system.add("USB-6001", "Dev2")
    return system


def code_of(action):
    with pytest.raises(nidaqmx.DaqError) as caught:
        action()
    return caught.value.error_code


@pytest.mark.parametrize(
    ("channel", "code"),
    [("Dev1/ai32", -200170), ("Dev9/ai0", -200220), ("Dev1/ao0", -200430), ("Dev1/hat", -200170)],
)
def test_a_wrong_channel_name_is_named(system, channel, code, Task):
    with Task() as task:
        assert code_of(lambda: task.ai_channels.add_ai_voltage_chan(channel)) == code


def test_two_tasks_cannot_hold_one_converter(system, Task):
    with Task("first") as first, Task("second") as second:
        first.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        second.ai_channels.add_ai_voltage_chan("Dev1/ai1")
        first.start()
        with pytest.raises(nidaqmx.DaqError, match="first") as caught:
            second.start()
        assert caught.value.error_code == -50103
        first.stop()
        second.start()


def test_a_stop_returns_a_task_to_where_it_was_before_its_start(system, Task):
    """NI-DAQmx Help, "Transitioning the State Backwards": what was committed stays reserved."""
    with Task("first") as first, Task("second") as second:
        first.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        second.ai_channels.add_ai_voltage_chan("Dev1/ai1")
        first.control(TaskMode.TASK_COMMIT)
        first.start()
        first.stop()
        assert code_of(second.start) == -50103
        first.control(TaskMode.TASK_UNRESERVE)
        second.start()


def test_two_tasks_cannot_hold_one_line_but_may_hold_neighbours(system, Task):
    with Task() as first, Task() as second, Task() as third:
        first.do_channels.add_do_chan("Dev1/port0/line0")
        second.do_channels.add_do_chan("Dev1/port0/line0:1")
        third.do_channels.add_do_chan("Dev1/port0/line2")
        first.start()
        third.start()
        assert code_of(second.start) == -50103


@pytest.mark.parametrize(
    ("card", "channels", "rate_Hz", "code"),
    [
        ("Dev1", "ai0", 2.0e6, None),  # 2 MS/s on one channel, 1 MS/s in all on several
        ("Dev1", "ai0", 2.1e6, -200077),
        ("Dev1", "ai0:3", 250.0e3, None),
        ("Dev1", "ai0:3", 251.0e3, -200081),
        ("Dev2", "ai0", 20.0e3, None),
        ("Dev2", "ai0", 20.1e3, -200077),
    ],
)
def test_a_rate_beyond_the_card_is_refused(system, card, channels, rate_Hz, code, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan(f"{card}/{channels}", min_val=-10.0, max_val=10.0)
        task.timing.cfg_samp_clk_timing(rate_Hz, sample_mode=AcquisitionType.CONTINUOUS)
        if code is None:
            task.start()
        else:
            assert code_of(task.start) == code


def test_limits_beyond_the_card_are_refused(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-20.0, max_val=20.0)
        assert code_of(task.start) == -200077


def test_an_unplugged_card_fails_every_task_and_comes_back_with_its_outputs_off(system, Task):
    with Task() as reads, Task() as writes:
        reads.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        writes.do_channels.add_do_chan("Dev1/port0/line0")
        writes.write(True)
        assert system.output("Dev1/port0/line0") == 1.0
        system.unplug("Dev1")
        assert code_of(reads.read) == -201003
        assert code_of(lambda: writes.write(True)) == -201003
        system.plug("Dev1")
        assert system.output("Dev1/port0/line0") == 0.0
        assert reads.read() == 0.0


def test_a_stalled_card_times_out(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.start()
        system.stall("Dev1")
        system.advance_to(0.1)
        assert code_of(lambda: task.read(10, timeout=0.0)) == -200284


def test_broken_inputs_read_as_such(system, Task):
    system.feed("Dev1/ai0", lambda t_s: 1.0 + t_s)
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0", min_val=-10.0, max_val=10.0)
        lsb_V = 20.0 / 2**16
        system.inject("Dev1/ai0", "stuck")
        system.advance_to(1.0)
        assert task.read() == pytest.approx(1.0, abs=lsb_V)
        system.inject("Dev1/ai0", "high rail")
        assert task.read() == pytest.approx(10.0, abs=lsb_V)
        system.inject("Dev1/ai0", "low rail")
        assert task.read() == pytest.approx(-10.0, abs=lsb_V)
        system.inject("Dev1/ai0", None)
        assert task.read() == pytest.approx(2.0, abs=lsb_V)
        system.feed("Dev1/ai0", float("nan"))
        assert abs(task.read()) == pytest.approx(10.0, abs=lsb_V)


def test_lines_as_one_channel_take_a_word_and_show_every_change(system, Task):
    changes = system.watch("Dev1/port0/line1").changes
    with Task() as task:
        task.do_channels.add_do_chan(
            "Dev1/port0/line0:3", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES
        )
        task.write(0b1010)
        assert [system.output(f"Dev1/port0/line{i}") for i in range(4)] == [0.0, 1.0, 0.0, 1.0]
        system.advance_to(0.5)
        task.write(0b0101)
    assert changes == [(0.0, 1.0), (0.5, 0.0)]


def test_a_function_that_is_not_simulated_says_so(system, Task):
    with Task() as task:
        generate = task.ao_channels.add_ao_func_gen_chan
        assert code_of(lambda: generate("Dev1/ao0")) == -209876


ZEROS = {
    "double": ctypes.c_double, "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}  # fmt: skip


def test_every_function_that_the_package_calls_exists_and_answers(system):
    """Also with nothing but zeros and null pointers: an error of NI's, not a defect, no crash."""
    loaded = ctypes.CDLL(str(install(system)))
    functions = library.api().functions
    assert len(functions) > 250
    for function in functions:
        types = [ZEROS.get(a.c_type, ctypes.c_void_p) for a in function.arguments]
        answer = getattr(loaded, function.c_name)
        answer.restype = ctypes.c_int32
        code = answer(*(kind(0) for kind in types or [ctypes.c_void_p] * 6))
        assert code != -50202, function.c_name


def test_stopping_a_finite_task_early_is_a_warning(system, connect):
    way = connect(system)
    with way.Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=20)
        task.start()
        if way.keywords:  # the package looks at no status of this call over gRPC
            task.stop()
        else:
            with pytest.warns(nidaqmx.DaqWarning, match="before it was done"):
                task.stop()
        assert task.is_task_done()
