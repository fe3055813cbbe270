import atexit
import gc
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

import forked_recorder
import hil
import leaks
from compile_once import share_compilations
from hil.devices.board import emulated
from hil.errors import ConfigError

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

# Arrow's own allocator reserves 1 GiB, all of which a run that locks its memory would fill.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

# A script that starts the tests in the background has them ignore Ctrl-C, and so every program
# that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What imports and collection make stays: nothing is searched for garbage before all tests are
# collected, and nothing that is there then is ever searched. That takes a third off every worker's
# start.
gc.disable()

# Code that tests run must not become trusted in the user's home. Workers end without atexit, so
# their folders lie in that of the process that started them.
WORKER = os.environ.get("PYTEST_XDIST_WORKER")
if WORKER is None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="hil-tests-state-")
    atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)
else:
    os.environ["XDG_STATE_HOME"] = str(Path(os.environ["XDG_STATE_HOME"]) / WORKER)
    Path(os.environ["XDG_STATE_HOME"]).mkdir(mode=0o700, exist_ok=True)

os.environ["DASK_TEMPORARY_DIRECTORY"] = os.environ["XDG_STATE_HOME"]  # not /tmp/dask-...

# There too lie temporary files of processes that are killed, or end without atexit, as workers do.
# Files of failed tests stay where pytest keeps them.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(dir=os.environ["XDG_STATE_HOME"])

# Libraries that are compiled once stay in this clone: the home may be read-only, and two clones do
# not meet there.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "xdg")
share_compilations()
forked_recorder.use()

# The same examples at every run, so that a failure is met by whoever caused it;
# ./slow-tests looks further, at other examples and more: HYPOTHESIS_PROFILE=wander. A property that
# needs more or can do with fewer takes a share of the profile's: settings().max_examples // 5.
settings.register_profile(
    "repeatable", max_examples=25, derandomize=True, database=None, deadline=None
)
settings.register_profile("wander", max_examples=1000, print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_addoption(parser):
    parser.addoption("--bench", metavar="CARD", help="NI card on the bench, for -m bench")
    parser.addoption("--within", metavar="S", type=float, help="start no test after S seconds")


STARTED_S = time.monotonic()


def pytest_runtest_setup(item):
    within_s = item.config.getoption("--within")
    if within_s is not None and time.monotonic() - STARTED_S > within_s:
        pytest.skip(f"left out after {within_s:g} s: ./run-tests runs it")


def pytest_configure(config):
    """Without the chip's tools its tests are left out by name; with CI set they fail."""
    config.pluginmanager.register(leaks)
    try:
        emulated.check_tools()
    except ConfigError as error:
        if "CI" not in os.environ:
            reason = f"left out: {error}"
            emulated.check_tools = lambda: pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests that share a module's fixtures go to one worker, so that these are made once.

    Cases of a test beyond those that `slow_beyond` names become slow.
    """
    cases: Counter[str] = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        beyond = item.get_closest_marker("slow_beyond")
        if beyond is not None and cases[test] > beyond.args[0]:
            item.add_marker(pytest.mark.slow)
        scopes = {
            definition.scope
            for definitions in item._fixtureinfo.name2fixturedefs.values()
            for definition in definitions
        }
        if "module" in scopes and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))


def pytest_collection_finish():
    gc.enable()
    gc.freeze()


CONFIGS = Path(__file__).resolve().parents[1] / "configs"


@pytest.fixture(scope="session")
def configs():
    """The repository's configurations."""
    return CONFIGS


@pytest.fixture
def rigs(tmp_path):
    """A copy of the configurations, with their calibrations, that a test may change."""
    shutil.copytree(CONFIGS.parent / "calibration", tmp_path / "calibration")
    return Path(shutil.copytree(CONFIGS, tmp_path / "configs"))


@pytest.fixture(scope="session")
def all_on(tmp_path_factory):
    """A recording of miga6/all_on on the virtual clock, seed 1; not to be changed."""
    out = tmp_path_factory.mktemp("all_on") / "all_on.h5"
    return hil.run(CONFIGS / "miga6/all_on.toml", seed=1, out=out)
