"""What the installed nidaqmx package calls: every C function and every attribute it looks up.

The package is read as text, never imported, so that the simulated library answers exactly the
functions of the version at hand. A C function is described by how the package calls it:
`Argument.role` is `in`, `in_array`, `out`, `out_array`, `size` or `other`.
"""

import ast
import json
import re
from dataclasses import asdict, astuple, dataclass
from importlib.util import find_spec
from pathlib import Path

from simdaq.errors import SetupError

C_TYPES = {
    "task_handle": "void *",
    "TaskHandle": "void *",
    "ctypes_byte_str": "char *",
    "c_char_p": "char *",
    "c_int": "int32_t",
    "c_int32": "int32_t",
    "c_uint": "uint32_t",
    "c_uint32": "uint32_t",
    "c_bool32": "uint32_t",
    "c_double": "double",
    "c_ulonglong": "uint64_t",
    "AbsoluteTime": "daqmx_time",
}
ATTRIBUTE_FOLDERS = ("task", "system", "scale.py")


@dataclass(frozen=True)
class Argument:
    """One argument of a C function: `name` as in the package, its C type, its role.

    `element` is the type behind a pointer: of an array as NumPy calls it, of an output as ctypes
    does; empty where the package leaves it open.
    """

    name: str
    c_type: str
    role: str
    element: str = ""


@dataclass(frozen=True)
class Function:
    """A C function; `method` is the package's method that calls it."""

    c_name: str
    method: str
    arguments: tuple[Argument, ...]
    variadic: bool


@dataclass(frozen=True)
class Attribute:
    """A property; `owner` is chan, timing, device and so on, `type` as in the package's methods.

    `name` is the package's; of a trigger with the trigger before it (start_dig_edge_src), of a
    device's lists of physical channels the list's (AI, DILines).
    """

    owner: str
    number: int
    type: str
    name: str


def package_folder() -> Path:
    """Where the unmodified package lies.

    Raises
    ------
    SetupError
        It is not installed.
    """
    spec = find_spec("nidaqmx")
    if spec is None or spec.origin is None:
        raise SetupError("NI-DAQmx needs an extra: pip install 'hil-arrays[daq]'")
    return Path(spec.origin).parent


def _functions(tree: ast.Module) -> list[Function]:
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    body = next(c for c in classes if c.name == "LibraryInterpreter").body
    functions: dict[str, Function] = {}
    for method in (n for n in body if isinstance(n, ast.FunctionDef)):
        function = _function(method)
        if function is not None:
            kept = functions.get(function.c_name)
            if kept is None or len(kept.arguments) < len(function.arguments):
                functions[function.c_name] = function
    return [functions[name] for name in sorted(functions)]


def _function(method: ast.FunctionDef) -> Function | None:
    name, convention, types, call = "", "", None, None
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and node.attr.startswith("DAQmx"):
            name = node.attr
            convention = node.value.attr if isinstance(node.value, ast.Attribute) else ""
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "c_func.argtypes":
            types = node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("c_func", "cfunc"):
            call = call or node
    if not name:
        return None
    listed = types.elts if isinstance(types, ast.List) else []
    # Loaded as "cdll", and called with more than its fixed arguments.
    whole = call is not None and len(listed) == len(call.args)
    variadic = convention == "cdll" and not whole
    if variadic or call is None:
        return Function(name, method.name, (), variadic)
    parameters = [a.arg for a in method.args.args]
    outputs = {
        ast.unparse(node.targets[0]): ast.unparse(node.value.func).split(".")[-1]
        for node in ast.walk(method)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    }
    arguments = tuple(
        _argument(type_, value, parameters, outputs)
        for type_, value in zip(listed, call.args, strict=True)
    )
    return Function(name, method.name, arguments, variadic)


def _argument(
    type_: ast.expr, value: ast.expr, parameters: list[str], outputs: dict[str, str]
) -> Argument:
    text = ast.unparse(type_)
    written = ast.unparse(value)
    name = value.id if isinstance(value, ast.Name) else written
    if isinstance(value, ast.Call) and written.startswith("ctypes.byref("):
        output = written[len("ctypes.byref(") : -1]
        return Argument(output, "void *", "out", outputs.get(output, ""))
    if "wrapped_ndpointer" in text:
        writable = "'W'" in text or '"W"' in text
        element = re.search(r"dtype=(?:numpy\.)?(\w+)[,)]", text)
        role = "out_array" if writable else "in_array"
        return Argument(name, "void *", role, element.group(1) if element else "")
    c_type = C_TYPES.get(text.split(".")[-1], "void *")
    if written.startswith("len(") or written.endswith((".size", ".nbytes")):
        return Argument(written, c_type, "size")
    known = name in parameters and c_type != "void *"
    is_handle = "task_handle" in text or "TaskHandle" in text
    if known or is_handle:
        return Argument(name, c_type, "in")
    if written.startswith("AbsoluteTime.from_datetime"):
        return Argument(written[len("AbsoluteTime.from_datetime(") : -1], c_type, "in")
    return Argument(name, c_type, "other")


def _attributes(tree: ast.Module, prefix: str) -> list[Attribute]:
    attributes = []
    for owner in (n for n in tree.body if isinstance(n, ast.ClassDef)):
        for function in (n for n in owner.body if isinstance(n, ast.FunctionDef)):
            for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
                name = function.name
                if name == "channel_names" and owner.name != "ChannelCollection":
                    name = owner.name.removesuffix("Collection").removesuffix("PhysicalChannel")
                attribute = _attribute(call, prefix + name)
                attributes += [attribute] if attribute else []
    return attributes


def _attribute(call: ast.Call, name: str) -> Attribute | None:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    owner, middle, type_ = method.partition("_attribute_")
    numbers = [
        a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, int)
    ]
    if not middle or not numbers or owner[:4] not in ("get_", "set_"):
        return None
    return Attribute(owner[4:], numbers[0], type_.removeprefix("ex_"), name)


@dataclass(frozen=True)
class PackageApi:
    """All of it; `attributes` by owner and number."""

    functions: tuple[Function, ...]
    attributes: dict[tuple[str, int], Attribute]


def scan(folder: Path) -> PackageApi:
    """Read the package in this folder; about a second."""
    functions = _functions(ast.parse((folder / "_library_interpreter.py").read_text()))
    files: list[Path] = []
    for name in ATTRIBUTE_FOLDERS:
        place = folder / name
        files += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    attributes = {}
    for file in files:
        trigger = file.stem.strip("_").removesuffix("_trigger")
        prefix = f"{trigger}_" if file.parent.name == "triggering" else ""
        for attribute in _attributes(ast.parse(file.read_text()), prefix):
            attributes[attribute.owner, attribute.number] = attribute
    return PackageApi(tuple(functions), attributes)


def to_json(api: PackageApi) -> str:
    """To be kept, for a scan takes some tenths of a second."""
    functions = [asdict(f) for f in api.functions]
    return json.dumps([functions, [astuple(a) for a in api.attributes.values()]])


def from_json(text: str) -> PackageApi:
    functions, attributes = json.loads(text)
    for function in functions:
        function["arguments"] = tuple(Argument(**a) for a in function["arguments"])
    records = [Attribute(*a) for a in attributes]
    return PackageApi(
        tuple(Function(**f) for f in functions), {(a.owner, a.number): a for a in records}
    )
