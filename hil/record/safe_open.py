"""Safety checks of a recording: `refuse_hostile` checks a file before anything else reads it.

A recording may come from an untrusted source. An HDF5 file can link to other files, and a few
kilobytes can claim any number of rows. `hil run` writes neither: its datasets are in the file
itself, each under one name, with every row stored.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import psutil

from hil.config.values import Attributes
from hil.errors import ConfigError, one_line

OVERRIDE = "HIL_READ_MAX_GB"
OBJECTS_MAX = 100_000
ATTRIBUTE_MAX_B = 64 * 2**20
TEXTS_MAX = 4096  # elements of an attribute that is a list of texts
# A killed recorder leaves space for rows that it did not write: at most a ring of rows.
SLACK_B = 256 * 2**20
# Readings have noise: compression reduces real recordings to a half or a tenth.
COMPRESSION_MAX = 100
FILTERS = {
    h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32,
    h5py.h5z.FILTER_SZIP, h5py.h5z.FILTER_LZF,
}  # fmt: skip
TEXT = h5py.string_dtype()
MARKUP = "<>&\"'`$"  # of HTML, and of figures' mathematics


class HostileError(ConfigError):
    """A file that no run writes: it links outside itself or exceeds the memory."""


def refuse_hostile(file: h5py.File, path: Path) -> dict[str, Attributes]:
    """Refuse links out of the file, and sizes that no run has.

    It reads only names, links, headers and attributes of a bounded size: no data and no link
    targets.

    Returns
    -------
    dict
        The attributes of every object by its name, "/" for the file's.

    Raises
    ------
    HostileError
        One line: name in the file, problem and remedy.
    """
    stored_B = claimed_B = packed_B = 0
    largest_B, memory_B = 0, read_max_B()
    attributes = {}
    for raw, item in _objects(file, path):
        name = one_line(raw.decode(errors="replace"))
        attributes[_text(raw)] = attributes_of_object(item, name, path)
        if not isinstance(item, h5py.h5d.DatasetID):
            continue
        compressed = _look_at_layout(item, name, path)
        n_B = item.get_type().get_size() * int(np.prod(item.shape, dtype=object))
        here_B = item.get_storage_size()
        largest_B = max(largest_B, n_B)
        stored_B += here_B
        packed_B += here_B if compressed else 0
        claimed_B += n_B
    size_B = path.stat().st_size
    if stored_B > size_B + SLACK_B:
        raise HostileError(
            f"{path}: its datasets claim {stored_B} stored bytes, the file has {size_B}: not as "
            "hil run writes it: use the original file"
        )
    bound_B = stored_B + (COMPRESSION_MAX - 1) * packed_B + SLACK_B
    if claimed_B > max(bound_B, _override_B() or 0):
        raise HostileError(
            f"{path}: claims {claimed_B / 1e9:.3g} GB of rows and stores {stored_B / 1e9:.3g} GB: "
            f"no run has these: use the original file, or set {OVERRIDE} to the GB that it may "
            "take"
        )
    if largest_B > memory_B:
        raise too_large(path, largest_B)
    _look_at_cells(file, path)
    return attributes


def refuse_hostile_head(file: h5py.File, path: Path) -> Attributes:
    """The same of the attributes of the file and of its calibrations alone.

    Returns
    -------
    dict
        The attributes of the file.

    Raises
    ------
    HostileError
        One line, as `refuse_hostile`.
    """
    root = attributes_of_object(file.id, "/", path)
    group = file.get("calibration", getlink=True)
    if group is None:
        return root
    links = {"calibration": group}
    if isinstance(group, h5py.HardLink) and isinstance(file["calibration"], h5py.Group):
        channels = file["calibration"]
        if len(channels) > OBJECTS_MAX:
            raise HostileError(f"{path}: more than {OBJECTS_MAX} names: no run has these")
        links |= {f"calibration/{name}": channels.get(name, getlink=True) for name in channels}
    for name, link in links.items():
        if not isinstance(link, h5py.HardLink):
            raise HostileError(f"{path}: '{one_line(name)}' is a link, which leads elsewhere: a "
                               "recording has none: take the original file")  # fmt: skip
        _look_at_name(name.rpartition("/")[2], path)
        attributes_of_object(file[name].id, one_line(name), path)
    return root


def read_max_B() -> int:
    """Memory that a reader may use: this computer's memory, or the override."""
    return _override_B() or psutil.virtual_memory().total


def too_large(path: Path, needed_B: int) -> HostileError:
    """The refusal of a file whose rows do not fit into memory."""
    return HostileError(
        f"{path}: needs {needed_B / 1e9:.3g} GB of memory, {read_max_B() / 1e9:.3g} GB may be "
        f"taken: read it on a larger machine, or set {OVERRIDE}"
    )


def refuse_larger_than_memory(datasets: list[h5py.Dataset], path: Path) -> None:
    """Refuse to read all of these at once if they do not fit into memory."""
    needed_B = sum(d.dtype.itemsize * int(np.prod(d.shape, dtype=object)) for d in datasets)
    if needed_B > read_max_B():
        raise too_large(path, needed_B)


def _override_B() -> int | None:
    text = os.environ.get(OVERRIDE)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e9:
        raise ConfigError(f"{OVERRIDE} = {text}: give a number of GB")
    return int(1e9 * value)


def _objects(file: h5py.File, path: Path) -> Iterator[tuple[bytes, object]]:
    """Every group and dataset with its name, hard links only; others are refused."""
    links: list[tuple[bytes, int]] = []

    def note(name: bytes, info: h5py.h5l.LinkInfo) -> int | None:
        links.append((name, info.type))
        return 1 if len(links) > OBJECTS_MAX else None

    file.id.links.visit(note, info=True)
    if len(links) > OBJECTS_MAX:
        raise HostileError(f"{path}: more than {OBJECTS_MAX} names: no run has these")
    seen = {_address(file.id)}
    yield b"/", file.id
    for raw, kind in links:
        name = raw.decode(errors="replace")
        shown = one_line(name)
        if kind != h5py.h5l.TYPE_HARD:
            what = "an external link" if kind == h5py.h5l.TYPE_EXTERNAL else "a soft link"
            raise HostileError(
                f"{path}: '{shown}' is {what}, which leads elsewhere: a recording has none: take "
                "the original file"
            )
        _look_at_name(name.rpartition("/")[2], path, free=name.startswith("records/"))
        item = h5py.h5o.open(file.id, raw)
        address = _address(item)
        if address in seen:
            raise HostileError(f"{path}: '{shown}' is a second name of the same thing: no run "
                               "has these: use the original file")  # fmt: skip
        seen.add(address)
        yield raw, item


def _look_at_name(name: str, path: Path, *, free: bool = False) -> None:
    """Refuse names that lead out of a folder, or mean something to a page or a terminal."""
    strange = not name.isprintable() or set(name) & set("/\\") or name in (".", "..")
    if strange or (not free and set(name) & set(MARKUP)):
        raise HostileError(
            f"{path}: '{one_line(name)}' is not a name that a run writes: use the original file"
        )


def _look_at_cells(file: h5py.File, path: Path) -> None:
    cells = file.get("model/cells")
    if isinstance(cells, h5py.Dataset) and cells.dtype.kind == "S":
        for cell in cells[:].ravel().tolist():
            _look_at_name(cell.decode(errors="replace"), path)


def _address(item: object) -> tuple[int, int]:
    info = h5py.h5o.get_info(item)
    return int(info.fileno), int(info.addr)


def _look_at_layout(item: h5py.h5d.DatasetID, name: str, path: Path) -> bool:
    """Refuse data that lie elsewhere; whether they are compressed."""
    how = item.get_create_plist()
    if how.get_layout() == h5py.h5d.VIRTUAL:
        raise HostileError(f"{path}: '{name}' is a virtual dataset, whose data lie in other "
                           "files: use the original file")  # fmt: skip
    if how.get_external_count():
        other = one_line(how.get_external(0)[0].decode(errors="replace"))
        raise HostileError(f"{path}: '{name}' keeps its data in another file ({other}): a "
                           "recording has all in itself: use the original file")  # fmt: skip
    filters = {how.get_filter(i)[0] for i in range(how.get_nfilters())}
    if unknown := filters - FILTERS:
        raise HostileError(f"{path}: '{name}' passes filter {min(unknown)}, which no run uses: "
                           "repack it without: h5repack -f NONE")  # fmt: skip
    kind = item.get_type()
    if (
        kind.detect_class(h5py.h5t.VLEN)
        or kind.detect_class(h5py.h5t.REFERENCE)
        or (isinstance(kind, h5py.h5t.TypeStringID) and kind.is_variable_str())
    ):
        raise HostileError(f"{path}: '{name}' has entries of any length or references: a run "
                           "writes neither: use the original file")  # fmt: skip
    return bool(filters - {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32})


def attributes_of_object(item: object, name: str, path: Path) -> dict[str, object]:
    """All but those that a killed process left half written: no reader gets these."""
    attributes = {}
    for i in range(h5py.h5a.get_num_attrs(item)):
        try:
            attribute = h5py.h5a.open(item, index=i)
            kind = attribute.get_type()
        except (OSError, RuntimeError, KeyError):
            continue
        space = attribute.get_space()
        count = space.get_simple_extent_npoints()
        is_text = isinstance(kind, h5py.h5t.TypeStringID) and kind.is_variable_str()
        any_length = is_text or kind.detect_class(h5py.h5t.VLEN)
        too_many = any_length and count > TEXTS_MAX
        if kind.get_size() * count > ATTRIBUTE_MAX_B or too_many:
            key = one_line(attribute.name.decode(errors="replace"))
            raise HostileError(f"{path}: attribute '{key}' of '{name}' has {count} entries, "
                               f"{kind.get_size() * count} bytes: no run has these")  # fmt: skip
        try:
            is_one = is_text and space.get_simple_extent_type() == h5py.h5s.SCALAR
            value = _one_text(attribute) if is_one else _value(item, attribute)
            attributes[_text(attribute.name)] = value
        except OSError:
            continue
    return attributes


def _one_text(attribute: h5py.h5a.AttrID) -> str:
    """A text as most attributes are: `_value` without finding out what it is."""
    stored = np.empty((), TEXT)
    attribute.read(stored)
    return _text(stored.item())


def _value(item: object, attribute: h5py.h5a.AttrID) -> object:
    """A text, a number or a list of them as Python's own; anything else as h5py gives it.

    h5py's own way takes three times as long, and a recording has hundreds.
    """
    kind, string = attribute.dtype, h5py.check_string_dtype(attribute.dtype)
    is_stored = attribute.get_space().get_simple_extent_type() != h5py.h5s.NULL
    if not is_stored or (string is None and (kind.kind not in "iuf" or kind.metadata)):
        value = h5py.AttributeManager(SimpleNamespace(id=item))[attribute.name]
        return value.tolist() if isinstance(value, np.ndarray) else value
    values = np.empty(attribute.shape, kind)
    attribute.read(values)
    if string is not None and string.length is None:
        values = np.array([_text(value) for value in values.flat], object).reshape(values.shape)
    value = values.tolist()
    return _text(value) if isinstance(value, bytes) else value


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")
