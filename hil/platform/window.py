"""Start the window as a separate process, so that a run does not depend on it."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hil.errors import ConfigError, missing_extra
from hil.platform.processes import APART, PYTHON

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


def is_installed() -> bool:
    """Whether the packages of the window are installed."""
    return find_spec("pyqtgraph") is not None and find_spec("PySide6") is not None


def require_window() -> None:
    """Check that the window can open; ConfigError if it is not installed or has no display."""
    if not is_installed():
        raise missing_extra("the window", "gui")
    if sys.platform == "linux" and not any(os.environ.get(name) for name in DISPLAYS):
        raise ConfigError(
            "the window has no display: start it in a desktop session, or through ssh -X"
        )


def open_window(file: Path | None = None) -> int:
    """Show an experiment or a recording until the window is closed; returns its exit code."""
    words = [] if file is None else [str(file)]
    return subprocess.run(_command(*words), check=False).returncode


def watch_this_run(recording: Path) -> None:
    """Show this process's run live; run and window do not depend on each other."""
    subprocess.Popen(
        _command(str(recording), "--attach", str(os.getpid())),
        stdin=subprocess.DEVNULL,
        **APART,  # Ctrl-C must reach only the run
    )


def _command(*words: str) -> list[str]:
    return [*PYTHON, "-m", "hil_gui", *words]
