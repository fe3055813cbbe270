"""A rig that is no cellular array: channels, outputs, twin, guard, replay and report of it."""

import json

import numpy as np
import pytest
import scipy.signal

import hil
from hil.__main__ import main
from hil.experiment.load import load
from systems.spoiling import commands, overwriting

SLIDER = "slider/steps.toml"


@pytest.fixture(scope="module")
def recording(configs, tmp_path_factory):
    return hil.run(load(configs / SLIDER), out=tmp_path_factory.mktemp("slider") / "run.h5")


def test_the_twin_is_the_exact_response_to_the_commanded_force(recording, configs):
    run = hil.open_run(recording)
    model = load(configs / SLIDER).tables.model
    a, b, c = (np.array(matrix) for matrix in (model.A, model.B, model.C))
    held = scipy.signal.cont2discrete((a, b, c, np.zeros((1, 1))), 0.001)
    # the command of tick k acts from t_k on; the plant moves by the output's bits, the twin by
    # the command itself
    _, expected, _ = scipy.signal.dlsim(held, run.motor_commanded_N.values)
    np.testing.assert_allclose(run.slide_model_m.values, expected[:, 0], atol=1e-12)


def test_the_measured_position_follows_its_set_point(recording):
    run = hil.open_run(recording)
    settled = (run.t_s > 1.8) & (run.t_s < 2.2)
    error_m = (run.slide_measured_m - run.slide_reference_m).values[settled]
    assert np.abs(error_m).max() < 1e-3  # of 50 mm, 1.1 s after a ramp of 0.5 s
    assert run.slide_measured_m.attrs["units"] == "m"
    assert run.motor_commanded_N.attrs == run.motor_commanded_N.attrs | {
        "units": "N",
        "role": "commanded",
    }


def test_a_recording_without_cells_has_no_cell_columns_and_replays(recording, capsys):
    run = hil.open_run(recording)
    assert "cells_commanded" not in run
    assert main(["replay", str(recording)]) == 0
    assert "identical in 4000 rows" in capsys.readouterr().out


def test_what_happens_to_the_plant_after_the_reading_changes_no_command_of_the_tick(configs):
    """The controller sees instruments alone."""
    config = load(configs / SLIDER, ("experiment.duration_s=0.4",))
    spoil = overwriting(lambda s: s.linear.x, lambda s: s.linear.y)
    quiet = commands(config, 400)
    assert len({str(tick) for tick in quiet}) > 10
    assert quiet == commands(config, 400, spoil)


def test_a_position_beyond_its_limit_trips_and_the_motor_rests(configs, tmp_path):
    out = tmp_path / "run.h5"
    sets = ["--set", "guard.signals.slide.max=0.03", "--out", str(out)]
    assert main(["run", str(configs / SLIDER), *sets]) == 3
    run = hil.open_run(out)
    tripped = np.flatnonzero(run.fault_bits.values)[0]
    assert run.slide_measured_m.values[tripped] > 0.03
    assert not run.motor_commanded_N.values[tripped:].any()
    assert run.motor_commanded_N.values[:tripped].any()


def test_the_report_shows_the_signal_and_the_output(recording, tmp_path):
    assert main(["report", str(recording), "--out", str(tmp_path)]) == 0
    page = (tmp_path / "run.html").read_text()
    assert "slide" in page
    assert (tmp_path / "run.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.B=[[0.0], [2.0], [1.0]]", "model.B: has the shape (3, 1)"),
        ("model.A=[[0.0, 1.0], [0.0]]", "model.A: its rows are not equally long"),
        ("devices.daq.channels.slide.signal=slide.v", "the model has no such signal: choose"),
        ("devices.daq.outputs.motor.drives=x", "no such input: choose motor.force_N"),
        ("devices.daq.outputs.motor.terminal=ai0", "'ai0': is used by devices.daq.channels.slide"),
        ("devices.daq.outputs.motor.min=6.0", "must be above min = 6"),
        ("devices.daq.outputs.motor.units_per_V=0.1", "the card's 10 V reach only 1"),
        ("controller.loops.slide.output=moto", "no output of that name: choose motor"),
        (
            'controller.loops={slid={output="motor", k_p=1.0}}',
            "no channel of that name: choose slide",
        ),
        ("reference.signals.slid.kind=sine", "reference.signals.slid"),
        ("reference.signals.slide.value=[0.0, 0.1]", "2 values for 4 times"),
        ("guard.signals.slid.min=0.0", "guard.signals.slid"),
        ("guard.signals.slide.max=0.2", "looser than the rig's 0.15"),
        ("guard.signals.slide.min=-0.2", "looser than the rig's -0.15"),
        ("controller.kind=schedule", "controller.steps: missing"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(change, message, configs, capsys):
    assert main(["check", str(configs / SLIDER), "--set", change]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_what_needs_a_cellular_array_says_so(configs, capsys):
    words = ["model", str(configs / "slider/rig.toml"), "--out", "slider.npz"]
    assert main(words) == 2
    assert "model.kind = 'linear': this needs a cell_array" in capsys.readouterr().err


def test_the_plan_gives_the_bounds_of_every_output(configs, capsys):
    assert main(["check", str(configs / SLIDER), "--energise-plan"]) == 0
    assert "motor_commanded_N between -5 and 5, at most 500 per second" in capsys.readouterr().out


def test_a_model_that_is_no_array_says_what_can_be_driven_and_measured(configs, capsys):
    assert main(["model", str(configs / "slider/rig.toml"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == {
        "kind": "linear",
        "cells": [],
        "inputs": ["motor.force_N"],
        "outputs": {"slide.x_m": 0.0},
    }
    assert main(["model", str(configs / "soft_finger/rig.toml")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("soft_links: 12 cells, 0 inputs, 6 outputs\n")
    assert "  finger.tip_y_m            -0.1\n" in said  # 0.1 m of finger that hangs
