"""Intervals hold the truth as often as they say; what no fit should be made of is refused."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from hil.errors import ConfigError
from hil.procedures import fits
from hil.procedures.fits import (
    linear,
    nonlinear,
    refuse_implausible,
    refuse_saturated,
    refuse_stuck,
    refuse_unit_slip,
)
from procedures.intervals import half_width

# Of 1000 sessions, 95 % intervals that hold the truth: beyond these once in a thousand such tests.
FEW, MANY = binom.ppf((0.0005, 0.9995), 1000, 0.95)


def test_intervals_of_a_line_hold_the_truth_in_95_of_100_acts():
    """Student's distribution is exact for normal errors, with six readings as with many."""
    rng, x, truth = np.random.default_rng(1), np.linspace(0.0, 4.0, 6), np.array([2.0, -1.0])
    X = np.column_stack((x, np.ones_like(x)))
    held = np.zeros(2)
    for _ in range(1000):
        fit = linear(X, X @ truth + 0.1 * rng.standard_normal(6), ("k", "c"), "line")
        held += [abs(fit.values[i] - truth[i]) <= half_width(fit, i) for i in range(2)]
    assert (held >= FEW).all()
    assert (held <= MANY).all()


@pytest.mark.slow
def test_intervals_of_an_exponential_hold_the_truth_in_95_of_100_acts():
    rng, t, truth = np.random.default_rng(2), np.linspace(0.0, 3.0, 60), np.array([0.4, 1.0, -0.8])

    def curve(p):
        return p[1] + p[2] * np.exp(-t / p[0])

    held = np.zeros(3)
    for _ in range(400):
        y = curve(truth) + 0.01 * rng.standard_normal(60)
        fit = nonlinear(lambda p, y=y: curve(p) - y, [0.5, 0.9, -0.7], ("tau", "a", "b"), "decay")
        held += [abs(fit.values[i] - truth[i]) <= half_width(fit, i) for i in range(3)]
    low, high = binom.ppf((0.0005, 0.9995), 400, 0.95)
    assert (held >= low).all()
    assert (held <= high).all()


def test_the_covariance_is_that_of_the_normal_equations():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((12, 3)), rng.standard_normal(12)
    fit = linear(X, y, "abc", "x")
    s2 = np.sum((y - X @ fit.values) ** 2) / 9
    np.testing.assert_allclose(fit.covariance, s2 * np.linalg.inv(X.T @ X), rtol=1e-10)


def test_too_few_readings_are_refused():
    with pytest.raises(ConfigError, match="spring: 3 readings are too few for 2 values"):
        linear(np.ones((3, 2)), np.ones(3), ("k", "c"), "spring")


def test_a_collinear_set_is_refused_with_what_it_cannot_tell_apart():
    same = np.column_stack((np.full(6, 0.002), np.ones(6)))
    with pytest.raises(ConfigError, match="collinear set: the readings cannot separate k and F_0"):
        linear(same, np.ones(6), ("k", "F_0"), "spring")


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_only_the_values_that_cannot_be_told_apart_are_named(sign, order):
    x = np.arange(1.0, 8.0)
    columns = {"k": x, "F_0": sign * x, "c": np.cos(x)}
    names = [list(columns)[i] for i in order]
    A = np.column_stack([columns[name] for name in names])
    with pytest.raises(ConfigError) as refused:
        linear(A, np.ones(7), names, "spring")
    named = str(refused.value).partition("cannot separate ")[2].partition(":")[0]
    assert set(named.split(" and ")) == {"k", "F_0"}


@pytest.mark.parametrize(
    ("slip", "words"),
    [
        (1000.0, "off by 1000: kg, not g"),
        (0.001, "off by 1000: kg, not t"),
        (9.80665, "off by g = 9.81: kilograms, not newtons"),
        (1 / 9.80665, "off by g = 9.81: newtons, not kilograms"),
    ],
)
def test_a_wrong_unit_is_named(slip, words):
    with pytest.raises(ConfigError, match=words):
        refuse_unit_slip(1.04 * 0.22 * slip, 0.22, "the sensitivity", "mend it")


def test_an_expected_figure_may_be_off_by_a_third():
    refuse_implausible(0.28, 0.22, "the sensitivity")
    with pytest.raises(ConfigError, match="something else was measured"):
        refuse_implausible(0.31, 0.22, "the sensitivity")


def test_a_saturated_reading_is_named():
    with pytest.raises(ConfigError, match=r"reading 3 of 3, 2\.5 mV/V, is saturated"):
        refuse_saturated([0.1, 0.2, 2.5], 2.5, "mV/V", "x")
    with pytest.raises(ConfigError, match="saturated"):
        refuse_saturated([0.1, float("nan")], 2.5, "mV/V", "x")


def test_a_reading_that_stops_short_of_its_range_is_noticed():
    """An amplifier at its own rail, or a weight forgotten."""
    loads = [0.0, 1.0, 2.0, 4.0, 8.0]
    refuse_stuck(loads, [0.0, 0.22, 0.45, 0.89, 1.78], "N", "x")
    with pytest.raises(ConfigError, match="hardly changes from 4 to 8 N: saturated, stuck"):
        refuse_stuck(loads, [0.0, 0.22, 0.45, 0.89, 0.91], "N", "x")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_reading_at_either_end_of_the_range_is_saturated(sign):
    refuse_saturated([0.0, sign * 2.498, -sign * 0.1], 2.5, "mV/V", "x")
    for value in (2.4999, 2.5, 99.0, np.inf):
        with pytest.raises(ConfigError, match=r"reading 2 of 3, .* is saturated"):
            refuse_saturated([0.0, sign * value, sign * value], 2.5, "mV/V", "x")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_figure_off_by_more_than_a_third_on_either_side_is_refused(sign):
    for share, refused in ((0.66, False), (1.34, False), (0.64, True), (1.36, True), (-1.0, True)):
        if refused:
            with pytest.raises(ConfigError, match="something else was measured"):
                refuse_implausible(sign * share, sign, "x")
        else:
            refuse_implausible(sign * share, sign, "x")
    with pytest.raises(ConfigError, match="something else"):
        refuse_implausible(float("nan"), 1.0, "x")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_reading_that_stands_still_is_noticed_whichever_way_it_goes_and_in_any_order(sign):
    loads = [4.0, 0.0, 2.0, 1.0]
    refuse_stuck(loads, [sign * v for v in (0.4, 0.0, 0.2, 0.1)], "N", "x")
    refuse_stuck(loads, [sign * v for v in (0.4, 0.0, 0.2, 0.03)], "N", "x")  # a quarter is enough
    with pytest.raises(ConfigError, match="hardly changes from 0 to 1 N"):
        refuse_stuck(loads, [sign * v for v in (0.4, 0.0, 0.2, 0.01)], "N", "x")
    refuse_stuck([0.0, 1.0, 1.0], [0.0, 0.0, 0.0], "N", "x")  # two levels tell nothing


@pytest.mark.parametrize("share", [0.81, 1.19])
def test_a_slip_of_g_is_named_within_a_fifth(share):
    for slip in (9.80665, 1 / 9.80665):
        with pytest.raises(ConfigError, match=r"off by g = 9\.81"):
            refuse_unit_slip(share * slip, 1.0, "the sensitivity", "mend it")


X = np.column_stack((np.arange(6.0), np.ones(6)))
Y = np.array([0.1, 1.9, 4.2, 5.9, 8.1, 9.8])


def test_a_line_fitted_as_a_curve_has_the_values_and_intervals_of_a_line():
    """From zero too, which gives no scale."""
    line = linear(X, Y, ("k", "c"), "line")
    for start in ([0.0, 0.0], [0.5, 3.0]):
        curve = nonlinear(lambda p: X @ p - Y, start, ("k", "c"), "curve")
        np.testing.assert_allclose(curve.values, line.values, rtol=1e-6)
        np.testing.assert_allclose(curve.covariance, line.covariance, rtol=1e-6)
        np.testing.assert_allclose(curve.residuals, line.residuals, atol=1e-6)
        assert (curve.sigma, curve.dof) == (pytest.approx(line.sigma), 4)


def test_too_few_readings_of_a_curve_are_refused():
    with pytest.raises(ConfigError, match="3 readings are too few for 2 values"):
        nonlinear(lambda p: X[:3] @ p - Y[:3], [1.0, 1.0], ("k", "c"), "curve")


def test_a_fit_that_does_not_end_is_refused(monkeypatch):
    monkeypatch.setattr(fits, "least_squares", lambda *_, **__: SimpleNamespace(success=False))
    with pytest.raises(ConfigError, match="curve: the fit does not converge"):
        nonlinear(lambda p: X @ p - Y, [1.0, 1.0], ("k", "c"), "curve")
