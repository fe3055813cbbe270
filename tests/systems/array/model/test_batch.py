"""Many parameter sets at once: held against the loop's own step, exact and finer steps."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hil.experiment.load import load
from hil.models import CellActivation, CellArray, ModelError, SmaWire, cells
from hil.systems.array.build_wire import at_rest
from hil.systems.array.model.response import responses
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_load import Loaded, stress_Pa
from hil_studies.wires.heat import FLEXINOL

SPRINGS = {"k_pe_N_per_m": 20.0, "k_se_N_per_m": 386.52, "k_ae_N_per_m": 1000.0}
MIGA = cells.miga(**SPRINGS, b_N_s_per_m=500.0)
SIX = CellArray.from_fingerprint("-:1 | &1:2 | &1:1 &2:2 | &7:-1", cell=MIGA, mass_kg=0.01583)
PULL_N = 1.0
WIRE = at_rest(FLEXINOL, SmaWire(), stress_Pa(SmaWire(), PULL_N))
KINDS = {
    "step": CellActivation(1.0),
    "sigmoid": CellActivation(1.0, "sigmoid"),
    "thermal": CellActivation(1.0, "thermal"),
    "sma": CellActivation(1.0, "sma", wire=WIRE, loaded=Loaded(FLEXINOL, PULL_N, 1000.0)),
    "sloped": CellActivation(
        1.0,
        "sma",
        wire=WIRE,
        loaded=Loaded(replace(FLEXINOL, minor_loop_slope=0.6), PULL_N, 1000.0),
    ),
}


def duties(n, seed=0):
    """At random for 0.25 s each at a period of 10 ms."""
    random = np.random.default_rng(seed)
    return np.repeat(random.choice([0.0, 0.4, 1.0], (-(-n // 25), 6)), 25, axis=0)[:n]


@pytest.mark.parametrize("kinds", [*([kind] * 6 for kind in KINDS), ["step", "thermal"] * 3],
                         ids=[*KINDS, "mixed"])  # fmt: skip
def test_every_set_has_the_numbers_of_the_loops_own_step_bit_for_bit(kinds):
    random = np.random.default_rng(1)
    F_N, masses = random.uniform(0.5, 1.5, (4, 6)), random.uniform(0.01, 0.02, 4)
    commands = np.stack([duties(60, seed) for seed in range(4)])
    cells_as = [KINDS[kind] for kind in kinds]
    wired = cells_as[5].has_wire
    wires = [f"array.{n}.{what}" for n in (6, 2) for what in ("wire_C", "austenite")] * wired
    found = SIX.batch(
        {"force_on_N": F_N, "mass_kg": masses}, commands, activation=cells_as, period_s=0.01,
        outputs=[*wires, *SIX.outputs],
    )  # fmt: skip
    for i in range(4):
        model = CellArray.from_fingerprint(
            "-:1 | &1:2 | &1:1 &2:2 | &7:-1", cell=MIGA, mass_kg=masses[i]
        )
        own = [replace(one, force_on_N=F) for one, F in zip(cells_as, F_N[i], strict=True)]
        system = ArraySystem(model, own, 0.01)
        for k, duty in enumerate(commands[i], start=1):
            system.step(duty)
            one = found.isel(set=i, t_s=k)
            assert [one[name].item() for name in SIX.outputs] == system.y.tolist()
            if wired:
                assert one["array.6.wire_C"].item() == system.wires.T_C[5]
                assert one["array.2.austenite"].item() == system.wires.xi[1]


@pytest.mark.parametrize("period_s", [0.001, 0.01])
def test_a_point_that_is_driven_moves_as_in_the_loop(pytestconfig, period_s):
    config = load(pytestconfig.rootpath / "configs" / "stage" / "pull.toml")
    model, cells_as = config.system(plant=True).model, config.system(plant=True).cells
    n, random = round(0.4 / period_s), np.random.default_rng(2)
    commands = np.repeat(random.choice([0.0, 1.0], (4, model.n_cells)), n // 4, axis=0)
    moves_m = 1e-3 * np.sin(10.0 * period_s * np.arange(1, n + 1))[:, None]
    outputs = np.arange(len(model.outputs))
    [rows] = responses([ArraySystem(model, cells_as, period_s)], outputs, commands, moves_m)
    [still] = responses([ArraySystem(model, cells_as, period_s)], outputs, commands)
    system, at_0 = (ArraySystem(model, cells_as, period_s) for _ in range(2))
    for k in range(n):
        system.step(commands[k], moves_m[k])
        at_0.step(commands[k])
        assert rows[k + 1].tolist() == system.y.tolist()
        assert still[k + 1].tolist() == at_0.y.tolist()
    assert np.ptp(rows, axis=0).max() > 0.1


def test_wires_heat_and_cool_as_an_ordinary_solver_says():
    """Below its transformation a wire is linear: C T' = D E^2 / r - G (T - T_a)."""
    convections = np.array([60.0, 125.0, 200.0])
    commands = np.zeros((80, 6))
    commands[:20] = 0.3
    found = SIX.batch(
        {"wire.convection_W_per_m2_K": convections}, commands,
        activation=[KINDS["thermal"]] * 6, period_s=0.05, outputs=["array.2.wire_C"],
    )  # fmt: skip
    for i, h in enumerate(convections):
        wire = replace(SmaWire(), convection_W_per_m2_K=h)
        power = 0.3 * wire.field_V_per_m**2 / wire.martensite_Ohm_per_m

        def rate(t, T, wire=wire, power=power):
            heat = power * (t < 1.0) - wire.loss_W_per_m_K * (T - 25.0)
            return heat / wire.capacity_J_per_m_K

        ends = ((0.0, 1.0), (1.0, 4.0))
        T, whole = [25.0], [25.0]
        for begin, end in ends:
            at = np.arange(round((end - begin) / 0.05)) * 0.05 + begin + 0.05
            one = solve_ivp(rate, (begin, end), T, t_eval=np.minimum(at, end), rtol=1e-10,
                            atol=1e-10, first_step=1e-3)  # fmt: skip
            T, whole = [one.y[0, -1]], [*whole, *one.y[0]]
        assert max(whole) < 85.0
        np.testing.assert_allclose(found["array.2.wire_C"][i], whole, rtol=1e-5)
        keeps = exp(-wire.loss_W_per_m_K / wire.capacity_J_per_m_K * 3.0)
        assert found["array.2.wire_C"][i, -1].item() - 25.0 == pytest.approx(
            keeps * (found["array.2.wire_C"][i, 20].item() - 25.0), rel=1e-12
        )


def test_wires_that_no_stress_couples_do_not_depend_on_the_period():
    """Exactly, where both phases have one resistance, so that nothing is linearised."""
    ways = [
        SIX.batch(
            {"wire.latent_heat_J_per_kg": [12e3, 24.2e3], "wire.austenite_Ohm_per_m": [126.0] * 2},
            np.repeat(duties(200)[::25], n, axis=0),
            activation=[KINDS["thermal"]] * 6, period_s=0.25 / n,
            outputs=[f"array.{k}.austenite" for k in range(1, 7)],
        ).isel(t_s=slice(None, None, n))
        for n in (1, 50)
    ]  # fmt: skip
    for name in ways[0].data_vars:
        np.testing.assert_allclose(ways[0][name], ways[1][name], atol=1e-9)
    assert max(float(one.max()) for one in ways[0].data_vars.values()) > 0.3


def test_wires_under_stress_have_the_forces_of_a_finer_step():
    parameters = {"wire.convection_W_per_m2_K": [100.0, 140.0], "loaded.pretension_N": [0.8, 1.0]}
    coarse, fine = (
        SIX.batch(parameters, np.repeat(duties(200)[::25], round(0.25 / h), axis=0),
                  activation=[KINDS["sma"]] * 6, period_s=h, outputs=["array.right_N"])
        for h in (0.01, 5e-5)
    )  # fmt: skip
    expected = fine["array.right_N"][:, ::200].values
    error = np.abs(coarse["array.right_N"].values - expected).max(axis=1)
    assert (error < 0.005 * np.ptp(expected, axis=1)).all()


def test_cells_may_differ_from_set_to_set_and_parameters_are_coordinates():
    kinds = [cells.miga(**SPRINGS | {"k_se_N_per_m": k}, b_N_s_per_m=500.0) for k in (200.0, 400.0)]
    found = SIX.batch(
        {"cell": kinds, "mass_kg": [0.01, 0.02]}, np.ones((3000, 6)),
        activation=[KINDS["step"]] * 6, period_s=0.01,
    )  # fmt: skip
    for i, cell in enumerate(kinds):
        model = CellArray.from_fingerprint(
            "-:1 | &1:2 | &1:1 &2:2 | &7:-1", cell=cell, mass_kg=0.01
        )
        settled_N = model.force_at("array.right_N", model.solve_statics(np.ones(6)).tension_N)
        assert found["array.right_N"][i, -1].item() == pytest.approx(settled_N, rel=1e-4)
    assert found.mass_kg.values.tolist() == [0.01, 0.02]
    assert found["array.right_N"].attrs["units"] == "N"
    assert found["array.x2_m"].attrs["units"] == "m"
    assert list(found.data_vars) == list(SIX.outputs)


GOOD = {"force_on_N": [1.0, 2.0]}
BAD = [
    ({"force": [1.0]}, {}, "parameters: 'force': no 'force': did you mean 'force_on_N'?"),
    ({"wire.mass": [1.0]}, {}, "parameters: 'wire.mass': no 'mass'"),
    ({"force_on_N.x": [1.0]}, {}, "parameters: 'force_on_N.x': no 'x'"),
    ({"force_on_N": 1.0}, {}, "'force_on_N' has the shape (): give one value for every set, or 6"),
    ({"mass_kg": [[1.0] * 6]}, {}, "'mass_kg' has the shape (1, 6): give one value for every set"),
    ({"mass_kg": []}, {}, "there is no set"),
    ({"mass_kg": ["heavy"]}, {}, "'mass_kg' is no array of numbers"),
    ({"cell": ["x"]}, {}, "parameters: 'cell': give cells, as hil.models.cells.miga()"),
    ([1.0], {}, "parameters: give a mapping of names to values"),
    ({"mass_kg": [0.1, -0.1]}, {}, "set 1: arrays.array.mass_kg: every mass must be above zero"),
    ({"force_on_N": [1.0, np.nan]}, {}, "set 1: force_on_N = nan: must be finite"),
    ({"force_on_N": [1.0, -1.0]}, {}, "set 1: force_on_N = -1: must not be negative"),
    ({"wire.convection_W_per_m2_K": [-1.0]}, {}, "convection_W_per_m2_K = -1: must not be"),
    ({"wire.n_wires": [1.5]}, {}, "set 0: wire.n_wires = 1.5: must be a whole number"),
    ({"wire.A_s_C": [80.0, 99.0]}, {}, "set 1: A_s_C must be below A_f_C"),
    (GOOD | {"mass_kg": [1.0]}, {}, "2 of 'force_on_N', 1 of 'mass_kg': give all as many"),
    (GOOD, {"commands": np.ones((5, 4))}, "commands: the shape (5, 4) is not (periods, 6)"),
    (GOOD, {"commands": np.ones((3, 5, 6))}, "nor (2, periods, 6) for one table a set"),
    (GOOD, {"commands": 1.5 * np.ones((5, 6))}, "commands: 1.5 is no duty: give 0 (off) to 1 (on)"),
    (GOOD, {"commands": np.full((5, 6), np.nan)}, "commands: nan is no duty"),
    (GOOD, {"period_s": 0.0}, "period_s = 0: must be above zero"),
    (GOOD, {"outputs": ["array.rigth_N"]}, "'array.rigth_N' is no output of this array: did you"),
    (GOOD, {"outputs": ["array.1.wire_C"]}, "'array.1.wire_C' is no output of this array"),
    (GOOD, {"activation": [KINDS["step"]] * 5}, "5 activations for 6 cells"),
]


@pytest.mark.parametrize(("parameters", "more", "said"), BAD)
def test_what_cannot_be_is_refused_in_one_line(parameters, more, said):
    call = {"commands": np.ones((5, 6)), "activation": [KINDS["step"]] * 6, "period_s": 0.01}
    with pytest.raises(ModelError) as error:
        SIX.batch(parameters, **call | more)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_cell_whose_spring_is_not_its_wires_stiffness_is_refused():
    """Force and tension of a wire under stress would belong to two different wires."""
    stiff = {**SPRINGS, "k_ae_N_per_m": 2000.0}
    kinds = [cells.miga(**SPRINGS, b_N_s_per_m=9.0), cells.hill(**stiff, b_N_s_per_m=9.0)]
    parameters = {"cell": kinds}
    run = {"activation": [KINDS["sma"]] * 6, "period_s": 0.01}
    with pytest.raises(ModelError, match=r"set 1: loaded\.k_ae_N_per_m = 1000, .* cell has 2000"):
        SIX.batch(parameters, np.ones((10, 6)), **run)
    SIX.batch({**parameters, "loaded.k_ae_N_per_m": [1000.0, 2000.0]}, np.ones((10, 6)), **run)


def test_a_period_of_wires_under_stress_in_one_call_is_its_steps_one_by_one():
    """Forces and states bit for bit, and the path along which the observer follows."""
    at_once, stepped = (ArraySystem(SIX, [KINDS["sma"], KINDS["step"]] * 3, 0.01) for _ in range(2))
    assert at_once.steps > 1
    stepped._kernel = None
    for duty in duties(60):
        at_once.step(duty)
        stepped.step(duty)
        assert at_once.y.tolist() == stepped.y.tolist()
        assert np.array_equal(at_once.path, stepped.path)
        assert np.array_equal(at_once.wires.state, stepped.wires.state, equal_nan=True)
