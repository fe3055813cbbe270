"""The report of an impact run: predicted against measured, every trial, in words where none was."""

import json
from dataclasses import fields

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import hil
from hil.__main__ import main
from hil.experiment.load import load
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.systems.pantograph.cases import Case, Impact
from hil.systems.pantograph.figures import draw_against
from hil.systems.pantograph.impact import SYMMETRIC_M, predict
from hil.systems.pantograph.impact_trial import Trial
from hil.systems.pantograph.linkage import Pantograph


@pytest.fixture(scope="module")
def reported(configs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("impact")
    sets = ("controller.gamma_deg=[0.0, 30.0]", "controller.repeats=2",
            "controller.travel_s=0.4", "experiment.duration_s=3.8")  # fmt: skip
    config = load(configs / "pantograph/impact_symmetric.toml", sets)
    session.run(Plan(config), Output(out=folder / "run.h5"))
    assert main(["report", str(folder / "run.h5")]) == 0
    return folder


@pytest.mark.slow
def test_every_trial_is_analysed_and_agrees_with_what_was_predicted(reported):
    found = json.loads((reported / "run-impacts.json").read_text())
    assert found["failed"] == []
    assert [case["n_trials"] for case in found["cases"]] == [2, 2]
    ideal = predict(Pantograph().inverse(SYMMETRIC_M), [0.0, 30.0], 0.01)
    for i, case in enumerate(found["cases"]):
        measured = case["measured"]
        # The joints' damping, which the model does not know, takes up to 1 % on the last coast.
        assert measured["T_c_J"]["mean"] == pytest.approx(ideal.split.T_c_J[i], rel=0.01)
        assert measured["impulse_n_N_s"]["mean"] == pytest.approx(ideal.impulse_N_s[i], rel=0.01)
        assert 0.0 < measured["T_c_J"]["standard_uncertainty"] < 1e-4
        for trial in case["trials"]:
            assert trial["closure"] == pytest.approx(1.0, abs=0.005)
    oblique = found["cases"][1]["measured"]
    # The plant's friction: F_t = -mu F_n, less 0.4 % by the sensor's turn.
    ratio = oblique["impulse_t_N_s"]["mean"] / oblique["impulse_n_N_s"]["mean"]
    assert ratio == pytest.approx(-0.05 - 0.004, abs=0.001)
    assert oblique["T_a_after_J"]["mean"] < oblique["T_a_J"]["mean"]
    # The model believes in less friction than the plant has: the prediction lies between.
    said = found["cases"][1]["predicted_with_friction"]
    assert said["impulse_t_N_s"] == pytest.approx(-0.04 * said["impulse_n_N_s"], rel=1e-9)
    assert oblique["T_a_after_J"]["mean"] < said["T_a_after_J"] < oblique["T_a_J"]["mean"]


@pytest.mark.slow
def test_the_page_has_both_tables_the_figures_and_what_is_not_reproduced(reported):
    page = (reported / "run.html").read_text()
    for text in ("Table III", "Table IV", "Fig. 9", "Predicted against measured", "SIMULATED",
                 "Not reproduced", "120.53", "The whole run"):  # fmt: skip
        assert text in page
    assert page.count("data:image/png;base64") == 3


@pytest.mark.slow
def test_the_asymmetric_page_has_what_is_known_of_tables_v_and_vi(configs, tmp_path):
    sets = ("controller.gamma_deg=[-7.58, 0.0]", "controller.repeats=1",
            "controller.travel_s=0.4", "experiment.duration_s=2.2")  # fmt: skip
    config = load(configs / "pantograph/impact_asymmetric.toml", sets)
    session.run(Plan(config), Output(out=tmp_path / "run.h5"))
    assert main(["report", str(tmp_path / "run.h5")]) == 0
    page = (tmp_path / "run.html").read_text()
    printed = [row for row in page.split("<tr>") if ">printed<" in row]
    assert len(printed) == 3  # case 5 of Table V; cases 5 and 6 of Table VI
    for row, texts in zip(printed, ((">10<", ">1<"), (">109.6<",), (">105.9<", ">1.40<")),
                          strict=True):  # fmt: skip
        assert all(text in row for text in texts)
    assert "3.5 % below to 6.2 % above" in page


@pytest.mark.slow
def test_a_run_that_met_nothing_is_reported_with_the_reason(configs, tmp_path):
    sets = ("controller.gamma_deg=[0.0]", "experiment.duration_s=2.0", "controller.repeats=1",
            "plant.plate.y_m=0.26")  # fmt: skip
    config = load(configs / "pantograph/impact_symmetric.toml", sets)
    session.run(Plan(config), Output(out=tmp_path / "run.h5"))
    assert main(["report", str(tmp_path / "run.h5")]) == 0
    found = json.loads((tmp_path / "run-impacts.json").read_text())
    assert found["cases"][0]["n_trials"] == 0
    assert "no contact" in found["failed"][0]
    assert "Left out: trial 0" in (tmp_path / "run.html").read_text()


@pytest.mark.slow
def test_the_recording_holds_what_the_report_needs(reported):
    run = hil.open_run(reported / "run.h5")
    assert run.trial.attrs["role"] == "state"
    assert set(np.unique(run.trial.values)) == {-1.0, 0.0, 1.0, 2.0, 3.0}
    assert run.T_c_estimate_J.attrs["units"] == "J"


@pytest.mark.parametrize("elbows", ["outward", "inward", "left"])
def test_the_figure_draws_each_prediction_within_its_band_whatever_the_elbows_are(elbows):
    """The band is that of the printed parameters' rounding, so it holds what they give."""
    rig = Pantograph()
    pose = rig.inverse((0.05, 0.22), elbows)
    trial = Trial(**{f.name: 0.0 for f in fields(Trial)} | {"standard": {}})
    case = Case(20.0, [trial], {}, None, {}, {})
    impact = Impact(rig, pose, 0.01, 0.0, [case], [], elbows)
    axis = draw_against(impact, impact.cases, simulated=False).axes[0]
    lines = [line for line in axis.lines if "ideal" in str(line.get_label())]
    drawn = [part for part in axis.collections if isinstance(part, PolyCollection)]
    for line, band in zip(lines, drawn, strict=True):
        x, y = band.get_paths()[0].vertices.T
        for at, value in zip(line.get_xdata(), line.get_ydata(), strict=True):
            edge = y[np.isclose(x, at, rtol=0.0, atol=1e-9)]
            assert edge.min() - 1e-9 <= value <= edge.max() + 1e-9
