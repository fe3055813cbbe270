"""Putting samples out: clocked generations from a buffer, single values on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from nidaqmx.constants import RegenerationMode
from numpy.typing import NDArray

from hil.devices.simdaq import errors
from hil.devices.simdaq.channels import AnalogOutput, DigitalLines
from hil.devices.simdaq.task import RUNNING, Run
from hil.devices.simdaq.timing import ExternalClock, InternalClock

if TYPE_CHECKING:
    from hil.devices.simdaq.task import Task

Block = NDArray[np.float64]


class OutputRun(Run):
    """A clocked generation of what was written.

    Attributes
    ----------
    data : (channels, samples) array
        What repeats, or, where nothing may repeat, what is still to come.
    """

    def __init__(self, task: Task) -> None:
        if task.written is None:
            raise task.error(errors.NOTHING_WRITTEN)
        self.task = task
        timing = task.timing
        n = float(timing.samples) if timing.finite else np.inf
        mode = task.properties.get(("write", "regen_mode"))
        self.repeats = mode != RegenerationMode.DONT_ALLOW_REGENERATION.value
        self.data: Block = np.array(task.written)
        asked = int(task.properties.get(("buffer", "output_buf_size"), 0))
        self.capacity = max(asked, self.data.shape[1])
        self.clock: InternalClock | ExternalClock = task.clock(n)
        self.write_position = self.data.shape[1]
        self._starved = False

    @property
    def done(self) -> bool:
        return self.clock.done or self._starved

    @property
    def planned(self) -> float:
        return self.clock.n

    @property
    def total(self) -> int:
        return self.clock.taken

    @property
    def space(self) -> int:
        """Samples a channel that can be written now."""
        return self.capacity if self.repeats else int(self.capacity - self.data.shape[1])

    def when(self, more: int) -> float | None:
        return self.clock.when(more)

    def room_s(self, n: int) -> float | None:
        """When there is room for n samples."""
        return self.clock.when(n - self.space)

    def step(self, after_s: float, until_s: float) -> None:
        if self._starved or any(c.stalled or not c.plugged for c in self.task.cards):
            return
        before = self.clock.taken
        times = self.clock.take(after_s, until_s)
        self.fresh = times
        n = len(times)
        if not n:
            return
        if self.repeats:
            block = self.data[:, (before + np.arange(n)) % self.data.shape[1]]
        else:
            there = self.data.shape[1]
            if there < n:
                self._starved = True
                self.task.pending = self.task.error(errors.REGENERATION_STARVED)
                n, times = there, times[:there]
            block, self.data = self.data[:, :n], self.data[:, n:]
        for channel, row in zip(self.task.channels, block, strict=True):
            put(channel, times, row)

    def write(self, block: Block) -> None:
        """More samples while running."""
        n = block.shape[1]
        self.write_position += n
        if not self.repeats:
            self.data = np.concatenate((self.data, block), axis=1)
            return
        size = self.data.shape[1]
        start = self.write_position % size if n < size else 0
        where = (start + np.arange(min(n, size))) % size
        self.data[:, where] = block[:, :size]


def put(channel: object, times: Block, row: Block) -> None:
    """Samples of a channel to its output."""
    if isinstance(channel, AnalogOutput):
        channel.output.put_block(times, row)
    elif isinstance(channel, DigitalLines):
        channel.drive_block(times, row)


def write(task: Task, block: Block, *, auto_start: bool, timeout_s: float) -> int:
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
        if task.system.has_expired(card, task.kind):
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
        return _write_now(task, block, auto_start=auto_start)
    return _write_buffer(task, block, auto_start=auto_start, timeout_s=timeout_s)


def _write_now(task: Task, block: Block, *, auto_start: bool) -> int:
    system = task.system
    if task.state != RUNNING and not auto_start:
        raise task.error(errors.WRITE_NOT_STARTED)
    if task.state != RUNNING:
        task.start(implicit=True)
    now_s = system.now_s
    for channel, row in zip(task.channels, block, strict=True):
        if isinstance(channel, AnalogOutput):
            channel.output.put(now_s, float(row[-1]))
        elif isinstance(channel, DigitalLines):
            channel.drive(now_s, int(row[-1]))
    if task.implicit:
        task.stop()
    return int(block.shape[1])


def _write_buffer(task: Task, block: Block, *, auto_start: bool, timeout_s: float) -> int:
    if task.pending is not None:
        raise task.pending
    n = int(block.shape[1])
    if task.state == RUNNING:
        run = task.run
        assert isinstance(run, OutputRun)
        there = task.system.wait(
            lambda: run.space >= n or run.done, lambda: run.room_s(n), timeout_s
        )
        if task.pending is not None:
            raise task.pending
        if not there:
            raise task.error(errors.NOT_YET_WRITTEN, Timeout_s=timeout_s)
        run.write(block)
        return n
    asked = int(task.properties.get(("buffer", "output_buf_size"), 0))
    held = task.written
    if held is not None and held.shape[1] + n <= asked:
        task.written = np.concatenate((held, block), axis=1)
    else:
        task.written = np.array(block)
    task.reserve()
    if auto_start:
        task.start()
    return n
