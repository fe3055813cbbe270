"""Units with SMA wires: their C against the compiled Python, and against runs of hil."""

import ctypes
import subprocess
from dataclasses import replace
from math import inf

import fmpy
import numpy as np
import pytest

from fmu_unit import PERIOD_S
from hil.__main__ import main
from hil.errors import ModelError
from hil.experiment.load import load_model
from hil.mechanics.arrays import Record
from hil.mechanics.sma import stressed, wire
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.stress import Branch, LineBranch, StressLaw
from hil.mechanics.sma.wire import SmaWire, wire_laws
from hil.record.read import open_run
from hil.systems.array.fmu.wires import arrays
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.cells import miga
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_load import Loaded

MIGA = miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.5, k_ae_N_per_m=1000.0, b_N_s_per_m=50.0)
CELLS = [f"muscle.{n}" for n in range(1, 5)]
THERMAL = """[model.arrays.muscle.activation]
kind = "thermal"
n_wires = 4
supply_V = 8.0
temperature_max_C = 180.0
"""


@pytest.fixture(scope="module")
def in_c(built, configs, tmp_path_factory):
    """The steps of a unit's wires, as a library."""
    folder = tmp_path_factory.mktemp("wire")
    fmpy.extract(str(built(configs / "wires4/rig.toml")), str(folder))
    made = folder / "wire.so"
    words = ["cc", "-std=c11", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-o", str(made)]
    subprocess.run([*words, str(folder / "sources/wire.c"), "-lm"], check=True)
    return ctypes.CDLL(str(made))


@pytest.fixture
def thermal(rigs):
    """The rig and an experiment of wires4 with the wires' older law, without stress."""
    rig = rigs / "wires4/rig.toml"
    text = rig.read_text()
    start = text.index("[model.arrays.muscle.activation]")
    rig.write_text(f"{text[:start]}{THERMAL}{text[text.index('[plant.arrays.muscle.cell]') :]}")
    return rigs / "wires4/modulate.toml"


def array(values):
    if isinstance(values, Record):
        values = np.array([values]).view(float)
    return np.asarray(values, dtype=float).ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def stepped(step, *arguments, T, xi, over_s):
    """Temperature and fraction after a time, by a function of C."""
    T, xi = ctypes.c_double(T), ctypes.c_double(xi)
    step(*arguments, ctypes.byref(T), ctypes.byref(xi), ctypes.c_double(over_s))
    return T.value, xi.value


def a_wire(rng):
    """A wire at random; half of them vary in resistance with temperature and strain."""
    A_s, M_f = rng.uniform(60.0, 90.0), rng.uniform(30.0, 55.0)
    varies = Resistivity(1e-4, 2e-4, 25.0, 2.0, 150.0, 60.0, 50.0, 0.04)
    return SmaWire(
        length_m=rng.uniform(0.05, 0.3),
        n_wires=int(rng.integers(1, 6)),
        wiring=rng.choice(["series", "parallel"]),
        ambient_C=rng.uniform(0.0, 70.0),
        diameter_m=rng.uniform(40e-6, 300e-6),
        latent_heat_J_per_kg=rng.uniform(0.0, 4e4),
        A_s_C=A_s,
        A_f_C=A_s + rng.uniform(1.0, 25.0),
        M_s_C=M_f + rng.uniform(1.0, 5.0),
        M_f_C=M_f,
        resistivity=varies if rng.random() < 0.5 else Resistivity(),
    )


def a_law(rng):
    """A law under stress at random; half of them have branches of straight lines."""
    kind = rng.choice([Branch, LineBranch])
    heating = kind(rng.uniform(60.0, 90.0), rng.uniform(5e6, 9e6), rng.uniform(0.5, 12.0))
    cooling = kind(rng.uniform(35.0, 70.0), rng.uniform(5e6, 9e6), rng.uniform(0.5, 12.0),
                   widens_per_Pa=rng.uniform(0.0, 2e-9))  # fmt: skip
    moduli = (inf, inf) if rng.random() < 0.5 else (75e9, 28e9)
    return StressLaw(heating, cooling, 0.03, rng.uniform(0.031, 0.06), 1.2e-8, *moduli)


def test_a_wire_whose_minor_loops_slope_is_no_unit():
    sloped = replace(a_law(np.random.default_rng(1)), minor_loop_slope=0.5)
    cell = CellActivation(1.0, "sma", loaded=Loaded(sloped, 0.5, 1000.0))
    model = CellArray.from_fingerprint("-:1 | &1:-1", cell=MIGA, mass_kg=0.01)
    with pytest.raises(ModelError, match=r"minor_loop_slope = 0\.5: .* are flat"):
        arrays(model, [cell], 0.001)


def test_a_wire_steps_in_c_as_in_python(in_c):
    rng = np.random.default_rng(28)
    for _ in range(400):
        law = wire_laws([a_wire(rng)])[0]
        duty, over_s = rng.choice([0.0, 1.0, rng.random()]), 10.0 ** rng.uniform(-4.0, 1.0)
        T, xi = rng.uniform(law.T_a, 150.0), rng.choice([0.0, 1.0, rng.random()])
        found = stepped(in_c.wire_advance, array(law), ctypes.c_double(duty), T=T, xi=xi,
                        over_s=over_s)  # fmt: skip
        expected = wire.advance(law, duty, T, xi, over_s)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_wire_under_stress_steps_in_c_as_in_python(in_c):
    in_c.stressed_stroke.restype = ctypes.c_double
    rng = np.random.default_rng(29)
    moved = 0
    for _ in range(400):
        law, c = wire_laws([a_wire(rng)])[0], stressed.constants_of(a_law(rng))
        stress, duty = rng.uniform(0.0, 300e6), rng.choice([0.0, 1.0, rng.random()])
        slope, place = ctypes.c_double(), np.empty(4)
        strain = in_c.stressed_stroke(array(c), ctypes.c_double(stress), ctypes.byref(slope))
        expected = stressed.stroke(c, stress)
        np.testing.assert_allclose((strain, slope.value), expected, rtol=1e-12)
        in_c.stressed_places(array(c), ctypes.c_double(stress), slope, array(place))
        np.testing.assert_allclose(place, stressed.places(c, stress, slope.value), rtol=1e-12)
        T, xi = rng.uniform(20.0, 150.0), rng.choice([0.0, 1.0, rng.random()])
        over_s = 10.0 ** rng.uniform(-4.0, 1.0)
        found = stepped(in_c.stressed_advance, array(law), array(c), array(place),
                        ctypes.c_double(duty), T=T, xi=xi, over_s=over_s)  # fmt: skip
        moved += abs(found[1] - xi) > 1e-3
        expected = stressed.advance(law, c.knots_K, tuple(place), duty, T, xi, over_s)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    assert moved > 100


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("fmi", [3, 2])
@pytest.mark.parametrize("law", ["under stress", "without stress"])
def test_co_simulation_repeats_the_wires_of_a_runs_twin(
    law, fmi, built, opened, rigs, tmp_path, request
):
    """The twin gets what the board has confirmed, every fourth period."""
    experiment = rigs / "wires4/modulate.toml"
    if law == "without stress":
        experiment = request.getfixturevalue("thermal")
    out = tmp_path / "run.h5"
    assert main(["run", str(experiment), "--out", str(out), "--duration", "1.5"]) == 0
    run = open_run(out)
    duties = run.cells_duty_reported.to_pandas().ffill().to_numpy()
    names = ["muscle.right_N", *(f"{cell}.wire_C" for cell in CELLS)]
    with opened(built(experiment.with_name("rig.toml"), fmi)) as unit:
        unit.start()
        found = [unit.values(names)]
        for k, duty in enumerate(duties[1:]):
            unit.set([f"{cell}.duty" for cell in CELLS], duty)
            unit.step(k)
            found.append(unit.values(names))
    found = np.array(found)
    assert found[:, 1:].max() > 75.0
    assert np.ptp(found[:, 0]) > 0.1
    np.testing.assert_allclose(found[:, 0], run.force_model_N.values, rtol=0.0, atol=1e-9)
    expected_C = np.stack([run[f"{cell}.wire_model_C"].values for cell in CELLS], axis=1)
    np.testing.assert_allclose(found[:, 1:], expected_C, rtol=0.0, atol=1e-9)


def system_of(file, sets=(), period_s=PERIOD_S):
    loaded = load_model(file, sets)
    return ArraySystem(loaded.model, loaded.activation(), period_s)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("file", "sets"),
    [
        ("wires4/rig.toml", ()),
        ("wires4/rig.toml", ("model.arrays.muscle.activation.ambient_C=75.0",)),
        ("spring_bias/rig.toml", ()),
        ("stage/rig.toml", ()),
        ("wires4/rig.toml", ('model.arrays.muscle.fingerprint="-:1 | &1:1 | &1:1 | &1:-1"',)),
    ],
    ids=["cold", "partly austenite at rest", "against a spring", "at a driven point", "coupled"],
)
@pytest.mark.parametrize("n", [1, 10], ids=["a step a period", "ten steps a period"])
def test_every_quantity_of_the_wires_follows_the_model(file, sets, n, built, opened, configs):
    """Random duties and, on half of the way, another supply."""
    period_s, rng = n * PERIOD_S, np.random.default_rng(1)
    system = system_of(configs / file, sets, period_s)
    cells, wires = list(system.cell_names), system.wires
    quantities = ["wire_C", "austenite", "resistance_Ohm", "wire_A"]
    names = [f"{cell}.{quantity}" for quantity in quantities for cell in cells]
    names += [f"{cell}.tension_N" for cell in cells] + list(system.outputs)

    def expected():
        of_wires = [wires.T_C, wires.xi, wires.resistance_Ohm, wires.current_A]
        return np.concatenate([*of_wires, system.loaded.tension_N, system.y])

    with opened(built(configs / file, sets=sets, period_s=period_s)) as unit:
        unit.start()
        np.testing.assert_allclose(unit.values(names), expected(), rtol=1e-12, atol=1e-12)
        for k in range(600):
            if k % 50 == 0:
                duty = rng.choice([0.0, 1.0, rng.random()], len(cells))
                unit.set([f"{cell}.duty" for cell in cells], duty)
            if k == 300:
                supply_V = 1.1 * wires.supply_V[0]
                wires.set_supply_V(supply_V)
                unit.set([f"{cell}.supply_V" for cell in cells], [supply_V] * len(cells))
            system.step(duty)
            unit.step(n * k, period_s)
            np.testing.assert_allclose(unit.values(names), expected(), rtol=1e-12, atol=1e-12)
    assert np.ptp(wires.T_C) > 1.0 or wires.T_C[0] > 30.0


def test_the_strain_is_that_of_the_law(built, opened, configs):
    """(1 - xi) (H + S sigma), of the cell's tension over the area of its four wires.

    The tension is solved to 1e-3 (1 + its pull) newton, 0.1 MPa; at 37 per TPa that is 4e-6.
    """
    cell = load_model(configs / "wires4/rig.toml").activation()[0]
    law, wires = cell.loaded.law, cell.wire
    area_m2 = wires.n_wires * np.pi * wires.diameter_m**2 / 4.0
    softer = 1.0 / law.modulus_M_Pa - 1.0 / law.modulus_A_Pa
    with opened(built(configs / "wires4/rig.toml")) as unit:
        unit.start()
        unit.set(["muscle.1.duty"], [1.0])
        for _ in range(5):
            unit.run(100, [])
            xi, tension_N, strain = unit.values(
                ["muscle.1.austenite", "muscle.1.tension_N", "muscle.1.strain"]
            )
            stress_Pa = tension_N / area_m2
            full = float(law.stroke(stress_Pa)) + softer * stress_Pa
            assert strain == pytest.approx((1.0 - xi) * full, abs=4e-6)


def test_wires_have_no_model_exchange(built, configs, tmp_path):
    path = str(built(configs / "wires4/rig.toml"))
    assert fmpy.read_model_description(path).modelExchange is None
    description = fmpy.read_model_description(path)
    said = []
    unit = fmpy.fmi3.FMU3Model(
        guid=description.guid,
        unzipDirectory=fmpy.extract(path, str(tmp_path / "unit")),
        modelIdentifier=description.coSimulation.modelIdentifier,
        instanceName="unit",
    )
    with pytest.raises(Exception, match="instantiate"):
        unit.instantiate(logMessage=lambda *words: said.append(words[-1].decode()))
    assert said == [
        "model exchange: wires and boards have memory and steps of their own: use co-simulation"
    ]
