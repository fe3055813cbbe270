"""The study of an antagonist pair: its figures are what they say."""

import numpy as np
import pytest
import xarray as xr

from hil_studies.antagonist import study

PERIOD_S = 0.001
N = round(study.HELD_S / PERIOD_S)  # samples of a level


def made(force_N, reference_N):
    """A run with these columns."""
    values = {"force_measured_N": force_N, "force_reference_N": reference_N}
    columns = {name: ("tick", np.asarray(one, float)) for name, one in values.items()}
    return xr.Dataset(columns | {"t_s": ("tick", np.arange(len(force_N)) * PERIOD_S)})


def test_the_force_rate_is_that_of_the_steepest_20_ms_up_and_down():
    t_s = np.arange(0.0, 1.0, PERIOD_S)
    up, down = 50.0 * np.clip(t_s - 0.2, 0.0, 0.06), 30.0 * np.clip(t_s - 0.6, 0.0, 0.05)
    rises, falls = study.slews_N_per_s(made(up - down, t_s))
    assert rises == pytest.approx(50.0)
    assert falls == pytest.approx(30.0)


def test_the_error_of_a_held_step_begins_a_second_after_it():
    reference_N = np.repeat([0.0, 1.0], N)
    force_N = reference_N.copy()
    force_N[N : N + 999] = 0.0
    force_N[-100:] += 0.1
    held = study.held_error_N(made(force_N, reference_N))
    assert held.shape == (2, 1500)
    # 100 of 3000 samples are 0.1 N off
    assert study.rms(held) == pytest.approx(0.1 * np.sqrt(100 / 3000))
    assert study.rms(study.sine_error_N(made(force_N, reference_N))) == pytest.approx(
        np.sqrt((999 + 100 * 0.01) / 2500)
    )
