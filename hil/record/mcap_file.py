"""Exports a recording as MCAP for Foxglove and similar tools: the messages of `messages`.

Log times are the recording's `created_utc` plus t_s. The recording's attributes are the metadata
`recording`.
"""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.errors import ConfigError, missing_extra
from hil.loop.frame import Column
from hil.record import messages
from hil.record.read import Blocks

if TYPE_CHECKING:
    from mcap.writer import Writer

TIME_MAX_NS = 2.0**62


def write_mcap(blocks: Blocks, part: Path, done: Callable[[int], None]) -> None:
    """Write the file; `done` is called with the number of further ticks done.

    Raises
    ------
    ConfigError
        The package mcap is not installed, or the recording has invalid times.
    """
    try:
        from mcap.writer import Writer
    except ImportError:
        raise missing_extra("MCAP", "export") from None
    run, tick = blocks.head, 0
    start_ns = round(datetime.fromisoformat(run.attrs["created_utc"]).timestamp() * 1e9)
    for name in ("event_t_s", "input_t_s"):
        _times_ns(run, name, start_ns, run)
    with part.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="", library="hil-arrays")
        attributes = {key: str(run.attrs[key]) for key in run.attrs if key[0].islower()}
        cells = [str(cell) for cell in run.cell.values] if "cell" in run.coords else []
        writer.add_metadata("recording", {**attributes, "cells": json.dumps(cells)})
        columns = [_column(run, str(name)) for name in run.data_vars]
        topics = messages.topics_of([c for c in columns if c is not None], cells)
        channels = [(_register(writer, topic.name, topic.schema), topic) for topic in topics]
        for block in blocks:
            rows = {name: block[name].values for name in ("t_s", *map(str, block.data_vars))}
            streams = [(number, topic.messages(rows)) for number, topic in channels]
            for time_ns in _times_ns(block, "t_s", start_ns, run).tolist():
                for number, stream in streams:
                    writer.add_message(number, time_ns, next(stream), time_ns, tick)
                tick += 1
            done(block.sizes["tick"])
        _write_events(writer, run, start_ns)
        _write_inputs(writer, run, start_ns)
        writer.finish()  # type: ignore[no-untyped-call]


def _times_ns(rows: xr.Dataset, name: str, start_ns: int, run: xr.Dataset) -> NDArray[np.int64]:
    """Times of rows in ns since 1970; ConfigError where MCAP has none such."""
    at_ns = start_ns + 1e9 * rows[name].values
    if not ((at_ns >= 0.0) & (at_ns < TIME_MAX_NS)).all():
        raise ConfigError(f"{run.encoding['source']}: {name}: has times that MCAP does not: "
                          "check it with hil verify")  # fmt: skip
    return start_ns + np.rint(1e9 * rows[name].values).astype(np.int64)


def _column(run: xr.Dataset, name: str) -> Column | None:
    """The column of a variable with a row a tick; None for events and inputs."""
    variable = run[name]
    if variable.dims[0] != "tick":
        return None
    of_cells, floats = variable.ndim == 2, variable.dtype.kind == "f"
    facts = variable.attrs
    # A column of bits whose flags are not known is still one of integers.
    flags = tuple(facts.get("flags", ())) or (() if floats or of_cells else ("unknown",))
    return Column(
        name,
        facts["units"],
        facts["role"],
        facts["description"],
        n_cells=variable.shape[1] if of_cells else 0,
        flags=flags,
        simulated=facts.get("source") == "SIMULATED",
        fractions=of_cells and floats,
    )


def _register(writer: "Writer", topic: str, schema: Figures) -> int:
    number = writer.register_schema(schema["title"], "jsonschema", json.dumps(schema).encode())
    return int(writer.register_channel(topic, "json", number))


def _write_events(writer: "Writer", run: xr.Dataset, start_ns: int) -> None:
    number = _register(writer, "/events", messages.EVENTS_SCHEMA)
    columns = (
        run[f"event_{field}"].values.tolist() for field in ("t_s", "level", "source", "text")
    )
    for i, (t_s, *event) in enumerate(zip(*columns, strict=True)):
        time_ns = start_ns + round(1e9 * t_s)
        writer.add_message(number, time_ns, messages.event(time_ns, *event), time_ns, i)


def _write_inputs(writer: "Writer", run: xr.Dataset, start_ns: int) -> None:
    number = _register(writer, "/inputs", messages.INPUTS_SCHEMA)
    fields = ("t_s", *messages.INPUTS_SCHEMA["properties"])
    columns = (run[f"input_{field}"].values.tolist() for field in fields)
    for i, (t_s, *values) in enumerate(zip(*columns, strict=True)):
        time_ns = start_ns + round(1e9 * t_s)
        row = messages.packed(dict(zip(fields[1:], values, strict=True)))
        writer.add_message(number, time_ns, row, time_ns, i)
