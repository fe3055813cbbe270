"""The arm in the window: its links in their order, from the side and from above."""

import numpy as np
import pytest

import hil
from hil_gui.run_data import Column, find_paths, find_points


@pytest.fixture(scope="module")
def recording(configs, tmp_path_factory):
    out = tmp_path_factory.mktemp("arm") / "run.h5"
    sets = ("experiment.duration_s=2.5",)
    return hil.run(hil.load(configs / "arm/pointing.toml", sets), out=out)


@pytest.mark.slow
def test_the_arm_stands_from_shoulder_to_fingertip_in_both_views(opened, recording):
    window, t_s = opened(recording), 1.4004
    run = hil.open_run(recording).sel(t_s=t_s, method="pad")
    assert window.docks["Path"].isVisible()
    assert not window.paths.above.isHidden()
    window.paths.show_run(window.data, t_s)
    for plane, axes in ((window.paths.side, "xz"), (window.paths.above, "xy")):
        found = plane.figure.getData()
        for values, axis in zip(found, axes, strict=True):
            expected = [
                float(run[f"{place}_{axis}_estimate_m"])
                for place in ("shoulder", "elbow", "wrist", "tip")
            ]
            np.testing.assert_allclose(values, expected, atol=1e-12)
        # links keep their lengths in space, so that neither view shows more of them
        assert np.hypot(*np.diff(found, axis=1)).max() <= 0.27 + 1e-9
        x, _ = plane.wanted.getData()
        assert np.isfinite(x).sum() > 100


def _columns(*names):
    return tuple(Column(name, "m", "model", "") for name in names)


def test_points_are_told_by_role_and_the_fullest_one_is_shown():
    there = _columns(
        "tip_x_measured_m", "tip_y_measured_m", "tip_z_measured_m",
        "elbow.x_estimate_m", "elbow.y_estimate_m", "elbow.z_estimate_m",
        "tip_x_estimate_m", "tip_y_estimate_m", "tip_z_estimate_m",
        "tip_x_reference_m", "tip_y_reference_m", "tip_z_reference_m", "box_m", "x_offset_m",
    )  # fmt: skip
    assert set(find_points(there)) == {"_measured", "_estimate", "_reference"}
    points, wanted = find_paths(there)
    assert [p[0] for p in points] == ["elbow.x_estimate_m", "tip_x_estimate_m"]
    assert wanted == [("tip_x_reference_m", "tip_y_reference_m", "tip_z_reference_m")]
    assert find_paths(_columns("slide_x_m", "force_N")) == ([], [])
