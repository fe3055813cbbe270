"""What the driver reads: blocks, encoders on the same clock, other ways of acquisition."""

from dataclasses import replace

import numpy as np
import pytest

from hil.calibration.signal_chain import Chain, Encoder
from hil.devices.nidaq.channels import Baseline, Bridge
from hil.errors import DeviceError

from .cards import ESTOP, FORCE, HIP, PERIOD_S, Bench, plan

STEP_V = 20.0 / 2**16


def wave(t_s):
    return 2.0 + np.sin(2 * np.pi * 30.0 * np.asarray(t_s))


def test_a_reading_is_the_mean_of_the_samples_since_the_last_tick():
    with Bench(plan(), ai0=wave) as bench:
        bench.start()
        found = bench.ticks(50)
        t_s = bench.start_s + np.arange(491) * 1e-4
    volts = np.rint(wave(t_s) / STEP_V) * STEP_V
    expected = [volts[0], *volts[1:].reshape(49, 10).mean(axis=1)]
    np.testing.assert_allclose(found, 2.0 * np.array(expected), atol=2.0 * STEP_V)


def test_its_age_is_the_stated_delay_and_its_clock_the_cards():
    with Bench(plan(per_tick=20), ai0=1.0) as bench:
        bench.start().ticks(5)
        assert bench.column("daq_age_s") == pytest.approx(9.5 * PERIOD_S / 20)
        assert bench.column("daq_t_s") == pytest.approx(4 * PERIOD_S - 9.5 * PERIOD_S / 20)
        description = next(c for c in bench.frame.columns if c.name == "force.raw_V").description
    assert "mean of 20 samples at 20000 Hz, late by 0.475 ms" in description


def test_every_sample_goes_on_with_the_cards_time_and_none_twice():
    with Bench(plan(), ai0=wave) as bench:
        bench.daq.record_raw(bench)
        bench.start().ticks(40)
        rows = np.concatenate(bench.rows)
        np.testing.assert_allclose(rows["t_s"], np.arange(391) * 1e-4, atol=1e-12)
        np.testing.assert_allclose(
            rows["force.raw_V"], wave(bench.start_s + rows["t_s"]), atol=STEP_V
        )


def test_force_and_angle_of_a_sample_are_of_one_instant():
    """One ramp on both: angle over force is one number in every sample, whatever the time."""
    with Bench(
        plan(FORCE, HIP), ai0=lambda t: np.asarray(t), ctr0=lambda t: np.asarray(t)
    ) as bench:
        bench.daq.record_raw(bench)
        bench.start().ticks(300)
        rows = np.concatenate(bench.rows)
        moved_V = rows["force.raw_V"] - rows["force.raw_V"][0]
    turns = rows["hip.raw_counts"] / 2000.0
    # a step of each converter: 0.3 mV is 0.3 ms, a count 0.5 ms
    assert np.abs(turns - moved_V).max() < 1.0 / 2000.0 + STEP_V


def test_a_counter_that_turns_backwards_rolls_under_and_is_negative():
    backwards = replace(HIP, encoder=Encoder(2000, direction=-1, offset_rad=0.5))
    with Bench(plan(FORCE, backwards), ai0=1.0, ctr0=lambda t: -0.5 * np.asarray(t)) as bench:
        bench.start().ticks(101)
        turned_rad = 2 * np.pi * 0.5 * 0.1  # half a turn a second for a tenth
        assert bench.column("hip.raw_counts") == pytest.approx(-100, abs=1)
        assert bench.readings.measured[1] == pytest.approx(0.5 + turned_rad, abs=2 * np.pi / 2000)


@pytest.mark.parametrize("direction", [1, -1])
def test_an_index_pulse_sets_the_angle_that_the_start_did_not_know(direction):
    """The shaft stands at 0.9 turns, which nobody knows; its index is at whole turns."""
    index_rad = 0.25 * np.pi
    encoder = Encoder(2000, direction=direction)
    counts = round(index_rad / encoder.rad_per_count)
    hip = replace(HIP, encoder=encoder, index_count=counts)
    with Bench(plan(FORCE, hip), ai0=1.0, ctr0=lambda t: 0.9 + 10.0 * np.asarray(t)) as bench:
        begun_s = bench.start().start_s
        bench.tick(0)
        assert bench.readings.measured[1] == pytest.approx(0.0, abs=1e-9)  # as if it began at 0
        for k in range(1, 101):
            bench.tick(k)
        turns = (0.9 + 10.0 * (begun_s + 0.1)) % 1.0
        expected = index_rad + direction * 2.0 * np.pi * turns
        assert bench.readings.measured[1] == pytest.approx(expected, abs=2 * 2 * np.pi / 2000)


def test_short_pulses_of_an_encoder_are_ignored_by_the_card():
    with Bench(plan(FORCE, replace(HIP, filter_s=5e-6, index_count=0)), ctr0=0.0) as bench:
        bench.start()
        counter = bench.daq._inputs._counters[0].task.ci_channels[0]
        for line in "abz":
            assert getattr(counter, f"ci_encoder_{line}_input_dig_fltr_enable")
            width_s = getattr(counter, f"ci_encoder_{line}_input_dig_fltr_min_pulse_width")
            assert width_s == pytest.approx(5e-6)


def test_periods_that_were_missed_are_read_with_the_next_tick():
    with Bench(plan(), ai0=lambda t: np.asarray(t)) as bench:
        bench.start().ticks(3)
        late = bench.tick(6)
        # the mean of 40 samples, which end at the tick
        assert late == pytest.approx(2.0 * (bench.start_s + 0.006 - 19.5e-4), abs=2.0 * STEP_V)
        assert bench.column("daq_age_s") == pytest.approx(19.5e-4)


def test_a_block_that_has_not_come_is_no_reading_and_later_ones_are_a_period_older():
    with Bench(plan(), ai0=1.0) as bench:
        bench.start().ticks(5)
        bench.tick(5, card_s=0.0045)  # the card's samples are half a period late from now on
        assert not bench.readings.valid[0]
        assert np.isnan(bench.readings.measured[0])
        assert np.isnan(bench.column("force.raw_V"))
        assert bench.column("daq_age_s") == pytest.approx(PERIOD_S + 0.00045)
        for k in range(6, 20):
            bench.tick(k, card_s=(k - 0.5) * PERIOD_S)
            assert bench.readings.valid[0]
            assert bench.column("daq_age_s") == pytest.approx(PERIOD_S + 0.00045)


def test_more_samples_than_a_tick_takes_may_wait_after_a_late_tick():
    """Tick 4 asks for two periods, of which 16 samples have come; tick 5 asks for 10."""
    with Bench(plan(FORCE, HIP), ai0=lambda t: np.asarray(t), ctr0=0.0) as bench:
        bench.daq.record_raw(bench)
        bench.start().ticks(3)
        valid = []
        for k, card_s in [(4, 0.00365), (5, 0.00465), *((k, 1e-3 * k) for k in range(6, 12))]:
            bench.tick(k, card_s=card_s)
            valid.append(bench.readings.valid.all())
            true_s = bench.system.now_s - 0.5 * bench.readings.measured[0]
            if valid[-1]:
                assert true_s < 2.5 * PERIOD_S
        samples = np.concatenate(bench.rows)
    assert valid == [False] + [True] * 7
    np.testing.assert_allclose(np.diff(samples["t_s"]), 1e-4, atol=1e-12)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("drift", [1e-3, -1e-3])
def test_clocks_that_drift_apart_lose_no_sample_and_age_no_reading(drift):
    """Twenty times what two bad crystals do, for 4 s: 4 periods apart at the end."""
    n = 4000
    with Bench(plan(), ai0=1.0) as bench:
        bench.daq.record_raw(bench)
        bench.start()
        valid, ages_s = np.zeros(n, dtype=bool), np.zeros(n)
        for k in range(n):
            bench.tick(k, card_s=k * PERIOD_S * (1.0 + drift))
            valid[k], ages_s[k] = bench.readings.valid[0], bench.column("daq_age_s")
        samples = np.concatenate(bench.rows)
    np.testing.assert_allclose(np.diff(samples["t_s"]), 1e-4, atol=1e-12)
    behind = n * PERIOD_S * (1.0 + drift) - samples["t_s"][-1]
    assert behind < 3.5 * PERIOD_S
    assert ages_s.max() < 4.0 * PERIOD_S
    # a slow card has no block for one tick in every thousand
    assert valid.mean() > 0.998


def test_nothing_is_asked_of_the_library_within_a_second_of_ticks(monkeypatch):
    from nidaqmx._library_interpreter import LibraryInterpreter

    asked = []
    with Bench(plan(FORCE, HIP, lines=(ESTOP,)), ai0=1.0, ctr0=0.0, port0_line0=1.0) as bench:
        bench.start().tick(0)
        for name in dir(LibraryInterpreter):
            if name.startswith(("get_", "set_", "is_")):
                monkeypatch.setattr(
                    LibraryInterpreter, name, lambda *_, name=name, **__: asked.append(name)
                )
        for k in range(1, 999):
            bench.tick(k)
        assert asked == []
        monkeypatch.undo()


@pytest.mark.parametrize("kind", ["on_demand", "single_point"])
def test_one_reading_a_tick_is_of_now(kind):
    with Bench(plan(FORCE, HIP, kind=kind), ai0=lambda t: np.asarray(t), ctr0=0.0) as bench:
        bench.start()
        found = bench.ticks(20)
        now_s = bench.start_s + np.arange(20) * PERIOD_S
        # a reading of the next clock edge may be a period late
        assert (np.abs(found / 2.0 - now_s) <= PERIOD_S + STEP_V).all()
        assert bench.readings.valid.all()
        assert bench.daq.raw_samples is None


def test_a_bridge_module_reads_mV_per_V_of_its_own_excitation():
    chain = Chain(1.0, 0.0, (0.0, 4.5))
    cell = replace(FORCE, chain=chain, range_raw=2.0, bridge=Bridge(10.0, 350.0))
    asked = replace(plan(cell, per_tick=10), card="cDAQ1Mod1")
    bench = Bench(asked)
    bench.system.add("cDAQ-9185", "cDAQ1")
    bench.system.add("NI 9237", "cDAQ1Mod1", chassis="cDAQ1")
    bench.system.feed("cDAQ1Mod1/ai0", 1.2e-3)
    with bench:
        bench.start()
        assert bench.tick(1) == pytest.approx(4.5 * 1.2, abs=1e-3)
        assert bench.column("force.raw_mV_per_V") == pytest.approx(1.2, abs=1e-4)


@pytest.mark.parametrize(("arms", "number"), [("full", 10182), ("half", 10187), ("quarter", 10270)])
def test_the_card_completes_a_bridge_of_fewer_arms(arms, number):
    """NIDAQmx.h: DAQmx_Val_FullBridge, HalfBridge and QuarterBridge."""
    cell = replace(FORCE, chain=Chain(1.0, 0.0, (0.0, 4.5)), range_raw=2.0)
    cell = replace(cell, bridge=Bridge(2.5, 350.0, arms))
    bench = Bench(replace(plan(cell, per_tick=10), card="cDAQ1Mod1"))
    bench.system.add("cDAQ-9185", "cDAQ1")
    bench.system.add("NI 9237", "cDAQ1Mod1", chassis="cDAQ1")
    with bench:
        bench.start()
        assert bench.daq._inputs._analog.task.ai_channels[0].ai_bridge_cfg.value == number


def test_a_channel_is_looked_at_before_it_is_armed():
    """A run that waits to be armed shows its readings, and drives nothing."""
    with Bench(plan(), ai0=1.5) as bench:
        bench.daq.open()
        bench.start_s = bench.system.now_s
        assert bench.ticks(5)[-1] == pytest.approx(3.0, abs=1e-3)


def noisy(seed=3, rms_V=0.002, mean_V=0.0):
    rng = np.random.default_rng(seed)
    return lambda t: mean_V + rms_V * rng.standard_normal(np.shape(t))


def test_a_rail_in_mid_run_is_no_reading_and_a_fault():
    with Bench(plan(), ai0=1.0) as bench:
        bench.start().ticks(5)
        assert bench.faults() == []
        bench.system.inject("Dev1/ai0", "high rail")
        bench.tick(5)
        assert bench.faults() == ["force_at_rail"]
        assert not bench.readings.valid[0]
        assert bench.bits("daq_fault_bits")
        bench.system.inject("Dev1/ai0", None)
        bench.tick(6)
        bench.tick(7)
        assert bench.faults() == []


def test_a_channel_that_froze_is_told_by_its_missing_noise():
    live = replace(FORCE, baseline=Baseline(noise_rms_raw=0.002))
    with Bench(plan(live), ai0=noisy()) as bench:
        bench.start().ticks(300)
        assert bench.faults() == []
        bench.system.inject("Dev1/ai0", "stuck")
        for k in range(300, 300 + 201):  # 2000 samples at 10 kHz
            bench.tick(k)
        assert bench.faults() == ["force_frozen"]


@pytest.mark.parametrize(("fault", "words"), [("high rail", "at its rail"), ("low rail", "at its")])
def test_a_rail_before_the_run_is_refused(fault, words):
    with Bench(plan(), ai0=1.0) as bench:
        bench.system.inject("Dev1/ai0", fault)
        with pytest.raises(DeviceError, match=f"'force' on ai0 is {words}.*open"):
            bench.start()


def test_the_zero_is_taken_before_the_run_where_asked():
    with Bench(plan(replace(FORCE, tare=True)), ai0=lambda t: 0.25 + 0.0 * np.asarray(t)) as bench:
        bench.daq.open()
        zero = next(r for r in bench.daq.messages() if r.name == "zero")
        assert zero.value == pytest.approx(0.25, abs=STEP_V)
        assert zero.about == "force"
        bench.daq.arm()
        bench.start_s = bench.system.now_s
        assert abs(bench.tick(0)) <= 2.0 * STEP_V
        assert bench.column("force.raw_V") == pytest.approx(0.25, abs=STEP_V)


def test_a_drifted_zero_and_a_strange_noise_are_remarked():
    baseline = Baseline(zero_ratio=0.0, zero_tolerance=0.05, noise_rms_raw=0.002)
    with Bench(
        plan(replace(FORCE, baseline=baseline), before_s=0.1), ai0=noisy(rms_V=0.02, mean_V=0.3)
    ) as bench:
        bench.daq.open()
        texts = [r.text for r in bench.daq.messages() if r.level == "warning"]
    assert len(texts) == 2
    assert "zero is +0.6" in texts[0]
    assert "noise is 9" in texts[1] or "noise is 1" in texts[1]


SHUNTED = replace(
    FORCE,
    chain=Chain.conditioned(500.0, 0.0, 10.0, [0.0, 4.75]),
    baseline=Baseline(shunt_ratio=0.8735, shunt_tolerance=0.005),
    shunt_line="port0/line3",
)


@pytest.mark.parametrize(("gain", "passes"), [(500.0, True), (490.0, False)])
def test_the_shunt_shows_whether_the_conditioners_gain_is_what_it_was(gain, passes):
    with Bench(plan(SHUNTED)) as bench:
        shunt_V = 1e-3 * gain * 10.0 * 0.8735
        bench.feed(
            "ai0", lambda t: 0.1 + shunt_V * bench.level("port0/line3") + 0.0 * np.asarray(t)
        )
        if passes:
            bench.daq.open()
            assert any("as expected" in r.text for r in bench.daq.messages())
        else:
            with pytest.raises(DeviceError, match=r"shunt changes 'force' by 0\.856 mV/V, 0\.8735"):
                bench.daq.open()
        assert bench.level("port0/line3") == 0.0
