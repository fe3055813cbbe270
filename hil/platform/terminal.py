"""Printing of text that may come from a file: control characters are escaped."""

from __future__ import annotations

import io
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO


def shown(text: str) -> str:
    """Escape every control character except line break and tab.

    This covers sequences that move the cursor, rename a window or fill the clipboard, and marks
    that change the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text
    )


def say(text: object = "", *, file: TextIO | None = None, end: str = "\n") -> None:
    """Print a text with control characters escaped; by default on standard output."""
    print(shown(str(text)), file=file or sys.stdout, end=end, flush=file is sys.stderr)


def word(path: Path) -> str:
    """A path as one word of a command line of this system."""
    import shlex  # not at start-up

    text = str(path)
    if sys.platform == "win32":
        return f'"{text}"' if " " in text else text
    return shlex.quote(text)


def escape_unprintable() -> None:
    """Let the standard streams escape what their encoding lacks.

    Windows has such an encoding, cp1252, where the output goes to a file or a pipe. What is typed
    in another encoding than the terminal's, such as a µ in Latin-1, is escaped too.
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
