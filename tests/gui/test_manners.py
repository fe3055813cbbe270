"""What the window owes its user: memory, keys, tips, checks while typing, long work cancelled."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QComboBox, QLineEdit

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.loop import tap as taps
from hil_gui import speed
from hil_gui.commissioning import cell_steps, duration_s, experiment_text, judge_cells
from hil_gui.data import run_of
from hil_gui.fields import NumberField, toml_text, unit_of, words_of
from hil_gui.run_data import Column, RunData
from hil_gui.runner import Command, run_words
from hil_gui.theme import DARK, LIGHT


@pytest.mark.slow
def test_it_remembers_layout_theme_and_recent_files(make_window, pid_run, qtbot):
    first = make_window()
    first.open(pid_run)
    qtbot.waitUntil(lambda: not first.jobs.is_busy, timeout=300_000)
    first.set_theme("dark")
    first.docks["Ages"].setFloating(True)
    first.docks["Lateness"].hide()
    first.close()
    second = make_window()
    assert second.theme_name == "dark"
    assert second.docks["Ages"].isFloating()
    assert second.docks["Lateness"].isHidden()
    assert second.session.recent[0] == str(pid_run.resolve())
    second.reset_layout()
    assert not second.docks["Ages"].isFloating()


def test_every_control_has_a_tip_and_the_keyboard(window, configs):
    window.open(configs / "miga6" / "pid.toml")
    kinds = (QAbstractButton, QAbstractSpinBox, QComboBox, QLineEdit)
    inner = ("qt_", "ScrollLeft", "ScrollRight")
    found = [w for kind in kinds for w in window.findChildren(kind)]
    own = [
        w
        for w in found
        if not w.objectName().startswith(inner)
        and not isinstance(w.parentWidget(), QAbstractSpinBox | QComboBox)
    ]
    assert len(own) > 40
    assert [w.objectName() or w.text() for w in own if not w.toolTip()] == []
    without = [w for w in own if w.focusPolicy() == Qt.FocusPolicy.NoFocus]
    assert [w.objectName() or w.text() for w in without] == []


def test_tips_of_numbers_give_their_units(window, configs):
    window.open(configs / "miga6" / "pid.toml")
    for path, field in window.bench.control.fields.items():
        unit = unit_of(path)
        if isinstance(field, NumberField) and unit:
            assert f"in {unit}" in field.toolTip()
            assert field.suffix() == f" {unit}"


@pytest.mark.parametrize(
    ("key", "unit", "words"),
    [
        ("force_max_N", "N", "force max"),
        ("k_i_per_s", "1/s", "k i"),
        ("k_se_N_per_m", "N/m", "k se"),
        ("b_N_s_per_m", "N·s/m", "b"),
        ("duration_s", "s", "duration"),
        ("hysteresis", "", "hysteresis"),
        ("ambient_C", "°C", "ambient"),
        ("controller.loops.slide.k_d_s", "s", "slide k d"),
    ],
)
def test_a_key_tells_its_unit(key, unit, words):
    assert (unit_of(key), words_of(key)) == (unit, words)


def test_what_is_typed_is_checked_at_once_and_the_reason_said(window, configs, qtbot):
    window.open(configs / "miga6" / "pid.toml")
    control = window.bench.control
    force_N = control.fields["reference.force_N"].table.item(1, 1)
    force_N.setText("99.0")
    qtbot.waitUntil(lambda: bool(control.problem.text()), timeout=300_000)
    assert "all cells on give" in control.problem.text()
    assert not window.header.start_button.isEnabled()
    force_N.setText("1.1")
    qtbot.waitUntil(lambda: control.settings is not None, timeout=300_000)
    assert control.problem.text() == ""
    assert window.header.start_button.isEnabled()
    assert control.sets == {"reference.force_N": "[0.6, 1.1, 0.3]"}


def test_a_limit_cannot_be_set_beyond_the_rigs(window, configs, qtbot):
    window.open(configs / "miga6" / "pid.toml")
    field = window.bench.control.fields["guard.force_max_N"]
    field.setValue(50.0)
    assert field.value() == 9.0
    assert "the rig allows up to 9 N" in field.toolTip()


@pytest.mark.slow
def test_a_defect_of_the_window_is_one_line_and_it_goes_on(opened, pid_run, monkeypatch):
    window = opened(pid_run)
    monkeypatch.setattr(sys, "excepthook", window.report_internal_error)

    def fails(*args):
        raise ZeroDivisionError("no such thing")

    monkeypatch.setattr(window.array, "paint", fails)
    window.array.repaint()
    assert window.session.message.text().startswith(
        "internal error of the window: ZeroDivisionError: no such"
    )
    monkeypatch.undo()
    window.array.repaint()


def test_without_a_display_the_window_says_what_is_missing(monkeypatch, configs, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert main(["gui"]) == 2
    assert main(["run", str(configs / "miga6" / "pid.toml"), "--gui"]) == 2
    said = "the window has no display: start it in a desktop session, or through ssh -X\n"
    assert capsys.readouterr().err == 2 * said


@pytest.mark.slow
def test_a_file_that_cannot_be_opened_ends_the_command_with_its_reason(configs):
    rig = configs / "miga6" / "rig.toml"
    words = [sys.executable, "-m", "hil", "gui", str(rig)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 2
    assert f"{rig}: no [experiment]: give an experiment, not a rig" in done.stderr.splitlines()
    assert "Traceback" not in done.stderr


def test_values_go_out_as_toml():
    value = [{"t_s": 0.5, "on": [1, "muscle.2"]}, {"t_s": 1, "off": "all"}]
    assert toml_text(value) == '[{t_s = 0.5, on = [1, "muscle.2"]}, {t_s = 1, off = "all"}]'
    assert toml_text(True) == "true"


@pytest.mark.slow
def test_reading_a_recording_can_be_cancelled(window, pid_run):
    window._open_recording(pid_run)
    feed = window.feed
    window.jobs.start("Reading", feed.load(), window._loaded)
    window.jobs.cancel_button.click()
    assert not window.jobs.is_busy
    assert "cancelled" in window.session.message.text()


@pytest.mark.slow
def test_a_recording_is_played_through_the_same_views(opened, pid_run, qtbot, monkeypatch):
    """Each frame comes 20 ms after the one before, however late the machine draws it."""
    window = opened(pid_run)
    frames_s = itertools.count(window._last_s, 0.02)
    monkeypatch.setattr("hil_gui.window.perf_counter", lambda: next(frames_s))
    run = hil.open_run(pid_run)
    window.timeline.set_span(1.0)
    window.transport.speeds.setCurrentText("2 ×")
    window.transport.play.click()
    assert window.timeline.now_s < 1.0
    qtbot.waitUntil(lambda: window.timeline.now_s > 1.5, timeout=300_000)
    window.transport.play.click()
    now_s = window.timeline.now_s
    assert not window.transport.is_playing
    window._refresh_slow()
    row = int(np.searchsorted(run.t_s.values, now_s, "right")) - 1
    shown = window.numbers.values["measured"].text()
    assert shown == f"{run.force_measured_N.values[row]:.3f} N"
    cells = window.feed.cells_at(now_s)
    np.testing.assert_array_equal(cells.reported, run.cells_reported.values[row])
    assert window.timeline.to_s == pytest.approx(now_s)


@pytest.mark.slow
def test_cursors_measure_what_lies_between_them(opened, pid_run):
    window, run = opened(pid_run), hil.open_run(pid_run)
    window.transport.cursor_button.click()
    window.traces.set_cursors((1.0, 2.0))
    table = {
        window.cursor_table.item(r, 0).text(): r for r in range(window.cursor_table.rowCount())
    }
    row = table["measured"]
    inside = run.force_measured_N.values[(run.t_s.values >= 1.0) & (run.t_s.values <= 2.0)]
    shown = float(window.cursor_table.item(row, 4).text().split()[0])
    units = window.cursor_table.item(row, 4).text().split()[1]
    assert shown * {"N": 1.0, "mN": 1e-3}[units] == pytest.approx(inside.mean(), rel=1e-3)
    assert window.cursor_table.item(table["time"], 3).text() == "1 s"


@pytest.mark.slow
def test_columns_with_a_tick_are_drawn_in_a_plot_of_their_units(opened, pid_run):
    window, run = opened(pid_run), hil.open_run(pid_run)
    items = window.columns.findItems("muscle.1.current_A", Qt.MatchFlag.MatchStartsWith)
    items[0].setCheckState(Qt.CheckState.Checked)
    window.frame()
    _, y = window.traces.strips["in A"].drawn("muscle.1.current_A")
    assert set(y[np.isfinite(y)]) <= set(run["muscle.1.current_A"].values)


@pytest.mark.slow
def test_the_array_moves_with_the_twin(opened, pid_run, configs):
    window = opened(pid_run)
    moved = window.feed.moves_at(2.9)
    # one cell on holds: cell 1, between ground and mass 2, pulls mass 2 towards the ground
    model = hil.load(configs / "miga6" / "pid.toml").model
    F_N = 4.0 * (hil.open_run(pid_run).cells_reported.values[2850] == 1)
    rest = dict(zip(model.node_names, model.solve_statics(F_N).position_m, strict=True))
    assert moved["muscle.x2_m"] < 0.0
    # the cells' time constant is 0.36 s: six of them after the step nothing is left to come
    assert moved["muscle.x2_m"] == pytest.approx(rest["muscle.2"], rel=0.02)


@pytest.mark.slow
def test_each_cell_in_turn_finds_the_one_that_does_not_pull(rigs, opened):
    rig = rigs / "miga6" / "rig.toml"
    file = rigs / "miga6" / "cells.toml"
    file.write_text(experiment_text(rig, "each cell in turn", cell_steps(6), duration_s(6)))
    config = hil.load(file, ("plant.arrays.muscle.dead_cells=[4]",))
    window = opened(hil.run(config, out=rigs / "cells.h5"))
    verdicts = judge_cells(window.data)
    assert [v.name for v in verdicts if not v.pulls] == ["muscle.4"]
    assert all(v.answered for v in verdicts)


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_commissioning_watches_and_tares_whatever_the_controller(
    window, bench, qtbot, tmp_path, monkeypatch
):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    page = window.parts.commissioning
    assert window.open(bench / "miga6" / "pid.toml")
    qtbot.mouseClick(page.watch_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.data is not None and window.data.n_rows > 1200, timeout=300_000)
    qtbot.mouseClick(page.zero_button, Qt.MouseButton.LeftButton)
    assert "noise" in page.zero_result.text()
    page.shunt_expected.setValue(5.0)
    qtbot.mouseClick(page.shunt_button, Qt.MouseButton.LeftButton)
    assert page.shunt_result.text().startswith("✗")
    qtbot.mouseClick(window.header.stop_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.bench.is_busy, timeout=300_000)
    run = hil.open_run(window.bench.trials[0])
    assert not (run.cells_commanded.values == 1).any()
    asked = [n.text for n in window.data.notes if n.source == "operator"]
    assert any(text.startswith("tare") for text in asked)
    assert any(text.startswith("shunt: ✗") for text in asked)
    assert list(temporary.iterdir()) == []


def test_points_in_the_plane_become_a_path_and_a_stick_figure(window):
    names = ("hip_x_m", "hip_y_m", "knee_x_m", "knee_y_m", "tip_x_m", "tip_y_m",
             "tip_x_reference_m", "tip_y_reference_m")  # fmt: skip
    columns = [Column(name, "m", "model", "") for name in names]
    columns += [
        Column("t_s", "s", "timing", ""),
        Column("fault_bits", "1", "fault", "", flags=("a",)),
    ]
    data = RunData(replace(speed.about(), columns=tuple(columns), cell_names=()))
    t_s = np.arange(0.0, 2.0, 0.01)
    rows = {name: np.sin(t_s + i) for i, name in enumerate(names)}
    data.append({**rows, "t_s": t_s, "fault_bits": np.zeros(len(t_s), np.uint64)})
    window._show_run(data)
    assert window.docks["Path"].isVisible()
    assert window.docks["Array"].isHidden()
    window.paths.show_run(data, 1.0)
    x, y = window.paths.side.figure.getData()
    np.testing.assert_allclose(x, [np.sin(1.0), np.sin(3.0), np.sin(5.0)])
    np.testing.assert_allclose(y, [np.sin(2.0), np.sin(4.0), np.sin(6.0)])
    trail_x, _ = window.paths.side.trail.getData()
    np.testing.assert_allclose(trail_x[:101], np.sin(t_s[:101] + 4))
    wanted_x, _ = window.paths.side.wanted.getData()
    np.testing.assert_allclose(wanted_x[:101], np.sin(t_s[:101] + 6))


def test_the_guards_state_is_read_from_its_column(window):
    said = "of the rig: 0 off, 1 connected, 7 fault"
    columns = (*speed.about().columns, Column("guard_state", "1", "state", said))
    data = RunData(replace(speed.about(), columns=columns))
    t_s = np.arange(0.0, 1.0, 0.001)
    state = np.where(t_s < 0.5, 1.0, 7.0)
    data.append({**speed.rows(t_s, np.random.default_rng(0)), "guard_state": state})
    assert [data.state_at(t) for t in (0.1, 0.499, 0.5, 0.9)] == [
        "connected", "connected", "fault", "fault",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_benchmark_draws_what_it_says(window):
    found = speed.redraw(window, 0.3)
    assert found["n_curves"] == 8
    assert found["frame_s"] > 0.0
    x, _ = window.traces.strips["signal"].drawn("measured")
    assert x[-1] - x[0] > speed.DRAWN_S - 2.0


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_sample_reaches_its_pixel_through_the_tap(window):
    found = speed.latency(window, 1.0)
    assert found["sample_to_pixel_p95_s"] > 0.0
    x, y = window.traces.strips["signal"].drawn("measured")
    assert len(x) > 100
    assert np.isfinite(y).all()


def _contrast(a, b):
    """Contrast ratio, WCAG 2.1: (L1 + 0.05)/(L2 + 0.05) of relative luminances."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda t: t.name)
def test_text_and_curves_stand_out_from_their_ground(theme):
    for ink in (theme.text, theme.muted, theme.fault, theme.warning, theme.ok):
        assert _contrast(ink, theme.surface) >= 4.5  # WCAG AA for text
    for curve in (theme.measured, theme.model, theme.reference, theme.residual, theme.estimate):
        assert _contrast(curve, theme.surface) >= 3.0  # WCAG AA for graphics
    assert _contrast(theme.on_accent, theme.accent) >= 4.5
    assert _contrast(theme.on_fault, theme.fault) >= 4.5


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_window_killed_in_mid_run_leaves_the_run_alone(configs, tmp_path):
    path = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6" / "pid.toml"), "--gui", "--duration", "600"]
    words += ["--set", "guard.reading_age_max_s=60.0"]
    words += ["--set", "loop.overrun='skip'", "--out", str(path), "--json"]
    run = subprocess.Popen([sys.executable, "-m", "hil", *words])
    try:
        os.kill(_window_of(run), signal.SIGKILL)
        before = _rows(run)
        while _rows(run) < before + 1000:
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        assert run.wait(600) == 130
    finally:
        run.kill()
    recording = hil.open_run(path)
    assert recording.attrs["outcome"] == "aborted"
    assert "stopped by SIGINT" in recording.event_text.values.tolist()
    assert recording.sizes["tick"] >= before + 1000


def _window_of(run):
    """The process that shows this run."""
    while run.poll() is None:
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"hil_gui" in words and str(run.pid).encode() in words:
                return int(entry.parent.name)
        time.sleep(0.01)
    raise AssertionError("the run opened no window")


def _rows(run):
    """Rows that a run under way has written."""
    for path in [path for pid, path in taps.running() if pid == run.pid]:
        with contextlib.suppress(ValueError, OSError):  # it is just being made
            return taps.attach(path).ticks.written
    return 0


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_recording_under_way_is_joined_live_and_a_killed_loop_is_seen(
    opened, window, bench, tmp_path, qtbot
):
    path = tmp_path / "run.h5"
    words = run_words(bench / "miga6" / "all_on.toml", path, backend="sim", sets={})
    command = Command([*words, "--duration", "600"], attended=True)
    try:
        qtbot.waitUntil(lambda: run_of(path) == command.pid, timeout=300_000)
        qtbot.waitUntil(lambda: _is_readable(path), timeout=300_000)
        window = opened(path)
        qtbot.waitUntil(
            lambda: window.data is not None and window.data.n_rows > 500, timeout=300_000
        )
        assert window.feed.live is not None
        assert window.header.stop_button.isEnabled()
        os.kill(command.pid, signal.SIGKILL)
        command.wait(300.0)
        qtbot.waitUntil(lambda: window.header.state.text() == "LOOP DIED", timeout=300_000)
    finally:
        command.stop()
    n_rows = window.data.n_rows
    recorded = hil.open_run(path)
    np.testing.assert_array_equal(
        window.data.values.samples(-1.0, np.inf)[0][: recorded.sizes["tick"]],
        recorded.t_s.values[:n_rows],
    )


def _is_readable(path):
    with contextlib.suppress(ConfigError):
        return hil.open_run(path).sizes["tick"] > 0
    return False
