"""The errors a user meets, each one clear line."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class ConfigError(Exception):
    """Bad input, found before any device opens: names file, key, value and remedy."""


class ModelError(ValueError):
    """The parts do not make a model; the message names the array, point or cell."""


class PluginError(ConfigError):
    """Plug-in code failed: one line with its file, line and class.

    In a run the loop takes it for a fault; before one it is bad input like any other.
    """


class DeviceError(Exception):
    """A device failed, went missing or is held by another process; names the device."""


class StopError(Exception):
    """Somebody wanted everything to end before it was done."""


def install(*extras: str) -> str:
    """The command that adds these extras: that of a clone in a clone, and pip's elsewhere."""
    names = ",".join(extras)
    if (Path(__file__).parents[1] / "scripts/setup").exists() and sys.platform != "win32":
        return f"scripts/setup {names}"
    return f"pip install 'hil-arrays[{names}]'"


def missing_extra(what: str, extra: str) -> ConfigError:
    """The error of what needs an extra that is not installed."""
    return ConfigError(f"{what} needs an extra: {install(extra)}")


@contextmanager
def writing(what: object, instead: str = "") -> Iterator[None]:
    """ConfigError if a file cannot be written in the block; `instead` is the remedy."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{what}: cannot be written ({reason}){instead}") from None


def one_line(text: str) -> str:
    """The text with line breaks and other control characters written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_utf8(text: str) -> bool:
    """Whether it can be written as UTF-8; names and words in other encodings arrive otherwise."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def nearest(word: str, known: Iterable[str]) -> str:
    """The nearest known name; empty where none is near."""
    import difflib  # not at start-up

    return next(iter(difflib.get_close_matches(word, known, n=1)), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of a line; empty where none is near."""
    near = nearest(word, known)
    return f": did you mean '{near}'?" if near else ""


def remedy(word: str, known: Iterable[str]) -> str:
    """The nearest known name, or where none is near all of them, as the end of a line."""
    names = list(known)
    return did_you_mean(word, names) or f": choose {', '.join(names)}"


def missing_file(path: Path, otherwise: str) -> ConfigError:
    """The error of a file that does not exist, with the nearest name or another remedy.

    The nearest name is that of a file of the same type beside it, or if its folder does not exist
    either, of a folder with a file of its name.
    """
    folder, above = path.parent, path.parent.parent
    if folder.is_dir():
        near = nearest(path.name, [file.name for file in folder.glob(f"*{path.suffix}")])
    elif above.is_dir():
        with_it = [place.name for place in above.iterdir() if (place / path.name).is_file()]
        other = nearest(folder.name, with_it)
        near = str(above / other / path.name) if other else ""
    else:
        near = ""
    text = f"did you mean '{near}'?" if near else otherwise
    return ConfigError(one_line(f"{path}: no such file: {text}"))
