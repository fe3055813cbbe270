"""Modules whose source text is read."""

from pathlib import Path

import pytest


@pytest.fixture
def modules(pytestconfig):
    root = pytestconfig.rootpath
    folders = ("hil", "studies", "gui")
    return {str(p.relative_to(root)): p for f in folders for p in Path(root / f).rglob("*.py")}
