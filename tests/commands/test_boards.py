"""Boards on the bench, played by the shipped firmware behind a pty, in wall time."""

import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hil import open_run
from hil.__main__ import main
from hil.devices.board import arming, link, listing, protocol
from hil.devices.board.bundled_firmware import shipped_hash
from hil.devices.board.driver import CellBoard
from hil.devices.board.native import built
from hil.devices.board.port import SerialPort
from hil.errors import DeviceError
from hil.loop.guard import names_of
from hil.record.read import DamagedError
from rig_file import loosen

SERIAL = "devices.board.serial=42"
SHORT = "experiment.duration_s=0.3"
FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
# Runs on the real clock want the machine one at a time.
pytestmark = pytest.mark.xdist_group("real time")


@contextlib.contextmanager
def _behind_a_pty(program, serial=42):
    with subprocess.Popen([program, "6", str(serial)], stdout=subprocess.PIPE, text=True) as board:
        try:
            yield board.stdout.readline().strip()
        finally:
            board.terminate()
            assert board.wait(300) == 0


@pytest.fixture
def pty_board(monkeypatch):
    """Path of a pty with a six-cell board behind it, which a busy machine may keep waiting."""
    monkeypatch.setattr(link, "PATIENT_S", 2.0)
    with _behind_a_pty(built("board_pty")) as path:
        yield path


def _errors(capsys):
    """What stands on standard error beside the warnings that the shipped values are assumed."""
    return [line for line in capsys.readouterr().err.splitlines() if "warning: " not in line]


@pytest.mark.slow
def test_a_run_drives_a_board_behind_a_serial_port(pty_board, rigs, tmp_path):
    out = tmp_path / "run.h5"
    late = ("guard.reading_age_max_s=10.0",)
    words = _at_the_bench(rigs, pty_board, out, "experiment.duration_s=1.0", rig=late)
    assert main(words) in (0, 3)  # after a stall of 100 ms the board is off, and rightly
    run = open_run(out)
    assert run.attrs["clock"] == "real"
    assert run.attrs["simulated"] == "SIMULATED: daq"
    assert "source" not in run["muscle.1.current_A"].attrs
    on = run.cells_reported.values == 1
    assert on.all(axis=1).any()
    currents_A = run["muscle.1.current_A"].values
    assert np.nanmax(currents_A) == pytest.approx(0.195, abs=0.01)  # what this board draws


def _at_the_bench(rigs, port, out, *sets, rig=()):
    """The rig has no e-stop and excuses a late computer; each of `sets` may weaken it too."""
    loose = ("devices.board.estop=none", "loop.overrun='skip'", "guard.reading_age_max_s=0.05")
    loosen(rigs / "miga6/rig.toml", f"devices.board.port={port}", SERIAL, *loose, *rig)
    words = ["run", str(rigs / "miga6/all_on.toml"), "--backend", "board=bench,daq=sim"]
    return [*words, *(w for one in sets for w in ("--set", one)), "--out", str(out)]


@pytest.mark.slow
def test_a_run_at_a_bench_that_another_run_holds_is_refused_in_one_line(
    pty_board, rigs, tmp_path, capsys
):
    """The first run is stopped meanwhile: it keeps the port, whatever the machine is busy with."""
    first_out, out = tmp_path / "first.h5", tmp_path / "second.h5"
    lasting = ("experiment.duration_s=60.0", "loop.period_s=0.005")  # every tick is rehearsed
    words = _at_the_bench(rigs, pty_board, first_out, *lasting)
    command = [sys.executable, "-m", "hil", *words, "--disarmed"]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until(first, lambda: first_out.is_file() and _n_rows(first_out) > 0)
        first.send_signal(signal.SIGSTOP)
        before = first_out.read_bytes()
        assert main(_at_the_bench(rigs, pty_board, out)) == 4
        (line,) = _errors(capsys)
        assert line.startswith(f"board: {pty_board} cannot be opened (held by process {first.pid},")
        assert not out.exists()
        assert first_out.read_bytes()[:512] == before[:512]
    finally:
        first.send_signal(signal.SIGCONT)
        first.send_signal(signal.SIGINT)
        assert first.wait(300) in (3, 130)  # missed ticks may trip it
    assert main(["verify", str(first_out)]) == 0
    capsys.readouterr()
    for _ in range(3):  # the board's process may be too busy to take data in time
        main(_at_the_bench(rigs, pty_board, out, SHORT))
        assert not any("cannot be opened" in line for line in _errors(capsys))  # the port is free
        if out.exists():
            break
    assert open_run(out).sizes["tick"] > 0


@pytest.mark.slow
def test_ctrl_c_while_wires_cool_ends_the_run_at_once_and_the_next_one_runs(
    pty_board, rigs, tmp_path, capsys, monkeypatch
):
    """Limits that are new to a board count all its heat as used: it cools for 1 min x ln 8."""

    def stored(tau_ms):
        """Store this time constant in the board; the setting of the rig that agrees with it."""
        limit = f"heat_time_constant_ms={tau_ms}"
        assert main(["board", "limits", pty_board, "--set", limit, "--yes"]) == 0
        return f"devices.board.limits.{limit}"

    said = []

    def interrupt(text, **_):
        said.append(text)
        os.kill(os.getpid(), signal.SIGINT)

    out = tmp_path / "run.h5"
    with monkeypatch.context() as patched:
        patched.setattr(arming, "say", interrupt)
        words = _at_the_bench(rigs, pty_board, out, stored(60_000), SHORT)
        assert main(words) == 130
    (line,) = said
    (left_s,) = re.findall(r"board: waits (\d+) s until its wires have cooled", line)
    assert 0 < int(left_s) <= 125  # 60 s x ln 8
    assert _errors(capsys) == []
    run = open_run(out)
    assert (run.attrs["outcome"], run.sizes["tick"]) == ("aborted", 0)
    assert "stopped by SIGINT" in run.event_text.values.tolist()
    board = listing.ask(pty_board, "read")
    assert protocol.state_name(board["state"]) == "disarmed"
    assert min(board["heat_per_255"][:6]) > 255 / protocol.HEAT_TO_ARM
    second = tmp_path / "second.h5"
    assert main(_at_the_bench(rigs, pty_board, second, stored(300), SHORT)) in (0, 3)
    assert (open_run(second).cells_reported.values == 1).all(axis=1).any()


@pytest.mark.slow
def test_a_board_unplugged_in_the_run_is_one_line_and_the_recording_is_whole(
    rigs, capsys, tmp_path, monkeypatch
):
    """The process behind the pty is killed with all cells on."""
    out = tmp_path / "run.h5"
    board = subprocess.Popen([built("board_pty"), "6", "42"], stdout=subprocess.PIPE, text=True)
    path = board.stdout.readline().strip()
    write = CellBoard.write

    def write_until_unplugged(driver, t_s, commands):
        write(driver, t_s, commands)
        if t_s > 0.2 and not driver.simulated and board.poll() is None:
            board.kill()
            board.wait(300)

    monkeypatch.setattr(CellBoard, "write", write_until_unplugged)
    assert main(_at_the_bench(rigs, path, out, "experiment.duration_s=2.0")) == 4
    board.stdout.close()
    said = _errors(capsys)
    assert len(said) == 1
    assert f"board: {path} " in said[0]
    assert "is it unplugged?" in said[0]
    assert main(["verify", str(out)]) == 0
    run = open_run(out)
    assert run.attrs["outcome"] == "aborted"
    assert 0.2 <= run.t_s.values[-1] < 2.0
    assert run.cells_commanded.values[run.t_s.values <= 0.2][-1].all()
    assert not run.cells_commanded.values[-1].any()


@pytest.mark.slow
def test_a_board_on_a_serial_port_that_is_reset_in_the_run_trips_it(
    rigs, capsys, tmp_path, monkeypatch
):
    board = subprocess.Popen([built("board_pty"), "6", "42"], stdout=subprocess.PIPE, text=True)
    path = board.stdout.readline().strip()
    write, was_reset = CellBoard.write, []

    def write_and_reset(driver, t_s, commands):
        write(driver, t_s, commands)
        if t_s > 0.2 and not driver.simulated and not was_reset:
            was_reset.append(t_s)
            board.send_signal(signal.SIGUSR1)

    monkeypatch.setattr(CellBoard, "write", write_and_reset)
    out = tmp_path / "run.h5"
    late = ["guard.reading_age_max_s=10.0"]  # a late answer is no reset
    words = _at_the_bench(rigs, path, out, "experiment.duration_s=2.0", rig=late)
    assert main(words) == 3
    board.terminate()
    assert board.wait(300) == 0
    board.stdout.close()
    assert "board_reset" in capsys.readouterr().out
    run = open_run(out)
    tripped_s = run.t_s.values[run.fault_bits.values != 0][0]
    assert was_reset[0] < tripped_s
    assert "board_reset" in names_of(int(run.fault_bits.values[-1]))


# A host that kills or stops itself as soon as its board has reported every cell on.
HOST = """
import os, sys
from hil.__main__ import main
from hil.devices.board.driver import CellBoard

write, told = CellBoard.write, []

def write_and_go(board, t_s, commands):
    write(board, t_s, commands)
    if not board.simulated and not told and (board._readings.cells_reported == 1).all():
        told.append(t_s)
        os.kill(os.getpid(), int(sys.argv[1]))

CellBoard.write = write_and_go
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_board_whose_host_is_killed_or_stopped_in_the_run_is_off_by_itself(
    number, pty_board, rigs, tmp_path
):
    out = tmp_path / "run.h5"
    # Late answers trip no run here: the fault of the board does.
    words = _at_the_bench(rigs, pty_board, out, rig=["guard.reading_age_max_s=10.0"])
    with subprocess.Popen(
        [sys.executable, "-c", HOST, str(number.value), *words], stdout=subprocess.DEVNULL
    ) as host:
        _, status = os.waitpid(host.pid, os.WUNTRACED)
        time.sleep(0.3)  # at least three times as long as a board may be left alone
        if number == signal.SIGSTOP:
            assert os.WIFSTOPPED(status)
            host.send_signal(signal.SIGCONT)
            assert host.wait(300) == 3
            assert "board_fault" in names_of(int(open_run(out).fault_bits.values[-1]))
            return
        assert os.WTERMSIG(status) == signal.SIGKILL
    _until_free(pty_board)
    answer = listing.ask(pty_board, "read")
    assert "host_silent" in protocol.fault_names(answer["fault_bits"])
    assert not any(answer["duty_per_255"])


def _wait_until(host, there):
    deadline_s = time.monotonic() + 300.0
    while not there():
        assert host.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _n_rows(path):
    """Rows on file."""
    try:
        return open_run(path).sizes["tick"]
    except DamagedError:  # looked at while it was being made
        return 0


def test_a_run_whose_rehearsal_trips_is_refused_before_the_bench_is_touched(
    configs, tmp_path, capsys
):
    words = ["run", str(configs / "miga6/all_on.toml"), "--backend", "board=bench,daq=sim"]
    words += ["--set", "guard.force_max_N=1.0", "--out", str(tmp_path / "run.h5")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "its rehearsal on a simulated rig tripped at" in said
    assert "force_high" in said
    assert list(tmp_path.iterdir()) == []


def test_a_bench_cannot_run_on_the_virtual_clock(configs, capsys, tmp_path):
    words = ["run", str(configs / "miga6/all_on.toml"), "--backend", "board=bench,daq=sim"]
    assert main([*words, "--clock", "virtual", "--out", str(tmp_path / "run.h5")]) == 2
    assert "runs in real time" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_board_that_is_not_there_is_named_and_leaves_no_recording(configs, capsys, tmp_path):
    words = ["run", str(configs / "miga6/all_on.toml"), "--backend", "board=bench,daq=sim"]
    assert main([*words, "--out", str(tmp_path / "run.h5")]) == 4
    assert "no board with USB serial number HIL-0001" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_board_with_other_firmware_than_hil_ships_is_refused_unless_the_rig_names_it(
    rigs, tmp_path
):
    own = 0x0BADCAFE
    folder = tmp_path / "build"
    make = ["make", "--silent", "-C", str(FIRMWARE), f"BUILD={folder}", f"FIRMWARE_HASH={own:08x}"]
    subprocess.run([*make, str(folder / "board_pty")], check=True)
    with _behind_a_pty(folder / "board_pty") as path:
        words = _at_the_bench(rigs, path, tmp_path / "refused.h5", "experiment.duration_s=0.3")
        command = [sys.executable, "-m", "hil", *words]
        refused = subprocess.run(command, capture_output=True, text=True)
        assert refused.returncode == 4
        (line,) = [text for text in refused.stderr.splitlines() if "warning: " not in text]
        assert f"board: runs firmware 0badcafe, not {shipped_hash():08x}: hil board flash" in line
        assert 'devices.board.firmware = "0badcafe"' in line
        assert not (tmp_path / "refused.h5").exists()
        assert not any(listing.ask(path, "read")["duty_per_255"])
        assert listing.identity(path)["seq_taken"] < 10  # it was asked, and not armed
        named = ["devices.board.firmware='0badcafe'"]
        shorter = "experiment.duration_s=0.3"
        words = _at_the_bench(rigs, path, tmp_path / "run.h5", shorter, rig=named)
        assert main(words) in (0, 3)
    assert open_run(tmp_path / "run.h5").sizes["tick"] > 0


def test_the_hash_that_hil_ships_is_the_one_that_its_own_board_reports(pty_board):
    assert listing.identity(pty_board)["firmware_hash"] == shipped_hash()


@pytest.mark.parametrize("wrong", ["0badcaf", "0BADCAFE", "0badcafe0", "shipped"])
def test_a_hash_that_is_none_is_refused_with_its_key(configs, capsys, wrong):
    words = ["check", str(configs / "miga6/all_on.toml")]
    assert main([*words, "--set", f"devices.board.firmware='{wrong}'"]) == 2
    assert "devices.board.firmware" in capsys.readouterr().err


def test_a_card_without_its_driver_is_one_line_and_leaves_nothing(
    configs, tmp_path, capsys, monkeypatch
):
    from nidaqmx.errors import DaqNotFoundError
    from nidaqmx.system import System

    def not_there():
        raise DaqNotFoundError("no library")

    monkeypatch.setattr(System, "local", not_there)
    words = ["--backend", "board=sim,daq=bench", "--out", str(tmp_path / "run.h5")]
    assert main(["run", str(configs / "miga6/all_on.toml"), *words]) == 4
    said = _errors(capsys)
    assert len(said) == 1
    assert "NI-DAQmx is not installed" in said[0]
    assert "use --backend sim or emulated" in said[0]
    assert list(tmp_path.iterdir()) == []


def test_limits_are_read_set_with_consent_and_kept(pty_board, capsys, monkeypatch):
    assert main(["board", "limits", pty_board, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["serial"] == 42
    assert found["wire_agrees"] is True
    assert found["limits"] == protocol.default_limits()
    change = ["board", "limits", pty_board, "--set", "on_time_max_ms=20000"]
    monkeypatch.setattr("builtins.input", lambda prompt: "no")
    assert main(change) == 5
    assert "on_time_max_ms: 10000 -> 20000" in capsys.readouterr().out
    assert main([*change, "--yes"]) == 0
    capsys.readouterr()
    assert main(["board", "limits", pty_board, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["limits"]["on_time_max_ms"] == 20000


@pytest.mark.parametrize("value", ["on_time_max_ms=0", "on_time_max_ms=60001", "on_time=1",
                                   "on_time_max_ms=x", "on_time_max_ms=\u00b2",
                                   "on_time_max_ms=--5"])  # fmt: skip
def test_a_limit_that_the_board_cannot_have_is_refused(pty_board, capsys, value):
    assert main(["board", "limits", pty_board, "--set", value, "--yes"]) == 2
    assert capsys.readouterr().err.startswith(f"--set {value}: ")


def test_a_limit_that_leaves_a_protection_without_effect_is_not_stored_and_one_there_is_shown(
    pty_board, capsys
):
    words = ["board", "limits", pty_board]
    assert main([*words, "--set", "current_off_max_mA=1900", "--yes"]) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert said.err.startswith("--set: current_off_max_mA = 1900: a transistor that stays on")
    assert listing.identity(pty_board)["limits"] == protocol.default_limits()
    wrong = {"current_on_min_mA": 0, "temperature_full_scale_cC": 1}
    listing.store_limits(pty_board, protocol.default_limits() | wrong)
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[1] for line in lines if "WRONG" in line] == [
        " current_on_min_mA = 0", " temperature_full_scale_cC = 1"
    ]  # fmt: skip
    for mended in ("current_on_min_mA=20", "temperature_full_scale_cC=50000"):
        assert main([*words, "--set", mended, "--yes"]) == 0
    assert "WRONG" not in capsys.readouterr().out.splitlines()[-1]


def test_a_board_held_by_someone_is_not_taken(pty_board, capsys):
    holder = SerialPort("holder", pty_board)
    assert main(["board", "limits", pty_board]) == 4
    assert "cannot be opened" in capsys.readouterr().err
    holder.close()
    assert main(["board", "limits", pty_board]) == 0


def test_ports_are_listed_as_lines_or_json(capsys):
    assert main(["devices", "--json"]) == 0
    assert "serial_ports" in json.loads(capsys.readouterr().out)
    assert main(["devices"]) == 0
    assert capsys.readouterr().out.strip()


class OtherVersion:
    """A port to a board that answers in the version of the wire before this one."""

    def __init__(self, *where):
        self._answer = b""

    def write(self, data):
        body = bytes((protocol.VERSION - 1, protocol.ANSWERS["identity"], 1)) + bytes(55)
        self._answer = protocol.framed(body)

    def read(self, timeout_s):
        answer, self._answer = self._answer, b""
        return answer

    def sent_s(self):
        return 0.0

    def close(self):
        """Nothing to close."""


def test_a_board_of_another_version_of_the_wire_is_to_be_flashed(capsys, monkeypatch):
    monkeypatch.setattr("hil.devices.board.listing.SerialPort", OtherVersion)
    assert main(["board", "limits", "usb:HIL-0001"]) == 4
    said = capsys.readouterr().err.strip()
    assert said.endswith("its firmware speaks another version of the protocol: hil board flash")


def _errno_of_opening(path):
    """What a program of another user, which asks for no lock, is told; 0: it has the line too."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setuid(65534)  # root is let in everywhere
            os.open(path, os.O_RDWR | os.O_NOCTTY)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _until_free(path):
    os.chmod(path, 0o666)
    deadline_s = time.monotonic() + 300.0
    while _errno_of_opening(path):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_a_line_in_use_is_refused_to_every_other_program_and_free_again_afterwards(pty_board):
    os.chmod(pty_board, 0o666)
    port = SerialPort("board", pty_board)
    assert _errno_of_opening(pty_board) == errno.EBUSY
    with pytest.raises(DeviceError, match=f"board: {pty_board} cannot be opened.*held by process"):
        SerialPort("board", pty_board)
    port.close()
    assert _errno_of_opening(pty_board) == 0


def test_a_simulated_line_is_free_again_after_its_host_was_killed(pty_board):
    os.chmod(pty_board, 0o666)
    code = "import sys, time; from hil.devices.board.port import SerialPort; "
    code += "port = SerialPort('board', sys.argv[1]); print(flush=True); time.sleep(60)"
    host = subprocess.Popen([sys.executable, "-c", code, pty_board], stdout=subprocess.PIPE)
    host.stdout.readline()
    assert _errno_of_opening(pty_board) == errno.EBUSY
    host.kill()
    host.wait(300)
    host.stdout.close()
    _until_free(pty_board)


@pytest.fixture
def two_at_paths(tmp_path):
    """Two boards of six cells, at paths that may be exchanged."""
    paths = [tmp_path / "ttyUSB0", tmp_path / "ttyUSB1"]
    with (
        _behind_a_pty(built("board_pty"), 42) as first,
        _behind_a_pty(built("board_pty"), 43) as second,
    ):
        for path, pty in zip(paths, (first, second), strict=True):
            path.symlink_to(pty)
        yield paths


def _exchanged(paths):
    one, other = (os.readlink(path) for path in paths)
    for path, pty in zip(paths, (other, one), strict=True):
        path.unlink()
        path.symlink_to(pty)


def _states(paths):
    return [protocol.state_name(listing.identity(str(path))["state"]) for path in paths]


def test_boards_that_were_exchanged_are_refused_before_anything_is_switched(
    two_at_paths, rigs, tmp_path, capsys
):
    out, words = tmp_path / "run.h5", _at_the_bench(rigs, two_at_paths[0], tmp_path / "run.h5")
    _exchanged(two_at_paths)
    assert main(words) == 4
    (line,) = _errors(capsys)
    assert line == (
        f"{rigs / 'miga6/all_on.toml'}: devices.board.serial = '42': the board at "
        f"{two_at_paths[0]} has serial 43: connect the one that is meant, or if it is this one, "
        'write serial = "43"'
    )
    assert not out.exists()
    assert _states(two_at_paths) == ["disarmed", "disarmed"]
    _exchanged(two_at_paths)
    assert main([*words, "--duration", "0.1"]) in (0, 3)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("door", ["run", "campaign", "doctor"])
def test_a_bench_whose_file_gives_only_a_device_path_is_refused_with_the_line_that_is_missing(
    two_at_paths, rigs, tmp_path, capsys, door
):
    """In whichever way the rig is opened; in simulation it runs as ever."""
    rig, run = rigs / "miga6/rig.toml", rigs / "miga6/all_on.toml"
    loosen(rig, f"devices.board.port={two_at_paths[0]}", "devices.board.estop=none")
    day = tmp_path / "day.toml"
    day.write_text(f"campaign = {{name = 'day', experiments = ['{run}'], repeats = 1}}\n")
    bench = ["--backend", "board=bench,daq=sim"]
    words = {
        "run": ["run", run, *bench],
        "campaign": ["campaign", day, *bench, "--out", tmp_path / "day"],
        "doctor": ["doctor", "--loopback", run, *bench],
    }
    assert main([str(word) for word in words[door]]) == 2
    line = _errors(capsys)[-1]
    assert "devices.board.serial: missing: another board may be at " in line
    assert line.endswith('if the one there now is meant, write serial = "42"')
    assert _states(two_at_paths) == ["disarmed", "disarmed"]
    assert main(["check", str(rig)]) == 0
    assert "devices.board.serial: missing: another board may be" in capsys.readouterr().out
    assert main(["run", str(run), "--duration", "0.01", "--out", str(tmp_path / "s.h5")]) == 0
    loosen(rig, SERIAL)
    assert main(["check", str(rig)]) == 0
    assert "serial" not in capsys.readouterr().out
