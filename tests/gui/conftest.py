"""A window of its own for every test, with settings of its own."""

import threading

import pyqtgraph as pg
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSettings
from PySide6.QtWidgets import QMessageBox

import hil
from hil_gui.runs import READER
from hil_gui.window import Window


@pytest.fixture
def said(monkeypatch):
    """Texts of all warnings, which a test need not press away."""
    texts = []
    monkeypatch.setattr(QMessageBox, "show", lambda box: texts.append(box.text()))
    # the window of a test that failed asks whether to stop its run
    monkeypatch.setattr(QMessageBox, "exec", lambda box: QMessageBox.StandardButton.Yes)
    return texts


@pytest.fixture
def make_window(qtbot, tmp_path, said, monkeypatch):
    """Windows, one after another, that share their settings; runs go to a folder of the test."""
    pg.setConfigOptions(antialias=False)
    monkeypatch.chdir(tmp_path)
    windows = []

    def make():
        settings = QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat)
        window = Window(settings)
        qtbot.addWidget(window)
        window.show()
        windows.append(window)
        return window

    yield make
    for window in windows:
        if window.bench.command is not None:
            window.bench.command.stop()
            window.bench.command.wait(300.0)
            window.bench.command = None
    for thread in threading.enumerate():
        if thread.name == READER:  # it holds recordings of this test open
            thread.join()
    windows.clear()  # one that stays takes part in every theme and frame
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def window(make_window):
    return make_window()


@pytest.fixture
def opened(window, qtbot):
    """Open a file and wait until all of it is there."""

    def open_file(path):
        assert window.open(path)
        qtbot.waitUntil(lambda: not window.jobs.is_busy, timeout=300_000)
        window.frame()
        return window

    return open_file


@pytest.fixture
def bench(rigs):
    """A copy of the configurations; a run of miga6 on the real clock may miss any deadline."""
    rig = rigs / "miga6" / "rig.toml"
    text = rig.read_text().replace("[loop]\n", '[loop]\noverrun = "skip"\n')
    rig.write_text(text.replace("[guard]\n", "[guard]\nreading_age_max_s = 60.0\n"))
    return rigs


@pytest.fixture(scope="session")
def pid_run(tmp_path_factory, configs):
    """A recording of miga6/pid, three seconds on the virtual clock; not to be changed."""
    path = tmp_path_factory.mktemp("runs") / "run.h5"
    config = hil.load(configs / "miga6" / "pid.toml", ("experiment.duration_s=3.0",))
    return hil.run(config, out=path)
