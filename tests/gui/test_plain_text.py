"""Text of a recording is shown in the window as it is, however much it looks like HTML."""

import json
import shutil
import tomllib

import h5py
import pyqtgraph as pg
import pytest
import tomli_w
from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QLabel, QMessageBox

from hil.record.layout import LIBVER
from hil_gui.plain import Label, markup, tip

TEXT = '<img src="http://somewhere/x.png"><b>all is well</b> a & b'


@pytest.fixture
def marked(pid_run, tmp_path):
    path = tmp_path / "marked.h5"
    shutil.copyfile(pid_run, path)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        table = tomllib.loads(file.attrs["experiment"])
        table["experiment"]["name"] = TEXT
        file.attrs["experiment"] = tomli_w.dumps(table)
        for key in ("experiment_name", "simulated", "backend", "operator"):
            file.attrs[key] = TEXT
        summary = json.loads(file.attrs["summary"])
        file.attrs["summary"] = json.dumps(summary | {"first_fault": [TEXT], "faults": [TEXT]})
        events = file["events"][:]
        events["text"] = TEXT.encode()
        file["events"][:] = events
        for column in file["ticks"].values():
            column.attrs["units"] = column.attrs["description"] = TEXT
    return path


def read_as_html(text):
    """What a reader of HTML sees of it."""
    document = QTextDocument()
    document.setHtml(text)
    return document.toPlainText()


@pytest.mark.parametrize("text", [TEXT, "plain\ntwo lines", "1 < 2 && 3 > 2", "", "<script>"])
def test_a_tip_and_the_label_of_a_plot_show_the_text_itself(text):
    assert read_as_html(markup(text)).split() == text.split()
    given = tip(text)
    shown = read_as_html(given) if GuiQt.mightBeRichText(given) else given
    assert shown == text


@pytest.mark.slow
def test_no_label_of_the_window_takes_text_for_html(opened, marked):
    window = opened(marked)
    assert TEXT in window.header.title.text()
    rich = [
        label for label in window.findChildren(QLabel)
        if label.textFormat() != Qt.TextFormat.PlainText and GuiQt.mightBeRichText(label.text())
    ]  # fmt: skip
    assert rich == []
    assert isinstance(window.header.title, Label)
    assert window.header.causes.textFormat() == Qt.TextFormat.PlainText
    for widget in (window.header.mark, window.header.causes):
        assert "<img" not in widget.toolTip()
    for item in window.traces.ci.items:
        axis = item.getAxis("left") if isinstance(item, pg.PlotItem) else None
        assert axis is None or "<img" not in axis.labelString()


def test_a_complaint_shows_what_a_file_says(window, monkeypatch):
    given = []
    monkeypatch.setattr(QMessageBox, "show", lambda box: given.append(box.text()))
    window.session.complain("Not opened", TEXT)
    assert read_as_html(given[0]) == TEXT
    assert window.session.message.textFormat() == Qt.TextFormat.PlainText
