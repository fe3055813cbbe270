"""The window draws what the recording holds."""

import json

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtGui import QImage

import hil
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.validation.band import band_of
from hil_gui.run_data import BAND, RESIDUAL, Reports


def _whole(window):
    """Drawn wide enough for every sample to be a point of its own."""
    window.traces.redraw()
    n = 2 * window.data.n_rows
    return window.data.values.view(0.0, window.data.last_s, n)


@pytest.mark.slow
def test_every_sample_of_a_recording_is_there_to_be_drawn(opened, pid_run):
    window, run = opened(pid_run), hil.open_run(pid_run)
    bins, data = _whole(window), window.data
    np.testing.assert_array_equal(bins.t_s, run.t_s.values)
    for name in ("force_measured_N", "force_model_N", "force_reference_N"):
        np.testing.assert_array_equal(bins.low[data.index(name)], run[name].values)
    residual_N = run.force_measured_N.values - run.force_model_N.values
    np.testing.assert_array_equal(bins.low[data.index(RESIDUAL)], residual_N)


@pytest.mark.slow
def test_the_band_is_that_of_the_report_and_the_noise_is_named_apart(opened, pid_run):
    window, run = opened(pid_run), hil.open_run(pid_run)
    band = band_of(pid_run, run)
    half = _whole(window).high[window.data.index(BAND)]
    rows = np.searchsorted(run.t_s.values, band.t_s - 1e-9)
    np.testing.assert_allclose(half[rows], band.half_width, rtol=1e-5)
    window.timeline.go(float(band.t_s[-1]))
    window._refresh_slow()
    last_mN, noise_mN = 1e3 * band.half_width[-1], 1e3 * band.noise
    assert window.arrangement.legend.text() == f"± {last_mN:.3g} mN"
    assert window.traces._band_said == (
        f"95 % band of model and noise ± {last_mN:.3g} mN, noise alone ± {noise_mN:.3g} mN"
    )
    window.frame()
    for name, middle in (("signal", run.force_model_N.values[-1]), ("residual", 0.0)):
        drawn = window.traces._bands[name].opts
        assert drawn["y1"][-1] == pytest.approx(middle + band.half_width[-1], rel=0.02)
    lines = [line.value() for line in window.traces._noise_lines]
    np.testing.assert_allclose(lines, [-band.noise, band.noise], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("from_s", "to_s"), [(0.0, 3.0), (0.4, 1.1), (2.9, 2.95)])
def test_drawn_curves_reach_from_the_smallest_to_the_largest_sample(opened, pid_run, from_s, to_s):
    window, run = opened(pid_run), hil.open_run(pid_run)
    window.timeline.look(from_s, to_s)
    window.frame()
    x, y = window.traces.strips["signal"].drawn("measured")
    inside = (run.t_s.values >= from_s) & (run.t_s.values <= to_s)
    shown = (x >= from_s) & (x <= to_s)
    force_N = run.force_measured_N.values
    # a bin stands at its first sample's time: one bin may reach in from each side
    assert np.nanmin(y[shown]) <= force_N[inside].min()
    assert np.nanmax(y[shown]) >= force_N[inside].max()
    assert y.min() >= force_N.min()
    assert y.max() <= force_N.max()
    assert set(y) <= set(force_N)


def test_reports_of_every_fourth_row_hold_until_the_next_and_no_longer():
    """Rows come in blocks of any length; a board that stops answering becomes unknown."""
    told = np.full((20, 2), 255, dtype=np.uint8)
    told[1::4] = [[0, 1], [1, 1], [1, 0], [0, 0], [1, 1]]
    told[13] = 255  # one report is lost
    shown, reports = [], Reports(4)
    for block in (told[:3], told[3:4], told[4:15], told[15:]):
        shown.append(reports.held(block))
    expected = np.repeat(told[1::4], 4, axis=0)
    assert np.concatenate(shown)[1:].tolist() == expected[:19].tolist()
    assert np.concatenate(shown)[0].tolist() == [255, 255]
    assert (Reports(1).held(told) == told).all()


@pytest.mark.slow
def test_the_raster_lights_a_cell_where_it_was_reported_on(opened, pid_run):
    window, run = opened(pid_run), hil.open_run(pid_run)
    window.frame()
    image, line = window.traces.raster.image, window.timeline
    n_columns = image.shape[1]
    on = run.cells_reported.values == 1
    for column in range(1, n_columns - 1):
        a, b = (line.from_s + (line.to_s - line.from_s) * (column + k) / n_columns for k in (-1, 1))
        near = on[(run.t_s.values >= a - 0.01) & (run.t_s.values <= b + 0.01)]
        for cell in range(on.shape[1]):
            if near[:, cell].all():
                assert image[cell, column] == 2
            elif not near[:, cell].any():
                assert image[cell, column] == 0


def test_the_raster_of_an_array_with_one_cell_is_drawn(opened, configs, tmp_path):
    """It was empty: Qt had no image of the one row."""
    steps = 'controller.steps=[{t_s = 0.01, on = "all"}]'
    config = hil.load(configs / "miga1/pulse.toml", ("experiment.duration_s=0.03", steps))
    window = opened(hil.run(config, out=tmp_path / "one.h5"))
    picture = window.traces.grab().toImage()
    place = window.traces.strips["cells"].box.sceneBoundingRect().center()
    at = window.traces.mapFromScene(place)
    shown = picture.pixelColor(at * picture.devicePixelRatio()).name()
    assert shown == window.traces.colours.cell.lower()


@pytest.mark.slow
def test_the_figures_agree_with_the_runs_own_summary(opened, pid_run):
    window = opened(pid_run)
    window._refresh_slow()
    figures, late = window.data.figures_at(window.data.last_s)
    force = window.feed.file.summary["force"]
    assert figures.rms == pytest.approx(force["residual_rms_N"], rel=1e-9)
    assert figures.nrmse == pytest.approx(force["nrmse"], rel=1e-9)
    assert figures.vaf == pytest.approx(force["vaf"], rel=1e-9)
    assert figures.held is force["held"] is False
    assert late.sum() == window.data.n_rows
    assert window.numbers.values["vaf"].text() == f"{100 * force['vaf']:.2f} %"


SHIPPED = (
    "arm/pointing.toml",
    "array14/broadcast.toml",
    "pantograph/impact_symmetric.toml",
    "silicone4/levels.toml",
    "slider/steps.toml",
    "soft_finger/press.toml",
    "wires4/hold.toml",
)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_rig_can_be_looked_at(opened, configs, tmp_path, name):
    sets = ["experiment.duration_s=0.2"]
    if name.startswith("pantograph"):
        sets = ["experiment.duration_s=4.5", "controller.repeats=1"]  # as short as it may be
    if name.startswith("arm"):
        sets = ["experiment.duration_s=2.5"]  # until the movement ends
    config = hil.load(configs / name, tuple(sets))
    window = opened(hil.run(config, out=tmp_path / "run.h5"))
    assert window.data.n_rows == config.n_ticks
    window.timeline.go(0.1)
    window.frame()
    window._refresh_slow()
    assert window.grab().width() == window.width()
    assert window.open(configs / name)
    assert window.bench.control.fields
    assert window.bench.control.problem.text() == ""


@pytest.mark.slow
def test_simulated_readings_say_so(opened, pid_run):
    window = opened(pid_run)
    assert "SIMULATED" in window.windowTitle()
    assert window.header.mark.isVisible()
    assert window.header.mark.text() == "SIMULATED"


@pytest.mark.slow
def test_the_state_names_what_tripped_in_words(opened, configs, tmp_path, qtbot):
    changes = ("guard.force_max_N=0.5", "experiment.duration_s=2.0")
    config = hil.load(configs / "miga6" / "all_on.toml", changes)
    window = opened(hil.run(config, out=tmp_path / "tripped.h5"))

    def says_why():
        window.timeline.follow()
        window._refresh_slow()
        return "force_high: force " in window.header.causes.text()

    qtbot.waitUntil(says_why, timeout=300_000)
    assert window.header.state.text() == "TRIPPED"


def test_what_is_no_recording_is_refused_with_the_reason(window, said, tmp_path):
    path = tmp_path / "notes.h5"
    path.write_text("no recording")
    assert not window.open(path)
    assert said == [f"{path}: not an HDF5 file: give a recording made by hil run"]


def test_an_experiment_that_is_not_valid_says_what_to_do(window, said, rigs):
    path = rigs / "miga6" / "pid.toml"
    path.write_text(path.read_text().replace("k_p = 1.0", "k_q = 1.0"))
    assert not window.open(path)
    assert "controller.k_q: unknown key: did you mean 'k_p'?" in said[0]


def test_the_window_shows_pixels(opened, pid_run):
    window = opened(pid_run)
    window.set_theme("light")
    window.timeline.follow()
    image = window.grab().toImage()
    image.convertTo(QImage.Format.Format_RGB32)
    colours = np.unique(np.frombuffer(image.constBits(), np.uint32)) & 0xFFFFFF
    assert 0xE69F00 in colours  # cells on
    assert len(colours) > 20


@pytest.mark.slow
def test_a_cell_that_its_board_set_apart_is_crossed_out_from_then_on(opened, configs, tmp_path):
    sets = ["devices.board.limits.open_cells_max=1", "experiment.duration_s=3.0"]
    config = hil.load(configs / "wires4/follow.toml", sets)
    fault = FaultTable(kind="wire_open", at_s=2.0, cell=2)
    window = opened(
        session.run(
            Plan(config, injection=Injection([fault])), Output(out=tmp_path / "broken.h5")
        ).path
    )
    for t_s, failed in ((1.9, [False] * 4), (2.5, [False, True, False, False])):
        assert window.feed.cells_at(t_s).failed.tolist() == failed
    window.set_theme("light")
    crossed = []
    for t_s in (1.9, 2.5):
        window.timeline.go(t_s)
        window.frame()
        image = window.array.grab().toImage()
        crossed.append(
            sum(
                image.pixelColor(x, y).name() == "#c4290a"  # of the theme's faults
                for x in range(image.width())
                for y in range(image.height())
            )
        )
    assert crossed[0] == 0 < crossed[1]


@pytest.mark.slow
def test_levels_that_cells_can_hold_are_lines_behind_the_curves(opened, pid_run):
    levels_N = json.loads(hil.open_run(pid_run).attrs["force_levels_N"])
    plot = opened(pid_run).traces.strips["signal"].plot
    lines = [item.value() for item in plot.items if isinstance(item, pg.InfiniteLine)]
    assert set(levels_N) <= set(lines)
    assert levels_N
