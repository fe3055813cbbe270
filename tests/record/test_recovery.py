"""Runs killed at any moment, full disks and damaged files."""

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.errors import DeviceError
from hil.platform import processes
from hil.record import places, repair, sink, superblock
from hil.record.append_log import read_log
from hil.record.layout import LIBVER
from rig_file import loosen

# Runs on the real clock want the machine one at a time.
pytestmark = pytest.mark.xdist_group("real time")

FLUSH_S = 0.1


class Killed:
    """`hil run` on the real clock in a process of its own, to be killed."""

    def __init__(self, configs, out):
        self.out = out
        command = [sys.executable, "-m", "hil", "run", str(configs / "miga6/all_on.toml")]
        command += ["--clock", "real", "--out", str(out), "--duration", "60"]
        command += ["--set", f"record.flush_s={FLUSH_S}", "--set", "loop.overrun='skip'"]
        command += ["--set", "guard.reading_age_max_s=60.0", "--set", "record.fsync_s=0.1"]
        command += ["--set", "guard.cell_on_max_s=10.0"]
        self.loop = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def tap(self):
        """The run's tap, once its recorder has it."""
        from hil.loop import tap as taps

        while self.loop.poll() is None:
            for path in Path("/dev/shm").glob(f"hil-{self.loop.pid}-*.tap"):
                with contextlib.suppress(ValueError, OSError):
                    tap = taps.attach(path)
                    if tap.recorder_ready:
                        return tap
            time.sleep(0.005)
        raise AssertionError(self.loop.stderr.read())

    def recorder(self):
        for link in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (link / "cmdline").read_bytes().split(b"\0")
                if b"hil.record.recorder" in words and str(self.out).encode() in words:
                    return int(link.name)
        raise AssertionError("no recorder")


def kill_once(configs, out, who, after_rows):
    """Kill a run when it has this many rows.

    Rows written and rows flushed shortly before, exit code and words of the loop.
    """
    run = Killed(configs, out)
    try:
        tap = run.tap()
        while tap.ticks.written < after_rows and run.loop.poll() is None:
            time.sleep(0.001)
        recorder = run.recorder()
        flushed = flushed_rows(out)
        written = tap.ticks.written
        if "recorder" in who:
            os.kill(recorder, signal.SIGKILL)
        if "loop" in who:
            os.kill(run.loop.pid, signal.SIGKILL)
        words = run.loop.communicate(timeout=600)[1]
        while Path(f"/proc/{recorder}/fd").exists() and recorder_lives(recorder):
            time.sleep(0.01)
    finally:
        run.loop.kill()
        run.loop.wait()
    return written, flushed, run.loop.returncode, words


def flushed_rows(path):
    """Rows that the recorder had on file at its last flush."""
    with h5py.File(path, "r", swmr=True) as file:
        return int(file["recorded_rows"][0])


def recorder_lives(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def is_whole_prefix(path, at_least):
    """Gapless rows from the first on, every value of them real."""
    with h5py.File(path) as file:
        columns = {name: data[:] for name, data in file["ticks"].items()}
        outcome = file.attrs["outcome"]
    lengths = {len(column) for column in columns.values()}
    assert len(lengths) == 1
    n = lengths.pop()
    assert n >= at_least
    t_s = columns["t_s"]
    assert outcome == "recovered"
    ticks = np.rint(t_s / 0.001)
    np.testing.assert_allclose(t_s, ticks * 0.001, atol=1e-9)
    assert (np.diff(ticks) >= 1).all()
    # rows that were never written would be zeros
    assert (columns["valid_bits"] == 3).all()
    assert (columns["busy_s"] > 0.0).all()
    assert n < 2 or (columns["force.raw_V"][1:] != 0.0).mean() > 0.9
    on = columns["cells_commanded"].all(axis=1)
    assert on[t_s < 2.999].all()
    reported = columns["cells_reported"]
    np.testing.assert_array_equal(reported[1:], columns["cells_commanded"][:-1])


def kill_and_recover(configs, folder, seed):
    rng = random.Random(seed)
    who = [("loop",), ("recorder",), ("recorder", "loop")][seed % 3]
    out = folder / f"killed{seed}.h5"
    after_rows = rng.randrange(1, 1500)
    written, flushed, code, words = kill_once(configs, out, who, after_rows)
    if who == ("recorder",):
        assert code == 4, words
        assert f"rows are kept in {out}" in words
        assert len(words.splitlines()) == 1
    elif who == ("loop",):  # its recorder is left to finish and to say so
        assert words.startswith(f"{out}: the program of this run ended without closing it"), words
        assert len(words.splitlines()) == 1
        assert not [*Path("/dev/shm").glob(f"hil-{-code}-*")]
    else:
        assert main(["verify", str(out)]) == 5
        assert main(["recover", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    # a recorder that lives on takes every row; of one that is killed, every flushed row stays
    is_whole_prefix(out, written if who == ("loop",) else flushed)
    after = out.read_bytes()
    assert main(["recover", str(out)]) == 0
    assert out.read_bytes() == after
    assert main(["verify", str(out)]) == 0
    assert list(folder.glob("*.recovering")) == []
    return out


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("seed", range(6))
def test_a_killed_run_is_made_whole_again(configs, tmp_path, seed, capsys):
    kill_and_recover(configs, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 106))
def test_a_hundred_killed_runs_are_made_whole_again(configs, tmp_path, seed, capsys):
    kill_and_recover(configs, tmp_path, seed)


def harm(configs, out, harmed):
    """Do this to the recording of a run that has 300 rows; exit code and words of the loop."""
    run = Killed(configs, out)
    try:
        tap = run.tap()
        while tap.recorded < 300 and run.loop.poll() is None:
            time.sleep(0.001)
        harmed(out)
        at = tap.ticks.written
        said, words = run.loop.communicate(timeout=600)
    finally:
        run.loop.kill()
        run.loop.wait()
    assert (run.loop.returncode, words) == (3, "")
    assert not [*Path("/dev/shm").glob(f"hil-{run.loop.pid}-*")]
    return at, said


def test_a_run_whose_recording_is_deleted_trips_and_loses_no_row(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    at, said = harm(configs, out, Path.unlink)
    assert "tripped by recorder_dead" in said
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]
    assert main(["verify", str(out)]) == 0
    run = hil.open_run(out)
    texts = run.event_text.values.tolist()
    assert any(text == "recorder_dead: run.h5 was deleted" for text in texts)
    assert run.attrs["outcome"] == "tripped"
    tripped = int(np.flatnonzero(run.fault_bits.values)[0])
    assert tripped >= at
    assert len(run.t_s) > tripped  # every row from the first on, and those after the trip
    ticks = np.rint(run.t_s.values / 0.001)
    assert (ticks[0], bool((run.busy_s.values > 0.0).all())) == (0, True)
    assert not run.cells_commanded.values[tripped:].any()


@pytest.mark.slow
def test_a_run_whose_recording_is_written_over_trips_and_keeps_the_last_seconds(
    configs, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    _, said = harm(configs, out, lambda path: path.write_bytes(b"theirs"))
    kept = tmp_path / "run-kept.h5"
    assert "tripped by recorder_dead" in said
    assert str(kept) in said
    assert {path.name for path in tmp_path.iterdir()} == {"run.h5", "run-kept.h5"}
    assert main(["verify", str(kept)]) == 0
    run = hil.open_run(kept)
    assert "recorder_dead: run.h5 was cut off" in run.event_text.values.tolist()
    assert run.t_s.values[0] == 0.0  # the ring had room for all of them
    assert main(["replay", str(kept)]) == 0


@pytest.fixture
def after_a_restart(configs, tmp_path, monkeypatch):
    """A run whose two processes were killed, the rows that were flushed and synced, later."""
    out = tmp_path / "run.h5"
    _, flushed, *_ = kill_once(configs, out, ("recorder", "loop"), 1000)
    head, *_, last = read_log(places.places_of(out))
    assert head["boot"] == processes.boot()
    monkeypatch.setattr(places, "boot", lambda: "the next one")
    return out, flushed, last["rows"]["ticks"]


@pytest.mark.slow
def test_a_run_that_lost_its_power_is_kept_up_to_its_last_sync(after_a_restart):
    out, flushed, synced = after_a_restart
    assert 100 < synced <= flushed + 1000
    data = bytearray(out.read_bytes())
    at = data.index(b"OHDR")  # the tables of the whole file
    data[at + 20] ^= 255
    out.write_bytes(data)
    assert main(["recover", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    is_whole_prefix(out, synced)
    assert len(hil.open_run(out).t_s) == synced
    assert [path.name for path in out.parent.iterdir()] == ["run.h5"]


@pytest.mark.slow
def test_after_a_restart_every_synced_row_is_kept_and_a_whole_file_stays(after_a_restart):
    out, _, synced = after_a_restart
    log = places.places_of(out).read_bytes()
    assert main(["recover", str(out)]) == 0
    is_whole_prefix(out, synced)
    places.places_of(out).write_bytes(log)
    before = out.read_bytes()
    assert main(["recover", str(out)]) == 0
    is_as_before = out.read_bytes() == before
    assert is_as_before
    assert [path.name for path in out.parent.iterdir()] == ["run.h5"]


@pytest.mark.slow
def test_a_run_killed_before_its_first_row_is_made_whole_and_reported(
    configs, tmp_path, all_on, capsys
):
    out = tmp_path / "none.h5"
    shutil.copy(all_on, out)
    with h5py.File(out, "r+", libver=LIBVER) as file:
        for dataset in (*file["ticks"].values(), file["events"]):
            dataset.resize(0, axis=0)
        file.attrs["outcome"] = "running"
        file.attrs["summary"] = "{}"
    assert main(["recover", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    assert hil.open_run(out).attrs["outcome"] == "recovered"
    assert main(["report", str(out)]) == 0
    assert "SIMULATED" in out.with_suffix(".html").read_text()


@pytest.mark.slow
def test_the_recording_of_a_plain_writer_killed_in_between_is_recovered(all_on, tmp_path, capsys):
    """As when `finish` is killed, which opens the file for writing without readers."""
    out = shutil.copy(all_on, tmp_path / "run.h5")
    code = (
        "import h5py, os, signal, sys\n"
        "file = h5py.File(sys.argv[1], 'r+', libver=('v110', 'v110'))\n"
        "file.attrs['outcome'] = 'running'\n"
        "file.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, out]).returncode == -signal.SIGKILL
    assert superblock.marked_end_B(out)
    assert main(["verify", str(out)]) == 5
    assert main(["recover", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    with h5py.File(all_on) as a, h5py.File(out) as b:
        for name, column in a["ticks"].items():
            np.testing.assert_array_equal(b["ticks"][name][:], column[:])
            assert dict(b["ticks"][name].attrs).keys() == dict(column.attrs).keys()
        assert b.attrs["outcome"] == "recovered"


def test_columns_of_different_length_are_cut_to_the_shortest(all_on, tmp_path, capsys):
    out = shutil.copy(all_on, tmp_path / "run.h5")
    with h5py.File(out, "r+", libver=LIBVER) as file:
        file["ticks/busy_s"].resize(4321, axis=0)
        file["ticks/cells_reported"].resize(4444, axis=0)
    assert main(["verify", str(out)]) == 5
    assert "4321 (busy_s)" in capsys.readouterr().out
    assert main(["recover", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    run = hil.open_run(out)
    np.testing.assert_array_equal(run.t_s, np.arange(4321) * 0.001)


def test_a_whole_recording_is_left_as_it_is(all_on, tmp_path, capsys):
    out = shutil.copy(all_on, tmp_path / "run.h5")
    before = out.read_bytes()
    assert main(["recover", str(out)]) == 0
    assert "nothing to repair" in capsys.readouterr().out
    assert out.read_bytes() == before


def test_a_recording_that_a_run_still_writes_is_not_touched(all_on, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(repair, "WRITER_TIMEOUT_S", 0.0)
    out = shutil.copy(all_on, tmp_path / "run.h5")
    writer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; f = open(sys.argv[1], 'rb+'); print(flush=True); input()",
            str(out),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        writer.stdout.readline()
        assert main(["recover", str(out)]) == 4
        assert f"process {writer.pid}" in capsys.readouterr().err
    finally:
        writer.communicate(b"\n")


SIZES = [0, 4, 8, 11, 12, 47, 48, 100, 2000, 20000, 200000]


@pytest.mark.parametrize("size", [*SIZES, -1])
def test_a_cut_copy_is_one_line_of_every_command(all_on, tmp_path, size, capsys):
    out = tmp_path / "cut.h5"
    out.write_bytes(all_on.read_bytes()[:size])
    for command in ("verify", "recover", "report", "export"):
        code = main([command, str(out)])
        said = capsys.readouterr()
        assert code in (2, 5)
        lines = (said.out + said.err).splitlines()
        assert len(lines) == 1
        assert lines[0].startswith(f"{out}: ")
        assert "defect" not in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_flipped_bytes_never_end_in_a_trace(all_on, tmp_path, seed, capsys):
    rng = np.random.default_rng(seed)
    data = bytearray(all_on.read_bytes())
    for at in rng.integers(0, len(data) if seed % 2 else 20000, 20):
        data[at] ^= rng.integers(1, 256)
    out = tmp_path / "bad.h5"
    out.write_bytes(data)
    for command in ("verify", "recover", "report"):
        code = main([command, str(out)])
        said = capsys.readouterr()
        assert code in (0, 2, 5), said.err
        assert "defect" not in said.err
        assert "Traceback" not in said.err


@pytest.mark.slow
def test_verify_finds_a_flipped_bit_in_any_column(all_on, tmp_path, capsys):
    with h5py.File(all_on) as file:
        places = {
            name: data.id.get_chunk_info(0).byte_offset for name, data in file["ticks"].items()
        }
    whole = all_on.read_bytes()
    out = tmp_path / "bit.h5"
    for name, at in places.items():
        data = bytearray(whole)
        data[at + 100] ^= 1
        out.write_bytes(data)
        assert main(["verify", str(out)]) == 5
        assert f"{name}: damaged" in capsys.readouterr().out


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 0.6 MB; where the machine mounts none, a limit on file size does."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(mount, capture_output=True).returncode == 0
    yield folder, bool(mounted)
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up_ends_the_run_safely(rigs, tiny_disk, capsys):
    folder, mounted = tiny_disk
    out = folder / "run.h5"
    # The tap is larger than the limit: it is set once the tap is there, for the recorder.
    limit = (
        ""
        if mounted
        else "create = sink.taps.create;"
        "limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600000, 600000));"
        "sink.taps.create = lambda *words: (create(*words), limit())[0];"
    )
    code = (
        "import resource, signal, sys, hil.record.sink as sink, hil.runs.session as session;"
        "session.check_disk = lambda *_: None;"
        f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN); {limit}"
        "from hil.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    loosen(rigs / "miga6/rig.toml", "guard.disk_free_min_MB=0.0")  # or the guard trips before
    words = ["run", str(rigs / "miga6/all_on.toml"), "--out", str(out), "--duration", "60"]
    words += ["--set", "guard.reading_age_max_s=60.0"]
    words += ["--clock", "real", "--set", "loop.overrun='skip'"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 4, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    reason = "No space left on device" if mounted else "File too large"
    assert lines[0].startswith(f"recorder: {out}: {reason}; its ")
    assert lines[0].endswith(f" rows are kept in {out}")
    assert [p.name for p in folder.iterdir()] == ["run.h5"]
    assert main(["verify", str(out)]) == 0
    run = hil.open_run(out)
    ticks = np.rint(run.t_s.values / 0.001)
    assert len(ticks) > 200
    assert (np.diff(ticks) > 0).all()
    assert (run.valid_bits.values == 3).all()
    assert (run.busy_s.values > 0.0).all()


def test_where_the_temporary_folder_is_full_too_nothing_is_touched(
    all_on, tmp_path, capsys, monkeypatch
):
    out = cut_off(all_on, tmp_path / "run.h5")
    before = out.read_bytes()
    full = OSError(errno.ENOSPC, "Unable to do something (errno = 28, error message = 'No')")

    def no_room(*_, **more):
        raise full

    monkeypatch.setattr(repair, "_copy_whole_rows", no_room)
    assert main(["recover", str(out)]) == 2
    said = capsys.readouterr().err
    reason = "No space left on device): make room, or set TMPDIR to a folder that has it"
    assert said == f"{out}: cannot be repaired in its folder ({reason}\n"
    assert out.read_bytes() == before


def test_a_copy_that_the_disk_cannot_take_is_not_begun(all_on, tmp_path, capsys, monkeypatch):
    """HDF5 reports a failed write once for each chunk, and may crash."""
    out = cut_off(all_on, tmp_path / "run.h5")
    repair.places_of(out).touch()
    free_B, begun, file = {tmp_path: 4096}, [], h5py.File

    def opened(path, *words, **more):
        begun.append(Path(path))
        return file(path, *words, **more)

    def usage(folder):
        return SimpleNamespace(free=free_B.get(folder, 2**40))

    monkeypatch.setattr(repair.shutil, "disk_usage", usage)
    monkeypatch.setattr(repair.h5py, "File", opened)
    assert main(["recover", str(out)]) == 0
    assert "repaired, 4321 rows" in capsys.readouterr().out
    assert not [path for path in begun if path.name.endswith(".recovering")]
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]
    assert main(["recover", str(out)]) == 0
    assert "nothing to repair" in capsys.readouterr().out


@pytest.mark.parametrize("fits", [True, False])
def test_on_a_full_disk_a_copy_made_elsewhere_is_written_over_the_file_if_it_fits(
    all_on, tmp_path, capsys, monkeypatch, fits
):
    out = cut_off(all_on, tmp_path / "run.h5")
    before, copied = out.read_bytes(), repair._copy_whole_rows

    def no_room_beside(path, partial, **more):
        if partial.parent == path.parent:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rows = copied(path, partial, **more)
        if not fits:
            os.truncate(partial, len(before) + 1)
        return rows

    monkeypatch.setattr(repair, "_copy_whole_rows", no_room_beside)
    assert main(["recover", str(out)]) == (0 if fits else 2)
    if not fits:
        assert out.read_bytes() == before
        return
    assert main(["verify", str(out)]) == 0
    assert len(hil.open_run(out).t_s) == 4321
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]


NO_BLOCKS = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # of a sparse file on a full disk


@pytest.mark.parametrize(("end", "code"), [(NO_BLOCKS, 2), (KeyboardInterrupt(), 130)])
def test_a_file_that_was_half_written_over_leaves_the_repaired_copy_and_names_it(
    all_on, tmp_path, capsys, monkeypatch, end, code
):
    out, temporary = cut_off(all_on, tmp_path / "run.h5"), tmp_path / "temporary"
    temporary.mkdir()

    def half(source, target):
        target.write(source.read()[:1000])
        raise end

    free_B = {tmp_path: 4096}
    monkeypatch.setattr(
        repair.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free_B.get(folder, 2**40))
    )
    monkeypatch.setattr(repair.tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(repair.shutil, "copyfileobj", half)
    assert main(["recover", str(out)]) == code
    (copy,) = temporary.glob("*/run.h5")
    said = capsys.readouterr().err
    if end is NO_BLOCKS:
        assert said.startswith(f"{out}: could not be written over (No space left on device)")
        assert f" {copy}: " in said
    assert main(["recover", str(out)]) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"its repaired copy is {copy}: move it here\n")
    shutil.move(copy, out)
    assert main(["recover", str(out)]) == 0
    assert len(hil.open_run(out).t_s) == 4321
    assert {path.name for path in tmp_path.iterdir()} == {"run.h5", "temporary"}


def cut_off(all_on, path):
    """A recording of which a column is shorter than the others."""
    shutil.copy(all_on, path)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        file["ticks/busy_s"].resize(4321, axis=0)
    return path


def appended(path, first, end):
    """Rows first to end of a recording that is being written, flushed and counted."""
    with h5py.File(path, "r+", libver=LIBVER) as file:
        for i, (name, column) in enumerate(file["ticks"].items()):
            column.resize(end, axis=0)
            rows = np.arange(first, end) * (i + 1)
            column[first:end] = (
                rows.reshape(-1, *(1,) * (column.ndim - 1)) % 256 if name != "t_s" else rows * 0.001
            )
        file["recorded_rows"][0] = end


def being_written(all_on, path):
    """The empty recording of a run that has just started."""
    shutil.copy(all_on, path)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        for column in file["ticks"].values():
            column.resize(0, axis=0)
        file.attrs["outcome"] = "running"
    return path


@pytest.mark.parametrize("n_new_bytes", [0, 8, 4096, 7000])
def test_a_chunk_torn_by_a_kill_within_its_rewriting_keeps_every_flushed_row(
    all_on, tmp_path, n_new_bytes, capsys
):
    out = being_written(all_on, tmp_path / "run.h5")
    appended(out, 0, 1250)
    with h5py.File(out) as file:
        per_chunk = file["ticks/t_s"].chunks[0]
        assert 1250 % per_chunk
        wanted = {name: column[:] for name, column in file["ticks"].items()}
        places = {
            name: column.id.get_chunk_info_by_coord((1250 // per_chunk * per_chunk,))
            for name, column in file["ticks"].items() if column.ndim == 1
        }  # fmt: skip
    data = bytearray(out.read_bytes())
    appended(out, 1250, 1400)
    later = out.read_bytes()
    # SIGKILL ends a write between two pages of a file: new bytes before old ones
    for name in ("force_measured_N", "late_s"):
        at, size = places[name].byte_offset, places[name].size
        assert later[at : at + size] != data[at : at + size]
        data[at : at + n_new_bytes] = later[at : at + n_new_bytes]
    # the checksum stands at the end: new beside old bytes where nothing else is new
    if n_new_bytes == 0:
        data[at + size - 4 : at + size] = later[at + size - 4 : at + size]
    out.write_bytes(data)
    assert main(["recover", str(out)]) == 0
    assert main(["verify", str(out)]) == 0
    with h5py.File(out) as file:
        for name, values in wanted.items():
            np.testing.assert_array_equal(file["ticks"][name][:], values, err_msg=name)
        last = file["events"][-1]
    said = last["text"].decode() if last["source"] == b"recover" else ""
    assert ("late_s" in said) == (n_new_bytes != 8)


def test_a_damaged_chunk_in_the_middle_of_a_cut_off_run_is_no_tear(all_on, tmp_path, capsys):
    out = being_written(all_on, tmp_path / "run.h5")
    appended(out, 0, 2500)
    with h5py.File(out) as file:
        at = file["ticks/late_s"].id.get_chunk_info(0).byte_offset
    data = bytearray(out.read_bytes())
    data[at + 100] ^= 1
    out.write_bytes(data)
    assert main(["recover", str(out)]) == 2
    assert "damaged" in capsys.readouterr().err
    assert out.read_bytes() == data


def test_events_and_inputs_that_never_reached_a_full_disk_are_left_out(all_on, tmp_path, capsys):
    out = shutil.copy(all_on, tmp_path / "run.h5")
    with h5py.File(out, "r+", libver=LIBVER) as file:
        n_events, n_inputs = len(file["events"]), len(file["inputs"])
        assert file["recorded_rows"][:].tolist() == [5000, n_events, n_inputs]
        # extended, but the disk took nothing of them
        file["events"].resize(n_events + 2, axis=0)
        file["inputs"].resize(n_inputs + 1, axis=0)
        file.attrs["outcome"] = "running"
    assert hil.open_run(out).sizes["event"] == n_events
    assert main(["recover", str(out)]) == 0
    with h5py.File(out) as file:
        assert len(file["events"]) == n_events
        assert len(file["inputs"]) == n_inputs
        assert (file["events"]["level"] != b"").all()


def test_a_recorder_that_does_not_start_ends_the_run_in_one_line(configs, tmp_path, monkeypatch):
    monkeypatch.setattr(sink, "subprocess", subprocess)  # not a fork
    monkeypatch.setattr(sink, "PYTHON", (shutil.which("false"),))
    with pytest.raises(DeviceError, match="recorder: did not start"):
        hil.run(configs / "miga6/all_on.toml", out=tmp_path / "run.h5")
