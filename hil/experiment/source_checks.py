"""Errors with the file or `--set` that the value came from."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, log10

from numpy.linalg import LinAlgError

from hil.config.files import Merged
from hil.errors import ConfigError, one_line


@contextmanager
def calculable(merged: Merged) -> Iterator[None]:
    """ConfigError that names the most extreme value, where a calculation fails in numbers."""
    try:
        yield
    except (ArithmeticError, LinAlgError):
        path, value = max(_numbers(merged.table), key=lambda item: abs(log10(abs(item[1]))))
        raise ConfigError(
            one_line(
                f"{merged.origin(path)}: {'.'.join(map(str, path))} = {value:g}: no model can be "
                "calculated with a value of this size: give it in the unit of its key"
            )
        ) from None


def _numbers(
    table: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], float]]:
    """Every number of nested tables and lists but zeros, with its key."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from _numbers(value, (*path, key))
    elif isinstance(table, list):
        for n, value in enumerate(table):
            yield from _numbers(value, (*path, n))
    elif isinstance(table, int | float) and table and isfinite(table):
        yield path, table


def raise_all(merged: Merged, faults: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigError with one line for each (key, text); nothing if there is none."""
    if lines := as_lines(merged, faults):
        raise ConfigError("\n".join(lines))


def as_lines(merged: Merged, faults: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each (key, text), with its file."""
    return [one_line(f"{merged.origin(_keys(key))}: {key}: {text}") for key, text in faults]


def _keys(dotted: str) -> list[str | int]:
    return [part.split(" =")[0] for part in dotted.split(".")]
