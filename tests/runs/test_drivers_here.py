"""Runs through the drivers of a bench without a bench: `--backend drivers`."""

import contextlib
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

import hil
from hil.__main__ import main
from hil.devices.board import terminal
from hil.devices.board.terminal import TerminalBoard
from hil.errors import ConfigError, DeviceError
from hil.experiment.load import load
from hil.runs.plan import Plan

pytestmark = pytest.mark.xdist_group("real time")

PATIENT = ("loop.overrun=skip", "guard.reading_age_max_s=10.0", "devices.board.hold_s=0.1")
SETS = [word for text in PATIENT for word in ("--set", text)]


def boards():
    return [p for p in psutil.Process().children() if p.name() == "board_pty"]


def run_until(code, words, out, act=None):
    """Run and act once there are 100 rows; returns the recording once it ended with this code.

    A machine that stalls for 100 ms trips the board, and rightly: such a run is made again.
    """
    for _ in range(9):
        out.unlink(missing_ok=True)
        over = threading.Event()
        acts = threading.Thread(target=when_there, args=(out, act, over))
        acts.start()
        try:
            found = main(["run", str(words[0]), *SETS, *words[1:], "--out", str(out)])
        finally:
            over.set()
            acts.join()
        if found == code:
            return hil.open_run(out)
        assert found == 3
    raise AssertionError("tripped nine times")


def when_there(out, act, over):
    while act is not None and not over.wait(0.02):
        with contextlib.suppress(ConfigError):  # its last chunk was just written
            if out.exists() and hil.open_run(out).sizes["tick"] > 100:
                act()
                break


@pytest.fixture
def pid(rigs):
    """Steps of force on the six-cell array."""
    return rigs / "miga6/pid.toml"


@pytest.mark.slow
def test_a_pid_runs_on_a_serial_board_and_an_ni_card_that_are_marked_as_simulated(
    pid, tmp_path, capsys
):
    words = [pid, "--backend", "drivers", "--set", "reference.t_s=[0.1, 2.0, 3.0]"]
    run = run_until(0, [*words, "--duration", "1.2"], tmp_path / "run.h5")
    assert "left out" not in capsys.readouterr().err
    assert run.attrs["backend"] == "board=pty,daq=emulated"
    assert run.attrs["clock"] == "real"
    assert run.attrs["simulated"] == "SIMULATED: board, daq"
    texts = [str(text) for text in run.event_text.values]
    assert "board: watchdog tested, e-stop seen open" in texts
    assert any("PCIe-6363" in text for text in texts)
    # Bytes went over a line: an exchange takes time, on the line's own clock.
    assert np.nanmin(run.board_round_trip_s.values) > 0.0
    # One second after the step every on cell pulls with all but e^(-1.1/0.36) of its force, so
    # the force is within a level of the array, 0.5 N, of the set point.
    assert run.force_measured_N.values[-1] == pytest.approx(0.6, abs=0.5)
    assert abs(run.force_measured_N.values - run.force_model_N.values).max() < 0.5
    assert not boards()


def test_a_port_that_is_gone_ends_the_run_with_a_line_and_its_recording(pid, tmp_path, capsys):
    words = [pid, "--backend", "board=pty", "--set", "record.flush_s=0.1"]
    run = run_until(4, words, tmp_path / "run.h5", lambda: [p.kill() for p in boards()])
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("board: /dev/pts/")
    # Its silence trips the guard where a tick notices that before the port is known to be gone.
    assert run.attrs["outcome"] in ("aborted", "tripped")
    assert any(str(text).startswith("device_failed: ") for text in run.event_text.values)
    assert 100 < run.sizes["tick"] < 8000
    assert not boards()


@pytest.mark.slow
def test_ctrl_c_reaches_the_loop_and_not_the_board_which_then_ends(pid, tmp_path, capsys):
    apart = []

    def interrupt():
        apart.extend(os.getsid(p.pid) == p.pid for p in boards())
        os.kill(os.getpid(), signal.SIGINT)

    words = [pid, "--backend", "board=pty", "--set", "record.flush_s=0.1"]
    run = run_until(130, words, tmp_path / "run.h5", interrupt)
    said = capsys.readouterr().out
    assert f"aborted: {run.sizes['tick']} rows in {tmp_path / 'run.h5'}; everything is off" in said
    assert apart
    assert all(apart)
    assert run.attrs["outcome"] == "aborted"
    assert not boards()


def test_a_board_on_a_terminal_takes_the_limits_of_its_rig(pid):
    limits = terminal.protocol.default_limits() | {"on_time_max_ms": 4321}
    board = TerminalBoard("board", 7, 6, limits, time.sleep)
    port = board.connect(time.monotonic, lambda: None)
    try:
        [process] = boards()
        assert process.cmdline()[1:] == ["6", "7"]
        port.write(b"\0" + terminal.protocol.encode("identify", 9))
        [answer] = terminal.protocol.Decoder().feed(port.read(5.0))
        assert (answer["serial"], answer["n_cells"]) == (7, 6)
        assert answer["limits"]["on_time_max_ms"] == 4321
    finally:
        port.close()
    assert not boards()


def test_a_board_program_that_ends_at_once_is_a_device_that_failed(monkeypatch):
    monkeypatch.setattr(terminal, "built", lambda name: "/bin/true")
    board = TerminalBoard("left", 1, 6, terminal.protocol.default_limits(), time.sleep)
    with pytest.raises(DeviceError, match="left: its program ended before it had a terminal"):
        board.connect(time.monotonic, lambda: None)


def test_what_a_computer_lacks_is_left_out_in_one_line_and_the_run_goes_on(
    pid, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(terminal.os, "openpty", _no_terminal)
    run = run_until(0, [pid, "--backend", "drivers", "--duration", "0.05"], tmp_path / "run.h5")
    assert [line for line in capsys.readouterr().err.splitlines() if "left out" in line][:1] == [
        "left out, and simulated in this process: 'board' needs a pseudo-terminal "
        "(No such file or directory)"
    ]
    assert run.attrs["backend"] == "board=sim,daq=emulated"


def test_a_board_on_a_terminal_needs_pseudo_terminals_and_its_program(monkeypatch):
    assert terminal.missing() == ""
    monkeypatch.setattr(terminal, "built", _unbuilt)
    assert terminal.missing().startswith("needs its firmware as a program: make -C firmware host")
    monkeypatch.setattr(terminal, "sys", SimpleNamespace(platform="win32"))
    assert terminal.missing() == "needs a pseudo-terminal, which Windows has not"


def _unbuilt(name):
    raise ConfigError(f"{name}: has not been built")


def _no_terminal():
    raise OSError(2, "No such file or directory")


def test_a_board_on_a_terminal_keeps_wall_time_and_takes_no_faults(pid):
    config = load(pid)
    assert Plan(config, "board=pty").clock == "real"
    assert not Plan(config, "board=pty").on_bench
    with pytest.raises(ConfigError, match="--clock virtual: --backend board=pty runs in real time"):
        Plan(config, "board=pty", "virtual")
    with pytest.raises(ConfigError, match="'daq' is no board"):
        Plan(config, "pty")
