import json
import math

import numpy as np
import pytest

from hil.loop.states import NUMBERS
from hil.record import summary


def timing_of(ticks, late_s, clock="real", period_s=0.001):
    t_s = np.array(ticks) * period_s
    late = np.broadcast_to(np.asarray(late_s, dtype=float), t_s.shape)
    return summary.timing(t_s, late, np.full(len(t_s), 1e-4), period_s, clock)


def test_a_run_without_gaps_holds_its_rate():
    found = timing_of(range(1000), 50e-6)
    assert found["verdict"] == "1000 Hz held: 0 of 1000 periods missed"
    assert (found["missed"], found["longest_gap_periods"]) == (0, 0)
    assert found["late_p50_s"] == found["late_max_s"] == pytest.approx(50e-6)


def test_skipped_periods_and_ticks_later_than_a_period_are_missed():
    ticks = [*range(500), *range(510, 1000)]
    late = np.zeros(990)
    late[500] = 0.0015
    found = timing_of(ticks, late)
    assert (found["missed"], found["periods"], found["longest_gap_periods"]) == (11, 1000, 10)
    assert "NOT held" in found["verdict"]


def test_periods_after_the_last_row_of_a_run_that_went_to_its_end_are_missed():
    t_s, late_s = np.arange(990) * 0.001, np.zeros(990)
    found = summary.timing(t_s, late_s, late_s, 0.001, "real", 1000)
    assert (found["missed"], found["periods"], found["longest_gap_periods"]) == (10, 1000, 10)
    assert found["worst_run_periods"] == 10
    assert "NOT held: 10 of 1000" in found["verdict"]
    stopped = summary.timing(t_s, late_s, late_s, 0.001, "real")
    assert (stopped["missed"], stopped["periods"]) == (0, 990)


def test_one_missed_period_in_a_thousand_is_still_held():
    assert "1 of 1001" in timing_of([*range(500), *range(501, 1001)], 0.0)["verdict"]
    assert "NOT" not in timing_of([*range(500), *range(501, 1001)], 0.0)["verdict"]
    assert "NOT" in timing_of([*range(500), *range(501, 999)], 0.0)["verdict"]


def test_a_virtual_clock_says_nothing_of_real_time():
    assert "timing not tested" in timing_of(range(10), 0.0, "virtual")["verdict"]


def test_a_run_without_a_tick_has_a_summary():
    none = np.zeros(0)
    assert summary.timing(none, none, none, 0.001, "real")["verdict"] == "no tick was run"
    assert summary.force_figures(none, none, none) == {}
    assert summary.responses(none, none, none, none, np.zeros((0, 6), dtype=np.uint8)) == []


def test_responses_of_both_curves_are_found_at_every_switching():
    t_s = np.arange(0, 4000) * 0.001
    tau = 0.2
    cells = np.zeros((4000, 2), dtype=np.uint8)
    cells[1000:2500] = 1
    rise = np.where(t_s >= 1.0, 2.0 * (1 - np.exp(-(t_s - 1.0) / tau)), 0.0)
    fall = np.where(t_s >= 2.5, 2.0 * (1 - np.exp(-(t_s - 2.5) / tau)), 0.0)
    y = rise - fall
    nan = np.full(4000, np.nan)
    found = summary.responses(t_s, y, 0.5 * y, nan, cells)
    assert [(r["t_s"], r["cells_on"]) for r in found] == [(1.0, 2), (2.5, 0)]
    for r in found:
        # of a first-order response; smoothing over 10 ms delays its start by up to 5 ms
        assert r["measured_settling_s"] == pytest.approx(tau * math.log(50.0), abs=0.01)
        assert r["model_settling_s"] == r["measured_settling_s"]
        assert r["measured_overshoot"] == pytest.approx(0.0, abs=1e-3)
    assert found[0]["measured_final_N"] == pytest.approx(2.0, abs=2e-3)
    assert found[0]["model_final_N"] == pytest.approx(1.0, abs=1e-3)


def test_the_responses_of_a_slow_device_are_smoothed_over_the_same_time():
    t_s = np.arange(0, 3000) * 0.001
    cells = np.zeros((3000, 1), dtype=np.uint8)
    cells[1000:] = 1
    y = np.where(t_s >= 1.0, 1.0 - np.exp(-(t_s - 1.0) / 0.005), 0.0)
    read = np.where(np.arange(3000) % 4 == 0, y, np.nan)
    [found] = summary.responses(t_s, read, y, np.full(3000, np.nan), cells)
    # Means over 40 ms instead of 10 settle 15 ms later.
    assert found["measured_settling_s"] == pytest.approx(found["model_settling_s"], abs=0.005)


def test_plain_values_are_valid_json():
    value = {"a": np.float64(math.nan), "b": [np.int64(3), math.inf], "c": (np.bool_(True), "x")}
    text = json.dumps(summary.plain(value), allow_nan=False)
    assert json.loads(text) == {"a": None, "b": [3, None], "c": [True, "x"]}


def test_answers_of_a_board_are_timed_and_those_that_did_not_come_are_counted():
    found = summary.exchange_figures(np.array([0.4e-3, np.nan, 0.6e-3, 0.5e-3, np.nan]))
    assert found["round_trip_p50_s"] == pytest.approx(0.5e-3)
    assert found["round_trip_max_s"] == pytest.approx(0.6e-3)
    assert found["without_answer"] == 2
    assert math.isnan(summary.exchange_figures(np.array([np.nan]))["round_trip_max_s"])


def test_the_fit_of_a_constant_signal_is_no_figure():
    """Its range and its variance are those of the noise."""
    figures = {"held": False, "vaf": 0.9, "nrmse": 28.35}
    assert summary.fit_text(figures) == "VAF 90.00 %, NRMSE 2835.00 %"
    figures["held"] = True
    assert summary.fit_text(figures) == "VAF not meaningful (constant signal)"


def test_a_twin_that_explains_less_than_a_constant_is_said_to():
    assert (
        summary.vaf_text({"held": False, "vaf": -1.94}) == "VAF -194.00 % (worse than a constant)"
    )
    assert summary.vaf_text({"held": False, "vaf": 0.0}) == "VAF 0.00 %"


def test_late_quantiles_are_those_of_the_lateness():
    late_s = np.arange(1001) * 1e-6
    found = timing_of(range(1001), late_s)
    assert found["late_p50_s"] == pytest.approx(500e-6)
    assert found["late_p99_s"] == pytest.approx(990e-6)
    assert found["late_p999_s"] == pytest.approx(999e-6)


def test_the_largest_residual_counts_on_both_sides():
    measured_N, model_N = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.1, 2.0, 3.5, 3.9])
    found = summary.force_figures(measured_N, model_N, np.full(4, np.nan))
    assert found["residual_max_N"] == pytest.approx(0.5)


def test_ticks_without_a_set_point_or_a_reading_do_not_count_as_tracking():
    measured_N = np.array([1.0, 2.0, np.nan, 4.0])
    reference_N = np.array([np.nan, 2.3, 9.0, 4.4])
    found = summary.force_figures(measured_N, measured_N, reference_N)
    assert found["tracking_rms_N"] == pytest.approx(math.sqrt((0.3**2 + 0.4**2) / 2))


def test_cells_that_are_on_from_the_first_tick_are_a_switching():
    t_s = np.arange(2000) * 0.001
    cells = np.ones((2000, 1), dtype=np.uint8)
    cells[1000:] = 0
    y = 1.0 - np.exp(-t_s / 0.1)
    found = summary.responses(t_s, y, y, np.full(2000, np.nan), cells)
    assert [r["t_s"] for r in found] == [0.0, 1.0]


def test_the_time_of_a_run_counts_from_the_row_in_which_it_was_armed():
    states = [NUMBERS[name] for name in ("self_test", "ready", "ready", "armed", "running")]
    assert summary.began_at({"guard_state": np.array(states)}, 5) == 3
    assert summary.began_at({"guard_state": np.array(states)}, 3) == 2  # never armed: the last
    assert summary.began_at({}, 5) == 0
