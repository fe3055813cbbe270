"""Functions of NI-DAQmx that the model answers, by the package's name for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hil.devices.simdaq import control, create_analog, create_counter, create_digital

MODULES = (control, create_analog, create_counter, create_digital)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function
    for module in MODULES
    for name, function in vars(module).items()
    if callable(function)
    and not name.startswith("_")
    and getattr(function, "__module__", "") == module.__name__
    and not isinstance(function, type)
}
