"""NI's functions for triggers beyond digital and analog edges."""

from __future__ import annotations

from collections.abc import Sequence

from nidaqmx.constants import TimestampEvent, TriggerType

from simdaq import errors
from simdaq.defaults import default
from simdaq.system import System
from simdaq.timing import Trigger
from simdaq.trigger_setup import set_trigger

# The property that enables each time stamp.
TIMESTAMPS = {
    TimestampEvent.START_TRIGGER.value: "start_timestamp_enable",
    TimestampEvent.REFERENCE_TRIGGER.value: "reference_timestamp_enable",
    TimestampEvent.ARM_START_TRIGGER.value: "arm_start_timestamp_enable",
    TimestampEvent.FIRST_SAMPLE.value: "first_samp_timestamp_enable",
}


def cfg_anlg_window_start_trig(
    system: System, *, task: int, trigger_source: str, trigger_when: int, window_top: float,
    window_bottom: float,
) -> None:  # fmt: skip
    """Start when an analog signal enters or leaves a window."""
    kind = TriggerType.ANALOG_WINDOW.value
    trigger = Trigger(kind, trigger_source, trigger_when, window_top, bottom=window_bottom)
    set_trigger(system, task, "start_trigger", trigger)


def cfg_anlg_window_ref_trig(
    system: System, *, task: int, trigger_source: str, trigger_when: int, window_top: float,
    window_bottom: float, pretrigger_samples: int,
) -> None:  # fmt: skip
    """Stop a number of samples after an analog signal enters or leaves a window."""
    kind = TriggerType.ANALOG_WINDOW.value
    trigger = Trigger(
        kind, trigger_source, trigger_when, window_top, int(pretrigger_samples),
        bottom=window_bottom,
    )  # fmt: skip
    set_trigger(system, task, "reference_trigger", trigger)


def cfg_dig_pattern_start_trig(
    system: System, *, task: int, trigger_source: str, trigger_pattern: str, trigger_when: int
) -> None:
    """Start when digital lines match a pattern, or no longer do."""
    kind = TriggerType.DIGITAL_PATTERN.value
    trigger = Trigger(kind, trigger_source, trigger_when, pattern=trigger_pattern)
    set_trigger(system, task, "start_trigger", trigger)


def cfg_dig_pattern_ref_trig(
    system: System, *, task: int, trigger_source: str, trigger_pattern: str, trigger_when: int,
    pretrigger_samples: int,
) -> None:  # fmt: skip
    """Stop a number of samples after digital lines match a pattern, or no longer do."""
    kind = TriggerType.DIGITAL_PATTERN.value
    trigger = Trigger(
        kind, trigger_source, trigger_when, pretrigger=int(pretrigger_samples),
        pattern=trigger_pattern,
    )  # fmt: skip
    set_trigger(system, task, "reference_trigger", trigger)


def cfg_anlg_multi_edge_start_trig(
    system: System, *, task: int, trigger_sources: str, trigger_slope_array: Sequence[int],
    trigger_level_array: Sequence[float],
) -> None:  # fmt: skip
    """Start at the first of several analog edges."""
    trigger = _multi_edge(trigger_sources, trigger_slope_array, trigger_level_array)
    set_trigger(system, task, "start_trigger", trigger)


def cfg_anlg_multi_edge_ref_trig(
    system: System, *, task: int, trigger_sources: str, trigger_slope_array: Sequence[int],
    trigger_level_array: Sequence[float], pretrigger_samples: int,
) -> None:  # fmt: skip
    """Stop a number of samples after the first of several analog edges."""
    trigger = _multi_edge(trigger_sources, trigger_slope_array, trigger_level_array)
    trigger.pretrigger = int(pretrigger_samples)
    set_trigger(system, task, "reference_trigger", trigger)


def _multi_edge(sources: str, slopes: Sequence[int], levels: Sequence[float]) -> Trigger:
    return Trigger(
        TriggerType.ANALOG_MULTI_EDGE.value, sources, slopes=[int(s) for s in slopes],
        levels=[float(v) for v in levels],
    )  # fmt: skip


def wait_for_valid_timestamp(
    system: System, *, task: int, timestamp_event: int, timeout: float
) -> tuple[int, int]:
    """When a trigger or the first sample came, waiting for it.

    Raises
    ------
    DaqmxError
        The time stamp is not enabled, or the event did not come in time.
    """
    owner = system.task(task)
    key = TIMESTAMPS.get(timestamp_event, "")
    place = "timing" if key.startswith("first") else "trig"
    if not owner.properties.get((place, key), default(place, key)[1]):
        raise owner.error(errors.NO_TIMESTAMP)

    def at_s() -> float | None:
        waits = owner.reference_trigger.present
        if timestamp_event == TimestampEvent.REFERENCE_TRIGGER.value and waits:
            return owner.reference_trigger.at_s
        return owner.started_s

    if not system.wait(lambda: at_s() is not None, lambda: None, timeout):
        raise owner.error(errors.WAIT_TIMED_OUT, Timeout_s=timeout)
    return system.since_1904(float(at_s() or 0.0))


def cfg_time_start_trig(
    system: System, *, task: int, when: tuple[int, int], timescale: int
) -> None:
    """Start at a time of day; devices without a clock of their own refuse it."""
    owner = system.task(task)
    if not owner.card.engines.model.time_aware:
        raise owner.error(errors.PROPERTY_NOT_SUPPORTED, Property="Start.TrigType")
    owner.properties["trig", "start_time_when"] = when
    owner.properties["trig", "start_time_timescale"] = timescale
    set_trigger(system, task, "start_trigger", Trigger(TriggerType.TIME.value))
