"""One script, the same answers: by library, by gRPC, and from a card on the bench.

On the bench: pytest -m bench --bench Dev1 tests/simdaq/test_contract.py. The script only
reads, and asks for what cards refuse; it drives no output. What depends on wiring is not compared.
"""

import grpc
import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import READ_ALL_AVAILABLE, AcquisitionType, TaskMode

from simdaq import System, install
from simdaq.grpc_server import serve


def refusal(action):
    """The code that an action is refused with, and how much of a read came all the same."""
    try:
        action()
    except nidaqmx.DaqError as error:
        return error.error_code, getattr(error, "samps_per_chan_read", None)
    return 0, None


def script(Task, devices, name):
    """Everything that a program could see of a card, as plain numbers and names."""
    card, seen = devices[name], {}
    seen["names"] = [
        [channel.name for channel in kind]
        for kind in (card.ai_physical_chans, card.ao_physical_chans, card.ci_physical_chans,
                     card.do_lines)
    ]  # fmt: skip
    seen["rates"] = (card.ai_max_single_chan_rate, card.ai_max_multi_chan_rate, card.ao_max_rate)
    seen["product"] = (card.product_type, card.ci_max_size, card.dig_trig_supported)
    fastest_Hz = card.ai_max_single_chan_rate
    with Task() as task:
        seen["empty"] = refusal(task.start)
        seen["no such channel"] = refusal(
            lambda: task.ai_channels.add_ai_voltage_chan(f"{name}/ai99")
        )
        seen["no such device"] = refusal(
            lambda: task.ai_channels.add_ai_voltage_chan("NoSuchDevice/ai0")
        )
        task.ai_channels.add_ai_voltage_chan(f"{name}/ai0", min_val=-10.0, max_val=10.0)
        seen["twice"] = refusal(lambda: task.ai_channels.add_ai_voltage_chan(f"{name}/ai0"))
        seen["mixed"] = refusal(lambda: task.di_channels.add_di_chan(f"{name}/port0/line0"))
        seen["one"] = np.shape(task.read())
        seen["several"] = np.shape(task.read(3))
        task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=20)
        seen["finite"] = np.shape(task.read(READ_ALL_AVAILABLE))
        task.start()
        task.wait_until_done(1.0)
        seen["part"] = np.shape(task.read(15))
        seen["beyond the end"] = refusal(lambda: task.read(15))
        task.stop()
        task.timing.cfg_samp_clk_timing(10.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.start()
        seen["timeout"] = refusal(lambda: task.read(1000, timeout=0.0))[0]
        seen["while running"] = refusal(lambda: task.timing.cfg_samp_clk_timing(20.0))
        with Task() as other:
            other.ai_channels.add_ai_voltage_chan(f"{name}/ai1")
            seen["reserved"] = refusal(other.start)
        task.stop()
        task.control(TaskMode.TASK_UNRESERVE)
        task.timing.cfg_samp_clk_timing(2.0 * fastest_Hz)
        seen["too fast"] = refusal(lambda: task.control(TaskMode.TASK_VERIFY))
    with Task() as task:
        task.ci_channels.add_ci_count_edges_chan(f"{name}/ctr0")
        task.timing.cfg_samp_clk_timing(1000.0)
        seen["counter without clock"] = refusal(task.start)
    return seen


@pytest.mark.library_leaks("gRPC closes its sockets some time after its server")
def test_library_and_grpc_give_the_same_answers():
    answers, texts = [], []
    for way in ("library", "grpc"):
        system = System("free")
        system.add("PCIe-6363", "Dev1")
        if way == "library":
            install(system)
            found = script(nidaqmx.Task, nidaqmx.system.System.local().devices, "Dev1")
            texts.append(_text(nidaqmx.Task))
        else:
            found, text = over_grpc(system, "Dev1")
            texts.append(text)
        answers.append(found)
    assert answers[0] == answers[1]
    assert texts[0] == texts[1]
    # NI's codes; a finite task of 20 read to its end, where a read that asks for more than is left
    # gives what is left (NI's tests of nidaqmx: "read_too_many_sample ... truncated").
    library = answers[0]
    assert library["finite"] == (20,)
    assert library["beyond the end"] == (0, None)
    assert library["reserved"] == (-50103, None)
    assert library["too fast"] == (-200077, None)


def _text(Task):
    with Task() as task, pytest.raises(nidaqmx.DaqError) as caught:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai99")
    return str(caught.value)


def over_grpc(system, name):
    """The script's answers from a simulated system, and an error's text."""
    server, port = serve(system)
    try:
        with grpc.insecure_channel(f"localhost:{port}") as channel:
            options = nidaqmx.GrpcSessionOptions(channel, "")

            def task():
                return nidaqmx.Task(grpc_options=options)

            devices = nidaqmx.system.System.remote(options).devices
            return script(task, devices, name), _text(task)
    finally:
        server.stop(None).wait()


@pytest.mark.bench
def test_a_card_on_the_bench_gives_the_answers_of_its_simulation(pytestconfig):
    name = pytestconfig.getoption("--bench")
    assert name, "name the card: pytest -m bench --bench Dev1"
    devices = nidaqmx.system.System.local().devices
    system = System("free")
    system.add(devices[name].product_type, name)
    found = script(nidaqmx.Task, devices, name)
    expected, _ = over_grpc(system, name)
    assert found == expected
