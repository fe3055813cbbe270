"""Lock of a card: only one run at a time can use it, across all users."""

import fcntl
import os
import pwd
from datetime import UTC, datetime
from pathlib import Path

from hil.errors import DeviceError

SHARED_FOLDER = Path("/tmp")  # the same folder for all users, independent of TMPDIR
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
            self._file = _opened(path)
        except OSError as error:
            raise DeviceError(
                f"{name}: {path} cannot be opened ({error.strerror}): remove it"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip()
            os.close(self._file)
            raise DeviceError(
                f"{name}: {card} is held by process {holder or 'unknown'}: wait for its end, or "
                "end it"
            ) from None
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        if _may_write(self._file):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()} of {_user()} since {since}".encode(), 0)

    def release(self) -> None:
        os.close(self._file)


def _opened(path: Path) -> int:
    """Open the file; create it, writable for all users, if it does not exist.

    An existing file is opened without O_CREAT, because in a folder like /tmp the kernel refuses
    O_CREAT on another user's file (fs.protected_regular). Read permission is enough for the lock.
    """
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except PermissionError:
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            pass
        try:
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FOR_ALL)
        except FileExistsError:
            continue
        os.fchmod(made, FOR_ALL)  # independent of the umask
        return made


def _may_write(file: int) -> bool:
    return fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"
