"""Prints the part of requirements.lock that some extras need: `scripts/requirements.py gui,daq`.

The argument "core" is for none, and packages that pyproject.toml does not name may follow;
after "only" they are all.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ("hatchling", "editables", "pip")  # installs the project itself, and further extras later


def named(extras: Iterable[str]) -> Iterator[str]:
    """Names of the packages that pyproject.toml asks for with these extras.

    Raises
    ------
    SystemExit
        An extra does not exist.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = project["optional-dependencies"]
    yield from BUILD
    requirements = list(project["dependencies"])
    for extra in extras:
        if extra not in known:
            sys.exit(f"no extra '{extra}': choose {', '.join(known)}, core")
        requirements += known[extra]
    for requirement in requirements:
        if others := re.match(rf"{project['name']}\[(.*)\]", requirement):
            yield from named(others[1].split(","))
        else:
            yield re.split(r"[\[<>=;]", requirement)[0]


def chosen(names: Iterable[str]) -> Iterator[str]:
    """The lock's entries of these packages and of all that they bring with them.

    Raises
    ------
    SystemExit
        The lock has no such package.
    """
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries: dict[str, list[str]] = {}
    for entry in re.findall(r"^[^ #\n].*\n(?: .*\n)*", text, re.M):
        entries.setdefault(_plain(entry.partition("==")[0]), []).append(entry)
    brought_by = {
        name: {_plain(via) for via in re.findall(r"^    #(?: via|  ) (\S+)$", same[0], re.M)}
        for name, same in entries.items()
    }
    wanted: set[str] = set()
    more = {_plain(name) for name in names}
    while more:
        wanted |= more
        more = {name for name, by in brought_by.items() if by & wanted} - wanted
    for name in sorted(wanted):
        if name not in entries:
            sys.exit(f"requirements.lock has no {name}: scripts/lock")
        yield from entries[name]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    first, *packages = sys.argv[1:]
    extras = [extra for extra in first.split(",") if extra not in ("core", "")]
    print("".join(chosen(packages if first == "only" else [*named(extras), *packages])), end="")
