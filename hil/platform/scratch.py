"""Temporary folders that go with the process that made them, however that ends.

A folder's owner holds a lock of a file in it. Whoever gets the lock removes the folder: its owner
has ended.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hil.platform import locks
from hil.platform.private_files import NO_LINK, is_private

OWNER = ".owner"
BEFORE_LOCKED_S = 60.0  # a folder without a lock file has just been made, or its maker was killed


class Scratch:
    """A temporary folder of this process, removed by `close` or after the process has ended.

    Attributes
    ----------
    path : the folder
    """

    def __init__(self, prefix: str) -> None:
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            owner = self.path / OWNER
            self._lock = os.open(owner, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
            locks.acquire(self._lock, wait=True)
            if owner.exists():
                break
            os.close(self._lock)  # somebody took it for left behind before it was locked
        _remove_left_behind(prefix, self.path.stat().st_mtime)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _remove_left_behind(prefix: str, now_s: float) -> None:
    """Remove this user's folders whose process has ended; `now_s` is a time of the file system."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # another process removes it, or may not be told apart
            _remove_if_left(folder, now_s)


def _remove_if_left(folder: Path, now_s: float) -> None:
    status = folder.lstat()
    if folder.is_symlink() or not folder.is_dir() or not is_private(status):
        return
    try:
        lock = os.open(folder / OWNER, os.O_RDWR | NO_LINK)
    except FileNotFoundError:
        if now_s - status.st_mtime > BEFORE_LOCKED_S:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        locks.acquire(lock)  # BlockingIOError, an OSError, while its owner lives
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
