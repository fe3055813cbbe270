"""The window draws what the recording holds."""

import numpy as np
import pyqtgraph as pg
import pytest

import hil
from hil_gui.data import read_recording
from hil_gui.window import Window


@pytest.fixture(scope="module")
def recording(tmp_path_factory, pytestconfig):
    experiment = pytestconfig.rootpath / "configs" / "miga6" / "pid.toml"
    path = tmp_path_factory.mktemp("runs") / "run.h5"
    return hil.run(hil.load(experiment, ("experiment.duration_s=1.5",)), out=path)


@pytest.fixture
def window(qtbot):
    pg.setConfigOptions(background="w", foreground="#333333")
    window = Window()
    qtbot.addWidget(window)
    window.show()
    return window


def test_a_recording_is_drawn_sample_for_sample(window, recording):
    assert window.open(recording)
    run = hil.open_run(recording)
    t_s, measured_N = window.measured_curve.getOriginalDataset()
    np.testing.assert_array_equal(t_s, run.t_s.values)
    np.testing.assert_array_equal(measured_N, run.force_measured_N.values)
    model_N = window.model_curve.getOriginalDataset()[1]
    np.testing.assert_array_equal(model_N, run.force_model_N.values)
    residual_N = window.residual_curve.getOriginalDataset()[1]
    np.testing.assert_array_equal(residual_N, measured_N - model_N)
    np.testing.assert_array_equal(window.raster.image, (run.cells_reported.values == 1).T)


def test_simulated_readings_say_so_in_the_title(window, recording):
    window.open(recording)
    assert "SIMULATED" in window.windowTitle()
    assert "SIMULATED" in window.force.titleLabel.text


def test_the_state_names_what_tripped(window, pytestconfig, tmp_path):
    experiment = pytestconfig.rootpath / "configs" / "miga6" / "all_on.toml"
    config = hil.load(experiment, ("guard.force_max_N=0.5", "experiment.duration_s=2.0"))
    window.open(hil.run(config, out=tmp_path / "tripped.h5"))
    assert "tripped: force_high" in window.state.text()


def test_what_is_no_recording_is_refused_with_the_reason(window, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(
        "hil_gui.window.QMessageBox.warning", lambda parent, title, text: said.append(text)
    )
    path = tmp_path / "notes.h5"
    path.write_text("no recording")
    assert not window.open(path)
    assert said == [f"{path}: not an HDF5 file: give a recording made by hil run"]


def test_the_window_shows_pixels(window, recording):
    window.open(recording)
    image = window.grab().toImage()
    colours = {
        image.pixelColor(x, y).name()
        for x in range(0, image.width(), 2)
        for y in range(0, image.height(), 2)
    }
    assert "#e69f00" in colours  # cells on
    assert len(colours) > 20
    assert read_recording(recording).cells_on.any()
