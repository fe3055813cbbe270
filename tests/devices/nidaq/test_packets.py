"""Cards on USB and Ethernet: samples come in packets, and every tick has a reading of known age.

NI, "Can I Guarantee a Certain Output from my cDAQ if Connection is lost?": Ethernet and USB send
buffered data in packets. Times of 5 to 20 ms are those that users of such cards see.
"""

from dataclasses import replace

import numpy as np
import pytest

from hil.errors import DeviceError
from hil.loop.frame import Commands
from hil.loop.guard import Guard, Limits, SignalLimits

from .cards import FORCE, HIP, PERIOD_S, Bench, plan

PACKETS_S = (0.005, 0.010, 0.020)
N = 2000


def ramp(t_s):
    """A volt a second: a reading tells when it was taken."""
    return np.asarray(t_s) % 8.0


def packets(packet_s, *inputs, **changes):
    bench = Bench(plan(*inputs, **changes), ai0=ramp, ctr0=0.0)
    bench.system.deliver_every("Dev1", packet_s)
    return bench


def watched(bench, n, card_s=lambda t_s: t_s):
    """Validity, age by the row, and true age of every tick's reading."""
    valid, told_s, true_s = np.zeros(n, dtype=bool), np.zeros(n), np.zeros(n)
    for k in range(n):
        bench.tick(k, card_s=card_s(k * PERIOD_S))
        valid[k], told_s[k] = bench.readings.valid.all(), bench.column("daq_age_s")
        true_s[k] = bench.system.now_s - 0.5 * bench.readings.measured[0]
    return valid, told_s, true_s


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("packet_s", PACKETS_S)
def test_every_tick_has_a_reading_whose_age_is_the_true_one(packet_s):
    with packets(packet_s, FORCE, HIP) as bench:
        bench.daq.record_raw(bench)
        bench.start()
        valid, told_s, true_s = watched(bench, N)
        samples = np.concatenate(bench.rows)
    assert valid.all()
    # the ramp's step of the converter is 0.3 ms; until the first packet is seen to come, its age
    # is known to two periods
    np.testing.assert_allclose(told_s, true_s, atol=2.0 * PERIOD_S + 0.0004)
    np.testing.assert_allclose(told_s[50:], true_s[50:], atol=PERIOD_S + 0.0004)
    assert told_s.max() < packet_s + 4.0 * PERIOD_S
    np.testing.assert_allclose(np.diff(samples["t_s"]), 1e-4, atol=1e-12)


@pytest.mark.parametrize("packet_s", PACKETS_S)
def test_ticks_that_are_late_now_and_then_find_their_samples(packet_s):
    rng = np.random.default_rng(4)
    with packets(packet_s) as bench:
        bench.start()
        late_s = rng.uniform(-0.45, 0.45, N) * PERIOD_S
        valid, _, _ = watched(bench, N, lambda t_s: t_s + late_s[round(t_s / PERIOD_S)])
    assert valid.all()


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("drift", [1e-3, -1e-3])
def test_clocks_that_drift_apart_cost_a_tick_a_period_and_no_age(drift):
    """Twenty times what two bad crystals do, for 4 s: 4 periods."""
    with packets(0.010) as bench:
        bench.start()
        valid, told_s, true_s = watched(bench, 2 * N, lambda t_s: t_s * (1.0 + drift))
    assert (~valid).sum() <= (4 if drift < 0.0 else 0)
    assert told_s.max() < 0.010 + 8.0 * PERIOD_S
    drifted_s = drift * PERIOD_S * np.arange(2 * N)
    np.testing.assert_allclose(
        told_s[valid], (true_s - drifted_s)[valid], atol=8.0 * PERIOD_S + 0.0004
    )


def test_a_run_that_waits_to_be_armed_reads_once_a_packet_has_come():
    with packets(0.010) as bench:
        bench.daq.open()
        bench.start_s = bench.system.now_s
        valid, _, _ = watched(bench, 1000)
    assert not valid[:10].any()
    assert valid[13:].all()


def guard_of(bench, age_max_s):
    limits = Limits(10.0, age_max_s, 20, signals=[SignalLimits(-20.0, 20.0, is_force=True)])
    guard = Guard(limits, 0, PERIOD_S)
    commands = Commands(bench.commands.cells, bench.commands.outputs, bench.commands.enabled)
    guard.bind(bench.frame, bench.layout, bench.readings, commands)
    guard.arm()
    guard.begin()
    return guard


def test_a_packet_that_comes_late_leaves_ticks_without_a_reading_and_trips_nothing():
    """From 10 ms to 18 ms: some ticks have none, their age says so, and then there are again."""
    with packets(0.010) as bench:
        bench.start()
        guard = guard_of(bench, 0.05)
        watched(bench, 500)
        bench.system.deliver_every("Dev1", 0.018)
        valid, ages_s, faults = [], [], 0
        for k in range(500, 3500):
            bench.tick(k)
            faults |= guard.step(0)
            valid.append(bool(bench.readings.valid[0]))
            ages_s.append(float(bench.column("daq_age_s")))
            assert np.isnan(bench.readings.measured[0]) == (not valid[-1])
    assert faults == 0
    assert 1 <= valid.count(False) <= 10
    assert all(valid[40:])
    assert max(ages_s) < 0.025


def test_packets_that_stay_away_trip_by_their_age():
    with packets(0.010) as bench:
        bench.start()
        guard = guard_of(bench, 0.05)
        watched(bench, 500)
        bench.system.stall("Dev1")
        tripped_at = next(k for k in range(500, 700) if (bench.tick(k), guard.step(0))[1])
    # 12.5 ms old, then a millisecond older in each tick once the packet in hand is used up
    assert 500 + 37 <= tripped_at <= 500 + 50


def test_a_guard_that_allows_no_such_age_is_told_before_the_run():
    with packets(0.010, age_max_s=0.005) as bench, pytest.raises(DeviceError) as refused:
        bench.start()
    text = str(refused.value)
    assert "samples come in packets of 10 ms: a reading is up to 13.5 ms old" in text
    assert "guard.reading_age_max_s = 0.005: raise it, or choose acquisition = 'on_demand'" in text


def test_one_reading_a_tick_on_demand_waits_for_no_packet():
    on_demand = replace(plan(kind="on_demand"), age_max_s=0.005)
    with Bench(on_demand, ai0=ramp) as bench:
        bench.system.deliver_every("Dev1", 0.010)
        bench.start()
        valid, told_s, _ = watched(bench, 50)
    assert valid.all()
    assert told_s.max() == 0.0
