"""Power-up states: what outputs do when the card gets power, and after a reset.

They are kept with the simulated card. A reset sets digital lines, and analog outputs of cards with
states of their own, to them (NI-DAQmx Help, "Initialized States for Terminals and Output
Channels").
"""

from __future__ import annotations

from collections.abc import Sequence

from nidaqmx.constants import PowerUpChannelType, PowerUpStates

from simdaq import errors, names
from simdaq.card import Card
from simdaq.errors import DaqmxError
from simdaq.system import System

HIGH, LOW, TRISTATE = (
    PowerUpStates.HIGH.value, PowerUpStates.LOW.value, PowerUpStates.TRISTATE.value,
)  # fmt: skip
VOLTAGE = PowerUpChannelType.CHANNEL_VOLTAGE.value
CURRENT = PowerUpChannelType.CHANNEL_CURRENT.value
HIGH_IMPEDANCE = PowerUpChannelType.CHANNEL_HIGH_IMPEDANCE.value
# An analog output that nobody has set: 0 V, not connected.
ANALOG_DEFAULT = (0.0, HIGH_IMPEDANCE)


def _place(card: Card, name: str, kind: str) -> str:
    """The short name of an output of this card."""
    if not name:
        raise DaqmxError(errors.EMPTY_POWER_UP_CHANNEL, Device=card.name)
    device, rest = names.split(name)
    if device != card.name:
        raise DaqmxError(
            errors.NO_SUCH_CHANNEL, Physical_Channel_Name=name, Device_Specified=card.name
        )
    if kind not in card.model.power_up:
        raise DaqmxError(errors.NO_POWER_UP_STATES, Physical_Channel_Name=name, Device=card.name)
    return rest


def _lines(card: Card, name: str) -> list[str]:
    rest = _place(card, name, "do")
    inputs = (*card.names("di"), *card.names("di_port"))
    outputs = (*card.names("do"), *card.names("do_port"))
    full = f"{card.name}/{rest}"
    if full in inputs and full not in outputs:
        raise DaqmxError(errors.POWER_UP_OF_INPUT, Physical_Channel_Name=name)
    return card.lines(card.check(rest, "do"))


def _digital(card: Card, line: str) -> int:
    both_ways = f"{card.name}/{line}" in card.names("di")
    state = card.stored.get(f"power_up {line}", TRISTATE if both_ways else LOW)
    assert isinstance(state, int)
    return state


def set_digital_power_up_states(
    system: System, *, device_name: str, channel_names: Sequence[str], state: Sequence[int]
) -> None:
    """Set lines or whole ports; all of them, or none where one is wrong."""
    card = system.card(device_name)
    wanted: dict[str, int] = {}
    for text, one in zip(channel_names, state, strict=True):
        if one not in (HIGH, LOW, TRISTATE):
            raise DaqmxError(errors.BAD_VALUE, Requested_Value=one, Physical_Channel_Name=text)
        for name in names.unflatten(text) or [""]:
            lines = _lines(card, name)
            if one == TRISTATE and f"{card.name}/{lines[0]}" not in card.names("di"):
                raise DaqmxError(errors.POWER_UP_TRISTATE, Physical_Channel_Name=name)
            wanted |= dict.fromkeys(lines, one)
    card.stored |= {f"power_up {line}": one for line, one in wanted.items()}


def get_digital_power_up_states(
    system: System, *, device_name: str, channel_name: Sequence[str]
) -> list[int]:
    """The state of each line, or of each port whose lines have the same one."""
    card = system.card(device_name)
    levels: list[int] = []
    for name in channel_name:
        states = {_digital(card, line) for line in _lines(card, name)}
        if len(states) > 1:
            raise DaqmxError(errors.POWER_UP_MIXED, Physical_Channel_Name=name)
        levels += states
    return levels


def _check_level(card: Card, name: str, level: float, kind: int) -> None:
    ao = card.model.ao
    assert ao is not None
    high = {VOLTAGE: ao.ranges[-1], HIGH_IMPEDANCE: ao.ranges[-1]}
    if ao.current_ranges_A:
        high[CURRENT] = ao.current_ranges_A[-1]
    if kind not in high:
        raise DaqmxError(errors.BAD_VALUE, Requested_Value=kind, Physical_Channel_Name=name)
    low = 0.0 if kind == CURRENT or ao.unipolar else -high[kind]
    if not low <= level <= high[kind]:
        raise DaqmxError(
            errors.BAD_VALUE, Requested_Value=level, Maximum_Value=high[kind], Minimum_Value=low,
            Physical_Channel_Name=name,
        )  # fmt: skip


def _analog(system: System, name: str) -> tuple[Card, str]:
    card = system.card(names.split(name)[0])
    return card, card.check(_place(card, name, "ao"), "ao")


def set_analog_power_up_states_with_output_type(
    system: System, *, channel_names: str, state_array: Sequence[float],
    channel_type_array: Sequence[int],
) -> None:  # fmt: skip
    """Set levels and kinds of output; all of them, or none where one is wrong."""
    listed = names.unflatten(channel_names)
    if not len(listed) == len(state_array) == len(channel_type_array):
        raise DaqmxError(errors.EMPTY_POWER_UP_CHANNEL, Physical_Channel_Name=channel_names)
    wanted = []
    for name, level, kind in zip(listed, state_array, channel_type_array, strict=True):
        card, short = _analog(system, name)
        _check_level(card, name, float(level), int(kind))
        wanted.append((card, f"power_up {short}", (float(level), int(kind))))
    for card, key, state in wanted:
        card.stored[key] = state


def set_analog_power_up_states(
    system: System, *, device_name: str, channel_names: Sequence[str], state: Sequence[float],
    channel_type: Sequence[int],
) -> None:  # fmt: skip
    """The same for outputs of one card."""
    card = system.card(device_name)
    for name in channel_names:
        _place(card, name, "ao")
    set_analog_power_up_states_with_output_type(
        system, channel_names=names.flatten(channel_names), state_array=state,
        channel_type_array=channel_type,
    )  # fmt: skip


def get_analog_power_up_states_with_output_type(
    system: System, *, channel_names: str, array_size: int
) -> tuple[list[float], list[int]]:
    """Levels and kinds of output."""
    listed = names.unflatten(channel_names)
    if len(listed) > array_size:
        raise DaqmxError(errors.ARRAY_TOO_SMALL, Physical_Channel_Name=channel_names)
    pairs = []
    for name in listed:
        card, short = _analog(system, name)
        state = card.stored.get(f"power_up {short}", ANALOG_DEFAULT)
        assert isinstance(state, tuple)
        pairs.append(state)
    return [level for level, _ in pairs], [kind for _, kind in pairs]


def level_after_reset(card: Card, short: str) -> float:
    """What an output gives after a reset: V, A, or 0 and 1 of a line; 0 where it is not driven."""
    state = card.stored.get(f"power_up {short}")
    if isinstance(state, tuple):
        level, kind = state
        return 0.0 if kind == HIGH_IMPEDANCE else float(level)
    return 1.0 if state == HIGH else 0.0
