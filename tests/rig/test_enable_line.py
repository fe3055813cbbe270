"""The order in which a rig gets its power and loses it: supply, enable line, boards, first tick."""

import os
import signal

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.devices.board.driver import CellBoard
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.devices.nidaq.emulated import EmulatedBench
from hil.devices.sim.plant import SimPlant
from hil.errors import DeviceError
from hil.experiment.load import load
from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.loop.frame import Frame
from hil.rig.rig import build_rig
from hil.runs import assembly, rehearsal, session
from hil.runs.plan import Plan

BACKENDS = ("sim", "emulated")
LINE = "devices.daq.lines={feed={kind='enable', terminal='port0/line1'}}"
TERMINAL = "Dev1/port0/line1"


def fed(configs, *sets, rig="miga6/all_on.toml", duration_s=0.05):
    """A rig whose cells are fed through a card's line."""
    return load(configs / rig, (LINE, f"experiment.duration_s={duration_s}", *sets))


def backends_of(config, kind):
    simulated = {"supply"}
    return {n: "sim" if n in simulated else kind for n in config.tables.devices}


def as_text(config, kind):
    return ",".join(f"{name}={chosen}" for name, chosen in backends_of(config, kind).items())


def rig_of(config, backend, injection=None):
    rig = build_rig(config, 1, backends_of(config, backend), injection=injection)
    rig.bind(Frame(rig.columns))
    return rig


def device(rig, name):
    return next(d for d in rig._devices if d.name == name)


# The line is felt


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_board_whose_line_is_low_finds_no_supply_and_one_whose_line_is_high_does(
    backend, configs
):
    """Arming the boards first, as was done once, cannot do."""
    rig = rig_of(fed(configs), backend)
    rig.open()
    try:
        with pytest.raises(DeviceError, match=r"refused to be armed: no supply before relay K1"):
            device(rig, "board").arm()
        rig.safe()
        rig.arm()
    finally:
        rig.safe()
        rig.close()


@pytest.mark.parametrize("rig", ["miga6/all_on.toml", "wires4/hold.toml"])
def test_a_cell_behind_a_low_line_neither_heats_nor_shows_a_current(configs, rig):
    class Gates:
        def __init__(self):
            self.seen_A = np.full(16, np.nan)

        def advance(self, duration_us): ...

        def step(self, period_us):
            return np.ones(16)

        def sense(self, cell, current_A, leakage_A, temperature_C):
            self.seen_A[cell] = current_A

        def sense_supply(self, supply_V):
            self.seen_V = supply_V

        def set_estop(self, is_open): ...

    config = fed(configs, rig=rig)
    system = config.system(plant=True)
    plant, gates, n = SimPlant(system, 0.001, 0.2), Gates(), len(system.cell_names)
    plant.wire(gates, range(n))
    plant.advance(0.1)
    assert (gates.seen_A[:n] > 0.05).all()
    plant.enable("daq/feed", False)
    assert (gates.seen_A[:n] == 0.0).all()
    before = np.array(system.y)
    plant.advance(3.0)
    assert (gates.seen_A[:n] == 0.0).all()
    forces = [i for i, name in enumerate(system.outputs) if name.endswith("_N")]
    assert np.abs(system.y[forces]).max() < max(0.05, 0.5 * np.abs(before[forces]).max())
    plant.enable("daq/feed", True)
    assert (gates.seen_A[:n] > 0.05).all()


# The order


class Witness:
    """What the plant, the boards and the loop go through, one word each, repeats left out."""

    def __init__(self):
        self.seen = []

    def begin(self, monkeypatch):
        self._note(
            monkeypatch, SimPlant, "set_supply", lambda _, volts, limit: f"supply {volts:g} V"
        )
        self._note(
            monkeypatch,
            SimPlant,
            "enable",
            lambda _, line, high: f"line {'high' if high else 'low'}",
        )
        self._note(monkeypatch, CellBoard, "self_test", lambda *_: "board self-test")
        self._note(monkeypatch, CellBoard, "arm", lambda *_: "board armed")
        self._note(monkeypatch, CellBoard, "write", lambda *_: "ticks")
        self._note(monkeypatch, CellBoard, "safe", lambda *_: "board disarmed")
        self._note(monkeypatch, CellBoard, "close", lambda *_: "board closed")

    def _note(self, monkeypatch, kind, method, word):
        inner = getattr(kind, method)

        def noted(*words):
            said = word(*words)
            done = inner(*words)
            part = said.partition(" ")[0]
            last = next((w for w in reversed(self.seen) if w.startswith(part)), None)
            if said != last or not part.startswith(("supply", "line", "ticks")):
                self.seen.append(said)
            return done

        monkeypatch.setattr(kind, method, noted)


@pytest.fixture
def witness(monkeypatch):
    """Of the run alone, not of what is compiled for it."""
    made = Witness()
    compile_tick = rehearsal.compile_tick

    def compiled(config):
        compile_tick(config)
        made.begin(monkeypatch)

    monkeypatch.setattr(session, "compile_tick", compiled)
    return made


def run(config, backend, out, **options):
    options |= {"out": out, "backend": as_text(config, backend), "seed": 1}
    return session.run(*session.from_options(config, options))


@pytest.mark.parametrize("backend", BACKENDS)
def test_power_comes_on_before_the_boards_and_goes_off_before_they_are_left(
    backend, configs, tmp_path, witness
):
    config = fed(configs, rig="wires4/hold.toml")
    assert run(config, backend, tmp_path / "run.h5").outcome == "complete"
    assert witness.seen[witness.seen.index("supply 8 V") :] == [
        "supply 8 V", "line high", "board armed", "board self-test", "line low", "supply 0 V",
        "supply 8 V", "line high", "board armed", "ticks",
        "line low", "board disarmed", "supply 0 V", "board closed",
    ]  # fmt: skip


def refuse(_):
    raise DeviceError("board: refused to be armed: is_faulted")


def crash(_):
    raise RuntimeError("a defect somewhere else")


def interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow_beyond(5)
@pytest.mark.parametrize("at", ["self_test", "arm", "settle", "write"])
@pytest.mark.parametrize("act", [refuse, crash, interrupt])
def test_whatever_fails_in_between_the_line_goes_low_before_the_boards_are_left(
    at, act, configs, tmp_path, monkeypatch, witness
):
    config = fed(configs, rig="wires4/hold.toml")
    kind, method = (EmulatedBench, "pass_s") if at == "settle" else (CellBoard, at)
    inner, done = getattr(kind, method), []

    def acting(self, *words):
        if not done and ("ticks" if at == "write" else "line high") in witness.seen:
            done.append(True)
            act(self)
        return inner(self, *words)

    monkeypatch.setattr(kind, method, acting)
    if act is interrupt:
        result = run(config, "emulated", tmp_path / "run.h5")
        assert (result.outcome, result.summary["stopped_by"]) == ("aborted", "SIGINT")
    else:
        with pytest.raises((DeviceError, RuntimeError)):
            run(config, "emulated", tmp_path / "run.h5")
    assert done
    assert hil.open_run(tmp_path / "run.h5").attrs["outcome"] == "aborted"
    last_high = len(witness.seen) - 1 - witness.seen[::-1].index("line high")
    after = [w for w in witness.seen[last_high + 1 :] if w != "supply 8 V"]
    # the self-test's and the run's, or no further than the self-test
    assert witness.seen.count("line high") == (2 if at == "write" else 1)
    ended = after[after.index("line low") :]
    assert ended == ["line low", "board disarmed", "supply 0 V", "board closed"]


def test_nothing_comes_on_while_the_card_s_estop_loop_is_open(
    configs, tmp_path, monkeypatch, witness
):
    loop_line = "devices.daq.lines.loop={kind='estop', terminal='port0/line0'}"
    config = fed(configs, loop_line, rig="wires4/hold.toml")
    plugged_in = EmulatedBench.open

    def with_open_loop(bench):
        plugged_in(bench)
        bench.system.feed("Dev1/port0/line0", 0.0)

    monkeypatch.setattr(EmulatedBench, "open", with_open_loop)
    with pytest.raises(DeviceError, match="e-stop loop 'loop' on port0/line0 is open: close it"):
        run(config, "emulated", tmp_path / "run.h5")
    assert not {"supply 8 V", "line high", "board armed"} & set(witness.seen)
    assert list(tmp_path.iterdir()) == []


def test_a_trip_puts_the_line_low_within_its_tick(configs, tmp_path, witness):
    config = fed(configs, rig="wires4/hold.toml", duration_s=0.5)
    injection = Injection([FaultTable(kind="supply_voltage", at_s=0.2, value=10.0)])
    assert run(config, "sim", tmp_path / "run.h5", injection=injection).outcome == "tripped"
    rows = hil.open_run(tmp_path / "run.h5")
    tripped = rows.fault_bits.values > 0
    assert tripped.any()
    assert not tripped[0]
    np.testing.assert_array_equal(rows.daq_line_bits.values == 0, tripped)


# What goes wrong with it


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_line_that_is_stuck_low_is_named_where_a_board_finds_no_supply(
    backend, configs, tmp_path, capsys
):
    faults = tmp_path / "stuck.toml"
    faults.write_text("[[fault]]\nkind = 'enable_stuck_low'\nat_s = 0.0\n")
    words = ["--set", LINE, "--inject", str(faults), "--out", str(tmp_path / "run.h5")]
    words += ["--backend", backend]
    assert main(["run", str(configs / "miga6/all_on.toml"), *words]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("board: refused to be armed: no supply before relay K1 (0.0 V): ")
    assert "check enable line 'feed' (Dev1/port0/line1), its poles, the fuse" in line
    rows = hil.open_run(tmp_path / "run.h5")
    assert rows.attrs["outcome"] == "aborted"
    assert not rows.sizes["tick"]


def test_a_line_that_breaks_in_the_run_is_a_cell_without_current(configs, tmp_path):
    injection = Injection([FaultTable(kind="enable_stuck_low", at_s=0.2)])
    result = run(fed(configs, duration_s=0.5), "sim", tmp_path / "run.h5", injection=injection)
    assert result.outcome == "tripped"
    assert "board_fault" in result.summary["first_fault"]


@pytest.mark.parametrize("killed_in", ["self_test", "arm"])
def test_a_host_that_is_killed_while_a_board_is_asked_leaves_the_line_to_the_watchdog(
    killed_in, configs, monkeypatch
):
    """A killed process calls nothing any more: neither `safe` nor the watchdog."""
    rig = rig_of(fed(configs, "devices.daq.watchdog_s=0.05"), "emulated")
    rig.open()

    class Killed(BaseException): ...

    def killed(*_):
        raise Killed

    monkeypatch.setattr(CellBoard, killed_in, killed)
    with pytest.raises(Killed):
        rig.self_test(print) if killed_in == "self_test" else rig.arm()
    system = device(rig, "daq")._bench.system
    assert system.output(TERMINAL) == 1.0
    system.advance_to(system.now_s + 0.051)
    assert system.output(TERMINAL) == 0.0
    rig.close()


def test_a_watchdog_is_fed_while_a_board_takes_its_time(configs, monkeypatch):
    """Its answers may come tens of milliseconds late, many times the watchdog's own time."""
    rig = rig_of(fed(configs, "devices.daq.watchdog_s=0.01"), "emulated")
    rig.open()
    bench = device(rig, "daq")._bench
    board, read = device(rig, "board")._link.port, []

    def nothing_yet(timeout_s):
        bench.pass_s(timeout_s)
        read.append(timeout_s)
        return b""

    monkeypatch.setattr(board, "_arrived_within", nothing_yet)
    with pytest.raises(DeviceError, match="does not answer"):
        rig.arm()
    assert sum(read) == pytest.approx(0.3)
    assert bench.system.output(TERMINAL) == 1.0
    monkeypatch.undo()
    rig.safe()
    assert bench.system.output(TERMINAL) == 0.0
    rig.close()


# Armed within a run, as a window does


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_window_that_arms_has_the_same_order_tick_by_tick(backend, configs):
    sets = ("devices.daq.enable_settle_s=0.02",)
    config = fed(configs, *sets, rig="wires4/hold.toml", duration_s=0.03)
    pipeline = assembly.build(Plan(config, as_text(config, backend), seed=1))
    rows = []

    class Window(assembly.NoSink):
        def requests(self, tick):
            return [("arm", 1.0, "")] if tick == 5 else []

        def push(self):
            frame = pipeline.frame
            rows.append(
                {
                    name: frame.row[name][0]
                    for name in ("supply_on_told", "supply_on", "daq_line_bits", "guard_state")
                }
            )
            return True

    pipeline.rig.open()
    pipeline.rig.self_test(print)
    try:
        loop.run(pipeline.context(VirtualClock(), Window(), armed=False))
    finally:
        pipeline.rig.safe()
        pipeline.rig.close()

    def first(name, value):
        return next(i for i, row in enumerate(rows) if row[name] == value)

    running = first("guard_state", 5)
    assert first("supply_on_told", 1.0) == 5
    assert 5 < first("supply_on", 1.0) <= first("daq_line_bits", 1)
    assert 20 < running - first("daq_line_bits", 1) < 90  # it settles; K1 closes and is seen
    assert all(row["daq_line_bits"] == 1 for row in rows[running:])
