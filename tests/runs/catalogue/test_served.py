"""The runs of a folder as a Tiled server's own client sees them."""

from pathlib import Path

import pytest
import xarray as xr
from fastapi import HTTPException
from tiled.client import from_context
from tiled.client.context import Context
from tiled.queries import FullText, Key
from tiled.server.app import build_app

import hil
from hil.errors import ConfigError
from hil.runs.catalogue import served
from record.mutations import spoil
from runs.catalogue.conftest import later

RUNS = Path("runs")
pytestmark = pytest.mark.filterwarnings("ignore:Using .httpx. with")  # within Tiled's own client


def test_tileds_client_finds_runs_by_their_row_and_reads_their_data_set(make):
    for name, operator, rms_N in (("a.h5", "Ada", 0.01), ("x/b.h5", "Bo", 0.03)):
        make(name, operator=operator, figures={"residual_rms_N": rms_N},
             created_utc=f"2026-10-0{len(name) - 3}T10:00:00+00:00")  # fmt: skip
    (RUNS / "bad.h5").write_bytes(b"none")
    with Context.from_app(build_app(served.tree("runs"))) as context:
        runs = from_context(context)
        assert [run.metadata["path"] for run in runs.values()] == ["x/b.h5", "a.h5"]
        (run,) = runs.search(Key("rms_N") < 0.02).search(Key("operator") == "Ada").values()
        assert run.metadata["time_utc"] == "2026-10-01T10:00:00"
        assert [run.metadata["path"] for run in runs.search(FullText("bo")).values()] == ["x/b.h5"]
        expected = hil.open_run(RUNS / "a.h5")
        data = run.read()
        xr.testing.assert_equal(data, expected)
        for name, column in expected.data_vars.items():
            assert data[name].attrs == dict(column.attrs)
        assert run["t_s"][1:2].tolist() == expected.t_s.values[1:2].tolist()


def test_a_list_of_runs_opens_no_recording(make, monkeypatch):
    make("a.h5")
    with Context.from_app(build_app(served.tree("runs"))) as context:
        runs = from_context(context)
        monkeypatch.setattr(served, "open_run", None)
        assert [run.metadata["path"] for run in runs.values()] == ["a.h5"]


def test_a_run_that_is_made_while_it_is_served_appears(make, monkeypatch):
    make("a.h5")
    monkeypatch.setattr(served, "FRESH_S", 0.0)
    runs = served.Runs(RUNS)
    assert len(runs) == 1
    make("b.h5", created_utc="2026-10-01T10:00:00+00:00")
    assert len(runs) == 2


def test_a_recording_that_cannot_be_read_is_one_line_and_then_left_out(make, monkeypatch):
    make("a.h5", created_utc="2026-10-01T10:00:00+00:00")
    spoil(make("b.h5"), "ticks/t_s", 0)
    monkeypatch.setattr(served, "FRESH_S", 0.0)
    runs = served.Runs(RUNS)
    newest = next(iter(runs))
    with pytest.raises(HTTPException, match=r"404: runs/b\.h5: damaged \("):
        list(runs[newest])
    assert [run.metadata()["path"] for run in runs.values()] == ["a.h5"]


def test_a_recording_that_was_replaced_is_not_served_as_the_run_before(make, monkeypatch):
    """For half a minute the rows of the new run had the identity and figures of the old one."""
    make("a.h5")
    runs = served.Runs(RUNS)
    (before,) = runs.values()
    later(make("a.h5", created_utc="2026-10-01T10:00:00+00:00"))
    with pytest.raises(HTTPException, match=r"404: runs/a\.h5: has changed since it was listed"):
        list(before)
    monkeypatch.setattr(served, "FRESH_S", 0.0)
    (after,) = served.Runs(RUNS).values()
    assert list(after)


def test_a_run_in_progress_is_left_out(make):
    make("a.h5")
    make("b.h5", outcome="running", created_utc="2026-10-01T10:00:00+00:00")
    assert [run.metadata()["path"] for run in served.Runs(RUNS).values()] == ["a.h5"]


def test_a_folder_that_is_none_is_said_at_the_start():
    with pytest.raises(ConfigError, match="none: "):
        served.tree("none")
