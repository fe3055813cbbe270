"""List of the recordings of a folder: find, preview, open, and tick or drag to overlay."""

from pathlib import Path
from threading import Thread

from PySide6.QtCore import (
    QAbstractTableModel,
    QMimeData,
    QModelIndex,
    QPointF,
    QSize,
    Qt,
    QUrl,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QPainter, QPixmap, QPolygonF
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from hil_gui.data import ConfigError, Runs, small_curves
from hil_gui.plain import Label, tip
from hil_gui.session import Session
from hil_gui.theme import SPACE

MEASURED_ROWS = 50  # rows by whose contents a column is as wide
POLL_S = 0.01
READER = "reads the index of a folder"  # a thread, which outlives a look that is cancelled
ROW_PX = 22
ROLE = Qt.ItemDataRole


class RunTable(QAbstractTableModel):
    """Rows of the index; the first column has a tick, which overlays the run.

    Attributes
    ----------
    shown_path, on : the open run and the overlaid ones, in full
    """

    ticked = Signal(Path, bool)

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path()
        self.columns: list[str] = []
        self.rows: list[tuple[object, ...]] = []
        self.shown_path = Path()
        self.on: set[Path] = set()

    def fill(self, folder: Path, columns: list[str], rows: list[tuple[object, ...]]) -> None:
        self.beginResetModel()
        self.folder, self.columns, self.rows = folder.resolve(), columns, rows
        self.endResetModel()

    def path(self, row: int) -> Path:
        return self.folder / str(self.rows[row][0])

    def mimeTypes(self) -> list[str]:
        return ["text/uri-list"]

    def mimeData(self, indexes: list[QModelIndex]) -> QMimeData:
        """The recordings of these cells, as files: also for other programs."""
        data = QMimeData()
        paths = dict.fromkeys(self.path(index.row()) for index in indexes)
        data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
        return data

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        return len(self.rows)

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        return len(self.columns)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> object:
        if role == ROLE.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return self.columns[section]
        return None

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        tick = Qt.ItemFlag.ItemIsUserCheckable if index.column() == 0 else Qt.ItemFlag.NoItemFlags
        return super().flags(index) | tick | Qt.ItemFlag.ItemIsDragEnabled

    def data(self, index: QModelIndex, role: int = 0) -> object:
        value = self.rows[index.row()][index.column()]
        if role == ROLE.DisplayRole:
            return Runs.text(value)
        if role == ROLE.ToolTipRole:
            return tip(Runs.text(value))
        if role == ROLE.CheckStateRole and index.column() == 0:
            on = self.path(index.row()) in self.on
            return Qt.CheckState.Checked if on else Qt.CheckState.Unchecked
        if role == ROLE.FontRole and self.path(index.row()) == self.shown_path:
            font = QFont()
            font.setBold(True)
            return font
        return None

    def setData(self, index: QModelIndex, value: object, role: int = 0) -> bool:
        if role != ROLE.CheckStateRole or index.column() != 0:
            return False
        path, on = self.path(index.row()), Qt.CheckState(value) == Qt.CheckState.Checked
        self.ticked.emit(path, on)
        return True

    def show_overlaid(self, paths: set[Path]) -> None:
        """Tick these runs and no others."""
        self.on = paths
        if self.rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self.rows) - 1, 0))


class RunList(QWidget):
    """The panel: a filter, the runs of a folder, and the measured curve of the selected one."""

    chosen = Signal(Path)

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._runs: Runs | None = None
        self.folder = Path()
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("words, or an expression such as rms_N < 0.02; Enter finds")
        self.filter.setAccessibleName("Find runs")
        self.filter.setToolTip(
            "Words that a run must have, or an expression as in hil runs --where"
        )
        self.folder_button = QPushButton("Folder …")
        self.folder_button.setToolTip("Choose the folder of recordings")
        self.refresh_button = QPushButton("Refresh")
        self.refresh_button.setToolTip("Look for new recordings")
        self.status = Label("")
        self.status.setWordWrap(True)
        self.status.setFixedWidth(240)
        self.status.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.picture = Label("")
        self.picture.setFixedSize(QSize(240, 56))
        self.model = RunTable()
        self.table = QTableView()
        self.table.setModel(self.model)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setShowGrid(False)
        self.table.setTabKeyNavigation(False)
        self.table.setDragEnabled(True)
        self.table.setToolTip(
            "Double click or Enter: open; tick, or drag onto the plots: overlay on the open run"
        )
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(ROW_PX)
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.horizontalHeader().setResizeContentsPrecision(MEASURED_ROWS)
        column, row, below = QVBoxLayout(self), QHBoxLayout(), QHBoxLayout()
        beside = QVBoxLayout()
        column.setContentsMargins(SPACE, SPACE // 2, SPACE, SPACE // 2)
        column.setSpacing(SPACE // 2)
        row.addWidget(self.filter, 1)
        row.addWidget(self.refresh_button)
        row.addWidget(self.folder_button)
        beside.addWidget(self.picture)
        beside.addWidget(self.status, 1)
        below.addWidget(self.table, 1)
        below.addLayout(beside)
        column.addLayout(row)
        column.addLayout(below, 1)
        self.filter.returnPressed.connect(self.find)
        self.refresh_button.clicked.connect(lambda: self.look(self.folder))
        self.folder_button.clicked.connect(self.choose_folder)
        self.table.activated.connect(self._activated)
        self.table.selectionModel().currentRowChanged.connect(self._preview)

    def showEvent(self, event: object) -> None:
        super().showEvent(event)
        if self._runs is None and not self._session.jobs.is_busy:
            self.look(Path(self._session.folder()))

    def choose_folder(self) -> None:
        """Ask for a folder of recordings."""
        name = QFileDialog.getExistingDirectory(self, "Recordings", self._session.folder())
        if name:
            self.look(Path(name))

    def look(self, folder: Path) -> None:
        """Read the index of a folder, in a thread: new recordings take their time."""
        results: list[Runs | str] = []

        def read() -> None:
            try:
                results.append(Runs(folder))
            except ConfigError as error:
                results.append(str(error))

        def work():
            thread = Thread(target=read, name=READER, daemon=True)
            thread.start()
            while thread.is_alive():
                yield 0.5
                thread.join(POLL_S)

        def done(is_complete: bool) -> None:
            if not is_complete or not results or isinstance(results[0], str):
                self.status.setText(str(results[0]) if results else "not read")
                return
            self.folder, self._runs = folder, results[0]
            self.find()

        self._session.jobs.start(f"Looking for runs in {folder.name}", work(), done)

    def find(self) -> None:
        """Show the runs that the filter describes."""
        if self._runs is None:
            return
        try:
            columns, rows = self._runs.find(self.filter.text())
        except ConfigError as error:
            self.status.setText(str(error))
            return
        self.show_run()
        self.model.fill(self.folder, columns, rows)
        self.table.resizeColumnsToContents()
        self.status.setText(f"{len(rows)} runs in {self.folder}")

    def show_run(self) -> None:
        """Mark the run that the window shows."""
        data = self._session.data
        self.model.shown_path = data.about.path.resolve() if data is not None else Path()
        self.table.viewport().update()

    def _activated(self, index: QModelIndex) -> None:
        self.chosen.emit(self.model.path(index.row()))

    def _preview(self, current: QModelIndex) -> None:
        """Draw the set point and the first signal of the selected run."""
        picture = QPixmap(self.picture.size())
        picture.fill(Qt.GlobalColor.transparent)
        text = ""
        if current.isValid():
            simulated, curves = small_curves(self.model.path(current.row()))
            painter = QPainter(picture)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.scale(2.0, 2.0)
            for colour, points in curves:
                painter.setPen(QColor(colour))
                painter.drawPolyline(QPolygonF([QPointF(x, y) for x, y in points]))
            if simulated:
                painter.resetTransform()
                painter.setPen(QColor("#CC3311"))
                painter.drawText(4, self.picture.height() - 4, "SIMULATED")
            painter.end()
            text = str(self.model.path(current.row()))
        self.picture.setPixmap(picture)
        self.picture.setToolTip(tip(text))
