"""The list of runs in the window: find, open, overlay, align at the best lag, differences."""

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QApplication

from hil.loop import tap as taps
from hil_gui.compare import BEST_LAG, best_lag_s
from hil_gui.data import File, Live
from hil_gui.feed import Feed
from hil_gui.runs import RunTable


@pytest.fixture
def folder(pid_run, tmp_path):
    """The run twice, once two seconds' worth of ticks later and of another operator."""
    runs = tmp_path / "many"
    runs.mkdir()
    shutil.copyfile(pid_run, runs / "a.h5")
    shutil.copyfile(pid_run, runs / "b.h5")
    with h5py.File(runs / "b.h5", "r+", libver=("v110", "v110")) as file:
        file.attrs["created_utc"] = "2026-10-01T00:00:00.000+00:00"
        file.attrs["operator"] = "<b>Bo</b>"
        measured = file["ticks/force_measured_N"]
        measured[250:] = measured[:-250]  # a quarter of a second later
    return runs


def look(window, folder, qtbot):
    window.runs.look(folder)
    qtbot.waitUntil(lambda: not window.jobs.is_busy, timeout=300_000)
    return window.runs


def names(model):
    return {model.path(i).name for i in range(model.rowCount())}


def is_ticked(model, row):
    return model.data(model.index(row, 0), Qt.ItemDataRole.CheckStateRole) == Qt.CheckState.Checked


def drop(plots, data):
    """What the mouse does at the end of a drag: enter, move, let go; whether they took it."""
    place, copy = QPointF(plots.rect().center()), Qt.DropAction.CopyAction
    held = (data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    entered = QDragEnterEvent(place.toPoint(), copy, *held)
    QApplication.sendEvent(plots.viewport(), entered)
    if not entered.isAccepted():
        return False
    QApplication.sendEvent(plots.viewport(), QDragMoveEvent(place.toPoint(), copy, *held))
    QApplication.sendEvent(plots.viewport(), QDropEvent(place, copy, *held))
    return True


@pytest.mark.slow
def test_runs_dragged_onto_the_plots_are_overlaid_and_ticked(window, folder, qtbot, said):
    runs = look(window, folder, qtbot)
    model = runs.model
    rows = {model.path(i).name: i for i in range(model.rowCount())}
    dragged = {name: model.mimeData([model.index(row, 0)]) for name, row in rows.items()}
    assert runs.table.dragEnabled()
    assert drop(window.traces, dragged["a.h5"])  # nothing is open: it is opened
    assert drop(window.traces, dragged["b.h5"])  # while that one is read
    qtbot.waitUntil(lambda: bool(window.compare.paths) and not window.jobs.is_busy, timeout=300_000)
    assert window.data.about.path == folder / "a.h5"
    assert window.compare.paths == [folder / "b.h5"]
    assert {name: is_ticked(model, row) for name, row in rows.items()} == {
        "a.h5": False, "b.h5": True
    }  # fmt: skip
    window.compare.remove_selected()
    assert not is_ticked(model, rows["b.h5"])
    text = QMimeData()
    text.setText("no file")
    assert not drop(window.traces, text)
    assert said == []


def test_runs_are_found_ticked_and_compared(window, opened, folder, pid_run, qtbot, said):
    opened(folder / "a.h5")
    runs = look(window, folder, qtbot)
    model = runs.model
    assert names(model) == {"a.h5", "b.h5"}
    assert model.shown_path == folder / "a.h5"
    runs.filter.setText("pid bo")
    runs.find()
    assert names(model) == {"b.h5"}
    runs.table.setCurrentIndex(model.index(0, 0))
    assert not runs.picture.pixmap().toImage().isNull()
    assert model.setData(model.index(0, 0), Qt.CheckState.Checked, Qt.ItemDataRole.CheckStateRole)
    qtbot.waitUntil(lambda: not window.jobs.is_busy, timeout=300_000)
    assert window.compare.paths == [folder / "b.h5"]
    window.compare.align.setCurrentText(BEST_LAG)
    shift_s = float(window.compare.table.item(0, 1).text().split()[0])
    assert shift_s == pytest.approx(-0.25, abs=0.002)
    window.compare.differences.setChecked(True)
    window.timeline.go(3.0)
    window.traces.touch()
    window.frame()
    curve = window.traces.strips["residual"].curves[f"over:{folder / 'b.h5'}"]
    x, y = curve.getData()
    inside = (x > 0.1) & (x < 2.5) & np.isfinite(y)
    assert inside.sum() > 100
    noise_N = 0.002 * 0.95  # of the simulated channel; the curves are the same but for the shift
    assert np.abs(y[inside]).max() < 10.0 * noise_N
    model.setData(model.index(0, 0), Qt.CheckState.Unchecked, Qt.ItemDataRole.CheckStateRole)
    assert window.compare.paths == []
    runs.filter.setText("rsm_N < 1")
    runs.find()
    assert "did you mean 'rms_N'?" in runs.status.text()
    runs.chosen.emit(folder / "b.h5")
    qtbot.waitUntil(lambda: not window.jobs.is_busy, timeout=300_000)
    assert window.data.about.path == folder / "b.h5"
    assert said == []


def test_a_folder_that_is_none_is_said_in_the_panel(window, tmp_path, qtbot):
    runs = look(window, tmp_path / "none", qtbot)
    assert "none" in runs.status.text()
    assert runs.model.rowCount() == 0


def test_the_lag_of_a_run_with_itself_is_none(pid_run):
    feed = Feed(File(pid_run))
    for _ in feed.load():
        pass
    assert best_lag_s(feed.data, feed.data) == 0.0


def test_rows_that_the_tap_no_longer_has_are_read_from_the_recording(pid_run):
    """The window joined late, or stood still for longer than the tap reaches back."""
    with h5py.File(pid_run) as file:
        columns = {name: file[f"ticks/{name}"][:] for name in file["ticks"]}
    dtype = np.dtype([(name, of.dtype, of.shape[1:]) for name, of in columns.items()])
    rows = np.zeros(3000, dtype=dtype)
    for name, of in columns.items():
        rows[name] = of
    tap = taps.create(dtype, 500)
    try:
        feed = Feed(File(pid_run), Live(os.getpid()))
        tap.ticks.push_many(rows[:200])
        feed.poll(0.0)
        tap.ticks.push_many(rows[200:])
        feed.poll(0.0)
    finally:
        tap.unlink()
    shown_s, _ = feed.data.values.samples(-1.0, np.inf)
    np.testing.assert_array_equal(shown_s, columns["t_s"])
    assert feed.data.n_lost == 0


def test_texts_of_recordings_are_no_markup_in_the_list(qtbot):
    model = RunTable()
    model.fill(Path("runs"), ["path", "operator"], [("a.h5", "<b>Bo</b>")])
    assert model.data(model.index(0, 1), Qt.ItemDataRole.DisplayRole) == "<b>Bo</b>"  # a plain cell
    assert "<b>" not in model.data(model.index(0, 1), Qt.ItemDataRole.ToolTipRole)
