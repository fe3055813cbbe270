"""The fit and its bootstrap, for readings that are linear in theta: exact solutions are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from hil.identification import fit as fits
from hil.identification.noise import Noise

FREE = ("arrays.muscle.cell.k_se_N_per_m", "arrays.muscle.cell.k_pe_N_per_m")
NOISE = Noise(rms_N=1.0)


class LinearBox:
    """readings = X theta, one run; with its zero the Jacobian is [X, 1]."""

    def __init__(self, X, measured):
        self.free, self.start, self.X = FREE, np.zeros(2), X
        self.asked = []
        self.runs = [SimpleNamespace(measured=measured, rows=np.arange(len(X)), first_on=0)]

    def readings(self, theta, until=None):
        n = len(self.X) if until is None else until[0]
        return [self.X[:n] @ theta]

    def all_readings(self, thetas):
        return [self.readings(theta) for theta in thetas]

    def sensitivities(self, theta, until=None, *, central=True):
        self.asked.append(central)
        return [self.X]

    def table_at(self, theta):
        return None


@pytest.fixture(autouse=True)
def no_modes(monkeypatch):
    """Without a fastest mode the first window is the whole run."""
    monkeypatch.setattr(fits, "build_model", lambda table: SimpleNamespace(A=-np.eye(1)))


def fitted(theta, rng, n=8):
    X = rng.normal(size=(n, 2))
    box = LinearBox(X, X @ theta + 0.25 + 0.01 * rng.normal(size=n))
    return box, fits.fit(box, NOISE)


def test_only_the_jacobian_of_the_intervals_is_of_central_differences():
    box, _ = fitted([0.3, -0.4], np.random.default_rng(1))
    *on_the_way, last = box.asked
    assert on_the_way
    assert not any(on_the_way)
    assert last


class CurvedBox(LinearBox):
    """readings = X sin(theta): steps come nearer and nearer to the least sum."""

    def readings(self, theta, until=None):
        return [self.X @ np.sin(theta)]

    def sensitivities(self, theta, until=None, *, central=True):
        return [self.X * np.cos(theta)]


@pytest.mark.parametrize("n", [100, 10_000, 100_000])
def test_a_fit_ends_within_a_twentieth_of_an_uncertainty_however_many_readings_it_has(n):
    """Against Newton's method on the whole sum, to rounding."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    box = CurvedBox(X, X @ np.sin([1.2, -1.1]) + rng.normal(size=n))
    solution = fits.fit(box, NOISE)
    J = np.column_stack((X, np.ones(n)))
    sines = np.linalg.lstsq(J, box.runs[0].measured, rcond=None)[0][:2]
    away = (solution.theta - np.arcsin(sines)) / np.sqrt(np.diag(solution.covariance))
    assert np.abs(away).max() < 0.05


@pytest.mark.parametrize(("steps", "settled"), [(3, False), (fits.STEPS_MAX, True)])
def test_a_fit_that_its_last_step_still_moves_has_not_settled(steps, settled, monkeypatch):
    monkeypatch.setattr(fits, "STEPS_MAX", steps)
    X = np.random.default_rng(5).normal(size=(100, 2))
    assert fits.fit(CurvedBox(X, X @ np.sin([1.4, -1.4])), NOISE).settled is settled


def test_theta_zero_and_covariance_are_those_of_linear_least_squares():
    box, solution = fitted([0.3, -0.4], np.random.default_rng(1))
    J = np.column_stack((box.X, np.ones(8)))
    x, (rss,), *_ = np.linalg.lstsq(J, box.runs[0].measured)
    np.testing.assert_allclose([*solution.theta, *solution.zero_N], x, atol=1e-6)
    np.testing.assert_allclose(
        solution.covariance, (np.linalg.inv(J.T @ J) * rss / (8 - 3))[:2, :2], rtol=1e-3
    )
    assert solution.at_bound == ()


@pytest.mark.parametrize(
    ("theta", "at_bound"),
    [([-3.0, 0.4], FREE[:1]), ([0.4, 3.0], FREE[1:]), ([-3.0, 3.0], FREE), ([1.5, -1.5], ())],
)
def test_what_ends_at_a_fifth_or_at_five_times_its_start_is_named(theta, at_bound):
    """Its logarithm is -1.61 or 1.61 then."""
    _, solution = fitted(theta, np.random.default_rng(2))
    assert solution.at_bound == at_bound


def test_the_bootstrap_s_variance_counts_the_fitted_parameters():
    """Residuals of n readings and p parameters are too small by (n - p)/n: 5/8 here."""
    box, solution = fitted([0.3, -0.4], np.random.default_rng(3))
    resampling = fits.Resampling(n_times=20_000, seed=4, block=1)
    drawn = fits.bootstrap(box, NOISE, solution, resampling, lambda n_more: None)
    np.testing.assert_allclose(drawn.mean(axis=0), solution.theta, atol=1e-3)
    np.testing.assert_allclose(drawn.var(axis=0), np.diag(solution.covariance), rtol=0.05)


@pytest.mark.parametrize("at_once", [1, 17])
def test_refits_of_a_long_run_are_the_same_a_few_at_once(monkeypatch, at_once):
    box, solution = fitted([0.3, -0.4], np.random.default_rng(5), n=50)
    resampling = fits.Resampling(n_times=40, seed=6, block=4)
    whole = fits.bootstrap(box, NOISE, solution, resampling, lambda n_more: None)
    sizes = []
    monkeypatch.setattr(fits, "READINGS_AT_ONCE", at_once * 50)
    parts = fits.bootstrap(box, NOISE, solution, resampling, sizes.append)
    np.testing.assert_allclose(parts, whole, rtol=1e-12)
    assert max(sizes) <= at_once
    assert sum(sizes) == 40
