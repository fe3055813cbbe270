import numpy as np

from hil.control.schedule import Schedule


def replay(steps, n_cells, times):
    schedule = Schedule(steps, n_cells)
    cells = np.full(n_cells, 7, dtype=np.uint8)
    for t_s in times:
        schedule.step(t_s, float("nan"), float("nan"), cells)
        yield cells.tolist()


def test_cells_change_at_their_tick_and_hold():
    steps = [(0.003, [0, 2], []), (0.005, [1], [0]), (0.007, [], [0, 1, 2])]
    found = list(replay(steps, 3, np.arange(9) * 0.001))
    assert found == [[0, 0, 0]] * 3 + [[1, 0, 1]] * 2 + [[0, 1, 1]] * 2 + [[0, 0, 0]] * 2


def test_steps_may_stand_in_any_order_and_off_comes_before_on():
    steps = [(0.002, [1], [0, 1]), (0.0, [0], [])]
    assert list(replay(steps, 2, [0.0, 0.001, 0.002])) == [[1, 0], [1, 0], [0, 1]]


def test_steps_passed_over_by_missed_ticks_are_not_lost():
    steps = [(0.0, [0], []), (0.001, [1], []), (0.002, [], [0])]
    assert list(replay(steps, 2, [0.0, 0.05])) == [[1, 0], [0, 1]]


def test_every_tick_of_a_long_run_switches_at_its_own_time():
    steps = [(k * 0.001, [0] if k % 2 else [], [] if k % 2 else [0]) for k in range(10000)]
    found = [cells[0] for cells in replay(steps, 1, [k * 0.001 for k in range(10000)])]
    assert found == [k % 2 for k in range(10000)]
