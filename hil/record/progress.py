"""Progress bars, and a line while models compile.

A separate process draws the bar of a run, so that it does not disturb the loop:
``python -m hil.record.progress TAP N_TICKS LABEL`` reads the count of rows from the tap.
"""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hil.loop import tap as taps
from hil.platform.processes import APART, PYTHON, STEP

QUIET_S = 2.0
WAITING = ("off", "connected", "self_test", "ready")


@contextlib.contextmanager
def show_progress(tap_path: Path, n_ticks: int, label: str) -> Iterator[None]:
    """Show a bar while the block runs, if it has a label and standard error is a terminal."""
    if not (label and sys.stderr.isatty()):
        yield
        return
    command = [*PYTHON, "-m", "hil.record.progress", str(tap_path), str(n_ticks), label]
    bar = subprocess.Popen(command, stdin=subprocess.DEVNULL, **APART)
    try:
        yield
    finally:
        bar.terminate()
        bar.wait()


@contextlib.contextmanager
def doing(what: str, wanted: bool, attended: bool) -> Iterator[None]:
    """Print what a start is at: to a window at once, to a terminal if it takes QUIET_S."""
    if attended:
        print(f"{STEP}{what}", file=sys.stderr, flush=True)
    timer = threading.Timer(QUIET_S, lambda: print(what, file=sys.stderr, flush=True))
    timer.daemon = True
    if wanted and not attended and sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def count_progress(what: str, total: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of further steps done.

    It shows a bar with the time left if `wanted`, if standard error is a terminal or belongs to a
    notebook, and after QUIET_S.
    """
    if not (wanted and (sys.stderr.isatty() or "ipykernel" in sys.modules)):
        yield lambda n_more: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    progress = Progress(*columns, console=console, transient=True)
    task = progress.add_task(what, total=total)
    shown_from_s = time.monotonic() + QUIET_S

    def advance(n_more: int) -> None:
        progress.advance(task, n_more)
        if time.monotonic() >= shown_from_s:
            progress.start()

    try:
        yield advance
    finally:
        progress.stop()


@contextlib.contextmanager
def say_compiling(wanted: bool) -> Iterator[None]:
    """Print once that models compile, if wanted on a terminal; warn if Numba is missing.

    Models are compiled when they first run on a machine. The line appears with the first function
    that is compiled, not found in the cache, QUIET_S after another one.
    """
    # Imports Numba, which the process of the bar does not need.
    from hil.compiled import MISSING, NO_CACHE, uncached

    if wanted and (why := MISSING or (uncached and NO_CACHE)):
        print(f"warning: {why}", file=sys.stderr, flush=True)
    if MISSING or not (wanted and sys.stderr.isatty()):
        yield
        return
    from numba.core import event

    class Says(event.Listener):
        from_s, is_announced = float("inf"), False

        def on_start(self, event: object) -> None:
            now_s = time.monotonic()
            self.from_s = min(self.from_s, now_s + QUIET_S)
            if now_s >= self.from_s and not self.is_announced:
                print("compiling the models, once on this machine: about ten seconds",
                      file=sys.stderr, flush=True)  # fmt: skip
                self.is_announced = True

        def on_end(self, event: object) -> None:
            """Does nothing: the next compilation may print the line."""

    with event.install_listener("numba:compile", Says()):
        yield


def main() -> int:
    tap, n_ticks, label = taps.attach(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
    time.sleep(QUIET_S)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=n_ticks)
        waited = 0  # rows before the run was armed
        while not tap.closed and tap.ticks.written < waited + n_ticks:
            if tap.state in WAITING:
                waited = tap.ticks.written
            progress.update(task, completed=tap.ticks.written - waited)
            time.sleep(0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
