"""Functions that make watchdog tasks and reset their timers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from nidaqmx.constants import WDTTaskAction

from simdaq import errors, watchdog
from simdaq.errors import DaqmxError
from simdaq.system import System
from simdaq.task import RUNNING

VOLTAGE = 10322


def create_watchdog_timer_task_ex(
    system: System, *, device_name: str, session_name: str, timeout: float
) -> int:
    """A watchdog on a device, not yet armed; modules have none, their chassis may have one.

    The error's number is NI's (`DAQmxErrors.WATCHDOG_TIMER_NOT_SUPPORTED`); that it comes at this
    call, and for a module, is this project's reading of NI's examples, which name the chassis.
    """
    card = system.card(device_name)
    model = card.model
    if not model.watchdog:
        raise DaqmxError(errors.NO_WATCHDOG, Device=device_name)
    if timeout > model.watchdog_max_s or timeout == 0.0:
        raise DaqmxError(
            errors.BAD_VALUE, Property="Watchdog.Timeout", Requested_Value=timeout,
            Maximum_Value=model.watchdog_max_s, Device=device_name,
        )  # fmt: skip
    task = system.create(session_name)
    task.kind = "watchdog"
    task.device = card
    task.properties["watchdog", "timeout"] = timeout
    return task.handle


def cfg_watchdog_do_expir_states(
    system: System, *, task: int, channel_names: str, expir_state_array: Sequence[int]
) -> None:
    """Safe levels of lines."""
    levels = [int(v) for v in expir_state_array]
    watchdog.configure(system, task, "do", channel_names, levels)


def cfg_watchdog_co_expir_states(
    system: System, *, task: int, channel_names: str, expir_state_array: Sequence[int]
) -> None:
    """Safe levels of counters."""
    levels = [int(v) for v in expir_state_array]
    watchdog.configure(system, task, "co", channel_names, levels)


def cfg_watchdog_ao_expir_states(
    system: System, *, task: int, channel_names: str, expir_state_array: Sequence[float],
    output_type_array: Sequence[int],
) -> None:  # fmt: skip
    """Safe voltages; an output type of «no change» leaves an output as it is."""
    voltages = [
        float(v) if int(what) == VOLTAGE else None
        for v, what in zip(np.ravel(expir_state_array), np.ravel(output_type_array), strict=False)
    ]
    watchdog.configure(system, task, "ao", channel_names, voltages)


def control_watchdog_task(system: System, *, task: int, action: int) -> None:
    """Reset the timer, or end an expiration."""
    owner = system.task(task)
    run = owner.run
    if owner.state != RUNNING or not isinstance(run, watchdog.WatchdogRun):
        raise owner.error(errors.NOT_RUNNING)
    assert owner.device is not None
    owner.device.must_work()
    if action == WDTTaskAction.RESET_TIMER.value:
        if run.expired:
            raise owner.error(errors.WATCHDOG_EXPIRED)
        run.reset()
        return
    run.expired = False
    run.reset()
