"""The optimum's bound from below, and its search, against every sequence of small problems."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import nnls

from hil.control.reference import Steps
from hil.errors import ModelError
from hil.mechanics.sma.wire import SmaWire, advance, wire_laws
from hil.systems.array.model import cells
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem
from hil_studies.recruitment import optimum as study_optimum
from hil_studies.recruitment import plant as plants
from hil_studies.recruitment.bound import least_possible, responses
from hil_studies.recruitment.outer import WIDER_K, WIDER_XI, Bins, OuterWire

COARSE, FINE = Bins(0.2, 25, 20), Bins(0.05, 100, 20)
PERIOD_S = plants.PERIOD_S
HOLD, N_BLOCKS = 30, 8
SEQUENCES = np.array(list(product((0, 1), repeat=N_BLOCKS)), dtype=np.uint8)


def small(n_cells, seed):
    """A plant of so many cells side by side, theirs those of a plant of the study."""
    truth = plants.plant(6, seed)
    shape = f"-:{n_cells} | &{2**n_cells - 1:X}:-1"
    model = CellArray.from_fingerprint(
        shape, cell=cells.miga(**plants.CELL), mass_kg=plants.MASS_KG
    )
    return plants.Plant(model, truth.activation[:n_cells])


def force_of(truth, on, hold):
    """(ticks,) N, simulated: `on` (blocks, N)."""
    system = ArraySystem(truth.model, truth.activation, PERIOD_S)
    output = truth.model.outputs.index(plants.RIGHT)
    force = np.empty(len(on) * hold)
    for k in range(len(force)):
        system.step(on[k // hold])
        force[k] = system.y[output]
    return force


def trajectories(truth):
    """(N, sequences, ticks): what each cell adds under every sequence, the others off."""
    n = len(truth.activation)
    return np.array([
        [force_of(truth, np.outer(on, np.arange(n) == i).astype(np.uint8), HOLD)
         for on in SEQUENCES]
        for i in range(n)
    ])  # fmt: skip


def set_point(truth):
    total_N = force_of(truth, np.ones((N_BLOCKS, len(truth.activation)), np.uint8), HOLD)[-1]
    return Steps([0.9, 1.7], [0.7 * total_N, 0.2 * total_N])


def wanted_by(follow):
    return np.array([follow.at((k + 1) * PERIOD_S) for k in range(HOLD * N_BLOCKS)])


def least_of_all(truth, follow, ways):
    """RMS error (N) of the best of all combinations of sequences."""
    left = wanted_by(follow)[None]
    for own in ways[:-1]:
        left = (left[:, None] - own[None]).reshape(-1, left.shape[-1])
    last = ways[-1]
    # |left - y|^2 of all pairs, by the cosine law
    squares = (left**2).sum(1)[:, None] - 2.0 * left @ last.T + (last**2).sum(1)[None]
    return float(np.sqrt(squares.min() / left.shape[-1]))


def least_of_hulls(follow, ways):
    """RMS error (N) of the best mixture of every cell's sequences, all of them given."""
    wanted = wanted_by(follow)
    n, m, ticks = ways.shape
    heavy = 1e3 * np.linalg.norm(wanted)
    A = np.vstack((ways.reshape(n * m, ticks).T, heavy * np.repeat(np.eye(n), m, axis=1)))
    w, _ = nnls(A, np.concatenate((wanted, np.full(n, heavy))))
    assert w.reshape(n, m).sum(axis=1) == pytest.approx(np.ones(n), abs=1e-5)
    return float(np.sqrt(np.mean((wanted - ways.reshape(n * m, ticks).T @ w) ** 2)))


def laws_of(*seeds):
    return [
        law
        for seed in seeds
        for law in wire_laws([a.wire for a in plants.plant(6, seed).activation])
    ]


def walk(law, rng, n_ticks):
    """States and drives of a wire that is switched at random."""
    T, xi, on = law[3], 0.0, 1
    for _ in range(n_ticks):
        if rng.random() < 0.03:
            on = 1 - on
        before = (T, xi)
        T, xi = advance(law, float(on), T, xi, PERIOD_S)
        yield on, before, (T, xi)


@pytest.mark.slow
@pytest.mark.parametrize("bins", [COARSE, FINE, Bins(1.0, 7, 3)])
def test_whatever_a_wire_becomes_in_a_tick_is_covered(bins):
    rng = np.random.default_rng(1)
    visited = set()
    for law in laws_of(1, 2):
        wire = OuterWire(law, bins)
        for on, before, after in walk(law, rng, 1500):
            at = wire.bin_of(*before)
            visited.add(at)
            assert wire.bin_of(*after) in wire.covers(on, at)
    assert len(visited) > 100


def test_a_hotter_and_more_austenitic_wire_stays_so():
    """What the bins' corners stand for; up to the linearisation of the power, as stated."""
    rng = np.random.default_rng(2)
    pairs = 0
    for law in laws_of(3, 4):
        states = [before for _, before, _ in walk(law, rng, 2000)]
        for _ in range(4000):
            i, j = rng.integers(len(states), size=2)
            (T0, xi0), (T1, xi1) = states[i], states[j]
            if T0 > T1 or xi0 > xi1:
                continue
            pairs += 1
            for on in (0.0, 1.0):
                low, high = (advance(law, on, *s, PERIOD_S) for s in ((T0, xi0), (T1, xi1)))
                assert low[0] <= high[0] + WIDER_K
                assert low[1] <= high[1] + WIDER_XI
    assert pairs > 2000


def test_the_most_of_a_wire_is_above_that_of_all_sequences_and_comes_down_to_it():
    rng = np.random.default_rng(3)
    for law in laws_of(5)[:3]:
        xi = np.empty((len(SEQUENCES), HOLD * N_BLOCKS))
        for row, sequence in zip(xi, SEQUENCES, strict=True):
            T, x = law[3], 0.0
            for k in range(len(row)):
                T, x = advance(law, float(sequence[k // HOLD]), T, x, PERIOD_S)
                row[k] = x
        mu = np.repeat(rng.standard_normal(2 * N_BLOCKS), HOLD // 2)
        exact = float((xi @ mu).max())
        coarse, fine = (OuterWire(law, bins).most(mu, HOLD) for bins in (COARSE, FINE))
        assert exact <= fine <= coarse
        # of the most that any xi in 0..1 could earn
        assert fine - exact < 0.02 * np.maximum(mu, 0.0).sum()
        assert coarse - exact > 1.5 * (fine - exact)


def test_the_drifting_wire_earns_what_it_is_said_to():
    rng = np.random.default_rng(4)
    mu = np.repeat(rng.standard_normal(30), 10)
    for hold in (1, 10):
        wire = OuterWire(laws_of(6)[0], COARSE)
        most, xi = wire.best(mu, hold)
        assert xi @ mu == pytest.approx(most, rel=1e-12)
        assert most == wire.most(mu, hold)


def test_more_freedom_to_switch_never_lowers_the_most():
    mu = np.repeat(np.random.default_rng(5).standard_normal(20), 15)
    wire = OuterWire(laws_of(7)[0], COARSE)
    most = [wire.most(mu, hold) for hold in (60, 30, 10, 1)]
    assert most == sorted(most)


def test_a_wire_that_never_gets_hot_is_refused():
    with pytest.raises(ModelError, match="hot enough"):
        OuterWire(wire_laws([SmaWire(supply_V=1.0)])[0], COARSE)


def test_responses_add_up_to_the_simulated_force():
    truth = plants.plant(6, 8)
    n_ticks = 300
    on = (np.random.default_rng(6).random((n_ticks // 30, 6)) < 0.7).astype(np.uint8)
    total = np.zeros(n_ticks)
    laws = wire_laws([a.wire for a in truth.activation])
    for n, gain in enumerate(responses(truth, n_ticks)):
        T, xi, own = laws[n][3], 0.0, np.empty(n_ticks)
        for k in range(n_ticks):
            T, xi = advance(laws[n], float(on[k // 30, n]), T, xi, PERIOD_S)
            own[k] = xi
        total += np.convolve(gain, own)[:n_ticks]
    force = force_of(truth, on, 30)
    assert np.abs(force).max() > 0.5
    assert total == pytest.approx(force, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n_cells", "seed"), [(2, 1), (2, 2), (2, 3)])
def test_the_bound_is_below_the_best_of_all_sequences_by_the_duality_gap(n_cells, seed):
    """The gap is that to the hulls of all sequences; what the bins leave shrinks as they do."""
    truth = small(n_cells, seed)
    follow = set_point(truth)
    ways = trajectories(truth)
    exact_N, hulls_N = least_of_all(truth, follow, ways), least_of_hulls(follow, ways)
    assert hulls_N <= exact_N
    coarse, fine = (
        least_possible(truth, follow, HOLD * N_BLOCKS, hold=HOLD, search=search, proof=proof)
        for search, proof in ((COARSE, FINE), (Bins(0.1, 50, 20), Bins(0.02, 200, 20)))
    )
    assert coarse.rmse_N < fine.rmse_N <= hulls_N * (1.0 + 1e-6)
    # a bin of drift a tick, 0.02 K, is 3 % of what a wire cools in it
    assert fine.rmse_N > 0.95 * hulls_N


@pytest.mark.slow
def test_the_descent_never_leaves_more_than_what_it_began_with():
    truth, follow = plants.plant(6, 9), plants.reference("steps", plants.nominal(6).total_N)
    grid = round(study_optimum.GRID_S / PERIOD_S)
    rng = np.random.default_rng(9)
    start = (np.repeat(rng.random((12, 6)), 10, axis=0) < 0.35).astype(np.uint8)
    force = force_of(truth, start, grid)
    wanted = np.array([follow.at((k + 1) * PERIOD_S) for k in range(len(force))])
    before_N = np.sqrt(np.mean((wanted - force) ** 2))
    once_N, on = study_optimum.least_error(truth, follow, start, sweeps=1)
    again_N, _ = study_optimum.least_error(truth, follow, on, sweeps=1)
    # inertia, which the descent leaves out, is worth less than a thousandth
    assert once_N < 0.9 * before_N
    assert again_N < once_N * 1.001


@pytest.mark.slow
@pytest.mark.parametrize(("n_cells", "seed"), [(2, 1), (2, 2), (2, 3), (3, 1)])
def test_the_descent_ends_where_no_cell_alone_can_better_it(n_cells, seed, monkeypatch):
    monkeypatch.setattr(study_optimum, "GRID_S", HOLD * PERIOD_S)
    truth = small(n_cells, seed)
    follow = set_point(truth)
    ways = trajectories(truth)
    start = np.zeros((N_BLOCKS, n_cells), dtype=np.uint8)
    found_N, on = study_optimum.least_error(truth, follow, start)
    left = wanted_by(follow) - force_of(truth, on, HOLD)
    assert found_N == pytest.approx(np.sqrt(np.mean(left**2)), rel=1e-12)
    assert found_N >= least_of_all(truth, follow, ways) * (1.0 - 1e-9)
    for n, own in enumerate(ways):
        at = np.flatnonzero((on[:, n] == SEQUENCES).all(axis=1))[0]
        alone_N = np.sqrt(np.mean((left + own[at] - own) ** 2, axis=1)).min()
        # of its bins: halving those of the study finds up to 3 % less
        assert alone_N > 0.97 * found_N


def test_errors_of_a_lead_in_do_not_count_in_the_descent(monkeypatch):
    monkeypatch.setattr(study_optimum, "GRID_S", HOLD * PERIOD_S)
    truth, first = small(2, 2), 6 * HOLD  # the step down is then free, 0.1 s before
    follow = set_point(truth)
    ways = trajectories(truth)
    start = np.zeros((N_BLOCKS, 2), dtype=np.uint8)
    found_N, on = study_optimum.least_error(truth, follow, start, counted_from_s=first * PERIOD_S)
    left = (wanted_by(follow) - force_of(truth, on, HOLD))[first:]
    assert found_N == pytest.approx(np.sqrt(np.mean(left**2)), rel=1e-12)
    for n, own in enumerate(ways):
        at = np.flatnonzero((on[:, n] == SEQUENCES).all(axis=1))[0]
        alone_N = np.sqrt(np.mean((left + (own[at] - own)[:, first:]) ** 2, axis=1)).min()
        assert alone_N > 0.97 * found_N  # as in the test above
    _, whole = study_optimum.least_error(truth, follow, start)
    error_N, _ = study_optimum.simulated(truth, follow, whole)
    assert found_N < 0.9 * np.sqrt(np.mean(error_N[first:] ** 2))
