"""Somebody sets the computer's clock while a run is in progress."""

import mmap
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main

SOURCE = Path(__file__).with_name("jumping_clock.c")
DAY_S = 86_400
PERIOD_S = 0.002
LENIENT = [
    f"loop.period_s={PERIOD_S}", "loop.overrun=tolerate", "loop.overruns_max=100000",
    "guard.reading_age_max_s=60.0",
]  # fmt: skip


@pytest.mark.slow
def test_a_run_and_its_recording_do_not_notice_a_clock_that_is_set(configs, tmp_path, capsys):
    library, shift = tmp_path / "jumping_clock.so", tmp_path / "shift"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    shift.write_bytes(bytes(8))
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--clock", "real", "--duration", "4"]
    words += [word for key in LENIENT for word in ("--set", key)]
    with shift.open("rb+") as file, mmap.mmap(file.fileno(), 8) as shared, subprocess.Popen(
        [sys.executable, "-m", "hil", *words, "--out", str(out)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(shift)},
    ) as run:  # fmt: skip
        seen_s = set()
        while run.poll() is None:
            for shift_s in (-DAY_S, 3600, -2000 * DAY_S, 2000 * DAY_S):
                shared[:] = shift_s.to_bytes(8, sys.byteorder, signed=True)
                seen_s.add(shift_s)
                time.sleep(0.05)
    assert run.returncode == 0
    assert len(seen_s) == 4
    recording = hil.open_run(out)
    assert recording.attrs["outcome"] == "complete"
    ticks = np.rint(recording.t_s.values / PERIOD_S)  # a busy machine misses some
    np.testing.assert_allclose(recording.t_s, PERIOD_S * ticks, atol=1e-9)
    assert (np.diff(ticks) >= 1.0).all()
    assert (ticks[0], ticks[-1]) == (0.0, 1999.0)
    now = datetime.now(UTC)
    away = abs(datetime.fromisoformat(recording.attrs["created_utc"]) - now)
    assert away.total_seconds() > 1800  # the clock was set for the process, too
    assert main(["verify", str(out)]) == 0
