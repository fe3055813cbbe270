"""Readers of LabVIEW's .lvm, of workbooks and of electrophysiology, each by its library."""

from __future__ import annotations

import itertools
import math
import re
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hil.config.values import TomlTable
from hil.errors import ConfigError
from hil.mechanics.arrays import Array
from hil.runs.imports.source import Content, Series, by_full_name, package
from hil.runs.imports.tables import TextTable
from hil.runs.imports.text_files import decoded, read_table

REPEATED_HEADER = re.compile(r"^(?=LabVIEW Measurement\s*$)", re.M)  # of a run that was appended

NUMBERS = re.compile(
    r"^[ \t,;]*[-+]?[.,]?\d", re.M
)  # a line of a .lvm with them; others have words
# Of a sheet, in the head of its file: `A1:C50`.
DIMENSION = re.compile(rb'<dimension ref="[A-Z]+\d+:(([A-Z]+)(\d+))"')
CELLS_MAX = 5e7  # of a sheet: calamine makes them all, the empty ones as well
ROWS_MIN = 3  # of a sheet with a table: fewer are results


class Piece(NamedTuple):
    """A channel in one segment of a .lvm file; its times count from the segment's stamp."""

    name: str
    unit: str
    stamp: datetime | None
    x: Array
    values: Array


def read_lvm(path: Path, table: TextTable) -> Content:
    """Channels of all segments of a LabVIEW measurement file, by name.

    The times of a segment count from its date and time, or go on from the segment before where its
    X values do. `X_Value` is a column as well where all channels have the same times.

    Source: National Instruments, Specification for the LabVIEW Measurement File (.lvm).
    """
    lvm_read = package("lvm_read", f"{path}: LVM")
    segments: list[tuple[list[Piece], bool, int]] = []
    left: list[str] = []
    for part in REPEATED_HEADER.split(decoded(path, table.encoding)):
        if part.strip():
            lvm = lvm_read.read_str(part)
            n_read = sum(len(lvm[k]["data"]) for k in range(lvm["Segments"]))
            if (n_left := len(NUMBERS.findall(part)) - n_read) > 0:
                left.append(f"{n_left} lines of numbers, after an empty line: remove it")
            for k in range(lvm["Segments"]):
                segments.append(_segment(lvm, lvm[k]))
                stated = [n for n in lvm[k].get("Samples", []) if isinstance(n, int | float)]
                if n_left <= 0 and (most := max(stated, default=0)) > len(lvm[k]["data"]):
                    left.append(f"{most - len(lvm[k]['data']):g} of {most:g} samples that segment "
                                f"{len(segments)} states: the file was cut off")  # fmt: skip
                if comments := [c for c in lvm[k].get("comments", []) if c.strip()]:
                    left.append(f"{len(comments)} comments, the first '{comments[0]}'")
    begins = _begins(segments)
    if empty := {p.name for pieces, _, _ in segments for p in pieces if not len(p.x)}:
        left.append(f"channels without values: {', '.join(sorted(empty))}")
    columns: dict[str, list[tuple[Array, Piece]]] = {}
    for begin_s, (pieces, _, _) in zip(begins, segments, strict=True):
        for piece in (piece for piece in pieces if len(piece.x)):
            columns.setdefault(piece.name, []).append((begin_s + piece.x, piece))
    timed = all(is_time for _, is_time, _ in segments)
    series = {
        name: Series(
            np.concatenate([piece.values for _, piece in parts]), parts[0][1].unit,
            np.concatenate([t_s for t_s, _ in parts]) if timed else None,
        )
        for name, parts in columns.items()
    }  # fmt: skip
    x = [np.concatenate([t_s for t_s, _ in parts]) for parts in columns.values()]
    if x and all(np.array_equal(x[0], other, equal_nan=True) for other in x):
        series = {"X_Value": Series(x[0], "s" if timed else "", x[0] if timed else None)} | series
    if appended := max((n for _, _, n in segments), default=0):
        left.append(f"times between the writes of {appended} rows under one header, which are not "
                    "in it: rows are taken to follow each other")  # fmt: skip
    start = segments[0][0][0].stamp if segments and segments[0][0] else None
    form = "LVM" if len(segments) == 1 else f"LVM of {len(segments)} segments"
    return Content(form, by_full_name(series.items()), left, start)


def _segment(lvm: TomlTable, segment: TomlTable) -> tuple[list[Piece], bool, int]:
    """The channels of a segment, whether X is time, and rows a write where X is not written."""
    data, names = segment["data"], segment["Channel names"]
    first = 1 if lvm.get("X_Columns", "One") == "No" else 0
    data = data.reshape(len(data), -1)

    def about(key: str, column: int, default: Any) -> Any:
        cells = segment.get(key, [])
        value = cells[column] if 0 <= column < len(cells) else default
        empty = value == "" or (isinstance(value, float) and math.isnan(value))
        return default if empty else value

    pieces: list[Piece] = []
    x: Array | None = None
    appended, dimensions = 0, set()
    for i, name in enumerate(names[: data.shape[1]]):
        if name == "X_Value":
            x = data[:, i] if np.isfinite(data[:, i]).any() else None
        elif name not in ("Comment", ""):
            cell = i - 1 + first
            known = np.flatnonzero(np.isfinite(data[:, i]))
            n = int(known[-1]) + 1 if len(known) else 0  # a shorter channel is filled up
            dimensions.add(about("X_Dimension", cell, "Time"))
            even = about("X0", cell, 0.0) + about("Delta_X", cell, 1.0) * np.arange(n)
            samples = about("Samples", cell, n)
            if x is None and samples < n:
                appended = int(samples)
            again = sum(p.name == name for p in pieces)
            pieces.append(Piece(f"{name} ({again + 1})" if again else name,
                                str(about("Y_Unit_Label", cell, "")), _stamp(lvm, about, cell),
                                even if x is None else x[:n], data[:n, i]))  # fmt: skip
    return pieces, dimensions <= {"Time"}, appended


def _stamp(lvm: TomlTable, about: Any, cell: int) -> datetime | None:
    """Date and time of a channel's segment; LabVIEW writes more digits than a datetime has."""
    texts = about("Date", cell, lvm.get("Date", "")), about("Time", cell, lvm.get("Time", ""))
    clock, _, fraction = texts[1].replace(",", ".").partition(".")
    try:
        stamp = datetime.strptime(f"{texts[0]} {clock}", "%Y/%m/%d %H:%M:%S")
    except ValueError:
        return None
    return stamp + timedelta(seconds=float(f"0.{fraction or 0}"))


def _begins(segments: Sequence[tuple[list[Piece], bool, int]]) -> list[float]:
    """Time at which X is zero in each segment, from that of the first."""
    firsts = [pieces[0] for pieces, _, _ in segments if pieces]
    if len(firsts) < len(segments):
        return [0.0] * len(segments)
    runs_on = all(len(a.x) and len(b.x) and b.x[0] > a.x[-1] for a, b in itertools.pairwise(firsts))
    if runs_on or any(piece.stamp is None for piece in firsts):
        return [0.0] * len(segments)
    return [(p.stamp - firsts[0].stamp).total_seconds() for p in firsts]  # type: ignore[operator]


def read_workbook(path: Path, table: TextTable) -> Content:
    """The table of every sheet; with several, columns are `sheet/column`."""
    calamine = package("python_calamine", f"{path}: a workbook")
    tables: dict[str, dict[str, Series]] = {}
    left: list[str] = []
    _check_sizes(path)
    as_text = table.model_copy(update={"delimiter": "\t", "decimal": "."})
    workbook = calamine.CalamineWorkbook.from_path(str(path))
    for name in workbook.sheet_names:
        rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
        if not rows:
            continue
        text = "\n".join("\t".join(map(_cell, row)) for row in rows) + "\n"
        try:
            columns, rest = read_table(path, text, as_text)
        except ConfigError:
            columns = {}
        if max((_n_numbers(series) for series in columns.values()), default=0) < ROWS_MIN:
            left.append(f"sheet {name} ({len(rows)} lines without a table of numbers)")
            continue
        tables[name] = columns
        left += [f"sheet {name}: {line}" for line in rest]
    several = len(tables) > 1
    items = ((f"{sheet}/{name}" if several else name, series)
             for sheet, columns in tables.items() for name, series in columns.items())  # fmt: skip
    return Content("workbook", by_full_name(items), left)


def _check_sizes(path: Path) -> None:
    """Refuse a workbook with a sheet whose last cell is too far from its first."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as parts:
        for name in parts.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with parts.open(name) as part:
                    match = DIMENSION.search(part.read(4096))
                if match is None:
                    continue
                columns = 0
                for letter in match[2]:
                    columns = 26 * columns + letter - 64  # "A" is 65
                if columns * int(match[3]) > CELLS_MAX:
                    raise ConfigError(
                        f"{path}: {name}: its last cell is {match[1].decode()}: delete the cells "
                        "far from the table, or export it as CSV"
                    )


def _n_numbers(series: Series) -> int:
    return int(np.isfinite(series.values).sum()) if series.values.dtype.kind == "f" else 0


def _cell(value: object) -> str:
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, timedelta) and value.days > 0:
        hours, rest = divmod(value, timedelta(hours=1))
        return f"{hours}:{str(rest).partition(':')[2]}"
    return re.sub(r"[\t\r\n]+", " ", str(value))


def read_neo(path: Path, table: TextTable) -> Content:
    """Analog signals of Axon, Intan, Spike2, BrainVision and other files that Neo reads."""
    kind = package("neo.rawio", f"{path}: electrophysiology").get_rawio(path)
    if kind is None:
        raise ConfigError(f"{path}: no reader of Neo fits its ending: export it as CSV")
    return _signals(kind(filename=str(path)))


def read_open_ephys(path: Path, table: TextTable) -> Content:
    """Continuous signals of a folder in the binary format of Open Ephys."""
    rawio = package("neo.rawio", f"{path}: Open Ephys")
    return _signals(rawio.OpenEphysBinaryRawIO(dirname=str(path)))


def _signals(reader: Any) -> Content:
    reader.parse_header()
    left: list[str] = []
    for key, what in (("event_channels", "events"), ("spike_channels", "spikes")):
        if n := len(reader.header[key]):
            left.append(f"{n} channels of {what}")
    if (n := sum(reader.header["nb_segment"])) > 1:
        left.append(f"{n - 1} more segments: save each as a file")
    columns = by_full_name(_streams(reader))
    return Content(f"{type(reader).__name__.removesuffix('RawIO')} (Neo)", columns, left)


def _streams(reader: Any) -> Iterator[tuple[str, Series]]:
    for i, stream in enumerate(reader.header["signal_streams"]):
        channels = reader.header["signal_channels"]
        channels = channels[channels["stream_id"] == stream["id"]]
        raw = reader.get_analogsignal_chunk(block_index=0, seg_index=0, stream_index=i)
        values = reader.rescale_signal_raw_to_float(raw, dtype="float64", stream_index=i)
        begin_s = reader.get_signal_t_start(0, 0, i)
        t_s = begin_s + np.arange(len(values)) / reader.get_signal_sampling_rate(i)
        for k, channel in enumerate(channels):
            name = f"{stream['name']}/{channel['name']}"
            yield name, Series(np.ascontiguousarray(values[:, k]), str(channel["units"]), t_s)
