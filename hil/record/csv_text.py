"""Escapes texts in CSV files so that spreadsheets do not evaluate them, and unescapes them.

Excel, LibreOffice and Google Sheets evaluate a field that begins with = + - @, a tab or a carriage
return, quoted or not. Such a formula can send other fields to a third party. The usual remedy
is an apostrophe in front. Texts that begin with an apostrophe get one too, so removing one
apostrophe from every text that has one restores the originals.

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
    # With any other line end a carriage return would be unquoted, and start a field for a reader.
    csv.writer(text, lineterminator="\r\n").writerow(map(as_field, values))
    return text.getvalue().removesuffix("\r\n") + "\n"


def from_field(text: str) -> str:
    """The text of a field that `as_field` wrote."""
    return text.removeprefix(APOSTROPHE)
