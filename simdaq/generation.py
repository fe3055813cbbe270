"""Clocked generations: samples from a buffer to the outputs."""

from __future__ import annotations

import numpy as np
from nidaqmx.constants import RegenerationMode
from numpy.typing import NDArray

from simdaq import errors, routes, watchdog
from simdaq.bench import Bench
from simdaq.channels import AnalogOutput, DigitalLines
from simdaq.defaults import default
from simdaq.run import Run
from simdaq.task import Task
from simdaq.timing import NONE, Clock

Block = NDArray[np.float64]


def onboard(task: Task) -> int:
    """Samples a channel that the card's own memory holds."""
    default_size = int(default("buffer", "output_onbrd_buf_size")[1])
    return int(task.properties.get(("buffer", "output_onbrd_buf_size"), default_size))


class OutputRun(Run):
    """A clocked generation of what was written.

    Attributes
    ----------
    data : (channels, samples) array
        What repeats, or, where nothing may repeat, what is still to come.
    """

    def __init__(self, bench: Bench, task: Task) -> None:
        if task.written is None:
            raise task.error(errors.NOTHING_WRITTEN)
        self._bench = bench
        self.task = task
        timing = task.timing
        n = float(timing.samples) if timing.finite else np.inf
        mode = task.properties.get(("write", "regen_mode"))
        self.repeats = mode != RegenerationMode.DONT_ALLOW_REGENERATION.value
        self.data: Block = np.array(task.written)
        size = int(task.properties.get(("buffer", "output_buf_size"), 0))
        self.capacity = max(size, self.data.shape[1])
        if not self.repeats:  # what the card's own memory holds has left the buffer
            self.capacity += onboard(task)
        self.clock: Clock = routes.sample_clock(bench, task, n)
        self.write_position = self.data.shape[1]
        self._starved = False
        self._before = 0

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

    def take(self, after_s: float, until_s: float) -> None:
        self._before = self.clock.taken
        if self._starved or any(c.stalled or not c.plugged for c in self.task.cards):
            self.fresh = NONE
        else:
            self.fresh = self.clock.take(after_s, until_s)

    def step(self, after_s: float, until_s: float) -> None:
        before, times = self._before, np.asarray(self.fresh)
        n = len(times)
        if not n:
            return
        if self.repeats:
            block = self.data[:, (before + np.arange(n)) % self.data.shape[1]]
        else:
            length = self.data.shape[1]
            if length < n:
                self._starved = True
                self.task.pending = self.task.error(errors.REGENERATION_STARVED)
                n, times = length, times[:length]
            block, self.data = self.data[:, :n], self.data[:, n:]
        for channel, row in zip(self.task.channels, block, strict=True):
            held_s = watchdog.held_since_s(self._bench, channel.card, self.task.kind)
            n_free = int(np.searchsorted(times, held_s))
            _put(channel, times[:n_free], row[:n_free])

    def write(self, block: Block) -> None:
        """More samples while running; what repeats is replaced from the write position on."""
        begin = self.write_position
        self.write_position += block.shape[1]
        if not self.repeats:
            self.data = np.concatenate((self.data, block), axis=1)
            return
        size = self.data.shape[1]
        kept = np.arange(max(block.shape[1] - size, 0), block.shape[1])
        self.data[:, (begin + kept) % size] = block[:, kept]


def _put(channel: object, times: Block, row: Block) -> None:
    """Samples of a channel to its output."""
    if isinstance(channel, AnalogOutput):
        channel.output.put_block(times, row)
    elif isinstance(channel, DigitalLines):
        channel.drive_block(times, row)
