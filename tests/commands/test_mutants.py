"""./mutants: its answer to a wrong name, what it changes, and its list of equivalents."""

import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import mutants  # noqa: E402  its folder is no package


def test_an_unknown_module_is_one_line_with_those_that_there_are(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["./mutants", "states", "nothing"])
    assert mutants.main() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("./mutants: no module 'nothing': choose from ")
    assert "guard" in line


def test_a_missing_tool_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["./mutants", "states"])
    monkeypatch.setattr(mutants.importlib.util, "find_spec", lambda name: None)
    assert mutants.main() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("./mutants: cosmic_ray is not installed: ")


def test_every_module_has_its_files_and_its_tests():
    known, operators = mutants.modules()
    assert len(operators) == len(set(operators))
    for module in known.values():
        assert module.files
        assert module.tests
        for path in (*module.files, *module.tests):
            assert (ROOT / path).exists(), path


def test_every_change_by_hand_has_one_place():
    changes = [change for module in mutants.modules()[0].values() for change in module.changes]
    assert changes
    for file, old, new in changes:
        assert (ROOT / file).read_text(encoding="utf-8").count(old) == 1, (file, old)
        assert old != new


def test_every_equivalent_mutant_is_of_a_line_that_is_still_there():
    entries = tomllib.loads(mutants.EQUIVALENT.read_text())["equivalent"]
    places = [(e["file"], e["line"], e.get("mutant")) for e in entries]
    assert len(set(places)) == len(places)
    for entry in entries:
        lines = " ".join(line.strip() for line in (ROOT / entry["file"]).read_text().splitlines())
        assert entry["line"] in lines, entry
        assert entry["line"] != entry.get("mutant")
        assert len(entry["reason"]) > 10


SOURCE = """
def f(x: int | None, *, low, high):
    if not low <= abs(x) <= high and low:
        raise ValueError
    self.x = min(x, high)
    y = x + 1
    return y
"""
CHANGED = {
    "LeaveOut": {"pass"},
    "Unlimited": {"self.x = (x)", "if not low <= (x) <= high and low:"},
    "OneSided": {
        "if not abs(x) <= high and low:", "if not low <= abs(x) and low:", "if low:",
        "if not low <= abs(x) <= high:",
    },
    "NumberReplacer": {"y = x + 2", "y = x + 0"},
    "ReplaceBinaryOperator_Add_Sub": {"y = x - 1"},
}  # fmt: skip


@pytest.mark.parametrize("operator", CHANGED)
def test_a_mutant_is_one_change_that_still_parses(operator, tmp_path, monkeypatch):
    (tmp_path / "f.py").write_text(SOURCE)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    made = list(mutants.mutants_of_python("f.py", mutants.modules()[1]))
    for mutant in made:
        compile(mutant.text, "f.py", "exec")
        assert mutant.diff[0] in SOURCE.replace("    ", "")
    assert {m.diff[1].strip() for m in made if m.operator == operator} == CHANGED[operator]
    assert not any("int" in mutant.diff[0] for mutant in made)  # annotations run nowhere
