"""./run-miga6 and scripts/setup, with a `hil` that writes down what it is asked."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hil.experiment.load import load

ROOT = Path(__file__).resolve().parents[2]
HIL = """#!/bin/bash
echo "$@" >> hil.log
[ "$1" != run ] || exit $(cat code)
"""


@pytest.fixture
def clone(tmp_path):
    for name in ("run-miga6", "run-tests", "slow-tests", "scripts/setup"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    environment = 'set -euo pipefail\ncd "$(dirname "${BASH_SOURCE[0]}")/.."\n'
    environment += 'PATH="$PWD/bin:$PATH"\necho "extras $extras" >> hil.log\n'
    (tmp_path / "scripts/environment").write_text(environment)
    (tmp_path / "code").write_text("0")
    (tmp_path / "firmware/build").mkdir(parents=True)
    (tmp_path / "firmware/build/libboard.so").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/hil").write_text(HIL)
    (tmp_path / "bin/hil").chmod(0o755)
    return tmp_path


def run(clone, *words, shell="bash", cwd="."):
    done = subprocess.run(
        [shell, clone / words[0], *words[1:]], cwd=clone / cwd, capture_output=True, text=True
    )
    log = clone / "hil.log"
    return done, log.read_text().splitlines()[1:] if log.exists() else []


def test_what_is_said_to_it_is_said_to_hil_run_which_reports_what_it_recorded(clone):
    done, asked = run(clone, "run-miga6", "--seed", "7", "--out=mine.h5")
    assert (done.returncode, done.stderr) == (0, "")
    assert asked[0].startswith("run configs/miga6/pid.toml --report ")
    assert asked[0].endswith(" --seed 7 --out=mine.h5")


def test_the_mission_is_a_pid_on_the_real_clock_through_the_drivers_of_the_bench(clone):
    _, [asked] = run(clone, "run-miga6")
    assert asked.startswith("run configs/miga6/pid.toml ")
    assert "--backend drivers --clock real" in asked


def test_what_it_asks_for_is_an_experiment_that_this_version_accepts(configs):
    """The options of the script and the rigs they are for, through `load` itself."""
    sets = re.findall(r"--set ([^\s)]+)", (ROOT / "run-miga6").read_text())
    assert len(sets) == 3
    config = load(configs / "miga6/pid.toml", sets)
    assert config.tables.loop.overrun == "skip"
    lines = load(configs / "miga6_lines/pid.toml", [s for s in sets if "board" not in s])
    assert lines.tables.guard.reading_age_max_s == 2.0
    assert not lines.unusual


def test_the_open_loop_of_the_paper_is_simulated_as_before(clone):
    _, asked = run(clone, "run-miga6", "--seed", "7", "--open-loop", "--force")
    assert asked == ["run configs/miga6/all_on.toml --report --seed 7 --force"]


@pytest.mark.parametrize("words", [[], ["--open-loop"]])
def test_without_a_compiler_lines_of_a_card_switch_the_cells_and_one_line_says_so(clone, words):
    (clone / "firmware/build/libboard.so").unlink()
    done, asked = run(clone, "run-miga6", *words)
    assert done.returncode == 0
    [line] = done.stderr.splitlines()
    assert line.startswith("left out: the board's firmware and NI's library")
    name = "all_on" if words else "pid"
    assert asked[0].startswith(f"run configs/miga6_lines/{name}.toml --report")
    assert "drivers" not in asked[0]
    assert "devices.board" not in asked[0]


@pytest.mark.parametrize("code", [0, 2, 3, 4, 130])
def test_its_exit_code_is_that_of_the_run(clone, code):
    (clone / "code").write_text(str(code))
    assert run(clone, "run-miga6")[0].returncode == code


def test_help_is_that_of_hil_run_and_nothing_runs(clone):
    done, asked = run(clone, "run-miga6", "--help")
    assert asked == ["run --help"]
    assert "--open-loop" in done.stdout


def test_from_another_folder_it_says_where_its_files_are(clone):
    assert run(clone, "run-miga6", cwd="bin")[0].stdout == f"In {clone}:\n"
    assert run(clone, "run-miga6")[0].stdout == ""


@pytest.mark.parametrize("name", ["run-miga6", "scripts/setup"])
def test_sh_in_place_of_bash_does_the_same(clone, name):
    done, _ = run(clone, name, shell="sh")
    assert (done.returncode, done.stderr) == (0, "")
    assert (clone / "hil.log").read_text().startswith("extras gui,daq\n")


def test_set_up_without_a_word_takes_its_default_and_help_installs_nothing(clone):
    assert "Makes .venv" in run(clone, "scripts/setup", "--help")[0].stdout
    assert not (clone / "hil.log").exists()
    run(clone, "scripts/setup", "")
    assert (clone / "hil.log").read_text() == "extras gui,daq\n"


def test_set_up_without_a_compiler_says_what_it_leaves_out(clone):
    assert run(clone, "scripts/setup")[0].stderr == ""
    (clone / "firmware/build/libboard.so").unlink()
    done, _ = run(clone, "scripts/setup")
    assert done.returncode == 0
    assert done.stderr.startswith("Without a C compiler the simulated driver board is left out")
