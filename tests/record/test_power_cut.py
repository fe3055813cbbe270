"""A recording after a power cut: of the pages written since the last sync, any may be on disk.

The recorder's own writer fills a file as in a run. What a disk may hold after a power cut is made
from the file's bytes at the last sync and at the cut, page by page.
"""

import random

import h5py
import numpy as np
import pytest

from hil.errors import ConfigError
from hil.loop import tap as taps
from hil.loop.frame import Column, Frame
from hil.record import layout, places
from hil.record.raw_samples import RawSamples
from hil.record.recorder import Writer
from hil.record.repair import recover

PAGE_B = 4096
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


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a recording of which the power was cut, and starts this computer again."""
    cuts = []

    def cut(seed):
        made = Cut(tmp_path, seed)
        cuts.append(made)
        n, synced, later = made.write_until_the_cut()
        made.path.write_bytes(after_the_cut(synced, later, made.random))
        monkeypatch.setattr(places, "boot", lambda: "the next one")
        return made.path, n

    yield cut
    for made in cuts:
        made.tap.unlink()


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
        assert b"the power was lost" in file["events"]["text"][0]
        assert file.attrs["outcome"] == "recovered"
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_without_a_sync_the_file_stays_as_it_is(make, monkeypatch):
    path, _ = make(0)
    log = layout.places_of(path)
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="before its first sync to disk"):
        recover(path)
    assert path.read_bytes() == before


def test_a_recording_that_ended_has_no_log_and_is_on_disk(make, monkeypatch):
    path, _ = make(1)
    recover(path)
    layout.places_of(path).touch()
    synced = []
    monkeypatch.setattr(layout.os, "fsync", lambda number: synced.append(layout.os.fstat(number)))
    layout.finish(path, "complete", {})
    assert [one.st_ino for one in synced] == [path.stat().st_ino]
    assert not layout.places_of(path).exists()
