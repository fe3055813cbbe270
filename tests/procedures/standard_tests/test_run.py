"""`hil test`: bad input in one line; a test from the rig to its page, resumed where it stopped."""

import json

import numpy as np
import pytest

from hil.__main__ import main
from hil.commands.runs import TESTS
from hil.procedures.standard_tests import run as runs


def test_the_help_lists_every_test():
    assert set(TESTS) == set(runs.NAMES)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["isobric", "isotonic/rig.toml"], "did you mean 'isobaric'?"),
        (["isobaric", "isotonic/pulse.toml"], "not a rig: give a file such as"),
        (["isobaric", "slider/rig.toml"], "has no cells"),
        (["isobaric", "wires4/rig.toml"], "needs a channel of displacement"),
        (["isometric", "isotonic/rig.toml"], "needs a channel of force"),
        (["isobaric", "isotonic/rig.toml", "--set", "heat=3"], "this test has cycles, heat_s"),
        (["isobaric", "isotonic/rig.toml", "--set", "cycles=0"], "cycles"),
        (["isobaric", "wires4/rig.toml", "--set", "loads_N=[1.0]"], "needs"),
        (["fatigue", "isotonic/rig.toml", "--set", "heat_s=60.0"], "guard.cell_on_max_s"),
        (["bode", "isotonic/rig.toml", "--set", "bit_s=9.0"], "lower heat_s or bit_s"),
        (["isobaric", "isotonic/rig.toml", "--set", "heat_s=60.0"], "guard.cell_on_max_s = 20"),
        (["force-velocity", "spring_bias/rig.toml"], "one free point without a spring"),
        (["isobaric", "nowhere/rig.toml"], "nowhere"),
    ],
)
def test_what_cannot_be_tested_is_refused_in_one_line(args, words, configs, tmp_path, capsys):
    name, rig, *sets = args
    assert main(["test", name, str(configs / rig), *sets, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert words in error[0]


@pytest.mark.slow
def test_a_test_that_does_not_heat_far_enough_says_so_and_keeps_its_recordings(
    configs, tmp_path, capsys
):
    out = tmp_path / "out"
    short = ["--set", "cycles=1", "--set", "heat_s=0.8", "--set", "cool_s=0.5"]
    rig = str(configs / "isotonic" / "rig.toml")
    assert main(["test", "isobaric", rig, "--out", str(out), *short]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "test isobaric: the hot end of a branch is not flat: heat it further" in error
    assert [path.name for path in (out / "campaign/trials").iterdir()] == ["0001-1.h5"]


@pytest.mark.slow
def test_every_load_is_a_trial_and_gives_a_slope_of_stress_over_temperature(configs, tmp_path):
    """Flexinol's slopes are 8.3 MPa/K on heating and 7.5 on cooling (docs/wires.md)."""
    out = tmp_path / "out"
    sets = ["cycles=1", "heat_s=6.0", "cool_s=5.0", "loads_N=[0.6, 1.4]"]
    rig = str(configs / "isotonic" / "rig.toml")
    words = [word for change in sets for word in ("--set", change)]
    assert main(["test", "isobaric", rig, "--out", str(out), *words]) == 0
    slopes = json.loads((out / "results.json").read_text())["tables"][1]["rows"]
    found = {name: float(value) for name, value in slopes}
    # Tangents cut a broad branch: stress widens its core, so start and finish differ.
    assert 0.5 * (found["A_s"] + found["A_f"]) == pytest.approx(8.3, rel=0.06)
    assert 0.5 * (found["M_s"] + found["M_f"]) == pytest.approx(7.5, rel=0.06)


@pytest.mark.slow
def test_fatigue_goes_on_where_it_was_stopped(configs, tmp_path, capsys):
    rig, out = configs / "isotonic" / "rig.toml", tmp_path / "out"
    sets = ["--set", "heat_s=0.3", "--set", "cool_s=0.2", "--set", "block=2",
            "--set", "whole_every=4", "--set", "reference_cycles=1",
            "--set", "stroke_lost_max=1.0"]  # fmt: skip
    command = ["test", "fatigue", str(rig), "--out", str(out), *sets]
    assert main([*command, "--set", "cycles=3"]) == 0
    assert main([*command, "--set", "cycles=4"]) == 0
    assert "continues after 3 cycles" in capsys.readouterr().err
    assert sorted(p.name for p in (out / "whole").iterdir()) == [
        "cycle-0000001.h5", "cycle-0000004.h5",
    ]  # fmt: skip
    assert not (out / "block.h5").exists()
    book = np.fromfile(out / "cycles.bin", runs.fatigue.SUMMARY)
    assert book["cycle"].tolist() == [1, 2, 3, 4]
    assert np.isfinite(book["ohm"]).all()
    assert json.loads((out / "results.json").read_text())["cycles"] == 4
    assert (out / "index.html").is_file()
