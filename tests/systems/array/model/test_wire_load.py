"""Wires under the stress of their own cells: exact limits, statics, energy, loops, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import hil
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.mechanics.sma.stress import Branch, LineBranch, StressLaw
from hil.mechanics.sma.stressed import (
    HEATING_KNOTS,
    PIECES,
    advance,
    constants_of,
    knots_C,
    places,
    settled,
    stroke,
)
from hil.mechanics.sma.wire import SmaWire, wire_laws
from hil.runs.replay import replay
from hil.systems.array.build_wire import at_rest, loaded_wire
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.cell_kinds import CustomCellTable
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_load import Loaded, stress_Pa
from hil.systems.array.tables import SmaTable
from hil.systems.array.wires.cells import cell_branches

FORCE_ON_N, K_AE, PERIOD_S = 6.8, 10160.0, 0.001
WIRE = SmaWire(n_wires=4, supply_V=10.0)
AREA_m2 = np.pi * WIRE.diameter_m**2  # of four wires
MEASURED = StressLaw(
    Branch(78.3, 8.3e6, 1.05, 8.2, -3.9, 0.52, 2.0e-9),
    Branch(56.3, 7.5e6, 1.23, 8.0, -3.4, 0.52, 0.8e-9),
    stroke_min=0.02, stroke_max=0.04, stroke_rate_per_Pa=1.2e-8,
    modulus_A_Pa=70e9, modulus_M_Pa=28e9,
)  # fmt: skip
UNMOVED = StressLaw(
    LineBranch(93.0, 1e30, 10.0), LineBranch(67.0, 1e30, 10.0),
    stroke_min=0.04, stroke_max=0.04, stroke_rate_per_Pa=1e-8,
)  # fmt: skip
HILL = cells.hill(k_pe_N_per_m=20.0, k_se_N_per_m=611.0, k_ae_N_per_m=K_AE, b_N_s_per_m=50.0)
STIFF = cells.hill(k_pe_N_per_m=20.0, k_se_N_per_m=2500.0, k_ae_N_per_m=K_AE, b_N_s_per_m=50.0)
SHARES = np.linspace(0.0, 1.0, PIECES + 1)
MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.5, k_ae_N_per_m=K_AE, b_N_s_per_m=500.0)


def system(law, pretension_N=0.0, cell=HILL, text="-:4 | &F:-1", period_s=PERIOD_S):
    model = CellArray.from_fingerprint(text, cell=cell, mass_kg=0.02)
    one = CellActivation(FORCE_ON_N, "sma", wire=WIRE, loaded=Loaded(law, pretension_N, K_AE))
    return ArraySystem(model, [one] * model.n_cells, period_s)


def thermal(cell=HILL, text="-:4 | &F:-1"):
    model = CellArray.from_fingerprint(text, cell=cell, mass_kg=0.02)
    one = CellActivation(FORCE_ON_N, "thermal", wire=WIRE)
    return ArraySystem(model, [one] * model.n_cells, PERIOD_S)


@pytest.mark.parametrize("cell", [HILL, MIGA])
def test_a_law_that_stress_does_not_move_is_the_thermal_law(cell):
    text = "-:1 | &1:2 | &1:1 &2:2 | &7:-1"
    new, old = system(UNMOVED, 1.7, cell, text), thermal(cell, text)
    random = np.random.default_rng(0)
    for _ in range(40):
        drive = random.uniform(size=6) * (random.uniform() < 0.6)
        for _ in range(50):
            new.step(drive)
            old.step(drive)
        np.testing.assert_allclose(new.y, old.y, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(new.wires.xi, old.wires.xi, atol=1e-7)
        np.testing.assert_allclose(new.wires.T_C, old.wires.T_C, rtol=1e-7)


@pytest.mark.parametrize("pretension_N", [0.0, 0.5])
def test_at_rest_wire_and_springs_are_in_the_equilibrium_that_a_root_finder_gives(pretension_N):
    s = system(MEASURED, pretension_N)
    T_C = 86.0
    for _ in range(8000):  # held near one temperature until nothing moves
        s.step(np.clip(0.02 * (T_C - s.wires.T_C) + 0.19, 0.0, 1.0))
    xi, c = s.wires.xi[0], constants_of(MEASURED)
    assert 0.1 < xi < 0.9
    pull_N, rest = 4 * pretension_N, stroke(c, pretension_N * 4 / AREA_m2)[0]

    def unbalanced(tension_N):
        """The wire's own stretch, less what the series spring leaves it between fixed ends."""
        contracted = 1.0 - (1.0 - xi) * stroke(c, tension_N / AREA_m2)[0] / rest
        own_m = (tension_N - pull_N - FORCE_ON_N * contracted) / K_AE
        return own_m + (tension_N - pull_N) / 611.0

    expected_N = brentq(unbalanced, 0.0, 20.0, xtol=1e-12)
    assert s.loaded.tension_N == pytest.approx(np.full(4, expected_N), rel=1e-4)
    assert s.y[1] == pytest.approx(4 * (expected_N - pull_N), rel=2e-4)


def test_a_slack_wire_carries_nothing_and_pulls_again_once_its_cell_has_crept_back():
    s = system(MEASURED, 0.05)
    s.linear.x[:] = -1e-3  # the stretch of the four wires, the only states between fixed ends
    s.step(np.zeros(4))
    assert s.loaded.tension_N == pytest.approx(np.zeros(4), abs=0.0)
    for _ in range(300):
        s.step(np.zeros(4))
    assert s.loaded.tension_N == pytest.approx(np.full(4, 0.2), rel=1e-3)  # 0.05 N a wire


def test_heat_given_is_heat_stored_taken_up_by_the_transformation_and_lost():
    """The first law at constant stress; the sum over steps is the trapezoidal rule's."""
    [law] = wire_laws([WIRE])
    c, h = constants_of(MEASURED), 2e-5
    place = places(c, 100e6, stroke(c, 100e6)[1])
    T_C, xi, given_J, lost_J = 25.0, 0.0, 0.0, 0.0
    for k in range(60000):
        duty = 1.0 if k < 30000 else 0.0
        before = T_C, xi
        T_C, xi = advance(law, c.knots_K, place, duty, T_C, xi, h)
        r = WIRE.martensite_Ohm_per_m - 13.0 * 0.5 * (before[1] + xi)
        given_J += h * duty * WIRE.field_V_per_m**2 / r
        lost_J += h * WIRE.loss_W_per_m_K * (0.5 * (before[0] + T_C) - 25.0)
    stored_J = WIRE.capacity_J_per_m_K * (T_C - 25.0) + WIRE.latent_J_per_m * xi
    assert given_J == pytest.approx(stored_J + lost_J, rel=1e-4)
    assert xi > 0.01


def test_stress_that_falls_transforms_without_heat():
    c = constants_of(MEASURED)
    high = places(c, 200e6, stroke(c, 200e6)[1])
    low = places(c, 60e6, stroke(c, 60e6)[1])
    per_xi = WIRE.latent_J_per_m / WIRE.capacity_J_per_m_K
    T_C, xi, _ = settled(c.knots_K, high, per_xi, 100.0, 0.0)
    warm_C, more, _ = settled(c.knots_K, low, per_xi, T_C, xi)
    assert more > xi + 0.1
    lost_J = WIRE.capacity_J_per_m_K * (T_C - warm_C)
    assert lost_J == pytest.approx(WIRE.latent_J_per_m * (more - xi), rel=1e-9)
    on_branch = float(MEASURED.least(warm_C, 60e6))
    assert more == pytest.approx(on_branch, abs=0.01)  # which the knots follow


def test_a_minor_loop_of_heating_returns_to_its_point():
    [law] = wire_laws([WIRE])
    c = constants_of(MEASURED)
    place = places(c, 100e6, stroke(c, 100e6)[1])
    T_C, xi = 25.0, 0.0
    while xi < 0.5:
        T_C, xi = advance(law, c.knots_K, place, 1.0, T_C, xi, 1e-4)
    top_C, top = T_C, xi
    while T_C > top_C - 8.0:  # not as far as the cooling branch
        T_C, xi = advance(law, c.knots_K, place, 0.0, T_C, xi, 1e-4)
    assert xi == top
    while T_C < top_C:
        T_C, xi = advance(law, c.knots_K, place, 1.0, T_C, xi, 1e-5)
    assert T_C - top_C < 0.01
    assert xi == pytest.approx(top, abs=0.005)  # 0.01 K of a branch as steep as 0.25 a kelvin


def test_the_branch_moves_by_clausius_clapeyron():
    straight = replace(
        MEASURED, stroke_min=0.04, stroke_max=0.04, modulus_M_Pa=70e9, modulus_A_Pa=70e9
    )
    c = constants_of(straight)
    at = [places(c, s, stroke(c, s)[1]) for s in (0.0, 83e6)]
    assert at[1][0] - at[0][0] == pytest.approx(83.0 / 8.3, rel=1e-9)
    assert at[1][2] - at[0][2] == pytest.approx(83.0 / 7.5, rel=1e-9)


def test_the_knots_are_the_quantiles_of_the_measured_distribution():
    c = constants_of(MEASURED)
    shares = MEASURED.heating.distribution(c.knots_K[HEATING_KNOTS : HEATING_KNOTS + PIECES + 1])
    assert np.diff(shares) == pytest.approx(np.full(PIECES, 0.99 / PIECES), abs=1e-5)


@pytest.mark.parametrize("pretension_N", [0.3, 1.7])
def test_the_branches_of_the_planner_are_where_the_plant_transforms(pretension_N):
    """Held on and let go, a wire of the coupled plant stays on them."""
    s = system(MEASURED, pretension_N, STIFF)
    one = CellActivation(FORCE_ON_N, "sma", wire=WIRE, loaded=Loaded(MEASURED, pretension_N, K_AE))
    heating, cooling = np.split(np.array(cell_branches(s.model, [one] * 4)[0].working_C), 2)
    off_K = {1.0: [], 0.0: []}
    for duty, knots in ((1.0, heating), (0.0, cooling)):
        for _ in range(2500):
            s.step(np.full(4, duty))
            xi = s.wires.xi[0]
            if 0.2 < xi < 0.8:
                off_K[duty].append(s.wires.T_C[0] - np.interp(xi, SHARES, knots))
    assert min(map(len, off_K.values())) > 100
    assert np.abs(np.concatenate(list(off_K.values()))).max() < 0.5
    at_rest_C = knots_C(MEASURED, MEASURED.heating, stress_Pa(WIRE, pretension_N))
    assert heating[-1] - at_rest_C[-1] > 3.0  # what the stress of rest leaves out


def test_the_period_changes_a_run_by_little():
    runs = []
    for period_s, n in ((0.001, 1500), (0.00025, 6000)):
        s = system(MEASURED, 0.5, period_s=period_s)
        for _ in range(n):
            s.step(np.ones(4))
        runs.append(s.y[1])
    assert runs[0] == pytest.approx(runs[1], rel=2e-3)


RIG = "configs/wires4/hold.toml"
SMA = "{kind='sma', n_wires=4, supply_V=8.0"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", pretension_N=7.0}", "its wires would carry 1108 MPa, beyond strength_MPa = 1000"),
        (", stroke_min=0.0, pretension_N=0.0}", "a wire that nothing stretches does not contract"),
        (", stroke_max=0.03}", "stroke_max must not be below stroke_min"),
        (", minor_loop_slope=1.1}", "minor_loop_slope = 1.1"),
        (", minor_loop_slope=0.5, coupling='held'}", "minor loops of coupling = 'held' are flat"),
    ],
)
def test_wires_that_cannot_be_are_refused_in_one_line(pytestconfig, more, message):
    with pytest.raises(ConfigError) as error:
        load(pytestconfig.rootpath / RIG, [f"model.arrays.muscle.activation={SMA}{more}"])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_cell_without_a_wires_spring_is_refused():
    with pytest.raises(ValueError, match="a custom cell has none: give kind = 'thermal'"):
        loaded_wire(SmaTable(kind="sma"), SmaWire(), CustomCellTable(kind="custom"), 1.0)


def test_a_rig_with_wires_under_stress_runs_and_replays(pytestconfig, tmp_path):
    sets = [f"model.arrays.muscle.activation={SMA}}}", "experiment.duration_s=1.8"]
    config = load(pytestconfig.rootpath / RIG, sets)
    path = hil.run(config, out=tmp_path / "run.h5", seed=1)
    run = hil.open_run(path)
    assert float(run.force_measured_N.values.max()) > 0.02
    assert replay(path) == (run.sizes["tick"], None)


@pytest.mark.parametrize("rest_MPa", [0.0, 70.0, 150.0])
def test_lines_begin_and_end_where_a_root_finder_has_5_and_95_percent_of_a_branch(rest_MPa):
    rest_Pa = 1e6 * rest_MPa
    wire = at_rest(MEASURED, WIRE, rest_Pa)
    for branch, ends_C in (
        (MEASURED.heating, (wire.A_s_C, wire.A_f_C)),
        (MEASURED.cooling, (wire.M_f_C, wire.M_s_C)),
    ):
        for share, end_C in zip((0.05, 0.95), ends_C, strict=True):

            def beyond(T_C, branch=branch, share=share):
                return MEASURED.branch(branch, T_C, rest_Pa) - share

            assert end_C == pytest.approx(brentq(beyond, -200.0, 400.0), abs=1e-4)


@pytest.mark.parametrize("air_C", [45.0, 70.0, 95.0])
def test_a_weight_in_warm_air_hangs_as_high_as_its_wire_has_become_austenite(air_C, configs):
    """F_on over k_ae, 4.458 mm, times the austenite: the tension is the weight's at any."""
    sets = [f"plant.arrays.wire.activation.ambient_C={air_C}"]
    system = load(configs / "isotonic/pulse.toml", sets).system(plant=True)
    height_m = dict(zip(system.outputs, system.y, strict=True))["load.x_m"]
    assert system.wires.xi[0] > 0.005
    assert height_m == pytest.approx(4.458e-3 * system.wires.xi[0], rel=1e-6)


def one_of_each(kinds, *, air_C, broken=()):
    """Cells of these kinds beside each other, at rest in warm air."""
    model = CellArray.from_fingerprint("-:2 | &3:-1", cell=HILL, mass_kg=0.02, broken_cells=broken)
    wire = replace(WIRE, ambient_C=air_C)
    loaded = {"sma": Loaded(MEASURED, 0.5, K_AE)}
    wires = [CellActivation(FORCE_ON_N, kind, wire=wire, loaded=loaded.get(kind)) for kind in kinds]
    return ArraySystem(model, wires, PERIOD_S)


def test_the_wire_of_a_broken_cell_in_warm_air_is_at_rest_without_tension():
    """78.3 degC is the middle of the heating branch without stress."""
    system = one_of_each(("sma", "sma"), air_C=78.3, broken=[1])
    at_first = [system.loaded.tension_N.copy(), *system.wires.state.copy(), system.y.copy()]
    assert at_first[0][0] == 0.0
    expected = MEASURED.least(78.3, 0.0)
    assert system.wires.xi[0] == pytest.approx(expected, abs=0.01)
    for _ in range(100):
        system.step(np.zeros(2))
    after = [system.loaded.tension_N, *system.wires.state, system.y]
    for now, before in zip(after, at_first, strict=True):
        np.testing.assert_allclose(now, before, atol=1e-9)


def test_a_wire_without_stress_beside_one_under_stress_begins_in_the_warm_air_as_austenite():
    """93 degC is halfway from A_s, 88, to A_f, 98."""
    system = one_of_each(("thermal", "sma"), air_C=93.0)
    assert system.wires.xi[0] == pytest.approx(0.5)
    assert system.activation.F_N[0] == pytest.approx(0.5 * FORCE_ON_N)
    system.step(np.array([1.0, 0.0]))
    assert system.wires.T_C[0] > 93.0
