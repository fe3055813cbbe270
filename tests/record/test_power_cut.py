"""A recording after a power cut: of the pages written since the last sync, any may be on disk.

The recorder's own writer fills a file as in a run. What a disk may hold after a power cut is made
from the file's bytes at the last sync and at the cut, page by page.
"""

import base64
import itertools
import json
import random
import zlib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import pytest

from hil.errors import ConfigError
from hil.loop import tap as taps
from hil.loop.frame import Column, Frame
from hil.record import layout, places, repair
from hil.record.append_log import AppendLog
from hil.record.raw_samples import RawSamples
from hil.record.recorder import Writer
from hil.record.repair import recover

PAGE_B = 4096
SUPERBLOCK_B = 48  # of which recovery clears the flags of a writer
RATE = 4  # samples of the fast device in a row
SAMPLE = np.dtype([("t_s", float), ("raw_V", float)])


class Cut:
    """A recording that is written until the power goes."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        cells = Column("cells", "1", "commanded", "", n_cells=6)
        names = ("t_s", "force_measured_N", "force_model_N", "busy_s", "late_s")
        self.frame = Frame([*(Column(name, "s", "timing", "") for name in names), cells])
        samples = RawSamples(
            rate_Hz=4000.0, per_tick=RATE, dtype=SAMPLE, units={"t_s": "s", "raw_V": "V"},
            simulated=True,
        )  # fmt: skip
        self.path = folder / "run.h5"
        contents = layout.Contents(self.frame.columns, {}, rows_per_chunk=100, raw={"daq": samples})
        layout.create(self.path, contents)
        self.tap = taps.create(self.frame.dtype, 4096, raw={"daq": (SAMPLE, RATE * 4096)})
        self.n = 0

    def push(self, n):
        for k in range(self.n, self.n + n):
            self.frame.values[:] = np.arange(1, 6) * k
            self.frame.cells("cells")[:] = k % 2
            self.tap.ticks.push(self.frame.row)
            samples = np.zeros(RATE, SAMPLE)
            samples["t_s"] = RATE * k + np.arange(RATE)
            samples["raw_V"] = -samples["t_s"]
            self.tap.raw["daq"].push_many(samples)
        self.n += n

    def write_until_the_cut(self):
        """Returns rows at the last sync, bytes of the file then and at the cut."""
        empty = self.path.read_bytes()
        with h5py.File(self.path, "r+", libver=layout.LIBVER, locking=False) as file:
            file.swmr_mode = True
            writer, log = Writer(self.tap, file), places.Places(self.path, file, empty)
            for _ in range(self.random.randrange(1, 6)):
                for _ in range(self.random.randrange(1, 6)):
                    self._write(writer)
                log.add(writer.flushed)
            synced, n_synced = self.path.read_bytes(), self.n
            for _ in range(self.random.randrange(1, 6)):
                self._write(writer)
            log.close()
            return n_synced, synced, self.path.read_bytes()

    def _write(self, writer):
        self.push(self.random.randrange(1, 400))
        writer.take()
        writer.flush()


def after_the_cut(synced, later, chance):
    """What may be on disk: each changed page old or new, the file long or short."""
    size_B = chance.choice([len(synced), len(later)])
    data = bytearray(synced.ljust(size_B, b"\0"))
    for at in range(0, size_B, PAGE_B):
        if chance.random() < 0.5:
            data[at : at + PAGE_B] = later[at : min(at + PAGE_B, size_B)]
    return data


@cache
def cut(seed):
    """What is on disk after a power cut, by name, and rows at the last sync."""
    with TemporaryDirectory() as folder:
        made = Cut(Path(folder), seed)
        try:
            n, synced, later = made.write_until_the_cut()
        finally:
            made.tap.unlink()
        made.path.write_bytes(after_the_cut(synced, later, made.random))
        return {file.name: file.read_bytes() for file in Path(folder).iterdir()}, n


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a recording of which the power was cut, and starts this computer again."""
    monkeypatch.setattr(places, "boot", lambda: "the next one")

    def files(seed):
        on_disk, n = cut(seed)
        for name, content in on_disk.items():
            (tmp_path / name).write_bytes(content)
        return tmp_path / "run.h5", n

    return files


@pytest.mark.slow_beyond(12)
@pytest.mark.parametrize("seed", range(200))
def test_every_row_that_was_synced_is_kept(make, seed):
    path, n = make(seed)
    assert recover(path) == n
    with h5py.File(path) as file:
        assert file[layout.RECORDED][:2].tolist() == [n, 1]
        for k, name in enumerate(("t_s", "force_measured_N", "force_model_N", "busy_s", "late_s")):
            assert (file["ticks"][name][:] == (k + 1) * np.arange(n)).all()
        assert (file["ticks/cells"][:] == (np.arange(n) % 2)[:, None]).all()
        t_s, raw_V = (file[f"raw/daq/{name}"][:] for name in ("t_s", "raw_V"))
        assert (raw_V == -t_s).all()
        assert len(t_s) == RATE * n
        assert b"rows up to the last sync are kept" in file["events"]["text"][0]
        assert file.attrs["outcome"] == "recovered"
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def lines_of(path):
    return [json.loads(line) for line in layout.places_of(path).read_bytes().splitlines()]


def with_log(path, lines):
    """Write another log, whose checksums are right."""
    layout.places_of(path).unlink()
    with AppendLog(layout.places_of(path)) as log:
        for line in lines:
            log.add({key: value for key, value in line.items() if key != "crc"})


def _foreign(lines):
    lines[-1]["chunks"] = {name: [8 + at for at in places] for name, places
                           in lines[-1]["chunks"].items()}  # fmt: skip
    lines[1:] = [lines[-1] | {"rows": {"ticks": 500, "events": 0, "inputs": 0, "raw/daq": 2000}}]


def _set(key, value):
    def change(lines):
        lines[-1][key] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines.__delitem__(slice(1, None)),
        lambda lines: lines[0].pop("empty"),
        lambda lines: lines[0].update(empty="no base 85 \u00e9"),
        lambda lines: lines[0].update(empty=base64.b85encode(zlib.compress(bytes(2**27))).decode()),
        _foreign,
        _set("rows", 7),
        _set("rows", {"ticks": 10**12}),
        _set("rows", {"ticks": -1}),
        _set("rows", {"nothing": 5}),
        _set("chunks", {"/ticks/t_s": [0]}),
        _set("chunks", {"/ticks/t_s": [-1]}),
        _set("chunks", {"/ticks/t_s": [2**62]}),
        _set("chunks", None),
    ],
)
def test_a_log_that_is_not_of_the_recording_leaves_it_as_it_is(make, change):
    path, _ = make(0)
    lines = lines_of(path)
    change(lines)
    with_log(path, lines)
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="not a log of this recording"):
        recover(path)
    is_as_before = path.read_bytes()[SUPERBLOCK_B:] == before[SUPERBLOCK_B:]
    assert is_as_before
    assert sorted(one.name for one in path.parent.iterdir()) == ["run.h5", "run.h5.places"]


def offsets_of(path, name):
    """Offsets of a column's chunks by the log."""
    return [at for line in lines_of(path)[1:] for at in line["chunks"].get(name, [])]


def test_a_chunk_whose_checksum_does_not_match_is_not_taken(make):
    path, n = make(0)
    assert n > 100
    data = bytearray(path.read_bytes())
    data[offsets_of(path, "/ticks/busy_s")[0] + 8] ^= 1
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="not a log of this recording"):
        recover(path)


def test_a_last_chunk_in_which_time_goes_back_is_not_taken(make):
    """It has no checksum of its own yet."""
    path, n = make(0)
    assert n % 100 > 1
    data = bytearray(path.read_bytes())
    at = offsets_of(path, "/ticks/t_s")[-1]
    data[at + 8 : at + 16] = np.float64(-1.0).tobytes()
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="not a log of this recording"):
        recover(path)


def test_rows_that_only_the_tables_have_are_not_kept_after_a_power_cut(tmp_path, monkeypatch):
    """HDF5 reads the tables; of one column the last chunk is still that of the last sync."""
    cut = Cut(tmp_path, 3)
    n, synced, later = cut.write_until_the_cut()
    cut.tap.unlink()
    with h5py.File(cut.path, "r") as file:
        whole = file.attrs["outcome"]
        chunk = file["ticks/late_s"].id.get_chunk_info_by_coord((cut.n // 100 * 100,))
    assert (whole, cut.n % 100 > 0, cut.n > n) == ("running", True, True)
    data = bytearray(later)
    at = chunk.byte_offset
    old = synced[at : at + chunk.size].ljust(chunk.size, b"\0")
    data[at : at + chunk.size] = old
    cut.path.write_bytes(data)
    monkeypatch.setattr(places, "boot", lambda: "the next one")
    monkeypatch.setattr(repair, "open_h5", h5py.File)  # it has no experiment
    assert recover(cut.path) == n


def test_a_sync_whose_line_is_not_written_moves_no_row(tmp_path, monkeypatch):
    """Of five syncs each other line fails: the last one names all chunks so far."""
    cut = Cut(tmp_path, 0)
    add, calls = AppendLog.add, itertools.count()

    def failing(log, entry):
        if next(calls) % 2:
            raise ConfigError("no space")
        add(log, entry)

    monkeypatch.setattr(AppendLog, "add", failing)
    empty = cut.path.read_bytes()
    with h5py.File(cut.path, "r+", libver=layout.LIBVER, locking=False) as file:
        file.swmr_mode = True
        writer, log = Writer(cut.tap, file), places.Places(cut.path, file, empty)
        for _ in range(6):
            cut._write(writer)
            log.add(writer.flushed)
        log.close()
    cut.tap.unlink()
    lines = lines_of(cut.path)
    assert len(lines) > 2
    part = tmp_path / "part.h5"
    n = places.copy_synced_rows(cut.path, part)
    with h5py.File(part) as file:
        assert (file["ticks/force_measured_N"][:] == 2.0 * np.arange(n)).all()


def test_what_stands_in_the_place_of_the_log_ends_no_run(tmp_path):
    cut = Cut(tmp_path, 0)
    layout.places_of(cut.path).mkdir()
    n, *_ = cut.write_until_the_cut()
    cut.tap.unlink()
    assert cut.n >= n > 0
    layout.finish(cut.path, "complete", {})


def test_a_new_recording_of_the_name_has_no_log_of_the_older_one(make):
    path, _ = make(0)
    layout.create(path, layout.Contents([Column("t_s", "s", "timing", "")], {}, rows_per_chunk=16))
    assert not layout.places_of(path).exists()


def test_a_recording_that_ended_has_no_log_and_is_on_disk(make, monkeypatch):
    path, _ = make(1)
    recover(path)
    layout.places_of(path).touch()
    synced = []
    monkeypatch.setattr(layout.os, "fsync", lambda number: synced.append(layout.os.fstat(number)))
    layout.finish(path, "complete", {})
    assert [one.st_ino for one in synced] == [path.stat().st_ino]
    assert not layout.places_of(path).exists()
