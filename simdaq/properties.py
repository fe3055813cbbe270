"""Getting and setting properties of tasks, channels, timing, triggers and buffers.

What is not stored here or computed is answered as a property that the device does not support.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nidaqmx.constants import (
    AcquisitionType,
    OverwriteMode,
    ReadRelativeTo,
    RegenerationMode,
    SampleTimingType,
    TriggerType,
)

from simdaq import device_properties, errors, names, watchdog
from simdaq.acquisition import InputRun
from simdaq.channels import AnalogInput, Channel, DigitalLines
from simdaq.errors import DaqmxError
from simdaq.package_api import Attribute
from simdaq.system import System
from simdaq.task import RUNNING, UNVERIFIED, Task
from simdaq.timing import Timing, Trigger

Getter = Callable[[Task], Any]

DEFAULTS: dict[tuple[str, str], Any] = {
    ("read", "auto_start"): True,
    ("read", "read_all_avail_samp"): False,
    ("read", "relative_to"): ReadRelativeTo.CURRENT_READ_POSITION.value,
    ("read", "offset"): 0,
    ("read", "logging_mode"): 10231,
    ("read", "wait_mode"): 12525,
    ("read", "sleep_time"): 0.001,
    ("write", "wait_mode"): 12525,
    ("write", "sleep_time"): 0.001,
    ("write", "relative_to"): 10430,
    ("write", "offset"): 0,
    ("write", "regen_mode"): RegenerationMode.ALLOW_REGENERATION.value,
    ("timing", "ref_clk_src"): "None",
    ("timing", "ref_clk_rate"): 10.0e6,
    ("trig", "triggers_sync_type"): TriggerType.NONE.value,
    ("trig", "start_retriggerable"): False,
    ("trig", "start_delay"): 0.0,
    ("trig", "start_delay_units"): 10364,
    ("trig", "pause_trig_type"): TriggerType.NONE.value,
    ("trig", "arm_start_trig_type"): TriggerType.NONE.value,
    ("trig", "handshake_trig_type"): TriggerType.NONE.value,
    ("buffer", "input_onbrd_buf_size"): 4095,
    ("buffer", "output_onbrd_buf_size"): 8191,
}
TIMING_FIELDS = {
    "samp_clk_rate": "rate_Hz",
    "samp_clk_src": "source",
    "samp_clk_active_edge": "edge",
    "samp_quant_samp_mode": "mode",
    "samp_quant_samp_per_chan": "samples",
    "samp_timing_type": "type",
}
TRIGGER_FIELDS = {
    "trig_type": "type",
    "dig_edge_src": "source",
    "dig_edge_edge": "edge",
    "anlg_edge_src": "source",
    "anlg_edge_slope": "edge",
    "anlg_edge_lvl": "level",
    "pretrig_samples": "pretrigger",
}
# What changes by itself while time passes.
OF_THE_MOMENT = {
    ("read", "avail_samp_per_chan"),
    ("read", "total_samp_per_chan_acquired"),
    ("read", "_calculate_num_samps_per_chan"),
    ("write", "total_samp_per_chan_generated"),
    ("watchdog", "expired"),
}
# Properties that may be set but have no bearing on a simulation.
OWNERS_STORED = ("chan", "timing", "trig", "read", "write", "buffer", "exported_signal")


def get(system: System, owner: str, handle: int, name: str, attribute: Attribute) -> Any:
    """A property's value.

    Raises
    ------
    DaqmxError
        The task or channel does not exist, or the property means nothing there.
    """
    if owner in ("device", "physical_chan", "system_info", "cal_info") or owner.startswith(
        "persisted"
    ):
        return device_properties.get(system, owner, name, attribute.name)
    if owner == "scale":
        scale = system.scales.get(name)
        if attribute.name == "scale_type":
            return scale.kind.value
        return scale.properties.get(attribute.name, "" if attribute.type == "string" else 0)
    task = system.task(handle)
    if (owner, attribute.name) in OF_THE_MOMENT:
        system.catch_up()
    if owner == "watchdog":
        return watchdog.get(task, name, attribute.name)
    if owner == "chan":
        return _channel(task, name, attribute)
    found = GETTERS.get((owner, attribute.name))
    if found is not None:
        return found(task)
    if owner == "trig":
        trigger, field = _trigger_field(task, attribute.name)
        if trigger is not None and field:
            return getattr(trigger, field)
    key = (owner, attribute.name)
    if key in task.properties:
        return task.properties[key]
    if key in DEFAULTS:
        return DEFAULTS[key]
    if attribute.name.endswith("_exist"):
        return False
    if attribute.name.endswith(("_chans", "_output_term")):
        return ""
    raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property=attribute.name)


def put(
    system: System, owner: str, handle: int, name: str, attribute: Attribute, value: Any
) -> None:
    """Set a property.

    Raises
    ------
    DaqmxError
        The task runs, or does not exist, or there is no such property.
    """
    if owner == "scale":
        system.scales.change(name, attribute.name, value)
        return
    if owner == "watchdog":
        watchdog.put(system, system.task(handle), name, attribute.name, value)
        return
    if owner not in OWNERS_STORED:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=attribute.name)
    task = system.task(handle)
    live = owner in ("read", "write")
    if task.state == RUNNING and not live and attribute.name not in LIVE_CHANNEL:
        raise task.error(errors.PROPERTY_WHILE_RUNNING, Property=attribute.name)
    if owner == "chan":
        for channel in _channels(task, name):
            _put_channel(system, task, channel, attribute.name, value)
    elif owner == "timing":
        _put_timing(task, attribute.name, value)
    elif owner == "trig":
        if attribute.name.startswith(("pause_", "arm_start_", "handshake_")):
            raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property=attribute.name)
        trigger, field = _trigger_field(task, attribute.name)
        if trigger is not None and field:
            setattr(trigger, field, value)
    if owner != "chan":
        task.properties[owner, attribute.name] = value
    if not live and task.state != RUNNING:
        system.release(task, UNVERIFIED)


def reset(system: System, owner: str, handle: int, name: str, attribute: Attribute) -> None:
    """Back to the default."""
    if owner not in OWNERS_STORED:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=attribute.name)
    task = system.task(handle)
    if owner == "chan":
        for channel in _channels(task, name):
            channel.properties.pop(attribute.name, None)
        return
    task.properties.pop((owner, attribute.name), None)
    if owner == "timing" and attribute.name in TIMING_FIELDS:
        field = TIMING_FIELDS[attribute.name]
        setattr(task.timing, field, getattr(Timing(), field))
    if owner == "trig":
        trigger, field = _trigger_field(task, attribute.name)
        if trigger is not None and field:
            setattr(trigger, field, getattr(Trigger(), field))


LIVE_CHANNEL = (
    "co_pulse_freq", "co_pulse_duty_cyc", "co_pulse_high_time", "co_pulse_low_time",
    "co_pulse_high_ticks", "co_pulse_low_ticks",
)  # fmt: skip


def _channels(task: Task, name: str) -> list[Channel]:
    if not name:
        return list(task.channels)
    if any(c.name == name for c in task.channels):
        return [task.channel(name)]
    return [task.channel(n) for n in names.unflatten(name)]


def _channel(task: Task, name: str, attribute: Attribute) -> Any:
    channels = _channels(task, name)
    if not channels:
        raise task.error(errors.NO_CHANNELS)
    channel, key = channels[0], attribute.name
    if key == "physical_channel":
        return channel.physical
    if isinstance(channel, AnalogInput):
        if key == "ai_rng_high":
            return channel.range_
        if key == "ai_rng_low":
            return -channel.range_
        if key == "ai_dev_scaling_coeff":
            return [0.0, channel.lsb]
        if key == "ai_raw_samp_size":
            return 8 * device_properties.raw_bytes(task)
        if key == "ai_resolution":
            assert channel.card.model.ai is not None
            return float(channel.card.model.ai.bits)
        if key == "ai_custom_scale":
            return channel.properties.get("ai_custom_scale_name", "")
    computed = getattr(channel, "computed", {}).get(key)
    if computed is not None:
        return computed()
    if key in channel.properties:
        return channel.properties[key]
    if key == "description":
        return ""
    if key.partition("_")[0] in ("ai", "ao", "ci", "co", "di", "do"):
        if key.partition("_")[0] != channel.kind:
            raise task.error(errors.PROPERTY_NOT_IN_CONTEXT, Property=key, Channel_Name=name)
        if attribute.type == "bool":
            return False
    raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property=key, Channel_Name=channel.name)


def _put_channel(system: System, task: Task, channel: Channel, key: str, value: Any) -> None:
    prefix = key.partition("_")[0]
    if prefix in ("ai", "ao", "ci", "co", "di", "do") and prefix != channel.kind:
        raise task.error(errors.PROPERTY_NOT_IN_CONTEXT, Property=key, Channel_Name=channel.name)
    if key.startswith("ai_bridge_shunt_cal") and not has_shunt(channel):
        raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property=key, Channel_Name=channel.name)
    channel.properties[key] = value
    if key == "_name" or key == "name":
        channel.name = value
    if isinstance(channel, AnalogInput):
        if key == "ai_custom_scale":
            channel.properties["ai_custom_scale_name"] = value
            channel.custom = system.scales.get(value) if value else None
        channel.fit_range()
        channel.bridge_changed()
    changed = getattr(channel, "changed", None)
    if changed is not None:
        changed(key, system.now_s)


def has_shunt(channel: Channel) -> bool:
    """The channel's card can shunt its bridge."""
    ai = channel.card.model.ai
    return ai is not None and ai.shunt_Ohm > 0.0


def _put_timing(task: Task, key: str, value: Any) -> None:
    field = TIMING_FIELDS.get(key)
    if field is not None:
        setattr(task.timing, field, value)
        if field == "rate_Hz" and task.timing.on_demand:
            task.timing.type = SampleTimingType.SAMPLE_CLOCK.value


def _trigger_field(task: Task, key: str) -> tuple[Trigger | None, str]:
    for prefix, trigger in (("start_", task.start_trigger), ("ref_", task.reference_trigger),
                            ("reference_", task.reference_trigger)):  # fmt: skip
        if key.startswith(prefix):
            return trigger, TRIGGER_FIELDS.get(key.removeprefix(prefix), "")
    return None, ""


def _buffer_size(task: Task) -> int:
    if isinstance(task.run, InputRun):
        return task.run.buffer.capacity
    return int(task.properties.get(("buffer", "input_buf_size"), 0)) or (
        task.timing.samples if not task.timing.on_demand else 0
    )


def _available(task: Task) -> int:
    return task.run.ready if isinstance(task.run, InputRun) else 0


def _number_to_read(task: Task) -> int:
    finite = task.timing.mode == AcquisitionType.FINITE.value and not task.timing.on_demand
    if finite and not task.properties.get(("read", "read_all_avail_samp"), False):
        return task.timing.samples
    if task.timing.on_demand:
        return 1
    return _available(task)


def _overwrite(task: Task) -> int:
    default = OverwriteMode.DO_NOT_OVERWRITE_UNREAD_SAMPLES.value
    return int(task.properties.get(("read", "overwrite"), default))


def _booleans(task: Task) -> int:
    widths = [len(c.lines) for c in task.channels if isinstance(c, DigitalLines)]
    return max(widths, default=0)


def _highest_Hz(task: Task) -> float:
    return min(task.rates(card)[0] for card in task.cards)


def _total(task: Task) -> int:
    return task.run.total if task.run is not None else 0


def _clock_terminal(task: Task) -> str:
    return f"/{task.card.engines.name}/{task.kind}/SampleClock"


def _clock_source(task: Task) -> str:
    return task.timing.source or "OnboardClock"


def _convert_Hz(task: Task) -> float:
    n = len(task.channels)
    return min(_highest_Hz(task) * n, task.rate_Hz * n)


def _read_position(task: Task) -> int:
    return task.run.buffer.position if isinstance(task.run, InputRun) else 0


def _timing_getter(field: str) -> Getter:
    return lambda task: getattr(task.timing, field)


GETTERS: dict[tuple[str, str], Getter] = {
    ("task", "name"): lambda t: t.name,
    ("task", "channel_names"): lambda t: names.flatten(c.name for c in t.channels),
    ("task", "number_of_channels"): lambda t: len(t.channels),
    ("task", "devices"): lambda t: names.flatten(c.name for c in t.cards),
    ("task", "number_of_devices"): lambda t: len(t.cards),
    ("read", "channels_to_read"): lambda t: t.properties.get(
        ("read", "channels_to_read"), names.flatten(c.name for c in t.channels)
    ),
    ("read", "num_chans"): lambda t: len(t.channels),
    ("read", "avail_samp_per_chan"): _available,
    ("read", "total_samp_per_chan_acquired"): _total,
    ("read", "curr_read_pos"): _read_position,
    ("read", "di_num_booleans_per_chan"): _booleans,
    ("read", "overwrite"): _overwrite,
    ("read", "raw_data_width"): lambda t: device_properties.raw_bytes(t),
    ("read", "_calculate_num_samps_per_chan"): _number_to_read,
    ("write", "num_chans"): lambda t: len(t.channels),
    ("write", "do_num_booleans_per_chan"): _booleans,
    ("write", "raw_data_width"): lambda t: device_properties.raw_bytes(t),
    ("write", "total_samp_per_chan_generated"): _total,
    ("write", "space_avail"): lambda t: getattr(t.run, "space", 0),
    ("write", "curr_write_pos"): lambda t: getattr(t.run, "write_position", 0),
    ("buffer", "input_buf_size"): _buffer_size,
    ("buffer", "output_buf_size"): lambda t: device_properties.output_buffer(t),
    ("timing", "samp_clk_src"): _clock_source,
    ("timing", "samp_clk_rate"): lambda t: t.rate_Hz,
    ("timing", "samp_clk_max_rate"): _highest_Hz,
    ("timing", "samp_clk_term"): _clock_terminal,
    ("timing", "ai_conv_rate"): _convert_Hz,
    ("timing", "ai_conv_max_rate"): lambda t: _highest_Hz(t) * len(t.channels),
    ("trig", "start_term"): lambda t: f"/{t.card.engines.name}/{t.kind}/StartTrigger",
    ("trig", "reference_term"): lambda t: f"/{t.card.engines.name}/{t.kind}/ReferenceTrigger",
    **{
        ("timing", key): _timing_getter(field)
        for key, field in TIMING_FIELDS.items()
        if key not in ("samp_clk_src", "samp_clk_rate")
    },
}
