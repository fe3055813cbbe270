"""Tests of cells that no longer pull against Gaussian likelihoods, and by their promises."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from hil.systems.array.failures import cell_failures
from hil.systems.array.failures.cell_failures import CellFailures, CellRules, SensedWires
from hil.systems.array.failures.isolation import FAILED, HEALTHY, SUSPECT
from hil.systems.array.wires.filter import WireErrors

PERIOD_S, SAMPLE_TICKS = 0.01, 10
GAINS_N = np.array([0.4, 0.25, 0.3])
CONTRAST = np.full(3, -0.1)
OHM = 50.0
NOTHING_BREAKS = np.full((3, 3), np.nan)
BROKEN_N = np.array([[0.0, 0.3, 0.2], [0.36, 0.0, 0.33], [0.5, 0.2, 0.0]])
THROUGH_N = np.array([[0.0, 0.0, 0.0], [0.42, 0.0, 0.35], [0.42, 0.3, 0.0]])
CHAIN_N = np.array([[0.0, 0.25, 0.0], [0.4, 0.0, 0.3], [0.0, 0.25, 0.0]])
RULES = CellRules(learn_for_s=1.0)
ERRORS = WireErrors(wander_N=0.003, noise_N=0.002)


def ohms(xi):
    return OHM * (1.0 + CONTRAST * xi)


def built(broken_N, rules=RULES, errors=ERRORS):
    return CellFailures(rules, errors, SensedWires(GAINS_N, broken_N, CONTRAST), PERIOD_S)


def moving(rng, n):
    """Austenite of three cells whose duties change every second; (n, 3)."""
    goals = np.repeat(rng.uniform(0.2, 0.9, (n // 100 + 1, 3)), 100, axis=0)[:n]
    xi = np.empty((n, 3))
    xi[0] = goals[0]
    for k in range(1, n):
        xi[k] = xi[k - 1] + 0.02 * (goals[k] - xi[k - 1])
    return xi


def driven(tests, twin, wires, gains_N, rng, *, reads=True, every=1):
    """Static gains (n, 3) and true austenite make forces, which are read every so many ticks;
    boards read every 0.1 s in turn.
    """
    for k in range(len(twin)):
        force_N = gains_N[k] @ wires[k] + 0.002 * rng.standard_normal()
        if k % every:
            force_N = np.nan
        read = np.full((2, 3), np.nan)
        if reads and k >= 10 and (cell := k % 10) < 3:
            age = 2
            read[0, cell] = ohms(wires[k - age])[cell] * (1.0 + 0.001 * rng.standard_normal())
            read[1, cell] = age * PERIOD_S
        twin_N = GAINS_N @ twin[k]
        tests.step(k * PERIOD_S, (force_N - twin_N, twin_N), (twin[k], ohms(twin[k])), read)
    return tests


def test_the_odds_are_those_of_two_gaussians_written_out(monkeypatch):
    """A cell that pulls weakens: its loss, disturbance and noise have covariances."""
    monkeypatch.setattr(cell_failures, "SLACK", 0.0)
    monkeypatch.setattr(cell_failures, "JOLT", 0.0)
    errors = WireErrors(wander_N=0.02, wander_for_s=0.7, stir=0.0, zero_N=1e-9, noise_N=0.05)
    rules = CellRules(
        learn_for_s=1.05, share=1e-7, austenite=1e-9, austenite_per_sqrt_s=1e-9, stir=0.0,
        contrast=1e-9, spawn_s=1.1, life_s=100.0,
    )  # fmt: skip
    tests = CellFailures(
        rules, errors, SensedWires(GAINS_N[:1], np.full((1, 1), np.nan), CONTRAST[:1]), PERIOD_S
    )
    n_before, n_after = 11, 6  # samples; the failure begins with the last one before
    e = np.random.default_rng(1).normal(0.0, 0.05, n_before + n_after)
    xi, none = np.array([0.6]), np.full((2, 1), np.nan)
    for k in range(SAMPLE_TICKS * len(e)):
        residual_N = e[k // SAMPLE_TICKS]
        tests.step(k * PERIOD_S, (residual_N, 0.24), (xi, ohms(xi)[:1]), none)
    t_s = 0.1 * np.arange(len(e))
    cov = 0.02**2 * np.exp(-np.abs(t_s[:, None] - t_s) / 0.7)
    cov += 0.05**2 / SAMPLE_TICKS * np.eye(len(e))
    pulls_N = GAINS_N[0] * 0.6 * (t_s > t_s[n_before - 1])
    weak = cov + 0.25**2 * np.outer(pulls_N, pulls_N)
    healthy = multivariate_normal(np.zeros(len(e)), cov).logpdf(e)
    expected = multivariate_normal(-0.5 * pulls_N, weak).logpdf(e) - healthy
    assert tests.log_odds == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("told", [True, False])
def test_a_wire_that_has_not_transformed_is_none_that_does_not_pull(told):
    """The force lacks half of a cell's in both; in one the resistance says why, from 4 to 12 s."""
    rng = np.random.default_rng(2)
    twin = moving(rng, 1600)
    short = twin.copy()
    short[:, 0] *= 1.0 - 0.5 * np.clip((np.arange(1600) - 400) / 800.0, 0.0, 1.0)
    gains_N = np.tile(GAINS_N, (1600, 1))
    if not told:
        gains_N[400:, 0] *= 0.5
    tests = driven(built(BROKEN_N), twin, short if told else twin, gains_N, rng)
    assert [f.cells for f in tests.findings] == ([] if told else [(0,)])


@pytest.mark.parametrize(("cell", "every"), [(0, 1), (1, 1), (2, 1), (2, 4)])
def test_a_cell_that_weakens_is_named_and_no_other(cell, every):
    rng = np.random.default_rng(10 + cell)
    twin = moving(rng, 1000)
    gains_N = np.tile(GAINS_N, (1000, 1))
    gains_N[600:, cell] *= 0.5
    tests = driven(built(BROKEN_N), twin, twin, gains_N, rng, every=every)
    assert [f.cells for f in tests.findings] == [(cell,)]
    assert 6.0 < tests.findings[0].t_s < 9.5
    assert tests.findings[0].log_odds >= tests.threshold
    assert tests.state[cell] == FAILED
    assert np.delete(tests.state, cell).tolist() == [HEALTHY] * 2


@pytest.mark.parametrize("cell", range(3))
def test_a_broken_cell_is_named_though_its_wire_transforms_sooner(cell):
    """The others pull with 20 % more or less than what was expected of the break."""
    rng = np.random.default_rng(20 + cell)
    twin = moving(rng, 1000)
    gains_N = np.tile(GAINS_N, (1000, 1))
    gains_N[600:] += 1.2 * (BROKEN_N[cell] - GAINS_N)
    gains_N[600:, cell] = 0.0
    wires = twin.copy()
    wires[600:, cell] = np.minimum(1.0, twin[600:, cell] + 0.3)
    tests = driven(built(BROKEN_N), twin, wires, gains_N, rng)
    assert [f.cells for f in tests.findings] == [(cell,)]
    assert 6.0 < tests.findings[0].t_s < 9.0


@pytest.mark.parametrize("twin_share", [0.0, 0.05])
def test_a_cell_that_does_not_pull_is_named_if_the_others_pulled_through_it(twin_share):
    """All force is gone, and wires without load transform sooner: no cell that pulled does that."""
    rng = np.random.default_rng(40)
    twin = moving(rng, 900)
    twin[:, 0] *= twin_share
    wires = twin.copy()
    wires[600:, 1:] = np.minimum(1.0, twin[600:, 1:] + 0.3)
    gains_N = np.tile(GAINS_N, (900, 1))
    gains_N[600:] = 0.0
    tests = driven(built(THROUGH_N), twin, wires, gains_N, rng)
    assert [(f.cells, f.kind) for f in tests.findings] == [((0,), "mechanical")]
    assert 6.0 < tests.findings[0].t_s < 7.5


@pytest.mark.parametrize("seed", range(3))
def test_a_break_is_named_among_wires_that_do_not_transform_sooner_without_load(seed):
    """Wires without stress: their resistances go on as they were."""
    rng = np.random.default_rng(70 + seed)
    twin = moving(rng, 900)
    twin[:, 0] = 0.0
    gains_N = np.tile(GAINS_N, (900, 1))
    gains_N[600:] = 0.0
    wires = SensedWires(GAINS_N, THROUGH_N, CONTRAST, stressed=[False] * 3)
    tests = driven(CellFailures(RULES, ERRORS, wires, PERIOD_S), twin, twin, gains_N, rng)
    assert [(f.cells, f.kind) for f in tests.findings] == [((0,), "mechanical")]


def test_the_only_cell_that_pulls_is_named_with_one_that_it_pulls_through():
    """Whichever of cells 0 and 2 broke: the force of cell 2 is gone, and no other cell tells."""
    for broken in (0, 2):
        rng = np.random.default_rng(50)
        twin = moving(rng, 900)
        twin[:, :2] = 0.0
        wires = twin.copy()
        wires[600:, 2] = np.minimum(1.0, twin[600:, 2] + 0.3)
        gains_N = np.tile(GAINS_N, (900, 1))
        gains_N[600:] = THROUGH_N[broken]
        tests = driven(built(THROUGH_N), twin, wires, gains_N, rng)
        assert [(f.cells, f.kind) for f in tests.findings] == [((0, 2), "mechanical")]


def test_a_cell_that_was_named_weak_is_named_when_it_breaks():
    rng = np.random.default_rng(60)
    twin = moving(rng, 2200)
    gains_N = np.tile(GAINS_N, (2200, 1))
    gains_N[600:, 0] *= 0.5
    gains_N[1800:] = 0.0
    wires = twin.copy()
    wires[1800:] = np.minimum(1.0, twin[1800:] + 0.3)
    tests = driven(built(THROUGH_N), twin, wires, gains_N, rng)
    assert [(f.cells, f.kind) for f in tests.findings] == [((0,), "weak"), ((0,), "mechanical")]
    assert 18.0 < tests.findings[1].t_s < 19.5


def test_cells_in_a_row_are_named_together():
    """Whichever of cells 0 and 2 breaks, neither pulls any longer."""
    rng = np.random.default_rng(30)
    twin = moving(rng, 900)
    gains_N = np.tile(GAINS_N, (900, 1))
    gains_N[600:] = CHAIN_N[2]
    tests = driven(built(CHAIN_N), twin, twin, gains_N, rng)
    assert [(f.cells, f.kind) for f in tests.findings] == [((0, 2), "mechanical")]
    assert tests.log_odds == -np.inf  # nothing is tested any longer
    assert tests.state.tolist() == [FAILED, HEALTHY, FAILED]


def test_like_cells_that_move_together_stay_suspects():
    """Nothing tells apart which of two like wires has lost its force; neither is named."""
    rng = np.random.default_rng(40)
    twin = moving(rng, 1000)
    twin[:, 1] = twin[:, 0]
    like_N = np.array([0.3, 0.3, 0.2])
    tests = CellFailures(RULES, ERRORS, SensedWires(like_N, NOTHING_BREAKS, CONTRAST), PERIOD_S)
    suspects = np.zeros(3, dtype=bool)
    for k in range(1000):
        force_N = like_N @ twin[k] - (k >= 600) * 0.15 * twin[k, 0] + 0.002 * rng.standard_normal()
        twin_N, read = like_N @ twin[k], np.full((2, 3), np.nan)
        tests.step(k * PERIOD_S, (force_N - twin_N, twin_N), (twin[k], ohms(twin[k])), read)
        suspects |= tests.state == SUSPECT
    assert tests.findings == []
    assert suspects[:2].all()


def test_odds_of_a_healthy_array_are_seldom_high():
    """Chance of e^A is e^-A at most for each hypothesis (Ville); errors are as stated."""
    rng = np.random.default_rng(3)
    high = begun = 0
    rules = replace(RULES, spawn_s=1.0, life_s=2.0)
    for _ in range(40):
        twin = moving(rng, 300)
        gains_N = np.tile(GAINS_N * (1.0 + RULES.share * rng.standard_normal(3)), (300, 1))
        tests = driven(built(NOTHING_BREAKS, rules), twin, twin, gains_N, rng)
        high += tests.log_odds >= np.log(20.0)
        begun += 2 * 3  # alive at the end
    assert high <= begun / 20.0


def test_a_cell_that_does_not_pull_is_not_tested():
    rng = np.random.default_rng(50)
    twin = moving(rng, 900)
    twin[:, 1] = 0.0
    gains_N = np.tile(GAINS_N, (900, 1))
    gains_N[600:, 1] = 0.0
    tests = driven(built(BROKEN_N), twin, twin, gains_N, rng)
    assert tests.findings == []
    assert tests.state.tolist() == [HEALTHY] * 3


def test_missing_readings_say_nothing():
    twin = moving(np.random.default_rng(60), 600)
    tests = built(BROKEN_N)
    for k in range(600):
        read = np.full((2, 3), np.nan)
        tests.step(k * PERIOD_S, (np.nan, 0.3), (twin[k], ohms(twin[k])), read)
    assert tests.findings == []
    assert tests.log_odds <= 0.0


def test_an_old_resistance_is_compared_with_the_twin_of_its_time():
    """Force and resistances are the twin's, these 0.1 s old: no error is found."""
    twin = moving(np.random.default_rng(70), 500)
    tests = built(NOTHING_BREAKS)
    for k in range(10, 500):
        read = np.array([ohms(twin[k - 10]), np.full(3, 0.1)])
        if k < 20:  # the twin's past begins at 10
            read[:] = np.nan
        tests.step(k * PERIOD_S, (0.0, GAINS_N @ twin[k]), (twin[k], ohms(twin[k])), read)
    assert np.abs(tests._bank.x[0]).max() < 1e-9


@pytest.mark.parametrize("n_periods", [1, 2, 60])
def test_periods_that_were_missed_count_in_ages_and_times(n_periods):
    """Resistances are the twin's of 0.1 s before; the disturbance gains 2 sd^2 / T_w a second."""
    errors = WireErrors(wander_N=1e-3, wander_for_s=1e6, stir=0.0, zero_N=1e-9, noise_N=1.0)
    tests, twin = built(NOTHING_BREAKS, errors=errors), moving(np.random.default_rng(71), 6010)
    tests._bank.P[0, -1, -1] = 0.0
    for k in range(100):
        at = 9 + k * n_periods
        read = np.array([ohms(twin[max(0, at - 10)]), np.full(3, 0.1)])
        if k * n_periods < 10 or n_periods > 10:  # no tick of the twin is 0.1 s old
            read[:] = np.nan
        force_N = (np.nan if k < 99 else 0.0, GAINS_N @ twin[at])
        tests.step(at * PERIOD_S, force_N, (twin[at], ohms(twin[at])), read, n_periods)
    assert np.abs(tests._bank.x[0]).max() < 1e-9
    lasted_s = (99 * n_periods + 1) * PERIOD_S
    assert tests._bank.P[0, -1, -1] == pytest.approx(2e-12 * lasted_s, rel=1e-3)


def test_a_cell_is_named_once_it_has_been_certain_for_as_long_as_is_asked():
    named_s = []
    for confirm_s in (0.1, 1.5):
        rng = np.random.default_rng(11)
        twin = moving(rng, 1200)
        gains_N = np.tile(GAINS_N, (1200, 1))
        gains_N[600:, 1] *= 0.5
        rules = replace(RULES, confirm_s=confirm_s)
        named_s.append(driven(built(BROKEN_N, rules), twin, twin, gains_N, rng).findings[0].t_s)
    assert named_s[1] >= named_s[0] + 1.35


def one_cell(errors):
    """Tests of one cell whose force errs only as `errors` say."""
    rules = replace(
        RULES, share=1e-9, austenite=1e-9, austenite_per_sqrt_s=1e-9, stir=0.0, contrast=1e-9
    )
    wires = SensedWires(GAINS_N[:1], np.full((1, 1), np.nan), CONTRAST[:1])
    return CellFailures(rules, errors, wires, PERIOD_S)


def test_a_force_that_is_late_is_told_as_its_delay():
    """Of a force F' that comes d later the reading is F' - d dF'/dt."""
    errors = WireErrors(wander_N=1e-4, stir=0.0, zero_N=1e-9, noise_N=1e-3, delay_s=0.05)
    tests, late_s, xi = one_cell(errors), 0.03, np.array([0.5])
    for k in range(600):
        t_s = k * PERIOD_S
        force_N, was_N = (0.3 - 0.2 * np.cos(2.0 * (t_s - d_s)) for d_s in (0.0, late_s))
        tests.step(t_s, (was_N - force_N, force_N), (xi, ohms(xi)[:1]), np.full((2, 1), np.nan))
    assert tests._bank.x[0, -2] == pytest.approx(late_s, rel=0.05)


@pytest.mark.parametrize("ring_N", [0.005, 0.05])
def test_readings_while_the_array_rings_count_as_noisy_as_they_are(ring_N):
    """The first sample shows the disturbance, of variance V, with the weight V / (V + noise)."""
    errors = WireErrors(wander_N=0.02, stir=0.0, zero_N=1e-9, noise_N=0.002)
    tests, xi, k = one_cell(errors), np.zeros(1), np.arange(SAMPLE_TICKS)
    readings_N = 0.02 + 0.003 * k + ring_N * (-1.0) ** k
    for at, reading_N in enumerate(readings_N):
        tests.step(at * PERIOD_S, (reading_N, 0.0), (xi, ohms(xi)[:1]), np.full((2, 1), np.nan))
    off_N = readings_N - np.polyval(np.polyfit(k, readings_N, 1), k)
    rings = ring_N > 4.0 * 0.002
    noise_N2 = off_N @ off_N / (SAMPLE_TICKS - 2) if rings else 0.002**2 / SAMPLE_TICKS
    expected_N = readings_N.mean() * 0.02**2 / (0.02**2 + noise_N2)
    assert tests._bank.x[0, -1] == pytest.approx(expected_N, rel=1e-6)


@pytest.mark.parametrize(("readings", "counted"), [("repeated", 1), ("changed", 10)])
def test_a_reading_that_repeats_the_last_has_its_rounding_error_too(readings, counted):
    """Ten readings that differ leave r_n with the variance of ten; one that repeats, of one."""
    errors = WireErrors(wander_N=1e-4, stir=0.0, zero_N=1e-9, noise_N=0.002)
    tests, xi, none = one_cell(errors), np.zeros(1), np.full((2, 1), np.nan)
    prior, noise = RULES.resistance, RULES.resolution
    for k in range(101):
        step = 4.0 * noise * (k // 10 % 2) if readings == "changed" else 0.0
        read = np.array([[OHM * (1.0 + step)], [0.0]]) if k and k % 10 == 0 else none
        tests.step(k * PERIOD_S, (0.0, 0.0), (xi, ohms(xi)[:1]), read)
    variance = 1.0 / (1.0 / prior**2 + counted / noise**2)
    assert tests._bank.P[0, 2, 2] == pytest.approx(variance, rel=1e-3)


def test_a_reading_that_repeats_counts_again_after_some_time():
    tests, xi, none = one_cell(ERRORS), np.zeros(1), np.full((2, 1), np.nan)
    variances = []
    for k in range(round(2.5 * RULES.repeat_s / PERIOD_S)):
        read = np.array([[OHM], [0.0]]) if k and k % 10 == 0 else none
        tests.step(k * PERIOD_S, (0.0, 0.0), (xi, ohms(xi)[:1]), read)
        variances.append(tests._bank.P[0, 2, 2])
    assert (np.diff(variances) < -1e-9).sum() == 3


def test_a_late_force_is_as_uncertain_in_the_sample_after_the_move():
    """A move of 0.4 N adds (stir x 0.4 N)^2 to the disturbance, in its sample and in the next."""
    errors = WireErrors(wander_N=1e-6, wander_for_s=1e6, stir=0.1, zero_N=1e-9, noise_N=0.002)
    tests, none, variances = one_cell(errors), np.full((2, 1), np.nan), []
    for k in range(4 * SAMPLE_TICKS):
        xi = np.array([1.0 if k >= SAMPLE_TICKS else 0.0])
        tests.step(k * PERIOD_S, (np.nan, 0.3), (xi, ohms(xi)[:1]), none)
        variances.append(tests._bank.P[0, -1, -1])
    grown = np.diff(variances[SAMPLE_TICKS - 1 :: SAMPLE_TICKS])
    assert grown == pytest.approx([(0.1 * 0.4) ** 2] * 2 + [0.0], abs=1e-9)


@pytest.mark.parametrize("after_ms", [0, 100, 200])
def test_the_right_cell_is_named_whenever_it_weakens(after_ms):
    """Hypotheses that begin too seldom take a failure between two of them for another cell's."""
    rng = np.random.default_rng(2)
    twin = moving(rng, 900)
    gains_N = np.tile(GAINS_N, (900, 1))
    gains_N[400 + after_ms // 10 :, 0] *= 0.5
    tests = driven(built(BROKEN_N), twin, twin, gains_N, rng)
    assert [f.cells for f in tests.findings] == [(0,)]


def test_an_alarm_a_day_needs_the_odds_that_healthy_runs_reached_once_a_day():
    """36 for six cells, of which two are in a row, by the tail of the runs of the docstring."""
    broken_N = 0.1 * (1.0 - np.eye(6))
    broken_N[3] = broken_N[2]
    wires = SensedWires(np.full(6, 0.3), broken_N, np.full(6, -0.1))
    tests = CellFailures(CellRules(), ERRORS, wires, PERIOD_S)
    assert tests.threshold == pytest.approx(36.0, abs=0.5)
