"""`hil identify` as a newcomer meets it."""

import json

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.calibration.files import load_any
from hil.identification import fit
from hil.identification.wire_loops.loops import shipped
from hil.record.read import open_run

ALIKE = ["plant.arrays.muscle.mass_kg=0.01583"]
RUNS = {"alike": (1, ALIKE), "again": (2, ALIKE), "shipped": (1, [])}


class Runs(dict):
    """Half as long runs of the shipped experiment, each made when it is first asked for."""

    def __init__(self, configs, folder):
        super().__init__(folder=folder)
        self.configs = configs

    def __missing__(self, name):
        seed, sets = RUNS[name]
        config = hil.load(
            self.configs / "miga6/identify.toml", ["experiment.duration_s=4.0", *sets]
        )
        self[name] = hil.run(config, seed=seed, out=self["folder"] / f"{name}.h5")
        return self[name]


@pytest.fixture(scope="module")
def runs(configs, tmp_path_factory):
    """A rig as its model has it, with two seeds, and one as shipped."""
    return Runs(configs, tmp_path_factory.mktemp("identify"))


def said(words, capsys):
    code = main([str(word) for word in words])
    heard = capsys.readouterr()
    return code, heard.out, heard.err


@pytest.mark.slow
def test_it_finds_the_plants_spring_and_says_what_it_cannot(runs, capsys):
    code, out, _ = said(["identify", runs["alike"], "--json"], capsys)
    assert code == 0
    found = json.loads(out, parse_constant=pytest.fail)
    by_name = {p["name"]: p for p in found["parameters"]}
    k_se = by_name["arrays.muscle.cell.k_se_N_per_m"]
    assert k_se["start"] == pytest.approx(386.52)
    # The plant's 390 N/m within a hundredth of a per cent: a phase over seconds tells it.
    assert k_se["value"] == pytest.approx(390.0, rel=1e-4)
    assert k_se["bootstrap_95"] is not None
    # A mode's frequency is that of (k_pe + k_se) / m: what the records of m (0.8 g of 15.83 g) and
    # of k_pe (0.289 N/m) leave open, k_se leaves open too.
    expected = np.hypot(0.8 / 15.83 * (390.0 + 20.0) / 390.0, 0.289 / 390.0)
    assert k_se["relative_uncertainty_all_in"] == pytest.approx(expected, rel=0.01)
    force = by_name["arrays.muscle.force_on_N"]
    # A force does not go with the masses: the fit's own, the slope's 0.25 % and k_pe's small share.
    least = np.hypot(force["relative_uncertainty"], 0.0025)
    assert least * 0.99 < force["relative_uncertainty_all_in"] < 1.2 * least
    assert set(found["held"]) == {"arrays.muscle.cell.k_pe_N_per_m", "arrays.muscle.mass_kg"}
    assert all(weak["structural"] for weak in found["not_told_apart"])
    assert found["residual"]["adequate"]
    page = runs["alike"].with_name("alike-identified.html").read_text()
    assert "SIMULATED" in page
    assert "not identifiable separately" in page


@pytest.mark.slow
def test_a_record_can_be_named_by_the_rig_afterwards(runs, rigs, tmp_path, capsys):
    record = rigs.parent / "calibration/muscle_a1.toml"
    words = ["identify", runs["alike"], runs["again"], "--bootstrap", "0"]
    code, out, _ = said([*words, "--out", record, "--by", "A. Newcomer", "--serial", "A1"], capsys)
    assert code == 0
    assert str(record) in out
    made = load_any(record, named_by="test")
    assert made.record.status == "simulated"
    assert set(made.record.raw.files) == {"alike.h5", "again.h5"}
    rig = rigs / "miga6/rig.toml"
    text = rig.read_text()
    for name in ("b_N_s_per_m", "k_ae_N_per_m", "k_se_N_per_m"):
        old = next(line for line in text.splitlines() if line.startswith(f"{name} ="))
        text = text.replace(old, f"{name} = {made.value(name)!r}", 1)
    springs = next(line for line in text.splitlines() if "miga_springs.toml" in line)
    text = text.replace(springs, 'record = "../../calibration/muscle_a1.toml"')
    rig.write_text(text)
    text = text.replace("force_on_N = 4.0 ", f"force_on_N = {made.value('force_on_N')!r} ")
    text = text.replace("miga_force.toml", "muscle_a1.toml")
    rig.write_text(text)
    assert said(["check", rigs / "miga6/all_on.toml"], capsys)[0] == 0
    # Another run of the same plant is now simulated to the noise of its channel, 1.9 mN: the
    # largest of 1 000 readings' RMS but for 1 in 10 000 is 9 % above it.
    sets = ["experiment.duration_s=1.0", "plant.arrays.muscle.mass_kg=0.01583"]
    run = hil.run(hil.load(rigs / "miga6/all_on.toml", sets), seed=3, out=tmp_path / "v.h5")
    code, out, _ = said(["report", run, "--validate", "--json"], capsys)
    assert code == 0
    found = json.loads(out)["runs"][0]
    assert found["rms_N"]["value"] <= 1.09 * np.hypot(0.0019, 0.95 * 20.0 / 65536 / np.sqrt(12.0))
    settled = found["comparisons"][0]
    assert settled["u_input_N"] < 0.005 * settled["S_N"]


@pytest.mark.slow
def test_a_rig_with_something_that_the_model_lacks_is_called_so(runs, tmp_path, capsys):
    words = ["identify", runs["shipped"], "--bootstrap", "5"]
    code, out, _ = said(words, capsys)
    assert code == 5
    assert "THE MODEL LACKS AN EFFECT" in out
    assert "not visible in the residual: a wrong slope of the transducer" in out
    assert "--each mass_kg" in out
    code, out, _ = said([*words, "--each", "mass_kg", "--json"], capsys)
    assert code == 0
    assert json.loads(out)["residual"]["adequate"]


def test_a_fit_that_has_not_settled_says_so_and_no_record_is_made_of_it(
    configs, tmp_path, monkeypatch, capsys
):
    sets = ["experiment.duration_s=1.5", "plant.arrays.muscle.mass_kg=0.01583"]
    config = hil.load(configs / "miga6/identify.toml", sets)
    run = hil.run(config, out=tmp_path / "run.h5")
    monkeypatch.setattr(fit, "STEPS_MAX", 1)
    words = ["identify", run, "--bootstrap", "0", "--free", "k_se_N_per_m"]
    code, out, _ = said(words, capsys)
    assert code == 5
    assert fit.UNSETTLED in out
    page = run.with_name("run-identified.html").read_text()
    assert f"{fit.UNSETTLED.capitalize()}. " in page
    record = tmp_path / "record.toml"
    code, _, err = said([*words, "--out", record, "--by", "A", "--serial", "B"], capsys)
    assert (code, record.exists()) == (2, False)
    assert f"--out {record}: no record is written: {fit.UNSETTLED}" in err


@pytest.mark.slow
def test_no_record_is_made_of_a_model_that_lacks_something(runs, tmp_path, capsys):
    record = tmp_path / "no.toml"
    words = ["identify", runs["shipped"], "--bootstrap", "0", "--free", "force_on_N"]
    code, _, err = said([*words, "--out", record, "--by", "me", "--serial", "1"], capsys)
    assert code == 2
    assert "no record is written" in err
    assert not record.exists()


BAD = {
    "nothing of that name": (["{folder}/nix.h5"], "no such file"),
    "given twice": (["{alike}", "{alike}"], "given twice"),
    "unknown parameter": (["{alike}", "--free", "k_xe"], "no such parameter: this model has"),
    "all held": (["{alike}", "--fix", "*"], "leaves no parameter"),
    "record of nobody": (["{alike}", "--out", "{folder}/r.toml"], "--by NAME"),
}


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line(what, runs, capsys):
    words, line = BAD[what]
    words = [word.format_map(runs) for word in words]
    code, _, err = said(["identify", *words, "--bootstrap", "0"], capsys)
    assert code == 2
    assert line in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_runs_without_what_it_needs_are_refused(configs, tmp_path, capsys):
    still = tmp_path / "still.h5"
    never = 'controller.steps=[{t_s=9.0, on="all"}]'
    hil.run(
        hil.load(configs / "miga6/all_on.toml", [never, "experiment.duration_s=1.0"]), out=still
    )
    slider = tmp_path / "slider.h5"
    hil.run(hil.load(configs / "slider/steps.toml", ["experiment.duration_s=0.5"]), out=slider)
    short = tmp_path / "short.h5"
    hil.run(hil.load(configs / "miga6/all_on.toml", ["experiment.duration_s=0.1"]), out=short)
    one, other = tmp_path / "one.h5", tmp_path / "other.h5"
    for path, sets in ((one, []), (other, ["model.arrays.muscle.cell.k_pe_N_per_m=21.0"])):
        config = hil.load(configs / "miga6/all_on.toml", ["experiment.duration_s=0.5", *sets])
        hil.run(config, out=path)
    for words, line in (
        ([still], "no cell was on"),
        ([slider], "a run of a rig of kind 'linear'"),
        ([short], "at least 200"),
        ([one, other], "its [model] is not that of"),
    ):
        code, _, err = said(["identify", *words], capsys)
        assert code == 2
        assert line in err
        assert err.count("\n") == 1


def test_the_shipped_experiment_begins_with_a_rest(runs):
    cells = open_run(runs["alike"]).cells_reported.values
    assert not cells[:1000].any()
    assert cells[1100:].any()


@pytest.mark.slow
def test_loops_of_a_wire_go_the_same_way(tmp_path, capsys):
    files = []
    for loop in shipped("NiTiHf")[2:4]:
        files.append(tmp_path / f"{loop.stress_Pa / 1e6:.0f}.csv")
        rows = [loop.T_C, loop.strain, np.full(len(loop.T_C), loop.stress_Pa / 1e6)]
        header = "temperature_C,strain,stress_MPa"
        np.savetxt(files[-1], np.column_stack(rows), delimiter=",", header=header, comments="")
    record = tmp_path / "wire.toml"
    words = ["identify", *files, "--out", record, "--by", "A. Newcomer", "--serial", "W1"]
    code, out, _ = said(words, capsys)
    assert code == 0
    assert "heating.middle_C" in out
    assert "not identified" in out
    assert "beside it in the activation:\nC_A_MPa_per_K = " in out
    assert load_any(record, named_by="test").record.status == "measured"
    assert "loops measured and fitted" in files[0].with_name("100-identified.html").read_text()
    for more, line in ((["--free", "C_A"], "is fitted whole"), (files[:1], "given twice")):
        code, _, err = said(["identify", *files, *more], capsys)
        assert code == 2
        assert line in err
        assert err.count("\n") == 1
