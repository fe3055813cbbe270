"""Verify and repair recordings."""

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from glob import iglob
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, DeviceError, missing_file, one_line
from hil.record import superblock
from hil.record.checksums import CHECKSUMS, differences, write_checksums
from hil.record.errno_of import errno_of
from hil.record.layout import (
    LIBVER,
    OUTCOMES,
    RAW,
    RECORDED,
    RINGS,
    create_recorded,
    forget_places,
    places_of,
    text_of,
)
from hil.record.places import copy_synced_rows, power_was_lost
from hil.record.progress import count_progress
from hil.record.read import (
    DamagedError,
    attributes_of,
    experiment_in,
    n_whole_rows,
    n_whole_samples,
    open_h5,
)

WRITER_TIMEOUT_S = 10.0
FULL = (errno.ENOSPC, errno.EDQUOT)
DAMAGED = "damaged, a stored checksum does not match"
SLACK_B = 2**16  # by which a copy may be larger
CHANGED = "not as it was written: "
NAMES_MAX = 6  # in one line
AT_ONCE = 65536  # samples, the largest chunk of a recording


def recover(path: Path) -> int | None:
    """Repair a cut-off recording in place; returns its rows, or None if it was intact.

    The repair keeps every row that is complete in all columns; after a restart of the computer,
    every row up to the last sync. It writes a copy and replaces the file atomically, so an
    interruption loses nothing. On a full disk the copy is made in the temporary folder and written
    over the file; if that is interrupted, the next call names the copy. It waits for a recorder
    that still writes.

    Raises
    ------
    ConfigError
        The file is not a recording, is damaged, or the disk is too full for the copy; or an
        interrupted call left a copy.
    DeviceError
        A run still writes to it.
    """
    if path.is_dir():
        raise ConfigError(f"{path}: a folder: give a recording made by hil run")
    if not path.is_file():
        raise missing_file(path, "give a recording made by hil run")
    if path.is_symlink():  # it goes on leading to the file, beside which are its places
        path = path.resolve()
    _wait_for_writer(path)
    partial = path.with_name(path.name + ".recovering")
    if _leads_to_a_copy(partial):
        raise ConfigError(
            f"{path}: a repair was interrupted while it wrote: its repaired copy is "
            f"{partial.readlink()}: move it here"
        )
    try:
        try:
            rows = _copy(path, partial)
        except (OSError, RuntimeError) as error:
            if errno_of(error) not in FULL:
                raise
            partial.unlink(missing_ok=True)
            rows = _repair_from_elsewhere(path, partial)
        else:
            if rows is not None:
                os.replace(partial, path)
        forget_places(path)
        return rows
    except OSError as error:
        reason = os.strerror(number) if (number := errno_of(error)) else str(error)
        remedy = ": make room, or set TMPDIR to a folder that has it" * (number in FULL)
        raise ConfigError(f"{path}: cannot be repaired in its folder ({reason}){remedy}") from None
    finally:
        if not _leads_to_a_copy(partial):
            partial.unlink(missing_ok=True)


def _leads_to_a_copy(partial: Path) -> bool:
    return partial.is_symlink() and partial.exists()


def _repair_from_elsewhere(path: Path, link: Path) -> int | None:
    """Make the copy in the temporary folder and write it over the file, which it must fit into.

    If that ends in between, as on a full disk without blocks for a sparse file, the copy stays, and
    `link` leads to it.
    """
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp())
        undo.callback(shutil.rmtree, folder)
        copy = folder / path.name
        rows = _copy(path, copy)
        if copy.stat().st_size > path.stat().st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        undo.pop_all()
    with contextlib.suppress(OSError):  # a file system without links
        link.symlink_to(copy)
    try:
        _write_over(copy, path)
    except OSError as error:
        raise ConfigError(
            f"{path}: could not be written over ({error.strerror}): its repaired copy is "
            f"{copy}: make room and move it here"
        ) from None
    link.unlink(missing_ok=True)
    shutil.rmtree(folder)
    return rows


def _write_over(copy: Path, path: Path) -> None:
    with copy.open("rb") as source, path.open("rb+") as target:
        shutil.copyfileobj(source, target)
        target.truncate(copy.stat().st_size)
        target.flush()
        os.fsync(target.fileno())


def _copy(path: Path, partial: Path) -> int | None:
    """Copy the complete rows or, if they may be gone, those up to the last sync to disk.

    After a power cut HDF5 may read nothing, or read zeros where rows never reached the disk: their
    checksum is zero too.
    """
    try:
        superblock.clear_flags(path)
        return _copy_whole_rows(path, partial, all_on_disk=not power_was_lost(path))
    except (ConfigError, OSError, RuntimeError) as error:
        if errno_of(error) in FULL or not places_of(path).is_file():
            raise
        partial.unlink(missing_ok=True)
        return _copy_synced_rows(path, partial)


def _need_room(path: Path, partial: Path) -> None:
    """Refuse to begin a copy that the disk cannot take: HDF5 may crash when a write fails."""
    if shutil.disk_usage(partial.parent).free < path.stat().st_size + SLACK_B:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _copy_synced_rows(path: Path, partial: Path) -> int:
    """Copy all rows up to the last sync, and say so in an event."""
    _need_room(path, partial)
    rows = copy_synced_rows(path, partial)
    with h5py.File(partial, "r+", libver=LIBVER) as target:
        target.attrs["outcome"] = "recovered"
        text = "the computer was restarted, or the file damaged: rows up to the last sync are kept"
        target[RECORDED][1] = _add_event(target["events"], target["ticks/t_s"], text)
        write_checksums(target)
        target.flush()
        os.fsync(target.id.get_vfd_handle())
    return rows


def _copy_whole_rows(path: Path, partial: Path, all_on_disk: bool) -> int | None:
    """Copy the complete rows; returns their number, or None without a copy if it was intact."""
    with open_h5(path) as source:
        if _settled(source):
            return None
        if not all_on_disk:
            raise DamagedError(f"{path}: rows after its last sync may not be on disk")
        _need_room(path, partial)
        n = {ring: n_whole_rows(source, ring) for ring in RINGS}
        partial.unlink(missing_ok=True)
        with h5py.File(partial, "x", libver=LIBVER) as target:
            for key, value in attributes_of(source).items():
                target.attrs[key] = value
            target.attrs["outcome"] = "recovered"
            for name, item in source.items():
                if name not in (*RINGS, RAW, RECORDED, CHECKSUMS):
                    source.copy(item, target, name)
            samples = {
                f"{RAW}/{device}": n_whole_samples(source, device)
                for device in sorted(source.get(RAW, ()))
            }
            names = ["events", "inputs"]
            for name in names:
                _create_without_rows(target, source[name], name, n[name])
            for group, rows in {"ticks": n["ticks"], **samples}.items():
                names += _create_columns(target, source[group], rows)
            create_recorded(target, [*(n[ring] for ring in RINGS), *samples.values()])
            # All texts are before the first row, where a torn one is noticed (`global_heap`).
            torn = [name for name in names if _copy_rows(source[name], target[name])]
            if torn:
                text = "cut off within a write: last rows taken without their checksum: "
                text += ", ".join(name.removeprefix("ticks/") for name in torn)
                target[RECORDED][1] = _add_event(target["events"], target["ticks/t_s"], text)
            ended = text_of(attributes_of(source).get("outcome", "running")) != "running"
            for text in _changes(source) if ended else ():
                target[RECORDED][1] = _add_event(target["events"], target["ticks/t_s"], text)
            write_checksums(target)
            target.flush()
            os.fsync(target.id.get_vfd_handle())
    return n["ticks"]


def _create_columns(target: h5py.Group, source: h5py.Group, n: int) -> list[str]:
    """Create a group with room for n rows; returns the names of its columns in the file."""
    group = target.create_group(source.name)
    for key, value in source.attrs.items():
        group.attrs[key] = value
    for name, column in source.items():
        _create_without_rows(group, column, name, n)
    return [f"{source.name}/{name}".removeprefix("/") for name in source]


def _create_without_rows(target: h5py.Group, source: h5py.Dataset, name: str, n: int) -> None:
    """Create a dataset like another one, with room for n rows."""
    copy = target.create_dataset(
        name,
        shape=(n, *source.shape[1:]),
        dtype=source.dtype,
        maxshape=source.maxshape,
        chunks=source.chunks,
        fletcher32=source.fletcher32,
    )
    for key, value in source.attrs.items():
        copy.attrs[key] = value


def _copy_rows(source: h5py.Dataset, copy: h5py.Dataset) -> bool:
    """Fill a copy with the first rows, some chunks at a time.

    Returns whether the last chunk's checksum did not match.
    """
    n, torn = len(copy), False
    length = source.chunks[0] if source.chunks else AT_ONCE
    step = max(1, AT_ONCE // length) * length
    for first in range(0, n, step):
        end = min(first + step, n)
        copy[first:end], torn = _rows(source, first, end, is_last=end == n)
    return torn


def _rows(
    column: h5py.Dataset, first: int, end: int, *, is_last: bool
) -> tuple[NDArray[np.generic], bool]:
    """Rows of whole chunks, and whether those of the last chunk are read without their checksum.

    Every flush writes a partly filled chunk again in place. A kill during this write leaves new
    bytes before old ones and a checksum that fits neither. The rows that were complete before are
    the same in both. Any other damaged chunk is an error.
    """
    try:
        return column[first:end], False
    except OSError:
        if not is_last:
            raise
        last = (end - 1) // column.chunks[0] * column.chunks[0]
        whole = column[first:last]
    _, stored = column.id.read_direct_chunk((last, *(0,) * (column.ndim - 1)))
    count = int(np.prod(column.chunks))
    chunk = np.frombuffer(stored, dtype=column.dtype, count=count).reshape(column.chunks)
    return np.concatenate((whole, chunk[: end - last])), True


def _add_event(events: h5py.Dataset, t_s: h5py.Dataset, text: str) -> int:
    """Add an event about the repair; returns the number of events."""
    n = len(events)
    events.resize(n + 1, axis=0)
    events[n] = (t_s[-1] if len(t_s) else 0.0, b"warning", b"recover", text.encode()[:256])
    return n + 1


def faults_of(path: Path, *, progress: bool = False) -> list[str]:
    """Damage of a recording, one line each; empty if it is intact."""
    faults: list[str] = []
    try:
        _examine(path, faults, progress)
    except DamagedError as error:
        faults.append(str(error).removeprefix(f"{path}: "))
    return faults


def _examine(path: Path, faults: list[str], progress: bool) -> None:
    with open_h5(path) as file, count_progress("values", _n_values(file), progress) as done:
        outcome = text_of(attributes_of(file).get("outcome", "running"))
        if outcome not in OUTCOMES:
            faults.append(f"outcome '{outcome}' is not one of {', '.join(OUTCOMES)}")
        elif outcome == "running":
            faults.append("the run has not ended or was cut off: repair it with hil recover")
        lengths = {name: len(column) for name, column in file["ticks"].items()}
        if len(set(lengths.values())) > 1:
            shortest = min(lengths, key=lambda name: lengths[name])
            faults.append(
                f"columns differ in length, from {lengths[shortest]} ({shortest}) "
                f"to {max(lengths.values())} rows"
            )
        elif lengths and (n := n_whole_rows(file)) < min(lengths.values()):
            faults.append(f"only {n} of {min(lengths.values())} rows were written in full")
        faults += _rows_without_data(file, path)
        for device in file.get(RAW, ()):
            counts = {len(column) for column in file[RAW][device].values()}
            if counts != {n_whole_samples(file, device)}:
                faults.append(f"{RAW}/{device}: columns differ in length, or not written in full")
            for name, column in file[RAW][device].items():
                faults += _damage(f"{RAW}/{device}/{name}", column, done)
        for name, dataset in [*file["ticks"].items(), ("events", file["events"])]:
            faults += _damage(name, dataset, done)
        faults += _changes(file)


def _changes(file: h5py.File) -> list[str]:
    """One line that names what is not as it was when the recording was closed."""
    try:
        names = differences(file)
    except OSError:
        return [f"{CHECKSUMS}: {DAMAGED}"]
    more = f" and {len(names) - NAMES_MAX} more" * (len(names) > NAMES_MAX)
    return [one_line(f"{CHANGED}{', '.join(names[:NAMES_MAX])}{more}")] * bool(names)


def _n_values(file: h5py.File) -> int:
    raw = [len(column) for device in file.get(RAW, {}).values() for column in device.values()]
    return sum(raw) + sum(len(column) for column in file["ticks"].values()) + len(file["events"])


def _damage(name: str, values: h5py.Dataset, done: Callable[[int], None]) -> list[str]:
    """Whether a checksum does not match, or times do not rise; reads part by part."""
    last, rises = -np.inf, True
    try:
        for first in range(0, len(values), AT_ONCE):
            part = values[first : first + AT_ONCE]
            if name == "t_s":
                rises &= bool(np.all(np.diff(part, prepend=last) > 0.0))
                last = part[-1]
            done(len(part))
    except OSError:
        return [f"{name}: {DAMAGED}"]
    return [] if rises else ["t_s: does not rise from row to row"]


def _rows_without_data(file: h5py.File, path: Path) -> list[str]:
    """Errors for rows without a stored chunk (HDF5 reads zeros), or more rows than ticks."""
    faults = []
    datasets = [("events", file["events"]), ("inputs", file["inputs"]), *file["ticks"].items()]
    for name, dataset in datasets:
        if dataset.chunks is None:
            continue
        per_chunk = dataset.chunks[0]
        wanted = -(-len(dataset) // per_chunk)
        stored = dataset.id.get_num_chunks()
        if stored < wanted:
            faults.append(f"{name}: claims {len(dataset)} rows, {stored * per_chunk} are stored")
    n, n_ticks = n_whole_rows(file), _n_ticks(file, path)
    if n_ticks is not None and n > n_ticks:
        faults.append(f"{n} rows: its experiment has {n_ticks} ticks")
    return faults


def _n_ticks(file: h5py.File, path: Path) -> int | None:
    """Number of ticks of the recorded experiment; None for a run that was armed later."""
    started = file["inputs"][: n_whole_rows(file, "inputs")]
    starts = started["value"][started["name"] == b"start"]
    if not len(starts) or not starts[0]:
        return None
    table = experiment_in(attributes_of(file), path)
    try:
        duration_s, period_s = table["experiment"]["duration_s"], table["loop"]["period_s"]
        return max(1, round(float(duration_s) / float(period_s)))
    except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None


def _settled(file: h5py.File) -> bool:
    lengths = {len(column) for column in file["ticks"].values()}
    outcome = text_of(attributes_of(file).get("outcome", "running"))
    return outcome != "running" and lengths == {n_whole_rows(file)}


def _wait_for_writer(path: Path) -> None:
    """Wait until no process has the file open for writing."""
    deadline_s = time.monotonic() + WRITER_TIMEOUT_S
    while (holder := _writer_of(path)) is not None:
        if time.monotonic() > deadline_s:
            raise DeviceError(f"{path}: process {holder} still records into it: end that run first")
        time.sleep(0.05)


def _writer_of(path: Path) -> int | None:
    """A process that has the file open for writing, among those visible to this user."""
    target = path.stat()
    for name in iglob("/proc/[0-9]*/fd/*"):  # unlike Path.glob, of processes that may end meanwhile
        link = Path(name)
        try:
            link_status = link.stat()
            if (link_status.st_dev, link_status.st_ino) != (target.st_dev, target.st_ino):
                continue
            flags = (link.parents[1] / "fdinfo" / link.name).read_text()
        except OSError:
            continue
        mode = int(flags.split("flags:")[1].split()[0], 8)
        if mode & (os.O_WRONLY | os.O_RDWR) and int(link.parts[2]) != os.getpid():
            return int(link.parts[2])
    return None


def describe(path: Path) -> dict[str, object]:
    """Basic facts about a recording; None for a value that cannot be read."""
    facts: dict[str, object] = dict.fromkeys(("file", "rows", "outcome", "created_utc"))
    facts["file"] = str(path)
    with contextlib.suppress(DamagedError), open_h5(path) as file:
        attributes = attributes_of(file)
        facts["rows"] = n_whole_rows(file)
        facts["outcome"] = text_of(attributes.get("outcome", "running"))
        facts["created_utc"] = text_of(attributes["created_utc"])
    return facts
