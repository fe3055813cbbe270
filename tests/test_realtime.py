"""What is taken for the loop is given back, also when the loop fails."""

import ctypes
import gc
import os

import pytest

from hil import realtime

# Runs on the real clock want the machine one at a time.
pytestmark = pytest.mark.xdist_group("real time")


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


def test_everything_is_as_before_when_the_loop_fails():
    before = state()
    with pytest.raises(RuntimeError), realtime.prepared():
        raise RuntimeError
    assert state() == before


def test_what_the_kernel_refuses_is_said(monkeypatch):
    def refuse(*args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with realtime.prepared() as granted:
        assert granted["priority"].startswith("not granted (Operation not permitted)")
