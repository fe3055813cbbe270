"""What the pyramid shows of a stretch of time is what a search through every sample finds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil_gui import pyramid
from hil_gui.pyramid import Pyramid


def _wild(n, seed=0):
    """A noisy walk with lost samples and unequal steps of time."""
    rng = np.random.default_rng(seed)
    t_s = np.cumsum(rng.choice([1e-3, 2e-3, 0.05], size=n, p=[0.9, 0.09, 0.01]))
    y = np.vstack((np.cumsum(rng.normal(size=n)), rng.normal(size=n)))
    y[0, rng.random(n) < 0.05] = np.nan
    return t_s, y


def _filled(t_s, y, blocks, **options):
    p = Pyramid(len(y), **options)
    a = 0
    for n in blocks:
        p.append(t_s[a : a + n], y[:, a : a + n])
        a += n
    p.append(t_s[a:], y[:, a:])
    return p


@given(
    n=st.integers(1, 30000),
    blocks=st.lists(st.integers(1, 5000), max_size=8),
    span=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    n_max=st.integers(1, 900),
)
def test_every_bin_spans_exactly_its_samples(n, blocks, span, n_max):
    t_s, y = _wild(n)
    shown = _filled(t_s, y, blocks).view(*(t_s[0] + (t_s[-1] - t_s[0]) * np.sort(span)), n_max)
    edges = np.searchsorted(t_s, shown.t_s)
    np.testing.assert_array_equal(t_s[edges], shown.t_s)
    for i, (a, b) in enumerate(itertools.pairwise(edges)):
        for curve in range(2):
            inside = y[curve, a:b]
            if np.isnan(inside).all():
                assert np.isnan(shown.low[curve, i])
            else:
                assert shown.low[curve, i] == np.nanmin(inside)
                assert shown.high[curve, i] == np.nanmax(inside)


@given(
    span=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    n_max=st.integers(10, 900),
    capacity=st.sampled_from([None, 40000]),
)
def test_a_view_covers_its_stretch_with_few_bins(span, n_max, capacity):
    t_s, y = _wild(150000)
    from_s, to_s = t_s[-1] * np.sort(span)
    shown = _filled(t_s, y, [9999] * 14, capacity=capacity).view(from_s, to_s, n_max)
    # the groups' two ends, and what no level above has taken yet
    assert len(shown.t_s) <= n_max + 2 + (pyramid.FACTOR - 1) * pyramid.N_LEVELS
    assert shown.t_s[0] <= max(from_s, t_s[0])
    inside = y[:, (t_s >= from_s) & (t_s <= to_s)]
    if np.isfinite(inside).any():
        assert np.nanmin(shown.low) <= np.nanmin(inside)
        assert np.nanmax(shown.high) >= np.nanmax(inside)


def test_the_newest_sample_is_always_in_view():
    t_s, y = _wild(5000)
    p = Pyramid(2)
    for i in range(0, 5000, 7):
        p.append(t_s[i : i + 7], y[:, i : i + 7])
        shown = p.view(0.0, np.inf, 50)
        newest = y[1, : i + 7]
        assert shown.high[1].max() == newest.max()
        assert shown.low[1, -1] <= newest[-1] <= shown.high[1, -1]


def test_memory_is_bounded_however_long_the_run():
    p, capacity = Pyramid(2, capacity=30000), 30000
    block = np.zeros((2, 50000))
    for i in range(120):  # an hour and a half at 1 kHz
        p.append(np.arange(50000) * 1e-3 + 50.0 * i, block)
    held = sum(level._t_s.nbytes + level._low.nbytes + level._high.nbytes for level in p._levels)
    kept = [max(capacity >> i, pyramid.FEWEST) for i in range(pyramid.N_LEVELS)]
    assert held <= 1.25 * sum(kept) * 8 * (1 + 2 * 2)  # times, low and high of two curves
    assert p.first_s == 0.0  # the whole run can still be seen


def test_a_moving_view_keeps_its_bins():
    t_s, y = _wild(60000)
    p = _filled(t_s, y, [])
    a, b = p.view(t_s[20000], t_s[40000], 700), p.view(t_s[20100], t_s[40100], 700)
    shared = np.intersect1d(a.t_s[1:-1], b.t_s[1:-1])
    assert len(shared) > 600


def test_a_few_samples_are_drawn_one_by_one():
    t_s, y = _wild(3000)
    shown = _filled(t_s, y, [1000]).view(t_s[1200], t_s[1300], 500)
    assert shown.low is shown.high
    np.testing.assert_array_equal(shown.line(1)[0], t_s[1199:1302])
    np.testing.assert_array_equal(shown.line(1)[1], y[1, 1199:1302])


def test_the_sample_at_a_time_is_the_last_before_it():
    t_s, y = _wild(3000)
    p = _filled(t_s, y, [])
    assert p.at(t_s[77])[1] == y[1, 77]
    assert p.at(0.5 * (t_s[77] + t_s[78]))[1] == y[1, 77]
    assert p.at(-1.0)[1] == y[1, 0]
    np.testing.assert_array_equal(p.samples(t_s[5], t_s[9])[1], y[:, 5:9])


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_an_empty_pyramid_shows_nothing(dtype):
    p = Pyramid(3, dtype=dtype)
    assert p.view(0.0, 1.0, 100).t_s.shape == (0,)
    assert np.isnan(p.last_s)
