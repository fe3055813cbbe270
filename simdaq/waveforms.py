"""Waveform functions of the library: samples with their time and the channel's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simdaq import errors, transfer
from simdaq.channels import DigitalLines
from simdaq.errors import DaqmxError
from simdaq.marshal import Marshal
from simdaq.system import System
from simdaq.task import Task

TICKS_PER_S = 10_000_000  # NI-DAQmx counts waveform time in 100 ns since year 1
UNIX_TICKS = 719_162 * 86_400 * TICKS_PER_S
STRING = 4
Action = Callable[..., int | None]


def begin(system: System, task: Task) -> float:
    """Start a clocked task that does not run; when its next sample to be read was taken."""
    if task.run is None and not task.timing.on_demand and task.channels:
        system.start(task, implicit=True)
    clock = getattr(task.run, "clock", None)
    buffer = getattr(task.run, "buffer", None)
    start_s = getattr(clock, "start_s", None)
    if start_s is None or buffer is None:
        return system.now_s
    return float(start_s + buffer.position / task.rate_Hz)


def ticks(system: System, t_s: float) -> int:
    """A time of the system as NI-DAQmx counts it."""
    return UNIX_TICKS + round((system.origin_unix_s + t_s) * TICKS_PER_S)


def texts(task: Task) -> list[dict[str, str]]:
    """What a channel's waveform says of itself."""
    descriptions = []
    for channel in task.channels:
        about = {"NI_ChannelName": channel.name}
        if isinstance(channel, DigitalLines):
            lines = (f"{channel.card.name}/{channel.lines[i]}" for i in channel.waveform_order)
            about["NI_LineNames"] = ", ".join(lines)
        else:
            about["NI_UnitDescription"] = "Volts"
        descriptions.append(about)
    return descriptions


def mirrored(task: Task, block: Any) -> Any:
    """Lines of every channel in the order of a waveform's columns, and back again."""
    out = np.array(block)
    for rows, channel in zip(out, task.channels, strict=False):
        if isinstance(channel, DigitalLines):
            order = channel.waveform_order
            rows[:, : len(order)] = rows[:, order]
    return out


def truncated(failure: DaqmxError | None) -> DaqmxError | None:
    """The failure of a waveform read; one past the end of an acquisition is none."""
    if failure is not None and failure.code == errors.BEYOND_LAST_SAMPLE and failure.samples:
        return None
    return failure


def must_fit(task: Task, widths: list[int]) -> None:
    """Raise DaqmxError where waveforms are for other channels or lines than the task has."""
    line_counts = [len(c.lines) for c in task.channels if isinstance(c, DigitalLines)]
    if len(line_counts) != len(widths):
        raise task.error(errors.WRITE_CHANNELS_DIFFER)
    if line_counts != widths:
        raise task.error(errors.LINES_DIFFER)


class WaveformBindings:
    """The library's waveform functions."""

    def __init__(self, marshal: Marshal) -> None:
        self.m = marshal

    def actions(self) -> dict[str, Action]:
        return {
            "InternalReadAnalogWaveformEx": self.read_analog,
            "InternalReadAnalogWaveformPerChan": self.read_analog_per_channel,
            "InternalReadDigitalWaveform": self.read_digital,
            "InternalWriteAnalogWaveformPerChan": self.write_analog_per_channel,
            "InternalWriteDigitalWaveform": self.write_digital,
        }

    def _describe(
        self, task: Task, began_s: float, t0: Any, dt: Any, n_times: int, callback: Any, data: Any
    ) -> None:
        b = self.m
        interval = 0 if task.timing.on_demand else round(TICKS_PER_S / task.rate_Hz)
        if t0 != b.ffi.NULL and dt != b.ffi.NULL:
            b.array(t0, n_times, np.int64)[:] = ticks(b.current(), began_s)
            b.array(dt, n_times, np.int64)[:] = interval
        if callback == b.ffi.NULL:
            return
        shape = "int32_t (*)(uint32_t, char *, int32_t, void *, uint32_t, void *)"
        tell = b.ffi.cast(shape, callback)
        for i, about in enumerate(texts(task)):
            for key, value in about.items():
                name = b.ffi.new("char[]", key.encode())
                text = value.encode() + b"\0"
                held = b.ffi.new("char[]", value.encode())
                tell(i, name, STRING, b.ffi.cast("void *", held), len(text), data)

    def _begin(self, handle: int) -> tuple[Task, float]:
        task = self.m.current().task(handle)
        return task, begin(self.m.current(), task)

    def read_analog(
        self, handle: Any, n: int, timeout_s: float, fill_mode: int, t0: Any, dt: Any,
        n_times: int, callback: Any, data: Any, pointer: Any, size: int, n_read: Any, _: Any,
    ) -> int | None:  # fmt: skip
        task, began_s = self._begin(self.m.handle(handle))
        block, failure = transfer.read_analog(self.m.current(), task.handle, n, timeout_s)
        failure = truncated(failure)
        if block.size > size:
            raise DaqmxError(errors.BAD_VALUE, "The array is too small for the samples.")
        flat = block.T if fill_mode else block
        if block.size:
            self.m.array(pointer, block.size, np.float64)[:] = flat.reshape(-1)
        self.m.store(n_read, "int32_t *", block.shape[1])
        self._describe(task, began_s, t0, dt, n_times, callback, data)
        if failure is not None:
            raise failure
        return None

    def read_analog_per_channel(
        self, handle: Any, n: int, timeout_s: float, t0: Any, dt: Any, n_times: int,
        callback: Any, data: Any, pointers: Any, n_channels: int, size: int, n_read: Any, _: Any,
    ) -> int | None:  # fmt: skip
        task, began_s = self._begin(self.m.handle(handle))
        block, failure = transfer.read_analog(self.m.current(), task.handle, n, timeout_s)
        failure = truncated(failure)
        if block.shape[0] != n_channels or block.shape[1] > size:
            raise DaqmxError(errors.BAD_VALUE, "The arrays do not fit the samples.")
        rows = self.m.ffi.cast("double **", pointers)
        for i, row in enumerate(block):
            if len(row):
                self.m.array(rows[i], len(row), np.float64)[:] = row
        self.m.store(n_read, "int32_t *", block.shape[1])
        self._describe(task, began_s, t0, dt, n_times, callback, data)
        if failure is not None:
            raise failure
        return None

    def read_digital(
        self, handle: Any, n: int, timeout_s: float, fill_mode: int, t0: Any, dt: Any,
        n_times: int, callback: Any, data: Any, pointer: Any, size: int, n_read: Any,
        n_bytes: Any, widths: Any, n_widths: int, _: Any,
    ) -> int | None:  # fmt: skip
        task, began_s = self._begin(self.m.handle(handle))
        block, failure = transfer.read_lines(self.m.current(), task.handle, n, timeout_s)
        failure = truncated(failure)
        if block.size > size:
            raise DaqmxError(errors.BAD_VALUE, "The array is too small for the samples.")
        block = mirrored(task, block)
        flat = np.swapaxes(block, 0, 1) if fill_mode else block
        if block.size:
            self.m.array(pointer, block.size, np.uint8)[:] = flat.reshape(-1)
        self.m.store(n_read, "int32_t *", block.shape[1])
        self.m.store(n_bytes, "int32_t *", block.shape[2])
        if widths != self.m.ffi.NULL and n_widths:
            line_counts = [len(c.lines) for c in task.channels if isinstance(c, DigitalLines)]
            self.m.array(widths, n_widths, np.uint32)[:] = line_counts[:n_widths]
        self._describe(task, began_s, t0, dt, n_times, callback, data)
        if failure is not None:
            raise failure
        return None

    def write_analog_per_channel(
        self, handle: Any, n: int, auto_start: int, timeout_s: float, pointers: Any,
        n_channels: int, n_written: Any, _: Any,
    ) -> int | None:  # fmt: skip
        if n_channels == 0:
            raise DaqmxError(errors.BAD_VALUE, "There are no waveforms.")
        rows = self.m.ffi.cast("double **", pointers)
        block = np.stack([self.m.array(rows[i], n, np.float64) for i in range(n_channels)])
        done = transfer.write_analog(
            self.m.current(), self.m.handle(handle), block, auto_start=bool(auto_start),
            timeout_s=timeout_s,
        )  # fmt: skip
        self.m.store(n_written, "int32_t *", done)
        return None

    def write_digital(
        self, handle: Any, n: int, auto_start: int, timeout_s: float, layout: int, pointer: Any,
        widths: Any, n_channels: int, n_written: Any, _: Any,
    ) -> int | None:  # fmt: skip
        if n_channels == 0:
            raise DaqmxError(errors.BAD_VALUE, "There are no waveforms.")
        line_counts = self.m.array(widths, n_channels, np.uint32)
        n_lines = int(line_counts.max())
        shape = (n, n_channels, n_lines) if layout else (n_channels, n, n_lines)
        block = self.m.array(pointer, int(np.prod(shape)), np.uint8).reshape(shape)
        task = self.m.current().task(self.m.handle(handle))
        must_fit(task, line_counts.tolist())
        done = transfer.write_lines(
            self.m.current(), task.handle,
            mirrored(task, np.swapaxes(block, 0, 1) if layout else block),
            auto_start=bool(auto_start), timeout_s=timeout_s,
        )  # fmt: skip
        self.m.store(n_written, "int32_t *", done)
        return None
