"""The index of a folder: a row a recording, kept beside them and made from them.

The recordings are the truth. The folder `.hil-runs` holds what was read of them: `index-1.parquet`,
and one small JSON file for every row that came later. A row counts as long as a file of its path,
size and time of change exists; each other recording is read again. So nothing is lost if a row is
missing, written twice, or written by two processes at once, and no writer waits for another.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hil.config.values import Figures
from hil.errors import ConfigError, missing_file, one_line
from hil.platform import locks
from hil.platform.whole_files import whole, write_whole

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NAME, VERSION = ".hil-runs", 1
FILE = f"index-{VERSION}.parquet"
RUNS = "runs"  # the default folder of recordings
LOOSE_MAX = 64  # rows in files of their own
CHUNK = 50
KEYS = ("path", "size_B", "modified_ns", "identity")
Key = tuple[str, int, int]


@dataclass
class Noticed:
    """What has changed in a folder since it was last looked at, as paths; moves as old and new."""

    added: list[str] = field(default_factory=list)
    edited: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    copies: list[tuple[str, str]] = field(default_factory=list)
    unreadable: int = 0
    not_kept: str = ""

    def lines(self) -> Iterator[str]:
        """One line for each kind."""
        for what, paths in (("added", self.added), ("edited", self.edited),
                            ("deleted", self.deleted)):  # fmt: skip
            if paths:
                yield f"{what}: {_some(paths)}"
        if self.moved:
            yield f"moved: {_some([f'{old} to {new}' for old, new in self.moved])}"
        for first, second in self.copies[:3]:
            both = one_line(f"{first} and {second}")
            yield f"the same run twice: {both}: delete one, or both count"
        if len(self.copies) > 3:
            yield f"the same run twice: {len(self.copies) - 3} more"
        if self.unreadable:
            yield f"not readable: {self.unreadable}; hil runs --outcome unreadable lists them"
        if self.not_kept:
            yield f"the index is not kept: {self.not_kept}"


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    return one_line(", ".join(texts[:3])) + more


def add(recording: Path) -> None:
    """Add a run that has ended to the index above it, if there is one or the folder is `runs`.

    What cannot be written here is read from the recording by the next question.
    """
    from hil.runs.catalogue.row import row_of

    path = recording.resolve()
    above = next((p for p in path.parents if (p / NAME).is_dir()), None)
    above = above or next((p for p in path.parents if p.name == RUNS), None)
    if above is not None:
        with contextlib.suppress(OSError, ConfigError):
            _write_rows(above, [row_of(above, path.relative_to(above).as_posix())])


def table_of(folder: Path, connection: DuckDBPyConnection, *, rebuild: bool = False) -> Noticed:
    """Make the table `rows` of the recordings below a folder; returns what has changed there.

    Where nothing has changed it is a view of the index's file, whose columns are read as needed.

    Raises
    ------
    ConfigError
        There is no such folder, or its index is of a later version.
    """
    if not folder.is_dir():
        which = "give the folder of recordings: --folder DIR"
        if folder.exists():
            raise ConfigError(f"{folder}: not a folder: {which}")
        raise missing_file(folder, which)
    import duckdb

    _refuse_later(folder)
    files = dict(_recordings(folder))
    loose = _loose(folder)
    kept_rows = [] if rebuild else list(loose.values())
    old = {} if rebuild else _load(connection, folder)
    known = old | {_key(row): str(row["identity"]) for row in kept_rows}
    current = {
        path: known[path, *facts] for path, facts in files.items() if (path, *facts) in known
    }
    stale = {path: identity for (path, *_), identity in known.items() if path not in current}
    new = list(_read(folder, [path for path in files if path not in current]))
    rows = {_key(row): row for row in (*kept_rows, *new)}
    rows = {key: row for key, row in rows.items() if files.get(key[0]) == key[1:]}
    dead = [key for key in old if files.get(key[0]) != key[1:] or key in rows]
    try:
        if dead:
            _take(connection)
            _delete(connection, dead)
        _insert(connection, rows.values())
    except duckdb.Error:  # an index that no hil wrote
        if rebuild:
            raise
        for kind in ("VIEW", "TABLE"):
            with contextlib.suppress(duckdb.Error):
                connection.execute(f"DROP {kind} rows")
        return table_of(folder, connection, rebuild=True)
    noticed = _compared(current, stale, new, first=not known)
    kept = [row for row in new if row["outcome"] != "running"]
    try:
        if len(kept) + len(loose) > LOOSE_MAX or stale or rebuild:
            _consolidate(folder, connection, loose)
        elif kept:
            _write_rows(folder, kept)
    except OSError as error:
        noticed.not_kept = f"{folder} cannot be written ({error.strerror})"
    return noticed


def _refuse_later(folder: Path) -> None:
    with contextlib.suppress(OSError), os.scandir(folder / NAME) as entries:
        for entry in entries:
            version = re.fullmatch(r"index-(\d+)\.parquet", entry.name)
            if version and int(version[1]) > VERSION:
                raise ConfigError(
                    f"{entry.path}: written by a newer hil (index {version[1]}, this one has "
                    f"{VERSION}): update hil, or delete this file: it is made again"
                )


def _recordings(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Path, size and time of change of every file that may be a recording; links are not taken."""
    left = [(str(folder), "")]
    while left:
        place, prefix = left.pop()
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if entry.name.endswith(".h5") and entry.is_file(follow_symlinks=False):
                    stat = entry.stat(follow_symlinks=False)
                    yield prefix + entry.name, (stat.st_size, stat.st_mtime_ns)
                elif entry.name[0] != "." and entry.is_dir(follow_symlinks=False):
                    left.append((entry.path, f"{prefix}{entry.name}/"))


def _loose(folder: Path) -> dict[Path, Figures]:
    """Rows in files of their own, by file; one that is damaged is left out."""
    rows = {}
    for path in sorted((folder / NAME).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            row = json.loads(path.read_bytes())
            if all(
                isinstance(row.get(key), kind)
                for key, kind in zip(KEYS, (str, int, int, str), strict=True)
            ):
                rows[path] = {re.sub(r"\W", "_", key): value for key, value in row.items()}
    return rows


def _load(connection: DuckDBPyConnection, folder: Path) -> dict[Key, str]:
    """Take the rows of the Parquet file, if it is sound, into the table; identities by key."""
    import duckdb

    file = folder / NAME / FILE
    if not file.is_file():
        return {}
    try:
        name = glob.escape(str(file))
        text = name.replace("'", "''")
        connection.execute(f"CREATE VIEW rows AS SELECT * FROM read_parquet('{text}')")
        keys = "path::VARCHAR, size_B::BIGINT, modified_ns::BIGINT, identity::VARCHAR"
        rows = connection.execute(f"SELECT {keys} FROM rows").fetchall()
        return {(path, size_B, changed_ns): identity for path, size_B, changed_ns, identity in rows}
    except duckdb.Error:
        connection.execute("DROP VIEW IF EXISTS rows")
        return {}


def _read(folder: Path, names: Sequence[str]) -> Iterator[Figures]:
    """Rows of recordings; on all cores where there are many."""
    if not names:
        return
    from hil.platform.parallel import on_all_cores

    chunks = [(folder, tuple(names[i : i + CHUNK])) for i in range(0, len(names), CHUNK)]
    for _, rows in on_all_cores(chunks, _rows_of):
        yield from rows


def _rows_of(folder: Path, names: Sequence[str]) -> list[Figures]:
    from hil.runs.catalogue.row import row_of

    rows = []
    for name in names:
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            rows.append(row_of(folder, name))
    return rows


def _key(row: Mapping[str, object]) -> Key:
    return str(row["path"]), int(str(row["size_B"])), int(str(row["modified_ns"]))


def _take(connection: DuckDBPyConnection) -> None:
    """Make a table of the rows where they are a view of the file."""
    views = "SELECT 1 FROM duckdb_views() WHERE view_name = 'rows'"
    if connection.execute(views).fetchone():
        connection.execute("CREATE TABLE taken AS FROM rows; DROP VIEW rows")
        connection.execute("ALTER TABLE taken RENAME TO rows")


def _delete(connection: DuckDBPyConnection, keys: Iterable[Key]) -> None:
    connection.execute("CREATE TEMP TABLE dead (path VARCHAR, size_B BIGINT, modified_ns BIGINT)")
    connection.executemany("INSERT INTO dead VALUES (?, ?, ?)", [list(key) for key in keys])
    connection.execute("DELETE FROM rows WHERE (path, size_B, modified_ns) IN (FROM dead)")
    connection.execute("DROP TABLE dead")


def _insert(connection: DuckDBPyConnection, rows: Iterable[Figures]) -> None:
    """Add rows to the table, with a column for every key; makes it if there is none."""
    types: dict[str, set[type]] = {"time_utc": set(), "outcome": set(), **{k: set() for k in KEYS}}
    names = {key.casefold(): key for key in types}  # SQL does not tell capitals apart
    lines = []
    for row in rows:
        values = {names.setdefault(k.casefold(), k): storable(v) for k, v in row.items()}
        for key, value in values.items():
            if value is not None:
                types.setdefault(key, set()).add(type(value))
        lines.append(json.dumps(values))
    has = connection.execute(
        "SELECT 1 FROM information_schema.tables WHERE table_name = 'rows'"
    ).fetchone()
    if has and not lines:
        return
    if has:
        _take(connection)
    columns = ", ".join(f"'{key}': '{_type(kinds)}'" for key, kinds in types.items())
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "rows.json"
        file.write_text("\n".join(lines), encoding="utf-8")
        of_file = (
            "SELECT * REPLACE (TRY_CAST(time_utc AS TIMESTAMP) AS time_utc) FROM read_json(?, "
            f"format = 'newline_delimited', columns = {{{columns}}}, "
            "maximum_object_size = 268435456)"
        )
        before = "SELECT * FROM rows UNION ALL BY NAME " if has else ""
        name = glob.escape(str(file))
        connection.execute(f"CREATE OR REPLACE TABLE rows AS {before}{of_file}", [name])


def storable(value: object) -> object:
    """A value that the table can have: no number too large for it, no broken text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "")
    if isinstance(value, int) and abs(value) >= 2**63:
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _type(kinds: set[type]) -> str:
    for kind, name in ((bool, "BOOLEAN"), (int, "BIGINT"), (float, "DOUBLE")):
        if kinds == {kind}:
            return name
    return "DOUBLE" if kinds == {int, float} else "VARCHAR"


def _compared(
    current: Mapping[str, str], stale: Mapping[str, str], new: Sequence[Figures], *, first: bool
) -> Noticed:
    noticed = Noticed()
    stale_paths = {identity: path for path, identity in stale.items()}
    at: dict[str, str] = {}
    for path, identity in (*current.items(), *((str(r["path"]), str(r["identity"])) for r in new)):
        if (other := at.setdefault(identity, path)) != path:
            noticed.copies.append((other, path))
    for row in new:
        path, identity = str(row["path"]), str(row["identity"])
        if row["outcome"] == "unreadable":
            noticed.unreadable += 1
        if path in stale:
            noticed.edited.append(path)
        elif identity in stale_paths:
            noticed.moved.append((stale_paths[identity], path))
        elif not first:
            noticed.added.append(path)
    paths = {str(row["path"]) for row in new}
    moved = {old for old, _ in noticed.moved}
    noticed.deleted = [p for p in stale if p not in paths and p not in moved]
    return noticed


def _place(folder: Path) -> Path:
    """The folder of the index, made if it is missing; OSError if it is a link to another place."""
    place = folder / NAME
    if place.is_symlink():
        raise OSError(errno.ELOOP, f"{NAME} is a link: remove it")
    place.mkdir(exist_ok=True)
    return place


def _write_rows(folder: Path, rows: Iterable[Figures]) -> None:
    place = _place(folder)
    for row in rows:
        name = hashlib.sha256(repr(_key(row)).encode()).hexdigest()[:16]
        write_whole(place / f"{name}.json", json.dumps(row))


def _consolidate(folder: Path, connection: DuckDBPyConnection, loose: Iterable[Path]) -> None:
    """Write all rows into the Parquet file, and remove the files of single rows; or leave that to
    the process that does it now.
    """
    place = _place(folder)
    with (place / "lock").open("ab") as lock:
        try:
            locks.acquire(lock)
        except OSError:
            return
        with whole(place / FILE) as part:
            file = str(part).replace("'", "''")
            connection.execute(
                "COPY (FROM rows WHERE outcome <> 'running' ORDER BY time_utc) "
                f"TO '{file}' (FORMAT parquet, COMPRESSION zstd)"
            )
        for path in loose:
            path.unlink(missing_ok=True)
