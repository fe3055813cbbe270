"""A recording whose texts are torn: HDF5 would read it for ever."""

import gzip
import random
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.errors import ConfigError
from hil.record.global_heap import torn_heap_at
from hil.record.layout import LIBVER
from hil.record.read import open_run
from hil.record.repair import faults_of

MADE_BEFORE = sorted((Path(__file__).parent / "made_before").glob("*.h5.gz"))


def heaps_of(path):
    """Begin and end of every heap, by their signature and size."""
    data, at, heaps = path.read_bytes(), 0, []
    while (at := data.find(b"GCOL\1\0\0\0", at)) >= 0:
        heaps.append((at, at + int.from_bytes(data[at + 8 : at + 16], "little")))
        at += 8
    return heaps


def zeroed(path, begin, end):
    data = bytearray(path.read_bytes())
    data[begin:end] = bytes(end - begin)
    path.write_bytes(data)


@pytest.fixture
def torn(all_on, tmp_path):
    """A recording of which the second half of its largest heap never reached the disk."""
    path = Path(shutil.copy(all_on, tmp_path / "torn.h5"))
    begin, end = max(heaps_of(path), key=lambda heap: heap[1] - heap[0])
    zeroed(path, (begin + end) // 2, end)
    assert torn_heap_at(path) == begin  # or a test that opens it would not end
    return path


def test_hdf5_itself_reads_it_for_ever(torn):
    # If this fails, HDF5 was mended, and `global_heap` can go.
    code = f"import h5py; f = h5py.File({str(torn)!r}); print(flush=True); [*f.attrs.values()]"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as reader:
        reader.stdout.readline()
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                reader.wait(1.0)
        finally:
            reader.kill()


@pytest.mark.parametrize("command", ["verify", "recover"])
def test_a_command_refuses_it_in_one_line(command, torn):
    words = [sys.executable, "-m", "hil", command, str(torn)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    lines = (done.stdout + done.stderr).splitlines()
    assert [line for line in lines if "torn.h5" in line and "damaged" in line], lines
    assert "Traceback" not in done.stderr


def test_python_names_where_it_is(torn):
    begin, _ = max(heaps_of(torn), key=lambda heap: heap[1] - heap[0])
    with pytest.raises(ConfigError, match=rf"torn.h5: damaged \(its texts at byte {begin}\)"):
        open_run(torn)
    assert faults_of(torn) == [
        f"damaged (its texts at byte {begin}): hil recover repairs one that was cut off; copy a "
        "bad copy again"
    ]


def test_a_file_that_becomes_torn_is_noticed(torn, all_on):
    bad = torn.read_bytes()
    shutil.copy(all_on, torn)
    open_run(torn)
    torn.write_bytes(bad)
    with pytest.raises(ConfigError, match="its texts"):
        open_run(torn)


@pytest.mark.parametrize("path", MADE_BEFORE, ids=lambda path: path.stem)
def test_recordings_of_earlier_versions_are_whole(path, tmp_path):
    recording = tmp_path / "run.h5"
    recording.write_bytes(gzip.decompress(path.read_bytes()))
    assert heaps_of(recording)
    assert torn_heap_at(recording) is None


def test_texts_at_the_end_of_a_long_file_are_looked_at(torn, tmp_path):
    path = tmp_path / "long.h5"
    path.write_bytes(bytes(20 * 2**20) + torn.read_bytes())
    begin, _ = max(heaps_of(torn), key=lambda heap: heap[1] - heap[0])
    assert torn_heap_at(path) == 20 * 2**20 + begin


@pytest.mark.parametrize("more_B", [0, -2100, -2052])  # at 8 MiB is the second part, or within it
def test_texts_in_the_middle_are_found_where_all_of_a_file_is_looked_at(torn, tmp_path, more_B):
    path, before_B = tmp_path / "long.h5", 8 * 2**20 + more_B
    path.write_bytes(bytes(before_B) + torn.read_bytes() + bytes(20 * 2**20))
    begin, _ = max(heaps_of(torn), key=lambda heap: heap[1] - heap[0])
    assert torn_heap_at(path, everywhere=True) == before_B + begin


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_texts_written_over_many_times_leave_no_torn_heap(seed, tmp_path_factory):
    path = tmp_path_factory.mktemp("heap") / "file.h5"
    draw = random.Random(seed)
    for _ in range(4):
        with h5py.File(path, "a", libver=draw.choice([LIBVER, None])) as file:
            for _ in range(60):
                key, what = f"a{draw.randrange(8)}", draw.random()
                if what < 0.6:
                    file.attrs[key] = draw.choice("xyz") * int(10 ** draw.uniform(0, 4.5))
                elif what < 0.8:
                    file.attrs.pop(key, None)
                elif key in file:
                    del file[key]
                else:
                    file[key] = np.zeros(draw.randrange(1, 9000), "u1")
        assert torn_heap_at(path) is None


@pytest.mark.parametrize(("length", "at"), [(0, 0), (15, 0), (16, None)])
def test_a_free_rest_shorter_than_its_own_head_is_torn(tmp_path, length, at):
    path = tmp_path / "free.h5"
    rest = bytes(8) + length.to_bytes(8, "little")
    path.write_bytes(b"GCOL\1\0\0\0" + (32).to_bytes(8, "little") + rest)
    assert torn_heap_at(path) == at


def test_a_heap_that_claims_more_than_the_file_ends_the_search(tmp_path):
    path = tmp_path / "cut.h5"
    path.write_bytes(b"GCOL\1\0\0\0" + (2**63).to_bytes(8, "little") + b"\1" + bytes(15))
    assert torn_heap_at(path) is None
    path.write_bytes(b"GCOL\1\0\0\0")
    assert torn_heap_at(path) is None
