"""The proof of the core: it holds, and it fails on a core in which one thing is broken."""

import shutil
import subprocess
import sys

import pytest

from firmware.boards import FIRMWARE, make

# property, file, what is broken in it, how
EXPLORED_MUTANTS = [
    (
        "off_unless_armed",
        "command.c",
        "return board->state == STATE_armed ? RESULT_done : RESULT_not_armed;",
        "return RESULT_done;",
    ),
    (
        "no_rise_after_estop",
        "board.c",
        "if (open && (board->fault_bits",
        "if (open && board->state != STATE_armed && (board->fault_bits",
    ),
    ("no_rise_after_fault", "board.c", "    board->state = STATE_faulted;\n", ""),
    (
        "pulse_in_arming",
        "board.c",
        "            board_trip_cell(board, i, found);\n            return false;\n",
        "            board_trip_cell(board, i, found);\n",
    ),
    (
        "pulses_bounded",
        "board.c",
        "uint16_t counts = port_probe(board->port, i);",
        "port_probe(board->port, i);\n        uint16_t counts = port_probe(board->port, i);",
    ),
    (
        "armed_to_be_high",
        "command.c",
        "static uint8_t serve_disarm(struct board *board)\n{\n    board_all_off(board);\n",
        "static uint8_t serve_disarm(struct board *board)\n{\n",
    ),
    (
        "hold_ends",
        "loop.c",
        "silence_us > board->hold_us)",
        "silence_us > board->hold_us + 1000u)",
    ),
    (
        "dead_man",
        "guard.c",
        "(uint32_t)limits->silence_max_ms * 1000u",
        "limits->silence_max_ms * 2000u",
    ),
    (
        "estop_ends",
        "board.c",
        "if (open && (board->fault_bits",
        "if (open && board->state != STATE_disarmed && (board->fault_bits",
    ),
    ("rise_by_command", "command.c", "if (ahead > 0 && ahead <=", "if (ahead <="),
    (
        "armed_by_command",
        "command.c",
        "board->fault_cells = 0;\n    board->state = STATE_disarmed;",
        "board->fault_cells = 0;\n    board->state = STATE_armed;",
    ),
    (
        "cleared_by_command",
        "command.c",
        "if (board->state == STATE_armed)\n        board->state = STATE_disarmed;",
        "board->state = STATE_disarmed;",
    ),
    (
        "disarm_obeyed",
        "command.c",
        "if (board->state == STATE_armed)\n        board->state = STATE_disarmed;",
        "",
    ),
    ("wired_only", "board.c", "if ((cells_on & (uint16_t)~board->wired) != 0)", "if (false)"),
    ("stale_scan_ends", "loop.c", "board_trip(board, FAULT_scan_stale, 0);", "(void)0;"),
    ("watchdog_honest", "loop.c", "    if (!stale)\n", "    if (!stale || true)\n"),
    (
        "current_persists",
        "guard.c",
        "return lasts ? FAULT_current_high : 0;",
        "return lasts ? 0 : 0;",
    ),
    (
        "open_persists",
        "guard.c",
        "return lasts ? FAULT_current_low : 0;",
        "return lasts ? 0 : 0;",
    ),
]
BY_NAME = {name: place for name, *place in EXPLORED_MUTANTS}
ANALYSED_MUTANTS = [
    ("off_unless_armed", *BY_NAME["off_unless_armed"]),
    ("no_rise_after_estop", *BY_NAME["no_rise_after_estop"]),
    ("inductive", *BY_NAME["no_rise_after_fault"]),
    ("pulse_in_arming", *BY_NAME["pulse_in_arming"]),
    ("pulses_bounded", *BY_NAME["pulses_bounded"]),
    ("inductive", *BY_NAME["armed_to_be_high"]),
    ("no_run_time_error", "frame.c", "if (n == WIRE_FRAME_MAX) {", "if (false) {"),
    ("no_run_time_error", "command.c", "    if (heat >= most)\n        return 255;\n", ""),
]


def _mutant(folder, file, old, new):
    """The firmware with one place of the core broken."""
    shutil.copytree(FIRMWARE, folder, ignore=shutil.ignore_patterns("build"))
    source = (folder / "core" / file).read_text()
    assert source.count(old) == 1, f"{file} has not one: {old}"
    (folder / "core" / file).write_text(source.replace(old, new))
    return folder


def _explored(build, *turns):
    done = subprocess.run([build / "explore", *turns], capture_output=True, text=True)
    *rows, summary = done.stdout.splitlines()
    return done.returncode, {row.split()[0]: row.split()[1] for row in rows}, summary


@pytest.mark.parametrize(
    ("turns", "states"),
    [("4", 3000), pytest.param("6", 40_000, marks=pytest.mark.slow)],  # 6 take 20 s
)
def test_every_state_within_some_turns_of_a_reset_is_safe(tmp_path, turns, states):
    code, verdicts, summary = _explored(make(tmp_path, "explore"), turns)
    assert code == 0
    assert set(verdicts.values()) == {"holds"}
    assert int(summary.split()[0]) > states


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", EXPLORED_MUTANTS[:2], ids=[mutant[0] for mutant in EXPLORED_MUTANTS[:2]]
)
def test_exploration_finds_what_is_broken(tmp_path, mutant):
    name, *place = mutant
    source = _mutant(tmp_path / "firmware", *place)
    code, verdicts, _ = _explored(make(tmp_path / "build", "explore", source=source), "5")
    assert code == 1
    assert verdicts[name] == "VIOLATED", verdicts


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", EXPLORED_MUTANTS[2:], ids=[mutant[0] for mutant in EXPLORED_MUTANTS[2:]]
)
def test_exploration_finds_whatever_is_broken(tmp_path, mutant):
    test_exploration_finds_what_is_broken(tmp_path, mutant)


def _proven(source, build, *cells):
    make(build, "explore", source=source)
    return subprocess.run(
        [sys.executable, "proof/prove.py", build, *cells],
        cwd=source,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_core_is_proven(tmp_path):
    done = _proven(FIRMWARE, tmp_path, "1", "12", "16")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT PROVEN" not in done.stdout


ANALYSE = """
import sys
from pathlib import Path
sys.path.insert(0, "proof")
import prove
for row in prove.analysed(Path(sys.argv[1]), 3, "x86_16"):
    print(row.name, row.proven)
"""


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ANALYSED_MUTANTS, ids=lambda mutant: f"{mutant[0]}-{mutant[1]}")
def test_the_analysis_fails_on_a_core_that_is_broken(tmp_path, mutant):
    name, *place = mutant
    source = _mutant(tmp_path / "firmware", *place)
    done = subprocess.run(
        [sys.executable, "-c", ANALYSE, tmp_path], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{name} False" in done.stdout.splitlines(), done.stdout
