"""The size principle: order of recruitment and release, rotation, rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.systems.array.recruitment import groups as sizes
from hil.systems.array.recruitment.groups import GroupRules, SizePrinciple

SHARES = np.array([1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
GROUPS = [[0, 1], [2, 3], [4, 5]]
ALL = np.ones(6, dtype=np.uint8)
PERIOD_S = 0.01


def cells_for(demands, rules, *, usable=ALL, groups=GROUPS, gains_N=SHARES):
    """Cells after every tick at which the array gave just what was asked (no disturbance)."""
    law = SizePrinciple(rules, groups, gains_N)
    cells = np.zeros(len(gains_N), dtype=np.uint8)
    rows = []
    for k, demand in enumerate(demands):
        law.step(k * PERIOD_S, demand, demand, 0.0, usable, cells)
        rows.append(cells.copy())
    return np.array(rows)


def test_small_groups_come_first_and_go_last():
    up = np.linspace(0.0, 14.0, 400)
    rows = cells_for([*up, *up[::-1]], GroupRules(dwell_s=0.0))
    joined = [np.flatnonzero(rows[:, n])[0] for n in range(6)]
    left = [len(rows) - np.flatnonzero(rows[::-1, n])[0] for n in range(6)]
    for small, large in ((0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (3, 5)):
        assert joined[small] < joined[large]
        assert left[small] > left[large]


def test_the_static_force_is_the_nearest_level_of_the_order():
    levels = np.array([0.0, 1.0, 2.0, 4.0, 6.0, 10.0, 14.0])
    for demand in np.linspace(0.0, 14.0, 141):
        own = cells_for([demand], GroupRules(hysteresis=0.0))[-1] @ SHARES
        assert abs(own - demand) <= np.abs(levels - demand).min() + 1e-9


def test_whole_groups_double_as_in_fig_9():
    """Groups of 1, 1, 2, 4, 8 (section 4) give every whole multiple along their order's sums."""
    groups = [[0], [1], [2, 3], [4, 5, 6, 7], [8, 9, 10, 11, 12, 13, 14, 15]]
    rows = cells_for(
        np.linspace(0.0, 16.0, 800), GroupRules(hysteresis=0.0, dwell_s=0.0, whole=True),
        usable=np.ones(16, dtype=np.uint8), groups=groups, gains_N=np.ones(16),
    )  # fmt: skip
    assert sorted(set(rows.sum(axis=1))) == [0, 1, 2, 4, 8, 16]


def test_rotation_keeps_the_number_on_and_spreads_the_time():
    rules = GroupRules(rotate_s=0.1, rest_s=0.05, dwell_s=0.0)
    rows = cells_for([2.0] * 2000, rules, groups=[[0, 1, 2, 3]], gains_N=np.ones(4),
                     usable=np.ones(4, dtype=np.uint8))  # fmt: skip
    assert set(rows.sum(axis=1)) == {2}
    shares_of_time = rows.mean(axis=0)
    # each is relieved every other rotation at the latest: half of the time, to a rotation or two
    assert shares_of_time == pytest.approx(0.5, abs=2 * 0.1 / 20.0 + 0.01)


@given(
    demands=st.lists(st.floats(0.0, 14.0), min_size=20, max_size=80),
    rest=st.integers(0, 12),
    rotate=st.integers(0, 9),
)
def test_a_cell_always_rests_as_long_as_it_must(demands, rest, rotate):
    rules = GroupRules(rest_s=rest * PERIOD_S, rotate_s=rotate * PERIOD_S, dwell_s=0.0)
    rows = cells_for(np.repeat(demands, 3), rules)
    for n in range(6):
        change = np.diff(rows[:, n].astype(int))
        for off in np.flatnonzero(change == -1):
            later = np.flatnonzero(change[off:] == 1)
            assert not len(later) or later[0] >= rest


def test_changes_are_a_dwell_apart():
    rng = np.random.default_rng(3)
    rows = cells_for(rng.uniform(0.0, 14.0, 500), GroupRules(dwell_s=0.07))
    changes = np.flatnonzero(np.any(np.diff(rows.astype(int), axis=0) != 0, axis=1))
    assert np.diff(changes).min() >= 7


def test_failed_cells_and_cells_of_no_group_stay_off_and_the_next_take_over():
    usable = ALL.copy()
    usable[2] = 0
    rows = cells_for([14.0] * 50, GroupRules(dwell_s=0.0), usable=usable, groups=[[0], [2, 3], [4]])
    assert rows[-1].tolist() == [1, 0, 0, 1, 1, 0]


def test_what_the_model_does_not_explain_is_made_up_for():
    law = SizePrinciple(GroupRules(), GROUPS, SHARES)
    cells = np.zeros(6, dtype=np.uint8)
    law.step(0.0, 6.0, 6.0, -2.0, ALL, cells)
    assert law.demand_N == pytest.approx(8.0)


def test_nothing_winds_up_while_the_array_cannot_follow():
    """Asked for more than all cells give, for however long, it lets go at once afterwards."""
    law = SizePrinciple(GroupRules(dwell_s=0.0), GROUPS, SHARES)
    cells = np.zeros(6, dtype=np.uint8)
    for k in range(3000):
        law.step(k * PERIOD_S, 50.0, 14.0, 0.0, ALL, cells)
    law.step(3000 * PERIOD_S, 1.0, 14.0, 0.0, ALL, cells)
    assert cells @ SHARES == pytest.approx(1.0)


def test_a_lost_reading_changes_nothing():
    law = SizePrinciple(GroupRules(dwell_s=0.0), GROUPS, SHARES)
    cells = np.zeros(6, dtype=np.uint8)
    law.step(0.0, 6.0, 6.0, 0.0, ALL, cells)
    before = cells.copy()
    law.step(0.1, 1.0, np.nan, 0.0, ALL, cells)
    assert np.array_equal(cells, before)


def test_a_cell_that_fails_while_it_is_on_goes_off_and_its_force_is_no_longer_counted():
    law, cells = SizePrinciple(GroupRules(dwell_s=0.0), GROUPS, SHARES), np.zeros(6, dtype=np.uint8)
    law.step(0.0, 6.0, 6.0, 0.0, ALL, cells)
    assert cells.tolist() == [1, 1, 1, 1, 0, 0]
    usable = np.array([1, 1, 0, 1, 1, 1], dtype=np.uint8)
    law.step(0.01, 6.0, 6.0, 0.0, usable, cells)
    assert cells.tolist() == [1, 1, 0, 1, 0, 0]  # 2 N are missing, and 4 N would be too much
    law.step(0.02, 8.0, 8.0, 0.0, usable, cells)
    assert cells.tolist() == [1, 1, 0, 1, 1, 0]


def test_the_demand_is_never_more_than_the_cells_that_are_left_nor_below_none():
    """More would wind up: the array could not follow it back down at once."""
    usable = np.array([1, 1, 1, 0, 0, 1], dtype=np.uint8)
    law, cells = SizePrinciple(GroupRules(k_p=2.0), GROUPS, SHARES), np.zeros(6, dtype=np.uint8)
    for reference_N, demand_N in ((99.0, 8.0), (-99.0, 0.0), (5.0, 5.0)):
        law.step(0.0, reference_N, reference_N, 0.0, usable, cells)
        assert law.demand_N == demand_N


def test_whole_groups_switch_without_their_failed_cells_and_come_back_without_them():
    usable = np.array([1, 1, 1, 0, 1, 1], dtype=np.uint8)
    rules = GroupRules(hysteresis=0.0, dwell_s=0.0, whole=True)
    rows = cells_for([4.0, 4.0, 12.0, 0.0], rules, usable=usable)
    assert rows.tolist() == [
        [1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 1, 1], [0, 0, 0, 0, 0, 0],
    ]  # fmt: skip


@pytest.mark.parametrize("whole", [False, True])
def test_a_cell_joins_and_leaves_beyond_half_its_force_and_the_hysteresis(whole):
    """Of 1 N and a tenth: on above 0.6 N, off below 0.4 N, the first cell as any other."""
    rules = GroupRules(hysteresis=0.1, dwell_s=0.0, whole=whole)
    for cell, groups in ((0, [[0]]), (1, [[1]])):
        rows = cells_for([0.55, 0.65, 0.45, 0.55, 0.35, 0.55], rules, groups=groups)
        assert rows[:, cell].tolist() == [0, 1, 1, 1, 0, 0]


def test_the_first_group_comes_first_though_its_cell_has_rested_for_a_shorter_time():
    rules = GroupRules(hysteresis=0.0, dwell_s=0.0)
    rows = cells_for([1.0, 0.0, 1.0], rules, groups=[[0], [1]])
    assert rows[:, :2].tolist() == [[1, 0], [0, 0], [1, 0]]
    rows = cells_for([2.0, 1.0, 0.0], rules, groups=[[0], [1]])  # and leaves last
    assert rows[:, :2].tolist() == [[1, 1], [1, 0], [0, 0]]


def test_a_cell_comes_on_again_as_soon_as_it_has_rested():
    rules = GroupRules(hysteresis=0.0, dwell_s=0.0, rest_s=3 * PERIOD_S)
    rows = cells_for([1.0, 0.0, 1.0, 1.0, 1.0, 1.0], rules, groups=[[0]])
    assert rows[:, 0].tolist() == [1, 0, 0, 0, 1, 1]


def test_of_cells_that_came_on_together_the_first_in_the_order_rests_first():
    """Cells are taken in the order; who was taken first goes first."""
    together = sizes.Cells(
        order=np.array([2, 0, 1]), group=np.zeros(3, dtype=np.int64), gains_N=np.ones(3),
        on=np.ones(3, dtype=np.uint8), since_s=np.zeros(3), usable=np.ones(3, dtype=np.uint8),
    )  # fmt: skip
    later = together._replace(since_s=np.array([0.0, 1.0, 1.0]))
    assert sizes._next_off(together) == 2
    assert sizes._next_off(later) == 0
    assert sizes._next_off(together._replace(group=np.array([0, 1, 0]))) == 1
    assert sizes._next_off(together._replace(on=np.zeros(3, dtype=np.uint8))) == -1


def test_a_cell_that_failed_while_it_was_on_rests_from_then_on():
    law = SizePrinciple(GroupRules(dwell_s=0.0, rest_s=0.5), [[0]], [1.0])
    cells, on_s = np.zeros(1, dtype=np.uint8), []
    for k in range(250):
        usable = np.array([not 100 <= k < 102], dtype=np.uint8)
        law.step(k * PERIOD_S, 1.0, 1.0, 0.0, usable, cells)
        if cells[0]:
            on_s.append(k)
    assert on_s == [*range(100), *range(150, 250)]


def test_the_dwell_runs_from_the_last_change_and_not_from_the_last_look():
    rows = cells_for([0.0, 0.0, 1.0, 1.0], GroupRules(dwell_s=0.1))
    assert rows.sum(axis=1).tolist() == [0, 0, 1, 1]


def test_a_cell_without_its_like_does_not_keep_the_others_of_its_group_from_turns():
    rows = cells_for(
        [4.0] * 400, GroupRules(dwell_s=0.0, rotate_s=0.5), groups=[[0, 1, 2]],
        usable=ALL[:3], gains_N=np.array([3.0, 1.0, 1.0]),
    )  # fmt: skip
    assert rows[:, 0].all()
    assert (rows[:, 1:].sum(axis=1) == 1).all()
    np.testing.assert_allclose(rows[:, 1:].mean(axis=0), 0.5, atol=0.01)


def test_armed_again_a_cell_that_was_on_rests_first_and_counts_as_the_least_rested():
    rules = GroupRules(dwell_s=0.0, rest_s=0.5)
    law = SizePrinciple(rules, [[0, 1]], SHARES[:2])
    cells = np.zeros(2, dtype=np.uint8)
    for t_s in (0.0, 1.0, 2.0):
        law.step(t_s, 1.0, 1.0, 0.0, ALL[:2], cells)
    assert cells.tolist() == [1, 0]
    law.restart()  # disarmed, so off, since 2 s
    law.step(2.1, 2.0, 2.0, 0.0, ALL[:2], cells)
    assert cells.tolist() == [0, 1]
    law.step(2.6, 2.0, 2.0, 0.0, ALL[:2], cells)
    assert cells.tolist() == [1, 1]
    law.restart()
    law.step(3.5, 1.0, 1.0, 0.0, ALL[:2], cells)
    assert cells.sum() == 1
