"""A bench supply: what it is told and answers, late, mute and wrong, and that it is off after."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from math import nan
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hil
import hil.loop.tap as taps
from devices.supply.instrument import Instrument
from hil.__main__ import main
from hil.devices.supply import process
from hil.devices.supply.driver import (
    NOT_OFF,
    SHARED,
    SILENT,
    WRONG,
    Answer,
    Settings,
    Supply,
    Watch,
)
from hil.devices.supply.listing import visa_resources
from hil.devices.supply.process import DIALECTS, Post, Scpi, SupplyError, serve
from hil.devices.supply_table import SupplyTable
from hil.errors import DeviceError
from hil.loop.clock import RealClock, sleep_s
from hil.rig.builders import ALIVE_S
from hil.rig.builders import supply as built
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from rig_file import loosen

pytestmark = pytest.mark.xdist_group("real time")
SETTINGS = Settings(8.0, 1.0, tolerance_V=0.2, answer_max_s=0.6, obey_max_s=0.5)
SIMULATED = Path(__file__).with_name("supplies.yaml")


@pytest.fixture
def instrument():
    there = Instrument()
    yield there
    there.close()


def _supply(resource, visa="@py", dialect="scpi", patience_s=0.6):
    job = {
        "resource": resource, "dialect": dialect, "channel": 1, "visa": visa, "baud": 9600,
        "voltage_V": 8.0, "current_A": 1.0, "poll_s": 0.02, "answer_max_s": 0.6,
        "alive_s": ALIVE_S,
    }  # fmt: skip
    settings = replace(SETTINGS, answer_max_s=patience_s)
    return Supply("supply", settings, job, RealClock().now_s, sleep_s)


# What is thought of its answers


def test_faults_are_a_matter_of_times_alone():
    watch = Watch(SETTINGS)
    watch.since_s = 9.0
    off = Answer(asked_s=9.9, t_s=9.95, voltage_V=0.0, current_A=0.0, on=0.0)
    assert watch.faults(off, 10.0) == 0
    assert watch.tell(True, 10.0)
    assert not watch.tell(True, 10.1)
    assert watch.faults(off, 10.5) == 0  # it has half a second to obey
    still_off = Answer(10.5, 10.52, 0.0, 0.0, 0.0)
    assert watch.faults(still_off, 10.51) == WRONG
    on = Answer(10.5, 10.52, 8.15, 0.6, 1.0)
    assert watch.confirmed(on)
    assert watch.faults(on, 10.6) == 0
    assert watch.faults(Answer(10.5, 10.52, 7.7, 0.6, 1.0), 10.6) == WRONG
    assert watch.faults(Answer(10.1, 10.2, 9.0, 0.6, 1.0), 10.2) == WRONG  # too much: at once
    assert watch.faults(on, 11.13) == SILENT  # 0.61 s old
    assert watch.tell(False, 12.0)
    assert not watch.confirmed(Answer(11.99, 12.01, 0.0, 0.0, 0.0))  # asked before it was told
    late = Answer(12.5, 12.51, 8.0, 0.6, 1.0)
    assert watch.faults(late, 12.5) == 0
    assert watch.faults(late, 12.52) == NOT_OFF
    assert watch.faults(Answer(12.6, 12.61, 0.0, 0.0, 0.0), 12.62) == 0
    assert watch.faults(Answer(voltage_V=nan), 12.7) & NOT_OFF


# What it is told, in its dialect


class _Session:
    def __init__(self, answers):
        self.answers, self.told = answers, []

    def write(self, text):
        self.told.append(text)

    def query(self, text):
        self.told.append(text)
        return self.answers[text]


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("scpi", ["OUTP OFF", "VOLT 8", "VOLT?", "CURR 1", "CURR?"]),
        ("keysight", ["OUTP OFF,(@2)", "VOLT 8,(@2)", "VOLT? (@2)", "CURR 1,(@2)", "CURR? (@2)"]),
        ("rigol", ["INST:NSEL 2", "OUTP CH2,OFF", "VOLT 8", "VOLT?", "CURR 1", "CURR?"]),
        ("tti", ["OP2 0", "V2 8", "V2?", "I2 1", "I2?"]),
    ],
)
def test_it_is_set_with_its_output_off_and_read_back(dialect, expected):
    says = DIALECTS[dialect]
    session = _Session({says.voltage_set.format(n=2): "8.00", says.current_set.format(n=2): "1.0"})
    Scpi(session, dialect, 2).set(8.0, 1.0)
    assert session.told == expected


def test_values_that_it_does_not_take_are_refused():
    session = _Session({"VOLT?": "6.00", "CURR?": "1.0"})
    with pytest.raises(SupplyError, match="set to 8 V, it reports 6 V: out of its range"):
        Scpi(session, "scpi", 1).set(8.0, 1.0)
    session = _Session({"VOLT?": "-113,Undefined header", "OUTP?": "maybe"})
    with pytest.raises(SupplyError, match="set to 8 V, it reports -113"):
        Scpi(session, "scpi", 1).set(8.0, 1.0)
    with pytest.raises(SupplyError, match=r"answers 'HTTP/1.1 400' to .IDN.: no instrument"):
        Scpi(_Session({"*IDN?": "HTTP/1.1 400"}), "scpi", 1).identify()
    with pytest.raises(SupplyError, match="answers 'MAYBE' to OUTP"):
        Scpi(session, "scpi", 1).is_on()


@pytest.mark.parametrize(
    ("resource", "dialect", "identity"),
    [("plain", "scpi", "Plain,PS1"), ("lists", "keysight", "Lists,PS2"),
     ("named", "rigol", "Named,PS3"), ("numbered", "tti", "Numbered,PS4")],
)  # fmt: skip
def test_on_pyvisa_sim_every_dialect_comes_on_and_goes_off(resource, dialect, identity):
    supply = _supply(f"TCPIP::{resource}::INSTR", f"{SIMULATED}@sim", dialect, patience_s=20.0)
    supply.open()
    try:
        assert supply.messages()[0].text.startswith(identity)
        supply.enable()
        supply.wait()
        assert (supply.answer.on, supply.answer.voltage_V, supply.answer.current_A) == (
            1,
            8.0,
            0.64,
        )
        supply.safe()
        assert supply.answer.on == 0.0
    finally:
        supply.close()


def test_another_dialect_than_the_supply_s_is_named():
    with pytest.raises(DeviceError, match=r"supply: answers 'ERROR' to VOLT. .@1.: wrong dialect"):
        _supply("TCPIP::plain::INSTR", f"{SIMULATED}@sim", "keysight").open()


# The driver with its process, on an instrument at a loop-back address


def test_it_comes_on_is_read_and_is_verified_off(instrument):
    supply = _supply(instrument.resource, patience_s=20.0)
    supply.open()
    try:
        assert (instrument.volts, instrument.amps, instrument.on) == (8.0, 1.0, False)
        assert [r.text for r in supply.messages()] == [
            "Bench Works,PS-30,SN7,1.0: 8 V, at most 1 A"
        ]
        supply.enable()
        supply.wait()
        assert instrument.on
        assert (supply.answer.voltage_V, supply.answer.current_A) == (8.0, 0.64)
        supply.safe()
        assert not instrument.on
        assert supply.answer.on == 0.0
    finally:
        supply.close()
    assert instrument.heard[-1][1] == "OUTP OFF"


def test_one_that_is_not_there_or_does_not_answer_is_named(instrument):
    gone = _supply("TCPIP::127.0.0.1::1::SOCKET")
    with pytest.raises(DeviceError, match=r"supply: TCPIP::127.0.0.1::1::SOCKET: no answer to"):
        gone.open()
    instrument.mute = True
    with pytest.raises(DeviceError, match=r"no answer to \*IDN\?.*is it switched on"):
        _supply(instrument.resource).open()


def test_an_answer_that_comes_late_does_not_pass_for_the_next_one(instrument):
    supply = _supply(instrument.resource, patience_s=20.0)
    supply.open()
    try:
        instrument.late_s = 0.4  # twice what a single answer is waited for
        supply.enable()
        supply.wait()
        assert (supply.answer.voltage_V, supply.answer.current_A) == (8.0, 0.64)
        assert sum(line == "*IDN?" for _, line in instrument.heard) >= 2
        supply.safe()
    finally:
        supply.close()


class _Waits(_Session):
    """A supply of which the loop commands the output off during the n-th wait for an answer."""

    def __init__(self, n, answers):
        super().__init__(answers)
        self.left, self.wants_on, self.ends = n, True, False

    def write(self, text):
        super().write(text)
        self.ends = text == "OUTP OFF"

    def query(self, text):
        self.left -= 1
        self.wants_on = self.left > 0
        self.told.append(text)
        if text not in self.answers:
            raise TimeoutError
        return self.answers[text]

    def read(self):
        return self.query("read")

    def answer(self, *values):
        self.answered = values


MUTE = ["OUTP ON", "OUTP?", "read", "*IDN?", "read", "*IDN?"]
SLOW = ["OUTP ON", "OUTP?", "MEAS:VOLT?", "MEAS:CURR?", "OUTP?"]


@pytest.mark.parametrize("heard", [MUTE, SLOW])
@pytest.mark.parametrize("waits", [1, 2, 3, 4])
def test_a_command_waits_for_one_answer_at_most(heard, waits):
    """Whether answers never come, or take nearly all of their time."""
    answers = {"OUTP?": "1", "MEAS:VOLT?": "8", "MEAS:CURR?": "0.6"} if heard is SLOW else {}
    both = _Waits(waits, answers)
    serve(both, Scpi(both, "scpi", 1), 0.0)
    assert both.told[: 2 + waits] == [*heard[: 1 + waits], "OUTP OFF"]


@pytest.mark.parametrize(("period_s", "alive_s"), [(0.001, 0.5), (0.25, 0.5), (1.0, 2.0)])
def test_a_loop_of_a_long_period_has_two_of_them_to_give_a_sign_of_life(
    period_s, alive_s, tmp_path
):
    table = SupplyTable(kind="supply", resource="ASRL1::INSTR", voltage_V=8.0, current_A=1.0,
                        voltage_max_V=9.0, current_max_A=2.0)  # fmt: skip
    tables = SimpleNamespace(loop=SimpleNamespace(period_s=period_s))
    supply, _ = built(
        SimpleNamespace(
            name="supply", table=table, backend="bench", config=SimpleNamespace(tables=tables),
            now_s=None, sleep_s=None,
        )
    )  # fmt: skip
    path = tmp_path / "shared"
    shared = np.memmap(path, dtype=SHARED, mode="w+", shape=(1,))
    path.chmod(0o600)
    shared["want_on"] = 1
    now_s = 0.0
    post = Post(str(path), supply._job["alive_s"], lambda: now_s)
    now_s = alive_s - 0.001
    assert post.wants_on
    now_s = alive_s
    assert not post.wants_on


def test_one_that_does_not_take_its_voltage_is_refused(instrument):
    instrument.range_V = 6.0
    with pytest.raises(DeviceError, match="supply: set to 8 V, it reports 6 V: out of its range"):
        _supply(instrument.resource).open()
    assert not instrument.on


def test_one_that_does_not_come_on_or_go_off_is_named(instrument):
    supply = _supply(instrument.resource)
    supply.open()
    try:
        instrument.deaf_to = "OUTP ON"
        supply.enable()
        with pytest.raises(DeviceError, match=r"commanded on, after 1.1 s it reports output off"):
            supply.wait()
        supply.safe()
        instrument.deaf_to = None
        supply.enable()
        supply.wait()
        instrument.deaf_to = "OUTP OFF"
        with pytest.raises(
            DeviceError, match=r"it reports output on, 8 V, 0.64 A: SWITCH IT OFF BY HAND"
        ):
            supply.safe()
        instrument.mute = True
        supply.enable()
        with pytest.raises(
            DeviceError, match=r"commanded off, after 1.1 s no answer: SWITCH IT OFF"
        ):
            supply.safe()
    finally:
        instrument.mute, instrument.deaf_to = False, None
        supply.close()
    _until(lambda: not instrument.on)


def test_a_command_to_go_off_that_is_lost_is_repeated_until_it_is_off(instrument):
    supply = _supply(instrument.resource, patience_s=20.0)
    supply.open()
    try:
        supply.enable()
        supply.wait()
        instrument.deaf_to = "OUTP OFF"
        instrument.deaf_times = 1
        supply.safe()
        assert not instrument.on
        instrument.on = True  # somebody presses its button
        _until(lambda: not instrument.on)
    finally:
        supply.close()


class _Gone:
    """Takes every command until its cable is out."""

    def __init__(self, *connection):
        self.told = []

    def write(self, text):
        self.told.append(text)
        if len(self.told) > 1:
            raise ConnectionResetError("Connection reset by peer")


def test_one_that_cannot_be_told_to_go_off_is_to_be_switched_off_by_hand(monkeypatch):
    said, scpi = [], Scpi(_Gone(), "scpi", 1)
    post = SimpleNamespace(state=lambda state, text: said.append(text))
    monkeypatch.setattr(process, "Post", lambda *_: post)
    monkeypatch.setattr(process, "connect", lambda job: (scpi, "Bench Works", lambda: None))
    assert process.run("", {"alive_s": 1.0, "voltage_V": 8.0, "current_A": 1.0}) == 1
    assert said == ["did not accept VOLT 8: Connection reset by peer: SWITCH IT OFF BY HAND"]


def _until(true, within_s=300.0):
    """Return as soon as this is so, on a machine that may be busy."""
    deadline_s = time.monotonic() + within_s
    look = threading.Event()
    while not true():
        assert time.monotonic() < deadline_s
        look.wait(0.005)


def _rows(loop):
    """That this run has written to its tap."""
    for path in Path("/dev/shm").glob(f"hil-{loop.pid}-*.tap"):
        with contextlib.suppress(ValueError, OSError):  # it is just being made
            return taps.attach(path).ticks.written
    return 0


def _ons(instrument):
    return sum(line == "OUTP ON" for _, line in instrument.heard)


def test_a_loop_that_hangs_loses_its_supply_and_has_to_come_on_anew(instrument):
    supply = _supply(instrument.resource, patience_s=20.0)
    supply.open()
    try:
        supply.enable()
        supply.wait()
        told_s = time.monotonic()
        instrument.off.clear()
        _until(instrument.off.is_set)  # nobody gives a sign of life meanwhile
        off_s = next(t for t, line in reversed(instrument.heard) if line == "OUTP OFF")
        assert off_s - told_s > 0.4  # the half second had begun a little before
        asked = len(instrument.heard)
        for k in range(40):  # the loop lives again, and wants what it wanted
            supply._tell(True)
            _until(lambda k=k: len(instrument.heard) > asked + k)
        assert not instrument.on
        assert _ons(instrument) == 1
        supply._take()
        assert supply.watch.faults(supply.answer, RealClock().now_s() + 60.0) & WRONG
        supply.safe()
        supply.enable()
        supply.wait()
        assert instrument.on
        supply.safe()
    finally:
        supply.close()


def test_a_sign_of_life_without_a_tick_keeps_it_on(instrument):
    """As while somebody looks for an e-stop."""
    supply = _supply(instrument.resource, patience_s=20.0)
    supply.open()
    try:
        supply.enable()
        supply.wait()
        instrument.off.clear()
        began_s, look = time.monotonic(), threading.Event()
        while time.monotonic() < began_s + 2 * ALIVE_S:
            supply.alive()
            look.wait(0.0025)
        lived = instrument.on and _ons(instrument) == 1
        supply.disable()
        assert instrument.off.wait(300.0)  # told at once; nobody has waited for an answer yet
        supply.safe()
        assert lived
    finally:
        supply.close()


def test_a_process_that_stands_still_is_silence_and_a_cut_by_hand(instrument):
    supply = _supply(instrument.resource)
    supply.open()
    process = supply._process
    try:
        supply.enable()
        supply.wait()
        os.kill(process.pid, signal.SIGSTOP)
        clock = RealClock()

        def silent():
            supply._take()
            return supply.watch.faults(supply.answer, clock.now_s()) & SILENT

        _until(silent)
        with pytest.raises(
            DeviceError, match=r"commanded off, after 1.1 s no answer: SWITCH IT OFF BY"
        ):
            supply.safe()
        assert instrument.on
    finally:
        os.kill(process.pid, signal.SIGCONT)
        supply.close()
    assert not instrument.on


def _rig(rigs, resource):
    path = rigs / "wires4" / "rig.toml"
    text = path.read_text()
    assert "ASRL/dev/ttyUSB0::INSTR" in text
    path.write_text(text.replace("ASRL/dev/ttyUSB0::INSTR", resource))
    loosen(path, *PATIENT)
    return rigs / "wires4" / "hold.toml"


# This machine may stand still for longer than a supply may be silent.
PATIENT = (
    "loop.overrun='skip'",
    "devices.supply.answer_max_s=6.0",
    "devices.supply.obey_max_s=3.0",
)
BENCH = ("--backend", "supply=bench,board=sim,daq=sim")
# A third of a minute, until somebody ends it; with fewer ticks, since all are rehearsed.
LASTING = (*BENCH, "--duration", "20", "--set", "loop.period_s=0.005")


def test_a_run_switches_it_on_and_off_and_records_it(rigs, instrument, tmp_path, capsys):
    out = tmp_path / "run.h5"
    path = _rig(rigs, instrument.resource)
    words = [*BENCH, "--duration", "0.5", "--out", str(out)]
    assert main(["run", str(path), *words]) == 0, capsys.readouterr()
    run = hil.open_run(out)
    assert not instrument.on
    assert run.supply_voltage_V.values[-1] == 8.0
    assert run.supply_on.values[-1] == 1.0
    assert 0.0 < run.supply_age_s.values[-1] < 6.0
    assert "SIMULATED" not in str(run.supply_voltage_V.attrs.get("source"))
    assert any("and off" in str(text) for text in run.event_text.values)
    assert main(["replay", str(out)]) == 0


def test_a_wrong_voltage_in_the_run_trips_and_is_cut(
    rigs, instrument, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "run.h5"
    path = _rig(rigs, instrument.resource)
    words = [*LASTING, "--out", str(out)]
    write = Supply.write

    def write_and_drift(supply, t_s, commands):
        write(supply, t_s, commands)
        instrument.drifts = t_s > 0.1

    monkeypatch.setattr(Supply, "write", write_and_drift)
    assert main(["run", str(path), *words]) == 3
    assert "tripped by supply_wrong" in capsys.readouterr().out
    assert not instrument.on
    run = hil.open_run(out)
    assert run.supply_on.values[-1] == 0.0  # the rows that follow a trip show it


def test_whoever_kills_the_loop_switches_the_supply_off(rigs, instrument, tmp_path):
    path = _rig(rigs, instrument.resource)
    words = [*LASTING, "--out", str(tmp_path / "run.h5")]
    loop = subprocess.Popen([sys.executable, "-m", "hil", "run", str(path), *words])
    until_s = time.monotonic() + 300.0
    while sum(line == "OUTP ON" for _, line in instrument.heard) < 2:  # the self-test's, the run's
        assert time.monotonic() < until_s
        assert loop.poll() is None
        instrument.off.wait(0.05)
    instrument.off.clear()
    os.kill(loop.pid, signal.SIGKILL)
    loop.wait()
    assert instrument.off.wait(300.0)
    assert not instrument.on


@pytest.mark.slow
def test_a_loop_that_is_held_loses_its_supply_and_trips_when_it_goes_on(rigs, instrument, tmp_path):
    out = tmp_path / "run.h5"
    path = _rig(rigs, instrument.resource)
    words = [*LASTING, "--out", str(out)]
    loop = subprocess.Popen([sys.executable, "-m", "hil", "run", str(path), *words])
    try:
        _until(lambda: _rows(loop) > 100 or loop.poll() is not None)
        assert loop.poll() is None
        instrument.off.clear()
        os.kill(loop.pid, signal.SIGSTOP)
        assert instrument.off.wait(300.0)
        off = len(instrument.heard)
        # it has been asked, and asked again: the first answer is known
        _until(lambda: [line for _, line in instrument.heard[off:]].count("OUTP?") >= 2)
        assert not instrument.on
        os.kill(loop.pid, signal.SIGCONT)
        assert loop.wait(300.0) == 3
    finally:
        loop.kill()
        loop.wait()
    assert not instrument.on
    assert _ons(instrument) == 2
    assert hil.open_run(out).supply_on.values[-1] == 0.0


# In the configuration


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("devices.supply.voltage_V=11.0", "devices.supply.voltage_V = 11: exceeds voltage_max_V"),
        (
            "devices.supply.current_A=2.0",
            "devices.supply.current_A = 2: exceeds current_max_A = 1.2",
        ),
        ("devices.supply.voltage_V=6.0", "activation.supply_V = 8: set both to the same value"),
        (
            "devices.supply.answer_max_s=0.15",
            "hil polls it every poll_s = 0.1: give at least twice",
        ),
        ("devices.supply.dialect=korad", "devices.supply.dialect = 'korad': must be 'scpi'"),
        ("devices.supply.voltage_V=-1.0", "must be greater than 0"),
    ],
)
def test_values_that_are_wrong_are_refused(change, said, configs, capsys):
    assert main(["check", str(configs / "wires4/hold.toml"), "--set", change]) == 2
    assert said in capsys.readouterr().err


def test_visa_resources_are_listed_without_a_call_to_the_lan(capsys):
    assert main(["devices"]) == 0
    assert "VISA" in capsys.readouterr().out
    assert not any(name.startswith("TCPIP") for name in visa_resources()[0])


# Simulated: it feeds the plant


def _run(configs, tmp_path, *sets, rig="wires4/hold.toml"):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.h5"
    config = hil.load(configs / rig, ("experiment.duration_s=4.0", *sets))
    return hil.open_run(hil.run(config, out=path))


def test_a_simulated_supply_measures_what_the_wires_draw(configs, tmp_path):
    run = _run(configs, tmp_path, "experiment.duration_s=0.7")
    # four wires of a cell in series, 0.1 m at 126 Ohm/m: 50.4 Ohm a cell when cold
    cold_A = 4 * 8.0 / (4 * 0.1 * 126.0)
    just_on = run.supply_current_A.values[600:640]
    assert just_on.max() == pytest.approx(cold_A, rel=0.01)  # the first tenth of a second warms
    assert run.supply_voltage_V.values[-1] == 8.0


# Or so low a current trips the board before anything else is noticed.
NO_LEAST_CURRENT = "devices.board.limits.current_on_min_mA=20"


@pytest.mark.slow
def test_less_voltage_heats_less_by_its_square(configs, tmp_path):
    """Early on, before losses count, a wire's rise goes with the power: (1/2)^2."""
    rises_K = []
    for volts in (8.0, 4.0):
        sets = [f"devices.supply.voltage_V={volts}", "experiment.duration_s=0.7", NO_LEAST_CURRENT,
                f"model.arrays.muscle.activation.supply_V={volts}"]  # fmt: skip
        config = hil.load(configs / "wires4/hold.toml", sets)
        plant = config.system(plant=True)
        session.run(Plan(config, plant=plant), Output(out=tmp_path / f"{volts}.h5"))
        rises_K.append(plant.wires.T_C[0] - 23.0)
    assert rises_K[1] / rises_K[0] == pytest.approx(0.25, abs=0.01)


@pytest.mark.slow
def test_a_supply_at_its_current_limit_gives_less_voltage_and_trips(configs, tmp_path):
    run = _run(configs, tmp_path, "devices.supply.current_A=0.3", NO_LEAST_CURRENT)
    assert run.attrs["outcome"] == "tripped"
    flags = run.supply_fault_bits.values
    assert flags[flags > 0][0] == WRONG
    limited = run.supply_current_A.values[(run.supply_on.values == 1.0)]
    assert limited.max() == pytest.approx(0.3)


def test_without_power_gates_that_are_on_heat_nothing(configs, tmp_path):
    from hil.devices.sim.plant import SimPlant

    config = hil.load(configs / "wires4/hold.toml")

    class Gates:
        def advance(self, duration_us): ...

        def step(self, period_us):
            return np.ones(16)

        def sense(self, *seen): ...

        def sense_supply(self, supply_V): ...

        def set_estop(self, is_open): ...

    for feed in (lambda p: p.set_supply(0.0, 1.0), lambda p: p.enable("daq/supply", False)):
        plant = SimPlant(config.system(plant=True), 0.001, 0.2)
        plant.wire(Gates(), range(4))
        plant.advance(1.0)
        hot_C = plant.temperature_C.copy()
        feed(plant)
        plant.advance(2.0)
        assert (plant.temperature_C < hot_C - 5.0).all()
        assert not plant.current_A.any()
