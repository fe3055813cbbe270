"""Large arrays: the cell-by-cell step against the matrix exponential, and its bounds."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import HealthCheck, assume, given, settings

from hil.errors import ModelError
from hil.mechanics.discrete import LinearStepper
from hil.systems.array.model import cells, sparse_step
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import EXACT_ORDER_MAX, CellArray, make_array
from hil.systems.array.model.network import Point
from hil.systems.array.model.sparse_step import (
    THETA_MAX,
    SparseStepper,
    rate_bounds_per_s,
    series,
    taylor,
)
from hil.systems.array.model.system import ArraySystem
from oracles.networks import networks

MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
FIG_2 = "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1"


def mesh(width, n_layers):
    """Masses in a cylinder, each with two cells to the next layer: its own place and the next."""
    masks = [1 << (2 * i) | 1 << (2 * ((i - 1) % width) + 1) for i in range(width)]
    first = " ".join(f"&{1 << i:X}:2" for i in range(width))
    layer = " ".join(f"&{mask:X}:2" for mask in masks)
    return f"-:{width} | {first} | {f'{layer} | ' * (n_layers - 1)}&{4**width - 1:X}:-1"


def both(model, period_s):
    n = model.n_cells
    x0 = model.equilibrium(np.zeros(n))
    rest = np.zeros(n + 2 * len(model.driven))
    return (
        LinearStepper(model.discrete(period_s), x0, rest),
        SparseStepper(model, period_s, model.outputs, x0, np.zeros(n)),
    )


def largest_difference(model, period_s, n_steps, seed=0):
    """Of any output over the largest output, under forces that jump and ramp at random."""
    exact, sparse = both(model, period_s)
    rng = np.random.default_rng(seed)
    F = np.zeros(model.n_cells)
    worst = size = 0.0
    for k in range(n_steps):
        if k % 7 == 0:
            F = rng.standard_normal(model.n_cells)
        F1 = F + 0.1 * rng.standard_normal(model.n_cells) if k % 3 else F
        exact.step(F, F1)
        sparse.step(F, F1)
        F = F1
        worst = max(worst, float(np.abs(exact.y - sparse.y).max()))
        size = max(size, float(np.abs(exact.y).max()))
    return worst / size


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("kind", ["miga", "hill", "two_damper"])
@pytest.mark.parametrize("right", ["fixed", "free"])
def test_five_seconds_of_random_forces_stay_within_a_hundred_millionth(kind, right):
    springs = {"k_pe_N_per_m": 20.0, "k_se_N_per_m": 386.52, "k_ae_N_per_m": 1000.0}
    dampers = (
        {"b_se_N_s_per_m": 5.0, "b_ae_N_s_per_m": 50.0}
        if kind == "two_damper"
        else {"b_N_s_per_m": 50.0}
    )
    cell = getattr(cells, kind)(**springs, **dampers)
    model = CellArray.from_fingerprint(FIG_2, cell=cell, mass_kg=0.01583, right=right)
    assert largest_difference(model, 0.001, 5000) < 1e-8


@pytest.mark.slow
def test_a_mesh_of_three_hundred_cells_stays_within_a_hundred_millionth():
    model = CellArray.from_fingerprint(mesh(6, 24), cell=MIGA, mass_kg=0.01583)
    assert len(model.states) > EXACT_ORDER_MAX
    assert largest_difference(model, 0.001, 2000) < 1e-8


@pytest.mark.parametrize("hubs_gain", [0.0, 1e9])
@settings(max_examples=settings().max_examples // 2, suppress_health_check=list(HealthCheck))
@given(networks())
def test_any_network_is_stepped_as_by_the_matrix_exponential(monkeypatch, hubs_gain, pair):
    """Without hubs, and with as many as there may be; driven points move."""
    monkeypatch.setattr(sparse_step, "HUBS_GAIN", hubs_gain)
    model, _ = pair
    assume(len(model.states) > 0)
    period_s = 0.05
    assume(np.abs(scipy.linalg.expm(model.A * period_s)).max() < 1e3)
    try:
        exact, sparse = both(model, period_s)
    except ModelError:
        assume(False)  # negative stiffness of random custom cells cancels
    assume((sparse.n_hubs > 0) == (hubs_gain > 0.0))
    rng = np.random.default_rng(0)
    u0, u1 = rng.standard_normal((2, model.n_cells + 2 * len(model.driven)))
    x0, x1, speed = (
        u0[model.n_cells :: 2],
        u1[model.n_cells :: 2],
        slice(model.n_cells + 1, None, 2),
    )
    u0[speed] = u1[speed] = (x1 - x0) / period_s
    exact.step(u0, u1)
    sparse.step(u0, u1)
    size = np.abs(exact.x).max() + np.abs(u0).max() + np.abs(u1).max()
    np.testing.assert_allclose(sparse.x, exact.x, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(sparse.y, exact.y, rtol=0, atol=1e-8 * size)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(networks(kinds=("hill", "miga", "two_damper"), failures=False))
def test_no_eigenvalue_lies_beyond_the_bounds(pair):
    model, _ = pair
    assume(len(model.states) > 0)
    omega, damped = rate_bounds_per_s(model.nodes, model.coefficients)
    assert np.abs(np.linalg.eigvals(model.A)).max() <= (omega + damped) * (1 + 1e-9)


@pytest.mark.parametrize("theta", [0.06, 0.3, 1.0, THETA_MAX])
def test_the_polynomial_is_the_exponential_where_arrays_ring(theta):
    ratios = series(theta, 0.0)
    z = 1j * np.linspace(-theta, theta, 201)
    term, total = np.ones_like(z), np.ones_like(z)
    for ratio in ratios:
        term = term * z * ratio
        total = total + term
    assert np.abs(total - np.exp(z)).max() < 2e-12


def test_a_large_array_runs_behind_the_same_interface():
    model = CellArray.from_fingerprint(mesh(10, 20), cell=MIGA, mass_kg=0.01583)
    system = ArraySystem(model, [CellActivation(1.0)] * model.n_cells, 0.001)
    assert isinstance(system.linear, SparseStepper)
    on = np.ones(model.n_cells, dtype=np.uint8)
    for _ in range(5000):
        system.step(on)
    statics = model.solve_statics(np.ones(model.n_cells))
    final = model.force_at("array.right_N", statics.tension_N)
    now = system.y[model.outputs.index("array.right_N")]
    # 5 s are 14 of the cells' time constants of 0.36 s.
    assert now == pytest.approx(final, rel=2e-3)


def test_ten_thousand_cells_have_all_their_names():
    model = CellArray.from_fingerprint(mesh(100, 50), cell=MIGA, mass_kg=0.01583)
    assert model.n_cells == 100 + 2 * 100 * 50
    assert len(model.states) == model.sparse[0].shape[0] == len(set(model.states))
    assert len(model.inputs) == model.sparse[1].shape[1]
    assert len(model.outputs) == model.sparse[2].shape[0]


def common_mass(n, **more):
    """Two layers of n / 2 cells on one mass."""
    every = f"&{2 ** (n // 2) - 1:X}"
    return CellArray.from_fingerprint(f"-:{n // 2} | {every}:{n // 2} | {every}:-1", **more)


@pytest.mark.parametrize("kind", ["miga", "hill", "two_damper"])
@pytest.mark.parametrize("mass_kg", [0.01583, 1e-4])
def test_unlike_cells_on_a_common_mass_are_stepped_as_by_the_matrix_exponential(kind, mass_kg):
    """Its period is up to 100 of the mass's oscillations, or 3e5 of its time constants, of which
    the exponential keeps 3e5 times the rounding of a number.
    """
    rng = np.random.default_rng(1)
    dampers = ("b_se_N_s_per_m", "b_ae_N_s_per_m") if kind == "two_damper" else ("b_N_s_per_m",)
    unlike = [
        getattr(cells, kind)(
            k_pe_N_per_m=20.0 * k, k_se_N_per_m=386.52 * k, k_ae_N_per_m=1000.0 / k,
            **dict.fromkeys(dampers, 50.0 * k),
        )
        for k in rng.uniform(0.5, 2.0, 100)
    ]  # fmt: skip
    model = common_mass(100, cell=unlike, mass_kg=mass_kg)
    exact, sparse = both(model, 0.01)
    assert sparse.n_hubs == 1
    for _ in range(20):
        F0, F1 = rng.standard_normal((2, 100))
        exact.step(F0, F1)
        sparse.step(F0, F1)
        for found, expected in ((sparse.x, exact.x), (sparse.y, exact.y)):
            near = 2e-9 * np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=0, atol=near)


def test_the_passes_of_a_step_do_not_grow_with_the_cells_on_a_common_mass():
    steppers = [stepper_of(common_mass(n, cell=MIGA, mass_kg=0.01583)) for n in (200, 2000, 10_000)]
    assert [one.substeps for one in steppers] == [1, 1, 1]
    assert len({one.order for one in steppers}) == 1


def stepper_of(model):
    n = model.n_cells
    rest = np.zeros(n)
    return SparseStepper(model, 0.001, ["array.right_N"], model.equilibrium(rest), rest)


def test_a_bias_spring_pulls_a_large_array_as_it_pulls_a_small_one():
    points = {"frame": Point("fixed"), "load": Point("free", 0.1, 250.0)}
    array = make_array(FIG_2, cell=MIGA, mass_kg=0.01583, start="frame", end="load")
    assert largest_difference(CellArray(points, {"muscle": array}), 0.001, 500) < 1e-9


@pytest.mark.parametrize("theta", [1e-4, 0.06, 0.3, 1.0, THETA_MAX])
def test_the_taylor_polynomial_is_the_exponential(theta):
    z = theta * np.exp(1j * np.linspace(0.0, np.pi, 101))
    term, total = np.ones_like(z), np.ones_like(z)
    for ratio in taylor(theta):
        term = term * z * ratio
        total = total + term
    assert np.abs(total - np.exp(z)).max() < 2e-12
