"""The table of interlocks is whole, and the page about safety is made from it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hil.__main__ import main
from hil.devices.board import protocol
from hil.loop import guard, interlocks
from hil.reports import safety
from hil.rig.run_tables import GuardTable, LoopTable

ROOT = Path(__file__).resolve().parents[2]
SHIPPED_BITS = (
    "force_high", "force_nan", "reading_stale", "loop_late", "cell_on_too_long", "device_failed",
    "recorder_dead", "board_fault",
)  # fmt: skip


def test_the_page_is_the_table():
    assert (ROOT / "docs/safety.md").read_text() == safety.page()


def test_bits_of_recordings_keep_their_places():
    assert guard.FAULTS[: len(SHIPPED_BITS)] == SHIPPED_BITS
    assert len(set(guard.FAULTS)) == len(guard.FAULTS) <= 64


REORDERED = """
from hil.loop import interlocks
interlocks.LOOP = interlocks.LOOP[::-1]
from hil.loop import guard
from tests.rows import BoundGuard
limits = guard.Limits(10.0, 0.02, 5, signals=[guard.SignalLimits(-9.0, 9.0, is_force=True)])
here = guard.Guard(limits, 2, 0.01)
assert here.arm()
row = BoundGuard(here, 1, boards=("board",), n_cells=2)
row.readings.measured[0] = 9.1
row.set_bits("board_fault_bits", 1)
bits = here.step(0) | guard.DEVICE_FAILED | guard.MACHINE_SLEPT
print(*sorted(guard.names_of(bits)))
"""


def test_a_fault_has_its_name_whatever_the_order_of_the_rows():
    """Without numba's cache, which would keep bits of the order it was compiled with."""
    done = subprocess.run(
        [sys.executable, "-c", REORDERED], env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert (done.stdout.split(), done.stderr) == (
        ["board_fault", "device_failed", "force_high", "machine_slept"], ""
    )  # fmt: skip


def test_every_fault_of_the_board_has_a_row_and_every_row_a_fault():
    assert {row.name for row in interlocks.BOARD} == set(protocol.FAULTS)


def test_limits_that_rows_name_exist():
    tables = {"guard": GuardTable, "loop": LoopTable}
    for row in interlocks.LOOP:
        table, _, key = row.key.partition(".")
        if table in tables:
            assert key.split(".")[0] in tables[table].model_fields, row
    for row in interlocks.BOARD:
        if row.key:
            assert row.key.split(",")[0] in protocol.LIMITS, row


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("guard.hold_s.force_hihg=1.0", "no such interlock: did you mean 'force_high'?"),
        ("guard.force_residual_max_N=9.0", "looser than the rig's 0.5"),
        ("guard.force_jump_max_N=-1.0", "must be greater than 0"),
    ],
)
def test_limits_that_are_wrong_are_refused(change, message, configs, capsys):
    found = main(["check", str(configs / "miga6/all_on.toml"), "--set", change])
    said = capsys.readouterr().err
    assert found == 2
    assert message in said


def test_a_disk_that_runs_low_ends_the_run_with_its_name(configs, tmp_path, capsys, monkeypatch):
    free_B = iter([2**40])  # at the start
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: SimpleNamespace(free=next(free_B, 2**20))
    )
    words = ["--out", str(tmp_path / "run.h5")]
    assert main(["run", str(configs / "miga6/all_on.toml"), *words]) == 3
    assert "tripped by disk_low" in capsys.readouterr().out
