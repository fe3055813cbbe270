"""LabVIEW's .lvm, workbooks and folders of Open Ephys are read whole, and what is left is said."""

import json
from datetime import datetime, timedelta

import numpy as np
import openpyxl
import pandas as pd
import pytest

from hil.errors import ConfigError
from hil.runs.imports.clocks import times_of
from hil.runs.imports.source import read_source
from hil.runs.imports.tables import SourceTable, TextTable

HEADER = """LabVIEW Measurement\t
Writer_Version\t2
Reader_Version\t2
Separator\tTab
Decimal_Separator\t,
Multi_Headings\tYes
X_Columns\t{x_columns}
Time_Pref\tRelative
Date\t2026/11/28
Time\t10:00:00,5000000000000000000
***End_of_Header***\t
\t
"""
SEGMENT = """Channels\t2\t\t
Samples\t50\t50\t
Date\t2026/11/28\t2026/11/28\t
Time\t{time}\t{time}\t
Y_Unit_Label\tNewtons\tVolts\t
X_Dimension\tTime\tTime\t
X0\t0,0000000000000000E+0\t0,0000000000000000E+0\t
Delta_X\t0,001000\t0,001000\t
***End_of_Header***\t\t\t
X_Value\tForce\tSupply\tComment
"""
FORCE_N = np.round(np.linspace(-1.25, 3.75, 250), 6)


def lvm(path, x_columns="One", begins_s=(0.0,) * 5, clocks=range(5), between="\n"):
    """Five segments of 50 rows, as Write To Measurement File makes them with a header each."""
    parts = []
    for k, (begin_s, clock) in enumerate(zip(begins_s, clocks, strict=True)):
        lines = []
        for i, force_N in enumerate(FORCE_N[50 * k : 50 * (k + 1)]):
            x = f"{begin_s + 1e-3 * i:.6f}" if x_columns == "One" else ""
            note = "\tnext load" if i == 0 and k == 2 else ""
            lines.append(f"{x}\t{force_N:.6f}\t5,0{note}".replace(".", ","))
        parts.append(SEGMENT.format(time=f"10:00:{clock:02d},5") + "\n".join(lines) + "\n")
    path.write_text(HEADER.format(x_columns=x_columns) + between.join(parts), encoding="cp1252")
    return read_source(path, TextTable())


@pytest.mark.parametrize("x_columns", ["One", "No"])
def test_all_segments_of_an_lvm_are_read_and_stand_where_their_stamps_say(x_columns, tmp_path):
    source = lvm(tmp_path / "a.lvm", x_columns)
    expected_s = np.concatenate([k + 1e-3 * np.arange(50) for k in range(5)])
    for name, unit, values in (("Force", "Newtons", FORCE_N), ("Supply", "Volts", 5.0)):
        series = source.columns[name]
        np.testing.assert_allclose(series.values, np.broadcast_to(values, 250))
        np.testing.assert_allclose(series.t_s, expected_s, atol=1e-9)
        assert series.unit == unit
    np.testing.assert_allclose(source.columns["X_Value"].values, expected_s, atol=1e-9)
    assert source.start == datetime(2026, 11, 28, 10, 0, 0, 500_000)
    assert source.left == ("1 comments, the first 'next load'",)


def test_x_values_that_run_on_over_the_segments_are_the_times(tmp_path):
    begins_s = [0.1 * k for k in range(5)]
    force = lvm(tmp_path / "a.lvm", begins_s=begins_s).columns["Force"]
    expected_s = np.concatenate([begin_s + 1e-3 * np.arange(50) for begin_s in begins_s])
    np.testing.assert_allclose(force.t_s, expected_s, atol=1e-9)


def test_a_run_that_labview_appended_with_a_header_of_its_own_is_read_too(tmp_path):
    path = tmp_path / "a.lvm"
    lvm(path)
    path.write_bytes(2 * path.read_bytes())
    assert len(read_source(path, TextTable()).columns["Force"].values) == 500


def test_writes_under_one_header_are_read_and_their_missing_times_are_said(tmp_path):
    path = tmp_path / "a.lvm"
    rows = "\n".join(f"\t{v:.6f}\t5,0".replace(".", ",") for v in FORCE_N)
    path.write_text(HEADER.format(x_columns="No") + SEGMENT.format(time="10:00:00,5") + rows + "\n")
    source = read_source(path, TextTable())
    assert len(source.columns["Force"].values) == 250
    assert "times between the writes of 50 rows under one header" in source.left[0]


def test_every_sheet_of_a_workbook_with_a_table_is_read(tmp_path):
    path = tmp_path / "a.xlsx"
    force = pd.DataFrame({"Time (s)": 0.5 * np.arange(50), "Force (N)": FORCE_N[:50]})
    heat = pd.DataFrame({"Date": pd.date_range("2026-11-28", periods=9, freq="s"), "T_degC": 25.5})
    notes = pd.DataFrame({"Operator": ["A. B."], "Specimen": [7]})
    with pd.ExcelWriter(path, engine="openpyxl") as writer:
        for name, table in {"frame": force, "heat": heat, "notes": notes}.items():
            table.to_excel(writer, sheet_name=name, index=False)
    source = read_source(path, TextTable())
    assert list(source.columns) == ["frame/Time (s)", "frame/Force (N)", "heat/Date", "heat/T_degC"]
    np.testing.assert_allclose(source.columns["frame/Force (N)"].values, FORCE_N[:50])
    assert source.columns["heat/T_degC"].unit == "degC"
    assert source.columns["heat/Date"].values[1] == "2026-11-28 00:00:01"
    assert source.left == ("sheet notes (2 lines without a table of numbers)",)


def test_durations_of_a_workbook_go_on_after_a_day(tmp_path):
    """They became "1 day, 0:01:00", which no form of a time reads."""
    book = openpyxl.Workbook()
    book.active.append(["Time", "F"])
    for k in range(5):
        book.active.append([timedelta(hours=23, minutes=58, seconds=60.5 * k), 1.0])
        book.active.cell(row=k + 2, column=1).number_format = "[h]:mm:ss"
    book.save(path := tmp_path / "a.xlsx")
    source = read_source(path, TextTable())
    assert list(source.columns["Time"].values[[0, 3]]) == ["23:58:00", "24:01:01.500000"]
    table = SourceTable.model_validate({"time": {"column": "Time"}})
    np.testing.assert_allclose(times_of(source, "", table, 5).t_s, 60.5 * np.arange(5))


def open_ephys(folder):
    """A folder as the GUI of Open Ephys writes it: 2 channels of int16 at 1 kHz, from 2 s on."""
    stream = folder / "continuous" / "Acquisition_Board-100.0"
    stream.mkdir(parents=True)
    channels = [{"channel_name": f"ADC{i + 1}", "bit_volts": 0.5, "units": "V", "identifier": "",
                 "history": "", "description": ""} for i in range(2)]  # fmt: skip
    about = {"folder_name": "Acquisition_Board-100.0/", "sample_rate": 1000.0,
             "stream_name": "board", "source_processor_name": "Acquisition Board",
             "source_processor_id": 100, "recorded_processor": "Record Node",
             "recorded_processor_id": 101, "num_channels": 2, "channels": channels}  # fmt: skip
    oebin = {"GUI version": "0.6.7", "continuous": [about], "events": [], "spikes": []}
    (folder / "structure.oebin").write_text(json.dumps(oebin))
    np.arange(100, dtype="<i2").tofile(stream / "continuous.dat")
    np.save(stream / "sample_numbers.npy", 2000 + np.arange(50))
    np.save(stream / "timestamps.npy", 2.0 + 1e-3 * np.arange(50))


def test_signals_of_an_open_ephys_folder_are_read_in_their_unit(tmp_path):
    folder = tmp_path / "Record Node 101" / "experiment1" / "recording1"
    open_ephys(folder)
    source = read_source(tmp_path / "Record Node 101", TextTable())
    name = next(name for name in source.columns if name.endswith("ADC2"))
    series = source.columns[name]
    np.testing.assert_allclose(series.values, 0.5 * np.arange(1, 100, 2))
    np.testing.assert_allclose(series.t_s, 2.0 + 1e-3 * np.arange(50))
    assert series.unit == "V"


def test_a_folder_of_another_kind_is_one_line(tmp_path):
    with pytest.raises(
        ConfigError, match=r"a folder without structure\.oebin.*name the files in it"
    ):
        read_source(tmp_path, TextTable())


def test_rows_after_an_empty_line_of_an_lvm_are_not_lost_without_a_word(tmp_path):
    path = tmp_path / "a.lvm"
    head = "LabVIEW Measurement\nSeparator\tTab\nDecimal_Separator\t.\nX_Columns\tOne\n"
    head += "***End_of_Header***\n\nChannels\t1\nSamples\t4\nX0\t0\nDelta_X\t1\n"
    rows = "***End_of_Header***\nX_Value\tF\tComment\n0\t1\t\n1\t2\t\n\n2\t3\t\n3\t4\t\n"
    path.write_text(head + rows)
    read = read_source(path, TextTable())
    assert len(read.columns["F"].values) == 2
    assert read.left == ("2 lines of numbers, after an empty line: remove it",)


def test_a_workbook_with_a_cell_far_from_its_table_is_one_line(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["t", "F"])
    book.active.cell(row=1_000_000, column=100, value="x")
    book.save(path := tmp_path / "stray.xlsx")
    with pytest.raises(ConfigError, match=r"stray\.xlsx: .*its last cell is CV1000000: delete"):
        read_source(path, TextTable())


def test_the_last_row_of_a_sheet_counts_also_where_its_last_cell_is_empty(tmp_path):
    book = openpyxl.Workbook()
    for row in (["t", "F"], *([float(i), 0.5 * i] for i in range(5)), [5.0, None]):
        book.active.append(row)
    book.save(path := tmp_path / "a.xlsx")
    read = read_source(path, TextTable())
    assert read.columns["t"].values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert read.left == ()


def test_a_lvm_that_is_shorter_than_it_states_was_cut_off(tmp_path):
    path = tmp_path / "a.lvm"
    lvm(path)
    text = path.read_text(encoding="cp1252").replace("Samples\t50\t50", "Samples\t80\t80", 1)
    assert "Samples\t80" in text
    path.write_text(text, encoding="cp1252")
    [said] = [x for x in read_source(path, TextTable()).left if "cut off" in x]
    assert said == "30 of 80 samples that segment 1 states: the file was cut off"
