"""The table of all trials as Parquet, which grows while a campaign runs.

It is a folder of parts, as every reader of Parquet takes it. A part is whole before it gets its
name. The journal has all that is in them: what was cut off is written again from it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hil.errors import writing
from hil.record.append_log import Entry
from hil.runs.campaign.journal import progress_of
from hil.runs.campaign.table import is_text, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = "trials.parquet"
PART = "[0-9]" * 6 + ".parquet"
APART_S = 2.0  # between two parts
WHOLE_NUMBERS = ("trial", "repeat", "block", "plant", "attempts")
ROWS_IN = ("end", "cut", "skip")  # kinds of a journal's lines that change a row


class Stream:
    """Writes the rows of trials that have ended.

    Parameters
    ----------
    folder : of the campaign
    entries : of the journal, which grows
    say : receives a line about a part that was cut off
    """

    def __init__(self, folder: Path, entries: Sequence[Entry], say: Callable[[str], None]) -> None:
        self.path, self._entries = folder / PARQUET, entries
        self._schema: pa.Schema | None = None
        self._n_written, self._last_s = 0, time.monotonic()
        self._on = find_spec("pyarrow") is not None
        if self._on:
            for part in self._damaged():
                say(f"{part}: cut off or damaged: written again from the journal")
            self.rewrite()

    def append(self, *, now: bool = False) -> None:
        """Write a part with what has ended since the last one, if that was some time ago."""
        if not self._on or (time.monotonic() - self._last_s < APART_S and not now):
            return
        fresh = {e["trial"] for e in self._entries[self._n_written :] if e["kind"] in ROWS_IN}
        if fresh:
            rows = self._rows(fresh)
            if self._schema is None or not _fits(rows, self._schema):
                self.rewrite()  # a figure that no trial had before
            else:
                self._write(rows, self._schema, len(self._parts) + 1)
        self._n_written, self._last_s = len(self._entries), time.monotonic()

    def rewrite(self) -> None:
        """Write the whole table as one part."""
        ended = {e["trial"] for e in self._entries if e["kind"] in ROWS_IN}
        if not ended:
            return
        rows = self._rows(ended)
        self._schema = _schema_of(rows)
        self._write(rows, self._schema, 1)
        for part in self._parts[1:]:
            part.unlink()
        self._n_written = len(self._entries)

    @property
    def _parts(self) -> list[Path]:
        """The parts in order; what else is in the folder is not the table's."""
        return [path for path in sorted(self.path.glob(PART)) if path.is_file()]

    def _rows(self, trials: set[int]) -> list[dict[str, object]]:
        """The rows of these trials."""
        wanted = {*trials, 0, None}
        entries = [e for e in self._entries if e.get("trial") in wanted]
        head = entries[0]
        plan = [one for one in head["plan"] if one["trial"] in trials]
        return rows_of(progress_of([{**head, "plan": plan}, *entries[1:]]))

    def _write(self, rows: list[dict[str, object]], schema: pa.Schema, number: int) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        texts = {field.name for field in schema if field.type == pa.string()}
        rows = [
            {key: str(v) if v is not None and key in texts else v for key, v in row.items()}
            for row in rows
        ]
        # Readers of the folder would take a file in it that is not whole for a part.
        part = self.path.with_name(f"{PARQUET}.{os.getpid()}.part")
        with writing(self.path):
            self.path.mkdir(exist_ok=True)
            try:
                parquet.write_table(pa.Table.from_pylist(rows, schema=schema), part)
                with part.open("rb+") as file:
                    os.fsync(file.fileno())
                part.replace(self.path / f"{number:06d}.parquet")
            finally:
                part.unlink(missing_ok=True)

    def _damaged(self) -> list[Path]:
        from pyarrow import ArrowException, parquet

        damaged = []
        for part in self._parts:
            try:
                parquet.read_table(part)
            except (OSError, ArrowException):
                damaged.append(part)
        return damaged


def _schema_of(rows: list[dict[str, object]]) -> pa.Schema:
    """One type for each column; that of a number without a value is a floating-point one."""
    import pyarrow as pa

    return pa.schema([(name, _type_of(name, [row[name] for row in rows])) for name in rows[0]])


def _type_of(name: str, values: Sequence[object]) -> object:
    import pyarrow as pa

    known = [value for value in values if value is not None]
    if is_text(known):
        return pa.string()
    if known and all(isinstance(value, bool) for value in known):
        return pa.bool_()
    return pa.int64() if name in WHOLE_NUMBERS else pa.float64()


def _fits(rows: list[dict[str, object]], schema: pa.Schema) -> bool:
    """Whether a part with this schema can have these rows."""
    for name in rows[0]:
        values = [row[name] for row in rows if row[name] is not None]
        if name not in schema.names or (
            values and _type_of(name, values) != schema.field(name).type
        ):
            return False
    return True
