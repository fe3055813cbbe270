"""A first-order low-pass against scipy's, of a signal that is a line between its samples."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import lsim

from hil.mechanics.low_pass import low_pass

PERIOD_S = 0.002


@pytest.mark.parametrize("bandwidth_Hz", [0.1, 30.0, 1500.0])
def test_it_is_exact_for_a_signal_that_is_linear_between_its_samples(bandwidth_Hz):
    x = np.append(0.0, np.random.default_rng(0).standard_normal(200))
    keep, lag = low_pass(bandwidth_Hz, PERIOD_S)
    y = [0.0]
    for before, now in pairwise(x):
        y.append(now + keep * (y[-1] - before) - lag * (now - before))
    rate = 2.0 * np.pi * bandwidth_Hz
    _, expected, _ = lsim(([rate], [1.0, rate]), x, PERIOD_S * np.arange(len(x)))
    assert y == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("bandwidth_Hz", [np.inf, 2000.0])
def test_a_time_constant_below_a_twentieth_of_the_period_is_neglected(bandwidth_Hz):
    assert low_pass(bandwidth_Hz, PERIOD_S) == (0.0, 0.0)
