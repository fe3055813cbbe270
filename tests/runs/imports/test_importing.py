"""`hil import`: another program's files become a recording on which everything works."""

import csv
import json
import tomllib
from datetime import datetime, timedelta
from pathlib import Path

import h5py
import numpy as np
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.commands.parser import BAD_INPUT, DONE
from hil.errors import ConfigError
from hil.identification.runs import read_run
from hil.identification.wire_loops import loops
from hil.record.repair import faults_of
from hil.runs.assembly import build
from hil.runs.imports.guess import guess
from hil.runs.imports.importing import import_files
from hil.runs.imports.twin import model_columns
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.replay import replay
from hil.validation.validate import _spoilt
from hil_studies.wires.study import read_loop

ROOT = Path(__file__).resolve().parents[3]
FRAME = ROOT / "examples" / "load_frame"
CELLS = [f"muscle.{n}" for n in range(1, 7)]
MAP = {
    "name": "last year's array",
    "sources": {"lab": {"time": {"column": "Zeit [ms]"}}},
    "channels": {"force": {"column": "Kraft [mN]"}},
    "cells": {cell: {"column": cell} for cell in CELLS},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of hil, which stands for another program: its readings and commands are known."""
    path = tmp_path_factory.mktemp("run") / "run.h5"
    steps = 'controller.steps=[{t_s=0.1, on="all"}, {t_s=0.6, off=[2, 5]}]'
    experiment = ROOT / "configs" / "miga6" / "all_on.toml"
    config = hil.load(experiment, ["experiment.duration_s=1.0", steps])
    return hil.open_run(hil.run(config, out=path, seed=3))


@pytest.fixture(scope="module")
def spreadsheet(run):
    """The same run as a spreadsheet of a German laboratory would have it."""
    columns = run.t_s.values, run.force_measured_N.values, run.cells_commanded.values
    lines = [
        ";".join([f"{1e3 * t_s!r}", f"{1e3 * force_N!r}", *map(str, cells)]).replace(".", ",")
        for t_s, force_N, cells in zip(*(column.tolist() for column in columns), strict=True)
    ]
    return "\n".join([";".join(["Zeit [ms]", "Kraft [mN]", *CELLS]), *lines])


@pytest.fixture
def lab(spreadsheet, tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text(spreadsheet, encoding="cp1252")
    return path


def imported(lab, mapped=MAP, rig="miga6", force=False, **more):
    map_path = lab.with_name("map.toml")
    map_path.write_text(tomli_w.dumps(mapped), encoding="utf-8")
    rig_path = ROOT / "configs" / rig / "rig.toml"
    output = Output(lab.with_name("imported.h5"), force)
    return import_files([lab], rig_path, map_path, output, **more).path


def changed(path, value, mapped=MAP):
    """The map with another value at a path of keys; None removes the key."""
    again = json.loads(json.dumps(mapped))
    table = again
    for key in path[:-1]:
        table = table.setdefault(key, {})
    if value is None:
        del table[path[-1]]
    else:
        table[path[-1]] = value
    return again


def test_the_twin_is_that_of_the_run_which_the_file_was_made_of(run, lab):
    again = hil.open_run(imported(lab))
    np.testing.assert_allclose(again.force_measured_N, run.force_measured_N, atol=1e-12)
    for column in ("force_model_N", "force_estimate_N", "force_disturbance_N"):
        np.testing.assert_allclose(again[column], run[column], atol=1e-9)
    np.testing.assert_array_equal(again.cells_commanded, run.cells_commanded)


def test_a_rig_that_only_receives_data_has_no_board_ports_or_limits(lab, tmp_path, capsys):
    rig = tomllib.loads((ROOT / "configs/miga6/rig.toml").read_text())
    channels = {"force": {"kind": "force"}}
    bare = {key: rig[key] for key in ("model", "plant", "loop", "observer")}
    bare["devices"] = {"frame": {"kind": "imported", "channels": channels}}
    text = tomli_w.dumps(bare).replace("../../calibration", str(ROOT / "calibration"))
    (tmp_path / "rig.toml").write_text(text)
    assert main(["check", str(tmp_path / "rig.toml")]) == DONE
    whole = hil.open_run(imported(lab))
    map_path = lab.with_name("map.toml")
    out = tmp_path / "bare.h5"
    import_files([lab], tmp_path / "rig.toml", map_path, Output(out))
    again = hil.open_run(out)
    for column in ("force_measured_N", "force_model_N", "cells_commanded"):
        np.testing.assert_array_equal(again[column], whole[column])
    assert replay(out)[1] is None
    run = ["run", str(ROOT / "configs/miga6/all_on.toml")]
    capsys.readouterr()
    (tmp_path / "all_on.toml").write_text(Path(run[1]).read_text())
    assert main(["run", str(tmp_path / "all_on.toml"), "--out", str(tmp_path / "run.h5")]) == 2
    assert "all are imported: nothing switches cells" in capsys.readouterr().err


def test_outputs_drive_the_twin_as_in_the_loop(tmp_path):
    config = hil.load(ROOT / "configs" / "slider" / "steps.toml", ["experiment.duration_s=0.5"])
    run = hil.open_run(hil.run(config, out=tmp_path / "run.h5", seed=3))
    rows = {str(name): run[name].values for name in ("t_s", *run.data_vars)}
    again = model_columns(build(Plan(config)), rows)
    np.testing.assert_allclose(again["slide_model_m"], run.slide_model_m, atol=1e-12)
    assert np.ptp(run.motor_commanded_N.values) > 0.5


def test_scale_and_offset_apply_in_the_unit_of_the_column(run, lab):
    column = {"column": "Kraft [mN]", "scale": -2.0, "offset": 500.0}
    again = hil.open_run(imported(lab, changed(("channels", "force"), column)))
    np.testing.assert_allclose(again.force_measured_N, 0.5 - 2.0 * run.force_measured_N, atol=1e-9)


def test_the_recording_is_whole_and_says_that_it_is_imported(lab):
    path = imported(lab)
    assert faults_of(path) == []
    attributes = hil.open_run(path).attrs
    facts = json.loads(attributes["imported"])
    assert attributes["backend"] == attributes["clock"] == "imported"
    assert facts["files"][0]["file"] == "lab.csv"
    assert [c["unit"] for c in facts["columns"]][:1] == ["mN"]


def test_it_replays_and_a_changed_model_column_is_named(lab):
    path = imported(lab)
    assert replay(path)[1] is None
    with h5py.File(path, "r+") as file:
        file["ticks/force_model_N"][400] += 1e-3
    difference = replay(path)[1]
    assert (difference.row, difference.column) == (400, "force_model_N")


@pytest.mark.slow
def test_report_and_exports_say_imported(lab):
    path = imported(lab)
    assert main(["report", str(path)]) == DONE
    assert "IMPORTED, not measured by hil" in path.with_suffix(".html").read_text()
    assert main(["export", str(path), "--to", "csv"]) == DONE
    header, first = path.with_suffix(".csv").read_text().splitlines()[:2]
    assert header.endswith(",source")
    assert first.endswith(",IMPORTED")


def test_an_export_leaves_the_file_that_it_was_imported_from(lab, capsys):
    was = lab.read_bytes()
    recording = imported(lab)
    assert main(["export", str(recording), "--out", str(lab)]) == 2
    said = capsys.readouterr().err
    assert said == f"{lab}: imported.h5 was imported from it: choose another --out\n"
    assert lab.read_bytes() == was


def test_identification_reads_it_without_a_conditioner_of_the_rig(lab):
    data = read_run(imported(lab)).data
    assert len(data.measured) == 1000
    assert data.reading.delay_s == 0.0
    assert data.reading.slope_uncertainty == 0.0


def test_criteria_are_older_than_it_only_if_the_time_of_the_measurement_is_known(lab, tmp_path):
    acceptance = tmp_path / "acceptance.toml"
    acceptance.write_text("[validation]\nvaf_min = 0.9\n")
    unknown = _spoilt(read_run(imported(lab)), [], "file", acceptance)
    assert any("nothing is known to be older" in line for line in unknown)
    past = lab.with_name("past.toml")
    past.write_text("measured = 2020-01-01T00:00:00Z\n" + tomli_w.dumps(MAP))
    rig, out = ROOT / "configs" / "miga6" / "rig.toml", lab.with_name("past.h5")
    late = _spoilt(
        read_run(import_files([lab], rig, past, Output(out)).path), [], "file", acceptance
    )
    assert len(late) == 1
    assert "was written" in late[0]
    assert "after the run (2020-01-01 00:00:00 UTC)" in late[0]


def test_simulated_readings_stay_simulated(lab):
    lines = lab.read_text(encoding="cp1252").splitlines()
    marked = [f"{lines[0]};source", *(f"{line};SIMULATED" for line in lines[1:])]
    lab.write_text("\n".join(marked), encoding="cp1252")
    run = hil.open_run(imported(lab))
    assert run.attrs["simulated"] == "SIMULATED: lab.csv"
    assert run.force_measured_N.attrs["source"] == "SIMULATED"


def test_readings_beyond_the_limits_of_the_rig_are_noted(lab):
    run = hil.open_run(imported(lab, sets=["guard.force_max_N=0.5"]))
    assert any("beyond the rig's limits" in text for text in run.event_text.values)
    assert not run.fault_bits.values.any()


def test_a_duty_becomes_pulses_of_its_mean(lab):
    lines = lab.read_text(encoding="cp1252").splitlines()
    with_duty = [f"{lines[0]};Tastgrad", *(f"{line};40" for line in lines[1:])]
    lab.write_text("\n".join(with_duty), encoding="cp1252")
    duty = {"column": "Tastgrad", "unit": "percent", "carrier_Hz": 20.0}
    run = hil.open_run(imported(lab, changed(("cells", "muscle.1"), duty)))
    assert run.cells_commanded.values[:, 0].mean() == pytest.approx(0.4, abs=1e-9)


REFUSED = {
    "an unknown channel": (("channels", "forse"), {"column": "Kraft [mN]"},
                           "channels.forse: the rig has no such one: did you mean 'force'"),
    "an unknown column": (("channels", "force", "column"), "Kraft",
                          "channels.force.column = 'Kraft': lab.csv has no such column"),
    "an unknown cell": (("cells", "muscle.7"), {"column": "muscle.1"}, "muscle.7"),
    "another dimension": (("channels", "force", "unit"), "degC", "does not fit 'N'"),
    "an unknown unit": (("channels", "force", "unit"), "Nn", "unit 'Nn' is unknown"),
    "an unknown key": (("channels", "force", "colour"), "red", "colour"),
    "no clock": (("sources", "lab", "align"), {"by": "offset", "offset_s": 1.0}, "exactly one"),
    "two clocks": (("sources", "other"), {"file": "x"}, "exactly one"),
    "no time": (("sources", "lab", "time"), None, "has no times in lab.csv"),
    "a file that none fits": (("sources", "lab", "file"), "*.tdms", "fits none of the 1 files"),
    "an end before the start": (("end_s",), -1.0, "another start_s and end_s"),
    "an end far away": (("end_s",), 1e9, "rows of 0.001 s"),
    "a duty beyond 1": (("cells", "muscle.1"), {"column": "Zeit [ms]", "unit": "1",
                        "carrier_Hz": 10.0}, "it must be 0 to 1"),
    "a fast carrier": (("cells", "muscle.1"), {"column": "muscle.1", "carrier_Hz": 900.0},
                       "give a shorter period_s"),
    "a time without a zone": (("measured",), "2020-01-01T00:00:00", "measured"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_map_that_does_not_fit_is_refused_and_writes_nothing(name, lab):
    path, value, expected = REFUSED[name]
    with pytest.raises(ConfigError) as error:
        imported(lab, changed(path, value))
    assert expected in str(error.value)
    assert "\n" not in str(error.value)
    assert not lab.with_name("imported.h5").exists()
    assert not list(lab.parent.glob("*.part*"))


def test_a_column_without_any_number_is_not_called_badly_aligned(lab):
    lab.write_text("t;F;Kraft [mN]\n" + "".join(f"{k};{k};\n" for k in range(50)))
    channels = {"force": {"column": "Kraft [mN]"}}
    mapped = MAP | {
        "sources": {"lab": {"time": {"column": "t"}}},
        "channels": channels,
        "cells": {},
    }
    with pytest.raises(ConfigError, match=r"channels\.force\.column.*: no number in lab\.csv"):
        imported(lab, mapped)


def test_an_existing_recording_is_kept(lab):
    imported(lab)
    with pytest.raises(ConfigError, match="exists already"):
        imported(lab)
    imported(lab, force=True)


@pytest.mark.parametrize("link", [False, True])
def test_no_file_that_an_import_reads_is_replaced_by_its_result(lab, link):
    out = lab.with_name("imported.h5")
    source = lab if link else lab.rename(out)
    if link:
        out.symlink_to(source)
    text, rig = source.read_bytes(), ROOT / "configs" / "miga6" / "rig.toml"
    with pytest.raises(ConfigError, match=r"imported\.h5: the import reads it: choose another --o"):
        imported(source, force=True)
    with pytest.raises(ConfigError, match=r"the import reads it: choose another --map"):
        guess([source], rig, source, force=True)
    assert source.read_bytes() == text


def test_the_guessed_map_of_the_file_imports(lab):
    rig, out = str(ROOT / "configs" / "miga6" / "rig.toml"), lab.with_name("guessed.toml")
    words = ["import", str(lab), "--rig", rig, "--map", str(out)]
    assert main([*words, "--guess"]) == DONE
    assert main([*words, "--guess"]) == BAD_INPUT
    run = lab.with_name("guessed.h5")
    assert main([*words, "--out", str(run)]) == DONE
    assert main(["replay", str(run)]) == DONE
    assert hil.open_run(run).cells_commanded.values[300].tolist() == [1] * 6


def test_a_load_frame_and_a_thermometer_share_one_time_base(tmp_path):
    files = [FRAME / "mts_3cycle.txt", FRAME / "fluke_3cycle.csv"]
    found = import_files(
        files, FRAME / "rig.toml", FRAME / "map.toml", Output(tmp_path / "frame.h5")
    )
    frame, thermometer = (file["clock"] for file in found.facts["files"])
    assert frame["offset_s"] == 0.0
    # 9:27:54.0 in the first row of the one, 09:32:03 in the first line of the other
    assert thermometer["offset_s"] == pytest.approx((32 - 27) * 60 + 3 - 54)
    run = hil.open_run(found.path)
    # A reading of the thermometer counts from its own time on.
    rows = list(csv.reader((FRAME / "fluke_3cycle.csv").read_text(encoding="cp1252").splitlines()))
    sampled_C, stamp = next((float(r[1]), r[3]) for r in rows if r[:1] == ["40"] and len(r) > 9)
    hours, minutes, seconds = stamp.split()[1].split(":")
    at_s = 3600 * int(hours) + 60 * int(minutes) + float(seconds)
    first = int(np.ceil((at_s - (9 * 3600 + 32 * 60 + 3) - 0.4) / 0.2 - 1e-6))
    assert run.chamber_measured_C.values[first] == sampled_C
    assert run.chamber_measured_C.values[first - 1] != sampled_C
    assert main(["replay", str(found.path)]) == DONE


def test_an_imported_loop_of_a_wire_is_that_of_the_study(tmp_path):
    shipped = ROOT / "hil" / "identification" / "wire_loops" / "data" / "NiTiCo" / "150_MPa.txt"
    (tmp_path / "rig.toml").write_text(WIRE_RIG)
    (tmp_path / "map.toml").write_text(WIRE_MAP)
    out = tmp_path / "wire.h5"
    import_files([shipped], tmp_path / "rig.toml", tmp_path / "map.toml", Output(out))
    direct = next(loop for loop in loops.shipped("NiTiCo") if round(loop.stress_Pa / 1e6) == 150)
    loop = read_loop(out, strength_MPa=1000.0)
    assert loop.stress_Pa == pytest.approx(direct.stress_Pa, rel=1e-4)
    assert loop.stroke == pytest.approx(direct.stroke, rel=1e-9)
    assert len(loop.T_C) > 0.95 * len(direct.T_C)  # rows that repeat the one before count once


def test_a_recording_without_the_channels_of_a_loop_is_one_line(lab):
    path = imported(lab)
    with pytest.raises(ValueError, match="has no column temperature_measured_C"):
        read_loop(path, strength_MPa=1000.0)


def test_a_recording_of_hil_is_refused_as_a_source(run, tmp_path):
    path = Path(run.encoding["source"])
    words = ["import", str(path), "--rig", str(ROOT / "configs/miga6/rig.toml"), "--map",
             str(tmp_path / "none.toml"), "--guess"]  # fmt: skip
    assert main(words) == BAD_INPUT


WIRE_RIG = """
[model]
kind = "linear"
inputs = ["none.u"]
outputs = ["none.y"]
A = [[-1.0]]
B = [[1.0]]
C = [[1.0]]
[loop]
period_s = 1.0
[guard]
[devices.rig]
kind = "imported"
[devices.rig.channels.temperature]
kind = "temperature"
[devices.rig.channels.strain]
[devices.rig.channels.stress]
units = "MPa"
"""
WIRE_MAP = """
name = "a loop"
[sources.file]
time = {rate_Hz = 1.0}
[channels.temperature]
column = "column 1"
unit = "degC"
[channels.strain]
column = "column 2"
[channels.stress]
column = "column 3"
unit = "MPa"
"""


def test_two_columns_of_date_and_time_are_guessed_and_what_is_not_taken_is_said(run, lab, capsys):
    lines = lab.read_text(encoding="cp1252").splitlines()
    rows = [line.split(";") for line in lines[1:]]
    begin = datetime(2026, 11, 28, 23, 59, 59, 500_000)
    stamps = [begin + timedelta(milliseconds=float(row[0].replace(",", "."))) for row in rows]
    dated = [
        ";".join([f"{at:%d.%m.%Y}", f"{at:%H:%M:%S,%f}", *row[1:], "ok"])
        for at, row in zip(stamps, rows, strict=True)
    ]
    lab.write_text(
        "\n".join([";".join(["Datum", "Uhrzeit", "Kraft [mN]", *CELLS, "Note"]), *dated])
    )
    rig, out = str(ROOT / "configs" / "miga6" / "rig.toml"), lab.with_name("guessed.toml")
    words = ["import", str(lab), "--rig", rig, "--map", str(out)]
    assert main([*words, "--guess"]) == DONE
    assert '{column = ["Datum", "Uhrzeit"]}   # dates and times as' in out.read_text()
    capsys.readouterr()
    assert main([*words, "--out", str(lab.with_name("guessed.h5"))]) == DONE
    assert "lab.csv: columns that are not taken: Note\n" in capsys.readouterr().out
    again = hil.open_run(lab.with_name("guessed.h5"))
    np.testing.assert_allclose(again.force_measured_N, run.force_measured_N, atol=1e-12)


def test_a_map_is_guessed_from_headers_of_any_language_and_of_one_name(tmp_path):
    path = tmp_path / "données.csv"
    rows = "".join(f"{0.1 * k:.1f};{k};{2 * k};{3 * k}\n" for k in range(9))
    path.write_text(f"Zeit [s];Pressão ABS. (MPa);Kraft [N];Kraft [N]\n{rows}", encoding="utf-8")
    guess([path], None, out := tmp_path / "map.toml")
    table = tomllib.loads(out.read_text(encoding="utf-8"))
    columns = {name: column["column"] for name, column in table["channels"].items()}
    assert columns == {"pressao_abs": "Pressão ABS. (MPa)", "kraft": "Kraft [N]",
                       "kraft_n_2": "Kraft [N] (2)"}  # fmt: skip


def test_columns_of_two_rates_in_one_file_are_two_sources_of_it(tmp_path):
    t_s = np.arange(100) * 0.01
    with h5py.File(tmp_path / "lab.h5", "w") as file:
        file["fast/deflection_m"], file["fast/t_s"] = 2.0 * t_s, t_s
        file["slow/chamber_degC"], file["slow/t_s"] = 20.0 + t_s[::10], t_s[::10]
    mapped = {
        "name": "two rates", "period_s": 0.01,
        "sources": {"fast": {"time": {"column": "fast/t_s"}}},
        "channels": {"deflection": {"source": "fast", "column": "deflection_m"},
                     "chamber": {"source": "fast", "column": "chamber_degC"}},
    }  # fmt: skip
    rig, out = FRAME / "rig.toml", tmp_path / "imported.h5"
    map_path = tmp_path / "map.toml"
    map_path.write_text(tomli_w.dumps(mapped), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"has 10 rows .* 100: give the file a second source"):
        import_files([tmp_path / "lab.h5"], rig, map_path, Output(out))
    slow = {"time": {"column": "slow/t_s"}, "align": {"by": "offset", "offset_s": 0.0}}
    mapped["sources"]["slow"], mapped["channels"]["chamber"]["source"] = slow, "slow"
    map_path.write_text(tomli_w.dumps(mapped), encoding="utf-8")
    run = hil.open_run(import_files([tmp_path / "lab.h5"], rig, map_path, Output(out)).path)
    np.testing.assert_allclose(run.chamber_measured_C[::10], 20.0 + t_s[::10][:10])
    np.testing.assert_allclose(run.deflection_measured_m, 2.0 * t_s)
