"""Start the window as a separate process, so that a run does not depend on it."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hil.errors import ConfigError, missing_extra
from hil.platform.processes import APART, PYTHON

XCB = "Qt/plugins/platforms/libqxcb.so"
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
    named = os.environ.get("QT_QPA_PLATFORM", "" if os.environ.get(DISPLAYS[1]) else "xcb")
    if sys.platform == "linux" and named == "xcb":
        refuse_missing_libraries()


def refuse_missing_libraries() -> None:
    """Refuse to start Qt without the libraries of its X11 plug-in, which it would only hint at."""
    spec, ldd = find_spec("PySide6"), shutil.which("ldd")
    if spec is None or spec.origin is None or ldd is None:
        return
    plugin = Path(spec.origin).parent / XCB
    done = subprocess.run([ldd, str(plugin)], capture_output=True, text=True, check=False)
    missing = dict.fromkeys(re.findall(r"(\S+) => not found", done.stdout))
    if missing:
        raise ConfigError(
            f"the window lacks {', '.join(missing)}: on Debian: sudo apt-get install "
            f"{' '.join(package_of(name) for name in missing)}"
        )


def package_of(library: str) -> str:
    """Debian's package of a shared library, by Debian's rule for such names.

    Source: Debian Policy 4.6, 8.1. GLib's has no hyphen before its own version.
    """
    name, _, version = library.partition(".so.")
    name = name.lower().replace("libglib-", "libglib")
    return f"{name}{'-' if name[-1].isdigit() else ''}{version.partition('.')[0]}"


def open_window(file: Path | None = None) -> int:
    """Show an experiment or a recording until the window is closed; returns its exit code.

    Where it can, this process becomes the window, so that none is left when it is killed.
    """
    command = _command() if file is None else _command(str(file))
    if os.name == "posix":
        os.execv(command[0], command)
    return subprocess.run(command, check=False).returncode


def watch_this_run(recording: Path) -> None:
    """Show this process's run live; run and window do not depend on each other."""
    subprocess.Popen(
        _command(str(recording), "--attach", str(os.getpid())),
        stdin=subprocess.DEVNULL,
        **APART,  # Ctrl-C must reach only the run
    )


def _command(*words: str) -> list[str]:
    return [*PYTHON, "-m", "hil_gui", *words]
