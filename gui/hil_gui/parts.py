"""Parts of the main window, each built from what it depends on."""

from PySide6.QtWidgets import QMenuBar

from hil_gui.array_view import ArrayView
from hil_gui.bench_day import BenchDay, Viewer
from hil_gui.commissioning import Commissioning
from hil_gui.compare import Compare
from hil_gui.exports import Exports
from hil_gui.header import Header
from hil_gui.path_view import PathView
from hil_gui.readings import Numbers, Timing
from hil_gui.runs import RunList
from hil_gui.session import Session
from hil_gui.tables import Ages, Columns, CursorTable, Log
from hil_gui.traces import Traces
from hil_gui.transport import Transport


class Parts:
    """Panels, menu bar and shared objects of the window; `layout` arranges them."""

    def __init__(self, session: Session, viewer: Viewer) -> None:
        self.session = session
        self.traces = Traces(session.timeline)
        self.array = ArrayView()
        self.numbers, self.timing = Numbers(), Timing()
        self.ages, self.log, self.cursor_table = Ages(), Log(), CursorTable()
        self.columns, self.paths = Columns(), PathView()
        self.header = Header()
        self.transport = Transport(session.timeline)
        self.menu_bar = QMenuBar()
        self.compare = Compare(session, self.traces)
        self.runs = RunList(session)
        self.exports = Exports(session, self.traces)
        self.bench = BenchDay(session, self.header, viewer)
        self.commissioning = Commissioning(self.bench)
