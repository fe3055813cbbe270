"""Validates TOML tables; every error is one line with file, key, value and remedy."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar, get_args

import pydantic
from pydantic_core import ErrorDetails

from hil.config.files import Merged
from hil.config.table import Table
from hil.config.values import TomlTable
from hil.errors import ConfigError, did_you_mean, one_line

T = TypeVar("T", bound=Table)
FEW = 6  # words that an error line lists in full
PLUGIN_PLACES = {  # tables that accept a plug-in class, and the entry points of installed ones
    "controller": "hil.controllers",
    "reference": "hil.references",
    "model": "hil.models",
    "plant": "hil.models",
    "devices": "hil.devices",
}
CELL_PLACE = "arrays"  # subtable of [model] and [plant] that accepts no plug-in class


def validated(kind: type[T], merged: Merged) -> T:
    """Validate the merged table as a class of `hil.experiment.schema`; ConfigError if not valid."""
    try:
        return kind.model_validate(merged.table)
    except pydantic.ValidationError as error:
        lines, reported = [], set()
        for detail in error.errors(include_url=False):
            path = _path_in(merged.table, detail)
            if detail["type"].startswith("union_tag"):
                path = (*path, "kind")
            reported.add((path, detail["type"]))
            in_model = (("model", *path[1:]), detail["type"]) in reported
            if in_model and _is_of_model(merged.table, path):
                continue  # already reported
            lines.append(_line(merged, path, detail))
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None


def _is_of_model(table: TomlTable, path: Sequence[str | int]) -> bool:
    """Whether this value of [plant] is that of [model], from which [plant] starts."""
    return path[0] == "plant" and _has(table, ("model", *path[1:])) == _has(table, path)


def _has(table: Any, path: Sequence[str | int]) -> Any:
    """The value at a path in a tuple; an empty tuple if there is none."""
    for part in path:
        try:
            table = table[part]
        except (KeyError, IndexError, TypeError):
            return ()
    return (table,)


def _path_in(table: Any, detail: ErrorDetails) -> tuple[str | int, ...]:
    """The error's key path, without the tags of unions that the validator inserts."""
    path: list[str | int] = []
    for i, part in enumerate(detail["loc"]):
        entries = _has(table, [part]) if isinstance(table, dict | list) else ()
        if entries:
            path.append(part)
            table = entries[0]
        elif detail["type"] == "missing" and i == len(detail["loc"]) - 1:
            path.append(part)
    return tuple(path) or tuple(detail["loc"][:1])


def _line(merged: Merged, path: Sequence[str | int], detail: ErrorDetails) -> str:
    key = ".".join(str(part) for part in path)
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "union_tag_not_found":
        kind = "missing"
    shown = "" if isinstance(value, dict) or kind == "missing" else f" = {_short(value)}"
    where = merged.origin(path[:-1] if kind == "missing" else path)
    match kind:
        case "missing":
            text = "missing: add it"
        case "extra_forbidden":
            name = str(path[-1])
            if name in _known_keys():
                text = f"unknown key of this table{_belongs(merged.table, path)}"
            else:
                text = f"unknown key{did_you_mean(name, _known_keys()) or ': remove it'}"
            shown = ""
        case "union_tag_invalid":
            shown = f" = {_short(context['tag'])}"
            kinds = [tag.strip("'") for tag in context["expected_tags"].split(", ")]
            group = None if CELL_PLACE in path else PLUGIN_PLACES.get(str(path[0]))
            if group is not None:
                kinds += [point.name for point in entry_points(group=group)]
            near = did_you_mean(str(context["tag"]), kinds) or ":"
            text = f"unknown{near} choose {', '.join(map(repr, kinds))}"
            if kind_and_key := _value_of(str(context["tag"]), kinds):
                text = f"unknown: did you mean {kind_and_key}?"
            elif group is not None:
                text += ", or a class of your own, 'mine.py:MyClass'"
        case "float_type" | "int_type" | "string_type" | "bool_type":
            wanted = {
                "float_type": "a number",
                "int_type": "an integer",
                "string_type": "a text in quotes",
                "bool_type": "true or false",
            }[kind]
            numbers = kind in ("float_type", "int_type")
            text = f"must be {wanted}{', without unit: the key names the unit' * numbers}"
        case "literal_error" if isinstance(value, str) and (near := _near(value, context)):
            text = near
        case "value_error":
            text = str(context["error"])
        case _:
            text = detail["msg"].replace("Input should", "must")
            text = text[0].lower() + text[1:]
    return one_line(f"{where}: {key}{shown}: {text}")


def _value_of(word: str, kinds: Sequence[str]) -> str:
    """The kind with a key that takes this word, such as the build of a board; empty if none."""
    for table in _every_table():
        fields = {name: get_args(info.annotation) for name, info in table.model_fields.items()}
        for kind in set(fields.get("kind", ())) & set(kinds):
            for name, values in fields.items():
                if name != "kind" and word in values:
                    return f"kind = '{kind}' with {name} = '{word}'"
    return ""


def _belongs(table: Any, path: Sequence[str | int]) -> str:
    """Where a key that stands in the wrong table belongs, as the end of a line."""
    name, wrong = str(path[-1]), ".".join(map(str, path))
    originals = {key: value for key, value in table.items() if key != "plant"}  # a copy of [model]
    places = {".".join(place) for place in _places(originals, name) if len(place) > 1}
    if not places - {wrong}:
        places |= set(_fields(name))
    places.discard(wrong)
    if not places:
        return ": remove it"
    return (
        f": did you mean '{places.pop()}'?"
        if len(places) == 1
        else (", but known in another: move it")
    )


def _fields(name: str) -> Iterator[str]:
    """The keys of this name in the tables of a file, one level down."""
    for tables in _every_table():
        for field, info in tables.model_fields.items() if "loop" in tables.model_fields else ():
            kind = info.annotation
            if isinstance(kind, type) and issubclass(kind, Table) and name in kind.model_fields:
                yield f"{field}.{name}"


def _places(table: object, name: str) -> list[tuple[str, ...]]:
    """The paths of all keys of this name in a table and its tables."""
    if not isinstance(table, dict):
        return []
    return [
        (key, *rest)
        for key, value in table.items()
        for rest in [*([()] if key == name else []), *_places(value, name)]
    ]


def _near(value: str, context: Mapping[str, object]) -> str:
    """The nearest of many words that a key takes; empty where none is near, or all can be shown."""
    words = re.findall(r"'([^']*)'", str(context["expected"]))
    if len(words) <= FEW:
        return ""
    return did_you_mean(value, words).replace(": did", "unknown: did", 1)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@cache
def _known_keys() -> list[str]:
    """Every key of every table."""
    return sorted({info.alias or name for table in _every_table()
                   for name, info in table.model_fields.items()})  # fmt: skip


def _every_table() -> Iterator[type[Table]]:
    """Every kind of table that is loaded."""
    todo = list(Table.__subclasses__())
    while todo:
        table = todo.pop()
        todo += table.__subclasses__()
        yield table
