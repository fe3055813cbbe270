"""Pictures of the window for the documentation: docs/images/window-*.png and leg-window.png.

`QT_QPA_PLATFORM=offscreen python gui/window_images.py` makes the runs on the simulated rig and
draws them offscreen. The live picture needs 9 s of real time on an idle machine.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pyqtgraph as pg
from PySide6.QtCore import QSettings, QSize
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

import hil
from hil_gui.window import Window

ROOT = Path(__file__).resolve().parents[1]
CONFIGS, IMAGES = ROOT / "configs", ROOT / "docs/images"
SIZE, LEG_SIZE = QSize(1280, 720), QSize(1500, 950)
STATUS_BAR = 26  # px, not drawn
AT_MOST_S = 100.0
STEP_MS = 20


def wait(condition: Callable[[], bool]) -> None:
    """Process events until a condition holds.

    Raises
    ------
    TimeoutError
        It does not hold within AT_MOST_S.
    """
    end_s = monotonic() + AT_MOST_S
    while not condition():
        if monotonic() > end_s:
            raise TimeoutError("the window did not reach the state for its picture")
        QTest.qWait(STEP_MS)


def opened(path: Path, theme: str, size: QSize) -> Window:
    """A window that shows a file."""
    settings = QSettings(str(path.with_suffix(".ini")), QSettings.Format.IniFormat)
    window = Window(settings)
    window.set_theme(theme)
    window.resize(size)
    window.show()
    if not window.open(path):
        raise OSError(f"{path}: the window did not open it")
    wait(lambda: not window.jobs.is_busy)
    return window


def save(window: Window, name: str) -> None:
    """Draw the window into a file and close it."""
    QTest.qWait(10 * STEP_MS)
    window.frame()
    shown = window.grab()
    shown.copy(0, 0, shown.width(), shown.height() - STATUS_BAR).save(str(IMAGES / name))
    if window.bench.command is not None:
        window.bench.stop()
        wait(lambda: not window.bench.is_busy)
    window.close()


def live(folder: Path) -> None:
    """A run in progress, dark theme."""
    experiment = folder / "configs/array14/pid.toml"
    rig = experiment.with_name("rig.toml")
    late = rig.read_text(encoding="utf-8").replace("[loop]\n", '[loop]\noverrun = "skip"\n')
    rig.write_text(late, encoding="utf-8")
    window = opened(experiment, "dark", SIZE)
    wait(lambda: window.bench.control.settings is not None)
    window.bench.control.arm.click()
    window.header.start_button.click()
    wait(lambda: window.header.state.text() == "RUNNING" and window.timeline.now_s > 8.6)
    save(window, "window-live.png")


def tripped(folder: Path) -> None:
    """A recording whose force exceeded a limit, with its experiment open; light theme."""
    experiment = folder / "configs/miga6/all_on.toml"
    with experiment.open("a", encoding="utf-8") as file:
        file.write("\n[guard]\nforce_max_N = 1.8\n")
    window = opened(experiment, "light", SIZE)
    wait(lambda: window.bench.control.settings is not None)
    window.open(hil.run(hil.load(experiment), out=folder / "force limit.h5"))
    wait(lambda: not window.jobs.is_busy)
    window.show_all()
    save(window, "window-tripped.png")


def compared(folder: Path) -> None:
    """Three recordings with different gains, aligned at the step of the set point."""
    paths = []
    for name, k_p, k_i_per_s in (("original", 1.0, 2.8), ("half", 0.5, 1.4), ("double", 2.0, 5.6)):
        gains = (f"controller.k_p={k_p}", f"controller.k_i_per_s={k_i_per_s}")
        config = hil.load(CONFIGS / "miga6/pid.toml", gains)
        paths.append(hil.run(config, out=folder / f"gains {name}.h5"))
    window = opened(paths[0], "light", SIZE)
    window.compare.add(paths[1:])
    wait(lambda: len(window.traces.overlays) == 2 and not window.jobs.is_busy)
    window.compare.align.setCurrentText("first step of the set point")
    window.transport.cursor_button.setChecked(True)
    window.traces.set_cursors((0.5, 3.0))
    for title in ("Compare", "Columns"):
        window.docks[title].show()
        window.docks[title].raise_()
    window.timeline.look(0.3, 5.6)
    window.timeline.go(3.6)
    save(window, "window-compare.png")


def leg(folder: Path) -> None:
    """The stick figure of the leg and its muscles."""
    run = hil.run(hil.load(CONFIGS / "leg/up_down.toml"), out=folder / "up_down.h5")
    window = opened(run, "light", LEG_SIZE)
    window.show_all()
    save(window, "leg-window.png")


if __name__ == "__main__":
    pg.setConfigOptions(antialias=False)
    application = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as made:
        for picture in (compared, leg, tripped, live):
            folder = Path(made) / picture.__name__
            for name in ("configs", "calibration"):
                shutil.copytree(ROOT / name, folder / name)
            os.chdir(folder)  # recordings of the window go to runs/ here
            picture(folder)
