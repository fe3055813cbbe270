"""Tests for failed cells against Gaussian likelihoods written out, and by their promises."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from hil.errors import ModelError
from hil.systems.array.build_recruitment import NominalArray
from hil.systems.array.failures.isolation import (
    FAILED,
    HEALTHY,
    SUSPECT,
    Isolation,
    IsolationRules,
    broken_gains_N,
)
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.lags import Lag, lags
from hil.systems.array.tables_recruitment import FailuresTable

PERIOD_S = 0.1
SHARES = np.array([0.4, 0.2, 0.2, 0.3])
AT_ONCE = [Lag(1.0, 1.0)] * 4
NOTHING_BREAKS = np.tile(SHARES, (4, 1))
RULES = IsolationRules(
    sample_s=PERIOD_S, window_s=1.0, spread=0.1, settle_s=0.0, noise_N=0.02, zero_N=0.01,
    confirm_s=0.3,
)  # fmt: skip


def made(rules=RULES, broken=NOTHING_BREAKS):
    return Isolation(rules, SHARES, broken, AT_ONCE, PERIOD_S)


def masks(rng, n_ticks, every=3):
    """Cells switched at random, each state held for a few ticks."""
    return np.repeat(rng.integers(0, 2, (n_ticks // every + 1, 4)), every, axis=0)[:n_ticks]


def residual(on, delta, rng, zero_N=0.0, noise_N=0.02):
    return on @ (SHARES * delta) + zero_N + noise_N * rng.standard_normal(len(on))


def drive(tests, on, e):
    for k in range(len(on)):
        tests.step(k * PERIOD_S, e[k], on[k].astype(float), on[k].astype(np.uint8))


def test_the_odds_are_those_of_two_gaussians_written_out():
    """All samples at once: covariance R + phi P0 phi^T, means 0 and phi mu; no forgetting."""
    rng = np.random.default_rng(1)
    on = masks(rng, 40)
    e = residual(on, np.array([-1.0, 0.05, -0.1, 0.08]), rng)
    rules = IsolationRules(
        sample_s=PERIOD_S, window_s=100.0, memory_s=1e9, spread=0.1, settle_s=0.0, noise_N=0.02,
        zero_N=0.01, doubt=0.0, confirm_s=100.0,
    )  # fmt: skip
    tests = made(rules)
    drive(tests, on, e)
    phi = np.column_stack([on * SHARES, np.ones(len(on))])
    spread = np.diag([0.1**2] * 4 + [0.01**2])
    cov = phi @ spread @ phi.T + 0.02**2 * np.eye(len(on))
    zero = multivariate_normal(np.zeros(len(on)), cov).logpdf(e)
    dead = [multivariate_normal(-phi[:, n], cov).logpdf(e) - zero for n in range(4)]
    assert tests.log_odds == pytest.approx(max(dead), rel=1e-6)


def test_after_a_failure_the_odds_are_those_of_gaussians_about_what_was_learned():
    """Of both tests: about the null hypothesis, and about its update by samples before the window.

    The update is that of a Gaussian in covariance form; the kernel works with information.
    """
    rng = np.random.default_rng(3)
    on = masks(rng, 120)
    e = residual(on, np.array([-1.0, 0.05, -0.1, 0.08]), rng)
    rules = replace(RULES, memory_s=1e9, doubt=0.0)
    tests = made(rules, np.full((4, 4), np.nan))
    restarted_at = 0
    while not tests.findings:
        drive(tests, on[restarted_at : restarted_at + 1], e[restarted_at : restarted_at + 1])
        restarted_at += 1
    base, P0 = tests._learned.base.copy(), tests._learned.P0.copy()
    phi, e = np.column_stack([on * SHARES, np.ones(120)])[restarted_at:], e[restarted_at:]
    drive(tests, on[restarted_at:], e)
    before, window = slice(None, -10), slice(-10, None)

    noise = rules.noise_N**2 * np.eye(len(e) - 10)
    gain = P0 @ phi[before].T @ np.linalg.inv(phi[before] @ P0 @ phi[before].T + noise)
    drift = np.diag([rules.drift**2] * 4 + [(0.1 * rules.zero_N) ** 2])
    mean = base + gain @ (e[before] - phi[before] @ base)
    odds = []
    for part, about, P in (
        (slice(None), base, P0),
        (window, mean, P0 - gain @ phi[before] @ P0 + drift),
    ):
        noise = rules.noise_N**2 * np.eye(len(e[part]))
        cov = phi[part] @ P @ phi[part].T + noise
        for cell in (1, 2, 3):
            dead = about - (1.0 + about) * (np.arange(5) == cell)
            odds.append(multivariate_normal(phi[part] @ dead, cov).logpdf(e[part])
                        - multivariate_normal(phi[part] @ about, cov).logpdf(e[part]))  # fmt: skip
    assert tests.findings[0].cells == (0,)
    assert len(tests.findings) == 1
    assert tests._failures.log_B[:, 1:4].ravel() == pytest.approx(odds, rel=1e-6)


def test_odds_of_a_healthy_array_are_seldom_high():
    """Chance of B >= 1/eps is eps at most, here at the end of each of 400 runs."""
    rng = np.random.default_rng(2)
    high = 0
    for _ in range(400):
        tests = made()
        on = masks(rng, 30)
        e = residual(on, rng.normal(0.0, 0.1, 4), rng, rng.normal(0.0, 0.01))
        drive(tests, on, e)
        high += tests.log_odds >= np.log(8 * 2 * 10.0)  # each of 8 failures and 2 tests: eps 1/10
    assert high <= 400 * 0.1 + 4.0 * np.sqrt(400 * 0.1 * 0.9)


def test_a_healthy_array_raises_no_alarm_in_an_hour():
    rng = np.random.default_rng(3)
    tests = made()
    on = masks(rng, 36_000)
    drive(tests, on, residual(on, rng.normal(0.0, 0.1, 4), rng))
    assert tests.findings == []
    assert (tests.state == HEALTHY).all()


@pytest.mark.parametrize("cell", range(4))
def test_a_cell_that_dies_is_named_and_no_other(cell):
    rng = np.random.default_rng(10 + cell)
    tests = made()
    on = masks(rng, 1200)
    delta = np.tile(rng.normal(0.0, 0.1, 4), (1200, 1))
    delta[600:, cell] = -1.0
    e = (on * SHARES * delta).sum(axis=1) + 0.02 * rng.standard_normal(1200)
    drive(tests, on, e)
    named = [f for f in tests.findings if len(f.cells) == 1]
    assert [f.cells for f in named] == [(cell,)]
    assert tests.state[cell] == FAILED
    assert np.delete(tests.state, cell).tolist() == [HEALTHY] * 3
    assert named[0].log_odds > tests.threshold
    # power: on half of the time, 20 sigma a sample; the verdict stands 0.3 s before it is said
    assert named[0].t_s - 60.0 < 3.0


def test_a_cell_is_named_though_no_reading_comes_as_samples_are_due():
    """Samples are due in odd ticks, readings come in even ones."""
    rng = np.random.default_rng(10)
    on = masks(rng, 600)
    e = residual(on, np.array([-1.0, 0.05, -0.1, 0.08]), rng)
    e[1::2] = np.nan
    tests = made(replace(RULES, sample_s=2.0 * PERIOD_S))
    drive(tests, on, e)
    assert [f.cells for f in tests.findings] == [(0,)]


def test_cells_that_are_always_on_together_are_named_as_a_class():
    rng = np.random.default_rng(4)
    tests = made()
    on = masks(rng, 900)
    on[:, 2] = on[:, 1]
    delta = np.zeros((900, 4))
    delta[450:, 2] = -1.0
    e = (on * SHARES * delta).sum(axis=1) + 0.02 * rng.standard_normal(900)
    drive(tests, on, e)
    assert tests.findings
    assert tests.findings[-1].cells == (1, 2)
    assert tests.state.tolist() == [HEALTHY, SUSPECT, SUSPECT, HEALTHY]


def test_a_second_failure_is_found_after_the_first():
    rng = np.random.default_rng(5)
    tests = made()
    on = masks(rng, 1500)
    delta = np.zeros((1500, 4))
    delta[400:, 0] = -1.0
    delta[900:, 3] = -1.0
    e = (on * SHARES * delta).sum(axis=1) + 0.02 * rng.standard_normal(1500)
    drive(tests, on, e)
    assert [f.cells for f in tests.findings if len(f.cells) == 1] == [(0,), (3,)]


def test_a_broken_cell_is_told_from_a_dead_one_by_what_the_others_give():
    rng = np.random.default_rng(6)
    broken = NOTHING_BREAKS.copy()
    broken[1] = [0.3, 0.0, 0.28, 0.36]  # without cell 2 the others' shares move
    tests = made(broken=broken)
    on = masks(rng, 1200)
    gain = np.tile(SHARES, (1200, 1))
    gain[600:] = broken[1]
    e = (on * (gain - SHARES)).sum(axis=1) + 0.02 * rng.standard_normal(1200)
    drive(tests, on, e)
    assert [(f.cells, f.kind) for f in tests.findings if len(f.cells) == 1] == [
        ((1,), "mechanical")
    ]


def test_what_a_break_changes_counts_once():
    """Gains become (1 + mu) (1 + delta): exactly, where the test without learning found it."""
    broken = NOTHING_BREAKS.copy()
    broken[1] = [0.3, 0.0, 0.28, 0.36]
    delta = np.array([0.1, 0.0, -0.1, 0.08])
    for healthy, broke_at, error in ((np.zeros(4), 0, 1e-12), (delta, 600, 0.04)):
        rng = np.random.default_rng(3)
        tests = made(broken=broken)
        on = masks(rng, 700)
        gain = np.tile(SHARES, (700, 1))
        gain[broke_at:] = broken[1]
        e = (on * (gain * (1.0 + healthy) - SHARES)).sum(axis=1) + 0.02 * rng.standard_normal(700)
        drive(tests, on, e)
        assert [(f.cells, f.kind) for f in tests.findings] == [((1,), "mechanical")]
        expected = broken[1] / SHARES * (1.0 + healthy) - 1.0
        assert tests._learned.base[:4] == pytest.approx(expected, abs=error)
        assert (tests._learned.P0[0, 0] < RULES.spread**2) == (broke_at > 0)


def test_missing_readings_say_nothing():
    tests = made()
    on = np.ones((100, 4), dtype=int)
    drive(tests, on, np.full(100, np.nan))
    assert tests.log_odds == 0.0


MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
MODEL = CellArray.from_fingerprint(
    "-:1 | &1:2 | &1:1 &2:2 | &7:-1", cell=MIGA, mass_kg=0.01583, broken_cells=()
)


def test_the_lag_of_a_cell_is_its_dampers():
    """Miga cell: no direct path, rate (k_se + k_ae) / b (section 2 of the model page)."""
    for lag in lags(MODEL):
        assert lag.direct == 0.0
        assert lag.rate_per_s == pytest.approx(1386.52 / 500.0)


def test_shares_with_a_broken_cell_are_those_of_the_array_without_it():
    activation = [CellActivation(4.0)] * 6
    found = broken_gains_N(MODEL, activation, "array.right_N")
    for n in range(6):
        model = CellArray.from_fingerprint(
            "-:1 | &1:2 | &1:1 &2:2 | &7:-1", cell=MIGA, mass_kg=0.01583, broken_cells=[n + 1]
        )
        for m in range(6):
            F_N = np.zeros(6)
            F_N[m] = 4.0
            force_N = model.force_at("array.right_N", model.solve_statics(F_N).tension_N)
            assert found[n, m] == pytest.approx(force_N, abs=1e-12)


@pytest.mark.parametrize(("period_s", "n_max"), [(1e-3, 69), (3e-3, 100), (1e-2, 149)])
def test_of_more_cells_than_can_be_judged_within_a_period_none_are(period_s, n_max):
    def tests_of(n_cells):
        model = CellArray.from_fingerprint(
            f"-:{n_cells} | &{(1 << n_cells) - 1:X}:-1", cell=MIGA, mass_kg=0.016
        )
        array = NominalArray(model, [CellActivation(4.0)] * n_cells, "array.right_N", period_s)
        return array.isolation(FailuresTable())

    assert tests_of(n_max) is not None
    with pytest.raises(
        ModelError, match=rf"judgement of {n_max + 1} cells .*: {n_max} cells at most"
    ):
        tests_of(n_max + 1)


def test_unlike_cells_side_by_side_have_shares_of_their_own():
    """Of another parallel spring; of another share of its force; of another force."""
    springs = {"k_pe_N_per_m": 20.0, "k_se_N_per_m": 386.52, "k_ae_N_per_m": 1000.0}
    turned = {"k_se_N_per_m": 1000.0, "k_ae_N_per_m": 386.52}  # as stiff
    kinds = [{}, {"k_pe_N_per_m": 40.0}, turned, {}, {}]
    cell = [cells.miga(**springs | kind, b_N_s_per_m=500.0) for kind in kinds]
    model = CellArray.from_fingerprint("-:4 | &F:1 | &1:-1", cell=cell, mass_kg=0.016)
    F_N = np.array([4.0, 4.0, 4.0, 2.0, 4.0])
    found = broken_gains_N(model, [CellActivation(force_N) for force_N in F_N], "array.right_N")
    for n in range(5):
        alone = model.with_broken(n).static_gain("array.right_N") * F_N
        np.testing.assert_array_equal(found[n], alone)
