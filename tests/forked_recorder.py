"""Recorders as forks of one process that has h5py: a test need not wait until each imports it.

`hil.record.sink` starts each recorder with `subprocess.Popen`; `use()` gives it `ForkedRecorder`
instead. A recorder ends when its parent has ended, so the fork must be a child of the process that
runs the loop. Linux can do that: a clone with CLONE_PARENT has its parent's parent.
"""

import array
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import types

CLONE_PARENT = 0x00008000  # sched.h
SYS_CLONE = {"x86_64": 56, "aarch64": 220}


class Nursery:
    """The process that forks; it ends when this one does."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )

    def fork(self, words: list[str], stderr: int) -> int:
        """The process id of a recorder with these arguments, which prints errors to a pipe."""
        order = json.dumps({"words": words, "cwd": os.getcwd()}).encode()
        given = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [stderr]))]
        with self._lock:
            self._line.sendmsg([order], given)
            return int(self._line.recv(16))


class ForkedRecorder:
    """What `hil.record.sink` uses of `subprocess.Popen`."""

    nursery: Nursery | None = None

    def __init__(self, command: list[str], **options) -> None:
        assert command[1:4] == ["-P", "-m", "hil.record.recorder"]
        if ForkedRecorder.nursery is None:
            import leaks  # not by the process that forks

            before = leaks.open_now()
            ForkedRecorder.nursery = Nursery()
            leaks.keep(leaks.open_now() - before)
        read, write = os.pipe()
        self._stderr = os.fdopen(read)
        self.pid = ForkedRecorder.nursery.fork(command[3:], write)
        os.close(write)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def communicate(self, timeout: float) -> tuple[None, str]:
        if not select.select([self._stderr], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("recorder", timeout)
        with self._stderr:
            text = self._stderr.read()
        self._wait(0)
        return None, text

    def _wait(self, options: int) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, options)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def use() -> None:
    """Have every run of this process fork its recorder."""
    if sys.platform != "linux" or os.uname().machine not in SYS_CLONE:
        return
    from hil.record import sink

    sink.subprocess = types.SimpleNamespace(
        Popen=ForkedRecorder,
        DEVNULL=subprocess.DEVNULL,
        PIPE=subprocess.PIPE,
        TimeoutExpired=subprocess.TimeoutExpired,
    )


def serve(line: socket.socket) -> None:
    """Fork a recorder for every order, until the line is closed."""
    from hil.record import recorder

    clone = ctypes.PyDLL(None).syscall
    number = SYS_CLONE[os.uname().machine]
    while True:
        data, found, _, _ = line.recvmsg(1 << 16, socket.CMSG_SPACE(array.array("i").itemsize))
        if not data:
            return
        stderr = array.array("i", found[0][2])[0]
        ctypes.pythonapi.PyOS_BeforeFork()
        pid = clone(number, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
            line.close()
            os.dup2(stderr, 2)
            os.close(stderr)
            os.setsid()
            order = json.loads(data)
            os.chdir(order["cwd"])
            sys.argv = order["words"]
            code = recorder.main()
            sys.stderr.flush()
            os._exit(code)
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        os.close(stderr)
        line.sendall(str(pid).encode())


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        serve(given)
