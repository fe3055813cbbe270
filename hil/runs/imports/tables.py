"""The map of `hil import`: which column of which file is which channel, cell or output."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, model_validator

from hil.config.table import Name, Positive, Table, Title

Method = Literal["previous", "linear", "mean"]


class TextTable(Table):
    """How a text file is written; what is left out is found from its lines.

    `header_line` and `data_line` count from 1. `missing` lists texts that stand for no reading.
    """

    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    header_line: Annotated[int, Field(ge=1)] | None = None
    data_line: Annotated[int, Field(ge=1)] | None = None
    missing: list[str] = []


class TimeTable(Table):
    """The clock of a file: a column of times, or a constant rate.

    A column is in `unit`, by default the file's, or else s; or it has dates and times in `format`,
    as in Python's `strptime`, which is found from the values if it is left out. Two columns, date
    and time, are joined by a space. Times of day go on after midnight. Of rows with the same time,
    `first` keeps the first one and `mean` their mean.
    """

    column: str | Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    unit: str | None = None
    format: str | None = None
    rate_Hz: Positive | None = None
    repeated: Literal["first", "mean"] = "first"

    @property
    def columns(self) -> list[str]:
        """The column, or date and time; none with a rate."""
        return [self.column] if isinstance(self.column, str) else self.column or []

    @model_validator(mode="after")
    def _is_one_clock(self) -> "TimeTable":
        if (self.column is None) == (self.rate_Hz is None):
            raise ValueError("give column or rate_Hz, one of them")
        if self.format is not None and self.column is None:
            raise ValueError("format belongs to column")
        return self


class AlignTable(Table):
    """How a file's clock is set against that of the file without `[align]`.

    `offset` takes `offset_s`, the time of that clock at which this one is zero. `clock` takes the
    difference of the two `start`, or of the dates in the time columns. `event` finds where a column
    of each file crosses a level, by default the middle of its range. `correlation` finds the shift
    at which a column of each agree best. With `drift` the rates of the clocks are compared as well,
    where several events or segments permit it.
    """

    by: Literal["offset", "clock", "event", "correlation"]
    offset_s: float | None = None
    column: str | None = None
    to_column: str | None = None
    level: float | None = None
    to_level: float | None = None
    edge: Literal["rising", "falling"] = "rising"
    drift: bool = True

    @model_validator(mode="after")
    def _is_complete(self) -> "AlignTable":
        if (self.by == "offset") != (self.offset_s is not None):
            raise ValueError("offset_s belongs to by = 'offset'")
        needs_columns = self.by in ("event", "correlation")
        if needs_columns and (self.column is None or self.to_column is None):
            raise ValueError(f"by = '{self.by}' needs column and to_column")
        return self


class SourceTable(Table):
    """A file: `file` is a pattern of its name, such as `mts_*.txt`; one file needs none.

    `start` is the date and time at which its clock is zero; of times with a date that have no zone,
    it tells the zone. Readings further apart than `gap_s`
    have a gap between them, in which there is no reading; by default five intervals.
    """

    file: str | None = None
    time: TimeTable | None = None
    start: datetime | None = None
    gap_s: Positive | None = None
    align: AlignTable | None = None
    text: TextTable = TextTable()


class ColumnTable(Table):
    """A column: `scale` times its value plus `offset`, in `unit`, is the reading.

    Without `unit` it is the file's. `source` may be left out where there is one file. `previous`
    takes the last reading before a row and records its age, `linear` interpolates, `mean` averages
    the readings of a period. By default it is `mean` for files with two or more readings a period,
    otherwise `previous`.
    """

    column: str
    source: Name | None = None
    unit: str | None = None
    scale: float = 1.0
    offset: float = 0.0
    method: Method | None = None


class CellColumnTable(Table):
    """A cell's command: on where the column is above `on_above`.

    With `carrier_Hz` the column is a duty from 0 to 1 (or in its `unit`, such as "percent") that
    another program's PWM followed: the cell is on for this share of every period of the carrier,
    from its start.
    """

    column: str
    source: Name | None = None
    unit: str | None = None
    on_above: float = 0.5
    carrier_Hz: Positive | None = None


class MapTable(Table):
    """The whole map.

    `measured` is when the recording's clock was zero, with its time zone; without it the time of
    the import stands in the recording. `period_s` replaces the rig's period. The recording begins
    at `start_s` of the clock of the file without `[align]`, and ends at `end_s`.
    """

    name: Title
    operator: Title = ""
    measured: datetime | None = None
    period_s: Annotated[float, Field(ge=1e-5, le=1000.0)] | None = None
    start_s: float | None = None
    end_s: float | None = None
    sources: Annotated[dict[Name, SourceTable], Field(min_length=1)]
    channels: Annotated[dict[Name, ColumnTable], Field(min_length=1)]
    references: dict[Name, ColumnTable] = {}
    outputs: dict[Name, ColumnTable] = {}
    cells: dict[str, CellColumnTable] = {}

    @property
    def clock(self) -> str:
        """The source whose clock is the recording's."""
        return next(name for name, source in self.sources.items() if source.align is None)
