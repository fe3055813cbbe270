"""Start `hil` in its own process, which continues if the window closes."""

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
    """A running `hil` command. Its output goes to files, so that it never blocks on a full pipe.

    Attributes
    ----------
    error_text : str
        Standard error, available once `exit_code` is not None.
    result : dict
        Output of --json, available once `exit_code` is not None; empty if there is none.
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
        self.error_text = ""
        self.result: dict[str, Any] = {}

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while the command runs."""
        code = self._process.poll()
        if code is not None and not self._out.closed:
            self.error_text = _text(self._err).strip()
            with contextlib.suppress(ValueError, TypeError):
                self.result = dict(json.loads(_text(self._out)))
            self._out.close()
            self._err.close()
        return code

    @property
    def latest_line(self) -> str:
        """Last line on standard error so far, for example a request to the operator."""
        if self._err.closed:
            return ""
        # pread, because the child shares the file position: read() would move it.
        text = os.pread(self._err.fileno(), 1 << 16, 0).decode(errors="replace").strip()
        return text.splitlines()[-1] if text else ""

    def stop(self) -> None:
        """Send SIGINT, as Ctrl-C does: the run switches the cells off and closes the recording."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self, timeout_s: float) -> int | None:
        """Wait until the command has ended; returns its exit code."""
        self._process.wait(timeout_s)
        return self.exit_code


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="replace"))


def stop_process(pid: int) -> None:
    """Send SIGINT to a run that another process started, so that it ends safely."""
    os.kill(pid, signal.SIGINT)


def is_running(pid: int) -> bool:
    """Whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def recording_path(experiment: Path, folder: Path) -> Path:
    """Path for a run's recording; its name has the UTC time, so that names are unique."""
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
    """Arguments of `hil run`."""
    words = ["run", str(experiment), "--backend", backend, "--clock", clock, "--seed", str(seed)]
    words += ["--out", str(out), "--json"]
    for key, value in sets.items():
        words += ["--set", f"{key}={value}"]
    return words
