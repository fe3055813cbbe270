"""What an export may not replace, and that its file is whole or absent."""

import json
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import scipy.io

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.record import export as exporting
from hil.record.export import KINDS, _imported, export
from hil.record.read import open_run
from record.mutations import spoil

ENDINGS = {**KINDS, "crate": ".crate.zip"}
LIMIT_B = 20_000  # of a file; a smaller one is written in one go


def test_an_export_takes_the_name_of_no_recording(all_on, tmp_path):
    with pytest.raises(ConfigError, match=r"other.h5: a recording: name it other.csv"):
        export(all_on, "csv", tmp_path / "other.h5")
    assert not list(tmp_path.iterdir())


def test_an_export_of_a_recording_called_csv_suggests_no_name_that_is_refused(all_on, tmp_path):
    run = Path(shutil.copy(all_on, tmp_path / "run.csv"))
    with pytest.raises(ConfigError, match=r"run.csv: a recording, which stays: give another name"):
        export(run, "csv")
    assert export(run, "csv", tmp_path / "table.csv").read_text().startswith("t_s,")


def test_a_run_that_is_too_long_for_matlab_is_told_of_parquet(all_on, tmp_path, monkeypatch):
    """SciPy refused it too, with an error of its own after 4 GB were written."""
    with h5py.File(all_on) as file:
        size_B = sum(column.size * column.dtype.itemsize for column in file["ticks"].values())
    monkeypatch.setattr(exporting, "MAT_MAX_B", size_B)
    assert export(all_on, "mat", tmp_path / "run.mat").is_file()
    monkeypatch.setattr(exporting, "MAT_MAX_B", size_B - 1)
    with pytest.raises(ConfigError, match=r"GB of rows: a \.mat file may have .* --to parquet"):
        export(all_on, "mat", tmp_path / "longer.mat")


@pytest.mark.parametrize("kind", ["csv", "mcap", "mdf", "parquet", "mat"])
def test_rows_that_cannot_be_read_are_the_recordings_damage(all_on, tmp_path, capsys, kind):
    run = Path(shutil.copy(all_on, tmp_path / "run.h5"))
    spoil(run, "ticks/busy_s", 0)
    assert main(["export", str(run), "--to", kind]) == 2
    assert capsys.readouterr().err.startswith(f"{run}: damaged (")
    assert list(tmp_path.iterdir()) == [run]


@pytest.mark.filterwarnings("error")
def test_matlab_gets_every_column_whatever_its_name_is(all_on, tmp_path):
    run, long = Path(shutil.copy(all_on, tmp_path / "run.h5")), "m" * 62
    names = {
        "muscle.1.current_A": ("1.current_A", "x1_current_A"),
        "muscle.2.current_A": ("_left.current_A", "x_left_current_A"),
        "muscle.3.current_A": (f"{long}.current_A", f"{long}_"),
        "muscle.4.current_A": (f"{long}.current_mA", f"{long[:61]}_2"),
        "muscle.5.current_A": ("λ.current_A", "x__current_A"),
        "muscle.6.current_A": ("muscle_1.temperature_C", "muscle_1_temperature_C_2"),
    }
    with h5py.File(run, "r+") as file:
        for old, (new, _) in names.items():
            file.move(f"ticks/{old}", f"ticks/{new}")
            file["ticks"][new][0] = len(new)
    read = scipy.io.loadmat(export(run, "mat"), simplify_cells=True)
    columns = open_run(run)
    assert sorted(read["columns"].values()) == sorted(
        ["t_s", *(str(name) for name in columns.data_vars if columns[name].dims[0] == "tick")]
    )
    for field, name in read["columns"].items():
        np.testing.assert_array_equal(read["ticks"][field], columns[name])
        assert read["units"][field] == columns[name].attrs["units"]
    assert {field for _, field in names.values()} <= set(read["columns"])


def test_an_error_of_the_program_is_no_damage(all_on, tmp_path, capsys, monkeypatch):
    def wrong(*_):
        raise TypeError("a defect")

    monkeypatch.setattr(exporting, "write_csv", wrong)
    assert main(["export", str(all_on), "--out", str(tmp_path / "run.csv")]) == 1
    assert capsys.readouterr().err.startswith("hil: internal error: TypeError: a defect: ")
    assert not list(tmp_path.iterdir())


def test_every_file_that_a_recording_was_imported_from_is_known():
    files = [{"file": "a.csv", "sha256": "12"}, {"file": "b.csv", "sha256": "34"}]
    run = SimpleNamespace(attrs={"imported": json.dumps({"files": files})})
    assert _imported(run) == {"12", "34"}
    assert _imported(SimpleNamespace(attrs={})) == set()


@pytest.fixture
def limited(monkeypatch):
    """Files of this process end at LIMIT_B, as on a full disk.

    Python would keep a module's bytecode cut off there, and fail at every later import of it.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_B, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow_beyond(4)
@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("older", [None, b"older"])
def test_an_export_for_which_there_is_no_room_leaves_nothing_and_an_older_one_as_it_was(
    all_on, tmp_path, capsys, limited, kind, older
):
    target = tmp_path / f"run{ENDINGS[kind]}"
    if older is not None:
        target.write_bytes(older)
    assert main(["export", str(all_on), "--to", kind, "--out", str(target)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1, said
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == (
        {} if older is None else {target.name: older}
    )


@pytest.mark.slow
def test_a_report_for_which_there_is_no_room_leaves_no_file(all_on, tmp_path, capsys, limited):
    assert main(["report", str(all_on), "--out", str(tmp_path / "report")]) == 2
    assert "cannot be written (File too large): choose another --out" in capsys.readouterr().err
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


KILLED = """
import json, os, resource, signal, sys, time
from pathlib import Path
import hil.record.export, hil.reports.crate
from hil.__main__ import main
moments, target, older, words = json.loads(sys.argv[1])
path = Path(target)
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
for how, size_B in moments:
    path.write_text(older)
    child = os.fork()
    if not child:
        sys.dont_write_bytecode = True  # or a module's bytecode stays cut off
        if how == "in a write":  # the system ends it there
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size_B, size_B))
        elif how != "from outside":
            setattr(os, how, kill)
        main(words)
        os._exit(0)
    part, left = path.with_name(f"{path.name}.{child}.part"), 0
    while how == "from outside" and not left:
        if part.exists() and os.stat(part).st_size >= size_B:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.001)
        left, status = os.waitpid(child, os.WNOHANG)
    if not left:
        _, status = os.waitpid(child, 0)
    names = sorted(file.name for file in path.parent.iterdir())
    print(json.dumps([os.waitstatus_to_exitcode(status), path.stat().st_size, names]))
    part.unlink(missing_ok=True)
"""


@pytest.fixture
def short(configs, tmp_path):
    """A recording of 200 rows."""
    config = hil.load(configs / "miga6/all_on.toml", ["experiment.duration_s=0.2"])
    return hil.run(config, out=tmp_path / "run.h5")


BY_KILL, IN_WRITE = -signal.SIGKILL, -signal.SIGXFSZ


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENDINGS)
def test_an_export_that_is_killed_leaves_the_older_file_whenever_that_is(short, tmp_path, kind):
    target = tmp_path / "exports" / f"run{ENDINGS[kind]}"
    target.parent.mkdir()
    words = ["export", str(short), "--to", kind, "--out", str(target)]
    assert main(words) == 0
    new_B = target.stat().st_size
    moments = [("in a write", int(share * new_B)) for share in (0.05, 0.5, 0.99)]
    moments += [("fsync", 0), ("replace", 0)]
    moments += [("from outside", int(share * new_B)) for share in (0.0, 0.4, 0.9)]
    order = json.dumps([moments, str(target), "older", words])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, order], capture_output=True, text=True, check=True
    )
    ends = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [code for code, _, _ in ends[:5]] == 3 * [IN_WRITE] + 2 * [BY_KILL]
    assert [size_B for _, size_B, _ in ends[:5]] == 5 * [len("older")]
    for code, size_B, names in ends[5:]:  # some are complete before the kill
        kept = size_B == len("older")
        assert (code, kept) in {(BY_KILL, True), (BY_KILL, False), (0, False)}
        assert kept or size_B == pytest.approx(new_B, rel=0.01)  # times of day differ
        assert len(names) == 1 or names[1].endswith(".part")
