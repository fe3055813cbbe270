"""A card belongs to one run at a time on a machine that several people use."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hil.devices.nidaq.channels import Place
from hil.devices.nidaq.driver import NiDaq
from hil.devices.nidaq.lock import CardLock
from hil.errors import DeviceError

from .cards import FORCE, plan
from .test_chassis import Chassis

NOBODY = 65534
HOLD = """
import os, sys, pathlib
sys.path.insert(0, sys.argv[1])
from hil.devices.nidaq.lock import CardLock
from hil.errors import DeviceError
if len(sys.argv) > 4:
    os.setgroups([])
    os.setgid(int(sys.argv[4]))
    os.setuid(int(sys.argv[4]))
try:
    lock = CardLock("daq", "Dev1", int(sys.argv[3]), pathlib.Path(sys.argv[2]))
except DeviceError as error:
    print(error, flush=True)
else:
    print("held", flush=True)
    input()
"""


@pytest.fixture
def shared(tmp_path):
    """A folder like /tmp: everybody may write, nobody removes another's file."""
    for folder in (tmp_path, *tmp_path.parents):
        if (
            folder.stat().st_uid == tmp_path.stat().st_uid
            and not folder.stat().st_mode & stat.S_IXOTH
        ):
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    found = tmp_path / "shared"
    found.mkdir()
    found.chmod(0o1777)
    return found


@contextlib.contextmanager
def another(shared, *user):
    """Another process, of another user where one is given; what it said, and the process."""
    root = str(Path(__file__).resolve().parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, root, str(shared), "77", *map(str, user)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, umask=0o077,
    ) as process:  # fmt: skip
        yield process.stdout.readline().strip(), process
        with contextlib.suppress(OSError):
            process.communicate("\n")


def test_a_card_that_another_process_holds_is_refused_and_the_holder_named(shared):
    with another(shared) as (said, holder):
        assert said == "held"
        with pytest.raises(DeviceError) as refused:
            CardLock("daq", "Dev1", 77, shared)
        CardLock("daq", "Dev2", 78, shared).release()
    text = str(refused.value)
    assert text.startswith(f"daq: Dev1 is held by process {holder.pid} of ")
    assert " since " in text
    CardLock("daq", "Dev1", 77, shared).release()


def test_the_lock_of_a_process_that_was_killed_is_free(shared):
    with another(shared) as (said, holder):
        assert said == "held"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        CardLock("daq", "Dev1", 77, shared).release()


def test_its_file_is_everybodys_whatever_the_umask_of_the_first(shared):
    with another(shared) as (said, _):
        assert said == "held"
    (file,) = shared.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o666


def test_it_is_in_one_place_for_users_whose_temporary_folders_differ(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    serial = 0xF0000000 + os.getpid()
    CardLock("daq", "Dev1", serial).release()
    place = Path(f"/tmp/hil-nidaq-{serial:08X}.lock")
    assert place.exists()
    place.unlink()


ROOT = os.geteuid() == 0
ANOTHER = (NOBODY,) if ROOT else ()
MY_NAME, THEIR_NAME = ("root since ", "nobody since ") if ROOT else ("", "")
"""Root becomes another user; nobody else can. They have the other process as themselves and a file
that is read-only for themselves too: the kernel refuses to open it for writing all the same."""


@pytest.mark.parametrize("mode", [0o666, 0o644], ids=["its own file", "one of an older version"])
def test_another_user_is_refused_while_it_is_held_and_takes_it_afterwards(shared, mode):
    lock = CardLock("daq", "Dev1", 77, shared)
    (file,) = shared.iterdir()
    file.chmod(mode if ROOT or mode == 0o666 else 0o444)
    with another(shared, *ANOTHER) as (said, _):
        assert said.startswith(f"daq: Dev1 is held by process {os.getpid()} of {MY_NAME}")
    lock.release()
    with another(shared, *ANOTHER) as (said, holder):
        assert said == "held"
        with pytest.raises(DeviceError, match="Dev1 is held by process") as refused:
            CardLock("daq", "Dev1", 77, shared)
        if mode == 0o666:
            assert f"process {holder.pid} of {THEIR_NAME}" in str(refused.value)


def test_two_modules_of_one_chassis_are_one_card(monkeypatch, tmp_path):
    """They share its clocks and its watchdog."""
    monkeypatch.setattr("nidaqmx.system.device.Device.is_simulated", property(lambda _: False))
    monkeypatch.setattr("hil.devices.nidaq.driver.CardLock", lambda *a: CardLock(*a, tmp_path))
    own = replace(plan(FORCE), card="cDAQ1Mod1")
    with Chassis(own) as bench:
        bench.daq.open()
        theirs = replace(plan(FORCE), card="cDAQ1Mod5")
        bench.system.add("NI 9215", "cDAQ1Mod5", chassis="cDAQ1")
        other = NiDaq("other", theirs, Place(0, 0), bench.pass_s, simulated=True)
        with pytest.raises(DeviceError, match="other: cDAQ1 is held by process"):
            other.open()
