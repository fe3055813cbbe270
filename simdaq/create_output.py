"""The DAQmxCreateAO... functions."""

from __future__ import annotations

from typing import Any

from nidaqmx.constants import ChannelType, TerminalConfiguration, UsageTypeAO

from simdaq import errors, names
from simdaq.analog_inputs import FROM_CUSTOM_SCALE
from simdaq.card import Card
from simdaq.channels import AnalogOutput, Channel
from simdaq.errors import DaqmxError
from simdaq.system import System


def _types(card: Card) -> list[UsageTypeAO]:
    assert card.model.ao is not None
    current = [UsageTypeAO.CURRENT] if card.model.ao.current_ranges_A else []
    return [UsageTypeAO.VOLTAGE, *current]


def _add(system: System, usage: UsageTypeAO, k: dict[str, Any]) -> None:
    owner = system.task(k["task"])
    physicals = names.unflatten(k["physical_channel"])
    if not physicals:
        raise owner.error(errors.BAD_NAME, Physical_Channel_Name=repr(k["physical_channel"]))
    from_scale = k["units"] == FROM_CUSTOM_SCALE
    custom = system.scale(k["custom_scale_name"]) if from_scale else None
    created: list[Channel] = []
    labels = names.labels(k["name_to_assign_to_channel"], physicals)
    for label, physical in zip(labels, physicals, strict=True):
        device, rest = names.split(physical)
        card = system.card(device)
        short = card.check(rest, "ao")
        if usage not in _types(card):
            raise DaqmxError(
                errors.WRONG_OUTPUT_TYPE,
                Physical_Channel_Name=physical, Output_Type=usage.name,
            )  # fmt: skip
        single_ended = card.model.bus.name != "PXIE" or card.model.ai is not None
        configuration = TerminalConfiguration.RSE if single_ended else TerminalConfiguration.DIFF
        created.append(
            AnalogOutput(
                label, physical, "ao", card, short,
                {"ao_min": k["min_val"], "ao_max": k["max_val"],
                 f"ao_{usage.name.lower()}_units": k["units"], "ao_output_type": usage.value,
                 "ao_custom_scale_name": k["custom_scale_name"] if from_scale else "",
                 "ao_term_cfg": configuration.value,
                 "chan_type": ChannelType.ANALOG_OUTPUT.value},
                custom=custom,
            )
        )  # fmt: skip
    system.add_channels(owner, created)


def create_ao_voltage_chan(system: System, **k: Any) -> None:
    """Create channels that generate voltage, V."""
    _add(system, UsageTypeAO.VOLTAGE, k)


def create_ao_current_chan(system: System, **k: Any) -> None:
    """Create channels that generate current, A."""
    _add(system, UsageTypeAO.CURRENT, k)
