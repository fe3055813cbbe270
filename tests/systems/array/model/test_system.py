"""Discrete steps against exact solutions and SciPy."""

import numpy as np
import pytest
import scipy.signal

from hil.errors import ModelError
from hil.experiment.load import load_rig
from hil.mechanics.discrete import LinearStepper, discretise
from hil.systems.array.model import cells
from hil.systems.array.model.activation import Activation, CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_load import stress_Pa

MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
MIGA6 = "-:1 | &1:2 | &1:1 &2:2 | &7:-1"


@pytest.fixture(scope="module")
def miga6():
    return CellArray.from_fingerprint(MIGA6, cell=MIGA, mass_kg=0.01583)


def test_a_held_input_is_stepped_as_scipy_does(miga6):
    d = discretise(miga6.A, miga6.B, miga6.C, miga6.D, 0.001)
    Ad, Bd, *_ = scipy.signal.cont2discrete((miga6.A, miga6.B, miga6.C, miga6.D), 0.001, "zoh")
    np.testing.assert_allclose(d.Ad, Ad, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(d.B0 + d.B1, Bd, rtol=1e-9, atol=1e-15)


def test_a_linear_input_is_stepped_exactly():
    """From 0, x' = -a x + t has x = t/a - 1/a^2 + exp(-a t)/a^2."""
    a, h = 3.0, 0.25
    stepper = LinearStepper(discretise([[-a]], [[1.0]], [[1.0]], [[0.0]], h), [0.0], [0.0])
    for k in range(8):
        stepper.step(np.array([k * h]), np.array([(k + 1) * h]))
        t = (k + 1) * h
        assert stepper.x[0] == pytest.approx(t / a - 1 / a**2 + np.exp(-a * t) / a**2, rel=1e-13)


def test_thousands_of_steps_stay_on_the_matrix_exponential(miga6):
    system = ArraySystem(miga6, [CellActivation(1.0)] * 6, 0.001)
    on = np.ones(6, dtype=np.uint8)
    n = len(miga6.states)
    big = np.zeros((n + 1, n + 1))
    big[:n, :n], big[:n, n] = miga6.A, miga6.B @ np.ones(6)
    for k in range(1, 5001):
        system.step(on)
        if k in (1, 10, 100, 1000, 5000):
            exact = miga6.C @ scipy.linalg.expm(big * (k * 0.001))[:n, n]
            np.testing.assert_allclose(system.y, exact, rtol=1e-9, atol=1e-13)


def test_miga6_overshoots_as_printed(miga6):
    system = ArraySystem(miga6, [CellActivation(1.0)] * 6, 0.001)
    on = np.ones(6, dtype=np.uint8)
    right = miga6.outputs.index("array.right_N")
    force = []
    for _ in range(5000):
        system.step(on)
        force.append(system.y[right])
    final = miga6.force_at("array.right_N", miga6.solve_statics(np.ones(6)).tension_N)
    assert 100.0 * (max(force) / final - 1.0) == pytest.approx(0.41, abs=0.005)


def test_the_sigmoid_follows_the_printed_curves():
    """F/(1 + exp(-(5t - 6))), and from t_d on F (1 - 1/(1 + exp(-(5(t - t_d) - 6))))."""
    h = 0.001
    activation = Activation([CellActivation(2.0, "sigmoid", law="unscaled")], h)
    assert activation.F_N[0] / 2.0 == pytest.approx(0.0025, abs=3e-5)
    for k in range(1, 2401):
        activation.step(np.array([1], dtype=np.uint8))
        assert activation.F_N[0] == pytest.approx(2.0 / (1 + np.exp(-(5 * k * h - 6))), rel=1e-10)
    t_d = 2.4  # theta is at its upper stop
    for k in range(1, 2401):
        activation.step(np.array([0], dtype=np.uint8))
        fall = 2.0 * (1 - 1 / (1 + np.exp(-(5 * (t_d + k * h - t_d) - 6))))
        assert activation.F_N[0] == pytest.approx(fall, rel=1e-9)


def test_with_its_ends_exact_the_sigmoid_stays_within_a_400th_of_the_printed_curve():
    """1 / (1 + exp(6)) = 0.00247 is what the printed curve begins with."""
    h = 0.001
    activation = Activation([CellActivation(2.0, "sigmoid")], h)
    for k in range(1, 2401):
        activation.step(np.array([1], dtype=np.uint8))
        printed = 1 / (1 + np.exp(-(5 * k * h - 6)))
        assert activation.F_N[0] / 2.0 == pytest.approx(printed, abs=0.00248)


def test_the_sigmoid_has_its_printed_times():
    h = 0.0001
    activation = Activation([CellActivation(1.0, "sigmoid", law="unscaled")], h)
    F = []
    for _ in range(24000):
        activation.step(np.array([1], dtype=np.uint8))
        F.append(activation.F_N[0])
    F = np.array(F)
    assert (np.searchsorted(F, 0.5) + 1) * h == pytest.approx(1.2, abs=1.5 * h)
    width = (np.searchsorted(F, 0.9) - np.searchsorted(F, 0.1)) * h
    assert width == pytest.approx(0.8789, abs=1.5 * h)


def test_a_cell_switched_at_any_moment_does_not_jump():
    h = 0.001
    rng = np.random.default_rng(5)
    activation = Activation([CellActivation(1.0, "sigmoid")], h)
    steepest = 5.0 / 4.0 / np.tanh(3.0) * h  # the slope at half, over 1 - 2 / (1 + exp(6))
    before = activation.F_N[0]
    on = 0
    for _ in range(20000):
        if rng.random() < 0.01:
            on = 1 - on
        activation.step(np.array([on], dtype=np.uint8))
        assert abs(activation.F_N[0] - before) <= steepest * (1 + 1e-9)
        before = activation.F_N[0]


def test_a_cold_array_starts_in_equilibrium(miga6):
    system = ArraySystem(miga6, [CellActivation(4.0, "sigmoid")] * 6, 0.001)
    start = system.y.copy()
    off = np.zeros(6, dtype=np.uint8)
    for _ in range(1000):
        system.step(off)
    np.testing.assert_allclose(system.y, start, rtol=1e-9, atol=1e-12)
    assert not start.any()


def test_step_and_sigmoid_cells_stand_side_by_side():
    activation = Activation([CellActivation(1.0), CellActivation(1.0, "sigmoid")], 0.001)
    activation.step(np.array([1, 1], dtype=np.uint8))
    assert activation.F_N[0] == activation.F_before_N[0] == 1.0
    assert activation.F_before_N[1] < activation.F_N[1] < 0.01


def test_as_many_activations_as_cells_are_needed(miga6):
    with pytest.raises(ModelError, match="5 activations for 6 cells"):
        ArraySystem(miga6, [CellActivation(1.0)] * 5, 0.001)


def settled(system, n=4000):
    on = np.ones(len(system.cells))
    for _ in range(n):
        system.step(on)
    return system.y.copy()


@pytest.fixture(params=["step", "wires under stress"])
def pulled(request, miga6, configs):
    """An array, its cells, and a period."""
    if request.param == "step":
        return miga6, [CellActivation(1.0)] * 6
    rig = load_rig(configs / "wires4/rig.toml")
    return rig.models[0], list(rig.activation())


def test_a_cell_that_breaks_during_a_run_leaves_the_statics_of_the_array_without_it(pulled):
    """The new equilibrium is the static solution, at the forces that the cells have by then."""
    array, cells_of = pulled
    system, whole = (ArraySystem(array, cells_of, 0.01) for _ in range(2))
    assert np.array_equal(settled(system, 700), settled(whole, 700))
    system.fail(1, 0.0)
    settled(system)
    broken = array.with_broken(1)
    tension_N = broken.solve_statics(system.activation.F_N).tension_N
    assert tension_N[1] == pytest.approx(0.0, abs=1e-12)
    right = next(name for name in system.outputs if name.endswith("right_N"))
    now_N, before_N = (one.y[one.outputs.index(right)] for one in (system, whole))
    assert now_N == pytest.approx(broken.force_at(right, tension_N), rel=1e-6)
    assert now_N < 0.9 * before_N


@pytest.mark.parametrize("start", ["broken from the start", "breaks during the run"])
def test_the_wire_of_a_broken_cell_hangs_and_transforms_without_stress(configs, start):
    """Its branches are below those of a loaded wire by its stress over the branch's slope."""
    rig = load_rig(configs / "wires4/rig.toml")
    model, cells_of = rig.models[0], list(rig.activation())
    from_start = start == "broken from the start"
    system = ArraySystem(model.with_broken(1) if from_start else model, cells_of, 0.01)
    assert system.model.broken == [1] * from_start
    settled(system, 200)
    if not from_start:
        system.fail(1, 0.0)
    settled(system, 100)
    assert system.loaded.tension_N[1] == 0.0
    apart_K = np.diff(system.branches_C(np.full(4, 0.5))[:, :2], axis=1)[:, 0]
    wire, law = cells_of[0].wire, cells_of[0].loaded.law
    pulls_Pa = stress_Pa(wire, system.loaded.tension_N[0] / wire.n_wires)
    slopes = np.array([law.heating.slope_Pa_per_K, law.cooling.slope_Pa_per_K])
    assert -apart_K == pytest.approx(pulls_Pa / slopes, rel=0.1)


def test_a_cell_that_weakens_pulls_with_the_share_that_is_left(pulled):
    """In equilibrium its tension is that share of what its stretch and its force would give."""
    array, cells_of = pulled
    system = ArraySystem(array, cells_of, 0.01)
    settled(system, 700)
    system.fail(2, 0.8)
    system.fail(2, 0.5)
    settled(system)
    statics = array.with_weak(2, 0.4).solve_statics(system.activation.F_N)
    right = next(name for name in system.outputs if name.endswith("right_N"))
    assert system.y[system.outputs.index(right)] == pytest.approx(
        system.model.force_at(right, statics.tension_N), rel=1e-6
    )
    K, phi = next(iter(array.arrays.values())).cells[0].static
    stretch_m = (array.nodes.E @ statics.position_m)[2]
    whole_N = K * stretch_m + phi * system.activation.F_N[2]
    assert statics.tension_N[2] == pytest.approx(0.4 * whole_N, rel=1e-9)


def test_all_of_a_weak_cells_tension_is_less_and_it_moves_inside_as_before():
    """Of one cell with two dampers, whose tension is an output: C and D have the share."""
    cell = cells.two_damper(
        k_pe_N_per_m=20.0, k_se_N_per_m=400.0, k_ae_N_per_m=900.0,
        b_se_N_s_per_m=30.0, b_ae_N_s_per_m=50.0,
    )  # fmt: skip
    array = CellArray.from_fingerprint("-:1 | &1:-1", cell=cell, mass_kg=0.01, right="driven")
    weak, at = array.with_weak(0, 0.3), array.outputs.index("array.right_N")
    assert np.array_equal(weak.A, array.A)
    assert np.array_equal(weak.B, array.B)
    assert weak.C[at] == pytest.approx(0.3 * array.C[at])
    assert weak.D[at] == pytest.approx(0.3 * array.D[at])
    assert np.count_nonzero(array.D[at]) == 3


def test_cells_are_counted_through_all_arrays(configs):
    model = load_rig(configs / "antagonist/rig.toml").models[0]
    sizes = [array.topology.n_cells for array in model.arrays.values()]
    assert len(sizes) == 2
    for n in range(model.n_cells):
        assert model.with_broken(n).broken == [n]
        share = [array.share for array in model.with_weak(n, 0.5).arrays.values()]
        own = n >= sizes[0]
        assert share[own] == {n - own * sizes[0]: 0.5}
        assert not share[not own]


def test_a_weak_cell_takes_less_force_than_a_broken_one_also_at_once(pulled):
    array, cells_of = pulled
    at = next(i for i, name in enumerate(array.outputs) if name.endswith("right_N"))

    def force_N(share):
        """In the step after a cell has failed, and long after."""
        system = ArraySystem(array, cells_of, 0.01)
        settled(system, 300)
        if share < 1.0:
            system.fail(2, share)
        return settled(system, 1)[at], settled(system, 700)[at]

    whole_N, *failed_N = (np.array(force_N(share)) for share in (1.0, 0.9, 0.5, 0.0))
    taken_N = whole_N - failed_N
    assert (taken_N[0] > 0.0).all()
    assert (np.diff(taken_N, axis=0) > 0.0).all()
