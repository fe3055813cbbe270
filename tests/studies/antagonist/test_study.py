"""The study of an antagonist pair: its figures are what they say, and the pair follows."""

import numpy as np
import pytest

from hil_studies.antagonist import study
from hil_studies.antagonist.study import Chain, Trial, Values

N = round(2.5 / study.PERIOD_S)  # samples of a level


def trial(force_N, reference_N):
    nothing = np.zeros((len(force_N), 2))
    return Trial("", np.asarray(reference_N, float), np.asarray(force_N, float), nothing, nothing)


def test_the_force_rate_is_that_of_the_steepest_20_ms_up_and_down():
    t_s = np.arange(0.0, 1.0, study.PERIOD_S)
    up, down = 50.0 * np.clip(t_s - 0.2, 0.0, 0.06), 30.0 * np.clip(t_s - 0.6, 0.0, 0.05)
    rises, falls = study.slews_N_per_s(trial(up - down, t_s))
    assert rises == pytest.approx(50.0)
    assert falls == pytest.approx(30.0)


def test_the_error_of_a_held_step_begins_a_second_after_it():
    reference_N = np.repeat([0.0, 1.0], N)
    force_N = reference_N.copy()
    force_N[N : N + 999] = 0.0
    force_N[-100:] += 0.1
    held = study.held_error_N(trial(force_N, reference_N))
    assert held.shape == (2, 1500)
    # 100 of 3000 samples are 0.1 N off
    assert study.rms(held) == pytest.approx(0.1 * np.sqrt(100 / 3000))


def test_readings_have_the_noise_and_resolution_of_the_channel(pytestconfig, monkeypatch):
    """Futek LBS200: 22.241 N at 10 V; 1 mV of noise; 16 bits over 20 V."""
    monkeypatch.chdir(pytestconfig.rootpath)
    chain = study.chain_of_wires4()
    assert chain.noise_N == pytest.approx(2.2241e-3)
    assert chain.step_N == pytest.approx(20.0 / 2**16 * 2.2241)
    rng = np.random.default_rng(1)
    read = np.array([chain.read(1.0, rng) for _ in range(4000)])
    assert read.std() == pytest.approx(2.2241e-3, rel=0.05)
    np.testing.assert_allclose(read / chain.step_N, np.rint(read / chain.step_N), atol=1e-6)


@pytest.mark.parametrize("wanted_N", [1.5, -1.5])
def test_the_pair_pulls_to_either_side_and_keeps_to_its_temperature(wanted_N):
    followed = study.follow(Values(), Chain(0.002, 0.001), "", np.full(1500, wanted_N))
    assert followed.force_N[-300:].mean() == pytest.approx(wanted_N, abs=0.06)
    assert followed.wire_C.max() <= Values().temperature_max_C


def test_a_temperature_limit_below_what_the_force_needs_is_kept():
    """3 N on 0.1 mm move the branches by 46 K, to 130 degC and more."""
    values = Values(temperature_max_C=130.0)
    followed = study.follow(values, Chain(0.002, 0.001), "", np.full(1500, 3.0))
    assert followed.wire_C.max() <= 130.0
    assert followed.force_N[-1] < 2.0
