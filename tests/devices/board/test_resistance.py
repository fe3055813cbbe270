"""Resistance from counts: value, uncertainty, bounds; the columns and the range of a board."""

import math
from fractions import Fraction

import numpy as np
import pytest

import hil
from hil.devices.board import protocol
from hil.devices.board.resistance import Chain, Resistances
from hil.loop.frame import Frame

LIMITS = protocol.default_limits() | {"current_full_scale_mA": 250, "supply_full_scale_mV": 10000}
CHAIN = Chain.of(LIMITS, lead_Ohm=0.2, u_relative=0.0)


def test_resistance_is_voltage_over_current_less_the_leads():
    volts, amps = Fraction(800 * 10, 1023), Fraction(600, 4 * 1023)
    assert CHAIN.ohms(600, 800)[0] == pytest.approx(float(volts / amps) - 0.2)


def test_the_uncertainty_is_that_of_rounded_counts():
    """A hundred thousand currents and voltages, rounded: the spread of what they give."""
    rng = np.random.default_rng(3)
    current, supply = rng.uniform(90, 110, 100_000), rng.uniform(90, 110, 100_000)
    true = CHAIN.ohm_per_ratio * supply / current
    told = CHAIN.ohm_per_ratio * np.round(supply) / np.round(current)
    assert np.std(told - true) == pytest.approx(CHAIN.ohms(100, 100)[1], rel=0.03)


def test_calibration_adds_to_the_uncertainty():
    R, u = Chain.of(LIMITS, 0.0, 0.02).ohms(700, 700)
    assert u / R == pytest.approx(math.hypot(0.02, math.sqrt(2 / 12) / 700))


def test_a_simulated_converter_has_the_noise_that_its_table_says(configs):
    """Steady currents: the readings scatter by their noise and their rounding together."""
    sets = ("devices.board.sim.noise_counts=3.0", "experiment.duration_s=4.0")
    run = hil.simulate(
        configs / "isotonic/pulse.toml", sets=(*sets, "controller.steps=[{t_s=0.0, off=[1]}]")
    )
    R_Ohm = run["wire.1.resistance_Ohm"].values
    R_Ohm = R_Ohm[np.isfinite(R_Ohm)]
    counts = 1023 * np.array([1e3 * 2.2 / 12.6 / 500, 2.2 / 5.0])  # of 12.6 Ohm at 2.2 V
    expected = np.hypot(*(np.hypot(3.0, 12.0**-0.5) / counts))
    assert np.std(R_Ohm) / 12.6 == pytest.approx(expected, rel=4 / np.sqrt(2 * len(R_Ohm)))
    assert np.mean(R_Ohm) == pytest.approx(12.6, rel=4 * expected / np.sqrt(len(R_Ohm)))


def test_the_noise_of_a_converter_is_in_the_uncertainty_of_a_resistance():
    """A hundred thousand noisy readings of one wire, rounded: 95 % within 1.96 u."""
    rng = np.random.default_rng(5)
    currents, supplies = (np.rint(n + 3.0 * rng.standard_normal(100_000)).astype(int)
                          for n in (410.3, 700.6))  # fmt: skip
    chain = Chain.of(LIMITS, 0.2, 0.0, noise_counts=3.0)
    told, u = np.array([chain.ohms(*n) for n in zip(currents, supplies, strict=True)]).T
    true = chain.ohm_per_ratio * 700.6 / 410.3 - 0.2
    assert np.mean(np.abs(told - true) < 1.96 * u) == pytest.approx(0.95, abs=0.003)


@pytest.mark.parametrize("counts", [(1023, 800), (600, 1023), (0, 800), (7, 800), (600, 0), (0, 0)])
def test_counts_at_an_end_of_the_scale_are_no_value(counts):
    assert all(math.isnan(x) for x in CHAIN.ohms(*counts))


def test_full_and_empty_scales_still_bound_the_resistance():
    low, high = CHAIN.bounds_Ohm(1023, 800)
    assert low < 0.0 < high < CHAIN.ohms(1000, 800)[0]
    low, high = CHAIN.bounds_Ohm(0, 800)
    assert low == pytest.approx(1599.0 * 40.0 - 0.2)
    assert high == math.inf
    assert CHAIN.bounds_Ohm(0, 0)[0] < 0.0, "no supply: nothing is known"


def test_the_shipped_sensor_resolves_a_wire_of_160_mA_by_four_percent_of_its_stroke():
    """82 counts; the wire loses 13 of 126 Ohm/m on the way."""
    shipped = protocol.default_limits() | {"supply_full_scale_mV": 10000}
    relative = CHAIN.resolution(0.16, 8.0, shipped)
    assert relative == pytest.approx(math.hypot(1 / 81.84, 1 / 818.4) / math.sqrt(12))
    assert relative / (13 / 126) == pytest.approx(0.034, abs=0.001)
    assert CHAIN.resolution(0.16, 8.0, LIMITS) / (13 / 126) < 0.006


class Row:
    def __init__(self, limits_Ohm=((40.0, 60.0), (40.0, 60.0)), *, open_stays=False):
        self.own = Resistances("board", ["a.1", "a.2"], CHAIN, limits_Ohm, True, open_stays)
        self.frame = Frame(self.own.columns)
        self.own.bind(self.frame)

    def value(self, name):
        return self.frame.values[self.frame.index(name)]

    @property
    def bits(self):
        return int(self.frame.bits[self.frame.bit_index("board_resistance_bits")])


def test_a_reading_is_in_its_tick_alone_and_its_age_grows():
    row = Row()
    row.own.begin(1.0)
    assert math.isnan(row.value("a.2.age_of_resistance_s"))
    row.own.take(1.0, 1, (600, 800), 30)
    assert row.value("a.2.resistance_Ohm") == CHAIN.ohms(600, 800)[0]
    assert row.value("a.2.age_of_resistance_s") == pytest.approx(0.03)
    assert math.isnan(row.value("a.1.resistance_Ohm"))
    row.own.begin(1.5)
    assert math.isnan(row.value("a.2.resistance_Ohm"))
    assert math.isnan(row.value("a.2.resistance_u_Ohm"))
    assert row.value("a.2.age_of_resistance_s") == pytest.approx(0.53)


def test_the_age_counts_from_the_command_whose_answer_brought_the_reading():
    """30 ms old when the command of the tick before was answered, 4 ms ago."""
    row = Row()
    row.own.begin(1.004)
    row.own.take(1.0, 1, (600, 800), 30)
    assert row.value("a.2.age_of_resistance_s") == pytest.approx(0.034)
    row.own.begin(1.008)
    assert row.value("a.2.age_of_resistance_s") == pytest.approx(0.038)


def test_a_gate_without_a_cell_of_the_rig_is_passed_over():
    row = Row()
    row.own.begin(0.0)
    row.own.take(0.0, 11, (600, 800), 0)
    assert np.isnan(row.frame.values).all()


@pytest.mark.parametrize(
    ("counts", "flag", "said"),
    [
        ((800, 600), 1, "a.1 at most 29.84 Ohm, limit 40 Ohm (devices.board.resistance.min_Ohm)"),
        ((1023, 600), 1, "a.1 at most"),
        ((400, 900), 2, "a.1 at least 89.64 Ohm, limit 60 Ohm (devices.board.resistance.max_Ohm)"),
        ((0, 900), 2, "a.1 at least"),
    ],
    ids=["low", "sensor full", "high", "no current"],
)
def test_two_readings_in_a_row_out_of_range_are_told_and_latched(counts, flag, said):
    row = Row()
    for k, now in enumerate((counts, (600, 800), counts)):
        row.own.take(0.1 * k, 0, now, 0)
        row.own.take(0.1 * k, 1, (600, 800), 0)
    assert row.bits == 0, "one good reading begins the count anew"
    row.own.take(0.4, 0, counts, 0)
    assert row.bits == flag
    row.own.take(0.5, 0, (600, 800), 0)
    assert row.bits == flag
    [text] = row.own.troubles()
    assert text.startswith(said)


def test_where_a_board_goes_on_with_open_cells_one_that_is_off_trips_nothing():
    """A loose wire, which still carries a current, does."""
    row = Row(open_stays=True)
    for k in range(4):
        row.own.take(0.1 * k, 0, (0, 900), 0)
    assert row.bits == 0
    for k in range(2):
        row.own.take(1.0 + 0.1 * k, 1, (400, 900), 0)
    assert row.bits == 2


def test_without_a_supply_no_resistance_is_out_of_range():
    row = Row()
    for k in range(3):
        row.own.take(0.1 * k, 0, (0, 0), 0)
    assert row.bits == 0
    assert not row.own.has_news


def test_a_supply_that_is_not_connected_is_told_once():
    row = Row(limits_Ohm=((0.0, math.inf),) * 2)
    row.own.take(0.0, 0, (600, 0), 0)
    row.own.take(0.1, 1, (600, 0), 0)
    assert row.own.has_news
    [message] = row.own.messages()
    assert "input 15" in message.text
    assert not row.own.has_news
