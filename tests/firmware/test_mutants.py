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


APART = ("void board_forget_open", "void isolate", "uint16_t board_faults_of")
STATEMENT = re.compile(r"^ +(?!return|uint\d+_t)[^\n{}]+;$", re.MULTILINE)
IN_APART = [
    (STATEMENT, ";"),
    (re.compile("=="), "!="),
    (re.compile(r"return found\b.*;"), "return 0;"),
]
# where others meet it; one place each
ELSEWHERE = [
    ("core/board.c", "            *duty = 0;\n", "            ;\n"),
    ("core/board.c", "if ((board->cells_open & bit) != 0)", "if (false)"),
    ("core/board.c", "    if (board->cells_open != 0)\n", "    if (false)\n"),
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


# what counts heat, keeps streaks and watches gates: a place each
COUNTED = [
    ("core/cell.c", "        cell->on_since_ms = now_ms;", "cell->streak[CHECK_HIGH] = 0;"),
    ("core/cell.c", "    cell->just_set = SAMPLES_IN_FLIGHT;\n", ""),
    ("core/cell.c", "    heat_cool(&cell->heat, law, now_ticks);\n    heat_add(", "    heat_add("),
    ("core/cell.c", "    heat_add(&cell->heat, law, cell->on_counts);\n", ""),
    ("core/heat.c", "counts + 1u", "counts / 2u"),
    ("core/heat.c", "    set_sum(heat, heat->cA2ms - loss);", "    (void)loss;"),
    (
        "core/heat.c",
        "heat->cA2ms - loss);\n    set_cooled(heat, now_ticks);\n",
        "heat->cA2ms - loss);\n",
    ),
    ("core/heat.c", "if (passed >= law->span_ticks && law->span_ticks < UINT16_MAX)", "if (false)"),
    ("core/heat.c", "    if (rate_high != 0)", "    if (rate_high == 0)"),
    ("core/heat.c", "return x - (product(at_most, at_most) >> 1) - (x != 0);", "return x;"),
    ("core/heat.c", "heat->rest = (uint16_t)rest;", ";"),
    ("core/heat.c", "heat->on_ticks = 0;", ";"),
    ("core/heat.c", "limits->heat_max_cA2ms, now_ticks", "0, now_ticks"),
    ("core/board.c", "    board->law = heat_law(&board->limits);\n", ""),
    ("core/command.c", "        return RESULT_cooling;\n", "        ;\n"),
    ("core/command.c", "    board_take_limits(board);\n", ""),
    ("core/board.c", "found |= FAULT_scan_untrue;", ";"),
    ("core/loop.c", "        check_cell(board, &sample);\n", ";"),
]


RUN_CHECKS = """
import sys
sys.path.insert(0, sys.argv[2])
from firmware.boards import NativeBoard, load
from firmware import attack_checks, limit_checks
lib = load(sys.argv[1])
for check in vars(sys.modules["firmware." + sys.argv[3]])["NATIVE_CHECKS"]:
    try:
        check(NativeBoard(lib))
    except AssertionError:
        sys.exit(9)
"""


def _survives(
    source: str, folder: Path, file: str = "core/guard.c", checks: str = "limit_checks"
) -> bool:
    """Whether all checks still pass; a mutant that does not compile or hangs has been noticed."""
    whole = (folder / file).read_text()
    (folder / file).write_text(source)
    try:
        return _passes(folder, checks)
    finally:
        (folder / file).write_text(whole)


def _passes(folder: Path, checks: str) -> bool:
    library, tests = folder / "build/libboard.so", FIRMWARE.parent / "tests"
    make = ["make", "-B", "-C", folder, "CFLAGS=-O1", "build/libboard.so"]
    if subprocess.run(make, capture_output=True).returncode != 0:
        return False
    try:
        done = subprocess.run(
            [sys.executable, "-c", RUN_CHECKS, library, tests, checks],
            timeout=60,
            env=os.environ | {"PYTHONPATH": str(FIRMWARE.parent)},
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return False
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 0


def _is_explored(source: str, folder: Path, file: str, *names: str) -> bool:
    """Whether these explorations find nothing, in orders that the host's port has not."""
    whole = (folder / file).read_text()
    (folder / file).write_text(source)
    try:
        make = ["make", "-C", folder, "WARN=-std=c11", "explore"]
        subprocess.run(make, capture_output=True, check=True)
        explore = folder / "build/explore"
        runs = (subprocess.run([explore, name], capture_output=True) for name in names)
        return all(run.returncode == 0 for run in runs)
    finally:
        (folder / file).write_text(whole)


def _copied(tmp_path) -> None:
    for part in ("core", "port", "proof"):
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
        if _survives(text, tmp_path) and _is_explored(text, tmp_path, "core/guard.c", "sensing")
    ]


@pytest.mark.slow
def test_the_checks_notice_some_mutants_of_the_guard(tmp_path):
    assert _survivors(tmp_path, every=30) == []


@pytest.mark.slow
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
        and _is_explored(text, tmp_path, file, "apart", "sensing_apart")
    ]


@pytest.mark.slow
def test_the_checks_notice_some_mutants_of_setting_a_cell_apart(tmp_path):
    assert _survivors_apart(tmp_path, every=14) == []


@pytest.mark.slow
def test_the_checks_notice_every_mutant_of_setting_a_cell_apart(tmp_path):
    assert _survivors_apart(tmp_path, every=1) == []


# The e-stop while arming, the numbers of commands and the check of the limits.
BOARD, COMMAND, LOOP = "core/board.c", "core/command.c", "core/loop.c"
OBEYED = "return RESULT_done;"
IF_ARMED = "if (board->state == STATE_armed)\n        return RESULT_is_armed;"
UNLESS_ARMED = "if (board->state != STATE_armed)\n        take_number"
ATTACKED = [
    (BOARD, "if (board_estop_open(board)) /*", "if (false) /*"),
    (BOARD, "found);\n            return false;", "found);"),
    (BOARD, "board_trip(board, FAULT_estop_open, 0);", ";"),
    (BOARD, "found |= FAULT_estop_open;", ";"),
    (LOOP, "watch_memory(board); /*", "/*"),
    (BOARD, "board_check_limits(board, limits_crc(&board->limits));", ""),
    (LOOP, "board_check_limits(board, board->checked_crc);", ""),
    (BOARD, "board->limits_whole = false;", ""),
    (BOARD, "false;\n    board_trip(board, FAULT_limits_corrupt, 0);", "false;"),
    (BOARD, "limits_crc);\n    board->checked_entry = 0;", "limits_crc);"),
    (
        BOARD,
        "return frame_crc(crc, (const uint8_t *)&board->law, sizeof board->law);",
        "return crc;",
    ),
    ("core/limits.c", "value >>= 8", "value >>= 4"),
    (COMMAND, "ahead == 0 || ahead > WIRE_AHEAD_MAX", "ahead > WIRE_AHEAD_MAX"),
    (COMMAND, "ahead == 0 || ahead > WIRE_AHEAD_MAX", "ahead == 0"),
    (COMMAND, "ahead > 0 && ahead <= WIRE_AHEAD_MAX", "ahead <= WIRE_AHEAD_MAX"),
    (COMMAND, "ahead > 0 && ahead <= WIRE_AHEAD_MAX", "ahead > 0"),
    (COMMAND, "ahead <= WIRE_AHEAD_MAX", "ahead < WIRE_AHEAD_MAX"),
    (COMMAND, "board->number = (board->number + ahead) & NUMBER_MASK;", ""),
    (COMMAND, "board->number = number;", ""),
    (COMMAND, "behind <= since_arming", "behind > since_arming"),
    (COMMAND, "(board->number >> 8) + ARMINGS_APART", "ARMINGS_APART"),
    (COMMAND, "(uint32_t)count * STARTS_APART", "(uint32_t)(count & 1u) * STARTS_APART"),
    (COMMAND, "result = take_armed_number(board, arming);", "result = RESULT_done;"),
    (COMMAND, "board->armed_number = board->number;", ""),
    (COMMAND, "(uint32_t)arming << 8 | ", ""),
    (COMMAND, f"take_number(board);\n    {OBEYED}", OBEYED),
    (COMMAND, "if (!take_number(board))\n        return RESULT_replayed;", ""),
    (COMMAND, IF_ARMED, ""),
    (COMMAND, UNLESS_ARMED, "take_number"),
    (COMMAND, UNLESS_ARMED, "if (false)\n        take_number"),
    (COMMAND, "result == RESULT_done ? (uint16_t)", "true ? (uint16_t)"),
    (COMMAND, "board_take_limits(board);", ""),
]


def _survivors_attacked(tmp_path, every: int) -> list[str]:
    _copied(tmp_path)
    for file, old, _ in ATTACKED:
        assert old in (FIRMWARE / file).read_text(), old
    assert _passes(tmp_path, "attack_checks")
    return [
        f"{file}: {old.strip()} -> {new.strip()}"
        for file, old, new in ATTACKED[::every]
        if _survives(
            (FIRMWARE / file).read_text().replace(old, new, 1), tmp_path, file, "attack_checks"
        )
    ]


@pytest.mark.slow
def test_the_checks_notice_some_mutants_of_what_is_attacked(tmp_path):
    assert _survivors_attacked(tmp_path, every=14) == []


@pytest.mark.slow
def test_the_checks_notice_every_mutant_of_what_is_attacked(tmp_path):
    assert _survivors_attacked(tmp_path, every=1) == []


def _survivors_counted(tmp_path, every: int) -> list[str]:
    _copied(tmp_path)
    survivors = []
    for file, old, new in COUNTED[::every]:
        source = (FIRMWARE / file).read_text()
        assert source.count(old) >= 1, old
        if _survives(source.replace(old, new, 1), tmp_path, file):
            survivors.append(f"{file}: {old.strip()} -> {new}")
    return survivors


@pytest.mark.slow
def test_the_checks_notice_some_mutants_of_heat_streaks_and_gates(tmp_path):
    assert _survivors_counted(tmp_path, every=6) == []


@pytest.mark.slow
def test_the_checks_notice_every_mutant_of_heat_streaks_and_gates(tmp_path):
    assert _survivors_counted(tmp_path, every=1) == []
