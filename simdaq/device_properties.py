"""Properties of devices, physical channels and the system."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from nidaqmx.constants import (
    AcquisitionType,
    BusType,
    ProductCategory,
    UsageTypeAO,
    UsageTypeCO,
)

from simdaq import errors, names
from simdaq.card import Card
from simdaq.catalog import AnalogOutputs
from simdaq.channels import DigitalLines
from simdaq.errors import DaqmxError
from simdaq.system import System
from simdaq.task import SLOWEST_Hz, Task
from simdaq.teds import Teds

DRIVER_VERSION = (25, 3, 0)
# Bits of TriggerUsage.
ADVANCE, PAUSE, REFERENCE, START, HANDSHAKE, ARM_START = 1, 2, 4, 8, 16, 32
ALL_TRIGGERS = PAUSE | REFERENCE | START
START_TRIGGERS = REFERENCE | START
OUTPUT_TRIGGERS = PAUSE | START
COUNTER_TRIGGERS = PAUSE | START | ARM_START
# Product numbers of accessories.
ACCESSORIES = {"RM-24999_A": 0x7992}
TERMINALS = {"RSE": 1, "NRSE": 2, "DIFF": 4, "PSEUDO_DIFF": 8}
CALIBRATED_MONTHS = 24


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
    if owner.startswith("persisted_"):
        return system.storage.about(owner.removeprefix("persisted_"), name, key)
    raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key)


def put(system: System, owner: str, name: str, key: str, value: Any) -> None:
    """Set a property of a device or a physical channel."""
    card = system.card(names.split(name)[0])
    if owner == "cal_info" and key == "cal_user_defined_info":
        size = int(_calibration(card, "cal_user_defined_info_max_size"))
        if len(value) > size:
            raise DaqmxError(errors.BAD_VALUE, Property=key, Maximum_Length=size)
        card.stored[key] = value
        return
    raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key, Device=card.name)


def _system_info(system: System, key: str) -> Any:
    if key == "device_names":
        return names.flatten(system.cards)
    kept = system.storage
    saved: dict[str, Iterable[str]] = {
        "global_channel_names": kept.channels, "task_names": kept.tasks, "scale_names": kept.scales,
    }  # fmt: skip
    if key in saved:
        return names.flatten(saved[key])
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
             "DIPorts": "di_port", "DOPorts": "do_port"}  # fmt: skip
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
        "is_simulated": lambda: card.simulated,
        "accessory_product_types": lambda: names.flatten(card.accessories),
        "accessory_product_nums": lambda: [ACCESSORIES.get(a, 0) for a in card.accessories],
        "accessory_serial_nums": lambda: [0 for _ in card.accessories],
        "carrier_serial_num": lambda: 0,
        "terminals": lambda: names.flatten(f"/{card.name}/{t}" for t in card.terminal_names()),
        "anlg_trig_supported": lambda: m.analog_trigger,
        "dig_trig_supported": lambda: m.digital_trigger,
        "time_trig_supported": lambda: card.engines.model.time_aware,
        "hwteds_supported": lambda: False,
        "num_dma_chans": lambda: 8,
        "num_time_trigs": lambda: 0 if not m.time_aware else 6,
        "num_timestamp_engines": lambda: 0 if not m.time_aware else 6,
        "chassis_module_devices": lambda: names.flatten(c.name for c in card.modules),
    }
    if m.bus in (BusType.PXI, BusType.PXIE):
        general |= {"pxi_chassis_num": lambda: 1, "pxi_slot_num": lambda: 3}
    if m.bus in (BusType.PCI, BusType.PCIE):
        general |= {"pci_bus_num": lambda: 0, "pci_dev_num": lambda: 0}
    if m.bus == BusType.TCPIP:
        general |= {"tcpip_hostname": lambda: card.name, "tcpip_ethernet_ip": lambda: "0.0.0.0",
                    "tcpip_wireless_ip": lambda: "0.0.0.0"}  # fmt: skip
    if card.chassis is not None:
        chassis = card.chassis
        general["compact_daq_chassis_device"] = lambda: chassis.name
        general["compact_daq_slot_num"] = lambda: card.slot
    if key in general:
        return general[key]()
    part = {"ai": _ai, "ao": _ao, "ci": _counters, "co": _counters, "di": _digital,
            "do": _digital}.get(key.partition("_")[0])  # fmt: skip
    values = part(card) if part is not None else {}
    if key not in values:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key, Device=card.name)
    return values[key]


def _ai(card: Card) -> dict[str, Any]:
    ai = card.model.ai
    if ai is None:
        return {"ai_meas_types": [], "ai_samp_modes": []}
    ranges = _pairs(ai.ranges)
    return {
        "ai_max_single_chan_rate": ai.max_single_Hz,
        "ai_max_multi_chan_rate": ai.max_multi_Hz,
        "ai_min_rate": ai.max_single_Hz / ai.delta_sigma
        if ai.delta_sigma
        else ai.min_Hz or SLOWEST_Hz,
        "ai_simultaneous_sampling_supported": ai.simultaneous,
        "ai_meas_types": [u.value for u in ai.usages],
        "ai_voltage_rngs": [] if ai.ratiometric else ranges,
        "ai_bridge_rngs": ranges if ai.ratiometric else [],
        "ai_current_rngs": [], "ai_resistance_rngs": [], "ai_freq_rngs": [],
        "ai_gains": [], "ai_couplings": 0x3 if ai.pseudodifferential else 0x2,
        "ai_samp_modes": _modes(card, ai.max_single_Hz > 0.0),
        "ai_trig_usage": START_TRIGGERS if ai.simultaneous else ALL_TRIGGERS,
        "ai_num_samp_timing_engines": card.model.n_ai_engines,
        "ai_num_sync_pulse_srcs": 0,
        "ai_voltage_int_excit_discrete_vals": list(ai.excitation_V),
        "ai_voltage_int_excit_range_vals": [], "ai_current_int_excit_discrete_vals": [],
    }  # fmt: skip


def _ao(card: Card) -> dict[str, Any]:
    ao = card.model.ao
    if ao is None:
        return {"ao_output_types": [], "ao_samp_modes": [], "ao_samp_clk_supported": False}
    return {
        "ao_max_rate": ao.max_Hz,
        "ao_min_rate": SLOWEST_Hz,
        "ao_voltage_rngs": [0.0, ao.ranges[-1]] if ao.unipolar else _pairs(ao.ranges),
        "ao_current_rngs": _pairs(ao.current_ranges_A), "ao_gains": [],
        "ao_output_types": _output_types(ao),
        "ao_samp_clk_supported": ao.max_Hz > 0.0,
        "ao_samp_modes": _modes(card, ao.max_Hz > 0.0),
        "ao_trig_usage": OUTPUT_TRIGGERS,
        "ao_num_samp_timing_engines": 1, "ao_num_sync_pulse_srcs": 0,
    }  # fmt: skip


def _output_types(ao: AnalogOutputs) -> list[int]:
    current = [UsageTypeAO.CURRENT.value] if ao.current_ranges_A else []
    return [UsageTypeAO.VOLTAGE.value, *current]


def _counters(card: Card) -> dict[str, Any]:
    counters = card.model.counters
    if counters is None:
        return {"ci_meas_types": [], "co_output_types": [], "ci_samp_modes": []}
    return {
        "ci_max_size": counters.bits,
        "co_max_size": counters.bits,
        "ci_max_timebase": counters.timebase_Hz,
        "co_max_timebase": counters.timebase_Hz,
        "ci_meas_types": [u.value for u in counters.usages],
        "co_output_types": [u.value for u in UsageTypeCO] if counters.outputs else [],
        "ci_samp_clk_supported": counters.buffered,
        "co_samp_clk_supported": counters.buffered and counters.outputs,
        "ci_samp_modes": _modes(card, counters.buffered),
        "co_samp_modes": _modes(card, counters.buffered and counters.outputs),
        "ci_trig_usage": COUNTER_TRIGGERS,
        "co_trig_usage": COUNTER_TRIGGERS,
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
    short = card.check(rest, {"dig": "di", "teds": "ai"}.get(kind, kind))
    if kind == "teds":
        teds = card.stored.get(f"teds {short}")
        if not isinstance(teds, Teds):
            raise DaqmxError(errors.NO_TEDS_SENSOR, Physical_Channel_Name=name)
        return teds.properties[key]
    if key == "ai_term_cfgs":
        return sum(TERMINALS[c.name] for c in card.terminal_configurations(short))
    if key == "ao_term_cfgs":
        return TERMINALS["DIFF"] if card.model.category == ProductCategory.SC_EXPRESS else 1
    clocked = card.model.ports and max(p.max_Hz for p in card.model.ports) > 0.0
    values: dict[str, Any] = {}
    if kind == "ai" and card.model.ai is not None:
        values = {"ai_meas_types": [u.value for u in card.model.ai.usages], "ai_input_srcs": ""}
    elif kind == "ao":
        values = {"ao_output_types": [UsageTypeAO.VOLTAGE.value]}
    elif kind in ("ci", "co"):
        values = _counters(card)
    elif kind in ("di", "do"):
        width = len(card.lines(short))
        port = card.port_of(card.lines(short)[0])
        clocked = card.model.ports[port].max_Hz > 0.0
        values = {
            f"{kind}_port_width": width,
            f"{kind}_samp_clk_supported": clocked,
            f"{kind}_samp_modes": _modes(card, clocked),
            "di_change_detect_supported": clocked,
        }
    if key not in values:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key, Physical_Channel_Name=name)
    return values[key]


def _calibration(card: Card, key: str) -> Any:
    # A simulated NI device was never calibrated and answers 0 degC.
    warm_degC = 0.0 if card.simulated else 30.0
    values: dict[str, Any] = {
        "self_cal_supported": card.model.self_calibration,
        "ext_cal_recommended_interval": CALIBRATED_MONTHS,
        "cal_user_defined_info": "", "cal_user_defined_info_max_size": 4,
        "cal_dev_temp": warm_degC, "ext_cal_last_temp": warm_degC,
        "self_cal_last_temp": warm_degC,
    }  # fmt: skip
    if key in card.stored:
        return card.stored[key]
    if key not in values:
        raise DaqmxError(errors.PROPERTY_NOT_SUPPORTED, Property=key, Device=card.name)
    return values[key]


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
    size = int(task.properties.get(("buffer", "output_buf_size"), 0))
    if size:
        return size
    return 0 if task.written is None else int(np.shape(task.written)[1])
