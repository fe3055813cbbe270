"""Checks of the inputs before a run: rails, zero, noise, shunt, e-stop."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hil.calibration.signal_chain import TROUBLES, Chain, check_zero
from hil.devices.nidaq.channels import AnalogInput, CardPlan, Line
from hil.devices.nidaq.errors import said_by
from hil.devices.nidaq.inputs import Inputs
from hil.devices.nidaq.outputs import Outputs
from hil.errors import DeviceError
from hil.loop.stages import Message


def look(
    name: str, plan: CardPlan, inputs: Inputs, outputs: Outputs
) -> tuple[list[Chain], list[Message]]:
    """Check the inputs; returns the channels' chains with tared zeros, and messages.

    Raises
    ------
    DeviceError
        A channel is at its rail or dead, or a shunt does not change it by the expected amount.
    """
    chains, messages = [c.chain for c in plan.analog], []
    samples = inputs.sampled(plan.before_s)
    _refuse_troubles(name, plan, inputs, samples)
    for i, channel in enumerate(plan.analog):
        baseline = channel.baseline
        zero_check = check_zero(
            samples[i],
            channel.chain,
            zero_ratio=baseline.zero_ratio,
            zero_tolerance_N=baseline.zero_tolerance,
            noise_rms=baseline.noise_rms_raw,
        )
        messages += [Message("warning", f"{channel.name}: {text}") for text in zero_check.messages]
        if channel.tare:
            chains[i] = channel.chain.zeroed(zero_check.zero)
            text = f"{channel.name}: zero taken at {zero_check.zero:.6g} {channel.unit}"
            messages.append(Message("info", text, "zero", chains[i].zero_ratio, channel.name))
        if channel.shunt_line:
            messages.append(_check_shunt(name, plan, inputs, outputs, i, zero_check.zero))
    return chains, messages


def _refuse_troubles(
    name: str, plan: CardPlan, inputs: Inputs, samples: NDArray[np.float64]
) -> None:
    if not plan.analog:
        return
    inputs.filter.take(np.ascontiguousarray(samples), samples.shape[1])
    for i, channel in enumerate(plan.analog):
        for bit, trouble in TROUBLES.items():
            if inputs.filter.troubles[i] & bit:
                raise DeviceError(
                    f"{name}: '{channel.name}' on {channel.terminal} is {in_words(trouble)} "
                    f"({samples[i, -1]:.4g} {channel.unit}): is a wire open, the conditioner off, "
                    "the force beyond its range?"
                )


def in_words(trouble: str) -> str:
    """A trouble's name in words."""
    return {"at_rail": "at its rail"}.get(trouble, trouble.replace("_", " "))


def _check_shunt(
    name: str, plan: CardPlan, inputs: Inputs, outputs: Outputs, i: int, zero: float
) -> Message:
    """Check wires, excitation and gain by a known change of the bridge.

    It does not check the transducer. Source: Interface Inc., Shunt Calibration for Dummies.
    """
    channel: AnalogInput = plan.analog[i]
    baseline = channel.baseline
    if baseline.shunt_ratio is None or baseline.shunt_tolerance is None:
        return Message("warning", f"{channel.name}: its record has no shunt figure to compare with")
    with said_by(name, f"shunt of '{channel.name}'"), outputs.shunt(channel):
        shunted = float(inputs.sampled(plan.before_s)[i].mean())
    change = channel.chain.ratio(shunted) - channel.chain.ratio(zero)
    if abs(change - baseline.shunt_ratio) > baseline.shunt_tolerance:
        raise DeviceError(
            f"{name}: the shunt changes '{channel.name}' by {change:.4g} mV/V, "
            f"{baseline.shunt_ratio:g} +/- {baseline.shunt_tolerance:g} at commissioning: look at "
            "wires, excitation and gain"
        )
    return Message(
        "info", f"{channel.name}: the shunt changes it by {change:.4g} mV/V, as expected"
    )


def refuse_open_estop(name: str, lines: Sequence[Line], levels: NDArray[np.bool_]) -> None:
    """Refuse to start with an open e-stop loop."""
    for line, level in zip(lines, levels, strict=True):
        if line.kind == "estop" and not level:
            raise DeviceError(
                f"{name}: the e-stop loop '{line.name}' on {line.terminal} is open: close it, then "
                "run again"
            )
