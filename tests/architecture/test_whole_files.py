"""A file that a user asks for is written under another name until it is complete."""

import ast
from collections import Counter

WRITERS = {
    "copyfile", "savefig", "savemat", "savetxt", "savez", "to_csv", "to_netcdf", "write_bytes",
    "write_table", "write_text", "write_zip",
}  # fmt: skip
GIVEN = {"part", "part_file", "buffer"}
# Files that go when the program ends, the first bytes of a recording.
OTHERS = {
    "gui/hil_gui/commissioning.py": 1,
    "hil/bench/long.py": 1,
    "hil/plugins/load.py": 1,
    "hil/record/recorder.py": 1,
    "hil/reports/crate.py": 1,
    "hil/runs/catalogue/index.py": 1,
    "hil/systems/array/fmu/export.py": 3,
}


def written(call):
    """What a call to one of WRITERS writes to."""
    if call.func.attr in ("write_bytes", "write_text"):
        return ast.unparse(call.func.value)
    return ast.unparse(call.args[call.func.attr in ("copyfile", "write_table")])


def test_every_export_is_written_to_a_part_or_to_memory(modules):
    found = Counter()
    for name, path in modules.items():
        if name.startswith("gui/window_"):  # pictures of the documentation
            continue
        text = path.read_text()
        for node in (
            ast.walk(ast.parse(text)) if any(f".{name}(" in text for name in WRITERS) else ()
        ):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found[name] += node.func.attr in WRITERS and written(node) not in GIVEN
    assert +found == OTHERS
