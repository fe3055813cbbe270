"""The archive of a unit, measured before anything of it is parsed or unpacked.

A unit may come from anybody. Its archive may be a few kilobytes that unpack to any size, or name
files outside its folder; its description may name entities, which read other files or grow.
FMI packs with deflate and describes without a document type (FMI 2.0.4, 2.3; FMI 3.0.2, 2.5).
"""

import hashlib
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn
from xml.parsers import expat

from hil.errors import ModelError, one_line
from hil.plugins.trust import open_code

DESCRIPTION = "modelDescription.xml"
DESCRIPTION_MAX_B = 64 * 2**20
FILES_MAX = 20_000
UNPACKED_MAX_B = 2 * 2**30
# Binaries shrink to a third, descriptions to a tenth; zeros to a thousandth.
EXPANSION_MAX = 100
SLACK_B = 32 * 2**20  # that an archive of any size may unpack to
DEFLATED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1  # bit of a file's flags


@dataclass(frozen=True)
class Archive:
    """What a unit's archive has.

    Attributes
    ----------
    sha256 : of the file, 64 hexadecimal digits
    names : of its files
    description : content of its modelDescription.xml
    """

    sha256: str
    names: tuple[str, ...]
    description: bytes


def read(file: Path) -> Archive:
    """Read a unit's description; nothing is unpacked.

    Raises
    ------
    ModelError
        The file is not the archive of a unit, or not one that is safe to unpack.
    """
    with _opened(file) as (_, content):
        return content


def unpack(file: Path, sha256: str, folder: Path) -> Path:
    """Unpack a unit with this hash; returns where it is, in this folder.

    Raises
    ------
    ModelError
        It has another hash by now, is not safe to unpack, or the disk has no room.
    """
    # A copy: nobody else can change it between hash and use.
    copy, unit = folder / "unit.fmu", folder / "unit"
    with open_code(file) as source, copy.open("xb") as target:
        shutil.copyfileobj(source, target)
    with _opened(copy) as (archive, content):
        if content.sha256 != sha256:
            _refuse(file, "has changed since it was checked: start again")
        needed_B = sum(entry.file_size for entry in archive.infolist())
        free_B = shutil.disk_usage(folder).free
        if needed_B > free_B:
            _refuse(
                file,
                f"unpacks to {needed_B / 1e6:.0f} MB, {folder.parent} has {free_B / 1e6:.0f} MB: "
                "free some, or set TMPDIR to another folder",
            )
        archive.extractall(unit)
    copy.unlink()
    return unit


@contextmanager
def _opened(file: Path) -> Iterator[tuple[zipfile.ZipFile, Archive]]:
    """An archive that is safe to unpack, and what it has."""
    try:
        with open_code(file) as content:
            sha256 = hashlib.file_digest(content, "sha256").hexdigest()
            size_B = content.tell()
            with zipfile.ZipFile(content) as archive:
                for text in _faults(archive.infolist(), size_B):
                    _refuse(file, text)
                names = tuple(archive.namelist())
                if DESCRIPTION not in names:
                    _refuse(file, f"has no {DESCRIPTION}: not a functional mock-up unit")
                if archive.getinfo(DESCRIPTION).file_size > DESCRIPTION_MAX_B:
                    _refuse(file, f"its {DESCRIPTION} has more than {DESCRIPTION_MAX_B} bytes")
                description = archive.read(DESCRIPTION)
                _refuse_document_type(file, description)
                yield archive, Archive(sha256, names, description)
    except ModelError:
        raise
    except FileNotFoundError:
        _refuse(file, "no such file: give a path beside the file that names it")
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError) as error:
        _refuse(file, f"not a functional mock-up unit: not a ZIP archive ({error})")
    except OSError as error:
        _refuse(file, f"cannot be read ({error.strerror or error})")


def _faults(entries: list[zipfile.ZipInfo], size_B: int) -> Iterator[str]:
    """Reasons not to unpack an archive of this size."""
    if len(entries) > FILES_MAX:
        yield f"has {len(entries)} files, a unit at most {FILES_MAX}"
    unpacked_B = sum(entry.file_size for entry in entries)
    most_B = min(UNPACKED_MAX_B, SLACK_B + EXPANSION_MAX * size_B)
    if unpacked_B > most_B:
        yield (
            f"unpacks to {unpacked_B / 1e6:.0f} MB, a unit of its size to at most "
            f"{most_B / 1e6:.0f} MB"
        )
    names: set[str] = set()
    for entry in entries:
        name = entry.orig_filename
        shown = f"its file '{one_line(name)}'"
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or set(name) & set("\\:\0"):
            yield f"{shown} would be unpacked outside its folder"
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
            yield f"{shown} is a link or a device"
        if entry.flag_bits & ENCRYPTED or entry.compress_type not in DEFLATED:
            yield f"{shown} is encrypted, or not packed by deflate as FMI demands"
        if name in names:
            yield f"{shown} is there twice"
        names.add(name)


def _refuse_document_type(file: Path, description: bytes) -> None:
    """Refuse what may define entities, and what is no XML."""

    def refuse(*_: object) -> None:
        _refuse(file, f"its {DESCRIPTION} has a document type, which no unit needs")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(description, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        if isinstance(error, ModelError):
            raise
        _refuse(file, f"its {DESCRIPTION} is not XML ({error})")


def _refuse(file: Path, text: str) -> NoReturn:
    raise ModelError(f"file: '{file}': {one_line(text)}")
