"""The driver board's circuits in ngspice, against equations by hand with the parts' data.

The simulator knows the transistors' and diodes' curves; the equations use one number for each, so
those that contain one agree within the tolerance that is stated, the others within rounding.
"""

import os
import shutil
from math import exp, log, pi

import pytest

from lazily import Lazily

c, rules, spice = Lazily("circuit"), Lazily("rules"), Lazily("spice")
pytestmark = pytest.mark.xdist_group("circuit")  # SKiDL takes 3 s to load, 10 s in a worker

SCHOTTKY_V, SILICON_V = 0.1, 0.75  # forward voltages, at microamperes and at 40 mA
COIL_OHM = 288.0


@pytest.fixture(autouse=True)
def _need_ngspice():
    if shutil.which("ngspice") is None and "CI" not in os.environ:
        pytest.skip("needs ngspice: sudo apt-get install ngspice")


def test_a_gate_gets_enough_when_the_chip_is_at_its_brown_out_level():
    by_hand_V = 4.1 * 9900 / (9900 + 222.2 + 40)
    found_V = spice.gate_on_V(4.1, 1.01, 0.99)
    assert found_V == pytest.approx(by_hand_V, rel=1e-4)
    assert found_V > 2.5  # the transistor's resistance is specified there


def test_a_gate_stays_low_in_reset():
    found_V = spice.gate_in_reset_V(1.01)
    assert found_V == pytest.approx(1e-6 * 10100, rel=0.01)
    assert found_V < 0.1 * c.PARTS["mosfet"]["threshold_min_V"]


def test_a_cell_is_on_long_before_it_is_sampled():
    """By hand: L/R ln 10 for the lead, and less than 3 R C for the gate at its most."""
    found = spice.switching(18.0, 9.5, 4e-6, 1.1, 4.1)
    lead_s, gate_s = 4e-6 / 9.5 * log(10), 3 * 260 * 1.5e-12 * (604 + 4 * 46)
    assert lead_s < found["on_s"] < lead_s + gate_s
    assert found["on_s"] < 0.1 * spice.SETTLE_S
    # 18 V over 9.5 Ohm, 29 mOhm (at 4.5 V), 50 mOhm
    assert found["cell_V"] == pytest.approx(18 * 9.5 / (9.5 + 0.029 + 0.05), rel=0.002)


def test_the_lead_of_a_cell_lifts_the_drain_by_a_diode_only():
    """1.9 A through the diode's 40 mOhm and its junction; without it the transistor breaks down."""
    found_V = spice.switching(18.0, 9.5, 4e-6, 0.5, 5.0)["peak_V"] - 18.0
    assert 0.3 < found_V < 0.6


def test_a_relay_that_closes_on_an_unpowered_board_heats_no_wire():
    """By hand: 1.9 A for no longer than the gate's 10 kOhm take to empty twice its capacitance."""
    found = spice.relay_closes(18.0, 9.5, 0.5, 1e-7)
    assert found["gate_V"] < 1.1
    pulse_s = 2 * 10e3 * 1.5e-12 * 650
    assert 0 < found["heat_A2s"] < (18 / 9.5) ** 2 * pulse_s
    assert found["heat_A2s"] < 0.001 * 290_000e-7  # of the default heat budget


def test_the_sense_amplifier_is_right_at_both_samples():
    """One count is 4.9 mV. Poles: 2 pi 147 kHz and 1 kOhm 1 nF; the multiplexer's 64 pF share."""
    shunt, gain, offset_V, current_A = 1.01, 0.99, 190e-6, 0.2
    found = spice.sense(current_A, 5.0, shunt, gain, offset_V, 0.7)
    final_V = 50 * gain * (current_A * shunt * 0.05 + offset_V)
    assert found["final_V"] == pytest.approx(final_V, abs=1e-5)
    pole_s, filter_s = 1 / (2 * pi * 0.7 * 210e3), 1e-6
    slow = (pole_s * exp(-32e-6 / pole_s) - filter_s * exp(-32e-6 / filter_s)) / (pole_s - filter_s)
    assert found["probe_V"] == pytest.approx(final_V * (1 - slow), abs=1e-5)
    shared = 64e-12 / (1e-9 + 64e-12)
    after_V = (5.0 - final_V) * shared * exp(-12e-6 / (1e3 * 1.064e-9))
    assert found["scan_V"] - final_V == pytest.approx(after_V, rel=0.5, abs=5e-6)


def test_the_largest_current_limit_is_still_measured():
    """1.9 A with 1 % of shunt and gain, and 190 uV: 4.86 V, below the amplifier's 4.97 V."""
    found_V = spice.sense(1.9, 0.0, 1.01, 1.01, 190e-6, 1.0)["final_V"]
    assert found_V == pytest.approx(50 * 1.01 * (1.9 * 1.01 * 0.05 + 190e-6), rel=1e-4)
    short_V = spice.sense(3.0, 0.0, 1.0, 1.0, 0.0, 1.0)["final_V"]
    assert short_V == pytest.approx(4.97, abs=1e-3)


def coil_current_ends_s(coil_H, coil_Ohm, aux_V):
    """A coil whose current flows on through a diode, down to a tenth of 12 V / 288 Ohm."""
    shift_A = SILICON_V / coil_Ohm
    return coil_H / coil_Ohm * log((aux_V / coil_Ohm + shift_A) / (0.1 * 12 / 288 + shift_A))


def test_the_estop_ends_the_coils_current_in_ten_milliseconds():
    for corner in ((0.2, 317.0, 11.4), (1.0, 259.0, 12.6)):
        found_s = spice.estop(*corner)
        assert found_s == pytest.approx(coil_current_ends_s(*corner), rel=0.1)
        assert found_s < 10e-3


@pytest.mark.parametrize("half_period_s", [250e-6, 2e-3])
def test_the_pump_holds_while_the_scan_runs_and_drops_when_it_stops(half_period_s):
    """A period T adds k (V - 2 Vf - v), with k the share of the pump's capacitor, and loses by R C:
    v (exp(T / R C) - 1) = k (V - 2 Vf - v). Then it empties with R C.

    The diodes' voltage at the microamperes where a transfer ends is a guess: 10 %.
    """
    vcc_V, threshold_V = 4.9, 1.1
    found = spice.pump(vcc_V, half_period_s, 1.0, threshold_V)
    hold_s = c.HOLD_OHM * c.HOLD_F
    share = c.PUMP_F / (c.PUMP_F + c.HOLD_F)
    lost = exp(2 * half_period_s / hold_s) - 1
    held_V = (vcc_V - 2 * SCHOTTKY_V) * share / (lost + share)
    assert found["held_V"] == pytest.approx(held_V, rel=0.1)
    assert found["drop_s"] == pytest.approx(hold_s * log(held_V / threshold_V), rel=0.1)
    assert found["held_V"] > c.PARTS["pump_switch"]["on_V"]  # the board's is on at 2.5 V


def test_the_pump_closes_the_relay_within_the_time_that_arming_waits():
    """Each period T adds k (V - 2 Vf - v) and loses a share T / (R C).

    So v_n = u (1 - q^n), with q = (1 - k) exp(-T / R C); the first step comes half a period late.
    """
    vcc_V, half_period_s = 4.9, 2e-3
    threshold_V = c.PARTS["pump_switch"]["threshold_max_V"]
    share = c.PUMP_F / (c.PUMP_F + c.HOLD_F)
    kept = exp(-2 * half_period_s / (c.HOLD_OHM * c.HOLD_F))
    v, periods = 0.0, 0
    while v < threshold_V:
        v, periods = v * kept + share * (vcc_V - 2 * SCHOTTKY_V - v * kept), periods + 1
    by_hand_s = (2 * periods - 1) * half_period_s
    found_s = spice.pump_starts(vcc_V, half_period_s, threshold_V)
    assert found_s == pytest.approx(by_hand_s, abs=1e-4)
    assert by_hand_s < 20e-3


def test_a_rail_that_is_cut_dies_through_its_divider():
    """R C ln(18 V / 0.8 V) with 40 kOhm; the level's own filter, 7.5 kOhm 100 nF, adds a little."""
    by_hand_s = 40e3 * 1e-6 * log(18.0 / 0.8)
    found_s = spice.rail_dies(18.0, 1e-6)
    assert by_hand_s < found_s < by_hand_s + 4e3 * 1e-6
    by_rule_s = rules.CUT_S - rules.RELAY_S - rules.COIL_S - 0.125  # the pump's last: the guide
    assert found_s < by_rule_s


def test_the_start_button_pulls_the_relay_in_once_and_not_when_it_sticks():
    """Pressed: the capacitor empties into the coil. Stuck: 1 kOhm feeds 288 Ohm."""
    aux_V, capacitor_F = 11.4, 0.8 * 1000e-6
    ends_V = aux_V * COIL_OHM / (COIL_OHM + 1000)
    tau_s = capacitor_F * COIL_OHM * 1000 / (COIL_OHM + 1000)
    pressed_V = ends_V + (aux_V - ends_V) * exp(-50e-3 / tau_s)
    assert spice.start(aux_V, 0.8, stuck=False) == pytest.approx(pressed_V, rel=0.01)
    assert pressed_V > spice.PULL_IN * 12
    stuck_V = spice.start(12.6, 1.2, stuck=True)
    assert stuck_V == pytest.approx(12.6 * COIL_OHM / (COIL_OHM + 1000), rel=0.01)
    assert stuck_V < 0.5 * spice.PULL_IN * 12


def test_a_start_button_that_is_held_feeds_the_relay_after_the_estop_for_a_second_at_most():
    """R C ln(12.6 V / 1.2 V): the firmware drops K1 meanwhile, and then calls the feed stuck."""
    by_hand_s = COIL_OHM * 1.2e-3 * log(12.6 / 1.2)
    found_s = spice.estop_with_start_held(1.2, 12.6)
    assert found_s == pytest.approx(by_hand_s, rel=0.01)
    assert rules.CUT_S < found_s < 1.0


def test_the_leak_cut_trips_at_75_mA_and_not_at_the_offset():
    """RC to 2.5 V of 5 V plus the comparator's 9 mV; its threshold is 98 mV at 2 V/A."""
    found_s = spice.leak(0.075, -190e-6, 9e-3, 1.11)
    by_hand_s = (1.11**2 * 100e3 * 1e-6) * -log(1 - (2.5 + 9e-3) / 5)
    assert found_s == pytest.approx(by_hand_s, rel=0.02)
    with pytest.raises(spice.NoSpiceError, match="gave no off"):
        spice.leak(0.02, 190e-6, -9e-3, 1.0)


def test_a_missing_simulator_is_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(spice.NoSpiceError, match="apt-get install ngspice"):
        spice.gate_in_reset_V(1.0)


@pytest.mark.slow
def test_the_table_of_the_guide_is_what_every_corner_gives():
    page = (spice.c.Path(__file__).parents[3] / "docs/how-to/build-a-board.md").read_text("utf-8")
    assert spice.table() in page
