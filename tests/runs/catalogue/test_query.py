"""Questions to the index: filters, SQL that reads nothing else, notes, and plain output."""

import csv
import io
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet
import pytest

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.record.append_log import AppendLog
from hil.runs.catalogue import notes
from hil.runs.catalogue.query import Catalogue, Filter
from runs.catalogue.conftest import later, made_of

RUNS = Path("runs")
THREE = {
    "a.h5": {"created_utc": "2026-09-30T10:00:00+00:00", "experiment_file": "miga6/pid.toml",
             "operator": "Ada", "figures": {"residual_rms_N": 0.010}},
    "b.h5": {"created_utc": "2026-10-01T10:00:00+00:00", "experiment_file": "wires4/pid.toml",
             "operator": "Bo", "article": "wire 3", "figures": {"residual_rms_N": 0.019}},
    "c.h5": {"created_utc": "2026-10-31T23:59:00+00:00", "experiment_file": "wires4/step.toml",
             "operator": "Ada", "article": "wire 3", "figures": {"residual_rms_N": 0.030}},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder_of_three(one_run, tmp_path_factory):
    """Three runs: of two rigs, two months, two operators; with their index."""
    folder = tmp_path_factory.mktemp("three")
    for name, changes in THREE.items():
        made_of(one_run, folder / RUNS / name, **changes)
    Catalogue(folder / RUNS)
    return folder


@pytest.fixture
def three(folder_of_three, monkeypatch):
    """Them, which the test does not change."""
    monkeypatch.chdir(folder_of_three)


@pytest.fixture
def three_of_its_own(folder_of_three, tmp_path, monkeypatch):
    shutil.copytree(folder_of_three, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def found(**wanted):
    return [path for (path,) in Catalogue(RUNS).find(Filter(columns=("path",), **wanted)).rows]


def test_filters_choose_newest_first(three):
    assert found() == ["c.h5", "b.h5", "a.h5"]
    assert found(names={"rig": "wires*"}) == ["c.h5", "b.h5"]
    assert found(names={"specimen": "wire 3", "operator": "Bo"}) == ["b.h5"]
    assert found(since="2026-10-01", until="2026-10-31") == ["c.h5", "b.h5"]
    assert found(until="2026-09-30T10:00:01") == ["a.h5"]
    assert found(until="20260930") == ["a.h5"]
    assert found(where='rms_N < 0.02 and controller_kind = "pid"') == ["b.h5", "a.h5"]
    assert found(where="operator = 'Ada' -- and more") == ["c.h5", "a.h5"]
    assert found(limit=1) == ["c.h5"]


@pytest.mark.parametrize(("expression", "value"), [
    ("time_utc::date", "2026-09-30"), ("time '10:00:00'", "10:00:00"), ("interval 90 minute", 5400),
    ("1.5::decimal(4, 2)", 1.5), ("{'days': [time_utc::date]}", {"days": ["2026-09-30"]}),
    ("map {date '2026-09-30': 1}", {"2026-09-30": 1}), ("'a'::blob", "b'a'"), ("1e400", None),
    ("uuid '00000000-0000-0000-0000-000000000001'", "00000000-0000-0000-0000-000000000001"),
])  # fmt: skip
def test_a_value_of_any_type_is_json(three, capsys, expression, value):
    sql = f"select {expression} as x from runs where run is not null order by time_utc limit 1"
    assert main(["runs", "--sql", sql, "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["x"] == value


@pytest.mark.parametrize(("expression", "value"), [
    ("2::hugeint ** 100", 2.0**100), (f"{2**70}::hugeint", str(2**70)), ("map {1: 2}", "{1: 2}"),
    ("size_B + 0", None),
])  # fmt: skip
def test_a_value_of_any_type_is_in_parquet(three, tmp_path, expression, value):
    sql = f"select {expression} as x from runs order by time_utc limit 1"
    file = tmp_path / "x.parquet"
    assert main(["runs", "--sql", sql, "--parquet", str(file)]) == 0
    (found,) = pyarrow.parquet.read_table(file)["x"].to_pylist()
    assert found == value or (value is None and isinstance(found, int))


@pytest.mark.parametrize("serial", ["wire [3]", "3\\4", "[!a]", "a]b"])
def test_in_a_pattern_only_the_asterisk_and_the_question_mark_stand_for_others(make, serial):
    make("a.h5", created_utc="2026-09-30T10:00:00+00:00", article=serial)
    make("b.h5", created_utc="2026-09-30T11:00:00+00:00", article="wire 3")
    for pattern in (serial, f"{serial[:-1]}?", f"*{serial[1:]}"):
        assert found(names={"specimen": pattern}) == ["a.h5"]


def test_an_age_counts_from_now(make):
    now = datetime.now(UTC)
    for name, hours in (("new.h5", 1), ("old.h5", 30)):
        made = now - timedelta(hours=hours)
        make(name, created_utc=made.isoformat(timespec="milliseconds"))
    assert found(since="12h") == ["new.h5"]
    assert found(since="2d") == ["new.h5", "old.h5"]
    assert found(until="1d") == ["old.h5"]


@pytest.mark.parametrize(("words", "said"), [
    (["--where", "rsm_N < 1"], "--where: no column 'rsm_N': did you mean 'rms_N'?"),
    (["--where", "residual_rms_N < 1"],
     "--where: no column 'residual_rms_N': did you mean 'force_residual_rms_N'?"),
    (["--where", "rms_N <"], "--where: syntax error"),
    (["--where", "1=1); drop table rows; select (1"], '--where: syntax error at or near ")"'),
    (["--where", "operator + 1"], "--where: "),
    (["--where", "rms_N < 0) or (true"], '--where: syntax error at or near ")"'),
    (["--where", "false) union all select * from runs where (true"], "--where: syntax error"),
    (["--where", "rms_N < 1 order by rms_N"], "--where: syntax error"),
    (["--where", "true from runs"], "--where: syntax error"),
    (["--where", "name = '\udcff'"], "--where: not UTF-8 text"),
    (["--where", "1; select 2"], "--where: give one expression"),
    (["--where", "true /*"], "--where: "),
    (["--columns", ""], "--columns: names none: give A,B"),
    (["--columns", " , "], "--columns: names none: give A,B"),
    (["--columns", "path,rsm_N"], "--columns: no column 'rsm_N': did you mean 'rms_N'?"),
    (["--since", "yesterdy"], "'yesterdy': no time: give 2026-10-01"),
    (["--sql", "select rsm_N from runs"], "--sql: no column 'rsm_N': did you mean 'rms_N'?"),
    (["--folder", "runs/a.h5"], "runs/a.h5: not a folder: give the folder of recordings"),
    (["--sql", "drop view runs"], "--sql: give one expression, or with --sql one SELECT"),
    (["--sql", "copy runs to 'x.csv'"], "--sql: give one expression, or with --sql one SELECT"),
    (["--sql", "select * from read_csv('/etc/passwd')"], "--sql: reads the table 'runs' and no"),
    (["--sql", "select * from read_text('runs/a.h5')"], "--sql: reads the table 'runs' and no"),
    (["--sql", "select * from '/etc/passwd'"], "--sql: "),
    (["--sql", "select * from glob('*')"], "--sql: reads the table 'runs' and no"),
    (["--sql", "select * from runs", "--rig", "a"], "--sql: takes no --rig"),
    (["--sql", "select * from runs", "--starred"], "--sql: takes no --starred"),
    (["--trend", "rms_N", "--sql", "select 1"], "--sql: takes no --trend"),
    (["--trend", "rms_N", "--limit", "2"], "--trend: takes no --limit"),
    (["--trend", "rsm_N"], "--trend: no column 'rsm_N': did you mean 'rms_N'?"),
    (["--trend", "rms_N", "--by", "rgi"], "--by: no column 'rgi': did you mean 'rig'?"),
    (["--trend", "time_utc"], "--trend time_utc: is no number"),
    (["--by", "rig"], "--by: belongs to --trend"),
    (["--out", "x.png"], "--out: belongs to --trend"),
    (["--until", "9999-12-31"], "'9999-12-31': no time: "),
    (["--since", "0001-01-01T00:00+14:00"], "'0001-01-01T00:00+14:00': no time: "),
    (["--csv", "runs/a.h5"], "runs/a.h5: a recording, which stays: "),
    (["--parquet", "runs/a.h5"], "runs/a.h5: a recording, which stays: "),
    (["--page", "runs/a.h5"], "--page runs/a.h5: a page: give a name that ends in .html"),
    (["--page", "rig.toml"], "--page rig.toml: a page: give a name that ends in .html"),
    (["--folder", "rums"], "rums: "),
    (["--csv", "none/x.csv"], "none/x.csv: cannot be written"),
    (["--page", "none/x.html"], "none/x.html: cannot be written"),
    (["nte", "a.h5"], "hil runs: 'nte' is no action: did you mean 'note'?"),
    (["note", "z.h5", "text"], "z.h5: no such run in runs"),
    (["note", "z\udce9.h5", "text"], "z\\udce9.h5: no such run in runs"),
    (["note", "a.h5", "caf\udce9"], "hil runs note: not UTF-8 text: write it with other letters"),
    (["note", "a.h5"], "hil runs note: needs a text"),
    (["note", "a.h5", " "], "hil runs note: needs a text"),
    (["tag", "a.h5", "x", ""], "hil runs tag: needs a text"),
    (["star", "a.h5", "text"], "hil runs star: takes no text"),
    (["tag", "a.h5", "x,y"], "hil runs tag: a tag has no comma"),
])  # fmt: skip
def test_bad_input_is_one_line(three, capsys, words, said):
    assert main(["runs", *words]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(said)
    assert err.count("\n") == 1
    assert not Path("x.csv").exists()


@pytest.mark.parametrize("count", ["-1", "1.5", "many", "99999999999999999999"])
def test_a_limit_that_is_no_count_says_what_one_is(capsys, count):
    with pytest.raises(SystemExit, match="2"):
        main(["runs", "--limit", count])
    said = capsys.readouterr().err
    assert f"--limit: '{count}': give a whole number, 0 or more" in said


def test_a_question_changes_no_setting(three):
    catalogue = Catalogue(RUNS)
    for setting in ("enable_external_access = true", "lock_configuration = false"):
        with pytest.raises(ConfigError, match="one SELECT"):
            catalogue.sql(f"SET {setting}")
    assert catalogue.sql("select count(*) from runs").rows == [(3,)]


def test_output_for_programs_has_the_same_rows(three_of_its_own, capsys):
    columns = ["--columns", "path,rms_N,specimen", "--rig", "wires4"]
    expected = [("c.h5", 0.030, "wire 3"), ("b.h5", 0.019, "wire 3")]
    assert main(["runs", *columns, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["runs"]
    assert [(r["path"], r["rms_N"], r["specimen"]) for r in rows] == expected
    assert main(["runs", *columns, "--csv"]) == 0
    head, *lines = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == ["path", "rms_N", "specimen"]
    assert [(path, float(rms), name) for path, rms, name in lines] == expected
    assert main(["runs", *columns, "--parquet", "out.parquet"]) == 0
    assert [tuple(r.values()) for r in pyarrow.parquet.read_table("out.parquet").to_pylist()] == (
        expected
    )
    frame = hil.runs(rig="wires4", columns=("path", "rms_N", "specimen"))
    assert [tuple(row) for row in frame.to_numpy().tolist()] == expected
    assert hil.runs(rig="wires4", columns="rms_N").columns.tolist() == ["rms_N"]
    with pytest.raises(TypeError, match=r"no option rigs: it has .*rig, specimen"):
        hil.runs(rigs="wires4")
    assert (
        main(["runs", "--sql", "select rig, count(*) as n from runs group by rig order by n"]) == 0
    )
    assert capsys.readouterr().out.split() == ["rig", "n", "miga6", "1", "wires4", "2"]


def test_a_screen_is_aligned_and_without_colour_off_a_terminal(three, capsys):
    assert main(["runs"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert "\x1b" not in head + "".join(lines)
    at = head.index("rig")
    assert [line[at : at + 6] for line in lines] == ["wires4", "wires4", "miga6 "]
    assert "star" not in head  # nobody has one


def test_a_note_on_a_file_that_cannot_be_read_stays_when_it_is_repaired(make, capsys):
    """It was filed under a hash of the file, which is another one then."""
    path = make("a.h5")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert main(["runs", "note", "a.h5", "came from the other bench"]) == 0
    (row,) = Catalogue(RUNS).find(Filter()).dicts()
    assert (row["outcome"], row["note"]) == ("unreadable", "came from the other bench")
    path.write_bytes(whole)
    later(path)
    (row,) = Catalogue(RUNS).find(Filter()).dicts()
    assert (row["outcome"], row["note"]) == ("complete", "came from the other bench")
    make("a.h5", created_utc="2099-01-01T00:00:00.000+00:00")  # another run has its name now
    later(path, 2_000_000_000)
    (row,) = Catalogue(RUNS).find(Filter()).dicts()
    assert "note" not in row


@pytest.mark.parametrize("begun", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_recording_of_a_year_that_utc_has_not_is_unreadable(make, begun):
    """Every question to its folder was an internal error."""
    make("a.h5", created_utc=begun)
    (row,) = Catalogue(RUNS).find(Filter()).dicts()
    assert row["outcome"] == "unreadable"
    assert "created_utc" in row["error"]


def test_notes_stars_and_tags_stay_with_the_run_and_change_no_recording(three_of_its_own, capsys):
    before = (RUNS / "a.h5").read_bytes()
    run = Catalogue(RUNS).one("a.h5")["identity"]
    for words in ("note a.h5 wire replaced", f"note {run[:8]} again", "star runs/a.h5",
                  "tag a paper wrong", "untag a wrong"):  # fmt: skip
        assert main(["runs", *words.split()]) == 0
    assert main(["runs", "tag", "a", " paper "]) == 0  # the same one
    (RUNS / "a.h5").rename(RUNS / "moved.h5")
    Catalogue(RUNS, rebuild=True)
    assert (RUNS / "moved.h5").read_bytes() == before
    (row,) = Catalogue(RUNS).find(Filter(starred=True, tag="paper")).dicts()
    assert (row["path"], row["note"], row["tags"]) == ("moved.h5", "wire replaced; again", "paper")
    assert main(["runs", "unstar", "moved"]) == 0
    assert not found(starred=True)
    assert found(where="note like '%replaced%'") == ["moved.h5"]


def test_texts_of_recordings_are_no_code_no_formula_and_no_escape(make, capsys):
    evil = "'); drop view runs; --\x1b[31m<script>alert(1)</script>"
    make("a.h5", operator=evil, experiment_name="=cmd()", article="x\ud7ff")
    make("b.h5", created_utc="2026-10-01T10:00:00+00:00", experiment="[controller]\n'\" OR 1' = 1")
    assert main(["runs", "--columns", "operator,name"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31m<script>" in out
    assert main(["runs", "--csv", "--columns", "name", "--where", "name like '=%'"]) == 0
    assert capsys.readouterr().out.splitlines() == ["name", "'=cmd()"]
    assert main(["runs", "note", "a.h5", evil]) == 0
    assert len(found()) == 2
    assert found(where="controller___OR_1 = 1") == ["b.h5"]


def test_a_note_in_another_encoding_costs_no_run(make):
    """Hil wrote it as it came from a terminal that is not UTF-8; no question was answered since."""
    make("a.h5")
    with AppendLog(RUNS / notes.FILE) as log:
        for action in ("note", "tag"):
            identity = Catalogue(RUNS).one("a.h5")["identity"]
            log.add({"identity": identity, "action": action, "text": "caf\udce9"})
    (row,) = Catalogue(RUNS).find(Filter()).dicts()
    assert (row["note"], row["tags"]) == ("caf?", "caf?")


def test_numbers_and_texts_that_no_table_can_have_are_kept_out_of_it(make):
    make("a.h5", figures={"measured_max_N": 10**40, "model_max_N": float("nan")})
    make("b.h5", created_utc="2026-10-01T10:00:00+00:00", article="a\\u0000b")
    assert sorted(found()) == ["a.h5", "b.h5"]


def test_the_same_key_may_be_a_number_in_one_run_and_a_text_in_another(make):
    for name, value in (("a.h5", "1"), ("b.h5", '"one"'), ("c.h5", "1.5"), ("d.h5", "true")):
        make(name, created_utc=f"2026-10-01T10:00:0{ord(name[0]) - 97}+00:00",
             experiment=f"[controller]\ngain = {value}\nGain = 3\n")  # fmt: skip
        Catalogue(RUNS, rebuild=name == "a.h5")
    rows = Catalogue(RUNS).find(Filter(columns=("path", "controller_gain"))).dicts()
    assert {row["path"]: str(row["controller_gain"]) for row in rows} == {
        "a.h5": "1", "b.h5": "one", "c.h5": "1.5", "d.h5": "true"
    }  # fmt: skip


def test_two_runs_of_one_name_are_told_apart(make):
    make("x/a.h5")
    make("y/a.h5", created_utc="2026-10-01T10:00:00+00:00")
    with pytest.raises(ConfigError, match=r"a: several runs: .*x/a.h5"):
        Catalogue(RUNS).one("a")
    assert Catalogue(RUNS).one("runs/x/a.h5")["path"] == "x/a.h5"
