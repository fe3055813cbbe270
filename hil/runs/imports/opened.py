"""The files of an import, each with its clock set against the recording's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from hil.errors import ConfigError
from hil.runs.imports.clocks import Clock, Curve, Times, aligned, increasing, times_of
from hil.runs.imports.source import Source, read_source
from hil.runs.imports.tables import MapTable, SourceTable


@dataclass(frozen=True)
class Opened:
    """A file with its clock; `column_times` are those of columns with times of their own."""

    name: str
    table: SourceTable
    source: Source
    times: Times | None
    clock: Clock = field(default_factory=lambda: Clock("the clock of the recording"))

    def times_of(self, column: str, where: str) -> Times:
        """The times of a column: the file's, or its own."""
        series = self.source.column(column, where)
        table, n_rows = self.table, len(series.values)
        if self.times is not None:
            if n_rows == len(self.times.groups):
                return self.times
            if table.time is not None and table.time.rate_Hz is not None:
                return times_of(self.source, self.name, table, n_rows)
            raise ConfigError(
                f"{where} = '{column}': has {n_rows} rows in {self.source.path.name}, and the "
                f"times of sources.{self.name} {len(self.times.groups)}: give the file a second "
                "source with the times of this column"
            )
        if series.t_s is None:
            raise ConfigError(
                f"{where} = '{column}': has no times in {self.source.path.name}: give "
                f"sources.{self.name}.time"
            )
        return increasing(series.t_s, self.source, table, self.start)

    @property
    def start(self) -> datetime | None:
        """Date and time at which the clock is zero, as far as map or file state it."""
        times = None if self.times is None else self.times.start
        return times or self.table.start or self.source.start

    def curve(self, column: str, where: str) -> Curve:
        """A column over the file's own clock, in the file's unit."""
        times = self.times_of(column, where)
        return Curve(times.t_s, times.values(self.source.column(column, where).values))


def open_sources(files: Sequence[Path], mapped: MapTable, map_path: Path) -> dict[str, Opened]:
    """Read every file of the map, and set its clock against the recording's."""
    of_source = _matched(files, mapped, map_path)
    opened: dict[str, Opened] = {}
    for name, table in mapped.sources.items():
        source = read_source(of_source[name], table.text)
        times = None
        if table.time is not None:
            n_rows = _n_rows(source, table)
            times = times_of(source, name, table, n_rows)
        opened[name] = Opened(name, table, source, times)
    main = opened[mapped.clock]
    for name, item in opened.items():
        if name != mapped.clock:
            opened[name] = replace(item, clock=_clock_of(item, main))
    return opened


def _n_rows(source: Source, table: SourceTable) -> int:
    """Rows of the time column, or of the longest column where the times are a rate."""
    assert table.time is not None
    for column in table.time.columns:
        return len(source.columns[source.name_of(column, "time.column")].values)
    return max(len(series.values) for series in source.columns.values())


def _matched(files: Sequence[Path], mapped: MapTable, map_path: Path) -> dict[str, Path]:
    matches: dict[str, Path] = {}
    for name, table in mapped.sources.items():
        fitting = [f for f in files if table.file is None or fnmatch(f.name, table.file)]
        if len(fitting) != 1:
            which = ", ".join(f.name for f in fitting) or "none"
            raise ConfigError(
                f"{map_path}: sources.{name}.file = '{table.file or '*'}': fits {which} of the "
                f"{len(files)} files given: it must fit one"
            )
        matches[name] = fitting[0]
    if unused := [f for f in files if f not in matches.values()]:
        raise ConfigError(f"{unused[0]}: no source of {map_path} fits it: add one, or leave it out")
    return matches


def _clock_of(item: Opened, main: Opened) -> Clock:
    table, key = item.table.align, f"sources.{item.name}.align"
    assert table is not None  # only the recording's clock has none
    if table.by == "offset":
        assert table.offset_s is not None  # the table refuses an alignment without it
        return Clock("given offset", -table.offset_s)
    if table.by == "clock":
        starts = [main.start, item.start]
        if starts[0] is None or starts[1] is None:
            missing = main.name if starts[0] is None else item.name
            raise ConfigError(f"{key}: sources.{missing} has no dates: give its start")
        if (starts[0].tzinfo is None) != (starts[1].tzinfo is None):
            raise ConfigError(f"{key}: give both starts with a time zone, or both without")
        return Clock("difference of the clocks' dates", (starts[0] - starts[1]).total_seconds())
    assert table.column is not None  # the table refuses these two without columns
    assert table.to_column is not None
    curve = item.curve(table.column, f"{key}.column")
    return aligned(table, curve, main.curve(table.to_column, f"{key}.to_column"), key)


def file_facts(opened: Opened) -> dict[str, object]:
    facts: dict[str, object] = {
        "source": opened.name,
        "file": opened.source.path.name,
        "format": opened.source.format,
        "sha256": opened.source.sha256,
        "clock": opened.clock.as_dict(),
    }
    times = opened.times
    if times is not None:
        facts |= {
            "rows": len(times.groups),
            "repeated": times.repeated,
            "without_time": times.missing,
            "gaps": len(times.gaps),
            "longest_gap_s": float(np.diff(times.t_s)[times.gaps].max(initial=0.0)),
        }
    return facts


def remarks(opened: Opened) -> Iterator[tuple[str, str]]:
    """Lines about a file: its clock, its gaps, its repeated times."""
    name, clock = opened.source.path.name, opened.clock
    line = f"{name}: {opened.source.format}, {clock.method}"
    if opened.table.align is not None:
        line += f", offset {clock.offset_s:.6g} s"
        if np.isfinite(clock.drift_standard_error):
            ppm, error = 1e6 * clock.drift, 1e6 * clock.drift_standard_error
            line += f", drift {ppm:.3g} +- {error:.2g} ppm"
        if np.isfinite(clock.residual_s):
            line += f", residual {clock.residual_s:.3g} s"
        if np.isfinite(clock.correlation):
            line += f", r = {clock.correlation:.4f}"
    yield "info", line
    if left := opened.source.left:
        yield "warning", f"{name} holds more than was taken: {'; '.join(left)}"
    times = opened.times
    if times is None:
        return
    if times.read_as:
        yield "info", f"{name}: {times.read_as}"
    if len(times.gaps):
        widths_s = np.diff(times.t_s)[times.gaps]
        k = int(times.gaps[0])
        yield (
            "warning",
            f"{name}: {len(widths_s)} gaps longer than {times.gap_s:.4g} s, the first at "
            f"{times.t_s[k]:.6g} s, the longest {widths_s.max():.4g} s",
        )
    if times.repeated:
        kept = "their mean is kept" if times.mean else "the first is kept"
        yield "warning", f"{name}: {times.repeated} rows repeat a time; {kept}"
    if times.missing:
        yield "warning", f"{name}: {times.missing} rows have no time and are left out"
