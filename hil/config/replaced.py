"""Obsolete configuration keys and their replacements: removed, with one warning."""

import sys
from collections.abc import Mapping
from typing import Any

from hil.platform.terminal import say

#: Limits of a board that its firmware no longer has.
LIMITS = {
    "current_continuous_mA": "has no effect: heat_max_cA2ms with heat_time_constant_ms replaces it "
    "(`hil board limits --from RIG` computes both)",
}
_said: set[str] = set()


def without_replaced(limits: Any) -> Any:
    """A board's limits, those left out that its firmware no longer has."""
    if not isinstance(limits, Mapping):
        return limits
    return {key: value for key, value in limits.items() if key not in LIMITS}


def warn_of_replaced(source: str, table: Mapping[str, Any]) -> None:
    """Say of each such key in a file, once, where it stands and what replaces it."""
    devices = table.get("devices")
    for name, device in devices.items() if isinstance(devices, Mapping) else ():
        limits = device.get("limits") if isinstance(device, Mapping) else None
        for key in LIMITS.keys() & (limits if isinstance(limits, Mapping) else ()):
            line = f"warning: {source}: devices.{name}.limits.{key} {LIMITS[key]}"
            if line not in _said:
                _said.add(line)
                say(line, file=sys.stderr)
