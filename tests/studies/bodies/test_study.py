"""`hil study body`, short, and what it refuses."""

import json

import numpy as np
import pytest

from hil.bundled_configs import root
from hil.errors import ConfigError
from hil.runs.study import as_text, run_study
from hil.systems.bodies.build import load_skeleton
from hil.systems.bodies.motion import BodyMotion
from hil_studies.bodies.moving import dropped

SHORT = ("states=3", "duration_s=0.4")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("body")
    run_study("body", SHORT, out)
    return json.loads((out / "results.json").read_text()), out


@pytest.mark.slow
def test_every_figure_of_the_specification_agrees(results):
    found, _ = results
    assert found["dimensions"] == [108, 72, 57]
    assert [c["what"] for c in found["checks"] if not c["agrees"]] == []
    # Theta three times, L and E, singularity, hinge, dimensions, pinocchio, momentum, m g
    assert len(found["checks"]) == 10
    for held in ("angles_J", "quaternion_J"):
        assert max(np.diff(found["one_body"]["lyapunov"][held])) <= 1e-10


@pytest.mark.slow
def test_forces_of_joints_and_ground_are_in_the_results(results):
    found, _ = results
    both, one, none = found["standing"]
    assert set(both["support_N"]) == {"right_toe", "left_toe"}
    assert len(both["joint_N"]) == 17
    assert both["sum_N"][2] == pytest.approx(9.81 * 73.0, rel=1e-6)
    assert set(one["support_N"]) == {"right_toe"}
    assert none["support_N"] == {}
    assert none["centre_m_per_s2"] == pytest.approx([0.0, 0.0, -9.81], abs=1e-12)


@pytest.mark.slow
def test_all_comparisons_are_made_on_both_feet_one_and_none(results):
    found, _ = results
    stands = {row["stands on"] for row in found["agreement"]}
    assert stands == {"nothing, in the air", "right_toe", "right_toe and left_toe"}
    assert max(row["largest"] for row in found["agreement"]) < 1e-12
    assert {row["tool"] for row in found["timings"]} >= {"recursion", "projected (57)"}


@pytest.mark.slow
def test_the_page_has_its_figures(results):
    found, out = results
    page = (out / "index.html").read_text()
    for figure in found["figures"]:
        assert (out / figure["file"]).stat().st_size > 10_000
        assert figure["file"] in page
    assert "Figs. 7 and 8" in as_text(found)


@pytest.mark.slow
def test_a_hand_is_compared_as_a_body_is(tmp_path):
    found = run_study("body", ["states=1", "duration_s=0.3", "rig=configs/hand/rig.toml"], tmp_path)
    assert found["dimensions"] == [108, 72, 57]
    assert all(check["agrees"] for check in found["checks"])


def test_a_dropped_body_is_followed_until_it_has_lost_four_tenths_of_its_height(monkeypatch):
    _, table = load_skeleton(root() / "configs/body/rig.toml")
    heights, centre_of = [], BodyMotion.centre_of_mass_m

    def seen(motion):
        heights.append(centre_of(motion)[2])
        return centre_of(motion)

    monkeypatch.setattr(BodyMotion, "centre_of_mass_m", seen)
    dropped(table.model_copy(update={"coactivation": 0.0}), 1.0)
    assert heights[-1] < 0.6 * max(heights) <= heights[-2]


@pytest.mark.parametrize(
    ("change", "says"),
    [("rig=nowhere.toml", "no such file"), ("rig=configs/slider/rig.toml", "needs a model of kind"),
     ("states=0", "states"), ("length=3", "this study has rig")],
)  # fmt: skip
def test_values_it_cannot_take_are_one_line(tmp_path, change, says):
    with pytest.raises(ConfigError, match=says) as refused:
        run_study("body", [change], tmp_path)
    assert "\n" not in str(refused.value)
