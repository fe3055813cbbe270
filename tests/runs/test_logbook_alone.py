"""The sums of a logbook and the counts of a recording, without a run, worked out by hand."""

from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from hil.errors import ConfigError
from hil.loop import loop
from hil.loop.channels import DUTY_REPORTED
from hil.loop.frame import CELL_UNKNOWN, Column
from hil.loop.guard import FAULTS
from hil.loop.states import NUMBERS
from hil.platform.processes import may_be_running, this_process
from hil.record import append_log, layout
from hil.record.append_log import AppendLog
from hil.runs import logbook
from hil.runs.logbook import Logbook, Wire

NAN = float("nan")
A = {"cycles": 3, "on_s": 1.5, "energy_J": 2.0, "energy_from": "x"}
B = {"cycles": 4, "on_s": 0.5, "energy_J": None, "energy_from": "y"}
NOTHING = dict.fromkeys(logbook.COUNTS)


def ran(name, cells, duration_s=2.0, faults=()):
    return {"kind": "run", "run": name, "utc": f"at {name}", "duration_s": duration_s,
            "faults": list(faults), "cells": cells}  # fmt: skip


def test_runs_are_summed_and_a_swap_begins_a_cell_s_sums_anew():
    t = logbook.totals_of([
        {"kind": "article", "simulated": True},
        {"kind": "begin", "run": "1"}, ran("1", {"a": A, "b": B}, faults=["estop"]),
        {"kind": "swap", "cell": "a"}, {"kind": "note", "note": "n"},
        {"kind": "begin", "run": "2"}, ran("2", {"a": A}, 0.5, ["estop", "disk_low"]),
        {"kind": "begin", "run": "3"},
    ])  # fmt: skip
    assert (t.simulated, t.runs, t.duration_s, t.last_utc) == (True, 2, 2.5, "at 2")
    assert t.faults == {"estop": 2, "disk_low": 1}
    assert t.faults_in_all == 3
    assert t.cells["a"] == {"cycles": 6, "on_s": 3.0, "energy_J": 4.0}
    assert t.cells["b"] == {"cycles": 4, "on_s": 0.5, "energy_J": None}
    assert t.since_swap["a"] == {"cycles": 3, "on_s": 1.5, "energy_J": 2.0}
    assert t.energy_from == {"a": "x", "b": "y"}
    assert (len(t.swaps), len(t.notes), list(t.open)) == (1, 1, ["3"])


def test_a_run_that_was_cut_off_before_a_swap_counts_for_the_wire_that_it_had():
    t = logbook.totals_of([
        {"kind": "article", "simulated": True},
        {"kind": "begin", "run": "1"}, {"kind": "swap", "cell": "a"}, ran("1", {"a": A, "b": B}),
        {"kind": "begin", "run": "2"}, ran("2", {"a": B}),
    ])  # fmt: skip
    assert t.cells["a"] == {"cycles": 7, "on_s": 2.0, "energy_J": 2.0}
    assert t.since_swap["a"] == {"cycles": 4, "on_s": 0.5, "energy_J": 0}
    assert t.since_swap["b"] == {"cycles": 4, "on_s": 0.5, "energy_J": None}


@pytest.mark.parametrize("cut", [(True, True), (False, True), (True, False)])
def test_a_run_that_two_processes_counted_counts_once(cut):
    begun = [{"kind": "article", "simulated": True}, {"kind": "begin", "run": "1"}]
    one, other = ({**ran("1", {"a": A}), "cut": by_another} for by_another in cut)
    assert logbook.totals_of([*begun, one, other]) == logbook.totals_of([*begun, one])


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (Wire(6.0, 50.0), "measured current times 6 V, specimen.supply_V"),
        (Wire(6.0, typed=False), "measured current times 6 V, the model's supply"),
        (Wire(None, 50.0), "measured current squared times 50 Ohm, specimen.wire_resistance_Ohm"),
        (Wire(), "unknown: give specimen.supply_V or specimen.wire_resistance_Ohm"),
    ],
)
def test_where_an_energy_comes_from_is_told(wire, said):
    assert wire.method == said


def config(model_V=NAN, **typed):
    wires = SimpleNamespace(supply_V=np.full(3, model_V))
    system = SimpleNamespace(cell_names=("a", "b", "c"), wires=wires)
    named = {"supply_V": None, "wire_resistance_Ohm": None} | typed
    specimen = SimpleNamespace(**named) if typed else None
    return SimpleNamespace(tables=SimpleNamespace(specimen=specimen), system=lambda: system)


@pytest.mark.parametrize(
    ("of", "wires"),
    [
        (config(), [Wire()] * 3),
        (config(supply_V=None), [Wire()] * 3),
        (config(9.0), [Wire(9.0, typed=False)] * 3),
        (config(9.0, supply_V=6.0), [Wire(6.0)] * 3),
        (config(wire_resistance_Ohm=[50.0]), [Wire(resistance_Ohm=50.0)] * 3),
        (
            config(wire_resistance_Ohm=[50.0, 60.0, 70.0]),
            [Wire(resistance_Ohm=ohms) for ohms in (50.0, 60.0, 70.0)],
        ),
    ],
)
def test_what_is_typed_for_the_specimen_comes_before_its_model(of, wires):
    assert list(logbook.wires_of(of).values()) == wires


ON_A = [CELL_UNKNOWN, 1, CELL_UNKNOWN, 0, 1, 1]
ON_B = [1, 1, 0, 1, 0, 0]
AMPS_A = [NAN, 0.5, NAN, NAN, 1.0, NAN]


def recording(path, duty=None, supplies=(), n=6):
    """Six rows, 0.5 s apart, of two cells; the last lasts as long as the others."""
    columns = [
        *loop.columns(), Column("a.current_A", "A", "measured", ""),
        Column("cells_reported", "1", "state", "", n_cells=2),
    ]  # fmt: skip
    values = {
        "guard_state": np.full(6, NUMBERS["running"]),
        "t_s": np.arange(6) * 0.5, "fault_bits": np.array([0, 0, 0, 0, 1, 5]),
        "a.current_A": np.array(AMPS_A), "cells_reported": np.column_stack((ON_A, ON_B)),
    }  # fmt: skip
    if duty is not None:
        columns.append(Column(DUTY_REPORTED, "1", "state", "", n_cells=2, fractions=True))
        values[DUTY_REPORTED] = np.column_stack((duty, duty))
    for name, volts in supplies:
        columns += [Column(f"{name}_on_told", "1", "state", ""),
                    Column(f"{name}_voltage_V", "V", "measured", "")]  # fmt: skip
        values |= {f"{name}_on_told": np.ones(6), f"{name}_voltage_V": np.array(volts)}
    attributes = {"experiment": "", "experiment_file": "a.toml", "experiment_name": "a",
                  "clock": "virtual", "seed": 1, "software": "{}"}  # fmt: skip
    layout.create(path, layout.Contents(columns, attributes, 8, model={"cells": ["a", "b"]}))
    with h5py.File(path, "r+", libver=layout.LIBVER) as file:
        for name, column in file["ticks"].items():
            column.resize(n, axis=0)
            column[:] = values.get(name, np.zeros(6))[:n]
        file[layout.RECORDED][0] = n
        file.attrs["outcome"] = "tripped"
    return path


def counts(path, **wires):
    found = logbook.counted(path, wires)
    return found, found["cells"]


def test_cycles_time_and_energy_of_a_recording_are_those_of_its_rows(tmp_path):
    """a: unknown is off at first, then as before; 0.5 A from 0.5 s to 2 s, 1 A for 1 s, at 4 V."""
    found, cells = counts(recording(tmp_path / "a.h5"), a=Wire(4.0))
    assert (found["outcome"], found["duration_s"]) == ("tripped", 2.5)
    assert found["faults"] == [FAULTS[0], FAULTS[2]]
    assert cells["a"] == {"cycles": 2, "on_s": 2.0, "energy_J": 4.0 * (0.5 * 1.5 + 1.0),
                          "energy_from": Wire(4.0).method}  # fmt: skip
    assert cells["b"] == {"cycles": 2, "on_s": 1.5, "energy_J": None,
                          "energy_from": Wire().method}  # fmt: skip


def test_energy_by_the_resistance_is_that_of_the_current_s_square(tmp_path):
    _, cells = counts(recording(tmp_path / "a.h5"), a=Wire(resistance_Ohm=8.0))
    assert cells["a"]["energy_J"] == 8.0 * (0.25 * 1.5 + 1.0)


@pytest.mark.parametrize("n_supplies", [1, 2])
def test_the_voltage_of_the_only_supply_comes_first(tmp_path, n_supplies):
    """Known from 1 s on: 2 V, and 3 V from 2 s on."""
    volts = [NAN, NAN, 2.0, NAN, 3.0, 3.0]
    names = ("psu", "other")[:n_supplies]
    _, cells = counts(recording(tmp_path / "a.h5", supplies=[(name, volts) for name in names]),
                      a=Wire(4.0))  # fmt: skip
    if n_supplies == 1:
        assert cells["a"]["energy_J"] == 2.0 * 0.5 * 1.0 + 3.0 * 1.0 * 1.0
        said = "measured current times the voltage that 'psu' measures"
        assert cells["a"]["energy_from"] == said
    else:
        assert cells["a"]["energy_J"] == 4.0 * (0.5 * 1.5 + 1.0)
        assert cells["a"]["energy_from"] == Wire(4.0).method


def test_a_duty_counts_as_its_share_of_the_time(tmp_path):
    """A quarter, then unknown, then all: of 0.5 s each."""
    path = recording(tmp_path / "a.h5", duty=[NAN, 0.25, NAN, 0.0, 1.0, 0.5])
    _, cells = counts(path, a=Wire(4.0))
    assert cells["a"]["on_s"] == 0.5 * (0.25 + 0.25 + 0.0 + 1.0 + 0.5)
    assert cells["a"]["energy_J"] == 4.0 * 0.5 * (0.5 * 0.5 + 1.0 * 1.5)


def test_a_recording_of_one_row_or_none_counts_no_time(tmp_path):
    found, cells = counts(recording(tmp_path / "a.h5", n=1))
    assert (found["duration_s"], cells["b"]["cycles"], cells["b"]["on_s"]) == (0.0, 1, 0.0)
    found, cells = counts(recording(tmp_path / "b.h5", n=0))
    assert (found["duration_s"], found["faults"], cells) == (0.0, [], {})


def test_no_recording_and_one_that_cannot_be_read_count_nothing(tmp_path):
    found = logbook.counted(tmp_path / "none.h5", {})
    assert found == {"outcome": "no recording", "duration_s": 0.0, "faults": [], "cells": {}}
    (tmp_path / "bad.h5").write_text("no recording")
    found = logbook.counted(tmp_path / "bad.h5", {})
    assert found.pop("outcome").startswith("not readable: ")
    assert found == {"duration_s": 0.0, "faults": [], "cells": {}}


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_is_announced_before_it_begins_and_counted_once_however_it_ends(tmp_path, fails):
    book, path = Logbook(tmp_path, "S", simulated=False), tmp_path / "a.h5"

    def run():
        with logbook.kept(book, config(supply_V=4.0), path):
            (begun,) = book.totals().open.values()
            assert begun["file"] == str(path)
            recording(path)
            if fails:
                raise KeyboardInterrupt

    if fails:
        with pytest.raises(KeyboardInterrupt):
            run()
    else:
        run()
    totals = book.totals()
    assert (totals.runs, totals.open, totals.cells["a"]["on_s"]) == (1, {}, 2.0)
    assert [e["cut"] for e in append_log.read_log(book.path) if e["kind"] == "run"] == [False]
    with logbook.kept(None, None, path):
        pass
    assert book.totals().runs == 1


def test_a_run_that_was_killed_is_counted_by_the_next_one(tmp_path):
    book, path = Logbook(tmp_path, "S", simulated=False), recording(tmp_path / "a.h5")
    here = this_process()
    book.add({"kind": "begin", "run": "x", "file": str(path), **here, "pid_started": "1"})
    book.add({"kind": "begin", "run": "y", "file": str(path), **here, "host": "another"})
    book.settle({})
    totals = book.totals()
    assert (totals.runs, list(totals.open), totals.cells["b"]["on_s"]) == (1, ["y"], 1.5)
    assert [e["cut"] for e in append_log.read_log(book.path) if e["kind"] == "run"] == [True]


def test_the_line_at_a_start_names_the_cells_that_were_used_most(tmp_path):
    book = Logbook(tmp_path, "S", simulated=False)
    assert logbook.opening(book) == f"specimen S: its first run in {tmp_path / 'S.jsonl'}"
    book.add(ran("1", {}))
    assert append_log.read_log(book.path)[0] == {
        "kind": "article",
        "serial": "S",
        "simulated": False,
    }
    assert len(append_log.read_log(book.path)) == 2
    assert logbook.opening(book) == "specimen S: 1 runs, 0 faults, 0 swaps"
    book.add(ran("2", {"a": A, "b": B, "c": NOTHING | {"energy_from": "z"}}, faults=["estop"]))
    book.add({"kind": "swap", "cell": "d"})
    said = "specimen S: 2 runs, most cycles 4 (b), longest on 2 s (a), 1 faults, 1 swaps"
    assert logbook.opening(book) == said
    rare = Logbook(tmp_path / "b", "R", simulated=False)
    rare.add(ran("1", {"z": NOTHING | {"energy_from": "z"}, "a": A | {"cycles": 1}}))
    assert "most cycles 1 (a)" in logbook.opening(rare)  # nobody knows of z
    (found,) = logbook.books_in(tmp_path, simulated=False)
    assert (found.path, found.serial) == (book.path, "S")
    assert logbook.books_in(tmp_path, simulated=True) == []


def test_an_entry_that_does_not_belong_in_a_logbook_is_not_written(tmp_path):
    book = Logbook(tmp_path, "s1", simulated=False)
    book.add({"kind": "note", "note": "n"})
    before = book.path.read_bytes()
    book.simulated = True
    with pytest.raises(ConfigError, match="is the logbook of real runs"):
        book.add({"kind": "note", "note": "m"})
    assert book.path.read_bytes() == before


@pytest.mark.parametrize("simulated", [("a", "b"), ("a",), ("b",), ()])
def test_a_run_with_a_single_simulated_board_is_a_simulated_one(monkeypatch, simulated):
    monkeypatch.setattr(logbook, "boards_of", lambda devices: ["a", "b"])
    tables = SimpleNamespace(specimen=SimpleNamespace(serial="S"), devices={})
    backends = {name: "sim" if name in simulated else "bench" for name in "ab"}
    book = logbook.logbook_of(SimpleNamespace(tables=tables, logbook=Path("books")), backends)
    assert book.simulated == bool(simulated)


def test_only_a_process_of_this_computer_can_be_found_dead():
    mine = this_process()
    assert may_be_running(mine)
    gone = mine | {"pid_started": "another time"}
    assert not may_be_running(gone)
    assert may_be_running(gone | {"host": "another"})


def filled(folder, n=40):
    book = Logbook(folder, "a", simulated=False)
    for i in range(n):
        match i % 4:
            case 0 | 1:
                book.add({"kind": "begin", "run": str(i // 2), "file": "x.h5"})
            case 2:
                book.add(ran(str(i // 2 - 1), {"a": A, "b": B}, faults=["estop"]))
            case 3:
                book.add({"kind": "swap", "cell": "ab"[i % 8 // 4]})
    return book


@pytest.fixture
def parsed_lines(monkeypatch):
    """The numbers of lines that were parsed."""
    numbers = []

    def counted(*of):
        entries, place = append_log.parsed(*of)
        numbers.append(len(entries))
        return entries, place

    monkeypatch.setattr(logbook, "parsed", counted)
    return numbers


def test_what_has_not_changed_is_not_parsed_again(tmp_path, parsed_lines):
    book = filled(tmp_path)
    sums = book.totals()
    assert (sums.runs, sums.faults, parsed_lines) == (10, {"estop": 10}, [0])
    assert sums.cells["a"]["cycles"] == 30
    with AppendLog(book.path) as log:  # by a program that keeps no sums
        log.add({"kind": "note", "note": "n", "utc": ""})
    assert (len(book.totals().notes), parsed_lines) == (1, [0, 1])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"place": [1, 2, 3], "totals": {}}', None])
def test_sums_that_are_not_of_this_logbook_are_made_again(tmp_path, parsed_lines, text):
    book = filled(tmp_path)
    kept = tmp_path / "a.sums.json"
    known = book.totals()
    kept.unlink() if text is None else kept.write_text(text)
    assert book.totals() == known
    assert parsed_lines == [0, 41]
    book.add({"kind": "note", "note": "n"})
    assert (len(book.totals().notes), parsed_lines) == (1, [0, 41, 0])


def test_older_sums_are_carried_on(tmp_path, parsed_lines):
    book = filled(tmp_path, 20)
    older = (tmp_path / "a.sums.json").read_bytes()
    book.add({"kind": "note", "note": "n"})
    known = book.totals()
    (tmp_path / "a.sums.json").write_bytes(older)
    assert book.totals() == known
    assert parsed_lines == [0, 1]


def test_damage_before_the_sums_is_found_with_its_line(tmp_path):
    book = filled(tmp_path)
    lines = book.path.read_bytes().split(b"\n")
    lines[6] = lines[6].replace(b"begin", b"began")
    book.path.write_bytes(b"\n".join(lines))
    for use in (book.totals, lambda: book.add({"kind": "note", "note": "n"})):
        with pytest.raises(ConfigError, match=r"a\.jsonl: line 7 is damaged"):
            use()
