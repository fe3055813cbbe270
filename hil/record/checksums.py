"""Checksums of what HDF5 keeps none of: attributes, and datasets without Fletcher's.

HDF5 compares the checksums of a column's rows whenever it reads them. Of the configuration, events,
inputs and the model it compares nothing that another program has changed. So a recording gets the
dataset `checksums` when it is closed: a JSON text with the CRC-32 of every attribute of the file
(`attributes`), of the attributes of every object (`objects`), and of the values of every dataset
without Fletcher's (`values`). They tell accidents; who changes a recording on purpose can write
them again. What another program has added is outside them.
"""

import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import h5py
import numpy as np

from hil.record.safe_open import attributes_of_object
from hil.record.shapes import NUMBER, Table, fault_of

CHECKSUMS = "checksums"
_PARTS = ("attributes", "objects", "values")
_SHAPE = Table(dict.fromkeys(_PARTS, Table(other=NUMBER)), _PARTS)


def write_checksums(file: h5py.File) -> None:
    """Write the checksums of a recording that is complete, in place of older ones."""
    if CHECKSUMS in file:
        del file[CHECKSUMS]
    objects = _objects_of(file)
    without = [n for n, o in objects.items() if isinstance(o, h5py.Dataset) and not o.fletcher32]
    text = json.dumps(_sums_of(file, objects, without)).encode()
    file.create_dataset(
        CHECKSUMS, data=np.frombuffer(text, np.uint8), chunks=(len(text),), fletcher32=True
    )


def differences(file: h5py.File) -> list[str]:
    """What is not as it was when the recording was closed, by name.

    Empty for a recording without checksums: of versions before these, or one that is not closed.

    Raises
    ------
    OSError
        The checksums cannot be read.
    """
    if CHECKSUMS not in file:
        return []
    stored = _stored(file[CHECKSUMS])
    if stored is None:
        return [CHECKSUMS]
    objects = _objects_of(file)
    now = _sums_of(file, objects, stored["values"].keys() & objects.keys())
    return list(_differing(stored, now))


def _differing(stored: dict[str, dict[str, int]], now: dict[str, dict[str, int]]) -> Iterator[str]:
    for part, what in zip(_PARTS, ("attribute '{}'", "attributes of '{}'", "'{}'"), strict=True):
        for name, crc in stored[part].items():
            if now[part].get(name) != crc:
                yield what.format(name)


def _stored(item: h5py.Dataset | h5py.Group) -> dict[str, dict[str, int]] | None:
    """The checksums in a recording; None if they are none."""
    if not (isinstance(item, h5py.Dataset) and item.dtype == np.uint8 and item.ndim == 1):
        return None
    text = item[:].tobytes().decode(errors="replace")
    if fault_of(text, _SHAPE):
        return None
    sums: dict[str, dict[str, int]] = json.loads(text)
    return sums or None


def _objects_of(file: h5py.File) -> dict[str, h5py.Group | h5py.Dataset]:
    objects: dict[str, h5py.Group | h5py.Dataset] = {}
    file.visititems(objects.__setitem__)
    return {name: item for name, item in objects.items() if name != CHECKSUMS}


def _sums_of(
    file: h5py.File, objects: dict[str, h5py.Group | h5py.Dataset], datasets: Iterable[str]
) -> dict[str, dict[str, int]]:
    """The checksums; `datasets` are those whose values have one."""
    path = Path(file.filename)
    root = attributes_of_object(file.id, "/", path)
    return {
        "attributes": {key: _crc({key: value}) for key, value in root.items()},
        "objects": {
            name: _crc(attributes_of_object(item.id, name, path)) for name, item in objects.items()
        },
        "values": {
            name: zlib.crc32(np.asarray(objects[name][()]).tobytes())
            for name in datasets
            if isinstance(objects[name], h5py.Dataset)
        },
    }


def _crc(attributes: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(attributes, sort_keys=True, default=_plain).encode())


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else str(value)
