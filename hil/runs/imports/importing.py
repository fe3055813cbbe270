"""`hil import`: files of other programs become a recording of a rig."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hil.config.files import Merged, read_toml
from hil.config.validate import validated
from hil.errors import ConfigError, remedy
from hil.experiment.load import load_with
from hil.loop.channels import RigLayout
from hil.mechanics.arrays import Array
from hil.record.progress import count_progress
from hil.runs.assembly import build
from hil.runs.imports.opened import Opened, open_sources
from hil.runs.imports.recording import Imported, ImportedRows, write
from hil.runs.imports.rows import Rows
from hil.runs.imports.source import refuse_read
from hil.runs.imports.tables import CellColumnTable, ColumnTable, MapTable
from hil.runs.imports.twin import model_columns
from hil.runs.plan import Plan
from hil.runs.recording import Output, trust_code

ROWS_MAX = 200_000_000


def import_files(
    files: Sequence[Path],
    rig: Path,
    map_path: Path,
    output: Output,
    *,
    sets: Iterable[str] = (),
    progress: bool = False,
) -> Imported:
    """Write a recording from files of other programs.

    Parameters
    ----------
    rig : the rig whose channels, cells and model the recording has
    map_path : the map of columns to channels (`hil.runs.imports.tables.MapTable`)

    Raises
    ------
    ConfigError
        In one line: the file or key, what is wrong with it, and the remedy; nothing is written.
    """
    mapped = read_map(map_path)
    changes: dict[str, object] = {
        "experiment": {"name": mapped.name, "duration_s": 1.0, "operator": mapped.operator},
        "controller": {"kind": "idle"},
    }
    if mapped.period_s is not None:
        changes["loop"] = {"period_s": mapped.period_s}
    config = load_with(rig, changes, str(map_path), sets)
    path = output.path(config)
    refuse_read(path, [*files, rig, map_path], "--out")
    trust_code(config, "hil import")
    pipeline = build(Plan(config))
    _refuse_unknown(map_path, mapped, pipeline.rig.layout)
    sources = open_sources(files, mapped, map_path)
    ticks_s = ticks_of(sources, mapped, config.tables.loop.period_s, map_path)
    experiment = config.tables.experiment.model_copy(
        update={"duration_s": float(len(ticks_s) * config.tables.loop.period_s)}
    )
    config = replace(config, tables=config.tables.model_copy(update={"experiment": experiment}))
    rows = Rows(config, pipeline.rig.layout, sources, ticks_s, map_path)
    rows.fill(mapped)
    with count_progress("ticks of the twin", len(ticks_s), progress) as done:
        rows.columns |= model_columns(pipeline, rows.columns, done)
    simulated = [o.source.path.name for o in sources.values() if o.source.simulated]
    facts = rows.facts() | {"map": map_path.read_text(encoding="utf-8")}
    written = ImportedRows(rows.columns, facts, rows.notes, simulated)
    return write(path, config, pipeline, mapped, written)


def read_map(path: Path) -> MapTable:
    """Read and validate a map; ConfigError with one line for each error."""
    table = read_toml(path)
    mapped = validated(MapTable, Merged(table, [(str(path), table)]))
    clocks = [name for name, source in mapped.sources.items() if source.align is None]
    if len(clocks) != 1:
        raise ConfigError(
            f"{path}: sources without align: {', '.join(clocks) or 'none'}: exactly one file has "
            "the clock of the recording, and every other one an align"
        )
    if mapped.measured is not None and mapped.measured.tzinfo is None:
        raise ConfigError(f"{path}: measured: give its time zone: 2026-01-23T09:32:03Z")
    return mapped


def _refuse_unknown(path: Path, mapped: MapTable, layout: RigLayout) -> None:
    channels = [channel.name for channel in layout.channels]
    outputs = [name.partition("_commanded")[0] for name in layout.outputs]
    tables: tuple[tuple[str, Mapping[str, ColumnTable | CellColumnTable], Sequence[str]], ...] = (
        ("channels", mapped.channels, channels),
        ("references", mapped.references, channels),
        ("outputs", mapped.outputs, outputs),
        ("cells", mapped.cells, layout.cell_names),
    )
    for table, columns, known in tables:
        for name, column in columns.items():
            key = f"{path}: {table}.{name}"
            if name not in known:
                choice = remedy(name, known) if known else ": it has none: remove it"
                raise ConfigError(f"{key}: the rig has no such one{choice}")
            if column.source is None and len(mapped.sources) > 1:
                raise ConfigError(f"{key}.source: missing: choose {', '.join(mapped.sources)}")
            if column.source is not None and column.source not in mapped.sources:
                raise ConfigError(
                    f"{key}.source = '{column.source}': no such source"
                    f"{remedy(column.source, mapped.sources)}"
                )


def ticks_of(
    sources: Mapping[str, Opened], mapped: MapTable, period_s: float, map_path: Path
) -> Array:
    """Times of the rows, by the clock of the recording's source."""
    main = sources[mapped.clock]
    spans = []
    tables: tuple[tuple[str, Mapping[str, ColumnTable | CellColumnTable]], ...] = (
        ("channels", mapped.channels),
        ("cells", mapped.cells),
    )
    for table, columns in tables:
        for name, column in columns.items():
            if (column.source or mapped.clock) == mapped.clock:
                times = main.times_of(column.column, f"{map_path}: {table}.{name}.column")
                spans.append((times.t_s[0], times.t_s[-1]))
    if not spans:
        raise ConfigError(f"{map_path}: sources.{mapped.clock}: no channel is from this source, "
                          "whose clock the recording has")  # fmt: skip
    begin_s = min(a for a, _ in spans) if mapped.start_s is None else mapped.start_s
    end_s = max(b for _, b in spans) if mapped.end_s is None else mapped.end_s
    n_rows = int(np.floor((end_s - begin_s) / period_s + 1e-6)) + 1
    if n_rows < 2:
        raise ConfigError(
            f"{map_path}: {end_s - begin_s:.4g} s from start to end, with a period of "
            f"{period_s:g} s: give a shorter period_s, or another start_s and end_s"
        )
    if n_rows > ROWS_MAX:
        raise ConfigError(
            f"{map_path}: {n_rows} rows of {period_s:g} s: give a longer period_s, as the files "
            "need it"
        )
    return np.asarray(begin_s + period_s * np.arange(n_rows))
