"""The loop's side of the recording: starts the recorder process, passes rows and ends it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hil.errors import ConfigError, DeviceError
from hil.loop import tap as taps
from hil.loop.frame import Frame
from hil.platform.processes import APART, PYTHON
from hil.platform.terminal import say
from hil.record.raw_samples import RawSamples
from hil.record.rescue import KEPT_IN

START_TIMEOUT_S = 30.0
SAY_EVERY_S = 10.0
DISK_FLOOR_B = 64 * 2**20
CHECK_EVERY = 64  # rows; fewer where they are longer than a flush
STDERR = 2  # also where a program around Python has put another object in its place


def check_disk(path: Path, n_rows: int, row_size_B: int, disk_free_min_MB: float) -> None:
    """Refuse a run whose recording leaves less than DISK_FLOOR_B, or than its guard permits."""
    need_B = int(1.1 * n_rows * row_size_B + max(DISK_FLOOR_B, 1e6 * disk_free_min_MB))
    free_B = shutil.disk_usage(path.parent).free
    if free_B < need_B:
        raise ConfigError(
            f"{path}: {free_B / 1e6:.0f} MB free on the disk, this run needs {need_B / 1e6:.0f} MB "
            "with its reserve: free some space or choose another --out"
        )


class RingSink:
    """Puts rows, events and the values of requests into rings."""

    def __init__(self, rings: taps.Rings, frame: Frame) -> None:
        self._rings = rings
        self._row = frame.row
        self._event = np.zeros(1, dtype=taps.EVENT)
        self._input = np.zeros(1, dtype=taps.INPUT)

    def event(self, t_s: float, level: str, source: str, text: str) -> None:
        """Record an event."""
        self._event[0] = (t_s, level, source, text.encode()[:256])
        self._rings.events.push(self._event)

    def input(self, tick: int, t_s: float, name: str, value: float, text: str = "") -> None:
        """Record a request that took effect at this tick."""
        self._input[0] = (tick, t_s, name, value, text.encode()[:256])
        self._rings.inputs.push(self._input)


@dataclass(frozen=True)
class Writing:
    """How rows are written.

    Attributes
    ----------
    period_s : time from row to row
    flush_s, fsync_s : how often rows are written to the file, and the file to disk
    lossless : wait when the ring is full. Only on a virtual clock: a real loop never waits, and
        rows that the recorder could not take in time are counted as lost.
    disk_free_min_MB : with less than this free the disk counts as full
    """

    period_s: float
    flush_s: float
    fsync_s: float
    lossless: bool
    disk_free_min_MB: float = 0.0


class Sink(RingSink):
    """Passes the rows of one run to the recorder.

    Parameters
    ----------
    raw : samples of devices that are faster than the loop
    begun : called after the first row
    """

    def __init__(
        self,
        path: Path,
        frame: Frame,
        writing: Writing,
        raw: Mapping[str, RawSamples] | None = None,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self._begun = begun
        self._lossless, period_s = writing.lossless, writing.period_s
        capacity = max(4096, int(5.0 / period_s))
        # Twice the samples of a full ring of ticks: these rings then never fill first.
        rings = {name: (r.dtype, 2 * r.per_tick * capacity) for name, r in (raw or {}).items()}
        self.tap = taps.create(frame.dtype, capacity, rings)
        super().__init__(self.tap, frame)
        command = [*PYTHON, "-m", "hil.record.recorder", str(self.tap.path), str(path)]
        command += [str(writing.flush_s), str(writing.fsync_s), str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                # Where it says that the loop has died: on the terminal.
                stdout=subprocess.DEVNULL if sys.stderr is None else STDERR,
                stderr=subprocess.PIPE,
                text=True,
                **APART,  # only the loop gets the terminal's Ctrl-C and hang-up
            )
        except BaseException:
            self.tap.unlink()
            raise
        self._output: str | None = None  # by the recorder, known after its end
        self._n = 0
        self._check_every = max(1, min(CHECK_EVERY, int(writing.flush_s / period_s)))
        self.disk_low = self.file_harmed = ""
        self._disk_free_min_B = 1e6 * writing.disk_free_min_MB
        self._rows_per_look = max(1, round(1.0 / period_s))
        self._look_at_disk_at = 0

    def wait_ready(self) -> None:
        """Block until the recorder has opened the file."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not self.tap.recorder_ready:
            if not self.alive:
                raise DeviceError(f"recorder: did not start: {self._last_words()}")
            if time.monotonic() > deadline_s:
                raise DeviceError(f"recorder: no answer within {START_TIMEOUT_S:g} s")
            time.sleep(0.002)

    @property
    def pid(self) -> int:
        """Process id of the recorder."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def push(self) -> bool:
        """Pass on the current row; False if the recorder is dead or stalled, or the disk is low.

        A recorder is stalled if it is a full ring of rows, five seconds or more, behind.
        """
        self.tap.ticks.push(self._row)
        self._n += 1
        if self._n == 1:
            self._begun()
        if self._n % self._check_every:
            return True
        if self._lossless:
            limit = self.tap.ticks.capacity - 2 * CHECK_EVERY
            while self._n - self.tap.recorded > limit and self.alive:
                time.sleep(0.001)
        if self._n >= self._look_at_disk_at:
            self._look_at_disk_at = self._n + self._rows_per_look
            free_B = shutil.disk_usage(self.path.parent).free
            self.disk_low = ""
            if free_B < self._disk_free_min_B:
                self.disk_low = (
                    f"{1e-6 * free_B:.0f} MB free where {self.path.name} is, limit "
                    f"{1e-6 * self._disk_free_min_B:.0f} MB (guard.disk_free_min_MB)"
                )
        if self.tap.harm:
            self.file_harmed = f"{self.path.name} {self.tap.harm}"
        stalled = self._n - self.tap.recorded > self.tap.ticks.capacity
        return self.alive and not (stalled or self.disk_low or self.file_harmed)

    def requests(self, tick: int) -> list[tuple[str, float, str]]:
        """Requests of windows since the last tick."""
        return self.tap.take_requests()

    def show_state(self, now: str) -> None:
        """Show the rig's state to windows, also before the first row."""
        self.tap.state = now

    def drain(self) -> int:
        """End the recorder once it has every row; returns the number of lost rows.

        A recording that was deleted, moved, replaced or cut off is put back; `path` is its name.

        Raises
        ------
        DeviceError
            The recorder failed or was killed.
        """
        self.tap.close_writer()
        words = self._last_words()
        self.tap.unlink()
        if self._process.returncode != 0:
            raise DeviceError(f"recorder: {words}")
        self.path = Path(words.removeprefix(KEPT_IN)) if words.startswith(KEPT_IN) else self.path
        return self.tap.lost

    def abandon(self) -> None:
        """End the recorder of a run that did not start."""
        self.tap.close_writer()
        self.tap.unlink()
        self._last_words()

    def _last_words(self) -> str:
        """The last line that the recorder printed; waits until it has ended, and says for what."""
        while self._output is None:
            try:
                self._output = self._process.communicate(timeout=SAY_EVERY_S)[1]
            except subprocess.TimeoutExpired:
                say(
                    f"recorder: process {self.pid} has not ended, of {self.path.name} "
                    f"{self.tap.recorded} rows are written: look whether it is stopped, or its "
                    "disk stands still; what was written is kept if it is killed",
                    file=sys.stderr,
                )
        lines = self._output.strip().splitlines()
        return lines[-1] if lines else "was killed"
