"""Start `hil` in its own process, which continues if the window closes."""

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hil_gui.data import APART, LEAVE, PYTHON, STEP, ask_to_stop


class Command:
    """A running `hil` command. Its output goes to files, so that it never blocks on a full pipe.

    An attended run ends safely if this process dies; its options have `--attended`.

    Attributes
    ----------
    error_text : str
        Standard error without steps of the start, available once `exit_code` is not None.
    result : dict
        Output of --json, available once `exit_code` is not None; empty if there is none.
    """

    def __init__(self, words: Sequence[str], *, attended: bool = False) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._out, self._err = (Path(self._folder.name) / name for name in ("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [*PYTHON, "-m", "hil", *words],
                stdin=subprocess.PIPE if attended else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                **APART,
            )
        self.pid = self._process.pid
        self.error_text = ""
        self.result: dict[str, Any] = {}

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while the command runs."""
        code = self._process.poll()
        if code is not None and self._out.exists():
            if self._process.stdin is not None:
                self._process.stdin.close()
            lines = _text(self._err).splitlines()
            self.error_text = "\n".join(line for line in lines if not line.startswith(STEP))
            with contextlib.suppress(ValueError, TypeError):
                self.result = dict(json.loads(_text(self._out)))
            self._folder.cleanup()
        return code

    @property
    def latest_line(self) -> str:
        """Last line on standard error so far: a step of the start, a request to the operator."""
        text = _text(self._err) if self._err.exists() else self.error_text
        return text.splitlines()[-1].removeprefix(STEP) if text else ""

    def line_after(self, start: str) -> str:
        """Rest of the first line on standard error so far that starts with this; else empty."""
        text = _text(self._err) if self._err.exists() else self.error_text
        lines = (line.removeprefix(start) for line in text.splitlines() if line.startswith(start))
        return next(lines, "").strip()

    def stop(self) -> None:
        """Do what Ctrl-C does: the run switches the cells off and closes the recording."""
        if self.exit_code is None:
            ask_to_stop(self.pid)

    def leave(self) -> None:
        """Let an attended run go on when this process ends."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(LEAVE)
                self._process.stdin.close()

    def wait(self, timeout_s: float) -> int | None:
        """Wait until the command has ended; returns its exit code."""
        self._process.wait(timeout_s)
        return self.exit_code


def _text(file: Path) -> str:
    return file.read_bytes().decode(errors="replace").strip()


def recording_path(experiment: Path, folder: Path) -> Path:
    """Path for a run's recording; its name has the UTC time, so that names are unique."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return folder / f"{experiment.resolve().parent.name}-{experiment.stem}-{stamp}.h5"


def option_words(answers: Mapping[str, str]) -> list[str]:
    """Options of a command, by key."""
    return [word for k, v in answers.items() for word in (f"--{k.replace('_', '-')}", v)]


def run_words(
    experiment: Path,
    out: Path,
    *,
    backend: str,
    clock: str = "real",
    seed: int = 0,
    sets: Mapping[str, str],
    foxglove_port: int | None = None,
) -> list[str]:
    """Arguments of `hil run`; with a port, it serves the run to Foxglove on this computer."""
    words = ["run", str(experiment), "--backend", backend, "--clock", clock, "--seed", str(seed)]
    words += ["--attended", "--out", str(out), "--json"]
    for key, value in sets.items():
        words += ["--set", f"{key}={value}"]
    if foxglove_port is not None:
        words += ["--foxglove", str(foxglove_port)]
    return words
