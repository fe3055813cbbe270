"""What refuses a hostile file, on files of a few bytes."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from hil.errors import ConfigError
from hil.record.safe_open import OVERRIDE, refuse_hostile


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "mail.h5", "w") as made:
        yield made


def refusal(file):
    """What is wrong with the file, without its path."""
    file.flush()
    with pytest.raises(ConfigError) as refused:
        refuse_hostile(file, Path(file.filename))
    return str(refused.value).removeprefix(f"{file.filename}: ")


def test_any_dataset_may_be_the_one_that_does_not_fit_into_memory(file, monkeypatch):
    monkeypatch.setenv(OVERRIDE, "1e-6")  # 1000 bytes
    for name, n in (("a", 10), ("b", 500), ("c", 10)):
        file[name] = np.zeros(n)
    assert refusal(file).startswith("needs 4e-06 GB of memory")


def test_every_filter_of_a_dataset_is_looked_at(file):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk((4,))
    how.set_shuffle()
    how.set_scaleoffset(h5py.h5z.SO_INT, 0)
    space = h5py.h5s.create_simple((4,))
    h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, space, how)
    number = h5py.h5z.FILTER_SCALEOFFSET
    assert refusal(file).startswith(f"'x' passes filter {number}, which no run uses")


def test_the_name_of_every_cell_is_looked_at(file):
    file["model/cells"] = np.array([b"a.1", b"a.2", b"<script>"])
    assert refusal(file).startswith("'<script>' is not a name that a run writes")


@pytest.mark.parametrize("limit", ["nan", "inf", "0", "-1", "1e9"])
def test_a_limit_of_memory_that_is_no_number_of_gigabytes_is_refused(file, monkeypatch, limit):
    monkeypatch.setenv(OVERRIDE, limit)
    with pytest.raises(ConfigError, match=f"{OVERRIDE} = {limit}: give a number of GB"):
        refuse_hostile(file, Path(file.filename))


def test_attributes_are_those_that_h5py_reads(tmp_path):
    """Its own reading is the oracle; texts are texts, and arrays lists."""
    texts = h5py.string_dtype()
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        values = {
            "text": "30 °C", "bytes": np.bytes_(b"N"), "texts": ["a", "b"], "whole": 3,
            "fixed": np.array([b"a", b"bc"]), "number": 0.1, "small": np.float32(0.1),
            "true": True, "numbers": [1.0, 2.5],
            "table": np.arange(6).reshape(2, 3), "opaque": np.void(b"abcd"), "complex": 1j,
            "empty": h5py.Empty("f8"), "none": np.zeros(0), "nothing": "",
        }  # fmt: skip
        for key, value in values.items():
            file.attrs[key] = value
        some = np.empty((), h5py.vlen_dtype("i4"))
        some[()] = np.arange(3, dtype="i4")
        kind = h5py.h5t.py_create(some.dtype, logical=True)
        h5py.h5a.create(file.id, b"any", kind, h5py.h5s.create(h5py.h5s.SCALAR)).write(some)
        pair = np.dtype((texts, (2,)))
        file.attrs.create("pair", np.array(["a", "b"], object), dtype=pair)
        file.attrs.create("kind", 1, dtype=h5py.enum_dtype({"off": 0, "on": 1}))
        file.attrs.create("not_utf8", b"\xff", dtype=texts)
        found = refuse_hostile(file, tmp_path / "odd.h5")["/"]
        expected = dict(file.attrs)
    assert found.keys() == expected.keys() >= values.keys()
    for key, value in expected.items():
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, bytes):
            value = value.decode()
        assert found[key] == value or isinstance(value, h5py.Empty), key
        assert isinstance(found[key], str | list) == isinstance(value, str | list), key
