"""Functions of NI-DAQmx that the model answers, by the package's name for them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from simdaq import (
    bridge_calibration,
    calibration,
    control,
    create_analog,
    create_counter,
    create_digital,
    create_output,
    create_power,
    create_rosette,
    create_scale,
    create_teds,
    create_watchdog,
    handshaking,
    power_up,
    storage,
    teds,
    triggers,
)

MODULES = (
    bridge_calibration, calibration, control, create_analog, create_counter, create_digital,
    create_output, create_power, create_rosette, create_scale, create_teds,
    create_watchdog, handshaking, power_up, storage, teds, triggers,
)  # fmt: skip

# All that these modules define and do not keep for themselves.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if isinstance(function, FunctionType)
    and function.__module__ == module.__name__
    and not name.startswith("_")
}
