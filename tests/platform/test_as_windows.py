"""hil with the parts of Python that Windows has: no fcntl, no SIGALRM, no os.fork ...

This shows what hil asks of Python, not what Windows does.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hil
from hil.loop import tap as taps

HERE = Path(__file__).parent
CONFIGS = HERE.parents[1] / "configs"
WORK = """
import json, sys
from pathlib import Path
from hil.__main__ import main
words = json.loads(sys.argv[1])
for one in words:
    code = main(one)
    assert code == 0, (one, code)
"""


@pytest.fixture
def environment(tmp_path):
    path = os.pathsep.join([str(HERE / "as_windows"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path), "USER": "ada"}


@pytest.mark.slow
def test_runs_reports_and_campaigns_need_nothing_that_windows_lacks(tmp_path, environment):
    experiment, run = str(CONFIGS / "miga6" / "pid.toml"), str(tmp_path / "run.h5")
    campaign = tmp_path / "day.toml"
    campaign.write_text(f'[campaign]\nname = "day"\nexperiments = ["{experiment}"]\n')
    commands = [
        ["run", experiment, "--duration", "0.2", "--out", run],
        ["report", run],
        ["export", run, "--to", "csv"],
        ["campaign", str(campaign), "--out", str(tmp_path / "day")],
        ["doctor"],
        ["devices"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", WORK, json.dumps(commands)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert hil.open_run(run).attrs["outcome"] == "complete"
    assert run.replace(".h5", ".html") in {str(p) for p in tmp_path.glob("*.html")}


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
def test_a_stop_request_ends_a_run_safely_without_sigint(tmp_path, environment):
    path = tmp_path / "run.h5"
    # A rig without a board, which a loop that waits for a processor would let down.
    words = ["run", str(CONFIGS / "slider" / "steps.toml"), "--clock", "real", "--duration", "600"]
    words += ["--set", "loop.overrun='skip'", "--set", "guard.reading_age_max_s=60.0"]
    words += ["--set", "reference.signals.slide.value=[0.0, 0.0, 0.0, 0.0]"]
    run = subprocess.Popen(
        [sys.executable, "-m", "hil", *words, "--out", str(path)], env=environment, cwd=tmp_path,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while _rows(run, tmp_path) < 100:
            assert run.poll() is None, run.stderr.read()
            time.sleep(0.05)
    finally:
        run.send_signal(signal.SIGUSR2)
        _, text = run.communicate(timeout=600)
    assert run.returncode == 130, text
    recording = hil.open_run(path)
    assert recording.attrs["outcome"] == "aborted"
    assert recording.sizes["tick"] >= 100
    assert "stopped by SIGUSR2" in recording.event_text.values.tolist()


def _rows(run, folder):
    for path in folder.glob(f"hil-{run.pid}-*.tap"):
        with contextlib.suppress(ValueError, OSError):  # it is just being made
            return taps.attach(path).ticks.written
    return 0
