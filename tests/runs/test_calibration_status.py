"""An example is no calibration, and a wire nobody described is not protected: a bench is told."""

import contextlib
import io
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.calibration.write import signed
from hil.devices.board import link
from hil.devices.board.native import NativeBoard, built
from hil.procedures.bring_up import run as first_power
from hil.procedures.bring_up.bench import SimulatedBench
from hil.procedures.bring_up.people import Rehearsing
from hil.procedures.run import Done
from hil.runs.plan import Plan
from rig_file import loosen

EXAMPLES = ("miga6/pid", "silicone4/pid", "wires4/follow")


@pytest.fixture
def pty_board(monkeypatch):
    """Path of a pty with a six-cell board behind it, which a busy machine may keep waiting."""
    monkeypatch.setattr(link, "PATIENT_S", 2.0)
    board = subprocess.Popen([built("board_pty"), "6", "42"], stdout=subprocess.PIPE, text=True)
    yield board.stdout.readline().strip()
    board.terminate()
    board.wait(300)
    board.stdout.close()


def refused(words, capsys):
    """What a command says that refuses, exit code 2."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def measured_once(configs, tmp_path_factory):
    """A rig of which everything that names a record has a measured one."""
    folder = tmp_path_factory.mktemp("measured")
    for name in ("calibration", "configs/miga6"):
        shutil.copytree(configs.parent / name, folder / name)
    rig = folder / "configs/miga6/rig.toml"
    text = rig.read_text()
    rehearsed = str(folder / "calibration/rehearsed.toml")
    assert main(["calibrate", "certificate", "--rehearse", "--out", rehearsed]) == 0
    for name, new in (("futek_9N", "rehearsed"), ("miga_force", None)):
        line = next(x for x in text.splitlines() if f"{name}.toml" in x)
        kept = line.replace(f"{name}.toml", f"{new}.toml") if new else line.replace(
            ', "../../calibration/miga_force.toml"', "")  # fmt: skip
        text = text.replace(line, kept)
    text = text.replace("newtons_per_V = 0.95", "newtons_per_V = 0.90246")  # as they both say
    rig.write_text(text)
    return folder


@pytest.fixture
def measured(measured_once, tmp_path):
    return shutil.copytree(measured_once, tmp_path, dirs_exist_ok=True) / "configs"


WIRE = """
supply_current_max_A = 0.5
[devices.board.wire]
diameter_m = 100e-6
length_m = 0.1
supply_V = 2.0
martensite_Ohm_per_m = 126.0
austenite_Ohm_per_m = 113.0
convection_W_per_m2_K = 125.0
[devices.board.limits]             # as hil board limits --from writes them
heat_max_cA2ms = 205000
current_on_min_mA = 70
heat_time_constant_ms = 683
current_max_mA = 222

"""


@pytest.fixture(scope="module")
def calibrated_once(measured_once, tmp_path_factory):
    """The same with a record made by hand: the readings of docs/calibration.md, typed in."""
    folder = tmp_path_factory.mktemp("calibrated")
    shutil.copytree(measured_once, folder, dirs_exist_ok=True)
    rig, record = folder / "configs/miga6/rig.toml", folder / "calibration/f1.toml"
    session = folder / "session.toml"
    with contextlib.redirect_stdout(io.StringIO()) as template:
        assert main(["calibrate", "certificate", "--template"]) == 0
    session.write_text(template.getvalue().replace("REHEARSAL", "F-1"))
    readings = "0.0103\n0.2277\n0.4451\n0.8797\n1.3143\n1.9661\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO(readings))
        assert main(["calibrate", "certificate", str(session), "--out", str(record)]) == 0
    rig.write_text(rig.read_text().replace("rehearsed.toml", "f1.toml"))
    bring_up_board(folder / "configs", SERIAL)
    return folder


@pytest.fixture
def calibrated(calibrated_once, tmp_path):
    return shutil.copytree(calibrated_once, tmp_path, dirs_exist_ok=True) / "configs"


SERIAL = 42  # of the board behind the pty


def bring_up_board(rigs, serial):
    """A record of a sound board, made at a simulated bench, that the rig names from now on."""
    rig, out = rigs / "miga6/rig.toml", rigs.parent / f"calibration/board{serial}.toml"
    asked = first_power.BringUpRequest(rig=rig, by="A. Tester", meter="M 1", load_Ohm=25.0,
                               supply_V=2.0, out=out)  # fmt: skip
    setup = first_power._setup(asked)
    board = NativeBoard(serial, dict(setup.table), np.random.default_rng(0))
    bench = SimulatedBench(board, setup, (), seed=0)
    assert isinstance(first_power.bring_up(asked, (board, Rehearsing(bench))), Done)
    named = f'kind = "cell_board"\nrecord = "../../calibration/{out.name}"'
    text = re.sub(r'kind = "cell_board"(\nrecord = .*)?', named, rig.read_text())
    rig.write_text(text)
    return out


def describe(rigs):
    """Put the wires of its cells into a rig's file."""
    rig = rigs / "miga6/rig.toml"
    text = rig.read_text()
    at = text.index("[devices.daq]")
    rig.write_text(text[:at] + WIRE + text[at:])


UNKNOWN = (
    "devices.board: hil cannot check that its limits protect the wires: the wire of 'muscle.1' is "
    "not described: add [devices.board.wire]"
)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_shipped_example_is_refused_by_a_strict_check_and_run_on_a_bench(
    name, configs, tmp_path, capsys
):
    path = configs / f"{name}.toml"
    for words in (["check", path, "--strict"],
                  ["check", path.parent / "rig.toml", "--strict"],
                  ["run", path, "--backend", "bench", "--strict", "--out", tmp_path / "r.h5"],
                  ["run", path, "--backend", "bench,daq=sim", "--strict"]):  # fmt: skip
        said = refused(words, capsys)
        assert "force: calibration futek_" in said
        assert "is assumed: nobody has measured it: run hil calibrate" in said
    assert main(["check", str(path)]) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_strict_campaign_on_a_bench_is_refused_before_it_begins(configs, tmp_path, capsys):
    day = configs / "wires4/campaigns/day.toml"
    assert "is assumed: nobody has measured it" in refused(["check", day, "--strict"], capsys)
    folder = tmp_path / "campaign"
    words = ["campaign", day, "--backend", "bench", "--strict", "--out", folder]
    line = "--strict: force: calibration futek_lbs200_5lb@"
    assert refused(words, capsys).startswith(line)
    assert refused([*words, "--trial", "1"], capsys).startswith(line)
    assert not folder.exists()


@pytest.mark.slow
def test_a_run_on_a_bench_warns_on_the_terminal_and_in_its_recording(
    pty_board, rigs, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    assert main(on_a_bench(rigs, pty_board, "--out", out)) in (0, 3)  # a machine that stalls trips
    said = capsys.readouterr().err
    for what in ("force: calibration futek_9N@", "model.arrays.muscle: calibration miga_force@"):
        (line,) = (x for x in said.splitlines() if what in x)
        assert line.startswith("warning: ")
        assert line.endswith("is assumed: nobody has measured it")
    found = hil.open_run(out)
    events = zip(found.event_level.values, found.event_text.values, strict=True)
    found = [level for level, text in events if "nobody has measured it" in text]
    assert found == ["warning", "warning"]


def on_a_bench(rigs, port, *words):
    """The words of a short run with a real board, some of which are more."""
    late = ("loop.overrun='skip'", "guard.reading_age_max_s=0.5")
    loosen(rigs / "miga6/rig.toml", "devices.board.estop=none", "devices.board.serial=42", *late)
    return [
        "run", str(rigs / "miga6/all_on.toml"), "--backend", "board=bench,daq=sim",
        "--set", f"devices.board.port={port}", "--duration", "0.3", *map(str, words),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_run_with_a_real_board_warns_of_wires_that_nobody_described(
    pty_board, measured, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    capsys.readouterr()
    assert main(on_a_bench(measured, pty_board, "--out", out)) in (0, 3)
    said = capsys.readouterr().err.splitlines()
    (line,) = (x for x in said if "hil cannot check" in x)
    assert line == f"warning: {measured / 'miga6/all_on.toml'}: {UNKNOWN}"
    found = hil.open_run(out)
    events = zip(found.event_level.values, found.event_text.values, strict=True)
    assert [level for level, text in events if "hil cannot check" in text] == ["warning"]
    (kept,) = json.loads(found.attrs["summary"])["calibration"]["unprotected"]
    assert kept == line.removeprefix("warning: ")


def test_a_strict_run_with_wires_that_nobody_described_is_refused_before_its_board_is_opened(
    calibrated, tmp_path, capsys
):
    """There is no such port: one that was opened would be exit code 4."""
    path, out = calibrated / "miga6/all_on.toml", tmp_path / "run.h5"
    words = on_a_bench(calibrated, "/dev/nowhere", "--strict", "--out", out)
    assert refused(words, capsys) == f"--strict: {path}: {UNKNOWN}\n"
    assert not out.exists()
    for file in (path, path.parent / "rig.toml"):
        assert refused(["check", file, "--strict"], capsys) == f"{file}: {UNKNOWN}\n"


def test_a_supply_whose_current_nobody_knows_is_refused_by_a_strict_run_too(
    calibrated, tmp_path, capsys
):
    describe(calibrated)
    rig = calibrated / "miga6/rig.toml"
    rig.write_text(rig.read_text().replace("supply_current_max_A = 0.5", "").replace(
        "heat_max_cA2ms = 205000", "heat_max_cA2ms = 120000"))  # fmt: skip
    words = on_a_bench(calibrated, "/dev/nowhere", "--strict", "--out", tmp_path / "run.h5")
    said = refused(words, capsys)
    assert "devices.board: the supply's current limit is unknown" in said
    assert "hil cannot check" not in said


def test_a_rig_whose_wires_are_described_is_neither_warned_of_nor_refused(
    calibrated, tmp_path, capsys
):
    """What stops it is its port, which is not there."""
    describe(calibrated)
    words = on_a_bench(calibrated, "/dev/nowhere", "--strict", "--out", tmp_path / "run.h5")
    capsys.readouterr()
    assert main(words) == 4
    said = capsys.readouterr().err
    assert "board: " in said
    assert "warning" not in said


def test_a_simulated_board_beside_a_real_card_burns_no_wire(measured, tmp_path, capsys):
    """It is refused for want of a library or a card, not for its wires."""
    words = ["run", str(measured / "miga6/all_on.toml"), "--strict"]
    words += ["--backend", "board=sim,daq=bench", "--out", str(tmp_path / "run.h5")]
    assert main(words) in (2, 4)
    assert "hil cannot check" not in capsys.readouterr().err


def test_a_simulated_run_notes_it_and_goes_on(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--duration", "0.05", "--strict"]
    assert main([*words, "--out", str(out)]) == 0
    assert "warning" not in capsys.readouterr().err
    run = hil.open_run(out)
    levels = [level for level, text in zip(run.event_level.values, run.event_text.values,
              strict=True) if "nobody has measured it" in text]  # fmt: skip
    assert levels == ["info", "info"]


def test_a_name_in_the_folder_of_a_record_that_is_no_file_stops_no_run(
    calibrated, tmp_path, monkeypatch
):
    """What an editor leaves while a record is open, a folder, a link to itself; a damaged disk."""
    folder = calibrated.parent / "calibration"
    (folder / ".#open.toml").symlink_to("user@host.1234")
    (folder / "folder.toml").mkdir()
    (folder / "itself.toml").symlink_to("itself.toml")
    experiment = hil.load(calibrated / "miga6/pid.toml", ["experiment.duration_s=0.02"])
    assert hil.simulate(experiment).attrs["outcome"] == "complete"
    (folder / "damaged.toml").write_text("")
    read = Path.read_text

    def read_text(path, *words, **options):
        if path.name == "damaged.toml":
            raise OSError(5, "Input/output error")
        return read(path, *words, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    lines = Plan(experiment).status.ambiguous
    assert lines
    assert {line.partition(": ")[2] for line in lines} == {
        "its neighbour cannot be read: [Errno 5] Input/output error"
    }


def test_a_rehearsal_does_not_count_as_a_calibration(measured, capsys):
    describe(measured)
    bring_up_board(measured, SERIAL)
    capsys.readouterr()
    rig = measured / "miga6/rig.toml"
    said = refused(["check", rig, "--strict"], capsys)
    (line,) = said.splitlines()
    assert "force: calibration rehearsed@" in line
    assert "comes from a rehearsal on a simulated rig" in line
    record = measured.parent / "calibration/rehearsed.toml"
    assert "rehearsal" in refused(["check", record, "--strict"], capsys)


def test_a_calibration_made_with_weights_passes_where_wires_are_described(calibrated, capsys):
    describe(calibrated)
    rig, record = calibrated / "miga6/rig.toml", calibrated.parent / "calibration/f1.toml"
    capsys.readouterr()
    assert main(["check", str(rig), str(record), "--strict", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["faults"] == []


# --- a board that nobody has brought up -----------------------------------------------------------

NEW = "devices.board: has no record of a bring-up: run hil board bring-up, then name the record"


def without_record(rigs):
    rig = rigs / "miga6/rig.toml"
    rig.write_text(re.sub(r"record = .*board42.*\n", "", rig.read_text()))


@pytest.mark.slow
def test_a_run_with_a_board_that_nobody_brought_up_warns_there_and_in_its_recording(
    pty_board, calibrated, tmp_path, capsys
):
    without_record(calibrated)
    out = tmp_path / "run.h5"
    capsys.readouterr()
    code = main(on_a_bench(calibrated, pty_board, "--out", out))
    said = capsys.readouterr().err
    assert code in (0, 3), said
    (line,) = (x for x in said.splitlines() if "bring-up" in x)
    assert line.startswith(f"warning: {calibrated / 'miga6/all_on.toml'}: {NEW}")
    found = hil.open_run(out)
    (kept,) = json.loads(found.attrs["summary"])["calibration"]["not_brought_up"]
    assert kept == line.removeprefix("warning: ")
    assert any(NEW in text for text in found.event_text.values)


def test_a_strict_run_refuses_a_board_that_nobody_brought_up_before_it_is_opened(
    calibrated, tmp_path, capsys
):
    describe(calibrated)
    without_record(calibrated)
    words = on_a_bench(calibrated, "/dev/nowhere", "--strict", "--out", tmp_path / "run.h5")
    assert NEW in refused(words, capsys)
    rig = calibrated / "miga6/rig.toml"
    assert refused(["check", rig, "--strict"], capsys).startswith(f"{rig}: {NEW}")


def test_a_simulated_run_needs_no_bring_up(calibrated, tmp_path, capsys):
    without_record(calibrated)
    words = ["run", str(calibrated / "miga6/all_on.toml"), "--duration", "0.01", "--strict"]
    capsys.readouterr()
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 0
    assert "bring-up" not in capsys.readouterr().err


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("other", ["serial", "firmware"])
def test_a_board_is_held_against_the_serial_and_firmware_of_its_bring_up(
    pty_board, calibrated, tmp_path, capsys, other
):
    """The record is of another board, or the board was flashed since."""
    if other == "serial":
        bring_up_board(calibrated, 41)
        words = "this board has serial 42, and its bring-up board41@"
    else:
        reflashed(calibrated.parent / f"calibration/board{SERIAL}.toml")
        words = "of firmware 0badcafe: run hil board bring-up"
    out = tmp_path / "run.h5"
    capsys.readouterr()
    assert main(on_a_bench(calibrated, pty_board, "--out", out)) in (0, 3)
    (line,) = (x for x in capsys.readouterr().err.splitlines() if "bring-up" in x)
    assert words in line
    found = hil.open_run(out)
    assert any("this board has " in text for text in found.event_text.values)
    describe(calibrated)
    strict = tmp_path / "strict.h5"
    limits = (
        "heat_max_cA2ms=205000",
        "current_on_min_mA=70",
        "current_max_mA=222",
    )  # as the rig now has them
    words_of_limits = [word for limit in limits for word in ("--set", limit)]
    assert main(["board", "limits", pty_board, "--yes", *words_of_limits]) == 0
    said = refused(on_a_bench(calibrated, pty_board, "--strict", "--out", strict), capsys)
    assert said.startswith("--strict: ")
    assert words in said
    assert not strict.exists()


def reflashed(record):
    """The record as it would be, had the board had other firmware then."""
    table = tomllib.loads(record.read_text())
    table["notes"]["firmware"] = "0badcafe"
    record.chmod(0o644)
    record.write_text(signed(table))


@pytest.mark.slow
def test_the_board_of_a_bring_up_is_neither_warned_of_nor_refused(
    pty_board, calibrated, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    capsys.readouterr()
    assert main(on_a_bench(calibrated, pty_board, "--out", out)) in (0, 3)
    assert "bring-up" not in capsys.readouterr().err


def test_a_rehearsed_bring_up_does_not_count(calibrated, capsys):
    describe(calibrated)
    rig = calibrated / "miga6/rig.toml"
    rehearsed = calibrated.parent / "calibration/rehearsed-board.toml"
    words = ["board", "bring-up", str(rig), "--rehearse", "--backend", "sim", "--out", rehearsed]
    assert main([str(word) for word in [*words, "--load", "25"]]) == 0
    rig.write_text(rig.read_text().replace(f"board{SERIAL}.toml", rehearsed.name))
    said = refused(["check", rig, "--strict"], capsys)
    assert "devices.board: calibration rehearsed-board@" in said
    assert "comes from a rehearsal" in said


def test_only_a_board_names_the_record_of_a_bring_up(calibrated, capsys):
    rig = calibrated / "miga6/rig.toml"
    text = rig.read_text()
    rig.write_text(text.replace("f1.toml", f"board{SERIAL}.toml"))
    assert "is a record of kind 'bring_up'" in refused(["check", rig], capsys)
    rig.write_text(text.replace("miga_masses.toml", f"board{SERIAL}.toml"))
    assert "has no value for this table" in refused(["check", rig], capsys)
    rig.write_text(text.replace(f"board{SERIAL}.toml", "miga_masses.toml"))
    assert "has no value for this table" in refused(["check", rig], capsys)
