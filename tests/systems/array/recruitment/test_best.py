"""The search for the best sequence of a run: against every sequence, and one that is known."""

import itertools

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.sma.stress import LineBranch, StressLaw
from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.cells import miga
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_load import Loaded
from hil.systems.array.recruitment.best import LENGTHS, Arrays, Course, _improve, best_sequence

PERIOD_S = 0.02
CELL = miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=50.0)


@pytest.fixture(scope="module")
def arrays():
    """Two unlike wires in series, on the force at their end."""
    array = CellArray.from_fingerprint("-:1 | &1:1 | &1:-1", cell=CELL, mass_kg=0.016)
    wires = [
        CellActivation(force_N, "thermal", wire=SmaWire(supply_V=3.0, ambient_C=20.0 + 5.0 * n))
        for n, force_N in enumerate((1.0, 0.7))
    ]
    assert array.n_cells == 2

    def new():
        return ArraySystem(array, wires, PERIOD_S)

    return Arrays(new, array.outputs.index("array.right_N"))


def course_of(wanted_N, per_block, from_block=0):
    n = len(wanted_N)
    counts = (np.arange(n) >= from_block * per_block).astype(float)
    ends = np.append(np.arange(0, n, per_block), n)
    return Course(np.asarray(wanted_N), counts, ends, n, np.arange(2))


def held(table, per_block):
    return np.repeat(np.array(table, dtype=float), per_block, axis=0)


def test_off_and_on_it_finds_the_best_of_all_sequences(arrays):
    """Of two cells in five blocks there are 1 024."""
    per_block = 20
    t_s = PERIOD_S * np.arange(1, 5 * per_block + 1)
    course = course_of(0.25 + 0.15 * np.sin(2.5 * t_s), per_block)
    least_N = min(
        course.rms_N(arrays.run(held(np.reshape(bits, (5, 2)), per_block)).force_N)
        for bits in itertools.product((0, 1), repeat=10)
    )
    found = best_sequence(arrays, course, np.zeros((len(t_s), 2)), modulated=False)
    assert course.rms_N(found.force_N) == pytest.approx(least_N, rel=1e-9)


def test_with_duties_it_finds_the_sequence_that_made_the_set_point(arrays):
    per_block = 25
    known = held(
        [[0.9, 0.8], [0.7, 0.9], [0.4, 0.5], [0.5, 0.3], [0.3, 0.4], [0.4, 0.4]], per_block
    )
    course = course_of(arrays.run(known).force_N, per_block)
    from_it = np.full_like(known, 0.5)
    found = best_sequence(arrays, course, from_it, modulated=True)
    assert course.rms_N(found.force_N) < 0.1 * course.rms_N(arrays.run(from_it).force_N)


@pytest.mark.parametrize("modulated", [False, True])
def test_no_sequence_is_worse_than_the_runs_own(arrays, modulated):
    """The set point is what the run's own sequence did, so that none can be better."""
    own = held([[1, 1], [0, 1], [1, 0], [0, 0]], 10)
    course = course_of(arrays.run(own).force_N, 10)
    found = best_sequence(arrays, course, own, modulated=modulated)
    assert np.array_equal(found.duties, own)


def improved(arrays, course, duties):
    duties = duties.copy()
    arrays.rest()
    _improve(duties, course, arrays.kernel, (arrays.state, arrays.room), LENGTHS)
    return duties


def test_refused_changes_leave_all_duties_also_those_beyond_the_reach(arrays):
    """No change is better than the sequence that made the set point."""
    own = held([[1, 0], [1, 1], [0, 1], [0, 0], [1, 1], [1, 0]], 10)
    course = course_of(arrays.run(own).force_N, 10)._replace(reach=10)
    assert np.array_equal(improved(arrays, course, own), own)


def test_a_block_is_exchanged_with_the_next_one_where_no_other_change_is_better(arrays):
    """Late forces tell little of when a wire was heated, but much of whether it was."""
    early, late = (held(np.outer(on, [1, 0]), 25) for on in ([1, 0, 0, 0], [0, 1, 0, 0]))
    course = course_of(arrays.run(late).force_N, 25, from_block=2)._replace(live=np.array([0]))
    assert np.array_equal(improved(arrays, course, early), late)


def test_wires_under_stress_begin_every_run_of_a_search_at_rest():
    law = StressLaw(LineBranch(78.0, 8.3e6, 6.0), LineBranch(56.0, 7.5e6, 6.0), 0.04, 0.041, 1e-8)
    array = CellArray.from_fingerprint("-:1 | &1:1 | &1:-1", cell=CELL, mass_kg=0.016)
    loaded = Loaded(law, 0.5, 1000.0)
    wires = [CellActivation(f_N, "sma", wire=SmaWire(supply_V=3.0), loaded=loaded)
             for f_N in (1.0, 0.7)]  # fmt: skip
    output = array.outputs.index("array.right_N")
    arrays = Arrays(lambda: ArraySystem(array, wires, PERIOD_S), output)
    own = held([[1, 1], [0, 1], [1, 0]], 10)
    force_N = arrays.run(own).force_N
    assert force_N.max() > 0.01
    found = best_sequence(arrays, course_of(force_N, 10), own, modulated=True)
    assert np.array_equal(found.duties, own)
    assert np.array_equal(arrays.run(own).force_N, force_N)


def test_periods_that_do_not_count_and_cells_that_failed_are_left_alone(arrays):
    per_block = 10
    own = held([[1, 0], [1, 0], [0, 0]], per_block)
    course = course_of(np.full(30, 0.3), per_block, from_block=1)._replace(live=np.array([0]))
    found = best_sequence(arrays, course, own, modulated=False)
    assert not found.duties[:, 1].any()
    assert course.rms_N(found.force_N) == pytest.approx(
        np.sqrt(np.mean((0.3 - found.force_N[10:]) ** 2))
    )


def test_cycles_are_full_transformations_there_and_back(arrays):
    """Both wires contract fully in 4 s and relax fully in 6."""
    once = np.vstack([np.ones((200, 2)), np.zeros((300, 2))])
    assert arrays.run(once).cycles == pytest.approx(1.0, abs=1e-6)
    assert arrays.run(np.vstack([once, once])).cycles == pytest.approx(2.0, abs=1e-6)


def test_a_driven_point_is_refused():
    array = CellArray.from_fingerprint("-:1 | &1:1 | &1:-1", cell=CELL, mass_kg=0.016)
    from hil.systems.array.model.network import Point

    points = {name: Point("driven") if i else p for i, (name, p) in enumerate(array.points.items())}
    moved = CellArray(points, array.arrays)
    cells = [CellActivation(1.0)] * 2
    with pytest.raises(ModelError, match="no search for the best sequence"):
        Arrays(lambda: ArraySystem(moved, cells, PERIOD_S), 0)
