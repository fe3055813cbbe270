"""Descriptors that installed packages bring, by entry points, beside those of hil."""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from hil.errors import ConfigError, one_line

Lazy = str | Callable[..., Any]
"""A function, or "module:function", which is imported when it is needed first."""


def loaded(lazy: Lazy) -> Callable[..., Any]:
    """The function that a descriptor names as "module:function"."""
    if not isinstance(lazy, str):
        return lazy
    module, _, function = lazy.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module), function))


def installed(group: str, taken: Iterable[str] = ()) -> dict[str, Any]:
    """The descriptors of an entry point group by their kind, the entry points' name.

    Raises
    ------
    ConfigError
        One does not import, or takes a kind that is taken.
    """
    found: dict[str, Any] = {}
    for point in entry_points(group=group):
        where = f"entry point {point.name} = {point.value} in {group}"
        if point.name in taken or point.name in found:
            raise ConfigError(f"{where}: the kind '{point.name}' is taken: give it another name")
        try:
            found[point.name] = point.load()
        except Exception as error:
            raise ConfigError(one_line(f"{where}: does not import: {error}")) from None
    return found
