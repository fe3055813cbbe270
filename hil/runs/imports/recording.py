"""Writes an imported recording: the columns of a run, marked as imported."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from hil.calibration import sources
from hil.errors import ConfigError
from hil.experiment.loaded import Experiment
from hil.loop import loop
from hil.loop.frame import Column
from hil.loop.tap import EVENT
from hil.platform.provenance import software, user
from hil.platform.whole_files import whole
from hil.record import layout
from hil.record.layout import LIBVER, RECORDED, Columns
from hil.record.summary import plain, summarise
from hil.rig.instruments import GATES
from hil.runs.assembly import Pipeline
from hil.runs.catalogue import index
from hil.runs.imports.tables import MapTable
from hil.runs.recording import model_arrays

BACKEND = "imported"
ROWS_PER_CHUNK = 8192


@dataclass(frozen=True)
class Imported:
    """The recording that was written, and what was noted on the way."""

    path: Path
    summary: dict[str, object]
    facts: dict[str, object]
    notes: list[tuple[str, str]]


class ImportedRows(NamedTuple):
    """What an import has made of its files.

    Attributes
    ----------
    columns : every column of the recording
    facts : files, their clocks, columns and map
    notes : level and text of what was noted on the way
    simulated : files with readings of simulated devices, by their own account
    """

    columns: Columns
    facts: Mapping[str, object]
    notes: Sequence[tuple[str, str]]
    simulated: Sequence[str]


def write(
    path: Path,
    config: Experiment,
    pipeline: Pipeline,
    mapped: MapTable,
    rows: ImportedRows,
) -> Imported:
    """Write the recording; the file gets its name when it is complete."""
    columns, facts, notes, simulated = rows
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    facts = {**facts, "imported_utc": now, "by": user(),
             "measured_known": mapped.measured is not None}  # fmt: skip
    attributes: dict[str, str | int | float] = {
        "backend": BACKEND,
        "clock": BACKEND,
        "seed": 0,
        **config.hashes,
        "experiment": config.to_toml(),
        "experiment_name": mapped.name,
        "experiment_file": f"{config.rig_name}/{config.path.name}",
        "software": json.dumps(software()),
        "operator": mapped.operator,
        "gates": GATES,
        "simulated": f"SIMULATED: {', '.join(simulated)}" if simulated else "",
        "imported": json.dumps(plain(facts)),
    }
    if mapped.measured is not None:
        measured = mapped.measured.astimezone(UTC)
        attributes["created_utc"] = measured.isoformat(timespec="milliseconds")
    if config.force_signal:
        attributes["force_signal"] = config.force_signal
    period_s = config.tables.loop.period_s
    contents = layout.Contents(  # readings come in their units: no calibration was applied
        list(_columns(pipeline, columns, bool(simulated))),
        attributes,
        rows_per_chunk=min(ROWS_PER_CHUNK, max(2, len(columns["t_s"]))),
        records=sources.kept(config.sources, datetime.now(UTC).date()),
        model=model_arrays(config),
    )
    try:
        with whole(path) as part:
            layout.create(part, contents)
            _fill(part, columns, notes)
            summary = {
                "outcome": "complete", "first_fault": [], "faults": [], "stopped_by": "",
                "error": "", "rows_lost": 0, "calibration": {},
                **summarise(part, period_s, BACKEND),
            }  # fmt: skip
            layout.finish(part, "complete", summary)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error}): choose another --out") from None
    index.add(path)
    return Imported(path, summary, dict(facts), list(notes))


def _columns(pipeline: Pipeline, filled: Columns, simulated: bool) -> Iterable[Column]:
    """Descriptions of the columns that are filled."""
    about = [*loop.columns(), *pipeline.rig.columns, *pipeline.estimator.columns]
    for column in about:
        if column.name in filled:
            yield replace(column, simulated=simulated and column.role == "measured")
    for channel in pipeline.rig.layout.channels:
        if (name := channel.column("reference")) in filled:
            yield Column(name, channel.units, "reference", f"set point of {channel.name}, imported")


def _fill(path: Path, columns: Columns, notes: Sequence[tuple[str, str]]) -> None:
    with h5py.File(path, "r+", libver=LIBVER) as file:
        n_rows = len(columns["t_s"])
        for name, dataset in file["ticks"].items():
            dataset.resize(n_rows, axis=0)
            dataset[...] = columns[name]
        events = np.array(
            [(0.0, level, "import", text.encode()[:256]) for level, text in notes], dtype=EVENT
        )
        file["events"].resize(len(events), axis=0)
        file["events"][...] = events
        file[RECORDED][:2] = n_rows, len(events)
