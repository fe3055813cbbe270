"""The calibration records that the tables of a configuration name.

A table with `record = "../../calibration/NAME.toml"` (or a list of them) repeats the record's
values as its own keys for the reader. This module checks that both agree. A value that `--set`
changes departs from its record; a run notes that.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pydantic import BaseModel

from hil.calibration.files import Calibration, Source, load_any, located
from hil.config.files import Merged, folder_of, is_option
from hil.config.values import Attributes
from hil.errors import ConfigError

AGREEMENT = 1e-6
BRING_UP = "bring_up"  # the kind of a driver board's record, whose values no table repeats
CHECKED = ("model", "devices")  # not [plant], which contains the differences from [model]


@dataclass(frozen=True)
class Sourced:
    """A table of the configuration and a record that it names.

    Attributes
    ----------
    table : path of the table, such as `model.arrays.muscle.cell`
    source : Source
    departures : messages about values that `--set` changed from those of the record
    """

    table: str
    source: Source
    departures: tuple[str, ...] = ()


def load_sources(tables: BaseModel, merged: Merged) -> list[Sourced]:
    """Load every record that a table names and compare it with the table's values.

    Raises
    ------
    ConfigError
        A record is missing, invalid or has no value for its table, or its values differ from those
        of the table; a line for each.
    """
    sources, wrong, read = [], [], dict[Path, Calibration | Source]()
    for path, table, names in _naming(tables):
        key = ".".join(path)
        for name in names:
            origin = merged.origin([*path, "record"])
            folder = folder_of(origin)
            named_by = f"{origin}: {key}.record"
            file = located(folder, name, named_by=named_by)
            if file not in read:
                read[file] = load_any(file, named_by=named_by)
            source = read[file]
            if isinstance(source, Calibration):
                raise ConfigError(f"{named_by}: {file.name} is a force transducer's record")
            departures = []
            for value, text in _differences(table, source):
                where = merged.origin([*path, *_keys_of(value)])
                if is_option(where) and not is_option(origin):
                    departures.append(f"{key}.{value}{text}")
                else:
                    wrong.append(f"{where}: {key}.{value}{text}: use one of the two values")
            if not _belongs(table, source):
                wrong.append(f"{named_by}: {source.id} has no value for this table")
            sources.append(Sourced(key, source, tuple(departures)))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return sources


def _belongs(table: BaseModel, source: Source) -> bool:
    """Whether a record has a value of the table; a bring-up's is that of a whole board."""
    if source.record.kind == BRING_UP:
        return getattr(table, "role", "") == "board"
    return any(base(name) in type(table).model_fields for name in source.names)


def kept(sources: Sequence[Sourced], today: date) -> dict[str, dict[str, object]]:
    """The records as a recording stores them: text, facts and the tables that name them."""
    entries: dict[str, Attributes] = {}
    for sourced in sources:
        source, record = sourced.source, sourced.source.record
        entry = entries.setdefault(source.path.stem, {
            "tables": [],
            "record": source.text,
            "record_id": source.id,
            "kind": record.kind,
            "hash": record.hash,
            "status": record.status,
            "article": record.article.name,
            "serial": record.article.serial,
            "valid_until": record.act.valid_until.isoformat(),
            "expired": source.expired(today),
        })  # fmt: skip
        entry["tables"].append(sourced.table)
    return entries


def _naming(tables: BaseModel) -> Iterator[tuple[list[str], BaseModel, list[str]]]:
    """Every table that names records: path of the table, the table, and the records' paths."""
    todo: list[tuple[list[str], object]] = [([key], getattr(tables, key, None)) for key in CHECKED]
    while todo:
        path, value = todo.pop(0)
        if isinstance(value, BaseModel):
            names = getattr(value, "record", None)
            if isinstance(names, list):
                yield path, value, names
            todo += [([*path, key], getattr(value, key)) for key in type(value).model_fields]
        elif isinstance(value, Mapping):
            todo += [([*path, str(key)], item) for key, item in value.items()]
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            several = [([*path, str(i)], item) for i, item in enumerate(value, start=1)]
            todo += several if len(value) > 1 else [(path, value[0])]


def _keys_of(name: str) -> list[str | int]:
    """The keys of a name; list entries count from 0."""
    return [int(part) - 1 if part.isdecimal() else part for part in name.split(".")]


def base(name: str) -> str:
    """The configuration key of a record's name: `mass_kg` of `mass_kg.3`."""
    return name.partition(".")[0]


def _differences(table: BaseModel, source: Source) -> Iterator[tuple[str, str]]:
    """Keys of the table whose values differ from the record's, each with a message."""
    fields = type(table).model_fields
    entries: dict[str, set[int]] = {}
    for name, record in zip(source.names, source.values.tolist(), strict=True):
        if base(name) not in fields:
            continue
        above, _, last = name.rpartition(".")
        if last.isdecimal():
            entries.setdefault(above, set()).add(int(last))
        stated = _stated(table, name.split("."))
        if stated is None:
            yield (
                name,
                f": missing: {source.id} has {record:.9g}: write this value beside the record",
            )
            continue
        for value in stated if isinstance(stated, list) else [stated]:
            if not isinstance(value, int | float):
                yield name, f": {source.id} has {record:.9g}, the table has no number"
                break
            if abs(value - record) > AGREEMENT * abs(record):
                yield name, f" = {value:.9g}: record {source.id} has {record:.9g}"
                break
    for name, indices in entries.items():
        stated, complete = _stated(table, name.split(".")), len(indices) == max(indices)
        if complete and isinstance(stated, list) and len(stated) > len(indices):
            yield name, f": {len(stated)} values, {source.id} has {len(indices)}"


def _stated(table: object, path: Sequence[str]) -> object:
    """The explicitly set value at a path of a table; None if there is none."""
    for part in path:
        if isinstance(table, BaseModel):
            table = getattr(table, part) if part in table.model_fields_set else None
        elif isinstance(table, Mapping):
            table = table.get(part)
        elif isinstance(table, list) and part.isdecimal() and 1 <= int(part) <= len(table):
            table = table[int(part) - 1]
        else:
            return None
    return table
