"""Cards on wall time: programs wait, callbacks come from a thread of the driver."""

import queue
import threading

import nidaqmx
import pytest
from nidaqmx.constants import AcquisitionType

from simdaq import System, install
from simdaq.stopwatch import stopwatch

pytestmark = pytest.mark.xdist_group("real time")


@pytest.fixture
def system():
    found = System(stopwatch())
    found.add("PCIe-6363", "Dev1")
    return found


def test_a_read_waits_for_its_samples(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=51)
        task.start()
        began_s = system.now_s
        assert len(task.read(51, timeout=300.0)) == 51
        system.catch_up()
    assert system.now_s >= began_s + 0.05


def test_callbacks_come_by_themselves_while_the_program_does_nothing(system, Task):
    found = queue.SimpleQueue()
    with Task() as task:

        def every(handle, what, n, data):
            found.put((threading.get_ident(), len(task.read(n))))
            return 0

        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.register_every_n_samples_acquired_into_buffer_event(20, every)
        task.start()
        seen = [found.get(timeout=300.0) for _ in range(3)]
        task.stop()
        task.register_every_n_samples_acquired_into_buffer_event(20, None)
    assert [n for _, n in seen] == [20, 20, 20]
    assert threading.get_ident() not in {thread for thread, _ in seen}


def test_a_program_can_wait_in_one_thread_and_write_from_another(system, Task):
    with Task() as waits, Task() as writes:
        waits.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        waits.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=101)
        writes.do_channels.add_do_chan("Dev1/port0/line0")
        writes.start()
        waits.start()
        lengths = queue.SimpleQueue()
        thread = threading.Thread(target=lambda: lengths.put(len(waits.read(101, timeout=300.0))))
        thread.start()
        writes.write(True)  # while the other waits
        assert system.output("Dev1/port0/line0") == 1.0
        assert lengths.get(timeout=300.0) == 101
        thread.join()


def test_a_program_that_waits_hears_that_its_card_is_gone(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.start()
        found = queue.SimpleQueue()

        def read():
            try:
                found.put(task.read(50_000, timeout=300.0))
            except nidaqmx.DaqError as error:
                found.put(error.error_code)

        thread = threading.Thread(target=read)
        thread.start()
        system.unplug("Dev1")
        assert found.get(timeout=300.0) == -201003
        thread.join()


def test_a_read_that_waits_ends_when_another_thread_stops_the_task(system, Task):
    """NI's -88710: the task was aborted while a call waited for it."""
    codes = queue.SimpleQueue()
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.start()

        def read():
            with pytest.raises(nidaqmx.DaqError) as caught:
                task.read(1_000_000, timeout=600.0)
            codes.put(caught.value.error_code)

        reader = threading.Thread(target=read)
        reader.start()
        assert task.is_task_done() is False
        task.stop()
        # A read that begins only now starts the task again.
        while reader.is_alive() and codes.empty():
            task.stop()
            reader.join(0.05)
        assert codes.get(timeout=300.0) == -88710
        reader.join(300.0)


def test_a_task_that_is_done_tells_it_though_the_program_stops_it_at_once():
    system, told = System(stopwatch()), queue.SimpleQueue()
    system.add("PCIe-6363", "Dev1")
    install(system)
    with nidaqmx.Task() as task:
        task.ao_channels.add_ao_voltage_chan("Dev1/ao0")
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=10)
        task.write([0.0] * 10)
        task.register_done_event(lambda handle, status, data: told.put(status) or 0)
        with system.lock:  # the driver's thread comes too late
            task.start()
            while not task.is_task_done():
                pass
            task.stop()
        assert told.get(timeout=300.0) == 0
