"""Functions that make, start, time and trigger tasks, and custom scales."""

from __future__ import annotations

from nidaqmx.constants import SampleTimingType, Signal, TaskMode, TriggerType

from simdaq import errors, names, power_up, routes, rules
from simdaq.acquisition import InputRun
from simdaq.errors import DaqmxError
from simdaq.inputs import wait_until_done
from simdaq.system import System
from simdaq.task import COMMITTED, RESERVED, RUNNING, UNVERIFIED, VERIFIED
from simdaq.timing import Timing, Trigger
from simdaq.trigger_setup import set_trigger

# The property that keeps where a signal goes.
EXPORTED = {
    Signal.SAMPLE_CLOCK.value: "samp_clk_output_term",
    Signal.START_TRIGGER.value: "start_trig_output_term",
    Signal.REFERENCE_TRIGGER.value: "ref_trig_output_term",
    Signal.AI_CONVERT_CLOCK.value: "ai_conv_clk_output_term",
    Signal.TEN_MHZ_REF_CLOCK.value: "exported_10_mhz_ref_clk_output_term",
    Signal.TWENTY_MHZ_TIMEBASE_CLOCK.value: "exported_20_mhz_timebase_output_term",
    Signal.ADVANCE_TRIGGER.value: "adv_trig_output_term",
    Signal.COUNTER_OUTPUT_EVENT.value: "ctr_out_event_output_term",
    Signal.CHANGE_DETECTION_EVENT.value: "change_detect_event_output_term",
    Signal.WATCHDOG_TIMER_EXPIRED_EVENT.value: "watchdog_expired_event_output_term",
    Signal.AI_HOLD_CMPLT_EVENT.value: "ai_hold_cmplt_event_output_term",
}


def set_runtime_environment(system: System, **_: str) -> None:
    """Take the language of the program; nothing depends on it."""
    del system


def create_task(system: System, *, session_name: str) -> int:
    """A new, empty task."""
    return system.create(session_name).handle


def clear_task(system: System, *, task: int) -> None:
    """Stop a task and delete it."""
    system.clear(system.task(task))


def start_task(system: System, *, task: int) -> None:
    """Start."""
    system.start(system.task(task))


def stop_task(system: System, *, task: int) -> None:
    """Stop; a finite task that is not done yet answers with NI's warning."""
    owner = system.task(task)
    early = owner.state == RUNNING and not owner.done and owner.timing.finite
    system.stop(owner)
    if early and not owner.timing.on_demand:
        raise owner.error(errors.STOPPED_BEFORE_DONE)


def task_control(system: System, *, task: int, action: int) -> None:
    """Move a task through its states."""
    owner = system.task(task)
    if action == TaskMode.TASK_START.value:
        system.start(owner)
    elif action == TaskMode.TASK_STOP.value:
        system.stop(owner)
    elif action == TaskMode.TASK_VERIFY.value:
        rules.verify(owner)
    elif action == TaskMode.TASK_RESERVE.value:
        system.reserve(owner)
        owner.asked_state = max(owner.asked_state, RESERVED)
    elif action == TaskMode.TASK_COMMIT.value:
        system.commit(owner)
        owner.asked_state = COMMITTED
    elif action == TaskMode.TASK_UNRESERVE.value:
        if owner.state == RUNNING:
            raise owner.error(errors.RUNNING)
        system.release(owner, VERIFIED)
    elif action == TaskMode.TASK_ABORT.value:
        system.stop(owner)
        system.release(owner, VERIFIED)
    else:
        raise owner.error(errors.BAD_VALUE, Property="Task.Action", Requested_Value=action)


def is_task_done(system: System, *, task: int) -> bool:
    """Whether a task is done; raises the error that stopped it, if there is one."""
    owner = system.task(task)
    if owner.pending is not None:
        raise owner.pending
    return owner.done


def wait_until_task_done(system: System, *, task: int, time_to_wait: float) -> None:
    """Wait."""
    wait_until_done(system, system.task(task), time_to_wait)


def configure_logging(
    system: System, *, task: int, file_path: str, logging_mode: int, group_name: str,
    operation: int,
) -> None:  # fmt: skip
    """Log what the task acquires to a TDMS file."""
    owner = system.task(task)
    if owner.state == RUNNING:
        raise owner.error(errors.PROPERTY_WHILE_RUNNING, Property="Logging.Mode")
    owner.properties["read", "logging_file_path"] = file_path
    owner.properties["read", "logging_mode"] = logging_mode
    owner.properties["read", "logging_tdms_group_name"] = group_name
    owner.properties["read", "logging_tdms_operation"] = operation


def start_new_file(system: System, *, task: int, file_path: str) -> None:
    """Log to another file from the next sample on."""
    owner = system.task(task)
    if isinstance(owner.run, InputRun) and owner.state == RUNNING and owner.run.logs:
        owner.run.new_file(file_path)
    owner.properties["read", "logging_file_path"] = file_path


def retime(system: System, task: int, timing: Timing) -> None:
    """Time a task anew."""
    owner = system.task(task)
    if owner.state == RUNNING:
        raise owner.error(errors.PROPERTY_WHILE_RUNNING, Property="SampTimingType")
    if not owner.channels:
        raise owner.error(errors.NO_CHANNELS)
    system.release(owner, UNVERIFIED)
    owner.timing = timing


def cfg_samp_clk_timing(
    system: System, *, task: int, source: str, rate: float, active_edge: int, sample_mode: int,
    samps_per_chan: int,
) -> None:  # fmt: skip
    """By a sample clock."""
    retime(
        system, task,
        Timing(SampleTimingType.SAMPLE_CLOCK.value, rate, source, active_edge, sample_mode,
               int(samps_per_chan)),
    )  # fmt: skip


def cfg_implicit_timing(
    system: System, *, task: int, sample_mode: int, samps_per_chan: int
) -> None:
    """By the signal itself: every period is a sample."""
    retime(
        system, task,
        Timing(SampleTimingType.IMPLICIT.value, mode=sample_mode, samples=int(samps_per_chan)),
    )  # fmt: skip


def cfg_change_detection_timing(
    system: System, *, task: int, rising_edge_chan: str, falling_edge_chan: str,
    sample_mode: int, samps_per_chan: int,
) -> None:  # fmt: skip
    """By changes of digital lines."""
    owner = system.task(task)
    retime(
        system, task,
        Timing(SampleTimingType.CHANGE_DETECTION.value, mode=sample_mode,
               samples=int(samps_per_chan)),
    )  # fmt: skip
    for key, lines in (("rising", rising_edge_chan), ("falling", falling_edge_chan)):
        listed = names.flatten(names.unflatten(lines))
        owner.properties["timing", f"change_detect_di_{key}_edge_physical_chans"] = listed


def cfg_dig_edge_start_trig(
    system: System, *, task: int, trigger_source: str, trigger_edge: int
) -> None:
    """Start at an edge of a terminal."""
    kind = TriggerType.DIGITAL_EDGE.value
    set_trigger(system, task, "start_trigger", Trigger(kind, trigger_source, trigger_edge))


def cfg_anlg_edge_start_trig(
    system: System, *, task: int, trigger_source: str, trigger_slope: int, trigger_level: float
) -> None:
    """Start where an analogue channel crosses a level."""
    kind = TriggerType.ANALOG_EDGE.value
    trigger = Trigger(kind, trigger_source, trigger_slope, trigger_level)
    set_trigger(system, task, "start_trigger", trigger)


def disable_start_trig(system: System, *, task: int) -> None:
    """Start at once."""
    set_trigger(system, task, "start_trigger", Trigger())


def cfg_dig_edge_ref_trig(
    system: System, *, task: int, trigger_source: str, trigger_edge: int, pretrigger_samples: int
) -> None:
    """Stop a set number of samples after an edge of a terminal."""
    kind = TriggerType.DIGITAL_EDGE.value
    trigger = Trigger(kind, trigger_source, trigger_edge, pretrigger=int(pretrigger_samples))
    set_trigger(system, task, "reference_trigger", trigger)


def cfg_anlg_edge_ref_trig(
    system: System, *, task: int, trigger_source: str, trigger_slope: int, trigger_level: float,
    pretrigger_samples: int,
) -> None:  # fmt: skip
    """Stop a set number of samples after an analogue channel crosses a level."""
    kind = TriggerType.ANALOG_EDGE.value
    trigger = Trigger(kind, trigger_source, trigger_slope, trigger_level, int(pretrigger_samples))
    set_trigger(system, task, "reference_trigger", trigger)


def disable_ref_trig(system: System, *, task: int) -> None:
    """No reference trigger."""
    set_trigger(system, task, "reference_trigger", Trigger())


def export_signal(system: System, *, task: int, signal_id: int, output_terminal: str) -> None:
    """Export a signal of a task to a terminal; nothing outside reads it."""
    owner = system.task(task)
    key = EXPORTED.get(signal_id)
    if key is None:
        raise owner.error(errors.BAD_VALUE, Property="Signal", Requested_Value=signal_id)
    owner.properties["exported_signal", key] = owner.destination(output_terminal)
    routes.export(owner)


def connect_terms(
    system: System, *, source_terminal: str, destination_terminal: str, signal_modifiers: int
) -> None:
    """Check the names of two terminals; nothing is connected."""
    del signal_modifiers
    for terminal in (source_terminal, destination_terminal):
        device = terminal.lstrip("/").partition("/")[0]
        if device not in system.cards:
            raise DaqmxError(errors.UNKNOWN_DEVICE_IN_TERMINAL, Source_Terminal=terminal)


def disconnect_terms(system: System, *, source_terminal: str, destination_terminal: str) -> None:
    """Undo it."""
    connect_terms(
        system, source_terminal=source_terminal, destination_terminal=destination_terminal,
        signal_modifiers=0,
    )  # fmt: skip


def reset_device(system: System, *, device_name: str) -> None:
    """Abort all tasks of a device, and of its modules; set its outputs to their power-up states."""
    card = system.card(device_name)
    card.must_be_there()
    reset = card.family if card.is_chassis else [card]
    for task in list(system.tasks.values()):
        if any(c in reset for c in task.cards):
            system.stop(task)
            system.release(task, UNVERIFIED)
    for one in reset:
        one.expired = False
        powered = [key.partition(" ")[2] for key in one.stored if key.startswith("power_up ")]
        for short in {*one.outputs, *powered}:
            one.output(short).put(system.now_s, power_up.level_after_reset(one, short))


def self_test_device(system: System, *, device_name: str) -> None:
    """A plugged-in card passes."""
    system.card(device_name).must_be_there()
