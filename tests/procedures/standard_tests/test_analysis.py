"""Figures of standard tests against exact results, and on measured loops."""

import numpy as np
import pytest
import scipy.signal

from hil.errors import ConfigError
from hil.experiment.load import load
from hil.identification.wire_loops.loops import shipped
from hil.procedures.standard_tests import analysis

A_S, A_F = 71.0, 83.0


def ramp(T_C, low_slope=0.0, high_slope=0.0):
    """A branch with known ends of its transformation, on slopes of thermal expansion."""
    low, high = low_slope * (T_C - A_S), 4.0 + high_slope * (T_C - A_F)
    between = 4.0 * (T_C - A_S) / (A_F - A_S)
    return np.where(T_C < A_S, low, np.where(T_C > A_F, high, between))


@pytest.mark.parametrize("slopes", [(0.0, 0.0), (0.004, -0.003)])
def test_tangents_meet_where_a_transformation_of_known_ends_begins_and_ends(slopes):
    T_C = np.arange(20.0, 140.0, 0.5)
    found = analysis.tangents(T_C, ramp(T_C, *slopes))
    assert found.lower_C == pytest.approx(A_S, abs=1e-9)
    assert found.upper_C == pytest.approx(A_F, abs=1e-9)
    falling = analysis.tangents(T_C, -ramp(T_C, *slopes))
    assert (falling.lower_C, falling.upper_C) == pytest.approx((A_S, A_F))


def test_a_branch_is_the_mean_over_equal_steps_of_temperature_in_any_order():
    random = np.random.default_rng(0)
    T_C = random.permutation(np.repeat(np.arange(20.0, 140.0, 0.01), 3))
    noisy = ramp(T_C) + 0.05 * random.standard_normal(len(T_C))
    found = analysis.tangents(*analysis.branch(T_C, noisy))
    # 150 readings a bin: 0.05 / sqrt(150) over a slope of 1/3 a kelvin, for about eight bins.
    assert found.lower_C == pytest.approx(A_S, abs=0.1)
    assert found.upper_C == pytest.approx(A_F, abs=0.1)


@pytest.mark.parametrize(
    ("T_C", "words"),
    [
        (np.arange(75.0, 140.0, 0.5), "the cold end of a branch is not flat: cool it further"),
        (np.arange(20.0, 80.0, 0.5), "the hot end of a branch is not flat: heat it further"),
        (np.arange(20.0, 60.0, 0.5), "too few points"),
    ],
)
def test_a_branch_that_does_not_reach_its_ends_is_refused(T_C, words):
    with pytest.raises(ConfigError, match=words):
        analysis.tangents(T_C, ramp(T_C))


def test_the_area_of_an_ellipse_is_pi_a_b():
    angle = np.linspace(0.0, 2.0 * np.pi, 4000, endpoint=False)
    area = analysis.loop_area(80.0 + 12.0 * np.cos(angle), 3.0 * np.sin(angle))
    assert area == pytest.approx(36.0 * np.pi, rel=1e-5)


def test_a_first_order_lag_rises_in_ln_9_time_constants():
    t_s = np.arange(0.0, 10.0, 1e-3)
    found = analysis.step_response(t_s, 2.0 - 2.0 * np.exp(-t_s / 0.8), 0.0, 2.0)
    assert found.rise_s == pytest.approx(0.8 * np.log(9.0), abs=1e-4)
    assert found.delay_s == pytest.approx(0.8 * np.log(1.0 / 0.9), abs=1e-4)
    with pytest.raises(ConfigError, match="does not reach 90 %"):
        analysis.step_response(t_s[:500], 1.0 - np.exp(-t_s[:500]), 0.0, 1.0)


def test_the_bandwidth_of_a_first_order_lag_is_that_of_its_pole():
    """Held input, so that the discrete pole is exact; f_c = 1 / (2 pi tau)."""
    rate_Hz, tau_s = 100.0, 0.4
    u = np.repeat(np.random.default_rng(3).integers(0, 2, 20_000), 5).astype(float)
    a = np.exp(-1.0 / (rate_Hz * tau_s))
    y = scipy.signal.lfilter([0.0, 1.0 - a], [1.0, -a], u)
    found = analysis.frequency_response(u, y, rate_Hz, window_s=20.0)
    pole_Hz, lowest_Hz = 1.0 / (2.0 * np.pi * tau_s), 1.0 / 20.0
    expected_Hz = np.sqrt(pole_Hz**2 + 2.0 * lowest_Hz**2)  # half the power of the lowest frequency
    assert found.bandwidth_Hz == pytest.approx(expected_Hz, rel=0.03)
    low = found.frequency_Hz < 5.0
    assert found.coherence[low].min() > 0.99
    exact = 1.0 / (1.0 + 2j * np.pi * found.frequency_Hz * tau_s)
    np.testing.assert_allclose(np.abs(found.gain[low]), np.abs(exact[low]), rtol=0.03)


def test_noise_has_no_coherence_and_so_no_bandwidth():
    random = np.random.default_rng(5)
    u, y = random.integers(0, 2, 20_000).astype(float), random.standard_normal(20_000)
    found = analysis.frequency_response(u, y, 100.0, window_s=10.0)
    assert np.isnan(found.bandwidth_Hz)
    assert np.median(found.coherence) < 0.2
    with pytest.raises(ConfigError, match="at least four windows"):
        analysis.frequency_response(u[:3000], y[:3000], 100.0, window_s=10.0)


def test_a_drift_of_known_slope_is_within_its_interval_19_times_of_20():
    cycle, held = np.arange(200.0), 0
    for seed in range(200):
        noise = np.random.default_rng(seed).standard_normal(200)
        slope, half = analysis.drift(cycle, 5.0 - 1e-3 * cycle + 0.1 * noise)
        held += abs(slope + 1e-3) <= half
    assert 180 <= held <= 199  # binomial of 200 at 0.95: below 180 or above 199 in 2 of 1000


def test_tangents_of_a_simulated_wire_are_the_temperatures_of_its_law(configs):
    """Branches that are lines from 88 to 98 and from 72 to 62 degC, moved by 150 MPa.

    Less latent heat than the printed lets the weight fall so fast that it swings by 2.4 K.
    """
    lines = [f"model.arrays.wire.activation.{k}={v}" for k, v in (
        ("C_A_MPa_per_K", 8.0), ("C_M_MPa_per_K", 7.0),
        ("latent_heat_J_per_kg", 24.2e3))]  # fmt: skip
    config = load(configs / "isotonic" / "pulse.toml", lines)
    [wire] = config.tables.model.arrays.values()
    plain = [wire.activation[0].model_copy(update={"heating": None, "cooling": None})]
    table = config.tables.model.model_copy(
        update={"arrays": {"wire": wire.model_copy(update={"activation": plain})}}
    )
    system = config.kind.new_system(table, config.models[0], 0.002)
    T_C, x_m = np.zeros((2, 8000))
    at = list(system.outputs).index("load.x_m")
    for i in range(8000):
        system.step(np.array([1.0 if i < 4000 else 0.0]))
        T_C[i], x_m[i] = system.wires.T_C[0], system.y[at]
    heating = analysis.tangents(*analysis.branch(T_C[:4000], x_m[:4000]))
    cooling = analysis.tangents(*analysis.branch(T_C[4000:], x_m[4000:]))
    moved_A_K, moved_M_K = 149.86 / 8.0, 149.86 / 7.0
    ends = (heating.lower_C, heating.upper_C, cooling.lower_C, cooling.upper_C)
    expected = (88.0 + moved_A_K, 98.0 + moved_A_K, 62.0 + moved_M_K, 72.0 + moved_M_K)
    assert ends == pytest.approx(expected, abs=1.0)  # the weight swings at 14 Hz


def test_measured_loops_have_temperatures_that_rise_with_stress():
    """NiTiHf of Bigelow et al. 2022 at 50 to 400 MPa, as shipped."""
    loops = sorted(
        (loop for loop in shipped("NiTiHf") if loop.stress_Pa > 40e6), key=lambda x: x.stress_Pa
    )
    assert len(loops) == 5
    found = [
        analysis.tangents(*analysis.branch(x.T_C[x.heating], x.strain[x.heating], 2.0))
        for x in loops
    ]
    assert all(f.lower_C < f.upper_C for f in found)
    assert np.all(np.diff([0.5 * (f.lower_C + f.upper_C) for f in found]) > 0.0)
