"""Escapes texts in CSV files so that spreadsheets do not evaluate them, and unescapes them.

Excel, LibreOffice and Google Sheets calculate a field that begins with = + - @, a tab or a carriage
return, quoted or not; such a formula can send what stands beside it to somebody. An apostrophe in
front is the usual remedy. It stands before texts that begin with an apostrophe too, so that one
taken away from every text that has one gives the texts as they were.

Source: OWASP, CSV Injection.
"""

import csv
import io
from collections.abc import Iterable

APOSTROPHE = "'"
_FIRST = ("=", "+", "-", "@", "\t", "\r", "\n", APOSTROPHE)


def as_field(value: object) -> object:
    """The CSV field of a value; numbers are unchanged."""
    return APOSTROPHE + value if isinstance(value, str) and value.startswith(_FIRST) else value


def as_line(values: Iterable[object]) -> str:
    """A line of CSV with its end; None is an empty field."""
    text = io.StringIO()
    # With any other end a carriage return would stand unquoted, and begin a field for a reader.
    csv.writer(text, lineterminator="\r\n").writerow(map(as_field, values))
    return text.getvalue().removesuffix("\r\n") + "\n"


def from_field(text: str) -> str:
    """The text that `as_field` wrote a field for."""
    return text.removeprefix(APOSTROPHE)
