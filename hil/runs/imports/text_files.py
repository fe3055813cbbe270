"""Reader of delimited text: finds encoding, delimiter, decimal sign, header and row of units."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, one_line
from hil.runs.imports.source import Content, Series, by_full_name
from hil.runs.imports.tables import TextTable
from hil.runs.imports.units import parsed, split_header

if TYPE_CHECKING:
    import pandas as pd

BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
BYTE_ORDER = "\ufeff"
DELIMITERS = (",", ";", "\t", "|", " ")
HEAD = 2**18  # characters in which the table begins
LOOKED_AT = 400  # lines
EMPTY_LINE = re.compile(r"\n[ \t]*\r?\n")
FEW = 3  # lines of one kind that make a table
MISSING = ("", "*", "**", "***", "****", "*****", "--", "---", "NaN", "nan", "NAN", "OL", "OFL",
           "NULL", "N/A", "n/a", "#N/A", "#NV", "1.#QNAN", "-1.#IND")  # fmt: skip
HEADERS_ABOVE = 3
PLAIN = r"\d+{0}?\d*|{0}\d+|\d{{1,3}}({1}\d{{3}})+{0}\d+"  # such as 1234.5, .5 and 1,234.5
SIGNS = {".": r"\.", ",": ","}
PERCENT = re.compile(r"\s*%$")
NUMBER = {a: re.compile(rf"[+-]?({PLAIN.format(SIGNS[a], SIGNS[b])})([eE][+-]?\d+)?")
          for a, b in (".,", ",.")}  # fmt: skip
GROUPED = {a: re.compile(rf"[+-]?\d{{1,3}}({SIGNS[b]}\d{{3}})+") for a, b in (".,", ",.")}


@dataclass(frozen=True)
class Form:
    """How a text is written; lines count from 0, and `header` is -1 without one."""

    delimiter: str
    decimal: str
    first: int
    n_fields: int
    header: int = -1
    units: int = -1


def read_text(path: Path, table: TextTable) -> Content:
    """Columns by the names of the header, or `column 1` ... without one.

    Raises
    ------
    ConfigError
        The file is not text, or has no table of numbers.
    """
    columns, left = read_table(path, decoded(path, table.encoding), table)
    return Content("CSV", columns, left)


def read_table(path: Path, text: str, table: TextTable) -> tuple[dict[str, Series], list[str]]:
    """The columns of a text, and in words the lines that belong to none."""
    text = _unwrapped(text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = text[:HEAD].splitlines()
    middle = len(text) // 2
    looked_at = [*lines[: LOOKED_AT // 2], *text[middle : middle + HEAD // 8].splitlines()[1:-1]]
    missing = {*MISSING, *table.missing}
    form = form_of(path, lines, [line for line in looked_at if line.strip()], table, missing)
    at = sum(len(line) for line in text[:HEAD].splitlines(keepends=True)[: form.first])
    body = _table(text[at:], form)
    left = []
    header = form.first if form.header < 0 else form.header
    if above := sum(bool(line.strip()) for line in lines[:header]):
        left.append(f"{above} lines above the table")
    if below := text[at + len(body) :].strip():
        line, n = form.first + body.count("\n"), below.count("\n") + 1
        begin = below.partition("\n")[0][:30]
        left.append(f"{n} lines after line {line}, from '{begin}': text.data_line would read them")
    return by_full_name(_columns(path, lines, body, form, missing)), left


def decoded(path: Path, encoding: str | None) -> str:
    data = path.read_bytes()
    codec = encoding or next((name for bom, name in BOMS if data.startswith(bom)), None)
    if codec is None and b"\0" in data[:4096]:
        raise ConfigError(f"{path}: neither text nor a known binary format: export it as CSV")
    try:
        # Spreadsheets of western languages write cp1252 where they do not write UTF-8.
        text = data.decode(codec) if codec else _utf8_or_western(data)
    except (LookupError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: is not {codec or 'UTF-8'} ({one_line(str(error))[:80]}): give text.encoding"
        ) from None
    return text.removeprefix(BYTE_ORDER)  # some codecs leave it: utf-8, utf-16-le


def _utf8_or_western(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _unwrapped(text: str) -> str:
    """Without a first line `sep=;`, and without quotes around whole lines.

    Spreadsheets write the one, some testing machines the other.
    """
    if text[:4].lower() == "sep=":
        text = "\n" + text.partition("\n")[2]  # lines keep their numbers
    filled = [line for line in text[:HEAD].splitlines()[:LOOKED_AT] if line.strip()]
    wrapped = sum(line[0] == '"' and len(_split(line, ",")) == 1 for line in filled)
    if filled and wrapped > 0.9 * len(filled) and any("," in line for line in filled):
        lines = text.splitlines()
        return "\n".join(_split(line, ",")[0] if line.strip() else "" for line in lines)
    return text


def _split(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    try:
        fields = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        fields = line.split(delimiter)
    return [field.strip() for field in fields]


def form_of(
    path: Path, lines: Sequence[str], looked_at: Sequence[str], table: TextTable, missing: set[str]
) -> Form:
    """Find the delimiter and decimal sign under which most lines are rows of numbers.

    Parameters
    ----------
    lines : the first lines of the file
    looked_at : filled lines of its beginning and its middle
    """
    head = looked_at[: LOOKED_AT // 2]  # a file may have another table further down
    best: tuple[float, str, str, int] | None = None
    decimals: tuple[str, ...] = (table.decimal,) if table.decimal else (".", ",")
    for delimiter in (table.delimiter,) if table.delimiter else DELIMITERS:
        counts = Counter(n for line in head if (n := len(_split(line, delimiter))))
        for n_fields, n_lines in counts.most_common(3):
            if n_lines < min(FEW, len(head)):
                continue
            for decimal in decimals:
                if decimal == delimiter:
                    continue
                share = _numeric_share(looked_at, delimiter, decimal, n_fields, missing)
                score = share * n_lines / len(head) * (1.0 if n_fields > 1 else 0.1)
                if share > 0.0 and (best is None or score > best[0] + 1e-9):
                    best = score, delimiter, decimal, n_fields
    if best is None:
        raise ConfigError(
            f"{path}: no table of numbers was found: give text.delimiter and text.decimal"
        )
    _, delimiter, decimal, n_fields = best
    return _with_header(path, lines, Form(delimiter, decimal, 0, n_fields), table, missing)


def _numeric_share(
    lines: Sequence[str], delimiter: str, decimal: str, n_fields: int, missing: set[str]
) -> float:
    """Share of the fields of these rows that are numbers; those that are missing count half."""
    rows = [r for line in lines if len(r := _split(line, delimiter)) == n_fields]
    points = sum(_is_number(f, decimal) + 0.5 * (f in missing) for r in rows for f in r)
    return points / (n_fields * len(rows)) if rows else 0.0


def _is_number(field: str, decimal: str) -> bool:
    return NUMBER[decimal].fullmatch(PERCENT.sub("", field)) is not None


def _with_header(
    path: Path, lines: Sequence[str], form: Form, table: TextTable, missing: set[str]
) -> Form:
    """Find the first row of numbers, the header above it, and a row of units between them."""
    first = table.data_line - 1 if table.data_line is not None else _first_row(lines, form, missing)
    if not 0 <= first < len(lines):
        raise ConfigError(f"{path}: text.data_line: the file has {len(lines)} lines")
    if table.header_line is not None:
        return Form(form.delimiter, form.decimal, first, form.n_fields, table.header_line - 1)
    above: list[int] = []
    for at in range(first - 1, -1, -1):
        if not lines[at].strip():
            continue
        if len(_split(lines[at], form.delimiter)) != form.n_fields or len(above) == HEADERS_ABOVE:
            break
        above.append(at)
    units = header = -1
    rows = [_split(lines[at], form.delimiter) for at in above]
    numbers = [[_is_number(field, form.decimal) for field in row] for row in rows[:2]]
    named = len(rows) > 1 and not any(numbers[1])
    if named and numbers[0][0] and table.data_line is None:  # a row with a text, below a header
        first, above, rows = above[0], above[1:], rows[1:]
        named = len(rows) > 1
    if named and _are_units(rows[0]):
        units, header = above[0], above[1]
    elif above:
        header = above[0]
    return Form(form.delimiter, form.decimal, first, form.n_fields, header, units)


def _first_row(lines: Sequence[str], form: Form, missing: set[str]) -> int:
    """The first line with the numbers of a row: where the columns that have numbers have them."""
    rows = [_split(line, form.delimiter) for line in lines[:LOOKED_AT]]
    rows = [row for row in rows if len(row) == form.n_fields]
    numeric = [
        i
        for i in range(form.n_fields)
        if sum(_is_number(row[i], form.decimal) for row in rows) > 0.5 * len(rows)
    ]
    for at, line in enumerate(lines):
        row = _split(line, form.delimiter)
        if len(row) == form.n_fields and numeric and all(
            _is_number(row[i], form.decimal) or row[i] in missing for i in numeric
        ) and any(_is_number(row[i], form.decimal) for i in numeric):  # fmt: skip
            return at
    return 0


def _table(text: str, form: Form) -> str:
    """The table alone: up to an empty line before other lines, without a half last line."""
    for gap in EMPTY_LINE.finditer(text):
        after = text[gap.end() :].lstrip().partition("\n")[0]
        if len(_split(after, form.delimiter)) != form.n_fields:
            return text[: gap.start() + 1]
    last_at = text.rfind("\n", 0, len(text) - 1) + 1
    whole = len(_split(text[last_at:].strip("\n"), form.delimiter)) == form.n_fields
    return text if whole else text[:last_at]


def _are_units(fields: Sequence[str]) -> bool:
    bare = [field.strip("[]()") for field in fields]
    return any(bare) and all(not unit or parsed(unit) is not None for unit in bare)


def _columns(
    path: Path, lines: Sequence[str], body: str, form: Form, missing: set[str]
) -> list[tuple[str, Series]]:
    import pandas as pd

    names = [f"column {i + 1}" for i in range(form.n_fields)]
    try:
        frame = pd.read_csv(
            io.BytesIO(body.encode()),
            sep=r"\s+" if form.delimiter == " " else form.delimiter,
            decimal=form.decimal,
            header=None,
            names=names,
            index_col=False,
            na_values=sorted(missing),
            skipinitialspace=True,
            low_memory=False,
        )
    except (pd.errors.ParserError, ValueError) as error:
        raise ConfigError(
            f"{path}: not a table of {form.n_fields} columns from line {form.first + 1} on "
            f"({_in_file(str(error), form.first)}): give text.data_line, or cut the other lines"
        ) from None
    headers = _split(lines[form.header], form.delimiter) if form.header >= 0 else []
    units = _split(lines[form.units], form.delimiter) if form.units >= 0 else []
    columns: list[tuple[str, Series]] = []
    for i, name in enumerate(names):
        column = frame[name]
        header = headers[i] if i < len(headers) else ""
        unit = units[i].strip("[]()") if i < len(units) else split_header(header)[1]
        if not pd.api.types.is_numeric_dtype(column):
            texts = column.dropna().astype(str)
            if texts.map(lambda text: text.endswith("%")).all() and len(texts):
                column, unit = (
                    texts.str.replace(PERCENT, "", regex=True).reindex(column.index),
                    "percent",
                )
            column = _ungrouped(column, form)
        numeric = pd.api.types.is_numeric_dtype(column)
        values = column.to_numpy(dtype=float if numeric else object)
        no_number = "" if numeric else _first_text(values, body, i, form)
        if not header and not numeric and columns and not columns[-1][1].unit:
            told = set(column.dropna().unique()[:2])
            if len(told) == 1 and parsed(str(next(iter(told)))) is not None:
                before, series = columns[-1]  # some loggers repeat the unit beside every reading
                columns[-1] = before, Series(series.values, str(told.pop()))
                continue
        if not (numeric and np.isnan(values).all() and not header):
            columns.append((header or name, Series(values, unit, no_number=no_number)))
    return columns


def _in_file(message: str, first: int) -> str:
    """What pandas says of a table that begins below `first` lines, with the lines of the file.

    It counts lines from 1, and rows, which are lines too, from 0.
    """
    message = message.strip().removeprefix("Error tokenizing data. C error: ")
    message = re.sub(r"\bat row (\d+)", lambda at: f"in line {int(at[1]) + 1}", message)
    message = re.sub(r"\bin line (\d+)", lambda at: f"in line {int(at[1]) + first}", message)
    return one_line(message)[:120]


def _ungrouped(column: pd.Series[Any], form: Form) -> pd.Series[Any]:
    """Numbers of a column that separates thousands, such as 1.234,5; else the column itself.

    1.234 alone is no such number: another number of the column must have the decimal sign.
    """
    texts = column.dropna().astype(str)
    number, grouped = NUMBER[form.decimal], GROUPED[form.decimal]
    are_plain = texts.map(lambda text: number.fullmatch(text) is not None).all()  # beyond 64 bits
    known = texts.map(lambda text: bool(number.fullmatch(text) or grouped.fullmatch(text)))
    has_decimal = texts.str.contains(form.decimal, regex=False).any()
    if not known.all() or not (has_decimal or are_plain):
        return column
    group = "," if form.decimal == "." else "."
    plain = texts.str.replace(group, "", regex=False).str.replace(form.decimal, ".", regex=False)
    return plain.astype(float).reindex(column.index)


def _first_text(values: NDArray[np.generic], body: str, i: int, form: Form) -> str:
    """Line, column and words of the first text in a column, and what would be understood."""
    unread = [not _is_number(str(v), form.decimal) and v == v for v in values]
    if not any(unread):
        return ""
    row = unread.index(True)
    rows = (at for at, line in enumerate(body.splitlines()) if line.strip())
    line = form.first + 1 + next(itertools.islice(rows, row, None), row)
    like = f"0{form.decimal}5"
    return f"'{values[row]!s:.40}' in line {line}, column {i + 1} (numbers are such as {like})"
