"""Wires learned while they work, against a Gaussian written out and wires of known law."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lsim

from hil.mechanics.sma.limits import CellBranches
from hil.mechanics.sma.stressed import AS_TABULATED, advance
from hil.mechanics.sma.wire import SmaWire, SmaWires, wire_laws
from hil.systems.array.wires.bank import WireBank
from hil.systems.array.wires.cells import WireModel
from hil.systems.array.wires.filter import WireErrors
from hil.systems.array.wires.learning import LearnedWires

PERIOD_S, NOISE_N = 0.05, 0.002
SHARES = np.array([0.4, 0.25, 0.3])
RATE_PER_S = 3.0
WIRES = [SmaWire(specific_heat_J_per_kg_K=c) for c in (200.0, 300.0, 400.0)]
TOLD = wire_laws(WIRES)
KNOTS_C = np.array([CellBranches.unstressed(wire).working_C for wire in WIRES])
MODEL = WireModel(TOLD, KNOTS_C, SHARES, np.full(3, RATE_PER_S), np.zeros(3))
ERRORS = WireErrors(sample_s=PERIOD_S, noise_N=NOISE_N)


def switched(n_ticks, seed=0):
    """Each cell on and off by lot, a second or more each time."""
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(0, 2, (n_ticks // 25 + 1, 3)), 25, axis=0)[:n_ticks].astype(
        np.uint8
    )


def heated(on, wires=WIRES, dead=()):
    """Temperature, austenite (ticks, N) when every tick begins."""
    own, F = SmaWires(wires, np.ones(3)), np.zeros((2, 3))
    own.reset(F[0], F[1])
    T, xi = np.empty((2, *on.shape))
    for k in range(len(on)):
        T[k], xi[k] = own.T_C, own.xi
        own.step(np.where(np.isin(np.arange(3), dead), 0, on[k]), PERIOD_S, F[0], F[1])
    return T, xi


def lagged(u):
    """Every column through the lag, linear between samples."""
    t_s = PERIOD_S * np.arange(len(u))
    return np.column_stack([lsim(([RATE_PER_S], [1.0, RATE_PER_S]), c, t_s)[1] for c in u.T])


def taught(force_N, on, errors=ERRORS, bent_per_N=0.0):
    """Wires that have seen these readings, beside a twin of what was told, or of a bent force."""
    wires = LearnedWires(errors, MODEL, PERIOD_S)
    T, xi = heated(on)
    twin_N = bent(lagged(xi) @ SHARES, bent_per_N)
    before = np.vstack([np.zeros((1, 3), dtype=np.uint8), on[:-1]])
    for k in range(len(on)):
        forces_N = force_N[k] - twin_N[k], twin_N[k]
        wires.step(k * PERIOD_S, forces_N, (T[k], xi[k]), before[k])
    return wires


def bent(force_N, per_N):
    """Less than in proportion to austenite, as where the stroke of a wire grows with stress."""
    return force_N * (1.0 - per_N * force_N)


def test_shares_are_learned_as_bayes_has_it():
    """Shares alone are uncertain: the posterior's mean, written out."""
    on = switched(80)
    errors = replace(
        ERRORS, share=0.05, heating=1e-9, cooling=1e-9, room_K=1e-9, delay_s=1e-9, zero_N=1e-9,
        wander_N=1e-9, stir=0.0, same_for_s=1e9,
    )  # fmt: skip
    phi = lagged(heated(on)[1]) * SHARES
    rng = np.random.default_rng(1)
    force_N = phi @ (1.0 + rng.normal(0.0, 0.05, 3)) + rng.normal(0.0, NOISE_N, 80)
    info = phi.T @ phi / NOISE_N**2 + np.eye(3) / 0.05**2
    expected = np.linalg.solve(info, phi.T @ (force_N - phi.sum(axis=1)) / NOISE_N**2)
    assert taught(force_N, on, errors).look()[1] == pytest.approx(
        SHARES * (1.0 + expected),
        rel=1e-4,  # the filter's branches have twice as many pieces
    )


def others(powers=(1.03, 0.98, 1.0), coolings=(0.95, 1.04, 1.05)):
    """Wires with other power and convection in warmer air."""
    return [
        replace(w, ambient_C=w.ambient_C + 1.0, supply_V=w.cell_V * np.sqrt(power),
                convection_W_per_m2_K=w.convection_W_per_m2_K * cooling)
        for w, power, cooling in zip(WIRES, powers, coolings, strict=True)
    ]  # fmt: skip


def learning(on, truly, late=0.0, missing=()):
    """Wires that learn from the force of others, so many samples late, after every sample."""
    ticks = np.arange(len(on))
    force_N = np.interp(ticks - late, ticks, lagged(heated(on, truly)[1]) @ SHARES)
    force_N[list(missing)] = np.nan
    T, xi = heated(on)
    twin_N = lagged(xi) @ SHARES
    wires = LearnedWires(ERRORS, MODEL, PERIOD_S)
    before = np.vstack([np.zeros((1, 3), dtype=np.uint8), on[:-1]])
    for k in ticks:
        wires.step(k * PERIOD_S, (force_N[k] - twin_N[k], twin_N[k]), (T[k], xi[k]), before[k])
        yield wires


def test_law_air_and_share_of_wires_that_are_off_come_to_what_they_are():
    on = switched(1200, seed=2)
    truly = others()
    gains_N = SHARES * [1.02, 0.97, 1.01]
    noise_N = np.random.default_rng(3).normal(0.0, NOISE_N, 1200)
    T, xi = heated(on, truly)
    z = lagged(xi)
    wires = taught(z @ gains_N + noise_N, on)
    laws, static_gains_N, state = wires.look()
    true = wire_laws(truly)
    assert static_gains_N == pytest.approx(gains_N, rel=0.01)
    # power, convection and air enter what is seen nearly as one: what they do is learned
    assert laws["E2"] == pytest.approx(true["E2"], rel=0.02)
    assert laws["G"] == pytest.approx(true["G"], rel=0.04)
    assert laws["T_a"] == pytest.approx(true["T_a"], abs=0.8)
    assert state[:, 0] == pytest.approx(T[-1], abs=1.0)
    assert state[:, 1] == pytest.approx(xi[-1], abs=0.03)
    assert state[:, 2] == pytest.approx(z[-1], abs=0.02)
    assert np.abs(lagged(heated(on)[1])[-1] - z[-1]).max() > 0.03  # told, it would be so far off
    assert wires.surprise < 2.0


def test_a_wire_is_believed_where_it_can_be():
    """What is learned moves no wire beyond its branches, from where it would come back at once."""
    left = []
    for wires in learning(switched(1200, seed=2), others((1.06, 0.94, 1.03), (0.9, 1.1, 1.1))):
        laws, _, state = wires.look()
        for law, knots_C, (T_C, xi, _) in zip(laws, KNOTS_C, state, strict=True):
            left.append(advance(law, knots_C, AS_TABULATED, 0.0, T_C, xi, 1e-9)[1] - xi)
    assert np.abs(left).max() < 1e-6


def test_what_moves_into_the_law_moves_no_wire_beyond_its_branches():
    on = switched(200, seed=2)
    T, xi = heated(on)
    before = np.vstack([np.zeros((1, 3), dtype=np.uint8), on[:-1]])
    left = []
    for changes in (0.1, -0.1):
        bank = WireBank(MODEL)
        for k in range(200):
            bank.follow(PERIOD_S, T[k], xi[k], before[k])
            if k % 10 == 9:
                bank.believe(np.full(3, changes), np.full(3, -changes), 20.0 * changes)
                for kind, n in itertools.product(range(4), range(3)):
                    T_C, part, _ = bank.wires[kind, n]
                    law, knots_C = bank.laws[kind, n], KNOTS_C[n]
                    left.append(advance(law, knots_C, AS_TABULATED, 0.0, T_C, part, 1e-9)[1] - part)
                assert (bank.wires[:, :, 1:] >= 0.0).all()
                assert (bank.wires[:, :, 1:] <= 1.0).all()
                bank.believe(np.full(3, -changes), np.full(3, changes), -20.0 * changes)
    assert np.abs(left).max() < 1e-6


@pytest.mark.parametrize("missing", [(), (101, 201, 301), (100, 101, 102)])
def test_what_moves_into_the_law_does_not_jump_in_the_unknown_force(missing):
    on = switched(330, seed=5)
    truly = others((1.05, 1.05, 1.05), (0.9, 0.9, 0.9))
    unknown_N = [wires.unknown_N for wires in learning(on, truly, 1.2, missing)]
    jumps_N = np.abs(np.diff(unknown_N))
    assert max(jumps_N[k : k + 6].max() for k in (99, 199, 299)) < 0.005  # every 5 s


def test_a_cell_that_pulls_no_longer_loses_its_share():
    on = switched(600, seed=4)
    noise_N = np.random.default_rng(5).normal(0.0, NOISE_N, 600)
    wires = taught(lagged(heated(on, dead=(1,))[1]) @ SHARES + noise_N, on)
    static_gains_N = wires.look()[1]
    assert abs(static_gains_N[1]) < 0.1 * SHARES[1]
    assert np.delete(static_gains_N, 1) == pytest.approx(np.delete(SHARES, 1), rel=0.1)


@pytest.mark.parametrize(
    ("jump_N", "bent_per_N"), [(0.0, 0.0), (0.02, 0.0), (-0.1, 0.0), (0.0, 0.1), (0.02, -0.1)]
)
def test_wires_and_what_is_unknown_make_up_what_was_read(jump_N, bent_per_N):
    on = switched(200, seed=6)
    force_N = bent(lagged(heated(on)[1]) @ SHARES, bent_per_N)
    force_N[-3:] += jump_N
    wires = taught(force_N, on, bent_per_N=bent_per_N)
    _, static_gains_N, state = wires.look()
    assert static_gains_N @ state[:, 2] + wires.unknown_N == pytest.approx(force_N[-1], abs=0.004)


@pytest.mark.parametrize("lost", [None, 4])
def test_the_twins_force_apart_from_its_wires_is_that_of_the_ticks_with_a_reading(lost):
    """The twin is right in all, and its force is bent: nothing else is unknown."""
    on = switched(200, seed=6)
    T, xi = heated(on)
    wires_N = lagged(xi) @ SHARES
    apart_N = bent(wires_N, 0.5) - wires_N
    wires = LearnedWires(replace(ERRORS, sample_s=5 * PERIOD_S), MODEL, PERIOD_S)
    before = np.vstack([np.zeros((1, 3), dtype=np.uint8), on[:-1]])
    found, expected = [], []
    for k in range(200):
        residual_N = np.nan if k % 5 == lost else 0.0
        wires.step(k * PERIOD_S, (residual_N, wires_N[k] + apart_N[k]), (T[k], xi[k]), before[k])
        if k % 5 == 4:
            found.append(wires.unknown_N)
            expected.append(apart_N[k - 4 : k + (lost is None)].mean())
    assert found == pytest.approx(expected, abs=5e-4)
    assert np.abs(apart_N[4::5] - expected).max() > 5e-3


def test_noise_of_readings_reaches_the_unknown_force_as_a_filter_lets_it():
    """Five readings a sample: less than their mean's noise, which is 0.45 of one reading's."""
    on, every = switched(2000, seed=8), 5
    wires = LearnedWires(ERRORS, MODEL, PERIOD_S / every)
    noise_N = np.random.default_rng(9).normal(0.0, NOISE_N, (2000, every))
    T, xi = heated(on)
    twin_N = lagged(xi) @ SHARES
    unknown = []
    for k in range(2000):
        for i in range(every):  # the wires stand still between two of the twin's steps
            before = on[k - 1] if k else np.zeros(3, dtype=np.uint8)
            forces_N = noise_N[k, i], twin_N[k]
            wires.step(k * PERIOD_S, forces_N, (T[k], xi[k]), before, 0 if i else every)
        unknown.append(wires.unknown_N)
    assert np.std(unknown[400:]) < 0.45 * NOISE_N


def test_readings_that_are_missing_leave_the_others_of_their_sample():
    wires = LearnedWires(replace(ERRORS, zero_N=1.0, same_for_s=1e9), MODEL, PERIOD_S / 5)
    T, off = np.full(3, 25.0), np.zeros(3, dtype=np.uint8)
    for k in range(100):
        forces_N = 0.05 if k % 5 == 2 else np.nan, 0.0
        wires.step(k * PERIOD_S / 5, forces_N, (T, np.zeros(3)), off)
    assert wires.unknown_N == pytest.approx(0.05, abs=1e-3)


def test_a_late_reading_is_not_taken_for_unknown_force():
    on = switched(400, seed=7)
    force_N = lagged(heated(on)[1]) @ SHARES
    late_N = np.interp(np.arange(400) - 0.6, np.arange(400), force_N)  # 30 ms
    unknown = []
    wires = LearnedWires(ERRORS, MODEL, PERIOD_S)
    T, xi = heated(on)
    for k in range(400):
        before = on[k - 1] if k else np.zeros(3, dtype=np.uint8)
        forces_N = late_N[k] - force_N[k], force_N[k]
        wires.step(k * PERIOD_S, forces_N, (T[k], xi[k]), before)
        unknown.append(wires.unknown_N)
    raw = np.std((late_N - force_N)[200:])
    assert np.std(unknown[200:]) < 0.4 * raw


def test_without_readings_wires_stay_as_told():
    on = switched(100)
    laws, static_gains_N, state = taught(np.full(100, np.nan), on).look()
    T, xi = heated(on)
    assert np.array_equal(laws, TOLD)
    assert np.array_equal(static_gains_N, SHARES)
    assert state[:, 1] == pytest.approx(xi[-1], abs=1e-12)
    assert state[:, 0] == pytest.approx(T[-1], abs=2e-3)  # twice as many pieces


def test_air_that_is_read_is_the_wires_air():
    wires = LearnedWires(ERRORS, MODEL, PERIOD_S)
    wires.set_air(19.0, settled=True)
    T, xi = np.full(3, 19.0), np.zeros(3)
    wires.step(0.0, (0.0, 0.0), (T, xi), np.zeros(3, dtype=np.uint8))
    laws, _, state = wires.look()
    assert laws["T_a"] == pytest.approx(19.0)
    assert state[:, 0] == pytest.approx(19.0)


@pytest.mark.parametrize("n_periods", [2, 3])
def test_after_periods_that_were_missed_wires_are_those_of_a_longer_period(n_periods):
    """The same readings at the same times: of every second or third period, or of longer ones."""
    on, long_s = switched(600), n_periods * PERIOD_S
    T, xi = heated(on)
    twin_N = lagged(xi) @ SHARES
    late_N = np.interp(np.arange(600) - 0.4, np.arange(600), twin_N)  # by 20 ms
    force_N = late_N + np.random.default_rng(1).normal(0.0, NOISE_N, 600)
    missing = LearnedWires(replace(ERRORS, sample_s=2 * PERIOD_S), MODEL, PERIOD_S)
    longer = LearnedWires(replace(ERRORS, sample_s=long_s), MODEL, long_s)
    for k in range(n_periods, 600, n_periods):
        of_tick = k * PERIOD_S, (force_N[k] - twin_N[k], twin_N[k]), (T[k], xi[k]), on[k - 1]
        missing.step(*of_tick, n_periods)
        longer.step(*of_tick)
    for learned, expected in zip(missing.look(), longer.look(), strict=True):
        names = expected.dtype.names or [...]
        for name in names:
            assert learned[name] == pytest.approx(expected[name], rel=1e-9)
    assert missing.unknown_N == pytest.approx(longer.unknown_N, rel=1e-6)
