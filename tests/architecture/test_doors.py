"""A rig is opened, and the loop is run, at one place."""

import ast

TRIAL = "hil/runs/trial.py"


def calls(path, method):
    """Names of the objects whose `method` this module calls, such as `pipeline.rig`."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if f".{method}(" in text else ():
        call = node.func if isinstance(node, ast.Call) else None
        if isinstance(call, ast.Attribute) and call.attr == method:
            yield ast.unparse(call.value)


def test_only_a_trial_runs_the_loop(modules):
    assert {name for name, p in modules.items() if "loop" in calls(p, "run")} == {TRIAL}


def test_a_rig_is_connected_only_where_it_is_also_made_safe_and_closed(modules):
    assert {name for name, p in modules.items() if [*calls(p, "opened")]} == {"hil/runs/opened.py"}
    alone = [
        name
        for name, p in modules.items()
        if {"rig", "pipeline.rig", "self.rig"} & {*calls(p, "open")}
    ]
    assert alone == []
    using = {name for name, p in modules.items() if "import opened" in p.read_text()}
    assert using == {TRIAL}
