"""What the menus offer beside the panels: help, saving an experiment, the report."""

import shutil
import tomllib
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QMessageBox, QTextBrowser, QWidget

import hil
from hil_gui.data import changed_toml
from hil_gui.new_rig import NewRig


def test_f1_lists_the_steps_and_every_key(window):
    shown = window.help().findChild(QTextBrowser).toPlainText()
    for words in ("Self-test", "Emergency stop", "Ctrl+S", "Save experiment", "F12", "Alt+1"):
        assert words in shown
    keys = {k.toString() for a in window.findChildren(QAction) for k in a.shortcuts()}
    assert "F1" in keys
    assert [key for key in keys if key not in shown] == []


@pytest.mark.parametrize("key", ["F2", "F3", "F4", "F5", "F6", "F7", "F8", "Ctrl+H"])
def test_a_key_of_the_run_that_is_held_counts_once(window, key):
    """Qt repeats actions by default: F4 held to disarm would arm again, F3 would tare on."""
    [action] = [a for a in window.findChildren(QAction) if a.shortcut().toString() == key]
    assert not action.autoRepeat()


@pytest.mark.parametrize("kind", [QMessageBox, NewRig])
def test_the_emergency_stop_does_not_wait_for_a_dialogue(kind, window, qtbot, monkeypatch):
    monkeypatch.setattr(QMessageBox, "show", QWidget.show)  # a real box
    if kind is QMessageBox:
        window.session.complain("Not sent", "no run is in progress")
    else:
        window.new_rig()
    [dialogue] = window.findChildren(kind)
    qtbot.waitExposed(dialogue)
    assert not dialogue.isModal()
    qtbot.keyClick(dialogue, Qt.Key.Key_F12)
    assert window.bench.permission.latched == "estop"
    dialogue.close()


EXPERIMENT = """\
rig = "rig.toml"
loop.period_s = 0.002  # dotted
[experiment]
name = "a"  # what it is called
duration_s = 5.0
times_s = [  # of steps
  0.0,
  1.0,
]  # when
[guard]
signals = {x = {min = 0.0, max = 1.0}}  # inline
[controller]  # of the force
kind = "pid"
k_p = 1.0      # gain
"""


@pytest.mark.parametrize(("sets", "line"), [
    ({"controller.k_p": "0.25"}, "k_p = 0.25      # gain\n"),
    ({"controller.k_i": "2.0"}, "k_p = 1.0      # gain\nk_i = 2.0\n"),
    ({"experiment.times_s": "[0.0, 2.0]"}, "times_s = [0.0, 2.0]  # when\n"),
    ({"loop.period_s": "0.01"}, "loop.period_s = 0.01  # dotted\n"),
    ({"experiment.times_s": " [0.0, 2.0]  # mine"}, "times_s = [0.0, 2.0]"),
    ({"guard.signals.y.max": "2.0"}, "y = {max = 2.0}}  # inline\n"),
    ({"guard.signals.x.max": "2.0"}, "signals = {x = {min = 0.0, max = 2.0}}  # inline\n"),
    ({"experiment.name": '"b # \\"c\\""'}, 'name = "b # \\"c\\""  # what it is called\n'),
    ({"guard.force_max_N": "3.0"}, "force_max_N = 3.0\n"),
    ({"record.fsync_s": "3.0"}, "[record]\nfsync_s = 3.0\n"),
])  # fmt: skip
def test_a_saved_experiment_has_the_values_and_keeps_its_comments(sets, line):
    text = changed_toml(EXPERIMENT, sets)
    assert line in text
    comments = [line.split("#")[1] for line in EXPERIMENT.splitlines() if "#" in line]
    assert [comment for comment in comments if comment not in text] in ([], [" of steps"])
    expected = tomllib.loads(EXPERIMENT)
    for key, value in sets.items():
        *above, name = key.split(".")
        table = expected
        for part in above:
            table = table.setdefault(part, {})
        table[name] = tomllib.loads(f"x = {value}")["x"]
    assert tomllib.loads(text) == expected


def test_an_experiment_is_saved_as_its_fields_have_it_and_opened(window, bench, said):
    path = bench / "miga6" / "pid.toml"
    window.open(path)
    window.bench.control.fields["controller.k_p"].setValue(0.25)
    out = path.with_name("mine.toml")
    window.save(out)
    assert window.bench.control.path == out
    assert hil.load(out).tables.controller.k_p == 0.25
    assert window.bench.control.sets == {}
    before = (bench / "miga6" / "rig.toml").read_bytes()
    window.save(bench / "miga6" / "rig.toml")
    window.save(bench / "elsewhere.toml")
    assert "give a file of its own" in said[0]
    assert "save it there" in said[1]
    assert (bench / "miga6" / "rig.toml").read_bytes() == before


CHANGES = {
    "pid.toml": ("k_i_per_s = 2.8", "k_i_per_s = 3.3"),
    "rig.toml": ("force_max_N = 9.0", "force_max_N = 8.0"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_an_editor_changed_is_opened_again_before_anything_runs_or_is_saved(
    window, bench, said, name
):
    path = bench / "miga6" / "pid.toml"
    window.open(path)
    control = window.bench.control
    control.fields["experiment.duration_s"].setValue(3.0)
    control.check()
    assert control.settings["experiment"]["duration_s"] == 3.0
    file = path.with_name(name)
    old, new = CHANGES[name]
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    out = path.with_name("mine.toml")
    window.save(out)
    window.bench.start()
    window.bench.arm()
    assert [("open it again (Ctrl+O)" in text) for text in said[:2]] == [True, True]
    assert window.bench.command is None
    assert not window.bench.permitted
    assert not out.exists()
    window.open(path)
    control.check()
    assert control.settings is not None


@pytest.mark.parametrize("content", [None, b"[controller\n", b'name = "\xff"'])
def test_an_experiment_whose_file_is_gone_or_broken_is_not_saved(window, bench, said, content):
    path = bench / "miga6" / "pid.toml"
    window.open(path)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    window.save(path.with_name("mine.toml"))
    assert len(said) == 1
    assert not path.with_name("mine.toml").exists()


@pytest.mark.slow
def test_the_report_of_the_open_run_is_made_and_shown(
    opened, pid_run, tmp_path, qtbot, monkeypatch
):
    shown = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: shown.append(url.toLocalFile()))
    window = opened(Path(shutil.copyfile(pid_run, tmp_path / "run.h5")))
    window.parts.exports.report()
    qtbot.waitUntil(lambda: bool(shown), timeout=300_000)
    assert shown == [str(tmp_path / "run.html")]
    assert (tmp_path / "run.html").exists()
