"""The soft-chain study: the specification's figures, and what it says of bad input."""

import json

import numpy as np
import pytest

from hil.__main__ import main
from hil_studies.soft_chain import compare as study_compare
from hil_studies.soft_chain import speed as bench

KEYS = ("tip_m", "energy_balance_J", "order", "step_us")


def study(out, *sets):
    arguments = [part for text in sets for part in ("--set", text)]
    code = main(["study", "soft-chain", "--out", str(out), *arguments])
    assert code == 0
    return json.loads((out / "results.json").read_text())


@pytest.fixture(scope="module")
def maxwell(tmp_path_factory):
    out = tmp_path_factory.mktemp("soft")
    return out, study(
        out, "case=RUBBER-MANIP-1", "element=maxwell", "segments=4", "h_s=2e-5",
        "t_s=[0.0, 0.5000051, 1.0]", "compare=false",
    )  # fmt: skip


@pytest.mark.slow
def test_the_results_hold_the_figures_asked_for(maxwell):
    out, results = maxwell
    assert all(key in results for key in KEYS)
    assert np.shape(results["tip_m"]) == (3, 2)
    assert results["tip_m"][0] == [0.5, 0.0]
    assert results["tip_m"][2] == pytest.approx([0.15911772, -0.27637540], abs=1e-8)
    assert results["energy_balance_J"] < 1e-9
    assert 1.95 < results["order"] < 2.05
    assert [c["what"] for c in results["checks"] if not c["agrees"]] == []
    assert (out / "motion.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_time_between_two_steps_lies_between_their_tips(maxwell, tmp_path):
    # 5.1 us after a step, at the tip's speed there; half a step is worth 1e-5 m.
    around = study(
        tmp_path, "element=maxwell", "segments=4", "h_s=2e-5", "t_s=[0.5, 0.50002]",
        "compare=false",
    )["tip_m"]  # fmt: skip
    share = 5.1e-6 / 2e-5
    expected = (1.0 - share) * np.array(around[0]) + share * np.array(around[1])
    assert maxwell[1]["tip_m"][1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.slow
def test_explicit_steps_are_of_order_four_and_meet_the_implicit_ones():
    tree, _ = study_compare.rubber_manipulator("solid", 2)
    ends = [study_compare.rk4_run(tree, h_s, 0.2)[0] for h_s in (4e-4, 2e-4, 1e-4)]
    steps = np.diff(ends, axis=0)
    assert np.abs(steps[0]).max() / np.abs(steps[1]).max() == pytest.approx(16.0, rel=0.1)
    ours, _ = study_compare.own_run(tree, 2e-5, 0.2, 0.8)
    assert ours == pytest.approx(ends[2], abs=1e-7)


@pytest.mark.slow
def test_scipy_on_the_recursion_goes_to_the_same_place():
    tree, _ = study_compare.rubber_manipulator("solid", 2)
    theirs, _ = study_compare.scipy_run(tree, "Radau", 1e-9, 0.2)
    assert study_compare.own_run(tree, 2e-5, 0.2, 0.8)[0] == pytest.approx(theirs, abs=1e-7)


def test_the_comparison_counts_only_what_is_as_good():
    rows = [
        {"tool": study_compare.OURS, "error_m": 1e-4, "time_s": 1.0},
        {"tool": study_compare.OURS, "error_m": 1e-6, "time_s": 4.0},
        {"tool": "other", "error_m": 1e-5, "time_s": 20.0},
        {"tool": "other", "error_m": 1e-9, "time_s": 50.0},
        {"tool": "other", "error_m": None, "time_s": 1.0},
    ]
    assert study_compare.ahead(rows) == {"other": [5.0]}


@pytest.mark.slow
def test_every_tool_is_timed_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "SEGMENTS", (2, 4))
    results = study(tmp_path, "segments=2", "h_s=1e-3")
    assert [f["file"] for f in results["figures"]] == [
        "motion.png", "fig3.png", "fig4.png", "work_precision.png",
    ]  # fmt: skip
    tools = {row["tool"] for row in results["work_precision"]}
    assert {study_compare.OURS, study_compare.RK4, study_compare.EXUDYN} <= tools
    assert all("pinocchio ABA_us" in row and "dense_us" in row for row in results["cost"])
    ours = {r["h_s"]: r["error_m"] for r in results["work_precision"] if r["tool"] == "recursion, "
            "generalized-alpha"}  # fmt: skip
    theirs = {r["h_s"]: r["error_m"] for r in results["work_precision"]
              if r["tool"] == study_compare.EXUDYN}  # fmt: skip
    assert {h: ours[h] for h in theirs} == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (["element=jelly"], "study soft-chain: element = 'jelly': must be"),
        (["segments=0"], "study soft-chain: segments = 0: must be greater than or equal to 1"),
        (["h_s=0"], "study soft-chain: h_s = 0: must be greater than or equal to 0.0000001"),
        (["t_s=[]"], "study soft-chain: t_s"),
        (["h_s=1e-7", "t_s=60"], "study soft-chain: h_s = 1e-07 needs more than"),
        (["case=OTHER"], "study soft-chain: case = 'OTHER': must be"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_one_line(sets, message, tmp_path, capsys):
    arguments = [part for text in sets for part in ("--set", text)]
    assert main(["study", "soft-chain", *arguments, "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(message)
