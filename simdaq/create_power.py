"""Power channels: a TestScale power module, and power calculated from voltage and current."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from nidaqmx.constants import (
    ChannelType,
    PowerIdleOutputBehavior,
    PowerOutputState,
    Sense,
    TerminalConfiguration,
    UsageTypeAI,
)

from simdaq import errors, names, scales, sensors
from simdaq.analog_inputs import FROM_CUSTOM_SCALE
from simdaq.channels import AnalogInput, Channel, Samples
from simdaq.errors import DaqmxError
from simdaq.system import System

CODES_PER_V, CODES_PER_A = 4096.0, 8192.0  # of a TS-15200, +/-8 V and +/-4 A over 16 bits


@dataclass
class PowerChannel(Channel):
    """A power module: it supplies a voltage up to a current, and measures both.

    Nothing is connected: a sample is the set points while the output is enabled, else NaN.
    """

    @property
    def rows(self) -> int:
        return 2

    @property
    def enabled(self) -> bool:
        return bool(self.properties["pwr_output_enable"])

    def resources(self) -> list[str]:
        return ["power"]

    def verify(self) -> None:
        ai = self.card.model.ai
        assert ai is not None
        limits = {"pwr_voltage_setpoint": ai.power_max_V, "pwr_current_setpoint": ai.power_max_A}
        for key, highest in limits.items():
            if not 0.0 <= self.properties[key] <= highest:
                raise DaqmxError(
                    errors.BAD_VALUE, Property=key, Requested_Value=self.properties[key],
                    Maximum_Value=highest, Minimum_Value=0.0, Channel_Name=self.name,
                )  # fmt: skip

    def sample(self, t_s: Samples) -> Samples:
        """(2, samples): voltage and current as codes of the converter."""
        p = self.properties
        if not self.enabled:
            return np.full((2, len(t_s)), np.nan)
        codes = np.array(
            [CODES_PER_V * p["pwr_voltage_setpoint"], CODES_PER_A * p["pwr_current_setpoint"]]
        )
        return np.repeat(np.rint(codes)[:, None], len(t_s), axis=1)

    @property
    def computed(self) -> dict[str, Any]:
        state = PowerOutputState.CONSTANT_VOLTAGE
        if not self.enabled:
            state = PowerOutputState.OUTPUT_DISABLED
        return {"pwr_output_state": lambda: state.value}


def create_ai_power_chan(
    system: System, *, task: int, physical_channel: str, name_to_assign_to_channel: str,
    voltage_setpoint: float, current_setpoint: float, output_enable: bool,
) -> None:  # fmt: skip
    """Create a channel of a power module."""
    owner = system.task(task)
    physicals = names.unflatten(physical_channel)
    created: list[Channel] = []
    for label, physical in zip(
        names.labels(name_to_assign_to_channel, physicals), physicals, strict=True
    ):
        device, rest = names.split(physical)
        card = system.card(device)
        short = card.check(rest, "ai")
        if card.model.ai is None or UsageTypeAI.POWER not in card.model.ai.usages:
            raise DaqmxError(errors.WRONG_MEASUREMENT, Physical_Channel_Name=physical)
        created.append(
            PowerChannel(
                label, physical, "ai", card, short,
                {"ai_meas_type": UsageTypeAI.POWER.value,
                 "chan_type": ChannelType.ANALOG_INPUT.value,
                 "pwr_voltage_setpoint": voltage_setpoint,
                 "pwr_current_setpoint": current_setpoint,
                 "pwr_output_enable": bool(output_enable),
                 "pwr_idle_output_behavior":
                     PowerIdleOutputBehavior.MAINTAIN_EXISTING_VALUE.value,
                 "pwr_remote_sense": Sense.LOCAL.value},
            )
        )  # fmt: skip
    system.add_channels(owner, created)


@dataclass
class CalculatedPower(AnalogInput):
    """The product of a voltage input and a current input, W; `current` is the second one."""

    current: AnalogInput | None = None

    def sample(self, t_s: Samples) -> Samples:
        assert self.current is not None
        volts = super().sample(t_s) * self.lsb
        amperes = self.current.sample(t_s) * self.current.lsb
        return np.asarray(volts * amperes)

    def sample_now(self, t_s: float) -> float:
        return float(self.sample(np.array([t_s]))[0])

    def scaled(self, raw: Any) -> Any:
        return raw if self.custom is None else self.custom.scaling(raw)

    def _within_limits(self, share: Samples) -> Samples:
        # The limits are those of the voltage; the product is formed afterwards.
        return _as_voltage(self)._within_limits(share)


def _as_voltage(channel: AnalogInput) -> AnalogInput:
    return AnalogInput(
        channel.name, channel.physical, channel.kind, channel.card, channel.short,
        channel.properties,
    )  # fmt: skip


def create_ai_calculated_power_chan(
    system: System, *, task: int, voltage_physical_channel: str, current_physical_channel: str,
    name_to_assign_to_channel: str, terminal_config: int, voltage_min_val: float,
    voltage_max_val: float, current_min_val: float, current_max_val: float, units: int,
    shunt_resistor_loc: int, ext_shunt_resistor_val: float, custom_scale_name: str,
) -> None:  # fmt: skip
    """Create channels whose values are voltage times current, W."""
    owner = system.task(task)
    volts, amperes = (
        names.unflatten(voltage_physical_channel),
        names.unflatten(current_physical_channel),
    )
    if not volts or len(volts) != len(amperes):
        raise owner.error(errors.BAD_NAME, Physical_Channel_Name=repr(voltage_physical_channel))
    custom = system.scale(custom_scale_name) if units == FROM_CUSTOM_SCALE else None
    if terminal_config == TerminalConfiguration.DEFAULT.value:
        terminal_config = TerminalConfiguration.DIFF.value
    created: list[Channel] = []
    for label, one, other in zip(
        names.labels(name_to_assign_to_channel, volts), volts, amperes, strict=True
    ):
        card = system.card(names.split(one)[0])
        if card.model.ai is None or UsageTypeAI.CALCULATED_POWER not in card.model.ai.usages:
            raise DaqmxError(errors.WRONG_MEASUREMENT, Physical_Channel_Name=one)
        short, second = (card.check(names.split(p)[1], "ai") for p in (one, other))
        current = AnalogInput(
            f"{label}_current", other, "ai", card, second,
            {"ai_min": current_min_val, "ai_max": current_max_val}, physical_signal=True,
        )  # fmt: skip
        properties = {
            "ai_meas_type": UsageTypeAI.CALCULATED_POWER.value,
            "chan_type": ChannelType.ANALOG_INPUT.value, "ai_term_cfg": terminal_config,
            "ai_min": voltage_min_val, "ai_max": voltage_max_val,
            "ai_calculated_power_voltage_min": voltage_min_val,
            "ai_calculated_power_voltage_max": voltage_max_val,
            "ai_calculated_power_current_min": current_min_val,
            "ai_calculated_power_current_max": current_max_val,
            "ai_power_units": units,
            "ai_current_shunt_loc": sensors.properties(
                sensors.Sensor(UsageTypeAI.CALCULATED_POWER),
                {"shunt_resistor_loc": shunt_resistor_loc},
            )["ai_current_shunt_loc"],
            "ai_current_shunt_resistance": ext_shunt_resistor_val,
            "ai_custom_scale_name": custom_scale_name if custom else "",
        }  # fmt: skip
        created.append(
            CalculatedPower(label, f"{one}, {other}", "ai", card, short, properties,
                            curve=scales.identity, custom=custom, current=current)
        )  # fmt: skip
    system.add_channels(owner, created)
