"""Start the window: `python -m hil_gui [FILE] [--attach PID]`; `hil gui` does."""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

import pyqtgraph as pg
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from hil_gui.data import ConfigError, DeviceError, warm_up
from hil_gui.window import NICE, Window

BAD_INPUT = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hil_gui", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="an experiment or a recording")
    parser.add_argument("--attach", type=int, metavar="PID", help="the run that records FILE")
    args = parser.parse_args()
    pg.setConfigOptions(antialias=False)
    os.nice(NICE)
    application = QApplication(sys.argv[:1])
    application.setApplicationName("hil")
    # Ctrl-C in the terminal is for the run, which says how it ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN if args.attach else signal.SIG_DFL)
    window = Window()
    sys.excepthook = window.say_defect
    window.show()
    # The first frame first: what opening a file imports takes longer than the window itself.
    # No daemon: an interpreter that ends while a thread imports may crash.
    threading.Thread(target=warm_up).start()
    if args.attach is not None:
        window.bench.watch(args.attach, args.file)
    elif args.file is not None:
        QTimer.singleShot(0, lambda: _open_first(application, window, args.file))
    return int(application.exec())


def _open_first(application: QApplication, window: Window, path: Path) -> None:
    """The file that the command line names; where it cannot be opened the command ends."""
    try:
        window.load(path)
    except (ConfigError, DeviceError) as error:
        print(error, file=sys.stderr)
        application.exit(BAD_INPUT)


if __name__ == "__main__":
    sys.exit(main())
