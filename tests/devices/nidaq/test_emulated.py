"""Whole runs with the card's own driver on the simulated library: --backend daq=emulated."""

from types import SimpleNamespace

import h5py
import numpy as np
import pytest

import hil
from hil.calibration.signal_chain import Chain
from hil.devices.nidaq.emulated import EmulatedSignal, _Wire
from hil.errors import DeviceError
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output

NOT_REPEATED = ("busy_s", "late_s", "read_stage_s", "estimate_stage_s", "control_stage_s",
                "guard_stage_s", "write_stage_s")  # fmt: skip


def run(configs, out, *sets, backend="daq=emulated", seed=1):
    config = hil.load(configs / "miga6/all_on.toml", ["experiment.duration_s=0.6", *sets])
    return session.run(Plan(config, backend=backend, seed=seed), Output(out=out))


@pytest.fixture(scope="module")
def recording(configs, tmp_path_factory):
    path = tmp_path_factory.mktemp("emulated") / "run.h5"
    run(configs, path)
    return path


def test_it_measures_what_the_simulated_card_measures(configs, recording, tmp_path):
    """Apart from noise and the half block by which a mean is late."""
    run(configs, tmp_path / "sim.h5", backend="sim")
    emulated, plain = hil.open_run(recording), hil.open_run(tmp_path / "sim.h5")
    assert set(emulated.data_vars) == set(plain.data_vars)
    np.testing.assert_array_equal(emulated.valid_bits, plain.valid_bits)
    force_N = plain.force_measured_N.values
    rise_N = np.abs(np.diff(force_N, prepend=force_N[0]))
    late_N = 0.45 * np.maximum(rise_N, np.roll(rise_N, -1))
    # noise of one sample is 1.9 mN in both, six standard deviations of their difference
    limit_N = 6.0 * np.hypot(0.0019, 0.0019) + 2.0 * late_N
    assert (np.abs(emulated.force_measured_N.values - force_N) <= limit_N).all()
    assert "SIMULATED" in emulated.attrs["simulated"]


@pytest.mark.parametrize("bandwidth_Hz", [20.0, 1000.0])
def test_a_conditioner_follows_a_ramp_by_its_time_constant_late(bandwidth_Hz):
    plant = SimpleNamespace(t_s=0.0, output=lambda _: plant.t_s)
    channel = SimpleNamespace(chain=Chain.linear(1.0, 0.0), bridge=None)
    signal = EmulatedSignal(channel, 0, bandwidth_Hz=bandwidth_Hz)
    wire = _Wire(signal, np.random.default_rng(0), plant, 0.001)
    for k in range(1, 500):
        plant.t_s = 0.001 * k
        wire.put(plant.t_s)
    late_s = 1.0 / (2.0 * np.pi * bandwidth_Hz)
    assert wire(plant.t_s) == pytest.approx(plant.t_s - late_s, abs=1e-9)


@pytest.mark.slow
def test_the_mean_of_ten_samples_has_a_third_of_their_noise(configs, tmp_path):
    """All cells off: white noise of 2 mV, and that of the converter's 0.3 mV steps."""
    run(configs, tmp_path / "off.h5", "controller.steps=[{t_s=9.0, on='all'}]")
    volts = hil.open_run(tmp_path / "off.h5")["force.raw_V"].values[1:]
    sample_V = np.hypot(0.002, 20.0 / 2**16 / np.sqrt(12.0))
    # four standard deviations of the estimate from 599 readings
    assert volts.std() == pytest.approx(sample_V / np.sqrt(10.0), rel=4.0 / np.sqrt(2.0 * 599.0))
    assert abs(volts.mean()) < 4.0 * sample_V / np.sqrt(5990.0)


def test_every_reading_is_half_a_block_old(recording):
    run = hil.open_run(recording)
    np.testing.assert_allclose(run.daq_age_s.values[1:], 0.00045, atol=1e-9)
    np.testing.assert_allclose(run.daq_t_s + run.daq_age_s, run.t_s.values, atol=1e-9)


@pytest.mark.slow
def test_the_same_seed_repeats_bit_for_bit_and_another_does_not(configs, recording, tmp_path):
    run(configs, tmp_path / "again.h5")
    run(configs, tmp_path / "other.h5", seed=2)
    with (
        h5py.File(recording) as first,
        h5py.File(tmp_path / "again.h5") as again,
        h5py.File(tmp_path / "other.h5") as other,
    ):
        for name in set(first["ticks"]) - set(NOT_REPEATED):
            np.testing.assert_array_equal(first["ticks"][name][:], again["ticks"][name][:])
        name = "ticks/force_measured_N"
        assert (first[name][:] != other[name][:]).mean() > 0.5


def test_a_card_that_sends_packets_of_ten_milliseconds_costs_no_tick(configs, tmp_path):
    """Under PID, for which a reading is the mean of one period, twelve periods before."""
    config = hil.load(
        configs / "miga6/pid.toml", ["experiment.duration_s=1.5", "devices.daq.sim.transfer_s=0.01"]
    )
    result = session.run(
        Plan(config, backend="daq=emulated", seed=1), Output(out=tmp_path / "run.h5")
    )
    run = hil.open_run(tmp_path / "run.h5")
    assert result.outcome == "complete"
    assert (run.valid_bits.values & 1).all()
    assert np.isfinite(run.force_measured_N.values).all()
    assert run.daq_age_s.values.min() > 0.010
    assert run.daq_age_s.values.max() < 0.014
    assert run.force_measured_N.values[-1] == pytest.approx(0.6, abs=0.05)


def test_a_guard_that_allows_no_packets_is_one_line_before_anything_is_on(configs, tmp_path):
    sets = ["devices.daq.sim.transfer_s=0.02", "guard.reading_age_max_s=0.01"]
    with pytest.raises(DeviceError, match=r"packets of 20 ms.*guard.reading_age_max_s = 0.01"):
        run(configs, tmp_path / "run.h5", *sets)


CHASSIS = (
    "devices.daq.card='cDAQ1Mod1'",
    "devices.daq.sim.product='NI 9205'",
    "devices.daq.lines.feed={kind='enable', terminal='/cDAQ1Mod2/port0/line1'}",
    "devices.daq.watchdog='required'",
)


@pytest.mark.parametrize("product", ["cDAQ-9185", "cDAQ-9174"])
def test_a_required_watchdog_is_the_chassis_and_one_without_is_refused(configs, tmp_path, product):
    cards = f"devices.daq.sim.cards={{cDAQ1='{product}', cDAQ1Mod2='NI 9401'}}"
    if product == "cDAQ-9174":
        with pytest.raises(DeviceError, match=r"watchdog of cDAQ1: .*-200662"):
            run(configs, tmp_path / "run.h5", *CHASSIS, cards)
        return
    assert run(configs, tmp_path / "run.h5", *CHASSIS, cards).outcome == "complete"
    said = list(hil.open_run(tmp_path / "run.h5").event_text.values)
    assert any("watchdog: enable lines low after 0.1 s" in t and "by cDAQ1" in t for t in said)
