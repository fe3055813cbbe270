"""The Parquet table of a campaign: appended a part at a time, whole after a kill."""

import errno

import pandas as pd
import pytest

from hil.errors import ConfigError
from hil.runs.campaign import stream as module
from hil.runs.campaign.journal import progress_of
from hil.runs.campaign.stream import Stream
from hil.runs.campaign.table import as_dataset

PLAN = [
    {"trial": n, "experiment": "a.toml", "levels": {"gain": float(n)}, "repeat": 1, "block": 1,
     "seed": n, "plant": n, "drawn": {"plant.m": 0.1 * n}}
    for n in range(1, 7)
]  # fmt: skip


def end(trial, **figures):
    return {
        "kind": "end", "trial": trial, "attempt": 1, "outcome": "complete", "faults": [],
        "error": "", "file": "", "utc": "2026-01-01", "took_s": 1.0, "figures": figures,
    }  # fmt: skip


@pytest.fixture
def entries():
    return [{"kind": "campaign", "plan": PLAN}]


@pytest.fixture
def said():
    return []


@pytest.fixture
def stream(tmp_path, entries, said, monkeypatch):
    monkeypatch.setattr(module, "APART_S", 0.0)
    return Stream(tmp_path, entries, said.append)


def test_the_folder_is_one_table_after_every_part(stream, entries):
    for n in range(1, 4):
        entries.append(end(n, error_N=n / 10.0))
        stream.append()
        table = pd.read_parquet(stream.path)
        assert list(table.trial) == list(range(1, n + 1))
        assert list(table.error_N) == [k / 10.0 for k in range(1, n + 1)]
        assert list(table["plant.m"]) == [0.1 * k for k in range(1, n + 1)]
    assert len(list(stream.path.iterdir())) == 3
    stream.rewrite()
    assert len(list(stream.path.iterdir())) == 1
    pd.testing.assert_frame_equal(pd.read_parquet(stream.path), table)


def test_a_part_for_which_there_is_no_room_leaves_nothing(stream, entries, tmp_path, monkeypatch):
    def full(table, part):
        part.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, "No space left on device")

    entries.append(end(1))
    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(ConfigError, match=r"trials\.parquet: cannot be written \(No space"):
        stream.append()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_figure_that_is_new_or_unknown_has_its_column_in_all_rows(stream, entries):
    entries.append(end(1, error_N=None))
    stream.append()
    entries.append(end(2, error_N=0.5, late_N=1.0))
    stream.append()
    entries.append(end(3, error_N=None))
    stream.append()
    table = pd.read_parquet(stream.path)
    assert table.error_N.tolist()[1] == 0.5
    assert table.error_N.isna().tolist() == [True, False, True]
    assert table.late_N.isna().tolist() == [True, False, True]


def test_a_part_is_written_a_while_after_the_last_one(stream, entries, monkeypatch):
    monkeypatch.setattr(module, "APART_S", 1e9)
    entries.append(end(1, error_N=1.0))
    stream.append()
    assert not stream.path.exists()


def test_a_table_that_was_cut_off_is_said_in_one_line_and_loses_nothing(
    stream, entries, said, tmp_path
):
    for n in (1, 2):
        entries.append(end(n, error_N=1.0 * n))
        stream.append()
    cut = stream.path / "000002.parquet"
    cut.write_bytes(cut.read_bytes()[:100])
    (tmp_path / "trials.parquet.99.part").write_bytes(b"PAR1")  # of a process that was killed
    again = Stream(tmp_path, entries, said.append)
    assert said == [f"{cut}: cut off or damaged: written again from the journal"]
    assert pd.read_parquet(again.path).error_N.tolist() == [1.0, 2.0]


def test_files_of_others_in_the_folder_stay_and_cost_no_row(stream, entries, said, tmp_path):
    entries.append(end(1, error_N=1.0))
    stream.append()
    others = [stream.path / name for name in (".DS_Store", "._000001.parquet", "00 notes.txt")]
    for other in others:
        other.write_bytes(b"\0")
    (stream.path / "000000").mkdir()
    entries.append(end(2, error_N=2.0))
    stream.append()
    parts = [stream.path / f"{n:06d}.parquet" for n in (1, 2)]
    assert sorted(stream.path.glob("*.parquet")) == sorted([others[1], *parts])
    Stream(tmp_path, entries, said.append)
    assert pd.read_parquet(parts[0]).error_N.tolist() == [1.0, 2.0]
    assert all(other.is_file() for other in others)
    assert not parts[1].exists()
    assert said == []


def test_large_integers_and_mixed_levels_have_a_column_in_every_table(tmp_path, said):
    """An integer that no floating-point number equals is text, as a seed is."""
    levels = [(3_000_000_000, 2**53 + 1, 1), (-1, 1, "b")]
    plan = [
        one | {"levels": dict(zip(("large", "larger", "mixed"), of, strict=True))}
        for one, of in zip(PLAN, levels, strict=False)
    ]
    head = {"kind": "campaign", "name": "", "backend": "sim", "rehearsal": False, "plan": plan}
    entries = [head, end(1), end(2)]
    Stream(tmp_path, entries, said.append)
    whole = as_dataset(progress_of(entries))
    for table in (pd.read_parquet(tmp_path / module.PARQUET), whole):
        assert list(table["large"].values) == [3e9, -1.0]
        assert list(table["larger"].values) == ["9007199254740993", "1"]
        assert list(table["mixed"].values) == ["1", "b"]
    assert whole.repeat.dtype == "int32"
