"""The DAQmxCreateTEDSAI... functions: channels that take their scaling from a TEDS.

Each is the ordinary function with what the sensor's data sheet says. An input is fed as without a
TEDS: with volts, amperes, V/V of a bridge, or the sensor's own quantity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nidaqmx.constants import (
    AccelSensitivityUnits,
    BridgeConfiguration,
    BridgePhysicalUnits,
    BridgeUnits,
    ForceIEPESensorSensitivityUnits,
    ThermocoupleType,
    UsageTypeAI,
)

from simdaq import create_analog, errors, names, scales, sensors, teds_templates
from simdaq.analog_inputs import FROM_CUSTOM_SCALE, add_inputs
from simdaq.errors import DaqmxError
from simdaq.sensors import Sensor
from simdaq.system import System
from simdaq.teds import Teds

Fields = dict[str, float]
Arguments = dict[str, Any]

STANDARD_GRAVITY = 9.80665  # m/s2
BRIDGES = (BridgeConfiguration.QUARTER_BRIDGE, BridgeConfiguration.HALF_BRIDGE,
           BridgeConfiguration.FULL_BRIDGE)  # fmt: skip
THERMOCOUPLES = "BEJKNRST"
# Physical measurands of IEEE 1451.4. Names: 0 and 5 are NI's, the others this package's.
UNITS = {
    0: "Kelvin", 1: "Celsius", 2: "strain", 3: "microstrain", 4: "Newton", 5: "forcelb",
    6: "forcekg", 7: "m/s^2", 8: "g", 9: "Nm/radian", 10: "Nm", 11: "oz-in", 12: "Pascal",
    13: "PSI", 14: "kg", 15: "gram", 16: "m", 17: "mm", 18: "inch", 19: "m/s", 20: "mph",
    21: "fps", 22: "radian", 23: "degree", 24: "radian/s", 25: "rpm", 26: "Hz", 27: "gram/l",
    28: "kg/m^3", 29: "mole/m^3", 30: "mole/l", 31: "m^3/m^3", 32: "l/l", 33: "kg/s",
    34: "m^3/s", 35: "m^3/hr", 36: "gpm", 37: "cfm", 38: "l/min", 39: "RH", 40: "%", 41: "V",
    42: "V rms", 43: "A", 44: "A rms", 45: "W",
}  # fmt: skip
PHYSICAL = {
    "force": {4: BridgePhysicalUnits.NEWTONS, 5: BridgePhysicalUnits.POUNDS,
              6: BridgePhysicalUnits.KILOGRAM_FORCE},
    "pressure": {12: BridgePhysicalUnits.PASCALS, 13: BridgePhysicalUnits.POUNDS_PER_SQ_INCH},
    "torque": {9: BridgePhysicalUnits.NEWTON_METERS, 10: BridgePhysicalUnits.NEWTON_METERS,
               11: BridgePhysicalUnits.INCH_OUNCES},
}  # fmt: skip


def _fields(system: System, physical: str, template: int) -> Fields:
    """What the TEDS of a physical channel says.

    Raises
    ------
    DaqmxError
        There is none, it belongs to another kind of sensor, or its template is not described.
    """
    device, rest = names.split(physical)
    card = system.card(device)
    teds = card.stored.get(f"teds {card.check(rest, 'ai')}")
    if not isinstance(teds, Teds):
        raise DaqmxError(errors.NO_TEDS_SENSOR, Physical_Channel_Name=physical)
    fields = teds_templates.decode(teds.bits)
    if teds_templates.template_id(teds.bits) != template:
        raise _other_sensor(physical)
    return fields


def _other_sensor(physical: str) -> DaqmxError:
    return DaqmxError(errors.TEDS_OTHER_SENSOR, Physical_Channel_Name=physical)


def _from_teds(
    template: int, create: Callable[..., None], arguments: Callable[[Arguments, Fields], Arguments]
) -> Any:
    """A function that creates channels one by one, each with its own TEDS."""

    def create_from_teds(system: System, **k: Any) -> None:
        physicals = names.unflatten(k["physical_channel"])
        labels = names.labels(k["name_to_assign_to_channel"], physicals)
        read = [_fields(system, physical, template) for physical in physicals]
        task, created = system.task(k["task"]), []
        for label, physical, fields in zip(labels, physicals, read, strict=True):
            options = {**k, "physical_channel": physical, "name_to_assign_to_channel": label}
            create(system, **options, **arguments(options, fields))
            channel = task.channels[-1]
            units = UNITS.get(int(fields.get("measurand", -1)), "")
            channel.properties |= {"ai_teds_is_teds": True, "ai_teds_units": units}
            created.append(channel.name)
        system.last_created = names.flatten(created)

    return create_from_teds


def _ordinary(template: int, name: str, arguments: Callable[[Arguments, Fields], Arguments]) -> Any:
    return _from_teds(template, getattr(create_analog, name), arguments)


def _accelerometer(k: Arguments, fields: Fields) -> Arguments:
    if fields["is_force"]:
        raise _other_sensor(k["physical_channel"])
    return {
        "sensitivity": fields["sensitivity"] * STANDARD_GRAVITY,
        "sensitivity_units": AccelSensitivityUnits.VOLTS_PER_G.value,
    }


def _force_sensor(k: Arguments, fields: Fields) -> Arguments:
    if not fields["is_force"]:
        raise _other_sensor(k["physical_channel"])
    return {
        "sensitivity": 1e3 * fields["sensitivity"],
        "sensitivity_units": ForceIEPESensorSensitivityUnits.MILLIVOLTS_PER_NEWTON.value,
    }


def _microphone(k: Arguments, fields: Fields) -> Arguments:
    del k
    return {"mic_sensitivity": 1e3 * fields["sensitivity"]}


def _thermocouple(k: Arguments, fields: Fields) -> Arguments:
    number = int(fields["thermocouple"])
    if number >= len(THERMOCOUPLES):
        raise _other_sensor(k["physical_channel"])
    return {"thermocouple_type": ThermocoupleType[THERMOCOUPLES[number]].value}


def _thermistor(k: Arguments, fields: Fields) -> Arguments:
    del k
    return {key: fields[key] for key in "abc"}


def _line(fields: Fields) -> scales.Scaling:
    electrical = (fields["min_electrical"], fields["max_electrical"])
    return scales.two_points(electrical, (fields["min_physical"], fields["max_physical"]))


def _bridge(fields: Fields) -> Arguments:
    number = int(fields["bridge"])
    if number >= len(BRIDGES):
        raise DaqmxError(errors.BAD_TEDS, f"bridge type {number} of the TEDS is not known")
    return {
        "bridge_config": BRIDGES[number].value,
        "nominal_bridge_resistance": fields["resistance"],
    }


def _bridge_sensor(kind: str) -> Any:
    def arguments(k: Arguments, fields: Fields) -> Arguments:
        physical = PHYSICAL[kind].get(int(fields["measurand"]))
        if physical is None:
            raise _other_sensor(k["physical_channel"])
        return _bridge(fields) | {
            "first_electrical_val": fields["min_electrical"],
            "second_electrical_val": fields["max_electrical"],
            "first_physical_val": fields["min_physical"],
            "second_physical_val": fields["max_physical"],
            "electrical_units": BridgeUnits.VOLTS_PER_VOLT.value,
            "physical_units": physical.value,
        }

    return _ordinary(33, f"create_ai_{kind}_bridge_two_point_lin_chan", arguments)


def _linear(
    template: int, usage: UsageTypeAI, units: str,
    more: Callable[[Fields], Arguments] = lambda _: {},
) -> Any:  # fmt: skip
    """A channel in the unit of the sensor, on the straight line of its data sheet."""

    def create(system: System, *, fields: Fields, task: int, **k: Any) -> None:
        custom = k["custom_scale_name"] if k["units"] == FROM_CUSTOM_SCALE else ""
        properties = sensors.properties(Sensor(usage, units), {**k, **more(fields)})
        properties["ai_custom_scale_name"] = custom
        shunt_Ohm = k.get("ext_shunt_resistor_val", 1.0)
        line = _line(fields)
        add_inputs(
            system, task, k["physical_channel"], k["name_to_assign_to_channel"], usage, properties,
            from_fed=lambda value: value * shunt_Ohm, curve=lambda value: line(value / shunt_Ohm),
        )  # fmt: skip

    return _from_teds(template, create, lambda k, fields: {"fields": fields})


def _excited(fields: Fields) -> Arguments:
    return _bridge(fields) | {"use_excit_for_scaling": True}


def _not_decoded(template: int) -> Any:
    """A function whose template is not described: it finds no TEDS, or cannot decode it."""
    return _from_teds(template, lambda *_, **__: None, lambda k, fields: {})


create_tedsai_accel_chan = _ordinary(25, "create_ai_accel_chan", _accelerometer)
create_tedsai_force_iepe_chan = _ordinary(25, "create_ai_force_iepe_chan", _force_sensor)
create_tedsai_microphone_chan = _ordinary(27, "create_ai_microphone_chan", _microphone)
create_tedsai_thrmcpl_chan = _ordinary(36, "create_ai_thrmcpl_chan", _thermocouple)
create_tedsai_thrmstr_chan_iex = _ordinary(38, "create_ai_thrmstr_chan_iex", _thermistor)
create_tedsai_thrmstr_chan_vex = _ordinary(38, "create_ai_thrmstr_chan_vex", _thermistor)
create_tedsai_voltage_chan = _linear(30, UsageTypeAI.VOLTAGE, "ai_voltage_units")
create_tedsai_current_chan = _linear(31, UsageTypeAI.CURRENT, "ai_current_units")
create_tedsai_bridge_chan = _linear(33, UsageTypeAI.BRIDGE, "ai_bridge_units", _bridge)
create_tedsai_voltage_chan_with_excit = _linear(
    33, UsageTypeAI.VOLTAGE_CUSTOM_WITH_EXCITATION, "ai_voltage_units", _excited
)
create_tedsai_force_bridge_chan = _bridge_sensor("force")
create_tedsai_pressure_bridge_chan = _bridge_sensor("pressure")
create_tedsai_torque_bridge_chan = _bridge_sensor("torque")
create_tedsai_resistance_chan = _not_decoded(32)
create_tedsai_pos_lvdt_chan = _not_decoded(34)
create_tedsai_pos_rvdt_chan = _not_decoded(34)
create_tedsai_strain_gage_chan = _not_decoded(35)
create_tedsairtd_chan = _not_decoded(37)
