"""`hil study resistance`: wires simulated on the loop, and files of real ones."""

import csv
from dataclasses import replace

import numpy as np
import pytest

import hil
from hil.errors import ModelError
from hil.mechanics.sma.observer import ResistanceObserver, Uncertain
from hil_studies.resistance import study, wires
from hil_studies.resistance.ends import CERTAIN, measured_ends, observed
from hil_studies.resistance.files import COLUMNS, read

CHAIN = wires.Chain(study.FINE_mA, noise_counts=0.5)
PLAIN, _, STRESSED = wires.CASES
PULSE_S = 180e-6  # hil/devices/board/scan.py: at full power, for a reading of a cell that is off


def followed(case, true, duration_s=24.0):
    """The run of a wire."""
    drive = wires.random_duty(duration_s, 1), wires.HOLD_S, duration_s
    return wires.simulated(case, true, CHAIN, drive, seed=1)


def through_both_ends(case, true):
    """The run of a wire that is cold, then hot."""
    drive = wires.DUTY_OF_ENDS, wires.COLD_S, wires.COLD_S + wires.HOT_S
    return wires.simulated(case, true, CHAIN, drive, seed=3)


def score_of(of, record, uncertain):
    told = observed(ResistanceObserver(of.wire, of.stress, uncertain), record)
    return study.scores(told, record, record.strain.max())


@pytest.fixture(scope="module")
def other():
    """A wire in other air and with other austenite: its run, and that through both ends."""
    true = wires.scaled(wires.other_air(wires.CASES[PLAIN]), austenite_Ohm_per_m=1.05)
    return true, followed(PLAIN, true), through_both_ends(PLAIN, true)


def test_the_true_strain_is_that_which_the_readings_show(other):
    """With resistance by phase alone a reading is linear in austenite: no observer is needed."""
    true, record, _ = other
    cold_Ohm, hot_Ohm = wires.case_of(plant_of(true), wires.CELL).wire.ends_Ohm
    shown = (record.R_Ohm - hot_Ohm) / (cold_Ohm - hot_Ohm)
    left = record.strain / record.strain.max()
    moving = np.isfinite(shown) & (left > 0.01) & (left < 0.99)
    error, u = (shown - left)[moving], record.u_Ohm[moving] / (cold_Ohm - hot_Ohm)
    assert moving.sum() > 50
    assert abs(error.mean()) < 3.0 * u.mean() / np.sqrt(moving.sum())
    assert error.std() < 1.3 * u.mean()


@pytest.mark.slow
def test_without_readings_the_observer_of_a_certain_wire_lacks_the_heat_of_the_pulses_alone(other):
    """The wire's law of the loop and that of the observer are one, at the duties of the gate."""
    true, record, _ = other
    wire = wires.case_of(plant_of(true), wires.CELL).wire
    pulsed = np.isfinite(record.R_Ohm) & (record.duty == 0.0)
    gate = np.where(pulsed, PULSE_S / 0.004, record.duty)
    nothing = np.full(len(record.t_s), np.nan)
    off = [
        np.abs(observed(ResistanceObserver(wire, None, CERTAIN), blind)[:, 0] - record.strain)
        for blind in (replace(record, R_Ohm=nothing, duty=duty) for duty in (gate, record.duty))
    ]
    assert record.strain.min() < 0.01 < 0.03 < record.strain.max()
    assert off[0].max() < 0.001 * 0.04 < 0.005 * 0.04 < off[1].max()


def plant_of(activation):
    return hil.load(
        wires.HERE / "levels.toml", plant={"arrays": {"wire": {"activation": activation}}}
    ).tables.plant


def test_a_wire_whose_ends_were_measured_is_followed_within_two_percent(other):
    _, record, ends = other
    case, uncertain = measured_ends(wires.believed(PLAIN), ends)
    score = score_of(case, record, uncertain)
    assert score["rms_of_stroke"] < 0.02
    assert score["coverage"] > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(wires.DEVIATIONS, key=lambda name: "stress" not in name))
def test_bands_hold_for_a_wire_that_differs_from_what_is_believed(name):
    """One wire, whose errors are not independent: of many `hil study resistance` tells."""
    record = followed(STRESSED, wires.DEVIATIONS[name](wires.CASES[STRESSED]), 48.0)
    assert score_of(wires.believed(STRESSED), record, Uncertain())["coverage"] > 0.7


def test_bands_of_a_wire_of_which_nothing_is_uncertain_do_not_hold(other):
    """The observer as it would be without what `Uncertain` says of resistances and branches."""
    exact = Uncertain(martensite=0.0, austenite=0.0, branches_K=0.0, hysteresis_K=0.0)
    assert score_of(wires.believed(PLAIN), other[1], exact)["coverage"] < 0.5


def test_both_ends_of_a_wire_are_measured_within_their_uncertainty(other):
    true, _, ends = other
    case, uncertain = measured_ends(wires.believed(PLAIN), ends)
    for key, is_, u in (
        ("martensite", 126.0, uncertain.martensite),
        ("austenite", true["austenite_Ohm_per_m"], uncertain.austenite),
    ):
        assert abs(getattr(case.wire, f"{key}_Ohm_per_m") / is_ - 1.0) < 3.0 * u < 0.03


@pytest.mark.parametrize(
    ("part", "said"),
    [(slice(600, None), "cold end.*let it rest"), (slice(0, 520), "hot end.*heat it")],
)
def test_a_record_without_both_ends_is_refused(other, part, said):
    ends = other[2]
    short = wires.Record(*(getattr(ends, key)[part] for key in wires.Record.__annotations__))
    with pytest.raises(ModelError, match=said):
        measured_ends(wires.believed(PLAIN), short)


def test_a_reading_comes_as_often_as_the_board_gives_it(other):
    """The board senses every 50 ms; its scan and the loop's period of 4 ms make it 60."""
    measured_s = other[1].t_s[np.isfinite(other[1].R_Ohm)]
    assert np.diff(measured_s) == pytest.approx(0.06)


def write(path, rows, columns=("t_s", "resistance_Ohm", "duty", "strain")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def rows_of(record):
    """A row for every reading, so that the duty is late, by a shunt that shows 3 % too much."""
    every = np.flatnonzero(np.isfinite(record.R_Ohm))
    return [
        (record.t_s[k], 1.03 * record.R_Ohm[k], record.duty[k], record.strain[k]) for k in every
    ]


def test_anybodys_file_goes_through_the_same_observer(tmp_path, other):
    rows = rows_of(other[1])
    path = write(tmp_path / "mine.csv", rows)
    results = study.run(tmp_path, study.Values(data=str(path), supply_V=9.0))
    rms = results["rows"][0]["rms_of_stroke"]
    assert rms < 0.1, "scaled to its first resistance, austenite as printed"
    told = np.genfromtxt(tmp_path / "observed.csv", delimiter=",", names=True)
    assert told.dtype.names == ("t_s", "strain", "strain_u", "temperature_C")
    assert len(told) == len(rows)


def test_anybodys_ends_are_measured_in_a_file_of_their_own(tmp_path, other):
    mine, ends = (
        write(tmp_path / name, rows_of(record))
        for name, record in zip(("mine.csv", "ends.csv"), other[1:], strict=True)
    )
    results = study.run(tmp_path, study.Values(data=str(mine), ends=str(ends)))
    assert results["rows"][0]["rms_of_stroke"] < 0.03
    assert results["rows"][0]["coverage"] > 0.85
    assert "Ends measured in ends.csv" in results["notes"][1]
    with pytest.raises(ModelError, match=r"mine\.csv: no two readings at the cold end"):
        study.run(tmp_path, study.Values(data=str(mine), ends=str(mine)))


@pytest.mark.slow
def test_a_recording_of_the_loop_goes_through_it_with_the_wire_of_its_rig(tmp_path):
    path = hil.run(wires.HERE / "levels.toml", seed=1, out=tmp_path / "run.h5")
    values = {"data": str(path), "cell": wires.CELL, "rig": str(wires.HERE / "rig.toml")}
    results = study.run(tmp_path, study.Values(**values))
    told = np.genfromtxt(tmp_path / "observed.csv", delimiter=",", names=True)
    lifted_m = hil.open_run(path).displacement_measured_m.values
    # The laser on the weight says how far the wires have contracted, 4.46 mm of 4 % at most.
    moved = 1.0 - told["strain"] / 0.04 - lifted_m / 4.458e-3
    assert np.sqrt(np.nanmean(moved[500:] ** 2)) < 0.03
    assert "the file has no strain" in results["notes"][0]
    with pytest.raises(ModelError, match=r"give cell, one of wire\.1"):
        study.run(tmp_path, study.Values(**values | {"cell": "wire.2"}))


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
