"""The DAQmxCreateAI... and DAQmxCreateAO... functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nidaqmx.constants import (
    BridgeUnits,
    ScaleType,
    UsageTypeAI,
)

from simdaq import names, scales, sensors, strain_gages
from simdaq.analog_inputs import FROM_CUSTOM_SCALE, add_inputs
from simdaq.sensors import SENSORS, Sensor
from simdaq.system import System

TWO_POINTS, TABLE, POLYNOMIAL = ScaleType.TWO_POINT_LINEAR, ScaleType.TABLE, ScaleType.POLYNOMIAL
BRIDGE_KINDS = {
    "force": UsageTypeAI.FORCE_BRIDGE,
    "pressure": UsageTypeAI.PRESSURE_BRIDGE,
    "torque": UsageTypeAI.TORQUE_BRIDGE,
}


def create_ai_voltage_chan(
    system: System, *, task: int, physical_channel: str, name_to_assign_to_channel: str,
    terminal_config: int, min_val: float, max_val: float, units: int, custom_scale_name: str,
    **_: Any,
) -> None:  # fmt: skip
    """Volts."""
    add_inputs(
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
    add_inputs(
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
    add_inputs(
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
        add_inputs(
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


def _add_gages(
    system: System, k: dict[str, Any], properties: dict[str, Any], *, ratiometric: bool
) -> None:
    """Strain gages: wired as the function says, read as the properties say from then on."""
    add_inputs(
        system, k["task"], k["physical_channel"], k["name_to_assign_to_channel"],
        UsageTypeAI.STRAIN_STRAIN_GAGE, properties,
        curve=strain_gages.strain_of(properties, ratiometric=ratiometric),
        from_fed=strain_gages.measured_of(properties, ratiometric=ratiometric),
    )  # fmt: skip


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
        if sensor.usage is UsageTypeAI.STRAIN_STRAIN_GAGE and model is not None and model.ai:
            _add_gages(system, k, properties, ratiometric=model.ai.ratiometric)
            return
        add_inputs(
            system, k["task"], k["physical_channel"], k["name_to_assign_to_channel"],
            sensor.usage, properties, physical_signal=True, from_fed=convert or scales.identity,
        )  # fmt: skip

    return create


globals().update({name: _sensor(sensor) for name, sensor in SENSORS.items()})
