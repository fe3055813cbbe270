"""Power-up states of outputs by both ways in: set, kept, refused, and given after a reset."""

import nidaqmx
import pytest
from nidaqmx.constants import PowerUpChannelType, PowerUpStates
from nidaqmx.system import System as NiSystem
from nidaqmx.types import AOPowerUpState, DOPowerUpState

from simdaq import System

VOLTAGE = PowerUpChannelType.CHANNEL_VOLTAGE
CURRENT = PowerUpChannelType.CHANNEL_CURRENT
OPEN = PowerUpChannelType.CHANNEL_HIGH_IMPEDANCE
HIGH, LOW, TRISTATE = PowerUpStates.HIGH, PowerUpStates.LOW, PowerUpStates.TRISTATE


@pytest.fixture
def cards():
    found = System("held")
    found.add("PCIe-6363", "Dev1")
    found.add("PXIe-4322", "AO")
    found.add("USB-6210", "USB")
    found.add("USB-6001", "Fixed")
    return found


@pytest.fixture
def ni(connect, cards):
    """NI's view of the system."""
    options = connect(cards).keywords.get("grpc_options")
    return NiSystem.remote(options) if options else NiSystem.local()


def states(ni, device="Dev1"):
    return {s.physical_channel: s.power_up_state for s in ni.get_digital_power_up_states(device)}


def digital(ni, *pairs, device="Dev1"):
    ni.set_digital_power_up_states(device, [DOPowerUpState(c, s) for c, s in pairs])


def analog(ni, *triples):
    ni.set_analog_power_up_states_with_output_type([AOPowerUpState(*t) for t in triples])


def kept(ni, *channels):
    found = ni.get_analog_power_up_states_with_output_type(list(channels))
    return [tuple(s) for s in found]


def test_lines_are_in_tristate_until_a_port_or_a_range_of_lines_is_set(ni):
    assert len(states(ni)) == 48
    assert set(states(ni).values()) == {TRISTATE}
    digital(ni, ("Dev1/port1", LOW), ("Dev1/port0/line3:4", HIGH))
    found = states(ni)
    assert {c for c, s in found.items() if s == HIGH} == {"Dev1/port0/line3", "Dev1/port0/line4"}
    assert {c for c, s in found.items() if s == LOW} == {f"Dev1/port1/line{i}" for i in range(8)}


def test_a_reset_drives_lines_to_their_power_up_states(ni, cards):
    digital(ni, ("Dev1/port0/line3", HIGH), ("Dev1/port0/line4", LOW))
    card = cards.cards["Dev1"]
    card.output("port0/line4").put(0.0, 1.0)
    card.output("port0/line5").put(0.0, 1.0)
    ni.devices["Dev1"].reset_device()
    assert [float(card.level(f"port0/line{i}", 0.0)) for i in (3, 4, 5)] == [1.0, 0.0, 0.0]


def test_outputs_are_open_until_they_are_set_and_a_reset_puts_the_level_out(ni, cards):
    assert kept(ni, "AO/ao0", "AO/ao7") == [("AO/ao0", 0.0, OPEN), ("AO/ao7", 0.0, OPEN)]
    wanted = [("AO/ao0", -1.5, VOLTAGE), ("AO/ao1", 0.01, CURRENT), ("AO/ao2", 2.0, OPEN)]
    analog(ni, *wanted)
    assert kept(ni, "AO/ao0", "AO/ao1", "AO/ao2") == wanted
    ni.devices["AO"].reset_device()
    card = cards.cards["AO"]
    assert [card.output(f"ao{i}").at(0.0) for i in range(3)] == [-1.5, 0.01, 0.0]


def test_the_older_function_sets_the_same_states(ni):
    with pytest.deprecated_call():
        ni.set_analog_power_up_states("AO", [AOPowerUpState("AO/ao3", 4.0, VOLTAGE)])
    assert kept(ni, "AO/ao3") == [("AO/ao3", 4.0, VOLTAGE)]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (("AO/ao1", 20.0, VOLTAGE), -200077),  # the output's range is 16 V
        (("AO/ao1", -0.01, CURRENT), -200077),
        (("AO/ao9", 1.0, VOLTAGE), -200170),
        (("Dev1/ao0", 1.0, VOLTAGE), -200663),  # X Series outputs start at 0 V
    ],
)
def test_one_wrong_analog_state_leaves_all_as_they_were(ni, wrong, code):
    with pytest.raises(nidaqmx.DaqError) as caught:
        analog(ni, ("AO/ao0", 1.0, VOLTAGE), wrong)
    assert caught.value.error_code == code
    assert kept(ni, "AO/ao0") == [("AO/ao0", 0.0, OPEN)]


@pytest.mark.parametrize(
    ("device", "wrong", "code"),
    [
        ("Dev1", "", -200626),
        ("Dev1", "AO/ao0", -200170),
        ("Dev1", "Dev1/port7", -200170),
        ("USB", "USB/port0/line0", -200650),  # only an input
        ("Fixed", "Fixed/port1/line0", -200663),
    ],
)
def test_one_wrong_digital_state_leaves_all_as_they_were(ni, device, wrong, code):
    with pytest.raises(nidaqmx.DaqError) as caught:
        digital(ni, (f"{device}/port1", HIGH), (wrong, LOW), device=device)
    assert caught.value.error_code == code
    assert set(states(ni).values()) == {TRISTATE}


def test_lines_that_are_only_outputs_are_low_and_never_in_tristate(ni):
    assert set(states(ni, "USB").values()) == {LOW}
    with pytest.raises(nidaqmx.DaqError) as caught:
        digital(ni, ("USB/port1/line0", HIGH), ("USB/port1", TRISTATE), device="USB")
    assert caught.value.error_code == -201393
    assert set(states(ni, "USB").values()) == {LOW}


def test_more_channels_than_there_is_room_for_are_refused(ni):
    with pytest.raises(nidaqmx.DaqError) as caught:
        ni.get_analog_power_up_states_with_output_type(["AO/ao0:3"])
    assert caught.value.error_code == -200229


def test_a_port_whose_lines_differ_has_no_state_of_its_own(ni):
    digital(ni, ("Dev1/port1/line0", HIGH))
    assert ni._interpreter.get_digital_power_up_states("Dev1", ["Dev1/port2"]) == [TRISTATE.value]
    with pytest.raises(nidaqmx.DaqError) as caught:
        ni._interpreter.get_digital_power_up_states("Dev1", ["Dev1/port1"])
    assert caught.value.error_code == -200652
