"""A kernel whose file did not change is compiled again when something that it calls has changed."""

import importlib
import sys

import pytest

from hil.kernel_cache import digest

CALLER = """
from hil.compiled import njit
import kernels_called
from kernels_called import OFFSET, TABLE, called

@njit(cache=True)
def caller(x):
    return beside(x) + OFFSET + TABLE[1] + kernels_called.SCALE

@njit(cache=True)
def beside(x):
    return called(x)
"""
CALLED = """
import numpy as np
from hil.compiled import njit

OFFSET, SCALE = 10.0, 100.0
TABLE = np.array([0.0, 1000.0])
TABLES = (np.array([0.0]),)
NONE = 0.0

@njit(cache=True)
def called(x):
    return deeper(x)

@njit(cache=True, error_model="numpy")
def deeper(x, more=0.0):
    def inner(y):
        return y + 0.0
    few = [inner(one * 1.0) + NONE for one in (x,)]
    return 2.0 * few[0] + more + TABLES[0][0]
"""


@pytest.fixture
def caller(tmp_path, monkeypatch):
    """The kernel `caller` as a new process has it, after the texts of `called` have changed."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "kernels_caller.py").write_text(CALLER)

    def load(*change):
        (tmp_path / "kernels_called.py").write_text(CALLED.replace(*change) if change else CALLED)
        for name in ("kernels_caller", "kernels_called"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        return importlib.import_module("kernels_caller").caller

    yield load
    for name in ("kernels_caller", "kernels_called"):
        sys.modules.pop(name, None)


@pytest.mark.slow_beyond(3)
@pytest.mark.parametrize(
    ("change", "value"),
    [
        (("2.0 * few", "3.0 * few"), 1113.0),
        (("OFFSET, SCALE = 10.0", "OFFSET, SCALE = 20.0"), 1122.0),
        (("100.0", "200.0"), 1212.0),
        (("1000.0", "2000.0"), 2112.0),
        (("more=0.0", "more=5.0"), 1117.0),
        (("y + 0.0", "y + 4.0"), 1120.0),
        (("one * 1.0", "one * 3.0"), 1116.0),
        (("NONE = 0.0", "NONE = 4.0"), 1120.0),
        (("(np.array([0.0]),)", "(np.array([7.0]),)"), 1119.0),
    ],
)
def test_what_is_called_or_used_from_another_file_is_compiled_in_again(caller, change, value):
    first = caller()
    assert first(1.0) == 1112.0
    assert caller(*change)(1.0) == value
    again = caller()
    assert again(1.0) == 1112.0
    (hits,) = again.stats.cache_hits.values()
    assert hits == 1


def test_the_digest_does_not_depend_on_where_a_line_stands(caller):
    plain = digest(caller().py_func)
    moved = digest(caller("import numpy", "# a comment\n\nimport numpy").py_func)
    assert moved == plain


def test_the_digest_has_the_options_of_what_is_called(caller):
    plain = digest(caller().py_func)
    assert digest(caller(', error_model="numpy"', "").py_func) != plain


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", bytes(4096)], ids=["empty", "zeros"])
def test_a_file_that_a_power_cut_left_without_its_content_is_made_again(
    caller, tmp_path, ending, content
):
    assert caller()(1.0) == 1112.0
    for file in (tmp_path / "__pycache__").glob(f"*.{ending}"):
        file.write_bytes(content)
    assert caller()(1.0) == 1112.0
    assert all(file.read_bytes() != content for file in tmp_path.glob(f"__pycache__/*.{ending}"))
