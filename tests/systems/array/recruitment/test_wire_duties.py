"""Duties of wires: their heat content obeys its law, and limits hold whatever is asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.experiment.load import load
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.wire import SmaWire, SmaWires
from hil.systems.array.build_modulation import _budget
from hil.systems.array.recruitment.wire_duties import Budget, WireDuties

NO_BUDGET = Budget(*np.array([[1e9], [1.0], [0.0], [1.0]]))
COMMAND_S = 0.004


class Wire:
    """One wire without a load, stepped exactly."""

    def __init__(self, T_C=25.0, xi=0.0, **values):
        self.wire = SmaWire(**values)
        self.wires = SmaWires([self.wire], np.ones(1))
        self.wires.reset(np.zeros(1), np.zeros(1))
        self.wires.T_C[0], self.wires.xi[0] = T_C, xi

    def branches_C(self, fraction):
        return self.wires.branches_C(fraction)

    def heat(self):
        wire, wires = self.wire, self.wires
        return wire.capacity_J_per_m_K * wires.T_C[0] + wire.latent_J_per_m * wires.xi[0]

    def advance(self, duty, pieces=1):
        for _ in range(pieces):
            self.wires.step(np.atleast_1d(duty), COMMAND_S / pieces, np.zeros(1), np.zeros(1))
        return self.wires.T_C[0]


def duties(limit_C=1000.0, budget=NO_BUDGET, response_s=0.5, duty_min=16 / 255, band=0.005):
    return WireDuties(
        np.array([limit_C]), budget, response_s=response_s, command_s=COMMAND_S,
        duty_min=duty_min, dead_band=band,
    )  # fmt: skip


def asked(controller, wire, fraction):
    able = np.ones(1, dtype=bool)
    return float(controller.step(np.array([fraction]), wire.wires.xi, able, wire)[0])


def test_the_heat_content_approaches_that_of_the_fraction_exponentially():
    """h* = C T* + L xi* with T* on the heating branch, 88 + 0.3 (98 - 88) degC; T_a = 25 degC."""
    wire = Wire(T_C=60.0, supply_V=4.0)
    controller = duties(duty_min=0.0)
    C, L = wire.wire.capacity_J_per_m_K, wire.wire.latent_J_per_m
    goal, start = C * 91.0 + L * 0.3, wire.heat()
    for k in range(1, 200):
        wire.advance(asked(controller, wire, 0.3))
        expected = goal + (start - goal) * np.exp(-k * COMMAND_S / 0.5)
        # holding a duty over a command is the error: 4 ms of 0.5 s
        assert wire.heat() == pytest.approx(expected, abs=0.01 * (goal - start))


def test_a_wire_that_must_transform_back_goes_to_its_cooling_branch():
    wire = Wire(T_C=98.0, xi=1.0, supply_V=4.0)
    controller = duties(response_s=0.1)
    for _ in range(2000):
        wire.advance(asked(controller, wire, 0.4))
    assert wire.wires.xi[0] == pytest.approx(0.4, abs=0.006)  # a dead band and a step of duty
    assert 66.0 - 0.5 <= wire.wires.T_C[0] <= 92.0  # between 62 + 0.4 (72 - 62) and the heating one


def test_a_wire_that_is_not_needed_is_off():
    wire = Wire(T_C=80.0, xi=0.0, supply_V=4.0)
    assert asked(duties(), wire, 0.0) == 0.0


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(
    limit_C=st.floats(40.0, 180.0),
    supply_V=st.floats(1.5, 40.0),
    response_s=st.floats(0.01, 2.0),
    fraction=st.floats(0.5, 1e6),
)
def test_no_wire_gets_hotter_than_its_limit_whatever_is_asked(
    limit_C, supply_V, response_s, fraction
):
    wire = Wire(supply_V=supply_V)
    controller = duties(limit_C, response_s=response_s)
    hottest_C = max(wire.advance(asked(controller, wire, fraction)) for _ in range(300))
    assert hottest_C <= limit_C + 1e-9


@pytest.mark.parametrize(
    ("resistivity", "limit_C"),
    [(Resistivity(austenite_per_K=-3e-4), 110.0), (Resistivity(1e-3, 5e-4, at_C=120.0), 80.0)],
)
def test_the_limit_holds_where_temperature_moves_the_resistance(resistivity, limit_C):
    """The plant's resistance follows its temperature eight times in a command."""
    wire = Wire(supply_V=4.0, resistivity=resistivity)
    controller = duties(limit_C, response_s=2.0)
    hottest_C = max(wire.advance(asked(controller, wire, 5.0), pieces=8) for _ in range(2500))
    assert limit_C - 3.0 < hottest_C <= limit_C


@pytest.mark.parametrize("per_K", [0.0, 1.5e-3])
def test_boards_count_the_current_of_the_least_resistance(per_K, pytestconfig):
    """Of the phases' 126 and 113 Ohm/m at 120 degC, austenite's at -20 degC, the coldest."""
    config = load(
        pytestconfig.rootpath / "configs/wires4/modulate.toml",
        [f"model.arrays.muscle.activation.resistivity.{key}={value}" for key, value in
         (("martensite_per_K", per_K), ("austenite_per_K", per_K), ("at_C", 120.0))],
    )  # fmt: skip
    cell_m = config.system().cells[0].wire.cell_m
    assert _budget(config).least_Ohm == pytest.approx(cell_m * 113.0 * (1.0 - per_K * 140.0))


def test_the_heat_that_boards_count_stays_within_the_budget():
    """B' = D I^2 - B / tau of the plant's own current, from an eighth on, for 2.4 s.

    Of austenite, whose I^2 is 1.24 times that of martensite, and at nearly full duty.
    """
    most_A2s, tau_s, full_A2 = 0.077, 0.683, (4.0 / 11.3) ** 2
    wire = Wire(T_C=100.0, xi=1.0, supply_V=4.0)
    controller = duties(budget=Budget(*np.array([[most_A2s], [tau_s], [1e-3], [11.3]])))
    used_A2s = [most_A2s / 8.0]
    for _ in range(600):
        duty = asked(controller, wire, 1e3)
        wire.advance(duty)
        kept = np.exp(-COMMAND_S / tau_s)
        used_A2s.append(used_A2s[-1] * kept + duty * full_A2 * tau_s * (1.0 - kept))
    assert 0.9 * most_A2s < max(used_A2s) <= most_A2s


def test_the_limit_is_used_and_not_only_kept():
    wire = Wire(supply_V=4.0)
    controller = duties(90.0)
    for _ in range(1500):
        wire.advance(asked(controller, wire, 5.0))
    assert 89.0 < wire.wires.T_C[0] <= 90.0  # a step of duty is 0.5 K of the steady temperature
    assert controller.limited[0]


def test_a_force_that_is_too_small_never_raises_the_temperature_limit():
    """A slack wire pulls nothing however hot it is: the twin's temperature counts."""
    wire = Wire(supply_V=4.0)
    controller = duties(110.0)
    able = np.ones(1, dtype=bool)
    for _ in range(1500):
        duty = controller.step(np.array([1.0]), np.array([0.0]), able, wire)
        assert wire.advance(duty) <= 110.0


def test_the_mean_of_duties_below_the_smallest_one_is_what_was_asked():
    """20 V at 0.1 m: full power would be a hundred times what a wire at 91 degC loses."""
    wire = Wire(T_C=90.0, xi=0.2, supply_V=20.0)
    controller = duties(response_s=1.0)
    given_duties, lost_W_per_m = [], []
    for _ in range(3000):
        given_duties.append(asked(controller, wire, 0.3))
        lost_W_per_m.append(wire.wire.loss_W_per_m_K * (wire.wires.T_C[0] - 25.0))
        wire.advance(given_duties[-1])
    assert {0.0, 16 / 255} <= set(given_duties[10:]) <= {0.0, 16 / 255, 17 / 255}
    r = 126.0 + 0.3 * (113.0 - 126.0)
    power = np.mean(given_duties[1000:]) * wire.wire.field_V_per_m**2 / r
    assert power == pytest.approx(np.mean(lost_W_per_m[1000:]), rel=0.02)


def test_the_branches_of_wires_under_stress_are_those_of_their_law(pytestconfig):
    """The law gives the fraction at a temperature, independently of the knots of the kernel."""
    system = load(
        pytestconfig.rootpath / "configs/wires4/hold.toml",
        ["model.arrays.muscle.activation.kind='sma'",
         "model.arrays.muscle.activation.pretension_N=0.5"],
    ).system()  # fmt: skip
    loaded, wire = system.cells[0].loaded, system.cells[0].wire
    stress_Pa = 0.5 / (0.25 * np.pi * wire.diameter_m**2)
    for fraction in (0.1, 0.37, 0.5, 0.8):
        hot_C, cold_C = system.branches_C(np.full(4, fraction))[:, 0]
        law = loaded.law
        assert law.branch(law.heating, hot_C, stress_Pa) == pytest.approx(fraction, abs=0.01)
        assert law.branch(law.cooling, cold_C, stress_Pa) == pytest.approx(fraction, abs=0.01)
