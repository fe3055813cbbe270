"""An example is no calibration, and a wire nobody described is not protected: a bench is told."""

import io
import json
import subprocess

import pytest

import hil
from hil.__main__ import main
from hil.devices.board.native import built

EXAMPLES = ("miga6/pid", "silicone4/pid", "wires4/follow")


@pytest.fixture
def pty_board():
    """Path of a pty with a six-cell board behind it."""
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


@pytest.fixture
def measured(rigs):
    """A rig of which everything that names a record has a measured one."""
    text = (rigs / "miga6/rig.toml").read_text()
    records = rigs.parent / "calibration"
    words = ["calibrate", "certificate", "--rehearse", "--out", str(records / "rehearsed.toml")]
    assert main(words) == 0
    for name, new in (("futek_9N", "rehearsed"), ("miga_force", None)):
        line = next(x for x in text.splitlines() if f"{name}.toml" in x)
        kept = line.replace(f"{name}.toml", f"{new}.toml") if new else line.replace(
            ', "../../calibration/miga_force.toml"', "")  # fmt: skip
        text = text.replace(line, kept)
    text = text.replace("newtons_per_V = 0.95", "newtons_per_V = 0.90246")  # as they both say
    (rigs / "miga6/rig.toml").write_text(text)
    return rigs


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
heat_max_cA2ms = 219472
heat_time_constant_ms = 683
current_max_mA = 222

"""


@pytest.fixture
def calibrated(measured, monkeypatch, capsys):
    """The same with a record made by hand: the readings of docs/calibration.md, typed in."""
    rig, record = measured / "miga6/rig.toml", measured.parent / "calibration/f1.toml"
    session = measured.parent / "session.toml"
    capsys.readouterr()
    assert main(["calibrate", "certificate", "--template"]) == 0
    session.write_text(capsys.readouterr().out.replace("REHEARSAL", "F-1"))
    readings = "0.0103\n0.2277\n0.4451\n0.8797\n1.3143\n1.9661\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(readings))
    assert main(["calibrate", "certificate", str(session), "--out", str(record)]) == 0
    rig.write_text(rig.read_text().replace("rehearsed.toml", "f1.toml"))
    return measured


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


def test_a_strict_campaign_on_a_bench_is_refused_before_it_begins(configs, tmp_path, capsys):
    day = configs / "wires4/campaigns/day.toml"
    assert "is assumed: nobody has measured it" in refused(["check", day, "--strict"], capsys)
    folder = tmp_path / "campaign"
    words = ["campaign", day, "--backend", "bench", "--strict", "--out", folder]
    assert refused(words, capsys).startswith("--strict: force: calibration futek_lbs200_5lb@")
    assert not folder.exists()


def test_a_run_on_a_bench_warns_on_the_terminal_and_in_its_recording(
    pty_board, configs, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--backend", "board=bench,daq=sim"]
    words += ["--set", f"devices.board.port={pty_board}", "--set", "loop.overrun='skip'"]
    words += ["--set", "guard.reading_age_max_s=0.5", "--duration", "0.3", "--out", str(out)]
    words += ["--set", "devices.board.estop=none"]
    assert main(words) in (0, 3)  # a machine that stalls trips
    said = capsys.readouterr().err
    for what in ("force: calibration futek_9N@", "model.arrays.muscle: calibration miga_force@"):
        (line,) = (x for x in said.splitlines() if what in x)
        assert line.startswith("warning: ")
        assert line.endswith("is assumed: nobody has measured it")
    run = hil.open_run(out)
    events = zip(run.event_level.values, run.event_text.values, strict=True)
    found = [level for level, text in events if "nobody has measured it" in text]
    assert found == ["warning", "warning"]


def on_a_bench(rigs, port, *words):
    """The words of a short run with a real board, some of which are more."""
    return [
        "run", str(rigs / "miga6/all_on.toml"), "--backend", "board=bench,daq=sim",
        "--set", f"devices.board.port={port}", "--set", "devices.board.estop=none",
        "--set", "loop.overrun='skip'", "--set", "guard.reading_age_max_s=0.5",
        "--duration", "0.3", *map(str, words),
    ]  # fmt: skip


def test_a_run_with_a_real_board_warns_of_wires_that_nobody_described(
    pty_board, measured, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    capsys.readouterr()
    assert main(on_a_bench(measured, pty_board, "--out", out)) in (0, 3)
    said = capsys.readouterr().err.splitlines()
    (line,) = (x for x in said if "hil cannot check" in x)
    assert line == f"warning: {measured / 'miga6/all_on.toml'}: {UNKNOWN}"
    run = hil.open_run(out)
    events = zip(run.event_level.values, run.event_text.values, strict=True)
    assert [level for level, text in events if "hil cannot check" in text] == ["warning"]
    (kept,) = json.loads(run.attrs["summary"])["calibration"]["unprotected"]
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
        "heat_max_cA2ms = 219472", "heat_max_cA2ms = 120000"))  # fmt: skip
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


def test_a_rehearsal_does_not_count_as_a_calibration(measured, capsys):
    describe(measured)
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
