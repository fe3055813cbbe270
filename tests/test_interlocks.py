"""The table of interlocks is whole, and the page about safety is made from it."""

from pathlib import Path

import pytest

from hil import guard, interlocks, wire
from hil.__main__ import main
from hil.config import schema
from hil.views import safety

ROOT = Path(__file__).resolve().parents[1]
SHIPPED_BITS = (
    "force_high", "force_nan", "reading_stale", "loop_late", "cell_on_too_long", "device_failed",
    "recorder_dead", "board_fault",
)  # fmt: skip


def test_the_page_is_the_table():
    assert (ROOT / "docs/safety.md").read_text() == safety.page()


def test_bits_of_recordings_keep_their_places():
    assert guard.FAULTS[: len(SHIPPED_BITS)] == SHIPPED_BITS
    assert len(set(guard.FAULTS)) == len(guard.FAULTS) <= 64


def test_every_fault_of_the_board_has_a_row_and_every_row_a_fault():
    assert {row.name for row in interlocks.BOARD} == set(wire.FAULTS)


def test_limits_that_rows_name_exist():
    tables = {"guard": schema.GuardTable, "loop": schema.LoopTable}
    for row in interlocks.LOOP:
        table, _, key = row.key.partition(".")
        if table in tables:
            assert key.split(".")[0] in tables[table].model_fields, row
    for row in interlocks.BOARD:
        if row.key:
            assert row.key.split(",")[0] in wire.LIMITS, row


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("guard.hold_s.force_hihg=1.0", "no such condition: choose force_high"),
        ("guard.force_residual_max_N=9.0", "looser than the rig's 0.5"),
        ("guard.force_jump_max_N=-1.0", "must be greater than 0"),
    ],
)
def test_limits_that_are_wrong_are_refused(change, message, configs, capsys):
    found = main(["check", str(configs / "miga6/all_on.toml"), "--set", change])
    said = capsys.readouterr().err
    assert found == 2
    assert message in said


def test_a_disk_that_runs_low_ends_the_run_with_its_name(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    words = ["--set", "guard.disk_free_min_MB=1e9", "--out", str(out)]
    assert main(["run", str(configs / "miga6/all_on.toml"), *words]) == 3
    assert "tripped by disk_low" in capsys.readouterr().out
