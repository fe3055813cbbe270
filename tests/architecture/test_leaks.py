"""What a test leaves behind is named, and what belongs to a fixture or ends by itself is not."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

import leaks
from hil.platform import shared_memory


@pytest.fixture
def left(monkeypatch):
    """What is left beyond what was open before this test."""
    monkeypatch.setattr(leaks, "allowed", leaks.open_now())
    monkeypatch.setattr(leaks, "PATIENCE_S", 0.1)
    return leaks.left_behind


def test_nothing_is_left_by_a_test_that_opens_nothing(left):
    assert left() == set()


def test_a_socket_is_named_until_it_is_closed(left):
    with socket.socket() as line:
        (name,) = left()
        assert name == f"socket:[{os.fstat(line.fileno()).st_ino}], file {line.fileno()}"
    assert left() == set()


def test_a_process_is_named_until_it_has_ended(left):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        (name,) = left()
        assert name.startswith(f"process {process.pid} (")
        process.communicate(b"\n")
    assert left() == set()


def test_shared_memory_is_named_until_it_is_removed(left):
    path, file = shared_memory.create(shared_memory.folder(), "tap")
    with file:
        assert left() == {f"shared memory {path.name}"}
    shared_memory.remove(path)
    assert left() == set()


def test_what_closes_within_the_patience_is_not_left(left, monkeypatch):
    monkeypatch.setattr(leaks, "PATIENCE_S", 60.0)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.3)"]):
        assert left() == set()


def test_threads_that_end_while_they_are_looked_at_do_no_harm(left):
    until_s = time.monotonic() + 1.0
    while time.monotonic() < until_s:
        threads = [threading.Thread(target=time.sleep, args=(0.0005,)) for _ in range(20)]
        for thread in threads:
            thread.start()
        assert left() == set()
        for thread in threads:
            thread.join()
