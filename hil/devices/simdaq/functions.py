"""Functions of NI-DAQmx that the model answers, by the package's name for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hil.devices.simdaq import (
    control,
    create_analog,
    create_counter,
    create_digital,
    package_api,
    watchdog,
)

MODULES = (control, create_analog, create_counter, create_digital, watchdog)
KNOWN = {function.method for function in package_api.installed().functions}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if name in KNOWN and getattr(function, "__module__", "") == module.__name__
}
