"""Plans of cells that heat and cool, against every sequence and a run of the very cells."""

import itertools

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.recruitment.wire_plan import WirePlanner
from hil.systems.array.wires.cells import wire_model

LEAD_S, BLOCK_S, N_BLOCKS = 1e-3, 0.1, 10
RIGHT = "array.right_N"
MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
ARRAY = CellArray.from_fingerprint("-:3 | &7:-1", cell=MIGA, mass_kg=0.01583)
ACTIVATION = [CellActivation(4.0, "thermal", wire=SmaWire(specific_heat_J_per_kg_K=c))
              for c in (200.0, 300.0, 400.0)]  # fmt: skip
SHARES = static_gains_N(ARRAY, [4.0] * 3, RIGHT)
COLD = np.column_stack([np.full(3, 25.0), np.zeros(3), np.zeros(3)])
OFF = np.zeros(3, dtype=np.uint8)


def planner(price=0.0, least=(1, 1)):
    model = wire_model(ARRAY, ACTIVATION, SHARES)
    return WirePlanner(model, LEAD_S, BLOCK_S, N_BLOCKS, price, *least)


def posed(p, wanted, on=OFF, locked=(0, 0, 0), usable=(1, 1, 1), state=COLD):
    model = wire_model(ARRAY, ACTIVATION, SHARES)
    wires = model.laws, model.static_gains_N, state
    p.pose(wires, on, np.array(locked), np.array(usable, dtype=np.uint8), np.asarray(wanted))
    return p


def force_of(plan):
    """The array itself, its masses and fine steps included, at every block's end."""
    system = ArraySystem(ARRAY, ACTIVATION, 0.002)
    y = []
    for on in plan.T:
        for _ in range(50):
            system.step(on.astype(np.uint8))
        y.append(system.y[ARRAY.outputs.index(RIGHT)])
    return np.array(y)


def test_what_a_plan_promises_the_array_does():
    wanted = np.linspace(0.0, 2.0, N_BLOCKS)
    p = posed(planner(), wanted)
    p.search(10**9)
    # the lag takes austenite as linear over a block of 0.1 s, in a third of a second's lag
    assert wanted - p.error_N == pytest.approx(force_of(p.plan), abs=0.03 * SHARES.sum())


def test_no_other_sequence_of_one_cell_is_better():
    """All sequences of at most two switches, and all that differ from the plan in one stretch."""
    rng = np.random.default_rng(1)
    for price in (0.0, 0.02):
        wanted = np.cumsum(rng.normal(0.15, 0.2, N_BLOCKS))
        p = posed(planner(price), wanted)
        p.search(10**9)
        assert p.finished
        best = float(p.error_N @ p.error_N) + price * _switches(p.plan)
        for n in range(3):
            for plan_n in [*_sequences(), *_changed(p.plan[n])]:
                plan = p.plan.copy()
                plan[n] = plan_n
                error = _error(plan, wanted)
                assert float(error @ error) + price * _switches(plan) >= best - 1e-9


def _sequences():
    yield np.zeros(N_BLOCKS, dtype=np.uint8)
    for a in range(N_BLOCKS):
        for b in range(a + 1, N_BLOCKS + 1):
            row = np.zeros(N_BLOCKS, dtype=np.uint8)
            row[a:b] = 1
            yield row


def _changed(row):
    for a in range(N_BLOCKS):
        for b in range(a + 1, N_BLOCKS + 1):
            other = row.copy()
            other[a:b] = 1 - row[a]
            yield other


def _switches(plan):
    return int((np.diff(np.hstack([OFF[:, None], plan]).astype(int)) != 0).sum())


def _error(plan, wanted):
    """Of a plan that is only posed: carried on by a block, it is given a block early."""
    model = wire_model(ARRAY, ACTIVATION, SHARES)
    longer = WirePlanner(model, LEAD_S, BLOCK_S, N_BLOCKS + 1, 0.0, 1, 1)
    longer.plan[:, 1:] = plan
    posed(longer, np.append(wanted, 0.0))
    return longer.error_N[:N_BLOCKS]


def test_cells_that_are_locked_or_lost_are_left_alone():
    p = posed(planner(), np.full(N_BLOCKS, 3.0), locked=(4, 0, 0), usable=(1, 1, 0))
    p.search(10**9)
    assert not p.plan[0, :4].any()
    assert p.plan[1].any()
    assert not p.plan[2].any()


def test_cells_stay_on_and_off_for_as_long_as_they_must():
    """The same wishes without such times have shorter ones."""
    rng = np.random.default_rng(4)
    shortest = {}
    for least in ((1, 1), (3, 2)):
        p, runs = planner(least=least), {0: [], 1: []}
        for _ in range(20):
            posed(p, np.cumsum(rng.normal(0.15, 0.3, N_BLOCKS)))
            p.search(10**9)
            for row in np.hstack([OFF[:, None], p.plan]).astype(int):
                at = np.flatnonzero(np.diff(row)) + 1
                for begins, ends in itertools.pairwise(at):
                    runs[row[begins]].append(ends - begins)
            p.plan[:] = 0
        shortest[least] = min(runs[1]), min(runs[0])
    assert shortest[1, 1] == (1, 1)
    assert shortest[3, 2] == (3, 2)


def test_the_plan_begins_where_the_wires_are_after_the_lead():
    """On all along: one block later is where a lead of a block begins."""
    model, on, locked = wire_model(ARRAY, ACTIVATION, SHARES), OFF + 1, (N_BLOCKS,) * 3
    late = WirePlanner(model, BLOCK_S, BLOCK_S, N_BLOCKS, 0.0, 1, 1)
    posed(late, np.zeros(N_BLOCKS), on=on, locked=locked)
    soon = posed(planner(), np.zeros(N_BLOCKS), on=on, locked=locked)
    assert late.error_N[-1] < -0.5 * SHARES.sum()
    assert late.error_N[:-1] == pytest.approx(soon.error_N[1:], abs=0.01 * SHARES.sum())


def test_a_switch_that_gains_less_than_its_price_is_not_made():
    wanted = np.full(N_BLOCKS, 0.1)
    p = posed(planner(price=float(wanted @ wanted)), wanted)
    p.search(10**9)
    assert not p.plan.any()


def test_a_search_cut_off_leaves_no_worse_a_plan():
    wanted = np.linspace(0.0, 2.5, N_BLOCKS)
    p = posed(planner(), wanted)
    costs = [float(p.error_N @ p.error_N)]
    for _ in range(20):
        p.search(20)
        costs.append(float(p.error_N @ p.error_N))
    assert np.all(np.diff(costs) <= 1e-12)
    assert costs[-1] < 0.5 * costs[0]


def test_a_search_in_pieces_ends_where_one_at_a_stretch_does():
    wanted = np.linspace(0.0, 2.5, N_BLOCKS)
    whole = posed(planner(price=0.01), wanted)
    whole.search(10**9)
    pieces = posed(planner(price=0.01), wanted)
    while not pieces.finished:
        before = pieces.n_looked_at
        pieces.search(7)
        # a stretch that begins now is looked at to its end
        assert pieces.n_looked_at - before <= 7 + N_BLOCKS + N_BLOCKS * (N_BLOCKS + 1) // 2
    assert np.array_equal(pieces.plan, whole.plan)
    assert pieces.n_looked_at == whole.n_looked_at


def test_a_cell_whose_search_is_always_cut_off_leaves_the_others_theirs():
    p = planner()
    for _ in range(6):
        posed(p, np.full(N_BLOCKS, SHARES.sum()))
        p.search(5 * N_BLOCKS)
    assert p.plan.any(axis=1).all()


def test_cells_that_are_no_wires_are_refused():
    with pytest.raises(ModelError, match="some cells are wires and some are not"):
        wire_model(ARRAY, [*ACTIVATION[:2], CellActivation(4.0)], SHARES)
