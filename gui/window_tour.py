"""A short tour of the window, as an animated picture: docs/images/window-tour.gif.

`QT_QPA_PLATFORM=offscreen python gui/window_tour.py` opens an experiment on the simulated rig, arms
it, runs it in real time, and opens a recording that tripped. Every scene has a caption.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pyqtgraph as pg
from PIL import Image
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

import hil
from hil_gui.window import Window
from window_images import CONFIGS, IMAGES, ROOT, STATUS_BAR, STEP_MS, opened, wait

SIZE, COLOURS, CAPTION_HEIGHT = QSize(1280, 720), 64, 34
SCENE_MS, LIVE_MS = 2500, 500


class Tour:
    """Frames with their durations."""

    def __init__(self) -> None:
        self._frames: list[Image.Image] = []
        self._durations_ms: list[int] = []

    def show(self, window: Window, caption: str, duration_ms: int = SCENE_MS) -> None:
        """Add what the window shows now, above a caption."""
        QTest.qWait(5 * STEP_MS)
        window.frame()
        shown = window.grab().toImage()
        shown = shown.copy(0, 0, SIZE.width(), SIZE.height() - STATUS_BAR + CAPTION_HEIGHT)
        bar = QRect(0, shown.height() - CAPTION_HEIGHT, shown.width(), CAPTION_HEIGHT)
        painter = QPainter(shown)
        painter.fillRect(bar, QColor("#1f6feb"))
        painter.setPen(QColor("white"))
        font = painter.font()
        font.setPixelSize(18)
        painter.setFont(font)
        painter.drawText(bar, Qt.AlignmentFlag.AlignCenter, caption)
        painter.end()
        pixels = shown.convertToFormat(QImage.Format.Format_RGB888)
        frame = Image.frombytes(
            "RGB", (pixels.width(), pixels.height()), bytes(pixels.constBits()), "raw", "RGB",
            pixels.bytesPerLine(),
        )  # fmt: skip
        self._frames.append(frame.quantize(COLOURS, dither=Image.Dither.NONE))
        self._durations_ms.append(duration_ms)

    def save(self, file: Path) -> None:
        """Write the animated picture; it repeats."""
        first, *others = self._frames
        first.save(
            file, save_all=True, append_images=others, duration=self._durations_ms, loop=0,
            optimize=True,
        )  # fmt: skip


def run(tour: Tour, experiment: Path) -> None:
    """From an opened experiment to the end of its run."""
    rig = experiment.with_name("rig.toml")
    late = rig.read_text(encoding="utf-8").replace("[loop]\n", '[loop]\noverrun = "skip"\n')
    rig.write_text(late, encoding="utf-8")
    window = opened(experiment, "light", SIZE)
    wait(lambda: window.bench.control.settings is not None)
    tour.show(
        window, "hil gui configs/miga6/pid.toml: the experiment is open, nothing is switched on"
    )
    window.bench.control.arm.click()
    tour.show(window, "Arm (F4), then Start (F5)")
    window.header.start_button.click()
    wait(lambda: window.header.state.text() == "RUNNING")
    start_s = window.timeline.now_s  # the loop has been turning since it connected
    for at_s in range(1, 8):
        wait(lambda until_s=start_s + at_s: window.timeline.now_s > until_s)
        tour.show(window, "The run: measured over simulated force, and the cells", LIVE_MS)
    wait(lambda: not window.bench.is_busy and not window.jobs.is_busy)
    tour.show(window, "The end: the recording is complete and can be browsed")
    window.close()


def trip(tour: Tour, folder: Path) -> None:
    """A recording whose force exceeded a limit."""
    config = hil.load(CONFIGS / "miga6/all_on.toml", ("guard.force_max_N=1.8",))
    window = opened(hil.run(config, out=folder / "force limit.h5"), "light", SIZE)
    window.show_all()
    tour.show(window, "hil gui RUN.h5: a trip, its cause, and what each cell did")
    window.close()


if __name__ == "__main__":
    pg.setConfigOptions(antialias=False)
    application = QApplication(sys.argv[:1])
    tour = Tour()
    with tempfile.TemporaryDirectory() as made:
        for name in ("configs", "calibration"):
            shutil.copytree(ROOT / name, Path(made) / name)
        os.chdir(made)  # recordings of the window go to runs/ here
        run(tour, Path(made) / "configs/miga6/pid.toml")
        trip(tour, Path(made))
    tour.save(IMAGES / "window-tour.gif")
