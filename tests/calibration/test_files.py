"""Calibration records: shipped ones are what they say, changed ones are found."""

import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from hil.calibration.files import hash_of, load_record, located
from hil.errors import ConfigError
from hil.reports.run_report import _calibration

RECORDS = sorted((Path(__file__).resolve().parents[2] / "calibration").glob("futek_*.toml"))


@pytest.fixture
def record(tmp_path):
    """A copy of the 9 N record that a test may change: (path, replace)."""
    path = tmp_path / "cell.toml"
    path.write_text((RECORDS[0].parent / "futek_9N.toml").read_text())

    def change(old, new, *, sign=True):
        text = path.read_text()
        assert old in text
        text = text.replace(old, new, 1)
        if sign:
            table = tomllib.loads(text)
            text = text.replace(table["hash"], hash_of(table))
        path.write_text(text)
        return load_record(path, named_by="rig.toml: devices.daq.channels.force.record")

    return change


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_shipped_records_are_whole_and_say_that_they_are_assumed(path):
    found = load_record(path, named_by="test")
    assert found.record.status == "assumed"
    assert "EXAMPLE, NOT A CALIBRATION" in found.text
    assert found.record.article.serial.startswith("EXAMPLE")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_shunt_value_of_a_record_is_that_of_its_bridge(path):
    """A bridge of 350 Ohm arms, one with 100 kOhm across it, solved as two dividers."""
    arm, shunt = 350.0, 100e3
    shunted = arm * shunt / (arm + shunt)
    ratio_mV_per_V = 1e3 * (0.5 - shunted / (arm + shunted))
    commissioning = load_record(path, named_by="test").record.commissioning
    assert commissioning.shunt_mV_per_V == pytest.approx(ratio_mV_per_V, abs=5e-5)


def test_the_uncertainty_of_a_force_is_that_of_random_coefficients():
    """GUM eq. (13) against drawing the coefficients, 1 % being 5 standard errors of 1e5 draws."""
    found = load_record(RECORDS[0].parent / "futek_lbs200_5lb.toml", named_by="test")
    model = found.record.model
    draws = np.random.default_rng(1).multivariate_normal(
        model.coefficients_N, model.covariance_N2, size=100_000
    )
    r = found.chain(bridge=True).raw(20.0)
    spread_N = (draws @ r ** np.arange(3)).std()
    assert found.force_uncertainty_N(20.0) == pytest.approx(spread_N, rel=0.012)


def test_a_force_that_a_polynomial_does_not_reach_has_no_known_uncertainty():
    """4.5 r - 0.8 r^2 ends at 4.5^2 / 3.2 = 6.33 N; a run with such a record says so."""
    found = load_record(RECORDS[0].parent / "futek_9N.toml", named_by="test")
    bent = {"coefficients_N": [0.0, 4.5, -0.8], "covariance_N2": np.diag([1e-6, 1e-5, 0]).tolist()}
    model = found.record.model.model_copy(update=bent)
    steep = replace(found, record=found.record.model_copy(update={"model": model}))
    r = (4.5 - np.sqrt(4.5**2 - 3.2 * 6.3)) / 1.6
    assert steep.force_uncertainty_N(6.3) == pytest.approx(np.sqrt(1e-6 + 1e-5 * r**2))
    assert np.isnan(steep.force_uncertainty_N(9.0))
    kept = {"record_id": "steep", "article": "T", "serial": "1", "status": "measured",
            "uncertainty_N": steep.force_uncertainty_N(9.0), "capacity_N": 9.0, "expired": False,
            "valid_until": "2030-01-01"}  # fmt: skip
    assert "no σ known at 9 N" in _calibration(kept)


def test_a_record_is_valid_through_its_last_day(record):
    found = record("valid_until = 2036-11-01", "valid_until = 2027-03-31")
    assert not found.expired(date(2027, 3, 31))
    assert found.expired(date(2027, 4, 1))


def test_a_comment_may_be_added_and_a_value_may_not(record):
    assert record("[model]", "# a comment\n[model]", sign=False).record.kind == "force_transducer"
    with pytest.raises(ConfigError, match=r"cell.toml: hash: .*changed after the calibration"):
        record("4.75", "4.76", sign=False)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('kind = "force_transducer"', 'kind = "oracle"', "kind = 'oracle'"),
        ("[0.0, 4.75]", "[0.0]", "model.coefficients_N"),
        ("[0.0, 4.75]", "[0.0, 0.0]", "linear term"),
        ("[0.0, 1.4e-4]]", "[0.0, -1.4e-4]]", "not a covariance"),
        ("[[2.5e-5, 0.0], [0.0, 1.4e-4]]", "[[2.5e-5]]", "2 rows of 2"),
        ("[-2.0, 2.0]", "[2.0, -2.0]", "must rise"),
        ("valid_until = 2036-11-01", "valid_until = 2016-11-01", "act: valid_until is before date"),
        ("valid_until = 2036-11-01", "valid_until = 'never'", "act.valid_until"),
        ("gain = 500.0", "gain = 0.0", "conditioner.gain"),
        ("[conditions]", "[weather]", "weather"),
        ('serial = "EXAMPLE-9N"\n', "", "article.serial: missing"),
    ],
)
def test_a_wrong_record_is_named_with_its_key(record, old, new, words):
    with pytest.raises(ConfigError) as refused:
        record(old, new)
    assert "cell.toml: " in str(refused.value)
    assert words in str(refused.value)


def test_a_missing_record_is_named_by_who_asked_for_it(tmp_path):
    with pytest.raises(ConfigError, match=r"rig\.toml: here: no such file: .*gone\.toml"):
        load_record(tmp_path / "gone.toml", named_by="rig.toml: here")


def test_a_record_lies_beside_the_rig_or_above_it_or_is_said_where_it_was_looked_for(tmp_path):
    rigs = tmp_path / "configs" / "mine"
    rigs.mkdir(parents=True)
    (tmp_path / "calibration").mkdir()
    above = tmp_path / "calibration" / "f1.toml"
    above.write_text("")
    assert located(rigs, "calibration/f1.toml", named_by="rig.toml: here") == above
    beside = rigs / "calibration" / "f1.toml"
    beside.parent.mkdir()
    beside.write_text("")
    assert located(rigs, "calibration/f1.toml", named_by="rig.toml: here") == beside
    with pytest.raises(ConfigError) as error:
        located(rigs, "f2.toml", named_by="rig.toml: here")
    assert str(error.value).startswith(
        f"rig.toml: here: no such file: f2.toml: looked in {rigs}, {rigs.parent}, {tmp_path}"
    )
