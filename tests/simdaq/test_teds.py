"""Channels that take their scaling from a virtual TEDS file."""

import struct

import nidaqmx
import pytest
from nidaqmx.constants import (
    AccelSensitivityUnits,
    BridgeConfiguration,
    ForceUnits,
    TEDSUnits,
    TemperatureUnits,
    ThermocoupleType,
)
from nidaqmx.system import PhysicalChannel

from simdaq import System
from simdaq.teds_templates import decode, template_id

FILE_HEADER = bytes(40)
POUNDS_FORCE, NEWTON_METRES, KELVIN = 5, 10, 0


def single(value):
    return int.from_bytes(struct.pack("<f", value), "little"), 32


def virtual_teds(folder, template, *fields):
    """A file with one byte a bit: header, basic TEDS, the template; fields are (number, bits)."""
    bits = []
    for number, n in ((17, 14), (1, 50), (0, 2), (template, 8), *fields):
        bits += [(number >> i) & 1 for i in range(n)]
    path = folder / "sensor.ted"
    path.write_bytes(FILE_HEADER + bytes(bits))
    return str(path)


@pytest.fixture
def cards(connect):
    system = System("held")
    system.add("PCIe-6363", "Dev1")
    system.add("PXIe-4331", "Bridge")
    system.add("PXIe-4480", "Dsa")
    return system, connect(system)


def channel(way, name, file):
    options = way.keywords.get("grpc_options")
    found = PhysicalChannel(name, **({"grpc_options": options} if options else {}))
    found.configure_teds(file)
    return found.name


def test_an_accelerometer_has_the_sensitivity_that_ni_reads_from_the_same_bits(cards, tmp_path):
    """Numbers 53735 and 49.03 V/g: Accelerometer.ted in NI's tests of nidaqmx."""
    _, way = cards
    name = channel(way, "Dsa/ai0", virtual_teds(tmp_path, 25, (0, 2), (53735, 16)))
    with way.Task() as task:
        found = task.ai_channels.add_teds_ai_accel_chan(name)
        assert found.ai_teds_is_teds
        assert found.ai_accel_sensitivity == pytest.approx(49.03, abs=0.01)
        assert found.ai_accel_sensitivity_units == AccelSensitivityUnits.VOLTS_PER_G


def test_a_microphone_has_the_sensitivity_that_ni_reads_from_the_same_bits(cards, tmp_path):
    """Numbers 61036 and 1999.81 mV/Pa: Microphone.ted in NI's tests of nidaqmx."""
    _, way = cards
    name = channel(way, "Dsa/ai0", virtual_teds(tmp_path, 27, (0, 1), (61036, 16)))
    with way.Task() as task:
        found = task.ai_channels.add_teds_ai_microphone_chan(name)
        assert found.ai_microphone_sensitivity == pytest.approx(1999.81, abs=0.01)


def load_cell(folder, measurand=POUNDS_FORCE, bridge=2):
    """100 lb at 2 mV/V; full bridge of 350 Ohm, which is 1 Ohm + 3490 * 0.1 Ohm."""
    return virtual_teds(
        folder, 33, (measurand, 6), single(0.0), single(100.0), (2, 2), single(0.0), single(2e-3),
        (bridge, 2), (3490, 18),
    )  # fmt: skip


def test_a_load_cell_reads_newtons_by_the_line_of_its_data_sheet(cards, tmp_path):
    system, way = cards
    name = channel(way, "Bridge/ai0", load_cell(tmp_path))
    system.feed("Bridge/ai0", 1e-3)
    with way.Task() as task:
        found = task.ai_channels.add_teds_ai_force_bridge_chan(name, units=ForceUnits.NEWTONS)
        assert task.read() == pytest.approx(50.0 * 4.4482216, rel=1e-5)
        assert found.ai_bridge_cfg == BridgeConfiguration.FULL_BRIDGE
        assert found.ai_bridge_nom_resistance == pytest.approx(350.0)


def test_a_bridge_channel_takes_the_unit_of_the_teds(cards, tmp_path):
    system, way = cards
    name = channel(way, "Bridge/ai0", load_cell(tmp_path))
    system.feed("Bridge/ai0", 1e-3)
    with way.Task() as task:
        found = task.ai_channels.add_teds_ai_bridge_chan(name)
        assert found.ai_teds_units == "forcelb"
        assert task.read() == pytest.approx(50.0, rel=1e-5)


def test_a_transmitter_of_0_to_10_V_reads_its_physical_quantity(cards, tmp_path):
    system, way = cards
    file = virtual_teds(tmp_path, 30, (KELVIN, 6), single(-100.0), single(300.0), (0, 2))
    system.feed("Dev1/ai0", 5.0)
    with way.Task() as task:
        found = task.ai_channels.add_teds_ai_voltage_chan(
            channel(way, "Dev1/ai0", file), min_val=-100.0, max_val=300.0, units=TEDSUnits.FROM_TEDS
        )
        assert task.read() == pytest.approx(100.0, abs=0.02)
        assert found.ai_teds_units == "Kelvin"


def test_a_thermocouple_has_its_type_and_reads_in_the_tasks_unit(cards, tmp_path):
    """Number 3 is type K: TempTC.ted in NI's tests of nidaqmx."""
    system, way = cards
    file = virtual_teds(tmp_path, 36, (223, 11), (473, 11), (0, 14), (3, 4))
    system.feed("Dev1/ai0", 20.0)
    with way.Task() as task:
        found = task.ai_channels.add_teds_ai_thrmcpl_chan(
            channel(way, "Dev1/ai0", file), units=TemperatureUnits.DEG_F, min_val=0.0, max_val=100.0
        )
        assert found.ai_thrmcpl_type == ThermocoupleType.K
        assert task.read() == pytest.approx(68.0, abs=0.01)


def test_a_thermistor_has_its_coefficients(cards, tmp_path):
    _, way = cards
    file = virtual_teds(tmp_path, 38, (0, 78), single(1.3e-3), single(2.3e-4), single(1e-7))
    with way.Task() as task:
        found = task.ai_channels.add_teds_ai_thrmstr_chan_iex(channel(way, "Dev1/ai0", file))
        assert (found.ai_thrmstr_a, found.ai_thrmstr_b, found.ai_thrmstr_c) == pytest.approx(
            (1.3e-3, 2.3e-4, 1e-7)
        )


def test_bits_of_another_reader_mean_the_same_bridge():
    """A half bridge of 40 Ohm. Source: Dewetron, TRION API, "TEDS Interface"."""
    data = bytes.fromhex(
        "1F40620000000000841C000000000000000002000000000000006418008021C10EC34800000000E0"
    )
    found = decode(data)
    assert template_id(data) == 33
    assert (found["bridge"], found["resistance"]) == (1, 40.0)


@pytest.mark.parametrize(
    ("file", "code"),
    [
        pytest.param(lambda f: virtual_teds(f, 37, (0, 80)), -200754, id="template not described"),
        pytest.param(lambda f: load_cell(f, NEWTON_METRES), -200756, id="torque, not force"),
        pytest.param(lambda f: virtual_teds(f, 36, (0, 80)), -200756, id="thermocouple"),
        pytest.param(lambda f: virtual_teds(f, 33, (5, 6)), -200826, id="cut short"),
        pytest.param(lambda f: load_cell(f, bridge=3), -200826, id="a fourth bridge type"),
        pytest.param(lambda f: "", -200709, id="no TEDS"),
    ],
)
def test_a_teds_that_does_not_fit_is_refused_with_nis_code(cards, tmp_path, file, code):
    _, way = cards
    name = channel(way, "Bridge/ai0", file(tmp_path))
    with way.Task() as task:
        with pytest.raises(nidaqmx.DaqError) as refused:
            task.ai_channels.add_teds_ai_force_bridge_chan(name)
        assert refused.value.error_code == code
        assert not task.channel_names
