import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.errors import ConfigError
from hil.platform import locks
from hil.record import read, superblock
from hil.record.held import held, may_be_held
from hil.record.layout import LIBVER
from hil.record.read import DamagedError, open_run


def block_of(path):
    head = path.read_bytes()[:64]
    size = 12 + 4 * head[9]
    return head[:size], head[size : size + 4]


@pytest.mark.parametrize("n", [0, 1, 1000, 100000])
def test_the_checksum_is_the_one_hdf5_writes(n, tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=LIBVER) as file:
        file["x"] = np.arange(n)
    block, stored = block_of(path)
    assert superblock.checksum(block) == int.from_bytes(stored, "little")


def test_the_checksum_is_jenkins_lookup3():
    # hashlittle("", 0) and hashlittle("Four score and seven years ago", 0), printed in lookup3.c
    assert superblock.checksum(b"") == 0xDEADBEEF
    assert superblock.checksum(b"Four score and seven years ago") == 0x17770551


def marked(path, flags):
    """Write the mark that a killed writer leaves, with HDF5's own checksum."""
    data = bytearray(path.read_bytes())
    size = 12 + 4 * data[9]
    data[11] = flags
    data[size : size + 4] = superblock.checksum(bytes(data[:size])).to_bytes(4, "little")
    path.write_bytes(data)


@pytest.mark.parametrize("flags", [1, 4, 5])
def test_a_marked_file_opens_again_once_cleared(flags, tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w", libver=LIBVER) as file:
        file["x"] = np.arange(100)
    before = path.read_bytes()
    marked(path, flags)
    with pytest.raises(OSError, match=r"already open|consistency"):
        h5py.File(path, "r+")
    assert superblock.marked_end_B(path) == len(before)
    assert superblock.clear_flags(path)
    assert path.read_bytes() == before
    assert not superblock.clear_flags(path)
    assert not superblock.marked_end_B(path)


def test_a_marked_file_that_ends_before_its_writer_began_is_refused_at_once(tmp_path):
    """HDF5 would wait for minutes for a writer that mends it."""
    path = tmp_path / "cut.h5"
    with h5py.File(path, "w", libver=LIBVER) as file:
        file["x"] = np.arange(1000)
    marked(path, 5)
    size_B = path.stat().st_size
    os.truncate(path, size_B - 1)
    with pytest.raises(DamagedError, match=f"only {size_B - 1} of its {size_B} bytes are here"):
        open_run(path)


def test_a_reader_waits_while_the_recorder_opens_the_file(hostile, monkeypatch):
    """For a moment HDF5 has it open for writing and lets nobody read."""
    rows = open_run(hostile).sizes["tick"]
    marked(hostile, 1)
    waits = []

    def meanwhile(seconds):
        if seconds == 0.01:  # and not for a lock
            waits.append(seconds)
        if len(waits) == 3:
            marked(hostile, 5)

    monkeypatch.setattr(read.time, "sleep", meanwhile)
    with held(hostile):
        assert open_run(hostile).sizes["tick"] == rows
    assert len(waits) == 3


def test_a_reader_waits_while_the_recorder_ends_the_file(hostile, monkeypatch):
    """It marks where the file will end before it has written so far."""
    rows = open_run(hostile).sizes["tick"]
    marked(hostile, 5)
    whole = hostile.read_bytes()
    os.truncate(hostile, len(whole) - 1)
    monkeypatch.setattr(read.time, "sleep", lambda seconds: hostile.write_bytes(whole))
    assert open_run(hostile).sizes["tick"] == rows


def test_a_recorder_that_does_not_get_the_file_open_is_not_waited_for_long(hostile, monkeypatch):
    marked(hostile, 1)
    now = iter(0.1 * k for k in range(1000))
    monkeypatch.setattr(read.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(read.time, "sleep", lambda seconds: None)
    with (
        held(hostile),
        pytest.raises(DamagedError, match="hil recover repairs one that was cut off"),
    ):
        open_run(hostile)
    assert 0.5 < next(now) < 1.0


@pytest.mark.parametrize("flags", [1, 4, 5])
def test_a_recorder_that_was_killed_is_not_waited_for(hostile, monkeypatch, flags):
    whole = open_run(hostile)
    marked(hostile, flags)
    before = hostile.read_bytes()
    monkeypatch.setattr(read.time, "sleep", lambda seconds: pytest.fail("waits"))
    assert open_run(hostile).identical(whole)
    assert hostile.read_bytes() == before


def test_rows_beyond_the_end_that_a_killed_recorder_marked_are_read(hostile):
    whole = open_run(hostile)
    data = bytearray(hostile.read_bytes())
    data[28:36] = (len(data) // 2).to_bytes(8, "little")  # the end-of-file address
    hostile.write_bytes(data)
    marked(hostile, 5)
    assert open_run(hostile).identical(whole)


def test_a_hostile_recording_that_looks_left_open_is_refused_too(hostile):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/")
    marked(hostile, 5)
    for _ in range(2):
        with pytest.raises(ConfigError, match="elsewhere"):
            open_run(hostile)


def test_a_damaged_recording_of_a_killed_recorder_is_refused_at_once(hostile):
    """HDF5 would read it again and again, in case its writer is about to mend it."""
    marked(hostile, 5)
    data = bytearray(hostile.read_bytes())
    data[data.rindex(b"OHDR") + 20] ^= 1
    hostile.write_bytes(data)
    words = [sys.executable, "-m", "hil", "verify", str(hostile)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    assert "damaged" in done.stdout + done.stderr
    assert done.returncode


def test_a_reader_that_asks_whether_a_run_holds_the_file_keeps_no_run_from_holding_it(hostile):
    with hostile.open("rb") as reader, ThreadPoolExecutor(1) as others:
        locks.acquire(reader)
        closed = others.submit(lambda: (time.sleep(0.003), reader.close()))
        with held(hostile):
            closed.result()
            assert may_be_held(hostile)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100), st.booleans())
def test_whatever_is_no_sound_superblock_is_left_alone(tmp_path_factory, data, signed):
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(b"\x89HDF\r\n\x1a\n\x03" + data if signed else data)
    before = path.read_bytes()
    assert not superblock.marked_end_B(path)
    assert not superblock.clear_flags(path)
    assert path.read_bytes() == before
