"""Nested values whose types depend on their keys."""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

TomlTable = dict[str, Any]  # as `tomllib` reads a table: text, numbers, lists and tables
Figures = dict[str, Any]  # results by name, ready for JSON: numbers, text, lists and figures
Attributes = dict[str, Any]  # of an object in an HDF5 file: text, numbers and arrays


def as_in_file(value: Any, of_class: Callable[[str, type], object], key: str = "") -> Any:
    """A program's value as a file has it: numbers, texts, lists and tables.

    Numbers and arrays of NumPy, pandas and xarray become plain ones, as tuples, ranges and paths.

    Parameters
    ----------
    of_class : what takes the place of a class, from its key and itself
    key : where the value stands
    """
    if isinstance(value, Mapping):
        return {
            name: as_in_file(one, of_class, f"{key}.{name}".lstrip("."))
            for name, one in value.items()
        }
    if isinstance(value, list | tuple | range):
        return [as_in_file(one, of_class, f"{key}.{i}") for i, one in enumerate(value)]
    if isinstance(value, type):
        return of_class(key, value)
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value) if isinstance(value, PurePath) else value
