"""Building the library, and what a user reads when it cannot be built."""

import subprocess
import sys

import pytest

from simdaq import library
from simdaq.errors import SetupError


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A cache where nothing was built yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_built_once_where_the_cache_is(elsewhere):
    path = library.built()
    assert path.is_relative_to(elsewhere)
    first = path.stat().st_mtime_ns
    assert library.built() == path
    assert path.stat().st_mtime_ns == first
    assert [p.name for p in path.parent.parent.iterdir()] == [path.parent.name]


def test_its_soname_is_nis():
    """By it the loader knows the library again that a process has loaded by its path."""
    said = subprocess.run(
        ["objdump", "-p", library.built()], capture_output=True, text=True, check=True
    )
    assert "SONAME               libnidaqmx.so.1" in said.stdout


@pytest.mark.parametrize(
    ("compiler", "line"),
    [("false", "cannot be built"), (None, "needs a C compiler")],
)
def test_without_a_compiler_that_works_there_is_one_clear_line(
    elsewhere, monkeypatch, compiler, line
):
    if compiler is None:
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setenv("PATH", str(elsewhere))
    else:
        monkeypatch.setenv("CC", compiler)
    with pytest.raises(SetupError, match=line) as caught:
        library.built()
    assert "\n" not in str(caught.value)
    assert not list(elsewhere.rglob("*.so*"))


def test_a_cache_where_nobody_would_find_the_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "Ada Lovelace"))
    with pytest.raises(SetupError, match=r"in a path with a space.* XDG_CACHE_HOME"):
        library.built()


def test_a_cache_that_cannot_be_written_is_named(elsewhere):
    elsewhere.write_text("not a folder")
    with pytest.raises(SetupError, match="XDG_CACHE_HOME"):
        library.built()


def test_it_answers_after_an_attribute_of_a_capsule_was_looked_up():
    """Before Python 3.12 that changes the version tag that cffi takes for a lock."""
    code = (
        "import datetime; getattr(datetime.datetime_CAPI, 'none', None)\n"
        "from simdaq import library; library.install()\n"
        "import nidaqmx.system; print(nidaqmx.system.System.local().driver_version.major_version)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert int(run.stdout) > 0
