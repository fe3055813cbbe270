"""Properties of devices, physical channels and the system: what a card says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from nidaqmx.constants import AcquisitionType, UsageTypeAO, UsageTypeCO

from simdaq import errors, names
from simdaq.card import Card
from simdaq.catalog import COUNTER_TYPES
from simdaq.channels import DigitalLines
from simdaq.errors import DaqmxError
from simdaq.system import System
from simdaq.task import Task

DRIVER_VERSION = (25, 3, 0)
ALL_TRIGGERS = 0x2 | 0x4 | 0x8


def get(system: System, owner: str, name: str, key: str) -> Any:
    """A property of a device, a physical channel or the system."""
    if owner == "system_info":
        return _system_info(system, key)
    if owner == "device":
        return _device(system.card(name), key)
    if owner == "physical_chan":
        return _physical(system, name, key)
    if owner == "cal_info":
        return _calibration(system.card(name), key)
    raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key)


def _system_info(system: System, key: str) -> Any:
    if key == "device_names":
        return names.flatten(system.cards)
    if key in ("global_channel_names", "task_names"):
        return ""
    if key == "scale_names":
        return names.flatten(system.scales.names())
    major, minor, update = DRIVER_VERSION
    return {"_major_version": major, "_minor_version": minor, "_update_version": update}[key]


def _modes(card: Card, clocked: bool) -> list[int]:
    if not clocked:
        return []
    modes = [AcquisitionType.FINITE.value, AcquisitionType.CONTINUOUS.value]
    if card.model.single_point:
        modes.append(AcquisitionType.HW_TIMED_SINGLE_POINT.value)
    return modes


def _pairs(ranges: tuple[float, ...]) -> list[float]:
    return [v for r in ranges for v in (-r, r)]


def _lists(card: Card, key: str) -> str | None:
    kinds = {"AI": "ai", "AO": "ao", "CI": "ci", "CO": "co", "DILines": "di", "DOLines": "do",
             "DIPorts": "port", "DOPorts": "port"}  # fmt: skip
    kind = kinds.get(key)
    return None if kind is None else names.flatten(card.names(kind))


def _device(card: Card, key: str) -> Any:
    listed = _lists(card, key)
    if listed is not None:
        return listed
    m = card.model
    general: dict[str, Callable[[], Any]] = {
        "product_type": lambda: m.product,
        "product_num": lambda: m.number,
        "product_category": lambda: m.category.value,
        "bus_type": lambda: m.bus.value,
        "serial_num": lambda: card.serial,
        "is_simulated": lambda: True,
        "terminals": lambda: names.flatten(f"/{card.name}/{t}" for t in card.terminal_names()),
        "anlg_trig_supported": lambda: m.ai is not None and not card.is_module,
        "dig_trig_supported": lambda: m.digital_trigger,
        "time_trig_supported": lambda: False,
        "hwteds_supported": lambda: False,
        "num_dma_chans": lambda: 8,
        "num_time_trigs": lambda: 0,
        "num_timestamp_engines": lambda: 0,
        "chassis_module_devices": lambda: names.flatten(c.name for c in card.modules),
        "pxi_chassis_num": lambda: 1,
        "pxi_slot_num": lambda: 3,
    }
    if card.chassis is not None:
        chassis = card.chassis
        general["compact_daq_chassis_device"] = lambda: chassis.name
        general["compact_daq_slot_num"] = lambda: chassis.modules.index(card) + 1
    if key in general:
        return general[key]()
    part = {"ai": _ai, "ao": _ao, "ci": _counters, "co": _counters, "di": _digital,
            "do": _digital}.get(key.partition("_")[0])  # fmt: skip
    found = part(card) if part is not None else {}
    if key not in found:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key, Device=card.name)
    return found[key]


def _ai(card: Card) -> dict[str, Any]:
    ai = card.model.ai
    if ai is None:
        return {"ai_meas_types": [], "ai_samp_modes": []}
    ranges = _pairs(ai.ranges)
    return {
        "ai_max_single_chan_rate": ai.max_single_Hz,
        "ai_max_multi_chan_rate": ai.max_multi_Hz,
        "ai_min_rate": ai.max_single_Hz / ai.delta_sigma if ai.delta_sigma else ai.min_Hz or 0.023,
        "ai_simultaneous_sampling_supported": ai.simultaneous,
        "ai_meas_types": [u.value for u in ai.usages],
        "ai_voltage_rngs": [] if ai.ratiometric else ranges,
        "ai_bridge_rngs": ranges if ai.ratiometric else [],
        "ai_current_rngs": [], "ai_resistance_rngs": [], "ai_freq_rngs": [],
        "ai_gains": [], "ai_couplings": 0x4,
        "ai_samp_modes": _modes(card, ai.max_single_Hz > 0.0),
        "ai_trig_usage": ALL_TRIGGERS,
        "ai_num_samp_timing_engines": card.model.simultaneous_engines,
        "ai_num_sync_pulse_srcs": 0,
        "ai_voltage_int_excit_discrete_vals": [2.5, 3.3, 5.0, 10.0] if ai.ratiometric else [],
        "ai_voltage_int_excit_range_vals": [], "ai_current_int_excit_discrete_vals": [],
    }  # fmt: skip


def _ao(card: Card) -> dict[str, Any]:
    ao = card.model.ao
    if ao is None:
        return {"ao_output_types": [], "ao_samp_modes": [], "ao_samp_clk_supported": False}
    return {
        "ao_max_rate": ao.max_Hz,
        "ao_min_rate": 0.023,
        "ao_voltage_rngs": _pairs(ao.ranges),
        "ao_current_rngs": [], "ao_gains": [],
        "ao_output_types": [UsageTypeAO.VOLTAGE.value],
        "ao_samp_clk_supported": ao.max_Hz > 0.0,
        "ao_samp_modes": _modes(card, ao.max_Hz > 0.0),
        "ao_trig_usage": ALL_TRIGGERS,
        "ao_num_samp_timing_engines": 1, "ao_num_sync_pulse_srcs": 0,
    }  # fmt: skip


def _counters(card: Card) -> dict[str, Any]:
    counters = card.model.counters
    if counters is None:
        return {"ci_meas_types": [], "co_output_types": [], "ci_samp_modes": []}
    encoders = ("ENCODER",) if not counters.encoders else ()
    types = [u.value for u in COUNTER_TYPES if not any(e in u.name for e in encoders)]
    return {
        "ci_max_size": counters.bits,
        "co_max_size": counters.bits,
        "ci_max_timebase": counters.timebase_Hz,
        "co_max_timebase": counters.timebase_Hz,
        "ci_meas_types": types,
        "co_output_types": [u.value for u in UsageTypeCO] if counters.outputs else [],
        "ci_samp_clk_supported": counters.buffered,
        "co_samp_clk_supported": counters.buffered and counters.outputs,
        "ci_samp_modes": _modes(card, counters.buffered),
        "co_samp_modes": _modes(card, counters.buffered and counters.outputs),
        "ci_trig_usage": ALL_TRIGGERS,
        "co_trig_usage": ALL_TRIGGERS,
    }


def _digital(card: Card) -> dict[str, Any]:
    highest_Hz = max((p.max_Hz for p in card.model.ports), default=0.0)
    return {
        "di_max_rate": highest_Hz, "do_max_rate": highest_Hz,
        "di_trig_usage": ALL_TRIGGERS, "do_trig_usage": ALL_TRIGGERS,
        "di_num_samp_timing_engines": 1, "do_num_samp_timing_engines": 1,
    }  # fmt: skip


def _physical(system: System, name: str, key: str) -> Any:
    device, rest = names.split(name)
    card = system.card(device)
    kind = key.partition("_")[0]
    short = card.check(rest, {"dig": "di"}.get(kind, kind))
    if key == "ai_term_cfgs":
        assert card.model.ai is not None
        # Bits of NI-DAQmx: RSE 1, NRSE 2, DIFF 4.
        index = int(re.sub(r"\D", "", short))
        both = not card.model.ai.differential_only
        half = card.model.ai.n_channels // 2
        differential = not both or index % 16 < min(half, 8)
        return (3 if both else 0) | (4 if differential else 0)
    if key == "ao_term_cfgs":
        return 1
    clocked = card.model.ports and max(p.max_Hz for p in card.model.ports) > 0.0
    found: dict[str, Any] = {}
    if kind == "ai" and card.model.ai is not None:
        found = {"ai_meas_types": [u.value for u in card.model.ai.usages], "ai_input_srcs": ""}
    elif kind == "ao":
        found = {"ao_output_types": [UsageTypeAO.VOLTAGE.value]}
    elif kind in ("ci", "co"):
        found = _counters(card)
    elif kind in ("di", "do"):
        width = len(card.lines(short))
        port = card.port_of(card.lines(short)[0])
        clocked = card.model.ports[port].max_Hz > 0.0
        found = {
            f"{kind}_port_width": width,
            f"{kind}_samp_clk_supported": clocked,
            f"{kind}_samp_modes": _modes(card, clocked),
            "di_change_detect_supported": clocked,
        }
    if key not in found:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key, Physical_Channel_Name=name)
    return found[key]


def _calibration(card: Card, key: str) -> Any:
    found = {"self_cal_supported": False, "ext_cal_recommended_interval": 24,
             "cal_user_defined_info": "", "cal_user_defined_info_max_size": 4,
             "cal_dev_temp": 30.0}  # fmt: skip
    if key not in found:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key, Device=card.name)
    return found[key]


def raw_bytes(task: Task) -> int:
    """Bytes of one raw sample of a channel."""
    if task.kind in ("ai", "ao"):
        model = task.card.model
        part = model.ai if task.kind == "ai" else model.ao
        assert part is not None
        return 2 if part.bits <= 16 else 4
    if task.kind in ("di", "do"):
        highest = max(max(c.position) for c in task.channels if isinstance(c, DigitalLines))
        return 1 if highest < 8 else 2 if highest < 16 else 4
    return 4


def output_buffer(task: Task) -> int:
    """Samples a channel in the output buffer."""
    asked = int(task.properties.get(("buffer", "output_buf_size"), 0))
    if asked:
        return asked
    return 0 if task.written is None else int(np.shape(task.written)[1])
