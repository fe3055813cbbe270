"""Recordings changed for the worse: attributes, datasets, types and names, from a seed."""

import gzip
import json
import random
from pathlib import Path

import h5py
import numpy as np

from hil.record.layout import LIBVER

MADE_BEFORE = Path(__file__).parent / "made_before"
DEEP = "[" * 50_000
VALUES = (
    "", "[]", "{}", "null", "7", '"x"', "[1, 2]", '{"timing": []}', '{"force": 3}', DEEP,
    '{"a": NaN}', '{"force": {"vaf": 1}}', '{"signals": {"x": {}}}', '{"rows": "many"}',
    '{"first_fault": "force_high"}', '{"calibration": {"expired": 3}}', '{"clocks": [1]}',
    "1e999", '{"loop_s": 1e999}', "\udcff", 0, -1, 7.5, float("nan"), float("inf"), 2**63, True,
    [1, 2, 3], ["a", "b"], [], b"\xff\xfe", [[1.0, 2.0], [3.0, 4.0]],
)  # fmt: skip


def unpacked(name, folder):
    """A copy of a recording made before, in a folder."""
    path = folder / "run.h5"
    path.write_bytes(gzip.decompress((MADE_BEFORE / f"{name}.h5.gz").read_bytes()))
    return path


def set_attribute(item, key, value):
    """Write any value, texts that are no UTF-8 included."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if key in item.attrs:
        del item.attrs[key]
    item.attrs[key] = value


def _items(file):
    found = [file]
    file.visititems(lambda name, item: found.append(item))
    return found


def change_attribute(file, draw):
    item = draw.choice([i for i in _items(file) if len(i.attrs)])
    set_attribute(item, draw.choice(sorted(item.attrs)), draw.choice(VALUES))


def change_json(file, draw):
    """One value of a JSON text, anywhere in it."""
    key = draw.choice(["summary", "software"])
    content = json.loads(file.attrs[key])
    at = content
    while True:
        step = draw.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if isinstance(at[step], dict | list) and at[step] and draw.random() < 0.7:
            at = at[step]
            continue
        wrong = [None, 3, "x", [], {}, [1], {"a": 1}, 1e308, True]
        at[step] = draw.choice(wrong)
        break
    set_attribute(file, key, json.dumps(content))


def drop_attribute(file, draw):
    item = draw.choice([i for i in _items(file) if len(i.attrs)])
    del item.attrs[draw.choice(sorted(item.attrs))]


def drop_item(file, draw):
    item = draw.choice([i for i in _items(file) if i.name != "/"])
    del file[item.name]


def change_dataset(file, draw):
    item = draw.choice([i for i in _items(file) if isinstance(i, h5py.Dataset)])
    name, kept, n = item.name, dict(item.attrs), len(item) if item.ndim else 1
    del file[name]
    wrong = [
        np.zeros(n, "i2"), np.zeros(n, "S3"), np.zeros((n, 3)), np.zeros((n, 2, 2)), np.float64(1),
        np.full(n, np.nan), np.zeros(n, bool), np.zeros(n, complex), np.zeros(n, [("a", "f8")]),
        np.zeros(0), np.zeros(n, "u8"), np.full(n, 2**63, "u8"), np.full(n, -1), np.zeros(3),
    ]  # fmt: skip
    file[name] = draw.choice(wrong)
    for key, value in kept.items():
        file[name].attrs[key] = value


def change_values(file, draw):
    columns = [c for c in file["ticks"].values() if c.dtype.kind in "fu"]
    column = draw.choice(columns)
    values = column[:]
    if values.dtype.kind == "f":
        values[draw.randrange(len(values)) :] = draw.choice([np.nan, np.inf, -1e300, 0.0])
    else:
        values[:] = np.iinfo(values.dtype).max
    column[:] = values


def to_group(file, draw):
    item = draw.choice([i for i in _items(file) if i.name != "/"])
    name = item.name
    del file[name]
    file.create_group(name)


WAYS = (change_attribute, change_json, drop_attribute, drop_item, change_dataset, change_values,
        to_group)  # fmt: skip


def mutated(path, seed):
    """Change a recording in one or two ways; what was done."""
    draw = random.Random(seed)
    done = []
    with h5py.File(path, "r+", libver=LIBVER) as file:
        for _ in range(draw.choice([1, 1, 2])):
            way = draw.choice(WAYS)
            done.append(way.__name__)
            way(file, draw)
    return done


def truncated(path, seed):
    """Cut a file off, or turn bits of it over."""
    draw = random.Random(seed)
    data = bytearray(path.read_bytes())
    if draw.random() < 0.5:
        del data[draw.randrange(len(data)) :]
    else:
        for _ in range(20):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def spoil(path, name, row):
    """Change the stored checksum of the chunk that holds this row, as a torn write does."""
    with h5py.File(path) as file:
        chunk = file[name].id.get_chunk_info(row // file[name].chunks[0])
    with path.open("r+b") as raw:
        raw.seek(chunk.byte_offset + chunk.size - 1)
        (last,) = raw.read(1)
        raw.seek(chunk.byte_offset + chunk.size - 1)
        raw.write(bytes((last ^ 255,)))
