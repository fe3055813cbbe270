"""Reads and writes in the units of the program; shared by the library and gRPC."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simdaq import errors, inputs, outputs
from simdaq.channels import AnalogInput, AnalogOutput, DigitalLines
from simdaq.create_power import CODES_PER_A, CODES_PER_V
from simdaq.device_properties import raw_bytes
from simdaq.errors import DaqmxError
from simdaq.inputs import Block
from simdaq.pulse_outputs import CounterOutput
from simdaq.system import System
from simdaq.task import RUNNING, Task

Answer = tuple[Any, DaqmxError | None]


def _read(system: System, handle: int, kind: str, n: int, timeout_s: float) -> tuple[Task, Answer]:
    task = system.task(handle)
    reads_back = kind == "di" and task.kind == "do"
    if task.kind and task.kind != kind and not reads_back:
        raise task.error(errors.WRONG_CHANNEL_TYPE)
    return task, inputs.read(system, task, n, timeout_s)


def read_analog(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(channels, samples) in the channels' units."""
    task, (raw, failure) = _read(system, handle, "ai", n, timeout_s)
    out = np.empty(raw.shape)
    for i, channel in enumerate(task.channels):
        assert isinstance(channel, AnalogInput)
        out[i] = channel.scaled(raw[i])
    return out, failure


def read_codes(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(channels, samples) as the converter gave them."""
    task = system.task(handle)
    _, answer = _read(system, handle, task.kind or "ai", n, timeout_s)
    return answer


def read_words(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(channels, samples) of digital words."""
    _, (raw, failure) = _read(system, handle, "di", n, timeout_s)
    return raw, failure


def read_lines(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(channels, samples, lines) of bytes 0 or 1; as wide as the widest channel."""
    task, (raw, failure) = _read(system, handle, "di", n, timeout_s)
    return lines_of(task, raw), failure


def lines_of(task: Task, raw: Block) -> NDArray[np.uint8]:
    """Words as single lines."""
    channels = [c for c in task.channels if isinstance(c, DigitalLines)]
    width = max(len(c.lines) for c in channels)
    out = np.zeros((*raw.shape, width), dtype=np.uint8)
    words = raw.astype(np.uint64)
    for i, channel in enumerate(channels):
        for k, bit in enumerate(channel.position):
            out[i, :, k] = (words[i] >> np.uint64(bit)) & np.uint64(1)
    return out


def _rows(system: System, handle: int, rows: int) -> None:
    """Raise DaqmxError where a counter measures more, or less, than this read gives."""
    task = system.task(handle)
    if any(channel.rows != rows for channel in task.channels):
        raise task.error(errors.WRONG_CHANNEL_TYPE)


def read_counter(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(channels, samples) in the channels' units."""
    _rows(system, handle, 1)
    task, (raw, failure) = _read(system, handle, "ci", n, timeout_s)
    return np.stack([c.scaled(row) for c, row in zip(task.channels, raw, strict=True)]), failure


def read_counts(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(channels, samples) as the counters' registers, of 32 bits."""
    _rows(system, handle, 1)
    _, (raw, failure) = _read(system, handle, "ci", n, timeout_s)
    return np.mod(raw, 2.0**32), failure


def read_pulses(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(2, channels, samples): frequency and duty cycle, or high and low."""
    _rows(system, handle, 2)
    _, (raw, failure) = _read(system, handle, "ci", n, timeout_s)
    return np.stack((raw[0::2], raw[1::2])), failure


def read_power_codes(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(2, channels, samples): voltage and current as the converter gave them; 0 where it is off."""
    block, failure = _power(system, handle, n, timeout_s)
    return np.nan_to_num(block), failure


def _power(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    _rows(system, handle, 2)
    _, (raw, failure) = _read(system, handle, "ai", n, timeout_s)
    return np.stack((raw[0::2], raw[1::2])), failure


def read_power(system: System, handle: int, n: int, timeout_s: float) -> Answer:
    """(2, channels, samples): voltage, V, and current, A."""
    codes, failure = _power(system, handle, n, timeout_s)
    return codes / np.array([CODES_PER_V, CODES_PER_A])[:, None, None], failure


def write_pulses(
    system: System, handle: int, high_s: Block, low_s: Block, *, auto_start: bool
) -> int:
    """Pulses to make, one after the other; on a running task without a buffer the one to make
    from now on.
    """
    task = system.task(handle)
    if task.kind != "co":
        raise task.error(errors.WRONG_CHANNEL_TYPE if task.channels else errors.NO_CHANNELS)
    if not (np.all(high_s > 0.0) and np.all(low_s > 0.0)):
        raise task.error(errors.BAD_VALUE, Property="CO.Pulse")
    if task.timing.on_demand or task.state == RUNNING:
        for channel in task.channels:
            assert isinstance(channel, CounterOutput)
            channel.high_s, channel.low_s = float(high_s[-1]), float(low_s[-1])
            channel.retime(system.now_s)
    else:
        task.written = np.stack((high_s, low_s))
    if auto_start and task.state != RUNNING:
        system.start(task)
    return len(high_s)


def write_analog(
    system: System, handle: int, block: Block, *, auto_start: bool, timeout_s: float
) -> int:
    """(channels, samples) in the channels' units."""
    task = system.task(handle)
    if task.kind and task.kind != "ao":
        raise task.error(errors.WRONG_CHANNEL_TYPE)
    return outputs.write(system, task, block, auto_start=auto_start, timeout_s=timeout_s)


def write_codes(
    system: System, handle: int, block: Block, *, auto_start: bool, timeout_s: float
) -> int:
    """(channels, samples) as the converter takes them."""
    task = system.task(handle)
    if task.kind == "ao" and len(block) == len(task.channels):
        block = np.stack([c.of_codes(row) for c, row in zip(task.channels, block, strict=True)
                          if isinstance(c, AnalogOutput)])  # fmt: skip
    return outputs.write(system, task, block, auto_start=auto_start, timeout_s=timeout_s)


def write_words(
    system: System, handle: int, block: Block, *, auto_start: bool, timeout_s: float
) -> int:
    """(channels, samples) of digital words."""
    task = system.task(handle)
    if task.kind and task.kind != "do":
        raise task.error(errors.WRONG_CHANNEL_TYPE)
    return outputs.write(system, task, block, auto_start=auto_start, timeout_s=timeout_s)


def write_lines(
    system: System, handle: int, lines: NDArray[np.uint8], *, auto_start: bool, timeout_s: float
) -> int:
    """(channels, samples, lines) of bytes 0 or 1."""
    task = system.task(handle)
    channels = [c for c in task.channels if isinstance(c, DigitalLines)]
    if not channels:
        raise task.error(errors.WRONG_CHANNEL_TYPE if task.channels else errors.NO_CHANNELS)
    if len(channels) != lines.shape[0]:
        raise task.error(errors.WRITE_CHANNELS_DIFFER)
    words = np.zeros(lines.shape[:2])
    for i, channel in enumerate(channels):
        for k, bit in enumerate(channel.position):
            words[i] += np.where(lines[i, :, k] != 0, float(1 << bit), 0.0)
    return write_words(system, handle, words, auto_start=auto_start, timeout_s=timeout_s)


def lay_out(out: Any, block: Any, n: int, fill_mode: int) -> None:
    """Put (channels, samples, ...) into a flat array as NI lays it out.

    By channel, each channel's samples begin where they would if all n had come; by scan, or where
    n is -1, they follow each other.
    """
    if not block.size:
        return
    if block.size > len(out):
        raise DaqmxError(errors.BAD_VALUE, "The array is too small for the samples.")
    size = block.shape[1]
    if fill_mode:
        out[: block.size] = np.swapaxes(block, 0, 1).reshape(-1)
    elif n < 0 or size == n:
        out[: block.size] = block.reshape(-1)
    else:
        whole = out[: block[:, :1].size * n]
        whole.reshape(block.shape[0], n, *block.shape[2:])[:, :size] = block


def shape_of(system: System, handle: int, n: int, *, lines: bool) -> tuple[int, ...]:
    """Of n samples for every channel of a task: (channels, n), with lines (channels, n, lines)."""
    n_channels, n_lines = width(system, handle)
    return (n_channels, n, n_lines) if lines else (n_channels, n)


def taken_apart(flat: Any, shape: tuple[int, ...], layout: int) -> Any:
    """A flat array of NI's layout as (channels, samples, ...)."""
    count = int(np.prod(shape))
    if len(flat) < count:
        raise DaqmxError(errors.BAD_VALUE, "There are fewer data than samples.")
    if layout:
        return np.swapaxes(flat[:count].reshape(shape[1], shape[0], *shape[2:]), 0, 1)
    return flat[:count].reshape(shape)


def _raw_type(task: Task) -> Any:
    signed = task.kind in ("ai", "ao")
    return np.dtype(f"{'i' if signed else 'u'}{raw_bytes(task)}")


def read_raw(
    system: System, handle: int, n: int, timeout_s: float
) -> tuple[bytes, DaqmxError | None, int, int]:
    """Samples as they lie in the card's memory, scan after scan; bytes, samples, bytes a scan."""
    task = system.task(handle)
    _, (block, failure) = _read(system, handle, task.kind or "ai", n, timeout_s)
    kind = _raw_type(task)
    data = np.ascontiguousarray(block.T).astype(np.int64).astype(kind).tobytes()
    return data, failure, block.shape[1], kind.itemsize * block.shape[0]


def write_raw(
    system: System, handle: int, n: int, data: bytes, *, auto_start: bool, timeout_s: float
) -> int:
    """The same to the card."""
    task = system.task(handle)
    flat = np.frombuffer(data, _raw_type(task))
    block = taken_apart(flat, shape_of(system, handle, n, lines=False), 1).astype(float)
    write = write_codes if task.kind == "ao" else write_words
    return write(system, handle, block, auto_start=auto_start, timeout_s=timeout_s)


def width(system: System, handle: int) -> tuple[int, int]:
    """Channels of a task, and lines of its widest digital channel."""
    task = system.task(handle)
    widths = [len(c.lines) for c in task.channels if isinstance(c, DigitalLines)]
    return len(task.channels), max(widths, default=1)


def by_frequency(frequency_Hz: Block, duty: Block) -> tuple[Block, Block]:
    """High and low times of pulses by frequency and duty cycle."""
    if not np.all(frequency_Hz > 0.0):
        raise DaqmxError(errors.BAD_VALUE, Property="CO.Pulse.Freq")
    return duty / frequency_Hz, (1.0 - duty) / frequency_Hz


def by_time(high_s: Block, low_s: Block) -> tuple[Block, Block]:
    return high_s, low_s


def by_ticks(high: Block, low: Block, tick_s: float = 1e-8) -> tuple[Block, Block]:
    """Ticks of a timebase -> s."""
    return tick_s * high, tick_s * low


def tick_s(system: System, handle: int) -> float:
    """Period of the timebase that a task's pulses by ticks count."""
    ticks_s = [c.tick_s for c in system.task(handle).channels if isinstance(c, CounterOutput)]
    return ticks_s[0] if ticks_s else 1e-8
