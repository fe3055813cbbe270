import math

import numpy as np
import pytest
import scipy.stats

from hil.record import metrics

RNG = np.random.default_rng(0)
T = np.arange(0.0, 10.0, 0.001)


def test_rms_of_a_sine_is_its_amplitude_over_root_two():
    assert metrics.rms(3.0 * np.sin(2 * np.pi * T)) == pytest.approx(3.0 / math.sqrt(2), rel=1e-12)


def test_nrmse_of_a_shifted_curve_is_the_shift_over_the_range():
    y = np.linspace(-1.0, 4.0, 100)
    assert metrics.nrmse(y, y + 0.25) == pytest.approx(0.25 / 5.0)


def test_vaf_ignores_an_offset_and_is_one_less_the_ratio_of_variances():
    y = RNG.normal(size=1000)
    assert metrics.vaf(y, y - 7.0) == pytest.approx(1.0)
    assert metrics.vaf(y, 0.5 * y) == pytest.approx(0.75)
    assert metrics.vaf(y, -y) == pytest.approx(-3.0)


@pytest.mark.parametrize("y", [np.zeros(0), np.full(5, 2.0), np.full(7, 0.1)])
def test_a_curve_without_range_has_no_relative_error(y):
    assert math.isnan(metrics.nrmse(y, y))
    assert math.isnan(metrics.vaf(y, y))


def test_a_curve_that_never_changes_is_held_whatever_its_mean_is_rounded_to():
    y = np.full(7, 0.1)
    assert np.std(y) > 0.0
    assert metrics.held(y)


def test_noise_is_found_on_a_curve_that_moves():
    y = 30.0 * np.sin(2 * np.pi * T) + 0.2 * RNG.normal(size=len(T))
    # 35/18 of n: variance of the mean square of white noise's second differences, over its square
    # mean square; a median of normal values has 0.37 of the efficiency (Huber 1981, 5.1)
    spread = math.sqrt(35.0 / 18.0 / len(T) / 0.37)
    assert metrics.noise_rms(y) == pytest.approx(0.2, rel=2.5 * spread)
    assert metrics.noise_rms(2.0 + 3.0 * T) == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize(("over_noise", "is_held"), [(0.0, True), (3.0, True), (5.0, False)])
def test_a_curve_is_held_that_does_not_move_by_four_times_its_noise(over_noise, is_held):
    """RMS about the mean: of noise and movement together, sqrt(1 + m^2) times the noise."""
    noise = RNG.normal(size=len(T))
    y = 7.0 + over_noise * math.sqrt(2.0) * np.sin(2 * np.pi * T) + noise
    assert metrics.held(y) is is_held
    if is_held:  # a perfect model would show no more than 1 - 1/16
        assert metrics.vaf(y, y - noise) < 1.0 - 1.0 / 16.0


def test_a_short_pulse_is_no_noise():
    force_N = 0.001 * RNG.normal(size=100)
    force_N[40:50] += 0.53
    assert metrics.noise_rms(force_N) == pytest.approx(0.001, rel=0.5)
    assert not metrics.held(force_N)


def test_a_curve_without_noise_is_held_only_where_it_does_not_move():
    assert metrics.held(np.full(5, 2.0))
    assert not metrics.held(np.linspace(0.0, 1e-9, 50))
    assert not metrics.held(np.array([0.0, 1.0]))


@pytest.mark.parametrize(("counts", "is_held"), [(2, True), (40, False)])
def test_an_encoder_is_held_that_moves_by_a_count_or_two(counts, is_held):
    step = 2 * math.pi / 40000
    y = step * np.round(0.5 * counts * (1.0 - np.cos(0.2 * np.pi * T)))  # there and back, no noise
    assert metrics.held(y) is is_held


def test_autocorrelation_is_its_sum_lag_by_lag_and_a_constant_has_none():
    x = np.cumsum(RNG.normal(size=257)) + 40.0
    d = x - x.mean()
    wanted = [sum(d[i] * d[i + k] for i in range(len(d) - k)) / sum(d * d) for k in range(len(d))]
    np.testing.assert_allclose(metrics.autocorrelation(x), wanted, atol=1e-12)
    np.testing.assert_array_equal(metrics.autocorrelation(np.full(4, 3.0)), [1, 0, 0, 0])


@pytest.mark.parametrize("tau", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("final", [2.0, -3.0])
def test_settling_of_a_first_order_response_is_its_closed_form(tau, final):
    y = final * (1.0 - np.exp(-T / tau))
    # the mean over the last second stands for the final value, e^-9 away at most
    assert metrics.settling_s(T, y) == pytest.approx(-tau * math.log(0.02), abs=0.01 * tau + 0.001)


@pytest.mark.parametrize("zeta", [0.1, 0.3, 0.6])
def test_overshoot_of_a_second_order_response_is_its_closed_form(zeta):
    w = 8.0
    wd = w * math.sqrt(1 - zeta**2)
    decay = np.exp(-zeta * w * T)
    y = 1.5 * (1 - decay * (np.cos(wd * T) + zeta * w / wd * np.sin(wd * T)))
    wanted = math.exp(-math.pi * zeta / math.sqrt(1 - zeta**2))
    assert metrics.overshoot(y) == pytest.approx(wanted, rel=2e-3)
    assert metrics.overshoot(5.0 - y) == pytest.approx(wanted, rel=2e-3)


def test_a_response_without_overshoot_has_none_and_one_that_goes_on_never_settles():
    assert metrics.overshoot(1.0 - np.exp(-T)) == pytest.approx(0.0, abs=1e-3)
    assert math.isnan(metrics.settling_s(T, T**3))
    assert metrics.settling_s(T, np.ones_like(T)) == 0.0


def ljung_box(x, n_lags):
    """Q and its p by the definition, autocorrelations from a full correlation."""
    n = len(x)
    c = np.correlate(x - x.mean(), x - x.mean(), "full")[n - 1 :]
    r = c[1 : n_lags + 1] / c[0]
    q = n * (n + 2) * sum(r[k - 1] ** 2 / (n - k) for k in range(1, n_lags + 1))
    return scipy.stats.chi2.sf(q, n_lags)


@pytest.mark.parametrize("seed", range(5))
def test_p_values_are_those_of_the_definitions(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(0.02, 1.0, 800)
    x[1:] += 0.08 * x[:-1]
    found = metrics.whiteness(x)
    assert found.p_uncorrelated == pytest.approx(ljung_box(x, 20), rel=1e-9)
    assert found.p_zero_mean == pytest.approx(scipy.stats.ttest_1samp(x, 0.0).pvalue, rel=1e-9)


@pytest.mark.parametrize("false_alarm", [0.01, 0.1])
def test_white_noise_is_called_coloured_as_often_as_stated(false_alarm):
    n = 2000
    alarms = sum(
        not metrics.whiteness(np.random.default_rng(seed).normal(size=1000)).is_white(false_alarm)
        for seed in range(n)
    )
    # two tests at half the rate each; within 4 standard deviations of the binomial
    rate = 1.0 - (1.0 - false_alarm / 2.0) ** 2
    assert abs(alarms - n * rate) < 4.0 * math.sqrt(n * rate * (1.0 - rate))


def test_correlated_and_offset_noise_is_not_white():
    x = RNG.normal(size=5000)
    assert not metrics.whiteness(np.convolve(x, [1.0, 0.3], "valid")).is_white()
    assert not metrics.whiteness(x + 0.1).is_white()


def test_missing_readings_are_left_out():
    x = RNG.normal(size=500)
    gaps = np.insert(x, [10, 200], np.nan)
    assert metrics.whiteness(gaps) == metrics.whiteness(x)


@pytest.mark.parametrize("x", [np.zeros(0), np.ones(100), np.arange(30.0)])
def test_too_little_noise_is_not_called_white(x):
    assert not metrics.whiteness(x).is_white()
