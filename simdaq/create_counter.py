"""The DAQmxCreateCI... and DAQmxCreateCO... functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from nidaqmx.constants import AngleUnits, ChannelType, LengthUnits, UsageTypeCI, UsageTypeCO

from simdaq import errors, names
from simdaq.channels import Channel
from simdaq.counters import CounterInput
from simdaq.errors import DaqmxError
from simdaq.pulse_outputs import CounterOutput
from simdaq.system import System

FROM_CUSTOM_SCALE = 10065
PER_REVOLUTION = {
    AngleUnits.DEGREES.value: 360.0,
    AngleUnits.RADIANS.value: 2.0 * np.pi,
}
PER_METRE = {LengthUnits.METERS.value: 1.0, LengthUnits.INCHES.value: 1.0 / 0.0254}
# Arguments of pulses by ticks, and the properties that keep them.
TICKS = {
    "source_terminal": "co_ctr_timebase_src", "high_ticks": "co_pulse_high_ticks",
    "low_ticks": "co_pulse_low_ticks", "initial_delay": "co_pulse_ticks_initial_delay",
}  # fmt: skip
RPM, DEG_PER_S = 16080, 16082


def _add(
    system: System, usage: UsageTypeCI, k: dict[str, Any], properties: dict[str, Any],
    *, per_count: float = 1.0, offset: float = 0.0,
) -> None:  # fmt: skip
    owner = system.task(k["task"])
    physicals = names.unflatten(k["counter"])
    if not physicals:
        raise owner.error(errors.BAD_NAME, Physical_Channel_Name=repr(k["counter"]))
    scaled = k.get("units") == FROM_CUSTOM_SCALE
    custom = system.scale(k["custom_scale_name"]) if scaled else None
    created: list[Channel] = []
    for label, physical in zip(
        names.labels(k["name_to_assign_to_channel"], physicals), physicals, strict=True
    ):
        device, rest = names.split(physical)
        card = system.card(device)
        short = card.check(rest, "ci")
        model = card.counter_owner.model.counters
        if model is not None and usage not in model.usages:
            raise DaqmxError(
                errors.WRONG_MEASUREMENT, Physical_Channel_Name=physical,
                Measurement_Type=usage.name,
            )  # fmt: skip
        settings = {
            "ci_meas_type": usage.value, "chan_type": ChannelType.COUNTER_INPUT.value,
            "ci_custom_scale": k.get("custom_scale_name", ""),
            "ci_min": k.get("min_val", 0.0), "ci_max": k.get("max_val", 0.0), **properties,
        }  # fmt: skip
        created.append(
            CounterInput(label, physical, "ci", card, short, settings, usage=usage, custom=custom,
                         per_count=per_count, offset=offset)
        )  # fmt: skip
    system.add_channels(owner, created)


def create_ci_ang_encoder_chan(system: System, **k: Any) -> None:
    """An angle, from a two-phase encoder."""
    decoding = {10090: 1, 10091: 2, 10092: 4}.get(k["decoding_type"], 1)
    if k["pulses_per_rev"] == 0:
        raise DaqmxError(errors.BAD_VALUE, Property="CI.AngEncoder.PulsesPerRev",
                         Requested_Value=0, Minimum_Value=1)  # fmt: skip
    full = PER_REVOLUTION.get(k["units"], float(k["pulses_per_rev"] * decoding))
    _add(
        system, UsageTypeCI.POSITION_ANGULAR_ENCODER, k,
        {"ci_ang_encoder_pulses_per_rev": k["pulses_per_rev"],
         "ci_ang_encoder_units": k["units"], "ci_ang_encoder_initial_angle": k["initial_angle"],
         **_encoder(k)},
        per_count=full / (k["pulses_per_rev"] * decoding), offset=k["initial_angle"],
    )  # fmt: skip


def create_ci_lin_encoder_chan(system: System, **k: Any) -> None:
    """A position, from a two-phase encoder."""
    decoding = {10090: 1, 10091: 2, 10092: 4}.get(k["decoding_type"], 1)
    in_units = PER_METRE.get(k["units"], 1.0)
    _add(
        system, UsageTypeCI.POSITION_LINEAR_ENCODER, k,
        {"ci_lin_encoder_dist_per_pulse": k["dist_per_pulse"] / in_units,
         "ci_lin_encoder_units": k["units"], "ci_lin_encoder_initial_pos": k["initial_pos"],
         **_encoder(k)},
        per_count=k["dist_per_pulse"] / decoding, offset=k["initial_pos"],
    )  # fmt: skip


def _encoder(k: dict[str, Any]) -> dict[str, Any]:
    return {
        "ci_encoder_decoding_type": k["decoding_type"],
        "ci_encoder_z_index_enable": bool(k["zidx_enable"]),
        "ci_encoder_z_index_val": k["zidx_val"],
        "ci_encoder_z_index_phase": k["zidx_phase"],
    }


def create_ci_ang_velocity_chan(system: System, **k: Any) -> None:
    """An angular velocity, from a two-phase encoder."""
    per_turn = {RPM: 60.0, DEG_PER_S: 360.0}.get(k["units"], 2.0 * np.pi)
    _add(
        system, UsageTypeCI.VELOCITY_ANGULAR_ENCODER, k,
        {"ci_velocity_ang_encoder_pulses_per_rev": k["pulses_per_rev"],
         "ci_velocity_ang_encoder_units": k["units"],
         "ci_velocity_encoder_decoding_type": k["decoding_type"]},
        per_count=per_turn,
    )  # fmt: skip


def create_ci_lin_velocity_chan(system: System, **k: Any) -> None:
    """A velocity, from a two-phase encoder."""
    inches = k["units"] == 15960
    _add(
        system, UsageTypeCI.VELOCITY_LINEAR_ENCODER, k,
        {"ci_velocity_lin_encoder_dist_per_pulse": k["dist_per_pulse"],
         "ci_velocity_lin_encoder_units": k["units"],
         "ci_velocity_encoder_decoding_type": k["decoding_type"]},
        per_count=1.0 / 0.0254 if inches else 1.0,
    )  # fmt: skip


def create_ci_count_edges_chan(system: System, **k: Any) -> None:
    """Edges so far."""
    _add(
        system, UsageTypeCI.COUNT_EDGES, k,
        {"ci_count_edges_active_edge": k["edge"],
         "ci_count_edges_initial_cnt": k["initial_count"],
         "ci_count_edges_dir": k["count_direction"]},
    )  # fmt: skip


def _timed(usage: UsageTypeCI, stem: str) -> Any:
    def create(system: System, **k: Any) -> None:
        properties = {f"ci_{stem}_units": k.get("units", 0)}
        if "edge" in k:
            properties[f"ci_{stem}_starting_edge"] = k["edge"]
        if "starting_edge" in k:
            properties[f"ci_{stem}_starting_edge"] = k["starting_edge"]
        if "first_edge" in k:
            properties[f"ci_{stem}_first_edge"] = k["first_edge"]
            properties[f"ci_{stem}_second_edge"] = k["second_edge"]
        if "source_terminal" in k:
            properties["ci_ctr_timebase_src"] = k["source_terminal"]
        if "meas_method" in k:
            properties[f"ci_{stem}_meas_meth"] = k["meas_method"]
            properties[f"ci_{stem}_meas_time"] = k["meas_time"]
            properties[f"ci_{stem}_div"] = k["divisor"]
        _add(system, usage, k, properties)

    return create


create_ci_freq_chan = _timed(UsageTypeCI.FREQUENCY, "freq")
create_ci_period_chan = _timed(UsageTypeCI.PERIOD, "period")
create_ci_pulse_width_chan = _timed(UsageTypeCI.PULSE_WIDTH_DIGITAL, "pulse_width")
create_ci_semi_period_chan = _timed(UsageTypeCI.PULSE_WIDTH_DIGITAL_SEMI_PERIOD, "semi_period")
create_ci_two_edge_sep_chan = _timed(
    UsageTypeCI.PULSE_WIDTH_DIGITAL_TWO_EDGE_SEPARATION, "two_edge_sep"
)
create_ci_duty_cycle_chan = _timed(UsageTypeCI.DUTY_CYCLE, "duty_cycle")
create_ci_pulse_chan_freq = _timed(UsageTypeCI.PULSE_FREQ, "pulse_freq")
create_ci_pulse_chan_time = _timed(UsageTypeCI.PULSE_TIME, "pulse_time")
create_ci_pulse_chan_ticks = _timed(UsageTypeCI.PULSE_TICKS, "pulse_ticks")


def _add_pulses(
    system: System, usage: UsageTypeCO, k: dict[str, Any], high_s: float, low_s: float,
    delay_s: float,
) -> None:  # fmt: skip
    owner = system.task(k["task"])
    physicals = names.unflatten(k["counter"])
    if not physicals:
        raise owner.error(errors.BAD_NAME, Physical_Channel_Name=repr(k["counter"]))
    if high_s <= 0.0 or low_s <= 0.0:
        raise DaqmxError(errors.BAD_VALUE, Property="CO.Pulse", High_Time=high_s, Low_Time=low_s)
    created: list[Channel] = []
    for label, physical in zip(
        names.labels(k["name_to_assign_to_channel"], physicals), physicals, strict=True
    ):
        device, rest = names.split(physical)
        card = system.card(device)
        short = card.check(rest, "co")
        ticks = {key: k[name] for name, key in TICKS.items() if name in k}
        properties = {
            **ticks, "co_output_type": usage.value, "chan_type": ChannelType.COUNTER_OUTPUT.value,
            "co_pulse_idle_state": k["idle_state"], "co_pulse_freq_units": k.get("units", 10373),
            "co_pulse_time_units": k.get("units", 10364),
            "co_pulse_freq_initial_delay": delay_s, "co_pulse_time_initial_delay": delay_s,
        }  # fmt: skip
        created.append(
            CounterOutput(label, physical, "co", card, short, properties, high_s=high_s,
                          low_s=low_s, delay_s=delay_s)
        )  # fmt: skip
    system.add_channels(owner, created)


def create_co_pulse_chan_freq(system: System, **k: Any) -> None:
    """Pulses by frequency and duty cycle."""
    if k["freq"] <= 0.0 or not 0.0 < k["duty_cycle"] < 1.0:
        raise DaqmxError(errors.BAD_VALUE, Property="CO.Pulse.Freq", Frequency=k["freq"],
                         Duty_Cycle=k["duty_cycle"])  # fmt: skip
    period_s = 1.0 / k["freq"]
    high_s = k["duty_cycle"] * period_s
    _add_pulses(
        system, UsageTypeCO.PULSE_FREQUENCY, k, high_s, period_s - high_s, k["initial_delay"]
    )


def create_co_pulse_chan_time(system: System, **k: Any) -> None:
    """Pulses by high and low time."""
    _add_pulses(
        system, UsageTypeCO.PULSE_TIME, k, k["high_time"], k["low_time"], k["initial_delay"]
    )


def create_co_pulse_chan_ticks(system: System, **k: Any) -> None:
    """Pulses by ticks of a timebase; one that is not on board is taken for 100 MHz."""
    tick_s = {"20mhz": 5e-8, "100khz": 1e-5}.get(
        str(k["source_terminal"]).lower().rpartition("/")[2].removesuffix("timebase"), 1e-8
    )
    _add_pulses(
        system, UsageTypeCO.PULSE_TICKS, k, k["high_ticks"] * tick_s, k["low_ticks"] * tick_s,
        k["initial_delay"] * tick_s,
    )  # fmt: skip
