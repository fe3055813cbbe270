import json

import numpy as np
import pytest

from hil.__main__ import main

COMMANDS = [
    "run",
    "check",
    "model",
    "report",
    "recover",
    "verify",
    "export",
    "campaign",
    "logbook",
    "doctor",
    "bench",
    "examples",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"example: hil {command}" in capsys.readouterr().out


def test_no_command_prints_the_help(capsys):
    assert main([]) == 2
    said = capsys.readouterr().out
    assert all(command in said for command in COMMANDS)


def test_version_is_the_distributions(capsys):
    from importlib.metadata import version

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == version("hil-arrays")


def test_run_prints_its_summary_with_the_timing_verdict(configs, tmp_path, capsys):
    words = ["run", str(configs / "miga6/pid.toml"), "--out", str(tmp_path / "run.h5")]
    assert main([*words, "--duration", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "complete: 500 rows" in said
    assert "virtual clock" in said
    assert "measured over reference" in said


def test_run_prints_valid_json(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out), "--json"]
    assert main([*words, "--duration", "0.001"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["file"] == str(out)
    assert found["outcome"] == "complete"
    assert found["rows"] == 1


def test_the_energise_plan_names_cells_times_and_static_forces(configs, capsys):
    path = str(configs / "miga6/all_on.toml")
    assert main(["check", path, "--energise-plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["checked"][0]["energise_plan"]
    assert [line.split("s")[0].strip() for line in plan] == ["0.000", "3.000", "5.000"]
    assert plan[0].count("muscle.") == 6
    assert "all off" in plan[1]


def test_a_pids_plan_gives_its_bounds(configs, capsys):
    path = str(configs / "miga6/pid.toml")
    order = ["--set", "controller.order=[1, 2]"]
    assert main(["check", path, "--energise-plan", *order]) == 0
    assert "at most 2 of 6 cells" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["npz", "mat"])
def test_model_writes_its_matrices_and_names(configs, tmp_path, ending, capsys):
    import scipy.io

    out = tmp_path / f"model.{ending}"
    assert main(["model", str(configs / "miga6/rig.toml"), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["order"] == 12
    found = np.load(out) if ending == "npz" else scipy.io.loadmat(out)
    assert found["A"].shape == (12, 12)
    assert len(found["states"]) == 12


def test_verify_and_recover_speak_json(all_on, capsys):
    assert main(["verify", str(all_on), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["whole"], found["faults"], found["rows"]) == (True, [], 5000)
    assert main(["recover", str(all_on), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recovered"] is False


def test_examples_are_copied_out_once_and_check(tmp_path, capsys):
    assert main(["examples", str(tmp_path / "mine")]) == 0
    files = sorted((tmp_path / "mine").rglob("*.toml"))
    assert main(["check", *map(str, files)]) == 0
    capsys.readouterr()
    assert main(["examples", str(tmp_path / "mine")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_a_defect_is_one_line_and_a_code_of_its_own(configs, monkeypatch, capsys):
    from hil import config

    def broken(*args):
        raise AttributeError("oops")

    monkeypatch.delenv("HIL_DEBUG", raising=False)
    monkeypatch.setattr(config, "check", broken)
    assert main(["check", str(configs / "miga6/rig.toml")]) == 1
    said = capsys.readouterr().err
    assert "AttributeError: oops" in said
    assert len(said.splitlines()) == 1
    monkeypatch.setenv("HIL_DEBUG", "1")
    with pytest.raises(AttributeError, match="oops"):
        main(["check", str(configs / "miga6/rig.toml")])
