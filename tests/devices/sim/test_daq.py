from types import SimpleNamespace

import numpy as np
import pytest
import scipy.signal

from hil.calibration.signal_chain import Chain
from hil.devices.nidaq.channels import CellLine, Line, Place
from hil.devices.sim.daq import SimCard, SimChannel, SimDaq, SimOutput
from hil.devices.sim.gates import LineGates
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


class Faults:
    """Faults of a bench that are there for now."""

    def __init__(self, *there):
        self.there, self.t_s, self.last_on_s = set(there), 0.0, 0.0

    def active(self, kind, of):
        return (kind, of) in self.there

    def every(self, kind, of):
        return [SimpleNamespace(cell=2, value=1.0)] if (kind, of) in self.there else []


def card(plant, channels, outputs=(), injection=None, lines=(), switches=()):
    """A card on a row of its own; settles for 0.5 s after its enable lines have gone high."""
    made = SimCard("daq", channels, outputs, PLACE, lines, switches, 0.5)
    return SimDaq(made, plant, PERIOD_S, lambda _: np.random.default_rng(0), injection)


def reads(daq, n_channels=1):
    """A function of time for the values and the age that the opened card reads."""
    channels = [Channel(f"c{i}", "_N", "further") for i in range(n_channels)]
    layout = RigLayout(tuple(channels), (), ("board",), ("board", "daq"), 0)
    frame = row_of(layout, *daq.columns)
    readings, _ = layout.bind(frame)
    daq.bind(frame, readings)
    daq.open()

    def at(t_s):
        daq.read(t_s)
        return readings.measured.tolist(), frame.values[frame.index("daq_age_s")]

    return at


def sample(signal, n=2000, seed=0, **changes):
    """What a one-channel card reads of a signal over n ticks; raw, value, valid, age."""
    made = channel(**changes)
    card = SimCard("daq", [made], [], PLACE)
    daq = SimDaq(card, Plant(signal), PERIOD_S, lambda _: np.random.default_rng(seed))
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


@pytest.mark.parametrize("bandwidth_Hz", [20.0, 100.0, 1000.0])
def test_the_conditioner_is_a_first_order_low_pass(bandwidth_Hz):
    """Of a force that is a line between its samples, as scipy has it."""
    rate = 2.0 * np.pi * bandwidth_Hz
    volts = sample(sine, bandwidth_Hz=bandwidth_Hz, bits=32)[0]
    ideal_V = np.array([sine(t) for t in T]) / 2.0
    _, y, _ = scipy.signal.lsim(([rate], [1.0, rate]), ideal_V - ideal_V[0], T)
    np.testing.assert_allclose(volts, y + ideal_V[0], atol=1e-8)


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
    daq = card(plant, [], [output])
    none = np.zeros(0, dtype=np.uint8)
    for wished in (0.0136, -0.5, 0.999, 7.0):
        daq.write(0.0, Commands(none, np.array([wished])))
        within = min(wished, 0.1 * (10.0 - 20.0 / 2**16))
        assert abs(plant.inputs[1] - within) <= 0.05 * 20.0 / 2**16 * (1 + 1e-9)
    daq.safe()
    np.testing.assert_array_equal(plant.inputs, [0.0, 0.0])


def test_a_card_is_as_old_as_its_oldest_channel():
    channels = [channel(name="a"), channel(name="b", reading_lost_probability=1.0)]
    at = reads(card(Plant(sine), channels), 2)
    assert [at(k * PERIOD_S)[1] for k in range(4)] == [0.0, 0.001, 0.002, 0.003]


def test_a_tare_takes_the_offset_off_as_well():
    step_N = 2.0 * 20.0 / 2**16
    found = sample(lambda t_s: 1.0 + t_s, n=1001, offset_raw=0.25, tare=True)[1]
    np.testing.assert_allclose(found[[0, 1000]], [0.0, 1.0], atol=step_N)


def test_a_sensor_that_is_stuck_keeps_its_last_reading_until_the_fault_is_over():
    faults = Faults()
    at = reads(card(Plant(lambda t_s: t_s), [channel()], injection=faults))
    found = []
    for k in range(4):
        faults.there = {("sensor_stuck", "force")} if k in (1, 2) else set()
        found += at(float(k))[0]
    np.testing.assert_allclose(found, [0.0, 0.0, 0.0, 3.0], atol=0.001)


def test_a_sensor_at_its_rail_is_at_the_end_of_its_range():
    faults = Faults(("sensor_rail", "force"))
    at = reads(card(Plant(sine), [channel(bits=16)], injection=faults))
    assert at(0.0)[0] == [2.0 * (10.0 - 20.0 / 2**16)]


def test_a_line_that_was_stuck_follows_its_level_again():
    plant = SimpleNamespace(wire=lambda board, gates: None)
    faults = Faults(("line_stuck", "daq"))
    gates = LineGates("daq", [0, 1], plant, faults)
    assert gates.levels().tolist() == [0, 1]
    faults.there.clear()
    assert gates.levels().tolist() == [0, 0]


class Wired(Plant):
    """A plant that remembers its enable lines."""

    def __init__(self):
        super().__init__(sine)
        self.high, self.boards, self.inputs = {}, [], np.zeros(2)

    def wire(self, board, gates):
        self.boards.append(board)

    def enable(self, line, high):
        self.high[line] = high


def test_made_safe_a_card_has_every_output_at_zero_and_every_line_low():
    plant = Wired()
    outputs = [SimOutput(i, units_per_V=0.1, step_V=0.001, range_V=10.0) for i in range(2)]
    switches = [CellLine(f"a.{i}", f"port0/line{i}", i) for i in range(2)]
    lines = [Line("feed", "port0/line8", "enable"), Line("heat", "port0/line9", "enable")]
    daq = card(plant, [], outputs, lines=lines, switches=switches)
    reads(daq, 0)
    daq.enable()
    cells = np.ones(2, dtype=np.uint8)
    commands = Commands(cells, np.array([0.5, 0.25]))
    commands.enabled[:] = True
    daq.write(0.0, commands)
    assert plant.boards[0].levels().tolist() == [1, 1]
    assert plant.high == {"daq/feed": True, "daq/heat": True}
    assert (plant.inputs != 0.0).all()
    daq.safe()
    assert plant.boards[0].levels().tolist() == [0, 0]
    assert plant.high == {"daq/feed": False, "daq/heat": False}
    assert plant.inputs.tolist() == [0.0, 0.0]
    assert not daq.ready()


def test_lines_that_a_command_sets_low_have_to_settle_again():
    plant = Wired()
    daq = card(plant, [], lines=[Line("feed", "port0/line8", "enable")])
    reads(daq, 0)
    daq.enable()
    daq.wait()
    assert daq.ready()
    commands = Commands(np.zeros(0, dtype=np.uint8), np.zeros(0))
    commands.enabled[:] = False
    daq.write(0.0, commands)
    assert not daq.ready()
