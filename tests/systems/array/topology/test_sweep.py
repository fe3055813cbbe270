"""Sweeps that are spread, stopped and resumed give what one pass gives."""

import json
import sys

import pytest

from hil.errors import ConfigError
from hil.platform.parallel import Scheduler
from hil.systems.array.topology import sweep as sweeps
from hil.systems.array.topology.figures import LikeCells, figures
from hil.systems.array.topology.sweep import sweep
from hil.systems.array.topology.topologies import topologies

CELLS = LikeCells()


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(sweeps, "BATCH", 10)


@pytest.fixture
def calls(monkeypatch):
    """Slices that are computed, in their order."""
    seen = []
    compute = sweeps.figures_of_slice

    def watched(start, stop, **work):
        seen.append((start, stop))
        return compute(start, stop, **work)

    monkeypatch.setattr(sweeps, "figures_of_slice", watched)
    return seen


def test_batches_join_to_the_whole(small_batches):
    assert sweep(6, CELLS) == figures(topologies(6))


def test_mirror_images_come_once(small_batches):
    assert len(sweep(6, CELLS, mirror=True)) == 31


def test_a_stopped_sweep_goes_on_where_it_was(small_batches, monkeypatch, tmp_path, calls):
    compute = sweeps.figures_of_slice

    def interrupted(start, stop, **work):
        if start == 30:
            raise KeyboardInterrupt
        return compute(start, stop, **work)

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "figures_of_slice", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sweep(6, CELLS, out=tmp_path)
    assert calls == [(0, 10), (10, 20), (20, 30)]
    calls.clear()
    assert sweep(6, CELLS, out=tmp_path) == figures(topologies(6))
    assert calls == [(30, 40), (40, 49)]
    calls.clear()
    assert sweep(6, CELLS, out=tmp_path) == figures(topologies(6))
    assert calls == []


@pytest.mark.parametrize("cut", [1, 40, 2000])
def test_a_batch_that_was_cut_off_on_disk_is_computed_again(small_batches, tmp_path, calls, cut):
    whole = sweep(6, CELLS, out=tmp_path)
    (journal,) = tmp_path.glob("batches-6-*.jsonl")
    journal.write_bytes(journal.read_bytes()[:-cut])
    calls.clear()
    assert sweep(6, CELLS, out=tmp_path) == whole
    assert calls
    assert calls[-1] == (40, 49)
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sorted(e["start"] for e in entries[1:]) == [0, 10, 20, 30, 40]


def test_another_cell_or_mirroring_does_not_reuse_batches(small_batches, tmp_path, calls):
    sweep(6, CELLS, out=tmp_path)
    calls.clear()
    strong = sweep(6, LikeCells(force_on_N=2.0), out=tmp_path)
    assert len(calls) == 5
    assert strong == figures(topologies(6), LikeCells(force_on_N=2.0))
    assert len(sweep(6, CELLS, mirror=True, out=tmp_path)) == 31


@pytest.mark.slow
def test_a_large_sweep_goes_through_dask(small_batches, monkeypatch, tmp_path):
    monkeypatch.setattr(sweeps, "IN_PROCESS_MAX", 40)
    assert sweep(6, CELLS, out=tmp_path) == figures(topologies(6))
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert sweep(6, CELLS, out=tmp_path) == figures(topologies(6))  # all batches are kept


def test_a_scheduler_that_is_named_does_the_work(small_batches, calls):
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        named = Scheduler(cluster.scheduler_address)
        assert sweep(5, CELLS, scheduler=named) == figures(topologies(5))


def test_without_dask_a_large_sweep_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(sweeps, "IN_PROCESS_MAX", 40)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"scripts/setup sweep$"):
        sweep(6, CELLS)
    assert len(sweep(5, CELLS)) == 20


@pytest.mark.parametrize("n_cells", [-1, 0, 17, 10**9])
def test_a_number_of_cells_out_of_range_is_refused_at_once(n_cells):
    with pytest.raises(ConfigError, match="for 1 to 16"):
        sweep(n_cells, CELLS)


def test_a_folder_that_cannot_be_written_is_named(small_batches, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError, match=r"file/.*cannot be written"):
        sweep(6, CELLS, out=file)
