"""Memory and files that end while a run is in progress, or before it begins."""

import resource
import subprocess
import sys
import time

import psutil
import pytest

import hil

pytestmark = pytest.mark.slow
WAIT_S = 300.0
LENIENT = (
    "loop.overrun=tolerate", "loop.overruns_max=100000", "guard.reading_age_max_s=60.0"
)  # fmt: skip
ROWS_B = 400_000  # of a recording that has rows on disk
NO_MEMORY_B = 2**20


def start(configs, out, *words, **options):
    command = [sys.executable, "-m", "hil", "run", str(configs / "miga6/all_on.toml")]
    command += [word for key in LENIENT for word in ("--set", key)]
    return subprocess.Popen(
        [*command, *words, "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def test_a_recorder_that_gets_no_memory_ends_the_run_and_its_rows_stay(configs, tmp_path):
    out = tmp_path / "run.h5"
    with start(configs, out, "--clock", "real", "--duration", "30") as run:
        until_s = time.monotonic() + WAIT_S
        while not out.exists() or out.stat().st_size < ROWS_B:
            assert time.monotonic() < until_s
            time.sleep(0.05)
        (recorder,) = [
            child for child in psutil.Process(run.pid).children()
            if "hil.record.recorder" in child.cmdline()
        ]  # fmt: skip
        resource.prlimit(recorder.pid, resource.RLIMIT_AS, (NO_MEMORY_B, NO_MEMORY_B))
        _, err = run.communicate(timeout=WAIT_S)
    assert run.returncode == 4
    (line,) = err.splitlines()
    assert line.startswith("recorder: ")
    kept = hil.open_run(out)
    assert f"its {kept.sizes['tick']} rows are kept in {out}" in line
    assert kept.sizes["tick"] > 0
    assert kept.attrs["outcome"] == "recovered"


@pytest.mark.parametrize("n_files", [6, 8, 10, 12, 16])
def test_too_few_files_are_one_line_or_enough(n_files, configs, tmp_path):
    out = tmp_path / "run.h5"

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files))

    with start(configs, out, "--duration", "0.1", preexec_fn=limit) as run:
        _, err = run.communicate(timeout=WAIT_S)
    if run.returncode == 0:
        assert hil.open_run(out).attrs["outcome"] == "complete"
    else:
        assert err == "hil: Too many open files: allow more (ulimit -n 1024)\n"
        assert not out.exists()
