"""Two cards that share a sample clock or a start, fed with one ramp: a sample tells its time."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest
import tomli_w

import hil
from devices.nidaq.cards import FORCE, PERIOD_S, Bench, plan
from hil.devices.nidaq.channels import Place
from hil.devices.nidaq.driver import NiDaq
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.rig.rig import build_rig
from rows import row_of

LATER_S = 0.0037  # the second card begins so much before the first


class Collected:
    """All samples that a driver pushes."""

    def __init__(self):
        self.rows = []

    def push_many(self, rows):
        self.rows.append(rows.copy())

    @property
    def volts(self):
        return np.concatenate(self.rows)["force.raw_V"]


@pytest.fixture
def bench():
    with Bench(plan(), ai0=lambda t: np.asarray(t)) as made:
        made.system.add("PCIe-6363", "Dev2")
        made.system.connect("Dev1", "Dev2")
        made.system.feed("Dev2/ai0", lambda t: np.asarray(t))
        yield made


def second_of(bench, **how):
    """A driver of Dev2, opened, with its readings in a row of its own."""
    driver = NiDaq(
        "second", replace(plan(FORCE, **how), card="Dev2"), Place(0, 0), bench.pass_s,
        simulated=True,
    )  # fmt: skip
    frame = row_of(replace(bench.layout, devices=("second",)), *driver.columns)
    readings, _ = bench.layout.bind(frame)
    driver.bind(frame, readings)
    return driver


def samples_of_both(bench, **how):
    """Volts of 50 ticks of the card and of the second one, which begins LATER_S before it."""
    one, two, second = Collected(), Collected(), second_of(bench, **how)
    bench.daq.record_raw(one)
    second.record_raw(two)
    second.open()
    bench.daq.open()
    second.arm()
    bench.system.advance_to(bench.system.now_s + LATER_S)
    bench.daq.arm()
    bench.start_s = bench.system.now_s
    for k in range(50):
        bench.tick(k)
        second.read(k * PERIOD_S)
    second.close()
    n = min(len(one.volts), len(two.volts))
    assert n >= 480
    return one.volts[:n], two.volts[:n]


@pytest.mark.parametrize("how", [{"clock_from": "Dev1"}, {"start_from": "Dev1"}])
def test_samples_of_cards_with_one_clock_or_one_start_are_of_one_instant(how, bench):
    one, two = samples_of_both(bench, **how)
    step_V = 20.0 / 2**16
    np.testing.assert_allclose(one, two, atol=2.0 * step_V)


def test_samples_of_cards_with_clocks_of_their_own_are_not(bench):
    one, two = samples_of_both(bench)
    np.testing.assert_allclose(one - two, LATER_S, atol=1e-3)


def rig_with_second(configs, tmp_path, second):
    """configs/miga6 with a second card, and without the card that plays its plant."""
    folder = configs / "miga6"
    rig = tomllib.loads((folder / "rig.toml").read_text().replace("../..", str(configs.parent)))
    rig["devices"] |= tomllib.loads(second)["devices"]
    del rig["plant_card"]
    (tmp_path / "rig.toml").write_text(tomli_w.dumps(rig))
    path = tmp_path / "two.toml"
    path.write_text((folder / "all_on.toml").read_text())
    return path


SECOND = """
[devices.second]
kind = "nidaq"
card = "Dev2"
clock_from = "{leader}"
rate_Hz = {rate}
[devices.second.channels.pull]
kind = "voltage"
terminal = "ai3"
signal = "muscle.right_N"
units_per_V = 1.0
"""


def test_a_card_that_follows_starts_first_and_reads_in_every_tick(configs, tmp_path):
    path = rig_with_second(configs, tmp_path, SECOND.format(leader="daq", rate=10000.0))
    config = load(path, ["experiment.duration_s=0.2"])
    names = [device.name for device in build_rig(config, 0)._devices]
    assert names.index("second") < names.index("daq")
    run = hil.open_run(hil.run(config, backend="emulated", out=tmp_path / "run.h5"))
    assert np.isfinite(run.pull_measured_N).all()
    np.testing.assert_allclose(run.second_age_s, run.daq_age_s, atol=1e-9)


@pytest.mark.parametrize(
    ("leader", "rate", "expected"),
    [
        ("dak", 10000.0, "clock_from = 'dak': choose a card with a clock of its own: daq"),
        ("second", 10000.0, "choose a card with a clock of its own: daq"),
        ("daq", 5000.0, "give both cards the same rate_Hz"),
    ],
)
def test_a_card_that_cannot_follow_is_refused(leader, rate, expected, configs, tmp_path):
    path = rig_with_second(configs, tmp_path, SECOND.format(leader=leader, rate=rate))
    with pytest.raises(ConfigError, match=expected):
        load(path)
