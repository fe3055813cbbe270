"""Bridges, force channels, custom scales and real clock rates, by library and by gRPC."""

import nidaqmx
import numpy as np
import pytest
from nidaqmx.constants import (
    BridgeConfiguration,
    BridgeElectricalUnits,
    BridgePhysicalUnits,
    BridgeUnits,
    ExcitationSource,
    ForceUnits,
    VoltageUnits,
)
from nidaqmx.scale import Scale

from simdaq import System

FULL_V_PER_V = 0.025
LSB_V_PER_V = 2.0 * FULL_V_PER_V / 2**24  # NI 9237: +/-25 mV/V in 24 bits
POUND_N = 0.45359237 * 9.80665  # by definition


@pytest.fixture
def system():
    found = System("held")
    found.add("cDAQ-9185", "cDAQ1")
    found.add("NI 9237", "cDAQ1Mod1", chassis="cDAQ1")
    found.add("PCIe-6363", "Dev1")
    return found


def bridge(task, resistance=350.0):
    return task.ai_channels.add_ai_bridge_chan(
        "cDAQ1Mod1/ai0",
        units=BridgeUnits.MILLIVOLTS_PER_VOLT,
        min_val=-2.0,
        max_val=2.0,
        bridge_config=BridgeConfiguration.FULL_BRIDGE,
        voltage_excit_source=ExcitationSource.INTERNAL,
        voltage_excit_val=10.0,
        nominal_bridge_resistance=resistance,
    )


def test_a_bridge_is_read_in_millivolts_per_volt(system, Task):
    system.feed("cDAQ1Mod1/ai0", 1.2345e-3)
    with Task() as task:
        bridge(task)
        assert task.read() == pytest.approx(1.2345, abs=1e3 * LSB_V_PER_V)


def test_a_force_follows_its_certificate_between_units(system, Task):
    """5 lb at 2 mV/V: half of it is 2.5 lb, in newtons."""
    system.feed("cDAQ1Mod1/ai1", 1.0e-3)
    with Task() as task:
        task.ai_channels.add_ai_force_bridge_two_point_lin_chan(
            "cDAQ1Mod1/ai1",
            units=ForceUnits.NEWTONS,
            min_val=-25.0,
            max_val=25.0,
            electrical_units=BridgeElectricalUnits.MILLIVOLTS_PER_VOLT,
            first_electrical_val=0.0,
            second_electrical_val=2.0,
            physical_units=BridgePhysicalUnits.POUNDS,
            first_physical_val=0.0,
            second_physical_val=5.0,
        )
        assert task.read() == pytest.approx(2.5 * POUND_N, rel=1e-5)


def test_a_polynomial_certificate_is_evaluated_constant_first(system, Task):
    system.feed("cDAQ1Mod1/ai2", 1.5e-3)
    with Task() as task:
        task.ai_channels.add_ai_force_bridge_polynomial_chan(
            "cDAQ1Mod1/ai2",
            units=ForceUnits.NEWTONS,
            min_val=-25.0,
            max_val=25.0,
            electrical_units=BridgeElectricalUnits.MILLIVOLTS_PER_VOLT,
            forward_coeffs=[0.1, 4.0, 0.02],
            reverse_coeffs=[-0.025, 0.25],
            physical_units=BridgePhysicalUnits.NEWTONS,
        )
        assert task.read() == pytest.approx(0.1 + 4.0 * 1.5 + 0.02 * 1.5**2, abs=1e-4)


def test_a_shunt_shows_what_the_bridge_circuit_gives(system, Task):
    """One arm of four equal ones with 100 kOhm across it, solved as two dividers."""
    arm, shunt = 350.0, 100.0e3
    shunted = arm * shunt / (arm + shunt)
    expected_mV_per_V = 1e3 * (arm / (arm + shunted) - arm / (arm + arm))
    system.feed("cDAQ1Mod1/ai0", 0.2e-3)
    with Task() as task:
        channel = bridge(task, arm)
        before = task.read()
        channel.ai_bridge_shunt_cal_enable = True
        after = task.read()
    assert after - before == pytest.approx(expected_mV_per_V, abs=2e3 * LSB_V_PER_V)


def test_a_card_without_a_shunt_refuses_to_close_one(system, Task):
    with Task() as task:
        channel = task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        with pytest.raises(nidaqmx.DaqError) as caught:
            channel.ai_bridge_shunt_cal_enable = True
    assert caught.value.error_code == -200197


def test_nulling_takes_the_bridges_offset_off(system, Task):
    system.feed("cDAQ1Mod1/ai0", 0.3e-3)
    with Task() as task:
        bridge(task)
        task.perform_bridge_offset_nulling_cal()
        assert task.read() == pytest.approx(0.0, abs=2e3 * LSB_V_PER_V)
        system.feed("cDAQ1Mod1/ai0", 0.8e-3)
        assert task.read() == pytest.approx(0.5, abs=2e3 * LSB_V_PER_V)


def test_a_bridge_module_refuses_volts(system, Task):
    with Task() as task, pytest.raises(nidaqmx.DaqError) as caught:
        task.ai_channels.add_ai_voltage_chan("cDAQ1Mod1/ai0")
    assert caught.value.error_code == -200431


@pytest.mark.parametrize(
    ("asked_Hz", "real_Hz"), [(50e3, 50e3), (20e3, 25e3), (2000.0, 2000.0), (100.0, 50e3 / 31)]
)
def test_a_delta_sigma_module_takes_the_next_rate_up_that_it_has(system, Task, asked_Hz, real_Hz):
    """NI 9237: 50 kS/s / n, n from 1 to 31."""
    system.feed("cDAQ1Mod1/ai0", lambda t_s: 1e-3 * t_s)
    with Task() as task:
        bridge(task)
        task.timing.cfg_samp_clk_timing(asked_Hz, samps_per_chan=50)
        assert task.timing.samp_clk_rate == pytest.approx(real_Hz)
        task.start()
        system.advance_to(1.0)
        read = np.array(task.read(50))
    assert np.diff(read) == pytest.approx(np.full(49, 1.0 / real_Hz), abs=4e3 * LSB_V_PER_V)


def test_a_rate_is_a_whole_part_of_the_timebase(system, Task):
    with Task() as task:
        task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
        task.timing.cfg_samp_clk_timing(3000.0)
        assert task.timing.samp_clk_rate == pytest.approx(100e6 / 33_333, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "arguments", "expected"),
    [
        (Scale.create_lin_scale, (2.0, 1.0), 1.0 + 2.0 * 1.5),
        (Scale.create_map_scale, (0.0, 3.0, 1.0, 7.0), 1.0 + 6.0 * 0.5),
        (Scale.create_polynomial_scale, ([1.0, 0.0, 2.0], [0.0, 1.0]), 1.0 + 2.0 * 1.5**2),
        (Scale.create_table_scale, ([0.0, 1.0, 2.0], [0.0, 3.0, 5.0]), 4.0),
    ],
)
def test_a_custom_scale_is_in_what_is_read(system, connect, make, arguments, expected):
    way = connect(system)
    make("mine", *arguments, **way.keywords)
    system.feed("Dev1/ai0", 1.5)
    with way.Task() as task:
        task.ai_channels.add_ai_voltage_chan(
            "Dev1/ai0", min_val=-20.0, max_val=20.0, units=VoltageUnits.FROM_CUSTOM_SCALE,
            custom_scale_name="mine",
        )  # fmt: skip
        assert task.read() == pytest.approx(expected, abs=1e-3)


def test_a_map_reads_no_more_than_its_scaled_range(system, connect):
    """nidaqmx, `Scale.map_scaled_max`: "Reads coerce samples that are larger"."""
    way = connect(system)
    Scale.create_map_scale("mine", 0.0, 3.0, 7.0, 1.0, **way.keywords)
    with way.Task() as task:
        task.ai_channels.add_ai_voltage_chan(
            "Dev1/ai0", min_val=-20.0, max_val=20.0, units=VoltageUnits.FROM_CUSTOM_SCALE,
            custom_scale_name="mine",
        )  # fmt: skip
        for volts, expected in ((4.0, 1.0), (1.5, 4.0), (-1.0, 7.0)):
            system.feed("Dev1/ai0", volts)
            assert task.read() == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(
    ("make", "arguments", "beyond"),
    [
        (Scale.create_lin_scale, (2.0, 1.0), 8.5),
        (Scale.create_map_scale, (0.0, 3.0, 1.0, 7.0), 7.1),
        (Scale.create_polynomial_scale, ([1.0, 2.0], [-0.5, 0.5]), 8.5),
        (Scale.create_table_scale, ([0.0, 1.0, 3.0], [1.0, 3.0, 7.0]), 7.1),
    ],
)
def test_what_is_written_is_in_the_units_of_a_custom_scale(
    system, connect, make, arguments, beyond
):
    """The scale converts volts; a write converts back, here by y = 1 + 2 x."""
    way = connect(system)
    make("mine", *arguments, **way.keywords)
    with way.Task() as task:
        task.ao_channels.add_ao_voltage_chan(
            "Dev1/ao0", min_val=-8.0, max_val=8.0, units=VoltageUnits.FROM_CUSTOM_SCALE,
            custom_scale_name="mine",
        )  # fmt: skip
        task.write(5.0)
        assert system.output("Dev1/ao0") == pytest.approx(2.0, abs=1e-3)
        with pytest.raises(nidaqmx.DaqError) as caught:
            task.write(beyond)
        assert caught.value.error_code == -200561
    assert system.output("Dev1/ao0") == pytest.approx(2.0, abs=1e-3)


def test_a_scale_that_nobody_made_is_refused(system, Task):
    with Task() as task, pytest.raises(nidaqmx.DaqError) as caught:
        task.ai_channels.add_ai_voltage_chan(
            "Dev1/ai0", units=VoltageUnits.FROM_CUSTOM_SCALE, custom_scale_name="nobody's"
        )
    assert caught.value.error_code == -200378
