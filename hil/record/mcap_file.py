"""Exports a recording as MCAP for Foxglove and similar tools: JSON messages with schemas.

One channel a role (`/measured`, `/commanded`, `/model`, `/reference`, `/state`, `/timing`,
`/fault`) with a message a tick, `/events` in Foxglove's own log format, and `/inputs`. Log times
are the recording's `created_utc` plus t_s. A message omits missing values (NaN), which JSON cannot
represent; in a list, one value a cell, they are null. Dots in names become underscores, because
Foxglove reads a dot as access to a nested field. The recording's attributes are the metadata
`recording`.
"""

import json
import math
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from hil.errors import ConfigError

TIME_MAX_NS = 2.0**62
LOG_LEVELS = {"info": 2, "warning": 3, "error": 4, "fault": 5}
_TIME = {
    "type": "object",
    "title": "time",
    "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
}
_LOG_SCHEMA = {
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
_INPUT_SCHEMA = {
    "title": "hil.input",
    "type": "object",
    "properties": {
        "tick": {"type": "integer", "description": "at which it took effect"},
        "name": {"type": "string"},
        "value": {"type": "number"},
        "text": {"type": "string"},
    },
}


def write_mcap(run: xr.Dataset, target: Path, progress: Callable[[int], None]) -> None:
    """Write the file; `progress` is called with the number of further ticks done.

    Raises
    ------
    ConfigError
        The package mcap is not installed, or the recording has invalid times.
    """
    try:
        from mcap.writer import Writer
    except ImportError:
        raise ConfigError("MCAP needs an extra: pip install 'hil-arrays[export]'") from None
    start_ns = round(datetime.fromisoformat(run.attrs["created_utc"]).timestamp() * 1e9)
    for name in ("t_s", "event_t_s", "input_t_s"):
        at_ns = start_ns + 1e9 * run[name].values
        if not ((at_ns >= 0.0) & (at_ns < TIME_MAX_NS)).all():
            raise ConfigError(f"{run.encoding['source']}: {name}: has times that MCAP does not: "
                              "check it with hil verify")  # fmt: skip
    times_ns = start_ns + np.rint(1e9 * run.t_s.values).astype(np.int64)
    with target.open("wb") as file:
        writer: Any = Writer(file)
        writer.start(profile="", library="hil-arrays")
        attributes = {key: str(run.attrs[key]) for key in run.attrs if key[0].islower()}
        cells = (
            json.dumps([str(cell) for cell in run.cell.values]) if "cell" in run.coords else "[]"
        )
        writer.add_metadata("recording", {**attributes, "cells": cells})
        channels = []
        for role, names in _by_role(run).items():
            number = _register(writer, f"/{role}", _schema(run, role, names))
            channels.append((number, _rows(run, names)))
        for tick, time_ns in enumerate(times_ns.tolist()):
            for number, rows in channels:
                writer.add_message(number, time_ns, _packed(next(rows)), time_ns, tick)
            if tick % 1000 == 999:
                progress(1000)
        _write_events(writer, run, start_ns)
        _write_inputs(writer, run, start_ns)
        writer.finish()


def field_name(column: str) -> str:
    """The name of a column in its message."""
    return column.replace(".", "_")


def _by_role(run: xr.Dataset) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {}
    for name in run.data_vars:
        if run[name].dims[0] == "tick":
            roles.setdefault(run[name].attrs["role"], []).append(str(name))
    return roles


def _schema(run: xr.Dataset, role: str, names: list[str]) -> dict[str, Any]:
    properties: dict[str, Any] = {"t_s": {"type": "number", "description": "scheduled time, s"}}
    for name in names:
        variable = run[name]
        kind = "number" if variable.dtype.kind == "f" else "integer"
        simulated = "; SIMULATED" if variable.attrs.get("source") == "SIMULATED" else ""
        said = f"{variable.attrs['description']}, {variable.attrs['units']}{simulated}"
        plain = {"type": kind, "description": said}
        properties[field_name(name)] = (
            plain if variable.ndim == 1
            else {"type": "array", "items": {"type": [kind, "null"] if kind == "number" else kind},
                  "description": said}
        )  # fmt: skip
    return {"title": f"hil.{role}", "type": "object", "properties": properties}


def _rows(run: xr.Dataset, names: list[str]) -> Iterator[dict[str, Any]]:
    keys = ["t_s", *map(field_name, names)]
    columns = [run.t_s.values.tolist(), *(run[name].values.tolist() for name in names)]
    for values in zip(*columns, strict=True):
        yield dict(zip(keys, values, strict=True))


def _packed(row: dict[str, Any]) -> bytes:
    there = {
        key: [None if _is_missing(one) else one for one in value]
        if isinstance(value, list)
        else value
        for key, value in row.items()
        if not _is_missing(value)
    }
    return json.dumps(there, separators=(",", ":"), allow_nan=False).encode()


def _is_missing(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _register(writer: Any, topic: str, schema: dict[str, Any]) -> int:
    number = writer.register_schema(schema["title"], "jsonschema", json.dumps(schema).encode())
    return int(writer.register_channel(topic, "json", number))


def _write_events(writer: Any, run: xr.Dataset, start_ns: int) -> None:
    number = _register(writer, "/events", _LOG_SCHEMA)
    columns = (
        run[f"event_{field}"].values.tolist() for field in ("t_s", "level", "source", "text")
    )
    for i, (t_s, level, source, text) in enumerate(zip(*columns, strict=True)):
        time_ns = start_ns + round(1e9 * t_s)
        row = {
            "timestamp": {"sec": time_ns // 10**9, "nsec": time_ns % 10**9},
            "level": LOG_LEVELS.get(level, 0),
            "message": text,
            "name": source,
            "file": "",
            "line": 0,
        }
        writer.add_message(number, time_ns, _packed(row), time_ns, i)


def _write_inputs(writer: Any, run: xr.Dataset, start_ns: int) -> None:
    number = _register(writer, "/inputs", _INPUT_SCHEMA)
    fields = ("t_s", *_INPUT_SCHEMA["properties"])
    columns = (run[f"input_{field}"].values.tolist() for field in fields)
    for i, (t_s, *values) in enumerate(zip(*columns, strict=True)):
        time_ns = start_ns + round(1e9 * t_s)
        row = dict(zip(fields[1:], values, strict=True))
        writer.add_message(number, time_ns, _packed(row), time_ns, i)
