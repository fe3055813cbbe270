"""Trials and the full-information optimum of the recruitment study, on the smallest array."""

import json
from math import inf

import numpy as np
import pytest

from hil.errors import ConfigError, ModelError
from hil.mechanics.sma.wire import wire_laws
from hil.runs.study import run_study
from hil.systems.array.model.system import ArraySystem
from hil_studies.recruitment import failures as study_failures
from hil_studies.recruitment import law as study_law
from hil_studies.recruitment import page as study_page
from hil_studies.recruitment import plant as plants
from hil_studies.recruitment import scores as study_scores
from hil_studies.recruitment import study, trial
from hil_studies.recruitment.commission import commission, commissioned_plant, seconds
from hil_studies.recruitment.controllers import (
    EXACT,
    OLD_LAW,
    UNTOLD,
    control_of,
    names_of,
    size_principle,
)
from hil_studies.recruitment.optimum import GRID_S, least_error
from hil_studies.recruitment.tuning import AXES, Axis, tune
from hil_studies.recruitment.values import (
    WEAR_WEIGHT_S,
    Optimum,
    Score,
    Start,
    Values,
)

SETTINGS = {"PID": (0.4, 0.8, 0.2), "broadcast, LMS": (0.2, 1.5, 0.0),
            "size principle": (0.8, 0.1, 0.1), "preview": (1.0, 0.2, 0.0, 0.1),
            UNTOLD: (3.0, 2.0, 4), "optimal": (0.1, 5, 30)}  # fmt: skip
TOTAL_N = plants.nominal(6).total_N


def rmse(name, kind="reach", seed=1):
    follow = plants.reference(kind, TOTAL_N)
    truth, know = commissioned_plant(6, seed)
    know = plants.nominal(6) if name == UNTOLD else know
    control = control_of(know, name, SETTINGS[name], follow, seed)
    return trial.run(know, control, truth, follow, seed)


def test_a_trial_repeats_bit_for_bit():
    first, again = (rmse("broadcast, LMS") for _ in range(2))
    assert np.array_equal(first.force_N, again.force_N)


@pytest.mark.slow
def test_no_controller_beats_the_full_information_optimum():
    follow = plants.reference("reach", TOTAL_N)
    truth, _ = commissioned_plant(6, 1)
    blocks = round(16.0 / GRID_S)
    best_N, on = least_error(truth, follow, np.zeros((blocks, 6), dtype=np.uint8), sweeps=1)
    assert on.shape == (blocks, 6)
    for name in SETTINGS:
        assert rmse(name).rmse_N > best_N


@pytest.mark.slow
def test_planning_on_commissioned_wires_halves_the_error_of_a_nominal_sigmoid():
    """What commissioning is for: the plan's timing, by which the other is 0.2 s early or late."""
    assert rmse("optimal").rmse_N < 0.75 * rmse(UNTOLD).rmse_N


@pytest.mark.slow
def test_the_optimum_is_simulated_on_the_very_plant():
    follow, (truth, _) = plants.reference("steps", TOTAL_N), commissioned_plant(6, 2)
    sub = round(GRID_S / plants.PERIOD_S)
    start = np.zeros((round(16.0 / GRID_S), 6), dtype=np.uint8)
    best_N, on = least_error(truth, follow, start, sweeps=1)
    system = ArraySystem(truth.model, truth.activation, plants.PERIOD_S)
    output, error = truth.model.outputs.index(plants.RIGHT), []
    for k in range(1600):
        system.step(on[k // sub].copy())
        error.append(follow.at((k + 1) * plants.PERIOD_S) - system.y[output])
    assert best_N == pytest.approx(np.sqrt(np.mean(np.square(error))), rel=1e-12)


def test_the_plant_is_off_by_no_more_than_it_says():
    for seed in range(20):
        first = plants.plant(6, seed)
        F_N = np.array([a.force_on_N for a in first.activation])
        assert np.abs(F_N / plants.FORCE_ON_N - 1.0).max() <= plants.OFF
        then = plants.later(first, seed)
        change = np.array([a.force_on_N for a in then.activation]) / F_N - 1.0
        assert 0.0 < np.abs(change).max() <= 0.02
        air_C = {a.wire.ambient_C for a in then.activation}
        assert len(air_C) == 1
        assert abs(air_C.pop() - 25.0) <= 2.0
        assert len(set(plants.dead_cells(6, seed, 2))) == 2


def test_commissioning_finds_what_every_cell_gives():
    """Against the plant's own static gains; 2 mN of noise, a zero, a delay not told."""
    truth = plants.plant(6, 4)
    know = commission(truth, 4)
    F_N = np.array([a.force_on_N for a in truth.activation])
    gains_N = truth.model.static_gain(plants.RIGHT) * F_N
    assert know.static_gains_N == pytest.approx(gains_N, rel=0.02)
    assert abs(know.zero_N) <= plants.ZERO_N + 0.001
    assert seconds(6) == 37.0


@pytest.mark.slow
def test_commissioning_by_the_law_of_stress_finds_what_every_cell_gives():
    """Against the plant's static gains, with the damper that the law needs."""
    truth = plants.plant(6, 4, "sma")
    F_N = np.array([a.force_on_N for a in truth.activation])
    gains_N = truth.model.static_gain(plants.RIGHT) * F_N
    assert commission(truth, 4, "sma").static_gains_N == pytest.approx(gains_N, rel=0.04)


@pytest.mark.slow
def test_planning_by_the_law_of_the_wires_leaves_less_than_by_the_one_without_stress():
    left = [
        study.one(study.Job(6, 0.0, name, SETTINGS["optimal"], "reach", 2, "sma")).error
        for name in ("optimal", "optimal" + OLD_LAW)
    ]
    assert left[0] < 0.75 * left[1]


def test_a_break_leaves_the_wires_under_stress_as_they_are():
    """Only the force through the broken cell is gone; temperatures and tensions go on."""
    truth = plants.plant(6, 4, "sma")
    system = ArraySystem(truth.model, truth.activation, plants.PERIOD_S)
    on = np.ones(6, dtype=np.uint8)
    for _ in range(80):
        system.step(on)
    then = trial.without(system, 2)
    whole = np.arange(6) != 2
    before = system.wires.T_C.copy(), system.loaded.tension_N.copy()
    then.step(on)
    assert then.wires.T_C[whole] == pytest.approx(before[0][whole], abs=3.0)
    assert then.loaded.tension_N[whole] == pytest.approx(before[1][whole], rel=0.2)
    assert then.wires.T_C.min() > 60.0


def test_every_told_controller_has_a_row_by_either_law():
    assert names_of("thermal", ("PID", UNTOLD)) == ("PID", UNTOLD)
    assert names_of("sma", ("PID", UNTOLD)) == ("PID", "PID" + OLD_LAW)


def test_the_cost_of_a_law_has_the_interval_of_its_pairs():
    """Of differences 1, 2, 3 %: mean 2 %, standard error 1 / sqrt(3) %, Student's t 4.303."""
    judged = {
        Start(6, 0.0, name, True): [Score(error, 1.0, 1.0, 0.0, 0.0) for error in errors]
        for name, errors in (("PID", (0.10, 0.20, 0.30)), ("PID" + OLD_LAW, (0.11, 0.22, 0.33)))
    }
    [found] = study_law.differences(judged).values()
    assert found["lost"] == pytest.approx(0.02)
    assert found["high"] - found["lost"] == pytest.approx(0.01 * 4.3027 / np.sqrt(3.0), rel=1e-4)
    assert found["worse_on"] == 3


def test_an_unknown_controller_is_named_with_those_there_are():
    with pytest.raises(ConfigError, match=r"no controller 'PDI': choose PID, broadcast"):
        run_study("recruitment", ["controllers=['PDI']"], None)


def test_a_lead_in_ends_where_the_set_point_begins():
    for kind in plants.SET_POINTS:
        follow = plants.reference(kind, TOTAL_N)
        led = plants.Led(follow)
        ticks = plants.PERIOD_S * np.arange(round(plants.LEAD_S / plants.PERIOD_S))
        levels = np.array([led.at(t) for t in ticks])
        assert levels[0] == 0.0
        assert levels[ticks > plants.LEAD_S - 0.99] == pytest.approx(follow.at(0.0))
        # the steepest slope of a movement of least jerk: 15/8 of its mean
        steepest = 15.0 / 8.0 * follow.at(0.0) / (plants.LEAD_S - 1.0) * plants.PERIOD_S
        assert np.abs(np.diff(levels)).max() <= steepest * (1.0 + 1e-6)
        for t_s in (0.0, 1.0, 5.0, 12.34):
            assert led.at(t_s + plants.LEAD_S) == pytest.approx(follow.at(t_s), abs=1e-9)
        assert led.extremes(16.0)[0] == 0.0


class Scripted:
    """All cells on in an interval of time."""

    def __init__(self, from_s, to_s):
        self.between = from_s, to_s

    def step(self, t_s, reference_N, force_N, estimate, on):
        on[:] = self.between[0] <= t_s < self.between[1]


def test_a_wire_that_is_heated_and_cooled_through_wears_by_one_cycle():
    """And what happens before the count starts is not in it."""
    truth, know = commissioned_plant(6, 1)
    follow = plants.reference("steps", TOTAL_N)

    def figures(from_s, to_s, counted_from_s):
        return trial.run(
            know, Scripted(from_s, to_s), truth, follow, 1, duration_s=16.0,
            counted_from_s=counted_from_s, dead=(2,),
        )  # fmt: skip

    once = figures(4.5, 8.5, 4.0)
    assert 12.0 * once.wear_per_s == pytest.approx(5.0 / 6.0, abs=0.01)  # the dead cell does not
    assert 12.0 * once.switches_per_s == pytest.approx(12.0)
    error = once.force_N - once.reference_N
    assert len(error) == 1200
    assert once.reference_N[0] == pytest.approx(follow.at(4.0))
    assert once.rmse_N == pytest.approx(np.sqrt(np.mean(error**2)))
    half = figures(0.5, 4.2, 4.0)
    assert 12.0 * half.wear_per_s == pytest.approx(2.5 / 6.0, abs=0.01)
    assert 12.0 * half.switches_per_s == pytest.approx(6.0)
    assert half.energy_J < 0.1 * once.energy_J
    assert figures(0.5, 1.5, 8.0).wear_per_s == 0.0


def judged_by(ratios, late):
    """Scores of one controller on plants whose optimum is 1 %."""
    pairs = zip(ratios, late, strict=True)
    rows = [Score(0.01 * a, 1.0, 1.0, 0.01 * b, 0.0) for a, b in pairs]
    optima = {(6, seed): Optimum(0.01, 0.01, 0.01, 0.0) for seed in range(len(rows))}
    return {Start(6, 0.0, "optimal", led): rows for led in (True, False)}, optima


def test_what_is_proven_is_an_interval_over_plants():
    """Ratios e^0, e^0.1, e^0.2: mean e^0.1, and e^(0.1 ± 4.303 x 0.1 / sqrt(3))."""
    judged, optima = judged_by(np.exp([0.0, 0.1, 0.2]), [2.0, 3.0, 4.0])
    found = study_scores.ratios(judged, optima, {})[6, "optimal"]
    half = 0.1 * 4.3027 / np.sqrt(3.0)
    for what in (study_scores.WHOLE, study_scores.LED):
        assert found[what][:3] == pytest.approx(np.exp([0.1, 0.1 - half, 0.1 + half]), rel=1e-5)
    assert [found[f"after 2 s, {kind}"].mean for kind in plants.SET_POINTS] == pytest.approx(
        [2.0, 3.0, 4.0]
    )


@pytest.mark.parametrize(
    ("ratios", "over_bound", "verdict"),
    [
        ((1.01, 1.02, 1.03), (1.05, 1.06, 1.07), "proven"),
        ((1.01, 1.02, 1.03), (1.05, 1.06, 1.15), "open"),  # the mean is 1.09, its interval wider
        ((1.01, 1.02, 1.03), (1.2, 1.21, 1.22), "open"),
        ((1.20, 1.21, 1.22), (1.3, 1.31, 1.32), "refuted"),
    ],
)
def test_the_verdict_needs_the_whole_interval(ratios, over_bound, verdict):
    judged, optima = judged_by(ratios, (1.1, 1.15, 1.19))
    bounds = {
        (6, seed): 0.01 * a / b for seed, (a, b) in enumerate(zip(ratios, over_bound, strict=True))
    }
    found = study_scores.ratios(judged, optima, bounds)
    [sentence, _] = study_scores.notes(found, optima, bounds)
    assert f": {verdict}. After 2 s" in sentence
    assert sentence.endswith("within 1.2: not reached.")


def test_one_plant_proves_nothing():
    assert study_scores.mean_of([1.0])[1:3] == (-np.inf, np.inf)


def test_tuning_pays_for_wear():
    """The set points' own wear, 0.04 cycles a second, costs one per cent of full force."""
    totals = []
    for kind in plants.SET_POINTS:
        follow = plants.reference(kind, 1.0)
        level = [0.0] + [follow.at(t) for t in np.arange(0.0, 16.0, plants.PERIOD_S)]
        totals.append(0.5 * np.abs(np.diff(level)).sum() / 16.0)
    assert np.mean(totals) == pytest.approx(0.04, rel=0.05)
    assert 0.04 * WEAR_WEIGHT_S == pytest.approx(0.01)
    assert Score(0.05, 1.0, 1.0, 0.0, 0.04).cost(WEAR_WEIGHT_S) == pytest.approx(0.06)


def test_the_exact_plant_runs_with_the_settings_of_optimal():
    with pytest.raises(ConfigError, match=r"'optimal, exact plant' runs .*: add 'optimal'"):
        run_study("recruitment", ["controllers=['PID', 'optimal, exact plant']"], None)
    values = Values(cells=(6, 14), optimum_cells=(6,))
    assert EXACT in values.names_for(6)
    assert EXACT not in values.names_for(14)


def test_preview_leaves_less_than_half_of_the_error_of_a_pid():
    assert rmse("preview").rmse_N < 0.5 * rmse("PID").rmse_N


def test_failures_of_wires_under_stress_are_drawn_for_both_laws():
    names = ["size principle", "size principle, law without stress"]
    row = {"n_cells": 6, "fails": "dies", "n": 4, "delays_s": [0.5, 2.0, 8.0, inf]}
    rows = [row | {"controller": name, "swaps": s} for name in names for s in (False, True)]
    rows.append(rows[0] | {"fails": "breaks"})  # has no place among the deaths
    (axis,) = study_page._draw_failures(rows).axes
    assert [text.get_text() for text in axis.get_legend().get_texts()] == names
    curves = [line for line in axis.lines if line.get_drawstyle() == "steps-post"]
    assert len(curves) == 4
    for curve in curves:  # of four cells three were found
        assert curve.get_xdata()[1:-1].tolist() == [0.5, 2.0, 8.0]
        assert curve.get_ydata().tolist() == [0.0, 25.0, 50.0, 75.0, 75.0]


def test_tuning_widens_its_grid_until_the_optimum_is_inside():
    """A bowl in the logarithms; its lowest grid point is the nearest to (51.2, 0.1, 0)."""
    axes = (
        Axis(0.0, 0.1, 2.0, start=1),
        Axis(0.0, 0.1, 2.0, start=4),
        Axis(0.0, 1.0, 2.0, start=2),
    )
    tried = []

    def errors(settings):
        tried.extend(settings)
        return [abs(np.log2((a + 1e-9) / 50.0)) + abs(b - 0.1) + c for a, b, c in settings]

    assert tune("any", axes, errors) == pytest.approx((51.2, 0.1, 0.0))
    assert max(a for a, _, _ in tried) == pytest.approx(102.4)
    assert min(b for _, b, _ in tried) == 0.0
    assert len(tried) == len(set(tried))


def test_a_tuned_value_at_the_edge_of_its_grid_is_an_error():
    axes = (Axis(0.0, 0.1, 2.0, start=1),)
    with pytest.raises(ModelError, match=r"'PID': the best setting \(.*\) is at the edge"):
        tune("PID", axes, lambda settings: [-a for (a,) in settings])


def test_a_setting_whose_neighbours_are_all_known_is_found_without_further_trials():
    """Of 1 and 0 the search has tried both when it comes to 0."""
    asked = []

    def errors(settings):
        asked.append(len(settings))
        return [a for (a,) in settings]

    assert tune("any", (Axis(0.0, 1.0, 2.0, start=1, top=1.0),), errors) == (0.0,)
    assert asked == [1, 1]


def test_an_axis_ends_only_where_its_parameter_does():
    hysteresis = Axis(0.0, 0.05, 2.0, start=2, top=0.5)
    assert hysteresis.neighbours(0) == [1]
    assert [hysteresis.value(i) for i in range(6)] == pytest.approx([0, 0.05, 0.1, 0.2, 0.4, 0.5])
    assert hysteresis.neighbours(5) == [4]
    assert Axis(0.0, 0.1, 2.0, start=2).neighbours(30) == [29, 31]
    for axes in AXES.values():
        assert all(axis.limit <= axis.value(axis.start) <= axis.top for axis in axes)


def test_groups_are_ordered_by_what_a_cell_adds():
    know = plants.nominal(6)
    law = size_principle(know, 0.0, 0.1, 0.1).recruiter.law
    assert np.all(np.diff(know.static_gains_N[law.order]) >= -1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how"),
    [("optimal", study_failures.DIES), ("size principle", study_failures.BREAKS)],
)
def test_a_cell_of_commissioned_wires_that_fails_is_named_by_force_alone(name, how):
    named, wrong, false, *_ = study_failures.one(
        (6, name, SETTINGS[name], 50_001, True, how, "thermal")
    )
    assert named < study_failures.WITHIN_S
    assert (wrong, false) == (0, 0)


def test_commissioning_tells_slow_wires_from_late_readings():
    """Heating and cooling against the plant's own; one pulse alone leaves them 23 % uncertain."""
    truth = plants.plant(6, 4)
    know = commission(truth, 4)
    for column in (2, 4):  # convection and power, over the heat capacity and what enters with it
        own, found = (wire_laws([a.wire for a in x.activation]) for x in (truth, know))
        reach = [law[:, 7] - law[:, 3] if column == 4 else 1.0 for law in (own, found)]
        rates = [law[:, column] / law[:, 0] / r for law, r in zip((own, found), reach, strict=True)]
        assert rates[1] == pytest.approx(rates[0], rel=0.06)


@pytest.mark.slow
def test_the_study_runs_and_says_what_was_reached(tmp_path, monkeypatch):
    """With one setting a controller and short waits, so that it takes seconds."""
    names = ("PID", UNTOLD, "optimal", EXACT)
    fixed = {name: tuple(Axis(x, x, 1.0, 0) for x in SETTINGS[name]) for name in names[:-1]}
    monkeypatch.setattr(study, "AXES", fixed)
    monkeypatch.setattr(study_failures, "FAILURE_CONTROLLERS", ("optimal",))
    monkeypatch.setattr(study, "SWEEPS", {6: 1})
    monkeypatch.setattr(study, "BOUND_ROUNDS", 10)
    monkeypatch.setattr(study_failures, "FIRST_S", 3.0)
    monkeypatch.setattr(study_failures, "HEALTHY_S", 3.0)
    sets = [
        "cells=[6]",
        "seeds=3",
        "failure_seeds=1",
        "healthy_hours=0.001",
        "workers=1",
        "dead_percent=[0.0]",
        "bound_seeds=2",
        "tuning_seeds=1",
        f"controllers={list(names)}",
    ]
    found = run_study("recruitment", sets, tmp_path)
    stored = json.loads((tmp_path / "results.json").read_text())
    assert stored["ratios"] == found["ratios"]
    assert set(found["ratios"]) == {f"6 cells, {name}" for name in names}
    for figure in found["figures"]:
        assert (tmp_path / figure["file"]).stat().st_size > 10_000
    assert any("Within 1.1 of the optimum" in note for note in found["notes"])
    assert any("above the lower bound" in note for note in found["notes"])
    assert stored["bound"].keys() <= stored["optimum"].keys()
    for plant, least in stored["bound"].items():
        assert 0.0 < least < stored["optimum"][plant]["error"]
    rows = stored["judged"]["6 cells, 0 % dead, PID, with lead-in"]
    assert [len(row) for row in rows] == [len(stored["judged_columns"])] * 3
