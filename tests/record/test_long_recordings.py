"""Recordings that are longer than memory: what reads them has a bounded number of rows at once."""

import sys

import h5py
import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from hil.__main__ import main
from hil.identification.wire_loops.recorded import is_loop
from hil.identification.wires import is_simulated
from hil.loop.channels import known_before
from hil.loop.frame import CELL_UNKNOWN
from hil.procedures.on_rig import simulated
from hil.record import layout, overview, read, repair
from hil.record.layout import LIBVER
from hil.record.read import open_run
from hil_gui import pyramid

BLOCK = 64


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 64 rows, overviews from 200 rows on; yields the most rows of one read."""
    most = [0]
    whole_read = h5py.Dataset.__getitem__

    def counted(dataset, key):
        values = whole_read(dataset, key)
        if dataset.name.startswith("/ticks/") and isinstance(values, np.ndarray):
            most[0] = max(most[0], len(values))
        return values

    monkeypatch.setattr(h5py.Dataset, "__getitem__", counted)
    monkeypatch.setattr(read, "BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(overview, "BLOCK_ROWS", BLOCK)
    monkeypatch.setattr(overview, "ROWS_MAX", 200)
    monkeypatch.setattr(overview, "STRETCHES", 200)
    monkeypatch.setattr(repair, "AT_ONCE", BLOCK)
    return most


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("kind", ["csv", "parquet", "mdf", "mcap"])
def test_an_export_has_a_block_of_rows_in_memory(all_on, tmp_path, kind, small_blocks):
    assert main(["export", str(all_on), "--to", kind, "--out", str(tmp_path / "run")]) == 0
    assert small_blocks == [BLOCK]


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("words", [["verify"], ["report", "--out", "there"],
                                   ["figure", "--out", "f.png"]])  # fmt: skip
def test_what_looks_at_all_rows_of_a_long_run_has_a_block_of_them_in_memory(
    all_on, tmp_path, monkeypatch, words, small_blocks
):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run.h5"
    run.write_bytes(all_on.read_bytes())
    assert main([words[0], str(run), *words[1:]]) == 0
    assert BLOCK / 2 < small_blocks[0] <= BLOCK
    if words[0] == "report":
        page = (tmp_path / "there/run.html").read_text()
        n = len(h5py.File(all_on)["ticks/t_s"])
        assert f"of {n} rows: first, least and largest of every" in page
        assert "band of the model" in page


def test_a_repair_has_a_chunk_of_rows_in_memory(all_on, tmp_path, small_blocks):
    run = tmp_path / "run.h5"
    run.write_bytes(all_on.read_bytes())
    with h5py.File(run, "r+", libver=LIBVER) as file:
        file.attrs["outcome"] = "running"
        n, length = len(file["ticks/t_s"]), file["ticks/t_s"].chunks[0]
    assert repair.recover(run) == n > length
    assert small_blocks == [length]
    with h5py.File(run) as copy, h5py.File(all_on) as file:
        for name, column in file["ticks"].items():
            np.testing.assert_array_equal(copy["ticks"][name][:], column[:])


def test_a_column_that_is_open_takes_little_memory(all_on):
    """HDF5 keeps the last chunks of each: with 8 MiB, hundreds of columns would take gigabytes."""
    with read.open_h5(all_on) as file:
        assert file.id.get_access_plist().get_cache()[2] == layout.CACHE_B == 2**20


def test_what_a_recording_is_of_is_known_without_its_rows(all_on, small_blocks):
    assert is_simulated([all_on])
    assert not is_loop(all_on)
    assert simulated(all_on)
    assert small_blocks == [0]


@pytest.mark.slow
def test_blocks_end_to_end_are_the_recording(all_on, tmp_path, monkeypatch):
    out = tmp_path / "run.parquet"
    monkeypatch.setattr(read, "BLOCK_ROWS", BLOCK)
    assert main(["export", str(all_on), "--to", "parquet", "--out", str(out)]) == 0
    run, table = open_run(all_on), parquet.read_table(out)
    assert parquet.ParquetFile(out).num_row_groups == -(-run.sizes["tick"] // BLOCK)
    for name in ("t_s", "force_measured_N", "fault_bits"):
        np.testing.assert_array_equal(table[name].to_numpy(), run[name].values)


def test_an_overview_has_every_peak_and_only_recorded_rows(all_on, small_blocks):
    seen, run = overview.view_of(all_on), open_run(all_on)
    (all_on.parent / f"{all_on.name}.overview").unlink()
    assert seen.sizes["tick"] < run.sizes["tick"]
    rows = np.searchsorted(run.t_s.values, seen.t_s.values)
    for name in run.data_vars:
        if run[name].dims[0] == "tick":
            np.testing.assert_array_equal(seen[name].values, run[name].values[rows])
    residual = run.force_measured_N - run.force_model_N
    long = -(-run.sizes["tick"] // 200)
    for curve in (run.force_measured_N, run.force_model_N, residual):
        y = curve.values
        for first in range(0, len(y), long):
            part = y[first : first + long]
            mine = y[rows[(rows >= first) & (rows < first + long)]]
            assert (mine.min(), mine.max()) == (part.min(), part.max())
    on = np.diff((run.cells_reported.values == 1).sum(axis=1))
    assert np.abs(np.diff((seen.cells_reported.values == 1).sum(axis=1))).sum() == np.abs(on).sum()


@pytest.mark.parametrize("block", [64, 65_536])
def test_an_overview_has_the_switchings_of_cells_that_are_reported_every_fourth_row(
    all_on, tmp_path, small_blocks, monkeypatch, block
):
    """Reports and the rows without one between them were taken for changes, and filled the room."""
    monkeypatch.setattr(overview, "BLOCK_ROWS", block)
    monkeypatch.setattr(overview, "STRETCHES", 25)
    run = tmp_path / "run.h5"
    run.write_bytes(all_on.read_bytes())
    with h5py.File(run, "r+") as file:
        cells = file["ticks/cells_reported"]
        row, cell = np.indices(cells.shape)
        on = row // 130 % 2
        cells[...] = np.where(row % 4 == 2 * (cell > 2), on, CELL_UNKNOWN)
    seen, whole = overview.view_of(run), open_run(run)
    at = np.searchsorted(seen.t_s.values, whole.t_s.values, side="right") - 1
    shown = known_before(seen.cells_reported.values)[at]
    np.testing.assert_array_equal(shown == 1, known_before(whole.cells_reported.values) == 1)


def test_a_part_of_a_long_run_has_all_its_rows(all_on, small_blocks):
    part = overview.view_of(all_on, 0.1, 0.25)
    assert part.sizes["tick"] == 151
    assert "overview" not in part.attrs


@pytest.mark.slow
def test_an_overview_is_kept_and_made_again_when_the_recording_changes(
    all_on, tmp_path, small_blocks
):
    run = tmp_path / "run.h5"
    run.write_bytes(all_on.read_bytes())
    overview.view_of(run)
    small_blocks[0] = 0
    first = overview.view_of(run)
    assert small_blocks == [0], "nothing was read again"
    with h5py.File(run, "r+") as file:
        file["ticks/force_measured_N"][7] = 99.0
    again = overview.view_of(run)
    assert first.force_measured_N.max() < 99.0 == again.force_measured_N.max()
    beside = tmp_path / "run.h5.overview"
    with np.load(beside) as kept:
        rows = dict(kept)
    spoilt = [{"t_s": rows["t_s"][:5]}, {"t_s": rows["t_s"].astype(object)},
              {"force_measured_N": rows["t_s"].reshape(-1, 1)}, {"late_s": None}]  # fmt: skip
    for other in spoilt:  # another's file, or one that was changed
        np.savez(beside, **{k: v for k, v in (rows | other).items() if v is not None})
        assert overview.view_of(run).identical(again)
    np.savez_compressed(beside, **rows)
    assert overview.view_of(run).identical(again)
    beside.write_bytes(b"damaged")
    assert overview.view_of(run).identical(again)


def test_of_a_long_run_the_first_rows_are_validated_and_it_says_so(
    all_on, tmp_path, small_blocks, monkeypatch, capsys
):
    monkeypatch.setattr(overview, "ROWS_MAX", 1500)
    n = len(h5py.File(all_on)["ticks/t_s"])
    main(["report", str(all_on), "--validate", "--out", str(tmp_path)])
    said = f"the first 1500 of {n} rows"
    assert said in (tmp_path / "all_on-validation.html").read_text()
    assert said in capsys.readouterr().out
    assert small_blocks == [1500]


def test_a_window_keeps_the_peaks_of_a_long_run_in_fixed_memory(all_on, monkeypatch):
    feed_module = pytest.importorskip("hil_gui.feed")
    monkeypatch.setattr(feed_module, "LONG", 200)
    monkeypatch.setattr(feed_module, "LIVE_CAPACITY", 50)
    monkeypatch.setattr(pyramid, "FEWEST", 64)
    feed = feed_module.Feed(feed_module.File(all_on))
    assert list(feed.load())[-1] == 1.0
    with h5py.File(all_on) as file:
        force_N = file["ticks/force_measured_N"][:]
    data = feed.data
    assert data.n_rows == len(force_N)
    assert data.no_band == feed_module.TOO_LONG
    assert len(data.values._levels[0].t_s) <= 2 * 200
    bins = data.values.view(0.0, data.last_s, 50)
    assert np.nanmax(bins.high[data.index("force_measured_N")]) == force_N.max()


def test_a_window_shows_no_events_that_a_full_disk_never_took(all_on, tmp_path):
    """They are extended, but zeros: lines without a word at 0 s."""
    data = pytest.importorskip("hil_gui.data")
    run = tmp_path / "run.h5"
    run.write_bytes(all_on.read_bytes())
    with h5py.File(run, "r+", libver=LIBVER) as file:
        n = len(file["events"]) + len(file["inputs"])
        for ring in ("events", "inputs"):
            file[ring].resize(len(file[ring]) + 2, axis=0)
    assert len(data.File(run).notes()) == n


def test_without_pyarrow_a_csv_file_has_the_same_values(all_on, tmp_path, monkeypatch):
    both = []
    for missing in (False, True):
        if missing:
            monkeypatch.delattr(pyarrow, "csv")
            monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
        out = tmp_path / f"{missing}.csv"
        assert main(["export", str(all_on), "--to", "csv", "--out", str(out)]) == 0
        both.append(out.read_text().splitlines())
    assert both[0][0] == both[1][0]
    for line, other in zip(*both, strict=True):
        pairs = zip(line.split(","), other.split(","), strict=True)
        assert all(a == b or float(a) == float(b) for a, b in pairs)
