"""Experiments as devices of ophyd-async, in bluesky's RunEngine."""

import asyncio
import tomllib

import h5py
import numpy as np
import pytest

from hil.errors import ConfigError, DeviceError
from hil.record.read import n_whole_rows, open_h5
from lazily import Lazily

bluesky, ophyd = Lazily("bluesky"), Lazily("hil.ophyd")
bluesky_plans, plan_stubs = Lazily("bluesky.plans"), Lazily("bluesky.plan_stubs")
ophyd_async = Lazily("ophyd_async.core")


@pytest.fixture(scope="module")
def engine():
    return bluesky.RunEngine({})


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_a_scan_runs_the_experiment_at_every_setting_and_reads_its_summary(engine, configs):
    with ophyd_async.init_devices():
        array = ophyd.Experiment(
            configs / "miga6/pid.toml", {"k_p": "controller.k_p"}, options=("--duration", "1")
        )
    documents = []
    engine(
        bluesky_plans.list_scan([array], array.k_p, [0.5, 1.5]),
        lambda *found: documents.append(found),
    )
    events = [document["data"] for name, document in documents if name == "event"]
    assert [event["array-k_p"] for event in events] == [0.5, 1.5]
    for event in events:
        with h5py.File(event["array-recording"]) as file:
            measured_N = file["ticks/force_measured_N"][:]
            reference_N = file["ticks/force_reference_N"][:]
            table = tomllib.loads(file.attrs["experiment"])
            assert table["controller"]["k_p"] == event["array-k_p"]
        rms_N = np.sqrt(np.mean((measured_N - reference_N) ** 2))
        assert event["array-force_tracking_rms_N"] == pytest.approx(rms_N, rel=1e-9)
        assert event["array-force_measured_max_N"] == measured_N.max()
    assert events[0]["array-force_tracking_rms_N"] != events[1]["array-force_tracking_rms_N"]


@pytest.mark.slow
def test_a_trip_ends_the_plan_with_its_cause(engine, configs, tmp_path):
    (tmp_path / "reset.toml").write_text('[[fault]]\nkind = "board_reset"\nat_s = 0.8\n')
    with ophyd_async.init_devices():
        array = ophyd.Experiment(configs / "miga6/all_on.toml", options=("--inject", "reset.toml"))
    with pytest.raises(bluesky.FailedStatus, match="tripped: board_reset: board was reset"):
        engine(plan_stubs.trigger(array, wait=True))


def test_a_setting_that_the_file_does_not_have_is_refused(engine, configs):
    with pytest.raises(ConfigError, match=r"pid\.toml: controller\.k_q: not a number"):
        ophyd.Experiment(configs / "miga6/pid.toml", {"gain": "controller.k_q"})


@pytest.mark.parametrize("name", ["recording", "force_vaf"])
def test_a_setting_has_no_name_of_a_reading(engine, configs, name):
    """The reading took its place, and the plan set nothing."""
    with pytest.raises(ConfigError, match=f"settings: {name} is a reading: choose another name"):
        ophyd.Experiment(configs / "miga6/pid.toml", {name: "controller.k_p"})


def test_a_plan_sets_a_key_that_counts(engine, configs):
    """Signals are floats: 1.0 was refused as a number of cells."""
    with ophyd_async.init_devices():
        array = ophyd.Experiment(
            configs / "first_bench/quiet.toml",
            {"most": "guard.cells_on_max"},
            options=("--duration", "0.02"),
        )
    events = []
    engine(
        bluesky_plans.list_scan([array], array.most, [1]),
        lambda name, document: events.append(document) if name == "event" else None,
    )
    with h5py.File(events[0]["data"]["array-recording"]) as file:
        assert tomllib.loads(file.attrs["experiment"])["guard"]["cells_on_max"] == 1


def rows_in(folder):
    for path in folder.glob("runs/*.h5"):
        with open_h5(path) as file:
            return n_whole_rows(file)
    return 0


@pytest.mark.slow
def test_a_run_that_a_plan_leaves_ends_with_its_unstaging(engine, configs, tmp_path):
    words = ("--clock", "real", "--duration", "600")
    with ophyd_async.init_devices():
        array = ophyd.Experiment(configs / "miga6/pid.toml", options=words)

    async def left():
        run = array.trigger()
        while not rows_in(tmp_path):
            await asyncio.sleep(0.05)
        await array.unstage()
        await run

    with pytest.raises(DeviceError, match="aborted: stopped by SIGTERM"):
        bluesky.run_engine.call_in_bluesky_event_loop(left())
    (path,) = tmp_path.glob("runs/*.h5")
    with h5py.File(path) as file:
        assert file.attrs["outcome"] == "aborted"
        assert b"stopped by SIGTERM" in file["events"]["text"]
