"""Getting and setting properties of tasks, channels, timing, triggers and buffers.

What is not stored here or computed is answered as a property that the device does not support.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from nidaqmx.constants import (
    AcquisitionType,
    OverwriteMode,
    SampleTimingType,
    ScaleType,
)

from simdaq import channel_properties, device_properties, errors, names, routes, watchdog
from simdaq.acquisition import InputRun, buffer_size
from simdaq.channels import DigitalLines
from simdaq.defaults import default
from simdaq.errors import DaqmxError
from simdaq.package_api import Attribute
from simdaq.scales import CustomScale
from simdaq.system import System
from simdaq.task import RUNNING, UNVERIFIED, SLOW_TIMEBASE_Hz, Task
from simdaq.timing import Timing, Trigger

Getter = Callable[[Task], Any]

# Timing of pattern cards, whose clock source is a name on the connector.
AS_GIVEN = (SampleTimingType.PIPELINED_SAMPLE_CLOCK.value, SampleTimingType.BURST_HANDSHAKE.value)
LEAST_PRETRIGGER = 2  # samples; NI-DAQmx Help, "Ref.PretrigSamples"
LARGEST_BUFFER = 2**32 - 1
# A reset returns the number of samples and the mode to those of a task that was never timed.
RESET_TIMING = Timing(mode=AcquisitionType.CONTINUOUS.value)
SCALE_KINDS = {
    "lin": ScaleType.LINEAR, "map": ScaleType.MAP_RANGES, "poly": ScaleType.POLYNOMIAL,
    "table": ScaleType.TABLE,
}  # fmt: skip
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
    "anlg_win_src": "source",
    "anlg_win_trig_when": "edge",
    "anlg_win_top": "level",
    "anlg_win_btm": "bottom",
    "dig_pattern_src": "source",
    "dig_pattern_pattern": "pattern",
    "dig_pattern_trig_when": "edge",
    "anlg_multi_edge_srcs": "source",
    "anlg_multi_edge_slopes": "slopes",
    "anlg_multi_edge_lvls": "levels",
    "pretrig_samples": "pretrigger",
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
        return _scale(system.scale(name), attribute)
    task = system.task(handle)
    if owner == "watchdog":
        return watchdog.get(task, name, attribute.name)
    if owner == "chan":
        return channel_properties.get(system, task, name, attribute)
    _applies(task, owner, attribute.name)
    getter = GETTERS.get((owner, attribute.name))
    if getter is not None:
        return getter(task)
    if owner == "timing" and attribute.name == "first_samp_timestamp_val":
        if task.started_s is None:
            raise task.error(errors.NO_TIMESTAMP, Property=attribute.name)
        return system.since_1904(task.started_s)
    if owner == "trig":
        trigger, field = _trigger_field(task, attribute.name)
        if trigger is not None and field:
            unset = field == "pretrigger" and not trigger.pretrigger and not trigger.present
            return LEAST_PRETRIGGER if unset else getattr(trigger, field)
    key = (owner, attribute.name)
    if key in task.properties:
        return task.properties[key]
    known, value = default(owner, attribute.name)
    if known:
        return value
    raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property=attribute.name)


def _scale(scale: CustomScale, attribute: Attribute) -> Any:
    if attribute.name == "scale_type":
        return scale.kind.value
    kind = attribute.name.partition("_")[0]
    if kind in SCALE_KINDS and SCALE_KINDS[kind] != scale.kind:
        raise DaqmxError(errors.OTHER_SCALE_TYPE, Property=attribute.name, Scale=scale.name)
    return scale.properties.get(attribute.name, "" if attribute.type == "string" else 0)


def _applies(task: Task, owner: str, key: str) -> None:
    """Raise DaqmxError where a property means nothing for this kind of task."""
    other = {"input": False, "output": True}.get(key.partition("_")[0])
    if owner == "buffer" and task.channels and other is not None and other == task.is_input:
        raise task.error(errors.PROPERTY_NOT_IN_CONTEXT, Property=key)
    if owner != "trig" or task.kind != "co":
        return
    if key.startswith(("reference_", "handshake_")):
        raise task.error(errors.PROPERTY_NOT_IN_CONTEXT, Property=key)


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
    if owner in ("cal_info", "physical_chan"):
        device_properties.put(system, owner, name, attribute.name, value)
        return
    if owner not in OWNERS_STORED:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=attribute.name)
    task = system.task(handle)
    live = owner in ("read", "write")
    if task.state == RUNNING and not live and attribute.name not in LIVE_CHANNEL:
        raise task.error(errors.PROPERTY_WHILE_RUNNING, Property=attribute.name)
    _applies(task, owner, attribute.name)
    if attribute.name.endswith(("_src", "_output_term")) and isinstance(value, str):
        value = _routed(task, owner, attribute.name, value)
    if owner == "chan":
        for channel in channel_properties.named(task, name):
            channel_properties.put(system, task, channel, attribute.name, value)
    elif owner == "timing":
        _put_timing(task, attribute.name, value)
    elif owner == "trig":
        trigger, field = _trigger_field(task, attribute.name)
        if trigger is not None and field:
            setattr(trigger, field, value)
    if owner != "chan":
        task.properties[owner, attribute.name] = value
    if owner == "exported_signal":
        routes.export(task)
    if not live and task.state != RUNNING:
        system.release(task, UNVERIFIED)


def _routed(task: Task, owner: str, key: str, terminal: str) -> str:
    """A terminal with its device.

    Raises
    ------
    DaqmxError
        A signal cannot be exported to it.
    """
    if owner == "exported_signal":
        return names.flatten(task.qualified(one) for one in names.unflatten(terminal))
    if "dig_fltr" in key or owner == "chan":
        return terminal
    return task.qualified(terminal)


def reset(system: System, owner: str, handle: int, name: str, attribute: Attribute) -> None:
    """Return a property to its default."""
    task = system.task(handle)
    if owner == "watchdog":
        watchdog.reset(task, attribute.name)
        return
    if owner not in OWNERS_STORED:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=attribute.name)
    if owner == "chan":
        for channel in channel_properties.named(task, name):
            channel_properties.reset(system, task, channel, attribute.name)
        return
    task.properties.pop((owner, attribute.name), None)
    if owner == "timing" and attribute.name in TIMING_FIELDS:
        field = TIMING_FIELDS[attribute.name]
        setattr(task.timing, field, getattr(RESET_TIMING, field))
    if owner == "timing" and attribute.name == "samp_clk_timebase_div":
        task.timing.rate_Hz = task.timing.rate_asked_Hz or task.timing.rate_Hz
    if owner == "trig":
        trigger, field = _trigger_field(task, attribute.name)
        if trigger is not None and field:
            setattr(trigger, field, getattr(Trigger(), field))
    system.release(task, UNVERIFIED)


LIVE_CHANNEL = (
    "co_pulse_freq", "co_pulse_duty_cyc", "co_pulse_high_time", "co_pulse_low_time",
    "co_pulse_high_ticks", "co_pulse_low_ticks", "pwr_voltage_setpoint", "pwr_current_setpoint",
    "pwr_output_enable",
)  # fmt: skip


def _put_timing(task: Task, key: str, value: Any) -> None:
    timing = task.timing
    if key == "samp_quant_samp_per_chan" and not 1 <= value <= LARGEST_BUFFER:
        raise task.error(
            errors.BAD_VALUE, Property=key, Requested_Value=value, Maximum_Value=LARGEST_BUFFER,
            Minimum_Value=1,
        )  # fmt: skip
    if key == "samp_clk_timebase_div":
        timing.rate_asked_Hz = timing.rate_Hz
        timing.rate_Hz = task.timebase_Hz / value
    field = TIMING_FIELDS.get(key)
    if field is not None:
        setattr(timing, field, value)
        if field == "rate_Hz" and timing.on_demand:
            timing.type = SampleTimingType.SAMPLE_CLOCK.value


def _trigger_field(task: Task, key: str) -> tuple[Trigger | None, str]:
    for prefix, trigger in (("start_", task.start_trigger), ("ref_", task.reference_trigger),
                            ("reference_", task.reference_trigger)):  # fmt: skip
        if key.startswith(prefix):
            return trigger, TRIGGER_FIELDS.get(key.removeprefix(prefix), "")
    return None, ""


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


def _samples(task: Task) -> int:
    """Samples a channel; asking for a number that the clock cannot have verifies the task."""
    if not task.timing.on_demand:
        task.verify_samples()
    return task.timing.samples


def _highest_Hz(task: Task) -> float:
    return min(task.rates(card)[0] for card in task.cards)


def _total(task: Task) -> int:
    return task.run.total if task.run is not None else 0


def _clock_terminal(task: Task) -> str:
    return f"/{task.card.engines.name}/{task.kind}/SampleClock"


def _clock_source(task: Task) -> str:
    """Where the sample clock comes from: the timebase where the card makes it."""
    source = task.timing.source
    if not task.channels:
        return source or "OnboardClock"
    if task.timing.type in AS_GIVEN:
        return source
    if source in ("", "OnboardClock"):
        return f"/{task.card.engines.name}/{task.kind}/SampleClockTimebase"
    terminal = task.qualified(source)
    routes.must_exist(task, terminal)
    return terminal


def _convert_Hz(task: Task) -> float:
    """Rate of a multiplexed converter: as slow as its channels allow, with time to settle.

    Source: NI "X Series User Manual", "AI Convert Clock Signal": with 10 us added to the fastest
    interval where the sample rate allows it.
    """
    rate_Hz = task.properties.get(("timing", "ai_conv_rate"))
    if rate_Hz is not None:
        return float(rate_Hz)
    highest_Hz = _converter_Hz(task)
    if task.timing.on_demand:
        return task.timebase_Hz / float(np.ceil(task.timebase_Hz * (1.0 / highest_Hz + 10e-6)))
    padded_Hz = 1.0 / (1.0 / highest_Hz + 10e-6)
    return max(padded_Hz, min(task.rate_Hz * len(task.channels), highest_Hz))


def _converter_Hz(task: Task) -> float:
    ai = task.card.model.ai
    if ai is None or ai.simultaneous:
        raise task.error(errors.PROPERTY_NOT_SUPPORTED, Property="AIConv")
    return ai.max_multi_Hz if len(task.channels) > 1 else ai.max_single_Hz


def _master_Hz(task: Task) -> float:
    return task.card.engines.model.timebase_Hz


def _convert_divisor(task: Task) -> int:
    divisor = task.properties.get(("timing", "ai_conv_timebase_div"))
    return int(divisor) if divisor is not None else round(_master_Hz(task) / _convert_Hz(task))


def _clock_divisor(task: Task) -> int:
    return round(task.timebase_Hz / task.rate_Hz)


def _timebase_name(task: Task, timebase_Hz: float) -> str:
    slow = timebase_Hz <= SLOW_TIMEBASE_Hz
    name = "100kHzTimebase" if slow else f"{timebase_Hz / 1e6:.0f}MHzTimebase"
    return f"/{task.card.engines.name}/{name}"


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
    ("buffer", "input_buf_size"): buffer_size,
    ("buffer", "output_buf_size"): lambda t: device_properties.output_buffer(t),
    ("timing", "samp_clk_src"): _clock_source,
    ("timing", "samp_clk_rate"): lambda t: t.rate_Hz,
    ("timing", "samp_clk_max_rate"): _highest_Hz,
    ("timing", "samp_clk_term"): _clock_terminal,
    ("timing", "ai_conv_rate"): _convert_Hz,
    ("timing", "ai_conv_max_rate"): _converter_Hz,
    ("timing", "ai_conv_timebase_div"): _convert_divisor,
    ("timing", "samp_clk_timebase_div"): _clock_divisor,
    ("timing", "samp_clk_timebase_rate"): lambda t: t.timebase_Hz,
    ("timing", "samp_clk_timebase_src"): lambda t: _timebase_name(t, t.timebase_Hz),
    ("timing", "master_timebase_rate"): _master_Hz,
    ("timing", "master_timebase_src"): lambda t: _timebase_name(t, _master_Hz(t)),
    ("trig", "start_term"): lambda t: f"/{t.card.engines.name}/{t.kind}/StartTrigger",
    ("trig", "reference_term"): lambda t: f"/{t.card.engines.name}/{t.kind}/ReferenceTrigger",
    **{
        ("timing", key): _timing_getter(field)
        for key, field in TIMING_FIELDS.items()
        if key not in ("samp_clk_src", "samp_clk_rate", "samp_quant_samp_per_chan")
    },
    ("timing", "samp_quant_samp_per_chan"): _samples,
}
