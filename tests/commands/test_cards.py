"""Commands and whole runs with NI cards: listing, bad input, calibrations, what is recorded."""

import json
import os
import re
import signal
import tomllib
from datetime import date
from pathlib import Path

import h5py
import numpy as np
import pytest
from nidaqmx.errors import DaqNotFoundError
from nidaqmx.system import System as NiSystem

import hil
from hil.__main__ import main
from hil.devices.nidaq import emulated
from hil.devices.tables import NidaqTable
from hil.errors import DeviceError
from hil.record.read import open_raw
from hil.runs import session
from simdaq import System, install

SHORT = ["experiment.duration_s=0.3"]


def run(configs, out, *sets, **options):
    config = hil.load(configs / "miga6/all_on.toml", [*SHORT, *sets])
    options = {"backend": "daq=emulated", "seed": 1, "out": out} | options
    return session.run(*session.from_options(config, options))


def events(path):
    run = hil.open_run(path)
    return [
        f"{level} {source}: {text}"
        for level, source, text in zip(
            run.event_level.values, run.event_source.values, run.event_text.values, strict=True
        )
    ]


def test_the_tables_of_the_documentation_are_valid():
    text = (Path(__file__).resolve().parents[2] / "docs/daq.md").read_text()
    table = tomllib.loads(text.split("```toml\n")[1].split("```")[0])["devices"]["daq"]
    card = NidaqTable.model_validate(table)
    kinds = [c.kind for c in card.channels.values()] + [line.kind for line in card.lines.values()]
    assert kinds == ["force", "force", "displacement", "encoder", "estop", "enable"]


def test_cards_are_listed_with_what_they_have(capsys):
    system = System()
    system.add("PCIe-6363", "Dev1", serial=0x1C0FFEE)
    install(system)
    assert main(["devices", "--json"]) == 0
    (card,) = json.loads(capsys.readouterr().out)["cards"]
    assert (card["card"], card["product"], card["serial"]) == ("Dev1", "PCIe-6363", "1C0FFEE")
    assert (card["analog_inputs"], card["analog_outputs"], card["counters"]) == (32, 4, 4)
    assert main(["devices"]) == 0
    assert "Dev1             PCIe-6363        serial 1C0FFEE" in capsys.readouterr().out


def test_a_machine_without_the_driver_says_so_in_one_line(capsys, monkeypatch):
    def not_there():
        raise DaqNotFoundError("no library")

    monkeypatch.setattr(NiSystem, "local", not_there)
    assert main(["devices"]) == 0
    assert "NI-DAQmx is not installed on this machine" in capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_every_sample_is_recorded_and_their_means_are_the_readings(configs, tmp_path):
    run(configs, tmp_path / "run.h5")
    raw, ticks = open_raw(tmp_path / "run.h5", "daq"), hil.open_run(tmp_path / "run.h5")
    np.testing.assert_allclose(raw.t_s, np.arange(2991) * 1e-4, atol=1e-12)
    volts = raw["force.raw_V"].values
    np.testing.assert_allclose(
        ticks["force.raw_V"].values[1:], volts[1:].reshape(299, 10).mean(axis=1), rtol=1e-12
    )
    assert raw["force.raw_V"].attrs == {"units": "V", "source": "SIMULATED"}
    assert raw.attrs["rate_Hz"] == 10000.0


def test_a_card_that_reads_once_a_tick_has_no_samples_beside(configs, tmp_path):
    run(configs, tmp_path / "run.h5", "devices.daq.acquisition='on_demand'")
    assert hil.open_run(tmp_path / "run.h5").daq_age_s.values.max() == 0.0
    with pytest.raises(hil.errors.ConfigError, match=r"has no samples of 'daq': there are none"):
        open_raw(tmp_path / "run.h5", "daq")


def test_raw_readings_and_the_record_give_the_recorded_force_again(configs, tmp_path):
    """What an old run is recalibrated from: volts, zero and the record are all in the file."""
    from hil.calibration.files import parse_any

    path = tmp_path / "run.h5"
    run(configs, path, "devices.daq.channels.force.tare=true",
        "devices.daq.channels.force.sim.offset_V=0.05")  # fmt: skip
    with h5py.File(path) as file:
        kept = file["calibration/force"].attrs
        record = parse_any(path, kept["record"])
        assert kept["hash"] == record.record.hash
        assert (kept["status"], kept["expired"]) == ("assumed", False)
        zero = next(row["value"] for row in file["inputs"][:] if row["name"] == b"zero")
        volts, force_N = file["ticks/force.raw_V"][:], file["ticks/force_measured_N"][:]
    conditioner = record.record.conditioner
    ratio = (volts - conditioner.offset_V) / (1e-3 * conditioner.gain * conditioner.excitation_V)
    polynomial = np.polynomial.Polynomial(record.record.model.coefficients_N)
    np.testing.assert_allclose(force_N, polynomial(ratio - zero), rtol=1e-12, atol=1e-12)
    assert zero == pytest.approx(0.01, abs=1e-4)  # 0.05 V behind 5 V a mV/V
    assert abs(force_N[0]) < 6 * 0.0019  # six standard deviations of one sample


@pytest.mark.slow
def test_a_run_with_records_replays(configs, tmp_path, capsys):
    run(configs, tmp_path / "run.h5", "devices.daq.channels.force.tare=true")
    assert main(["replay", str(tmp_path / "run.h5")]) == 0
    assert "identical in 300 rows" in capsys.readouterr().out


def test_an_assumed_record_is_named_among_the_events(configs, tmp_path):
    run(configs, tmp_path / "run.h5", backend="sim")
    assert any(
        "force: calibration futek_9N@" in e and "assumed" in e for e in events(tmp_path / "run.h5")
    )


def test_an_expired_record_is_flagged_in_the_recording_and_its_report(
    configs, tmp_path, monkeypatch, capsys
):
    for module in ("plan", "recording"):
        monkeypatch.setattr(f"hil.runs.{module}.today", lambda: date(2037, 1, 1))
    path = tmp_path / "run.h5"
    run(configs, path)
    assert any(e.startswith("warning calibration: force: calibration futek_9N@") and
               e.endswith("expired on 2036-11-01") for e in events(path))  # fmt: skip
    with h5py.File(path) as file:
        assert file["calibration/force"].attrs["expired"]
    assert main(["report", str(path)]) == 0
    assert "EXPIRED on 2036-11-01" in path.with_suffix(".html").read_text()


def test_an_expired_record_is_refused_with_strict(configs, tmp_path, monkeypatch, capsys):
    for module in ("plan", "recording"):
        monkeypatch.setattr(f"hil.runs.{module}.today", lambda: date(2037, 1, 1))
    words = ["run", str(configs / "miga6/all_on.toml"), "--strict", "--out", str(tmp_path / "r.h5")]
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--strict: force: calibration futek_9N@" in line
    assert "expired on 2036-11-01: calibrate again" in line
    assert list(tmp_path.iterdir()) == []
    for module in ("plan", "recording"):
        monkeypatch.setattr(f"hil.runs.{module}.today", lambda: date(2036, 11, 1))
    assert main([*words, "--duration", "0.01"]) == 0


def test_a_record_changed_by_hand_is_refused(rigs, tmp_path, capsys):
    record = tmp_path / "calibration/futek_9N.toml"
    record.write_text(record.read_text().replace("4.75", "4.8"))
    out = tmp_path / "run.h5"
    assert main(["run", str(rigs / "miga6/all_on.toml"), "--out", str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "futek_9N.toml: hash: the content was changed after the calibration" in line
    assert not out.exists()


class Faulty:
    """Does something to the simulated cards when the run comes to a time."""

    def __init__(self, monkeypatch, t_s, act):
        advance = emulated.EmulatedBench.advance

        def with_fault(bench, now_s):
            if abs(now_s - t_s) < 1e-9:
                act(bench.system)
            advance(bench, now_s)

        monkeypatch.setattr(emulated.EmulatedBench, "advance", with_fault)


def test_a_card_unplugged_in_mid_run_ends_it_in_one_line_with_the_recording_kept(
    configs, tmp_path, monkeypatch, capsys
):
    Faulty(monkeypatch, 0.1, lambda system: system.unplug("Dev1"))
    path = tmp_path / "run.h5"
    words = ["--backend", "daq=emulated", "--out", str(path), "--duration", "0.3"]
    assert main(["run", str(configs / "miga6/all_on.toml"), *words]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("daq: read: the card cannot be reached: check cable and power")
    assert "-201003" in line
    run = hil.open_run(path)
    assert run.attrs["outcome"] == "aborted"
    assert run.sizes["tick"] == 101
    assert not run.cells_commanded.values[-1].any()
    assert open_raw(path, "daq").sizes["sample"] == 991


def test_a_channel_that_goes_to_its_rail_trips_and_is_named(configs, tmp_path, monkeypatch, capsys):
    Faulty(monkeypatch, 0.1, lambda system: system.inject("Dev1/ai0", "high rail"))
    path = tmp_path / "run.h5"
    words = ["--backend", "daq=emulated", "--out", str(path), "--duration", "0.3"]
    assert main(["run", str(configs / "miga6/all_on.toml"), *words]) == 3
    said = capsys.readouterr().out
    assert "tripped by channel_untrue" in said
    assert "daq: force_at_rail" in said
    assert any("guard: channel_untrue" in e and "daq: force_at_rail" in e for e in events(path))
    run = hil.open_run(path)
    assert not run.cells_commanded.values[100:].any()
    assert not run.valid_bits.values[100] & 1


def test_the_last_samples_of_a_period_at_the_rail_are_not_said_to_be_their_mean(
    configs, tmp_path, monkeypatch, capsys
):
    """12 V at an input of 10 V for the last two of ten samples: 2 V was named as the rail."""

    def step(system):
        late_s = system.now_s + 0.00085
        system.feed("Dev1/ai0", lambda t_s: np.where(np.asarray(t_s) > late_s, 12.0, 0.0))

    Faulty(monkeypatch, 0.1, step)
    words = ["--backend", "daq=emulated", "--out", str(tmp_path / "run.h5"), "--duration", "0.3"]
    assert main(["run", str(configs / "miga6/all_on.toml"), *words]) == 3
    mean = re.search(r"at an end of the input's range; their mean (\S+) V", capsys.readouterr().out)
    assert float(mean[1]) == pytest.approx(2.0, abs=0.05)


def test_a_dead_estop_loop_trips_within_the_tick(configs, tmp_path, monkeypatch):
    """Lines are a table of the rig; the enable line falls with the trip."""
    Faulty(monkeypatch, 0.1, lambda system: system.feed("Dev1/port0/line0", 0.0))
    result = run(configs, tmp_path / "run.h5", LINES)
    assert result.outcome == "tripped"
    assert result.summary["first_fault"] == ["estop_open"]
    bits = hil.open_run(tmp_path / "run.h5").daq_line_bits.values
    assert (bits[:100] == 0b11).all()
    assert (bits[100:] == 0b00).all()
    watchdog = [e for e in events(tmp_path / "run.h5") if "watchdog: enable lines low" in e]
    assert len(watchdog) == 1


LINES = ("devices.daq.lines={loop={kind='estop', terminal='port0/line0'}, "
         "supply={kind='enable', terminal='port0/line1'}}")  # fmt: skip


def crash(system):
    raise RuntimeError("a defect somewhere else")


@pytest.mark.parametrize(
    ("act", "ends"),
    [
        (lambda _: os.kill(os.getpid(), signal.SIGTERM), "aborted"),
        (lambda _: os.kill(os.getpid(), signal.SIGINT), "aborted"),
        (crash, "RuntimeError"),
        (lambda system: system.inject("Dev1/ai0", "low rail"), "tripped"),
    ],
    ids=["SIGTERM", "Ctrl-C", "crash", "trip"],
)
def test_the_supply_is_off_on_every_way_out(act, ends, configs, tmp_path, monkeypatch):
    seen = []

    def note_and_act(system):
        seen.append((system, system.output("Dev1/port0/line1")))
        act(system)

    Faulty(monkeypatch, 0.1, note_and_act)
    if act is crash:
        with pytest.raises(RuntimeError):
            run(configs, tmp_path / "run.h5", LINES)
    else:
        assert run(configs, tmp_path / "run.h5", LINES).outcome == ends
    system, level_before = seen[0]
    assert level_before == 1.0
    assert system.output("Dev1/port0/line1") == 0.0


def test_the_energise_plan_names_the_supply(configs, capsys):
    words = ["--energise-plan", "--set", LINES]
    assert main(["check", str(configs / "miga6/all_on.toml"), *words]) == 0
    assert "'supply' (Dev1/port0/line1) is high from arming" in capsys.readouterr().out


def test_a_card_at_its_rail_before_the_run_leaves_nothing_behind(configs, tmp_path):
    rail = "devices.daq.channels.force.sim.offset_V=12.0"
    with pytest.raises(DeviceError, match="'force' on ai0 is at its rail"):
        run(configs, tmp_path / "run.h5", rail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["devices.daq.card='Dev7'"], None),
        (["devices.daq.channels.force.terminal='ai77'"], "'ai77': no card has this analog input"),
        (["devices.daq.rate_Hz=10e6"], "is beyond PCIe-6363"),
        (["devices.daq.sim.product='PCIe-1'"], "'PCIe-1': unknown: did you mean 'PCIe-6361'?"),
    ],
)
def test_bad_cards_are_one_line_and_leave_nothing(sets, words, configs, tmp_path, capsys):
    change = [word for text in sets for word in ("--set", text)]
    out = ["--out", str(tmp_path / "run.h5"), "--duration", "0.01"]
    code = main(
        ["run", str(configs / "miga6/all_on.toml"), "--backend", "daq=emulated", *change, *out]
    )
    said = capsys.readouterr().err.splitlines()
    if words is None:  # the emulated bench has the card that the rig names
        assert code == 0
        return
    assert code in (2, 4)
    assert len(said) == 1
    assert words in said[0]
    assert list(tmp_path.iterdir()) == []
