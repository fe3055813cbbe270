"""Start the window: `python -m hil_gui [FILE] [--attach PID]`, which `hil gui` runs."""

import argparse
import signal
import sys
import threading
from pathlib import Path

import pyqtgraph as pg
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from hil_gui.data import ConfigError, DeviceError, be_nice, warm_up
from hil_gui.window import Window

BAD_INPUT = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hil_gui", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="an experiment or a recording")
    parser.add_argument(
        "--attach", type=int, metavar="PID", help="process id of the run that records FILE"
    )
    args = parser.parse_args()
    pg.setConfigOptions(antialias=False)
    be_nice()
    application = QApplication(sys.argv[:1])
    application.setApplicationName("hil")
    # Ctrl-C in the terminal stops the run, which reports how it ended; the window ignores it.
    signal.signal(signal.SIGINT, signal.SIG_IGN if args.attach else signal.SIG_DFL)
    window = Window()
    sys.excepthook = window.report_internal_error
    window.show()
    # Import in a thread: opening a file imports more than the window, and would delay the first
    # frame. The thread is no daemon: exiting while a daemon thread imports may crash.
    warming = threading.Thread(target=warm_up)
    warming.start()
    if args.attach is not None or args.file is not None:
        QTimer.singleShot(0, lambda: _open_first(application, window, args, warming))
    return int(application.exec())


def _open_first(
    application: QApplication,
    window: Window,
    args: argparse.Namespace,
    warming: threading.Thread,
) -> None:
    """Open what the command line names; exit with BAD_INPUT if that fails."""
    # Two threads that import the same modules in another order may see one half imported.
    warming.join()
    if args.attach is not None:
        window.bench.watch(args.attach, args.file)
        return
    try:
        window.load(args.file)
    except (ConfigError, DeviceError) as error:
        print(error, file=sys.stderr)
        application.exit(BAD_INPUT)


if __name__ == "__main__":
    sys.exit(main())
