import numpy as np
import pytest
import scipy.signal

from hil.calibration.signal_chain import Chain
from hil.devices.nidaq.channels import Place
from hil.devices.sim.daq import SimChannel, SimDaq, SimOutput
from hil.loop.channels import Channel, RigLayout
from hil.loop.frame import Commands
from rows import row_of

PERIOD_S = 0.001


class Plant:
    """Gates, and a force given as a function of time."""

    def __init__(self, force_N, n_cells=4):
        self.cells = np.zeros(n_cells, dtype=np.uint8)
        self._force_N = force_N
        self.t_s = 0.0

    def report(self, cells_reported):
        """Boards are simulated here."""

    def advance(self, t_s):
        self.t_s = t_s

    def output(self, index):
        return self._force_N(self.t_s)


def channel(range_V=10.0, bits=16, **changes):
    step_V = 2.0 * range_V / 2**bits
    plain = {
        "name": "force",
        "output": 0,
        "raw_unit": "V",
        "chain": Chain.linear(2.0, 0.0),
        "step_raw": step_V,
        "low_raw": -range_V,
        "high_raw": range_V - step_V,
        "bandwidth_Hz": np.inf,
        "noise_rms_raw": 0.0,
        "offset_raw": 0.0,
        "delay_periods": 0,
        "reading_lost_probability": 0.0,
    }
    return SimChannel(**(plain | changes))


PLACE = Place(channel=0, output=0)
LAYOUT = RigLayout((Channel("force", "_N", "main"),), (), ("board",), ("board", "daq"), 0)


def sample(signal, n=2000, seed=0, **changes):
    """What a one-channel card reads of a signal over n ticks; raw, value, valid, age."""
    made = channel(**changes)
    daq = SimDaq(
        "daq", Plant(signal), [made], [], PERIOD_S, lambda _: np.random.default_rng(seed), PLACE
    )
    frame = row_of(LAYOUT, *daq.columns)
    r, _ = LAYOUT.bind(frame)
    daq.bind(frame, r)
    daq.open()
    rows = []
    for k in range(n):
        daq.read(k * PERIOD_S)
        raw = frame.values[frame.index(made.raw_column)]
        rows.append((raw, r.measured[0], r.valid[0], frame.values[frame.index("daq_age_s")]))
    return [np.array(column) for column in zip(*rows, strict=True)]


def sine(t_s):
    return 3.0 * np.sin(2 * np.pi * 5.0 * t_s)


T = np.arange(2000) * PERIOD_S


@pytest.mark.parametrize("bits", [8, 12, 16])
def test_volts_are_whole_steps_of_the_range_and_at_most_half_a_step_off(bits):
    volts, newtons, valid, age = sample(sine, bits=bits)
    step = 20.0 / 2**bits
    counts = volts / step
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert np.abs(volts - sine(T) / 2.0).max() <= 0.5 * step * (1 + 1e-9)
    np.testing.assert_allclose(newtons, 2.0 * volts)
    assert valid.all()
    assert not age.any()


@pytest.mark.parametrize(("force", "volts"), [(1e3, 10.0 - 20.0 / 2**16), (-1e3, -10.0)])
def test_the_card_saturates_at_its_range(force, volts):
    found = sample(lambda t: force, n=10)[0]
    np.testing.assert_allclose(found, volts, rtol=1e-12)


def test_the_zero_is_taken_off_and_an_offset_is_not():
    step = 20.0 / 2**16
    _, newtons, _, _ = sample(lambda t: 1.0, chain=Chain.linear(2.0, 0.4), n=10)
    np.testing.assert_allclose(newtons, 1.0, atol=2.0 * step)
    _, newtons, _, _ = sample(lambda t: 1.0, offset_raw=0.25, n=10)
    np.testing.assert_allclose(newtons, 1.5, atol=2.0 * step)


def test_noise_has_its_standard_deviation_and_is_white():
    volts = sample(lambda t: 0.0, n=20000, noise_rms_raw=0.05, bits=32)[0]
    # four standard deviations of the estimates from 20000 samples
    assert abs(volts.std() - 0.05) < 0.05 * 4 / np.sqrt(2 * 20000)
    assert abs(volts.mean()) < 0.05 * 4 / np.sqrt(20000)
    assert abs(np.corrcoef(volts[1:], volts[:-1])[0, 1]) < 4 / np.sqrt(20000)


def test_the_conditioner_is_a_first_order_low_pass():
    def step(t_s):
        return 4.0 if t_s >= 0.01 - 1e-9 else 0.0

    volts = sample(step, bandwidth_Hz=20.0, bits=32)[0]
    a, b, c, d, _ = scipy.signal.cont2discrete(
        (
            np.array([[-2 * np.pi * 20.0]]),
            np.array([[2 * np.pi * 20.0]]),
            np.eye(1),
            np.zeros((1, 1)),
        ),
        PERIOD_S,
    )
    held = np.array([step(t) / 2.0 for t in T])
    # a reading at t_k has the force of the period that led to it
    filtered = scipy.signal.dlsim((a, b, c, d, PERIOD_S), np.append(held[1:], held[-1]))[1]
    np.testing.assert_allclose(volts[1:], filtered[1:, 0], atol=1e-8)


def test_lost_readings_are_not_numbers_and_the_age_grows_meanwhile():
    volts, newtons, valid, age = sample(sine, reading_lost_probability=0.5)
    np.testing.assert_array_equal(np.isnan(volts), ~valid)
    np.testing.assert_array_equal(np.isnan(newtons), ~valid)
    since = 0.0
    for k in range(len(valid)):
        since = 0.0 if valid[k] else since + (PERIOD_S if k else 0.0)
        assert age[k] == pytest.approx(since, abs=1e-12)


def test_the_same_seed_repeats_and_another_does_not():
    first, again, other = (
        sample(sine, noise_rms_raw=0.01, reading_lost_probability=0.1, seed=seed)[0]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5


@pytest.mark.parametrize("delay_periods", [1, 3, 20])
def test_a_delay_gives_the_signal_of_that_many_periods_ago(delay_periods):
    now = sample(sine, bits=32)[0]
    late = sample(sine, bits=32, delay_periods=delay_periods)[0]
    np.testing.assert_array_equal(late[delay_periods:], now[:-delay_periods])
    np.testing.assert_array_equal(late[:delay_periods], now[0])


def test_an_encoder_counts_whole_steps_of_a_turn():
    turn = {"raw_unit": "counts", "chain": Chain.linear(2 * np.pi / 40000, 0.0), "step_raw": 1.0,
            "low_raw": -2.0**31, "high_raw": 2.0**31}  # fmt: skip
    counts, angle_rad, _, _ = sample(sine, **turn)
    np.testing.assert_array_equal(counts, np.rint(counts))
    assert np.abs(angle_rad - sine(T)).max() <= np.pi / 40000 * (1 + 1e-9)


def test_an_output_sets_the_plants_input_to_the_nearest_step_within_its_range():
    plant = Plant(sine)
    plant.inputs = np.zeros(2)
    output = SimOutput(input=1, units_per_V=0.1, step_V=20.0 / 2**16, range_V=10.0)
    daq = SimDaq("daq", plant, [], [output], PERIOD_S, lambda _: np.random.default_rng(0), PLACE)
    none = np.zeros(0, dtype=np.uint8)
    for wished in (0.0136, -0.5, 0.999, 7.0):
        daq.write(0.0, Commands(none, np.array([wished])))
        within = min(wished, 0.1 * (10.0 - 20.0 / 2**16))
        assert abs(plant.inputs[1] - within) <= 0.05 * 20.0 / 2**16 * (1 + 1e-9)
    daq.safe()
    np.testing.assert_array_equal(plant.inputs, [0.0, 0.0])
