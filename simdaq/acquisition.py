"""Clocked acquisitions: clock, buffer, logging, end."""

from __future__ import annotations

import numpy as np
from nidaqmx.constants import (
    Edge,
    LoggingOperation,
    OverwriteMode,
    SampleTimingType,
)
from numpy.typing import NDArray

from simdaq import errors, names, routes, tdms
from simdaq.bench import Bench
from simdaq.buffers import InputBuffer
from simdaq.channels import DigitalLines
from simdaq.counters import CounterInput
from simdaq.run import Run
from simdaq.task import Task
from simdaq.timing import NONE, Clock, Edges, ExternalClock

Block = NDArray[np.float64]


def default_buffer(rate_Hz: float) -> int:
    """Samples a channel that a continuous task buffers (NI-DAQmx Help, "How Is Buffer Size
    Determined?").
    """
    for limit_Hz, size in ((100.0, 1_000), (10_000.0, 10_000), (1e6, 100_000)):
        if rate_Hz <= limit_Hz:
            return size
    return 1_000_000


def buffer_size(task: Task) -> int:
    """Samples a channel that the buffer of an input task holds, or will hold.

    Source: NI-DAQmx Help, "How Is Buffer Size Determined?".
    """
    timing = task.timing
    size = int(task.properties.get(("buffer", "input_buf_size"), 0))
    if size > 0:
        return size
    if timing.on_demand:
        return 0
    if timing.single_point:
        return 1
    retriggerable = bool(task.properties.get(("trig", "start_retriggerable"), False))
    if timing.finite and not task.reference_trigger.present and not retriggerable:
        return timing.samples
    return max(default_buffer(timing.rate_Hz), timing.samples)


class InputRun(Run):
    """A clocked acquisition."""

    def __init__(self, bench: Bench, task: Task) -> None:
        self.task = task
        self._bench = bench
        timing = task.timing
        n = float(timing.samples) if timing.finite else np.inf
        self._reference = routes.trigger_edges(bench, task.reference_trigger, task)
        finite = timing.finite and self._reference is None
        mode = task.properties.get(("read", "overwrite"))
        overwrite = (
            mode == OverwriteMode.OVERWRITE_UNREAD_SAMPLES.value
            or self._reference is not None
            or timing.single_point
        )
        rows = sum(c.rows for c in task.channels)
        self.buffer = InputBuffer(rows, buffer_size(task), may_overwrite=overwrite)
        for channel in task.channels:
            channel.begin(bench.now_s)
            if isinstance(channel, DigitalLines):
                channel.n_sampled = 0
        self.clock: Clock = _clock(bench, task, n if finite else np.inf)
        self._log = _log(bench, task)
        self._end: int | None = None
        self._silent = False
        self._armed_s: float | None = bench.now_s
        self._begun_s = self._packet_s = bench.now_s
        self._delivered = 0  # samples per channel that the computer has

    @property
    def done(self) -> bool:
        return self.clock.done or self.buffer.lost

    @property
    def planned(self) -> float:
        return self.clock.n

    @property
    def total(self) -> int:
        return self._delivered

    def when(self, more: int) -> float | None:
        sampled_s = self.clock.when(self._delivered + more - self.clock.taken)
        return None if sampled_s is None else self._arrival_s(sampled_s)

    @property
    def _transfer_s(self) -> float:
        return max(card.transfer_s for card in self.task.cards)

    def _arrival_s(self, t_s: float) -> float:
        """When the computer has what was sampled at t_s: with the next packet."""
        if not self._transfer_s:
            return t_s
        n = np.ceil((t_s - self._begun_s) / self._transfer_s - 1e-9)
        return float(self._begun_s + n * self._transfer_s)

    @property
    def ready(self) -> int:
        """Samples a channel that can be read now."""
        if self._reference is not None and not self.clock.done:
            return 0
        return max(0, self._delivered - self.buffer.position)

    def take(self, after_s: float, until_s: float) -> None:
        if any(card.stalled or not card.plugged for card in self.task.cards):
            self.fresh, self._silent = NONE, True
            return
        self._silent = False
        times = self.clock.take(after_s, until_s)
        self._arm()
        if self._reference is not None and self._end is None:
            times = self._look_for_reference(times, after_s, until_s)
        self.fresh = times

    def _arm(self) -> None:
        """Let counters begin at their arm start trigger."""
        armed_s = self.clock.start_s
        if armed_s is not None and armed_s != self._armed_s:
            self._armed_s = armed_s
            for channel in self.task.channels:
                channel.begin(armed_s)

    def step(self, after_s: float, until_s: float) -> None:
        if self._silent:
            return
        times = np.asarray(self.fresh)
        before = self.buffer.written
        if len(times):
            block = np.vstack([c.sample(times) for c in self.task.channels])
            self._write_log(block)
            self.buffer.push(block)
            if self._end is not None and self.buffer.written >= self._end:
                self.buffer.position = self._end - self.task.timing.samples
        self._deliver(before, times, until_s)

    def _write_log(self, block: Block) -> None:
        """Append to the file, and go on in the next one where a file is full."""
        if self._log is None or self.task.properties.get(("read", "logging_pause")):
            return
        rows = zip(self.task.channels, block, strict=True)
        scaled = np.vstack([channel.scaled(row) for channel, row in rows])
        most = int(self.task.properties.get(("read", "logging_samps_per_file"), 0))
        while most and self._log.n_samples + scaled.shape[1] > most:
            n = most - self._log.n_samples
            self._log.append(scaled[:, :n])
            scaled = scaled[:, n:]
            self.new_file(self._log.next_path())
        if scaled.shape[1]:
            self._log.append(scaled)

    def first_pretrigger(self) -> int:
        """Number of the first sample that belongs to the reference trigger.

        Raises
        ------
        DaqmxError
            There is no such trigger, or it has not come and all its samples.
        """
        if self._reference is None:
            raise self.task.error(errors.NO_REFERENCE_TRIGGER)
        if self._end is None or not self.clock.done:
            raise self.task.error(errors.REFERENCE_NOT_YET)
        return self._end - self.task.timing.samples

    @property
    def logs(self) -> bool:
        """It writes what it acquires to a file."""
        return self._log is not None

    def new_file(self, path: str) -> None:
        """Log to another file from now on."""
        assert self._log is not None
        self._log.close()
        self.task.properties["read", "logging_file_path"] = path
        self._log = _log(self._bench, self.task)

    def _deliver(self, before: int, times: Block, until_s: float) -> None:
        """Deliver the newest packet; the last one is sent when the acquisition ends."""
        if not self._transfer_s or self.clock.done:
            self._delivered = self.buffer.written
            return
        n = np.floor((until_s - self._begun_s) / self._transfer_s + 1e-9)
        packet_s = float(self._begun_s + n * self._transfer_s)
        if packet_s > self._packet_s:
            self._packet_s = packet_s
            n_sent = int(np.searchsorted(times, packet_s + 1e-12, side="right"))
            self._delivered = min(before + n_sent, self.buffer.written)

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


def _log(bench: Bench, task: Task) -> tdms.Log | None:
    """The file that a task logs to, if it does."""
    if not tdms.wanted(task.properties.get(("read", "logging_mode"))):
        return None
    p = task.properties
    return tdms.Log(
        str(p.get(("read", "logging_file_path"), "")),
        int(p.get(("read", "logging_tdms_operation"), LoggingOperation.CREATE_OR_REPLACE.value)),
        str(p.get(("read", "logging_tdms_group_name"), "")) or task.name,
        [c.name for c in task.channels],
        ["Volts" if task.kind == "ai" else "" for _ in task.channels],
        bench.origin_unix_s + bench.now_s,
        1.0 / task.rate_Hz,
    )


def _clock(bench: Bench, task: Task, n: float) -> Clock:
    if task.timing.type == SampleTimingType.IMPLICIT.value:
        trigger = routes.trigger_edges(bench, task.start_trigger, task)
        if trigger is None:
            trigger = routes.arm_start(bench, task)
        return ExternalClock(_measurements(bench, task), n, trigger)
    if task.timing.type == SampleTimingType.HANDSHAKE.value:
        return ExternalClock(lambda _after_s, _until_s: NONE, n)
    if task.timing.type == SampleTimingType.CHANGE_DETECTION.value:
        return ExternalClock(_changes(bench, task), n)
    return routes.sample_clock(bench, task, n)


def _measurements(bench: Bench, task: Task) -> Edges:
    """Implicit timing: every measurement of the first channel is a sample."""
    channel = task.channels[0]
    assert isinstance(channel, CounterInput)
    return channel.completions(bench.now_s)


def _changes(bench: Bench, task: Task) -> Edges:
    """Change detection: every rising or falling edge of the lines asked for, once a time."""
    hear = [
        routes.line_edges(bench, task.card, line, edge)
        for key, edge in (("rising", Edge.RISING.value), ("falling", Edge.FALLING.value))
        for physical in names.unflatten(
            str(task.properties.get(("timing", f"change_detect_di_{key}_edge_physical_chans"), ""))
        )
        for line in task.card.lines(names.split(physical)[1])
    ]

    def between(after_s: float, until_s: float) -> Block:
        times = [edges(after_s, until_s) for edges in hear]
        return np.unique(np.concatenate(times)) if times else NONE

    return between
