"""Names of values are nouns: a participle does not say what a value is."""

import ast

import pytest

NO_NOUNS = {
    "asked", "brought", "came", "found", "given", "gone", "got", "meant", "own", "said", "sent",
    "there",
}  # fmt: skip


def bound(tree):
    """Each (line, name) that a module gives: parameters, values, attributes, functions, classes."""
    for node in ast.walk(tree):
        reads = isinstance(getattr(node, "ctx", None), ast.Load)
        for key in () if reads else ("arg", "id", "attr", "name", "asname"):
            if isinstance(name := getattr(node, key, None), str):
                yield node.lineno, name


def no_nouns(file):
    names = bound(ast.parse(file.read_text()))
    return [(line, name) for line, name in names if name.strip("_").lower() in NO_NOUNS]


@pytest.mark.parametrize(
    "source",
    [
        "def f(found):\n    pass",
        "def f(*, given=1):\n    pass",
        "lambda asked: 1",
        "OWN = 1",
        "self._said = 1",
        "for there in (): pass",
        "class Box:\n    meant: int = 0",
        "def said(): pass",
        "class Found: pass",
        "import a as own",
    ],
)
def test_a_participle_is_noticed_wherever_a_name_is_given(source, tmp_path):
    file = tmp_path / "module.py"
    file.write_text(source)
    assert len(no_nouns(file)) == 1


def test_no_name_is_a_participle(modules, pytestconfig):
    files = [*modules.values(), *(pytestconfig.rootpath / "simdaq").rglob("*.py")]
    assert [f"{file}:{line} {name}" for file in files for line, name in no_nouns(file)] == []
