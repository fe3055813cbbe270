"""What is taken for the loop is given back, also when the loop fails."""

import ctypes
import gc
import os
from contextlib import ExitStack

import pytest

from hil.errors import ConfigError
from hil.experiment.load import load
from hil.loop.clock import RealClock
from hil.platform import realtime

# Runs on the real clock want the machine one at a time.
pytestmark = pytest.mark.xdist_group("real time")


@pytest.fixture(autouse=True)
def nothing_frozen():
    """The suite freezes what its workers have imported."""
    gc.unfreeze()
    yield
    gc.freeze()


def state():
    libc = ctypes.CDLL(None)
    return (
        os.sched_getscheduler(0),
        os.sched_getparam(0).sched_priority,
        os.sched_getaffinity(0),
        libc.prctl(30, 0, 0, 0, 0),
        gc.isenabled(),
        gc.get_freeze_count() > 0,
    )


def locked_kB():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmLck"))


@pytest.mark.slow
def test_everything_is_as_before_afterwards():
    before = state()
    with realtime.prepared() as granted:
        assert set(granted) == {"priority", "memory", "cpu", "timer_slack", "garbage_collector"}
        assert not gc.isenabled()
        assert ctypes.CDLL(None).prctl(30, 0, 0, 0, 0) <= 1
        assert ("SCHED_FIFO" in granted["priority"]) == bool(os.sched_getscheduler(0) & 1)
        assert (granted["memory"] == "locked") == (locked_kB() > 0)
    assert state() == before
    assert locked_kB() == 0


@pytest.mark.slow
def test_everything_is_as_before_when_the_loop_fails():
    before = state()
    with pytest.raises(RuntimeError), realtime.prepared():
        raise RuntimeError
    assert state() == before


def test_what_was_frozen_before_stays_frozen():
    gc.freeze()
    n_before = gc.get_freeze_count()
    with ExitStack() as undo:
        realtime._garbage_collector(undo)
    assert gc.get_freeze_count() >= n_before


def test_what_the_kernel_refuses_is_said(monkeypatch):
    def refuse(*args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with realtime.prepared() as granted:
        assert granted["priority"].startswith("not granted (Operation not permitted)")


def test_spinning_is_as_asked_and_by_default_a_share_of_the_period_or_none_on_one_cpu(monkeypatch):
    assert realtime.spin_s(0.0, 0.001) == 0.0
    assert realtime.spin_s(2e-4, 0.001) == 2e-4
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert realtime.spin_s(None, 0.001) == realtime.SPIN_S
    assert realtime.spin_s(None, 1e-4) == pytest.approx(2.5e-5)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    assert realtime.spin_s(None, 0.001) == 0.0


@pytest.mark.parametrize("spin_s", [0.0, 1e-4])
def test_no_deadline_is_answered_early_spinning_or_not(spin_s):
    clock = RealClock(spin_s)
    clock.start()
    for k in range(20):
        late_s = clock.sleep_until_s(0.0005 * k)
        assert late_s >= 0.0
        assert clock.now_s() - 0.0005 * k >= late_s


def test_a_spin_that_never_sleeps_is_refused(configs):
    with pytest.raises(ConfigError, match="more than half the period"):
        load(configs / "miga6/all_on.toml", ("loop.spin_s=0.0006",))
    assert load(configs / "miga6/all_on.toml", ("loop.spin_s=0.0005",)).tables.loop.spin_s == 0.0005
