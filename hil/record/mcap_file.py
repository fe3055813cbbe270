"""Exports a recording as MCAP for Foxglove and similar tools: the topics of `messages`
as protobuf, events and inputs as JSON.

Log times are the recording's `created_utc` plus t_s. The recording's attributes are the metadata
`recording`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
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
    from hil.record.mcap_chunks import ChunkedFile
    from hil.record.protobuf_rows import Encoder

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME_MAX_NS = 2.0**62
CHUNK_B = 2_000_000  # before compression; so much fits in a processor's cache


def write_mcap(blocks: Blocks, part: Path, done: Callable[[int], None]) -> None:
    """Write the file; `done` is called with the number of further ticks done.

    Raises
    ------
    ConfigError
        A package of the extra `export` is not installed, or the recording has invalid times.
    """
    try:
        from hil.record.mcap_chunks import ChunkedFile
        from hil.record.protobuf_rows import Encoder
    except ImportError:
        raise missing_extra("MCAP", "export") from None
    run, tick = blocks.head, 0
    created = datetime.fromisoformat(run.attrs["created_utc"]).astimezone(UTC)
    start_ns = (created - EPOCH) // timedelta(microseconds=1) * 1000
    for name in ("event_t_s", "input_t_s"):
        _times_ns(run, name, start_ns, run)
    with part.open("wb") as file, ChunkedFile(file) as out:
        attributes = {key: str(run.attrs[key]) for key in run.attrs if key[0].islower()}
        cells = [str(cell) for cell in run.cell.values] if "cell" in run.coords else []
        out.add_metadata("recording", {**attributes, "cells": json.dumps(cells)})
        columns = [_column(run, str(name)) for name in run.data_vars]
        topics = messages.topics_of([c for c in columns if c is not None], cells)
        encoders = [(topic.name, Encoder(topic)) for topic in topics]
        channels = [
            (out.add_channel(name, "protobuf", encoder.name, encoder.schema), encoder)
            for name, encoder in encoders
        ]
        n_chunk = max(CHUNK_B // sum((encoder.size_B for _, encoder in encoders), 1), 1)
        for block in blocks:
            n_rows = block.sizes["tick"]
            rows = {name: block[name].values for name in ("t_s", *map(str, block.data_vars))}
            times_ns = _times_ns(block, "t_s", start_ns, run)
            for first in range(0, n_rows, n_chunk):
                now = slice(first, first + n_chunk)
                some = {name: values[now] for name, values in rows.items()}
                for number, encoder in channels:
                    _add(out, number, encoder, some, times_ns[now], tick + first)
                out.end_chunk()
            tick += n_rows
            done(n_rows)
        _write_events(out, run, start_ns)
        _write_inputs(out, run, start_ns)
        out.finish()


def _add(
    out: ChunkedFile, channel: int, encoder: Encoder, rows: messages.Rows,
    times_ns: NDArray[np.int64], first: int,
) -> None:  # fmt: skip
    """Add the messages of some rows, the first of which has this number."""
    for part, blank in encoder.stretches(rows):
        added = out.add_messages(channel, times_ns[part], first + part.start, blank)
        encoder.fill(added, {name: values[part] for name, values in rows.items()})


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


def _write_events(out: ChunkedFile, run: xr.Dataset, start_ns: int) -> None:
    fields = ("t_s", "level", "source", "text")
    columns = (run[f"event_{field}"].values.tolist() for field in fields)
    texts = [
        (at_ns := start_ns + round(1e9 * t_s), messages.event(at_ns, *event))
        for t_s, *event in zip(*columns, strict=True)
    ]
    _write_json(out, "/events", messages.EVENTS_SCHEMA, texts)


def _write_inputs(out: ChunkedFile, run: xr.Dataset, start_ns: int) -> None:
    fields = ("t_s", *messages.INPUTS_SCHEMA["properties"])
    columns = (run[f"input_{field}"].values.tolist() for field in fields)
    texts = [
        (start_ns + round(1e9 * t_s), messages.packed(dict(zip(fields[1:], values, strict=True))))
        for t_s, *values in zip(*columns, strict=True)
    ]
    _write_json(out, "/inputs", messages.INPUTS_SCHEMA, texts)


def _write_json(
    out: ChunkedFile, topic: str, schema: Figures, texts: list[tuple[int, bytes]]
) -> None:
    number = out.add_channel(
        topic,
        "json",
        schema["title"],
        json.dumps(schema).encode(),
    )
    for i, (time_ns, text) in enumerate(texts):
        out.add_messages(number, np.array([time_ns]), i, np.array(np.void(text)))
    out.end_chunk()
