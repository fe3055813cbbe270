"""What the doctor makes of a machine's own words."""

import json
import platform
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from hil.__main__ import main
from hil.bench import doctor, install

MACHINE = {
    "a real-time kernel": ("#1 SMP PREEMPT_RT Debian 6.1", "", "good", "PREEMPT_RT"),
    "a kernel that always preempts": ("#1 SMP PREEMPT Mon", "", "good", "full"),
    "full preemption asked at boot": (
        "#1 SMP PREEMPT_DYNAMIC", "quiet preempt=full ro", "good", "full",
    ),
    "nothing asked at boot": ("#1 SMP PREEMPT_DYNAMIC", "ro", "could be better", "none requested"),
    "less asked at boot": (
        "#1 SMP PREEMPT_DYNAMIC", "preempt=voluntary", "could be better", "voluntary",
    ),
    "no preemption": ("#1 SMP Mon", "ro", "could be better", "voluntary or none"),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINE)
def test_the_preemption_model_is_read_from_version_and_boot_line(name, monkeypatch):
    version, boot, state, words = MACHINE[name]
    monkeypatch.setattr(platform, "version", lambda: version)
    monkeypatch.setattr(doctor, "_read", lambda path: boot if path == "/proc/cmdline" else "")
    found = doctor._preemption()
    assert (found["state"], words in found["found"]) == (state, True)
    assert bool(found["remedy"]) == (state != "good")


@pytest.mark.parametrize(
    ("runtime", "state"), [("950000", "good"), ("-1", "good"), ("500000", "could be better")]
)
def test_a_small_share_for_real_time_is_noted(runtime, state, monkeypatch):
    values = {"runtime": runtime, "period": "1000000"}
    monkeypatch.setattr(doctor, "_read", lambda path: values[path.split("_")[-2]])
    assert doctor._throttling()["state"] == state


@pytest.mark.parametrize(("p99_periods", "state"), [(2.0, "good"), (2.1, "could be better")])
def test_two_periods_are_the_limit_of_a_loop_back(p99_periods, state):
    found = {"p50_s": 0.001, "p99_s": 0.002, "max_s": 0.003, "p99_periods": p99_periods,
             "backend": {"board": "bench"}}  # fmt: skip
    assert doctor._loopback(found)["state"] == state


def test_every_finding_has_a_state_and_one_that_is_not_good_a_remedy(capsys):
    assert main(["doctor", "--json"]) in (0, 5)
    said = json.loads(capsys.readouterr().out)
    names = [finding["what"] for finding in said["findings"]]
    wanted = {"kernel", "preemption", "real-time priority", "locked memory", "CPU frequency",
              "clock source", "CPUs", "shared memory", "serial ports", "NI-DAQmx"}  # fmt: skip
    assert wanted <= set(names)
    for finding in said["findings"]:
        assert finding["found"]
        assert finding["state"] in ("good", "could be better", "unfit")
        assert finding["remedy"] or finding["state"] == "good", finding["what"]


def test_what_is_not_installed_is_named_with_its_purpose_and_its_command(monkeypatch, capsys):
    def version(name):
        if name in ("pyqtgraph", "h5py"):
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(install, "version", version)
    monkeypatch.setattr(install, "find_library", lambda name: None if name == "EGL" else name)
    assert main(["doctor", "--install"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"missing {install.CORE}: h5py", "        pip install hil-arrays"]
    at = lines.index("missing the window (gui): pyqtgraph")
    assert lines[at + 1] == "        scripts/setup gui"
    at = lines.index("missing libraries of the window: EGL")
    assert lines[at + 1] == "        sudo apt-get install libegl1"
    assert "ok      NI cards in this computer" in lines
    assert main(["doctor", "--install", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["purposes"]
    assert [row["missing"] for row in rows if row["missing"]] == [["h5py"], ["pyqtgraph"], ["EGL"]]


def test_every_extra_has_a_purpose():
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    assert set(install.EXTRAS) == set(extras) - {"all"}
