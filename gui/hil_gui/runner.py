"""Starts `hil` in a process of its own, which goes on when the window does not."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Command:
    """A `hil` command under way. Its output waits in files, so it needs nobody to read it.

    Attributes
    ----------
    said : str
        What it wrote on standard error.
    result : dict
        What it printed with --json; empty where that is nothing.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as this
        self._err = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hil", *words],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.said = ""
        self.result: dict[str, Any] = {}

    @property
    def exit_code(self) -> int | None:
        """None while it runs; then `said` and `result` are there."""
        code = self._process.poll()
        if code is not None and not self._out.closed:
            self.said = _text(self._err).strip()
            with contextlib.suppress(ValueError, TypeError):
                self.result = dict(json.loads(_text(self._out)))
            self._out.close()
            self._err.close()
        return code

    @property
    def latest_line(self) -> str:
        """The last line that it wrote on standard error so far: it may ask for something."""
        if self._err.closed:
            return ""
        # Not by reading: the child writes where this file's position is.
        said = os.pread(self._err.fileno(), 1 << 16, 0).decode(errors="replace").strip()
        return said.splitlines()[-1] if said else ""

    def stop(self) -> None:
        """Ask it to end safely, as Ctrl-C does: cells off, recording closed."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self, timeout_s: float) -> int | None:
        """Until it has ended; its exit code."""
        self._process.wait(timeout_s)
        return self.exit_code


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="replace"))


def stop_process(pid: int) -> None:
    """Ask a run that another process started to end safely."""
    os.kill(pid, signal.SIGINT)


def is_running(pid: int) -> bool:
    """Whether a process is still there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def recording_path(experiment: Path, folder: Path) -> Path:
    """Where a run of this experiment is recorded; the time tells runs apart."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return folder / f"{experiment.resolve().parent.name}-{experiment.stem}-{stamp}.h5"


def run_words(
    experiment: Path,
    out: Path,
    *,
    backend: str,
    clock: str = "real",
    seed: int = 0,
    sets: Mapping[str, str],
) -> list[str]:
    """The words of `hil run`."""
    words = ["run", str(experiment), "--backend", backend, "--clock", clock, "--seed", str(seed)]
    words += ["--out", str(out), "--json"]
    for key, value in sets.items():
        words += ["--set", f"{key}={value}"]
    return words
