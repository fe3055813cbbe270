"""Closed forms, all subsets one by one, and Monte Carlo."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.errors import ModelError
from hil.systems.array.model import cells, force_levels
from hil.systems.array.model.cell_array import CellArray, make_array
from hil.systems.array.model.force_levels import (
    force_levels_N,
    levels_N,
    static_gains_N,
)
from hil.systems.array.model.network import Point
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


def test_the_level_bound_is_that_of_the_count():
    with pytest.raises(ModelError, match="too many to list"):
        force_levels.count_levels(2.0 ** np.arange(21)[None, :])
