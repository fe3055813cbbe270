"""Validation of merged tables; every error is one line with file, key, value and remedy."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pydantic
import tomli_w
from numpy.typing import NDArray
from pydantic_core import ErrorDetails

from hil.config import crosscheck, schema
from hil.config.build import build_activation, build_model
from hil.config.files import Merged, read_merged
from hil.errors import ConfigError, one_line
from hil.models import CellArray, ModelError
from hil.models.activation import CellActivation

T = TypeVar("T", bound=schema.Table)


@dataclass(frozen=True)
class Config:
    """A validated run: its tables, and the models they describe.

    Attributes
    ----------
    path : Path
        The experiment's file.
    tables : RunTables
    model, plant : CellArray
        The twin's and the simulated plant's.
    """

    path: Path
    tables: schema.RunTables
    model: CellArray
    plant: CellArray

    @property
    def rig_name(self) -> str:
        return self.path.resolve().parent.name

    @property
    def n_ticks(self) -> int:
        return max(1, round(self.tables.experiment.duration_s / self.tables.loop.period_s))

    def activation(self, *, plant: bool = False) -> list[CellActivation]:
        return build_activation(self.tables.plant if plant else self.tables.model)

    def to_toml(self) -> str:
        """The whole merged configuration, defaults included."""
        return tomli_w.dumps(self.tables.model_dump(by_alias=True, exclude_none=True))


def load(path: str | Path, sets: Iterable[str] = ()) -> Config:
    """Read and validate an experiment and its rig.

    Parameters
    ----------
    path : path of the experiment's TOML file
    sets : `key.path=value` texts that override keys of the merged configuration

    Raises
    ------
    ConfigError
        One line an error: file, key, value, remedy.
    """
    path = Path(path)
    merged = read_merged(path, sets)
    if "experiment" not in merged.table:
        raise ConfigError(f"{path}: no [experiment]: give an experiment, not a rig")
    return _run(path, merged)


def from_toml(path: Path, table: dict[str, Any]) -> Config:
    """The configuration that a recording carries, validated again; `path` is named in errors."""
    return _run(path, Merged(table, [(str(path), table)]))


def _run(path: Path, merged: Merged) -> Config:
    tables = validated(schema.RunTables, merged)
    model, plant = _models(tables, merged)
    _raise_all(merged, [*crosscheck.rig(tables, model), *crosscheck.run(tables, model)])
    return Config(path, tables, model, plant)


def load_model(path: str | Path, sets: Iterable[str] = ()) -> tuple[CellArray, NDArray[np.float64]]:
    """The model of a rig, an experiment, or a file with nothing but `[model]`.

    Returns
    -------
    model : CellArray
    force_on_N : (N,) array
        An active cell's F, for every cell.
    """
    merged = read_merged(Path(path), sets)
    table = {key: value for key, value in merged.table.items() if key in ("model", "plant")}
    tables = validated(schema.ModelTables, Merged(table, merged.sources))
    model = _models(tables, merged)[0]
    return model, np.array([a.force_on_N for a in build_activation(tables.model)])


def check(path: str | Path, sets: Iterable[str] = ()) -> str:
    """Validate a file of any kind; what kind it is.

    Raises
    ------
    ConfigError
        One line an error.
    """
    path = Path(path)
    merged = read_merged(path, sets)
    if "experiment" in merged.table or "controller" in merged.table:
        load(path, sets)
        return "experiment"
    if merged.table.keys() <= {"model", "plant"}:
        _models(validated(schema.ModelTables, merged), merged)
        return "model"
    tables = validated(schema.RigTables, merged)
    _raise_all(merged, list(crosscheck.rig(tables, _models(tables, merged)[0])))
    return "rig"


def _models(tables: schema.ModelTables, merged: Merged) -> tuple[CellArray, CellArray]:
    built = []
    for key, table in (("model", tables.model), ("plant", tables.plant)):
        try:
            built.append(build_model(table))
            build_activation(table)
        except ModelError as error:
            where, _, text = str(error).partition(": ")
            path = f"{key}.{where}"
            raise ConfigError(
                one_line(f"{merged.origin(path.split('.'))}: {path}: {text}")
            ) from None
    model, plant = built
    if model.cell_names != plant.cell_names or model.outputs != plant.outputs:
        raise ConfigError(
            f"{merged.origin(['plant'])}: plant: its cells, masses and points must be those of "
            "[model]: change values only"
        )
    return model, plant


def _raise_all(merged: Merged, found: Sequence[tuple[str, str]]) -> None:
    if found:
        raise ConfigError(
            "\n".join(one_line(f"{merged.origin(_keys(k))}: {k}: {text}") for k, text in found)
        )


def _keys(dotted: str) -> list[str | int]:
    return [part.split(" =")[0] for part in dotted.split(".")]


def validated(kind: type[T], merged: Merged) -> T:
    """The merged tables as one of the kinds of `hil.config.schema`; ConfigError where not."""
    try:
        return kind.model_validate(merged.table)
    except pydantic.ValidationError as error:
        lines, said = [], set()
        for detail in error.errors(include_url=False):
            path = _path_in(merged.table, detail)
            if detail["type"].startswith("union_tag"):
                path = (*path, "kind")
            said.add((path, detail["type"]))
            shadow = ("model", *path[1:])
            if (
                path[0] == "plant"
                and (shadow, detail["type"]) in said
                and _has(merged.table, shadow) == _has(merged.table, path)
            ):
                continue  # said already of [model], which [plant] starts from
            lines.append(_line(merged, path, detail))
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None


def _has(table: Any, path: Sequence[str | int]) -> Any:
    """The value at a path, wrapped; empty where there is none."""
    for part in path:
        try:
            table = table[part]
        except (KeyError, IndexError, TypeError):
            return ()
    return (table,)


def _path_in(table: Any, detail: ErrorDetails) -> tuple[str | int, ...]:
    """The error's location without what only the validator knows (tags of unions)."""
    path: list[str | int] = []
    for i, part in enumerate(detail["loc"]):
        found = _has(table, [part]) if isinstance(table, dict | list) else ()
        if found:
            path.append(part)
            table = found[0]
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
            close = difflib.get_close_matches(str(path[-1]), _known_keys(), n=1)
            text = "unknown key" + (f": did you mean '{close[0]}'?" if close else ": remove it")
            shown = ""
        case "union_tag_invalid":
            shown = f" = {_short(context['tag'])}"
            text = f"unknown: choose {context['expected_tags']}"
        case "float_type" | "int_type" | "string_type" | "bool_type":
            wanted = {
                "float_type": "a number",
                "int_type": "a whole number",
                "string_type": "a text in quotes",
                "bool_type": "true or false",
            }[kind]
            text = f"must be {wanted}, without unit: the key names the unit"
            if kind == "string_type":
                text = f"must be {wanted}"
        case "value_error":
            text = str(context["error"])
        case _:
            text = detail["msg"].replace("Input should", "must")
            text = text[0].lower() + text[1:]
    return one_line(f"{where}: {key}{shown}: {text}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@cache
def _known_keys() -> list[str]:
    """Every key of every table."""
    keys: set[str] = set()
    todo = list(schema.Table.__subclasses__())
    while todo:
        table = todo.pop()
        todo += table.__subclasses__()
        keys |= {info.alias or name for name, info in table.model_fields.items()}
    return sorted(keys)
