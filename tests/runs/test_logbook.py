"""A logbook counts what a specimen's wires have been through, once, whatever ends a run."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from hil import open_run
from hil.__main__ import main
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.runs.logbook import Logbook, Wire, counted, logbook_of

STEPS = (
    'controller.steps=[{t_s=0.2, on=[1, 2]}, {t_s=0.6, off="all"}, {t_s=0.8, on=[1]}, '
    '{t_s=1.4, off="all"}]'
)
ON_S = {"muscle.1": 1.0, "muscle.2": 0.4, "muscle.3": 0.0, "muscle.4": 0.0}
CYCLES = {"muscle.1": 2, "muscle.2": 1, "muscle.3": 0, "muscle.4": 0}
# Four wires of 0.1 m in series at 126 Ohm/m, martensite.
WIRE_OHM, SUPPLY_V = 4 * 0.1 * 126.0, 8.0
BOOK = Path("logbook/simulated/W4-01.jsonl")


@pytest.fixture
def bench(rigs, monkeypatch):
    monkeypatch.chdir(rigs / "wires4")
    return rigs / "wires4"


def run(*more, out=None):
    words = ["run", "pulse.toml", "--set", "specimen.serial=W4-01", "--set", STEPS, *more]
    return main([*words, "--json", *(["--out", out] if out else [])])


def totals(simulated=True):
    return Logbook(Path("logbook"), "W4-01", simulated=simulated).totals()


def test_cycles_time_and_energy_are_those_of_the_schedule_and_of_ohms_law(bench, capsys):
    assert run(out="a.h5") == 0
    found = totals()
    assert found.runs == 1
    for cell, counts in found.cells.items():
        assert counts["cycles"] == CYCLES[cell]
        # A tick late on, a tick late off, and one of rounding.
        assert counts["on_s"] == pytest.approx(ON_S[cell], abs=0.003)
        watts = SUPPLY_V**2 / WIRE_OHM
        # The board gives the current in mA, of some 159; a reading stands for up to 40 ms, as
        # readings of resistance come between. The wire begins to become austenite, which has up to
        # 10 % less resistance.
        assert counts["energy_J"] == pytest.approx(watts * ON_S[cell], rel=0.02, abs=0.03)
    measures = "measured current times the voltage that 'supply' measures"
    assert found.energy_from["muscle.1"] == measures
    assert open_run("a.h5").attrs["article"] == "W4-01"


@pytest.fixture
def without_supply(bench):
    """The rig as it is where nobody measures the supply."""
    rig = bench / "rig.toml"
    before, _, after = rig.read_text().partition("[devices.supply]")
    rig.write_text(before + "[guard]" + after.partition("[guard]")[2])


@pytest.mark.slow
def test_volts_times_amperes_and_amperes_squared_times_ohms_agree_on_a_wire_held_on(
    without_supply, capsys
):
    run(out="a.h5")
    assert totals().energy_from["muscle.1"] == "measured current times 8 V, the model's supply"
    energies = [
        counted(Path("a.h5"), {"muscle.1": wire})["cells"]["muscle.1"]["energy_J"]
        for wire in (Wire(supply_V=SUPPLY_V), Wire(resistance_Ohm=WIRE_OHM), Wire())
    ]
    assert energies[0] == pytest.approx(energies[1], rel=0.01)
    assert energies[2] is None


def test_the_voltage_that_a_supply_measures_comes_first(bench, capsys):
    run("--duration", "0.5", out="a.h5")
    wrong = counted(Path("a.h5"), {"muscle.1": Wire(supply_V=2.0 * SUPPLY_V)})
    assert wrong["cells"]["muscle.1"]["energy_J"] == totals().cells["muscle.1"]["energy_J"]


def test_it_is_carried_from_run_to_run_and_shown_when_the_next_starts(bench, capsys):
    run()
    assert "SIMULATED specimen W4-01: its first run" in capsys.readouterr().err
    once = totals().cells["muscle.1"]
    run()
    said = capsys.readouterr().err
    assert "W4-01: 1 runs, most cycles 2 (muscle.1), longest on 1 s (muscle.1), 0 faults" in said
    twice = totals().cells["muscle.1"]
    assert twice == {key: pytest.approx(2 * value) for key, value in once.items()}


def test_faults_are_counted(bench, capsys):
    assert run("--set", "guard.cells_on_max=1") == 3
    assert totals().faults == {"too_many_cells_on": 1}


@pytest.mark.slow
def test_a_swapped_wire_begins_anew_and_its_past_is_kept(bench, capsys):
    run()
    words = ["logbook", "W4-01", "--simulated"]
    assert main([*words, "--swap", "muscle.2", "--note", "frayed"]) == 0
    said = capsys.readouterr().out
    assert "muscle.2 swapped: frayed" in said
    found = totals()
    assert found.since_swap["muscle.2"] == {"cycles": 0, "on_s": 0, "energy_J": 0}
    assert found.cells["muscle.2"]["cycles"] == 1
    run()
    assert totals().since_swap["muscle.2"]["cycles"] == 1
    assert totals().cells["muscle.2"]["cycles"] == 2
    assert main([*words, "--swap", "muscle.9"]) == 2
    assert "choose muscle.1" in capsys.readouterr().err
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["W4-01"]["swaps"][0]["note"] == "frayed"


def test_simulated_runs_never_touch_the_articles_own_logbook(bench, capsys):
    config = load("pulse.toml", ["specimen.serial=W4-01"])
    real = {"board": "bench", "daq": "sim"}
    for backends, simulated in (
        (real, False),
        ({"board": "bench", "daq": "bench"}, False),
        ({"board": "sim", "daq": "bench"}, True),
        ({"board": "emulated", "daq": "emulated"}, True),
    ):
        book = logbook_of(config, backends)
        assert book.simulated == simulated
        assert (book.path.parent.name == "simulated") == simulated
    logbook_of(config, real).add({"kind": "note", "note": "unpacked", "by": "ada"})
    before = Path("logbook/W4-01.jsonl").read_bytes()
    run("--duration", "0.1")
    assert Path("logbook/W4-01.jsonl").read_bytes() == before
    assert totals().runs == 1
    assert totals(simulated=False).runs == 0
    # Moved by hand, it is found out.
    Path("logbook/W4-01.jsonl").write_bytes(BOOK.read_bytes())
    with pytest.raises(ConfigError, match="is the logbook of simulated runs"):
        totals(simulated=False)


def test_a_run_that_is_still_under_way_is_left_to_itself(bench):
    book = Logbook(Path("logbook"), "W4-01", simulated=True)
    with open("/proc/self/stat") as file:
        started = file.read().rpartition(")")[2].split()[19]
    here = {"pid": os.getpid(), "pid_started": started, "host": os.uname().nodename}
    book.add({"kind": "begin", "run": "x", "file": "gone.h5", **here})
    book.settle({})
    assert list(book.totals().open) == ["x"]
    # The same number, of a process that started at another time: ours is gone.
    book.add({"kind": "begin", "run": "y", "file": "gone.h5", **here, "pid_started": "1"})
    book.settle({})
    assert list(book.totals().open) == ["x"]
    assert book.totals().runs == 1


def test_a_run_that_was_killed_is_counted_before_the_next_one_takes_its_name(bench):
    assert run("--duration", "0.7", out="a.h5") == 0
    begun = {"kind": "begin", "run": "killed", "pid": 1, "pid_started": "1"}
    book = Logbook(Path("logbook"), "W4-01", simulated=True)
    book.add({**begun, "file": str(Path("a.h5").resolve()), "host": os.uname().nodename})
    assert run("--force", "--duration", "0.1", out="a.h5") == 0
    found = totals()
    assert (found.runs, found.cut_off) == (3, ["killed"])
    assert [counts["cycles"] for counts in found.cells.values()] == [2, 2, 0, 0]


def _many_notes(folder, who):
    for i in range(20):
        Logbook(Path(folder), "A", simulated=False).add({"kind": "note", "note": str(i), "by": who})


def test_two_processes_write_into_it_at_once_and_no_line_is_lost(tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_many_notes, args=(tmp_path, who)) for who in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    notes = Logbook(tmp_path, "A", simulated=False).totals().notes
    for who in "ab":
        assert [n["note"] for n in notes if n["by"] == who] == [str(i) for i in range(20)]


def test_without_an_article_there_is_no_logbook(bench, capsys):
    assert main(["run", "pulse.toml", "--duration", "0.01"]) == 0
    assert not Path("logbook").exists()
    assert main(["logbook"]) == 0
    assert "no logbooks" in capsys.readouterr().out
    assert main(["logbook", "rig.toml"]) == 2
    assert "specimen.serial: missing" in capsys.readouterr().err


def test_the_folder_is_the_users_beside_the_file_that_names_it(bench, capsys):
    rig = bench / "rig.toml"
    rig.write_text(rig.read_text() + '\n[specimen]\nserial = "W4-02"\nlogbook = "../books"\n')
    assert main(["run", str(bench / "pulse.toml"), "--duration", "0.01"]) == 0
    assert (bench.parent / "books/simulated/W4-02.jsonl").is_file()
    capsys.readouterr()
    assert main(["logbook", str(bench / "pulse.toml"), "--simulated"]) == 0
    assert "W4-02: 1 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["specimen.serial=../x"], "specimen.serial = '../x': a serial number has"),
        (["specimen.about=x"], "specimen.serial: missing"),
        (["specimen.serial=x", "specimen.supply_V=0.0"], "specimen.supply_V"),
        (
            ["specimen.serial=x", "specimen.wire_resistance_Ohm=[1.0, 2.0]"],
            "2 values for 4 cells: give one, or one for each cell",
        ),
    ],
)
def test_wrong_articles_are_refused(bench, sets, said):
    with pytest.raises(ConfigError, match=said):
        load("pulse.toml", sets)


def test_a_logbook_that_cannot_be_written_or_is_damaged_stops_before_anything_is_on(bench, capsys):
    Path("logbook").write_text("")
    assert run(out="a.h5") == 2
    assert "cannot be" in capsys.readouterr().err
    Path("logbook").unlink()
    run("--duration", "0.1", out="b.h5")
    capsys.readouterr()
    lines = BOOK.read_text().splitlines(keepends=True)
    BOOK.write_text("".join([lines[0].replace("W4-01", "W4-02"), *lines[1:]]))
    assert run(out="c.h5") == 2
    assert "line 1 is damaged" in capsys.readouterr().err
    assert not Path("c.h5").exists()
