import codecs
import os
import re
import shutil
from typing import Literal

import h5py
import pytest
from pydantic import create_model

from hil.__main__ import main
from hil.config.files import Merged, read_merged
from hil.config.validate import validated
from hil.errors import ConfigError
from hil.experiment.load import load

MUSCLE = "model.arrays.muscle"

# (experiment, --set, what the one line on standard error names)
BAD_VALUES = {
    "build for a kind": (
        "all_on",
        "devices.board.kind='arduino'",
        ["devices.board.kind = 'arduino'", "mean kind = 'cell_board' with build = 'arduino'?"],
    ),
    "unknown key": ("all_on", "loop.perod_s=0.001", ["loop.perod_s", "unknown key", "'period_s'"]),
    "unknown key, nothing like it": ("all_on", "loop.zzzqqq=1", ["loop.zzzqqq", "remove it"]),
    "unknown table": ("all_on", "gaurd.force_max_N=1.0", ["gaurd", "'guard'"]),
    "text for a number": ("all_on", "loop.period_s='1 ms'", ["period_s = '1 ms'", "a number"]),
    "number for a text": ("all_on", "experiment.name=3", ["experiment.name = 3", "text in quotes"]),
    "float for a count": (
        "all_on",
        "loop.overruns_max=2.5",
        ["overruns_max = 2.5", "an integer"],
    ),
    "number for a table": ("all_on", "guard=3", ["guard = 3", "must be"]),
    "period of zero": ("all_on", "loop.period_s=0.0", ["loop.period_s", "greater"]),
    "not a number": ("all_on", "guard.force_max_N=nan", ["guard.force_max_N", "finite"]),
    "endless": ("all_on", "experiment.duration_s=inf", ["experiment.duration_s", "finite"]),
    "a thousand years": ("all_on", "experiment.duration_s=3.2e10", ["duration_s", "less than"]),
    "name of two lines": ("all_on", 'experiment.name="a\\nb"', ["experiment.name", "one line"]),
    "negative mass": ("all_on", f"{MUSCLE}.mass_kg=-0.01", [f"{MUSCLE}.mass_kg", "greater than 0"]),
    "one negative mass": (
        "all_on",
        f"{MUSCLE}.mass_kg=[0.01, 0.01, -0.01, 0.01, 0.01]",
        [f"{MUSCLE}.mass_kg.2", "greater than 0"],
    ),
    "too few masses": ("all_on", f"{MUSCLE}.mass_kg=[0.01, 0.02]", [f"{MUSCLE}.mass_kg", "5"]),
    "negative stiffness": (
        "all_on",
        f"{MUSCLE}.cell.k_ae_N_per_m=-1.0",
        [f"{MUSCLE}.cell.k_ae_N_per_m", "greater than 0"],
    ),
    "cell of no kind": ("all_on", f"{MUSCLE}.cell.kind='gecko'", ["cell.kind = 'gecko'", "'miga'"]),
    "unclaimed cell": (
        "all_on",
        f"{MUSCLE}.fingerprint='-:1 | &1:2 | &1:1 | &7:-1'",
        [f"{MUSCLE}.fingerprint"],
    ),
    "no fingerprint": ("all_on", f"{MUSCLE}.fingerprint='?'", [f"{MUSCLE}.fingerprint"]),
    "too few forces": ("all_on", f"{MUSCLE}.force_on_N=[1.0, 2.0]", ["force_on_N", "6 cells"]),
    "dead cell that is not": ("all_on", f"{MUSCLE}.dead_cells=[7]", ["dead_cells", "1 to 6"]),
    "array to nowhere": ("all_on", f"{MUSCLE}.to='moon'", [MUSCLE, "moon"]),
    "plant of other cells": (
        "all_on",
        "plant.arrays.muscle.fingerprint='-:6 | &3F:-1'",
        ["plant"],
    ),
    "schedule names no cell": (
        "all_on",
        "controller.steps=[{t_s=0.0, on=[7]}]",
        ["controller.steps.0.on", "1 to 6"],
    ),
    "schedule names a stranger": (
        "all_on",
        "controller.steps=[{t_s=0.0, on=['biceps.1']}]",
        ["controller.steps.0.on", "'biceps.1'"],
    ),
    "schedule of half a cell": (
        "all_on",
        "controller.steps=[{t_s=0.0, on=[1.5]}]",
        ["controller.steps.0.on", "list of cell numbers"],
    ),
    "neither all nor a list": (
        "all_on",
        "controller.steps=[{t_s=0.0, on='every'}]",
        ["controller.steps.0.on", "list of cell numbers"],
    ),
    "step that switches nothing": (
        "all_on",
        "controller.steps=[{t_s=0.0}]",
        ["controller.steps.0", "switches nothing"],
    ),
    "controller of no kind": ("all_on", "controller.kind='lqg'", ["controller.kind", "'pid'"]),
    "looser guard": ("all_on", "guard.force_max_N=9.4", ["guard.force_max_N", "looser", "s 9:"]),
    "looser time on": ("all_on", "guard.cell_on_max_s=11.0", ["guard.cell_on_max_s", "looser"]),
    "limit that lasts longer than its default": (
        "all_on",
        "guard.hold_s.force_high=100.0",
        ["guard.hold_s.force_high = 100", "looser than the default 0", "the rig's file"],
    ),
    "limit that the board lacks": (
        "all_on",
        "devices.board.limits.heat_max_cA2mS=1",
        ["devices.board.limits.heat_max_cA2mS", "did you mean 'heat_max_cA2ms'?"],
    ),
    "noise beyond all numbers": (
        "pid",
        "observer.force_noise_N=1e300",
        ["observer.force_noise_N = 1e+300", "of this size", "unit of its key"],
    ),
    "watchdog of a card without outputs": (
        "all_on",
        "devices.daq.watchdog='required'",
        ["devices.daq.watchdog = 'required'", "no output", "enable line"],
    ),
    "card without a name": ("all_on", "devices.daq.card=''", ["devices.daq.card", "at least 1"]),
    "channel without a terminal": (
        "all_on",
        "devices.daq.channels.force.terminal=''",
        ["devices.daq.channels.force.terminal", "at least 1"],
    ),
    "channel ends below the guard": (
        "all_on",
        "devices.daq.range_V=5.0",
        ["devices.daq.channels.force.record", "4.75 N", "guard.force_max_N"],
    ),
    "channel unlike its record": (
        "all_on",
        "devices.daq.channels.force.newtons_per_V=0.5",
        ["devices.daq.channels.force.newtons_per_V = 0.5", "futek_9N@", "0.95"],
    ),
    "record that is not there": (
        "all_on",
        "devices.daq.channels.force.record='gone.toml'",
        ["devices.daq.channels.force.record", "no such file: gone.toml"],
    ),
    "samples that fit no tick": (
        "all_on",
        "devices.daq.rate_Hz=1500.0",
        ["devices.daq.rate_Hz = 1500", "whole multiple", "1000 Hz"],
    ),
    "force that is not there": (
        "all_on",
        "devices.daq.channels.force.signal='muscle.up_N'",
        ["devices.daq.channels.force.signal", "muscle.right_N"],
    ),
    "channel with a path for a name": (
        "all_on",
        'devices.daq.channels={"a/b" = {terminal="ai0", newtons_per_V=0.95}}',
        ["a/b", "letters"],
    ),
    "two gates for one cell": (
        "all_on",
        "devices.board.cells=['muscle.1','muscle.1','muscle.2','muscle.3','muscle.4','muscle.5',"
        "'muscle.6']",
        ["2 gates", "'muscle.1'", "one gate"],
    ),
    "missing gate": (
        "all_on",
        "devices.board.cells=['muscle.1','muscle.2','muscle.3','muscle.4','muscle.5']",
        ["devices.board.cells", "no gate for cell 'muscle.6'"],
    ),
    "gate for no cell": (
        "all_on",
        "devices.board.cells=['muscle.1','muscle.2','muscle.3','muscle.4','muscle.5','muscle.6',"
        "'muscle.7']",
        ["devices.board.cells", "no cell 'muscle.7'"],
    ),
    "reference beyond the array": (
        "pid",
        "reference.force_N=[0.6, 1.9, 0.3]",
        ["reference", "1.9"],
    ),
    "reference that pushes": ("pid", "reference.force_N=[0.6, -0.2, 0.3]", ["reference", "-0.2"]),
    "reference beyond the guard": ("pid", "guard.force_max_N=1.0", ["reference", "force_max_N"]),
    "reference of two lengths": (
        "pid",
        "reference.force_N=[0.6]",
        ["reference.force_N", "3 times"],
    ),
    "times that fall": ("pid", "reference.t_s=[3.0, 0.5, 5.5]", ["reference.t_s", "rise"]),
    "cell twice in the order": ("pid", "controller.order=[1, 'muscle.1']", ["order", "twice"]),
    "order of strangers": ("pid", "controller.order=[0]", ["controller.order", "1 to 6"]),
    "order of nothing": ("pid", "controller.order=[]", ["controller.order", "none of its cells"]),
    "negative gain": ("pid", "controller.k_p=-1.0", ["controller.k_p", "greater"]),
    "hysteresis of a whole step": ("pid", "controller.hysteresis=1.0", ["hysteresis", "less than"]),
    "preview of the past": (
        "preview",
        "controller.preview_s=-0.1",
        ["preview_s = -0.1", "greater"],
    ),
    "preview beyond the run": (
        "preview",
        "controller.preview_s=8.1",
        ["controller.preview_s = 8.1", "longer than the run of 8 s", "give the delay"],
    ),
    "set without a value": ("all_on", "loop.period_s", ["--set loop.period_s", "key.path=value"]),
    "set without a key": ("all_on", "=1", ["--set =1", "key.path=value"]),
    "set with a hole in its key": ("all_on", "loop..period_s=1", ["key.path=value"]),
}


def refused(capsys, *words):
    """Run a command that must be refused; its one line on standard error."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as left:
        code = left.code
    said = capsys.readouterr()
    assert code == 2, said.err
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 1, said.err
    assert "Traceback" not in said.err
    assert "defect" not in said.err
    return lines[0]


@pytest.mark.parametrize("case", BAD_VALUES)
def test_a_bad_value_is_one_line_with_key_and_remedy_and_nothing_is_recorded(
    case, configs, tmp_path, capsys
):
    name, change, wanted = BAD_VALUES[case]
    out = tmp_path / "run.h5"
    line = refused(capsys, "run", configs / f"miga6/{name}.toml", "--out", out, "--set", change)
    assert f"--set {change.split('=')[0]}"[:8] in line or "/miga6/" in line
    for words in wanted:
        assert words in line
    assert list(tmp_path.iterdir()) == []
    assert refused(capsys, "check", configs / f"miga6/{name}.toml", "--set", change) == line


# (file to change, text to replace, by what, what the line names)
BAD_FILES = {
    "unknown key in the rig": (
        "rig.toml", "overrun", "[loop]\n", "[loop]\noverun = 'trip'\n",
        ["rig.toml: loop.overun", "'overrun'"],
    ),
    "missing key": ("rig.toml", "", "period_s = 0.001\n", "", ["loop.period_s", "missing"]),
    "rig without a board": (
        "rig.toml", "", 'kind = "cell_board"', 'kind = "toaster"',
        ["rig.toml: devices.board.kind", "'cell_board'"],
    ),
    "looser guard": (
        "all_on.toml", "", "[controller]", "[guard]\nforce_max_N = 9.3\n[controller]",
        ["all_on.toml: guard.force_max_N = 9.3", "looser than the rig's 9:", "tighten"],
    ),
    "rig that is not there": (
        "all_on.toml", "", '"rig.toml"', '"other.toml"', ["all_on.toml: rig", "no such file"],
    ),
    "rig that is no path": ("all_on.toml", "", '"rig.toml"', "3", ["all_on.toml: rig = 3", "path"]),
    "itself for a rig": (
        "all_on.toml", "", '"rig.toml"', '"all_on.toml"', ["all_on.toml: rig: unknown"],
    ),
    "model in an experiment": (
        "all_on.toml", "", "[controller]", "[model]\nkind='x'\n[controller]",
        ["all_on.toml: model: unknown in an experiment"],
    ),
    "key of two lines": (
        "all_on.toml", "", "[controller]", '[record]\n"a\\nb" = 1\n[controller]',
        ["all_on.toml: record.a\\nb: unknown key"],
    ),
    "not TOML": ("all_on.toml", "", "[controller]", "[controller", ["all_on.toml", "line 8"]),
    "too deep": ("all_on.toml", "", "5.0", "[" * 20000, ["all_on.toml", "not valid TOML"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_named_in_one_line(case, rigs, capsys):
    name, _, old, new, wanted = BAD_FILES[case]
    path = rigs / "miga6" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    line = refused(capsys, "run", rigs / "miga6/all_on.toml", "--out", rigs / "run.h5")
    for words in wanted:
        assert words in line
    assert not (rigs / "run.h5").exists()


def test_several_mistakes_are_a_line_each(configs, tmp_path, capsys):
    sets = ["--set", "loop.period_s='x'", "--set", "guard.cell_on_max_s=-1.0"]
    assert (
        main(["run", str(configs / "miga6/all_on.toml"), "--out", str(tmp_path / "r"), *sets]) == 2
    )
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1].split(" =")[0] for line in lines] == [
        "loop.period_s",
        "guard.cell_on_max_s",
    ]


def test_only_the_rigs_own_file_lets_a_limit_last_longer(rigs, capsys):
    rig, experiment = rigs / "miga6/rig.toml", rigs / "miga6/all_on.toml"
    longer = "[guard.hold_s]\nforce_rate_high = 0.02\n"
    rig.write_text(rig.read_text() + longer)
    assert main(["check", str(experiment)]) == 0
    capsys.readouterr()
    change = "guard.hold_s.force_rate_high=0.03"
    line = refused(capsys, "check", experiment, "--set", change)
    assert "looser than the rig's 0.02" in line


def test_a_recording_in_place_of_an_experiment_is_named_as_such(tmp_path, capsys):
    path = tmp_path / "run.h5"
    with h5py.File(path, "w"):
        pass
    line = refused(capsys, "run", path, "--out", tmp_path / "other.h5")
    assert line == f"{path}: a recording: use hil report, hil gui or hil replay"


def test_a_file_with_the_byte_order_mark_of_notepad_is_read(rigs):
    for name in ("rig", "all_on"):
        path = rigs / f"miga6/{name}.toml"
        path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert main(["check", str(rigs / "miga6/all_on.toml")]) == 0


def test_a_key_set_outside_its_table_is_named_with_its_table(configs, capsys):
    line = refused(capsys, "check", configs / "miga6/pid.toml", "--set", "k_p=1")
    assert "did you mean 'controller.k_p'?" in line


@pytest.mark.parametrize(
    ("given", "meant"),
    [("loop.force_max_N=1", "guard.force_max_N"), ("guard.duration_s=1", "experiment.duration_s"),
     ("controller.flush_s=1", "record.flush_s")],
)  # fmt: skip
def test_a_key_in_the_wrong_table_is_named_with_its_own(given, meant, configs, capsys):
    """Also where the rig does not have it: configs/arm has no `guard.force_max_N`."""
    line = refused(capsys, "check", configs / "arm/reach.toml", "--set", given)
    assert f"did you mean '{meant}'?" in line


def test_a_key_is_never_answered_with_its_own_name(configs, capsys):
    """`steps` is a key of another kind of controller."""
    line = refused(capsys, "check", configs / "miga6/pid.toml", "--set", "controller.steps=[]")
    assert line.endswith("controller.steps: unknown key of this table: remove it")


def test_a_key_that_several_tables_have_names_none_of_them(configs, capsys):
    line = refused(capsys, "check", configs / "miga6/pid.toml", "--set", "kind='pid'")
    assert line.endswith("known in another: move it")


def test_an_experiment_without_its_rig_is_one_line(rigs, capsys):
    path = rigs / "miga6/all_on.toml"
    path.write_text(path.read_text().replace('rig = "rig.toml"', ""))
    assert "rig: missing" in refused(capsys, "check", path)


@pytest.mark.parametrize("of", ["experiment", "rig"])
def test_a_misspelt_file_is_answered_with_the_nearest_name(of, rigs, capsys):
    path = rigs / "miga6/all_on.toml"
    if of == "rig":
        path.write_text(path.read_text().replace('"rig.toml"', '"rigg.toml"'))
    else:
        path = path.with_name("all_onn.toml")
    wanted = "rig.toml" if of == "rig" else "all_on.toml"
    assert f"did you mean '{wanted}'?" in refused(capsys, "check", path)


def test_an_experiment_given_as_a_file_of_faults_is_named_as_one(configs, tmp_path, capsys):
    path = configs / "miga6/all_on.toml"
    words = ["run", path, "--inject", path, "--out", tmp_path / "run.h5"]
    assert f"{path}: an experiment: give --inject" in refused(capsys, *words)


def test_a_recording_under_the_name_of_another_format_is_refused(configs, tmp_path, capsys):
    out = tmp_path / "pid.csv"
    line = refused(capsys, "run", configs / "miga6/all_on.toml", "--out", out)
    assert "pid.h5" in line
    assert "hil export" in line
    assert not out.exists()


@pytest.mark.parametrize(
    ("experiment", "key"),
    [("miga6/pid", "reference.t_s"), ("miga6/all_on", "controller.steps")],
)
def test_a_step_after_the_end_is_warned_of_unless_the_run_was_cut_short(
    experiment, key, rigs, capsys
):
    path = rigs / f"{experiment}.toml"
    warning = f"{key}: the step at 3 s never comes"
    assert main(["check", str(path)]) == 0
    assert warning not in capsys.readouterr().out
    assert main(["check", str(path), "--set", "experiment.duration_s=2.5"]) == 0
    assert warning not in capsys.readouterr().out
    text = path.read_text()
    path.write_text(re.sub(r"duration_s = [0-9.]+", "duration_s = 2.5", text))
    assert main(["check", str(path)]) == 0
    assert warning in capsys.readouterr().out


def test_a_recording_of_a_newer_version_is_named_as_one(tmp_path, capsys):
    path = tmp_path / "run.h5"
    for number, words in (("2", "newer hil"), ("0", "not a recording"), ("x", "not a recording")):
        with h5py.File(path, "w") as file:
            file.attrs["format"] = f"hil-run/{number}"
        assert words in refused(capsys, "report", path)


@pytest.mark.parametrize("command", ["run", "check", "model"])
def test_a_file_that_cannot_be_read_is_one_line(command, configs, tmp_path, capsys):
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00[model]")
    cases = {
        tmp_path / "missing.toml": "no such file",
        tmp_path: "folder",
        binary: "UTF-8",
        binary / "below.toml": "cannot be read",
        tmp_path / ("x" * 300): "cannot be read",
    }
    for path, words in cases.items():
        line = refused(capsys, command, path)
        assert line.startswith(f"{path}: ")
        assert words in line


def test_a_rig_cannot_be_run(configs, capsys):
    assert "no [experiment]" in refused(capsys, "run", configs / "miga6/rig.toml")


def out_below_a_file(folder):
    (folder / "file").write_text("")
    return folder / "file/run.h5", "cannot be made"


def out_is_a_folder(folder):
    (folder / "deep").mkdir()
    return folder / "deep", "a folder"


def out_exists(folder):
    (folder / "run.h5").write_text("precious")
    return folder / "run.h5", "--force"


def out_has_a_long_name(folder):
    return folder / ("x" * 300), "cannot be made"


def out_is_a_pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe", "not a regular file"


@pytest.mark.parametrize(
    "make", [out_below_a_file, out_is_a_folder, out_exists, out_has_a_long_name, out_is_a_pipe]
)
def test_an_output_that_cannot_be_written_is_one_line(make, configs, tmp_path, capsys):
    out, words = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    force = ["--force"] if make is out_is_a_pipe else []
    line = refused(capsys, "run", configs / "miga6/all_on.toml", "--out", out, *force)
    assert str(out) in line
    assert words in line
    assert sorted(tmp_path.iterdir()) == before
    if make is out_exists:
        assert out.read_text() == "precious"


def test_a_nearly_full_disk_is_refused_before_anything_is_made(
    configs, tmp_path, capsys, monkeypatch
):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2**20))
    out = tmp_path / "run.h5"
    line = refused(capsys, "run", configs / "miga6/all_on.toml", "--out", out)
    assert str(out) in line
    assert "1 MB free" in line
    assert "--out" in line
    assert not out.exists()


BAD_WORDS = {
    "backend": (["--backend", "real"], ["--backend real", "sim"]),
    "device of a backend": (["--backend", "camera=sim"], ["'camera'", "board, daq"]),
    "clock": (["--clock", "sundial"], ["--clock", "virtual"]),
    "seed": (["--seed", "-1"], ["--seed -1", "whole number"]),
    "seed of letters": (["--seed", "x"], ["--seed", "'x'"]),
    "duration of letters": (["--duration", "x"], ["--duration", "'x'"]),
    "negative duration": (["--duration", "-1"], ["duration_s", "greater than 0"]),
    "duration of nothing": (["--duration", "nan"], ["duration_s", "finite"]),
    "unknown option": (["--frobnicate"], ["--frobnicate"]),
}


@pytest.mark.parametrize("case", BAD_WORDS)
def test_a_bad_option_is_one_line(case, configs, tmp_path, capsys):
    words, wanted = BAD_WORDS[case]
    out = tmp_path / "run.h5"
    line = refused(capsys, "run", configs / "miga6/all_on.toml", "--out", out, *words)
    for part in wanted:
        assert part in line
    assert list(tmp_path.iterdir()) == []


def test_a_text_in_place_of_a_list_of_changes_is_named_as_such(configs):
    path = configs / "miga6/all_on.toml"
    with pytest.raises(ConfigError, match=r"sets = 'a\.b=1': give a list of such texts"):
        load(path, "a.b=1")


def test_an_unknown_command_is_one_line(capsys):
    assert "frobnicate" in refused(capsys, "frobnicate")


@pytest.mark.parametrize("command", ["report", "recover", "verify", "export"])
def test_what_is_no_recording_is_refused_in_one_line(command, configs, tmp_path, capsys):
    import h5py

    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["data"] = 1
    bare = tmp_path / "signature.h5"
    bare.write_bytes(b"\x89HDF")
    for path in (tmp_path / "missing.h5", tmp_path, configs / "miga6/rig.toml", other, bare):
        line = refused(capsys, command, path)
        assert line.startswith(f"{path}: ")


@pytest.mark.slow
def test_reports_and_exports_into_a_file_for_a_folder_are_refused(all_on, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    below = tmp_path / "file/below"
    assert "cannot be written" in refused(capsys, "report", all_on, "--out", below)
    assert "cannot be written" in refused(capsys, "export", all_on, "--out", below)
    assert "cannot be written" in refused(capsys, "examples", below)


def test_check_goes_through_all_files_and_names_the_bad_ones(configs, tmp_path, capsys):
    bad = tmp_path / "bad.toml"
    bad.write_text("[model]\nkind = 1\n")
    good = configs / "miga6/rig.toml"
    assert main(["check", str(bad), str(good)]) == 2
    said = capsys.readouterr()
    valid, warning = said.out.splitlines()
    assert valid == f"{good}: a valid rig"
    assert warning.startswith(f"warning: {good}: devices.board: hil cannot check")
    assert all(line.startswith(f"{bad}: model") for line in said.err.splitlines())


def test_a_cell_that_pulls_the_measured_force_down_is_refused_in_a_pids_order(rigs, capsys):
    """Two arrays side by side hold a free point against a third; one unloads the other."""
    path = rigs / "miga6/rig.toml"
    text = path.read_text().split("[plant")[0]
    text = text.replace('to = "transducer"', 'to = "hub"')
    rest = "[loop]" + path.read_text().split("[loop]")[1]
    hub = '[model.points.hub]\nsupport = "free"\nmass_kg = 0.1\n'
    array = text.split("[model.arrays.muscle]")[1]
    for name, end in (("helper", "hub"), ("spring", "transducer")):
        other = "[model.arrays.muscle]" + array.replace('to = "hub"', f'to = "{end}"')
        if name == "spring":
            other = other.replace('from = "ground"', 'from = "hub"')
        text += other.replace("arrays.muscle", f"arrays.{name}")
    boards = rest.index("[devices.board]"), rest.index("[devices.daq]")
    rest = (
        rest[: boards[0]]
        + "".join(
            f'[devices.{array}]\nkind = "cell_board"\nport = "usb:{array}"\ncells = '
            f"{[f'{array}.{n}' for n in range(1, 7)]}\n"
            for array in ("muscle", "helper", "spring")
        )
        + rest[boards[1] :]
    )
    card, guard = rest.index("[plant_card]"), rest.index("[guard]")
    path.write_text(text + hub + rest[:card] + rest[guard:])
    line = refused(
        capsys, "check", rigs / "miga6/pid.toml", "--set", "reference.force_N=[0.1,0.2,0.1]"
    )
    assert "controller.order" in line
    assert "'helper.1'" in line
    assert "order without it" in line
    order = "controller.order=['muscle.1', 'muscle.2', 'spring.1']"
    words = ["check", str(rigs / "miga6/pid.toml"), "--set", order]
    assert main([*words, "--set", "reference.force_N=[0.1, 0.2, 0.1]"]) == 0


def test_a_file_without_an_end_is_one_line(capsys):
    line = refused(capsys, "check", "/dev/zero")
    assert line == "/dev/zero: more than 10000000 letters: give a TOML file"


def test_a_force_that_no_cell_has_is_one_line(configs, capsys):
    """1e308 N overflowed in the run, and its recording could not be read."""
    change = "model.arrays.muscle.force_on_N=1e308"
    assert main(["check", str(configs / "miga6/pid.toml"), "--set", change]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"--set {change}: model.arrays.muscle.force_on_N")
    assert "must be less than or equal to 1000000" in line


@pytest.mark.parametrize(
    ("experiment", "change", "n_on", "t_s"),
    [
        ("miga6/all_on", "guard.cells_on_max=5", 6, 0),
        ("miga6/all_on", "devices.board.limits.cells_on_max=5", 6, 0),
        ("wires4/hold", "guard.cells_on_max=3", 4, 0.5),
        ("soft_finger/press", "guard.cells_on_max=11", 12, 0.3),
    ],
)
def test_check_says_where_a_schedule_has_more_cells_on_than_may_be(
    experiment, change, n_on, t_s, configs, capsys
):
    """Counts and times are those of the file's steps."""
    path = str(configs / f"{experiment}.toml")
    assert main(["check", path, "--set", change]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    key, _, value = change.partition("=")
    assert line.startswith(f"--set {change}: {key} = {value}: controller.steps has {n_on} cells on")
    assert f"from t_s = {t_s:g}: the run would trip (too_many_cells_on): switch fewer" in line
    assert main(["check", path, "--set", f"{key}={n_on}"]) == 0


@pytest.mark.parametrize(
    ("n_words", "said"),
    [
        (6, "must be 'word0', 'word1', 'word2', 'word3', 'word4' or 'word5'"),
        (7, "unknown: did you mean 'word6'?"),
    ],
)
def test_up_to_six_words_that_a_key_takes_are_listed_and_of_more_the_nearest(n_words, said):
    words = tuple(f"word{i}" for i in range(n_words))
    table = create_model("Choice", word=(Literal[words], ...))
    with pytest.raises(ConfigError) as refused:
        validated(table, Merged({"word": "wurd6"}, [("rig.toml", {"word": "wurd6"})]))
    assert str(refused.value) == f"rig.toml: word = 'wurd6': {said}"


@pytest.mark.parametrize("comment", ["", "# recorded\r\n"])
def test_a_trace_that_a_spreadsheet_saved_as_utf_8_is_read(tmp_path, comment):
    text = f"{comment}t_s,force_N\r\n0,0.5\r\n1,2\r\n"
    (tmp_path / "reach.csv").write_bytes(codecs.BOM_UTF8 + text.encode())
    experiment = tmp_path / "reach.toml"
    experiment.write_text('[reference]\nkind = "trace"\nfile = "reach.csv"\n')
    reference = read_merged(experiment).table["reference"]
    assert (reference["t_s"], reference["force_N"]) == ([0.0, 1.0], [0.5, 2.0])
