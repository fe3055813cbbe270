"""What a card cannot do is found before the run, and refused with the reason."""

from collections import Counter
from typing import Any

from hil.devices.nidaq.channels import AnalogInput, CardPlan
from hil.devices.nidaq.errors import said_by
from hil.errors import DeviceError

RATE_TOLERANCE = 1e-4


def check(name: str, plan: CardPlan) -> None:
    """Compare what the rig asks with what the card says of itself.

    Raises
    ------
    DeviceError
        Naming the first thing that the card cannot do.
    """
    with said_by(name):
        card = find(name, plan.card)
        _terminals(name, plan, card)
        if plan.analog:
            _ranges(name, plan, card)
            _rate(name, plan, card)
        _clocks(name, plan, card)


def find(name: str, card: str) -> Any:
    """The card of this name, or who is there instead."""
    from nidaqmx.system import System

    there = list(System.local().devices.device_names)
    if card not in there:
        raise DeviceError(
            f"{name}: no card '{card}': there are {', '.join(there) or 'none'}: check cable and "
            "power, hil devices lists cards"
        )
    return System.local().devices[card]


def describe(card: Any) -> str:
    """Its product and serial number."""
    return f"{card.product_type} {card.serial_num:X}"


def _terminals(name: str, plan: CardPlan, card: Any) -> None:
    asked = {
        "analogue input": [plan.physical(c.terminal) for c in plan.analog],
        "counter": [plan.physical(c.terminal) for c in plan.encoders],
        "digital input": [plan.physical(line.terminal) for line in plan.lines_in],
        "digital output": [
            plan.physical(terminal)
            for terminal in (
                *(line.terminal for line in plan.lines_out),
                *sorted({c.shunt_line for c in plan.analog if c.shunt_line}),
            )
        ],
        "analogue output": [plan.physical(c.terminal) for c in plan.outputs],
    }
    for what, names in asked.items():
        elsewhere = {n.split("/")[0] for n in names} - {plan.card}
        for device_name in (plan.card, *sorted(elsewhere)):
            device = card if device_name == plan.card else find(name, device_name)
            own = [n for n in names if n.split("/")[0] == device_name]
            there = _names(device, what)
            if what == "counter" and len(own) > len(there):
                raise DeviceError(
                    f"{name}: {describe(device)} has {len(there)} counters, the rig asks for "
                    f"{len(own)} encoders"
                )
            for physical in own:
                if physical not in there:
                    listed = f"{there[0]} to {there[-1]}" if there else "none"
                    raise DeviceError(
                        f"{name}: {describe(device)} has no {what} '{physical}': it has {listed}"
                    )
    taken = Counter(physical for names in asked.values() for physical in names)
    twice = [physical for physical, count in taken.items() if count > 1]
    if twice:
        raise DeviceError(f"{name}: '{twice[0]}' is asked for twice")


def _names(device: Any, what: str) -> list[str]:
    group = {
        "analogue input": "ai_physical_chans",
        "counter": "ci_physical_chans",
        "digital input": "di_lines",
        "digital output": "do_lines",
        "analogue output": "ao_physical_chans",
    }[what]
    return list(getattr(device, group).channel_names)


def _ranges(name: str, plan: CardPlan, card: Any) -> None:
    for channel in plan.analog:
        device = _device_of(name, plan, channel, card)
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
        widest = max(card.ao_voltage_rngs, default=0.0)
        if output.range_V > widest * (1.0 + 1e-9):
            raise DeviceError(
                f"{name}: '{output.name}' needs {output.range_V:g} V, {describe(card)} gives up to "
                f"{widest:g} V"
            )


def _device_of(name: str, plan: CardPlan, channel: AnalogInput, card: Any) -> Any:
    own = plan.physical(channel.terminal).split("/")[0]
    return card if own == plan.card else find(name, own)


def _rate(name: str, plan: CardPlan, card: Any) -> None:
    if plan.acquisition.kind == "on_demand":
        return
    n, rate_Hz = len(plan.analog), plan.acquisition.rate_Hz
    if n == 1:
        most_Hz = card.ai_max_single_chan_rate
    elif card.ai_simultaneous_sampling_supported:
        most_Hz = card.ai_max_multi_chan_rate
    else:
        most_Hz = card.ai_max_multi_chan_rate / n
    if rate_Hz > most_Hz:
        raise DeviceError(
            f"{name}: {rate_Hz:g} Hz on {n} channels is beyond {describe(card)}, which takes "
            f"{most_Hz:g} Hz: lower rate_Hz"
        )
    if rate_Hz < card.ai_min_rate:
        raise DeviceError(
            f"{name}: {describe(card)} takes at least {card.ai_min_rate:g} Hz, the rig asks for "
            f"{rate_Hz:g} Hz: raise rate_Hz"
        )


def _clocks(name: str, plan: CardPlan, card: Any) -> None:
    from nidaqmx.constants import AcquisitionType

    kind = plan.acquisition.kind
    if kind == "single_point":
        modes = [*card.ai_samp_modes] if plan.analog else [*card.ci_samp_modes]
        if AcquisitionType.HW_TIMED_SINGLE_POINT not in modes:
            raise DeviceError(
                f"{name}: {describe(card)} has no hardware-timed single point: choose acquisition "
                "= 'block' or 'on_demand'"
            )
    if plan.encoders and kind != "on_demand":
        if not plan.analog:
            raise DeviceError(
                f"{name}: encoders are clocked by the analogue inputs, and the rig has none on "
                "this card: choose acquisition = 'on_demand'"
            )
        counters = find(name, plan.physical(plan.encoders[0].terminal).split("/")[0])
        if not counters.ci_samp_clk_supported:
            raise DeviceError(
                f"{name}: the counters of {describe(counters)} take no sample clock: choose "
                "acquisition = 'on_demand'"
            )


def check_clock(name: str, asked_Hz: float, made_Hz: float) -> None:
    """Refuse a clock that the card could only make roughly.

    Raises
    ------
    DeviceError
        It is off by more than any clock's own error.
    """
    if abs(made_Hz - asked_Hz) > RATE_TOLERANCE * asked_Hz:
        raise DeviceError(
            f"{name}: the card's clock makes {made_Hz:.6g} Hz of {asked_Hz:.6g} Hz: choose a rate "
            "that divides its time base"
        )
