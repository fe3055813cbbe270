"""A machine that sleeps in a run: it is asked not to, and what it did is noticed."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.devices.supply import process
from hil.devices.supply.driver import SHARED
from hil.loop import loop
from hil.loop.clock import SleepMeter, VirtualClock
from hil.loop.guard import FAULTS
from hil.platform import sleep
from hil.runs import assembly, session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from loop.test_loop import Rows, parts_of

SLEPT = 1 << FAULTS.index("machine_slept")
INHIBITOR = """#!/bin/sh
echo "$@" >> "$0.log"
{refuse}
while [ "${{1#--}}" != "$1" ]; do shift; done
echo $$ > "$0.pid"
exec "$@"
"""
NO_LID = 'case "$1" in *lid*) echo "Access denied" >&2; exit 1;; esac'
NOBODY = 'echo "Failed to connect to bus" >&2; exit 1'


@pytest.fixture
def inhibitor(tmp_path, monkeypatch):
    """A systemd-inhibit of the test's own: it notes what it is told and runs the command."""
    made = tmp_path / "bin" / "systemd-inhibit"
    made.parent.mkdir()

    def make(refuse=""):
        made.write_text(INHIBITOR.format(refuse=refuse))
        made.chmod(0o755)
        monkeypatch.setenv("PATH", f"{made.parent}:{os.environ['PATH']}")
        return made

    return make


def process_of(inhibitor):
    return int(Path(f"{inhibitor}.pid").read_text())


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid, within_s=300.0):
    until_s = time.monotonic() + within_s
    while lives(pid) and time.monotonic() < until_s:
        time.sleep(0.01)
    return not lives(pid)


def test_sleep_idling_and_the_lid_are_held_off_for_the_block_and_no_longer(inhibitor):
    made = inhibitor()
    with sleep.held_off(sleep.COMMANDS["linux"]) as how:
        assert how == "held off by systemd-inhibit --what=sleep:idle:handle-lid-switch"
        assert lives(process_of(made))
    assert gone(process_of(made))
    (told,) = Path(f"{made}.log").read_text().splitlines()
    assert "--mode=block" in told


def test_who_may_not_hold_the_lid_holds_off_the_rest(inhibitor):
    inhibitor(NO_LID)
    with sleep.held_off(sleep.COMMANDS["linux"]) as how:
        assert how == "held off by systemd-inhibit --what=sleep:idle"


def test_a_refusal_says_why_and_the_block_goes_on(inhibitor):
    inhibitor(NOBODY)
    with sleep.held_off(sleep.COMMANDS["linux"]) as how:
        assert how == "not held off: Failed to connect to bus"


def test_a_machine_without_the_command_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with sleep.held_off(sleep.COMMANDS["linux"]) as how:
        assert how == "not held off: no systemd-inhibit"


def test_a_run_that_is_killed_lets_the_machine_sleep_again(inhibitor):
    made = inhibitor()
    code = (
        "from hil.platform import sleep\n"
        "with sleep.held_off(sleep.COMMANDS['linux']) as how:\n"
        "    print(how, flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout.readline().startswith("held off")
        pid = process_of(made)
        assert lives(pid)
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert gone(pid)


@pytest.mark.slow
def test_a_run_on_the_real_clock_holds_sleep_off_and_one_on_the_virtual_clock_does_not(
    inhibitor, configs, tmp_path
):
    made = inhibitor()
    config = hil.load(configs / "miga6/all_on.toml", ["experiment.duration_s=0.2"])
    session.run(Plan(config), Output(out=tmp_path / "virtual.h5"))
    assert not Path(f"{made}.log").exists()
    config = hil.load(
        configs / "miga6/all_on.toml", ["experiment.duration_s=0.2", "loop.overrun='skip'"]
    )
    session.run(Plan(config, clock="real"), Output(out=tmp_path / "real.h5"))
    said = hil.open_run(tmp_path / "real.h5").event_text.values
    assert sum("sleep of the machine held off by systemd-inhibit" in text for text in said) == 1
    assert gone(process_of(made))


def test_the_doctor_says_whether_sleep_can_be_held_off(inhibitor, monkeypatch):
    from hil.bench import doctor

    inhibitor(NOBODY)
    found = doctor._sleep()
    assert (found["state"], found["what"]) == ("could be better", "sleep during a run")
    assert "not held off: Failed to connect to bus" in found["found"]
    assert "systemctl mask sleep.target" in found["remedy"]
    inhibitor()
    assert doctor._sleep()["state"] == "good"


class Clocks:
    """CLOCK_BOOTTIME and CLOCK_MONOTONIC of a machine that a test puts to sleep."""

    def __init__(self):
        self.now_s, self.asleep_s = 5000.0, 3000.0
        self.stalls_s = []

    def _read(self, ahead_s):
        found = self.now_s + ahead_s
        self.now_s += self.stalls_s.pop(0) if self.stalls_s else 1e-7
        return found

    def boot_s(self):
        return self._read(self.asleep_s)

    def awake_s(self):
        return self._read(0.0)

    def meter(self):
        return SleepMeter(self.boot_s, self.awake_s)


def test_a_sleep_is_told_once_and_for_as_long_as_it_was():
    clocks = Clocks()
    meter = clocks.meter()
    assert meter.slept_s() == 0.0
    clocks.asleep_s += 61.5
    clocks.now_s += 0.001
    assert meter.slept_s() == pytest.approx(61.5, abs=1e-3)
    assert meter.slept_s() == 0.0
    clocks.asleep_s += 1.0
    assert meter.slept_s() == pytest.approx(1.0, abs=1e-3)


def test_a_machine_that_stands_still_has_not_slept():
    """Between two clocks that are read one after the other it may stand for any time."""
    clocks = Clocks()
    clocks.stalls_s = [0.0, 2.0, 2.0, 0.3, 0.0]
    meter = clocks.meter()
    clocks.stalls_s = [3.0, 1e-7, 0.7, 0.7]
    assert [meter.slept_s() for _ in range(4)] == [0.0] * 4


class Napping(VirtualClock):
    """The machine sleeps for a minute before tick `at`."""

    def __init__(self, at):
        super().__init__()
        self._left = at

    def slept_s(self):
        self._left -= 1
        return 60.0 if self._left == -1 else 0.0


def test_a_run_whose_machine_slept_trips_in_the_tick_in_which_it_wakes(configs):
    parts, sink = parts_of(configs, clock=Napping(100))
    assert loop.run(parts) == "tripped"
    np.testing.assert_array_equal(np.flatnonzero(sink["fault_bits"])[:2], [100, 101])
    assert int(sink["fault_bits"][100]) == SLEPT
    assert sink["cells_commanded"][99].any()
    assert not sink["cells_commanded"][100:].any()


class TenTicks:
    """Ends a run that waits."""

    def step(self, t_s):
        return t_s > 0.0095


def test_a_run_that_waits_to_be_armed_notes_a_sleep_and_trips_nothing(configs):
    config = hil.load(configs / "miga6/all_on.toml")
    pipeline = assembly.build(Plan(config))
    sink = Rows(pipeline.frame)
    parts = pipeline.context(Napping(3), sink, armed=False)
    pipeline.rig.open()
    loop.run(replace(parts, until=TenTicks()))
    assert len(sink.rows) == 11
    assert not sink["fault_bits"].any()
    assert any("slept for 60 s" in text for *_, text in sink.events)


def test_the_users_run_says_for_how_long_and_a_replay_trips_in_the_same_tick(
    configs, tmp_path, capsys
):
    (tmp_path / "f.toml").write_text('[[fault]]\nkind = "machine_sleeps"\nat_s = 0.3\nvalue=42.0\n')
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--inject", str(tmp_path / "f.toml")]
    assert main([*words, "--out", str(out)]) == 3
    assert "tripped by machine_slept" in capsys.readouterr().out
    run = hil.open_run(out)
    assert "machine_slept: the machine slept for 42 s before this tick" in list(
        run.event_text.values
    )
    assert main(["replay", str(out)]) == 0


def mailbox(tmp_path, clocks):
    """What the loop and the supply's process share, and the process' end of it."""
    path = tmp_path / "shared"
    shared = np.memmap(path, dtype=SHARED, mode="w+", shape=(1,))
    path.chmod(0o600)
    post = process.Post(str(path), 0.5, clocks.awake_s, clocks.meter())
    return shared, post


def test_a_supply_goes_off_when_the_machine_wakes_however_soon_the_loop_shows_life(tmp_path):
    clocks = Clocks()
    shared, post = mailbox(tmp_path, clocks)
    shared["want_on"], shared["alive_s"] = 1, clocks.now_s
    assert post.wants_on
    clocks.asleep_s += 600.0  # the clock that the loop's sign of life is on stands meanwhile
    shared["alive_s"] = clocks.now_s
    assert not post.wants_on
    shared["alive_s"] = clocks.now_s
    assert not post.wants_on  # a loop that goes on does not get it back
    shared["want_on"] = 0
    assert not post.wants_on
    shared["want_on"], shared["alive_s"] = 1, clocks.now_s
    assert post.wants_on


def test_a_sleep_while_the_supply_was_off_is_no_reason_not_to_come_on(tmp_path):
    clocks = Clocks()
    shared, post = mailbox(tmp_path, clocks)
    assert not post.wants_on
    clocks.asleep_s += 600.0
    assert not post.wants_on
    shared["want_on"], shared["alive_s"] = 1, clocks.now_s
    assert post.wants_on
