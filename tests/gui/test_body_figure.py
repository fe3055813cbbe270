"""The stick figure of a skeleton of rigid bodies."""

import numpy as np
import pytest

import hil
from hil.experiment.load import load
from hil.runs.assembly import build
from hil.runs.plan import Plan
from hil_gui.data import drawn, load_settings, preview


@pytest.fixture(scope="module")
def settings(configs):
    return load_settings(configs / "body/sway.toml", {})[0]


@pytest.mark.slow
def test_an_upright_body_is_as_tall_as_its_links(settings):
    picture = drawn(settings).mechanism
    lines, muscles = picture.place(picture.start)
    assert muscles == []
    # De Leva's lengths from toe to vertex, and the arms, stretched up, above the shoulders.
    right_leg = np.concatenate([lines[i] for i in (3, 4, 5)])
    assert np.ptp(right_leg[:, 1]) == pytest.approx(0.2581 + 0.4403 + 0.4222, abs=1e-9)
    depth = np.array([0.7, 0.15])
    hips = lines[5][1] - lines[8][1]  # right thigh's top, left thigh's
    np.testing.assert_allclose(hips, -0.17 * depth, atol=1e-9)
    assert len(lines) == 18 + 4  # and from the trunk's ends to hips and shoulders


def test_a_body_that_leans_forward_is_drawn_to_the_right(settings):
    picture = drawn(settings).mechanism
    pose = picture.start.copy()
    pose[1:54:3] = 0.1  # every link's pitch
    upright, leaning = (picture.place(p)[0][17][1] for p in (picture.start, pose))
    assert leaning[0] > upright[0] + 0.05


def test_an_experiment_shows_its_body_before_it_runs(window, settings, configs):
    window.show_preview(preview(configs / "body/sway.toml", settings))
    assert window.paths.limb.is_shown
    assert window.docks["Path"].isVisible()


def test_every_angle_of_the_figure_is_a_column_of_the_recording(settings, configs):
    config = load(configs / "body/sway.toml")
    names = {column.name for column in build(Plan(config)).frame.columns}
    assert set(drawn(settings).mechanism.angles) <= names


@pytest.mark.slow
def test_the_readings_say_what_the_twin_is_not_told_of(opened, configs, tmp_path):
    config = load(configs / "body/sway.toml", ("experiment.duration_s=0.1",))
    window = opened(hil.run(config, out=tmp_path / "run.h5"))
    told = "The twin is not told of a push of 40 N on torso.upper from 4 to 4.2 s"
    numbers = window.numbers
    assert numbers.untold.isVisible()
    assert numbers.untold.text() == told
