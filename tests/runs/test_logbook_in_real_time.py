"""Logbooks of runs on the real clock: killed ones, and those of a board at the bench."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hil import open_run
from hil.__main__ import main
from hil.record.append_log import read_log
from hil.runs.logbook import Logbook

pytestmark = pytest.mark.xdist_group("real time")

BOOK = Path("logbook/simulated/W4-01.jsonl")


def totals(serial="W4-01", simulated=True):
    return Logbook(Path("logbook"), serial, simulated=simulated).totals()


def killed_in_mid_run(command):
    """Whether the run lived until 100 rows were in its file, and was killed then."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline_s = time.monotonic() + 300.0
    while not (Path("cut.h5").exists() and open_run("cut.h5").sizes["tick"] > 100):
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_a_killed_run_is_counted_from_its_recording_when_the_next_begins(rigs, monkeypatch):
    monkeypatch.chdir(rigs / "wires4")
    words = ["--set", "specimen.serial=W4-01", "--set", "experiment.duration_s=18.0"]
    words += ["--set", "controller.steps=[{t_s=0.0, on=[1]}]", "--set", "loop.overrun=skip"]
    words += ["--out", "cut.h5"]
    words += ["--set", "guard.reading_age_max_s=60.0", "--clock", "real"]
    command = [sys.executable, "-m", "hil", "run", "pulse.toml", *words]
    # The board ends a run whose loop waits long for a processor: such a run is made again.
    while not killed_in_mid_run(command):
        shutil.rmtree("logbook")
        Path("cut.h5").unlink()
    assert next(iter(totals().open.values()))["file"].endswith("cut.h5")
    more = ["--set", "specimen.serial=W4-01", "--duration", "0.01"]
    assert main(["run", "pulse.toml", *more]) == 0
    found = totals()
    assert not found.open
    assert found.runs == 2
    lines = [e for e in read_log(BOOK) if e["kind"] == "run"]
    assert [line["cut"] for line in lines] == [True, False]
    assert lines[0]["cells"]["muscle.1"]["cycles"] == 1
    assert lines[0]["cells"]["muscle.1"]["on_s"] > 0.09


@pytest.fixture
def board():
    """A board on a pty, which is a bench to whoever speaks to it."""
    command = [sys.executable, "-m", "hil", "simboard", "--cells", "6"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().split()[-1]
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_runs_and_campaigns_on_a_board_at_the_bench_count_for_the_article(
    rigs, monkeypatch, board, capsys
):
    monkeypatch.chdir(rigs / "miga6")
    rig = Path("rig.toml").read_text().replace("[loop]\n", '[loop]\noverrun = "skip"\n')
    port = f'port = "{board}"\nserial = 1\nestop = "none"\nhold_s = 0.1\n'
    rig = "\n".join("" if line.startswith("port") else line for line in rig.splitlines())
    rig = rig.replace("[devices.board]\n", f"[devices.board]\n{port}")
    # While it waits, with all cells off, a machine that stalls does not end the campaign.
    rig = rig.replace("[guard]\n", "[guard]\nreading_age_max_s = 1.0\n")
    specimen = '\n[specimen]\nserial = "M6-01"\nwire_resistance_Ohm = 10.0\n'
    Path("rig.toml").write_text(rig.replace("period_s = 0.001", "period_s = 0.01") + specimen)
    Path("two.toml").write_text(
        """
        campaign = {name = "two", experiments = ["all_on.toml"], repeats = 2}
        factors.length = {key = "experiment.duration_s", levels = [0.3]}
        after_trip = {do = "retry", retries = 9}
        [wait]
        longest_s = 20.0
        for_s = 0.3
        until = [{column = "force_measured_N", below = 0.03, above = -0.03}]
        """
    )
    assert main(["campaign", "two.toml", "--backend", "board=bench,daq=sim"]) == 0
    found = totals("M6-01", simulated=False)
    # A machine that stalls for 50 ms is tripped, and rightly, and its trial is run again.
    assert found.runs == 2 + found.faults_in_all
    for counts in found.cells.values():
        assert 2 <= counts["cycles"] <= found.runs
        # 0.195 A, which this board draws, through 10 Ohm. Currents come in every second tick of
        # 10 ms, and a run has 30: three at each end may be missed or stand too long.
        assert counts["energy_J"] == pytest.approx(0.195**2 * 10.0 * counts["on_s"], rel=0.2)
    assert found.energy_from["muscle.1"].startswith("measured current squared times 10 Ohm")
    assert "specimen M6-01: its first run" in capsys.readouterr().err
    assert not (Path("logbook") / "simulated").exists()
