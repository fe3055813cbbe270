"""Volts to newtons, counts to angle, and what is wrong with a channel."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.calibration.signal_chain import (
    AT_RAIL,
    FROZEN,
    NOT_A_NUMBER,
    BlockFilter,
    Chain,
    Encoder,
    check_zero,
    frozen_after,
    rails,
)


def test_a_cell_of_2_mV_per_V_at_10_V_gives_20_mV_and_10_V_behind_a_gain_of_500():
    """A transducer maker's own arithmetic: full scale is 2 mV/V times the excitation."""
    chain = Chain.conditioned(500.0, 0.0, 10.0, [0.0, 4.5])
    assert 500.0 * (2e-3 * 10.0) == 10.0
    assert chain.ratio(10.0) == pytest.approx(2.0, rel=1e-15)
    assert chain.value(10.0) == pytest.approx(9.0, rel=1e-15)
    assert chain.slope() == pytest.approx(0.9)


def test_omegas_printed_example_comes_out():
    """2.05 mV/V, 3000 lb, 10 V of excitation: 20.5 mV at full scale."""
    chain = Chain.conditioned(1.0, 0.0, 10.0, [0.0, 3000.0 / 2.05])
    assert chain.raw(3000.0) == pytest.approx(20.5e-3)


def test_the_conditioners_offset_and_the_zero_are_taken_off_before_the_polynomial():
    chain = Chain.conditioned(500.0, 0.2, 10.0, [0.0, 4.0, 0.1])
    assert chain.ratio(0.2) == 0.0
    zeroed = chain.zeroed(0.7)  # 0.1 mV/V at no force
    assert zeroed.zero_ratio == pytest.approx(0.1)
    assert zeroed.value(0.7) == 0.0
    # deflection of 1 mV/V
    assert zeroed.value(5.7) == pytest.approx(4.0 + 0.1)


def test_a_channel_without_a_record_is_a_line_through_its_zero():
    chain = Chain.linear(0.95, 0.4)
    assert chain.value(0.4) == 0.0
    assert chain.value(10.4) == pytest.approx(9.5)


def test_arrays_and_numbers_go_the_same_way():
    chain = Chain.conditioned(500.0, 0.1, 10.0, [0.01, 4.5, -0.02, 0.003])
    volts = np.linspace(-10.0, 10.0, 41)
    each = [chain.value(float(v)) for v in volts]
    np.testing.assert_array_equal(chain.value(volts), each)
    expected = np.polynomial.polynomial.polyval((volts - 0.1) / 5.0, [0.01, 4.5, -0.02, 0.003])
    np.testing.assert_allclose(chain.value(volts), expected, rtol=1e-13, atol=1e-14)


@given(
    force_N=st.floats(-9.0, 9.0),
    bend=st.floats(-0.05, 0.05),
    cube=st.floats(-0.01, 0.01),
    zero=st.floats(-0.2, 0.2),
)
def test_what_a_simulated_transducer_gives_means_the_force_it_was_given(force_N, bend, cube, zero):
    chain = Chain(5.0, 0.1, (0.0, 4.5, bend, cube), zero)
    # 1e-12 of full scale: rounding of a few operations on numbers of order 10
    assert chain.value(chain.raw(force_N)) == pytest.approx(force_N, abs=1e-11)


def test_a_force_beyond_the_polynomials_turning_point_has_no_reading():
    with pytest.raises(ValueError, match="does not reach"):
        Chain(1.0, 0.0, (0.0, 1.0, -0.25)).raw(1.5)  # turns at 1 N


def test_all_counts_of_a_turn_are_a_turn():
    encoder = Encoder(counts_per_turn=2000, offset_rad=0.25)
    assert encoder.angle_rad(2000) == pytest.approx(0.25 + 2 * math.pi)
    assert Encoder(2000, direction=-1).angle_rad(500) == pytest.approx(-math.pi / 2)


@pytest.mark.parametrize(
    ("count", "signed"),
    [(0, 0), (1, 1), (2**32 - 1, -1), (2**31 - 1, 2**31 - 1), (2**31, -(2**31))],
)
def test_a_counter_that_rolls_under_is_negative(count, signed):
    assert Encoder(2000).signed(count) == signed


def block_filter(n=1, **changes):
    plain = {"low": [-10.0] * n, "high": [10.0] * n, "frozen_after": [0] * n}
    return BlockFilter(**(plain | changes))


@pytest.mark.parametrize("n", [1, 2, 10, 37])
def test_the_mean_of_a_ramp_is_its_value_at_the_stated_delay(n):
    """A linear-phase filter delays a ramp by its group delay exactly."""
    rate_Hz = 1000.0 * n
    t_s = np.arange(n) / rate_Hz
    each = block_filter()
    each.take((3.0 * t_s)[None], n)
    assert each.mean[0] == pytest.approx(
        3.0 * (t_s[-1] - BlockFilter.delay_s(n, rate_Hz)), abs=1e-12
    )


def test_the_filter_is_the_dirichlet_kernel_and_passes_nothing_at_the_ticks_rate():
    n, rate_Hz = 10, 10_000.0
    for frequency_Hz in (50.0, 300.0, 500.0, 1000.0, 2000.0, 3700.0):
        gains = []
        for phase in (0.0, np.pi / 2):
            t_s = np.arange(n) / rate_Hz
            wave = block_filter()
            wave.take(np.cos(2 * np.pi * frequency_Hz * t_s + phase)[None], n)
            gains.append(wave.mean[0])
        x = np.pi * frequency_Hz / rate_Hz
        assert np.hypot(*gains) == pytest.approx(abs(np.sin(n * x) / (n * np.sin(x))), abs=1e-12)


def test_only_the_samples_of_this_block_count():
    one = block_filter(2)
    block = np.array([[1.0, 3.0, 99.0], [5.0, 5.0, 99.0]])
    one.take(block, 2)
    np.testing.assert_allclose(one.mean, [2.0, 5.0])
    assert not one.troubles.any()


@pytest.mark.parametrize("bits", [12, 16])
def test_one_sample_at_the_rail_is_told_and_one_step_inside_is_not(bits):
    step = 20.0 / 2**bits
    low, high = rails(-10.0, 10.0, bits)
    for volts, found in [(-10.0, 1), (-10.0 + step, 0), (10.0 - 2 * step, 0), (10.0 - step, 1)]:
        one = block_filter(low=[low], high=[high])
        one.take(np.array([[0.0, volts, 0.0]]), 3)
        assert one.troubles[0] == found * AT_RAIL


def test_what_is_not_a_number_is_told():
    one = block_filter()
    one.take(np.array([[0.0, np.nan]]), 2)
    assert one.troubles[0] == NOT_A_NUMBER


def test_a_channel_that_stands_still_across_blocks_is_frozen():
    one = block_filter(frozen_after=[25])
    block = np.full((1, 10), 1.25)
    found = []
    for _ in range(4):
        one.take(block, 10)
        found.append(int(one.troubles[0]))
    assert found == [0, 0, FROZEN, FROZEN]
    block[0, 9] = 1.5
    one.take(block, 10)
    assert one.troubles[0] == 0


def test_a_quiet_live_channel_never_looks_frozen():
    """Noise of half a step, the least for which freezing is judged, over two million samples."""
    rng = np.random.default_rng(5)
    n = frozen_after(0.5, 1.0, 10.0)
    assert n == 100
    one = block_filter(frozen_after=[n], low=[-1e9], high=[1e9])
    codes = np.rint(0.5 * rng.standard_normal((1, 2_000_000)))
    for start in range(0, codes.shape[1], 1000):
        one.take(codes[:, start : start + 1000], 1000)
        assert one.troubles[0] == 0


def test_a_channel_quieter_than_its_converter_is_never_called_frozen():
    assert frozen_after(0.49, 1.0, 1e4) == 0
    assert frozen_after(0.5, 1.0, 1e4) == 2000


CHAIN = Chain.conditioned(500.0, 0.0, 10.0, [0.0, 4.75])
USUAL = {"zero_ratio": 0.0, "zero_tolerance_N": 0.05, "noise_rms": 0.002}


def samples(mean_V=0.0, rms_V=0.002, n=4000):
    noise = np.random.default_rng(0).standard_normal(n)
    return mean_V + rms_V * (noise - noise.mean()) / noise.std()


def test_a_zero_as_at_commissioning_gives_no_remark():
    found = check_zero(samples(0.05), CHAIN, **USUAL)
    assert found.messages == ()
    assert found.zero == pytest.approx(0.05)
    assert found.noise_rms == pytest.approx(0.002)


def test_a_drifted_zero_is_told_in_newtons():
    # 0.1 V are 0.02 mV/V, 95 mN
    found = check_zero(samples(-0.1), CHAIN, **USUAL)
    assert len(found.messages) == 1
    assert "-0.095 N" in found.messages[0]


@pytest.mark.parametrize(("rms_V", "share"), [(0.006, "3"), (0.0002, "0.1")])
def test_a_noise_unlike_commissioning_is_told(rms_V, share):
    found = check_zero(samples(rms_V=rms_V), CHAIN, **USUAL)
    assert found.messages == (f"noise is {share} times that of commissioning",)


def test_without_commissioning_figures_nothing_is_said():
    unknown = {"zero_ratio": None, "zero_tolerance_N": None, "noise_rms": None}
    assert check_zero(samples(3.0, 1.0), CHAIN, **unknown).messages == ()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_zero_that_has_drifted_either_way_is_told_beyond_its_tolerance(sign):
    """4.75 N per mV/V and 5 V per mV/V: 0.05 N are 0.0526 V."""
    for volts, told in ((0.052, False), (0.053, True)):
        found = check_zero(samples(sign * volts), CHAIN, **USUAL)
        assert bool(found.messages) == told


@pytest.mark.parametrize(
    ("share", "told"), [(1.99, False), (2.01, True), (0.26, False), (0.24, True)]
)
def test_noise_is_told_beyond_twice_and_below_a_quarter_of_commissioning(share, told):
    found = check_zero(samples(rms_V=0.002 * share), CHAIN, **USUAL)
    assert bool(found.messages) == told


@pytest.mark.parametrize(("n", "frozen"), [(4, False), (5, True), (6, True)])
def test_a_channel_is_frozen_from_its_number_of_equal_samples_on_and_a_change_starts_anew(
    n, frozen
):
    """As many as the rig says never come from a working channel: one fewer may."""
    one = block_filter(frozen_after=[5])
    one.take(np.array([[0.5, *[1.0] * n]]), n + 1)
    assert one.troubles[0] == (FROZEN if frozen else 0)
    one.take(np.array([[2.0]]), 1)
    assert one.troubles[0] == 0


def test_troubles_are_of_each_channel_and_of_this_block_alone():
    one = block_filter(3, low=[-1.0] * 3, high=[1.0] * 3, frozen_after=[0, 0, 2])
    one.take(np.array([[2.0, 0.0], [0.0, np.nan], [0.5, 0.5]]), 2)
    assert one.troubles.tolist() == [AT_RAIL, NOT_A_NUMBER, FROZEN]
    one.take(np.array([[0.0, 0.0], [0.0, 0.0], [0.5, 0.25]]), 2)
    assert one.troubles.tolist() == [0, 0, 0]


@pytest.mark.parametrize("direction", [1, -1])
def test_an_encoder_s_chain_gives_its_angle_from_its_offset_on(direction):
    """A quarter of a turn is a quarter of the counts; the count 0 is at the offset."""
    encoder = Encoder(counts_per_turn=400, direction=direction, offset_rad=0.25)
    for count, angle_rad in ((0, 0.25), (100, 0.25 + direction * np.pi / 2)):
        assert encoder.angle_rad(count) == pytest.approx(angle_rad)
        assert encoder.chain.value(count) == pytest.approx(angle_rad)


def test_a_zero_without_its_tolerance_is_not_judged():
    assert check_zero(samples(3.0), CHAIN, **{**USUAL, "zero_tolerance_N": None}).messages == ()
    assert check_zero(samples(3.0), CHAIN, **{**USUAL, "zero_ratio": None}).messages == ()


def test_a_zero_replaces_the_one_before():
    chain = Chain(2.0, 0.1, (0.0, 3.0)).zeroed(0.5)
    assert chain.value(0.5) == 0.0
    again = chain.zeroed(0.7)
    assert again.value(0.7) == 0.0
    assert again.value(0.9) == pytest.approx(0.3)


def test_a_block_may_be_at_its_rail_and_not_a_number_at_once():
    one = BlockFilter([-1.0], [1.0], [0])
    for block in ([np.nan, 2.0], [2.0, np.nan]):
        one.take(np.array([block]), 2)
        assert one.troubles[0] == AT_RAIL | NOT_A_NUMBER
