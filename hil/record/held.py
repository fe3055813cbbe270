"""Keeps the name of a recording for the run that writes it.

The run's process holds a shared lock of its file; whoever wants to replace the file asks for an
exclusive one. HDF5 takes a shared lock for reading, so other programs still read the recording
during the run. A lock ends with its process. Windows replaces no file that is open.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from hil.errors import ConfigError
from hil.platform import locks

TAKEN = "another run or program has it open: choose another --out"


def refuse_held(path: Path) -> None:
    """ConfigError if a run writes this file, or a program of HDF5 has it open."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(FileNotFoundError, PermissionError), path.open("rb") as file:
        try:
            locks.acquire(file)
        except BlockingIOError:
            raise ConfigError(f"{path}: {TAKEN}") from None
        except OSError:
            return  # a file system without locks


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the file of a run for as long as the block lasts."""
    if sys.platform == "win32":
        yield
        return
    with path.open("rb") as file:
        with contextlib.suppress(OSError):  # without locks the name is not kept
            locks.acquire(file, shared=True)
        yield
