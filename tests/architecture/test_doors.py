"""A rig is connected where it is also made safe and closed, and nowhere else."""

import ast
from pathlib import Path

DOORS = {"hil/runs/opened.py", "hil/runs/assembly.py"}  # with stop signals; simulated, before a run


def calls(path, method):
    """Names of the objects whose `method` this module calls, such as `pipeline.rig`."""
    for node in ast.walk(ast.parse(path.read_text())):
        call = node.func if isinstance(node, ast.Call) else None
        if isinstance(call, ast.Attribute) and call.attr == method:
            yield ast.unparse(call.value)


def test_a_rig_is_connected_only_at_its_doors(pytestconfig):
    root = pytestconfig.rootpath
    modules = {str(p.relative_to(root)): p for p in Path(root / "hil").rglob("*.py")}
    opens = {name: [*calls(path, "opened")] for name, path in modules.items()}
    assert {name for name, found in opens.items() if found} == DOORS
    alone = {name for name, p in modules.items() if any("rig" in x for x in calls(p, "open"))}
    assert alone == set()
