import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.devices.board import protocol
from hil.devices.board.driver import CellBoard
from hil.loop import tap as taps
from hil.loop.requests import Stop
from hil.platform.processes import STOP_SIGNALS
from hil.record import layout
from hil.record.held import held
from hil.rig.rig import Rig
from hil.runs import session
from hil.runs.opened import stop_on_signals

# Runs on the real clock want the machine one at a time.
pytestmark = pytest.mark.xdist_group("real time")


def a_minute_of(words):
    """A process that runs for a minute on the real clock, however late a busy machine makes it."""
    more = ["--clock", "real", "--duration", "60", "--set", "loop.overrun='skip'"]
    return subprocess.Popen(
        [sys.executable, "-m", "hil", *words, *more, "--set", "guard.reading_age_max_s=60.0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_an_existing_recording_is_replaced_only_by_force(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out), "--duration", "0.01"]
    assert main(words) == 0
    before = out.read_bytes()
    assert main(words) == 2
    assert out.read_bytes() == before
    assert main([*words, "--force", "--seed", "9"]) == 0
    assert hil.open_run(out).attrs["seed"] == 9


@pytest.mark.slow
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_nobody_takes_the_name_of_a_recording_that_is_still_written(
    configs, tmp_path, capsys, force
):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]
    first = a_minute_of(words)
    try:
        wait_for_rows(first, 300)
        assert main([*words, *force]) == 2
        said = capsys.readouterr().err
        assert said == f"{out}: another run or program has it open: choose another --out\n"
        with h5py.File(out, "r", swmr=True) as others_read_it:  # with HDF5's own lock
            assert "ticks" in others_read_it
        first.send_signal(signal.SIGINT)
        said, errors = first.communicate(timeout=600)
    finally:
        first.kill()
        first.wait()
    assert (first.returncode, errors) == (130, ""), said
    assert hil.open_run(out).attrs["outcome"] == "aborted"
    assert len(hil.open_run(out).t_s) >= 300
    assert main([*words, "--force", "--duration", "0.01"]) == 0


@pytest.mark.parametrize("force", [False, True])
def test_a_name_that_another_run_takes_while_one_prepares_itself_stays_with_the_other(
    configs, tmp_path, monkeypatch, force
):
    """Both have looked before either has created its file; the rehearsals take a second."""
    out = tmp_path / "run.h5"
    config = hil.load(configs / "miga6/all_on.toml", ("experiment.duration_s=0.01",))
    rehearse, nested = session.rehearse_plugins, contextlib.ExitStack()

    def meanwhile(*args):
        monkeypatch.setattr(session, "rehearse_plugins", rehearse)
        hil.run(config, out=out, seed=7)
        if force:
            nested.enter_context(held(out))
        return rehearse(*args)

    monkeypatch.setattr(session, "rehearse_plugins", meanwhile)
    with nested, pytest.raises(hil.errors.ConfigError, match="choose another --out"):
        hil.run(config, out=out, force=force)
    assert hil.open_run(out).attrs["seed"] == 7
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]


@pytest.mark.parametrize("step", ["compile_tick", "_with_strangers", "logbooks.kept"])
def test_a_run_that_cannot_start_leaves_the_recording_that_it_would_replace(
    configs, tmp_path, monkeypatch, capsys, step
):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out), "--duration", "0.01"]
    assert main([*words, "--seed", "7"]) == 0
    before = out.read_bytes()

    def broken(*args, **options):
        raise hil.errors.DeviceError("board: no answer")

    monkeypatch.setattr(f"hil.runs.session.{step}", broken)
    assert main([*words, "--force"]) == 4
    assert out.read_bytes() == before
    assert list(tmp_path.iterdir()) == [out]
    monkeypatch.undo()
    assert main(words) == 2
    assert out.read_bytes() == before
    assert list(tmp_path.iterdir()) == [out]
    assert main([*words, "--force"]) == 0
    assert hil.open_run(out).attrs["seed"] == 0
    assert list(tmp_path.iterdir()) == [out]


def test_without_out_the_recording_is_named_after_rig_experiment_and_time(
    configs, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    config = hil.load(configs / "miga6/all_on.toml", ("experiment.duration_s=0.01",))
    paths = [hil.run(config), hil.run(config)]
    assert len(set(paths)) == 2
    for path in paths:
        assert path.parent.name == "runs"
        assert path.name.startswith("miga6-all_on-2")


def test_nothing_is_left_when_a_run_cannot_start(configs, tmp_path, monkeypatch, capsys):
    from hil.runs import session

    def broken(config):
        raise hil.errors.DeviceError("board: held by another process")

    monkeypatch.setattr(session, "compile_tick", broken)
    out = tmp_path / "run.h5"
    assert main(["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]) == 4
    assert capsys.readouterr().err == "board: held by another process\n"
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_when_the_file_cannot_be_made(configs, tmp_path, monkeypatch, capsys):
    real = h5py.Group.create_dataset

    def full(self, name, *args, **options):
        if name == "events":
            raise OSError(28, "No space left on device")
        return real(self, name, *args, **options)

    monkeypatch.setattr(h5py.Group, "create_dataset", full)
    out = tmp_path / "run.h5"
    assert main(["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_outcome_that_contract_does_not_know_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'fine' is not one of"):
        layout.finish(tmp_path / "run.h5", "fine", {})


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_group_still_gives_a_closed_recording(configs, tmp_path, number):
    """As a terminal's Ctrl-C or hang-up does, which reaches every process of the run."""
    out = tmp_path / "run.h5"
    loop = a_minute_of(["run", str(configs / "miga6/all_on.toml"), "--out", str(out)])
    try:
        wait_for_rows(loop, 300)
        os.killpg(loop.pid, number)
        said, errors = loop.communicate(timeout=600)
    finally:
        loop.kill()
        loop.wait()
    assert (loop.returncode, errors) == (130, ""), said
    assert said.startswith("aborted: ")
    run = hil.open_run(out)
    assert run.attrs["outcome"] == "aborted"
    assert len(run.t_s) >= 300
    assert f"stopped by {number.name}" in run.event_text.values.tolist()
    assert main(["verify", str(out)]) == 0
    ticks = run.t_s.values / 0.001
    np.testing.assert_allclose(ticks, np.rint(ticks), atol=1e-6)


@pytest.mark.parametrize("backend", ["sim", "emulated"])
def test_ctrl_c_while_a_board_is_armed_ends_the_run_before_the_next_one_is(
    configs, tmp_path, monkeypatch, backend
):
    """Without a power source that is kept on: the two boards are all that is armed."""
    armed, left = [], {}
    compile_tick, self_test = session.compile_tick, Rig.self_test
    arm, close = CellBoard.arm, CellBoard.close

    def compiled(config):
        compile_tick(config)
        armed.append("compiled")

    def tested(rig, ask):
        lines = self_test(rig, ask)
        armed.append("tested")
        return lines

    def interrupted(board):
        arm(board)
        if "compiled" in armed and "compiled" != armed[-1]:
            if armed[-1] == "tested":
                os.kill(os.getpid(), signal.SIGINT)
            armed.append(board.name)

    def closed(board):
        if "board_a" in armed:
            left[board.name] = protocol.state_name(board._link.ask("read")["state"])
        close(board)

    monkeypatch.setattr(session, "compile_tick", compiled)
    monkeypatch.setattr(Rig, "self_test", tested)
    monkeypatch.setattr(CellBoard, "arm", interrupted)
    monkeypatch.setattr(CellBoard, "close", closed)
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "array14/groups.toml"), "--backend", backend, "--out", str(out)]
    assert main([*words, "--set", "experiment.duration_s=0.1"]) == 130
    assert armed[-3:] == ["compiled", "tested", "board_a"]
    assert left == {"board_a": "disarmed", "board_b": "disarmed"}
    run = hil.open_run(out)
    assert (run.attrs["outcome"], run.sizes["tick"]) == ("aborted", 0)
    assert "stopped by SIGINT" in run.event_text.values.tolist()


def wait_for_rows(loop, n):
    """Return when this run has written n rows to its tap."""
    while loop.poll() is None:
        for path in Path("/dev/shm").glob(f"hil-{loop.pid}-*.tap"):
            with contextlib.suppress(ValueError, OSError):
                if taps.attach(path).ticks.written >= n:
                    return
        time.sleep(0.005)
    raise AssertionError(loop.stderr.read())


COMPILES = """
import gc, json, sys
from dataclasses import replace
from numba.core.dispatcher import Dispatcher
from hil.experiment.load import load
from hil.loop.clock import VirtualClock
from hil.runs import assembly, rehearsal
from hil.runs.plan import Plan

def compiled():
    kernels = [d for d in gc.get_objects() if isinstance(d, Dispatcher)]
    return {d.py_func.__qualname__: len(d.signatures) for d in kernels}

for path, sets in json.loads(sys.argv[1]):
    config = load(path, sets)
    rehearsal.compile_tick(config)
    before = compiled()
    n_ticks = round(0.6 / config.tables.loop.period_s)
    parts = assembly.build(Plan(config)).context(VirtualClock(), assembly.NoSink())
    rehearsal.run_simulated(replace(parts, n_ticks=n_ticks))
    for name, count in compiled().items():
        if before.get(name, 0) != count:
            print(path, name)
"""


@pytest.mark.slow
def test_no_tick_of_a_run_compiles(configs):
    # a process of its own: here other tests have compiled everything
    tested = ["observer.wire_failures={}",
              "ambient={ambient_C=23.0, ambient_uncertainty_C=0.5}"]  # fmt: skip
    files = [
        ("array14/pid.toml", []), ("miga6/all_on.toml", []), ("slider/steps.toml", []),
        ("wires4/follow.toml", []), ("wires4/hold.toml", tested),
        ("wires4/follow.toml", ["observer.cell_failures={}"]), ("array14/optimal.toml", []),
    ]  # fmt: skip
    runs = json.dumps([(str(configs / file), sets) for file, sets in files])
    words = [sys.executable, "-c", COMPILES, runs]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_after_a_run_every_signal_has_its_handler_again():
    before = [signal.getsignal(number) for number in STOP_SIGNALS]
    with stop_on_signals(Stop()):
        assert all(signal.getsignal(n) not in before for n in STOP_SIGNALS)
    assert [signal.getsignal(number) for number in STOP_SIGNALS] == before
