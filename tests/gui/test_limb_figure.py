"""The stick figure of a limb: bones, muscles in the colour of their activation, over a run."""

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtGui import QColor

from hil_gui import speed
from hil_gui.data import drawn, load_settings, preview
from hil_gui.run_data import Column, RunData


@pytest.fixture(scope="module")
def settings(configs):
    return load_settings(configs / "leg/up.toml", {})[0]


def test_bones_and_muscles_stand_where_the_thesis_puts_them(settings):
    picture = drawn(settings).mechanism
    assert picture.bones == ("thigh", "shin", "foot")
    bones, muscles = picture.place(np.zeros(3))
    # Fig. 10: hip, knee, ankle straight below each other
    np.testing.assert_allclose(bones[0], [[0.0, 0.0], [0.0, -0.3958]], atol=1e-12)
    np.testing.assert_allclose(bones[1], [[0.0, -0.3958], [0.0, -0.8258]], atol=1e-12)
    # Table 5: the heel 0.1126 behind and the toe 0.1 before the foot's centre of mass
    ankle, heel, toe, back = bones[2]
    np.testing.assert_allclose(ankle, back)
    np.testing.assert_allclose(heel, [0.0636 - 0.1126, -0.8406 + 0.0038], atol=1e-12)
    np.testing.assert_allclose(toe, [0.0636 + 0.1, -0.8406], atol=1e-12)
    assert [len(m) for m in muscles] == [3, 2]
    np.testing.assert_allclose(muscles[1][-1], heel, atol=1e-12)


def test_a_raised_toe_is_drawn_raised(settings):
    bones, _ = drawn(settings).mechanism.place(np.array([0.0, 0.0, 0.1]))
    assert bones[2][2, 1] > -0.8406 + 0.014


def test_rigs_of_another_kind_have_no_figure(configs):
    assert drawn(load_settings(configs / "slider/steps.toml", {})[0]).mechanism is None


def test_the_figure_moves_with_the_run_and_lights_its_muscles(window, settings, configs):
    picture = drawn(settings).mechanism
    names = [*picture.angles, *picture.activations]
    columns = [Column(name, "1", "model", "") for name in names]
    columns += [Column("t_s", "s", "timing", ""),
                Column("fault_bits", "1", "fault", "", flags=("a",))]  # fmt: skip
    about = replace(speed.about(), columns=tuple(columns), cell_names=(), figure=drawn(settings))
    data = RunData(about)
    t_s = np.arange(0.0, 1.0, 0.01)
    rows = {name: np.zeros(len(t_s)) for name in names}
    rows["ankle.angle_model_rad"] = 0.2 * t_s
    rows["TA_commanded"], rows["SOL_commanded"] = 10.0 ** (3.0 * t_s - 3.0), 0.001 + 0.0 * t_s
    data.append({**rows, "t_s": t_s, "fault_bits": np.zeros(len(t_s), np.uint64)})
    window._show_run(data)
    assert window.docks["Path"].isVisible()
    assert window.docks["Array"].isHidden()
    figure, theme = window.paths.limb, window.paths.limb._theme
    window.paths.show_run(data, 0.99)
    x, y = figure._bones[2].getData()
    expected = picture.place(np.array([0.0, 0.0, 0.198]))[0][2]
    np.testing.assert_allclose(np.column_stack((x, y)), expected, atol=1e-6)
    assert figure._labels[0].toPlainText() == "TA 0.933"
    assert figure.colour(1.0) == QColor(theme.fault)
    assert figure.colour(0.001) == QColor(theme.line)
    # holding still, 1.36 %, is told from relaxed
    assert figure.colour(0.0136).greenF() < figure.colour(0.001).greenF() - 0.1
    window.show_preview(preview(configs / "slider/steps.toml",
                                load_settings(configs / "slider/steps.toml", {})[0]))  # fmt: skip
    assert not figure.is_shown


def test_an_experiment_shows_its_leg_before_it_runs(window, settings, configs):
    window.show_preview(preview(configs / "leg/up.toml", settings))
    assert window.paths.limb.is_shown
    assert window.docks["Path"].isVisible()
    assert window.paths.limb._labels[0].toPlainText() == "TA"
