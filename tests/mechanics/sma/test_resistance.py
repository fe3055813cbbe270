"""The wire's resistance by phase, temperature, strain and R-phase, against the printed law."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hil.mechanics.sma.limits import CellWire
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.wire import SmaWire, SmaWires, advance, ohm_per_m_of, wire_laws

MOVED = Resistivity(
    martensite_per_K=1e-3, austenite_per_K=4e-4, at_C=20.0, per_strain=2.0, strain=0.04,
    r_phase_Ohm_per_m=140.0, R_s_C=60.0, R_f_C=50.0,
)  # fmt: skip
WIRE = SmaWire(resistivity=MOVED)


def ohm(T_C, xi, strain):
    return ohm_per_m_of(wire_laws([WIRE])[0], T_C, xi, strain)


def test_martensite_and_austenite_have_their_own_temperature_coefficients():
    assert ohm(120.0, 0.0, 0.0) == pytest.approx(126.0 * 1.1)
    assert ohm(120.0, 1.0, 0.0) == pytest.approx(113.0 * 1.04)


def test_a_wire_as_long_as_austenite_has_the_mixture_of_its_phases():
    assert ohm(20.0, 0.0, 0.0) == pytest.approx(126.0)
    assert ohm(100.0, 0.25, 0.0) == pytest.approx(0.75 * 126.0 * 1.08 + 0.25 * 113.0 * 1.032)


def test_strain_at_constant_volume_changes_length_and_cross_section():
    small = 1e-4  # of second order: (1 + e)^2
    assert ohm(20.0, 0.0, small) / 126.0 == pytest.approx((1.0 + small) ** 2, abs=2e-8)


@pytest.mark.parametrize(("T_C", "share"), [(61.0, 0.0), (55.0, 0.5), (50.0, 1.0), (30.0, 1.0)])
def test_below_its_start_the_parent_phase_turns_into_r_phase(T_C, share):
    austenite = 113.0 * (1.0 + 4e-4 * (T_C - 20.0))
    assert ohm(T_C, 1.0, 0.0) == pytest.approx(austenite + share * (140.0 - austenite))


def test_without_a_table_only_the_fraction_moves_the_resistance():
    law = wire_laws([SmaWire()])[0]
    assert ohm_per_m_of(law, 150.0, 0.5, 0.04) == ohm_per_m_of(law, 20.0, 0.5, 0.0) == 119.5


def test_the_extremes_bound_every_state():
    low, high = WIRE.extremes_Ohm_per_m(0.0, 150.0)
    found = [
        ohm(T, xi, e)
        for T in np.linspace(0.0, 150.0, 61)
        for xi in np.linspace(0.0, 1.0, 11)
        for e in (0.0, 0.02, 0.04)
    ]
    assert low <= min(found)
    assert high >= max(found)
    assert low == pytest.approx(min(found), rel=1e-3)
    assert high == pytest.approx(max(found), rel=1e-3)


@pytest.mark.parametrize(("per_K", "r_phase", "martensite"), [(1e-3, 116, 126), (-1e-3, 110, 100)])
def test_the_extremes_hold_the_vertex_of_the_r_phase(per_K, r_phase, martensite):
    """Of 20 001 temperatures the least is 115.56 Ohm/m, and the greatest 110.44, at 40.8 degC."""
    law = Resistivity(0.0, per_K, 25.0, 0.0, r_phase, 60.0, 30.0)
    wire = SmaWire(resistivity=law, martensite_Ohm_per_m=martensite)
    T = np.linspace(-20.0, 80.0, 20_001)
    parent = 113.0 * (1.0 + per_K * (T - 25.0))
    parent += (r_phase - parent) * np.clip((60.0 - T) / 30.0, 0.0, 1.0)
    low, high = wire.extremes_Ohm_per_m(-20.0, 80.0)
    assert low == pytest.approx(min(martensite, parent.min()), abs=1e-6)
    assert high == pytest.approx(max(martensite, parent.max()), abs=1e-6)


def test_a_boards_limits_take_the_extremes():
    cell = CellWire("a.1", WIRE, temperature_max_C=150.0)
    low, high = WIRE.extremes_Ohm_per_m(-20.0, 150.0)
    assert cell.ordinary_A(5.0) == pytest.approx(5.0 / (0.1 * low))
    assert cell.heating_K_per_A2s == pytest.approx(high / WIRE.capacity_J_per_m_K)


def test_a_held_wire_settles_where_the_power_of_its_own_resistance_leaves_it():
    fed = replace(WIRE, supply_V=2.2)
    wires = SmaWires([fed], np.ones(1))
    before, after = np.zeros((2, 1))
    wires.reset(before, after)
    for _ in range(4000):
        wires.step(np.ones(1), 0.01, before, after)
    power_W_per_m = 2.2**2 / (wires.resistance_Ohm[0] * 0.1)
    assert wires.resistance_Ohm[0] == pytest.approx(
        0.1 * ohm(wires.T_C[0], wires.xi[0], 0.04 * (1 - wires.xi[0]))
    )
    assert fed.loss_W_per_m_K * (wires.T_C[0] - 25.0) == pytest.approx(power_W_per_m, rel=1e-4)
    assert wires.current_A[0] == pytest.approx(2.2 / wires.resistance_Ohm[0])


def test_a_cold_wire_begins_with_the_resistance_of_strained_martensite():
    wires = SmaWires([WIRE], np.ones(1))
    before, after = np.zeros((2, 1))
    wires.reset(before, after)
    assert wires.resistance_Ohm[0] == pytest.approx(0.1 * 126.0 * 1.005 * 1.08)


def test_a_step_takes_the_resistance_of_its_beginning_an_error_of_the_first_order():
    """Against scipy; cold martensite at 4 V and duty 0.4 for 0.2 s, 10 ms to 1.25 ms a step."""
    law = wire_laws([replace(WIRE, supply_V=4.0)])[0]

    def warms(_, T_C):
        return (0.4 * law.E2 / ohm(T_C[0], 0.0, 0.04) - law.G * (T_C[0] - 25.0)) / law.C

    exact_C = solve_ivp(warms, (0.0, 0.2), [25.0], rtol=1e-10, atol=1e-10).y[0, -1]
    errors_K = []
    for n_steps in (20, 40, 80, 160):
        T_C = 25.0
        for _ in range(n_steps):
            T_C, _ = advance(law, 0.4, T_C, 0.0, 0.2 / n_steps)
        errors_K.append(T_C - exact_C)
    assert errors_K[0] < 0.03
    assert np.divide(errors_K[:-1], errors_K[1:]) == pytest.approx(2.0, abs=0.02)


def test_r_phase_must_begin_above_where_it_is_complete():
    with pytest.raises(ValueError, match="R_f_C must be below R_s_C"):
        Resistivity(R_s_C=40.0, R_f_C=50.0)
