"""Processes, sockets and shared memory that a test leaves behind fail that test.

What a fixture of a module or session makes belongs to the fixture. What goes away by itself, such
as a process that is ending, has `PATIENCE_S` to do so.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from hil.platform import shared_memory

PATIENCE_S = 5.0
HELPERS = ("resource_tracker", "forkserver", "forked_recorder.py")  # one for each test process


def children() -> set[str]:
    processes = set()
    for thread in Path("/proc/self/task").iterdir():
        try:
            for pid in (thread / "children").read_text().split():
                command = " ".join(psutil.Process(int(pid)).cmdline())
                if not any(helper in command for helper in HELPERS):
                    processes.add(f"process {pid} ({command[:80]})")
        except (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
            continue  # a thread or process that has just ended: the next look has the others
    return processes


def sockets() -> set[str]:
    links = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:  # that of the listing itself
            continue
        if link.startswith("socket:"):
            links.add(f"{link}, file {number}")
    return links


def memory() -> set[str]:
    start = f"hil-{os.getpid()}-"
    return {
        f"shared memory {path.name}"
        for path in shared_memory.folder().iterdir()
        if path.name.startswith(start)
    }


KINDS: tuple[Callable[[], set[str]], ...] = (children, sockets, memory)
allowed: set[str] = set()


def open_now() -> set[str]:
    return set().union(*(kind() for kind in KINDS))


def keep(names: set[str]) -> None:
    """Allow what lasts longer than a test."""
    allowed.update(names)


def left_behind() -> set[str]:
    """What is open beyond what is allowed, after waiting for it to close."""
    end_s = time.monotonic() + PATIENCE_S
    while left := open_now() - allowed:
        gc.collect()
        if time.monotonic() > end_s:
            break
        time.sleep(0.02)
    return left


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef) -> Iterator[None]:
    if fixturedef.scope == "function":
        return (yield)
    before = open_now()
    result = yield
    keep(open_now() - before)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    result = yield
    if item.get_closest_marker("library_leaks"):
        keep(open_now())
    elif left := left_behind():
        keep(left)
        pytest.fail(f"{item.nodeid} left behind: {', '.join(sorted(left))}", pytrace=False)
    return result
