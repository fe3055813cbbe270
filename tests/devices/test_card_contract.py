"""One contract for every card: the quick simulated one, and the driver on the simulated library."""

import tomllib

import numpy as np
import pytest
import scipy.signal
import tomli_w

from hil.experiment.load import load
from hil.loop.frame import Frame
from hil.rig.rig import build_rig

BACKENDS = ("sim", "emulated")
T_S = 0.001


@pytest.fixture
def experiment(rigs):
    """The slider, with an encoder on its pinion, an e-stop loop and a supply to be enabled."""
    path = rigs / "slider/rig.toml"
    table = tomllib.loads(path.read_text())
    table["model"]["outputs"] = ["slide.x_m", "pinion.angle_rad"]
    table["model"]["C"] = [[1.0, 0.0], [50.0, 0.0]]
    daq = table["devices"]["daq"]
    daq["channels"]["slide"]["sim"] = {"noise_rms_V": 0.0, "bandwidth_Hz": 1e6}
    daq["channels"]["pinion"] = {
        "kind": "encoder",
        "terminal": "ctr0",
        "signal": "pinion.angle_rad",
        "counts_per_turn": 40000,
    }
    daq["lines"] = {
        "loop": {"kind": "estop", "terminal": "port0/line0"},
        "supply": {"kind": "enable", "terminal": "port0/line1"},
    }
    path.write_text(tomli_w.dumps(table))
    return rigs / "slider/steps.toml"


class Rigged:
    """A rig of one card, ticked by hand."""

    def __init__(self, experiment, backend, seed=0, sets=()):
        self.rig = build_rig(load(experiment, sets), seed, {"daq": backend})
        self.frame = Frame(self.rig.columns)
        self.rig.bind(self.frame)
        self.rig.commands.enabled[:] = True
        self.rig.open()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.rig.close()

    def run(self, force_N, start=0):
        """Command one force a tick; (n, 2) readings, (n,) validity of the slide."""
        read, valid = [], []
        for k, force in enumerate(force_N, start):
            self.rig.read(k * T_S)
            read.append(self.rig.readings.measured.copy())
            valid.append(bool(self.rig.readings.valid[0]))
            self.rig.commands.outputs[:] = force
            self.rig.write(k * T_S)
        return np.array(read), np.array(valid)

    def bits(self, name):
        return int(self.frame.row[name][0])


@pytest.fixture(params=BACKENDS)
def rigged(request, experiment):
    with Rigged(experiment, request.param) as made:
        yield made


def response_m(experiment, force_N):
    """The plant's exact position under a held force, by an independent discretisation."""
    plant = load(experiment).tables.plant
    a, b = np.array(plant.A), np.array(plant.B)
    held = scipy.signal.cont2discrete((a, b, np.array([[1.0, 0.0]]), np.zeros((1, 1))), T_S)
    return scipy.signal.dlsim(held, np.asarray(force_N))[1][:, 0]


def test_all_add_the_same_columns(experiment):
    made = []
    for backend in BACKENDS:
        with Rigged(experiment, backend) as rigged:
            made.append({c.name: (c.units, c.role, c.flags, c.n_cells, c.simulated)
                         for c in rigged.frame.columns})  # fmt: skip
    assert made[0] == made[1]


def test_an_output_moves_the_plant_and_the_channels_measure_it(rigged, experiment):
    rigged.rig.arm()
    force_N = np.where(np.arange(400) < 200, 2.5, -1.25)  # whole steps of 16 bits
    read, valid = rigged.run(force_N)
    x_m = response_m(experiment, force_N)
    assert valid.all()
    # a mean over the last period is half of it late; the converter's step is 6 um
    late_m = T_S * np.abs(np.gradient(x_m, T_S)).max()
    assert np.abs(read[:, 0] - x_m).max() < late_m + 1e-5
    # counts are of the tick itself, one of 40000
    assert np.abs(read[:, 1] - 50.0 * x_m).max() <= 2 * np.pi / 40000 + 50.0 * 1e-9


def test_readings_come_before_it_is_armed_and_nothing_moves(rigged):
    read, valid = rigged.run(np.zeros(5))
    assert valid.all()
    np.testing.assert_allclose(read, 0.0, atol=1e-5)


def test_the_age_is_never_more_than_a_period_and_the_clock_rises(rigged):
    rigged.rig.arm()
    clocks = []
    for k in range(20):
        rigged.run([0.0], k)
        assert 0.0 <= rigged.frame.row["daq_age_s"][0] < T_S
        clocks.append(float(rigged.frame.row["daq_t_s"][0]))
    np.testing.assert_allclose(np.diff(clocks)[1:], T_S, atol=1e-12)  # the first is one sample


def test_an_output_ends_at_its_cards_range(rigged, experiment):
    rigged.rig.arm()
    read, _ = rigged.run(np.full(50, 1e6))
    x_m = response_m(experiment, np.full(50, 10.0))  # 10 V at 1 N a volt
    assert read[-1, 0] == pytest.approx(x_m[-1], rel=0.05)


def test_lines_show_in_their_bits_and_the_enable_follows_the_command(rigged):
    rigged.rig.arm()
    rigged.run([0.0])
    assert rigged.bits("daq_line_bits") == 0b11
    rigged.rig.commands.enabled[:] = False
    rigged.run([0.0], 1)
    assert rigged.bits("daq_line_bits") == 0b01


def test_a_channel_at_its_rail_is_no_reading_and_a_fault(rigged):
    """10 N for a second drive the slide beyond the 0.2 m that its channel can tell."""
    rigged.rig.arm()
    _, valid = rigged.run(np.full(1000, 10.0))
    assert valid[:50].all()
    assert not valid[-1]
    flags = next(c.flags for c in rigged.frame.columns if c.name == "daq_fault_bits")
    assert rigged.bits("daq_fault_bits") == 1 << flags.index("slide_at_rail")
    assert [*rigged.rig.troubles(np.zeros(0))] == ["channel_untrue"]
    (said,) = rigged.rig.troubles(np.zeros(0))["channel_untrue"]
    assert said.startswith("daq: slide_at_rail")


def test_safe_stops_what_moves_and_may_be_called_again(rigged, experiment):
    rigged.rig.arm()
    rigged.run(np.full(100, 2.5))
    for _ in range(2):
        rigged.rig.safe()
    read = []
    for k in range(100, 200):
        rigged.rig.read(k * T_S)
        read.append(float(rigged.rig.readings.measured[0]))
    # the command of the last tick was taken back before it acted
    coasting_m = response_m(experiment, [2.5] * 99 + [0.0] * 101)[100:]
    late_m = T_S * 0.45  # a period at most, at 0.45 m/s
    assert np.abs(np.array(read) - coasting_m).max() < late_m
    for _ in range(2):
        rigged.rig.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_seed_repeats_every_reading(backend, experiment):
    sets = ["devices.daq.channels.slide.sim.noise_rms_V=0.01"]
    found = []
    for seed in (5, 5, 6):
        with Rigged(experiment, backend, seed, sets) as rigged:
            rigged.rig.arm()
            found.append(rigged.run(np.full(60, 1.0))[0])
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0][:, 0] != found[2][:, 0]).mean() > 0.9
