"""A file is there as a whole, or as it was before."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from hil.__main__ import main
from hil.errors import ConfigError
from hil.platform.whole_files import whole, write_whole


def test_a_file_has_its_name_when_it_is_complete_and_not_before(tmp_path):
    path = tmp_path / "a.mat"
    path.write_bytes(b"older")
    with whole(path) as part:
        assert (part.parent, part.suffix) == (tmp_path, ".part")  # no search for .mat finds it
        part.write_bytes(b"new")
        assert path.read_bytes() == b"older"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_recording_is_replaced_by_nothing_but_a_recording(tmp_path):
    path = tmp_path / "a.h5"
    for content in ("older", "newer"):
        with h5py.File(tmp_path / "b.h5", "w") as file:
            file.attrs["content"] = content
        write_whole(path, (tmp_path / "b.h5").read_bytes())
    (tmp_path / "b.h5").unlink()
    with pytest.raises(ConfigError, match=r"a\.h5: a recording, which stays"):
        write_whole(path, "a page")
    with h5py.File(path) as file:
        assert file.attrs["content"] == "newer"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("older", [None, b"older"])
@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()])
def test_what_fails_leaves_nothing_and_changes_nothing(tmp_path, older, error):
    path = tmp_path / "a.csv"
    if older is not None:
        path.write_bytes(older)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}

    def fail():
        with whole(path) as part:
            part.write_bytes(b"half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_link_goes_on_leading_to_its_file(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there/a.csv", tmp_path / "a.csv"
    target.write_text("older")
    link.symlink_to(target)
    write_whole(link, "new\r\n")
    assert link.is_symlink()
    assert target.read_bytes() == b"new\r\n"


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(open(sys.argv[1]).read())", pipe],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    write_whole(pipe, "through")
    assert reader.communicate()[0] == "through\n"
    assert pipe.is_fifo()


def test_a_file_that_may_not_be_changed_is_not_replaced(tmp_path):
    program = Path(shutil.copy(sys.executable, tmp_path / "a.csv"))
    before = program.read_bytes()
    with (  # nobody writes to a program that runs
        subprocess.Popen([program, "-c", "input()"], stdin=subprocess.PIPE),
        pytest.raises(OSError, match="busy"),
    ):
        write_whole(program, "other")
    assert program.read_bytes() == before
    assert list(tmp_path.iterdir()) == [program]


@pytest.mark.parametrize(
    ("words", "limit_B"),
    [
        ("model RIG --out m.npz", 2000),
        ("model RIG --out m.mat", 2000),
        ("topologies 3 --out table", 200),
        ("calibrate certificate --rehearse --out c.toml", 1400),
    ],
)
def test_a_command_for_whose_file_there_is_no_room_leaves_none(
    words, limit_B, configs, tmp_path, monkeypatch, capsys
):
    words = words.replace("RIG", str(configs / "miga6/rig.toml")).split()
    for folder in ("with room", "without"):  # compiled code is kept where there is room
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "with room")
    assert main(words) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path / "without")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python would keep it cut off
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_B, before[1]))
    try:
        code = main(words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (line,) = capsys.readouterr().err.splitlines()
    assert (code, "cannot be written (File too large)" in line) == (2, True)
    left = [path.name for path in Path().rglob("*") if path.is_file()]
    assert left == (["c.journal"] if "calibrate" in words else [])  # it keeps the readings
