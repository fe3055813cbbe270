"""Lock of a card: only one run at a time can use it, across all users."""

import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hil.errors import DeviceError
from hil.platform import locks
from hil.platform.private_files import NO_LINK
from hil.platform.provenance import user

# The same folder for all users, independent of TMPDIR.
SHARED_FOLDER = (
    Path(os.environ.get("PROGRAMDATA", tempfile.gettempdir()))
    if sys.platform == "win32"
    else Path("/tmp")
)
FOR_ALL = 0o666


class CardLock:
    """Lock from opening a card until it is closed or its process ends.

    The library reserves the resources of a task, not the card: two runs on different channels of
    one card would interfere through its clock and watchdog. The lock is a kernel lock on a file
    that is never removed: it ends with its process, and another user can then take it.

    Raises
    ------
    DeviceError
        Another process holds the card; the message gives the process.
    """

    def __init__(self, name: str, card: str, serial: int, folder: Path = SHARED_FOLDER) -> None:
        path = folder / f"hil-nidaq-{serial:08X}.lock"
        try:
            self._file, may_write = _opened(path)
        except OSError as error:
            raise DeviceError(
                f"{name}: {path} cannot be opened ({error.strerror}): remove it"
            ) from None
        try:
            locks.acquire(self._file)
        except BlockingIOError:
            holder = os.read(self._file, 200).decode(errors="replace").strip()
            os.close(self._file)
            raise DeviceError(
                f"{name}: {card} is held by process {holder or 'unknown'}: wait for its end, or "
                "end it"
            ) from None
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        if may_write:
            os.ftruncate(self._file, 0)
            os.write(self._file, f"{os.getpid()} of {user() or '?'} since {since}".encode())

    def release(self) -> None:
        os.close(self._file)


def _opened(path: Path) -> tuple[int, bool]:
    """Open the file, and whether it may be written; create it for all users if there is none.

    An existing file is opened without O_CREAT, because in a folder like /tmp the kernel refuses
    O_CREAT on another user's file (fs.protected_regular). Read permission is enough for the lock.
    """
    while True:
        try:
            return os.open(path, os.O_RDWR | NO_LINK), True
        except PermissionError:
            return os.open(path, os.O_RDONLY | NO_LINK), False
        except FileNotFoundError:
            pass
        try:
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINK, FOR_ALL)
        except FileExistsError:
            continue
        path.chmod(FOR_ALL)  # independent of the umask
        return made, True
