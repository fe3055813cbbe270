import math

import numpy as np
import pytest

from hil.control.reference import NoReference, Ramp, Sine, Steps

T = [0.5, 2.0, 3.25]
LEVELS = [1.0, -0.5, 2.0]
GRID = np.arange(0, 5000) * 0.001


def test_no_reference_is_not_a_number():
    assert math.isnan(NoReference().force_N(1.0))


def test_steps_hold_each_value_from_its_time_on():
    steps = Steps(T, LEVELS)
    for t in GRID:
        wanted = 0.0
        for at, level in zip(T, LEVELS, strict=True):
            if t >= at:
                wanted = level
        assert steps.force_N(t) == wanted


def test_a_step_falls_on_the_tick_of_its_time_whatever_the_rounding():
    for k in range(1, 5000):
        steps = Steps([k * 0.001], [1.0])
        assert steps.force_N(k / 1000.0) == 1.0
        assert steps.force_N((k - 1) * 0.001) == 0.0


def test_ramps_are_straight_between_points_and_level_outside():
    ramp = Ramp(T, LEVELS)
    found = [ramp.force_N(t) for t in GRID]
    np.testing.assert_allclose(found, np.interp(GRID, T, LEVELS), atol=1e-13)


def test_a_sine_is_a_sine():
    sine = Sine(2.0, 1.2, 0.2)
    found = [sine.force_N(t) for t in GRID]
    np.testing.assert_allclose(found, 2.0 + 1.2 * np.sin(2 * np.pi * 0.2 * GRID), atol=1e-13)


@pytest.mark.parametrize("duration_s", [0.1, 0.7, 1.3, 2.0, 3.0, 4.9])
@pytest.mark.parametrize(
    "reference",
    [Steps(T, LEVELS), Steps([0.0, 1.0], [0.3, 0.6]), Ramp(T, LEVELS), Sine(2.0, 1.2, 0.4)],
    ids=["steps", "steps from 0", "ramp", "sine"],
)
def test_extremes_are_those_of_the_curve(reference, duration_s):
    curve = [reference.force_N(t) for t in GRID if t <= duration_s]
    low, high = reference.extremes_N(duration_s)
    # the grid's own miss of a peak: slope 3 N/s over 1 ms
    assert low == pytest.approx(min(curve), abs=3e-3)
    assert high == pytest.approx(max(curve), abs=3e-3)
