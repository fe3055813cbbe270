"""Functions that null and check bridges."""

from __future__ import annotations

import numpy as np

from simdaq import errors, names
from simdaq.channels import AnalogInput
from simdaq.errors import DaqmxError
from simdaq.system import System
from simdaq.task import RUNNING, Task

AVERAGED = 1000


def _bridges(task: Task, channel: str) -> list[AnalogInput]:
    if task.state == RUNNING:
        raise task.error(errors.RUNNING)
    wanted = names.unflatten(channel)
    bridges = [
        c
        for c in task.channels
        if isinstance(c, AnalogInput)
        and (not wanted or c.name in wanted)
        and "ai_bridge_nom_resistance" in c.properties
    ]
    if not bridges:
        raise task.error(errors.PROPERTY_NOT_IN_CONTEXT, Channel_Name=channel)
    return bridges


def _ratio(system: System, channel: AnalogInput) -> float:
    """V/V that the converter sees now, averaged."""
    now = np.full(AVERAGED, system.now_s)
    return float(np.mean(channel.sample(now)) * channel.lsb)


def perform_bridge_offset_nulling_cal_ex(
    system: System, *, task: int, channel: str, skip_unsupported_channels: bool
) -> None:
    """Take the bridges' present values as zero."""
    del skip_unsupported_channels
    owner = system.task(task)
    for bridge in _bridges(owner, channel):
        bridge.properties["ai_bridge_initial_ratio"] = _ratio(system, bridge)


def perform_bridge_shunt_cal_ex(
    system: System, *, task: int, channel: str, shunt_resistor_value: float,
    shunt_resistor_location: int, shunt_resistor_select: int, shunt_resistor_source: int,
    bridge_resistance: float, skip_unsupported_channels: bool,
) -> None:  # fmt: skip
    """Adjust the gains to the reading that a shunt should give."""
    del shunt_resistor_location, shunt_resistor_select, shunt_resistor_source
    del skip_unsupported_channels
    owner = system.task(task)
    for bridge in _bridges(owner, channel):
        ai = bridge.card.model.ai
        assert ai is not None
        if not ai.shunt_Ohm:
            raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Channel_Name=bridge.name)
        open_ratio = _ratio(system, bridge)
        bridge.properties["ai_bridge_shunt_cal_enable"] = True
        bridge.bridge_changed()
        measured = _ratio(system, bridge) - open_ratio
        bridge.properties["ai_bridge_shunt_cal_enable"] = False
        bridge.bridge_changed()
        expected = bridge_resistance / (4.0 * shunt_resistor_value + 2.0 * bridge_resistance)
        bridge.properties["ai_bridge_shunt_cal_gain_adjust"] = expected / measured


def perform_strain_shunt_cal_ex(
    system: System, *, task: int, channel: str, shunt_resistor_value: float,
    shunt_resistor_location: int, shunt_resistor_select: int, shunt_resistor_source: int,
    skip_unsupported_channels: bool,
) -> None:  # fmt: skip
    """Adjust the gains of strain gauges; a simulated gauge shows what the shunt ought to."""
    del shunt_resistor_value, shunt_resistor_location, shunt_resistor_select
    del shunt_resistor_source
    owner = system.task(task)
    for bridge in _bridges(owner, channel):
        ai = bridge.card.model.ai
        assert ai is not None
        if ai.shunt_Ohm:
            bridge.properties["ai_bridge_shunt_cal_gain_adjust"] = 1.0
        elif not skip_unsupported_channels:
            raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Channel_Name=bridge.name)


def perform_thrmcpl_lead_offset_nulling_cal(
    system: System, *, task: int, channel: str, skip_unsupported_channels: bool
) -> None:
    """Measure the offset of thermocouple leads; simulated leads have none.

    Raises
    ------
    DaqmxError
        A channel is no thermocouple, unless those are to be skipped.
    """
    owner = system.task(task)
    if owner.state == RUNNING:
        raise owner.error(errors.RUNNING)
    if not owner.channels:
        raise owner.error(errors.NO_CHANNELS)
    for name in names.unflatten(channel) or [c.name for c in owner.channels]:
        thermocouple = owner.channel(name)
        if "ai_thrmcpl_type" in thermocouple.properties:
            thermocouple.properties["ai_thrmcpl_lead_offset_voltage"] = 0.0
        elif not skip_unsupported_channels:
            raise owner.error(errors.PROPERTY_NOT_IN_CONTEXT, Channel_Name=name)
