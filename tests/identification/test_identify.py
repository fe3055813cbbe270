"""Intervals hold what they should, and a model that lacks something is called so."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from hil.identification.adequacy import FALSE_ALARM, UNSEEN, Sampling, judge
from hil.identification.identify import Options, identify
from hil.identification.noise import Noise, noise_of
from hil.identification.page import as_text
from hil.identification.runs import Reading
from hil_studies.identification.rigs import DRAWN, TABLES, make_rig
from hil_studies.identification.study import (
    WIDTH_MAX,
    Values,
    Work,
    coverage_range,
    run,
    run_rigs,
    trial,
)

N_RIGS = 6


@pytest.fixture(scope="module")
def outcome():
    return run_rigs([Work(21, i) for i in range(N_RIGS)])


def test_the_range_of_200_is_the_one_asked_for():
    assert coverage_range(200) == (182, 197)


@pytest.mark.slow
def test_stated_intervals_hold_the_truth_as_often_as_they_say(outcome):
    # At 95 % fewer than 3 of 6 have a chance below 1e-4.
    least = int(scipy.stats.binom.ppf(1e-4, N_RIGS, 0.95))
    assert (outcome.inside.sum(axis=0) >= least).all()


@pytest.mark.slow
def test_intervals_are_no_wider_than_the_information_allows(outcome):
    assert outcome.ratio.max() <= WIDTH_MAX
    # Nor narrower than the noise, which 5000 readings tell to 1 % (4 standard errors).
    assert outcome.ratio.min() >= 1.0 - 4.0 / np.sqrt(2.0 * 5000)


@pytest.mark.slow
def test_errors_are_those_of_the_least_variance(outcome):
    # Chi-squared of 6 errors each; the bounds have a chance of 1e-4 either way.
    low, high = scipy.stats.chi2.ppf((1e-4, 1.0 - 1e-4), N_RIGS)
    squares = (outcome.error**2).sum(axis=0)
    assert ((low < squares) & (squares < high)).all()


@pytest.mark.slow
def test_the_bootstrap_agrees_with_the_information(outcome):
    found = trial(make_rig(21, 0), 100)
    for p in found.parameters:
        ratio = np.log(p.resampled[1] / p.resampled[0]) / np.log(p.fisher[1] / p.fisher[0])
        # A quantile of 100 draws at 2.5 % is off by 0.27 standard deviations (one standard error).
        assert ratio == pytest.approx(1.0, abs=0.3)


@pytest.mark.slow
def test_a_model_that_lacks_nothing_is_seldom_called_lacking(outcome):
    assert outcome.called.sum() <= scipy.stats.binom.ppf(1.0 - 1e-4, N_RIGS, FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["creep", "unlike masses"])
def test_a_model_that_lacks_an_effect_is_called_so(effect):
    found = trial(make_rig(12, 0, effect))
    assert not found.adequacy.adequate
    assert "THE MODEL LACKS AN EFFECT" in found.adequacy.sentence()


@pytest.mark.slow
def test_a_wrong_slope_is_taken_up_by_the_force_and_its_residual_stays_noise():
    """What the report states as not visible: the model's force is proportional to force_on_N."""
    rig = make_rig(21, 1)
    wrong = replace(rig.data, measured=1.1 * rig.data.measured)
    right, found = (identify(TABLES, [d], Options(bootstrap=0)) for d in (rig.data, wrong))
    of, off = (
        {p.key: p.value for p in f.parameters}["arrays.muscle.force_on_N"] for f in (right, found)
    )
    assert off / of == pytest.approx(1.1, rel=1e-4)
    assert right.adequacy.adequate
    assert found.adequacy.adequate
    assert UNSEEN in as_text(found)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("ar", [0.8, -0.5])
def test_a_force_is_as_uncertain_as_the_slope_whatever_the_noise(ar):
    """The model's force is proportional to force_on_N: a slope off by 1e-3 moves it by 1e-3."""
    data = make_rig(21, 0, ar=ar).data
    data = replace(data, reading=replace(data.reading, slope_uncertainty=1e-3))
    found = identify(TABLES, [data], Options(free=("force_on_N",), bootstrap=0, weak=False))
    [force] = found.parameters
    of_slope = np.sqrt(force.relative_combined**2 - force.relative**2)
    assert of_slope == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.slow
def test_masses_that_are_not_alike_are_found_when_they_are_asked_for():
    rig = make_rig(12, 0, "unlike masses")
    found = identify(TABLES, [rig.data], Options(each=("mass_kg",), bootstrap=0))
    assert found.adequacy.adequate
    mass = {key: value for key, value in found.held.items() if "mass_kg" in key}
    mass |= {p.key: p.value for p in found.parameters if "mass_kg" in p.key}
    m = [mass[f"arrays.muscle.mass_kg.{i}"] for i in (2, 3, 4)]
    # The scale of masses is not told; their ratio is: 1.005 on either side of the middle.
    assert m[0] / m[1] == pytest.approx(1.005, rel=5e-4)
    assert m[2] / m[1] == pytest.approx(1.005, rel=5e-4)


@pytest.mark.slow
def test_two_runs_say_more_than_one():
    rig = make_rig(21, 3)
    one = identify(TABLES, [rig.data], Options(bootstrap=0))
    # The same array, other noise: twice the information.
    again = np.random.default_rng(5).permutation(one.fit.residual_N[0])
    other = type(rig.data)(
        **(vars(rig.data) | {"measured": rig.data.measured - one.fit.residual_N[0] + again})
    )
    two = identify(TABLES, [rig.data, other], Options(bootstrap=0))
    for a, b in zip(one.parameters, two.parameters, strict=True):
        assert b.relative / a.relative == pytest.approx(np.sqrt(0.5), rel=0.05)


def test_a_rest_tells_white_noise_from_coloured():
    white, coloured = make_rig(21, 0), make_rig(21, 0, ar=0.8)
    assert not len(noise_of([white.data]).ar)
    found = noise_of([coloured.data])
    assert found.source == "rest"
    # Standard error of an autoregression's coefficient: sqrt((1 - a^2) / n), 4 of them.
    assert found.ar[0] + found.ar[1:].sum() == pytest.approx(0.8, abs=4 * 0.6 / np.sqrt(1001))
    # Its size: relative standard error sqrt(1 / 2n) of the innovations.
    assert found.rms_N == pytest.approx(coloured.noise.rms_N, rel=4 / np.sqrt(2 * 1001))


def test_lines_of_an_instrument_that_is_slower_than_rows_have_their_own_frequency():
    run = make_rig(21, 0).data
    stay = run.rows % 4 == 0
    hum_N = 0.05 * np.sin(2.0 * np.pi * 50.0 * run.t_s[stay])
    slow = replace(run, rows=run.rows[stay], measured=run.measured[stay] + hum_N)
    assert noise_of([slow]).lines_Hz == pytest.approx([50.0], abs=0.1)


def test_a_rest_on_one_code_says_nothing_of_the_noise():
    run = make_rig(21, 0).data
    coarse = type(run)(
        **vars(run) | {"reading": Reading(step_N=0.02, noise_rms_N=0.001),
                       "measured": 0.02 * np.round(run.measured / 0.02)}
    )  # fmt: skip
    found = noise_of([coarse])
    assert found.source == "channel"
    assert found.rms_N == pytest.approx(np.hypot(0.001, 0.02 / np.sqrt(12.0)))


def test_readings_without_noise_or_steps_say_nothing_of_the_noise():
    run = make_rig(21, 0).data
    silent = replace(run, reading=Reading(), measured=np.zeros_like(run.measured))
    assert np.isnan(noise_of([silent]).rms_N)
    stated = replace(silent, reading=Reading(noise_rms_N=0.0))
    assert np.isnan(noise_of([stated]).rms_N)


@pytest.mark.slow
def test_coloured_noise_is_weighed_by_its_filter():
    outcome = run_rigs([Work(22, i, ar=0.8) for i in range(2)])
    # 8 intervals; a rig's four are told by one noise, so at most one rig may be out of luck.
    assert outcome.inside.sum() >= 4
    # The noise's slow part is told by a rest of 1001 readings: to 13 % (one standard error).
    assert np.abs(np.log(outcome.ratio)).max() <= 3 * 0.13


@pytest.mark.slow
def test_the_rate_of_false_alarms_is_the_stated_one():
    """Of noise alone, known from a rest of its own: no fit, so that thousands are cheap."""
    rng, n_times, n, n_rest = np.random.default_rng(1), 1000, 1000, 1000
    alarms = 0
    for _ in range(n_times):
        rest = rng.standard_normal(n_rest)
        noise = Noise(float(rest.std(ddof=1)), n_rest=n_rest, source="rest")
        alarms += not judge([rng.standard_normal(n)], noise, 1, Sampling(0.001)).adequate
    # No more than stated; Bonferroni may make it fewer. 4 standard errors above.
    most = FALSE_ALARM + 4 * np.sqrt(FALSE_ALARM / n_times)
    assert alarms / n_times <= most


@pytest.mark.slow
def test_two_hundred_rigs(tmp_path):
    results = run(tmp_path, Values())
    for check in results["checks"]:
        print(f"{check['what']}: {check['value']:.4g} ({check['expected']})")
    print(results["called_lacking"])
    assert [c["what"] for c in results["checks"] if not c["agrees"]] == []
    assert set(results["called_lacking"].values()) == {Values().lacking}
    assert len(results["checks"]) == 2 * (2 * len(DRAWN) + 1) + len(DRAWN)
