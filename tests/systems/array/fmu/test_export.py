"""An exported unit against the validator of FMPy, its solver, SciPy, and a run of hil."""

import shutil
import subprocess
from dataclasses import replace

import fmpy
import numpy as np
import pytest
import scipy.signal
from fmpy.validation import validate_fmu

from fmu_unit import PERIOD_S
from hil.__main__ import main
from hil.experiment.load import load_model
from hil.record.read import open_run
from hil.systems.array.fmu.export import TARGETS, export

VERSIONS = (3, 2)
HANGING = """
[model]
kind = "cell_array"
[model.points.ground]
support = "fixed"
[model.points.load]
support = "free"
mass_kg = 0.1
[model.arrays.muscle]
fingerprint = "-:1 | &1:-1"
from = "ground"
to = "load"
mass_kg = 0.01
force_on_N = 1.0
[model.arrays.muscle.cell]
kind = "miga"
k_pe_N_per_m = 20.0
k_se_N_per_m = 386.52
k_ae_N_per_m = 1000.0
b_N_s_per_m = 500.0
[model.arrays.muscle.activation]
kind = "step"
"""


@pytest.mark.slow_beyond(4)
@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize(
    ("rig", "with_boards"),
    [
        ("stage", False),
        ("miga6", False),
        ("silicone4", False),
        ("wires4", False),
        ("wires4", True),
        ("miga6", True),
    ],
)
def test_the_validator_finds_no_problem(rig, with_boards, fmi, built, configs):
    unit = built(configs / rig / "rig.toml", fmi, with_boards=with_boards)
    assert validate_fmu(str(unit)) == []


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize(
    ("rig", "experiment", "duration_s"), [("miga6", "all_on", 1.0), ("silicone4", "levels", 2.5)]
)
def test_co_simulation_repeats_the_twin_of_a_run(
    rig, experiment, duration_s, fmi, built, opened, configs, tmp_path
):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / rig / f"{experiment}.toml"), "--out", str(out)]
    assert main([*words, "--duration", str(duration_s)]) == 0
    run = open_run(out)
    duties = [f"{cell}.duty" for cell in run.cell.values]
    with opened(built(configs / rig / "rig.toml", fmi)) as unit:
        unit.start()
        force_N = []
        for k, cells in enumerate(run.cells_commanded.values):
            force_N.append(unit.get("muscle.right_N"))
            unit.set(duties, [float(cell == 1) for cell in cells])
            unit.step(k)
    assert np.ptp(force_N) > 0.1
    np.testing.assert_allclose(force_N, run.force_model_N.values, rtol=0.0, atol=1e-9)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize("rig", ["miga6", "silicone4"])
def test_model_exchange_and_co_simulation_agree(rig, fmi, built, configs):
    """FMPy's CVode solves x' = A x + B F; co-simulation steps with matrix exponentials."""
    path = str(built(configs / rig / "rig.toml", fmi))
    t_s = np.array([0.0, 0.1, 0.1, 1.6, 1.6, 3.0])
    given = np.array(
        list(zip(t_s, [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], strict=True)),
        dtype=[("time", float), ("muscle.1.duty", float), ("muscle.2.duty", float)],
    )
    common = {"input": given, "stop_time": 3.0, "output": ["muscle.right_N"]}
    exchanged = fmpy.simulate_fmu(
        path, fmi_type="ModelExchange", relative_tolerance=1e-9, output_interval=0.01, **common
    )
    stepped = fmpy.simulate_fmu(
        path, fmi_type="CoSimulation", step_size=PERIOD_S, output_interval=PERIOD_S, **common
    )
    near_N = np.interp(exchanged["time"], stepped["time"], stepped["muscle.right_N"])
    # Co-simulation switches within the period in which the input changes; the force then rises at
    # up to 10 N/s.
    apart = np.min(np.abs(exchanged["time"][:, None] - t_s), axis=1) > 2.0 * PERIOD_S
    assert np.ptp(near_N) > 0.1
    np.testing.assert_allclose(exchanged["muscle.right_N"][apart], near_N[apart], atol=2e-3)


@pytest.mark.parametrize("fmi", VERSIONS)
def test_an_external_force_moves_a_free_point_as_scipy_computes(fmi, built, opened, tmp_path):
    file = tmp_path / "hanging.toml"
    file.write_text(HANGING)
    model = load_model(file).model
    force = model.inputs.index("load.F_N")
    system = scipy.signal.StateSpace(model.A, model.B[:, [force]], model.C, model.D[:, [force]])
    steps = np.arange(400)
    _, expected, _ = scipy.signal.lsim(system, np.ones(400), PERIOD_S * steps, interp=False)
    with opened(built(file, fmi)) as unit:
        unit.start()
        unit.set(["load.F_N"], [1.0])
        x_m = []
        for k in steps:
            x_m.append(unit.get("load.x_m"))
            unit.step(k)
    at = model.outputs.index("load.x_m")
    np.testing.assert_allclose(x_m, expected[:, at], rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("fmi", VERSIONS)
def test_the_force_of_a_cell_is_a_parameter_until_the_run_starts(fmi, built, opened, configs):
    path = built(configs / "miga6/rig.toml", fmi)
    forces_N = []
    for force_on_N in (2.0, 4.0):
        with opened(path) as unit:
            unit.set(["muscle.1.force_on_N"], [force_on_N])
            unit.start()
            unit.set(["muscle.1.duty"], [1.0])
            unit.step(0, 100 * PERIOD_S)
            forces_N.append(unit.get("muscle.right_N"))
            with pytest.raises(fmpy.fmi1.FMICallException):
                unit.set(["muscle.1.force_on_N"], [force_on_N])
    assert forces_N[1] == pytest.approx(2.0 * forces_N[0], rel=1e-12)


@pytest.mark.parametrize("fmi", VERSIONS)
def test_a_saved_state_is_continued_as_if_nothing_had_happened(fmi, built, opened, configs):
    with opened(built(configs / "silicone4/rig.toml", fmi)) as unit:
        state = unit.fmu.getFMUState if unit.is_3 else unit.fmu.getFMUstate
        restore = unit.fmu.setFMUState if unit.is_3 else unit.fmu.setFMUstate
        unit.start()
        unit.set(["muscle.1.duty"], [1.0])
        unit.step(0, 500 * PERIOD_S)
        kept, forces_N = state(), []
        for _ in range(2):
            restore(kept)
            unit.step(500, 500 * PERIOD_S)
            forces_N.append(unit.get("muscle.right_N"))
    assert forces_N[0] == forces_N[1] != 0.0


@pytest.mark.parametrize("fmi", VERSIONS)
@pytest.mark.parametrize(
    "ask",
    [
        lambda unit: unit.step(0, 0.5 * PERIOD_S),
        lambda unit: unit.set(["muscle.1.duty"], [1.5]),
        lambda unit: unit.set(["muscle.1.duty"], [float("nan")]),
    ],
    ids=["half a period", "a duty of 1.5", "a duty that is no number"],
)
def test_what_the_unit_cannot_do_is_an_error(ask, fmi, built, opened, configs):
    with opened(built(configs / "miga6/rig.toml", fmi)) as unit:
        unit.start()
        with pytest.raises(fmpy.fmi1.FMICallException):
            ask(unit)


@pytest.mark.slow
def test_the_sources_in_the_unit_compile_without_warnings(built, configs, tmp_path):
    hashes = ["-DWIRE_HASH=0u", "-DFIRMWARE_HASH=0u"]
    for fmi, rig in ((2, "miga6"), (3, "wires4")):
        folder = tmp_path / str(fmi)
        unit = built(configs / rig / "rig.toml", fmi, with_boards=True)
        fmpy.extract(str(unit), str(folder))
        words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wno-type-limits", "-fsyntax-only", *hashes]
        sources = [str(path) for path in (folder / "sources").glob("*.c")]
        assert len(sources) > 10
        done = subprocess.run([*words, *sources], capture_output=True, text=True, check=True)
        assert done.stderr == ""


@pytest.mark.slow
def test_equal_arrays_have_equal_tokens_and_others_have_not(configs, tmp_path):
    loaded = load_model(configs / "miga6/rig.toml")
    model, cells = loaded.model, loaded.activation()
    other = [replace(cells[0], force_on_N=5.0), *cells[1:]]
    tokens = []
    for name, activation in (("a", cells), ("b", cells), ("c", other)):
        export(model, activation, PERIOD_S, tmp_path / f"{name}.fmu")
        tokens.append(fmpy.read_model_description(tmp_path / f"{name}.fmu").guid)
    assert tokens[0] == tokens[1] != tokens[2]


def test_the_command_names_the_unit_after_the_rig(configs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["model", str(configs / "miga6/rig.toml"), "--to", "fmu", "--fmi", "2"]) == 0
    assert "FMI 2.0 unit for linux64" in capsys.readouterr().out
    assert fmpy.read_model_description(tmp_path / "miga6.fmu").fmiVersion == "2.0"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["configs/wires4/rig.toml", "--out", "no/such/folder/w.fmu"], "no/such/folder/w.fmu"),
        (["configs/miga6_lines/rig.toml", "--to", "fmu", "--board"], "has no driver board"),
        (["configs/miga6/rig.toml", "--board"], "--board: the firmware goes into an FMU"),
        (["configs/miga6/rig.toml", "--to", "fmu", "--out", "m.mat"], "another ending"),
        (["configs/miga6/rig.toml", "--to", "fmu", "--reduce", "4"], "--reduce"),
        (["configs/leg/rig.toml", "--to", "fmu"], "leg"),
    ],
)
def test_a_unit_that_cannot_be_made_is_one_line(words, wanted, configs, capsys, monkeypatch):
    monkeypatch.chdir(configs.parent)
    assert main(["model", *words]) == 2
    line = capsys.readouterr().err.strip()
    assert wanted in line
    assert "\n" not in line


def test_a_computer_without_a_compiler_is_told_so(configs, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    out = tmp_path / "m.fmu"
    assert main(["model", str(configs / "miga6/rig.toml"), "--out", str(out)]) == 2
    assert "no C compiler" in capsys.readouterr().err
    assert not out.exists()


def test_this_computer_is_the_first_target():
    assert TARGETS[0][0] == "cc"
