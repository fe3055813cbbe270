"""`hil study resistance`: simulated wires, and files of real ones."""

import csv

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.sma.observer import ResistanceObserver, Uncertain
from hil_studies.wires import resistance as study
from hil_studies.wires import resistance_plant as plant
from hil_studies.wires.resistance_ends import measured_ends
from hil_studies.wires.resistance_files import COLUMNS, read

BOARD = plant.Board(every_s=0.052, noise_counts=0.5, full_scale_mA=study.FINE_mA)
CASES = plant.cases(n_wires=4, supply_V=9.0)
DUTY = plant.random_duty(48.0, seed=1)


def score_of(case, true, ends=False, seed=1):
    """What the study says of a wire, with resistances as printed or measured."""
    wire, uncertain = case.wire, Uncertain()
    if ends:
        record = plant.simulated(true, BOARD, plant.duty_of_ends(), seed)
        wire, uncertain = measured_ends(case, record)
    record = plant.simulated(true, BOARD, DUTY, seed)
    told = study.observed(ResistanceObserver(wire, case.stress, uncertain), record)
    return study.scores(told, record, record.strain.max())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_wire_whose_ends_were_measured_is_followed_within_one_percent(case):
    score = score_of(case, plant.other_air(case), ends=True)
    assert score["rms_of_stroke"] < 0.01
    assert score["coverage"] > 0.85


@pytest.mark.parametrize("name", plant.DEVIATIONS)
def test_bands_hold_for_a_wire_that_differs_from_what_is_believed(name):
    """One wire, whose errors are not independent: of many `hil study resistance` tells."""
    case = CASES[2]
    assert score_of(case, plant.DEVIATIONS[name](case))["coverage"] > 0.7


def test_bands_of_a_wire_of_which_nothing_is_uncertain_do_not_hold():
    """The observer as it would be without what `Uncertain` says of resistances and branches."""
    case = CASES[0]
    exact = Uncertain(martensite=0.0, austenite=0.0, branches_K=0.0, hysteresis_K=0.0)
    record = plant.simulated(plant.other_austenite(case), BOARD, DUTY, seed=1)
    told = study.observed(ResistanceObserver(case.wire, None, exact), record)
    assert study.scores(told, record, record.strain.max())["coverage"] < 0.5


def test_both_ends_of_a_wire_are_measured_within_their_uncertainty():
    case = CASES[1]
    true = plant.other_austenite(plant.other_air(case), 1.05)
    record = plant.simulated(true, BOARD, plant.duty_of_ends(), seed=3)
    wire, uncertain = measured_ends(case, record)
    for key, u in (("martensite", uncertain.martensite), ("austenite", uncertain.austenite)):
        found, is_ = (getattr(w, f"{key}_Ohm_per_m") for w in (wire, true.wire))
        assert abs(found / is_ - 1.0) < 3.0 * u < 0.03


@pytest.mark.parametrize(
    ("duty", "said"),
    [(np.ones(3000), "cold end.*let it rest"), (np.repeat([0.0, 0.3], 1500), "hot end.*heat it")],
)
def test_a_record_without_both_ends_is_refused(duty, said):
    record = plant.simulated(CASES[0], BOARD, duty, seed=1)
    with pytest.raises(ModelError, match=said):
        measured_ends(CASES[0], record)


def test_a_reading_comes_as_often_as_a_board_gives_it():
    record = plant.simulated(CASES[2], BOARD, DUTY, seed=1)
    measured_s = record.t_s[np.isfinite(record.R_Ohm)]
    assert np.diff(measured_s) == pytest.approx(0.052)


def write(path, rows, columns=("t_s", "resistance_Ohm", "duty", "strain")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def rows_of(record):
    """A row every 13th period, so that the duty is late, by a shunt that shows 3 % too much."""
    every = range(0, len(record.t_s), 13)
    return [
        (record.t_s[k], 1.03 * record.R_Ohm[k], record.duty[k], record.strain[k]) for k in every
    ]


def test_anybodys_file_goes_through_the_same_observer(tmp_path):
    case = CASES[0]
    rows = rows_of(plant.simulated(plant.other_air(case), BOARD, DUTY, seed=1))
    path = write(tmp_path / "mine.csv", rows)
    results = study.run(tmp_path, study.Values(data=str(path), supply_V=9.0))
    rms = results["rows"][0]["rms_of_stroke"]
    assert rms < 0.06, "scaled to its first resistance, austenite as printed"
    told = np.genfromtxt(tmp_path / "observed.csv", delimiter=",", names=True)
    assert told.dtype.names == ("t_s", "strain", "strain_u", "temperature_C")
    assert len(told) == len(rows)


def test_anybodys_ends_are_measured_in_a_file_of_their_own(tmp_path):
    true = plant.other_austenite(CASES[0], 1.06)
    mine, ends = (
        write(tmp_path / name, rows_of(plant.simulated(true, BOARD, duty, seed=1)))
        for name, duty in (("mine.csv", DUTY), ("ends.csv", plant.duty_of_ends()))
    )
    results = study.run(tmp_path, study.Values(data=str(mine), ends=str(ends)))
    assert results["rows"][0]["rms_of_stroke"] < 0.015
    assert results["rows"][0]["coverage"] > 0.85
    assert "Ends measured in ends.csv" in results["notes"][1]
    with pytest.raises(ModelError, match=r"mine\.csv: no two readings at the cold end"):
        study.run(tmp_path, study.Values(data=str(mine), ends=str(mine)))


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        ([(0, 50), (1, 50)], ("t_s", "resistance_Ohm"), "has no column duty"),
        ([(0, 50, 0), (0, 50, 0)], COLUMNS, "t_s must rise"),
        ([(0, 50, 0), (1, 50, 100)], COLUMNS, "duty must be within 0 to 1"),
        ([(0, "", 0), (1, 0, 0)], COLUMNS, "no resistance"),
        ([(0, "fifty", 0), (1, 50, 0)], COLUMNS, "is not a number"),
        ([], COLUMNS, "has no column"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path, rows, columns, said):
    path = write(tmp_path / "mine.csv", rows, columns)
    with pytest.raises(ModelError, match=said) as caught:
        read(path, "")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
