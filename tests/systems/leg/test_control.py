"""Two muscles about a joint: planned activations, correction, conditional integral, lateness."""

from math import nan

import numpy as np
import pytest

from hil.control.pid import PidGains
from hil.control.reference import Ramp
from hil.loop.frame import Column, Commands, Frame
from hil.systems.leg.control import Antagonists, Movement, Wiring

H = 0.001


def stage(movement=None, delay=0, relative_from=None, **gains):
    given = {"k_p": 0.0, "k_i_per_s": 0.0, "k_d_s": 0.0, "derivative_filter_s": H} | gains
    flat = Movement(np.zeros(100), np.full(100, 0.2), np.full(100, 0.1))
    made = Antagonists(
        Ramp([0.0, 1.0], [0.0, 0.0]), movement or flat, PidGains(**given),
        Wiring(
            0, 0, 1, (0.001, 0.001), (1.0, 1.0), delay, "h_reference_m", "h_demand_m", "m"
        ), H, relative_from,
    )  # fmt: skip
    frame = Frame([*made.columns, Column("up", "1", "commanded", ""),
                   Column("down", "1", "commanded", "")])  # fmt: skip
    measured, outputs = np.zeros(1), frame.span(["up", "down"])
    made.bind(frame, measured, Commands(np.zeros(0, dtype=np.uint8), outputs))

    def step(k, value):
        measured[0] = value
        made.step(k * H)
        return outputs.copy()

    return made, step


def test_without_an_error_the_plan_passes_as_it_is():
    _, step = stage(k_p=5.0, k_i_per_s=7.0, k_d_s=1.0)
    for k in range(5):
        np.testing.assert_array_equal(step(k, 0.0), [0.2, 0.1])


def test_an_error_moves_the_two_apart():
    _, step = stage(k_p=5.0)
    np.testing.assert_allclose(step(0, -0.01), [0.25, 0.05])
    np.testing.assert_allclose(step(1, 0.01), [0.15, 0.15])


def test_a_relative_correction_changes_both_activations_by_one_factor():
    # w = ln 2: (0.2 + 0.05) 2 - 0.05 and (0.1 + 0.05) / 2 - 0.05
    _, step = stage(k_p=100.0, relative_from=0.05)
    np.testing.assert_allclose(step(0, -0.01 * np.log(2.0)), [0.45, 0.025], rtol=1e-12)
    np.testing.assert_allclose(step(1, 0.01 * np.log(2.0)), [0.075, 0.25], rtol=1e-12)


def test_a_relative_correction_without_bound_saturates_and_its_integral_stops():
    relaxed = Movement(np.zeros(100), np.full(100, 0.001), np.full(100, 0.001))
    _, step = stage(relaxed, k_p=1e9, k_i_per_s=1e9, relative_from=0.05)
    np.testing.assert_array_equal(step(0, -1.0), [1.0, 0.001])
    np.testing.assert_array_equal(step(1, 1.0), [0.001, 1.0])
    np.testing.assert_allclose(step(2, 0.0), [0.001, 0.001])


def test_the_integral_adds_up_and_a_restart_forgets_it():
    made, step = stage(k_i_per_s=10.0)
    for k in range(10):
        out = step(k, -0.01)
    np.testing.assert_allclose(out, [0.2 + 10 * 10.0 * H * 0.01, 0.1 - 10 * 10.0 * H * 0.01])
    made.restart()
    np.testing.assert_allclose(step(10, 0.0), [0.2, 0.1])


@pytest.mark.parametrize("every", [1, 4])
def test_the_integral_adds_up_at_its_rate_however_seldom_the_signal_is_read(every):
    _, step = stage(k_i_per_s=10.0)
    for k in range(41):
        out = step(k, -0.01 if k % every == 0 else nan)
    np.testing.assert_allclose(out[0], 0.2 + 10.0 * 41 * H * 0.01)


def test_the_integral_stops_where_both_outputs_have_reached_their_ends():
    made, step = stage(k_i_per_s=100.0)
    for k in range(50):
        out = step(k, -1.0)
    # 0.8 of room above, a tenth of it a period; further ones are not taken
    np.testing.assert_allclose(out, [1.0, 0.001])
    assert step(50, 1.0)[0] < 1.0
    made.restart()
    for k in range(50):
        out = step(k, 1.0)
    np.testing.assert_allclose(out, [0.001, 1.0], atol=0.11)
    assert step(50, -1.0)[1] < 1.0


def test_while_the_other_muscle_can_give_way_the_integral_goes_on():
    high = Movement(np.zeros(100), np.full(100, 0.95), np.full(100, 0.6))
    _, step = stage(high, k_i_per_s=100.0)
    for k in range(20):
        out = step(k, -0.2)
    assert out[0] == 1.0
    assert out[1] == pytest.approx(0.6 - 20 * 100.0 * H * 0.2)


def test_the_derivative_is_filtered():
    _, step = stage(k_d_s=0.01, derivative_filter_s=4 * H)
    step(0, 0.0)
    # a step of 1 mm: a fifth of it in the first period
    np.testing.assert_allclose(step(1, -0.001)[0] - 0.2, 0.01 * 0.2 * 0.001 / H, rtol=1e-12)


def test_a_late_reading_is_held_against_the_plan_of_its_time():
    ramp = Movement(0.01 * np.arange(100), np.full(100, 0.2), np.full(100, 0.1))
    _, step = stage(ramp, delay=3, k_p=5.0)
    for k in range(3, 20):
        np.testing.assert_allclose(step(k, 0.01 * (k - 3)), [0.2, 0.1])


def test_a_missing_reading_leaves_the_outputs_as_they_are():
    _, step = stage(k_p=5.0)
    before = step(0, -0.01)
    np.testing.assert_array_equal(step(1, nan), before)


def test_after_its_end_the_plan_stays():
    _, step = stage()
    np.testing.assert_array_equal(step(500, 0.0), [0.2, 0.1])
