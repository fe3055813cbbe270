"""A cell's draw depends on seed, cell and tick number, and on nothing else."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from firmware.boards import NativeBoard
from hil.devices.board import protocol

U32 = st.integers(0, 2**32 - 1)


def _broadcast(board, tick, p=0.5, q=0.5, seed=1, first_cell=0, valid_for_ms=100):
    return board.command(
        "broadcast",
        valid_for_ms=valid_for_ms,
        p_on_per_65536=protocol.probability_per_65536(p),
        q_off_per_65536=protocol.probability_per_65536(q),
        tick=tick,
        seed=seed,
        first_cell=first_cell,
    )


def _expected(on, tick, p, q, seed, first_cell=0):
    """The cells after a broadcast, from the definition."""
    after = 0
    for cell in range(12):
        is_on = on >> cell & 1
        chance = protocol.probability_per_65536(q if is_on else p)
        draw = protocol.draw(seed, tick, first_cell + cell)
        if chance == protocol.PROBABILITY_ONE or draw < chance:
            is_on = not is_on
        after |= is_on << cell
    return after


@given(seed=U32, tick=U32, cell=st.integers(0, 1000))
def test_host_and_board_draw_the_same(libboard, seed, tick, cell):
    assert libboard.libboard_draw(seed, tick, cell) == protocol.draw(seed, tick, cell)


def test_cells_follow_their_draws(armed):
    on = 0
    for tick in range(1, 300):
        p, q, seed = (tick % 7) / 6, (tick % 5) / 4, tick % 3
        answer = _broadcast(armed, tick, p, q, seed, first_cell=100)
        on = _expected(on, tick, p, q, seed, first_cell=100)
        assert answer["cells_on"] == on


def test_a_draw_does_not_depend_on_what_happened_before(libboard):
    after = []
    for history in ([], [1, 2, 3], [5, 90]):
        board = NativeBoard(libboard, n_cells=12)
        board.ready()
        for tick in history:
            _broadcast(board, tick)
            board.advance(777)
        board.set()  # all off again
        after.append(_broadcast(board, 100)["cells_on"])
    assert after[0] == after[1] == after[2]


def test_the_second_boards_cells_draw_on_where_the_first_boards_end(libboard):
    drawn = []
    for first_cell in (0, 12):
        board = NativeBoard(libboard)
        board.ready()
        drawn.append(_broadcast(board, 1, first_cell=first_cell)["cells_on"])
    assert drawn == [_expected(0, 1, 0.5, 0.5, 1, first_cell) for first_cell in (0, 12)]
    assert drawn[0] != drawn[1]


def test_a_tick_already_served_draws_nothing_but_feeds_the_dead_man(armed):
    armed.limit()
    armed.ready()
    on = _broadcast(armed, 10)["cells_on"]
    for _ in range(40):
        armed.advance(50_000)
        assert _broadcast(armed, 10)["cells_on"] == on
        assert _broadcast(armed, 9)["cells_on"] == on
    assert armed.faults() == []
    assert _broadcast(armed, 11)["cells_on"] != on


def test_a_tick_that_was_refused_has_not_been_served(armed):
    refused = _broadcast(armed, 5, p=1.0, valid_for_ms=0)
    assert protocol.result_name(refused["result"]) == "bad_value"
    assert refused["cells_on"] == 0
    assert _broadcast(armed, 5, p=1.0)["cells_on"] == 0xFFF


def test_a_new_arming_serves_ticks_from_the_start_again(armed):
    first = _broadcast(armed, 10)["cells_on"]
    armed.command("disarm")
    armed.arm()
    assert _broadcast(armed, 10)["cells_on"] == first


def test_probability_one_is_certain_and_zero_never_happens(armed):
    for tick in range(1, 200):
        expected = 0xFFF if tick % 2 else 0
        assert _broadcast(armed, tick, 1.0, 1.0)["cells_on"] == expected
    for tick in range(200, 400):
        assert _broadcast(armed, tick, 0.0, 0.0)["cells_on"] == 0xFFF


def test_zero_error_is_absorbing(armed):
    armed.set(3, 4, 5)
    for tick in range(100):
        assert _broadcast(armed, tick, 0.0, 0.0)["cells_on"] == 0b111000


def test_too_many_cells_by_chance_trip_like_any_other_command(board):
    board.limit(cells_on_max=6)
    board.ready()
    answer = _broadcast(board, 1, p=1.0)
    assert protocol.result_name(answer["result"]) == "is_faulted"
    assert board.faults() == ["too_many_cells_on"]
    assert not any(board.gates())


# --- statistics: pinned seeds; a sound generator fails such a test for 1 seed in 1000 ---

ALPHA = 1e-3
N_TICKS, N_CELLS = 20_000, 12


def _draws(seed):
    cells = np.arange(N_CELLS, dtype=np.uint64)
    ticks = np.arange(N_TICKS, dtype=np.uint64)
    return np.array([[protocol.draw(seed, int(t), int(c)) for c in cells] for t in ticks])


DRAWS = dict.fromkeys((0, 1, 2024))


def _cached(seed):
    if DRAWS[seed] is None:
        DRAWS[seed] = _draws(seed)
    return DRAWS[seed]


def test_the_number_of_cells_that_change_is_binomial():
    for p in (0.05, 0.3, 0.5, 0.9):
        n_changed = (_cached(1) < p * 65536).sum(axis=1)
        counts = np.bincount(n_changed, minlength=N_CELLS + 1)
        expected = stats.binom.pmf(np.arange(N_CELLS + 1), N_CELLS, p) * N_TICKS
        common = expected >= 5
        observed = np.append(counts[common], counts[~common].sum())
        wanted = np.append(expected[common], expected[~common].sum())
        wanted, observed = wanted[wanted > 0.5], observed[wanted > 0.5]
        result = stats.chisquare(observed, wanted * observed.sum() / wanted.sum())
        assert result.pvalue > ALPHA, p


def test_draws_are_uniform_in_every_cell():
    for seed in DRAWS:
        for cell in range(N_CELLS):
            counts = np.bincount(_cached(seed)[:, cell] >> 10, minlength=64)
            assert stats.chisquare(counts).pvalue > ALPHA / N_CELLS


def test_cells_ticks_and_seeds_are_uncorrelated():
    """Of m independent pairs the largest |r| sqrt(n) is below the normal quantile of ALPHA / m."""
    u = {seed: _cached(seed) / 65536 - 0.5 for seed in DRAWS}

    def largest(a, b, skip_diagonal=False):
        r = a.T @ b / np.sqrt((a**2).sum(0)[:, None] * (b**2).sum(0)[None, :])
        if skip_diagonal:
            r = r - np.diag(np.diag(r))
        return np.abs(r).max() * np.sqrt(len(a))

    bound = stats.norm.isf(ALPHA / 2 / N_CELLS**2)
    assert largest(u[1], u[1], skip_diagonal=True) < bound
    for lag in (1, 2, 3, 256):
        assert largest(u[1][:-lag], u[1][lag:]) < bound
    assert largest(u[0], u[1]) < bound
    assert largest(u[1], u[2024]) < bound


@settings(deadline=None)
@given(p=st.floats(0, 1))
def test_a_probability_travels_within_half_a_step_and_only_one_is_certain(p):
    sent = protocol.probability_per_65536(p)
    assert (sent == protocol.PROBABILITY_ONE) == (p == 1.0)
    # below one, the last step before certainty stands for itself: a step and a half at most
    assert abs(sent / 65536 - p) <= (0.5 if p < 1 - 2.5 / 65536 else 2) / 65536
