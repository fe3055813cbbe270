"""Boards that measure resistance: ranges, heat of the pulses, resolution."""

from dataclasses import replace
from math import inf

import pytest

from hil.devices.board import protocol
from hil.devices.tables import BoardResistanceTable
from hil.experiment.board_resistance import (
    facts,
    faults,
    limits_Ohm,
    resolution_of_stroke,
    warms_K,
)
from hil.mechanics.sma.limits import CellWire
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.wire import SmaWire

CELL = CellWire("a.1", SmaWire(n_wires=4, supply_V=8.0))
SENSING = protocol.default_limits() | {"sense_every_ms": 50, "supply_full_scale_mV": 10000}
FINE = SENSING | {"current_full_scale_mA": 200}


def test_the_range_follows_from_the_wire_with_a_tenth_on_either_side():
    [(low, high)] = limits_Ohm(["a.1"], BoardResistanceTable(), [CELL])
    assert (low, high) == pytest.approx((0.9 * 45.2, 1.1 * 50.4))


def test_a_hot_wire_may_have_the_resistance_of_its_highest_temperature():
    warm = replace(CELL.wire, resistivity=Resistivity(austenite_per_K=1e-3, at_C=20.0))
    hot = CellWire("a.1", warm, temperature_max_C=180.0)
    [(_, high)] = limits_Ohm(["a.1"], BoardResistanceTable(), [hot])
    assert high == pytest.approx(1.1 * 45.2 * 1.16)


def test_a_given_range_counts_before_the_wires_and_an_unknown_wire_has_none():
    table = BoardResistanceTable(min_Ohm=44.0)
    ranges = limits_Ohm(["b.1", "a.1"], table, [CELL])
    assert ranges[0] == (44.0, inf)
    assert ranges[1] == (44.0, pytest.approx(55.44))
    assert limits_Ohm(["b.1"], BoardResistanceTable(max_Ohm=60.0), []) == [(0.0, 60.0)]


def test_measuring_warms_a_wire_by_the_mean_power_over_its_loss():
    """(8 V)^2 / 45.2 Ohm for 0.2 ms in 50 ms, over 0.4 m of wire."""
    wire = CELL.wire
    power_W_per_m = (8.0 / 45.2) ** 2 * 126.0 * 0.2e-3 / 50e-3
    assert warms_K(CELL, 8.0, 50e-3) == pytest.approx(power_W_per_m / (0.85 * wire.loss_W_per_m_K))
    assert 0.2 < warms_K(CELL, 8.0, 50e-3) < 0.6
    assert not list(faults("devices.b", [CELL], 8.0, SENSING))


def test_a_measurement_that_would_warm_a_wire_is_refused_with_what_would_do():
    thin = CellWire("a.1", replace(CELL.wire, diameter_m=25e-6, martensite_Ohm_per_m=1770.0,
                                   austenite_Ohm_per_m=1600.0, supply_V=60.0))  # fmt: skip
    [(key, text)] = faults("devices.b", [thin], 60.0, SENSING)
    assert key == "devices.b.limits.sense_every_ms = 50"
    least = int(text.rsplit(" ", 1)[1])
    assert not list(faults("devices.b", [thin], 60.0, SENSING | {"sense_every_ms": least + 1}))


def test_cells_with_supplies_of_their_own_are_refused():
    other = CellWire("a.2", replace(CELL.wire, supply_V=7.0))
    [(_, text)] = faults("devices.b", [CELL, other], 8.0, SENSING)
    assert "give all cells the same" in text


def test_a_board_that_measures_nothing_is_not_refused_and_resolves_nothing():
    silent = SENSING | {"sense_every_ms": 0}
    assert not list(faults("devices.b", [CELL], 800.0, silent))
    assert not list(facts("b", [CELL], 8.0, silent))


def test_what_a_reading_resolves_is_told():
    """81 and 818 counts of 2 A and 10 V; 812 of 0.2 A."""
    assert [*facts("b", [CELL], 8.0, SENSING)] == [
        "'b' measures resistance: a reading gives a position to 3.5 % of the stroke"
    ]
    assert "0.49 % of the stroke" in next(facts("b", [CELL], 8.0, FINE))


def test_a_wire_whose_resistance_does_not_change_cannot_tell_its_position():
    flat = CellWire("a.1", replace(CELL.wire, austenite_Ohm_per_m=126.0))
    assert resolution_of_stroke(flat, 8.0, FINE) == inf
