import errno
import os
import stat
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pytest

from hil.errors import DeviceError
from hil.loop import tap as taps
from hil.platform import processes

ROW = np.dtype([("n", "<i8"), ("x", "<f8"), ("cells", "u1", (6,)), ("m", "<i8")])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(taps, "_folder", lambda: tmp_path)
    return tmp_path


def row(n):
    return np.array([(n, 0.5 * n, [n % 7] * 6, -n)], dtype=ROW)


def ring_of(capacity):
    return taps.Ring(np.zeros(capacity, dtype=ROW), np.zeros(1, dtype=np.int64))


def check_rows(rows, first):
    np.testing.assert_array_equal(rows["n"], np.arange(first, first + len(rows)))
    np.testing.assert_array_equal(rows["m"], -rows["n"])
    np.testing.assert_array_equal(rows["x"], 0.5 * rows["n"])
    np.testing.assert_array_equal(rows["cells"], np.repeat(rows["n"] % 7, 6).reshape(-1, 6))


def test_an_attached_tap_shows_the_same_rows_events_and_words():
    tap = taps.create(ROW, 16)
    other = taps.attach(tap.path)
    for n in range(12):
        tap.ticks.push(row(n))
    check_rows(other.ticks.read(0)[0], 0)
    event = np.zeros(1, dtype=taps.EVENT)
    event[0] = (1.5, "fault", "guard", "too much")
    tap.events.push(event)
    assert other.events.read(0)[0][0].tolist() == (1.5, b"fault", b"guard", b"too much")
    assert (other.closed, other.recorder_ready, other.recorded, other.lost) == (False, False, 0, 0)
    other.recorded, other.lost = 7, 3
    other.set_recorder_ready()
    tap.close_writer()
    assert (tap.recorded, tap.lost, tap.recorder_ready, other.closed) == (7, 3, True, True)
    tap.unlink()
    tap.unlink()
    assert not tap.path.exists()


def test_what_is_no_tap_is_refused(folder):
    path = folder / "hil-1-0.tap"
    path.write_bytes(b"\0" * 100000)
    with pytest.raises(ValueError, match="is not a tap"):
        taps.attach(path)


WRITER = """
import sys, numpy as np
from pathlib import Path
from hil.loop import tap as taps
tap = taps.attach(Path(sys.argv[1]))
row = np.zeros(1, dtype=np.dtype([(name, "<i8") for name in "abcdefgh"]))
for n in range(int(sys.argv[2])):
    for name in "abcdefgh":
        row[name] = n
    tap.ticks.push(row)
tap.close_writer()
"""


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize("capacity", [2, 64, 7, 4096])
def test_no_torn_row_is_seen_beside_a_writer_in_another_process(capacity):
    wide = np.dtype([(name, "<i8") for name in "abcdefgh"])
    tap = taps.create(wide, capacity)
    n_rows = 40000
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tap.path), str(n_rows)])
    try:
        taken = lost_in_all = seen = 0
        last = False
        while not last:
            last = tap.closed or writer.poll() is not None
            rows, lost = tap.ticks.read(taken)
            np.testing.assert_array_equal(rows["a"], np.arange(len(rows)) + taken + lost)
            for name in "bcdefgh":
                np.testing.assert_array_equal(rows[name], rows["a"])
            taken += lost + len(rows)
            lost_in_all += lost
            seen += len(rows)
        assert taken == n_rows == seen + lost_in_all
    finally:
        writer.kill()
        assert writer.wait() in (0, -9)


def test_taps_of_dead_processes_are_removed_and_others_left(folder):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = {
        f"hil-{dead.pid}-0123abcd.tap": False,
        f"hil-{os.getpid()}-0123abcd.tap": True,
        "hil-1-0123abcd.tap": True,
        f"hil-{dead.pid}-notes.tap": True,
        f"other-{dead.pid}-0123abcd.tap": True,
    }
    for name in names:
        (folder / name).touch()
    tap = taps.create(ROW, 4)
    assert {name: (folder / name).exists() for name in names} == names
    assert tap.path.exists()


OTHER_CONTAINER = """
from pathlib import Path
from hil.platform import processes, shared_memory
where = Path(sys.argv[1])
print(list(shared_memory.of_live_processes(where, "tap")))
shared_memory.sweep(where)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_a_run_in_another_container_that_shares_the_folder_keeps_its_tap(folder):
    """There its process has no number, or one that is another process's."""
    tap = taps.create(ROW, 4)
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c",
         "import sys" + OTHER_CONTAINER, str(folder)],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"
    assert tap.path.exists()


AS_NOBODY = """
import os, sys
from pathlib import Path
from hil.loop import tap
from hil.platform import processes, shared_memory
where, path = Path(sys.argv[1]), Path(sys.argv[2])
tap._folder = lambda: where
os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
found = list(tap.running())
for attack in (lambda: open(path, "rb"), lambda: open(path, "r+b"), lambda: tap.attach(path),
               lambda: tap.Requests(path), path.unlink, lambda: path.rename(where / "x"),
               lambda: open(f"/proc/{os.getppid()}/mem", "rb"), lambda: os.kill(os.getppid(), 15)):
    try:
        attack()
        found.append(attack)
    except (OSError, tap.DeviceError):
        pass
(where / "hil-1-1-ab.tap").symlink_to(path)
(where / "hil-999999-1-cd.tap").write_bytes(b"theirs")
shared_memory.sweep(where)
print(found)
"""


@pytest.fixture
def everybodys_folder():
    """A folder that every user reaches; the folders above `tmp_path` are the tester's alone."""
    with tempfile.TemporaryDirectory(dir=os.environ["PYTEST_DEBUG_TEMPROOT"]) as made:
        where = Path(made)
        where.chmod(0o1777)
        yield where


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_another_user_neither_reads_nor_asks_nor_removes(everybodys_folder, monkeypatch):
    where = everybodys_folder
    monkeypatch.setattr(taps, "_folder", lambda: where)
    tap = taps.create(ROW, 4)
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, str(where), str(tap.path)],
                          capture_output=True, text=True, timeout=600, check=True)  # fmt: skip
    assert done.stdout == "[]\n"
    assert tap.take_requests() == []
    again = taps.create(ROW, 4)
    left = {path.name for path in where.iterdir()}
    assert left == {tap.path.name, again.path.name, "hil-1-1-ab.tap"}
    assert taps.running() == sorted([(os.getpid(), tap.path), (os.getpid(), again.path)])


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.EFBIG, "raise ulimit -f"), (errno.ENOSPC, "free some space")]
)
def test_a_tap_that_does_not_fit_has_its_remedy(folder, monkeypatch, number, remedy):
    def reserve(file, n):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(taps.shared_memory, "reserve", reserve)
    with pytest.raises(DeviceError, match=rf"\): {remedy}, or set a longer loop.period_s"):
        taps.create(ROW, 4)


def test_no_room_for_a_tap_is_one_line_and_leaves_nothing(folder):
    """2^55 rows of 30 bytes are 1.0808639105 10^18 bytes."""
    with pytest.raises(DeviceError, match=r"no room for a tap of 10808639105\d\d MB") as caught:
        taps.create(ROW, 2**55)
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


def test_requests_reach_the_loop_in_order_and_their_taking_is_seen():
    tap = taps.create(ROW, 4)
    assert tap.take_requests() == []
    with taps.Requests(tap.path) as requests:
        assert requests.send("force_reference_N", 2.5) == 1
        assert requests.send("note", text="größer") == 2
        assert requests.taken == 0
        first, second = tap.take_requests()
        assert first == ("force_reference_N", 2.5, "")
        assert (second[0], second[2]) == ("note", "größer")
        assert np.isnan(second[1])
        assert requests.taken == 2
        assert tap.take_requests() == []


def test_one_window_at_a_time_commands_a_run_and_a_killed_one_lets_go():
    tap = taps.create(ROW, 4)
    code = (
        "import sys; from pathlib import Path; from hil.loop import tap as taps\n"
        "requests = taps.Requests(Path(sys.argv[1])); requests.send('note', 1.0)\n"
        "print(flush=True); input()"
    )
    window = subprocess.Popen(
        [sys.executable, "-c", code, str(tap.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        window.stdout.readline()
        with pytest.raises(DeviceError, match="another window already controls"):
            taps.Requests(tap.path)
    finally:
        window.kill()
        window.communicate()
    with taps.Requests(tap.path) as requests:
        assert requests.send("stop") == 2
    assert [name for name, _, _ in tap.take_requests()] == ["note", "stop"]


def test_a_run_that_is_over_takes_no_requests():
    tap = taps.create(ROW, 4)
    with taps.Requests(tap.path) as requests:
        tap.close_writer()
        with pytest.raises(DeviceError, match="the run is over"):
            requests.send("note")
    tap.unlink()
    with pytest.raises(DeviceError, match="the run is over"):
        taps.Requests(tap.path)


def test_running_loops_are_found_and_dead_ones_are_not(folder):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    tap = taps.create(ROW, 4)
    (folder / f"hil-{dead.pid}-0123abcd.tap").touch()
    (folder / f"hil-{dead.pid}-notes.tap").touch()
    assert taps.running() == [(os.getpid(), tap.path)]


def raw_ring(capacity=64):
    sample = np.dtype([("t_s", "<f8"), ("volts", "<f8")])
    tap = taps.create(ROW, 4, {"daq": (sample, capacity)})
    return tap, taps.attach(tap.path).raw["daq"], sample


def test_blocks_of_samples_are_read_as_they_were_written_around_the_rings_end():
    tap, reader, sample = raw_ring(64)
    written = np.zeros(500, dtype=sample)
    written["t_s"], written["volts"] = np.arange(500), -np.arange(500)
    taken, start = [], 0
    for size in (1, 7, 8, 3, 13, 40, 2, 31, 17, 5) * 3:
        tap.raw["daq"].push_many(written[start : start + size])
        start += size
        rows, lost = reader.read(sum(len(part) for part in taken))
        assert lost == 0
        taken.append(rows)
    np.testing.assert_array_equal(np.concatenate(taken), written[:start])
    assert reader.fields == ("t_s", "volts")
    tap.unlink()


def test_the_counts_of_samples_stand_beside_the_words_of_the_run_and_not_in_them():
    tap, reader, sample = raw_ring(64)
    with taps.Requests(tap.path) as requests:
        requests.send("note")
    assert len(tap.take_requests()) == 1
    tap.state, tap.recorded, tap.lost = "armed", 5, 6
    tap.set_recorder_ready()
    tap.close_writer()
    tap.raw["daq"].push_many(np.zeros(3, dtype=sample))
    other = taps.attach(tap.path)
    words = (other.taken, other.state, other.recorded, other.lost)
    assert (*words, reader.written) == (1, "armed", 5, 6, 3)
    assert (other.closed, other.recorder_ready) == (True, True)
    tap.unlink()


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("no tap")])
def test_a_tap_that_cannot_be_mapped_is_one_line_and_is_let_go_of(monkeypatch, error):
    tap = taps.create(ROW, 4)

    def fails(path):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(taps, "attach", fails)
        with pytest.raises(DeviceError, match="the run is over, or uses another version of hil"):
            taps.Requests(tap.path)
    with taps.Requests(tap.path) as requests:  # nobody holds it
        assert requests.send("stop") == 1
    tap.unlink()


def test_samples_that_were_overwritten_or_may_be_are_counted_as_lost():
    """An eighth of the ring may be under the writer's hand while it is read."""
    tap, reader, sample = raw_ring(64)
    block = np.zeros(10, dtype=sample)
    for k in range(10):
        block["t_s"] = np.arange(10 * k, 10 * k + 10)
        tap.raw["daq"].push_many(block)
    rows, lost = reader.read(0)
    assert lost == 100 - (64 - 8)
    np.testing.assert_array_equal(rows["t_s"], np.arange(lost, 100))
    tap.unlink()


def test_a_reader_that_dies_or_sleeps_holds_nobody_up():
    tap = taps.create(ROW, 8)
    code = (
        "import sys; from pathlib import Path; from hil.loop import tap as taps\n"
        "tap = taps.attach(Path(sys.argv[1])); print(flush=True)\n"
        "while True: tap.ticks.read(0)"
    )
    reader = subprocess.Popen([sys.executable, "-c", code, str(tap.path)], stdout=subprocess.PIPE)
    reader.stdout.readline()
    for n in range(100):
        tap.ticks.push(row(n))
    reader.kill()
    reader.communicate()
    for n in range(100, 200):
        tap.ticks.push(row(n))
    # another reader, who slept through it all, is told what it lost
    rows, lost = taps.attach(tap.path).ticks.read(0)
    check_rows(rows, lost)
    assert (len(rows), lost) == (7, 193)


NOBODY = 65534


def as_another_user(what, monkeypatch):
    """What another user of this machine comes to: by the kernel where we may be them, and by us."""
    if os.geteuid() == 0:
        child = os.fork()
        if child == 0:
            code = 0
            try:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                what()
            except BaseException:
                traceback.print_exc()
                code = 1
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    us = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: us + 1)
        what()


def test_a_tap_is_for_its_owner_alone(folder, monkeypatch):
    before = os.umask(0)
    tap = taps.create(ROW, 4)
    os.umask(before)
    folder.chmod(0o777)
    for parent in folder.parents[:3]:
        parent.chmod(0o755)
    assert stat.S_IMODE(tap.path.stat().st_mode) == 0o600

    def attack():
        for opened in (taps.attach, taps.Requests):
            with pytest.raises((DeviceError, PermissionError)):
                opened(tap.path)
        assert taps.running() == []

    as_another_user(attack, monkeypatch)
    with taps.Requests(tap.path) as requests:
        requests.send("stop")
    assert taps.running() == [(os.getpid(), tap.path)]


def test_a_file_that_others_put_there_or_may_write_is_no_run_of_ours(folder, tmp_path):
    tap = taps.create(ROW, 4)
    fake = folder / f"hil-{os.getpid()}-0123abcd.tap"
    fake.write_bytes(tap.path.read_bytes())
    fake.chmod(0o666)
    link = folder / f"hil-{os.getpid()}-4567abcd.tap"
    link.symlink_to(tap.path)
    assert taps.running() == [(os.getpid(), tap.path)]
    with pytest.raises(DeviceError, match="of another user, or others may write it"):
        taps.attach(fake)
    with pytest.raises(DeviceError, match="cannot be opened"):
        taps.Requests(link)


def test_what_a_killed_process_left_is_swept_even_when_its_number_is_used_again(folder):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    since = processes.started(os.getpid())
    names = {
        f"hil-{dead.pid}-123-0123abcd.tap": False,
        f"hil-{dead.pid}-123-0123abcd.supply": False,
        f"hil-{os.getpid()}-{int(since) - 1}-0123abcd.tap": False,  # another one had our number
        f"hil-{os.getpid()}-{since}-0123abcd.supply": True,
    }
    for name in names:
        (folder / name).touch()
    link = folder / f"hil-{dead.pid}-123-4567abcd.tap"
    link.symlink_to(folder / "elsewhere")
    taps.create(ROW, 4)
    assert {name: (folder / name).exists() for name in names} == names
    assert link.is_symlink()  # we made no such thing


def test_another_users_files_are_left_where_they_are(folder, monkeypatch):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    theirs = folder / f"hil-{dead.pid}-123-0123abcd.tap"
    theirs.touch()
    us = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    taps.create(ROW, 4)
    assert theirs.exists()


def test_a_name_that_is_taken_is_not_written_through(folder, monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)
    target = folder / "precious"
    target.write_text("mine")
    of = f"{os.getpid()}-{processes.started(os.getpid())}"
    name = f"hil-{of}-ns{os.stat('/proc/self/ns/pid').st_ino}-{'00' * 8}.tap"
    (folder / name).symlink_to(target)
    with pytest.raises(FileExistsError):
        taps.create(ROW, 4)
    assert target.read_text() == "mine"


class Watched:
    """Memory that notes how many rows are counted whenever some are written."""

    def __init__(self, memory, written):
        self._memory, self._written, self.counts = memory, written, []

    def __setitem__(self, at, data):
        self.counts.append(int(self._written[0]))
        self._memory[at] = data


def test_rows_are_counted_once_all_of_them_are_written(monkeypatch):
    """Also those that begin anew at the start of the ring."""
    rows = np.zeros(8, dtype=[("x", "<f8")])
    ring = taps.Ring(rows, np.zeros(1, dtype=np.int64), 4)
    watched = Watched(ring._bytes, ring._written)
    monkeypatch.setattr(ring, "_bytes", watched)
    ring.push_many(np.zeros(4, dtype=rows.dtype))
    ring.push_many(np.zeros(3, dtype=rows.dtype))
    ring.push_many(np.zeros(3, dtype=rows.dtype))
    assert sorted(set(watched.counts)) == [0, 4, 7]
    assert ring.written == 10
