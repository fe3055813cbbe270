"""Messages of a run for Foxglove and similar tools: topics, JSON schemas, values.

One topic a role (`/measured`, `/commanded`, `/model`, `/reference`, `/state`, `/timing`, `/fault`)
with a message a tick, and four that are derived: `/residual` (measured minus model), `/cells` (each
cell by name), `/guard` (state and faults by name). `/events` has Foxglove's own log format,
`/inputs` the requests that took effect. A message omits missing values (NaN, and 255 of a cell),
which JSON cannot represent; in a list, one value a cell, NaN is null. Dots in names become
underscores, because Foxglove reads a dot as access to a nested field. A file has the same topics
and fields in protobuf (`protobuf_rows`).
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.loop.channels import signals_in
from hil.loop.frame import CELL_UNKNOWN, Column
from hil.loop.states import NUMBERS

LOG_LEVELS = {"info": 2, "warning": 3, "error": 4, "fault": 5}
CELLS = "cells_"
_T_S = {"t_s": {"type": "number", "description": "scheduled time, s"}}
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_TIME = {
    "type": "object",
    "title": "time",
    "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
}
EVENTS_SCHEMA = {
    "title": "foxglove.Log",
    "type": "object",
    "properties": {
        "timestamp": _TIME,
        "level": {"type": "integer"},
        "message": {"type": "string"},
        "name": {"type": "string"},
        "file": {"type": "string"},
        "line": {"type": "integer"},
    },
}
INPUTS_SCHEMA = {
    "title": "hil.input",
    "type": "object",
    "properties": {
        "tick": {"type": "integer", "description": "at which it took effect"},
        "name": {"type": "string"},
        "value": {"type": "number"},
        "text": {"type": "string"},
    },
}

Content = Figures
Rows = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Field:
    """A field of a topic whose values are numbers.

    Attributes
    ----------
    path : names of the field and of the messages that it is in, from the outermost on
    dtype : float64, uint64 or uint8
    columns : its column, or two: its values are those of the first minus those of the second
    n_values : 0 for one number a row; otherwise the number of cells, with a number each
    cell : position of the one cell whose values it has
    """

    path: tuple[str, ...]
    description: str
    dtype: np.dtype[np.generic]
    columns: tuple[str, ...]
    n_values: int = 0
    cell: int | None = None

    def values(self, rows: Rows) -> NDArray[np.generic]:
        """Values in every row, shape (n,) or (n, n_values)."""
        column, *subtracted = (rows[name] for name in self.columns)
        if subtracted:
            with np.errstate(invalid="ignore"):  # of two that are infinite
                return np.subtract(column, subtracted[0])
        return column if self.cell is None else column[:, self.cell]


@dataclass(frozen=True)
class Topic:
    """One topic with a message a tick.

    Attributes
    ----------
    columns : names of the columns that it needs
    content : makes a message of the values of these columns in one row, without t_s
    fields : its fields; none if it has text
    """

    name: str
    schema: Figures
    columns: tuple[str, ...]
    content: Callable[[Sequence[Any]], Content]
    fields: tuple[Field, ...] = ()

    def messages(self, rows: Rows) -> Iterator[bytes]:
        """One message for each row; `rows` has `t_s` and the columns as arrays."""
        t_s, *values = (rows[name].tolist() for name in ("t_s", *self.columns))
        for at_s, *row in zip(t_s, *values, strict=True):
            yield packed({"t_s": at_s, **self.content(row)})


def topics_of(columns: Sequence[Column], cells: Sequence[str]) -> list[Topic]:
    """Topics of a run with these columns (`t_s` need not be one of them) and cells."""
    topics = [_of_role(role, members) for role, members in _by_role(columns).items()]
    named = {column.name: column for column in columns}
    if residual := _residual([column for column in columns if not column.n_cells]):
        topics.append(residual)
    if cells and (states := [c for c in columns if c.n_cells and c.name.startswith(CELLS)]):
        topics.append(_cells(states, cells))
    if "guard_state" in named and "fault_bits" in named:
        topics.append(_guard(named["fault_bits"].flags))
    return topics


def field_name(column: str) -> str:
    """The name of a column in its message."""
    return column.replace(".", "_")


def packed(content: Content) -> bytes:
    """A message as JSON, without missing values."""
    fields = {
        key: [None if _is_missing(one) else one for one in value]
        if isinstance(value, list)
        else value
        for key, value in content.items()
        if not _is_missing(value)
    }
    return _ENCODE(fields).encode()


def event(time_ns: int, level: str, source: str, text: str) -> bytes:
    """An event as a message of `/events`."""
    return packed(
        {
            "timestamp": {"sec": time_ns // 10**9, "nsec": time_ns % 10**9},
            "level": LOG_LEVELS.get(level, 0),
            "message": text,
            "name": source,
            "file": "",
            "line": 0,
        }
    )


def _is_missing(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _by_role(columns: Sequence[Column]) -> dict[str, list[Column]]:
    roles: dict[str, list[Column]] = {}
    for column in columns:
        if column.name != "t_s":
            roles.setdefault(column.role, []).append(column)
    return roles


def _schema(title: str, properties: Content) -> Content:
    return {"title": f"hil.{title}", "type": "object", "properties": {**_T_S, **properties}}


def _property(column: Column) -> Content:
    kind = "number" if column.dtype.base.kind == "f" else "integer"
    simulated = "; SIMULATED" if column.simulated else ""
    text = f"{column.description}, {column.units}{simulated}"
    if not column.n_cells:
        return {"type": kind, "description": text}
    items = {"type": [kind, "null"] if kind == "number" else kind}
    return {"type": "array", "items": items, "description": text}


def _of_role(role: str, columns: Sequence[Column]) -> Topic:
    keys = [field_name(column.name) for column in columns]
    properties = dict(zip(keys, map(_property, columns), strict=True))
    names = tuple(column.name for column in columns)
    fields = (
        Field((key,), properties[key]["description"], c.dtype.base, (c.name,), n_values=c.n_cells)
        for key, c in zip(keys, columns, strict=True)
    )
    return Topic(
        f"/{role}",
        _schema(role, properties),
        names,
        lambda values: dict(zip(keys, values, strict=True)),
        tuple(fields),
    )


def _residual(columns: Sequence[Column]) -> Topic | None:
    """Measured minus model of every signal that has a model."""
    units = {column.name: column.units for column in columns}
    signals = signals_in(units)
    if not signals:
        return None
    keys = [field_name(f"{s.name}_residual{s.suffix}") for s in signals]
    properties = {
        key: {
            "type": "number",
            "description": f"measured minus model of {s.name}, {units[s.measured]}",
        }
        for key, s in zip(keys, signals, strict=True)
    }
    names = tuple(name for s in signals for name in (s.measured, s.model))
    number = np.dtype(np.float64)
    fields = (
        Field((key,), properties[key]["description"], number, (s.measured, s.model))
        for key, s in zip(keys, signals, strict=True)
    )
    return Topic(
        "/residual",
        _schema("residual", properties),
        names,
        lambda values: {key: values[2 * i] - values[2 * i + 1] for i, key in enumerate(keys)},
        tuple(fields),
    )


def _cells(columns: Sequence[Column], cells: Sequence[str]) -> Topic:
    """Every cell by name: commanded, reported and whatever else the columns of cells have."""
    words = [column.name.removeprefix(CELLS) for column in columns]
    unknown = [None if column.fractions else CELL_UNKNOWN for column in columns]
    keys = [field_name(cell) for cell in cells]
    one = {
        "type": "object",
        "properties": {
            word: {
                "type": "number" if column.fractions else "integer",
                "description": column.description,
            }
            for word, column in zip(words, columns, strict=True)
        },
    }

    def content(values: Sequence[Any]) -> Content:
        return {
            key: {
                word: value[i]
                for word, value, missing in zip(words, values, unknown, strict=True)
                if value[i] != missing and not _is_missing(value[i])
            }
            for i, key in enumerate(keys)
        }

    names = tuple(column.name for column in columns)
    fields = tuple(
        Field((key, word), column.description, column.dtype.base, (column.name,), cell=i)
        for i, key in enumerate(keys)
        for word, column in zip(words, columns, strict=True)
    )
    return Topic("/cells", _schema("cells", dict.fromkeys(keys, one)), names, content, fields)


def _guard(flags: Sequence[str]) -> Topic:
    """The state of the rig, and the latched faults of the guard by name."""
    states = {number: name for name, number in NUMBERS.items()}
    properties = {
        "state": {"type": "string", "description": "of the rig"},
        "faults": {
            "type": "array",
            "items": {"type": "string"},
            "description": "since the start, latched",
        },
    }

    def content(values: Sequence[Any]) -> Content:
        state, bits = values
        number = None if _is_missing(state) else int(state)
        return {
            "state": states.get(number, str(number)) if number is not None else "unknown",
            "faults": [name for i, name in enumerate(flags) if bits >> i & 1],
        }

    return Topic("/guard", _schema("guard", properties), ("guard_state", "fault_bits"), content)
