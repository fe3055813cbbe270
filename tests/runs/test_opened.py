"""Whatever goes wrong, and at whatever step: all is off, every device is closed once."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest

import hil
from hil.__main__ import main
from hil.bench import latency, worker
from hil.devices.board import protocol
from hil.devices.board.driver import CellBoard
from hil.devices.board.listing import ask
from hil.devices.board.native import built
from hil.devices.supply.driver import SupplyDevice
from hil.errors import ConfigError, DeviceError, StopError
from hil.experiment.load import load
from hil.loop import loop
from hil.loop.requests import Stop
from hil.platform.processes import OTHER_ENDS, STOP_SIGNALS
from hil.procedures import on_rig
from hil.record.memory import MemorySink
from hil.record.sink import Sink
from hil.rig.rig import Rig
from hil.runs import assembly, rehearsal, session
from hil.runs.campaign import waits
from hil.runs.campaign.journal import read_progress
from hil.runs.campaign.parallel import Work, run_apart
from hil.runs.campaign.tables import CampaignTables
from hil.runs.opened import interrupted_by_signals, opened, stop_on_signals
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.simulate import simulate
from hil.runs.trial import Trial
from rig_file import loosen

WIRES = "wires4/hold.toml"  # a supply, a card with an enable line and a board
WAIT = CampaignTables.model_validate(
    {
        "campaign": {"name": "one", "experiments": ["a.toml"]},
        "wait": {"longest_s": 0.05, "for_s": 0.02,
                 "until": [{"column": "force_measured_N", "below": 99.0}]},
    }
)  # fmt: skip
OPENING = ["open board", "open daq", "open supply"]
TESTING = ["test board", "test supply"]
ARMING = ["on supply", "arm board"]
TICK = ["read board", "write daq"]
LEAVING = ["off supply", "safe board", "safe daq", "close board", "close supply"]


class Bench:
    """The devices of the first rig that is built: what was asked of them, and what fails."""

    def __init__(self, monkeypatch):
        self.calls, self.asked, self.fails, self.devices = Counter(), [], {}, {}
        self.left_on = None
        made = Rig.__init__

        def noted(rig, devices, *args, **kwargs):
            made(rig, devices, *args, **kwargs)
            if not self.devices:
                self.devices = {device.name: device for device in devices}
                for device in devices:
                    self._note(device)

        monkeypatch.setattr(Rig, "__init__", noted)

    def _note(self, device):
        words = {"open": "open", "self_test": "test", "arm": "arm", "read": "read", "safe": "safe",
                 "write": "write", "close": "close", "enable": "on", "disable": "off"}  # fmt: skip
        for method, word in words.items():
            if hasattr(device, method):
                called = getattr(device, method)
                setattr(device, method, self._noting(f"{word} {device.name}", called))

    def _noting(self, what, called):
        def noting(*args):
            if what == "close board":
                self.left_on = self.on()
            leaves = what.split()[0] in ("off", "safe", "close")
            self._count(what, leaves)  # how often it was asked to,
            if what in self.fails:
                self.fails.pop(what)()
            answer = called(*args)
            self._count(what, not leaves)  # and how often it was
            return answer

        return noting

    def _count(self, what, counts):
        self.calls[what] += counts
        self.asked += [what] * counts

    def on(self):
        """What is on, by the devices themselves."""
        found = []
        for name, device in self.devices.items():
            if isinstance(device, CellBoard) and device._link.port is not None:
                state = protocol.state_name(device._link.ask("read")["state"])
                found += [f"{name} {state}"] * (state == "armed")
            if isinstance(device, SupplyDevice) and device._on:
                found.append(f"{name} on")
        return found

    def check(self, step):
        """All is off; what was opened has been made safe and closed, once."""
        for name in self.devices:
            assert self.calls[f"close {name}"] == self.calls[f"open {name}"] <= 1, self.asked
        if step != "safe board":  # a board that refuses that stops by itself
            assert not self.left_on
            assert self.on() == []
        if self.calls["on supply"]:
            after = self.asked[len(self.asked) - self.asked[::-1].index("on supply") :]
            assert "off supply" in after
            assert "safe board" in after


def broken():
    raise DeviceError("board: broken")


def defective():
    raise ZeroDivisionError("a defect")


def left():
    raise GeneratorExit


def by(number):
    return lambda: os.kill(os.getpid(), number)


WAYS = {
    "a device fails": broken,
    "a defect": defective,
    "GeneratorExit": left,
    "SIGINT": by(signal.SIGINT),
    "SIGTERM": by(signal.SIGTERM),
    "SIGQUIT": by(signal.SIGQUIT),
}


DEFECTS = ("a defect", "GeneratorExit")


def each_way(steps):
    """Every step with every way; the first of them are each another step, and all ways."""
    ways = [*WAYS]
    return pytest.mark.parametrize(
        ("step", "way"),
        [(step, ways[(i + turn) % len(ways)])
         for turn in range(len(ways)) for i, step in enumerate(steps)],
    )  # fmt: skip


def taps():
    return {path.name for path in Path("/dev/shm").glob(f"hil-{os.getpid()}-*")}


@pytest.fixture
def bench(monkeypatch):
    return Bench(monkeypatch)


@pytest.fixture
def config(configs):
    return load(configs / WIRES, ("experiment.duration_s=0.05",))


@contextmanager
def failing(bench, step, way):
    """A caller's block in which this step goes wrong; afterwards nothing is on, open or left."""
    handlers = {n: signal.getsignal(n) for n in (*STOP_SIGNALS, *OTHER_ENDS)}
    before = taps()
    bench.fails[step] = WAYS[way]
    found = SimpleNamespace(error=None)
    try:
        yield found
    except (ConfigError, DeviceError, StopError, ZeroDivisionError, GeneratorExit,
            KeyboardInterrupt) as error:  # fmt: skip
        found.error = error
    assert not bench.fails, bench.asked  # the step was reached
    bench.check(step)
    assert taps() == before
    assert {n: signal.getsignal(n) for n in handlers} == handlers


@pytest.mark.slow_beyond(14)
@each_way([*OPENING, *TESTING, *ARMING, *TICK, *LEAVING])
def test_a_run(bench, config, tmp_path, step, way):
    out = tmp_path / "run.h5"
    with failing(bench, step, way) as found:
        result = session.run(Plan(config), Output(out=out))
        assert way.startswith("SIG")
        late = step in LEAVING
        assert result.outcome == ("complete" if late else "aborted")
    if step in OPENING:
        assert [path.name for path in tmp_path.iterdir()] == []
        assert found.error is not None
    else:
        with_rows = step in LEAVING or (step in TICK and way not in DEFECTS)
        with h5py.File(out) as run:
            assert run.attrs["outcome"] != "running"
            assert bool(len(run["ticks/t_s"])) == with_rows
        assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]


@pytest.mark.slow_beyond(4)
@each_way([*TICK, *OPENING, *LEAVING])
def test_a_wait_of_a_campaign(bench, config, step, way):
    with failing(bench, step, way) as found:
        ended = waits.wait(config, WAIT, clock=None, backend="sim", seed=0, plant=None)
        if step not in LEAVING:
            assert (ended.ended, ended.why) == ("aborted", [way])
    assert (found.error is None) == way.startswith("SIG")


@pytest.mark.slow_beyond(4)
@each_way([*TICK, *OPENING, *LEAVING])
def test_a_reading_at_rest(bench, config, step, way):
    with failing(bench, step, way) as found:
        on_rig.at_rest(config, "sim", 0, ["force_measured_N"], 0.02)
        assert step in LEAVING
    if step not in LEAVING:
        assert isinstance(found.error, StopError) == way.startswith("SIG")


@pytest.mark.slow_beyond(5)
@each_way([*TESTING, *ARMING, *TICK, *OPENING, *LEAVING])
def test_the_loop_back(bench, config, step, way):
    with failing(bench, step, way) as found:
        latency.measure(config, "sim", 0.05)
    if step not in LEAVING:
        assert isinstance(found.error, StopError) == way.startswith("SIG")


@pytest.mark.slow_beyond(1)
@each_way(["test board", "open daq", "arm board", "read board", "safe daq"])
def test_the_loop_of_the_benches(bench, config, step, way):
    with failing(bench, step, way):
        worker._dropped(config)


@pytest.mark.parametrize("step", ["open daq", "test board", "read board"])
def test_a_rehearsal_on_a_simulated_rig(bench, config, step):
    with failing(bench, step, "a device fails") as found:
        rehearsal.rehearse(config, 0)
    assert isinstance(found.error, DeviceError)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("sink", [assembly.NoSink, MemorySink, Sink])
def test_a_signal_in_any_loop_ends_what_comes_after_it(config, tmp_path, monkeypatch, sink, number):
    """Compilation before a run, a simulation and a run: the next one must not begin."""
    with monkeypatch.context() as patch:
        push = sink.push

        def signalled(rows):
            os.kill(os.getpid(), number)
            return push(rows)

        patch.setattr(sink, "push", signalled)
        begun = {assembly.NoSink: lambda: session.run(Plan(config), Output(tmp_path / "run.h5")),
                 MemorySink: lambda: hil.simulate(config),
                 Sink: lambda: hil.run(config, out=tmp_path / "run.h5")}  # fmt: skip
        with pytest.raises(KeyboardInterrupt, match=signal.Signals(number).name):
            begun[sink]()
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"] * (sink is Sink)


@pytest.mark.parametrize("step", ["test board", "on supply"])
@pytest.mark.parametrize("begin", ["rehearse", "simulate"])
def test_a_signal_before_the_loop_ends_what_comes_after_it(bench, config, begin, step):
    """No loop over many runs may take it for the failure of one: it is no Exception."""
    run = {"rehearse": lambda: rehearsal.rehearse(config, 0), "simulate": lambda: simulate(config)}
    with failing(bench, step, "SIGTERM") as found:
        run[begin]()
    assert isinstance(found.error, KeyboardInterrupt)
    assert str(found.error) == "SIGTERM"


@pytest.mark.parametrize("place", [(Trial, "look_back"), (loop, "run")])
def test_a_signal_in_a_trial_ends_its_campaign_also_after_the_last_tick(
    configs, tmp_path, monkeypatch, place
):
    path, out = tmp_path / "two.toml", tmp_path / "out"
    path.write_text(f"""
[campaign]
name = "two"
experiments = ["{configs / WIRES}"]
[factors.duration]
key = "experiment.duration_s"
levels = [0.05, 0.06]
""")
    called = getattr(*place)

    def signalled(context):
        if out.exists() and signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            os.kill(os.getpid(), signal.SIGINT)
        return called(context)

    monkeypatch.setattr(*place, signalled)
    assert main(["campaign", str(path), "--out", str(out)]) == 130
    progress = read_progress(out)
    assert progress.n_complete == (place[0] is Trial)
    assert set(progress.attempts) == {1}


@pytest.mark.parametrize("step", ["write daq", "safe board"])
@pytest.mark.parametrize("commissions", [False, True])
def test_a_signal_in_a_trial_apart_is_no_failure_of_it(bench, configs, tmp_path, commissions, step):
    tables = CampaignTables.model_validate(
        {
            "campaign": {"name": "one", "experiments": ["a.toml"]},
            "commission": {"experiment": "a.toml", "free": ["force_on_N"]},
        }
    )
    work = Work(1, str(configs / WIRES), ["experiment.duration_s=0.05"], 1, keep="all",
                out=str(tmp_path / "run.h5"), commissions=commissions)  # fmt: skip
    with failing(bench, step, "SIGINT") as found:
        run_apart(work, tables, strict=False)
    assert isinstance(found.error, KeyboardInterrupt)


def test_every_signal_that_would_end_the_process_stops_a_run_instead():
    """By the table of signal(7): the default of all but these is to end the process."""
    uncaught = {signal.SIGKILL, signal.SIGSTOP}
    ends_not = {signal.SIGCHLD, signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
                signal.SIGURG, signal.SIGWINCH}  # fmt: skip
    defects = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT,
               signal.SIGTRAP, signal.SIGSYS}  # fmt: skip
    at_rest = {n for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_DFL}
    stops = at_rest - uncaught - ends_not - defects | {signal.SIGINT, signal.SIGQUIT}
    assert {signal.SIGQUIT, signal.SIGUSR1, signal.SIGXCPU} <= stops
    for number in sorted(stops):
        stop = Stop()
        with stop_on_signals(stop):
            os.kill(os.getpid(), number)
        assert stop.reason == getattr(number, "name", f"signal {number:d}")
        with pytest.raises(KeyboardInterrupt, match=stop.reason), interrupted_by_signals():
            os.kill(os.getpid(), number)


def test_a_block_within_a_block_has_the_signals_for_itself():
    stop = Stop()
    with interrupted_by_signals():
        with stop_on_signals(stop):
            os.kill(os.getpid(), signal.SIGUSR1)
        assert stop.reason == "SIGUSR1"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGUSR1)


def test_a_handler_of_the_program_around_is_left_to_it():
    seen = []
    before = signal.signal(signal.SIGUSR2, lambda *_: seen.append("theirs"))
    try:
        stop = Stop()
        with stop_on_signals(stop):
            os.kill(os.getpid(), signal.SIGUSR2)
        assert (seen, stop.reason) == (["theirs"], "")
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_a_rig_that_fails_in_and_after_the_block_says_both(bench, config):
    pipeline = assembly.build(Plan(config))
    bench.fails["safe board"] = broken
    with (
        pytest.raises(DeviceError, match=r"^daq: gone; board: broken$"),
        opened(pipeline.rig, Stop()),
    ):
        raise DeviceError("daq: gone")
    assert bench.calls["safe daq"] == bench.calls["close daq"] == 1


EXITS = """
import ctypes, os
import numpy as np

class C:
    def __init__(self, facts, values):
        self.n, self.left = facts.n_commands, 20

    def step(self, now):
        self.left -= os.path.exists({out!r})  # in the rehearsal there is none
        if self.left < 0:
            ctypes.CDLL(None)._exit(0)
        return np.ones(self.n)
"""


@pytest.mark.xdist_group("real time")
def test_a_program_that_ends_without_a_word_leaves_its_cells_to_the_boards_dead_man(rigs, tmp_path):
    """As by SIGKILL, a crash of compiled code or _exit of C: the program does nothing any more."""
    folder, out = rigs / "miga6", tmp_path / "run.h5"
    with ExitStack() as started:
        words = [built("board_pty"), "6", "42"]
        board = started.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        started.callback(board.kill)
        port = board.stdout.readline().strip()
        rig = folder / "rig.toml"
        board_keys = (f"port='{port}'", "serial='42'", "estop='none'", "hold_s=0.1")
        loosen(rig, "loop.overrun='skip'", "loop.period_s=0.01", "guard.reading_age_max_s=1.0",
               *(f"devices.board.{key}" for key in board_keys))  # fmt: skip
        (folder / "exits.py").write_text(EXITS.format(out=str(out)))
        (folder / "exits.toml").write_text(
            'rig = "rig.toml"\n[experiment]\nname = "exits"\nduration_s = 9.0\n'
            '[controller]\nkind = "exits.py:C"\n'
        )
        words = ["run", str(folder / "exits.toml"), "--backend", "board=bench,daq=sim"]
        words += ["--out", str(out)]
        words = [sys.executable, "-m", "hil", *words]
        run = started.enter_context(subprocess.Popen(words, stderr=subprocess.PIPE, text=True))
        started.callback(run.kill)
        said = run.communicate(timeout=300)[1].splitlines()
        assert run.returncode == 0, said
        time.sleep(0.1)  # its hold_s
        found = ask(port, "read")
        assert protocol.state_name(found["state"]) == "faulted"
        assert protocol.fault_names(found["fault_bits"]) == ["host_silent"]
        assert not any(found["duty_per_255"])
    assert said[-1].startswith(f"{out}: the program of this run ended without closing it")
    recording = hil.open_run(out)
    assert recording.attrs["outcome"] == "recovered"
    assert recording.sizes["tick"] > 10
    assert recording.cells_commanded.values[-1].all()
    assert any("ended without closing" in text for text in recording.event_text.values)
