"""Readings that come less often than the loop's ticks count at their own times."""

import numpy as np
import pytest

import hil
from hil.identification.identify import Options, identify_files
from hil.identification.noise import noise_of
from hil.identification.runs import RunData, read_run

PERIOD_S, EVERY, DELAY_S = 0.001, 4, 0.008
SETS = (f"devices.daq.every={EVERY}", f"devices.daq.channels.force.sim.delay_s={DELAY_S}",
        "experiment.duration_s=2.5")  # fmt: skip


@pytest.fixture(scope="module")
def path(configs, tmp_path_factory):
    config = hil.load(configs / "miga6/identify.toml", SETS)
    return hil.run(config, out=tmp_path_factory.mktemp("slow") / "run.h5", seed=1)


def test_rows_without_a_new_reading_make_no_reading_older(path):
    data = read_run(path).data
    assert data.interval_s == pytest.approx(EVERY * PERIOD_S)
    assert data.reading.delay_s == pytest.approx(DELAY_S, abs=1e-9)


def test_a_card_that_is_read_every_fourth_period_is_identified(path):
    _, model = identify_files([path], Options(free=("force_on_N",), bootstrap=0, weak=False))
    assert model.fit.settled
    assert 0.0 < model.adequacy.peak_Hz < 0.5 / (EVERY * PERIOD_S)


def test_a_line_in_slow_readings_has_its_own_frequency():
    rows = EVERY * np.arange(2000)
    hum = np.sin(2.0 * np.pi * 30.0 * PERIOD_S * rows)
    noise = 0.5 * np.random.default_rng(2).standard_normal(len(rows))
    cells = np.zeros((rows[-1], 1), dtype=np.uint8)
    found = noise_of([RunData("", PERIOD_S, cells, rows, hum + noise, "")])
    assert found.lines_Hz == pytest.approx((30.0,), abs=0.01)
