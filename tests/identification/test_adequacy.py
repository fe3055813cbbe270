"""Noise that is known from the rest raises no alarm; what a model lacks does, in the same noise."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from scipy.signal import lfilter

from hil.identification import adequacy
from hil.identification.adequacy import FALSE_ALARM, Sampling, judge
from hil.identification.fit import Fit
from hil.identification.growth import Growth, growth_of
from hil.identification.identify import Options, identify
from hil.identification.lines import FITTED, find_lines, lines_in
from hil.identification.noise import Noise, noise_at_rest
from hil.identification.page import as_text
from hil_studies.identification.rigs import TABLES, make_rig

PERIOD_S, SIGMA_N = 0.001, 0.002
N_REST, N_MOVING = 1000, 4000
N = N_REST + N_MOVING
T_S = PERIOD_S * np.arange(N)


def force(rng):
    """A force that jumps every 0.1 s after the rest, and the readings apart from the jumps."""
    force_N = np.repeat(rng.uniform(0.0, 8.0, N // 100), 100)
    force_N[:N_REST] = 0.0
    return force_N, np.arange(N) % 100 > 5


def white(rng, force_N):
    return SIGMA_N * rng.standard_normal(N)


def growing(rng, force_N):
    return white(rng, force_N) * np.sqrt(1.0 + (0.3 * force_N) ** 2)


def hum(rng):
    f_Hz, phase = 50.0 + rng.uniform(-0.1, 0.1), rng.uniform(0.0, 6.28)
    first, third = np.sin(2.0 * np.pi * f_Hz * T_S + phase), np.sin(6.0 * np.pi * f_Hz * T_S)
    return 1.5 * SIGMA_N * (first + 0.5 * third)


def humming(rng, force_N):
    return white(rng, force_N) + hum(rng)


def drifting(rng, force_N):
    return lfilter([1.0], [1.0, -0.8], SIGMA_N * rng.standard_normal(N + 200))[200:]


def all_of_them(rng, force_N):
    return drifting(rng, force_N) * np.sqrt(1.0 + (0.3 * force_N) ** 2) + hum(rng)


KINDS = [white, growing, humming, drifting, all_of_them]


def judged(residual_N, force_N, quiet):
    """The steps of `identify` for a residual whose fit is known."""
    noise = noise_at_rest([residual_N[:N_REST] - residual_N[:N_REST].mean()], PERIOD_S)
    left = residual_N - lines_in(residual_N, T_S, noise.lines_Hz, noise.resolution_Hz)
    moving, at = left[N_REST:], force_N[N_REST:]
    p = len(noise.ar)
    growth = growth_of([noise.whitened(moving)], [at[p:]], [quiet[N_REST + p :]], noise)
    n_fitted = 1 + FITTED * len(noise.lines_Hz)
    return judge([moving - moving.mean()], noise, n_fitted, Sampling(PERIOD_S), growth, [at])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_noise_that_the_rest_shows_or_that_grows_with_the_force_is_no_missing_effect(kind):
    rng, alarms = np.random.default_rng(3), 0
    n_times = 10 if kind in (humming, all_of_them) else 30
    for _ in range(n_times):
        force_N, quiet = force(rng)
        alarms += not judged(kind(rng, force_N), force_N, quiet).adequate
    assert alarms <= scipy.stats.binom.ppf(1.0 - 1e-4, n_times, FALSE_ALARM)


def hysteresis(force_N):
    """2 % of the force follow with a play of half its range."""
    play = np.zeros(N)
    for k in range(1, N):
        play[k] = min(max(play[k - 1], force_N[k] - 2.0), force_N[k] + 2.0)
    return 0.02 * (play - force_N)


def ringing(force_N):
    """A mode at 30 Hz with a wrong mass: it rings after every jump, by 1 % of it."""
    r, w = np.exp(-0.02), 2.0 * np.pi * 30.0 * PERIOD_S
    jumps = np.diff(force_N, prepend=0.0)
    return 0.01 * lfilter([0.0, np.sin(w)], [1.0, -2.0 * r * np.cos(w), r * r], jumps)


def late_hum(force_N):
    """A line that is not there at rest."""
    return 2.0 * SIGMA_N * np.sin(2.0 * np.pi * 50.0 * T_S) * (force_N > 0.0)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("effect", [hysteresis, ringing], ids=lambda e: e.__name__)
def test_an_effect_is_found_in_each_of_these_noises(kind, effect):
    rng = np.random.default_rng(4)
    for _ in range(3):
        force_N, quiet = force(rng)
        assert not judged(kind(rng, force_N) + effect(force_N), force_N, quiet).adequate


def test_a_line_that_the_rest_does_not_show_is_a_missing_effect():
    rng = np.random.default_rng(5)
    force_N, quiet = force(rng)
    found = judged(white(rng, force_N) + late_hum(force_N), force_N, quiet)
    assert not found.adequate
    assert found.peak_Hz == pytest.approx(50.0, abs=1.0 / (PERIOD_S * N_MOVING))


@pytest.mark.parametrize("source", ["rest", "channel"])
def test_the_growth_of_the_noise_is_estimated_with_its_uncertainty(source):
    rng, errors = np.random.default_rng(6), []
    for _ in range(200):
        force_N, quiet = force(rng)
        noise = SIGMA_N * rng.standard_normal(N) * np.sqrt(1.0 + (0.3 * force_N) ** 2)
        rest = (noise[:N_REST],) if source == "rest" else ()
        known = Noise(SIGMA_N, source=source, rest_white_N=rest)
        found = growth_of([noise[N_REST:]], [force_N[N_REST:]], [quiet[N_REST:]], known)
        errors.append((found.per_N2 - 0.09) / np.sqrt(found.variance))
    # 200 standard errors: their mean square is 1 within 4 of its own, sqrt(2 / 200).
    assert np.mean(np.square(errors)) == pytest.approx(1.0, abs=0.4)


def test_correlations_that_the_rest_has_as_well_are_no_missing_effect():
    x = lfilter([1.0, 0.3], [1.0], SIGMA_N * np.random.default_rng(14).standard_normal(N))
    rest, moving = x[:N_REST], x[N_REST:]
    for rests, correlated in (((rest,), False), ((), True)):
        noise = Noise(SIGMA_N, n_rest=N_REST, source="rest", rest_white_N=rests)
        found = judge([moving], noise, 1, Sampling(PERIOD_S))
        failed = {test.name for test in found.failed}
        assert ({"whiteness", "runs"} <= failed) == correlated
        assert ({"whiteness", "runs"} & failed != set()) == correlated


def test_the_size_is_tested_with_the_uncertainty_of_the_growth():
    """For F = 1 N and g = 1 +- 0.2 the variance 1 + g is unsure by 10 %: 2 / 0.1^2 freedoms."""
    rng, n = np.random.default_rng(12), 2000
    residual_N = np.sqrt(2.3) * SIGMA_N * rng.standard_normal(n)
    growth = Growth(1.0, 0.2**2)
    stated = Noise(SIGMA_N, n_rest=10**9, source="rest")
    tests = judge([residual_N], stated, 1, Sampling(PERIOD_S), growth, [np.ones(n)]).tests
    ratio = residual_N @ residual_N / (n - 1) / (2.0 * SIGMA_N**2)
    expected = scipy.stats.f.sf(ratio, n - 1, 2.0 / 0.1**2)
    assert {t.name: t.p for t in tests}["size"] == pytest.approx(expected, rel=1e-4)


def test_a_mode_that_the_model_lacks_is_not_taken_for_growing_noise():
    rng = np.random.default_rng(7)
    force_N, quiet = force(rng)
    noise = white(rng, force_N)
    known = Noise(SIGMA_N, n_rest=N_REST, source="rest", rest_white_N=(noise[:N_REST],))
    lacking = noise + 10.0 * ringing(force_N)
    found = growth_of([lacking[N_REST:]], [force_N[N_REST:]], [quiet[N_REST:]], known)
    # The mode has many times the power of the noise, of which the differences leave little.
    assert np.mean(lacking**2) > 20.0 * SIGMA_N**2
    assert found.per_N2 * np.mean(force_N**2) < 0.5


def test_the_frequency_of_a_line_is_found_as_well_as_the_noise_allows():
    rng, t_s, errors = np.random.default_rng(8), T_S[:N_REST], []
    for _ in range(20):
        f_Hz = rng.uniform(40.0, 200.0)
        x = np.sqrt(2.0) * np.sin(2.0 * np.pi * f_Hz * t_s) + rng.standard_normal(N_REST)
        found = find_lines([x], PERIOD_S)
        assert len(found) == 1
        errors.append(found[0] - f_Hz)
    # Cramer-Rao, Kay, Estimation Theory, ex. 3.14: 12 / (eta n (n^2 - 1)) with eta = A^2 / 2 s^2.
    least_Hz = np.sqrt(12.0 / N_REST**3) / (2.0 * np.pi * PERIOD_S)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(least_Hz, rel=4 / np.sqrt(40))


@pytest.mark.parametrize("near_Hz", [498.7, 499.3, 500.0])
def test_a_line_at_half_the_rate_of_reading_is_removed_too(near_Hz):
    rng, t_s = np.random.default_rng(13), T_S[:N_REST]
    tone = np.cos(2.0 * np.pi * near_Hz * t_s)
    noise = noise_at_rest([tone + 0.1 * rng.standard_normal(N_REST)], PERIOD_S)
    assert noise.total_rms_N < 0.2


def test_white_noise_has_no_line():
    rng = np.random.default_rng(14)
    found = sum(len(find_lines([rng.standard_normal(10_000)], PERIOD_S)) for _ in range(200))
    assert found <= 6  # 5e-3 a rest: 1 of 200, and 6 with probability 1e-3


def test_slow_drift_is_not_a_line():
    rng, found = np.random.default_rng(9), 0
    for _ in range(100):
        drift = lfilter([1.0], [1.0, -0.99], rng.standard_normal(3 * N_REST))[2 * N_REST :]
        found += len(find_lines([drift], PERIOD_S))
    assert found <= 2


def test_the_covariance_of_a_fit_is_that_of_noise_which_grows():
    rng, n = np.random.default_rng(10), 400
    x = np.linspace(0.0, 1.0, n)
    J, scale = np.column_stack((x, np.ones(n))), np.sqrt(1.0 + (5.0 * x) ** 2)
    noise = scale[:, None] * rng.standard_normal((n, 4000))
    drawn = np.linalg.lstsq(J, noise, rcond=None)[0][0]
    rms_N = np.sqrt(np.mean(scale**2) * (n - 2) / n)
    found = Fit(np.zeros(1), np.zeros(1), [], rms_N * np.ones(n), J, (), scale)
    assert found.covariance[0, 0] == pytest.approx(drawn.var(), rel=4 * np.sqrt(2 / 4000))


@pytest.mark.slow
def test_a_rig_with_hum_and_growing_noise_is_identified_without_an_alarm():
    rig, rng = make_rig(21, 2), np.random.default_rng(11)
    at, sigma = rig.data.measured - rig.data.measured[:1000].mean(), rig.noise.total_rms_N
    hum = 2.0 * sigma * np.sin(2.0 * np.pi * 50.03 * rig.data.t_s)
    noisy = rig.data.measured + hum + sigma * at * rng.standard_normal(len(at))
    found = identify(TABLES, [replace(rig.data, measured=noisy)], Options(bootstrap=0))
    assert found.adequacy.adequate
    assert found.noise.lines_Hz == pytest.approx([50.03], abs=0.1)
    assert found.noise.lines_rms_N == pytest.approx(np.sqrt(2.0) * sigma, rel=0.2)
    uncertainty = np.sqrt(found.growth.variance)
    assert found.growth.per_N2 == pytest.approx(1.0, abs=4.0 * uncertainty)
    assert uncertainty < 0.25
    text = as_text(found)
    assert "with lines at 50" in text
    assert "grows with the force" in text


def test_the_stated_rate_of_false_alarms_is_that_of_all_tests_together():
    """Bonferroni: each of m tests has 1/m of it."""
    tests = tuple(adequacy.Test(f"{i}", 0.6 * FALSE_ALARM, "") for i in range(2))
    made = adequacy.Adequacy(tests, 0.0, 0.0, 0.0)
    assert made.level == FALSE_ALARM / 2
    assert made.adequate
    assert [one.name for one in replace(made, tests=tests[:1]).failed] == ["0"]
