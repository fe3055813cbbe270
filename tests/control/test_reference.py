import math

import numpy as np
import pytest

from hil.control.reference import Chirp, NoReference, Ramp, Reach, Sine, Steps

T = [0.5, 2.0, 3.25]
LEVELS = [1.0, -0.5, 2.0]
GRID = np.arange(0, 5000) * 0.001


def test_no_reference_is_not_a_number():
    assert math.isnan(NoReference().at(1.0))


def test_steps_hold_each_value_from_its_time_on():
    steps = Steps(T, LEVELS)
    for t in GRID:
        wanted = 0.0
        for at, level in zip(T, LEVELS, strict=True):
            if t >= at:
                wanted = level
        assert steps.at(t) == wanted


def test_a_step_falls_on_the_tick_of_its_time_whatever_the_rounding():
    for k in range(1, 5000):
        steps = Steps([k * 0.001], [1.0])
        assert steps.at(k / 1000.0) == 1.0
        assert steps.at((k - 1) * 0.001) == 0.0


def test_ramps_are_straight_between_points_and_level_outside():
    ramp = Ramp(T, LEVELS)
    found = [ramp.at(t) for t in GRID]
    np.testing.assert_allclose(found, np.interp(GRID, T, LEVELS), atol=1e-13)


def test_a_sine_is_a_sine():
    sine = Sine(2.0, 1.2, 0.2)
    found = [sine.at(t) for t in GRID]
    np.testing.assert_allclose(found, 2.0 + 1.2 * np.sin(2 * np.pi * 0.2 * GRID), atol=1e-13)


@pytest.mark.parametrize("duration_s", [0.1, 0.7, 1.3, 2.0, 3.0, 4.9])
@pytest.mark.parametrize(
    "reference",
    [Steps(T, LEVELS), Steps([0.0, 1.0], [0.3, 0.6]), Ramp(T, LEVELS), Sine(2.0, 1.2, 0.4)],
    ids=["steps", "steps from 0", "ramp", "sine"],
)
def test_extremes_are_those_of_the_curve(reference, duration_s):
    curve = [reference.at(t) for t in GRID if t <= duration_s]
    low, high = reference.extremes(duration_s)
    # the grid's own miss of a peak: slope 3 N/s over 1 ms
    assert low == pytest.approx(min(curve), abs=3e-3)
    assert high == pytest.approx(max(curve), abs=3e-3)


def test_a_chirp_has_the_frequency_of_its_time():
    """Its phase's slope, by central differences, runs straight from one frequency to the other."""
    chirp = Chirp(mean=1.0, amplitude=0.5, from_Hz=0.1, to_Hz=0.9, sweep_s=8.0)
    for t_s in np.linspace(0.1, 12.0, 60):
        slope_Hz = (chirp.cycles(t_s + 1e-5) - chirp.cycles(t_s - 1e-5)) / 2e-5
        assert slope_Hz == pytest.approx(0.1 + 0.8 * min(t_s, 8.0) / 8.0, abs=2e-5)
    assert chirp.extremes(12.0) == pytest.approx((0.5, 1.5), abs=1e-5)


def test_a_reach_has_least_jerk():
    """Flash & Hogan: the sixth derivative is zero, ends are at rest, the middle is fastest."""
    reach = Reach(from_value=0.5, to_value=2.5, start_s=1.0, move_s=2.0, hold_s=1.0, returns=True)
    t_s = np.linspace(1.0, 3.0, 9)
    force_N = [reach.at(t) for t in t_s]
    assert np.diff(force_N, 6) == pytest.approx(0.0, abs=1e-9)
    speed_N_per_s = (reach.at(2.001) - reach.at(1.999)) / 0.002
    assert speed_N_per_s == pytest.approx(1.875 * 2.0 / 2.0, rel=1e-5)  # 15/8 of the mean speed
    assert [reach.at(t) for t in (0.0, 1.0, 3.0, 4.0, 6.0, 9.0)] == pytest.approx(
        [0.5, 0.5, 2.5, 2.5, 0.5, 0.5]
    )
    assert reach.extremes(9.0) == pytest.approx((0.5, 2.5))
