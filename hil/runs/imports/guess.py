"""`hil import --guess`: a first map, from the headers of the files."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from hil.errors import ConfigError, one_line, writing
from hil.experiment.load import load_with
from hil.loop.channels import RigLayout
from hil.platform.whole_files import write_whole
from hil.rig.instruments import layout_of
from hil.runs.imports.clocks import (
    CLOCKS,
    DATES,
    EPOCHS,
    are_serial_days,
    fitting_formats,
    times_of,
)
from hil.runs.imports.source import Series, Source, read_source, refuse_read
from hil.runs.imports.tables import SourceTable, TextTable
from hil.runs.imports.units import fits, split_header

TIME = re.compile(r"^_?(t|time|zeit|temps|tiempo|tempo|elapsed|timestamp|date.*time)\b", re.I)
LIKE = 0.4  # of difflib: names below it are not alike
IDLE = {
    "experiment": {"name": "import", "duration_s": 1.0},
    "controller": {"kind": "idle"},
}


def guess(files: Sequence[Path], rig: Path | None, out: Path, *, force: bool = False) -> str:
    """Write a first map, to be read and corrected; returns its text.

    Raises
    ------
    ConfigError
        A file cannot be read, or the map exists.
    """
    if out.exists() and not force:
        raise ConfigError(f"{out}: exists already: choose another --map, or overwrite with --force")
    refuse_read(out, [*files, *([] if rig is None else [rig])], "--map")
    layout = None
    if rig is not None:
        config = load_with(rig, IDLE, str(out))
        layout = layout_of(config.tables, list(config.models[0].cell_names))
    sources = _named([read_source(path, TextTable()) for path in files])
    text = "\n".join([*_head(out, sources, layout), *_channels(sources, layout), ""])
    with writing(out, ": choose another --map"):
        write_whole(out, text)
    return text


def _named(sources: Sequence[Source]) -> dict[str, Source]:
    """Sources by the first word of their file's name."""
    by_name: dict[str, Source] = {}
    for i, source in enumerate(sources, start=1):
        word = re.match(r"[A-Za-z]\w*?(?=_|\b)", source.path.stem, re.ASCII)
        name = word[0] if word and word[0] not in by_name else f"file{i}"
        by_name[name] = source
    return by_name


def _head(out: Path, sources: Mapping[str, Source], layout: RigLayout | None) -> Iterator[str]:
    yield "# A first map, from headers: read it, correct it, then import with it."
    yield f"name = {_quoted(out.stem)}"
    yield "# measured = 2026-01-23T09:32:03Z   # when the clock of the recording was zero"
    yield "# period_s = 0.1                    # by default the rig's"
    for i, (name, source) in enumerate(sources.items()):
        yield ""
        yield f"[sources.{name}]"
        yield f"file = {_quoted(source.path.name)}"
        yield from _time(source)
        if i:
            yield 'align = {by = "offset", offset_s = 0.0}   # or by event, correlation, clock'
        yield "# columns, with their units:"
        for rest in source.left:
            yield one_line(f"# left out: {rest}")
        for header, series in source.columns.items():
            yield f"#   {_quoted(header)} {series.unit or '(no unit)'}{_range(series)}"


def _range(series: Series) -> str:
    if series.values.dtype.kind not in "fiub":
        return f", such as {_quoted(str(series.values[0])[:30])}"
    known = series.values[np.isfinite(series.values)]
    return f", {known.min():.4g} to {known.max():.4g}" if len(known) else ", no numbers"


def _time(source: Source) -> Iterator[str]:
    """The line of the clock, with what it would make of the rows."""
    time = time_columns(source)
    if not time:
        if all(series.t_s is None for series in source.columns.values()):
            yield "time = {rate_Hz = 1000.0}         # no column of times was found: correct this"
        return
    series, unit = source.columns[time[0]], ""
    if series.values.dtype.kind in "fiub" and not series.unit:
        unit = ', unit = "s"' if abs(np.nanmedian(series.values)) < EPOCHS[0][0] else ""
        if are_serial_days(series.values):
            unit = ', unit = "day"'  # or "s": it is asked
    column = _quoted(time[0]) if len(time) == 1 else f"[{', '.join(map(_quoted, time))}]"
    table = f"{{column = {column}{unit}}}"
    mapped = {"time": {"column": time if len(time) > 1 else time[0]}}
    if "day" in unit:
        mapped["time"] |= {"unit": "day"}
    try:
        times = times_of(source, "", SourceTable.model_validate(mapped), len(series.values))
        says = f"{len(times.t_s)} rows, one in {times.interval_s:.4g} s if the unit is right"
        yield f"time = {table}   # {times.read_as or says}"
    except ConfigError as error:
        yield f"time = {table}   # {error}"


def time_columns(source: Source) -> list[str]:
    """The column of times, or those of date and clock; empty without one.

    It is named so, or the first that is in a unit of time.
    """
    columns = source.columns
    texts = {n: [v for v in s.values if v == v] for n, s in columns.items()
             if s.values.dtype.kind not in "fiub"}  # fmt: skip
    dates = [n for n, values in texts.items() if fitting_formats(values, DATES)[1]]
    clocks = [n for n, values in texts.items() if fitting_formats(values, CLOCKS)[1]]
    if dates and clocks:
        return [dates[0], clocks[0]]
    named = [n for n in columns if TIME.match(split_header(n.rpartition("/")[2])[0].strip())]
    in_units = [n for n, s in columns.items() if s.unit and fits(s.unit, "s")]
    dated = [n for n in columns if "time" in n.lower() and n.lower().startswith("start")]
    has_times = any(s.t_s is not None for s in columns.values())
    return [] if has_times else [*named, *in_units, *dated][:1]


def _channels(sources: Mapping[str, Source], layout: RigLayout | None) -> Iterator[str]:
    several = len(sources) > 1
    taken = {(name, time) for name, source in sources.items() for time in time_columns(source)}
    if layout is None:
        yield ""
        yield "# Without --rig, the channels' names are guesses too."
        words: set[str] = set()
        for source_name, source in sources.items():
            for header, series in source.columns.items():
                if (source_name, header) in taken or series.values.dtype.kind not in "fiub":
                    continue
                name = _word(header, words)
                yield from _entry("channels", name, header, source_name, several, series)
        return
    for channel in layout.channels:
        best = _best(channel.name, channel.units, sources, taken)
        if best is None:
            yield f"\n# channels.{channel.name}: no column is in a unit that fits {channel.units}"
            continue
        taken.add(best)
        source_name, header = best
        series = sources[source_name].columns[header]
        yield from _entry("channels", channel.name, header, source_name, several, series)
    for cell in layout.cell_names:
        best = _best(cell, "1", sources, taken)
        if best is None:
            yield f'\n# [cells.{_quoted(cell)}]\n# column = ""   # no column was found'
            continue
        taken.add(best)
        source_name, header = best
        series = sources[source_name].columns[header]
        yield from _entry("cells", _quoted(cell), header, source_name, several, series)


def _best(
    name: str, unit: str, sources: Mapping[str, Source], taken: set[tuple[str, str]]
) -> tuple[str, str] | None:
    """The column with a fitting unit whose name is most like this; None if there is none."""
    best, most = None, LIKE
    for source_name, source in sources.items():
        for header, series in source.columns.items():
            if (source_name, header) in taken or series.values.dtype.kind not in "fiub":
                continue
            series_unit = series.unit or ("1" if unit == "1" else "")
            if not series_unit or not fits(series_unit, unit):
                continue
            short = split_header(header)[0].rpartition("/")[2].lower()
            like = difflib.SequenceMatcher(None, name.lower(), short).ratio()
            like += 0.0 if unit == "1" else 0.5  # a unit says more than a name
            if like > most:
                best, most = (source_name, header), like
    return best


def _entry(
    table: str, name: str, header: str, source: str, several: bool, series: Series
) -> Iterator[str]:
    yield ""
    yield f"[{table}.{name}]"
    if several:
        yield f"source = {_quoted(source)}"
    yield f"column = {_quoted(header)}"
    if table == "channels" and not series.unit:
        yield '# unit = ""   # the file does not say'


def _word(header: str, taken: set[str]) -> str:
    """A header as a name that TOML takes without quotes, and that no other column has."""
    plain = (
        unicodedata.normalize("NFKD", split_header(header)[0]).encode("ascii", "ignore").decode()
    )
    word = re.sub(r"\W+", "_", plain.strip().lower()).strip("_") or "column"
    free, n = word, 2
    while free in taken:
        free, n = f"{word}_{n}", n + 1
    taken.add(free)
    return free


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
