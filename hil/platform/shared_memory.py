"""Files in shared memory, private to one user, named by their process, removed after its end.

All users share the folder. So a file is created under a random name with mode 0600, never through a
link, and files of other users are neither opened nor removed.
"""

import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hil.errors import DeviceError
from hil.platform.private_files import NO_LINK, is_private
from hil.platform.processes import is_alive, started

# hil-PROCESS-STARTED-nsNAMESPACE-RANDOM.KIND; older versions left STARTED and NAMESPACE out.
_NAME = re.compile(r"hil-(\d+)-(?:(\d+)-)?(?:ns(\d+)-)?[0-9a-f]+\.(tap|supply|page)")


def folder() -> Path:
    """On Linux /dev/shm if it is writable, otherwise the temporary folder."""
    memory = Path("/dev/shm")
    if sys.platform == "linux" and memory.is_dir() and os.access(memory, os.W_OK):
        return memory
    return Path(tempfile.gettempdir())


def create(where: Path, kind: str) -> tuple[Path, BinaryIO]:
    """Create an empty file of this process, open for reading and writing."""
    pid = os.getpid()
    whose = f"{pid}-{started(pid) or 0}-ns{_namespace()}"
    path = where / f"hil-{whose}-{os.urandom(8).hex()}.{kind}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINK
    return path, os.fdopen(os.open(path, flags, 0o600), "rb+")


def open_private(path: Path) -> BinaryIO:
    """Open an existing file of this user for reading and writing.

    Raises
    ------
    DeviceError
        The file belongs to another user, or others may write it.
    OSError
        The file does not exist, or is a link.
    """
    file = os.fdopen(os.open(path, os.O_RDWR | NO_LINK), "rb+")
    if not _is_private_file(os.fstat(file.fileno())):
        file.close()
        raise DeviceError(f"{path}: of another user, or others may write it: not used")
    return file


def of_live_processes(where: Path, kind: str) -> Iterator[tuple[int, Path]]:
    """Process id and path of each file of this user whose process still runs."""
    for path, pid, alive in _private_files(where):
        if alive and path.suffix == f".{kind}":
            yield pid, path


def sweep(where: Path) -> None:
    """Remove the files of this user whose process has ended."""
    for path, _, alive in _private_files(where):
        if not alive:
            remove(path)


def reserve(file: BinaryIO, size_B: int) -> None:
    """Give the file its size and, where the system can, its memory; OSError without room."""
    if sys.platform == "linux":
        os.posix_fallocate(file.fileno(), 0, size_B)
    else:
        file.truncate(size_B)


def remove(path: Path) -> None:
    """Remove a file; Windows keeps one that is mapped, and a later `sweep` removes it."""
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        if sys.platform != "win32":
            raise


def _private_files(where: Path) -> Iterator[tuple[Path, int, bool]]:
    for path in where.glob("hil-*"):
        match = _NAME.fullmatch(path.name)
        try:
            is_ours = match is not None and _is_private_file(path.lstat())
        except FileNotFoundError:
            continue
        # Process ids of another container, which may share the folder, are not valid here.
        if match is not None and is_ours and match[3] in (None, str(_namespace())):
            yield path, int(match[1]), _is_alive(int(match[1]), match[2])


def _namespace() -> int:
    """Inode of this process's PID namespace; 0 if the system has none."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _is_private_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and is_private(status)


def _is_alive(pid: int, since: str | None) -> bool:
    if not is_alive(pid):
        return False
    now = started(pid)
    return since in (None, "0") or now is None or now == since
