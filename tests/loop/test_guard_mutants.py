"""Would the tests of the guard notice if a limit of it did not work?

Every comparison in the compiled checks is put out of action in turn, once never true and once
always true; some test of tests/loop/test_guard.py or test_heat_budget.py must fail for each.
"""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUARD = ROOT / "hil" / "loop" / "guard.py"
TESTS = [str(ROOT / "tests/loop" / name) for name in ("test_guard.py", "test_heat_budget.py")]
CHECKS = (
    "_in_channels",
    "_in_channel",
    "_of_devices",
    "_heat",
    "_in_cells",
    "_is_late",
    "_lasting",
)


class _Put(ast.NodeTransformer):
    """Puts a constant in the place of the n-th comparison of the checks."""

    def __init__(self, n, value):
        self._left, self._value = n, value
        self._inside = False
        self.line = 0

    def visit_FunctionDef(self, node):
        outside, self._inside = self._inside, self._inside or node.name in CHECKS
        self.generic_visit(node)
        self._inside = outside
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if not self._inside:
            return node
        self._left -= 1
        if self._left != -1:
            return node
        self.line = node.lineno
        return ast.copy_location(ast.Constant(self._value), node)


def n_comparisons():
    tree = ast.parse(GUARD.read_text())
    checks = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name in CHECKS]
    return sum(isinstance(node, ast.Compare) for check in checks for node in ast.walk(check))


def notices(folder, n, value):
    """Exit code of the tests with this comparison made constant; the line it stands in."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "hil", folder / "hil", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "firmware").symlink_to(ROOT / "firmware")
    mutant = _Put(n, value)
    text = ast.unparse(ast.fix_missing_locations(mutant.visit(ast.parse(GUARD.read_text()))))
    (folder / GUARD.relative_to(ROOT)).write_text(text)
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_DISABLE_JIT": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--rootdir"]
    words += [str(ROOT), "-c", str(ROOT / "pyproject.toml"), *TESTS]
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, check=False)
    return done.returncode, mutant.line


@pytest.mark.slow
def test_the_guard_as_it_is_passes_its_tests_without_compiling(tmp_path):
    assert notices(tmp_path / "whole", 10**6, None) == (0, 0)


@pytest.mark.slow
def test_every_mutant_of_the_checks_is_noticed(tmp_path):
    survivors = []
    for n in range(n_comparisons()):
        for value in (False, True):
            code, line = notices(tmp_path / "mutant", n, value)
            if code != 1:
                survivors.append((line, value))
    assert survivors == []
