"""Who may switch cells from the window: Start after Arm, for the configuration that was tested.

The simulated rig plays the bench: the window takes it for one, and the runs are real.
"""

import h5py
import pytest
from PySide6.QtCore import Qt

from hil_gui import bench_day

pytestmark = pytest.mark.xdist_group("real time")
WAIT_MS = 300_000


@pytest.fixture
def day(window, bench, qtbot, monkeypatch):
    """The window with miga6/pid open and Bench chosen."""
    words_of = bench_day.run_words
    monkeypatch.setattr(
        bench_day, "run_words", lambda *args, **more: words_of(*args, **more | {"backend": "sim"})
    )
    return Day(window, bench / "miga6" / "pid.toml", qtbot)


class Day:
    """Presses buttons of a window on the bench, and reads what its runs were asked."""

    def __init__(self, window, experiment, qtbot):
        self.window, self.bench, self.bot = window, window.bench, qtbot
        self.experiment = experiment
        self.rig = experiment.with_name("rig.toml")
        self.control, self.page = window.bench.control, window.parts.commissioning
        assert window.open(experiment)
        self.control.bench.setChecked(True)
        self.buttons = {
            "Self-test": self.control.self_test,
            "Connect": self.control.connect_button,
            "Arm": self.control.arm,
            "Start": window.header.start_button,
            "Stop": window.header.stop_button,
            "Watch": self.page.watch_button,
            "Test cells": self.page.cells_button,
        }

    def press(self, *names):
        for name in names:
            button = self.buttons[name]
            assert button.isEnabled(), f"{name} cannot be pressed"
            self.bot.mouseClick(button, Qt.MouseButton.LeftButton)

    def until(self, condition):
        self.bot.waitUntil(condition, timeout=WAIT_MS)

    def until_ready(self):
        self.until(lambda: self.bench.rig_state == "ready")

    def test(self):
        self.press("Self-test")
        self.until(lambda: not self.bench.is_busy)

    def requests(self):
        """Requests that the live run has taken."""
        return [note.text.split()[0] for note in self.window.data.notes]

    def end(self):
        """Stop the run; returns the requests that it took."""
        if self.bench.is_busy:
            self.press("Stop")
        self.until(lambda: not self.bench.is_busy)
        with h5py.File(self.bench.trials[-1]) as file:
            return [name.decode() for name in file["inputs"]["name"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Connect", "Watch"])
def test_what_connects_to_the_bench_switches_nothing(name, day, said):
    day.test()
    day.press(name)
    day.until_ready()
    day.until(lambda: day.window.data.n_rows > 100)
    assert day.end() == ["start", "stop"]
    assert said == []


@pytest.mark.slow
def test_the_cells_are_tested_after_a_self_test_of_their_own_and_arm(day, said):
    """Open experiment and test of the cells differ: neither's Self-test or Arm is the other's."""
    day.test()
    day.press("Arm", "Test cells")
    day.until_ready()
    assert "arm" not in day.requests()
    day.press("Start")
    assert said.pop().startswith("Arm first (F4)")
    day.press("Arm", "Start")
    day.until(lambda: day.bench.is_armed)
    assert "arm" in day.end()
    tests = [path for path in day.bench.folder.iterdir() if "each_cell_in_turn" in path.name]
    assert len(tests) == 2  # its self-test and itself
    day.press("Start")
    assert said.pop().startswith("Arm first (F4)")


@pytest.mark.slow
def test_a_test_of_the_cells_whose_self_test_trips_does_not_connect(day, said):
    text = day.rig.read_text()
    day.rig.write_text(text.replace("force_max_N = 9.0", "force_max_N = 0.05"))
    assert day.window.open(day.experiment.with_name("all_on.toml"))
    day.press("Test cells")
    day.until(lambda: not day.bench.is_busy)
    assert "tripped" in said.pop()
    assert day.bench.trials == []
    assert day.page.cells_result.text() == "The test did not run"


def test_before_a_self_test_nothing_is_armed_or_connected(day, said):
    for name in ("Arm", "Start", "Connect"):
        day.press(name)
        assert "Self-test (F2)" in said.pop()
    assert not day.bench.permitted
    assert day.bench.command is None


def _types_a_limit(day):
    field = day.control.fields["guard.force_max_N"]
    field.setValue(0.5 * field.value())
    day.until(lambda: day.control.settings["guard"]["force_max_N"] == field.value())


def _edits_the_rig(day):
    text = day.rig.read_text()
    day.rig.write_text(text.replace("force_max_N = 9.0", "force_max_N = 8.0"))


@pytest.mark.slow
@pytest.mark.parametrize("change", [_types_a_limit, _edits_the_rig])
def test_what_changed_after_arming_is_tested_and_armed_again(change, day, said):
    day.test()
    day.press("Arm")
    assert day.bench.permitted
    change(day)
    day.press("Start")
    if change is _edits_the_rig:
        assert "open it again (Ctrl+O)" in said.pop()
        assert day.window.open(day.experiment)
        day.press("Start")
    assert "Self-test (F2)" in said.pop()
    day.test()
    day.press("Start")
    assert said.pop().startswith("Arm first (F4)")
    assert day.bench.trials == []
    day.press("Arm", "Start")
    day.until(lambda: day.bench.is_armed)
    assert "arm" in day.end()


@pytest.mark.slow
def test_arming_on_the_simulated_rig_is_not_for_the_bench(day, said):
    day.test()
    day.control.simulate.setChecked(True)
    day.press("Arm")
    day.control.bench.setChecked(True)
    day.press("Start")
    assert said.pop().startswith("Arm first (F4)")


@pytest.mark.slow
def test_a_file_that_changes_while_the_rig_connects_is_not_armed(day, said, monkeypatch):
    """`hil run` reads the file once more: what it runs is compared with what was armed."""
    day.test()
    day.press("Arm")
    words_of = bench_day.run_words

    def change_first(*args, **more):
        _edits_the_rig(day)
        return words_of(*args, **more)

    monkeypatch.setattr(bench_day, "run_words", change_first)
    day.press("Start")
    day.until(lambda: bool(said))
    assert "Self-test (F2)" in said.pop()
    day.until_ready()
    assert day.end() == ["start", "stop"]


@pytest.mark.slow
def test_a_disarmed_run_is_armed_by_arm_alone(day, said):
    day.test()
    day.press("Arm", "Start")
    day.until(lambda: day.bench.is_armed)
    day.press("Arm")  # says Disarm
    day.until(lambda: not day.bench.is_armed and day.control.arm.text() == "Arm")
    assert not day.buttons["Start"].isEnabled()
    day.press("Arm")
    day.until(lambda: day.bench.is_armed)
    assert [name for name in day.end() if name == "arm"] == ["arm"] * 3
    assert said == []
