"""A device's clock is fitted to the loop's: exact lines, known noise, a counter that wraps."""

import numpy as np
import pytest

import hil
from hil.record.device_clocks import WRAP_S, fit_clock
from hil.record.summary import summarise

LOOP_S = np.arange(20_000) * 0.001


def test_a_clock_without_noise_is_found_exactly():
    found = fit_clock(LOOP_S, 3.25 + (1.0 + 40e-6) * LOOP_S)
    # 20 s of double precision: 1e-15 of 23 s over 20 s
    assert found["offset_s"] == pytest.approx(3.25, abs=1e-12)
    assert found["drift_ppm"] == pytest.approx(40.0, abs=1e-7)
    assert found["residual_rms_s"] < 1e-12
    assert found["readings"] == 20_000


def test_noise_leaves_the_drift_within_its_standard_error():
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):
        noisy_s = 1.0 + (1.0 - 15e-6) * LOOP_S + rng.normal(0.0, 20e-6, len(LOOP_S))
        found = fit_clock(LOOP_S, noisy_s)
        errors.append((found["drift_ppm"] + 15.0) / found["drift_ppm_standard_error"])
        assert found["residual_rms_s"] == pytest.approx(20e-6, rel=0.03)
    # the mean square of 40 standard normals: 1 with a deviation of sqrt(2/40)
    assert np.mean(np.square(errors)) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 40))


def test_a_board_that_counts_beyond_32_bits_is_followed():
    loop_s = np.arange(0.0, 3.0 * WRAP_S, 0.5)
    device_s = ((1.0 + 100e-6) * loop_s) % WRAP_S
    found = fit_clock(loop_s, device_s)
    assert found["drift_ppm"] == pytest.approx(100.0, abs=1e-3)
    assert found["offset_s"] == pytest.approx(0.0, abs=1e-6)


def test_a_reading_that_stands_in_several_rows_counts_once():
    every_fourth = np.repeat(LOOP_S[::4], 4)
    assert fit_clock(LOOP_S, every_fourth)["readings"] == 5000


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_readings_give_nothing(n):
    assert fit_clock(LOOP_S[:n], LOOP_S[:n]) == {}
    assert fit_clock(LOOP_S, np.full(len(LOOP_S), np.nan)) == {}


def test_the_summary_of_a_run_has_every_devices_clock_and_no_time_stamp_is_touched(all_on):
    before = hil.open_run(all_on)
    clocks = summarise(all_on, 0.001, "virtual")["clocks"]
    assert set(clocks) == {"board", "daq"}
    for name, clock in clocks.items():
        # simulated clocks run with the loop's; the board's counts whole microseconds
        assert abs(clock["drift_ppm"]) < 1.0, name
        assert clock["readings"] > 4900
        assert clock["residual_rms_s"] < 2e-6
    after = hil.open_run(all_on)
    for name in ("board_t_s", "daq_t_s", "t_s"):
        np.testing.assert_array_equal(after[name], before[name])
