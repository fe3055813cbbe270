"""The body of 18 links and the hand as rigs on the loop."""

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.experiment.load import load
from systems.spoiling import commands, overwriting


@pytest.fixture(scope="module")
def sway(configs, tmp_path_factory):
    config = load(configs / "body/sway.toml", ("experiment.duration_s=2.0",))
    return hil.run(config, out=tmp_path_factory.mktemp("body") / "run.h5")


@pytest.mark.slow
def test_the_twin_sways_as_the_body_does_until_somebody_pushes_it(sway):
    # Only two of 58 inputs are wired, and the twin has to know which.
    run = hil.open_run(sway)
    late = run.right_shank_measured_rad.values[1:]
    said = run.right_shank_model_rad.values[:-1]  # the card reads one period late
    assert np.ptp(said) > 0.01
    # noise of 0.2 mrad and the converter's steps of 0.03; commands rounded to its output's bits
    assert np.sqrt(np.mean((late - said) ** 2)) < 3e-4


@pytest.mark.slow
def test_the_ground_carries_the_body_and_no_more(sway):
    run = hil.open_run(sway)
    carried = (run.right_plate_measured_N + run.left_plate_measured_N).values[5:]
    assert carried.mean() == pytest.approx(73.0 * 9.81, rel=1e-3)


@pytest.mark.slow
def test_a_recorded_sway_is_decided_again_as_it_was(sway, capsys):
    assert main(["replay", str(sway)]) == 0
    assert "identical in 1000 rows" in capsys.readouterr().out


@pytest.mark.slow
def test_a_body_that_lets_go_falls_and_ends_its_run(configs, tmp_path):
    config = load(configs / "body/sway.toml",
                  ("model.coactivation=0.0", "experiment.duration_s=3.0"))  # fmt: skip
    run = hil.open_run(hil.run(config, out=tmp_path / "run.h5"))
    assert run.attrs["outcome"] == "tripped"
    height_m = run["centre.up_model_m"].values
    assert height_m[-1] < height_m[0] - 0.05


PUSH = "a push of 40 N on torso.upper from 4 to 4.2 s"


@pytest.mark.slow
def test_a_push_that_the_twin_is_not_told_of_is_said_in_recording_summary_and_report(
    configs, tmp_path, capsys
):
    path = tmp_path / "run.h5"
    words = ["--set", "experiment.duration_s=0.1", "--out", str(path)]
    assert main(["run", str(configs / "body/sway.toml"), *words]) == 0
    told = f"the twin is not told of {PUSH}: it differs from then on"
    assert told in capsys.readouterr().out
    assert hil.open_run(path).attrs["untold"] == PUSH
    assert main(["report", str(path)]) == 0
    assert f"The twin is not told of {PUSH}: it differs" in path.with_suffix(".html").read_text()


def test_a_push_that_the_twin_knows_is_no_news(configs, tmp_path):
    push = "[{link='torso.upper', force_N=[40.0, 0.0, 0.0], from_s=4.0, to_s=4.2}]"
    config = load(configs / "body/sway.toml",
                  (f"model.pushes={push}", "experiment.duration_s=0.1"))  # fmt: skip
    assert "untold" not in hil.open_run(hil.run(config, out=tmp_path / "run.h5")).attrs


@pytest.mark.slow
def test_what_happens_to_the_body_after_the_reading_changes_no_command_of_the_tick(configs):
    """The controller sees instruments alone."""
    config = load(configs / "hand/pinch.toml", ("experiment.duration_s=0.4",))
    spoil = overwriting(lambda s: s.motion._x, lambda s: s.y)
    quiet = commands(config, 200)
    assert len({str(tick) for tick in quiet}) > 10
    assert quiet == commands(config, 200, spoil)
