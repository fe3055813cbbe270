"""Starts the window, a process of its own: it may crash or be closed without a run noticing."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hil.errors import ConfigError

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


def require_window() -> None:
    """ConfigError where the window is not installed, or there is nothing to show it on."""
    if find_spec("pyqtgraph") is None or find_spec("PySide6") is None:
        raise ConfigError("the window is an extra: pip install 'hil-arrays[gui]'")
    if sys.platform == "linux" and not any(os.environ.get(name) for name in DISPLAYS):
        raise ConfigError(
            "the window has no display: start it in a desktop session, or through ssh -X"
        )


def open_window(file: Path | None = None) -> int:
    """Show an experiment or a recording until the window is closed; its exit code."""
    words = [] if file is None else [str(file)]
    return subprocess.run(_command(*words), check=False).returncode


def watch_this_run(recording: Path) -> None:
    """Show this process's run live; it goes on without the window, and the window without it."""
    subprocess.Popen(
        _command(str(recording), "--attach", str(os.getpid())),
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # a terminal's Ctrl-C is for the run
    )


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "hil_gui", *words]
