"""Nested values whose types depend on their keys."""

from typing import Any

TomlTable = dict[str, Any]  # as `tomllib` reads a table: text, numbers, lists and tables
Figures = dict[str, Any]  # results by name, ready for JSON: numbers, text, lists and figures
Attributes = dict[str, Any]  # of an object in an HDF5 file: text, numbers and arrays
