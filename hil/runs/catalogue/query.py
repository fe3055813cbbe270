"""Questions to the index of a folder, in SQL that reads nothing else and changes nothing."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil.config.values import Figures
from hil.errors import ConfigError, missing_extra, one_line, remedy, writing
from hil.platform.whole_files import whole
from hil.record.csv_text import as_line
from hil.runs.catalogue import index
from hil.runs.catalogue.notes import remarks_in

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, Statement

BY_NAME = ("rig", "experiment", "specimen", "operator", "outcome", "campaign")
SHOWN = ("time_utc", "run", "rig", "experiment", "specimen", "outcome", "rms_N", "tracking_rms_N",
         "duration_s", "star", "tags", "note", "path")  # fmt: skip
SEARCHED = (*BY_NAME, "path", "note", "tags")
ALWAYS = {
    "time_utc": "TIMESTAMP",
    "simulated": "BOOLEAN",
    **dict.fromkeys(
        ("rig", "experiment", "specimen", "operator", "outcome", "campaign", "error"), "VARCHAR"
    ),
    **dict.fromkeys(("rms_N", "tracking_rms_N", "duration_s"), "DOUBLE"),
}
AGES = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Filter:
    """Which runs, and what of them.

    Attributes
    ----------
    names : patterns (`*` and `?`) by column of BY_NAME
    since, until : a date or time in UTC, or an age such as 12h, 7d, 2w; `until` a date includes it
    where : an expression of columns, in SQL; a text may have double quotes
    tag : only runs with this tag
    starred : only runs with a star
    columns : what to return; all columns if empty
    limit : at most so many, the newest; 0 for all
    """

    names: Mapping[str, str] | None = None
    since: str = ""
    until: str = ""
    where: str = ""
    tag: str = ""
    starred: bool = False
    columns: Sequence[str] = ()
    limit: int = 0


@dataclass
class Answer:
    """Rows of an answer, by column."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> list[Figures]:
        """The rows with their known values, as JSON has them."""
        return [
            {
                key: _as_json(value)
                for key, value in zip(self.columns, row, strict=True)
                if value is not None
            }
            for row in self.rows
        ]

    def as_csv(self) -> str:
        """The rows as CSV; an empty field is an unknown value."""
        lines = [self.columns, *self.rows]
        return "".join(as_line("" if v is None else v for v in line) for line in lines)

    def write_parquet(self, path: Path) -> None:
        """Write the rows as Parquet; ConfigError if the file cannot be written."""
        import pyarrow
        from pyarrow import parquet

        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        arrays = [_as_array(column) for column in columns]
        with writing(path), whole(path) as part:
            parquet.write_table(pyarrow.Table.from_arrays(arrays, names=self.columns), part)


class Catalogue:
    """The runs below a folder, as the SQL table `runs`, newest first.

    After it is made it writes no file, and reads none but the index.

    Attributes
    ----------
    noticed : what has changed in the folder since the last time

    Raises
    ------
    ConfigError
        DuckDB is not installed, there is no such folder, its index is of a later version, or its
        notes are damaged.
    """

    def __init__(self, folder: Path, *, rebuild: bool = False) -> None:
        try:
            import duckdb
        except ImportError:
            raise missing_extra("hil runs", "catalogue") from None
        self.folder = folder
        self.connection: DuckDBPyConnection = duckdb.connect()
        self.noticed = index.table_of(folder, self.connection, rebuild=rebuild)
        self._remark()
        file = str(folder / index.NAME / index.FILE).replace("'", "''")
        self.connection.execute(f"SET allowed_paths = ['{file}']")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")
        self.columns = self._columns()

    def _remark(self) -> None:
        """Make the view `runs`: the rows with notes, stars and tags."""
        run = self.connection.execute
        known = {row[0].casefold() for row in run("DESCRIBE rows").fetchall()}
        missing = {name: kind for name, kind in ALWAYS.items() if name.casefold() not in known}
        absent = "".join(f", NULL::{kind} AS {name}" for name, kind in missing.items())
        run("CREATE TABLE remarks (identity VARCHAR, note VARCHAR, star BOOLEAN, tags VARCHAR)")
        values = [
            value
            for identity, remarks in remarks_in(self.folder, self._runs_at).items()
            for value in (identity, index.storable("; ".join(remarks.notes)) or None,
                          remarks.star or None, index.storable(", ".join(remarks.tags)) or None)
        ]  # fmt: skip
        if values:
            run(
                f"INSERT INTO remarks VALUES {', '.join(['(?, ?, ?, ?)'] * (len(values) // 4))}",
                values,
            )
        run(
            f"CREATE VIEW runs AS SELECT left(rows.identity, 8) AS run, rows.*{absent}, "
            "note, star, tags FROM rows LEFT JOIN remarks USING (identity)"
        )

    def _runs_at(
        self, paths: Sequence[str], identities: Sequence[str]
    ) -> list[tuple[str, str, str]]:
        """Path, identity and time, to the second, of the runs with one of these."""
        return self.connection.execute(
            "SELECT path, identity, coalesce(strftime(TRY_CAST(time_utc AS TIMESTAMP), "
            "'%Y-%m-%dT%H:%M:%S'), '') FROM rows "
            "WHERE list_contains(?, path) OR list_contains(?, identity)",
            [paths, identities],
        ).fetchall()

    def _columns(self) -> list[str]:
        return [row[0] for row in self.connection.execute("DESCRIBE runs").fetchall()]

    def find(self, wanted: Filter) -> Answer:
        """Runs by a filter, newest first.

        Raises
        ------
        ConfigError
            An unknown column, an expression that is none, or a date that is none.
        """
        return self._answer(*self._query(wanted), "--where")

    def frame(self, wanted: Filter) -> Any:
        """The same as a pandas DataFrame."""
        return self._cursor(*self._query(wanted), "where").df()

    def sql(self, text: str) -> Answer:
        """Any one SELECT.

        Raises
        ------
        ConfigError
            It is none, or more, or names an unknown column.
        """
        return self._answer(text, [], "--sql")

    def one(self, name: str) -> Figures:
        """The run of a path, of the beginning of an identity, or of a file's name.

        Raises
        ------
        ConfigError
            There is none, or more than one.
        """
        path = Path(name)
        inside = path.resolve()
        with_path = inside.relative_to(self.folder.resolve()).as_posix() if (
            inside.is_relative_to(self.folder.resolve())
        ) else name  # fmt: skip
        rows = self.connection.execute(
            "SELECT identity, path, outcome FROM runs WHERE path IN (?, ?) "
            "OR (length(?) >= 4 AND starts_with(identity, ?)) "
            "OR parse_filename(path) IN (?, ? || '.h5')",
            [index.storable(one) for one in (name, with_path, name, name.lower(), name, name)],
        ).fetchall()
        if not rows:
            raise ConfigError(
                one_line(
                    f"{name}: no such run in {self.folder}: give a path, or its 'run' of hil runs"
                )
            )
        if len({identity for identity, *_ in rows}) > 1:
            raise ConfigError(
                one_line(f"{name}: several runs: {', '.join(path for _, path, _ in rows[:3])}")
            )
        return dict(zip(("identity", "path", "outcome"), rows[0], strict=True))

    def names(self, column: str) -> list[str]:
        """Every value of a column of texts."""
        rows = self.connection.execute(
            f"SELECT DISTINCT {column} FROM runs WHERE {column} IS NOT NULL"
        )
        return sorted(str(value) for (value,) in rows.fetchall())

    def _query(self, wanted: Filter) -> tuple[str, list[object]]:
        terms: list[str] = []
        values: list[object] = []
        for column, pattern in (wanted.names or {}).items():
            terms.append(f"coalesce({column}, '') GLOB ?")
            # To GLOB, brackets and backslashes are more than themselves.
            values.append(pattern.replace("\\", "\\\\").replace("[", "[[]"))
        for sign, text in ((">=", wanted.since), ("<", wanted.until)):
            if text:
                terms.append(f"time_utc {sign} ?")
                values.append(_moment(text, end=sign == "<"))
        if wanted.tag:
            terms.append("list_contains(string_split(coalesce(tags, ''), ', '), ?)")
            values.append(wanted.tag)
        if wanted.starred:
            terms.append("star")
        if wanted.where:
            terms.append(f"({self._expression(wanted.where)}\n)")
        for column in wanted.columns:
            self.refuse_unknown(column, "--columns")
        shown = ", ".join(f'"{column}"' for column in wanted.columns) or "*"
        query = f"SELECT {shown} FROM runs"
        query += f" WHERE {' AND '.join(terms)}" if terms else ""
        query += " ORDER BY time_utc DESC, path"
        return (f"{query} LIMIT {wanted.limit}" if wanted.limit else query), values

    def _expression(self, text: str) -> str:
        """The expression; what has double quotes and is no column is a text."""
        known = {column.casefold() for column in self.columns}

        def literal(match: re.Match[str]) -> str:
            word = match[1]
            if word is None or word.casefold() in known:
                return match[0]
            return "'" + word.replace("'", "''") + "'"

        expression = re.sub(r"'(?:[^']|'')*'|\"([^\"]*)\"", literal, text)
        # In brackets it is one expression, unless it closes them; that is none without them.
        self._statement(f"SELECT {expression}\n", "--where")
        return expression

    def refuse_unknown(self, column: str, option: str) -> None:
        """ConfigError if there is no such column."""
        if column.casefold() not in {known.casefold() for known in self.columns}:
            raise ConfigError(
                one_line(f"{option}: no column '{column}'{_near(column, self.columns)}")
            )

    def _answer(self, query: str, values: Sequence[object], option: str) -> Answer:
        cursor = self._cursor(query, values, option)
        return Answer([about[0] for about in cursor.description or ()], cursor.fetchall())

    def _statement(self, query: str, option: str) -> Statement:
        """A query that is one SELECT."""
        import duckdb

        try:
            statements = self.connection.extract_statements(query)
        except duckdb.Error as error:
            raise ConfigError(f"{option}: {_message(error)}") from None
        except TypeError:  # of letters that no UTF-8 text has
            raise ConfigError(f"{option}: not UTF-8 text: write it with other letters") from None
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise ConfigError(f"{option}: give one expression, or with --sql one SELECT")
        return statements[0]

    def _cursor(self, query: str, values: Sequence[object], option: str) -> DuckDBPyConnection:
        """The connection, which has executed a SELECT."""
        import duckdb

        statement = self._statement(query, option)
        try:
            return self.connection.execute(statement, list(values))
        except duckdb.BinderException as error:
            if unknown := re.search(r'column "([^"]+)" not found', str(error)):
                self.refuse_unknown(unknown[1], option)
            raise ConfigError(f"{option}: {_message(error)}") from None
        except duckdb.PermissionException:
            raise ConfigError(
                f"{option}: reads the table 'runs' and no other file: leave the file out"
            ) from None
        except duckdb.Error as error:
            raise ConfigError(f"{option}: {_message(error)}") from None


def _as_array(column: Sequence[Any]) -> Any:
    """A column for Arrow: of texts, where it has no such type or numbers beyond 64 bits."""
    import pyarrow

    try:
        return pyarrow.array(column)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([None if value is None else str(value) for value in column])


def _as_json(value: Any) -> Any:
    """A value of any SQL type as JSON has it: times as ISO texts, intervals in s."""
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {str(key): _as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def of_words(text: str) -> str:
    """The expression that a field for searching means: itself, or words that a run must have."""
    if not re.fullmatch(r"[\w\s.:/-]*", text):
        return text
    names = ", ".join(SEARCHED)
    words = (word.lower().replace("'", "''") for word in text.split())
    return " AND ".join(f"contains(lower(concat_ws(' ', {names})), '{word}')" for word in words)


def _near(column: str, columns: Iterable[str]) -> str:
    """A hint for an unknown column: one that ends so, or looks so."""
    columns = list(columns)
    ends = [known for known in columns if known.casefold().endswith(f"_{column.casefold()}")]
    if ends:
        return f": did you mean '{min(ends, key=len)}'?"
    hint = remedy(column, columns)
    return hint if "did you mean" in hint else ": hil runs --columns ? lists all"


def _message(error: Exception) -> str:
    """What DuckDB says, in one line."""
    text = str(error).split("\n\n")[0].split("\nLINE")[0]
    return one_line(re.sub(r"^[A-Z]\w+ Error: ", "", text).replace("\n", "; "))


def _moment(text: str, *, end: bool) -> datetime:
    """A time in UTC from a date, a time or an age; the end of a date that ends a span."""
    now = datetime.now(UTC).replace(tzinfo=None)
    if age := re.fullmatch(r"(\d{1,5})([hdw])", text):
        return now - timedelta(**{AGES[age[2]]: int(age[1])})
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        return moment + timedelta(days=1) if end and _is_date(text) else moment
    except (ValueError, OverflowError):
        raise ConfigError(
            one_line(
                f"'{text}': no time: give 2026-10-01, 2026-10-01T09:30, or an age: 12h, 7d, 2w"
            )
        ) from None


def _is_date(text: str) -> bool:
    """Whether a text is a date without a time."""
    with contextlib.suppress(ValueError):
        return bool(date.fromisoformat(text))
    return False


def as_lines(answer: Answer, width: int | None) -> Iterator[str]:
    """The rows as aligned text, without columns that nobody has; cut to `width` characters."""
    keep = [i for i in range(len(answer.columns)) if any(row[i] is not None for row in answer.rows)]
    cells = [[shown(row[i]) for i in keep] for row in answer.rows]
    heads = [answer.columns[i] for i in keep]
    numbers = [all(isinstance(row[i], int | float | None) for row in answer.rows) for i in keep]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    for line in (heads, *cells):
        text = "  ".join(
            f"{cell:>{w}}" if right else f"{cell:<{w}}"
            for cell, w, right in zip(line, widths, numbers, strict=True)
        ).rstrip()
        yield text if width is None or len(text) <= width else text[: width - 1] + "…"


def shown(value: object) -> str:
    """A value as tables show it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    return f"{value:.4g}" if isinstance(value, float) else one_line(str(value))
