"""Files made by somebody who means harm: links, sizes and layouts, and what every reader answers.

A recording is data. Whoever opens one that came by mail must not read or write another file
through it, or run out of memory. Its code and its texts have tests of their own.
"""

import re
import resource

import h5py
import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.record.layout import LIBVER
from hil.record.safe_open import OVERRIDE
from record.openers import OPENERS, refused, words_of

SECRET = "the key of somebody's safe"
MEMORY_B = 8 * 10**9  # of address space, far below what the files claim


@pytest.fixture
def secret(tmp_path):
    """A file that the recording has no business with."""
    path = tmp_path / "secret.h5"
    with h5py.File(path, "w") as file:
        file["values"] = np.zeros(2000)
        file["text"] = np.frombuffer(SECRET.encode(), dtype=np.uint8)
    return path


def external_link(file, secret):
    del file["ticks/force_measured_N"]
    file["ticks/force_measured_N"] = h5py.ExternalLink(str(secret), "/values")


def soft_link(file, secret):
    del file["ticks/force_measured_N"]
    file["ticks/force_measured_N"] = h5py.SoftLink("/ticks/force_model_N")


def external_storage(file, secret):
    del file["ticks/force_measured_N"]
    file["ticks"].create_dataset(
        "force_measured_N", shape=(2000,), dtype="f8", external=[(str(secret), 0, 16000)]
    )


def virtual_dataset(file, secret):
    del file["ticks/force_measured_N"]
    layout = h5py.VirtualLayout(shape=(2000,), dtype="f8")
    layout[:] = h5py.VirtualSource(str(secret), "values", shape=(2000,))
    file["ticks"].create_virtual_dataset("force_measured_N", layout)


REACHING_OUT = {
    external_link: "an external link",
    soft_link: "a soft link",
    external_storage: "keeps its data in another file",
    virtual_dataset: "a virtual dataset",
}


@pytest.mark.parametrize("attack", REACHING_OUT, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("opener", OPENERS)
def test_a_recording_that_reads_another_file_is_refused_by_every_reader(
    attack, opener, hostile, secret, configs, capsys
):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        attack(file, secret)
    line = refused(words_of(opener, hostile, configs), capsys)
    assert line.startswith(f"{hostile}: 'ticks/force_measured_N'")
    assert REACHING_OUT[attack] in line
    assert sorted(p.name for p in hostile.parent.iterdir()) == ["run.h5"]


def test_nothing_in_hil_opens_a_file_for_reading_but_the_one_that_refuses(configs):
    """Others open what the program itself made: a new file, or a copy of one that passed."""
    package = configs.parent / "hil"
    found = {
        str(path.relative_to(package)): re.findall(r"h5py\.File\((\w+), \"(\S+)\"", text)
        for path in package.rglob("*.py")
        if "h5py.File(" in (text := path.read_text())
    }
    assert found == {
        "bench/long.py": [("path", "r+"), ("path", "r+")],
        "record/read.py": [("path", "r"), ("source", "r")],
        "record/layout.py": [("partial", "w"), ("path", "r+")],
        "record/memory.py": [("name", "w")],
        "record/recorder.py": [("path", "r+")],
        "record/places.py": [("part", "r+")],  # which it has written itself
        "record/repair.py": [("partial", "r+"), ("partial", "x")],
        "procedures/rewrite.py": [("partial", "r+"), ("partial", "r+")],
        "runs/imports/recording.py": [("path", "r+")],  # which it has written itself
        "runs/imports/binary_files.py": [("path", "r")],  # a file of another program
    }


def test_a_cut_off_recording_with_a_link_is_not_copied_through_it(hostile, secret, capsys):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        file.attrs["outcome"] = "running"
        file["model/extra"] = h5py.ExternalLink(str(secret), "/text")
    before = hostile.read_bytes()
    assert "an external link" in refused(["recover", hostile], capsys)
    assert hostile.read_bytes() == before


def many_rows(file):
    for name in [*file["ticks"]]:
        file["ticks"][name].resize(10**11, axis=0)
    file["recorded_rows"][0] = 10**11


def many_rows_in_one_chunk(file):
    for name in [*file["ticks"]]:
        dtype, shape = file["ticks"][name].dtype, file["ticks"][name].shape[1:]
        kept = dict(file["ticks"][name].attrs)
        del file["ticks"][name]
        made = file["ticks"].create_dataset(
            name, shape=(10**11, *shape), dtype=dtype, chunks=(10**6, *shape), compression="gzip",
            compression_opts=9,
        )  # fmt: skip
        made.attrs.update(kept)
    file["recorded_rows"][0] = 10**11


def bomb(file):
    """40 GB of zeros in about 40 MB: deflate packs them a thousandfold."""
    del file["ticks/busy_s"]
    made = file["ticks"].create_dataset(
        "busy_s", shape=(5 * 10**9,), dtype="f8", chunks=(10**6,), compression="gzip"
    )
    with h5py.File("packed", "w", driver="core", backing_store=False) as other:
        source = other.create_dataset(
            "x", shape=(10**6,), dtype="f8", chunks=(10**6,), compression="gzip"
        )
        source[0] = 0.0
        _, chunk = source.id.read_direct_chunk((0,))
    for at in range(0, 5 * 10**9, 10**6):
        made.id.write_direct_chunk((at,), chunk)


def many_cells(file):
    del file["ticks/cells_reported"]
    file["ticks"].create_dataset(
        "cells_reported", shape=(2000, 10**8), dtype="u1", chunks=(256, 10**5)
    )


def one_thing_under_many_names(file):
    for i in range(1_000):
        file[f"ticks/x{i}_N"] = file["ticks/force_measured_N"]


def large_attribute(file):
    """A list of 60 000 texts, which may all lie in one place and be one long text."""
    file.attrs["operator"] = ["x"] * 3
    names = np.array(["x"] * 60_000, dtype=h5py.string_dtype())
    file.attrs.create("operator", names)


TOO_LARGE = {
    many_rows: "GB of rows",
    many_rows_in_one_chunk: "GB of rows",
    bomb: "GB of rows",
    many_cells: "GB of rows",
    one_thing_under_many_names: "a second name of the same thing",
    large_attribute: "attribute 'operator' of '/' has 60000 entries",
}


@pytest.fixture
def little_memory():
    """Whatever takes more memory than a recording of 2 s needs fails at once."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_B, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("attack", TOO_LARGE, ids=lambda attack: attack.__name__)
def test_sizes_that_no_run_could_have_are_refused_before_memory_is_taken(
    attack, hostile, configs, capsys
):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        attack(file)
    assert hostile.stat().st_size < 100e6
    before_B = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for opener in ("verify", "replay", "report", "export", "identify"):
        line = refused(words_of(opener, hostile, configs), capsys)
        assert line.startswith(f"{hostile}: ")
        assert TOO_LARGE[attack] in line
    with pytest.raises(hil.errors.ConfigError):
        hil.open_run(hostile)
    after_B = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after_B - before_B < 200e6


def test_rows_that_are_claimed_but_not_stored_are_no_whole_recording(hostile, capsys):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        for name in [*file["ticks"]]:
            file["ticks"][name].resize(50_000, axis=0)
        file["recorded_rows"][0] = 50_000
    assert main(["verify", str(hostile)]) == 5
    said = capsys.readouterr().out
    assert "force_measured_N: claims 50000 rows" in said
    assert "50000 rows: its experiment has 5000 ticks" in said


@pytest.mark.parametrize("text", ["[" * 5000, "duration_s = = 1", "x = " + "[" * 5000])
def test_an_experiment_that_is_no_toml_is_one_line(text, hostile, configs, capsys):
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        file.attrs["experiment"] = text
    for opener in ("replay", "report", "identify"):
        line = refused(words_of(opener, hostile, configs), capsys)
        assert line.startswith(f"{hostile}: attribute 'experiment' is not TOML")


def test_a_run_that_needs_more_memory_than_there_is_says_so(hostile, capsys, monkeypatch):
    monkeypatch.setenv(OVERRIDE, "1e-4")
    line = refused(["report", hostile], capsys)
    assert f"may be taken: read it on a larger machine, or set {OVERRIDE}" in line
    monkeypatch.setenv(OVERRIDE, "1")
    assert main(["verify", str(hostile)]) == 0
    monkeypatch.setenv(OVERRIDE, "much")
    assert refused(["report", hostile], capsys) == f"{OVERRIDE} = much: give a number of GB\n"


def test_a_recording_that_was_repacked_with_compression_is_read_as_before(hostile):
    before = hil.open_run(hostile)
    with h5py.File(hostile, "r+", libver=LIBVER) as file:
        for name in [*file["ticks"]]:
            values, kept = file["ticks"][name][:], dict(file["ticks"][name].attrs)
            del file["ticks"][name]
            made = file["ticks"].create_dataset(
                name, data=values, maxshape=(None, *values.shape[1:]), compression="gzip"
            )
            made.attrs.update(kept)
    assert before.equals(hil.open_run(hostile))
    assert main(["verify", str(hostile)]) == 0
