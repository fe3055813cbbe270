"""ARCHITECTURE.md is short, and what it names exists."""

import ast
import importlib.util
import re

import pytest

NAMED = re.compile(r"`([A-Z]?\w*(?:\.\w+)?)(?:\(\))?`[ \n]?\(?,?[ \n]?`([\w/]+\.py)`\)?")
FILE = re.compile(r"`((?:[\w.]+/)+[\w.]*|[\w.]+\.(?:py|md|toml|c|h))`")
CALL = re.compile(r"`([\w.]+)\(\)`")


@pytest.fixture(scope="module")
def page(pytestconfig):
    return (pytestconfig.rootpath / "ARCHITECTURE.md").read_text(encoding="utf-8")


def definitions(path):
    """Functions, classes and `Class.method` of a module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{f.name}" for f in node.body
                          if isinstance(f, ast.FunctionDef)}  # fmt: skip
    return found


def test_the_page_has_at_most_150_lines_of_120_columns(page):
    lines = page.splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 120 and line[0] != "|"] == []


def test_every_function_and_class_stands_in_the_file_beside_it(page, pytestconfig):
    named = NAMED.findall(page)
    assert len(named) > 40
    missing = [(name, file) for name, file in named
               if name not in definitions(pytestconfig.rootpath / file)]  # fmt: skip
    assert missing == []


def test_every_function_names_its_file(page):
    assert [name for name in CALL.findall(page) if name not in dict(NAMED.findall(page))] == []


def test_every_file_and_folder_exists(page, pytestconfig):
    files = [name for name in FILE.findall(page) if "KIND" not in name]
    assert len(files) > 40
    places = ("", "gui/hil_gui", "hil/devices", "firmware")
    root = pytestconfig.rootpath
    assert [f for f in files if not any((root / p / f).exists() for p in places)] == []


def test_every_folder_of_hil_is_listed(page, pytestconfig):
    folders = {
        f"hil/{p.parent.name}/" for p in (pytestconfig.rootpath / "hil").glob("*/__init__.py")
    }
    assert folders - set(FILE.findall(page)) == set()


# What stands where the page says that more of it is added.
EXAMPLES = {
    "a kind of system": ["pantograph", "leg"],
    "a device": ["labjack", "cell_board", "supply"],
    "a calibration": ["damping", "spring_constants"],
    "a message to the board": ["set_mask"],
    "a limit": ["force_high", "cell_on_too_long"],
}


def text_of(name, path):
    """The text of a definition, or of the whole file without a name."""
    text = path.read_text(encoding="utf-8")
    if not name:
        return text
    for node in ast.walk(ast.parse(text)):
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if name in (getattr(node, "name", ""), *(ast.unparse(target) for target in targets)):
            return ast.get_source_segment(text, node)
    raise AssertionError(f"{path} has no {name}")


@pytest.mark.parametrize("what", EXAMPLES)
def test_what_is_there_stands_where_more_of_it_is_added(what, page, pytestconfig):
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {what} |")]
    name, file = re.findall(r"(?:`(\w+)(?:\(\))?` (?:in |\())?`([\w/]+\.\w+)`", row)[-1]
    if what == "a message to the board":
        name, file = "", "firmware/core/protocol.h"
    text = text_of(name, pytestconfig.rootpath / file)
    assert [example for example in EXAMPLES[what] if example not in text] == []


def test_the_table_of_imports_is_todays(pytestconfig):
    script = pytestconfig.rootpath / "scripts/import_graph.py"
    spec = importlib.util.spec_from_file_location("import_graph", script)
    graph = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graph)
    today = graph.drawing()
    assert graph.SVG.read_text(encoding="utf-8") == today, "run python scripts/import_graph.py"
    assert 'class="upward"' not in today
