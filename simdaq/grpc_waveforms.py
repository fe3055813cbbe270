"""Waveform calls of NI's gRPC protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ni.protobuf.types import waveform_pb2
from nidaqmx.constants import WaveformAttributeMode

from simdaq import transfer
from simdaq.channels import DigitalLines
from simdaq.system import System
from simdaq.task import Task
from simdaq.waveforms import begin, mirrored, must_fit, texts, truncated

UNIX_1904_S = 2_082_844_800  # NI's protocol counts from 1904


def _describe(system: System, task: Task, waveforms: list[Any], began_s: float, mode: int) -> None:
    interval_s = 0.0 if task.timing.on_demand else 1.0 / task.rate_Hz
    now_s = system.origin_unix_s + began_s + UNIX_1904_S
    for waveform, about in zip(waveforms, texts(task), strict=True):
        if mode & WaveformAttributeMode.TIMING.value:
            waveform.t0.seconds = int(now_s)
            waveform.t0.fractional_seconds = int((now_s % 1.0) * 2**64)
            waveform.dt = interval_s
        if mode & WaveformAttributeMode.EXTENDED_PROPERTIES.value:
            for key, text in about.items():
                waveform.attributes[key].string_value = text


def _read_analog(system: System, task: Task, request: Any, response: Any) -> Any:
    began_s = begin(system, task)
    block, failure = transfer.read_analog(
        system, task.handle, request.num_samps_per_chan, request.timeout
    )
    waveforms = [waveform_pb2.DoubleAnalogWaveform(y_data=row.tolist()) for row in block]
    _describe(system, task, waveforms, began_s, request.waveform_attribute_mode_raw)
    failure = truncated(failure)
    status = 0 if failure is None else failure.code
    return response(status=status, waveforms=waveforms, samps_per_chan_read=block.shape[1])


def _read_digital(system: System, task: Task, request: Any, response: Any) -> Any:
    began_s = begin(system, task)
    block, failure = transfer.read_lines(
        system, task.handle, request.num_samps_per_chan, request.timeout
    )
    block = mirrored(task, block)
    widths = [len(c.lines) for c in task.channels if isinstance(c, DigitalLines)]
    waveforms = [
        waveform_pb2.DigitalWaveform(
            signal_count=n, y_data=np.ascontiguousarray(rows[:, :n]).tobytes()
        )
        for rows, n in zip(block, widths, strict=True)
    ]
    _describe(system, task, waveforms, began_s, request.waveform_attribute_mode_raw)
    failure = truncated(failure)
    status = 0 if failure is None else failure.code
    return response(status=status, waveforms=waveforms, samps_per_chan_read=block.shape[1])


def _write_analog(system: System, task: Task, request: Any, response: Any) -> Any:
    block = np.array([list(w.y_data) for w in request.waveforms])
    done = transfer.write_analog(
        system, task.handle, block, auto_start=request.auto_start, timeout_s=request.timeout
    )
    return response(samps_per_chan_written=done)


def _write_digital(system: System, task: Task, request: Any, response: Any) -> Any:
    must_fit(task, [w.signal_count for w in request.waveforms])
    width = max(w.signal_count for w in request.waveforms)
    rows = [np.frombuffer(w.y_data, np.uint8).reshape(-1, w.signal_count)
            for w in request.waveforms]  # fmt: skip
    lines = np.zeros((len(rows), len(rows[0]), width), dtype=np.uint8)
    for i, row in enumerate(rows):
        lines[i, :, : row.shape[1]] = row
    done = transfer.write_lines(
        system, task.handle, mirrored(task, lines), auto_start=request.auto_start,
        timeout_s=request.timeout,
    )  # fmt: skip
    return response(samps_per_chan_written=done)


WAVEFORMS: dict[str, Callable[[System, Task, Any, Any], Any]] = {
    "ReadAnalogWaveforms": _read_analog,
    "ReadDigitalWaveforms": _read_digital,
    "WriteAnalogWaveforms": _write_analog,
    "WriteDigitalWaveforms": _write_digital,
}
