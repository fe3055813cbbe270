"""A card belongs to one run at a time, whoever's run it is."""

import fcntl
import os
import pwd
from datetime import UTC, datetime
from pathlib import Path

from hil.errors import DeviceError

SHARED_FOLDER = Path("/tmp")  # one place for all users, whatever their TMPDIR
FOR_ALL = 0o666


class CardLock:
    """Held from opening a card until it is closed, or its holder is gone.

    The library reserves what a task uses, not the card: two runs on different channels of one
    card would take each other's clock and watchdog. The lock is the kernel's, on a file that stays:
    it ends with its holder, however that ends, and another user can take it then.

    Raises
    ------
    DeviceError
        Another process holds the card; it is named.
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
    """The file, made for all users where it is not there.

    Opened without O_CREAT where it is: in a folder like /tmp the kernel refuses that for another
    user's file (fs.protected_regular). Whoever may only read it can lock it all the same.
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
        os.fchmod(made, FOR_ALL)  # whatever the umask
        return made


def _may_write(file: int) -> bool:
    return fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"
