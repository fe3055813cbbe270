"""`hil study walker` gives the derived figures, every combination, and the paper's curves."""

import itertools
import json

import numpy as np
import pytest

from hil.__main__ import main


def study(out, *sets):
    arguments = [part for text in sets for part in ("--set", text)]
    assert main(["study", "walker", "--out", str(out), *arguments]) == 0
    return json.loads((out / "results.json").read_text())


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    return out, study(out)


@pytest.mark.slow
def test_only_the_printed_lift_off_angle_is_not_reproduced(default):
    out, results = default
    assert len(results["checks"]) == 7
    missed = [c["what"] for c in results["checks"] if not c["agrees"]]
    assert missed == ["Lift-off lost beyond, rho = 0 (printed)"]
    assert any("44.48" in note and "43" in note for note in results["notes"])
    page = (out / "index.html").read_text()
    for figure in results["figures"]:
        assert (out / figure["file"]).read_bytes().startswith(b"\x89PNG")
        assert figure["file"] in page


def test_the_curves_say_what_the_paper_says_of_its_figures(default):
    _, results = default
    point, quarter, half = (
        {k: np.array(v) for k, v in curve.items()} for curve in results["fig2_3"]
    )
    # "the larger the foot radius is, the lower the energetic losses"; impulses alike
    for key in ("T_c_J", "lambda_n_N_s"):
        assert np.all(point[key] > quarter[key])
        assert np.all(quarter[key] > half[key])
        assert np.all(np.diff(point["T_c_J"]) > 0.0)
    assert np.all(quarter["lambda_t_N_s"] < 0.0)
    light, even, heavy = ({k: np.array(v) for k, v in curve.items()} for curve in results["fig4_5"])
    # "for negative q5 a low value mu is better, for positive q5 a high value"
    assert light["T_c_J"][0] < even["T_c_J"][0] < heavy["T_c_J"][0]
    assert light["T_c_J"][-1] > even["T_c_J"][-1] > heavy["T_c_J"][-1]


def test_the_gait_balances_its_energy_and_is_stable(default):
    _, results = default
    gait = results["gait"]
    assert gait["found"]
    assert gait["stable"]
    assert gait["T_c_J"] == pytest.approx(gait["slope_pays_J"], rel=1e-7)
    assert len(gait["steps_theta_deg"]) == 40


@pytest.mark.slow
def test_rows_are_every_combination_with_the_published_names(tmp_path):
    lists = {"theta_deg": [20.0, 40.0], "rho": [0.0, 0.25], "mu": [1.0], "torso_deg": [-10.0, 5.0]}
    results = study(tmp_path, *(f"{k}={v}" for k, v in lists.items()), "n_steps=2")
    names = {*lists, "T_c_J", "T_a_J", "lambda_n_N_s", "lambda_t_N_s", "lift_off",
             "friction_needed"}  # fmt: skip
    assert [tuple(r[k] for k in lists) for r in results["rows"]] == list(
        itertools.product(*lists.values())
    )
    for row in results["rows"]:
        assert row.keys() == names
        closed = row["lambda_n_N_s"] * (1 - row["rho"]) * 0.8
        closed *= np.sin(np.deg2rad(row["theta_deg"] / 2))
        assert row["T_c_J"] == pytest.approx(closed, rel=1e-10)


@pytest.mark.slow
def test_a_slope_without_a_gait_is_said_in_words_and_the_sweeps_stay(tmp_path):
    results = study(tmp_path, "slope_deg=20")
    assert not results["gait"]["found"]
    assert any("no gait found on a slope of 20 deg" in note for note in results["notes"])
    assert len(results["figures"]) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("theta_deg=[40, 0]", "theta_deg = 0"),
        ("rho=1.5", "rho = 1.5"),
        ("mu=0", "mu = 0"),
        ("torso_deg=nan", "finite"),
        ("slope_deg=0", "greater than 0"),
        ("theta_deg=[]", "theta_deg"),
    ],
)
def test_what_cannot_walk_is_one_line(text, message, tmp_path, capsys):
    assert main(["study", "walker", "--set", text, "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_more_combinations_than_anybody_reads_are_refused(tmp_path, capsys):
    many = str([20.0 + 0.1 * i for i in range(500)])
    sets = ["--set", f"theta_deg={many}", "--set", f"torso_deg={many}"]
    assert main(["study", "walker", *sets, "--out", str(tmp_path / "out")]) == 2
    assert "250000 combinations of the given values" in capsys.readouterr().err
