"""Writing: into the buffer of a generation, or single values on demand."""

from __future__ import annotations

import numpy as np
from nidaqmx.constants import RegenerationMode
from numpy.typing import NDArray

from simdaq import errors, watchdog
from simdaq.channels import AnalogOutput, DigitalLines
from simdaq.generation import OutputRun, onboard
from simdaq.system import System
from simdaq.task import RUNNING, Task

Block = NDArray[np.float64]


def write(system: System, task: Task, block: Block, *, auto_start: bool, timeout_s: float) -> int:
    """Write (channels, samples): volts, or words; samples per channel that were taken.

    Raises
    ------
    DaqmxError
        The task is no output, has other channels, cannot start, or has no room in time.
    """
    if not task.channels:
        raise task.error(errors.NO_CHANNELS)
    if task.kind not in ("ao", "do"):
        raise task.error(errors.WRONG_CHANNEL_TYPE)
    for card in task.cards:
        card.must_work()
        if watchdog.held_since_s(system, card, task.kind) <= system.now_s:
            raise task.error(errors.WATCHDOG_EXPIRED, Device=card.name)
    if block.shape[0] != len(task.channels):
        raise task.error(
            errors.WRITE_CHANNELS_DIFFER, Number_of_Channels_in_Task=len(task.channels),
            Number_of_Channels_in_Data=block.shape[0],
        )  # fmt: skip
    if task.kind == "ao":
        rows = [c.quantised(row) for c, row in zip(task.channels, block, strict=True)
                if isinstance(c, AnalogOutput)]  # fmt: skip
        block = np.stack(rows)
    if task.timing.on_demand:
        return _write_now(system, task, block, auto_start=auto_start)
    return _write_buffer(system, task, block, auto_start=auto_start, timeout_s=timeout_s)


def _write_now(system: System, task: Task, block: Block, *, auto_start: bool) -> int:
    if task.state != RUNNING and not auto_start:
        raise task.error(errors.WRITE_NOT_STARTED)
    if task.state != RUNNING:
        system.start(task, implicit=True)
    now_s = system.now_s
    for channel, row in zip(task.channels, block, strict=True):
        if isinstance(channel, AnalogOutput):
            channel.output.put(now_s, float(row[-1]))
        elif isinstance(channel, DigitalLines):
            channel.drive(now_s, int(row[-1]))
    if task.implicit:
        system.stop(task)
    return int(block.shape[1])


def _onboard_only(task: Task) -> bool:
    """Samples are regenerated from the card's own memory."""
    return any(c.properties.get("ao_use_only_on_brd_mem") for c in task.channels)


def _must_fit(task: Task, n: int) -> None:
    """Raise DaqmxError where a task that may not repeat samples cannot hold these before its start.

    The buffer that the program has sized, and the card's own memory, are all there is.
    """
    if _onboard_only(task) and n > onboard(task):
        raise task.error(errors.ONBOARD_TOO_SMALL, Samples_Requested=n, Maximum_Value=onboard(task))
    size = int(task.properties.get(("buffer", "output_buf_size"), 0))
    mode = task.properties.get(("write", "regen_mode"))
    if not size or mode != RegenerationMode.DONT_ALLOW_REGENERATION.value:
        return
    if n > size + onboard(task):
        raise task.error(errors.NO_MORE_SPACE, Samples_Requested=n, Buffer_Size=size)


def _write_buffer(
    system: System, task: Task, block: Block, *, auto_start: bool, timeout_s: float
) -> int:
    if task.pending is not None:
        raise task.pending
    n = int(block.shape[1])
    if task.state == RUNNING:
        run = task.run
        assert isinstance(run, OutputRun)
        if _onboard_only(task):
            raise task.error(errors.ONBOARD_WHILE_RUNNING)
        space = system.wait(lambda: run.space >= n or run.done, lambda: run.room_s(n), timeout_s)
        if task.pending is not None:
            raise task.pending
        if not space:
            fits = max(run.space, 0)
            run.write(block[:, :fits])
            failure = task.error(
                errors.NOT_YET_WRITTEN, Samples_Written=fits, Samples_Requested=n,
                Timeout_s=timeout_s,
            )  # fmt: skip
            failure.samples = fits
            raise failure
        run.write(block)
        return n
    _must_fit(task, n)
    size = int(task.properties.get(("buffer", "output_buf_size"), 0))
    held = task.written
    if held is not None and held.shape[1] + n <= size:
        task.written = np.concatenate((held, block), axis=1)
    else:
        task.written = np.array(block)
    system.reserve(task)
    if auto_start:
        system.start(task)
    return n
