"""Readings at ticks: nothing is invented, carried across a gap, or averaged twice."""

import numpy as np
import pytest

from hil.runs.imports.resample import method_for, pulses, resampled

TICKS_S = np.arange(100) * 0.1


def test_the_last_reading_before_a_tick_is_taken_with_its_age():
    t_s = np.arange(0.03, 10.0, 0.25)
    found = resampled(t_s, t_s.copy(), TICKS_S, 0.1, 1.0, "previous")
    assert np.isnan(found.values[0])
    later = slice(1, None)
    assert (found.values[later] <= TICKS_S[later]).all()
    np.testing.assert_allclose(TICKS_S[later] - found.values[later], found.age_s[later])
    assert found.age_s[later].max() < 0.25


def test_readings_at_the_ticks_are_taken_once_each_whatever_their_rounding():
    t_s = TICKS_S + 1e-12 * np.random.default_rng(3).standard_normal(100)
    found = resampled(t_s, np.arange(100.0), TICKS_S, 0.1, 1.0, "previous")
    np.testing.assert_array_equal(found.values, np.arange(100.0))


@pytest.mark.parametrize("method", ["previous", "linear", "mean"])
def test_a_gap_stays_without_readings(method):
    t_s = np.concatenate((np.arange(0.0, 3.0, 0.05), np.arange(7.0, 9.95, 0.05)))
    found = resampled(t_s, np.ones_like(t_s), TICKS_S, 0.1, 0.25, method)
    inside = (TICKS_S > 3.3) & (TICKS_S < 6.9)
    assert np.isnan(found.values[inside]).all()
    assert np.isfinite(found.values[(TICKS_S < 2.9) | (TICKS_S > 7.15)]).all()


def test_a_line_is_interpolated_exactly():
    t_s = np.sort(np.random.default_rng(4).uniform(-0.5, 10.5, 60))
    found = resampled(t_s, 3.0 - 2.0 * t_s, TICKS_S, 0.1, 9.0, "linear")
    np.testing.assert_allclose(found.values, 3.0 - 2.0 * TICKS_S, atol=1e-12)


def test_the_mean_of_every_reading_is_kept_by_averaging():
    values = np.random.default_rng(6).standard_normal(990)
    t_s = 0.005 + 0.01 * np.arange(990)
    found = resampled(t_s, values, TICKS_S, 0.1, 1.0, "mean").values
    assert np.isnan(found[0])
    assert np.mean(found[1:]) == pytest.approx(values.mean(), abs=1e-12)


def test_a_mean_has_the_age_of_the_middle_of_its_readings():
    t_s = 0.005 + 0.01 * np.arange(990)
    found = resampled(t_s, 2.0 * t_s, TICKS_S, 0.1, 1.0, "mean")
    np.testing.assert_allclose(found.values[1:], 2.0 * (TICKS_S - found.age_s)[1:], atol=1e-12)
    middle_s = 0.5 * (t_s[found.first] + t_s[found.taken])
    np.testing.assert_allclose(middle_s[1:], (TICKS_S - found.age_s)[1:], atol=1e-12)


def test_denser_readings_are_averaged_and_others_held():
    assert method_for(0.01, 0.1) == "mean"
    assert method_for(0.1, 0.1) == "previous"


@pytest.mark.parametrize("duty", [0.0, 0.25, 0.5, 1.0])
def test_pulses_have_the_mean_of_their_duty(duty):
    ticks_s = np.arange(4000) * 1e-3
    on = pulses(np.full(4000, duty), ticks_s, 10.0)
    assert on.mean() == pytest.approx(duty, abs=1e-9)
    if 0.0 < duty < 1.0:
        assert (np.diff(on.astype(int)) == 1).sum() == 39  # the first period begins on
