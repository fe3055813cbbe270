"""Configuring the triggers of a task."""

from __future__ import annotations

from simdaq import errors
from simdaq.system import System
from simdaq.task import RUNNING, VERIFIED
from simdaq.timing import Trigger


def set_trigger(system: System, task: int, name: str, trigger: Trigger) -> None:
    """Give a task its `start_trigger` or `reference_trigger`.

    Raises
    ------
    DaqmxError
        The task runs.
    """
    owner = system.task(task)
    if owner.state == RUNNING:
        raise owner.error(errors.PROPERTY_WHILE_RUNNING, Property="Trigger")
    if trigger.source:
        trigger.source = owner.qualified(trigger.source)
    setattr(owner, name, trigger)
    system.release(owner, VERIFIED)
