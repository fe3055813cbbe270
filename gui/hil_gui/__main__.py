"""Start the window: `python -m hil_gui [RUN.h5]`."""

import sys
from pathlib import Path

import pyqtgraph as pg

from hil_gui.window import Window


def main() -> int:
    pg.setConfigOptions(background="w", foreground="#333333", antialias=True)
    application = pg.mkQApp("hil")
    window = Window()
    if len(sys.argv) > 1 and not window.open(Path(sys.argv[1])):
        return 2
    window.show()
    return int(application.exec())


if __name__ == "__main__":
    sys.exit(main())
