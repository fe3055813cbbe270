"""Waiting and running on the real clock."""

import json

import pytest
import tomli_w

from hil.__main__ import main

pytestmark = pytest.mark.xdist_group("real time")


@pytest.mark.slow
def test_a_campaign_waits_and_runs_in_real_time(rigs, monkeypatch, capsys):
    monkeypatch.chdir(rigs / "slider")
    table = {
        "campaign": {"name": "real", "experiments": ["steps.toml"]},
        "factors": {"length": {"key": "experiment.duration_s", "levels": [0.05]}},
        "wait": {
            "for_s": 0.1,
            "longest_s": 120.0,
            "until": [{"column": "slide_measured_m", "below": 0.01, "above": -0.01}],
        },
    }
    (rigs / "slider" / "real.toml").write_text(tomli_w.dumps(table))
    overrun = (rigs / "slider" / "rig.toml").read_text()
    # A busy machine must not decide what this says.
    text = overrun.replace("[loop]\n", '[loop]\noverrun = "skip"\n')
    (rigs / "slider" / "rig.toml").write_text(text)
    assert main(["campaign", "real.toml", "--clock", "real", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["complete"] == 1
    assert found["trials"][0]["waited_s"] >= 0.1
