"""Taking samples in: clocked acquisitions into a buffer, single samples on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from nidaqmx.constants import OverwriteMode, ReadRelativeTo
from numpy.typing import NDArray

from hil.devices.simdaq import errors, routes
from hil.devices.simdaq.buffers import InputBuffer
from hil.devices.simdaq.channels import AnalogInput, DigitalLines, is_infinite
from hil.devices.simdaq.errors import DaqmxError
from hil.devices.simdaq.task import RESERVED, RUNNING, Run
from hil.devices.simdaq.timing import ExternalClock, InternalClock

if TYPE_CHECKING:
    from hil.devices.simdaq.task import Task

Block = NDArray[np.float64]
ALL = -1


def default_buffer(rate_Hz: float) -> int:
    """Samples a channel that a continuous task buffers (NI-DAQmx Help, "How Is Buffer Size
    Determined?").
    """
    for limit_Hz, size in ((100.0, 1_000), (10_000.0, 10_000), (1e6, 100_000)):
        if rate_Hz <= limit_Hz:
            return size
    return 1_000_000


class InputRun(Run):
    """A clocked acquisition."""

    def __init__(self, task: Task) -> None:
        self.task = task
        timing = task.timing
        n = float(timing.samples) if timing.finite else np.inf
        self._reference = routes.trigger_edges(task.system, task.reference_trigger, task)
        finite = timing.finite and self._reference is None
        if finite:
            capacity = timing.samples
        elif timing.single_point:
            capacity = 1
        else:
            capacity = max(default_buffer(timing.rate_Hz), timing.samples)
        retriggerable = bool(task.properties.get(("trig", "start_retriggerable"), False))
        if retriggerable:
            capacity = max(capacity, default_buffer(timing.rate_Hz))
        asked = int(task.properties.get(("buffer", "input_buf_size"), 0))
        if asked > 0:
            capacity = asked
        mode = task.properties.get(("read", "overwrite"))
        overwrite = (
            mode == OverwriteMode.OVERWRITE_UNREAD_SAMPLES.value
            or self._reference is not None
            or timing.single_point
        )
        self.buffer = InputBuffer(len(task.channels), capacity, may_overwrite=overwrite)
        self.clock: InternalClock | ExternalClock = task.clock(n if finite else np.inf)
        self.started_s = task.system.now_s
        self._end: int | None = None

    @property
    def done(self) -> bool:
        return self.clock.done or self.buffer.lost

    @property
    def total(self) -> int:
        return self.buffer.written

    def when(self, more: int) -> float | None:
        return self.clock.when(more)

    @property
    def ready(self) -> int:
        """Samples a channel that can be read now."""
        if self._reference is not None and not self.clock.done:
            return 0
        return self.buffer.available

    def step(self, after_s: float, until_s: float) -> None:
        if any(card.stalled or not card.plugged for card in self.task.cards):
            self.fresh = np.empty(0)
            return
        times = self.clock.take(after_s, until_s)
        if self._reference is not None and self._end is None:
            times = self._look_for_reference(times, after_s, until_s)
        self.fresh = times
        if len(times):
            self.buffer.push(np.stack([c.sample(times) for c in self.task.channels]))
            if self._end is not None and self.buffer.written >= self._end:
                self.buffer.position = self._end - self.task.timing.samples

    def _look_for_reference(self, times: Block, after_s: float, until_s: float) -> Block:
        trigger = self.task.reference_trigger
        assert self._reference is not None
        before = self.clock.taken - len(times)
        for edge_s in self._reference(after_s, until_s):
            index = before + int(np.searchsorted(times, edge_s))
            if index >= trigger.pretrigger:
                trigger.at_s = float(edge_s)
                self._end = index - trigger.pretrigger + self.task.timing.samples
                self.clock.n = float(self._end)
                return times[: max(self._end - before, 0)]
        return times


def read(task: Task, n: int, timeout_s: float) -> tuple[Block, DaqmxError | None]:
    """Raw samples (channels, n); n = -1 is all there are.

    The error, if any, comes with the samples that were there all the same.
    """
    if not task.channels:
        raise task.error(errors.NO_CHANNELS)
    if not task.is_input:
        raise task.error(errors.WRONG_CHANNEL_TYPE)
    for card in task.cards:
        card.must_be_there()
    if task.timing.on_demand:
        return read_on_demand(task, 1 if n == ALL else n, timeout_s)
    if task.state != RUNNING:
        task.start(implicit=True)
    if task.pending is not None:
        raise task.pending
    run = task.run
    assert isinstance(run, InputRun)
    return _read_buffer(task, run, n, timeout_s)


def _read_buffer(
    task: Task, run: InputRun, n: int, timeout_s: float
) -> tuple[Block, DaqmxError | None]:
    buffer = run.buffer
    _seek(task, run)
    if n == ALL:
        everything = not task.properties.get(("read", "read_all_avail_samp"), False)
        whole = task.timing.samples - buffer.position % max(task.timing.samples, 1)
        n = whole if task.timing.finite and everything else run.ready
    if task.timing.single_point:
        buffer.position = buffer.written  # the next tick's sample, not an old one
    system = task.system
    there = system.wait(
        lambda: run.ready >= n or run.done or not _present(task),
        lambda: run.when(n - run.ready),
        timeout_s,
    )
    for card in task.cards:
        card.must_be_there()
    if buffer.lost and run.ready < n:
        task.pending = task.error(errors.OVERWRITTEN, Property="BufferOverflow")
    if buffer.lost:
        raise task.error(errors.OVERWRITTEN, Samples_Per_Channel_in_Buffer=buffer.capacity)
    got = min(n, run.ready)
    block = buffer.take(got)
    failure = None
    if got < n:
        code = errors.BEYOND_LAST_SAMPLE if there and run.done else errors.NOT_YET_THERE
        failure = task.error(code, Samples_Read=got, Samples_Requested=n, Timeout_s=timeout_s)
        failure.samples = got
    elif task.implicit and run.done and not run.ready:
        task.stop()
    return block, failure


def _present(task: Task) -> bool:
    return all(card.plugged for card in task.cards)


def _seek(task: Task, run: InputRun) -> None:
    """Move the reading position to where the read properties say."""
    relative, offset = task.relative_to()
    buffer = run.buffer
    if relative == ReadRelativeTo.MOST_RECENT_SAMPLE.value:
        buffer.position = max(buffer.written + offset, 0)
    elif relative == ReadRelativeTo.FIRST_SAMPLE.value:
        buffer.position = max(offset, buffer.written - buffer.capacity)


def read_on_demand(task: Task, n: int, timeout_s: float) -> tuple[Block, DaqmxError | None]:
    """Samples taken now, n of them as fast as software goes: all at the same instant."""
    system = task.system
    if task.state < RESERVED:
        task.verify()
        system.must_be_free(task)
    failure = None
    ready_s = max((getattr(c, "ready_s", 0.0) for c in task.channels), default=0.0)
    if task.kind == "ci":
        if task.state != RUNNING:
            task.start(implicit=True)
        system.wait(
            lambda: all(getattr(c, "has_reading", True) for c in task.channels),
            lambda: ready_s or None,
            timeout_s,
        )
        if not all(getattr(c, "has_reading", True) for c in task.channels):
            failure = task.error(errors.NOT_YET_THERE, Samples_Read=0, Timeout_s=timeout_s)
            if task.implicit:
                task.stop()
            return np.empty((len(task.channels), 0)), failure
    now_s = system.now_s
    if any(card.stalled for card in task.cards):
        return np.empty((len(task.channels), 0)), task.error(
            errors.NOT_YET_THERE, Samples_Read=0, Samples_Requested=n, Timeout_s=timeout_s
        )
    values = [_now(c, now_s) for c in task.channels]
    if task.implicit:
        task.stop()
    return np.repeat(np.array(values)[:, None], n, axis=1), failure


def _now(channel: object, now_s: float) -> float:
    if isinstance(channel, AnalogInput | DigitalLines):
        return channel.sample_now(now_s)
    return float(channel.sample(np.array([now_s]))[0])  # type: ignore[attr-defined]


def wait_until_done(task: Task, timeout_s: float) -> None:
    """Wait for a finite task to end.

    Raises
    ------
    DaqmxError
        It did not within the timeout.
    """

    def remaining() -> float | None:
        run = task.run
        if run is None:
            return None
        left = task.timing.samples - run.total
        return run.when(max(left, 1))

    if not task.system.wait(lambda: task.done, remaining, timeout_s):
        forever = is_infinite(timeout_s)
        raise task.error(errors.WAIT_TIMED_OUT, Timeout_s="none" if forever else timeout_s)
    if task.pending is not None:
        raise task.pending
