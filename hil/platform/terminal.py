"""Text on a terminal, of which part may come from a file: no control characters get through."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def shown(text: str) -> str:
    """The text with every control character but line break and tab written as an escape.

    Among these are the sequences that move a cursor, rename a window or fill a clipboard, and the
    marks that turn the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text
    )


def say(text: object = "", *, file: TextIO | None = None, end: str = "\n") -> None:
    """Print it, on standard output where nothing else is given."""
    print(shown(str(text)), file=file or sys.stdout, end=end, flush=file is sys.stderr)
