"""Reading: out of the buffer of an acquisition, or single samples on demand."""

from __future__ import annotations

import numpy as np
from nidaqmx.constants import (
    LoggingMode,
    ReadRelativeTo,
)
from numpy.typing import NDArray

from simdaq import errors
from simdaq.acquisition import InputRun
from simdaq.channels import AnalogInput, DigitalLines, is_infinite
from simdaq.errors import DaqmxError
from simdaq.system import System
from simdaq.task import RUNNING, Task

Block = NDArray[np.float64]
ALL = -1
REFERENCE = ReadRelativeTo.REFERENCE_TRIGGER.value
BY_REFERENCE = (REFERENCE, ReadRelativeTo.FIRST_PRETRIGGER_SAMPLE.value)


def read(system: System, task: Task, n: int, timeout_s: float) -> tuple[Block, DaqmxError | None]:
    """Raw samples (channels, n); n = -1 is all there are.

    The error, if any, comes with the samples that were there all the same.
    """
    if not task.channels:
        raise task.error(errors.NO_CHANNELS)
    if task.kind == "do":
        return _read_back(system, task, 1 if n == ALL else n)
    if not task.is_input:
        raise task.error(errors.WRONG_CHANNEL_TYPE)
    for card in task.cards:
        card.must_work()
    if task.timing.on_demand:
        return _read_on_demand(system, task, 1 if n == ALL else n, timeout_s)
    if task.state != RUNNING:
        system.start(task, implicit=True)
    if task.pending is not None:
        raise task.pending
    if task.properties.get(("read", "logging_mode")) == LoggingMode.LOG.value:
        raise task.error(errors.ONLY_LOGGED)
    run = task.run
    assert isinstance(run, InputRun)
    return _read_buffer(system, task, run, n, timeout_s)


def _read_buffer(
    system: System, task: Task, run: InputRun, n: int, timeout_s: float
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
    ready = system.wait(
        lambda: (
            run.ready >= n
            or run.done
            or not _present(task)
            or task.run is not run
            or task.state != RUNNING
        ),
        lambda: run.when(n - run.ready),
        timeout_s,
    )
    for card in task.cards:
        card.must_work()
    if task.run is not run or task.state != RUNNING:  # by another thread
        raise task.error(errors.ABORTED)
    if buffer.lost and run.ready < n:
        task.pending = task.error(errors.OVERWRITTEN, Property="BufferOverflow")
    if buffer.lost:
        raise task.error(errors.OVERWRITTEN, Samples_Per_Channel_in_Buffer=buffer.capacity)
    size = min(n, run.ready)
    block = buffer.take(size)
    failure = None
    truncated = ready and run.done and size > 0  # the last samples of a finite acquisition
    if size < n and not truncated:
        code = errors.BEYOND_LAST_SAMPLE if ready and run.done else errors.NOT_YET_THERE
        failure = task.error(code, Samples_Read=size, Samples_Requested=n, Timeout_s=timeout_s)
        failure.samples = size
    elif task.implicit and run.done and not run.ready:
        system.stop(task)
    return block, failure


def _present(task: Task) -> bool:
    return all(card.plugged for card in task.cards)


def _seek(task: Task, run: InputRun) -> None:
    """Move the reading position to where the read properties say.

    Raises
    ------
    DaqmxError
        There was never a sample, or it was overwritten.
    """
    relative, offset = task.relative_to()
    buffer = run.buffer
    if relative == ReadRelativeTo.MOST_RECENT_SAMPLE.value:
        position = buffer.written + offset
    elif relative == ReadRelativeTo.FIRST_SAMPLE.value:
        position = offset
    elif relative in BY_REFERENCE:
        pretrigger = task.reference_trigger.pretrigger if relative == REFERENCE else 0
        position = run.first_pretrigger() + pretrigger + offset
    else:
        return
    if position < 0:
        raise task.error(errors.BEFORE_FIRST_SAMPLE, Offset=offset)
    if position < buffer.written - buffer.capacity:
        raise task.error(errors.OVERWRITTEN, Samples_Per_Channel_in_Buffer=buffer.capacity)
    buffer.position = position


def _read_on_demand(
    system: System, task: Task, n: int, timeout_s: float
) -> tuple[Block, DaqmxError | None]:
    """Samples taken now, n of them as fast as software goes: all at the same instant."""
    if task.state != RUNNING:
        system.start(task, implicit=True)
    ready = _wait_for_counters(system, task, timeout_s) if task.kind == "ci" else True
    if not ready or any(card.stalled for card in task.cards):
        if task.implicit:
            system.stop(task)
        rows = sum(c.rows for c in task.channels)
        return np.empty((rows, 0)), task.error(
            errors.NOT_YET_THERE, Samples_Read=0, Samples_Requested=n, Timeout_s=timeout_s
        )
    now_s = system.now_s
    if n == 1 and all(isinstance(c, AnalogInput | DigitalLines) for c in task.channels):
        block = np.array([[c.sample_now(now_s)] for c in task.channels])  # type: ignore[attr-defined]
    else:
        block = np.vstack([c.sample(np.full(n, now_s)) for c in task.channels])
    if task.implicit:
        system.stop(task)
    return block, None


def _read_back(system: System, task: Task, n: int) -> tuple[Block, None]:
    """The words that digital outputs drive now."""
    words = [[c.driven(system.now_s)] for c in task.channels if isinstance(c, DigitalLines)]
    return np.repeat(np.array(words, dtype=float), n, axis=1), None


def _wait_for_counters(system: System, task: Task, timeout_s: float) -> bool:
    def ready() -> bool:
        times = [c.ready_s(system.now_s) for c in task.channels]
        return all(t is not None and t <= system.now_s for t in times)

    def when() -> float | None:
        times = [c.ready_s(system.now_s) for c in task.channels]
        known = [t for t in times if t is not None]
        return max(known) if len(known) == len(times) else None

    return system.wait(ready, when, timeout_s)


def wait_until_done(system: System, task: Task, timeout_s: float) -> None:
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

    if not system.wait(lambda: task.done, remaining, timeout_s):
        forever = is_infinite(timeout_s)
        raise task.error(errors.WAIT_TIMED_OUT, Timeout_s="none" if forever else timeout_s)
    if task.pending is not None:
        raise task.pending
