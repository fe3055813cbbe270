"""Getting and setting properties of channels."""

from __future__ import annotations

from typing import Any

import numpy as np
from nidaqmx.constants import DigitalDriveType

from simdaq import device_properties, errors, names, scales
from simdaq.channels import AnalogInput, AnalogOutput, Channel
from simdaq.counters import CounterInput
from simdaq.defaults import default
from simdaq.package_api import Attribute
from simdaq.pulse_outputs import CounterOutput
from simdaq.system import System
from simdaq.task import RUNNING, Task

KINDS = ("ai", "ao", "ci", "co", "di", "do")


def named(task: Task, name: str) -> list[Channel]:
    """The channels that a name stands for; all where it is empty."""
    if not name:
        return list(task.channels)
    if any(c.name == name for c in task.channels):
        return [task.channel(name)]
    return [task.channel(n) for n in names.unflatten(name)]


def get(system: System, task: Task, name: str, attribute: Attribute) -> Any:
    """A property's value for the first of the channels.

    Raises
    ------
    DaqmxError
        The property means nothing there, or the card does not have it.
    """
    channels = named(task, name)
    if not channels:
        raise task.error(errors.NO_CHANNELS)
    channel, key = channels[0], attribute.name
    if key == "physical_channel":
        return channel.physical
    kind = key.partition("_")[0]
    if kind in KINDS and kind != channel.kind:
        raise task.error(errors.PROPERTY_NOT_IN_CONTEXT, Property=key, Channel_Name=channel.name)
    if key == "ci_count" and isinstance(channel, CounterInput):
        running = task.state == RUNNING and not getattr(task.run, "waits", False)
        return channel.count_now(system.now_s) if running else channel.initial_count
    computed = _computed(task, channel, key)
    if computed is not None:
        return computed
    if key in channel.properties:
        return channel.properties[key]
    if key in ("ai_min", "ai_max"):
        code = {"ai_min": errors.NO_AI_MIN, "ai_max": errors.NO_AI_MAX}[key]
        raise task.error(code, Channel_Name=channel.name)
    known, value = default("chan", key)
    if known:
        return value
    raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property=key, Channel_Name=channel.name)


def _computed(task: Task, channel: Channel, key: str) -> Any:
    """What follows from the channel; None: nothing."""
    if isinstance(channel, AnalogInput):
        if key in ("ai_min", "ai_max") and key in channel.properties:
            return _limit(channel, key)
        values: dict[str, Any] = {
            "ai_rng_high": channel.range_, "ai_rng_low": -channel.range_,
            "ai_dev_scaling_coeff": [0.0, channel.lsb, 0.0, 0.0],
            "ai_raw_samp_size": 8 * device_properties.raw_bytes(task),
            "ai_resolution": float(channel.bits), "ai_gain": 1.0,
            "ai_custom_scale": channel.properties.get("ai_custom_scale_name", ""),
            "ai_teds_is_teds": channel.properties.get("ai_teds_is_teds", False),
        }  # fmt: skip
        return values.get(key)
    if isinstance(channel, AnalogOutput):
        low, high = channel.bounds
        bits = channel.card.model.ao.bits if channel.card.model.ao else 0
        values = {
            "ao_dac_rng_high": channel.properties.get("ao_dac_rng_high", high),
            "ao_dac_rng_low": channel.properties.get("ao_dac_rng_low", low),
            "ao_dev_scaling_coeff": [0.0, 1.0 / channel.lsb, 0.0, 0.0],
            "ao_resolution": float(bits), "ao_load_impedance": 1e10, "ao_output_impedance": 0.2,
            "ao_custom_scale": channel.properties.get("ao_custom_scale_name", ""),
        }  # fmt: skip
        return values.get(key)
    of_channel = getattr(channel, "computed", {}).get(key)
    return None if of_channel is None else of_channel()


def _limit(channel: AnalogInput, key: str) -> float:
    """A limit as the card can have it: that of the range which the limits choose.

    Source: NI-DAQmx Help, "AI.Max": reading the property returns the coerced value.
    """
    plain = channel.curve is scales.identity and channel.custom is None
    if not plain or channel.physical_signal or channel.card.model.ai is None:
        return float(channel.properties[key])
    ratio = channel.card.model.ai.ratiometric
    if ratio or channel.short.startswith("_") or "pwr" in channel.short:
        return float(channel.properties[key])
    return channel.range_ if key == "ai_max" else -channel.range_


def put(system: System, task: Task, channel: Channel, key: str, value: Any) -> None:
    """Set a property of one channel.

    Raises
    ------
    DaqmxError
        The property means nothing there, or the card does not have it.
    """
    kind = key.partition("_")[0]
    if kind in KINDS and kind != channel.kind:
        raise task.error(errors.PROPERTY_NOT_IN_CONTEXT, Property=key, Channel_Name=channel.name)
    if key.startswith("ai_bridge_shunt_cal") and not has_shunt(channel):
        raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property=key, Channel_Name=channel.name)
    if key == "do_output_drive_type":
        drives = [DigitalDriveType[name].value for name in channel.card.model.drive_types]
        if not drives:
            raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property=key, Channel_Name=channel.name)
        if value not in drives:
            raise task.error(errors.BAD_VALUE, Property=key, Requested_Value=value)
    if isinstance(channel, CounterOutput):
        channel.refuse(key, value)
    channel.initial.setdefault(key, channel.properties.get(key))
    channel.properties[key] = value
    if key in ("_name", "name"):
        channel.name = value
    _changed(system, channel, key, value)


def reset(system: System, task: Task, channel: Channel, key: str) -> None:
    """Return a property to what the channel was created with, limits to none."""
    if key in ("ai_min", "ai_max"):
        channel.properties.pop(key, None)
        return
    if key == "ai_custom_scale":
        _changed(system, channel, key, "")
        return
    before = channel.initial.pop(key, channel.properties.get(key))
    if before is None:
        channel.properties.pop(key, None)
    else:
        channel.properties[key] = before
    del task
    if before is not None:
        _changed(system, channel, key, before)


def _changed(system: System, channel: Channel, key: str, value: Any) -> None:
    if key in ("ai_custom_scale", "ao_custom_scale") and isinstance(
        channel, AnalogInput | AnalogOutput
    ):
        channel.properties[f"{key}_name"] = value
        channel.custom = system.scale(value) if value else None
    if isinstance(channel, AnalogInput):
        if key in ("ai_rng_high", "ai_rng_low"):
            channel.force_range(float(np.abs(value)))
        elif key in ("ai_min", "ai_max"):
            channel.properties.pop("ai_rng_high", None)
            channel.fit_range()
        else:
            channel.refit()
        channel.bridge_changed()
    changed = getattr(channel, "changed", None)
    if changed is not None:
        changed(key, system.now_s)


def has_shunt(channel: Channel) -> bool:
    """The channel's card can shunt its bridge."""
    ai = channel.card.model.ai
    return ai is not None and ai.shunt_Ohm > 0.0
