"""Tests for failed wires against Gaussian likelihoods written out, and by their promises."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lsim
from scipy.stats import multivariate_normal

from hil.mechanics.sma.limits import CellBranches
from hil.mechanics.sma.wire import SmaWire, SmaWires, wire_laws
from hil.systems.array.failures.isolation import FAILED, HEALTHY, SUSPECT
from hil.systems.array.failures.wire_failures import WireFailures, WireRules
from hil.systems.array.wires.bank import OFF, OFF_K
from hil.systems.array.wires.cells import WireModel
from hil.systems.array.wires.filter import WireErrors

PERIOD_S = 0.05
SHARES = np.array([0.4, 0.25, 0.3])
RATE_PER_S = 3.0
WIRES = [SmaWire(specific_heat_J_per_kg_K=c) for c in (200.0, 300.0, 400.0)]
KNOTS_C = np.array([CellBranches.unstressed(wire).working_C for wire in WIRES])
MODEL = WireModel(wire_laws(WIRES), KNOTS_C, SHARES, np.full(3, RATE_PER_S), np.zeros(3))
NOTHING_BREAKS = np.full((3, 3), np.nan)
RULES, ERRORS = WireRules(learn_for_s=0.0), WireErrors(sample_s=PERIOD_S)


def heated(on, dead_from=None, wires=WIRES):
    """Temperature and austenite (ticks, N) of these wires; one is not heated from a tick on."""
    wires, F = SmaWires(wires, np.ones(3)), np.zeros((2, 3))
    wires.reset(F[0], F[1])
    T, xi = np.empty((2, *on.shape))
    for k in range(len(on)):
        T[k], xi[k] = wires.T_C, wires.xi
        drive = on[k].copy()
        if dead_from is not None and k >= dead_from[1]:
            drive[dead_from[0]] = 0
        wires.step(drive, PERIOD_S, F[0], F[1])
    return T, xi


def lagged(u):
    """Every column through the lag, linear between samples."""
    t_s = PERIOD_S * np.arange(len(u))
    return np.column_stack([lsim(([RATE_PER_S], [1.0, RATE_PER_S]), c, t_s)[1] for c in u.T])


def driven(tests, on, e):
    """Row k holds the reading of now, and the cells on until now."""
    T, xi = heated(on)
    before = np.vstack([np.zeros((1, 3), dtype=np.uint8), on[:-1]])
    for k in range(len(on)):
        tests.step(k * PERIOD_S, e[k], T[k], xi[k], before[k])
    return tests


def off(wire, key, by):
    return replace(wire, **{key: by(getattr(wire, key))})


def test_the_odds_are_those_of_two_gaussians_written_out():
    """One hypothesis, begun at tick 39: covariances of all that may be wrong, and its change."""
    n, begun = 60, 39
    on = np.zeros((n, 3), dtype=np.uint8)
    on[4:, 0] = 1
    on[2:30, 1] = 1
    errors = WireErrors(
        sample_s=PERIOD_S, share=1e-6, heating=0.04, cooling=0.06, room_K=1.2, delay_s=0.03,
        same_for_s=4.0, wander_N=0.02, wander_for_s=0.7, stir=0.0, zero_N=0.01, noise_N=0.015,
    )  # fmt: skip
    rules = WireRules(learn_for_s=0.0, spawn_s=2.0, life_s=10.0)
    e = np.random.default_rng(1).normal(0.0, 0.05, n)
    tests = driven(WireFailures(rules, errors, MODEL, NOTHING_BREAKS, PERIOD_S), on, e)

    _, xi = heated(on)
    z = lagged(xi)
    t_s = PERIOD_S * np.arange(n)
    apart_s = np.abs(t_s[:, None] - t_s)
    same = np.exp(-apart_s / errors.same_for_s)
    cov = errors.noise_N**2 * np.eye(n)
    cov += errors.wander_N**2 * np.exp(-apart_s / errors.wander_for_s)
    cov += errors.zero_N**2 * same
    # power goes with the voltage squared
    for sd, key, by, step in (
        (errors.heating, "supply_V", lambda V: V * np.sqrt(1.0 + OFF), OFF),
        (errors.cooling, "convection_W_per_m2_K", lambda h: h * (1.0 + OFF), OFF),
        (errors.room_K, "ambient_C", lambda T: T + OFF_K, OFF_K),
    ):
        wires = [off(replace(w, supply_V=w.cell_V), key, by) for w in WIRES]
        phi = SHARES * (lagged(heated(on, wires=wires)[1]) - z) / step
        if key == "ambient_C":  # one air around all
            phi = phi.sum(axis=1, keepdims=True)
        cov += sd**2 * same * (phi @ phi.T)
    late = -(np.diff(z @ SHARES, prepend=0.0)) / PERIOD_S
    cov += errors.delay_s**2 * same * np.outer(late, late)
    # the wire left to itself from then on
    _, left = heated(on, (0, begun))
    alone = lagged(left[:, :1])[:, 0]
    g = -SHARES[0] * (z[:, 0] - alone)
    d = np.where(t_s > t_s[begun], -SHARES[0] * np.diff(alone, prepend=0.0) / PERIOD_S, 0.0)
    own = cov + (rules.moment_s**2 + rules.spawn_s**2 / 12.0) * np.outer(d, d)
    expected = (multivariate_normal(g, own).logpdf(e)
                - multivariate_normal(np.zeros(n), cov).logpdf(e))  # fmt: skip
    assert tests.log_odds == pytest.approx(expected, rel=1e-5, abs=1e-5)


def drawn(rng, n_ticks):
    """Cells switched at random, each state held for a second or more."""
    return np.repeat(rng.integers(0, 2, (n_ticks // 25 + 1, 3)), 25, axis=0)[:n_ticks].astype(
        np.uint8
    )


def test_odds_of_a_healthy_array_are_seldom_high():
    """Chance of e^A is e^-A at most for each hypothesis (Ville); errors no larger than stated."""
    rng = np.random.default_rng(2)
    high = begun = 0
    rules = replace(RULES, spawn_s=1.0, life_s=2.0)
    for _ in range(60):
        on = drawn(rng, 120)
        tests = WireFailures(rules, ERRORS, MODEL, NOTHING_BREAKS, PERIOD_S)
        _, xi = heated(on)
        z = lagged(xi)
        e = (SHARES * z) @ rng.normal(0.0, ERRORS.share, 3) + rng.normal(0.0, ERRORS.noise_N, 120)
        driven(tests, on, e)
        high += tests.log_odds >= np.log(20.0)
        begun += 2 * 3  # alive at the end
    assert high <= begun / 20.0


@pytest.mark.parametrize(("cell", "every"), [(0, 1), (1, 1), (2, 1), (2, 2)])
def test_a_wire_that_dies_is_named_and_no_other(cell, every):
    """Also where samples of two ticks end in those without a reading."""
    rng = np.random.default_rng(10 + cell)
    on = np.ones((400, 3), dtype=np.uint8)
    on[::1, :] = drawn(rng, 400)
    on[200:260, cell] = 1
    died = 230
    _, xi = heated(on)
    _, truly = heated(on, (cell, died))
    e = (lagged(truly) - lagged(xi)) @ SHARES + 0.002 * rng.standard_normal(400)
    e[np.arange(400) % every != 0] = np.nan
    errors = replace(ERRORS, sample_s=every * PERIOD_S)
    tests = driven(WireFailures(RULES, errors, MODEL, NOTHING_BREAKS, PERIOD_S), on, e)
    assert [f.cells for f in tests.findings] == [(cell,)]
    assert tests.state[cell] == FAILED
    assert np.delete(tests.state, cell).tolist() == [HEALTHY] * 2
    assert tests.findings[0].t_s > died * PERIOD_S
    assert tests.findings[0].log_odds >= tests.threshold


def test_none_is_named_before_the_laws_of_the_day_are_learned():
    """Cells wait for 3 s; one dies at 5.5 s and is looked at when they have been on for 5 s."""
    on = np.vstack([np.zeros((60, 3), dtype=np.uint8), drawn(np.random.default_rng(21), 400)])
    on[90:150, 1] = 1
    _, xi = heated(on)
    _, truly = heated(on, (1, 110))
    e = (lagged(truly) - lagged(xi)) @ SHARES + 0.002 * np.random.default_rng(22).normal(size=460)
    named_s = []
    for learn_for_s in (0.0, 5.0):
        rules = replace(RULES, learn_for_s=learn_for_s)
        tests = driven(WireFailures(rules, ERRORS, MODEL, NOTHING_BREAKS, PERIOD_S), on, e)
        named_s.append(next(f.t_s for f in tests.findings if f.cells == (1,)))
    assert 5.5 < named_s[0] < 8.0 < named_s[1]


def test_a_room_that_is_read_from_the_first_tick_on_blinds_no_test():
    on = np.ones((200, 3), dtype=np.uint8)
    _, xi = heated(on)
    _, truly = heated(on, (1, 100))
    e = (lagged(truly) - lagged(xi)) @ SHARES + 0.002 * np.random.default_rng(20).normal(size=200)
    tests = WireFailures(RULES, ERRORS, MODEL, NOTHING_BREAKS, PERIOD_S)
    tests.set_air(SmaWire().ambient_C, settled=True)
    assert [f.cells for f in driven(tests, on, e).findings] == [(1,)]


def test_like_wires_on_together_stay_suspects():
    """Two wires of one law and one share: nothing tells them apart while both are on."""
    wires = [WIRES[0], WIRES[0], WIRES[2]]
    gains_N = np.array([0.3, 0.3, 0.2])
    knots_C = np.array([CellBranches.unstressed(wire).working_C for wire in wires])
    model = WireModel(wire_laws(wires), knots_C, gains_N, np.full(3, RATE_PER_S), np.zeros(3))
    on = np.zeros((200, 3), dtype=np.uint8)
    on[5:, :2] = 1
    own, F = SmaWires(wires, np.ones(3)), np.zeros((2, 3))
    own.reset(F[0], F[1])
    tests = WireFailures(RULES, ERRORS, model, NOTHING_BREAKS, PERIOD_S)
    ghost = SmaWires(wires, np.ones(3))
    ghost.reset(F[0].copy(), F[1].copy())
    lag = np.zeros(2)
    rng = np.random.default_rng(3)
    before = np.zeros(3, dtype=np.uint8)
    keep = np.exp(-RATE_PER_S * PERIOD_S)
    for k in range(200):
        lag = keep * lag + (1.0 - keep) * np.array([ghost.xi[0], own.xi[0]])
        e = 0.3 * (lag[0] - lag[1]) + 0.002 * rng.standard_normal()
        tests.step(k * PERIOD_S, e, own.T_C, own.xi, before)
        own.step(on[k], PERIOD_S, F[0], F[1])
        ghost.step(on[k] if k < 100 else np.zeros(3, dtype=np.uint8), PERIOD_S, F[0], F[1])
        before = on[k]
    assert tests.findings == []
    assert tests.state.tolist() == [SUSPECT, SUSPECT, HEALTHY]
    assert tests.suspicion[:2] == pytest.approx([0.5, 0.5], abs=1e-6)


def broken_at(k, rows, rng, *, rings_N=0.0, period_s=PERIOD_S):
    """Residuals of three wires switched at random, their static gains other ones from tick k on."""
    n = 400
    on = drawn(rng, n)
    on[k - 40 : k + 1] = 1
    _, xi = heated(on)
    z = lagged(xi)
    e = 0.002 * rng.standard_normal(n)
    t_s = period_s * np.arange(n - k)
    e[k:] += z[k:] @ (rows - SHARES) + rings_N * np.exp(-t_s) * np.sin(180.0 * t_s)
    return on, e


BROKEN = np.array([[0.0, 0.3, 0.2], [0.36, 0.0, 0.33], [0.5, 0.2, 0.0]])


@pytest.mark.parametrize("cell", range(3))
def test_a_broken_cell_is_named_though_what_it_leaves_is_known_by_and_by(cell):
    """The others' static gains after the break are 20 % off what was told of it."""
    left = SHARES + 1.2 * (BROKEN[cell] - SHARES)
    left[cell] = 0.0
    on, e = broken_at(200, left, np.random.default_rng(6 + cell))
    tests = driven(WireFailures(RULES, ERRORS, MODEL, BROKEN, PERIOD_S), on, e)
    assert [(f.cells, f.kind) for f in tests.findings] == [((cell,), "mechanical")]
    assert tests.findings[0].t_s > 200 * PERIOD_S


def test_cells_of_a_chain_that_breaks_are_named_together():
    """Cells 0 and 2 in a row: whichever breaks, neither pulls any longer."""
    chain = np.array([[0.0, 0.25, 0.0], [0.4, 0.0, 0.3], [0.0, 0.25, 0.0]])
    on, e = broken_at(200, chain[2], np.random.default_rng(8))
    tests = driven(WireFailures(RULES, ERRORS, MODEL, chain, PERIOD_S), on, e)
    assert [(f.cells, f.kind) for f in tests.findings] == [((0, 2), "mechanical")]
    assert tests.state.tolist() == [FAILED, HEALTHY, FAILED]


def test_a_knock_breaks_none():
    """Ten readings a sample ring at 28 Hz for a second; every cell pulls as before."""
    errors = replace(ERRORS, sample_s=0.05)
    period_s, n = 0.005, 4000
    rng = np.random.default_rng(9)
    on = np.repeat(drawn(rng, n // 10), 10, axis=0)
    wires, F = SmaWires(WIRES, np.ones(3)), np.zeros((2, 3))
    wires.reset(F[0], F[1])
    tests = WireFailures(RULES, errors, MODEL, BROKEN, period_s)
    before, rang = np.zeros(3, dtype=np.uint8), False
    for k in range(n):
        t_s = k * period_s
        e = 0.002 * rng.standard_normal()
        if 10.0 <= t_s:
            e += 0.2 * np.exp(-3.0 * (t_s - 10.0)) * np.sin(180.0 * t_s)
        tests.step(t_s, e, wires.T_C, wires.xi, before)
        rang = rang or bool((tests.state == SUSPECT).any())
        wires.step(on[k], period_s, F[0], F[1])
        before = on[k]
    assert rang
    assert tests.findings == []
    assert tests.state.tolist() == [HEALTHY] * 3


def test_missing_readings_say_nothing():
    on = np.ones((100, 3), dtype=np.uint8)
    tests = driven(
        WireFailures(RULES, ERRORS, MODEL, NOTHING_BREAKS, PERIOD_S), on, np.full(100, np.nan)
    )
    assert tests.findings == []
    assert tests.log_odds <= 0.0


@pytest.mark.parametrize("n_periods", [2, 3])
def test_after_periods_that_were_missed_the_odds_are_those_of_a_longer_period(n_periods):
    """The same readings at the same times: of every second or third period, or of longer ones."""
    on, long_s = np.ones((600, 3), dtype=np.uint8), n_periods * PERIOD_S
    on[:100] = 0
    T, xi = heated(on)
    dead_xi = heated(on, (1, 200))[1]
    e = (lagged(dead_xi) - lagged(xi)) @ SHARES
    rules = replace(RULES, spawn_s=6 * PERIOD_S)
    missing = WireFailures(
        rules, replace(ERRORS, sample_s=2 * PERIOD_S), MODEL, NOTHING_BREAKS, PERIOD_S
    )
    longer = WireFailures(rules, replace(ERRORS, sample_s=long_s), MODEL, NOTHING_BREAKS, long_s)
    of_both = []
    for k in range(n_periods, 600, n_periods):
        for tests, n in ((missing, n_periods), (longer, 1)):
            tests.step(k * PERIOD_S, e[k], T[k], xi[k], on[k - 1], n)
        of_both.append((missing.log_odds, longer.log_odds))
    odds, expected = np.array(of_both).T
    assert expected.max() > longer.threshold
    assert odds == pytest.approx(expected, rel=1e-9)
    assert [f.cells for f in missing.findings] == [f.cells for f in longer.findings]
