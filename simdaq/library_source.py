"""C source of the simulated libnidaqmx: every function of the API, each led into Python.

cffi's embedding mode makes a function `simdaq_...` in Python for every `DAQmx...`, which calls it
from C. Functions with a variable number of arguments cannot be written in Python and are unpacked
here: `Get...Attribute` always has one pointer and a size, `Set...Attribute` a double, a whole
number or a pointer, by the attribute's type. A Ctrl-C that falls into the Python of a call cannot
leave it as an exception; it is raised again as a signal when the call is over.
"""

from __future__ import annotations

from simdaq.package_api import Function, PackageApi

SONAME = "libnidaqmx.so.1"
INTERRUPTED = 0x7FFFFFFF  # answered by Python alone, never by the library
MODULE = "_hil_simulated_nidaqmx"
# Fixed arguments before the attribute: a task, a name.
OWNERS = {
    "Buffer": ("buffer", True, False),
    "CalInfo": ("cal_info", False, True),
    "Chan": ("chan", True, True),
    "Device": ("device", False, True),
    "ExportedSignal": ("exported_signal", True, False),
    "PersistedChan": ("persisted_chan", False, True),
    "PersistedScale": ("persisted_scale", False, True),
    "PersistedTask": ("persisted_task", False, True),
    "PhysicalChan": ("physical_chan", False, True),
    "Read": ("read", True, False),
    "Scale": ("scale", False, True),
    "SystemInfo": ("system_info", False, False),
    "Task": ("task", True, False),
    "Timing": ("timing", True, False),
    "TimingEx": ("timing", True, True),
    "Trig": ("trig", True, False),
    "Watchdog": ("watchdog", True, True),
    "Write": ("write", True, False),
}
OWNER_NAMES = sorted({owner for owner, _, _ in OWNERS.values()})
# A device, then for every channel its name and these, then NULL; p: pointer, d: double, i: int32.
LISTS = {
    "GetDigitalPowerUpStates": "p", "SetDigitalPowerUpStates": "i", "SetAnalogPowerUpStates": "di",
}  # fmt: skip
ENTRY = {"p": ("value", "void *"), "d": ("real", "double"), "i": ("whole", "int32_t")}
TYPES = "typedef struct { uint64_t lsb; int64_t msb; } daqmx_time;\n"
TYPES += "typedef struct { char *name; void *value; double real; int32_t whole; } daqmx_entry;\n"
INNER = """
int32_t simdaq_get(int32_t owner, void *task, char *name, int32_t number, void *value,
                   uint32_t size);
int32_t simdaq_set(int32_t owner, void *task, char *name, int32_t number, double real,
                   uint64_t whole, uint64_t size);
int32_t simdaq_listed(char *function, char *device, uint32_t n, daqmx_entry *entries);
int32_t simdaq_unsupported(char *function);
"""


def embedding_api(api: PackageApi) -> str:
    """Functions that Python answers."""
    lines = [TYPES, INNER]
    for function in api.functions:
        if not function.variadic:
            lines.append(f"int32_t {inner_name(function)}({_types(function)});")
    return "\n".join(lines)


def inner_name(function: Function) -> str:
    """Of the Python function behind a C function."""
    return f"simdaq_{function.c_name}"


def _types(function: Function) -> str:
    return ", ".join(a.c_type for a in function.arguments) or "void"


def _wrapped(function: Function) -> str:
    parameters = [f"{a.c_type} a{i}" for i, a in enumerate(function.arguments)]
    passed = ", ".join(f"a{i}" for i in range(len(function.arguments)))
    inner = inner_name(function)
    return (
        f"extern int32_t {inner}({_types(function)});\n"
        f"CFFI_DLLEXPORT int32_t {function.c_name}({', '.join(parameters) or 'void'})\n"
        f"{{\n    return answered({inner}({passed}));\n}}"
    )


def c_source(api: PackageApi) -> str:
    """Functions that C answers."""
    cases = sorted(
        {
            (OWNER_NAMES.index(a.owner) << 16) | a.number
            for a in api.attributes.values()
            if a.type == "double" and a.owner in OWNER_NAMES
        }
    )
    lines = [
        "#include <signal.h>", "#include <stdarg.h>", "#include <stdint.h>",
        "#include <stdlib.h>", TYPES,
        "static int32_t answered(int32_t code)", "{", f"    if (code != {INTERRUPTED})",
        "        return code;", "    raise(SIGINT);", "    return 0;", "}",
        *(f"extern {line}" for line in _statements(INNER)),
        "static int is_real(int32_t owner, int32_t number)", "{",
        "    switch ((owner << 16) | number) {",
        *(f"    case {case}:" for case in cases),
        "        return 1;", "    default:", "        return 0;", "    }", "}",
    ]  # fmt: skip
    for function in api.functions:
        lines.append(_variadic(function.c_name) if function.variadic else _wrapped(function))
    return "\n".join(lines)


def _statements(text: str) -> list[str]:
    return [" ".join(s.split()) + ";" for s in text.split(";") if s.strip()]


def _variadic(c_name: str) -> str:
    stem = c_name.removeprefix("DAQmx")
    verb, rest = stem[:3], stem[3:]
    if stem in LISTS:
        return _listed(c_name, LISTS[stem])
    owner = OWNERS.get(rest.replace("Attribute", "")) if "Attribute" in rest else None
    if owner is None or verb not in ("Get", "Set"):
        return (
            f"CFFI_DLLEXPORT int32_t {c_name}(void *first, ...)\n{{\n"
            f'    (void)first;\n    return simdaq_unsupported("{c_name}");\n}}'
        )
    name, has_task, has_name = owner
    fixed = (["void *task"] if has_task else []) + (["char *name"] if has_name else [])
    fixed.append("int32_t number")
    task, label = "task" if has_task else "0", "name" if has_name else "0"
    index = OWNER_NAMES.index(name)
    lines = [f"CFFI_DLLEXPORT int32_t {c_name}({', '.join(fixed)}, ...)", "{", "    va_list rest;",
             "    va_start(rest, number);"]  # fmt: skip
    if verb == "Get":
        lines += [
            "    void *value = va_arg(rest, void *);",
            "    uint32_t size = va_arg(rest, uint32_t);",
            "    va_end(rest);",
            f"    return answered(simdaq_get({index}, {task}, {label}, number, value, size));",
        ]
    else:
        lines += [
            "    double real = 0.0;",
            "    uint64_t whole = 0;",
            f"    if (is_real({index}, number))",
            "        real = va_arg(rest, double);",
            "    else",
            "        whole = va_arg(rest, uint64_t);",
            # The size of an array, or the second half of a time stamp passed by value.
            "    uint64_t size = va_arg(rest, uint64_t);",
            "    va_end(rest);",
            f"    return answered(simdaq_set({index}, {task}, {label}, number, real, whole,",
            "                               size));",
        ]
    return "\n".join([*lines, "}"])


def _listed(c_name: str, fields: str) -> str:
    """A function with a list of channels that NULL ends."""
    skip = "".join(f" (void)va_arg(count, {ENTRY[f][1]});" for f in fields)
    take = [f"        entries[i].{ENTRY[f][0]} = va_arg(rest, {ENTRY[f][1]});" for f in fields]
    return "\n".join([
        f"CFFI_DLLEXPORT int32_t {c_name}(char *device, ...)", "{",
        "    va_list rest, count;",
        "    uint32_t n = 0;",
        "    int32_t code;",
        "    daqmx_entry *entries;",
        "    va_start(rest, device);",
        "    va_copy(count, rest);",
        f"    while (va_arg(count, char *)) {{ n++;{skip} }}",
        "    va_end(count);",
        "    entries = calloc(n + 1, sizeof *entries);",
        "    for (uint32_t i = 0; i < n; i++) {",
        "        entries[i].name = va_arg(rest, char *);",
        *take,
        "    }",
        "    va_end(rest);",
        f'    code = simdaq_listed("{c_name}", device, n, entries);',
        "    free(entries);",
        "    return answered(code);", "}",
    ])  # fmt: skip
