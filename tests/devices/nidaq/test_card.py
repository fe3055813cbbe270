"""The driver on a real card: `pytest -m bench`, HIL_BENCH_CARD names it; nothing is driven."""

import os

import numpy as np
import pytest

from hil.calibration.signal_chain import Chain
from hil.devices.nidaq.channels import Acquisition, AnalogInput, CardPlan, Place
from hil.devices.nidaq.driver import NiDaq
from hil.loop.channels import Channel, RigLayout
from hil.loop.clock import RealClock, sleep_s
from rows import row_of

pytestmark = [pytest.mark.bench, pytest.mark.xdist_group("real time")]


class Kept:
    def __init__(self):
        self.t_s = []

    def push_many(self, rows):
        self.t_s.append(rows["t_s"].copy())


@pytest.mark.parametrize("per_tick", [1, 10])
def test_ten_seconds_of_samples_come_without_a_gap_and_at_the_cards_rate(per_tick):
    card = os.environ.get("HIL_BENCH_CARD", "Dev1")
    channel = AnalogInput("force", "ai0", Chain.linear(1.0, 0.0), 10.0)
    plan = CardPlan(card, Acquisition("block", 0.001, per_tick), (channel,))
    daq = NiDaq("daq", plan, Place(0, 0), sleep_s, simulated=False)
    layout = RigLayout((Channel("force", "_N", "main"),), (), (), ("daq",), 0)
    frame = row_of(layout, *daq.columns)
    readings, _ = layout.bind(frame)
    daq.bind(frame, readings)
    kept, clock, valid = Kept(), RealClock(), 0
    daq.record_raw(kept)
    daq.open()
    try:
        daq.arm()
        clock.start()
        for k in range(10_000):
            clock.sleep_until_s(k * 0.001)
            daq.read(k * 0.001)
            valid += bool(readings.valid[0])
    finally:
        daq.close()
    t_s = np.concatenate(kept.t_s)
    np.testing.assert_allclose(np.diff(t_s), 0.001 / per_tick, rtol=1e-9)
    assert t_s[-1] == pytest.approx(10.0, abs=0.01)  # crystals differ by 100 ppm at most
    assert valid > 9990
