"""The index follows the recordings, whoever writes to it and whatever happens to it."""

import json
import multiprocessing
import shutil
from pathlib import Path

import duckdb
import h5py
import pytest

import hil
from hil.errors import ConfigError
from hil.runs.catalogue import index
from hil.runs.catalogue.index import NAME
from hil.runs.catalogue.query import Catalogue, Filter

RUNS = Path("runs")
PARQUET = RUNS / NAME / "index-1.parquet"


def paths():
    catalogue = Catalogue(RUNS)
    answer = catalogue.find(Filter(columns=("path",)))
    return sorted(path for (path,) in answer.rows), catalogue.noticed


def many(make, n):
    for i in range(n):
        make(f"{i:03d}.h5", created_utc=f"2026-10-01T00:{i // 60:02d}:{i % 60:02d}+00:00")


def test_a_run_adds_its_row_which_is_that_of_the_recording(make, configs):
    RUNS.mkdir()
    config = hil.load(configs / "miga6/pid.toml", ("experiment.duration_s=0.05",))
    path = hil.run(config, out="runs/deep/a.h5", seed=7)
    assert len(list((RUNS / NAME).glob("*.json"))) == 1
    catalogue = Catalogue(RUNS)
    assert not list(catalogue.noticed.lines())  # so the row of the run was taken
    (row,) = catalogue.find(Filter()).dicts()
    with h5py.File(path) as file:
        summary, software = (json.loads(file.attrs[key]) for key in ("summary", "software"))
        record = file["calibration/force"].attrs["record_id"]
    assert row["path"] == "deep/a.h5"
    assert (row["rig"], row["experiment"], row["seed"]) == ("miga6", "pid", 7)
    assert row["controller_kind"] == "pid"
    assert row["rms_N"] == row["force_residual_rms_N"] == summary["force"]["residual_rms_N"]
    assert row["timing_periods"] == summary["timing"]["periods"] == 50
    assert row["software_numpy"] == software["numpy"]
    assert row["calibration_force"] == record
    assert row["size_B"] == path.stat().st_size


def test_a_folder_without_an_index_gets_none_from_a_run(one_run):
    assert not (one_run.parent / NAME).exists()


def test_what_happens_to_recordings_is_noticed_once(make):
    for name, second in (("a.h5", 1), ("b.h5", 2), ("c.h5", 3), ("d.h5", 4)):
        make(name, created_utc=f"2026-10-01T00:00:0{second}+00:00")
    assert paths()[0] == ["a.h5", "b.h5", "c.h5", "d.h5"]
    (RUNS / "away").mkdir()
    (RUNS / "a.h5").rename(RUNS / "away/a.h5")
    (RUNS / "b.h5").unlink()
    with h5py.File(RUNS / "c.h5", "r+", libver=("v110", "v110")) as file:
        file.attrs["operator"] = "another"
    shutil.copyfile(RUNS / "d.h5", RUNS / "e.h5")
    found, noticed = paths()
    assert found == ["away/a.h5", "c.h5", "d.h5", "e.h5"]
    assert noticed.moved == [("a.h5", "away/a.h5")]
    assert (noticed.deleted, noticed.edited, noticed.added) == (["b.h5"], ["c.h5"], ["e.h5"])
    assert noticed.copies == [("d.h5", "e.h5")]
    found, noticed = paths()
    assert found == ["away/a.h5", "c.h5", "d.h5", "e.h5"]
    assert [line.split(":")[0] for line in noticed.lines()] == ["the same run twice"]
    assert Catalogue(RUNS).find(Filter(where='operator = "another"')).dicts()[0]["path"] == "c.h5"


def test_a_name_with_a_line_break_is_told_in_one_line(make):
    make("a.h5")
    shutil.copyfile(RUNS / "a.h5", RUNS / "b\n.h5")
    (line,) = paths()[1].lines()
    assert "b\\n.h5" in line
    assert "\n" not in line


def test_many_rows_become_one_file_and_stay_the_same(make, monkeypatch):
    monkeypatch.setattr(index, "LOOSE_MAX", 5)
    many(make, 4)
    before = Catalogue(RUNS).find(Filter()).dicts()
    assert len(list((RUNS / NAME).glob("*.json"))) == 4
    many(make, 9)
    assert paths()[0] == [f"{i:03d}.h5" for i in range(9)]
    assert PARQUET.exists()
    assert not list((RUNS / NAME).glob("*.json"))
    kept = {row["path"]: row for row in Catalogue(RUNS).find(Filter()).dicts()}
    facts = ("path", "identity", "rms_N", "controller_kind", "seed", "time_utc")
    for row in before:
        assert {k: kept[row["path"]][k] for k in facts} == {k: row[k] for k in facts}


@pytest.mark.parametrize("harm", ["deleted", "half", "nonsense", "other columns", "a bad row"])
def test_a_missing_or_damaged_index_is_made_again(make, harm):
    many(make, 3)
    Catalogue(RUNS, rebuild=True)
    match harm:
        case "deleted":
            shutil.rmtree(RUNS / NAME)
        case "half":
            PARQUET.write_bytes(PARQUET.read_bytes()[: PARQUET.stat().st_size // 2])
        case "nonsense":
            PARQUET.write_text("nonsense")
        case "other columns":
            copy = "COPY (SELECT {'a': 1} AS path, 1 AS size_B, 2 AS modified_ns, 'x' AS identity)"
            duckdb.execute(f"{copy} TO '{PARQUET}' (FORMAT parquet)")
        case "a bad row":
            (RUNS / NAME / "x.json").write_text('{"path": "000.h5", "size_B"')
    assert paths()[0] == ["000.h5", "001.h5", "002.h5"]


def test_an_index_of_a_later_version_is_said_in_one_line(make):
    many(make, 1)
    (RUNS / NAME).mkdir()
    (RUNS / NAME / "index-2.parquet").touch()
    with pytest.raises(ConfigError, match=r"index-2.parquet: written by a newer hil .*update hil"):
        Catalogue(RUNS)


def test_unreadable_recordings_are_rows_that_say_why(make):
    many(make, 2)
    (RUNS / "text.h5").write_text("no recording")
    whole = (RUNS / "000.h5").read_bytes()
    (RUNS / "half.h5").write_bytes(whole[: len(whole) // 2])
    found, noticed = paths()
    assert found == ["000.h5", "001.h5", "half.h5", "text.h5"]
    assert noticed.unreadable == 2
    rows = Catalogue(RUNS).find(Filter({"outcome": "unreadable"}))
    said = {row["path"]: row["error"] for row in rows.dicts()}
    assert "not an HDF5 file" in said["text.h5"]
    assert "bytes are here" in said["half.h5"]


def test_links_out_of_a_recording_are_not_followed(make, tmp_path):
    path = make("a.h5")
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        file["calibration/other"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/")
    (row,) = Catalogue(RUNS).find(Filter()).dicts()
    assert row["outcome"] == "unreadable"
    assert "is a link" in row["error"]


def test_a_folder_that_may_not_be_written_answers_all_the_same(make, monkeypatch):
    many(make, 2)
    # Root may write anywhere: the failure is put in.
    monkeypatch.setattr(Path, "mkdir", lambda *a, **k: (_ for _ in ()).throw(
        PermissionError(13, "Permission denied")))  # fmt: skip
    found, noticed = paths()
    assert found == ["000.h5", "001.h5"]
    assert list(noticed.lines()) == [
        "the index is not kept: runs cannot be written (Permission denied)"
    ]


def test_an_index_that_is_a_link_is_not_written_through(make, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    many(make, 2)
    (RUNS / NAME).symlink_to(elsewhere)
    found, noticed = paths()
    assert (len(found), list(elsewhere.iterdir())) == (2, [])
    assert noticed.not_kept == f"runs cannot be written ({NAME} is a link: remove it)"


def _add(folder, names):
    for name in names:
        index.add(Path(folder) / name)


@pytest.mark.slow
def test_processes_that_write_at_once_lose_no_row(make, monkeypatch):
    many(make, 40)
    names = [f"{i:03d}.h5" for i in range(40)]
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add, args=(RUNS.resolve(), names[i::2])) for i in range(2)]
    for writer in writers:
        writer.start()
    monkeypatch.setattr(index, "LOOSE_MAX", 3)  # readers gather the rows meanwhile
    while any(writer.is_alive() for writer in writers):
        assert paths()[0] == names
    for writer in writers:
        writer.join()
    assert paths()[0] == names
    assert not list(Catalogue(RUNS).noticed.lines())


def test_a_kill_while_the_index_is_written_leaves_the_one_before(make, monkeypatch):
    many(make, 3)
    Catalogue(RUNS, rebuild=True)
    before = PARQUET.read_bytes()
    make("new.h5", created_utc="2026-10-02T00:00:00+00:00")

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            Catalogue(RUNS, rebuild=True)
    assert PARQUET.read_bytes() == before
    assert paths()[0] == ["000.h5", "001.h5", "002.h5", "new.h5"]
