"""Workers that share no folder with the campaign: what travels, what is refused, who may die."""

import csv
import os
import shutil
import signal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.platform.parallel import refuse_other, refuse_others
from hil.platform.provenance import numerics
from hil.runs.campaign import runner
from hil.runs.campaign.bundle import bundle_of, unpacked
from hil.runs.campaign.parallel import run_apart, run_batch, work_of
from hil.runs.campaign.plan import load_campaign

CAMPAIGN = """
[campaign]
name = "elsewhere"
experiments = ["rigs/miga6/mine.toml"]
plants = {plants}
keep = "none"
[spread."plant.arrays.muscle.force_on_N"]
relative = 0.05
[factors.duration]
key = "experiment.duration_s"
levels = [0.1]
[measures.force_N]
column = "force_model_N"
take = "mean"
"""
MINE = """
import numpy as np

class Mine:
    def __init__(self, facts, values):
        self.n = len(facts.cells)

    def step(self, now):
        return np.ones(self.n) * (now.t_s > 0.02)
"""
EXPERIMENT = """
rig = "rig.toml"
[experiment]
name = "mine"
duration_s = 1.0
[reference]
kind = "steps"
t_s = [0.0]
force_N = [1.0]
[controller]
kind = "own/mine.py:Mine"
"""


@pytest.fixture
def write(tmp_path, configs):
    """A campaign with a plug-in and a calibration, in a folder that may go."""

    def written(plants=2):
        folder = tmp_path / "desk"
        shutil.copytree(configs / "miga6", folder / "rigs/miga6")
        shutil.copytree(configs.parent / "calibration", folder / "calibration")
        (folder / "rigs/miga6/own").mkdir()
        (folder / "rigs/miga6/own/mine.py").write_text(MINE)
        (folder / "rigs/miga6/mine.toml").write_text(EXPERIMENT)
        (folder / "elsewhere.toml").write_text(CAMPAIGN.format(plants=plants))
        (tmp_path / "link").symlink_to(folder, target_is_directory=True)
        return tmp_path / "link/elsewhere.toml"

    return written


def test_all_that_loading_reads_travels_with_the_work(write):
    path = write()
    campaign = load_campaign(path)
    works = [work_of(campaign, trial, trial.number) for trial in campaign.trials]
    works[1] = works[1]._replace(keep="all")
    run = partial(run_apart, tables=campaign.tables, strict=False)
    here = [run(work._replace(keep="none")) for work in works]
    bundle = bundle_of(campaign.configs.values())
    assert "rigs/miga6/own/mine.py" in bundle.files
    assert any(name.startswith("calibration/") for name in bundle.files)
    shutil.rmtree(path.parent.resolve())
    there = run_batch(works, bundle, numerics(), run)
    recording = there[1].pop("recording")
    assert [r["figures"] for r in there] == [r["figures"] for r in here]
    assert [r["outcome"] for r in there] == ["complete", "complete"]
    kept = path.parent.with_name("kept.h5")
    kept.write_bytes(recording)
    assert np.mean(hil.open_run(kept).force_model_N.values) == here[1]["figures"]["force_N"]
    assert unpacked(bundle) == unpacked(bundle), "once a process"


def test_a_worker_of_another_version_is_refused_in_one_line(write):
    campaign = load_campaign(write())
    bundle = bundle_of(campaign.configs.values())
    with pytest.raises(ConfigError, match=r"worker .*: numpy \S+ there, 1\.0 here: install") as no:
        run_batch([], bundle, {**numerics(), "numpy": "1.0"}, lambda work: {})
    assert "\n" not in str(no.value)
    older = {**numerics(), "hil-arrays": "0.0.9 (12345678)"}
    client = SimpleNamespace(run=lambda *call: {"tcp://a:1": numerics(), "tcp://b:2": older})
    with pytest.raises(ConfigError, match=r"worker tcp://b:2: hil-arrays 0\.0\.9 \(12345678\)"):
        refuse_others(client)
    refuse_other(numerics(), numerics(), "worker")


def test_a_worker_without_hil_is_refused_in_one_line():
    def run(function, call):
        raise ModuleNotFoundError("No module named 'hil'")

    with pytest.raises(ConfigError, match=r"a worker has no hil-arrays .*: install it there") as no:
        refuse_others(SimpleNamespace(run=run))
    assert "\n" not in str(no.value)


@pytest.mark.slow
def test_workers_that_die_cost_only_their_batches(write, tmp_path, monkeypatch):
    from distributed import LocalCluster

    path = write(plants=24)
    assert main(["campaign", str(path), "--out", str(tmp_path / "alone"), "--jobs", "1"]) == 0
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        victims = [worker.process.pid for worker in cluster.workers.values()]
        keep = runner.attempt_of

        def killing(*what):
            if victims:
                os.kill(victims.pop(), signal.SIGKILL)
            return keep(*what)

        monkeypatch.setattr(runner, "attempt_of", killing)
        words = ["--out", str(tmp_path / "there"), "--scheduler", cluster.scheduler_address]
        assert main(["campaign", str(path), *words]) == 0
    assert not victims
    alone, there = (
        [
            {key: value for key, value in row.items() if key != "started_utc"}
            for row in csv.DictReader((tmp_path / name / "trials.csv").read_text().splitlines())
        ]
        for name in ("alone", "there")
    )
    assert len(alone) == 24
    assert alone == there
