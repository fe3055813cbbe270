import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hil.control import pid as pids
from hil.control.pid import Pid, PidGains, Switching
from hil.control.reference import Sine
from hil.experiment.load import load
from hil.runs import assembly
from hil.runs.plan import Plan

LEVELS = np.array([0.0, 0.6, 0.9, 1.1, 1.4, 1.5])
ORDER = [2, 0, 4, 1, 3]


class PlainPid:
    """u = u_0 + Kp e + Ki int(e) dt - Kd d(y)/dt / (1 + T_f s), as the module documents it."""

    def __init__(self, gains, low, high, period_s, feedforward=None):
        self.g, self.low, self.high, self.h = gains, low, high, period_s
        self.feedforward, self.n = feedforward, 0
        self.integral = self.filtered = None

    def step(self, reference, y):
        g, h = self.g, self.h
        e = reference - y
        fed = 0.0 if self.feedforward is None else self.feedforward.at(self.n * h)
        self.n += 1
        if self.integral is None:
            self.integral = y - g.k_p * e if self.feedforward is None else 0.0
            self.filtered = y
        # backward Euler of T_f z' = y - z; the derivative is z'
        before = self.filtered
        self.filtered = (g.derivative_filter_s * before + h * y) / (g.derivative_filter_s + h)
        slope = (self.filtered - before) / h
        new = self.integral + g.k_i_per_s * h * e
        u = fed + g.k_p * e + new - g.k_d_s * slope
        if (u > self.high and e > 0) or (u < self.low and e < 0):
            new = self.integral
            u = fed + g.k_p * e + new - g.k_d_s * slope
        self.integral = new
        return min(self.high, max(self.low, u))


def make(gains, hysteresis=0.1, period_s=0.001, dwell_s=0.0):
    return Pid(gains, LEVELS, ORDER, Switching(hysteresis, dwell_s), period_s)


def demands(pid, references, forces):
    cells = np.zeros(5, dtype=np.uint8)
    found = []
    for k, (reference, force) in enumerate(zip(references, forces, strict=True)):
        pid.step(0.001 * k, reference, force, cells)
        found.append(pid.demand_N)
    return found


@pytest.mark.parametrize("feedforward", [None, Sine(0.8, 0.9, 0.3)], ids=["pid", "preview"])
@pytest.mark.parametrize("seed", range(10))
def test_demand_follows_the_documented_equation(seed, feedforward):
    rng = np.random.default_rng(seed)
    gains = PidGains(*rng.uniform([0.0, 0.0, 0.0, 0.001], [3.0, 20.0, 0.02, 0.1]))
    n = 3000
    references = np.repeat(rng.uniform(0.0, 1.5, n // 100), 100)
    forces = 0.7 + np.cumsum(rng.normal(0.0, 0.01, n))
    plain = PlainPid(gains, LEVELS[0], LEVELS[-1], 0.001, feedforward)
    wanted = [plain.step(r, y) for r, y in zip(references, forces, strict=True)]
    pid = Pid(gains, LEVELS, ORDER, Switching(0.1, 0.0), 0.001, feedforward)
    # 3000 additions of rounding 1e-16 each, on values about 1
    np.testing.assert_allclose(demands(pid, references, forces), wanted, atol=1e-11)


gains = st.builds(
    PidGains, st.floats(0.0, 5.0), st.floats(0.0, 50.0), st.just(0.0), st.floats(0.001, 1.0)
)
force = st.floats(0.0, 1.5)


@settings(max_examples=200, deadline=None)
@given(gains, force, force)
def test_the_start_is_bumpless(g, reference, measured):
    demand = demands(make(g), [reference], [measured])[0]
    one_period = g.k_i_per_s * 0.001 * abs(reference - measured)
    assert abs(demand - measured) <= one_period + 1e-12


@settings(max_examples=100, deadline=None)
@given(gains, st.integers(1, 5000), st.floats(0.05, 0.5), st.booleans())
def test_the_integral_does_not_wind_up(g, n, gap, upwards):
    """However long it saturates, u leaves the limit with the error's sign."""
    assume(g.k_i_per_s > 0.5)
    level, limit = (1.0, LEVELS[-1]) if upwards else (0.5, LEVELS[0])
    sign = 1.0 if upwards else -1.0
    out_of_reach = [level + sign * 3.0] * n
    pid = make(g)
    stuck = demands(pid, out_of_reach, [level] * n)
    assert all(LEVELS[0] <= demand <= LEVELS[-1] for demand in stuck)
    back = demands(pid, [level - sign * gap], [level])
    if stuck[-1] == limit:
        assert sign * (limit - back[0]) > 0.0


def test_no_derivative_kick_from_the_set_point():
    pid = make(PidGains(0.0, 0.0, 1.0, 0.02))
    found = demands(pid, [0.2] * 50 + [1.4] * 50, [0.5] * 100)
    assert found == [0.5] * 100


@pytest.mark.parametrize("at_start", [True, False])
def test_a_missing_reading_holds_the_demand(at_start):
    pid = make(PidGains(1.0, 1.0, 0.01, 0.02))
    before = [0.0] if at_start else demands(pid, [1.0] * 10, np.linspace(0.4, 0.6, 10))
    held = demands(pid, [1.0] * 5, [math.nan] * 5)
    assert held == [before[-1]] * 5


def on_after(pid, wanted_N):
    """Cells on once a gainless pid has started at this force, and so wants it."""
    cells = np.zeros(5, dtype=np.uint8)
    pid.step(0.0, wanted_N, wanted_N, cells)
    return cells


@pytest.mark.parametrize("wanted", np.linspace(0.0, 1.5, 301))
def test_the_nearest_level_is_taken_without_hysteresis(wanted):
    n_on = int(on_after(make(PidGains(0.0, 0.0, 0.0, 1.0), 0.0), wanted).sum())
    nearest = np.abs(LEVELS - wanted).min()
    assert abs(LEVELS[n_on] - wanted) == pytest.approx(nearest, abs=1e-12)


def test_cells_are_taken_in_order():
    for n in range(6):
        cells = on_after(make(PidGains(0.0, 0.0, 0.0, 1.0)), LEVELS[n])
        assert sorted(np.flatnonzero(cells)) == sorted(ORDER[:n])


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 0.5), st.lists(st.floats(0.0, 1.5), min_size=1, max_size=40))
def test_a_cell_changes_only_beyond_the_hysteresis(hysteresis, wishes):
    pid = make(PidGains(1.0, 0.0, 0.0, 1.0), hysteresis)
    cells = np.zeros(5, dtype=np.uint8)
    n_before = 0
    pid.step(0.0, 0.0, 0.0, cells)  # integral 0, so u = reference - 0
    for wish in wishes:
        pid.step(0.0, wish, 0.0, cells)
        n = int(cells.sum())
        assert sorted(np.flatnonzero(cells)) == sorted(ORDER[:n])
        if n < 5:  # not yet beyond the middle plus the share
            step = LEVELS[n + 1] - LEVELS[n]
            assert wish <= LEVELS[n] + (0.5 + hysteresis) * step + 1e-12
        if n > 0:
            step = LEVELS[n] - LEVELS[n - 1]
            assert wish >= LEVELS[n] - (0.5 + hysteresis) * step - 1e-12
        inside = all(
            abs(wish - LEVELS[n_before]) <= (0.5 + hysteresis) * size
            for size in np.diff(LEVELS)[max(0, n_before - 1) : n_before + 1]
        )
        if inside:
            assert n == n_before
        n_before = n


def test_dead_cells_are_left_out_of_the_order(configs):
    sets = ["model.arrays.muscle.dead_cells=[3]", "controller.order=[1, 3, 2]"]
    config = load(configs / "miga6/pid.toml", sets)
    pid = assembly.build(Plan(config)).control.controller
    assert pid.order.tolist() == [0, 1]


def test_levels_that_do_not_rise_are_refused():
    with pytest.raises(ValueError, match="do not increase"):
        Pid(
            PidGains(1.0, 0.0, 0.0, 1.0),
            np.array([0.0, 1.0, 1.0]),
            [0, 1],
            Switching(0.1, 0.0),
            0.001,
        )


@given(st.lists(st.floats(-1.0, 3.0), min_size=50, max_size=300))
def test_the_number_of_cells_never_changes_twice_within_the_dwell(references):
    pid = make(PidGains(2.0, 5.0, 0.0, 0.02), hysteresis=0.0, period_s=0.01, dwell_s=0.1)
    cells = np.zeros(len(ORDER), dtype=np.uint8)
    counts = []
    for k, reference_N in enumerate(references):
        pid.step(0.01 * k, reference_N, 0.5, cells)
        counts.append(int(cells.sum()))
    changes = np.flatnonzero(np.diff([0, *counts]))
    assert np.all(np.diff(changes) >= 10)


RAISED = np.array([0.25, 0.25 + 0.1, 0.25 + 0.1 + 0.2, 1.0])


@pytest.mark.parametrize(
    ("usable", "order", "levels"),
    [
        ([1, 1, 1], [2, 0, 1], RAISED.tolist()),  # the very numbers, without another rounding
        ([1, 1, 0], [0, 1], [0.25, 0.25 + 0.2, 0.25 + 0.2 + 0.45]),
        ([0, 1, 1], [2, 1], [0.25, 0.35, 0.35 + 0.45]),
        ([0, 0, 0], [], [0.25]),
    ],
)
def test_levels_without_the_failed_cells_rise_by_what_the_others_add(usable, order, levels):
    left, found = np.zeros(3, dtype=np.int64), np.zeros(4)
    n = pids._leave(np.array([2, 0, 1]), RAISED, np.array(usable, dtype=np.uint8), left, found)
    assert left[:n].tolist() == order
    assert found[: n + 1] == pytest.approx(levels, abs=1e-15)
    if n == 3:
        assert found.tolist() == levels


@pytest.mark.parametrize("dwell_s", [0.0, 100.0])
def test_of_cells_that_fail_while_they_are_on_no_more_stay_on_than_are_left(dwell_s):
    pid, cells = make(PidGains(0.0, 0.0, 0.0, 0.01), dwell_s=dwell_s), np.zeros(5, dtype=np.uint8)
    pid.step(0.0, 1.5, 1.5, cells)
    assert cells.sum() == 5
    pid.usable[[0, 1, 2]] = 0
    pid.step(0.001, 1.5, 1.5, cells)
    assert cells.tolist() == [0, 0, 0, 1, 1]


def test_the_integral_goes_on_up_to_the_end_of_the_range_and_no_further():
    """Halves of a second at an error of 1 N: 0.5, 1, 1.5 N of 1.5, and no more."""
    for sign, base in ((1.0, 0.0), (-1.0, 1.5)):
        pid = make(PidGains(0.0, 1.0, 0.0, 0.01), period_s=0.5)
        cells = np.zeros(5, dtype=np.uint8)
        for wanted_N in (0.5, 1.0, 1.5, 1.5, 1.5):
            pid.step(0.0, base + sign, base, cells)
            assert pid.demand_N == base + sign * wanted_N
        pid.step(0.0, base - sign, base, cells)
        assert pid.demand_N == base + sign * 1.0  # back at once: it has not wound up


def test_started_again_no_cell_counts_as_on():
    """1.04 N is nearest to 1.1 N; from 1.4 N down the hysteresis would hold the fourth cell."""
    pid = make(PidGains(0.0, 0.0, 0.0, 0.0), hysteresis=0.4)
    cells = np.zeros(5, dtype=np.uint8)
    pid.step(0.0, 1.4, 1.4, cells)
    pid.step(0.001, 1.4, 1.2, cells)
    held = int(cells.sum())
    pid.restart()
    pid.step(0.002, 1.2, 1.2, cells)
    assert (held, int(cells.sum())) == (4, 3)


@pytest.mark.parametrize("every", [1, 4, 10])
def test_the_integral_rises_at_its_rate_however_seldom_the_force_is_read(every):
    pid = make(PidGains(0.0, 0.5, 0.0, 0.02))
    forces = [0.2 if k % every == 0 else math.nan for k in range(1001)]
    demand = demands(pid, [0.7] * 1001, forces)[-1]
    # from the measured force: 0.5 / s times an error of 0.5 for 1 s, and the period of the first
    assert demand == pytest.approx(0.2 + 0.25 * 1.001, abs=1e-9)


def test_the_slope_of_a_force_that_is_read_seldom_is_its_slope():
    pid = make(PidGains(0.0, 0.0, 0.1, 1e-6))
    forces = [0.5 + 0.001 * k if k % 10 == 0 else math.nan for k in range(101)]  # 1 N/s
    # less the derivative gain times the slope, of which the filter has let 1 - 1e-4 through
    assert demands(pid, [0.5] * 101, forces)[-1] == pytest.approx(0.5 - 0.1, abs=1e-4)
