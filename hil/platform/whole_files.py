"""Files that are whole or absent: written beside their name, which they get when they are complete.

A program that is killed leaves at most a file named `NAME.PROCESS.part`, which no search for an
ending such as `.toml` finds.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from hil.errors import ConfigError, one_line

HDF5 = b"\x89HDF\r\n\x1a\n"


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield the name to write to in the block; after it the file replaces an older one.

    If the block fails, nothing is left of it, and an older file is as it was. What is no regular
    file, such as a pipe, is written to directly.

    Raises
    ------
    ConfigError
        A recording would be replaced by what is none.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()  # a link goes on leading to the file
    if target.exists():
        target.open("rb+").close()  # a file that may not be changed is not replaced either
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        if _is_recording(target) and not _is_recording(part):
            raise ConfigError(one_line(f"{path}: a recording, which stays: give another name"))
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Hash of a file that may be larger than memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_recording(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as file:
        return file.read(len(HDF5)) == HDF5


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file; text as UTF-8 with its line ends as they are."""
    with whole(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
