import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hil.__main__ import main
from hil.platform.terminal import say

GROUPS = {
    "Run and look": "run check campaign test watch publish gui report figure import replay export "
    "verify recover",
    "Find and compare": "runs diff",
    "Rig and calibration": "new devices board calibrate recalibrate logbook",
    "Models and studies": "model topologies identify study",
    "Tools": "doctor bench notify simboard simdaq examples completion",
}
COMMANDS = " ".join(GROUPS.values()).split()
ENVIRONMENT = {**os.environ, "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert f"example: hil {command}" in capsys.readouterr().out


def test_help_lists_every_command_in_its_group_on_one_line_of_80_columns(capsys):
    assert main([]) == 2
    found, title = {}, ""
    for line in capsys.readouterr().out.partition("\noptions:")[0].splitlines():
        assert len(line) <= 80
        if line.endswith(":"):
            title = line[:-1]
        elif title and line:
            name, text = line.split(maxsplit=1)
            assert text
            found[title] = f"{found.get(title, '')} {name}".strip()
    assert found == GROUPS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rnu"], "hil: unknown command 'rnu': did you mean 'run'?"),
        (["calibrat", "x"], "hil: unknown command 'calibrat': did you mean 'calibrate'?"),
        (["pid.toml"], "hil: 'pid.toml' is a file: did you mean 'hil run pid.toml'?"),
        (["a.b.h5"], "hil: 'a.b.h5' is a file: did you mean 'hil report a.b.h5'?"),
        (["run", "x.toml", "--duraton", "4"],
         "hil run: unknown option --duraton: did you mean '--duration'?"),
        (["run", "x.toml", "--bakend=sim"],
         "hil run: unknown option --bakend: did you mean '--backend'?"),
        (["export", "x.h5", "--to", "cvs"], "hil export: unknown --to 'cvs': did you mean 'csv'?"),
        (["board", "limit"], "hil board: unknown what 'limit': did you mean 'limits'?"),
        (["export", "x.h5", "--to", "zip"],
         "hil export: unknown --to 'zip': choose csv, mat, mcap, mdf, parquet, crate, eln: see hil "
         "export --help"),
        (["verify", "a.h5", "b.h5"],
         "hil verify: one argument too many: 'b.h5': see hil verify --help"),
    ],
)  # fmt: skip
def test_a_wrong_word_gets_one_line_with_the_nearest_right_one(words, expected, capsys):
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    assert capsys.readouterr().err == f"{expected}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["calibrate", "force_transduser"], "did you mean 'force_transducer'?"),
        (["study", "fingerprit"], "did you mean 'fingerprint'?"),
    ],
)
def test_a_wrong_kind_of_calibration_or_study_gets_the_nearest_right_one(words, expected, capsys):
    assert main(words) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "verify", "recover", "replay", "gui"])
def test_a_mistyped_recording_gets_the_nearest_one(command, tmp_path, capsys):
    (tmp_path / "first.h5").touch()
    (tmp_path / "fisst.toml").touch()
    assert main([command, str(tmp_path / "fisrt.h5")]) == 2
    said = capsys.readouterr().err
    assert said == f"{tmp_path}/fisrt.h5: no such file: did you mean 'first.h5'?\n"


def test_a_file_in_a_mistyped_folder_gets_the_nearest_one(configs, capsys):
    assert main(["check", str(configs / "mga6/rig.toml")]) == 2
    assert capsys.readouterr().err.endswith(f"did you mean '{configs}/miga6/rig.toml'?\n")
    assert main(["check", str(configs / "mga6/preview.toml.old")]) == 2
    assert "'hil examples DIR'" in capsys.readouterr().err


def test_characters_that_a_western_code_page_lacks_are_escaped(tmp_path, monkeypatch):
    wide, narrow = io.BytesIO(), io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(wide, encoding="utf-8"))
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(narrow, encoding="cp1252"))
    assert main(["check", str(tmp_path / "Ω ü.toml")]) == 2
    say("σ = 1")
    sys.stderr.flush()
    sys.stdout.flush()
    assert "\\u03a9 ü.toml: no such file" in narrow.getvalue().decode("cp1252")
    assert wide.getvalue().decode() == "σ = 1\n"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("hil rec", {"recover", "recalibrate"}),
        ("hil run --du", {"--duration"}),
        ("hil run --clock ", {"real", "virtual"}),
        ("hil run configs/miga6/pi", {"configs/miga6/pid.toml"}),
        ("hil report RE", set()),
        ("hil calibrate spr", {"spring_constants"}),
        ("hil study soft", {"soft-chain"}),
        ("hil run --duration ", set()),
    ],
)
def test_tab_completes_commands_options_and_files_of_the_right_type(
    typed, expected, tmp_path, configs
):
    answer = tmp_path / "answer"
    environment = ENVIRONMENT | {
        "COMP_LINE": typed, "COMP_POINT": str(len(typed)), "_ARGCOMPLETE_STDOUT_FILENAME": answer
    }  # fmt: skip
    words = [sys.executable, "-m", "hil"]
    subprocess.run(words, env=environment, cwd=configs.parent, timeout=600, check=True)
    assert {word.strip() for word in answer.read_text().split("\n") if word} == expected


def test_bash_runs_the_script_for_tab_completion(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    shown = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p hil"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.split()[-1] == "hil"


def test_help_imports_no_module_that_a_command_needs():
    code = "import sys, hil.commands.command_line as c; c.command_line(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"argcomplete", "difflib", "h5py", "numba", "numpy", "pydantic", "scipy", "xarray"}
    assert not heavy & set(done.stdout.split())


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


@pytest.mark.slow
def test_examples_are_copied_out_once_and_check(tmp_path, capsys):
    assert main(["examples", str(tmp_path / "mine")]) == 0
    files = sorted((tmp_path / "mine").rglob("*.toml"))
    assert main(["check", *map(str, files)]) == 0
    capsys.readouterr()
    assert main(["examples", str(tmp_path / "mine")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_an_internal_error_is_one_line_and_a_code_of_its_own(configs, monkeypatch, capsys):
    def broken(*args):
        raise AttributeError("oops")

    monkeypatch.delenv("HIL_DEBUG", raising=False)
    monkeypatch.setattr("hil.runs.check.check", broken)
    assert main(["check", str(configs / "miga6/rig.toml")]) == 1
    said = capsys.readouterr().err
    assert "AttributeError: oops" in said
    assert len(said.splitlines()) == 1
    monkeypatch.setenv("HIL_DEBUG", "1")
    with pytest.raises(AttributeError, match="oops"):
        main(["check", str(configs / "miga6/rig.toml")])


def test_what_a_full_disk_cannot_take_is_one_line():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hil", "completion", "bash"],
            stdout=full, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONUNBUFFERED": ""},  # so that Python prints at its end
        )  # fmt: skip
    line = "hil: No space left on device: free some, or write elsewhere\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.parametrize("method", ["is_dir", "open"])  # of the folder it lies in, of itself
@pytest.mark.parametrize("words", [["report"], ["export", "--to", "csv"], ["verify"]])
def test_a_recording_that_may_not_be_read_is_one_line(all_on, monkeypatch, capsys, words, method):
    command, *options = words

    def denied(path, *args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, method, denied)
    assert main([command, str(all_on), *options]) == 2
    said = capsys.readouterr().err
    assert (
        said
        == f"{all_on}: cannot be read (Permission denied): check the path and its permissions\n"
    )


@pytest.mark.parametrize("command", ["report", "recover", "export"])
def test_a_part_of_a_recording_says_how_much_is_missing(all_on, tmp_path, capsys, command):
    part = tmp_path / "part.h5"
    whole = all_on.read_bytes()
    part.write_bytes(whole[:100_000])
    assert main([command, str(part)]) == 2
    said = capsys.readouterr().err
    assert said == (
        f"{part}: only 100000 of its {len(whole)} bytes are here: copy the whole file again\n"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            '[[fault]]\nkind = "board_lost"\nat_s = 1.0\n',
            "a file of faults: give it to hil run EXPERIMENT.toml --inject",
        ),
        (None, "a calibration record: name it in a rig"),
        ("[devices.board]\n", "give an experiment, not a rig"),
    ],
)
def test_a_file_that_is_no_experiment_is_called_what_it_is(configs, tmp_path, capsys, text, line):
    file = tmp_path / "file.toml"
    record = configs.parent / "calibration/futek_9N.toml"
    file.write_text(record.read_text() if text is None else text)
    assert main(["run", str(file)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"{file}: no [experiment]: {line}"


def test_a_text_in_another_encoding_is_told_which_one_is_read(tmp_path, capsys):
    file = tmp_path / "utf16.toml"
    file.write_text("[experiment]", encoding="utf-16")
    assert main(["run", str(file)]) == 2
    assert capsys.readouterr().err.endswith(": not UTF-8 text: give a TOML file, saved as UTF-8\n")


@pytest.mark.parametrize("options", [[], ["--validate"]])
def test_a_report_into_a_file_is_refused_before_a_folder_has_its_name(
    all_on, tmp_path, capsys, options
):
    out = tmp_path / "figure.png"
    assert main(["report", str(all_on), "--out", str(out), *options]) == 2
    assert "give a folder" in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_for_the_window_is_called_one(tmp_path, capsys):
    assert main(["gui", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path}: a folder: give an experiment or a recording\n"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("x.mat", "--to csv writes .csv: add --to mat, or name it x.csv"),
        ("run.h5", "a recording: name it run.csv"),
    ],
)
def test_an_export_is_no_recording_and_no_other_format(all_on, tmp_path, capsys, name, line):
    recording, out = tmp_path / "run.h5", tmp_path / name
    recording.write_bytes(all_on.read_bytes())
    assert main(["export", str(recording), "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"--out {out}: {line}\n"
    assert recording.read_bytes() == all_on.read_bytes()
    assert list(tmp_path.iterdir()) == [recording]


def test_an_older_export_is_overwritten(all_on, tmp_path):
    out = tmp_path / "run.csv"
    out.write_text("older")
    assert main(["export", str(all_on), "--out", str(out)]) == 0
    assert out.read_text().startswith("t_s,")


@pytest.mark.parametrize(
    "words",
    [
        ["recover", "x.h5"],
        ["gui", "x.h5"],
        ["simdaq", "--run", "x.py"],
        ["calibrate", "force_transducer", "--rehearse", "--out", "x.toml"],
    ],
)
def test_a_folder_that_may_not_be_entered_is_one_line(monkeypatch, capsys, words):
    def denied(method):
        def asked(path, *args, **options):
            if path.name == words[-1]:
                raise PermissionError(13, "Permission denied", str(path))
            return method(path, *args, **options)

        return asked

    for name in ("is_file", "exists", "is_dir"):
        monkeypatch.setattr(Path, name, denied(getattr(Path, name)))
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"{words[-1]}: Permission denied: check the path and its permissions\n")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.EMFILE, "Too many open files"),
            "Too many open files: allow more (ulimit -n",
        ),
        (MemoryError(), "not enough memory: close other programs"),
    ],
)
def test_what_the_computer_lacks_is_one_line_with_its_remedy(
    error, said, all_on, monkeypatch, capsys
):
    def refused(*_, **__):
        raise error

    monkeypatch.setattr("hil.record.repair.faults_of", refused)
    assert main(["verify", str(all_on)]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"hil: {said}")
    assert len(text.splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a current folder cannot be deleted there")
def test_a_command_in_a_folder_that_was_deleted_is_one_line(tmp_path, all_on, monkeypatch, capsys):
    """It was an internal error: packages that are imported ask where they are."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr("hil.record.repair.faults_of", lambda *_, **__: os.getcwd())
    assert main(["verify", str(all_on)]) == 2
    assert capsys.readouterr().err == "hil: the current folder was deleted: change to another one\n"
