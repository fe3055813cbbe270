"""Pages of the reference that are made of the code: command line, configuration, columns.

`python docs/reference_pages.py` writes them; a test compares them with the code.
"""

import argparse
import inspect
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
import h5py
import licences
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import hil
import hil.errors as hil_errors
from hil.commands.command_line import command_line as whole_command_line
from hil.experiment.schema import RunTables
from hil.plugins.load import PluginTable
from hil.runs.campaign.tables import CampaignTables

ROOT = Path(__file__).resolve().parents[1]


def pages() -> dict[str, str]:
    """The generated pages, by their file in reference/generated/."""
    return {
        "command-line.md": command_line(),
        **configuration(),
        "campaign.md": campaign(),
        "licences.md": licences.page(),
        "python.md": python(),
        "recordings-columns.md": columns(),
    }


def write(docs: Path) -> None:
    """Write the pages into reference/generated/; those that have not changed are left alone."""
    for name, text in pages().items():
        path = docs / "reference" / "generated" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# Command line


def command_line() -> str:
    """The output of `hil --help` and of `hil COMMAND --help`."""
    os.environ["COLUMNS"] = "90"
    parser = whole_command_line()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    lines = [
        "# Command line",
        "",
        "Exit codes: 0 done · 2 bad input or configuration, nothing was energised · 3 the guard",
        "tripped, the recording is kept · 4 a device failed, went missing or is held by another",
        "process · 5 the command worked and the answer is no · 130 interrupted, safe state",
        "reached, recording closed.",
        "",
    ]
    lines += ["```text", parser.format_help().strip(), "```", ""]
    for name, command in commands.choices.items():
        lines += [f"## `hil {name}`", "", "```text", command.format_help().strip(), "```", ""]
    return "\n".join(lines)


# Configuration


PAGES = {
    "model": ("The model and the simulated rig", ("model", "plant", "plant_card", "ambient")),
    "devices": ("Devices", ("devices", "specimen")),
    "loop": ("The loop, its limits and its observer", ("loop", "guard", "observer", "record")),
    "run": ("An experiment and what it must meet", (
        "experiment", "reference", "validation", "expect")),
    "controller": ("Controllers", ("controller",)),
}  # fmt: skip


def configuration() -> dict[str, str]:
    """Every table that a rig or an experiment may have, from `hil.experiment.schema`, by page."""
    lines = [
        "# Configuration",
        "",
        "A rig's file has `[model] [plant] [loop] [devices.*] [guard] [observer]`; an experiment",
        "names it with `rig = ` and adds `[experiment] [reference] [controller] [record]`, and",
        "limits that may only be tighter. TOML, SI units, the unit at the end of a key. An unknown",
        "key is an error, and a key without a default must be given.",
        "",
        "## Tables",
        "",
    ]
    places = list(_places("", RunTables))
    assert {_top(p) for p in places} == {top for _, tops in PAGES.values() for top in tops}
    pages = {}
    for name, (title, tops) in PAGES.items():
        file = f"configuration-{name}.md"
        listed = ", ".join(f"`[{top}]`" for top in tops)
        lines += [f"- [{title}]({file}): {listed}"]
        of_page = [place for top in tops for place in places if _top(place) == top]
        pages[file] = "\n".join([f"# {title}", "", *_tables(of_page)]) + "\n"
    return {"configuration.md": "\n".join(lines) + "\n", **pages}


def _top(place: "Place") -> str:
    """The top-level table of a place."""
    return re.split(r"[.\[]", place.path)[0]


def campaign() -> str:
    """Every table that a campaign's file may have, from `hil.runs.campaign.tables`."""
    lines = [
        "# Campaigns",
        "",
        "What a file of `hil campaign` may say, beside `[[trials]]` with a level of every factor.",
        "[Run a day of trials](../../how-to/bench-day.md) has an example.",
        "",
        *_tables(_places("", CampaignTables)),
    ]
    return "\n".join(lines) + "\n"


def _tables(places: Iterable["Place"]) -> list[str]:
    lines: list[str] = []
    for place in places:
        depth = "###" if "." in place.path.replace(".<name>", "") else "##"
        lines += [f"{depth} `[{place.path}]`", ""]
        if place.path == "plant":
            lines += ["Only what differs from `[model]`, in the same tables.", ""]
            continue
        if place.of:
            lines += [f"In {' and '.join(place.of)}.", ""]
        for table in place.tables:
            if len(place.tables) > 1:
                lines += [f"{depth}# {_kind(table)}", ""]
            lines += _described(table, alone=len(place.tables) == 1)
    return lines


@dataclass
class Place:
    """Where in a file a table stands, which kinds may stand there, and in which kinds above."""

    path: str
    tables: list[type[BaseModel]]
    of: list[str] = field(default_factory=list)


def _places(path: str, model: type[BaseModel]) -> Iterator[Place]:
    """Tables below a table, in file order."""
    for name, key in model.model_fields.items():
        many, tables = _below(key.annotation)
        if not tables:
            continue
        end = {"dict": ".<name>", "list": "[]"}.get(many, "")
        here = Place(".".join(filter(None, [path, key.alias or name])) + end, tables)
        yield here
        below: dict[str, Place] = {}
        for table in tables if here.path != "plant" else []:
            for place in _places(here.path, table):
                known = below.setdefault(place.path, Place(place.path, [], place.of))
                known.tables += [kind for kind in place.tables if kind not in known.tables]
                if len(tables) > 1 and place.path.count(".") == here.path.count(".") + 1:
                    known.of = [*known.of, _kind(table)]
        yield from below.values()


def _below(annotation: Any) -> tuple[str, list[type[BaseModel]]]:
    """The tables a key may hold, and whether it holds a `dict` or a `list` of them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _below(get_args(annotation)[0])
    if origin in (Union, UnionType):
        found = [_below(part) for part in get_args(annotation)]
        kinds = {many for many, tables in found if tables}
        return ("list" if "list" in kinds else "dict" if "dict" in kinds else ""), [
            table for _, tables in found for table in tables
        ]
    if origin in (dict, list):
        _, tables = _below(get_args(annotation)[-1])
        return (origin.__name__ if tables else ""), tables
    is_table = inspect.isclass(annotation) and issubclass(annotation, BaseModel)
    return "", [annotation] if is_table else []


def _kind(table: type[BaseModel]) -> str:
    """The kind's name; of a table that needs none, what it is called in the code."""
    if "kind" not in table.model_fields:
        return table.__name__.removesuffix("Table")
    if issubclass(table, PluginTable):
        return '`"FILE.py:Class"`'
    return _type(table.model_fields["kind"].annotation)


def _described(table: type[BaseModel], *, alone: bool) -> list[str]:
    """What a table is for, and its keys that are no tables."""
    own = table.__dict__.get("__doc__")
    lines = [inspect.cleandoc(own), ""] if own else []
    rows = [
        f"| `{key.alias or name}` | {_unit(key.alias or name)} | "
        f"{_type(key.annotation, key.metadata)} | {_default(key)} | {_about(table, name, key)} |"
        for name, key in table.model_fields.items()
        if not _below(key.annotation)[1] and (alone or name != "kind")
    ]
    if rows:
        lines += ["| key | unit | type and range | default | what it is |", "|---|---|---|---|---|"]
        lines += [*rows, ""]
    return lines


UNITS = {
    "s": "s", "ms": "ms", "Hz": "Hz", "N": "N", "mN": "mN", "m": "m", "mm": "mm", "kg": "kg",
    "V": "V", "mV": "mV", "A": "A", "mA": "mA", "Ohm": "Ω", "C": "°C", "K": "K", "K2": "K²",
    "rad": "rad", "Nm": "N m", "Pa": "Pa", "MPa": "MPa", "TPa": "TPa", "W": "W", "J": "J",
    "MB": "MB", "m2": "m²", "m3": "m³", "s2": "s²", "turn": "turn", "newtons": "N", "metres": "m",
    "counts": "counts", "units": "unit of the signal", "day": "day", "deg": "°",
}  # fmt: skip
ALONE = ("C", "A")  # also letters of symbols such as A_s_C


def _unit(name: str) -> str:
    """The unit that ends a key's name, as in `k_N_per_m`; empty if it has none."""
    words = name.split("_")
    if "sqrt" in words:
        return f"{words[words.index('per') - 1]}/√{words[-1]}"
    start = len(words)
    while start and (words[start - 1] in UNITS or words[start - 1] == "per"):
        start -= 1
    top, _, below = " ".join(words[start:]).partition("per ")
    above, under = top.split(), below.split()
    if len(above) > 1:
        above = [above[-1]] if above[-1] in ALONE else [w for w in above if w not in ALONE]
    if not (above or under) or len(words) == len(above):
        return ""
    product = " ".join(UNITS[word] for word in above) or "1"
    divisor = " ".join(UNITS[word] for word in under if word != "per")
    if not divisor:
        return product
    return f"{product}/({divisor})" if " " in divisor else f"{product}/{divisor}"


def _about(table: type[BaseModel], name: str, key: FieldInfo) -> str:
    """The key's description: its own, that of its table in docs/keys.toml, or that of its name."""
    name = key.alias or name
    of_tables = (known_keys().get(cls.__name__, {}) for cls in table.__mro__)
    said = next((known[name] for known in of_tables if name in known), known_keys().get(name, ""))
    return (key.description or str(said)).replace("|", "\\|")


@cache
def known_keys() -> dict[str, Any]:
    """What keys mean, from docs/keys.toml: by name, or by table and name."""
    return tomllib.loads((ROOT / "docs" / "keys.toml").read_text(encoding="utf-8"))


NAMES = {float: "number", int: "whole number", str: "text", bool: "true or false"}


def _type(annotation: Any, metadata: Sequence[Any] = (), *, many: bool = False) -> str:
    """A type as one would say it: "numbers, each above 0"."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(args[0], (*args[1:], *metadata), many=many)
    if origin is Literal:
        return _either([f'`"{v}"`' if isinstance(v, str) else f"`{v}`" for v in args])
    if origin in (Union, UnionType):
        parts = [_type(part, many=many) for part in args if part is not type(None)]
        return _either(list(dict.fromkeys(parts))) + _limits(metadata, many)
    if origin is list:
        count = _bounds(metadata)
        number = count.get("min_length", 0)
        inner = _type(args[0], many=True)
        fixed = number and number == count.get("max_length")
        return f"{number:g} {inner}" if fixed else f"{'lists' if many else 'list'} of {inner}"
    if origin is dict:
        return f"{_type(args[1], many=True)}, by name"
    words = NAMES.get(annotation, "any value")
    plural = "s" if many and words in ("number", "whole number", "text", "any value") else ""
    return words + plural + _limits(metadata, many)


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _bounds(metadata: Sequence[Any]) -> dict[str, float]:
    """The limits of a type by the name that `annotated_types` gives them."""
    parts = [
        p for item in metadata for p in (item.metadata if isinstance(item, FieldInfo) else [item])
    ]
    names = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length")
    return {
        name: getattr(part, name) for part in parts for name in names
        if isinstance(part, annotated_types.BaseMetadata) and hasattr(part, name)
    }  # fmt: skip


def _limits(metadata: Sequence[Any], many: bool) -> str:
    """The range of a number in words."""
    known = {name: _short(value) for name, value in _bounds(metadata).items()}
    if "ge" in known and "le" in known:
        said = [f"{known['ge']} to {known['le']}"]
    else:
        least = [f"above {known['gt']}"] if "gt" in known else []
        least += [f"at least {known['ge']}"] if "ge" in known else []
        said = [*least, *([f"at most {known['le']}"] if "le" in known else []),
                *([f"below {known['lt']}"] if "lt" in known else [])]  # fmt: skip
    said += [f"a multiple of {known['multiple_of']}"] if "multiple_of" in known else []
    return (", each " if many and said else ", " if said else "") + ", ".join(said)


def _short(value: float) -> str:
    return re.sub(r"e([+-])0*(\d)", lambda m: f"e{m[1].strip('+')}{m[2]}", f"{value:g}")


def _default(key: FieldInfo) -> str:
    if key.is_required():
        return "–"
    value = key.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined:
        return "left out"
    return f"`{str(value).lower() if isinstance(value, bool) else repr(value)}`".replace("'", '"')


# Python


def python() -> str:
    """Signatures and docstrings of the public names, from `hil` and its public modules."""
    from hil import environments, models, ophyd
    from hil.devices.latest import LatestReading
    from hil.experiment.loaded import Experiment
    from hil.plugins.code import Facts, Now
    from hil.reports.figure import Look
    from hil.runs import session
    from hil.runs.plan import Plan
    from hil.runs.recording import Output

    kinds = (models.cells.miga, models.cells.hill, models.cells.two_damper, models.cells.custom)
    groups: dict[str, list[tuple[str, Any]]] = {
        "Run and read": [
            ("hil.load", hil.load),
            ("hil.run", hil.run),
            ("hil.runs.plan.Plan", Plan),
            ("hil.runs.recording.Output", Output),
            ("hil.runs.session.View", session.View),
            ("hil.simulate", hil.simulate),
            ("hil.campaign", hil.campaign),
            ("hil.open_run", hil.open_run),
            ("hil.runs", type(hil.runs).__call__),
            ("hil.figure", hil.figure),
            ("hil.reports.figure.Look", Look),
            ("hil.experiment.loaded.Experiment", Experiment),
        ],
        "Models": [
            ("hil.models.CellArray", models.CellArray),
            ("hil.models.CellArray.from_fingerprint", models.CellArray.from_fingerprint),
            ("hil.models.CellArray.batch", models.CellArray.batch),
            ("hil.models.CellArray.to_control", models.CellArray.to_control),
            *((f"hil.models.cells.{kind.__name__}", kind) for kind in kinds),
            ("hil.models.CellActivation", models.CellActivation),
            ("hil.models.SmaWire", models.SmaWire),
            ("hil.models.impact.decompose", models.impact.decompose),
        ],
        "What a plug-in gets": [
            ("hil.plugins.code.Facts", Facts),
            ("hil.plugins.code.Now", Now),
            ("hil.devices.latest.LatestReading", LatestReading),
        ],
        "Errors": [
            ("hil.errors.ConfigError", hil_errors.ConfigError),
            ("hil.errors.DeviceError", hil_errors.DeviceError),
            ("hil.models.ModelError", models.ModelError),
        ],
        "Bluesky": [("hil.ophyd.Experiment", ophyd.Experiment)],
        "Gymnasium": [("hil.environments.RigEnvironment", environments.RigEnvironment)],
    }
    lines = [
        "# Python",
        "",
        "These names are public, for notebooks, scripts and plug-ins; everything else may change.",
        "`hil.run(config, **options)` takes the attributes of `Plan`, `Output` and `View` by name.",
        "",
    ]
    for group, names in groups.items():
        lines += [f"## {group}", ""]
        for name, thing in names:
            text = inspect.cleandoc(thing.__doc__ or "")
            lines += [f"### `{name}`", "", "```text", f"{name}{_signature(thing)}", "", text]
            lines += ["```", ""]
    return "\n".join(lines)


def _signature(thing: Any) -> str:
    """The parameters without private ones, one a line where they are long."""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    public = [p for p in found.parameters.values() if not p.name.startswith("_")]
    plain = [p.replace(default=p.empty) if _is_object(p.default) else p for p in public]
    parts = [str(p) for p in plain if p.name not in ("self", "cls")]
    one = f"({', '.join(parts)})"
    return one if len(one) < 60 else "(\n    " + ",\n    ".join(parts) + "\n)"


def _is_object(default: Any) -> bool:
    """A default that prints with its place in memory."""
    return " at 0x" in repr(default)


# Recordings


def columns() -> str:
    """The columns of a short run of `configs/miga6/pid.toml`, as its recording describes them."""
    with tempfile.TemporaryDirectory() as folder:
        config = hil.load(ROOT / "configs/miga6/pid.toml", ("experiment.duration_s=0.05",))
        path = hil.run(config, out=Path(folder) / "run.h5")
        with h5py.File(path) as file:
            ticks = {name: dict(dataset.attrs) for name, dataset in file["ticks"].items()}
    lines = ["# Columns of a run of `configs/miga6/pid.toml`", ""]
    lines += ["| column | unit | role | what it is |", "|---|---|---|---|"]
    flags: list[str] = []
    for name, attrs in sorted(ticks.items(), key=lambda item: (item[1]["role"], item[0])):
        lines.append(f"| `{name}` | {attrs['units']} | {attrs['role']} | {attrs['description']} |")
        if name in ("fault_bits", "valid_bits"):
            flags += ["", f"Bits of `{name}`, lowest first: "]
            flags += [", ".join(f"`{flag}`" for flag in attrs["flags"]) + "."]
    return "\n".join(lines + flags) + "\n"


if __name__ == "__main__":
    write(Path(__file__).parent)
