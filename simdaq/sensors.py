"""Channels of sensors: which NI property keeps which argument of a DAQmxCreateAI... function.

A terminal is fed with the quantity itself, temperatures in degC, all others in the channel's own
unit; `create_analog` makes the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nidaqmx.constants import CurrentShuntResistorLocation, RTDType, TemperatureUnits, UsageTypeAI

U = UsageTypeAI
# Arguments that have the same property in all functions.
PROPERTIES = {
    "terminal_config": "ai_term_cfg", "min_val": "ai_min", "max_val": "ai_max",
    "voltage_excit_source": "ai_excit_src", "voltage_excit_val": "ai_excit_val",
    "current_excit_source": "ai_excit_src", "current_excit_val": "ai_excit_val",
    "use_excit_for_scaling": "ai_excit_use_for_scaling",
    "voltage_excit_freq": "ai_ac_excit_freq", "ac_excit_wire_mode": "ai_ac_excit_wire_mode",
    "bridge_config": "ai_bridge_cfg", "nominal_bridge_resistance": "ai_bridge_nom_resistance",
    "nominal_gage_resistance": "ai_bridge_nom_resistance",
    "initial_bridge_voltage": "ai_bridge_initial_voltage",
    "strain_config": "ai_strain_gage_cfg", "gage_factor": "ai_strain_gage_gage_factor",
    "poisson_ratio": "ai_strain_gage_poisson_ratio",
    "lead_wire_resistance": "ai_lead_wire_resistance",
    "rosette_type": "ai_rosette_strain_gage_rosette_type",
    "gage_orientation": "ai_rosette_strain_gage_gage_orientation",
    "shunt_resistor_loc": "ai_current_shunt_loc",
    "ext_shunt_resistor_val": "ai_current_shunt_resistance",
    "resistance_config": "ai_resistance_cfg",
    "rtd_type": "ai_rtd_type", "r_0": "ai_rtd_r0",
    "a": "ai_thrmstr_a", "b": "ai_thrmstr_b", "c": "ai_thrmstr_c", "r_1": "ai_thrmstr_r1",
    "thermocouple_type": "ai_thrmcpl_type", "cjc_source": "ai_thrmcpl_cjc_src",
    "cjc_val": "ai_thrmcpl_cjc_val", "cjc_channel": "ai_thrmcpl_cjc_chan",
    "threshold_level": "ai_freq_thresh_voltage", "hysteresis": "ai_freq_hyst",
    "mic_sensitivity": "ai_microphone_sensitivity",
    "max_snd_press_level": "ai_sound_pressure_max_sound_pressure_lvl",
    "electrical_units": "ai_bridge_electrical_units",
    "physical_units": "ai_bridge_physical_units",
    "first_electrical_val": "ai_bridge_two_point_lin_first_electrical_val",
    "second_electrical_val": "ai_bridge_two_point_lin_second_electrical_val",
    "first_physical_val": "ai_bridge_two_point_lin_first_physical_val",
    "second_physical_val": "ai_bridge_two_point_lin_second_physical_val",
    "electrical_vals": "ai_bridge_table_electrical_vals",
    "physical_vals": "ai_bridge_table_physical_vals",
    "forward_coeffs": "ai_bridge_poly_forward_coeff",
    "reverse_coeffs": "ai_bridge_poly_reverse_coeff",
}  # fmt: skip


# Callendar-Van Dusen coefficients A, B, C by RTD type (NI-DAQmx Help, "RTD Types").
RTD = {
    RTDType.PT_3750.value: (3.81e-3, -6.02e-7, -6.0e-12),
    RTDType.PT_3851.value: (3.9083e-3, -5.775e-7, -4.183e-12),
    RTDType.PT_3911.value: (3.9692e-3, -5.8495e-7, -4.233e-12),
    RTDType.PT_3916.value: (3.9739e-3, -5.870e-7, -4.4e-12),
    RTDType.PT_3920.value: (3.9787e-3, -5.8686e-7, -4.167e-12),
    RTDType.PT_3928.value: (3.9888e-3, -5.915e-7, -3.85e-12),
}


@dataclass(frozen=True)
class Sensor:
    """A kind of measurement.

    Attributes
    ----------
    units : the property that keeps the argument `units`
    sensitivity : stem of the properties for `sensitivity` and `sensitivity_units`
    limits : ai_min and ai_max of functions that do not ask for them
    """

    usage: UsageTypeAI
    units: str = ""
    sensitivity: str = ""
    limits: tuple[float, float] = (-100.0, 100.0)
    defaults: dict[str, Any] = field(default_factory=dict)


SENSORS = {
    "create_ai_thrmcpl_chan": Sensor(U.TEMPERATURE_THERMOCOUPLE, "ai_temp_units"),
    "create_airtd_chan": Sensor(U.TEMPERATURE_RTD, "ai_temp_units"),
    "create_ai_thrmstr_chan_iex": Sensor(U.TEMPERATURE_THERMISTOR, "ai_temp_units"),
    "create_ai_thrmstr_chan_vex": Sensor(U.TEMPERATURE_THERMISTOR, "ai_temp_units"),
    "create_ai_temp_built_in_sensor_chan": Sensor(
        U.TEMPERATURE_BUILT_IN_SENSOR, "ai_temp_units", limits=(0.0, 100.0)
    ),
    "create_ai_current_chan": Sensor(U.CURRENT, "ai_current_units"),
    "create_ai_current_rms_chan": Sensor(U.CURRENT_ACRMS, "ai_current_acrms_units"),
    "create_ai_voltage_rms_chan": Sensor(U.VOLTAGE_ACRMS, "ai_voltage_acrms_units"),
    "create_ai_resistance_chan": Sensor(U.RESISTANCE, "ai_resistance_units"),
    "create_ai_strain_gage_chan": Sensor(U.STRAIN_STRAIN_GAGE, "ai_strain_units"),
    "create_ai_freq_voltage_chan": Sensor(U.FREQUENCY_VOLTAGE, "ai_freq_units"),
    "create_ai_accel_chan": Sensor(
        U.ACCELERATION_ACCELEROMETER_CURRENT_INPUT, "ai_accel_units", "ai_accel"
    ),
    "create_ai_accel4_wire_dc_voltage_chan": Sensor(
        U.ACCELERATION_4_WIRE_DC_VOLTAGE, "ai_accel_units", "ai_accel_4_wire_dc_voltage"
    ),
    "create_ai_accel_charge_chan": Sensor(
        U.ACCELERATION_CHARGE, "ai_accel_units", "ai_accel_charge"
    ),
    "create_ai_charge_chan": Sensor(U.CHARGE, "ai_charge_units"),
    "create_ai_force_iepe_chan": Sensor(
        U.FORCE_IEPE_SENSOR, "ai_force_units", "ai_force_iepe_sensor"
    ),
    "create_ai_velocity_iepe_chan": Sensor(
        U.VELOCITY_IEPE_SENSOR, "ai_velocity_units", "ai_velocity_iepe_sensor"
    ),
    "create_ai_microphone_chan": Sensor(U.SOUND_PRESSURE_MICROPHONE, "ai_sound_pressure_units"),
    "create_ai_pos_lvdt_chan": Sensor(U.POSITION_LINEAR_LVDT, "ai_lvdt_units", "ai_lvdt"),
    "create_ai_pos_rvdt_chan": Sensor(U.POSITION_ANGULAR_RVDT, "ai_rvdt_units", "ai_rvdt"),
    "create_ai_pos_eddy_curr_prox_probe_chan": Sensor(
        U.POSITION_EDDY_CURRENT_PROX_PROBE, "ai_eddy_current_prox_units", "ai_eddy_current_prox"
    ),
}


def properties(
    sensor: Sensor, arguments: dict[str, Any], *, internal_shunt: bool = False
) -> dict[str, Any]:
    """NI's properties of a channel, from the arguments of its function.

    Parameters
    ----------
    internal_shunt : the card has shunt resistors of its own for current
    """
    values = dict(zip(("ai_min", "ai_max"), sensor.limits, strict=True)) | sensor.defaults
    for key, value in arguments.items():
        if key in PROPERTIES:
            values[PROPERTIES[key]] = value
    if sensor.units:
        values[sensor.units] = arguments.get("units", 0)
    if "rtd_type" in arguments:
        names = ("ai_rtd_a", "ai_rtd_b", "ai_rtd_c")
        values |= zip(names, RTD.get(arguments["rtd_type"], (0.0, 0.0, 0.0)), strict=True)
    if sensor.sensitivity and "sensitivity" in arguments:
        values[f"{sensor.sensitivity}_sensitivity"] = arguments["sensitivity"]
        values[f"{sensor.sensitivity}_sensitivity_units"] = arguments["sensitivity_units"]
    if arguments.get("shunt_resistor_loc") == CurrentShuntResistorLocation.LET_DRIVER_CHOOSE.value:
        inside = CurrentShuntResistorLocation.INTERNAL
        outside = CurrentShuntResistorLocation.EXTERNAL
        values["ai_current_shunt_loc"] = (inside if internal_shunt else outside).value
    if "max_snd_press_level" in arguments:
        # Sound pressure level re 20 uPa: p = 20e-6 * 10^(L / 20); full scale is the peak.
        peak_Pa = 2.0**0.5 * 20e-6 * 10.0 ** (arguments["max_snd_press_level"] / 20.0)
        values["ai_min"], values["ai_max"] = -peak_Pa, peak_Pa
    return values


def from_degC(units: int) -> Callable[[Any], Any] | None:
    """A temperature in degC -> in a channel's unit; None where it is the same."""
    return {
        TemperatureUnits.DEG_F.value: lambda t: 1.8 * t + 32.0,
        TemperatureUnits.K.value: lambda t: t + 273.15,
        TemperatureUnits.DEG_R.value: lambda t: 1.8 * (t + 273.15),
    }.get(units)
