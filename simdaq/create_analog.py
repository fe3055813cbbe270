"""The DAQmxCreateAI... and DAQmxCreateAO... functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nidaqmx.constants import (
    BridgeUnits,
    ChannelType,
    ScaleType,
    TerminalConfiguration,
    UsageTypeAI,
)

from simdaq import errors, names, scales, sensors
from simdaq.channels import AnalogInput, Channel
from simdaq.errors import DaqmxError
from simdaq.sensors import SENSORS, Sensor
from simdaq.system import System

FROM_CUSTOM_SCALE = 10065
TWO_POINTS, TABLE, POLYNOMIAL = ScaleType.TWO_POINT_LINEAR, ScaleType.TABLE, ScaleType.POLYNOMIAL
BRIDGE_KINDS = {
    "force": UsageTypeAI.FORCE_BRIDGE,
    "pressure": UsageTypeAI.PRESSURE_BRIDGE,
    "torque": UsageTypeAI.TORQUE_BRIDGE,
}


def _add_inputs(
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
                errors.WRONG_CHANNEL_TYPE, "The card cannot measure this.",
                Physical_Channel_Name=physical, Measurement_Type=usage.name,
            )  # fmt: skip
        found = dict(properties)
        found["ai_meas_type"] = usage.value
        found["chan_type"] = ChannelType.ANALOG_INPUT.value
        custom = None
        if found.get("ai_custom_scale_name"):
            custom = system.scale(found["ai_custom_scale_name"])
        ways = [c.value for c in card.terminal_configurations(short)]
        configuration = found.get("ai_term_cfg", TerminalConfiguration.DEFAULT.value)
        if configuration == TerminalConfiguration.DEFAULT.value:
            found["ai_term_cfg"] = ways[0]
        elif configuration not in ways and not short.startswith("_"):
            raise DaqmxError(
                errors.BAD_VALUE, Property="AI.TermCfg", Requested_Value=configuration,
                Channel_Name=physical,
            )  # fmt: skip
        created.append(
            AnalogInput(
                label, physical, "ai", card, short, found,
                curve=curve, from_fed=from_fed, custom=custom, physical_signal=physical_signal,
            )
        )  # fmt: skip
    system.add_channels(owner, created)


def create_ai_voltage_chan(
    system: System, *, task: int, physical_channel: str, name_to_assign_to_channel: str,
    terminal_config: int, min_val: float, max_val: float, units: int, custom_scale_name: str,
    **_: Any,
) -> None:  # fmt: skip
    """Volts."""
    _add_inputs(
        system, task, physical_channel, name_to_assign_to_channel, UsageTypeAI.VOLTAGE,
        {"ai_min": min_val, "ai_max": max_val, "ai_term_cfg": terminal_config,
         "ai_voltage_units": units,
         "ai_custom_scale_name": custom_scale_name if units == FROM_CUSTOM_SCALE else ""},
    )  # fmt: skip


def create_ai_voltage_chan_with_excit(system: System, **k: Any) -> None:
    """Volts of a sensor that needs excitation; where the excitation is part of the scaling, V/V."""
    properties = sensors.properties(Sensor(UsageTypeAI.VOLTAGE_CUSTOM_WITH_EXCITATION), k)
    properties["ai_voltage_units"] = k["units"]
    custom = k["custom_scale_name"] if k["units"] == FROM_CUSTOM_SCALE else ""
    properties["ai_custom_scale_name"] = custom
    _add_inputs(
        system, k["task"], k["physical_channel"], k["name_to_assign_to_channel"],
        UsageTypeAI.VOLTAGE_CUSTOM_WITH_EXCITATION, properties,
    )  # fmt: skip


def create_ai_bridge_chan(
    system: System, *, task: int, physical_channel: str, name_to_assign_to_channel: str,
    min_val: float, max_val: float, units: int, bridge_config: int, voltage_excit_source: int,
    voltage_excit_val: float, nominal_bridge_resistance: float, custom_scale_name: str,
) -> None:  # fmt: skip
    """A bare bridge: V/V or mV/V."""
    milli = units == BridgeUnits.MILLIVOLTS_PER_VOLT.value
    _add_inputs(
        system, task, physical_channel, name_to_assign_to_channel, UsageTypeAI.BRIDGE,
        {"ai_min": min_val, "ai_max": max_val, "ai_bridge_units": units,
         "ai_bridge_cfg": bridge_config, "ai_excit_src": voltage_excit_source,
         "ai_excit_val": voltage_excit_val, "ai_bridge_nom_resistance": nominal_bridge_resistance,
         "ai_custom_scale_name": custom_scale_name if units == FROM_CUSTOM_SCALE else ""},
        curve=scales.polynomial([0.0, 1e3 if milli else 1.0]),
    )  # fmt: skip


def _bridge_sensor(
    kind: str, curve: Callable[[dict[str, Any]], scales.Scaling], scale_type: ScaleType
) -> Any:
    def create(system: System, **k: Any) -> None:
        scaling = scales.bridge(k["electrical_units"], curve(k), k["physical_units"], k["units"])
        custom = k.get("custom_scale_name", "") if k["units"] == FROM_CUSTOM_SCALE else ""
        _add_inputs(
            system, k["task"], k["physical_channel"], k["name_to_assign_to_channel"],
            BRIDGE_KINDS[kind],
            {**sensors.properties(Sensor(BRIDGE_KINDS[kind], f"ai_{kind}_units"), k),
             "ai_bridge_scale_type": scale_type.value, "ai_custom_scale_name": custom},
            curve=scaling,
        )  # fmt: skip

    return create


def _two_points(k: dict[str, Any]) -> scales.Scaling:
    electrical: Sequence[float] = (k["first_electrical_val"], k["second_electrical_val"])
    return scales.two_points(electrical, (k["first_physical_val"], k["second_physical_val"]))


def _table(k: dict[str, Any]) -> scales.Scaling:
    return scales.table(k["electrical_vals"], k["physical_vals"])


def _polynomial(k: dict[str, Any]) -> scales.Scaling:
    return scales.polynomial(k["forward_coeffs"])


create_ai_force_bridge_two_point_lin_chan = _bridge_sensor("force", _two_points, TWO_POINTS)
create_ai_force_bridge_table_chan = _bridge_sensor("force", _table, TABLE)
create_ai_force_bridge_polynomial_chan = _bridge_sensor("force", _polynomial, POLYNOMIAL)
create_ai_pressure_bridge_two_point_lin_chan = _bridge_sensor("pressure", _two_points, TWO_POINTS)
create_ai_pressure_bridge_table_chan = _bridge_sensor("pressure", _table, TABLE)
create_ai_pressure_bridge_polynomial_chan = _bridge_sensor("pressure", _polynomial, POLYNOMIAL)
create_ai_torque_bridge_two_point_lin_chan = _bridge_sensor("torque", _two_points, TWO_POINTS)
create_ai_torque_bridge_table_chan = _bridge_sensor("torque", _table, TABLE)
create_ai_torque_bridge_polynomial_chan = _bridge_sensor("torque", _polynomial, POLYNOMIAL)


def _sensor(sensor: Sensor) -> Any:
    def create(system: System, **k: Any) -> None:
        units = k.get("units", 0)
        first = names.unflatten(k["physical_channel"])[:1]
        model = system.card(names.split(first[0])[0]).model if first else None
        shunt = model is not None and model.ai is not None and model.ai.internal_shunt
        properties = sensors.properties(sensor, k, internal_shunt=shunt)
        custom = k.get("custom_scale_name", "") if units == FROM_CUSTOM_SCALE else ""
        properties["ai_custom_scale_name"] = custom
        convert = sensors.from_degC(units) if sensor.units == "ai_temp_units" else None
        _add_inputs(
            system, k["task"], k["physical_channel"], k["name_to_assign_to_channel"],
            sensor.usage, properties, physical_signal=True, from_fed=convert or scales.identity,
        )  # fmt: skip

    return create


globals().update({name: _sensor(sensor) for name, sensor in SENSORS.items()})
