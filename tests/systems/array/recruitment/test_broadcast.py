"""Broadcast laws against the exact figures of their Markov chain (section 6 of the model page)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from hil.devices.board import protocol
from hil.systems.array.recruitment.broadcast import LAWS, Broadcaster, BroadcastLaw, probability

DEAD_BEAT, LMS, OVER_N, FIXED = range(4)
SIGMAS = 4.0  # of a mean over independent trials: 6e-5 of sound seeds would fail
PERIOD_S = 1.0


def transition(n_cells, wanted, law, gain=0.1, dead=0):
    """Exact transition matrix of the number of cells on; `dead` cells count as off for ever.

    The controller does not know of them: it divides by all cells that are off.
    """
    alive = n_cells - dead
    matrix = np.zeros((alive + 1, alive + 1))
    for n in range(alive + 1):
        error = wanted - n
        if error > 0:
            p = probability(law, gain, float(error), float(n_cells - n), float(n_cells))
            matrix[n, n:] = stats.binom.pmf(np.arange(alive - n + 1), alive - n, p)
        elif error < 0:
            q = probability(law, gain, float(-error), float(n), float(n_cells))
            matrix[n, : n + 1] = stats.binom.pmf(np.arange(n + 1), n, q)[::-1]
        else:
            matrix[n, n] = 1.0
    return matrix


def expected_broadcasts(matrix, wanted):
    """Mean number of broadcasts until absorption, from every number of cells: (I - Q) t = 1."""
    keep = np.flatnonzero(np.arange(len(matrix)) != wanted)
    Q = matrix[np.ix_(keep, keep)]
    times = np.zeros(len(matrix))
    times[keep] = np.linalg.solve(np.eye(len(keep)) - Q, np.ones(len(keep)))
    return times


@pytest.mark.parametrize(
    ("n_cells", "wanted", "dead", "figure"),
    [(10, 5, 0, 3.005813), (20, 10, 0, 3.381388), (20, 10, 3, 3.554868)],
)
def test_dead_beat_settles_in_the_published_number_of_broadcasts(n_cells, wanted, dead, figure):
    matrix = transition(n_cells, wanted, DEAD_BEAT, dead=dead)
    assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert expected_broadcasts(matrix, wanted)[0] == pytest.approx(figure, abs=5e-7)


def _settle(law, n_cells, wanted, seed, *, gain=0.1, dead=(), limit=400):
    """Broadcasts until `wanted` cells are on, drawn as the boards draw; cells of 1 N each.

    The controller is told nothing of dead cells: for it they are cells that are off.
    """
    caster = Broadcaster(BroadcastLaw(law, gain, 0.5, PERIOD_S), np.ones(n_cells))
    usable = np.ones(n_cells, dtype=np.uint8)
    on = np.zeros(n_cells, dtype=bool)
    able = np.ones(n_cells, dtype=bool)
    able[list(dead)] = False
    n_on = []
    for k in range(limit):
        force = float((on & able).sum())
        n_on.append(int(force))
        if force == wanted:
            return k, n_on
        assert caster.step(k * PERIOD_S, float(wanted), force, usable)
        p, q = (protocol.probability_per_65536(x) for x in (caster.p_on, caster.q_off))
        for cell in range(n_cells):
            # a dead cell is off whatever its gate does, and so draws with p for ever
            is_on = on[cell] and able[cell]
            chance = q if is_on else p
            draw = protocol.draw(seed, caster.tick, cell)
            if chance == protocol.PROBABILITY_ONE or draw < chance:
                on[cell] = not is_on
    return limit, n_on


@pytest.mark.parametrize("law", LAWS[:3])
@pytest.mark.parametrize(
    ("n_cells", "wanted", "dead"), [(10, 5, ()), (20, 10, ()), (20, 10, (2, 9, 17))]
)
def test_every_law_settles_as_fast_as_its_markov_chain(law, n_cells, wanted, dead):
    matrix = transition(n_cells, wanted, LAWS.index(law), dead=len(dead))
    exact = expected_broadcasts(matrix, wanted)[0]
    took = [_settle(law, n_cells, wanted, seed, dead=dead)[0] for seed in range(300)]
    error = np.std(took, ddof=1) / np.sqrt(len(took))
    assert np.mean(took) == pytest.approx(exact, abs=SIGMAS * error)


def test_a_fixed_gain_settles_as_fast_as_its_markov_chain():
    exact = expected_broadcasts(transition(20, 10, FIXED, gain=0.08), 10)[0]
    took = [_settle("fixed_gain", 20, 10, seed, gain=0.08)[0] for seed in range(300)]
    error = np.std(took, ddof=1) / np.sqrt(len(took))
    assert np.mean(took) == pytest.approx(exact, abs=SIGMAS * error)


def test_certain_probabilities_never_settle():
    """Section 6: all cells on, then all off, for ever."""
    took, n_on = _settle("fixed_gain", 10, 5, 3, gain=1.0, limit=60)
    assert took == 60
    assert set(n_on) == {0, 10}


def test_the_number_of_cells_after_a_broadcast_is_binomial():
    """Not |e| cells exactly (variance 0), and no draw shared by all (variance N^2 p (1 - p))."""
    n_cells, wanted = 20, 10
    changes = [_settle("dead_beat", n_cells, wanted, seed, limit=2)[1][-1] for seed in range(2000)]
    p = wanted / n_cells
    assert np.mean(changes) == pytest.approx(
        wanted, abs=SIGMAS * np.sqrt(n_cells * p * (1 - p) / 2000)
    )
    variance = n_cells * p * (1 - p)
    # standard error of a sample variance of a near-normal figure: variance sqrt(2 / n)
    assert np.var(changes, ddof=1) == pytest.approx(
        variance, abs=SIGMAS * variance * np.sqrt(2 / 2000)
    )


def test_least_mean_square_has_the_smallest_expected_square_of_the_next_error():
    for movable in range(2, 30):
        for error in range(1, movable + 1):
            p = probability(LMS, 0.0, float(error), float(movable), 30.0)
            grid = np.linspace(0.0, 1.0, 100_001)
            square = movable * grid * (1.0 - grid) + (error - movable * grid) ** 2
            own = movable * p * (1.0 - p) + (error - movable * p) ** 2
            assert own <= square.min() + 1e-9


def test_dead_beat_expects_no_error_next():
    for movable in range(1, 30):
        for error in range(1, movable + 1):
            p = probability(DEAD_BEAT, 0.0, float(error), float(movable), 30.0)
            assert error - movable * p == pytest.approx(0.0, abs=1e-12)


def test_the_error_shrinks_on_average_where_the_lyapunov_bound_says():
    """V = e^2 falls on average exactly where p < (2 e - 1) / (m - 1)."""
    for movable in range(2, 20):
        for error in range(1, movable + 1):
            for p in np.linspace(0.01, 1.0, 50):
                drift = movable * p * (1 - p) + (error - movable * p) ** 2 - error**2
                bound = (2 * error - 1) / (movable - 1)
                if abs(p - bound) > 1e-9:
                    assert (drift < 0.0) == (p < bound)


@pytest.mark.parametrize("law", LAWS)
def test_messages_are_one_sided_and_silent_within_the_dead_zone(law):
    usable = np.ones(10, dtype=np.uint8)
    caster = Broadcaster(BroadcastLaw(law, 0.2, 0.5, PERIOD_S), np.ones(10))
    for k, (force, side) in enumerate([(2.0, 1), (8.0, -1), (5.4, 0), (4.6, 0)]):
        assert caster.step(float(k), 5.0, force, usable)
        assert (caster.p_on > 0.0, caster.q_off > 0.0) == (side > 0, side < 0)
        assert 0.0 <= caster.p_on <= 1.0
        assert 0.0 <= caster.q_off <= 1.0


def test_between_broadcasts_the_message_and_its_number_stay():
    usable = np.ones(10, dtype=np.uint8)
    caster = Broadcaster(BroadcastLaw("dead_beat", period_s=0.5), np.ones(10))
    assert caster.step(0.0, 5.0, 0.0, usable)
    for k in range(1, 500):
        assert not caster.step(k * 0.001, 9.0, 0.0, usable)
        assert (caster.tick, caster.p_on) == (1, 0.5)
    assert caster.step(0.5, 9.0, 0.0, usable)
    assert (caster.tick, caster.p_on) == (2, 0.9)


def test_after_all_was_off_no_message_of_before_is_drawn_again():
    caster = Broadcaster(BroadcastLaw("dead_beat", period_s=0.5), np.ones(10))
    assert caster.step(0.0, 5.0, 0.0, ALL_TEN)
    assert not caster.step(0.1, 0.0, 0.0, ALL_TEN)
    assert caster.p_on > 0.0
    caster.restart()
    assert caster.step(0.2, 0.0, 0.0, ALL_TEN)
    assert (caster.tick, caster.p_on) == (2, 0.0)


def test_a_cell_known_to_have_failed_is_not_counted_on():
    usable = np.ones(10, dtype=np.uint8)
    usable[:2] = 0
    caster = Broadcaster(BroadcastLaw("dead_beat"), np.ones(10))
    caster.step(0.0, 4.0, 0.0, usable)
    assert caster.p_on == pytest.approx(4.0 / 8.0)


def test_unlike_shares_expect_no_error_next_under_dead_beat():
    """Sum of static gains of the cells that go on, p (S - f), is the error for any shares."""
    gains_N = np.array([0.6, 0.26, 0.34, 0.26, 0.17, 0.17])
    caster = Broadcaster(BroadcastLaw("dead_beat"), gains_N)
    caster.step(0.0, 0.9, 0.6, np.ones(6, dtype=np.uint8))
    assert caster.p_on * (gains_N.sum() - 0.6) == pytest.approx(0.9 - 0.6)


def ten_cells(law="dead_beat", dead_zone_N=0.0):
    return Broadcaster(BroadcastLaw(law, dead_zone_N=dead_zone_N), np.full(10, 2.0))


ALL_TEN = np.ones(10, dtype=np.uint8)


def test_a_broadcast_that_was_missed_is_not_made_up_for():
    """After ticks that never came there is one message, and the next a period later."""
    one = ten_cells()
    times = (0.0, 0.5, 5.25, 5.5, 5.75, 6.0, 6.5, 7.0)
    sent = [t_s for t_s in times if one.step(t_s, 1.0, 0.0, ALL_TEN)]
    assert sent == [0.0, 5.25, 6.0, 7.0]
    assert one.tick == 4


def test_a_force_beyond_all_cells_counts_as_all_of_them_on():
    """An outside load of 3 N on 20 N of cells: 5 N too much are 2.5 of the 10 that are on."""
    one = ten_cells()
    one.step(0.0, 18.0, 23.0, ALL_TEN)
    assert (one.p_on, one.q_off) == (0.0, pytest.approx(0.25))


def test_a_force_below_none_counts_as_none_of_them_on():
    """The load pulls with 3 N: 5 N too little are 2.5 of the 10 that are off."""
    one = ten_cells()
    one.step(0.0, 2.0, -3.0, ALL_TEN)
    assert (one.p_on, one.q_off) == (pytest.approx(0.25), 0.0)


def test_cells_that_have_failed_are_not_among_those_that_can_switch():
    one, usable = ten_cells(), ALL_TEN.copy()
    usable[:5] = 0
    one.step(0.0, 20.0, 2.0, usable)  # nine cells too few, four that can come on
    assert one.p_on == 1.0
    one.step(1.0, 4.0, 2.0, usable)  # one too few, of four
    assert one.p_on == pytest.approx(0.25)


def test_without_a_cell_nobody_switches():
    one = ten_cells()
    assert one.step(0.0, 9.0, 1.0, np.zeros(10, dtype=np.uint8))
    assert (one.p_on, one.q_off, one.demand_N) == (0.0, 0.0, 9.0)


def test_a_broadcast_that_is_due_waits_for_a_reading():
    """One comes every 0.7 s, a broadcast is due every second."""
    one = ten_cells()
    times = 0.1 * np.arange(22)
    read = [1.0 if k % 7 == 0 else np.nan for k in range(22)]
    sent = [t_s for t_s, force_N in zip(times, read, strict=True)
            if one.step(t_s, 9.0, force_N, ALL_TEN)]  # fmt: skip
    assert sent == pytest.approx([0.0, 1.4, 2.1])
    assert one.p_on == pytest.approx(4.0 / 9.5)


def test_an_error_of_the_dead_zone_itself_is_left_alone():
    for error_N, moves in ((2.0, False), (-2.0, False), (2.125, True), (-2.125, True)):
        one = ten_cells(dead_zone_N=2.0)
        one.step(0.0, 8.0 + error_N, 8.0, ALL_TEN)
        assert (one.p_on + one.q_off > 0.0) == moves


@pytest.mark.parametrize("law", LAWS)
def test_where_no_cell_is_left_to_switch_nothing_is_asked_of_any(law):
    one = ten_cells(law)
    one.step(0.0, 22.0, 20.0, ALL_TEN)  # all are on, and it is too little
    assert (one.p_on, one.q_off) == (0.0, 0.0)
    one.step(1.0, -2.0, 0.0, ALL_TEN)  # all are off, and it is too much
    assert (one.p_on, one.q_off) == (0.0, 0.0)
    assert [probability(n, 0.1, 0.0, 5.0, 10.0) for n in range(4)] == [0.0] * 4


def test_cells_known_to_have_failed_are_not_among_the_n_of_error_over_n():
    caster = Broadcaster(BroadcastLaw("error_over_n", dead_zone_N=0.5), np.ones(10))
    usable = np.array([1] * 5 + [0] * 5, dtype=np.uint8)
    caster.step(0.0, 2.0, 0.0, usable)
    assert caster.p_on == pytest.approx(2.0 / 5.0)
