"""Parquet and MDF files of a recording, read by the packages of these formats."""

import json
import sys

import numpy as np
import pytest
from pyarrow import parquet

from hil.__main__ import main
from hil.record.read import open_run
from lazily import Lazily

asammdf = Lazily("asammdf")


@pytest.fixture(scope="module")
def recorded(configs, tmp_path_factory):
    out = tmp_path_factory.mktemp("recorded") / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--duration", "0.7", "--out", str(out)]
    assert main(words) == 0
    return out


def test_parquet_has_every_value_with_its_unit(recorded, tmp_path):
    out = tmp_path / "run.parquet"
    assert main(["export", str(recorded), "--to", "parquet", "--out", str(out)]) == 0
    run, table = open_run(recorded), parquet.read_table(out)
    for name in ("t_s", "force_measured_N", "fault_bits"):
        np.testing.assert_array_equal(table[name].to_numpy(), run[name].values)
    cells = table["cells_commanded.muscle.2"].to_numpy()
    np.testing.assert_array_equal(cells, run.cells_commanded.sel(cell="muscle.2").values)
    facts = table.schema.field("force_measured_N").metadata
    assert facts[b"units"] == b"N"
    assert facts[b"source"] == b"SIMULATED"
    about = table.schema.metadata
    assert json.loads(about[b"experiment_name"]) == run.attrs["experiment_name"]
    assert [
        event["text"] for event in json.loads(about[b"events"])
    ] == run.event_text.values.tolist()


def test_mdf_has_every_value_with_its_unit(recorded, tmp_path):
    out = tmp_path / "run.mf4"
    assert main(["export", str(recorded), "--to", "mdf", "--out", str(out)]) == 0
    run = open_run(recorded)
    with asammdf.MDF(out) as file:
        force = file.get("force_measured_N")
        cells = file.get("cells_commanded.muscle.2")
        comment, start = file.header.comment, file.start_time
    np.testing.assert_array_equal(force.samples, run.force_measured_N.values)
    np.testing.assert_array_equal(force.timestamps, run.t_s.values)
    np.testing.assert_array_equal(cells.samples, run.cells_commanded.sel(cell="muscle.2").values)
    assert force.unit == "N"
    assert "SIMULATED" in force.comment
    assert "experiment_name" in comment
    assert start.isoformat(timespec="milliseconds") == run.attrs["created_utc"]


@pytest.mark.parametrize(("kind", "package"), [("parquet", "pyarrow"), ("mdf", "asammdf")])
def test_a_missing_package_is_named_and_nothing_is_written(
    kind, package, recorded, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, package, None)
    out = tmp_path / "out"
    assert main(["export", str(recorded), "--to", kind, "--out", str(out)]) == 2
    assert "needs an extra: scripts/setup export" in capsys.readouterr().err
    assert not out.exists()
