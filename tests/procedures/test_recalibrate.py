"""An old run anew from its raw volts and counts: by hand what the program says."""

import hashlib
import json
import shutil
import tomllib
from datetime import date

import h5py
import numpy as np
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.calibration.files import load_record
from hil.calibration.write import values_table, write_record
from hil.procedures.recalibrate import recalibrate
from hil.record.layout import LIBVER
from hil.record.read import calibrations_of
from hil.record.repair import faults_of
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.replay import replay


def changed(path, out, change=lambda table: None):
    """A record like another one: same serial number, other values."""
    table = load_record(path, named_by="test").record.model_dump(exclude_none=True)
    del table["hash"], table["format"]
    table["act"] |= {"date": date(2027, 1, 1)}
    change(table)
    return write_record(out, table)


def stiffer(table):
    table["model"]["coefficients_N"] = [0.01, 4.8, 0.02]
    table["model"]["covariance_N2"] = np.diag([1e-6, 1e-5, 1e-7]).tolist()


@pytest.fixture(scope="module")
def tared(configs, tmp_path_factory):
    """An array's run whose transducer has an offset that was tared."""
    config = hil.load(configs / "miga6/all_on.toml", [
        "experiment.duration_s=0.2", "devices.daq.channels.force.tare=true",
        "devices.daq.channels.force.sim.offset_V=0.05"])  # fmt: skip
    path = tmp_path_factory.mktemp("tared") / "run.h5"
    session.run(Plan(config, seed=1), Output(out=path))
    return path


@pytest.fixture
def futek(configs):
    return configs.parent / "calibration/futek_9N.toml"


@pytest.mark.slow
def test_the_same_values_give_the_same_run(tared, futek, tmp_path):
    """Every column, estimates included, bit for bit; and it replays."""
    changed(futek, tmp_path / "same.toml")
    words = ["recalibrate", str(tared), "--with", str(tmp_path / "same.toml")]
    assert main([*words, "--out", str(tmp_path / "new.h5")]) == 0
    old, new = hil.open_run(tared), hil.open_run(tmp_path / "new.h5")
    for name in old.data_vars:
        if not name.startswith("event"):
            np.testing.assert_array_equal(old[name].values, new[name].values, err_msg=name)
    assert replay(tmp_path / "new.h5")[1] is None


def test_forces_are_the_new_polynomial_of_the_old_volts_from_the_same_zero(tared, futek, tmp_path):
    """0.05 V of offset behind 5 V a mV/V are the zero; volts and zero are the old file's."""
    changed(futek, tmp_path / "new.toml", stiffer)
    out = tmp_path / "new.h5"
    assert main(["recalibrate", str(tared), "--with", str(tmp_path / "new.toml"),
                 "--out", str(out)]) == 0  # fmt: skip
    old, new = hil.open_run(tared), hil.open_run(out)
    (zero,) = old.input_value.values[old.input_name.values == "zero"]
    assert zero == pytest.approx(0.01)
    deflection = old["force.raw_V"].values / 5.0 - zero
    by_hand = 0.01 + 4.8 * deflection + 0.02 * deflection**2
    np.testing.assert_allclose(new.force_measured_N.values, by_hand, rtol=1e-12, atol=1e-12)


def test_a_recalibrated_recording_has_checksums_of_its_own_texts(tared, futek, tmp_path):
    changed(futek, tmp_path / "new.toml", stiffer)
    out = tmp_path / "new.h5"
    recalibrate(tared, tmp_path / "new.toml", out=out)
    assert faults_of(out) == []
    with h5py.File(out, "r+", libver=LIBVER) as file:
        file.attrs["recalibrated"] = "[]"
    assert faults_of(out) == ["not as it was written: attribute 'recalibrated'"]


def test_what_was_changed_in_the_recording_of_the_run_is_a_warning(tared, futek, tmp_path):
    """The new file's checksums are those of the changed texts."""
    changed(futek, tmp_path / "new.toml", stiffer)
    path, out = tmp_path / "old.h5", tmp_path / "new.h5"
    shutil.copyfile(tared, path)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file.attrs["operator"] = "another"
    text = "the recording of the run is not as it was written: attribute 'operator'"
    assert recalibrate(path, tmp_path / "new.toml", out=out).messages == (text,)
    assert hil.open_run(out).event_text.values[-1] == f"force: {text}"


def test_what_was_done_stays_and_what_is_concluded_follows(tared, futek, tmp_path):
    changed(futek, tmp_path / "new.toml", stiffer)
    out = tmp_path / "new.h5"
    main(["recalibrate", str(tared), "--with", str(tmp_path / "new.toml"), "--out", str(out)])
    old, new = hil.open_run(tared), hil.open_run(out)
    for name in ("cells_commanded", "fault_bits", "t_s", "late_s", "force.raw_V", "force_model_N"):
        np.testing.assert_array_equal(old[name].values, new[name].values)
    moved = new.force_estimate_N.values - old.force_estimate_N.values
    assert np.abs(moved).max() > 0.003  # 10 mN of zero and 1 % of the force, filtered
    figures = [json.loads(run.attrs["summary"])["force"] for run in (old, new)]
    measured = [run.force_measured_N.values - run.force_model_N.values for run in (old, new)]
    for figure, residual in zip(figures, measured, strict=True):
        assert figure["residual_rms_N"] == pytest.approx(np.sqrt(np.mean(residual**2)))


@pytest.mark.slow
def test_the_new_file_says_where_it_comes_from_and_the_old_one_is_untouched(
    tared, futek, tmp_path, capsys
):
    before = hashlib.sha256(tared.read_bytes()).hexdigest()
    record = changed(futek, tmp_path / "new.toml", stiffer)
    out = tmp_path / "new.h5"
    assert main(["recalibrate", str(tared), "--with", str(tmp_path / "new.toml"),
                 "--out", str(out)]) == 0  # fmt: skip
    assert hashlib.sha256(tared.read_bytes()).hexdigest() == before
    run = hil.open_run(out)
    (history,) = json.loads(run.attrs["recalibrated"])
    assert (history["sha256"], history["with"]) == (before, record.id)
    kept = calibrations_of(out)["force"]
    assert kept["record"] == record.text
    assert kept["was_record_id"].startswith("futek_9N@")
    assert f"force: recalibrated from {kept['was_record_id']} to {record.id}" in run.event_text
    assert main(["verify", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    assert f"recalibrated from {kept['was_record_id']}" in out.with_suffix(".html").read_text()
    capsys.readouterr()
    assert main(["recalibrate", str(tared), "--with", str(tmp_path / "new.toml"),
                 "--out", str(out)]) == 2  # fmt: skip
    assert "exists already" in capsys.readouterr().err


def test_a_second_recalibration_gives_what_the_first_would_have_given(tared, futek, tmp_path):
    """Zero and tare are of the run, not of the record between: by way of another conditioner."""

    def other(table):
        stiffer(table)
        table["conditioner"] |= {"gain": 300.0, "offset_V": 0.1}

    run = tmp_path / "run.h5"
    shutil.copy(tared, run)
    with h5py.File(run, "r+") as file:
        inputs = file["inputs"]
        inputs.resize(len(inputs) + 1, axis=0)
        inputs[-1] = (100, 0.1, b"tare", 0.5, b"force")
    changed(futek, tmp_path / "between.toml", other)
    changed(futek, tmp_path / "last.toml", stiffer)
    recalibrate(run, tmp_path / "between.toml", out=tmp_path / "between.h5")
    recalibrate(tmp_path / "between.h5", tmp_path / "last.toml", out=tmp_path / "twice.h5")
    recalibrate(run, tmp_path / "last.toml", out=tmp_path / "once.h5")
    twice, once = (hil.open_run(tmp_path / name) for name in ("twice.h5", "once.h5"))
    np.testing.assert_allclose(
        twice.force_measured_N.values, once.force_measured_N.values, rtol=0.0, atol=1e-12
    )
    kept = [calibrations_of(tmp_path / name)["force"] for name in ("twice.h5", "once.h5")]
    assert kept[0]["was_record"] == kept[1]["was_record"]
    first, second = json.loads(twice.attrs["recalibrated"])
    assert second["was"] == first["with"]


def test_a_record_that_was_fitted_in_less_than_was_read_is_said(tared, futek, tmp_path, capsys):
    def narrow(table):
        table["model"]["range_mV_per_V"] = [-0.02, 0.02]

    changed(futek, tmp_path / "new.toml", narrow)
    assert main(["recalibrate", str(tared), "--with", str(tmp_path / "new.toml"),
                 "--out", str(tmp_path / "new.h5")]) == 0  # fmt: skip
    assert "readings lie outside of the -0.02 to 0.02 mV/V" in capsys.readouterr().out


def test_a_record_that_had_expired_on_the_day_of_the_run_is_flagged(tared, futek, tmp_path):
    def old(table):
        table["act"] |= {"date": date(2020, 1, 1), "valid_until": date(2021, 1, 1)}

    changed(futek, tmp_path / "old.toml", old)
    out = tmp_path / "new.h5"
    main(["recalibrate", str(tared), "--with", str(tmp_path / "old.toml"), "--out", str(out)])
    (line,) = json.loads(hil.open_run(out).attrs["summary"])["calibration"]["expired"]
    assert line.endswith("expired on 2021-01-01")


@pytest.fixture(scope="module")
def impact(configs, tmp_path_factory):
    once = ["controller.repeats=1", "controller.gamma_deg=0", "experiment.duration_s=2.0"]
    config = hil.load(configs / "pantograph/impact_symmetric.toml", once)
    path = tmp_path_factory.mktemp("impact") / "run.h5"
    session.run(Plan(config, seed=1), Output(out=path))
    return path


class TestAnEncoder:
    @pytest.fixture
    def record(self, tmp_path):
        path = tmp_path / "encoder.toml"
        values = {"offset_rad": 2.8, "direction": -1.0}
        write_record(path, {
            "kind": "encoder", "status": "measured", "article": {"name": "E", "serial": "E-1"},
            "act": {"by": "A", "date": date(2027, 1, 1), "valid_until": date(2028, 1, 1),
                    "method": "against a square"},
            "model": values_table("mean", values, np.diag([1e-6, 0.0])),
        })  # fmt: skip
        return path

    def test_gets_its_angles_from_its_counts(self, impact, record, tmp_path):
        out = tmp_path / "new.h5"
        assert main(["recalibrate", str(impact), "--with", str(record), "--channel", "q1",
                     "--out", str(out)]) == 0  # fmt: skip
        old, new = hil.open_run(impact), hil.open_run(out)
        by_hand = 2.8 - 2.0 * np.pi * old["q1.raw_counts"].values / 40000
        np.testing.assert_allclose(new.q1_measured_rad.values, by_hand, rtol=1e-12)
        np.testing.assert_array_equal(old.q3_measured_rad.values, new.q3_measured_rad.values)
        assert replay(out)[1] is not None  # other angles, other torques

    def test_is_asked_for_by_name_where_there_are_two(self, impact, record, capsys):
        assert main(["recalibrate", str(impact), "--with", str(record)]) == 2
        assert "name its channel: --channel q1 or q3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ("miga_springs.toml", "a record of kind 'spring_constants' does not convert readings"),
        ("gone.toml", "--with: no such file"),
    ],
)
def test_a_record_that_is_of_no_channel_is_refused(tared, futek, record, words, capsys):
    assert main(["recalibrate", str(tared), "--with", str(futek.parent / record)]) == 2
    assert words in capsys.readouterr().err


def test_an_instrument_whose_raw_readings_are_not_recorded_is_refused(
    configs, futek, tmp_path, capsys
):
    rig = tomllib.loads((configs / "miga6/rig.toml").read_text())
    force = {"kind": "force", "terminal": "AIN0", "newtons_per_V": 0.95}
    rig["devices"]["daq"] = {"kind": "labjack", "channels": {"force": force}}
    rig.pop("plant_card")
    records = (configs / "../calibration").resolve()
    text = tomli_w.dumps(rig).replace("../../calibration", records.as_posix())
    (tmp_path / "rig.toml").write_text(text)
    shutil.copy(configs / "miga6/all_on.toml", tmp_path)
    config = hil.load(tmp_path / "all_on.toml", ["experiment.duration_s=0.05"])
    session.run(Plan(config), Output(out=tmp_path / "run.h5"))
    capsys.readouterr()
    assert main(["recalibrate", str(tmp_path / "run.h5"), "--with", str(futek)]) == 2
    assert "'force' has no raw readings" in capsys.readouterr().err
    assert not (tmp_path / "run-recalibrated.h5").exists()


def test_a_cards_offset_comes_off_a_channel_that_is_read_in_volts(configs, tmp_path):
    """0.02 m/V: 5 mV of the card's offset are 0.1 mm."""
    config = hil.load(configs / "slider/steps.toml", ["experiment.duration_s=0.1"])
    path, record = tmp_path / "run.h5", tmp_path / "card.toml"
    session.run(Plan(config, seed=1), Output(out=path))
    write_record(record, {
        "kind": "daq_channel", "status": "measured", "article": {"name": "ai0", "serial": "D-1"},
        "act": {"by": "A", "date": date(2027, 1, 1), "valid_until": date(2028, 1, 1),
                "method": "shorted"},
        "model": values_table("mean", {"offset_V": 0.005, "noise_rms_V": 0.001},
                              np.diag([1e-10, 1e-10])),
    })  # fmt: skip
    assert main(["recalibrate", str(path), "--with", str(record),
                 "--out", str(tmp_path / "new.h5")]) == 0  # fmt: skip
    old, new = hil.open_run(path), hil.open_run(tmp_path / "new.h5")
    moved = new.slide_measured_m.values - old.slide_measured_m.values
    np.testing.assert_allclose(moved, -1e-4, rtol=1e-9)
    assert calibrations_of(tmp_path / "new.h5")["slide"]["zero_V"] == 0.005
    recalibrate(tmp_path / "new.h5", record, out=tmp_path / "again.h5")  # the offset comes off once
    again = hil.open_run(tmp_path / "again.h5")
    np.testing.assert_allclose(
        again.slide_measured_m.values, new.slide_measured_m.values, rtol=0.0, atol=1e-12
    )


def test_a_window_that_tared_took_off_the_same_volts(tmp_path):
    """1 N taken off at 4 N/V are 0.25 V; at 5 N/V the same volts are 1.25 N."""
    import xarray as xr

    from hil.calibration.signal_chain import Chain
    from hil.loop.channels import Channel
    from hil.procedures.recalibrate import _tared

    run = xr.Dataset(
        {"input_tick": ("i", [2]), "input_name": ("i", ["tare"]), "input_value": ("i", [1.0]),
         "input_text": ("i", [""])}, coords={"t_s": ("tick", [0.0, 0.1, 0.2, 0.3])},
    )  # fmt: skip
    place, old, new = Channel("force", "_N", "main"), Chain.linear(4, 0), Chain.linear(5, 0)
    np.testing.assert_allclose(_tared(run, place, old, new, 0.1), [0.0, 0.0, 1.25, 1.25])
