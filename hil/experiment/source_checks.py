"""Checks that need to know which file or `--set` a value came from."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite, log10
from typing import Any

from numpy.linalg import LinAlgError

from hil.config.files import Merged
from hil.errors import ConfigError, one_line
from hil.experiment.checks import HOLDABLE
from hil.experiment.kind import Found
from hil.rig.run_tables import GuardTable


def longer_holds(guard: GuardTable, merged: Merged) -> Found:
    """Conditions that an experiment or `--set` lets last longer than the default.

    What is longer than in the rig's own `hold_s` is refused where the files are merged.
    """
    _, rig = merged.sources[0]
    own = rig.get("guard", {}).get("hold_s", {})
    for name, held_s in guard.hold_s.items():
        if name in HOLDABLE and name not in own and held_s > HOLDABLE[name]:
            yield (
                f"guard.hold_s.{name} = {held_s:g}",
                f"looser than the default of {HOLDABLE[name]:g} s: an experiment may only tighten "
                "a limit: only the rig's file can loosen it",
            )


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


def _numbers(table: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every number of nested tables and lists but zeros, with its key."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            yield from _numbers(value, (*path, key))
    elif isinstance(table, list):
        for n, value in enumerate(table):
            yield from _numbers(value, (*path, n))
    elif isinstance(table, int | float) and table and isfinite(table):
        yield path, table
