"""`hil report --validate` as a newcomer meets it."""

import hashlib
import json
import os
import re

import h5py
import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.experiment.acceptance import ValidationTable
from hil.identification.runs import read_run
from hil.validation.figures import figures_of
from hil.validation.validate import _criteria, validate_files

KEPT = "[validation]\nrms_max_N = 0.05\nvaf_min = 0.99\ncoverage_min = 0.5\n"


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Here it is looked at what is said, not how smooth the band is."""
    monkeypatch.setattr("hil.validation.draws.DRAWS", 30)
    monkeypatch.setattr("hil.validation.figures.DRAWS", 100)


RUNS = {
    "shipped": ("all_on", ["experiment.duration_s=3.5"]),
    "strict": ("all_on", ["experiment.duration_s=1.0", "validation.rms_max_N=1e-6"]),
    "silent": ("pid", ["experiment.duration_s=1.5"]),
    "broadcast": ("broadcast", ["experiment.duration_s=2.5"]),
}


class Runs(dict):
    """Short runs, each made when it is first asked for."""

    def __init__(self, configs, folder):
        super().__init__()
        self.configs, self.folder = configs, folder

    def __missing__(self, name):
        experiment, sets = RUNS[name]
        config = hil.load(self.configs / f"miga6/{experiment}.toml", sets)
        self[name] = hil.run(config, out=self.folder / f"{name}.h5")
        return self[name]


@pytest.fixture(scope="module")
def runs(configs, tmp_path_factory):
    """With criteria as shipped, with one that cannot be kept, without any, a broadcast."""
    return Runs(configs, tmp_path_factory.mktemp("validate"))


def said(words, capsys):
    code = main([str(word) for word in words])
    heard = capsys.readouterr()
    return code, heard.out, heard.err


def test_a_run_that_keeps_what_was_written_down_is_accepted(runs, tmp_path, capsys):
    words = ["report", runs["shipped"], "--validate", "--out", tmp_path]
    code, out, _ = said(words, capsys)
    assert code == 0
    assert "accepted: all 3 criteria kept, written down before the run" in out
    page = (tmp_path / "shipped-validation.html").read_text()
    # It can be mailed: nothing in it is fetched from anywhere.
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert "SIMULATED" in page
    assert "u<sub>val</sub>" in page


@pytest.mark.slow
def test_its_json_has_every_figure_with_its_interval(runs, tmp_path, capsys):
    words = ["report", runs["shipped"], "--validate", "--out", tmp_path, "--json"]
    code, out, _ = said(words, capsys)
    assert code == 0
    found = json.loads(out, parse_constant=pytest.fail)["runs"][0]
    for name in ("rms_N", "nrmse", "vaf", "bias_N"):
        assert found[name]["low"] <= found[name]["value"] <= found[name]["high"]
    assert 1 < found["n_effective"] < found["n_readings"]
    assert found["acceptance"]["written_in"] == "recorded"
    for c in found["comparisons"]:
        assert c["E_N"] == pytest.approx(c["S_N"] - c["D_N"])
        squares = c["u_input_N"] ** 2 + c["u_D_N"] ** 2 + c["u_num_N"] ** 2
        assert c["u_val_N"] ** 2 == pytest.approx(squares)
    # The shipped force of a cell is assumed, 4 N with 1 N of standard uncertainty.
    settled = next(c for c in found["comparisons"] if c["what"] == "settled")
    assert 0.15 < settled["u_input_N"] / settled["S_N"] < 0.35


def test_a_run_that_does_not_keep_it_is_not_accepted(runs, tmp_path, capsys):
    code, out, _ = said(["report", runs["strict"], "--validate", "--out", tmp_path], capsys)
    assert code == 5
    assert "NOT ACCEPTED: rms_max_N not kept" in out


def test_without_criteria_nothing_is_accepted(runs, tmp_path, capsys):
    code, out, _ = said(["report", runs["silent"], "--validate", "--out", tmp_path], capsys)
    assert code == 5
    assert "no acceptance criteria were stated before the run" in out
    assert (tmp_path / "silent-validation.html").is_file()


@pytest.mark.slow
def test_a_file_counts_only_if_it_is_older_than_the_run(runs, tmp_path, capsys):
    run, file = runs["silent"], tmp_path / "acceptance.toml"
    file.write_text(KEPT)
    words = ["report", run, "--validate", file, "--out", tmp_path]
    code, out, _ = said(words, capsys)
    assert code == 5
    assert "acceptance.toml was written" in out
    os.utime(file, (0.0, 0.0))
    code, out, _ = said(words, capsys)
    assert code == 0
    assert "by a file whose time stamp is older than the run" in out
    code, _, err = said(["report", runs["shipped"], "--validate", file], capsys)
    assert code == 2
    assert "has its own acceptance" in err


def test_a_model_fitted_to_the_run_does_not_validate_itself(runs, tmp_path, capsys, monkeypatch):
    from hil.validation import validate as module

    class Record:
        class act:  # noqa: N801
            import datetime

            date = datetime.date(2020, 1, 1)

    class Own:
        id = "own@1"
        names, covariance = (), None
        record = Record()

    def sources(path):
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        Own.record.raw = type("Raw", (), {"files": {"a": f"sha256:{sha256}"}})
        return [(Own, [])]

    monkeypatch.setattr(module, "sources_of", sources)
    code, out, _ = said(["report", runs["shipped"], "--validate", "--out", tmp_path], capsys)
    assert code == 5
    assert "NOT ACCEPTED: own@1 was fitted to this very run" in out


@pytest.mark.slow
def test_a_broadcast_run_has_the_band_of_its_recruitment(runs, tmp_path, capsys):
    words = ["report", runs["broadcast"], "--validate", "--out", tmp_path]
    _, out, _ = said(words, capsys)
    # one every 0.2 s of 2.5 s, the first at once
    assert "within the band of recruitment (13 broadcasts drawn again)" in out
    assert "95 % of recruitment" not in out
    assert "within the band of recruitment" in (tmp_path / "broadcast-validation.html").read_text()


@pytest.mark.slow
def test_several_runs_stand_in_one_table_and_mixed_ones_are_flagged(runs, tmp_path, capsys):
    bench = tmp_path / "bench.h5"
    bench.write_bytes(runs["shipped"].read_bytes())
    with h5py.File(bench, "r+") as file:
        file.attrs["simulated"] = ""
    words = ["report", bench, runs["shipped"], runs["strict"], "--validate", "--out", tmp_path]
    code, out, _ = said(words, capsys)
    assert code == 5  # one of them is not accepted
    assert "simulated and measured runs are mixed" in out
    page = (tmp_path / "strict-validation.html").read_text()
    assert page.count('id="run') == 3
    assert "All runs" in page


@pytest.mark.slow
def test_a_run_that_tripped_is_compared_up_to_there(configs, tmp_path, capsys):
    path = tmp_path / "tripped.h5"
    config = hil.load(configs / "miga6/all_on.toml", ["guard.force_max_N=1.0"])
    hil.run(config, out=path)
    _, out, _ = said(["report", path, "--validate"], capsys)
    assert re.search(r"the run tripped: only its first 0\.\d+ s are compared", out)


@pytest.mark.parametrize("table", ["{}", "{vaf_min=1.5}", "{rms_N=1.0}", "{rms_max_N=0.0}"])
def test_criteria_that_are_none_are_refused_before_the_run(table, configs, capsys):
    words = ["check", configs / "miga6/pid.toml", "--set", f"validation={table}"]
    code, _, err = said(words, capsys)
    assert code == 2
    assert "validation" in err
    assert err.count("\n") == 1


def test_bad_input_is_one_line(runs, configs, tmp_path, capsys):
    slider = tmp_path / "slider.h5"
    hil.run(hil.load(configs / "slider/steps.toml", ["experiment.duration_s=0.5"]), out=slider)
    other = tmp_path / "silicone1.h5"
    hil.run(hil.load(configs / "silicone1/pulse.toml", ["experiment.duration_s=0.5"]), out=other)
    nothing = tmp_path / "nothing.toml"
    nothing.write_text("[acceptance]\nrms = 1.0\n")
    for words, line in (
        ([slider], "give runs of a cell_array"),
        ([runs["silent"], other], "a run of another rig"),
        ([runs["silent"], runs["silent"]], "given twice"),
        ([runs["silent"], "--validate", nothing], "nothing.toml"),
        ([runs["silent"], "--validate", tmp_path / "nix.toml"], "nix.toml"),
    ):
        words = words if "--validate" in words else [*words, "--validate"]
        code, _, err = said(["report", *words], capsys)
        assert code == 2
        assert line in err
        assert "Traceback" not in err


@pytest.fixture(scope="module")
def lifted(configs, tmp_path_factory):
    """A weight on a wire, whose displacement alone is measured."""
    sets = ["experiment.duration_s=2.0", "validation.rms_max_m=1e-3"]
    sets += ["controller.steps=[{t_s = 0.3, on = 'all'}, {t_s = 1.6, off = 'all'}]"]
    config = hil.load(configs / "isotonic/pulse.toml", sets)
    return hil.run(config, out=tmp_path_factory.mktemp("lifted") / "lifted.h5")


@pytest.mark.slow
def test_a_displacement_is_judged_as_a_force_is(lifted, tmp_path, capsys):
    words = ["report", lifted, "--validate", "--out", tmp_path]
    code, out, _ = said([*words, "--json"], capsys)
    found = json.loads(out, parse_constant=pytest.fail)["runs"][0]
    with h5py.File(lifted) as file:
        ticks = file["ticks"]
        apart_m = ticks["displacement_measured_m"][:] - ticks["displacement_model_m"][:]
    # The twin hears of a switching 3 ms later, and the laser's low-pass is 0.2 ms.
    assert found["rms_m"]["value"] == pytest.approx(np.sqrt(np.mean(apart_m**2)), rel=0.1)
    assert "rms_N" not in found
    settled = next(c for c in found["comparisons"] if c["what"] == "settled")
    assert settled["E_m"] == pytest.approx(settled["S_m"] - settled["D_m"])
    code, out, _ = said(words, capsys)
    assert code == 0
    assert " mm, NRMSE" in out
    assert "the displacement sensor has no calibration" in out
    page = (tmp_path / "lifted-validation.html").read_text()
    assert "Measured displacement over the model" in page
    assert "S [m]" in page


def test_a_limit_of_a_force_is_not_met_by_a_displacement(lifted):
    recorded = read_run(lifted, displacements=True)
    figures = figures_of(recorded.data.measured, recorded.data.measured)
    table = ValidationTable(rms_max_N=1.0, rms_max_m=1e-3)
    force, displacement = _criteria(table, figures, None, 1.0, "m")
    assert (force.key, force.met) == ("rms_max_N", False)
    assert (displacement.key, displacement.met) == ("rms_max_m", True)


@pytest.fixture(scope="module")
def pulled(configs, tmp_path_factory):
    """A cold wire that the stage stretches by 1 mm; the wire of the plant is that of the model."""
    ramp = (
        "controller.outputs.stage={kind = 'ramp', t_s = [0.0, 0.5, 1.5], value = [0.0, 0.0, 0.001]}"
    )
    sets = [ramp, "controller.steps=[{t_s = 1.9, on = 'all'}]", "experiment.duration_s=2.0"]
    sets += ["plant.arrays.wire.activation.ambient_C=25.0"]
    folder = tmp_path_factory.mktemp("pulled")
    return hil.run(hil.load(configs / "stage/pull.toml", sets), out=folder / "pulled.h5")


@pytest.mark.slow
def test_the_model_of_a_validation_is_stretched_by_the_stage_as_the_twin_is(pulled):
    [found] = validate_files([pulled], None)
    # The channel's noise is 1 mN. `hil test isothermal` measures 1.03 N/mm of the cold wire.
    assert found.figures.rms_N.value < 0.002
    assert np.ptp(found.uncertainty.simulated_N) == pytest.approx(1.03, rel=0.02)
    # The rest ends where the stage starts: its motion is no noise.
    assert found.data.first_on == pytest.approx(500, abs=2)
    assert np.max(found.uncertainty.u_D_N) < 0.01
    # Half steps of an even motion arrive where whole steps do.
    assert np.max(found.uncertainty.u_num_N) < 5e-6


def test_where_a_stage_is_says_nothing_of_the_model(pulled, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("hil.identification.runs.force_channel", lambda tables: None)
    code, _, err = said(["report", pulled, "--validate", "--out", tmp_path], capsys)
    assert code == 2
    assert "no displacement of its model" in err
