"""Hashes of the code of others that this user trusts.

A recording stores the source of a plug-in class, and names functional mock-up units. They run again
only if their SHA-256 is in `$XDG_STATE_HOME/hil/trusted` (`~/.local/state/hil/trusted`). `hil run`
adds the code that it runs; `hil replay --trust` adds code that the user has read.
"""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path

from hil.errors import ConfigError, one_line, writing
from hil.platform.private_files import NO_LINK, NO_WAIT, is_private, state_folder

CODE_MAX_B = 2**30  # of a file of code
_HASH = re.compile(r"[0-9a-f]{64}(?= |$)")


def sha256_of(source: str) -> str:
    """The hash of a source's UTF-8 text, 64 hexadecimal digits."""
    return hashlib.sha256(source.encode()).hexdigest()


@contextmanager
def open_code(path: Path) -> Iterator[BufferedReader]:
    """Open a file of code; OSError where it is not a regular file, or larger than CODE_MAX_B.

    Nothing else is opened: opening a serial port resets what is behind it, and a pipe waits.
    """
    _refuse_irregular(path.stat())
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | NO_WAIT)) as file:
        _refuse_irregular(os.fstat(file.fileno()))
        yield file


def _refuse_irregular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if status.st_size > CODE_MAX_B:
        raise OSError(errno.EFBIG, f"larger than {CODE_MAX_B} bytes")


def sha256_of_file(path: Path) -> str:
    """The hash of a file of code, 64 hexadecimal digits; OSError as `open_code`."""
    with open_code(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_of_trust() -> Path:
    """The file of this user's hashes."""
    return state_folder() / "trusted"


def trusted() -> frozenset[str]:
    """Hashes of the sources that may run.

    Raises
    ------
    ConfigError
        File or folder cannot be read, or another user may have written it.
    """
    path = file_of_trust()
    try:
        _refuse_of_others(path.parent, path.parent.lstat(), stat.S_ISDIR, "700")
        flags = os.O_RDONLY | NO_LINK | NO_WAIT
        with open(os.open(path, flags), encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            _refuse_of_others(path, status, stat.S_ISREG, "600")
            if status.st_nlink > 1:
                raise ConfigError(f"{path}: has a second name: check it, then remove it")
            lines = file.read().splitlines()
    except FileNotFoundError:
        return frozenset()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}): remove it") from None
    return frozenset(line[:64] for line in lines if _HASH.match(line))


def trust(sha256: str, why: str) -> None:
    """Add a hash to the trusted ones.

    Parameters
    ----------
    why : one line for the user: file, and the command that trusted it

    Raises
    ------
    ConfigError
        The file cannot be written, or another user may have written it.
    """
    if not _HASH.fullmatch(sha256):
        raise ValueError(f"'{sha256}' is not a SHA-256")
    if sha256 in trusted():
        return
    path = file_of_trust()
    line = f"{sha256} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {one_line(why)}\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_LINK
    with writing(path, ": name a folder that can be written in XDG_STATE_HOME"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, flags, 0o600), "a", encoding="utf-8") as file:
            file.write(line)


def _refuse_of_others(
    path: Path, status: os.stat_result, is_kind: Callable[[int], bool], mode: str
) -> None:
    if not is_kind(status.st_mode):
        what = "folder" if mode == "700" else "regular file"
        raise ConfigError(f"{path}: is not a {what}: check it, then remove it")
    if not is_private(status):
        raise ConfigError(
            f"{path}: others may have written it: check it, then restrict it to yourself: "
            f"chmod {mode} {path}"
        )
