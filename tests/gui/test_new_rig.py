"""The form of `hil new rig`, its questions, and rows of a schedule in the window."""

import tomllib

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QComboBox

from hil.experiment.load import load
from hil.procedures.questions import QUESTIONS
from hil_gui.data import drawn
from hil_gui.new_rig import NewRig

ANSWERS = {"wire": "miga_nanomuscle_704", "cells": "2", "switches": "board", "measures": "USB-6009",
           "cut": "none"}  # fmt: skip


@pytest.fixture
def form(window, qtbot, tmp_path):
    window.new_rig()
    (form,) = window.findChildren(NewRig)
    form.folder.setText(str(tmp_path / "mine"))
    return form


def answer(form, answers):
    for key, text in answers.items():
        field = form.fields[key]
        (field.setCurrentText if isinstance(field, QComboBox) else field.setText)(text)
    form.draw()


def test_the_form_asks_what_the_command_asks_and_says_what_is_missing(form):
    assert [field.accessibleName() for field in form.fields.values()] == [*QUESTIONS.values()]
    assert form.problem.text().startswith("wire: missing: the wire or actuator by name")
    assert not form.make_button.isEnabled()
    answer(form, ANSWERS)
    assert "ground +==[muscle.1]==+ transducer" in form.shown.toPlainText()
    assert form.make_button.isEnabled()
    answer(form, {"switches": "arduino"})
    assert form.problem.text().startswith("switches = 'arduino': nobody states the wire of a miga")
    assert not form.make_button.isEnabled()


@pytest.mark.slow
def test_the_form_makes_the_rig_of_the_command_and_opens_it(form, window, qtbot, tmp_path):
    answer(form, ANSWERS)
    form.make_button.click()
    qtbot.waitUntil(lambda: form.command is None, timeout=300_000)
    assert "simulated: complete" in form.shown.toPlainText()
    rig = (tmp_path / "mine/rig.toml").read_text()
    assert "hil new rig DIR --wire miga_nanomuscle_704 --cells 2 --switches board" in rig
    form.make_button.click()
    assert window.bench.control.path == tmp_path / "mine/first_cell.toml"


@pytest.mark.slow
def test_what_the_command_refuses_is_said_in_the_form(form, qtbot, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/rig.toml").write_text("mine")
    answer(form, ANSWERS)
    form.make_button.click()
    qtbot.waitUntil(lambda: form.command is None, timeout=300_000)
    assert "exists already: choose another folder" in form.problem.text()
    assert form.make_button.isEnabled()


def test_steps_are_rows_to_edit_add_and_remove(window, rigs):
    path = rigs / "first_bench/first_cell.toml"
    assert window.open(path)
    control = window.bench.control
    steps = control.fields["controller.steps"]
    assert control.sets == {}
    filed = load(path).tables.controller.steps
    assert steps.table.rowCount() == len(filed)
    steps.table.item(0, 0).setText("0,7")
    steps.table.item(0, 1).setText("muscle.2; 3")
    control.check()
    said = tomllib.loads(f"steps = {control.sets['controller.steps']}")["steps"]
    assert said[0] == {"t_s": 0.7, "on": ["muscle.2", 3]}
    steps.table.setCurrentCell(len(filed) - 1, 0)
    steps.add()
    assert float(steps.table.item(len(filed), 0).text()) == filed[-1].t_s + 1.0
    control.check()
    assert "switches nothing" in control.problem.text()
    assert steps.property("bad")
    steps.remove()
    control.check()
    assert "switches nothing" not in control.problem.text()


def test_times_and_set_points_are_columns_of_the_same_rows(window, rigs):
    assert window.open(rigs / "miga6/pid.toml")
    control = window.bench.control
    rows = control.fields["reference.t_s"]
    assert rows is control.fields["reference.force_N"]
    assert control.sets == {}
    last = rows.table.rowCount() - 1
    rows.table.setCurrentCell(last, 0)
    rows.add()
    rows.table.item(last + 1, 1).setText("0.25")
    control.check()
    assert not control.problem.text()
    assert control.settings["reference"]["force_N"][-1] == 0.25
    times = control.settings["reference"]["t_s"]
    assert times[-1] == times[-2] + 1.0


def test_a_load_touches_its_wires_and_its_bias_spring_is_drawn_once(window, configs):
    settings = tomllib.loads((configs / "spring_bias/rig.toml").read_text())
    (picture,) = drawn(settings).arrays
    ends = [settings["model"]["points"][end] for end in picture.ends]
    assert picture.sprung == tuple(end.get("spring_N_per_m", 0.0) > 0.0 for end in ends)
    assert any(picture.sprung)
    area = QRectF(0.0, 0.0, 300.0, 200.0)
    at = window.array.places(picture, area)
    spring_px = abs(at[:, 0] - np.array([area.left(), area.right()])[[0, -1]])
    assert spring_px[picture.sprung.index(True)] > 70.0
