"""A day at the bench, by clicking alone; what each click did is looked up in the recordings."""

import json
import socket
import tomllib

import h5py
import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QFileDialog
from websockets.sync.client import connect

import hil
from hil.loop.states import NUMBERS

pytestmark = pytest.mark.xdist_group("real time")
LEFT = Qt.MouseButton.LeftButton
WAIT_MS = 300_000


class Operator:
    """Presses buttons and types, as a person does."""

    def __init__(self, window, qtbot, monkeypatch):
        self.window, self.bot, self.patch = window, qtbot, monkeypatch

    def click(self, button):
        assert button.isEnabled(), f"{button.text()} cannot be pressed"
        self.bot.mouseClick(button, LEFT)

    def type(self, field, text):
        field.selectAll()
        self.bot.keyClicks(field, text)

    def answer(self, dialogue, name):
        """What the next file dialogue will return."""
        many = dialogue == "getOpenFileNames"
        answer = [str(name)] if many else str(name)
        self.patch.setattr(QFileDialog, dialogue, lambda *a, **k: (answer, ""))

    def until(self, condition):
        self.bot.waitUntil(condition, timeout=WAIT_MS)

    def until_state(self, *words):
        self.until(lambda: self.window.header.state.text() in words)


@pytest.fixture
def operator(window, qtbot, monkeypatch):
    return Operator(window, qtbot, monkeypatch)


def _inputs(path):
    with h5py.File(path) as file:
        rows = file["inputs"][:]
    return [(row["name"].decode(), float(row["value"]), row["text"].decode()) for row in rows]


@pytest.mark.slow
def test_a_day_at_the_bench_needs_no_terminal(operator, bench, said, tmp_path):
    o, window = operator, operator.window
    control, header = window.bench.control, window.header

    # open, shorten
    o.answer("getOpenFileName", bench / "miga6" / "all_on.toml")
    o.click(control.open_button)
    assert "miga6 / all_on.toml" in control.name.text()
    o.type(control.fields["experiment.duration_s"], "0.8")
    o.type(control.fields["experiment.operator"], "Ada")
    o.until(lambda: control.settings is not None)

    # self-test: the same configuration, rehearsed
    o.click(control.self_test)
    o.until(lambda: not window.bench.is_busy)
    rehearsal = hil.open_run(next(tmp_path.glob("runs/*.h5")))
    assert (rehearsal.attrs["outcome"], rehearsal.attrs["clock"]) == ("complete", "virtual")
    settings = tomllib.loads(rehearsal.attrs["experiment"])["experiment"]
    assert (settings["duration_s"], settings["operator"]) == (0.8, "Ada")

    # connect, tare, note, arm, start
    o.click(control.connect_button)
    o.until_state("CONNECTED", "READY")
    o.until(lambda: window.data.n_rows > 500)
    o.click(control.tare)
    o.type(control.note, "smells warm")
    o.bot.keyClick(control.note, Qt.Key.Key_Return)
    o.click(control.arm)  # a permission: the rig stays ready until Start
    assert control.arm.text() == "Disarm"
    o.until_state("READY")
    o.click(header.start_button)
    o.until(lambda: not window.bench.is_busy)
    first = window.bench.trials[0]
    names = [name for name, _, _ in _inputs(first)]
    assert names == ["start", "tare", "note", "arm"]
    tare_N = {name: value for name, value, _ in _inputs(first)}["tare"]
    assert abs(tare_N) < 0.01  # mean of readings whose noise is 1.9 mN
    assert _inputs(first)[2][2] == "smells warm"
    run = hil.open_run(first)
    assert run.attrs["outcome"] == "complete"
    with h5py.File(first) as file:
        armed = int(file["inputs"]["tick"][3])
    ticks = np.rint(run.t_s.values / 0.001).astype(int)
    on = (run.cells_commanded.values == 1).any(axis=1)
    runs = run.guard_state.values == NUMBERS["running"]
    np.testing.assert_array_equal(on, runs)
    began = int(ticks[runs][0])
    assert armed <= began < armed + 100  # relay K1 closes, and the supply behind it is read
    assert runs[ticks >= began].all()
    shown_s = window.data.values.samples(-1.0, 1e9)[0]
    assert np.isin(shown_s, run.t_s.values).all()
    assert len(shown_s) + window.data.n_lost == len(ticks)  # a busy machine shows fewer

    # two more trials, started at once
    for n in (2, 3):
        o.click(header.start_button)
        o.until(lambda n=n: len(window.bench.trials) == n and not window.bench.is_busy)
        assert hil.open_run(window.bench.trials[-1]).attrs["outcome"] == "complete"

    # a trip: its cause in words, and no start before a reset
    o.type(control.fields["guard.force_max_N"], "0.4")
    o.until(lambda: control.settings is not None)
    o.click(header.start_button)
    o.until(lambda: len(window.bench.trials) == 4 and not window.bench.is_busy)
    tripped = hil.open_run(window.bench.trials[-1])
    assert tripped.attrs["outcome"] == "tripped"
    o.until_state("TRIPPED")
    o.until(lambda: "force_high: force " in header.causes.text())
    o.click(header.start_button)
    assert "then Reset" in said.pop()
    o.click(control.reset)
    assert header.state.text() != "TRIPPED" or window.data.outcome == "tripped"
    assert not control.reset.isEnabled()

    # compare: two trials over the tripped one, aligned where the first cell comes on
    for path in window.bench.trials[:2]:
        o.answer("getOpenFileNames", path)
        o.click(window.compare.add_button)
        o.until(lambda: not window.jobs.is_busy)
    window.compare.align.setCurrentText("first cell on")
    assert window.compare.paths == [path.absolute() for path in window.bench.trials[:2]]
    main_s = float(tripped.t_s.values[(tripped.cells_reported.values == 1).any(axis=1)][0])
    for path, (_, shift_s, _) in zip(
        window.bench.trials[:2], window.traces.overlays.values(), strict=True
    ):
        other = hil.open_run(path)
        first_s = float(other.t_s.values[(other.cells_reported.values == 1).any(axis=1)][0])
        assert first_s + shift_s == pytest.approx(main_s, abs=1e-9)

    # export: figure and data
    for ending in (".png", ".svg", ".pdf"):
        o.answer("getSaveFileName", tmp_path / f"figure{ending}")
        window.parts.exports.choose_figure()
        assert (tmp_path / f"figure{ending}").stat().st_size > 5000
    assert not QImage(str(tmp_path / "figure.png")).isNull()
    o.answer("getSaveFileName", tmp_path / "nowhere" / "figure.png")
    window.parts.exports.choose_figure()
    assert "cannot be written (No such file or directory): choose another" in said.pop()
    assert "SIMULATED" in (tmp_path / "figure.svg").read_text()
    o.answer("getSaveFileName", tmp_path / "trial.csv")
    window.parts.exports.choose_data()
    o.until(lambda: not window.jobs.is_busy)
    table = (tmp_path / "trial.csv").read_text().splitlines()
    assert len(table) == tripped.sizes["tick"] + 1
    assert said == []


def test_the_emergency_stop_ends_the_run_and_holds_until_reset(operator, bench, said):
    o, window = operator, operator.window
    assert window.open(bench / "miga6" / "pid.toml")
    o.type(window.bench.control.fields["experiment.duration_s"], "6000")
    o.click(window.header.start_button)
    o.until_state("RUNNING")
    o.bot.keyClick(window, Qt.Key.Key_F12)
    o.until(lambda: not window.bench.is_busy)
    run = hil.open_run(window.bench.trials[0])
    assert run.attrs["outcome"] == "aborted"
    assert _inputs(window.bench.trials[0])[-1][0] == "stop"
    assert run.t_s.values[-1] < 5999.0
    assert window.header.state.text() == "E-STOP"
    o.click(window.header.start_button)
    assert "Reset first" in said.pop()
    o.click(window.bench.control.reset)
    assert window.header.state.text() != "E-STOP"


@pytest.mark.slow
def test_a_stop_before_the_run_is_shown_withdraws_the_start(operator, bench, said, monkeypatch):
    o, window = operator, operator.window
    assert window.open(bench / "miga6" / "pid.toml")
    o.type(window.bench.control.fields["experiment.duration_s"], "6000")
    with monkeypatch.context() as slow:
        slow.setattr(window, "try_attach", lambda pid, path: None)
        o.click(window.header.start_button)
        o.until(lambda: window.bench.command is not None)
        slow.setattr(window.bench.command, "stop", lambda: None)  # the run takes its time
        o.click(window.header.stop_button)
    o.until_state("READY")
    o.click(window.header.stop_button)
    o.until(lambda: not window.bench.is_busy)
    assert [name for name, _, _ in _inputs(window.bench.trials[0])] == ["start", "stop"]
    assert said == []


@pytest.mark.slow
def test_a_set_point_and_a_gain_take_effect_in_the_run_and_are_recorded(operator, bench):
    o, window = operator, operator.window
    control = window.bench.control
    assert window.open(bench / "miga6" / "pid.toml")
    o.type(control.fields["experiment.duration_s"], "6000")
    o.click(window.header.start_button)
    o.until_state("RUNNING")
    o.type(control.set_point, "0.9")
    o.click(control.hold)
    gain = control.fields["controller.k_p"]
    o.type(gain, "1.5")
    o.bot.keyClick(gain, Qt.Key.Key_Return)
    reference = window.data.signal.columns["reference"]
    o.until(lambda: window.data.at(window.data.last_s)[reference] == 0.9)
    o.click(control.release)
    o.until(lambda: window.data.at(window.data.last_s)[reference] != 0.9)
    o.click(window.header.stop_button)
    o.until(lambda: not window.bench.is_busy)
    path = window.bench.trials[0]
    asked = _inputs(path)
    assert ("force_reference_N", 0.9, "") in asked
    assert ("controller.k_p", 1.5, "") in asked
    assert (hil.open_run(path).force_reference_N.values == 0.9).any()


@pytest.mark.slow
def test_a_run_is_served_to_foxglove_if_that_is_ticked(operator, bench, said):
    o, control = operator, operator.window.bench.control
    o.window.open(bench / "miga6" / "all_on.toml")
    assert control.port.value() == 8765
    control.port.setValue(0)  # any free one
    o.click(control.foxglove)
    o.click(o.window.header.start_button)
    o.until(lambda: control.served.isVisible())
    assert not control.foxglove.isEnabled()
    address = control.served.text().removeprefix("served at ")
    with connect(address, subprotocols=["foxglove.sdk.v1"]) as viewer:
        greeting = json.loads(viewer.recv(timeout=60.0))
    assert greeting["op"] == "serverInfo"
    assert greeting["name"] == "hil: miga6/all_on"
    o.click(o.window.header.stop_button)
    o.until(lambda: not o.window.bench.is_busy)
    assert not control.served.isVisible()
    assert control.foxglove.isEnabled()
    assert said == []


@pytest.mark.slow
def test_a_port_in_use_refuses_the_run_in_one_line(operator, bench, said):
    o, control = operator, operator.window.bench.control
    o.window.open(bench / "miga6" / "all_on.toml")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        control.port.setValue(port)
        o.click(control.foxglove)
        o.click(o.window.header.start_button)
        o.until(lambda: bool(said))
    assert f"--foxglove 127.0.0.1:{port}" in said[0]
    assert "\n" not in said[0].strip()
