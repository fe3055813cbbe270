"""Gives hil what Python has on Windows, and nothing that it lacks there.

Other packages and the parts of Python that choose their system when they are imported come first.
What Windows alone has is played: locks by record locks, Ctrl-Break by a free signal.
"""

import asyncio
import ctypes.util
import fcntl
import multiprocessing.pool
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import types

import h5py
import matplotlib.pyplot
import nidaqmx
import numba
import psutil
import pydantic
import rich.progress
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.stats
import serial.tools.list_ports
import tzlocal
import xarray

IMPORTED = (
    asyncio, multiprocessing.pool, shutil, tempfile, h5py, matplotlib.pyplot, nidaqmx, numba,
    pydantic, rich.progress, scipy.linalg, scipy.optimize, scipy.signal, scipy.stats,
    serial.tools.list_ports, tzlocal, xarray,
)  # fmt: skip
MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
OF_OS = (
    "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchmod", "fork", "forkpty", "getegid",
    "geteuid", "getgid", "getpgid", "getsid", "getuid", "killpg", "mkfifo", "nice", "openpty",
    "posix_fallocate", "pread", "preadv", "pwrite", "pwritev", "sched_getaffinity",
    "sched_getscheduler", "sched_setaffinity", "sched_setscheduler", "setpgid", "setsid",
    "sysconf", "uname", "wait3", "wait4",
)  # fmt: skip
OF_SIGNAL = ("ITIMER_REAL", "SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "alarm", "setitimer")


def _locking(number: int, mode: int, n_bytes: int) -> None:
    at = os.lseek(number, 0, os.SEEK_CUR)
    fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB, n_bytes, at, os.SEEK_SET)


def _not_installed(name: str) -> None:
    raise FileNotFoundError(name)


class _Library:
    """winmm and kernel32, as far as hil asks them."""

    def __init__(self, name: str) -> None:
        assert name in ("winmm", "kernel32")

    def timeBeginPeriod(self, ms: int) -> int:
        return 0

    timeEndPeriod = timeBeginPeriod

    def SetThreadExecutionState(self, flags: int) -> int:
        return 1


platform.uname()  # the answer is kept
msvcrt = types.ModuleType("msvcrt")
msvcrt.locking, msvcrt.LK_NBLCK = _locking, 2
sys.modules["msvcrt"] = msvcrt
sys.modules.update(dict.fromkeys(MODULES))
for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
signal.SIGBREAK = signal.CTRL_BREAK_EVENT = signal.SIGUSR2
subprocess.CREATE_NEW_PROCESS_GROUP = 0
psutil.BELOW_NORMAL_PRIORITY_CLASS, psutil.HIGH_PRIORITY_CLASS = 5, 0
ctypes.WinDLL, ctypes.WINFUNCTYPE = _Library, ctypes.CFUNCTYPE
ctypes.windll = types.SimpleNamespace(LoadLibrary=_not_installed)
ctypes.util.find_library = lambda name: None
sys.platform = "win32"
