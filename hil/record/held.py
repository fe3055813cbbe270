"""Keeps the name of a recording for the run that writes it.

The run's process holds a shared lock of its file; whoever wants to replace the file asks for an
exclusive one. HDF5 takes a shared lock for reading, so other programs still read the recording
during the run. A lock ends with its process. Windows replaces no file that is open.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hil.errors import ConfigError
from hil.platform import locks

TRIES, TRY_S = 5, 0.002
TAKEN = "another run or program has it open: choose another --out"


def refuse_held(path: Path) -> None:
    """ConfigError if a run writes this file, or a program of HDF5 has it open."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        if _is_locked(path):
            raise ConfigError(f"{path}: {TAKEN}")


def may_be_held(path: Path) -> bool:
    """Whether a run may be writing this file: also true where there are no locks."""
    return _is_locked(path) is not False


def _is_locked(path: Path) -> bool | None:
    """None where a file has no locks."""
    if sys.platform == "win32":
        return None
    with path.open("rb") as file:
        locked = _locked(file, shared=False)
    return None if locked is None else not locked


def _locked(file: BinaryIO, *, shared: bool) -> bool | None:
    """Lock a file unless another program holds it for longer than it takes to ask for a lock."""
    for _ in range(TRIES):
        try:
            locks.acquire(file, shared=shared)
        except BlockingIOError:
            time.sleep(TRY_S)
        except OSError:
            return None
        else:
            return True
    return False


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the file of a run for as long as the block lasts."""
    if sys.platform == "win32":
        yield
        return
    with path.open("rb") as file:
        _locked(file, shared=True)  # without locks the name is not kept
        yield


class Replaced:
    """Keeps the recording that a run replaces until the run has its first row.

    Use as a context manager around the run. It is kept as FILE.before, by a second name; a file
    system without these keeps nothing. A run that ends without a row gives the name back, and one
    that was not even opened leaves no recording.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._aside = path.with_name(f"{path.name}.before")
        self._new: os.stat_result | None = None
        self._kept = False
        self._stays = False

    def __enter__(self) -> "Replaced":
        with contextlib.suppress(OSError):
            os.link(self._path, self._aside)
            self._kept = True
        return self

    def created(self) -> None:
        """The new recording exists, without rows."""
        self._new = self._path.stat()

    def finished(self) -> None:
        """The new recording has an outcome: it stays where it replaces none."""
        self._stays = True

    def started(self) -> None:
        """The new recording has a row: it stays, and the previous one goes."""
        self._stays = True
        if self._kept:
            self._aside.unlink(missing_ok=True)
            self._kept = False

    def __exit__(self, *error: object) -> None:
        status, new = self._path.stat() if self._path.exists() else None, self._new
        is_new = status is not None and new is not None and os.path.samestat(status, new)
        if self._kept and (status is None or is_new):
            os.replace(self._aside, self._path)
        elif self._kept:  # the previous recording itself, or that of another run
            self._aside.unlink(missing_ok=True)
        elif is_new and not self._stays:
            self._path.unlink()
