"""Wall time between calls of a program, and callbacks against the end of their task.

The clock of most tests is a list with one number, so that wall time goes on without waiting.
"""

import subprocess
import sys
import threading

import nidaqmx
import pytest
from nidaqmx.constants import AcquisitionType, Level
from nidaqmx.system.watchdog import DOExpirationState

from simdaq import System
from simdaq.stopwatch import stopwatch

LONG_S = 20.0  # bound of a wait that ends in milliseconds


def code_of(action):
    with pytest.raises(nidaqmx.DaqError) as caught:
        action()
    return caught.value.error_code


@pytest.fixture
def clock_s():
    return [0.0]


@pytest.fixture
def system(clock_s):
    found = System(lambda: clock_s[0])
    found.add("PCIe-6363", "Dev1")
    return found


def test_a_task_that_starts_after_a_pause_has_no_samples_of_the_pause(system, Task, clock_s):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        clock_s[0] = 2.0
        task.start()
        assert task.in_stream.avail_samp_per_chan == 1  # the one at the start
        clock_s[0] = 2.01
        assert task.in_stream.avail_samp_per_chan == 11


def test_100_kHz_after_a_pause_do_not_overflow(system, Task, clock_s):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1e5, sample_mode=AcquisitionType.CONTINUOUS)
        clock_s[0] = 60.0
        task.start()
        clock_s[0] = 60.1
        assert len(task.read(10_000)) == 10_000


def test_a_watchdog_that_is_fed_in_time_does_not_expire(system, connect, clock_s):
    way = connect(system)
    clock_s[0] = 5.0
    with way.Watchdog("Dev1", timeout=1.0) as dog:
        dog.cfg_watchdog_do_expir_states(
            [DOExpirationState(physical_channel="Dev1/port0/line0", expiration_state=Level.HIGH)]
        )
        clock_s[0] = 7.0
        dog.start()
        for k in range(30):
            clock_s[0] = 7.0 + 0.1 * k
            dog.reset_timer()
        assert not dog.expired
        clock_s[0] += 1.01
        assert dog.expired
        assert system.output("Dev1/port0/line0") == 1.0


def _continuous(Task, callback):
    task = Task()
    task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
    task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
    task.register_every_n_samples_acquired_into_buffer_event(1, callback)
    return task


def test_closing_a_task_waits_for_the_callback_under_way():
    from simdaq import install

    system = System(stopwatch())
    system.add("PCIe-6363", "Dev1")
    install(system)
    inside, go_on, after_close = threading.Event(), threading.Event(), []

    def callback(*_):
        if closer is not None and not closer.is_alive():
            after_close.append(1)
        inside.set()
        go_on.wait(LONG_S)
        return 0

    closer = None
    task = _continuous(nidaqmx.Task, callback)
    task.start()
    assert inside.wait(LONG_S)
    closer = threading.Thread(target=task.close)
    closer.start()
    closer.join(0.2)
    assert closer.is_alive()  # the callback has not returned
    go_on.set()
    closer.join(LONG_S)
    assert not closer.is_alive()
    assert after_close == []
    assert system.tasks == {}


def test_a_callback_can_close_its_own_task():
    from simdaq import install

    system = System(stopwatch())
    system.add("PCIe-6363", "Dev1")
    install(system)
    closed = threading.Event()

    def callback(*_):
        task.close()
        closed.set()
        return 0

    task = _continuous(nidaqmx.Task, callback)
    task.start()
    assert closed.wait(LONG_S)
    assert system.tasks == {}


def test_a_second_registration_is_refused_with_nis_code(system, Task):
    """DAQmxErrors: EVERY_N_SAMPS_ACQ_INTO_BUFFER_EVENT_ALREADY_REGISTERED and so on."""
    from simdaq.errors import DaqmxError
    from simdaq.run import Event

    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0)
        owner = next(iter(system.tasks.values()))
        codes = {"every_n": -200966, "done": -200950, "signal": -200949}
        for kind, code in codes.items():
            system.listen(owner, kind, Event(10, lambda *_: 0))
            with pytest.raises(DaqmxError) as caught:
                system.listen(owner, kind, Event(10, lambda *_: 0))
            assert caught.value.code == code
        task.start()
        with pytest.raises(DaqmxError) as caught:
            system.listen(owner, "done", Event(0, lambda *_: 0))
        assert caught.value.code == -200960


TORTURE = """
import time, nidaqmx
from nidaqmx.constants import AcquisitionType
calls = 0
def callback(*_):
    global calls
    calls += 1
    return 0
for k in range(10_000):
    task = nidaqmx.Task()
    task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
    task.timing.cfg_samp_clk_timing(10_000.0, sample_mode=AcquisitionType.CONTINUOUS)
    task.register_every_n_samples_acquired_into_buffer_event(10, callback)
    task.start()
    if k % 10 == 0:
        time.sleep(0.002)
    task.close()
print("survived", calls > 100)
"""


@pytest.mark.slow
def test_ten_thousand_tasks_are_opened_called_back_and_closed(tmp_path):
    program = tmp_path / "torture.py"
    program.write_text(TORTURE)
    done = subprocess.run(
        [sys.executable, "-m", "simdaq", "--run", str(program)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("survived True\n", 0)
