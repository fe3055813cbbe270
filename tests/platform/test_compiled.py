"""Numba is an extra: without it every kernel runs as Python, and the user hears so."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import hil
from hil import compiled
from hil.platform import provenance

CONFIGS = Path(hil.__file__).resolve().parents[1] / "configs"
WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None  # their import now fails
from hil.__main__ import main
sys.exit(main())
"""


def run(out, *start, experiment="miga6/pid"):
    words = ["run", str(CONFIGS / f"{experiment}.toml"), "--duration", "0.3", "--seed", "3"]
    return subprocess.run(
        [sys.executable, *start, *words, "--out", str(out)], capture_output=True, text=True,
        env=os.environ | {"HOME": str(out.parent)}, check=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_run_without_numba_warns_and_gives_the_same_rows(tmp_path):
    slow = run(tmp_path / "slow.h5", "-c", WITHOUT_NUMBA)
    fast = run(tmp_path / "fast.h5", "-m", "hil")
    assert "scripts/setup fast" in slow.stderr
    assert len(slow.stderr.splitlines()) == 1
    assert "Numba" not in fast.stderr
    with h5py.File(tmp_path / "slow.h5") as one, h5py.File(tmp_path / "fast.h5") as other:
        assert json.loads(one.attrs["software"])["processor"] == platform.machine()
        for name in ("t_s", "force_measured_N", "force_model_N", "cells_commanded"):
            assert np.array_equal(one["ticks"][name][()], other["ticks"][name][()]), name


@compiled.njit
def doubled(arrays):
    """Twice the rows of the first array, in place, and the second one's sum."""
    first, (second, scale) = compiled.borrowed(arrays)
    for row in first:
        row *= scale
    return second.sum()


def test_borrowed_arrays_are_the_callers_own_and_are_not_counted():
    one, other = np.arange(6.0).reshape(2, 3), np.ones(4, dtype=np.int64)
    before = sys.getrefcount(one), sys.getrefcount(other)
    for _ in range(5):
        assert doubled((one, (other, 2.0))) == 4
    assert one.tolist() == [[0.0, 32.0, 64.0], [96.0, 128.0, 160.0]]
    assert (sys.getrefcount(one), sys.getrefcount(other)) == before


def test_a_recording_names_a_package_that_was_not_installed(monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGES", ("numpy", "no-such-package"))
    found = provenance.software()
    assert found["no-such-package"] == "not installed"
    assert found["numpy"] == np.__version__


NO_FOLDER = """
import sys
from numba.core import caching
caching.CacheImpl._locator_classes = []  # neither beside the package nor in the user's home
from hil.__main__ import main
sys.exit(main())
"""


@pytest.mark.slow
def test_where_no_folder_for_compiled_models_can_be_written_a_run_warns(tmp_path):
    done = run(tmp_path / "run.h5", "-c", NO_FOLDER, experiment="slider/steps")
    assert done.stdout.startswith("complete: 300 rows")
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: compiled models cannot be kept")
    assert line.endswith("name a folder that can be written in NUMBA_CACHE_DIR")


def test_a_file_in_the_working_folder_does_not_say_where_compiled_code_is(tmp_path):
    (tmp_path / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path / 'theirs'}\n")
    where = "import hil, numba.core.config; print(repr(numba.core.config.CACHE_DIR))"
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", where], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stdout == "''\n", done.stderr
