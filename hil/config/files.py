"""Merge TOML files into one table, and track the file of each key."""

import csv
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hil.config.replaced import renamed, warn_of_replaced
from hil.config.toml_text import explained
from hil.config.values import TomlTable
from hil.errors import ConfigError, missing_file, one_line

HDF5_SIGNATURE = b"\x89HDF"
LETTERS_MAX = 10_000_000  # of a file; a rig of 10 000 cells has less
BENCH_KEYS = ("specimen", "ambient")
EXPERIMENT_KEYS = (
    "experiment", "reference", "controller", "record", "guard", "validation", "expect",
    *BENCH_KEYS,
)  # fmt: skip
PROGRAM = "the program"  # the origin of tables that a program changes
RIG_KEYS = ("model", "plant", "devices", "loop", "guard", "observer", "plant_card", *BENCH_KEYS)


@dataclass
class Merged:
    """A merged table and its sources; later sources override earlier ones."""

    table: TomlTable
    sources: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    def origin(self, path: Iterable[str | int]) -> str:
        """The source (file or --set) that has the longest part of this key path."""
        parts = list(path)
        best, best_depth = self.sources[-1][0] if self.sources else "", -1
        for name, table in self.sources:
            depth = _depth(table, parts)
            if depth >= best_depth:
                best, best_depth = name, depth
        return best


def is_option(origin: str) -> bool:
    """Whether an origin is no file, but `--set` or a program."""
    return origin == PROGRAM or origin.startswith("--set")


def folder_of(origin: str) -> Path:
    """The folder to which paths from this origin are relative."""
    return Path() if is_option(origin) else Path(origin).parent


def read_toml(path: Path) -> TomlTable:
    """Read one TOML file; ConfigError with file and line if it is invalid."""
    text = ""
    try:
        with path.open(encoding="utf-8-sig") as file:  # Notepad writes a BOM
            text = file.read(LETTERS_MAX + 1)
        if len(text) > LETTERS_MAX:
            raise ConfigError(f"{path}: more than {LETTERS_MAX} letters: give a TOML file")
        return tomllib.loads(text)
    except FileNotFoundError:
        raise missing_file(path, "'hil examples DIR' copies the bundled configurations") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: a folder: name a .toml file in it") from None
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}): check the path and its permissions"
        ) from None
    except UnicodeDecodeError as error:
        if error.object.startswith(HDF5_SIGNATURE):
            raise ConfigError(
                f"{path}: a recording: use hil report, hil gui or hil replay"
            ) from None
        raise ConfigError(f"{path}: not UTF-8 text: give a TOML file, saved as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {explained(text, error)}") from None


def read_merged(
    path: Path, sets: Iterable[str] = (), changes: Mapping[str, TomlTable] | None = None
) -> Merged:
    """Read an experiment merged over its rig, or only a rig; `[plant]` is merged over `[model]`.

    Parameters
    ----------
    sets : `key.path=value` texts that override keys
    changes : tables of a program, which override these
    """
    if isinstance(sets, str):
        raise ConfigError(f"{path}: sets = {sets!r}: give a list of such texts: [{sets!r}]")
    contents = _read(path)
    sources: list[tuple[str, Mapping[str, object]]] = []
    table: dict[str, object] = {}
    if "rig" in contents:
        rig_name = contents.pop("rig")
        if not isinstance(rig_name, str):
            raise ConfigError(f"{path}: rig = {rig_name!r}: give the path of the rig's file")
        rig_path = path.parent / rig_name
        if not rig_path.is_file():
            error = missing_file(rig_path, "name the file of the rig, such as rig.toml")
            raise ConfigError(f"{path}: rig: {error}")
        rig = _read(rig_path)
        _refuse_foreign(rig_path, rig, RIG_KEYS, "a rig")
        _refuse_foreign(path, contents, EXPERIMENT_KEYS, "an experiment")
        table = merge(table, rig)
        sources.append((str(rig_path), rig))
    elif "experiment" in contents and "model" not in contents:
        tables = [key for key, part in contents.items() if isinstance(part, dict) and "rig" in part]
        how = (
            f"is in [{tables[0]}]: put it above the first table"
            if tables
            else ("missing: name the file of the rig, such as rig.toml")
        )
        raise ConfigError(f"{path}: rig: {how}")
    table = merge(table, contents)
    sources.append((str(path), contents))
    for text in sets:
        name = f"--set {one_line(text)}"
        change = _with_units(folder_of(name), _renamed(name, parse_set(text)))
        table = merge(table, change)
        sources.append((name, change))
    if changes:
        changed = _with_units(folder_of(PROGRAM), _renamed(PROGRAM, dict(changes)))
        table = merge(_without_replaced(table, changed), changed)
        sources.append((PROGRAM, changed))
    _read_trace(path, table.get("reference"))
    model = table.get("model")
    if isinstance(model, dict):
        table["model"] = model = _with_ambient(model, table.get("ambient"))
        differences = table.get("plant", {})
        if not isinstance(differences, dict):
            raise ConfigError(f"{path}: plant: give a table of the differences from [model]")
        other = "kind" in differences and differences["kind"] != model.get("kind")
        table["plant"] = differences if other else merge(model, differences)
    return Merged(table, sources)


def _without_replaced(table: Mapping[str, object], changed: Mapping[str, Any]) -> dict[str, object]:
    """The table without those of which the program gives another kind.

    Differences of a plant from its model go with the model.
    """
    kept = {
        key: part
        for key, part in table.items()
        if not isinstance(part, dict)
        or changed.get(key, {}).get("kind", part.get("kind")) == part.get("kind")
    }
    plant = kept.get("plant")
    if "model" in table and "model" not in kept and isinstance(plant, dict) and "kind" not in plant:
        del kept["plant"]
    return kept


def _read(path: Path) -> dict[str, object]:
    return _with_units(path.parent, _renamed(str(path), read_toml(path)))


def _with_units(folder: Path, table: dict[str, object]) -> dict[str, object]:
    """The table with whole paths of units, so that the working folder may change."""
    for key in ("model", "plant"):
        part = table.get(key)
        if isinstance(part, dict) and isinstance(part.get("file"), str):
            part["file"] = str((folder / part["file"]).resolve())
    return table


def _renamed(source: str, table: dict[str, object]) -> dict[str, object]:
    """The table with the present names; prints a warning for each obsolete key."""
    warn_of_replaced(source, table)
    return renamed(table)


def _with_ambient(model: dict[str, object], ambient: object) -> dict[str, object]:
    """The model with the configured ambient temperature in its thermal cells."""
    ambient_C = ambient.get("ambient_C") if isinstance(ambient, dict) else None
    arrays = model.get("arrays")
    if ambient_C is None or not isinstance(arrays, dict):
        return model

    def in_air(activation: object) -> object:
        if isinstance(activation, list):
            return [in_air(one) for one in activation]
        if isinstance(activation, dict) and activation.get("kind") in ("thermal", "sma"):
            return {**activation, "ambient_C": ambient_C}
        return activation

    changed = {
        name: {"activation": in_air(array["activation"])}
        for name, array in arrays.items()
        if isinstance(array, dict) and "activation" in array
    }
    return merge(model, {"arrays": changed})


def _read_trace(path: Path, reference: object) -> None:
    """Read the CSV file of a reference and put its values into the reference's table."""
    if not isinstance(reference, dict) or not isinstance(reference.get("file"), str):
        return
    source = path.parent / reference["file"]
    where = f"{path}: reference.file = {reference['file']!r}"
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:  # of spreadsheets
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        reference |= {key: [float(row[key]) for row in rows] for key in ("t_s", "force_N")}
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read ({error.strerror}): name a CSV file") from None
    except (KeyError, TypeError, ValueError, csv.Error):
        raise ConfigError(
            f"{where}: give the columns t_s and force_N with a number in every row"
        ) from None


def merge(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """Merge tables key by key; any other value is replaced.

    An activation of another kind replaces the old table, because they have different keys.
    """
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            replaces = key == "activation" and _of_another_kind(old, value)
            value = value if replaces else merge(old, value)
        result[key] = value
    return result


def _of_another_kind(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    return "kind" in new and "kind" in old and bool(new["kind"] != old["kind"])


def _refuse_foreign(
    path: Path, table: Mapping[str, object], known: tuple[str, ...], what: str
) -> None:
    for key in table:
        if key not in known:
            raise ConfigError(
                f"{path}: {one_line(key)}: unknown in {what}'s file, which has {', '.join(known)}"
            )


def parse_set(text: str) -> dict[str, object]:
    """Parse `--set key.path=value` into a table; a value that is not TOML is a text."""
    key, equals, value = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise ConfigError(
            f"--set {one_line(text)}: write key.path=value, such as --set loop.period_s=0.002"
        )
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value.strip()
    for part in reversed(parts):
        parsed = {part: parsed}
    return dict(parsed)


def _depth(table: Any, path: list[str | int]) -> int:
    """How many parts of the path exist in this table."""
    for depth, part in enumerate(path):
        try:
            table = table[part]
        except (KeyError, IndexError, TypeError):
            return depth
    return len(path)
