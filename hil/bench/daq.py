"""`hil bench`: simulated NI-DAQmx cards through the unmodified nidaqmx package."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from hil.bench.table import as_table
from hil.config.values import Figures
from hil.devices.nidaq.simdaq_border import simdaq_errors
from hil.mechanics.arrays import Array

if TYPE_CHECKING:
    from simdaq import System

TICKS = 3000
MINUTE_S = 60.0
RATE_HZ = 10_000.0
CHANNELS = 4
BLOCK = 100
CALLS = 400


@simdaq_errors()
def measure() -> dict[str, object]:
    """Times in s; empty where nidaqmx is not installed."""
    if find_spec("nidaqmx") is None or find_spec("grpc") is None:
        return {}
    return {"tick_p50_s": _tick(), **_minute(), "grpc_read_p50_s": _grpc()}


def as_text(figures: Figures) -> str:
    """The figures as a table."""
    if not figures:
        return "simulated NI-DAQmx                           not installed: hil-arrays[daq]"
    lost = figures["samples_expected"] - figures["samples_right"]
    rows = [
        ("simulated NI-DAQmx: AI + CI + DO in one tick", f"{1e6 * figures['tick_p50_s']:.0f} us",
         "below 250 us"),
        (f"  a minute of {RATE_HZ / 1e3:g} kHz x {CHANNELS} in blocks: lost", f"{lost}",
         f"of {figures['samples_expected']}, in {figures['minute_s']:.2f} s"),
        ("  one sample by gRPC", f"{1e3 * figures['grpc_read_p50_s']:.2f} ms", "below 3 ms"),
    ]  # fmt: skip
    return as_table(rows)


def _numbered_V(channel: int, period: int, t_s: Array) -> Array:
    """Volts that tell the number of a sample: 1 mV each, from -1 V for every channel on."""
    volts: Array = np.round(t_s * RATE_HZ) % period * 1e-3 - channel
    return volts


def _system() -> "System":
    from simdaq import System

    system = System("held")
    system.add("PCIe-6363", "Dev1")
    return system


def _median(action: Callable[[int], object], n: int) -> float:
    times = []
    for k in range(n):
        began = time.perf_counter()
        action(k)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _tick() -> float:
    """Four voltages, an encoder and eight lines: read, read, write, at 1 kHz."""
    import nidaqmx
    from nidaqmx.constants import LineGrouping
    from nidaqmx.stream_readers import AnalogMultiChannelReader, CounterReader
    from nidaqmx.stream_writers import DigitalSingleChannelWriter

    from simdaq import install

    system = _system()
    for i in range(CHANNELS):
        system.feed(f"Dev1/ai{i}", lambda t_s: 0.1 * t_s)
    system.feed("Dev1/ctr0", lambda t_s: t_s)
    install(system)
    with nidaqmx.Task() as ai, nidaqmx.Task() as ci, nidaqmx.Task() as do:
        ai.ai_channels.add_ai_voltage_chan(f"Dev1/ai0:{CHANNELS - 1}")
        ci.ci_channels.add_ci_ang_encoder_chan("Dev1/ctr0")
        do.do_channels.add_do_chan(
            "Dev1/port0/line0:7", line_grouping=LineGrouping.CHAN_FOR_ALL_LINES
        )
        volts, counters = AnalogMultiChannelReader(ai.in_stream), CounterReader(ci.in_stream)
        lines = DigitalSingleChannelWriter(do.out_stream)
        volts.verify_array_shape = counters.verify_array_shape = False
        lines.verify_array_shape = False
        sample_V = np.empty(CHANNELS)
        for task in (ai, ci, do):
            task.start()

        def tick(k: int) -> None:
            system.advance_to(1e-3 * (k + 1))
            volts.read_one_sample(sample_V, timeout=0.0)
            counters.read_one_sample_double(timeout=0.0)
            lines.write_one_sample_port_uint32(k & 0xFF, timeout=0.0)

        return _median(tick, TICKS)


def _minute() -> Figures:
    """Blocks of a minute of virtual time; every sample is compared with its source."""
    import nidaqmx
    from nidaqmx.constants import AcquisitionType
    from nidaqmx.stream_readers import AnalogMultiChannelReader

    from simdaq import install

    system, period = _system(), 10_000
    for i in range(CHANNELS):
        system.feed(f"Dev1/ai{i}", partial(_numbered_V, i, period))
    install(system)
    right, tolerance_V = 0, 20.0 / 2**16
    block_V = np.empty((CHANNELS, BLOCK))
    number = np.arange(BLOCK)
    with nidaqmx.Task() as task:
        task.ai_channels.add_ai_voltage_chan(
            f"Dev1/ai0:{CHANNELS - 1}", min_val=-10.0, max_val=10.0
        )
        task.timing.cfg_samp_clk_timing(
            RATE_HZ, sample_mode=AcquisitionType.CONTINUOUS, samps_per_chan=10 * BLOCK
        )
        reader = AnalogMultiChannelReader(task.in_stream)
        task.start()
        began = time.perf_counter()
        blocks = round(MINUTE_S * RATE_HZ / BLOCK)
        for k in range(blocks):
            system.advance_to(BLOCK * (k + 1) / RATE_HZ)
            reader.read_many_sample(block_V, BLOCK, timeout=0.0)
            fed_V = (number + k * BLOCK) % period * 1e-3 - np.arange(CHANNELS)[:, None]
            right += int(np.sum(np.abs(block_V - fed_V) < tolerance_V))
        took_s = time.perf_counter() - began
    return {
        "samples_expected": blocks * BLOCK * CHANNELS,
        "samples_right": right,
        "minute_s": took_s,
    }


def _grpc() -> float:
    """One sample of one channel, client and server in one process."""
    import grpc
    import nidaqmx
    from nidaqmx.stream_readers import AnalogSingleChannelReader

    from simdaq.grpc_server import serve

    server, port = serve(_system())
    with grpc.insecure_channel(f"localhost:{port}") as channel:
        options = nidaqmx.GrpcSessionOptions(channel, "")
        with nidaqmx.Task(grpc_options=options) as task:
            task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
            reader = AnalogSingleChannelReader(task.in_stream)
            task.start()
            median_s = _median(lambda _: reader.read_one_sample(timeout=0.0), CALLS)
    server.stop(None).wait()
    return median_s
