"""Break the guard in every place, one at a time: some check must notice each.

So too what sets a cell apart: each of its steps is left out once, each of its questions reversed.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from firmware.boards import FIRMWARE

# what a check may be broken into, and how
OPERATORS = {">": (">=", "<"), "<": ("<=", ">"), ">=": (">", "<"), "&&": ("||",), "||": ("&&",)}
TOKEN = re.compile(r"(?<= )(>=|>|<|&&|\|\|)(?= )")
FOUND = re.compile(r"FAULT_(\w+)(?=;)|(?<=lasts \? )FAULT_\w+")


def mutants(source: str):
    """Line, change and text of every mutant: operators turned, faults found but not reported."""
    places = [(m, new) for m in TOKEN.finditer(source) for new in OPERATORS[m[0]]] + [
        (m, "0") for m in FOUND.finditer(source)
    ]
    for match, new in places:
        line = source.count("\n", 0, match.start()) + 1
        text = source[: match.start()] + new + source[match.end() :]
        yield line, f"{match[0]} -> {new}", text


APART = ("void board_forget_open", "void set_apart", "uint16_t faults_of")
STATEMENT = re.compile(r"^ +(?!return|uint\d+_t)[^\n{}]+;$", re.MULTILINE)
IN_APART = [
    (STATEMENT, ";"),
    (re.compile("=="), "!="),
    (re.compile(r"return found\b.*;"), "return 0;"),
]
# where others meet it; one place each
ELSEWHERE = [
    ("core/board.c", "            *told = 0;\n", ""),
    ("core/board.c", "(board->cells_open & bit) != 0) {", "false) {"),
    ("core/command.c", "    board_forget_open(board);\n", ""),
    ("core/command.c", "answer.cells_open = board->cells_open;", "answer.cells_open = 0;"),
]


def mutants_of_setting_apart(board: str):
    """File, line, change and text of every mutant."""
    for name in APART:
        start = board.index(name)
        end = board.index("\n}\n", start)
        for pattern, new in IN_APART:
            for match in pattern.finditer(board, start, end):
                text = board[: match.start()] + new + board[match.end() :]
                line = board.count("\n", 0, match.start()) + 1
                yield "core/board.c", line, f"{match[0].strip()} -> {new}", text
    for file, old, new in ELSEWHERE:
        source = (FIRMWARE / file).read_text()
        assert old in source
        at = source.index(old)
        line = source.count("\n", 0, at) + 1
        yield file, line, f"{old.strip()} -> {new}", source.replace(old, new, 1)


RUN_CHECKS = """
import sys
sys.path.insert(0, sys.argv[2])
from firmware.boards import NativeBoard, load
from firmware.limit_checks import NATIVE_CHECKS
lib = load(sys.argv[1])
for check in NATIVE_CHECKS:
    try:
        check(NativeBoard(lib))
    except AssertionError:
        sys.exit(9)
"""


def _survives(source: str, folder: Path, file: str = "core/guard.c") -> bool:
    """Whether all checks still pass; a mutant that does not compile or hangs has been noticed."""
    whole = (folder / file).read_text()
    (folder / file).write_text(source)
    try:
        return _passes(folder)
    finally:
        (folder / file).write_text(whole)


def _passes(folder: Path) -> bool:
    library, tests = folder / "build/libboard.so", FIRMWARE.parent / "tests"
    make = ["make", "-B", "-C", folder, "CFLAGS=-O1", "build/libboard.so"]
    if subprocess.run(make, capture_output=True).returncode != 0:
        return False
    try:
        done = subprocess.run(
            [sys.executable, "-c", RUN_CHECKS, library, tests],
            timeout=60,
            env=os.environ | {"PYTHONPATH": str(FIRMWARE.parent)},
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return False
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 0


def _copied(tmp_path) -> None:
    for part in ("core", "port"):
        shutil.copytree(FIRMWARE / part, tmp_path / part)
    shutil.copy(FIRMWARE / "Makefile", tmp_path)


def _survivors(tmp_path, every: int) -> list[str]:
    _copied(tmp_path)
    whole = (FIRMWARE / "core/guard.c").read_text()
    assert _survives(whole, tmp_path)
    found = list(mutants(whole))
    assert len(found) > 40
    return [
        f"guard.c line {line}: {change}"
        for line, change, text in found[::every]
        if _survives(text, tmp_path)
    ]


def test_the_checks_notice_some_mutants_of_the_guard(tmp_path):
    assert _survivors(tmp_path, every=12) == []


@pytest.mark.campaign
def test_the_checks_notice_every_mutant_of_the_guard(tmp_path):
    assert _survivors(tmp_path, every=1) == []


def _survivors_apart(tmp_path, every: int) -> list[str]:
    _copied(tmp_path)
    found = list(mutants_of_setting_apart((FIRMWARE / "core/board.c").read_text()))
    assert len(found) > 12
    return [
        f"{file} line {line}: {change}"
        for file, line, change, text in found[::every]
        if _survives(text, tmp_path, file)
    ]


def test_the_checks_notice_some_mutants_of_setting_a_cell_apart(tmp_path):
    assert _survivors_apart(tmp_path, every=7) == []


@pytest.mark.campaign
def test_the_checks_notice_every_mutant_of_setting_a_cell_apart(tmp_path):
    assert _survivors_apart(tmp_path, every=1) == []
