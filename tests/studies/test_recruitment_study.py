"""Trials and the full-information optimum of the recruitment study, on the smallest array."""

import json

import numpy as np
import pytest

from hil.control.groups import GroupRules
from hil.models.array_system import ArraySystem
from hil.studies import recruitment
from hil.studies import recruitment_trial as trial
from hil.studies.recruitment import control_of
from hil.studies.recruitment_optimum import GRID_S, least_error
from hil.studies.run import run_study

SETTINGS = {"PID": (0.4, 0.8, 0.2), "broadcast, LMS": (0.2, 1.5, 0.0),
            "size principle": (0.8, 0.1, 0.1), "optimal": (3.0, 2.0, 4)}  # fmt: skip


@pytest.fixture(scope="module")
def know():
    return trial.told(6)


def rmse(know, name, kind="reach", seed=1):
    follow = trial.reference(kind, know.total_N)
    control = control_of(6, name, SETTINGS[name], follow, seed)
    return trial.run(6, control, trial.plant(6, seed, 0), follow, seed)


def test_a_trial_repeats_bit_for_bit(know):
    first, again = (rmse(know, "broadcast, LMS") for _ in range(2))
    assert np.array_equal(first.force_N, again.force_N)


def test_no_controller_beats_the_full_information_optimum(know):
    follow, truth = trial.reference("reach", know.total_N), trial.plant(6, 1, 0)
    blocks = round(16.0 / GRID_S)
    best_N, on = least_error(truth, follow, np.zeros((blocks, 6), dtype=np.uint8))
    assert on.shape == (blocks, 6)
    for name in SETTINGS:
        assert rmse(know, name).rmse_N > best_N


def test_the_optimum_is_simulated_on_the_very_plant(know):
    follow, truth = trial.reference("steps", know.total_N), trial.plant(6, 2, 1)
    best_N, on = least_error(truth, follow, np.zeros((160, 6), dtype=np.uint8), sweeps=1)
    system = ArraySystem(truth.model, truth.activation, trial.PERIOD_S)
    output, error = truth.model.outputs.index(trial.RIGHT), []
    for k in range(1600):
        drive = on[k // 10].copy()
        drive[list(truth.dead)] = 0
        system.step(drive)
        error.append(follow.at((k + 1) * trial.PERIOD_S) - system.y[output])
    assert best_N == pytest.approx(np.sqrt(np.mean(np.square(error))), rel=1e-12)


def test_the_plant_is_off_by_no_more_than_it_says(know):
    for seed in range(20):
        truth = trial.plant(6, seed, 2)
        F_N = np.array([a.force_on_N for a in truth.activation])
        assert np.abs(F_N / trial.FORCE_ON_N - 1.0).max() <= trial.OFF
        assert len(truth.dead) == 2


def test_groups_are_ordered_by_what_a_cell_adds(know):
    law = trial.size_principle(know, GroupRules()).recruiter.law
    assert np.all(np.diff(know.shares_N[law.order]) >= -1e-9)


def test_the_study_runs_and_says_what_was_not_reached(tmp_path, monkeypatch):
    """With one setting a controller and short waits, so that it takes seconds."""
    few = {name: settings[:1] for name, settings in recruitment.SETTINGS.items()}
    monkeypatch.setattr(recruitment, "SETTINGS", few)
    monkeypatch.setattr(recruitment, "CONTROLLERS", tuple(SETTINGS))
    monkeypatch.setattr(recruitment, "FAILURE_CONTROLLERS", ("optimal",))
    monkeypatch.setattr(recruitment, "SWEEPS", {6: 1})
    monkeypatch.setattr(recruitment, "DIES_S", 4.0)
    monkeypatch.setattr(recruitment, "WATCHED_S", 4.0)
    sets = ["cells=[6]", "seeds=3", "failure_seeds=1", "healthy_hours=0.001", "workers=1",
            "dead_percent=[0.0]"]  # fmt: skip
    found = run_study("recruitment", sets, tmp_path)
    stored = json.loads((tmp_path / "results.json").read_text())
    assert stored["ratio_to_optimum"] == found["ratio_to_optimum"]
    assert set(found["ratio_to_optimum"]) == {f"6 cells, {name}" for name in SETTINGS}
    for figure in found["figures"]:
        assert (tmp_path / figure["file"]).stat().st_size > 10_000
    assert any("of the optimum: not reached" in note for note in found["notes"])
