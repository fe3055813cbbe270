"""Units are code of somebody: who runs them, what they may unpack, and what is left of them."""

import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import h5py
import psutil
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.errors import ModelError, PluginError
from hil.experiment.load import load
from hil.platform.scratch import Scratch
from hil.record.layout import LIBVER
from hil.runs.kept_code import config_of
from hil.systems.fmu import archive
from hil.systems.fmu.kind import SYSTEM
from hil.systems.fmu.system import FOLDER
from record.openers import OPENERS, refused, words_of
from systems.fmu.units import PERIOD_S, table, with_unit

MARKS = """
#include <stdio.h>
__attribute__((constructor)) static void mark(void)
{{
    FILE *file = fopen("{path}", "a");
    fputs("it ran\\n", file);
    fclose(file);
}}
"""
RUNS_CODE = ("replay", "identify", "validate", "recalibrate")


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files, of this test alone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def trusted(tmp_path, monkeypatch):
    """The user's file of trust; nothing is trusted."""
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder / "hil" / "trusted"


@pytest.fixture(scope="module")
def theirs(made, configs, tmp_path_factory):
    """Recordings whose plant or twin is a unit that leaves a mark when it is loaded."""
    folder = tmp_path_factory.mktemp("theirs")
    mark = folder / "mark"

    @cache
    def make(key):
        out = folder / f"{key}.h5"
        unit = made(more=MARKS.format(path=mark))
        shutil.copytree(configs.parent / "calibration", folder / key / "calibration")
        copy = Path(shutil.copytree(configs, folder / key / "configs"))
        with pytest.MonkeyPatch.context() as elsewhere:
            elsewhere.setenv("XDG_STATE_HOME", str(folder / "state"))
            config = load(with_unit(copy, unit, key=key), ["experiment.duration_s=0.3"])
            hil.run(config, out=out)
        assert mark.read_text()
        return out, unit

    return make, mark


@pytest.fixture
def mark(theirs):
    """The file that their unit writes when it is loaded."""
    theirs[1].unlink(missing_ok=True)
    return theirs[1]


@pytest.fixture
def mailed(theirs, mark, tmp_path):
    """Somebody else's recording with their plant or twin, and the unit that it names."""

    def copy(key):
        out, unit = theirs[0](key)
        mark.unlink(missing_ok=True)
        return Path(shutil.copy(out, tmp_path / "theirs.h5")), unit

    return copy


def _edit(path, change):
    """Change the tables of a recording."""
    with h5py.File(path, "r+", libver=LIBVER) as file:
        table = tomllib.loads(file.attrs["experiment"])
        change(table)
        file.attrs["experiment"] = tomli_w.dumps(table)


# Who runs a unit


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("opener", ["replay", *sorted(set(OPENERS) - {"replay"})])
def test_a_recording_does_not_run_the_unit_of_its_plant(opener, mailed, mark, configs, trusted):
    path, _ = mailed("plant")
    code = main([str(word) for word in words_of(opener, path, configs)])
    assert code in (0, 2, 5)  # too short a run to identify; its twin differs from the plant
    assert not mark.exists()
    if opener == "replay":
        assert code == 0


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize("opener", ["replay", *sorted(set(OPENERS) - {"replay"})])
def test_a_recording_does_not_run_the_unit_of_its_twin_unasked(
    opener, mailed, mark, configs, trusted, capsys
):
    path, unit = mailed("model")
    code = main([str(word) for word in words_of(opener, path, configs)])
    assert not mark.exists()
    assert code == (2 if opener in RUNS_CODE else 0)
    if opener == "replay":
        said = capsys.readouterr().err
        sha256 = hashlib.sha256(unit.read_bytes()).hexdigest()
        assert said.startswith(f"{path}: its twin is a unit of native code that is not trusted")
        assert f"{unit} for model, sha256 {sha256}" in said
        assert f"hil replay {path} --trust {sha256}" in said


@pytest.mark.slow
def test_a_trusted_unit_replays_and_another_one_at_its_place_does_not(
    mailed, mark, trusted, made, capsys
):
    path, unit = mailed("model")
    sha256 = hashlib.sha256(unit.read_bytes()).hexdigest()
    assert main(["replay", str(path), "--trust", sha256]) == 0
    assert mark.read_text()
    mark.unlink()
    assert trusted.read_text().startswith(f"{sha256} ")
    kept = unit.read_bytes()
    try:
        with zipfile.ZipFile(unit, "a") as archive:
            archive.writestr("resources/more", "more")
        assert "is not trusted" in refused_first(["replay", path], capsys)
        assert not mark.exists()
        other = hashlib.sha256(unit.read_bytes()).hexdigest()
        with trusted.open("a") as file:
            file.write(f"{other} another one\n")
        assert "differs from the unit that was recorded" in refused(["replay", path], capsys)
        assert not mark.exists()
    finally:
        unit.write_bytes(kept)


def refused_first(words, capsys):
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err.splitlines()[0]


@pytest.mark.slow
def test_what_this_user_ran_here_replays_without_a_question(made, rig_with, trusted, tmp_path):
    out = tmp_path / "mine.h5"
    run = ["run", str(rig_with(made(), key="model")), "--duration", "0.3", "--out", str(out)]
    assert main(run) == 0
    assert main(["replay", str(out)]) == 0


@pytest.mark.parametrize("place", ["unit.fmu", "/dev/zero", "pipe", "{folder}"])
def test_a_recording_names_no_other_file_that_is_opened(
    place, mailed, mark, trusted, tmp_path, capsys, monkeypatch
):
    """An older recording states no hash: the file is looked at, if it can be a unit at all."""
    path, unit = mailed("model")
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "unit.fmu").write_bytes(unit.read_bytes())
    name = place.format(folder=tmp_path)

    def change(table):
        table["model"]["file"] = table["plant"]["file"] = name

    _edit(path, change)
    with h5py.File(path, "r+", libver=LIBVER) as file:
        del file.attrs["model_sha256"]
    said = refused_first(["replay", path], capsys)
    assert ("is not trusted" if place == "unit.fmu" else "not a regular file") in said
    assert not mark.exists()


def test_a_unit_that_is_exchanged_after_it_was_looked_at_is_not_run(
    mailed, made, mark, trusted, tmp_path
):
    """Between the check of its hash and its start."""
    sound = made()
    unit = tmp_path / "unit.fmu"
    unit.write_bytes(sound.read_bytes())
    model = SYSTEM.build(table(unit), PERIOD_S)
    unit.write_bytes(made(more=MARKS.format(path=mark)).read_bytes())
    with pytest.raises(PluginError, match="has changed since it was checked"):
        SYSTEM.system(None, model, PERIOD_S)
    assert not mark.exists()


def test_a_unit_exchanged_after_its_hash_was_trusted_is_not_loaded(
    mailed, made, mark, trusted, monkeypatch
):
    path, unit = mailed("model")
    sha256 = hashlib.sha256(unit.read_bytes()).hexdigest()
    assert main(["replay", str(path), "--trust", sha256]) == 0
    kept, mark_of = unit.read_bytes(), archive.read

    def exchanged(file):
        with zipfile.ZipFile(unit, "a") as other:
            other.writestr("resources/more", "more")
        return mark_of(file)

    monkeypatch.setattr(archive, "read", exchanged)
    mark.unlink()
    try:
        with pytest.raises(Exception, match="is not trusted"):
            config_of(path, hil.open_run(path))
    finally:
        unit.write_bytes(kept)
    assert not mark.exists()


# What a unit may unpack


def _bomb(path, sound):
    """100 MB of zeros, of which deflate makes 100 kB."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as target:
        target.writestr("resources/zeros", bytes(10**8))


def _many_files(path, sound):
    with zipfile.ZipFile(path, "a") as target:
        for n in range(archive.FILES_MAX):
            target.writestr(f"resources/{n}", b"")


def _outside(path, sound):
    with zipfile.ZipFile(path, "a") as target:
        target.writestr("../../outside", "out")


def _absolute(path, sound):
    with zipfile.ZipFile(path, "a") as target:
        target.writestr("/tmp/outside", "out")


def _link(path, sound):
    entry = zipfile.ZipInfo("resources/link")
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as target:
        target.writestr(entry, "/etc/passwd")


def _twice(path, sound):
    with zipfile.ZipFile(path, "a") as target, pytest.warns(UserWarning, match="Duplicate"):
        target.writestr(archive.DESCRIPTION, target.read(archive.DESCRIPTION))


def _other_packing(path, sound):
    with zipfile.ZipFile(path, "a", zipfile.ZIP_LZMA) as target:
        target.writestr("resources/more", b"more" * 100)


def _described(text):
    def change(path, sound):
        with zipfile.ZipFile(sound) as old, zipfile.ZipFile(path, "w") as new:
            for item in old.infolist():
                data = old.read(item)
                if item.filename == archive.DESCRIPTION:
                    head, _, rest = data.decode().partition("?>\n")
                    data = f"{head}?>\n{text}{rest}".encode()
                new.writestr(item, data)

    return change


DOCUMENT_TYPE = '<!DOCTYPE fmiModelDescription [<!ENTITY file SYSTEM "file:///etc/passwd">]>\n'
ARCHIVES = {
    "a bomb": (_bomb, "unpacks to 100 MB"),
    "many files": (_many_files, "files, a unit at most 20000"),
    "a name outside": (_outside, "would be unpacked outside its folder"),
    "an absolute name": (_absolute, "would be unpacked outside its folder"),
    "a link": (_link, "is a link or a device"),
    "one name twice": (_twice, "is there twice"),
    "another packing": (_other_packing, "not packed by deflate"),
    "entities": (_described(DOCUMENT_TYPE), "has a document type"),
    "no XML": (_described("<"), "is not XML"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_that_is_no_units_is_refused_before_anything_is_written(
    name, made, rig_with, tmp_path, temporary, capsys
):
    change, wanted = ARCHIVES[name]
    unit = tmp_path / "unit.fmu"
    unit.write_bytes(made().read_bytes())
    change(unit, made())
    line = refused(["check", rig_with(unit)], capsys)
    assert f"plant.file: '{unit}': " in line
    assert wanted in line
    with pytest.raises(ModelError, match="file: "):
        archive.unpack(unit, hashlib.sha256(unit.read_bytes()).hexdigest(), temporary)
    assert [path for path in temporary.rglob("*") if path.name != "unit.fmu"] == []


def test_a_large_resource_of_plain_numbers_is_no_bomb(made, tmp_path):
    """Tables of characteristics: text, of which deflate makes a third."""
    unit = tmp_path / "unit.fmu"
    unit.write_bytes(made().read_bytes())
    rows = "\n".join(f"{n} {(n * 7919) % 100003}" for n in range(400_000))
    with zipfile.ZipFile(unit, "a", zipfile.ZIP_DEFLATED) as target:
        target.writestr("resources/table.txt", rows)
    system = SYSTEM.system(None, SYSTEM.build(table(unit), PERIOD_S), PERIOD_S)
    assert system.y.tolist() == [0.0, 0.0]


def test_a_disk_without_room_is_said_before_it_is_full(made, tmp_path, temporary, monkeypatch):
    unit = made()
    sha256 = hashlib.sha256(unit.read_bytes()).hexdigest()
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(ModelError, match="set TMPDIR"):
        archive.unpack(unit, sha256, temporary)
    assert not (temporary / "unit").exists()


# What is left of a unit


def _units(temporary):
    return list(temporary.glob(f"{FOLDER}*"))


@pytest.mark.slow
def test_a_run_leaves_no_folder(made, rig_with, tmp_path, temporary):
    words = ["run", str(rig_with(made())), "--duration", "0.1", "--out", str(tmp_path / "run.h5")]
    done = subprocess.run([sys.executable, "-m", "hil", *words], check=False, timeout=600)
    assert done.returncode == 0
    assert _units(temporary) == []


HOLDS = """
import sys, time
from pathlib import Path
from hil.systems.fmu.kind import SYSTEM
from hil.systems.fmu.tables import FmuTable
table = FmuTable.model_validate_json(sys.argv[1])
system = SYSTEM.system(None, SYSTEM.build(table, 0.001), 0.001)
print(system._process.pid, flush=True)
"""
COMPUTES = "import numpy as np\nfor _ in range(100): system.step(np.zeros(6), np.zeros(0))"


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("state", ["waits", "computes", "unpacks"])
def test_a_killed_hil_leaves_no_process_and_the_next_start_removes_its_folder(
    state, made, tmp_path, temporary
):
    """The unit that computes does so without end; the archive that unpacks waits in its middle."""
    unit = made(fault="hangs" if state == "computes" else None)
    asked = table(unit, step_max_s=600.0).model_dump_json()
    code = HOLDS + (COMPUTES if state == "computes" else "time.sleep(600)")
    if state == "unpacks":
        site = tmp_path / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(
            "import time, zipfile\nzipfile.ZipFile.extractall = lambda *_: time.sleep(600)\n"
        )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    with subprocess.Popen(
        [sys.executable, "-c", code, asked], stdout=subprocess.PIPE, text=True, env=environment
    ) as holder:
        try:
            _until(lambda: psutil.Process(holder.pid).children() and _units(temporary))
            (child,) = psutil.Process(holder.pid).children()
            if state == "unpacks":
                _until(lambda: any(temporary.glob(f"{FOLDER}*/unit.fmu")))
            else:
                assert holder.stdout.readline().strip() == str(child.pid)
            if state == "computes":
                started_s = child.cpu_times().user
                _until(lambda: child.cpu_times().user > started_s + 0.5)
        finally:
            holder.send_signal(signal.SIGKILL)
    _until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    assert len(_units(temporary)) == 1
    with Scratch(FOLDER):
        assert len(_units(temporary)) == 1
    assert _units(temporary) == []


def _until(condition):
    end_s = time.monotonic() + 300.0
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_folders_of_living_processes_and_of_others_stay(temporary, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (temporary / f"{FOLDER}link").symlink_to(elsewhere)
    for name in ("shared", "fresh"):
        (temporary / f"{FOLDER}{name}").mkdir(mode=0o700)
    (temporary / f"{FOLDER}shared").chmod(0o777)
    (temporary / f"{FOLDER}shared" / ".owner").touch()
    with Scratch(FOLDER) as first, Scratch(FOLDER) as second:
        assert first.is_dir()
        assert second.is_dir()
        assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert elsewhere.is_dir()
    assert {path.name for path in _units(temporary)} == {
        f"{FOLDER}link", f"{FOLDER}shared", f"{FOLDER}fresh",
    }  # fmt: skip
    os.utime(temporary / f"{FOLDER}fresh", (0, 0))
    with Scratch(FOLDER):
        assert not (temporary / f"{FOLDER}fresh").exists()
