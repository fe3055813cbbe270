"""Plug-in classes in the configuration: `kind = "mine.py:MyController"`, or an installed one.

The path of a file is relative to the file that names it. A plug-in is a single file, so that a
recording can store all of it. Larger code must be a package, which names its classes by an entry
point in one of GROUPS. Every other key of the table is a value for the class; a pydantic model
`Values` inside the class validates the values.
"""

import ast
import hashlib
import inspect
import linecache
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Literal, get_args

import pydantic
from pydantic import ConfigDict, Field, PrivateAttr
from pydantic_core import ErrorDetails

from hil.config.files import Merged, folder_of
from hil.config.table import Positive, Table
from hil.errors import ConfigError, PluginError, one_line
from hil.plugins.code import Plugin, exit_refused, what

Role = Literal["controller", "reference", "model", "device"]
GROUPS: dict[Role, str] = {
    "controller": "hil.controllers",
    "reference": "hil.references",
    "model": "hil.models",
    "device": "hil.devices",
}
# Required methods of a class by role, with the number of arguments.
METHODS: dict[Role, dict[str, int]] = {
    "controller": {"step": 1},
    "reference": {"at": 1},
    "model": {"step": 2},
    "device": {"open": 0, "read": 1, "close": 0},
}
MADE_WITH: dict[Role, tuple[str, ...]] = {
    "controller": ("facts", "values"),
    "reference": ("values",),
    "model": ("period_s", "values"),
    "device": ("values",),
}


class PluginTable(Table):
    """Table of a plug-in class; other keys are values for the class."""

    model_config = ConfigDict(extra="allow")

    kind: str
    budget_s: Positive | None = Field(default=None)
    _plugin: Plugin | None = PrivateAttr(default=None)

    @property
    def plugin(self) -> Plugin:
        """The class, once the configuration is loaded."""
        if self._plugin is None:
            raise RuntimeError(f"{self.kind} is not loaded")
        return self._plugin

    def load(self, plugin: Plugin) -> None:
        """Set the class that `kind` names."""
        self._plugin = plugin

    def class_values(self) -> dict[str, object]:
        """The values for the class: all other keys."""
        return dict(self.__pydantic_extra__ or {})


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """Classes that installed packages offer, by name."""
    return {point.name: point for point in entry_points(group=group)}


def kinds(*tables: type[Table]) -> frozenset[str]:
    """All values of `kind` of these tables."""
    return frozenset(k for t in tables for k in get_args(t.model_fields["kind"].annotation))


def kind_tag(role: Role, built_in: frozenset[str]) -> Callable[[object], str]:
    """A discriminator of plug-in tables: they have a ':' in `kind`, or an entry point as `kind`."""

    def tag(table: object) -> str:
        kind = table.get("kind") if isinstance(table, dict) else getattr(table, "kind", None)
        if not isinstance(kind, str) or kind in built_in:
            return "built_in"
        return "own" if ":" in kind or kind in installed(GROUPS[role]) else "built_in"

    return tag


def plugin_tables(tables: object) -> Iterator[tuple[tuple[str, ...], Role, PluginTable]]:
    """Path, role and table of every plug-in in the tables of a run, a rig or a model."""
    for path, role, table in _places(tables):
        if isinstance(table, PluginTable):
            yield path, role, table


def _places(tables: object) -> Iterator[tuple[tuple[str, ...], Role, object]]:
    """Path, role and table of every table that may be a plug-in."""
    roles: tuple[tuple[str, Role], ...] = (
        ("model", "model"), ("plant", "model"), ("controller", "controller"),
        ("reference", "reference"),
    )  # fmt: skip
    for key, role in roles:
        yield (key,), role, getattr(tables, key, None)
    for name, signal in getattr(getattr(tables, "reference", None), "signals", {}).items():
        yield ("reference", "signals", name), "reference", signal
    for name, device in getattr(tables, "devices", {}).items():
        yield ("devices", name), "device", device


def load_plugins(
    tables: object,
    merged: Merged,
    recorded: Mapping[str, str] | None = None,
    classes: Mapping[str, type] | None = None,
) -> None:
    """Load every plug-in class that the tables name.

    Parameters
    ----------
    recorded : source texts of a recording by key, which replace the files; any other file is
        refused
    classes : classes of the program itself by key, instead of those of files

    Raises
    ------
    ConfigError
        A class or its values are invalid; one line for each class with file and line.
    """
    faults = []
    for path, role, table in plugin_tables(tables):
        key = ".".join(path)
        origin = merged.origin((*path, "kind"))
        try:
            source = None
            if recorded is not None and ":" in table.kind:
                source = _recorded(recorded, key)
            cls = (classes or {}).get(key)
            made = _load(table, role, origin, source) if cls is None else _of_class(table, cls)
            _refuse_unfit(made, role)
            table.load(replace(made, values=_values(made.cls, table.class_values())))
        except _WrongValuesError as error:
            faults += [
                one_line(f"{merged.origin((*path, name))}: {key}.{name}{text}")
                for name, text in error.faults
            ]
        except PluginError as error:
            faults.append(one_line(f"{origin}: {key}.kind = '{table.kind}': {error}"))
    if faults:
        raise ConfigError("\n".join(faults))


def _recorded(recorded: Mapping[str, str], key: str) -> str:
    """The source that a recording stores for a key; never reads another file."""
    if key not in recorded:
        raise PluginError("the recording keeps no source of it, and no other file is run for it")
    return recorded[key]


class _WrongValuesError(Exception):
    def __init__(self, faults: list[tuple[str, str]]) -> None:
        self.faults = faults


def _load(table: PluginTable, role: Role, origin: str, recorded: str | None) -> Plugin:
    name, _, class_name = table.kind.partition(":")
    package = ""
    if class_name:
        folder = folder_of(origin)
        module, file, source = _from_file(name, folder, recorded)
    else:
        point = installed(GROUPS[role])[name]
        module, file, source = _from_package(point)
        class_name = point.attr
        package = f"{point.dist.name} {point.dist.version}" if point.dist else point.module
    lines = _lines(source, class_name)
    cls = getattr(module, class_name, None)
    if not isinstance(cls, type):
        classes = ", ".join(_classes(source)) or "none"
        raise PluginError(f"{file}: has no class '{class_name}': it has {classes}")
    return Plugin(table.kind, cls, None, file, source, lines, package)


def kind_of(cls: type) -> str:
    """The `kind` of a class of the program itself, as `kind` names a class in a file."""
    return f"{cls.__module__.rpartition('.')[2]}.py:{cls.__name__}"


def _of_class(table: PluginTable, cls: type) -> Plugin:
    """A class of the program itself: its text is that of its file, or of its notebook's cell."""
    codes = (getattr(member, "__code__", None) for member in vars(cls).values())
    file = next((code.co_filename for code in codes if code is not None), "")
    source = "".join(linecache.getlines(file))
    if not source:
        raise PluginError(
            "its text cannot be read, and a recording keeps it: define it in a file or a "
            "notebook's cell"
        )
    return Plugin(table.kind, cls, None, Path(file), source, _lines(source, cls.__name__), "")


def _from_file(name: str, folder: Path, recorded: str | None) -> tuple[ModuleType, Path, str]:
    if not name.endswith(".py"):
        raise PluginError("name a Python file and a class in it, such as 'mine.py:MyController'")
    file = folder / name
    if recorded is not None:
        file = _kept(recorded, Path(name).name)
        return _executed(str(file), recorded), file, recorded
    try:
        source = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PluginError(f"{file}: no such file beside the one that names it") from None
    except OSError as error:
        raise PluginError(f"{file}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise PluginError(f"{file}: not UTF-8 text") from None
    return _executed(str(file), source), file, source


@cache
def _kept(source: str, name: str) -> Path:
    """A temporary file with this recorded source, deleted when the program ends.

    The program executes the text itself. Tracebacks and debuggers read the file.
    """
    folder = tempfile.TemporaryDirectory(prefix="hil-recorded-")
    _KEPT.append(folder)
    path = Path(folder.name) / name
    path.write_text(source, encoding="utf-8")
    return path


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


@cache
def _executed(file: str, source: str) -> ModuleType:
    """The file as a module; cached, so it is executed only once."""
    name = f"own_{Path(file).stem}_{hashlib.sha256((file + source).encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module  # dataclasses and pydantic resolve annotations there
    try:
        with exit_refused():
            exec(compile(source, file, "exec"), module.__dict__)
    except SyntaxError as error:
        raise PluginError(f"{file}, line {error.lineno}: {error.msg}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        line = next((n for name, n in reversed(_frames(error)) if name == file), None)
        text = what(error)
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and (Path(file).parent / f"{missing}.py").is_file():
            text += ": a recording keeps one file: put all into it, or make a package"
        raise PluginError(f"{file}, line {line or 1}: does not import: {text}") from None
    return module


def _frames(error: BaseException) -> list[tuple[str, int]]:
    return [(f.f_code.co_filename, line) for f, line in walk_tb(error.__traceback__)]


def _from_package(point: EntryPoint) -> tuple[ModuleType, Path, str]:
    where = f"entry point {point.name} = {point.value}"
    try:
        with exit_refused():
            point.load()
        module = sys.modules[point.module]
        return module, Path(inspect.getfile(module)), inspect.getsource(module)
    except (Exception, SystemExit) as error:
        raise PluginError(f"{where}: does not import: {what(error)}") from None


def _classes(source: str) -> list[str]:
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]


def _lines(source: str, class_name: str) -> dict[str, int]:
    """First line of a class (key '') and of each of its methods."""
    lines = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            lines[""] = node.lineno
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    lines[item.name] = item.lineno
    return lines


def _refuse_unfit(plugin: Plugin, role: Role) -> None:
    """Refuse a class with missing methods, or methods with wrong parameters."""
    wanted = {**METHODS[role], "__init__": len(MADE_WITH[role])}
    for method, n in wanted.items():
        function = getattr(plugin.cls, method, None)
        parameters = ", ".join(("self", *_parameters(role, method)))
        if not callable(function) or function is object.__init__:
            plugin.refuse("", f"has no method {method}({parameters})")
        try:
            inspect.signature(function).bind(plugin.cls, *[None] * n)
        except TypeError:
            plugin.refuse(method, f"{method} must take ({parameters})")
        except ValueError:
            continue  # a compiled class without a known signature


def _parameters(role: Role, method: str) -> tuple[str, ...]:
    if method == "__init__":
        return MADE_WITH[role]
    if method == "step":
        return ("now",) if role == "controller" else ("drive", "inputs")
    return ("t_s",) * METHODS[role][method]


def _values(cls: type, entries: dict[str, object]) -> object:
    """The values as an instance of the class's `Values`; a dict if the class has none."""
    table = getattr(cls, "Values", None)
    if not (isinstance(table, type) and issubclass(table, pydantic.BaseModel)):
        return entries
    faults = []
    if table.model_config.get("extra") != "allow":
        known = [info.alias or name for name, info in table.model_fields.items()]
        names = ", ".join(known) or "none"
        faults = [(key, f": unknown key: {cls.__name__} has {names}") for key in entries
                 if key not in known]  # fmt: skip
    try:
        values = table.model_validate(entries, strict=True)
    except pydantic.ValidationError as error:
        details = error.errors(include_url=False)
        faults += [_wrong(detail) for detail in details if detail["type"] != "extra_forbidden"]
    if faults:
        raise _WrongValuesError(faults)
    return values


def _wrong(detail: ErrorDetails) -> tuple[str, str]:
    name = ".".join(map(str, detail["loc"])) or "values"
    if detail["type"] == "missing":
        return name, ": missing: add it"
    text = detail["msg"].replace("Input should", "must")
    return name, f" = {detail['input']!r}: {text[0].lower()}{text[1:]}"
