"""A run that a window has started ends safely when the window dies."""

import subprocess
import sys
import time

import psutil
import pytest

import hil
from hil.errors import ConfigError
from hil.platform import window as windows
from hil_gui.data import rows_of
from hil_gui.runner import Command

WINDOW = """
import sys, time
from pathlib import Path
from hil_gui.runner import Command, run_words

words = run_words(Path(sys.argv[1]), Path(sys.argv[2]), backend="sim", sets={})
command = Command([*words, *sys.argv[4:]], attended=True)
print(command.pid, flush=True)
if sys.argv[3] == "left":
    command.leave()
time.sleep(600.0)
"""


def waited_for(condition, at_most_s=120.0):
    end_s = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("how", ["died", "left"])
def test_a_run_outlives_its_window_only_if_it_is_told_so(how, bench, tmp_path):
    out = tmp_path / "run.h5"
    duration = ["--duration", "600" if how == "died" else "1.5"]
    words = [sys.executable, "-c", WINDOW, str(bench / "miga6/pid.toml"), str(out), how, *duration]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as window:
        run = psutil.Process(int(window.stdout.readline()))
        waited_for(lambda: rows_of(run.pid) > 100)
        window.kill()
    waited_for(lambda: not run.is_running() or run.status() == psutil.STATUS_ZOMBIE)
    done = hil.open_run(out)
    assert done.attrs["outcome"] == ("aborted" if how == "died" else "complete")
    reached_s = float(done.t_s[-1])
    assert reached_s < 600.0 if how == "died" else reached_s == pytest.approx(1.5, abs=0.002)


def test_the_error_of_a_start_comes_without_its_steps(tmp_path):
    run = Command(["run", str(tmp_path / "none.toml"), "--attended"], attended=True)
    assert run.wait(300.0) == 2
    assert run.error_text.startswith(f"{tmp_path / 'none.toml'}: no such file")
    assert "\n" not in run.error_text
    assert run.latest_line == run.error_text


def test_missing_libraries_of_the_window_are_named_with_debian_s_packages(monkeypatch, configs):
    lines = (configs.parent / "scripts/debian-packages").read_text().splitlines()
    packages = [line.split()[1] for line in lines if line.startswith("window")]
    libraries = [
        "libglib-2.0.so.0", "libGL.so.1", "libEGL.so.1", "libxkbcommon.so.0", "libdbus-1.so.3",
        "libfontconfig.so.1", "libxcb-cursor.so.0", "libxcb-icccm.so.4", "libxcb-keysyms.so.1",
        "libxcb-shape.so.0", "libxcb-xkb.so.1", "libxkbcommon-x11.so.0",
    ]  # fmt: skip
    assert [windows.package_of(library) for library in libraries] == packages
    told = "\n".join(f"\t{name} => not found" for name in (libraries[6], libraries[6]))
    done = subprocess.CompletedProcess([], 0, stdout=f"\tlibc.so.6 => /lib/libc.so.6\n{told}\n")
    monkeypatch.setattr(windows.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(windows.subprocess, "run", lambda *words, **options: done)
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    windows.require_window()
    monkeypatch.delenv("QT_QPA_PLATFORM")
    with pytest.raises(ConfigError) as error:
        windows.require_window()
    said = "the window lacks libxcb-cursor.so.0: on Debian: sudo apt-get install libxcb-cursor0"
    assert str(error.value) == said
