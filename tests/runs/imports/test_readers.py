"""Files of other programs become columns with units, or one line that names the file."""

import re
import subprocess
import sys
import zlib
from datetime import UTC, datetime

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st
from nptdms import ChannelObject, TdmsWriter

from hil.errors import ConfigError
from hil.runs.imports.source import read_source
from hil.runs.imports.tables import TextTable
from lazily import Lazily

asammdf = Lazily("asammdf")

T_S = np.arange(50) * 0.02
FORCE_N = np.linspace(-1.25, 3.75, 50)


def read(path, **table):
    return read_source(path, TextTable(**table)).columns


def rows(delimiter=",", decimal=".", time_s=T_S, values=FORCE_N):
    lines = [f"{t:.2f}{delimiter}{v:.6f}" for t, v in zip(time_s, values, strict=True)]
    return "\n".join(line.replace(".", decimal) for line in lines) + "\n"


TEXTS = {
    "commas": (f"Time (s),Force (N)\n{rows()}", "utf-8"),
    "semicolons and decimal commas": (f"Time (s);Force (N)\n{rows(';', ',')}", "utf-8"),
    "tabs and decimal commas": (f"Time (s)\tForce (N)\n{rows(chr(9), ',')}", "utf-8"),
    "bars": (f"Time (s)|Force (N)\n{rows('|')}", "utf-8"),
    "spaces": (f"Time_s Force_N\n{rows(' ')}", "utf-8"),
    "a byte-order mark": (f"Time (s),Force (N)\n{rows()}", "utf-8-sig"),
    "UTF-16 of a spreadsheet": (f"Time (s)\tForce (N)\n{rows(chr(9))}", "utf-16"),
    "a western code page": (f"Kraft bei 20 °C;Zeit (s)\n{rows(';', ',')}", "cp1252"),
    "a row of units": (f"Time,Force\n[s],[N]\n{rows()}", "utf-8"),
    "lines of an instrument above": (f"ACME 7\nRun,4\n\nTime (s),Force (N)\n\n{rows()}", "utf-8"),
    "its delimiter in the first line": (f"sep=;\nTime (s);Force (N)\n{rows(';')}", "utf-8"),
    "carriage returns": (f"Time (s),Force (N)\r\n{rows()}".replace("\n", "\r\n"), "utf-8"),
    "carriage returns alone": (f"Time (s),Force (N)\n{rows()}".replace("\n", "\r"), "utf-8"),
    "every line in quotes": (
        "\n".join(f'"{line}"' for line in f"Time (s),Force (N)\n{rows()}".splitlines()), "utf-8",
    ),
    "a half last line": (f"Time (s),Force (N)\n{rows()}1.0", "utf-8"),
    "another table below": (f"Time (s),Force (N)\n{rows()}\nmax,min,mean\n3.75,-1.25,1.2", "utf-8"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_read_however_it_is_written(name, tmp_path):
    text, encoding = TEXTS[name]
    path = tmp_path / "lab.csv"
    path.write_bytes(text.encode(encoding))
    first, second = read(path).values()
    np.testing.assert_allclose(first.values, T_S, atol=1e-9)
    np.testing.assert_allclose(second.values, FORCE_N, atol=5e-7)


@pytest.mark.parametrize("name", ["commas", "a row of units", "lines of an instrument above"])
def test_units_are_found_in_headers_and_rows_of_units(name, tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text(TEXTS[name][0])
    assert [series.unit for series in read(path).values()] == ["s", "N"]


def test_a_unit_that_a_logger_repeats_beside_every_reading_is_that_of_the_reading(tmp_path):
    path = tmp_path / "logger.csv"
    path.write_text("No,Sample,,Note\n" + "".join(f"{n},{20 + n},°C,ok\n" for n in range(9)))
    columns = read(path)
    assert columns["Sample"].unit == "°C"
    np.testing.assert_array_equal(columns["Sample"].values, 20.0 + np.arange(9))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_the_first_cell_whatever_the_encoding_is(
    tmp_path, encoding
):
    mark = "" if encoding in ("utf-8-sig", "utf-16") else "\ufeff"
    path, rows = tmp_path / "logger.csv", "".join(f"{k},{k}.5\n" for k in range(9))
    table = TextTable(encoding=encoding)
    path.write_text(f"{mark}t_s,F_N\n{rows}", encoding=encoding)
    assert list(read_source(path, table).columns) == ["t_s", "F_N"]
    path.write_text(f"{mark}{rows}", encoding=encoding)  # its first row became a header
    assert read_source(path, table).columns["column 1"].values.tolist() == [*range(9)]


def test_texts_for_no_reading_are_missing(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text("a,b\n" + rows() + "1.0,****\n1.02,broken\n" + rows(time_s=T_S + 2.0))
    with pytest.raises(ConfigError, match=r"lab\.csv: 'broken' in line 53, column 2"):
        read_source(path, TextTable()).column("b", "channels.b.column")
    force = read(path, missing=["broken"])["b"].values
    assert list(np.flatnonzero(np.isnan(force))) == [50, 51]


def test_tdms_gives_values_units_and_times(tmp_path):
    path = tmp_path / "a.tdms"
    about = {"unit_string": "N", "wf_increment": 0.02, "wf_start_offset": 0.0}
    with TdmsWriter(path) as writer:
        writer.write_segment([ChannelObject("bench", "force", FORCE_N, properties=about)])
    force = read(path)["bench/force"]
    np.testing.assert_array_equal(force.values, FORCE_N)
    np.testing.assert_allclose(force.t_s, T_S)
    assert force.unit == "N"


def test_matlab_5_gives_vectors_columns_and_members(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"t": T_S, "run": {"force": FORCE_N}, "both": np.c_[T_S, FORCE_N]})
    columns = read(path)
    np.testing.assert_array_equal(columns["t"].values, T_S)
    np.testing.assert_array_equal(columns["run.force"].values, FORCE_N)
    np.testing.assert_array_equal(columns["both.2"].values, FORCE_N)


def test_matlab_7_3_and_hdf5_give_datasets_with_their_units(tmp_path):
    path = tmp_path / "a.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["t"] = T_S[None, :]  # MATLAB's vectors have two dimensions
        file["run/force"] = FORCE_N
        file["run/force"].attrs["units"] = "N"
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file")
    columns = read(path)
    np.testing.assert_array_equal(columns["t"].values, T_S)
    assert columns["run/force"].unit == "N"


def test_values_that_netcdf_marks_are_missing_and_packed_ones_are_said(tmp_path):
    """They were readings, such as -327.68 N; whether a map scales them already is not known."""
    path = tmp_path / "lab.nc"
    with h5py.File(path, "w") as file:
        for name, values in (("F", [150, -32768, 999, 250]), ("t", [0, 1, 2, 3])):
            file[name] = np.array(values, dtype=np.int16)
        file["F"].attrs["_FillValue"] = np.array([-32768], dtype=np.int16)
        file["F"].attrs["missing_value"] = np.int16(999)
        file["F"].attrs["scale_factor"] = np.array([0.01])
        file["t"].attrs["_FillValue"] = "none"
    read = read_source(path, TextTable())
    np.testing.assert_array_equal(read.columns["F"].values, [150.0, np.nan, np.nan, 250.0])
    assert read.columns["t"].values.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert read.left == ("F (scale_factor 0.01, not applied: give scale and offset of its column)",)


def test_times_of_a_table_whose_first_one_is_missing_count_from_the_first_that_is_known(tmp_path):
    times = np.array(["NaT", "2026-01-01T00:00:00", "2026-01-01T00:00:02"], dtype="M8[ns]")
    path = tmp_path / "lab.parquet"
    pyarrow.parquet.write_table(pa.table({"t": times, "F": [1.0, 2.0, 3.0]}), path)
    read = read_source(path, TextTable())
    np.testing.assert_array_equal(read.columns["t"].values, [np.nan, 0.0, 2.0])


@pytest.mark.parametrize("around_B", [0, 10 * 2**20])
def test_an_hdf5_file_with_torn_texts_is_refused_before_hdf5_reads_it_for_ever(tmp_path, around_B):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["before"] = np.zeros(around_B, "u1")
        file["force"] = FORCE_N
        file["force"].attrs["units"] = "N"
        file["after"] = np.zeros(around_B, "u1")
    data = bytearray(path.read_bytes())
    at = data.index(b"GCOL")
    data[at + 16 : at + 4096] = bytes(4080)
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=rf"a\.h5: damaged \(its texts at byte {at}\)"):
        read(path)


@pytest.mark.parametrize("how", ["external", "virtual"])
def test_values_that_hdf5_takes_from_other_files_are_not_read(tmp_path, how):
    other = tmp_path / "private.bin"
    other.write_bytes(FORCE_N.tobytes())
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        if how == "external":
            parts = [(str(other), 0, FORCE_N.nbytes)]
            file.create_dataset("force", FORCE_N.shape, "f8", external=parts)
        else:
            source = h5py.VirtualSource(tmp_path / "other.h5", "force", shape=FORCE_N.shape)
            virtual = h5py.VirtualLayout(FORCE_N.shape, "f8")
            virtual[:] = source
            file.create_virtual_dataset("force", virtual)
    with pytest.raises(ConfigError, match=r"a\.h5: force: its values are in other files"):
        read(path)


@pytest.mark.slow
def test_mdf4_gives_values_units_and_times(tmp_path):
    path = tmp_path / "a.mf4"
    mdf = asammdf.MDF(version="4.10")
    mdf.append([asammdf.Signal(samples=FORCE_N, timestamps=T_S, unit="N", name="force")])
    mdf.save(path)
    force = read(path)["force"]
    np.testing.assert_array_equal(force.values, FORCE_N)
    np.testing.assert_array_equal(force.t_s, T_S)
    assert force.unit == "N"


@pytest.mark.parametrize("version", ["3.30", "4.10"])
def test_a_formula_of_an_mdf_file_is_not_executed(tmp_path, version):
    """What numexpr refuses, asammdf has SymPy evaluate as Python."""
    made = tmp_path / "made"  # without x, which asammdf takes for the variable
    formula = f"X1 + __import__('os').system('touch {made}')"
    path = tmp_path / ("a.mdf" if version < "4" else "a.mf4")
    mdf = asammdf.MDF(version=version)
    signal = asammdf.Signal(
        samples=np.arange(50, dtype="u2"), timestamps=T_S, name="force",
        conversion={"formula": formula},
    )  # fmt: skip
    mdf.append([signal])
    mdf.save(path)
    mdf.close()
    with pytest.raises(ConfigError, match="channel force has a formula, which could be any code"):
        read(path)
    assert not made.exists()


def test_parquet_gives_values_and_units(tmp_path):
    path = tmp_path / "a.parquet"
    field = pa.field("force", pa.float64(), metadata={"unit": "N"})
    pa.parquet.write_table(pa.table([FORCE_N], schema=pa.schema([field])), path)
    force = read(path)["force"]
    np.testing.assert_array_equal(force.values, FORCE_N)
    assert force.unit == "N"


def test_thousands_are_read_where_the_decimal_sign_shows_what_they_are(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text("Zeit [s];Kraft [N];Weg\n0,5;999,5;1.000\n1,0;1.234,567;2.000\n"
                    "1,5;-1.234.567,5;3.000\n2,0;1.500;4.000\n")  # fmt: skip
    columns = read(path)
    assert columns["Kraft [N]"].values.tolist() == [999.5, 1234.567, -1234567.5, 1500.0]
    with pytest.raises(ConfigError, match=r"'1\.000' in line 2, column 3 \(numbers .* 0,5"):
        read_source(path, TextTable()).column("Weg", "key")


def test_the_cell_that_is_no_number_is_named_and_not_a_good_one(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text("sep=;\n\nt;F\n0,5;1,5\n1,0;2,5\n\n1,5;1,5 N\n2,0;2,5\n")
    with pytest.raises(ConfigError, match=r"lab\.csv: '1,5 N' in line 7, column 2 "):
        read_source(path, TextTable()).column("F", "key")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("0.4,1,2,3", "Expected 2 fields in line 11, saw 4"),
        ('0.4,"1', "EOF inside string starting in line 11"),
    ],
)
def test_a_line_that_is_no_row_is_named_by_its_number_in_the_file(tmp_path, bad, said):
    """It was counted from the first row of the table: below are four lines above it, and a gap."""
    rows = [f"{k},{k}.5" for k in range(9)]
    rows[5] = bad
    rows.insert(2, "")
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["a report", "of a machine", "", "t,F", *rows, ""]))
    assert path.read_text().splitlines()[10] == bad
    with pytest.raises(
        ConfigError, match=re.escape(f"from line 5 on ({said}): give text.data_line")
    ):
        read(path)


def test_a_first_row_with_a_text_is_no_header(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text(f"t,F\n-0.02,OVERLOAD\n{rows()}")
    np.testing.assert_allclose(read(path, missing=["OVERLOAD"])["t"].values, [-0.02, *T_S])
    with pytest.raises(ConfigError, match="'OVERLOAD' in line 2, column 2"):
        read_source(path, TextTable()).column("F", "key")


@pytest.mark.parametrize("digits", ["9" * 21, "1" + "0" * 400], ids=["of 70 bits", "of 400 digits"])
def test_an_integer_of_any_length_is_a_number(digits, tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text(f"t,F\n0,1\n1,2\n2,{digits}\n3,4\n")
    assert read(path)["F"].values.tolist() == [1.0, 2.0, float(digits), 4.0]


def test_what_a_text_holds_beyond_its_table_is_said(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text(f"ACME 7\nRun,4\n\nt,F\n{rows()}\nmax,min,mean\n3.75,-1.25,1.2\n")
    assert read_source(path, TextTable()).left == (
        "2 lines above the table",
        "2 lines after line 54, from 'max,min,mean': text.data_line would read them",
    )


def test_matlab_names_state_units_and_what_is_no_series_is_said(tmp_path):
    path = tmp_path / "a.mat"
    runs = np.array([{"Kraft_N": FORCE_N}, {"Kraft_N": FORCE_N + 1.0}], dtype=object)
    scipy.io.savemat(path, {"R_Ohm": T_S, "runs": runs, "gain": 2.0, "note": "cold"})
    source = read_source(path, TextTable())
    assert source.columns["R_Ohm"].unit == "ohm"
    assert source.columns["runs.2.Kraft_N"].unit == "N"
    np.testing.assert_array_equal(source.columns["runs.2.Kraft_N"].values, FORCE_N + 1.0)
    assert source.left == ("gain (one number, 2.0)", "note (texts)")


def test_tdms_of_several_rates_and_starts_keeps_each_channel_where_it_was(tmp_path):
    path = tmp_path / "a.tdms"
    begin = np.datetime64("2026-11-28T10:00:00")
    fast = {"wf_increment": 0.02, "wf_start_time": begin}
    slow = {"wf_increment": 0.5, "wf_start_time": begin + np.timedelta64(250, "ms")}
    with TdmsWriter(path) as writer:
        writer.write_segment([ChannelObject("fast", "F_N", FORCE_N, properties=fast),
                              ChannelObject("slow", "T (°C)", np.ones(3), properties=slow),
                              ChannelObject("slow", "note", ["a", "b"])])  # fmt: skip
    source = read_source(path, TextTable())
    np.testing.assert_allclose(source.columns["fast/F_N"].t_s, T_S)
    np.testing.assert_allclose(source.columns["slow/T (°C)"].t_s, [0.25, 0.75, 1.25])
    assert [s.unit for s in source.columns.values()] == ["N", "°C"]
    assert source.left == ("slow/note (texts)",)
    assert source.start == datetime(2026, 11, 28, 10, tzinfo=UTC)  # as TDMS stores them


def test_a_column_is_found_by_the_unique_end_of_its_name(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["bench/force"], file["bench/t"], file["again/t"] = FORCE_N, T_S, T_S
    source = read_source(path, TextTable())
    assert source.name_of("force", "key") == "bench/force"
    with pytest.raises(ConfigError, match="again/t, bench/t"):
        source.name_of("t", "key")
    with pytest.raises(ConfigError, match=r"key = 'forse': a.h5 has no such column"):
        source.name_of("forse", "key")


BAD = {
    "empty": (b"", "is empty"),
    "a workbook": (b"PK\x03\x04" + bytes(100), "cannot be read as WORKBOOK"),
    "an old workbook": (b"\xd0\xcf\x11\xe0" + bytes(100), "cannot be read as WORKBOOK"),
    "a header of LabVIEW alone": (b"LabVIEW Measurement\t\nDate\t9", "cannot be read as LVM"),
    "binary": (bytes(range(256)) * 4, "neither text nor a known binary format"),
    "prose": (b"It was a dark night.\nNobody measured anything.\n" * 5, "no table of numbers"),
    "a cut TDMS": (b"TDSm" + bytes(24) + b"\xff" * 9, "cannot be read as TDMS"),
    "a cut MDF": (b"MDF     4.10    " + bytes(80), "cannot be read as MDF"),
    "a cut Parquet": (b"PAR1" + b"\x07" * 60, "cannot be read as PARQUET"),
    "a cut MATLAB 5": (b"MATLAB 5.0 MAT-file" + b"\x07" * 200, "cannot be read as MAT"),
    "a cut HDF5": (b"\x89HDF\r\n\x1a\n" + b"\x07" * 60, "cannot be read as HDF5"),
}


@pytest.mark.parametrize("name", BAD)
def test_rubbish_is_one_line_with_the_file(name, tmp_path):
    content, expected = BAD[name]
    path = tmp_path / "rubbish.bin"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=expected) as error:
        read(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def refusal(path):
    """The line that refuses a file; empty if its columns were read."""
    try:
        assert read(path)
    except ConfigError as error:
        return str(error)
    return ""


SIGNATURES = (b"", b"TDSm", b"MDF     4.10    ", b"PAR1", b"\x89HDF\r\n\x1a\n", b"MATLAB 5.0")


@given(
    signature=st.sampled_from(SIGNATURES),
    body=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode),
                   st.text("0123456789.,;+-eE \t\n\"", max_size=300).map(str.encode)),
)  # fmt: skip
def test_any_bytes_give_columns_or_one_line(signature, body, tmp_path_factory):
    content = signature + body
    path = tmp_path_factory.getbasetemp() / f"fuzz-{zlib.crc32(content)}"
    path.write_bytes(content)
    line = refusal(path)
    path.unlink()
    assert "\n" not in line
    assert not line or str(path) in line


def test_a_cut_off_file_is_read_without_a_word_of_its_library(tmp_path, capfd):
    """Its log goes to the streams that it opened at its import: a process of its own shows it."""
    path = tmp_path / "a.tdms"
    with TdmsWriter(path) as writer:
        writer.write_segment([ChannelObject("rig", "force", FORCE_N)])
    path.write_bytes(path.read_bytes()[:-13])
    words = "from pathlib import Path; from hil.runs.imports.source import read_source; "
    words += "from hil.runs.imports.tables import TextTable; "
    words += f"print(len(read_source(Path({str(path)!r}), TextTable()).columns))"
    subprocess.run([sys.executable, "-c", words], check=True)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("1\n", "")


def test_cells_that_a_spreadsheet_shows_in_percent_are_numbers_in_percent(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t (s);duty;force (N)\n0,0;12,5 %;1\n0,1;100%;2\n0,2;;3\n0,3;0%;4\n")
    duty = read(path)["duty"]
    assert duty.unit == "percent"
    np.testing.assert_array_equal(duty.values, [12.5, 100.0, np.nan, 0.0])
