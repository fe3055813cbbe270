"""Checks that a recording contains only the kinds of values that `hil run` writes.

`refuse_malformed` checks every name, attribute and dataset once, so readers need no checks of their
own: JSON has the known shape, texts are texts and columns are columns. Names that are unknown to
this version pass unchecked.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import h5py
import numpy as np

from hil.config.values import Attributes
from hil.errors import ConfigError, is_utf8, one_line
from hil.loop.tap import EVENT, INPUT
from hil.record import shapes
from hil.record.layout import PLUGINS, RAW, RECORDED

Test = Callable[[object], bool]
REMEDY = "use the original file"


class MalformedError(ConfigError):
    """A file with a kind of value that no run writes."""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        moment = datetime.fromisoformat(value)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):  # of a year that UTC has not
        return False
    return moment.tzinfo is not None


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


TEXT, WHOLE, NUMBER = (_is_text, "a text"), (_is_whole, "a whole number"), (_is_number, "a number")
SEED = (lambda v: _is_whole(v) and v >= 0, "a whole number from 0 on")
TIME = (_is_time, "a time such as 2026-11-22T16:28:56+00:00")
TEXTS = (_are_texts, "a list of texts")

Kind = tuple[Test, str]
ROOT: Mapping[str, Kind] = {
    **dict.fromkeys(("backend", "clock", "experiment", "experiment_as_run", "experiment_file",
                     "experiment_name", "force_signal", "operator", "outcome", "simulated",
                     "software", "summary", "recalibrated", "ambient_from", "imported", "untold",
                     "configuration_sha256", "model_sha256", "plant_sha256", "campaign", "injected",
                     "article", "force_levels_N"), TEXT),
    "created_utc": TIME,
    "seed": SEED,
    "ambient_C": NUMBER,
    "ambient_uncertainty_C": NUMBER,
}  # fmt: skip
REQUIRED = ("created_utc", "experiment_file", "experiment_name", "clock", "seed", "software")
JSON = {"software": shapes.SOFTWARE, "summary": shapes.SUMMARY, "recalibrated": shapes.RECALIBRATED,
        "imported": shapes.IMPORTED, "campaign": shapes.CAMPAIGN,
        "injected": shapes.INJECTED, "force_levels_N": shapes.LEVELS}  # fmt: skip
COLUMN = dict.fromkeys(("units", "role", "description", "source"), TEXT) | {
    "place": WHOLE, "flags": TEXTS, "missing": WHOLE,
}  # fmt: skip
COLUMN_REQUIRED = ("units", "role", "description")
OF_FLOATS = ("t_s", "late_s", "busy_s")
BITS = "_bits"


def refuse_malformed(file: h5py.File, path: Path, attributes: Mapping[str, Attributes]) -> None:
    """Refuse names, attributes and datasets of a kind that no run writes.

    Parameters
    ----------
    attributes : those of every object, as `refuse_hostile` read them

    Raises
    ------
    MalformedError
        One line: file, name, expected kind and remedy.
    """
    for what in _faults(file, attributes):
        raise MalformedError(f"{path}: {one_line(what)}: {REMEDY}")


def refuse_malformed_head(path: Path, root: Attributes) -> None:
    """The same of the attributes of the file alone.

    Raises
    ------
    MalformedError
        As `refuse_malformed`.
    """
    for what in (*_attribute_faults({"/": root}), *_root(root)):
        raise MalformedError(f"{path}: {one_line(what)}: {REMEDY}")


def _faults(file: h5py.File, attributes: Mapping[str, Attributes]) -> Iterator[str]:
    yield from _attribute_faults(attributes)
    yield from _root(attributes["/"])
    yield from _ticks(file, attributes)
    yield from _notes(file)
    yield from _groups(file, attributes)


def _root(root: Attributes) -> Iterator[str]:
    for key in REQUIRED:
        if key not in root:
            yield f"attribute '{key}' is missing"
    yield from _kinds("", root, ROOT)
    for key, shape in JSON.items():
        if key in root and (wrong := shapes.fault_of(root[key], shape)):
            yield f"attribute '{key}' {wrong}"


def _attribute_faults(attributes: Mapping[str, Attributes]) -> Iterator[str]:
    """Errors in names and attributes: they must be UTF-8 texts, numbers or lists of these."""
    for name, kept in attributes.items():
        if not is_utf8(name):
            yield f"name {name!r} is not UTF-8"
        for key, value in kept.items():
            if not is_utf8(key):
                yield f"attribute {key!r} of '{name}' is not UTF-8"
            if not _is_plain(value):
                yield f"attribute '{key}' of '{name}' is not a text, a number or a list of them"


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return is_utf8(value)
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating)


def _kinds(name: str, attributes: Mapping[str, object], kinds: Mapping[str, Kind]) -> Iterator[str]:
    for key, (test, kind) in kinds.items():
        if key in attributes and not test(attributes[key]):
            of = f" of '{name}'" if name else ""
            yield f"attribute '{key}'{of} is not {kind}"


def _ticks(file: h5py.File, attributes: Mapping[str, Attributes]) -> Iterator[str]:
    ticks = file.get("ticks")
    if not isinstance(ticks, h5py.Group) or not len(ticks):
        yield "'ticks' is not a group of columns"
        return
    n_cells = file["model/cells"].shape[0] if _is_list(file.get("model/cells"), "S") else None
    places = []
    for name, column in ticks.items():
        where = f"ticks/{name}"
        if not isinstance(column, h5py.Dataset) or column.dtype.kind not in "fiu":
            yield f"'{where}' is not a column of numbers"
            continue
        if name in OF_FLOATS and column.dtype.kind != "f":
            yield f"'{where}' is not a column of floating-point numbers"
        if name.endswith(BITS) and column.dtype.kind != "u":
            yield f"'{where}' is not a column of bits"
        if column.ndim not in (1, 2) or (name in OF_FLOATS or name.endswith(BITS)) > (
            column.ndim == 1
        ):
            yield f"'{where}' has {column.ndim} dimensions"
        if column.ndim == 2 and column.shape[1] != n_cells:
            yield f"'{where}' has {column.shape[1]} values a row, 'model/cells' names {n_cells}"
        facts = attributes[where]
        yield from _kinds(where, facts, COLUMN)
        for key in COLUMN_REQUIRED:
            if key not in facts:
                yield f"attribute '{key}' of '{where}' is missing"
        places.append(facts.get("place"))
    for name in (*OF_FLOATS, "fault_bits"):
        if name not in ticks:
            yield f"column 'ticks/{name}' is missing"
    numbers = {place for place in places if place is not None}
    if numbers and numbers != set(range(len(ticks))):  # the first versions wrote none
        yield "columns of 'ticks' are missing: their 'place' is not 0, 1, 2 ..."


def _notes(file: h5py.File) -> Iterator[str]:
    for name, dtype in (("events", EVENT), ("inputs", INPUT)):
        notes = file.get(name)
        fields = getattr(notes, "dtype", np.dtype("f8")).fields or {}
        wanted = {field: kind.kind for field, (kind, *_) in (dtype.fields or {}).items()}
        if {field: kind.kind for field, (kind, *_) in fields.items()} != wanted or notes.ndim != 1:
            yield f"'{name}' is not a list of {', '.join(wanted)}"
    counts = file.get(RECORDED)
    if counts is not None and not (_is_list(counts, "i") and len(counts)):
        yield f"'{RECORDED}' is not a list of whole numbers"
    elif counts is not None and min(counts[:]) < 0:
        yield f"'{RECORDED}' has a negative count"


def _groups(file: h5py.File, attributes: Mapping[str, Attributes]) -> Iterator[str]:
    """Errors in the other groups and their required content."""
    for folder in ("calibration", "records", "model", RAW, PLUGINS):
        group = file.get(folder)
        if group is not None and not isinstance(group, h5py.Group):
            yield f"'{folder}' is not a group"
    for folder, shape, needs in (("calibration", CALIBRATION, _needs_of_channel),
                                 ("records", RECORD, lambda kept: OF_RECORD)):  # fmt: skip
        for name, item in _inside(file, folder):
            where = f"{folder}/{name}"
            if not isinstance(item, h5py.Group):
                yield f"'{where}' is not a group"
            kept = attributes[where]
            yield from _kinds(where, kept, shape)
            for key in needs(kept):
                if key not in kept:
                    yield f"attribute '{key}' of '{where}' is missing"
    cells = file.get("model/cells")
    if cells is not None and not _is_list(cells, "S"):
        yield "'model/cells' is not a list of names"
    for name, item in _inside(file, RAW):
        if not isinstance(item, h5py.Group) or "t_s" not in item:
            yield f"'{RAW}/{name}' has no t_s"
            continue
        for key, samples in item.items():
            if not _is_list(samples, "fiu"):
                yield f"'{RAW}/{name}/{key}' is not a list of numbers"
    for name, item in _inside(file, PLUGINS):
        if not (_is_list(item, "u") and item.dtype.itemsize == 1):
            yield f"'{PLUGINS}/{name}' is not the text of a file"
        elif not _decodes(item[:].tobytes()):
            yield f"'{PLUGINS}/{name}' is not UTF-8"
        else:
            where = f"{PLUGINS}/{name}"
            yield from _kinds(where, attributes[where], CODE)


def _needs_of_channel(kept: Mapping[str, object]) -> tuple[str, ...]:
    of_record = OF_RECORD[:-1] if "record_id" in kept else ()
    if kept.get("kind") == "encoder":
        return ("terminal", "counts_per_turn", "direction", "offset_rad", *of_record)
    if "coefficients" in kept:
        return ("terminal", "raw_per_ratio", "raw_offset", *of_record)
    slope = "units_per_V" if "units_per_V" in kept else "newtons_per_V"  # before records
    return ("terminal", "zero_V", slope, *of_record)


def _inside(file: h5py.File, folder: str) -> list[tuple[str, h5py.Group | h5py.Dataset]]:
    group = file.get(folder)
    return list(group.items()) if isinstance(group, h5py.Group) else []


def _is_list(item: object, kinds: str) -> bool:
    return isinstance(item, h5py.Dataset) and item.ndim == 1 and item.dtype.kind in kinds


def _decodes(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


OF_RECORD = ("article", "serial", "record", "record_id", "status", "valid_until", "expired",
             "tables")  # fmt: skip
CODE = dict.fromkeys(("kind", "file", "package", "sha256"), TEXT)
RECORD = dict.fromkeys(
    ("article", "serial", "record", "record_id", "hash", "kind", "status", "valid_until"), TEXT
) | {"tables": TEXTS}
CALIBRATION = dict.fromkeys(
    ("article", "serial", "record", "record_id", "hash", "kind", "status", "valid_until",
     "terminal", "raw_unit", "wiring", "signal", "was_record", "was_record_id"), TEXT,
) | dict.fromkeys(
    ("capacity_N", "uncertainty_N", "raw_offset", "raw_per_ratio", "zero_V", "units_per_V",
     "newtons_per_V", "metres_per_V", "counts_per_turn", "direction", "offset_rad"), NUMBER,
) | {
    "coefficients": (lambda v: isinstance(v, list) and len(v) > 1 and all(map(_is_number, v)),
                     "a list of numbers"),
}  # fmt: skip
