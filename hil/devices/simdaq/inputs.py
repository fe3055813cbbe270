"""Taking samples in: clocked acquisitions into a buffer, single samples on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from nidaqmx.constants import (
    Edge,
    LoggingMode,
    LoggingOperation,
    OverwriteMode,
    ReadRelativeTo,
    SampleTimingType,
)
from numpy.typing import NDArray

from hil.devices.simdaq import errors, names, routes, tdms
from hil.devices.simdaq.buffers import InputBuffer
from hil.devices.simdaq.channels import AnalogInput, DigitalLines, is_infinite
from hil.devices.simdaq.counters import CounterInput
from hil.devices.simdaq.errors import DaqmxError
from hil.devices.simdaq.task import RESERVED, RUNNING, Run
from hil.devices.simdaq.timing import NONE, Edges, ExternalClock, InternalClock

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
        rows = sum(c.rows for c in task.channels)
        self.buffer = InputBuffer(rows, capacity, may_overwrite=overwrite)
        for channel in task.channels:
            channel.begin(task.system.now_s)
        self.clock: InternalClock | ExternalClock = _clock(task, n if finite else np.inf)
        self._log = _log(task)
        self._end: int | None = None

    @property
    def done(self) -> bool:
        return self.clock.done or self.buffer.lost

    @property
    def planned(self) -> float:  # type: ignore[override]
        return self.clock.n

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
            block = np.vstack([c.sample(times) for c in self.task.channels])
            if self._log is not None:
                channels = self.task.channels
                scaled = [c.scaled(row) for c, row in zip(channels, block, strict=True)]
                self._log.append(np.vstack(scaled))
            self.buffer.push(block)
            if self._end is not None and self.buffer.written >= self._end:
                self.buffer.position = self._end - self.task.timing.samples

    def stop(self, t_s: float) -> None:
        if self._log is not None:
            self._log.close()

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
    if task.properties.get(("read", "logging_mode")) == LoggingMode.LOG.value:
        raise task.error(errors.ONLY_LOGGED)
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
        # The newest sample that was not read yet, else the next one; never an older one.
        buffer.position = max(buffer.position, buffer.written - 1)
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


def _log(task: Task) -> tdms.Log | None:
    """The file that a task logs to, if it does."""
    if not tdms.wanted(task.properties.get(("read", "logging_mode"))):
        return None
    system, p = task.system, task.properties
    return tdms.Log(
        str(p.get(("read", "logging_file_path"), "")),
        int(p.get(("read", "logging_tdms_operation"), LoggingOperation.CREATE_OR_REPLACE.value)),
        str(p.get(("read", "logging_tdms_group_name"), "")) or task.name,
        [c.name for c in task.channels],
        ["Volts" if task.kind == "ai" else "" for _ in task.channels],
        system.origin_unix_s + system.now_s,
        1.0 / task.rate_Hz,
    )


def _clock(task: Task, n: float) -> InternalClock | ExternalClock:
    if task.timing.type == SampleTimingType.IMPLICIT.value:
        return ExternalClock(_measurements(task), n, routes.trigger_edges(
            task.system, task.start_trigger, task))  # fmt: skip
    if task.timing.type == SampleTimingType.CHANGE_DETECTION.value:
        return ExternalClock(_changes(task), n)
    return task.clock(n)


def _measurements(task: Task) -> Edges:
    """Implicit timing: the end of every period of the first channel's signal is a sample."""
    channel = task.channels[0]
    assert isinstance(channel, CounterInput)

    def found(after_s: float, until_s: float) -> Block:
        train, ready_s = channel.train(), channel.ready_s(task.system.now_s)
        if train is None or ready_s is None or ready_s > until_s:
            return NONE
        just_before_s = np.nextafter(ready_s, -np.inf) - 1e-9 * train.period_s
        return train.rising(max(after_s, just_before_s), until_s)

    return found


def _changes(task: Task) -> Edges:
    """Change detection: every rising or falling edge of the lines asked for, once a time."""
    hear = [
        routes.line_edges(task.system, task.card, line, edge)
        for key, edge in (("rising", Edge.RISING.value), ("falling", Edge.FALLING.value))
        for physical in names.unflatten(
            str(task.properties.get(("timing", f"change_detect_di_{key}_edge_physical_chans"), ""))
        )
        for line in task.card.lines(names.split(physical)[1])
    ]

    def found(after_s: float, until_s: float) -> Block:
        times = [edges(after_s, until_s) for edges in hear]
        return np.unique(np.concatenate(times)) if times else NONE

    return found


def read_on_demand(task: Task, n: int, timeout_s: float) -> tuple[Block, DaqmxError | None]:
    """Samples taken now, n of them as fast as software goes: all at the same instant."""
    system = task.system
    if task.state < RESERVED:
        task.verify()
        system.must_be_free(task)
    there = True
    if task.kind == "ci":
        if task.state != RUNNING:
            task.start(implicit=True)
        there = _wait_for_counters(task, timeout_s)
    if not there or any(card.stalled for card in task.cards):
        if task.implicit:
            task.stop()
        rows = sum(c.rows for c in task.channels)
        return np.empty((rows, 0)), task.error(
            errors.NOT_YET_THERE, Samples_Read=0, Samples_Requested=n, Timeout_s=timeout_s
        )
    now_s = system.now_s
    values: list[float] = []
    for channel in task.channels:
        if isinstance(channel, AnalogInput | DigitalLines):
            values.append(channel.sample_now(now_s))
        else:
            values += np.ravel(channel.sample(np.array([now_s]))).tolist()
    if task.implicit:
        task.stop()
    column = np.array(values)[:, None]
    return column if n == 1 else np.repeat(column, n, axis=1), None


def _wait_for_counters(task: Task, timeout_s: float) -> bool:
    system = task.system

    def ready() -> bool:
        times = [c.ready_s(system.now_s) for c in task.channels]
        return all(t is not None and t <= system.now_s for t in times)

    def when() -> float | None:
        times = [c.ready_s(system.now_s) for c in task.channels]
        known = [t for t in times if t is not None]
        return max(known) if len(known) == len(times) else None

    return system.wait(ready, when, timeout_s)


def wait_until_done(task: Task, timeout_s: float) -> None:
    """Wait for a finite task to end.

    Raises
    ------
    DaqmxError
        It did not within the timeout.
    """

    def remaining() -> float | None:
        run = task.run
        if run is None or not np.isfinite(run.planned):
            return None
        return run.when(max(int(run.planned) - run.total, 1))

    if not task.system.wait(lambda: task.done, remaining, timeout_s):
        forever = is_infinite(timeout_s)
        raise task.error(errors.WAIT_TIMED_OUT, Timeout_s="none" if forever else timeout_s)
    if task.pending is not None:
        raise task.pending
