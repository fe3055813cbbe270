"""Rigs without a driver board: what they must have, and what stands in for the board."""

import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.config.files import read_merged
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.errors import ConfigError, DeviceError
from hil.experiment.load import load
from hil.loop.frame import Frame
from hil.rig.rig import HostTime, build_rig
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from rig_file import loosen

ROOT = Path(__file__).resolve().parents[2]
RIG = "configs/miga6_lines/all_on.toml"
EMULATED = "daq=emulated,supply=sim"
SWITCHES = "devices.daq.switches"


def run(out, *sets, backend="sim", faults=()):
    config = load(ROOT / RIG, ("experiment.duration_s=0.6", *sets))
    injection = Injection([FaultTable(**fault) for fault in faults]) if faults else None
    session.run(Plan(config, backend=backend, injection=injection, seed=1), Output(out=out))
    return hil.open_run(out)


# What such a rig must have


@pytest.mark.parametrize(
    ("change", "key", "text"),
    [
        ("devices.daq.watchdog='if_present'", "devices.daq.watchdog = 'if_present'", "'required'"),
        ("devices.daq.watchdog_s=1.0", SWITCHES, "until the dead man acts, after 1 s"),
        (f"{SWITCHES}.wire.temperature_max_C=35.0", SWITCHES, "above its 35 C"),
        ("devices.daq.every=2", "devices.daq.every", "in every period"),
        ("loop.period_s=0.05", "devices.daq.watchdog_s = 0.05", "expires before it is fed"),
        ("guard.cell_on_max_s=0", "guard.cell_on_max_s", "greater than 0"),
    ],
)  # fmt: skip
def test_a_missing_substitute_is_refused_in_one_line(change, key, text, capsys, rigs):
    loosen(rigs / "miga6_lines/rig.toml", change)
    assert main(["check", str(rigs / "miga6_lines/all_on.toml")]) == 2
    said = capsys.readouterr().err.strip()
    assert key in said
    assert text in said


@pytest.mark.parametrize(
    ("table", "cell", "terminal", "text"),
    [
        ("lines", "muscle.1", None, "lines: no gate for cell 'muscle.1': give every cell one gate"),
        ("lines", "muscle.7", "port0/line14", "lines: the model has no cell 'muscle.7'"),
        (
            "lines",
            "muscle.1",
            "port0/line1",
            "'port0/line1': is used by devices.daq.lines.power.terminal",
        ),
        (
            "lines",
            "muscle.1",
            "port0/line9",
            "'port0/line9': is used by devices.daq.switches.lines.'muscle.1'",
        ),
        (
            "readback",
            "muscle.1",
            "port0/line8",
            "'port0/line8': is used by devices.daq.switches.lines.'muscle.1'",
        ),
        ("readback", "muscle.9", "port0/line30", "readback.muscle.9: no line switches this cell"),
    ],
)
def test_lines_that_cannot_be_are_refused(table, cell, terminal, text, rigs):
    whole = read_merged(rigs.parent / RIG).table
    lines = whole["devices"]["daq"]["switches"][table]
    lines.pop(cell, None) if terminal is None else lines.update({cell: terminal})
    (rigs / "miga6_lines/other.toml").write_text(tomli_w.dumps(whole))
    with pytest.raises(ConfigError) as refused:
        load(rigs / "miga6_lines/other.toml")
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("left_out", "text"),
    [
        (("supply", "lines"), "nothing could cut its power: add an enable line to a card, or a"),
        (("supply",), "supply_current_max_A: missing: nothing measures the current of a short"),
        (("wire",), f"{SWITCHES}.wire: missing: the loop computes the heat of 'muscle.1'"),
    ],
)
def test_a_rig_without_a_way_to_cut_the_supply_or_without_a_wire_is_refused(left_out, text, rigs):
    table = read_merged(rigs.parent / RIG).table
    devices = table["devices"]
    if "supply" in left_out:
        del devices["supply"]
    if "lines" in left_out:
        del devices["daq"]["lines"]["power"]
    if "wire" in left_out:
        del devices["daq"]["switches"]["wire"]
    (rigs / "miga6_lines/other.toml").write_text(tomli_w.dumps(table))
    with pytest.raises(ConfigError) as refused:
        load(rigs / "miga6_lines/other.toml")
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("experiment", "text"),
    [
        ("miga6/broadcast.toml", "only hil's board draws"),
        ("wires4/modulate.toml", "commands duties"),
    ],
)
def test_controllers_that_need_hil_s_board_are_refused(experiment, text, rigs):
    table = read_merged(rigs / experiment).table
    del table["devices"]["board"]
    table["devices"]["daq"] |= {"watchdog": "required", "lines": {
        "power": {"kind": "enable", "terminal": "port0/line1"}}, "switches": {
        "lines": {f"muscle.{i + 1}": f"port0/line{8 + i}" for i in range(6)},
        "supply_current_max_A": 1.0}}  # fmt: skip
    (rigs / "miga6/other.toml").write_text(tomli_w.dumps(table))
    with pytest.raises(ConfigError) as refused:
        load(rigs / "miga6/other.toml")
    assert text in str(refused.value)


def test_the_plan_names_who_switches_what_is_lacking_and_what_stands_in(capsys):
    assert main(["check", str(ROOT / RIG), "--energise-plan"]) == 0
    said = capsys.readouterr().out
    for text in (
        "'daq' (lines of Dev1) switches muscle.1",
        "0.05 s after the program's last",
        "lacks, beside hil's board: a current limit for every cell",
        "a heat budget of every",
        "limit of 1.2 A",
        "s before the first tick",
        "to reach 180 C",
    ):
        assert text in said


def test_a_rig_without_estop_or_readback_is_valid_with_warnings_that_strict_refuses(rigs, capsys):
    path = rigs / "miga6_lines/rig.toml"
    text = path.read_text()
    start, end = (
        text.index("[devices.daq.switches.readback]"),
        text.index("[devices.daq.switches.w"),
    )
    text = text[:start] + text[end:]
    start, end = text.index("[devices.daq.lines.loop]"), text.index("[devices.daq.channels")
    path.write_text(text[:start] + text[end:])
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "no e-stop is read: add a line of kind 'estop'" in said
    assert "a line that is stuck is not noticed" in said
    assert main(["check", str(path), "--strict"]) == 2
    assert "no e-stop is read" in capsys.readouterr().err


# It runs


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("backend", ["sim", EMULATED])
def test_it_runs_without_a_board_and_its_recording_replays(backend, tmp_path):
    out = tmp_path / "run.h5"
    there = run(
        out, "controller.steps=[{t_s=0.1, on='all'}, {t_s=0.4, off='all'}]", backend=backend
    )
    assert there.cells_reported.values[101:401].all()
    assert not there.cells_reported.values[402:].any()
    assert float(there.force_measured_N.max()) > 1.0
    assert main(["replay", str(out)]) == 0
    with h5py.File(out, swmr=True) as file:
        texts = [text.decode() for text in file["events"]["text"]]
    proved = any("its watchdog expires within 0.075 s" in text for text in texts)
    assert proved is (backend != "sim")


@pytest.mark.slow
def test_the_emulated_card_gives_the_forces_of_the_simulated_one(tmp_path):
    """It averages ten samples of a period, and both add noise of 1.9 mN."""
    runs = [run(tmp_path / f"{i}.h5", backend=b) for i, b in enumerate(("sim", EMULATED))]
    sim, emulated = (r.force_measured_N.values for r in runs)
    assert np.abs(sim - emulated)[50:].max() < 0.03


# What can go wrong


@pytest.mark.parametrize("backend", ["sim", EMULATED])
def test_a_gate_that_is_stuck_on_trips_and_its_cell_has_no_power_left(backend, tmp_path):
    fault = {"kind": "line_stuck", "at_s": 0.2, "cell": 2, "value": 1.0}
    steps = "controller.steps=[{t_s=0.0, on=[1]}]"
    there = run(tmp_path / "run.h5", steps, backend=backend, faults=[fault])
    assert there.attrs["outcome"] == "tripped"
    texts = [str(text) for text in there.event_text.values]
    assert any(t.startswith("gate_stuck: daq: muscle.2 reads back another level") for t in texts)
    tripped = np.flatnonzero(there.fault_bits.values)[0]
    assert tripped <= 200 + 3
    assert not there.cells_commanded.values[tripped:].any()
    high = there.daq_line_bits.attrs["flags"].index("power")
    assert not (there.daq_line_bits.values[tripped + 1 :] >> np.uint64(high) & np.uint64(1)).any()
    # The gate stays on, at which both cells would come to 0.6 N; without power the force falls.
    assert there.cells_reported.values[-1, 1] == 1
    force_N = there.force_measured_N.values
    assert force_N[-100:].max() < force_N[tripped]


def test_a_fault_for_a_cell_that_no_line_switches_is_refused(tmp_path, capsys):
    (tmp_path / "f.toml").write_text('[[fault]]\nkind = "line_stuck"\nat_s = 0.1\ncell = 7\n')
    words = ["run", str(ROOT / RIG), "--out", str(tmp_path / "r.h5")]
    assert main([*words, "--inject", str(tmp_path / "f.toml")]) == 2
    assert "cell = 7: the cells of this device are numbered 1 to 6" in capsys.readouterr().err


def test_wires_of_a_thermal_model_stay_below_their_maximum_whatever_a_schedule_holds_on(rigs):
    """wires4 by lines, at a voltage that would burn its wires; no board measures a current."""
    table = read_merged(rigs / "wires4/hold.toml").table
    del table["devices"]["board"]
    lines = {f"muscle.{i + 1}": f"port0/line{8 + i}" for i in range(4)}
    table["devices"]["daq"] |= {"watchdog": "required", "watchdog_s": 0.05,
                                "switches": {"lines": lines}}  # fmt: skip
    table["devices"]["supply"] |= {"voltage_V": 14.0, "voltage_max_V": 14.0}
    for which in ("model", "plant"):
        table.setdefault(which, {}).setdefault("arrays", {}).setdefault("muscle", {}).setdefault(
            "activation", {})["supply_V"] = 14.0  # fmt: skip
    table["devices"]["supply"]["current_A"] = table["devices"]["supply"]["current_max_A"]
    table["guard"] |= {"force_residual_max_N": 1e3, "force_rate_max_N_per_s": 1e4,
                       "force_rise_min_N": 1e3, "force_max_N": 21.0}  # fmt: skip
    table["experiment"]["duration_s"] = 5.0
    table["controller"]["steps"] = [{"t_s": 0.0, "on": "all"}]
    path = rigs / "wires4/lines.toml"
    path.write_text(tomli_w.dumps(table))
    out = path.with_suffix(".h5")
    session.run(Plan(load(path), seed=1), Output(out=out))
    there = hil.open_run(out)
    assert "cell_energy_high" in str(there.attrs["summary"])
    hottest = [float(there[f"muscle.{n}.wire_model_C"].max()) for n in (1, 2, 3, 4)]
    assert 80.0 < max(hottest) < 180.0


# A device of one's own


BANK = """
import json
from pathlib import Path

FILE = Path("@")

class Bank:
    def __init__(self, values): self.acts = {"acts": True}
    def open(self): self.calls, self.quiet_s, self.on = [], 0.0, None
    def read(self, t_s): return []
    def switch(self, cells):
        self.on, self.quiet_s = [int(c) for c in cells], 0.0
        FILE.write_text(FILE.read_text() + json.dumps(self.on) + "\\n")
    def stopped(self): return FILE.with_suffix(".stopped").exists()
    def safe(self): FILE.write_text(FILE.read_text() + "safe\\n")
    def close(self): pass
"""


@pytest.fixture
def bank(rigs, tmp_path):
    """Experiment of a rig whose cells a plug-in device switches; the log of what it was told."""
    log = tmp_path / "log"
    log.write_text("")
    table = read_merged(rigs.parent / RIG).table
    switches = table["devices"]["daq"].pop("switches")
    table["devices"]["bank"] = {
        "kind": "bank.py:Bank",
        "switches": {"cells": [*switches["lines"]], "dead_man_s": 0.05, "wire": switches["wire"]},
    }
    (rigs / "miga6_lines/bank.py").write_text(BANK.replace("@", str(log)))
    path = rigs / "miga6_lines/bank.toml"
    path.write_text(tomli_w.dumps(table))
    return path, log


def bench_rig(path, log, waits, stops=True):
    """The rig with the real class; `waits` gets every wait, in which the bank stops by itself."""
    config = load(path)
    rig = build_rig(
        config,
        0,
        {"bank": "bench", "daq": "sim", "supply": "sim"},
        HostTime(time.perf_counter, waits.append),
    )
    rig.bind(Frame(rig.columns))
    device = next(d for d in rig._devices if d.name == "bank")
    inner = device._dead_man.sleep_s
    marks = log.with_suffix(".stopped")
    last = log.with_suffix(".last")

    def sleep_s(duration_s):
        inner(duration_s)
        if stops:
            marks.touch()

    object.__setattr__(device._dead_man, "sleep_s", sleep_s)
    last.touch()
    return rig, device


def test_a_plugin_device_switches_cells_and_its_dead_man_is_proved(bank):
    path, log = bank
    waits = []
    rig, _ = bench_rig(path, log, waits)
    rig.open()
    tested = rig.self_test(print)
    assert any("bank: " in line and "stops by itself within 0.075 s" in line for line in tested)
    assert sum(waits) >= 0.075 + 1.4  # 2.08 time constants of 0.68 s for the wires to cool
    rig.arm()
    rig.commands.cells[:] = 0, 1, 0, 0, 1, 0
    rig.write(0.0)
    rig.read(0.001)
    assert rig.readings.cells_reported.tolist() == [0, 1, 0, 0, 1, 0]
    rig.safe()
    rig.close()
    told = log.read_text().split("\n")[:-1]
    assert told[0] == "[0, 0, 0, 0, 0, 0]"
    assert told[-3:] == ["[0, 1, 0, 0, 1, 0]", "[0, 0, 0, 0, 0, 0]", "safe"]


def test_heat_counts_until_a_dead_man_is_seen_to_have_acted(bank):
    """2.06 V over 0.1 m of 113 Ohm/m heat 0.1 mm by 165 K/s, for 1.5 times 50 ms and two ticks."""
    [bank] = load(bank[0]).loop_protections
    heats_K_per_s = 20.6**2 / 113.0 / (6450.0 * 450.0 * np.pi * 1e-8 / 4.0)
    late_K = 180.0 - 30.0 - bank.budgets["muscle.1"].rise_max_K
    assert late_K == pytest.approx(0.077 * heats_K_per_s, rel=1e-3)
    assert bank.worst_C("muscle.1") <= 180.0


def test_a_dead_man_that_acts_between_two_commands_is_refused(bank):
    path, _ = bank
    said = r"bank.switches.dead_man_s = 0\.05: it switches all cells off before the next command"
    with pytest.raises(ConfigError, match=said):
        load(path, ("loop.period_s=0.05", "guard.reading_age_max_s=0.2"))
    assert load(path, ("loop.period_s=0.04", "guard.reading_age_max_s=0.2")).period_s == 0.04


def test_a_plugin_device_that_does_not_stop_by_itself_is_refused(bank):
    path, log = bank
    rig, _ = bench_rig(path, log, [], stops=False)
    rig.open()
    with pytest.raises(DeviceError, match=r"bank: left alone for 0\.075 s it did not stop by itse"):
        rig.self_test(print)
    rig.safe()
    rig.close()
    assert "1" not in log.read_text()


def test_a_plugin_device_simulated_runs_like_the_lines(bank, tmp_path):
    path, log = bank
    session.run(
        Plan(load(path, ["experiment.duration_s=0.3"]), seed=1), Output(out=tmp_path / "r.h5")
    )
    there = hil.open_run(tmp_path / "r.h5")
    assert there.cells_reported.values[1:].all()
    assert float(there.force_measured_N[-1]) > 1.0
    assert log.read_text() == ""  # in simulation the class is not used


@pytest.mark.parametrize("missing", ["switch", "stopped", "safe"])
def test_a_class_without_a_method_that_switching_needs_is_refused(missing, bank):
    path, _ = bank
    file = path.with_name("bank.py")
    file.write_text(file.read_text().replace(f"def {missing}(", f"def not_{missing}("))
    with pytest.raises(ConfigError, match=rf"has no method {missing}\(\)"):
        load(path)
