"""Checks of a card's capabilities before the run; each refusal gives the reason."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hil.devices.nidaq.channels import AnalogInput, CardPlan, EncoderInput, device_of
from hil.devices.nidaq.errors import said_by
from hil.errors import DeviceError

if TYPE_CHECKING:
    from nidaqmx.system import Device

RATE_TOLERANCE = 1e-4


def check(name: str, plan: CardPlan) -> None:
    """Check the rig's settings against the capabilities of the device of each terminal.

    Raises
    ------
    DeviceError
        The first setting that a device does not support.
    """
    with said_by(name):
        devices = devices_of(name, plan)
        _terminals(name, plan, devices)
        _ranges(name, plan, devices)
        if plan.analog:
            _rate(name, plan, devices)
        _clocks(name, plan, devices)


def devices_of(name: str, plan: CardPlan) -> "dict[str, Device]":
    """The plan's card and every other device that its terminals name, by name.

    Raises
    ------
    DeviceError
        A device is missing.
    """
    return {device: find(name, device) for device in (plan.card, *sorted(plan.elsewhere))}


def owner_of(device: "Device") -> "Device":
    """The device with the timing engines and the watchdog: a module's chassis, or the card."""
    from nidaqmx.constants import ProductCategory

    if device.product_category == ProductCategory.C_SERIES_MODULE:
        return device.compact_daq_chassis_device
    return device


def is_chassis(device: "Device") -> bool:
    """Whether a watchdog that has expired there holds all outputs until the device is reset."""
    from nidaqmx.constants import ProductCategory

    chassis = (ProductCategory.COMPACT_DAQ_CHASSIS, ProductCategory.COMPACT_RIO_CHASSIS)
    return bool(device.product_category in chassis)


def find(name: str, card: str) -> "Device":
    """Find the card of this name; the error lists the cards that exist."""
    from nidaqmx.system import System

    cards = list(System.local().devices.device_names)
    if card not in cards:
        raise DeviceError(
            f"{name}: no card '{card}': there are {', '.join(cards) or 'none'}: check cable and "
            "power, hil devices lists cards"
        )
    return System.local().devices[card]


def describe(card: "Device") -> str:
    """Its product and serial number."""
    return f"{card.product_type} {card.serial_num:X}"


def _terminals(name: str, plan: CardPlan, devices: "dict[str, Device]") -> None:
    channels = plan.physicals()
    for what, names in channels.items():
        for device_name, device in devices.items():
            terminals = [n for n in names if device_of(n) == device_name]
            offer = _names(device, what)
            if what == "counter" and len(terminals) > len(offer):
                raise DeviceError(
                    f"{name}: {describe(device)} has {len(offer)} counters, the rig asks for "
                    f"{len(terminals)} encoders"
                )
            for physical in terminals:
                if physical not in offer:
                    listed = f"{offer[0]} to {offer[-1]}" if offer else "none"
                    raise DeviceError(
                        f"{name}: {describe(device)} has no {what} '{physical}': it has {listed}"
                    )
    taken = Counter(physical for names in channels.values() for physical in names)
    twice = [physical for physical, count in taken.items() if count > 1]
    if twice:
        raise DeviceError(f"{name}: '{twice[0]}' is requested twice")


def _names(device: "Device", what: str) -> list[str]:
    group = {
        "analogue input": "ai_physical_chans",
        "counter": "ci_physical_chans",
        "digital input": "di_lines",
        "digital output": "do_lines",
        "analogue output": "ao_physical_chans",
    }[what]
    return list(getattr(device, group).channel_names)


def _ranges(name: str, plan: CardPlan, devices: "dict[str, Device]") -> None:
    for channel in plan.analog:
        device = devices[device_of(plan.physical(channel.terminal))]
        if channel.bridge is None:
            widest, unit = max(device.ai_voltage_rngs, default=0.0), "V"
        else:
            widest, unit = 1e3 * max(device.ai_bridge_rngs, default=0.0), "mV/V"
        if widest == 0.0:
            raise DeviceError(f"{name}: {describe(device)} has no inputs for {unit}")
        if channel.range_raw > widest * (1.0 + 1e-9):
            raise DeviceError(
                f"{name}: '{channel.name}' needs {channel.range_raw:g} {unit}, {describe(device)} "
                f"reads up to {widest:g} {unit}"
            )
    for output in plan.outputs:
        device = devices[device_of(plan.physical(output.terminal))]
        widest = max(device.ao_voltage_rngs, default=0.0)
        if output.range_V > widest * (1.0 + 1e-9):
            raise DeviceError(
                f"{name}: '{output.name}' needs {output.range_V:g} V, {describe(device)} gives up "
                f"to {widest:g} V"
            )


def _rate(name: str, plan: CardPlan, devices: "dict[str, Device]") -> None:
    """Check the sample rate: all inputs have one clock, each device converts its own channels."""
    if plan.acquisition.kind == "on_demand":
        return
    rate_Hz = plan.acquisition.rate_Hz
    for device_name, n in Counter(
        device_of(plan.physical(c.terminal)) for c in plan.analog
    ).items():
        device = devices[device_name]
        if n == 1:
            most_Hz = device.ai_max_single_chan_rate
        elif device.ai_simultaneous_sampling_supported:
            most_Hz = device.ai_max_multi_chan_rate
        else:
            most_Hz = device.ai_max_multi_chan_rate / n
        if rate_Hz > most_Hz:
            raise DeviceError(
                f"{name}: {rate_Hz:g} Hz on {n} channels is beyond {describe(device)}, which takes "
                f"{most_Hz:g} Hz: lower rate_Hz"
            )
        if rate_Hz < device.ai_min_rate:
            raise DeviceError(
                f"{name}: {describe(device)} takes at least {device.ai_min_rate:g} Hz, the rig "
                f"asks for {rate_Hz:g} Hz: raise rate_Hz"
            )


def _clocks(name: str, plan: CardPlan, devices: "dict[str, Device]") -> None:
    from nidaqmx.constants import AcquisitionType

    kind = plan.acquisition.kind
    analog = _each_of(plan, plan.analog, devices)
    counters = _each_of(plan, plan.encoders, devices)
    if kind == "single_point":
        for device in analog or counters:
            modes = [*device.ai_samp_modes] if analog else [*device.ci_samp_modes]
            if AcquisitionType.HW_TIMED_SINGLE_POINT not in modes:
                raise DeviceError(
                    f"{name}: {describe(device)} has no hardware-timed single point: choose "
                    "acquisition = 'block' or 'on_demand'"
                )
    if plan.encoders and kind != "on_demand":
        if not plan.analog:
            raise DeviceError(
                f"{name}: encoders are clocked by the analogue inputs, and the rig has none on "
                "this card: choose acquisition = 'on_demand'"
            )
        for device in counters:
            if not device.ci_samp_clk_supported:
                raise DeviceError(
                    f"{name}: the counters of {describe(device)} take no sample clock: choose "
                    "acquisition = 'on_demand'"
                )


def _each_of(
    plan: CardPlan, channels: Sequence[AnalogInput | EncoderInput], devices: "dict[str, Device]"
) -> "list[Device]":
    names = dict.fromkeys(device_of(plan.physical(c.terminal)) for c in channels)
    return [devices[name] for name in names]


def check_clock(name: str, asked_Hz: float, made_Hz: float) -> None:
    """Refuse a sample rate that the card's clock cannot generate exactly.

    Raises
    ------
    DeviceError
        The rate differs by more than RATE_TOLERANCE, which is above any clock's own error.
    """
    if abs(made_Hz - asked_Hz) > RATE_TOLERANCE * asked_Hz:
        raise DeviceError(
            f"{name}: the card's clock makes {made_Hz:.6g} Hz of {asked_Hz:.6g} Hz: choose a rate "
            "that divides its time base"
        )
