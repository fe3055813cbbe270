"""`hil study resistance`: simulated wires, and files of real ones."""

import csv

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.sma.observer import ResistanceObserver
from hil_studies.wires import resistance as study

VALUES = study.Values(duration_s=24.0)


@pytest.fixture(scope="module")
def under_stress():
    case = study.cases(VALUES)[2]
    return case, study.simulated(case, VALUES, study.FINE_mA)


def test_a_wire_under_stress_is_followed_within_one_percent(under_stress):
    case, record = under_stress
    observer = ResistanceObserver(case.wire, case.stress)
    score = study.scores(study.observed(observer, record), record, observer.strain_max)
    assert score["rms_of_stroke"] < 0.01


def test_a_reading_comes_as_often_as_a_board_gives_it(under_stress):
    measured_s = under_stress[1].t_s[np.isfinite(under_stress[1].R_Ohm)]
    assert np.diff(measured_s) == pytest.approx(0.052)


def write(path, rows, columns=("t_s", "resistance_Ohm", "duty", "strain")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def test_anybodys_file_goes_through_the_same_observer(tmp_path):
    case = study.cases(VALUES)[0]
    record = study.simulated(case, VALUES, study.FINE_mA)
    every = range(0, len(record.t_s), 13)
    rows = [
        (record.t_s[k], 1.03 * record.R_Ohm[k], record.duty[k], record.strain[k]) for k in every
    ]
    path = write(tmp_path / "mine.csv", rows)
    results = study.run(tmp_path, study.Values(data=str(path)))
    assert results["rows"][0]["rms_of_stroke"] < 0.03, "scaled to its first resistance"
    told = np.genfromtxt(tmp_path / "observed.csv", delimiter=",", names=True)
    assert told.dtype.names == ("t_s", "strain", "strain_u", "temperature_C")
    assert len(told) == len(rows)


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        ([(0, 50), (1, 50)], ("t_s", "resistance_Ohm"), "has no column duty"),
        ([(0, 50, 0), (0, 50, 0)], study.COLUMNS, "t_s must rise"),
        ([(0, 50, 0), (1, 50, 100)], study.COLUMNS, "duty must be within 0 to 1"),
        ([(0, "", 0), (1, 0, 0)], study.COLUMNS, "no resistance"),
        ([(0, "fifty", 0), (1, 50, 0)], study.COLUMNS, "is not a number"),
        ([], study.COLUMNS, "has no column"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path, rows, columns, said):
    path = write(tmp_path / "mine.csv", rows, columns)
    with pytest.raises(ModelError, match=said) as caught:
        study.read(path, "")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
