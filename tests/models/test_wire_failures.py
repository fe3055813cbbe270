"""Tests for failed wires against Gaussian likelihoods written out, and by their promises."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lsim
from scipy.stats import multivariate_normal

from hil.models.isolation import FAILED, HEALTHY, SUSPECT
from hil.models.sma_wire import SmaWire, SmaWires, wire_laws
from hil.models.wire_cells import WireModel
from hil.models.wire_failures import WireFailures, WireRules

PERIOD_S = 0.05
SHARES = np.array([0.4, 0.25, 0.3])
RATE_PER_S = 3.0
WIRES = [SmaWire(specific_heat_J_per_kg_K=c) for c in (200.0, 300.0, 400.0)]
MODEL = WireModel(wire_laws(WIRES), SHARES, np.full(3, RATE_PER_S), np.zeros(3))
NOTHING_BREAKS = np.full((3, 3), np.nan)
RULES = WireRules(sample_s=PERIOD_S)


def heated(on, dead_from=None):
    """Temperature and austenite (ticks, N) of these wires; one is not heated from a tick on."""
    wires, F = SmaWires(WIRES, np.ones(3)), np.zeros((2, 3))
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


def test_the_odds_are_those_of_two_gaussians_written_out():
    """One hypothesis, begun at tick 39: covariances of all that may be wrong, and its change."""
    n, begun = 60, 39
    on = np.zeros((n, 3), dtype=np.uint8)
    on[4:, 0] = 1
    on[2:30, 1] = 1
    rules = WireRules(
        sample_s=PERIOD_S, share=1e-6, timing_s=0.05, common_s=0.08, timing_for_s=4.0,
        wander_N=0.02, wander_for_s=0.7, stir=0.0, zero_N=0.01, noise_N=0.015, spawn_s=2.0,
        life_s=10.0,
    )  # fmt: skip
    e = np.random.default_rng(1).normal(0.0, 0.05, n)
    tests = driven(WireFailures(rules, MODEL, NOTHING_BREAKS, PERIOD_S), on, e)

    _, xi = heated(on)
    t_s = PERIOD_S * np.arange(n)
    apart_s = np.abs(t_s[:, None] - t_s)
    cov = rules.noise_N**2 * np.eye(n)
    cov += rules.wander_N**2 * np.exp(-apart_s / rules.wander_for_s)
    cov += rules.zero_N**2 * np.exp(-apart_s / rules.share_for_s)
    # austenite's last speed, kept where it came to rest in between, through the lag (zero order)
    speed = np.vstack([np.zeros((1, 3)), np.diff(xi, axis=0) / PERIOD_S])
    for k in range(1, n):
        held = (speed[k] == 0.0) & (xi[k] > 0.0) & (xi[k] < 1.0)
        speed[k] = np.where(held, speed[k - 1], speed[k])
    keep = np.exp(-RATE_PER_S * PERIOD_S)
    for sign in (1.0, -1.0):
        u = np.zeros((n, 3))
        for k in range(1, n):
            u[k] = keep * u[k - 1] + (1.0 - keep) * sign * np.maximum(0.0, sign * speed[k])
        together = u @ SHARES
        cov += (
            rules.common_s**2 * np.exp(-apart_s / rules.timing_for_s) * np.outer(together, together)
        )
        for c in range(3):
            phi = SHARES[c] * u[:, c]
            cov += rules.timing_s**2 * np.exp(-apart_s / rules.timing_for_s) * np.outer(phi, phi)
    # the wire left to itself from then on
    _, left = heated(on, (0, begun))
    alone = lagged(left[:, :1])[:, 0]
    g = -SHARES[0] * (lagged(xi[:, :1])[:, 0] - alone)
    d = np.where(t_s > t_s[begun], -SHARES[0] * np.gradient(alone, PERIOD_S), 0.0)
    d[1:] = np.where(t_s[1:] > t_s[begun], -SHARES[0] * np.diff(alone) / PERIOD_S, 0.0)
    own = cov + (rules.timing_s**2 + rules.spawn_s**2 / 12.0) * np.outer(d, d)
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
        tests = WireFailures(rules, MODEL, NOTHING_BREAKS, PERIOD_S)
        _, xi = heated(on)
        z = lagged(xi)
        e = (SHARES * z) @ rng.normal(0.0, rules.share, 3) + rng.normal(0.0, rules.noise_N, 120)
        driven(tests, on, e)
        high += tests.log_odds >= np.log(20.0)
        begun += 2 * 3  # alive at the end
    assert high <= begun / 20.0


@pytest.mark.parametrize("cell", range(3))
def test_a_wire_that_dies_is_named_and_no_other(cell):
    rng = np.random.default_rng(10 + cell)
    on = np.ones((400, 3), dtype=np.uint8)
    on[::1, :] = drawn(rng, 400)
    on[200:260, cell] = 1
    died = 230
    _, xi = heated(on)
    _, truly = heated(on, (cell, died))
    e = (lagged(truly) - lagged(xi)) @ SHARES + 0.002 * rng.standard_normal(400)
    tests = driven(WireFailures(RULES, MODEL, NOTHING_BREAKS, PERIOD_S), on, e)
    assert [f.cells for f in tests.findings] == [(cell,)]
    assert tests.state[cell] == FAILED
    assert np.delete(tests.state, cell).tolist() == [HEALTHY] * 2
    assert tests.findings[0].t_s > died * PERIOD_S
    assert tests.findings[0].log_odds >= tests.threshold


def test_like_wires_on_together_stay_suspects():
    """Two wires of one law and one share: nothing tells them apart while both are on."""
    wires = [WIRES[0], WIRES[0], WIRES[2]]
    shares = np.array([0.3, 0.3, 0.2])
    model = WireModel(wire_laws(wires), shares, np.full(3, RATE_PER_S), np.zeros(3))
    on = np.zeros((200, 3), dtype=np.uint8)
    on[5:, :2] = 1
    own, F = SmaWires(wires, np.ones(3)), np.zeros((2, 3))
    own.reset(F[0], F[1])
    tests = WireFailures(RULES, model, NOTHING_BREAKS, PERIOD_S)
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


def test_a_broken_cell_is_told_from_a_dead_one():
    """Its force goes at once, and the others' shares move."""
    broken = np.array([SHARES] * 3)
    broken[1] = [0.36, 0.0, 0.33]
    rng = np.random.default_rng(6)
    on = np.ones((300, 3), dtype=np.uint8)
    _, xi = heated(on)
    z = lagged(xi)
    e = 0.002 * rng.standard_normal(300)
    e[150:] += z[150:] @ (broken[1] - SHARES)
    tests = driven(WireFailures(RULES, MODEL, broken, PERIOD_S), on, e)
    assert [(f.cells, f.kind) for f in tests.findings] == [((1,), "mechanical")]
    assert tests.findings[0].t_s < 151 * PERIOD_S + 0.5


def test_missing_readings_say_nothing():
    on = np.ones((100, 3), dtype=np.uint8)
    tests = driven(WireFailures(RULES, MODEL, NOTHING_BREAKS, PERIOD_S), on, np.full(100, np.nan))
    assert tests.findings == []
    assert tests.log_odds <= 0.0
