"""Units of other programs as plant: an exported array, and units that misbehave.

The exported array stands for foreign code: it is C, compiled, behind FMI. Its sources are spoilt
for the units that crash, hang or give no number.
"""

import zipfile
from types import SimpleNamespace
from unittest.mock import MagicMock

import fmpy
import numpy as np
import pytest
import scipy.linalg

from hil.__main__ import main
from hil.errors import ConfigError, ModelError, PluginError
from hil.experiment.load import load, load_model
from hil.record.read import open_run
from hil.runs import rehearsal
from hil.systems.fmu.kind import SYSTEM
from hil.systems.fmu.unit import RunningUnit
from systems.fmu.units import CELLS, PERIOD_S, table


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("fmi", [3, 2])
@pytest.mark.parametrize("interface", ["co_simulation", "model_exchange"])
def test_a_unit_moves_as_the_matrix_exponential_says(interface, fmi, made, configs):
    model = load_model(configs / "miga6/rig.toml").model
    n, duty = len(model.states), np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    u = 4.0 * duty
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[:n, n] = model.A, model.B @ u
    step = scipy.linalg.expm(whole * PERIOD_S)
    state, right = np.append(np.zeros(n), 1.0), model.outputs.index("muscle.right_N")
    description = SYSTEM.build(table(made(fmi), interface=interface, tolerance=1e-9), PERIOD_S)
    system = SYSTEM.system(None, description, PERIOD_S)
    for _ in range(200):
        system.step(duty, np.zeros(0))
        state = step @ state
    expected_N = (model.C @ state[:n] + model.D @ u)[right]
    assert system.y[1] == pytest.approx(expected_N, rel=1e-6)
    assert abs(system.y[1]) > 0.1


@pytest.mark.slow
def test_a_run_on_a_plant_that_is_a_unit_is_a_run_on_that_array(made, rig_with, tmp_path):
    """The unit has the numbers of [model], so that only noise separates reading and twin."""
    out = tmp_path / "run.h5"
    assert main(["run", str(rig_with(made())), "--out", str(out), "--duration", "1.5"]) == 0
    run = open_run(out)
    noise_N = 0.95 * 0.002
    difference_N = run.force_measured_N.values - run.force_model_N.values
    assert np.ptp(run.force_model_N.values) > 1.0
    assert np.std(difference_N) < 1.5 * noise_N


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("fault", ["crashes", "gives no number", "hangs"])
def test_a_unit_that_fails_trips_the_run_and_the_recording_is_whole(
    fault, made, rig_with, tmp_path
):
    out, rig = tmp_path / "run.h5", rig_with(made(fault=fault), "step_max_s = 2.0")
    assert main(["run", str(rig), "--out", str(out), "--duration", "0.5"]) == 3
    run = open_run(out)
    assert run.attrs["outcome"] == "tripped"
    assert 40 <= run.sizes["tick"] <= 60
    words = {"crashes": "signal 6", "gives no number": "finite", "hangs": "no answer in time"}
    assert any(words[fault] in text for text in run.event_text.values)
    assert main(["verify", str(out)]) == 0


def test_a_unit_that_a_program_names_is_found_from_another_folder(
    made, configs, tmp_path, monkeypatch
):
    unit = made()
    monkeypatch.chdir(unit.parent)
    plant = table(unit.name).model_dump(include={"kind", "file", "cells", "outputs"})
    config = load(configs / "miga6/all_on.toml", plant=plant)
    monkeypatch.chdir(tmp_path)
    system = config.system(plant=True)
    system.step(np.ones(6), np.zeros(0))
    assert np.isfinite(system.y).all()


def test_a_unit_that_hangs_is_stopped(made):
    description = SYSTEM.build(table(made(fault="hangs"), step_max_s=0.2), PERIOD_S)
    system = SYSTEM.system(None, description, PERIOD_S)

    def run(n):
        for _ in range(n):
            system.step(np.zeros(6), np.zeros(0))

    run(45)
    with pytest.raises(PluginError, match="no answer in time"):
        run(15)
    assert system._process.wait() != 0


@pytest.mark.slow
def test_parameters_are_set_before_the_run(made):
    forces_N = []
    for force_on_N in (2.0, 4.0):
        start = {f"{cell}.force_on_N": force_on_N for cell in CELLS}
        system = SYSTEM.system(None, SYSTEM.build(table(made(), start=start), PERIOD_S), PERIOD_S)
        for _ in range(100):
            system.step(np.ones(6), np.zeros(0))
        forces_N.append(system.y[1])
    assert forces_N[1] == pytest.approx(2.0 * forces_N[0], rel=1e-9)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"file": "nowhere.fmu"}, "no such file"),
        ({"outputs": {"force_N": "muscle.rihgt_N"}}, "did you mean 'muscle.right_N'?"),
        ({"outputs": {"force_m": "muscle.right_N"}}, "is in N, and the name says _m"),
        ({"inputs": {"u": "muscle.right_N"}}, "no input of the unit"),
        ({"start": {"muscle.1.force": 1.0}}, "no such variable"),
    ],
)
def test_a_table_that_does_not_fit_the_unit_is_refused(change, wanted, made):
    given = {"file": made()} | change
    with pytest.raises(ModelError, match=wanted.replace("?", r"\?")):
        SYSTEM.build(table(**given), PERIOD_S)


def test_a_period_that_is_no_whole_number_of_the_units_steps_is_refused(made):
    with pytest.raises(ModelError, match="not a whole number"):
        SYSTEM.build(table(made()), 0.0015)


@pytest.mark.slow
def test_values_are_converted_from_the_units_own_units(made, tmp_path):
    """The same unit says millinewton of its output: the factor of its unit is 0.001."""
    other = tmp_path / "milli.fmu"
    with zipfile.ZipFile(made()) as old, zipfile.ZipFile(other, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "modelDescription.xml":
                given = b'<BaseUnit kg="1" m="1" s="-2"/>'
                assert given in data
                data = data.replace(given, b'<BaseUnit kg="1" m="1" s="-2" factor="0.001"/>')
            new.writestr(item, data)
    forces_N = []
    for file in (made(), other):
        system = SYSTEM.system(None, SYSTEM.build(table(file), PERIOD_S), PERIOD_S)
        for _ in range(50):
            system.step(np.ones(6), np.zeros(0))
        forces_N.append(system.y[1])
    assert forces_N[1] == pytest.approx(1e-3 * forces_N[0], rel=1e-12)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [("rubbish", "not a ZIP archive"), ("empty archive", "modelDescription.xml"),
     ("other platform", "has binaries for")],
)  # fmt: skip
def test_a_file_that_is_no_unit_for_this_computer_is_one_line(
    content, wanted, made, rig_with, tmp_path, capsys
):
    unit = tmp_path / "bad.fmu"
    match content:
        case "rubbish":
            unit.write_bytes(b"no unit")
        case "empty archive":
            zipfile.ZipFile(unit, "w").close()
        case _:
            with zipfile.ZipFile(made()) as old, zipfile.ZipFile(unit, "w") as new:
                for item in old.infolist():
                    name = item.filename.replace("x86_64-linux", "aarch64-darwin")
                    new.writestr(name, old.read(item))
    assert main(["check", str(rig_with(unit))]) == 2
    line = capsys.readouterr().err.strip()
    assert wanted in line
    assert "\n" not in line


def test_an_input_that_nothing_sets_is_named(made, tmp_path):
    """A unit without start values: hil sets no input by guess."""
    other = tmp_path / "bare.fmu"
    with zipfile.ZipFile(made()) as old, zipfile.ZipFile(other, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "modelDescription.xml":
                data = data.replace(b' start="0.0" min="0.0"', b' min="0.0"')
            new.writestr(item, data)
    cells = {cell: f"{cell}.duty" for cell in CELLS[1:]}
    with pytest.raises(ModelError, match=r"input 'muscle.1.duty' is not mapped"):
        SYSTEM.build(table(other, cells=cells), PERIOD_S)


def test_a_measured_signal_that_the_unit_does_not_give_is_named(made, rig_with, capsys):
    path = rig_with(made())
    rig = path.with_name("rig.toml")
    rig.write_text(rig.read_text().replace('"muscle.right_N" = "muscle.right_N"\n', ""))
    assert main(["check", str(path)]) == 2
    assert "plant.outputs: no 'muscle.right_N'" in capsys.readouterr().err


@pytest.mark.slow
def test_steps_slower_than_the_period_are_refused_on_the_real_clock(made, rig_with, monkeypatch):
    config = load(rig_with(made()))
    clock_s = iter(1e-4 * np.arange(10_000)).__next__
    monkeypatch.setattr(rehearsal, "perf_counter", clock_s)
    text = "plant: 99 % of its steps take at most 100 us"
    assert rehearsal.time_foreign(config) == [text]
    monkeypatch.setattr(rehearsal, "perf_counter", lambda: 20.0 * clock_s())
    with pytest.raises(ConfigError, match="use --clock virtual"):
        rehearsal.time_foreign(config)


def test_fmpy_knows_the_unit_that_the_loop_runs(made):
    assert fmpy.read_model_description(made()).fmiVersion == "3.0"


def test_the_times_of_a_unit_are_multiples_of_its_period(monkeypatch):
    """A thousand sums of 0.1 are 99.9999999999986."""
    fmu = MagicMock()
    monkeypatch.setattr("fmpy.fmi2.FMU2Slave", lambda **arguments: fmu)
    description = SimpleNamespace(
        fmiVersion="2.0", guid="", coSimulation=SimpleNamespace(modelIdentifier="unit")
    )
    unit = RunningUnit(description, "", exchange=False, start=[], tolerance=1e-6)
    for _ in range(1000):
        unit.step(0.1)
    begun_s = [call.args[0] for call in fmu.doStep.call_args_list]
    assert begun_s == [k * 0.1 for k in range(1000)]
    assert unit.t_s == 100.0
