"""Analog inputs of a task, made for the functions that create them."""

from __future__ import annotations

from typing import Any

from nidaqmx.constants import ChannelType, TerminalConfiguration, UsageTypeAI

from simdaq import errors, names, scales
from simdaq.channels import AnalogInput, Channel
from simdaq.errors import DaqmxError
from simdaq.system import System

FROM_CUSTOM_SCALE = 10065


def add_inputs(
    system: System,
    task: int,
    physical_channel: str,
    name_to_assign_to_channel: str,
    usage: UsageTypeAI,
    properties: dict[str, Any],
    *,
    curve: scales.Scaling = scales.identity,
    from_fed: scales.Scaling = scales.identity,
    physical_signal: bool = False,
) -> None:
    """Add one analog input to a task for each physical channel.

    Parameters
    ----------
    curve, from_fed, physical_signal : as of `AnalogInput`

    Raises
    ------
    DaqmxError
        The card has no such channel, or cannot measure this or wire it so.
    """
    owner = system.task(task)
    physicals = names.unflatten(physical_channel)
    if not physicals:
        raise owner.error(errors.BAD_NAME, Physical_Channel_Name=repr(physical_channel))
    created: list[Channel] = []
    labels = names.labels(name_to_assign_to_channel, physicals)
    for label, physical in zip(labels, physicals, strict=True):
        device, rest = names.split(physical)
        card = system.card(device)
        short = card.check(rest, "ai")
        assert card.model.ai is not None
        if usage not in card.model.ai.usages:
            raise DaqmxError(
                errors.WRONG_MEASUREMENT,
                Physical_Channel_Name=physical, Measurement_Type=usage.name,
            )  # fmt: skip
        settings = dict(properties)
        settings["ai_meas_type"] = usage.value
        settings["chan_type"] = ChannelType.ANALOG_INPUT.value
        custom = None
        if settings.get("ai_custom_scale_name"):
            custom = system.scale(settings["ai_custom_scale_name"])
        ways = [c.value for c in card.terminal_configurations(short)]
        configuration = settings.get("ai_term_cfg", TerminalConfiguration.DEFAULT.value)
        if configuration == TerminalConfiguration.DEFAULT.value:
            settings["ai_term_cfg"] = ways[0]
        elif configuration not in ways and not short.startswith("_"):
            raise DaqmxError(
                errors.BAD_VALUE, Property="AI.TermCfg", Requested_Value=configuration,
                Channel_Name=physical,
            )  # fmt: skip
        created.append(
            AnalogInput(
                label, physical, "ai", card, short, settings,
                curve=curve, from_fed=from_fed, custom=custom, physical_signal=physical_signal,
            )
        )  # fmt: skip
    system.add_channels(owner, created)
