"""`hil replay --best`: a planner's run against the best sequence found for its array as learned."""

import json
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.reports import best
from hil.reports.run_report import write_report

QUICK = (
    "experiment.duration_s=3.5", "loop.period_s=0.01", "controller.plan_s=0.25",
    "controller.budget_s=0.05", "devices.board.every=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def ran(configs, tmp_path_factory):
    """A planner's run whose plant is its model but for one wire's force."""
    path = tmp_path_factory.mktemp("best") / "run.h5"
    config = hil.load(configs / "wires4/follow.toml", QUICK)
    return hil.run(config, out=path)


@pytest.mark.slow
def test_the_best_sequence_is_no_worse_and_the_report_says_how_far_the_run_was(ran, capsys):
    assert main(["replay", "--best", str(ran), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    own, found = figures["own"]["error_rms_N"], figures["best"]["error_rms_N"]
    assert found <= own
    own_N, least_N = (figures["from_rest"][name]["error_rms_N"] for name in ("own", "best"))
    assert least_N <= own_N
    assert own_N > 2.0 * own  # 3.5 s of cold wires: the first two leave most of it
    assert list(figures["swapped"]) == ["as it was", "noise", "knowledge", "price", "search"]
    for swapped in figures["swapped"].values():
        assert swapped["error_rms_N"] >= 0.5 * found
    page = write_report(ran)[1].read_text()
    assert "Distance from the best sequence" in page
    assert f"{own / found:.2f} times the error of the best sequence found" in page
    assert f"{own_N / least_N:.2f} times the best one from rest" in page


def test_another_controllers_run_and_a_short_one_are_refused_in_one_line(configs, tmp_path, capsys):
    sets = ["--set", "experiment.duration_s=0.1", "--out", str(tmp_path / "run.h5")]
    assert main(["run", str(configs / "miga6/pid.toml"), *sets]) == 0
    capsys.readouterr()
    assert main(["replay", "--best", str(tmp_path / "run.h5")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "text", [None, "", "[]", "null", "{}", '{"best": 1}', pytest.param("[" * 100_000, id="["),
             '{"best": {"error_rms_N": 0.0}, "own": {"error_rms_N": 0.0}, "from_s": 2.0}'],
)  # fmt: skip
def test_a_report_says_what_to_run_for_the_distance(ran, text):
    other = ran.with_name("other.h5")
    other.write_bytes(ran.read_bytes())
    if text is not None:
        other.with_name("other-best.json").write_text(text)
    [section] = best.sections(hil.open_run(other))
    assert section.sentences == [
        "Not computed yet, or damaged: hil replay --best other.h5, then report."
    ]


def test_a_folder_in_the_place_of_the_figures_is_refused_before_the_search(
    ran, capsys, monkeypatch
):
    monkeypatch.setattr(best, "replayed", None)
    folder = ran.with_name("run-best.json")
    folder.mkdir()
    assert main(["replay", "--best", str(ran)]) == 2
    assert f"{folder}: a folder, where the figures are" in capsys.readouterr().err
    assert len(best.sections(hil.open_run(ran))) == 1
    folder.rmdir()


def test_figures_of_a_version_that_did_not_search_from_rest_are_shown_without_that_row():
    of = {"error_rms_N": 0.02, "cycles": 1.0}
    figures = {"from_s": 2.0, "own": of, "best": of, "swapped": dict.fromkeys(best.SWAPS, of)}
    assert "from rest" not in best.as_text(Path("run.h5"), figures)
    figures["from_rest"] = {"own": {**of, "error_rms_N": 0.03}, "best": of}
    assert "0.03 N, 1.50 times the best one from rest" in best.as_text(Path("run.h5"), figures)


def test_powers_keep_the_last_state_that_is_known():
    cells = np.array([[0, 1], [1, 255], [255, 0], [1, 0]])
    assert best._powers({"cells_reported": cells}, modulated=False).tolist() == [
        [1, 1], [1, 0], [1, 0]
    ]  # fmt: skip


def test_the_mean_of_a_residual_leaves_out_what_is_missing():
    """Of a ramp the mean around each value is the value; at a gap, of its neighbours."""
    ramp = np.arange(9.0)
    assert best._smooth(ramp, 3)[1:-1] == pytest.approx(ramp[1:-1])
    ramp[4] = np.nan
    assert best._smooth(ramp, 3)[3:6] == pytest.approx([2.5, 4.0, 5.5])
