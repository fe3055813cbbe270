"""Break the guard in every place, one at a time: some check must notice each."""

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


def _survives(source: str, folder: Path) -> bool:
    """Whether all checks still pass; a mutant that does not compile or hangs has been noticed."""
    (folder / "core/guard.c").write_text(source)
    library, tests = folder / "build/libboard.so", FIRMWARE.parent / "tests"
    make = ["make", "-C", folder, "CFLAGS=-O1", "build/libboard.so"]
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


def _survivors(tmp_path, every: int) -> list[str]:
    for part in ("core", "port"):
        shutil.copytree(FIRMWARE / part, tmp_path / part)
    shutil.copy(FIRMWARE / "Makefile", tmp_path)
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
