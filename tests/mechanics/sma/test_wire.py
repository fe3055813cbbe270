"""The SMA wire against the maker's figures, SciPy's integrator, energy and the play operator."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from hil.mechanics.sma import wire as sma
from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.model import cells
from hil.systems.array.model.activation import Activation, CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem

WIRE = SmaWire()
# Dynalloy's wire table, 0.10 mm, HT
MAKERS_CURRENT_A = 0.2
CONTRACTION_S = 1.0
COOLING_S = 0.9
LAST_DEFORMATION = 0.5 / 4.0  # of 4 % strain: not part of the maker's cooling times
WITHIN = 0.15  # the maker calls its figures approximate


class Cell:
    """One thermal cell, driven by duties; its state at every period."""

    def __init__(self, wire=WIRE, period_s=0.001):
        self.wire, self.period_s = wire, period_s
        self._activation = Activation([CellActivation(1.0, "thermal", wire=wire)], period_s)
        self.wires = self._activation.wires

    @property
    def state(self):
        return self.wires.T_C[0], self.wires.xi[0]

    def step(self, duty):
        self._activation.step(np.array([float(duty)]))
        return self.state

    def at_current(self, current_A):
        """Hold a current (rms over the PWM), whatever the resistance."""
        on_A = self.wires.supply_V[0] / self.wires.resistance_Ohm[0]
        return self.step((current_A / on_A) ** 2)

    def contract(self, n_max=10000):
        """Time to full contraction at the maker's current."""
        for k in range(1, n_max):
            if self.at_current(MAKERS_CURRENT_A)[1] == 1.0:
                return k * self.period_s
        raise AssertionError("never contracts")

    def cool(self, until_xi, n_max=10000):
        for k in range(1, n_max):
            if self.step(0.0)[1] <= until_xi:
                return k * self.period_s
        raise AssertionError("never cools")


def scipy_path(wire, duty, T_C, xi, times_s):
    """The same law by solve_ivp, restarted where the branch is met, left or ended."""
    C, L, G = wire.capacity_J_per_m_K, wire.latent_J_per_m, wire.loss_W_per_m_K
    E = wire.field_V_per_m
    M, A = wire.martensite_Ohm_per_m, wire.austenite_Ohm_per_m

    def net(T, xi):
        return duty * E**2 / (M + (A - M) * xi) - G * (T - wire.ambient_C)

    t, path = 0.0, []
    times_s = list(times_s)
    while times_s:
        heats = net(T_C, xi) > 0.0
        low, width = (
            (wire.A_s_C, wire.A_f_C - wire.A_s_C)
            if heats
            else (wire.M_f_C, wire.M_s_C - wire.M_f_C)
        )
        end_xi = 1.0 if heats else 0.0
        meets = low + xi * width
        along = xi != end_xi and (abs(T_C - meets) < 1e-9)
        if along:
            stop = low + end_xi * width

            def slope(_, y, low=low, width=width):
                return [net(y[0], (y[0] - low) / width) / (C + L / width)]
        else:
            stop = meets if xi != end_xi else np.inf

            def slope(_, y, xi=xi):
                return [net(y[0], xi) / C]

        def reached(_, y, stop=stop):
            return y[0] - stop if np.isfinite(stop) else 1.0

        reached.terminal = True
        reached.direction = 1.0 if heats else -1.0
        answer = solve_ivp(
            slope, (t, times_s[-1]), [T_C], events=reached, dense_output=True,
            rtol=1e-11, atol=1e-11, method="DOP853",
        )  # fmt: skip
        ended = answer.status == 1
        while times_s and times_s[0] <= answer.t[-1] + 1e-12:
            T = answer.sol(times_s.pop(0))[0]
            path.append((T, (T - low) / width if along else xi))
        t, T_C = answer.t[-1], stop if ended else answer.y[0, -1]
        if along:
            xi = end_xi if ended else (T_C - low) / width
    return np.array(path)


def test_the_makers_current_contracts_the_wire_in_the_makers_time():
    assert Cell().contract() == pytest.approx(CONTRACTION_S, rel=WITHIN)


def test_still_air_cools_the_wire_in_the_makers_time():
    cell = Cell()
    cell.contract()
    assert cell.cool(LAST_DEFORMATION) == pytest.approx(COOLING_S, rel=WITHIN)


def test_the_printed_heats_and_one_convection_cannot_give_both_times():
    """Which is why the specific heat is an effective one."""
    for h in np.arange(40.0, 241.0, 10.0):
        cell = Cell(
            replace(WIRE, specific_heat_J_per_kg_K=837.0, convection_W_per_m2_K=float(h)), 0.005
        )
        try:
            up = cell.contract(4000)
        except AssertionError:
            continue  # too windy to get there at all
        down = cell.cool(LAST_DEFORMATION)
        assert abs(up / CONTRACTION_S - 1) > WITHIN or abs(down / COOLING_S - 1) > WITHIN


@pytest.mark.parametrize("period_s", [0.0005, 0.001, 0.01])
@pytest.mark.parametrize("supply_V", [2.52, 12.0, 200.0])
def test_heating_and_cooling_follow_scipy_at_any_period(period_s, supply_V):
    wire = replace(WIRE, supply_V=supply_V, austenite_Ohm_per_m=150.0)
    n_on = max(2, round(1.2 * (2.52 / supply_V) ** 2 / period_s))
    n_off = round(0.8 / period_s)
    cell = Cell(wire, period_s)
    T, xi = cell.state
    up = np.array([cell.step(1.0) for _ in range(n_on)])
    exact = scipy_path(wire, 1.0, T, xi, np.arange(1, n_on + 1) * period_s)
    # Over a 16th of a branch the linearised power is off by (dr / 16 r)^2 / 3 = 4.7e-5 at most,
    # of a branch's heat of 64 K (10 K and the latent heat).
    np.testing.assert_allclose(up[:, 0], exact[:, 0], atol=3e-3)
    np.testing.assert_allclose(up[:, 1], exact[:, 1], atol=4.7e-5)
    T, xi = cell.state
    down = np.array([cell.step(0.0) for _ in range(n_off)])
    exact = scipy_path(wire, 0.0, T, xi, np.arange(1, n_off + 1) * period_s)
    # Without power every piece is exponential: only the reference's tolerance is left.
    np.testing.assert_allclose(down, exact, rtol=1e-8, atol=1e-8)


def test_ten_milliseconds_at_once_are_ten_times_one():
    fine, coarse = Cell(period_s=0.001), Cell(period_s=0.01)
    rng = np.random.default_rng(3)
    for _ in range(400):
        duty = float(rng.random() < 0.6)
        for _ in range(10):
            fine.step(duty)
        coarse.step(duty)
        # linearised power: (13 / 16 / 126)^2 / 3 = 1.4e-5 of 64 K, of a branch
        np.testing.assert_allclose(coarse.state[0], fine.state[0], atol=9e-4)
        np.testing.assert_allclose(coarse.state[1], fine.state[1], atol=1.4e-5)


def test_electrical_energy_is_stored_latent_or_carried_off():
    """Integrals of P and of the loss by Simpson's rule over periods of 0.1 ms."""
    cell = Cell(period_s=1e-4)
    wire = cell.wire
    rows = [(*cell.state, 0.0)]
    for k in range(30000):
        duty = 1.0 if k < 13000 else 0.35
        T, xi = cell.step(duty)
        rows.append((T, xi, duty))
    T, xi, duty = np.array(rows).T
    r = wire.martensite_Ohm_per_m + (wire.austenite_Ohm_per_m - wire.martensite_Ohm_per_m) * xi
    middle = (1.0 / r[1:] + 1.0 / r[:-1]) / 2.0
    electrical = np.sum(duty[1:] * wire.field_V_per_m**2 * middle) * 1e-4
    lost = np.sum((T[1:] + T[:-1]) / 2.0 - wire.ambient_C) * wire.loss_W_per_m_K * 1e-4
    stored = wire.capacity_J_per_m_K * (T[-1] - T[0])
    latent = wire.latent_J_per_m * (xi[-1] - xi[0])
    assert xi.max() == 1.0
    assert electrical == pytest.approx(stored + latent + lost, rel=1e-6)  # trapezoids of 0.1 ms


def test_a_steady_duty_settles_where_power_is_loss():
    cell = Cell(period_s=0.01)
    for _ in range(40000):  # on the branch, growing conductance slows it to a time constant of 11 s
        T, xi = cell.step(0.5)
    assert 0.0 < xi < 1.0
    power = 0.5 * WIRE.field_V_per_m**2 / (WIRE.resistance_Ohm(xi) / WIRE.length_m)
    assert power == pytest.approx(WIRE.loss_W_per_m_K * (T - WIRE.ambient_C), rel=1e-9)


wires = st.builds(
    SmaWire,
    supply_V=st.floats(0.1, 1000.0),
    length_m=st.floats(0.01, 2.0),
    n_wires=st.integers(1, 8),
    wiring=st.sampled_from(["series", "parallel"]),
    austenite_Ohm_per_m=st.floats(60.0, 250.0),
    ambient_C=st.floats(-40.0, 60.0),
)
duties = st.lists(
    st.tuples(st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0])), st.integers(1, 400)),
    min_size=1, max_size=12,
)  # fmt: skip


@given(wire=wires, drive=duties, period_s=st.sampled_from([1e-4, 1e-3, 1e-2]))
def test_the_wire_stays_between_its_branches_above_the_air_and_finite(wire, drive, period_s):
    cell = Cell(wire, period_s)
    for duty, n in drive:
        for _ in range(n):
            T_was, xi_was = cell.state
            T, xi = cell.step(duty)
            assert np.isfinite([T, xi, cell.wires.current_A[0], cell.wires.resistance_Ohm[0]]).all()
            assert T >= wire.ambient_C
            # Where T comes from xi, or xi from T, rounding is a few 1e-16 of T over 10 K.
            assert wire.heating_branch(T) - 1e-12 <= xi <= wire.cooling_branch(T) + 1e-12
            if T > T_was:
                assert xi >= xi_was
            if T < T_was:
                assert xi <= xi_was


@pytest.mark.parametrize("duty", [np.nan, -1.0, 7.0])
def test_a_duty_out_of_range_is_off_or_full(duty):
    odd, plain = Cell(), Cell()
    for _ in range(100):
        odd.step(duty)
        plain.step(1.0 if duty > 1.0 else 0.0)
    assert odd.state == plain.state


@given(outer=st.floats(89.0, 97.0), inner=st.floats(30.0, 88.0), power=st.floats(1.2, 4.0))
def test_a_closed_excursion_returns_to_its_point(outer, inner, power):
    """Heat to T1, cool to any T2, heat to T1 again: xi is that of T1 and follows its branch."""
    cell = Cell(replace(WIRE, supply_V=2.52 * power))
    while cell.state[0] < outer:
        cell.step(1.0)
    T_top, xi_top = cell.state
    while cell.state[0] > inner:
        T, xi = cell.step(0.0)
        assert xi == pytest.approx(min(xi_top, WIRE.cooling_branch(T)), abs=1e-12)
    xi_low = cell.state[1]
    while cell.state[0] < T_top:
        T, xi = cell.step(1.0)
        assert xi == pytest.approx(max(xi_low, WIRE.heating_branch(T)), abs=1e-12)


def test_a_minor_loop_lies_inside_the_major_one():
    cell = Cell()
    while cell.state[1] < 0.5:
        cell.step(1.0)
    T_top, half = cell.state
    while cell.state[0] > 68.0:
        cell.step(0.0)
    assert cell.state[1] == half  # held all the way down to the cooling branch
    while cell.state[0] > 65.0:
        cell.step(0.0)
    assert cell.state[1] == pytest.approx(WIRE.cooling_branch(cell.state[0]), abs=1e-9)
    assert T_top > WIRE.A_s_C


def test_wires_in_series_share_the_voltage_and_in_parallel_the_current():
    one = SmaWire(supply_V=3.0)
    series = replace(one, n_wires=4, supply_V=12.0)
    parallel = replace(one, n_wires=4, wiring="parallel")
    runs = [Cell(w) for w in (one, series, parallel)]
    for _ in range(500):
        states = [cell.step(0.7) for cell in runs]
        np.testing.assert_allclose(states[1:], [states[0]] * 2, rtol=1e-12)
    currents = [cell.wires.current_A[0] for cell in runs]
    assert currents == pytest.approx([currents[0], currents[0], 4.0 * currents[0]])
    resistances = [cell.wires.resistance_Ohm[0] for cell in runs]
    assert resistances == pytest.approx(
        [1.0 * resistances[0], 4 * resistances[0], resistances[0] / 4]
    )


def test_the_default_supply_drives_the_makers_current_through_a_cold_wire():
    for wiring in ("series", "parallel"):
        cell = Cell(SmaWire(n_wires=3, wiring=wiring, length_m=0.37))
        per_wire = cell.wires.supply_V[0] / cell.wires.resistance_Ohm[0]
        per_wire /= 1 if wiring == "series" else 3
        assert per_wire == pytest.approx(MAKERS_CURRENT_A)


def test_transitions_out_of_order_are_refused():
    with pytest.raises(ValueError, match="A_s_C must be below"):
        SmaWire(A_s_C=99.0)
    with pytest.raises(ValueError, match="M_f_C must not be above"):
        SmaWire(M_f_C=90.0, M_s_C=95.0)


@pytest.mark.parametrize(
    ("current_A", "half_s", "as_timed", "aligned"),
    [(MAKERS_CURRENT_A, 0.70, 0.65, 0.20), (0.175, 1.21, 0.15, 0.15)],
)
def test_the_wire_rises_as_the_papers_sigmoid_later_by_what_its_current_says(
    current_A, half_s, as_timed, aligned
):
    """Where they agree: at 0.175 A. Largest differences found: 0.632 and 0.174, 0.143 and 0.137.

    The paper's wire is half at 1.2 s, longer than the maker's needs in all: as timed they differ
    by what the sigmoid lacks when the wire is done. With the halves aligned, what is left is a
    ramp with corners beside smooth tails (0.12 at its foot, 1 - 0.88) and 10-90 % in 0.56 s or
    1.22 s beside 0.88 s.
    """
    wire = rise_of_the_wire(current_A)
    half = 1e-3 * np.argmax(wire >= 0.5)
    t = 1e-3 * np.arange(1, len(wire) + 1)
    assert half == pytest.approx(half_s, abs=0.02)
    assert np.abs(wire - 1.0 / (1.0 + np.exp(6.0 - 5.0 * t))).max() < as_timed
    shifted = t + 1.2 - half
    assert np.abs(wire - 1.0 / (1.0 + np.exp(6.0 - 5.0 * shifted))).max() < aligned


def rise_of_the_wire(current_A):
    cell = Cell()
    return np.array([cell.at_current(current_A)[1] for _ in range(3000)])


def test_the_wire_falls_as_the_papers_sigmoid_within_a_third():
    """From 3 s at 0.2 A. Largest difference 0.315 as timed, 0.111 with the halves aligned.

    Half at 0.93 s beside 1.2 s: 0.27 s at the steepest slope, 5/4 a second, is 0.34.
    """
    cell = Cell()
    for _ in range(3000):
        cell.at_current(MAKERS_CURRENT_A)
    wire = np.array([cell.step(0.0)[1] for _ in range(4000)])
    half = 1e-3 * np.argmax(wire <= 0.5)
    t = 1e-3 * np.arange(1, 4001)
    assert np.abs(wire - 1.0 / (1.0 + np.exp(5.0 * t - 6.0))).max() < 0.34
    shifted = t + 1.2 - half
    assert np.abs(wire - 1.0 / (1.0 + np.exp(5.0 * shifted - 6.0))).max() < 0.15


MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
MIXED = [CellActivation(1.0), CellActivation(1.0, "sigmoid"), CellActivation(4.0, "thermal")] * 2


@pytest.fixture(scope="module")
def miga6():
    return CellArray.from_fingerprint("-:1 | &1:2 | &1:1 &2:2 | &7:-1", cell=MIGA, mass_kg=0.01583)


def test_cells_of_all_kinds_stand_side_by_side(miga6):
    system = ArraySystem(miga6, MIXED, 0.001)
    alone = [Activation([c], 0.001) for c in MIXED]
    rng = np.random.default_rng(1)
    for k in range(3000):
        if k % 100 == 0:
            duty = rng.random(6)
        system.step(duty)
        for n, one in enumerate(alone):
            one.step(duty[n : n + 1])
            assert system.activation.F_N[n] == one.F_N[0]
            assert system.activation.F_before_N[n] == one.F_before_N[0]
    assert np.isnan(system.activation.wires.T_C[[0, 1, 3, 4]]).all()


def test_a_mask_is_a_duty_of_nothing_or_all(miga6):
    masks, duties = ArraySystem(miga6, MIXED, 0.001), ArraySystem(miga6, MIXED, 0.001)
    for k in range(2000):
        mask = np.full(6, k < 1200, dtype=np.uint8)
        masks.step(mask)
        duties.step(mask.astype(float))
    np.testing.assert_array_equal(masks.y, duties.y)


def test_a_thermal_array_rests_at_ambient_and_pulls_its_force_when_hot(miga6):
    system = ArraySystem(miga6, [CellActivation(4.0, "thermal")] * 6, 0.001)
    start = system.y.copy()
    for _ in range(1000):
        system.step(np.zeros(6))
    np.testing.assert_array_equal(system.y, start)
    assert (system.activation.wires.T_C == 25.0).all()
    for _ in range(8000):
        system.step(np.ones(6))
    assert (system.activation.F_N == 4.0).all()
    final = miga6.force_at("array.right_N", miga6.solve_statics(np.full(6, 4.0)).tension_N)
    assert system.y[miga6.outputs.index("array.right_N")] == pytest.approx(final, rel=1e-3)


def test_every_index_of_a_law_finds_the_wires_own_value():
    law = sma.wire_laws([WIRE])[0]
    temperatures = [law.T_a, law.M_f, law.M_s, law.A_s, law.A_f]
    named = [WIRE.ambient_C, WIRE.M_f_C, WIRE.M_s_C, WIRE.A_s_C, WIRE.A_f_C]
    np.testing.assert_array_equal(temperatures, named)
    assert law.G == WIRE.loss_W_per_m_K
    assert law.C == WIRE.capacity_J_per_m_K
    assert law.L == WIRE.latent_J_per_m
    assert law.E2 == WIRE.field_V_per_m**2
    assert law.cell_V == WIRE.cell_V
    assert law.r_martensite + law.r_change == pytest.approx(WIRE.austenite_Ohm_per_m)
    # of the cell, from what a metre has: resistance_Ohm(0) is all martensite
    assert law.cell_Ohm_m * law.r_martensite == pytest.approx(WIRE.resistance_Ohm(0.0))
