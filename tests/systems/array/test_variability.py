"""Closed forms, all subsets one by one, and Monte Carlo."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.errors import ModelError
from hil.systems.array import cells, failures, force_levels
from hil.systems.array.cell_array import CellArray, make_array
from hil.systems.array.failures import after_failures
from hil.systems.array.force_levels import (
    force_levels_N,
    levels_N,
    mean_and_variance_of_k_on,
    mean_and_variance_of_p_on,
    static_gains_N,
)
from hil.systems.array.network import Point
from oracles.networks import fingerprints

MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
PHI = 386.52 / 1386.52
ARRAYS = {
    "miga6": "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
    "silicone4": "-:4 | &F:-1",
    "silicone4, 2 x 2": "-:2 | &3:2 | &3:-1",
    "array14": "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
}
OUTPUT = "array.right_N"


def build(text, **options):
    return CellArray.from_fingerprint(text, cell=MIGA, mass_kg=0.01583, **options)


def force_all_on_N(text, **failed):
    """By a sparse solve of the array built with these cells failed."""
    model = build(text, **failed)
    return model.force_at(OUTPUT, model.solve_statics(np.ones(model.n_cells)).tension_N)


def sets_of(n_cells, n_chosen):
    return itertools.combinations(range(1, n_cells + 1), n_chosen)


# Shares and levels


@settings(max_examples=60, deadline=None)
@given(fingerprints(), st.integers(0, 2**32 - 1))
def test_shares_are_the_forces_of_single_cells(text, seed):
    draw = np.random.default_rng(seed)
    n_cells = build(text).n_cells
    broken, dead = (1 + np.flatnonzero(draw.random(n_cells) < 0.2) for _ in range(2))
    model = build(text, broken_cells=broken.tolist(), dead_cells=dead.tolist())
    F = draw.uniform(0.5, 2.0, n_cells)
    alone = [
        model.force_at(OUTPUT, model.solve_statics(F[n] * np.eye(n_cells)[n]).tension_N)
        for n in range(n_cells)
    ]
    np.testing.assert_allclose(static_gains_N(model, F, OUTPUT), alone, atol=1e-13 * n_cells)


def test_shares_hold_for_antagonists_on_a_free_load():
    points = {"wall": Point("fixed"), "load": Point("free", 0.5), "post": Point("fixed")}
    parts = {"cell": MIGA, "mass_kg": 0.01583}
    model = CellArray(
        points,
        {
            "flexor": make_array(ARRAYS["miga6"], start="wall", end="load", **parts),
            "extensor": make_array(ARRAYS["silicone4"], start="load", end="post", **parts),
        },
    )
    F = np.linspace(0.5, 2.0, model.n_cells)
    for output in ("flexor.right_N", "flexor.left_N", "extensor.left_N"):
        alone = [
            model.force_at(output, model.solve_statics(F[n] * np.eye(len(F))[n]).tension_N)
            for n in range(len(F))
        ]
        np.testing.assert_allclose(static_gains_N(model, F, output), alone, atol=1e-13)


@pytest.mark.parametrize("name", ARRAYS)
def test_levels_are_those_of_all_sets_one_by_one(name):
    model = build(ARRAYS[name])
    gains_N = static_gains_N(model, np.ones(model.n_cells), OUTPUT)
    on = np.array(list(itertools.product((0, 1), repeat=model.n_cells)))
    all_levels = np.unique(np.round(on @ gains_N, 11))
    np.testing.assert_allclose(force_levels_N(model, np.ones(len(gains_N)), OUTPUT), all_levels,
                               atol=1e-11)  # fmt: skip


def test_like_shares_cost_no_more_than_their_levels():
    n_cells = 1000  # 2^1000 sets
    np.testing.assert_allclose(levels_N(np.full(n_cells, 0.1)), 0.1 * np.arange(n_cells + 1))


def test_levels_of_either_sign_rise():
    np.testing.assert_allclose(levels_N([2.0, -1.0, 2.0]), [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0])


def test_more_levels_than_can_be_listed_are_refused():
    doubling = 2.0 ** np.arange(21)
    assert len(levels_N(doubling[:20])) == 2**20
    with pytest.raises(ModelError, match="21 cells have more than 1048576 force levels"):
        levels_N(doubling)


# Recruitment at random


@pytest.mark.parametrize("name", ["miga6", "silicone4"])
def test_mean_and_variance_are_those_of_all_sets_of_k(name):
    model = build(ARRAYS[name])
    gains_N = static_gains_N(model, np.ones(model.n_cells), OUTPUT)
    for n_on in range(model.n_cells + 1):
        forces = [sum(gains_N[list(s)]) for s in itertools.combinations(range(len(gains_N)), n_on)]
        mean_N, variance_N2 = mean_and_variance_of_k_on(gains_N, n_on)
        assert mean_N == pytest.approx(np.mean(forces), abs=1e-15)
        assert variance_N2 == pytest.approx(np.var(forces), abs=1e-15)


@pytest.mark.parametrize("p_on", [0.0, 0.3, 0.5, 1.0])
def test_mean_and_variance_are_those_of_all_sets_weighed_by_p(p_on):
    model = build(ARRAYS["miga6"])
    gains_N = static_gains_N(model, np.ones(6), OUTPUT)
    on = np.array(list(itertools.product((0, 1), repeat=6)))
    weight = np.prod(np.where(on, p_on, 1.0 - p_on), axis=1)
    force = on @ gains_N
    mean_N, variance_N2 = mean_and_variance_of_p_on(gains_N, p_on)
    assert mean_N == pytest.approx(weight @ force, abs=1e-15)
    assert variance_N2 == pytest.approx(weight @ (force - weight @ force) ** 2, abs=1e-15)


def test_mean_and_variance_agree_with_a_draw_of_the_fourteen_cell_array():
    model = build(ARRAYS["array14"])
    gains_N = static_gains_N(model, np.ones(14), OUTPUT)
    n = 200_000
    keys = np.random.default_rng(3).random((n, 14))
    for force, (mean_N, variance_N2) in (
        ((np.argsort(keys) < 5) @ gains_N, mean_and_variance_of_k_on(gains_N, 5)),
        ((keys < 0.4) @ gains_N, mean_and_variance_of_p_on(gains_N, 0.4)),
    ):
        assert abs(force.mean() - mean_N) < 4.0 * np.sqrt(variance_N2 / n)
        # A variance estimated from n near-normal draws has the relative error sqrt(2/n).
        assert abs(force.var() / variance_N2 - 1.0) < 4.0 * np.sqrt(2.0 / n)


def test_one_cell_has_no_spread_when_on():
    assert mean_and_variance_of_k_on([0.3], 1) == (0.3, 0.0)
    assert mean_and_variance_of_k_on([0.3], 0) == (0.0, 0.0)


def test_impossible_recruitments_are_refused():
    with pytest.raises(ValueError, match="3 of 2 cells"):
        mean_and_variance_of_k_on([1.0, 1.0], 3)
    with pytest.raises(ValueError, match="not a probability"):
        mean_and_variance_of_p_on([1.0], 1.5)


# Failures


@pytest.mark.parametrize(
    ("name", "n_failed"),
    [("miga6", k) for k in range(7)]
    + [("silicone4", 2), ("silicone4, 2 x 2", 2), ("array14", 1), ("array14", 2)],
)
@pytest.mark.parametrize("kind", ["electrical", "mechanical"])
def test_what_failures_leave_is_that_of_all_failed_arrays_one_by_one(name, n_failed, kind):
    text = ARRAYS[name]
    key = {"electrical": "dead_cells", "mechanical": "broken_cells"}[kind]
    model = build(text)
    n = model.n_cells
    forces = np.array([force_all_on_N(text, **{key: s}) for s in sets_of(n, n_failed)])
    left = after_failures(model, np.ones(n), OUTPUT, n_failed, kind)
    assert left.exact
    assert left.mean_N == pytest.approx(forces.mean(), abs=1e-12)
    assert left.min_N == pytest.approx(forces.min(), abs=1e-12)
    assert left.max_N == pytest.approx(forces.max(), abs=1e-12)
    assert left.p_no_force == pytest.approx((np.abs(forces) < 1e-9).mean(), abs=1e-12)
    assert (left.mean_standard_error_N, left.p_standard_error) == (0.0, 0.0)


@pytest.mark.parametrize("n_failed", range(5))
def test_a_parallel_array_loses_what_failed(n_failed):
    for kind in ("electrical", "mechanical"):
        left = after_failures(build("-:4 | &F:-1"), np.ones(4), OUTPUT, n_failed, kind)
        assert left.min_N == pytest.approx((4 - n_failed) * PHI, abs=1e-12)
        assert left.max_N == pytest.approx((4 - n_failed) * PHI, abs=1e-12)
        assert left.p_no_force == (n_failed == 4)


def test_a_chain_has_no_force_once_one_cell_broke():
    chain = build("-:1 | &1:1 | &1:1 | &1:-1")
    left = after_failures(chain, np.ones(3), OUTPUT, 1, "mechanical")
    assert (left.mean_N, left.max_N, left.p_no_force) == (0.0, 0.0, 1.0)
    left = after_failures(chain, np.ones(3), OUTPUT, 1, "electrical")
    assert left.mean_N == pytest.approx(PHI * 2.0 / 3.0, rel=1e-12)
    assert left.p_no_force == 0.0


@pytest.mark.parametrize("n_failed", range(15))
def test_masses_that_float_never_turn_into_nan(n_failed):
    model = build(ARRAYS["array14"])
    left = after_failures(model, np.ones(14), OUTPUT, n_failed, "mechanical")
    assert np.all(np.isfinite([left.mean_N, left.min_N, left.max_N, left.p_no_force]))
    assert left.n_sets == comb(14, n_failed)
    assert -1e-12 < left.min_N <= left.mean_N <= left.max_N < 4.0 * PHI + 1e-12


def test_failures_that_are_there_already_stay():
    text = ARRAYS["miga6"]
    model = build(text, broken_cells=[2], dead_cells=[5])
    forces = [force_all_on_N(text, broken_cells=[2, n], dead_cells=[5]) for n in (1, 3, 4, 5, 6)]
    left = after_failures(model, np.ones(6), OUTPUT, 1, "mechanical")
    assert left.n_sets == 5
    assert left.mean_N == pytest.approx(np.mean(forces), abs=1e-12)
    with pytest.raises(ModelError, match="5 cells cannot fail: 4 of this model work"):
        after_failures(model, np.ones(6), OUTPUT, 5, "electrical")


def test_more_sets_than_the_bound_are_drawn_and_carry_their_standard_error(monkeypatch):
    model = build(ARRAYS["array14"])
    exact = after_failures(model, np.ones(14), OUTPUT, 5, "mechanical")
    monkeypatch.setattr(failures, "SUBSETS_MAX", 1000)
    drawn = [
        after_failures(model, np.ones(14), OUTPUT, 5, "mechanical", n_samples=2000, seed=seed)
        for seed in range(20)
    ]
    assert not any(d.exact for d in drawn)
    assert all(d.n_sets == 2000 for d in drawn)
    far = [abs(d.mean_N - exact.mean_N) / d.mean_standard_error_N for d in drawn]
    far += [abs(d.p_no_force - exact.p_no_force) / d.p_standard_error for d in drawn]
    assert max(far) < 4.0
    # The root mean square of 40 scores is 1 +- 0.11 where the stated errors are the true ones.
    assert 0.6 < np.sqrt(np.mean(np.square(far))) < 1.4
    assert all(exact.min_N - 1e-12 <= d.min_N <= d.max_N <= exact.max_N + 1e-12 for d in drawn)
    again = after_failures(model, np.ones(14), OUTPUT, 5, "mechanical", n_samples=2000, seed=7)
    assert again == drawn[7]


def test_electrical_failures_of_a_large_array_are_closed_forms():
    n_cells = 1000
    model = build(" | ".join(["-:1", *["&1:1"] * (n_cells - 1), "&1:-1"]))
    left = after_failures(model, np.ones(n_cells), OUTPUT, 500, "electrical")
    assert left.exact
    assert left.mean_N == pytest.approx(PHI / 2.0, rel=1e-9)
    assert left.p_no_force == 0.0


def test_shares_that_cancel_count_as_no_force():
    # Shares 1, 1 and -1 by the sign of each cell's F: two of the three single failures leave 0.
    model = build("-:3 | &7:-1")
    left = after_failures(model, [1.0, 1.0, -1.0], OUTPUT, 1, "electrical")
    assert left.p_no_force == pytest.approx(2.0 / 3.0)
    assert left.min_N == pytest.approx(0.0, abs=1e-12)
    assert left.max_N == pytest.approx(2.0 * PHI)


def test_broken_cells_of_too_many_masses_are_refused():
    text = " | ".join(["-:1", *["&1:1"] * failures.MASSES_MAX, "&1:-1"])
    with pytest.raises(ModelError, match="402 masses exceed 400"):
        after_failures(build(text), np.ones(401), OUTPUT, 1, "mechanical")


def test_the_level_bound_is_that_of_the_count():
    with pytest.raises(ModelError, match="too many to list"):
        force_levels.count_levels(2.0 ** np.arange(21)[None, :])
