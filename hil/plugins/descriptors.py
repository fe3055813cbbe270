"""Descriptors of systems and devices from installed packages, by entry points."""

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from hil.errors import ConfigError, one_line

Lazy = str | Callable[..., Any]
"""A function, or "module:function", which is imported at its first use."""


def loaded(lazy: Lazy) -> Callable[..., Any]:
    """The function that a descriptor names as "module:function"."""
    if not isinstance(lazy, str):
        return lazy
    module, _, function = lazy.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module), function))


@cache
def points() -> Any:  # of another type from Python 3.12 on
    """The entry points of all installed packages, whose metadata are read once a process."""
    return entry_points()


def installed(group: str, taken: Iterable[str] = ()) -> dict[str, Any]:
    """The descriptors of an entry point group by kind, which is the name of the entry point.

    Raises
    ------
    ConfigError
        A descriptor does not import, or its kind is already in use.
    """
    descriptors: dict[str, object] = {}
    for point in points().select(group=group):
        where = f"entry point {point.name} = {point.value} in {group}"
        if point.name in taken or point.name in descriptors:
            raise ConfigError(f"{where}: the kind '{point.name}' is taken: give it another name")
        try:
            descriptors[point.name] = point.load()
        except Exception as error:
            package = "" if point.dist is None else f" {point.dist.name}"
            raise ConfigError(
                one_line(
                    f"{where}: does not import: {error}: correct or uninstall the package{package}"
                )
            ) from None
    return descriptors
