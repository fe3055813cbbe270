"""Export of the plots as a figure, of the recording as data or as a report."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QRectF, QSize, QSizeF, Qt, QUrl
from PySide6.QtGui import QColor, QDesktopServices, QImage, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QFileDialog

from hil.errors import ConfigError, writing
from hil.platform.whole_files import write_whole
from hil_gui.runner import Command
from hil_gui.session import Session
from hil_gui.theme import LIGHT, numbers
from hil_gui.traces import Traces

FIGURES = {".png": "PNG picture", ".svg": "SVG drawing", ".pdf": "PDF page"}
DATA = {".csv": "Table", ".mat": "MATLAB", ".mcap": "Foxglove"}
TITLE_PX = 30
PNG_SCALE = 3
"""Pixels of the picture for each pixel of the screen."""


class Exports:
    """Writes figures, data and report of the open run."""

    def __init__(self, session: Session, traces: Traces) -> None:
        self._session = session
        self._traces = traces

    def choose_figure(self) -> None:
        """Ask for a file, then write the plots as shown."""
        if self._session.data is None:
            self._session.complain("Nothing to export", "Open a run first (Ctrl+O)")
            return
        filters = ";;".join(f"{word} (*{ending})" for ending, word in FIGURES.items())
        start = str(self._session.data.about.path.with_suffix(".png"))
        name, _ = QFileDialog.getSaveFileName(
            self._traces.window(), "Export figure", start, filters
        )
        if name:
            self.figure(Path(name))

    def figure(self, path: Path) -> bool:
        """Write the plots with title and SIMULATED mark; returns whether it succeeded."""
        if path.suffix.lower() not in FIGURES:
            self._session.complain(
                "Not exported", f"{path.name}: use a name that ends in .png, .svg or .pdf"
            )
            return False
        traces = self._traces
        size = QSize(traces.width(), traces.height() + TITLE_PX)
        on_screen = traces.colours
        traces.set_theme(LIGHT)
        traces.redraw()
        try:
            picture = QBuffer()
            picture.open(QIODevice.OpenModeFlag.WriteOnly)
            _PAINT[path.suffix.lower()](picture, size, self._draw)
        finally:
            traces.set_theme(on_screen)
            traces.redraw()
        try:
            with writing(path, ": choose another folder"):
                write_whole(path, picture.data().data())
        except ConfigError as error:
            self._session.complain("Not exported", str(error))
            return False
        self._session.say(f"Figure: {path}")
        return True

    def _draw(self, painter: QPainter, size: QSize) -> None:
        about = self._session.data.about
        painter.fillRect(QRectF(0, 0, size.width(), size.height()), QColor(LIGHT.surface))
        painter.setPen(QColor(LIGHT.text))
        painter.setFont(numbers(11.0, bold=True))
        place = QRectF(12, 4, size.width() - 24, TITLE_PX - 4)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(
            place, Qt.AlignmentFlag.AlignLeft | middle, f"{about.title} · {about.path.name}"
        )
        if about.simulated:
            painter.setPen(QColor(LIGHT.fault))
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | middle, "SIMULATED")
        traces = self._traces
        target = QRectF(0, TITLE_PX, size.width(), size.height() - TITLE_PX)
        traces.render(painter, target, traces.viewport().rect())

    def choose_data(self) -> None:
        """Ask for a file, then write the recording in another format."""
        data = self._session.data
        if data is None or self._session.feed.is_growing:
            text = "Open a recording first (Ctrl+O)" if data is None else "Stop the run first (F6)"
            self._session.complain("Nothing to export", text)
            return
        start = str(data.about.path.with_suffix(".csv"))
        kinds = ";;".join(f"{word} (*{ending})" for ending, word in DATA.items())
        name, _ = QFileDialog.getSaveFileName(self._traces.window(), "Export data", start, kinds)
        if name:
            self.data(Path(name))

    def data(self, path: Path) -> None:
        """Write the recording as CSV, MAT or MCAP; `hil export` does it in its own process."""
        if path.suffix.lower() not in DATA:
            self._session.complain(
                "Not exported", f"{path.name}: use a name that ends in {' or '.join(DATA)}"
            )
            return
        run = self._session.data.about.path
        kind = path.suffix.lower().removeprefix(".")
        words = ["export", str(run), "--to", kind, "--out", str(path), "--json"]
        self._make(path.name, words, lambda result: self._session.say(f"Data: {path}"))

    def report(self) -> None:
        """Write figure and page of the recording beside it, as `hil report` does, and show it."""
        data = self._session.data
        if data is None or self._session.feed.is_growing:
            text = "Open a recording first (Ctrl+O)" if data is None else "Stop the run first (F6)"
            self._session.complain("No report", text)
            return

        def show(result: dict[str, Any]) -> None:
            page = result["reports"][0]["page"]
            self._session.say(f"Report: {page}")
            QDesktopServices.openUrl(QUrl.fromLocalFile(page))

        path = data.about.path.resolve()
        self._make(f"the report of {path.name}", ["report", str(path), "--json"], show)

    def _make(self, what: str, words: list[str], use: Callable[[dict[str, Any]], None]) -> None:
        """Run a command of hil in its own process, and use what it prints."""
        command = Command(words)

        def done(is_complete: bool) -> None:
            if not is_complete:
                command.stop()
                self._session.say(f"Cancelled: {what}")
            elif command.exit_code:
                self._session.complain("Not written", command.error_text)
            else:
                use(command.result)

        self._session.jobs.start(f"Writing {what}", _progress(command), done)


def _progress(command: Command) -> Iterator[float]:
    share = 0.0
    while command.exit_code is None:
        share += 0.0002 * (1.0 - share)  # it reports no progress: approach 1 slowly
        yield share


def _paint_png(picture: QBuffer, size: QSize, draw) -> None:
    image = QImage(size * PNG_SCALE, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.scale(PNG_SCALE, PNG_SCALE)
    draw(painter, size)
    painter.end()
    image.save(picture, "PNG")


def _paint_svg(picture: QBuffer, size: QSize, draw) -> None:
    svg = QSvgGenerator()
    svg.setOutputDevice(picture)
    svg.setSize(size)
    svg.setViewBox(QRectF(0, 0, size.width(), size.height()))
    painter = QPainter(svg)
    draw(painter, size)
    painter.end()


def _paint_pdf(picture: QBuffer, size: QSize, draw) -> None:
    pdf = QPdfWriter(picture)
    width_mm = 180.0
    page = QSizeF(width_mm, width_mm * size.height() / size.width())
    pdf.setPageSize(QPageSize(page, QPageSize.Unit.Millimeter))
    pdf.setPageMargins(QMarginsF(0, 0, 0, 0))
    painter = QPainter(pdf)
    painter.scale(pdf.width() / size.width(), pdf.width() / size.width())
    draw(painter, size)
    painter.end()


_PAINT = {".png": _paint_png, ".svg": _paint_svg, ".pdf": _paint_pdf}
