"""The proof of the core: it holds, and it fails on a core in which one thing is broken."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from firmware.boards import FIRMWARE, make

PUBLISHED = FIRMWARE.parent / "docs/slow-tests/proof.txt"


class Change(NamedTuple):
    """A place of the core, what it is broken into, and what must find that."""

    exploration: str
    finds: str
    file: str
    old: str
    new: str


CHANGES = tomllib.loads(Path(__file__).with_name("core_mutants.toml").read_text())
EXPLORED = [Change(*change) for change in CHANGES["changes"]]
# turns from a reset, for the daily tests; the slow ones go on until there is no further state
TURNS = {
    "commands": 5,
    "currents": 6,
    "gates": 4,
    "temperatures": 4,
    "references": 4,
    "duties": 6,
    "heat": 3,
    "tables": 6,
    "flips": 12,
    "apart": 7,
    "sensing": 6,
    "sensing_apart": 7,
    "supply": 9,
    "arduino": 4,
}


def of_property(name):
    """Where and how the first change that this property must find breaks the core."""
    return next(change[2:] for change in EXPLORED if change.finds == name)


ANALYSED_MUTANTS = [
    ("off_unless_armed", *of_property("off_unless_armed")),
    ("no_rise_after_estop", *of_property("no_rise_after_estop")),
    ("inductive", *of_property("no_rise_after_fault")),
    ("inductive", *of_property("pulse_in_arming")),
    ("pulses_bounded", *of_property("pulses_bounded")),
    ("inductive", *of_property("armed_to_be_high")),
    ("no_run_time_error", "frame.c", "if (n == WIRE_FRAME_MAX) {", "if (false) {"),
    ("no_run_time_error", "command.c", "    if (heat >= most)\n        return 255;\n", ""),
]


def _mutant(folder, file, old, new):
    """The firmware with one place of the core broken."""
    shutil.copytree(FIRMWARE, folder, ignore=shutil.ignore_patterns("build"))
    source = (folder / "core" / file).read_text()
    assert source.count(old) == 1, f"{file} has not one: {old}"
    (folder / "core" / file).write_text(source.replace(old, new))
    return folder


def _explored(build, *arguments):
    """Verdict of each property, and what has been explored."""
    done = subprocess.run([build / "explore", *arguments], capture_output=True, text=True)
    assert done.stdout, done.stderr
    *rows, summary = done.stdout.splitlines()
    return {row.split()[0]: row.split()[1] for row in rows}, summary


@pytest.fixture(scope="module")
def whole_core(tmp_path_factory):
    """A copy of the firmware, and where it is built."""
    folder = tmp_path_factory.mktemp("core") / "whole"
    shutil.copytree(FIRMWARE, folder / "firmware", ignore=shutil.ignore_patterns("build", "board"))
    make(folder / "build", "explore", source=folder / "firmware")
    return folder


@pytest.fixture(scope="module")
def broken_core(whole_core):
    """The same, to be broken."""
    return shutil.copytree(whole_core, whole_core.with_name("broken"))


def test_every_exploration_is_made_daily(whole_core):
    listed = subprocess.run([whole_core / "build/explore"], capture_output=True, text=True)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(TURNS)


@pytest.mark.parametrize(("exploration", "turns"), TURNS.items())
def test_every_state_within_some_turns_of_a_reset_is_safe(whole_core, exploration, turns):
    verdicts, summary = _explored(whole_core / "build", exploration, str(turns))
    assert set(verdicts.values()) == {"holds"}, verdicts
    assert int(re.search(r"(\d+) states", summary)[1]) > 100


def _break(core, file, old, new, *targets):
    """Builds targets with one change, which may leave a variable without use."""
    source = core / "firmware" / "core" / file
    whole = source.read_text()
    assert whole.count(old) == 1, f"{file} has not one: {old}"
    source.write_text(whole.replace(old, new))
    try:
        return make(core / "build", *targets, "WARN=-std=c11", source=core / "firmware")
    finally:
        source.write_text(whole)


@pytest.mark.slow_beyond(3)
@pytest.mark.parametrize(
    "change", EXPLORED, ids=lambda change: f"{change.exploration}-{change.finds}"
)
def test_the_exploration_finds_what_is_broken(broken_core, change):
    build = _break(broken_core, *change[2:], "explore")
    verdicts, _ = _explored(build, change.exploration, "1000", change.finds)
    assert verdicts[change.finds] == "VIOLATED", verdicts


def test_every_property_finds_something_broken(whole_core):
    verdicts, _ = _explored(whole_core / "build", "flips", "0")
    assert {change.finds for change in EXPLORED} == set(verdicts) - {"merged_alike"}


def _heat_is_proven(build, step):
    """Whether the steps of the proof hold for each of that many values."""
    done = subprocess.run([build / "heat_steps", step], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0


def test_the_heat_budget_is_never_below_that_of_the_wire(whole_core):
    heat_steps = whole_core / "build/heat_steps"
    build = make(whole_core / "build", heat_steps, source=whole_core / "firmware")
    assert _heat_is_proven(build, "997")


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("change", CHANGES["heat"], ids=lambda change: change[1].strip()[:30])
def test_the_proof_of_the_heat_budget_fails_on_broken_arithmetic(broken_core, change):
    build = _break(broken_core, "heat.c", *change, broken_core / "build/heat_steps")
    assert not _heat_is_proven(build, "97")


def _proven(source, build, *cells):
    make(build, "explore", build / "heat_steps", source=source)
    return subprocess.run(
        [sys.executable, "proof/prove.py", build, *cells],
        cwd=source,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.hours
def test_the_core_is_proven(tmp_path):
    done = _proven(FIRMWARE, tmp_path, "1", "12", "16")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT PROVEN" not in done.stdout
    assert done.stdout == PUBLISHED.read_text()


@pytest.mark.slow
def test_the_published_proof_is_of_this_core_and_of_every_property(whole_core):
    """The proof takes two hours: `make -C firmware proof` after a change of the core."""
    text = PUBLISHED.read_text()
    verdicts, summary = _explored(whole_core / "build", "flips", "0")
    core = re.search(r"core (\w+)", summary)[1]
    assert {*re.findall(r" of core (\w+):", text)} == {core}
    rows = [line.split() for line in text.splitlines() if " proven " in line]
    assert {row[0] for row in rows} >= {*verdicts, "heat_budget", "no_run_time_error"}
    for cells in (1, 12, 16):
        for machine in ("32-bit", "16-bit"):
            assert len(re.findall(f"proven +{cells} cells, {machine} int", text)) == 9


ANALYSE = """
import sys
from pathlib import Path
sys.path.insert(0, "proof")
import prove
for row in prove.analysed(Path(sys.argv[1]), 1, "x86_16"):
    print(row.name, row.proven)
"""


@pytest.mark.slow
@pytest.mark.hours
@pytest.mark.parametrize("mutant", ANALYSED_MUTANTS, ids=lambda mutant: f"{mutant[0]}-{mutant[1]}")
def test_the_analysis_fails_on_a_core_that_is_broken(tmp_path, mutant):
    name, *place = mutant
    source = _mutant(tmp_path / "firmware", *place)
    done = subprocess.run(
        [sys.executable, "-c", ANALYSE, tmp_path], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"{name} False" in done.stdout.splitlines(), done.stdout
