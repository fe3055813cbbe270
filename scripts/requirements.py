"""Prints what pyproject.toml asks for, with the extras of the first argument, such as gui,daq."""

import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ("hatchling", "editables", "pip")  # installs the project itself, and further extras later


def requirements(extras: Iterable[str]) -> Iterator[str]:
    """Lines for `pip install --requirement`.

    Raises
    ------
    SystemExit
        An extra does not exist.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = project["optional-dependencies"]
    yield from BUILD
    yield from project["dependencies"]
    for extra in extras:
        if extra not in known:
            sys.exit(f"no extra '{extra}': choose {', '.join(known)}, core")
        yield from known[extra]


if __name__ == "__main__":
    print("\n".join(requirements(e for e in sys.argv[1].split(",") if e not in ("core", ""))))
