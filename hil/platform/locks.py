"""Locks of open files, which end with their process.

A lock keeps out other locks only; everybody may still read and write. Windows forbids reading a
locked part of a file, so there the lock is a byte far beyond the end. See decision record 0014.
"""

import sys
from typing import IO

if sys.platform == "win32":
    import msvcrt
    import os
    import threading

    BEYOND_THE_END = 0x7FFF_FFFE  # of every file that hil locks
    POLL_S = 0.05

    def acquire(
        file: int | IO[bytes] | IO[str], *, wait: bool = False, shared: bool = False
    ) -> None:
        """Lock an open file or descriptor; BlockingIOError where another process holds it.

        There are no shared locks here: `shared` asks for one that nobody else may hold.
        """
        number = file if isinstance(file, int) else file.fileno()
        before = os.lseek(number, 0, os.SEEK_CUR)
        os.lseek(number, BEYOND_THE_END, os.SEEK_SET)
        try:
            while not _acquired(number):
                if not wait:
                    raise BlockingIOError("locked by another process")
                threading.Event().wait(POLL_S)
        finally:
            os.lseek(number, before, os.SEEK_SET)

    def _acquired(number: int) -> bool:
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def acquire(
        file: int | IO[bytes] | IO[str], *, wait: bool = False, shared: bool = False
    ) -> None:
        """Lock an open file or descriptor; BlockingIOError where another process holds it.

        Any number of processes may hold a shared lock of the same file.
        """
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(file, kind | (0 if wait else fcntl.LOCK_NB))
