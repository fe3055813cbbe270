"""Modules that take most of a second to import, imported only where a test uses them.

Every worker imports all test files, and runs the tests of some.
"""

import importlib
from typing import Any


class Lazily:
    """A module by its name, imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # pytest asks all names of a test file for such ones
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)
