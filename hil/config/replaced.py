"""Obsolete configuration keys, removed or renamed; each gives one warning."""

import sys
from collections.abc import Mapping

from hil.platform.terminal import say

#: Old and present names of renamed tables of a rig or an experiment.
TABLES = {"article": "specimen", "surroundings": "ambient"}
#: Limits of a board that its firmware no longer has.
LIMITS = {
    "current_continuous_mA": "has no effect: heat_max_cA2ms with heat_time_constant_ms replaces it "
    "(`hil board limits --from RIG` computes both)",
}
_printed: set[str] = set()


def renamed(table: Mapping[str, object]) -> dict[str, object]:
    """Rename old tables to their present names, unless the present name exists already."""
    old = {key: name for key, name in TABLES.items() if key in table and name not in table}
    return {old.get(key, key): value for key, value in table.items()}


def without_replaced(limits: object) -> object:
    """A board's limits without those that its firmware no longer has."""
    if not isinstance(limits, Mapping):
        return limits
    return {key: value for key, value in limits.items() if key not in LIMITS}


def warn_of_replaced(source: str, table: Mapping[str, object]) -> None:
    """Print a warning, once, for each obsolete key in a file: its place and its replacement."""
    for key in sorted(TABLES.keys() & table.keys()):
        _warn(f"warning: {source}: [{key}] is called [{TABLES[key]}] now: rename it")
    devices = table.get("devices")
    for name, device in devices.items() if isinstance(devices, Mapping) else ():
        limits = device.get("limits") if isinstance(device, Mapping) else None
        for key in LIMITS.keys() & (limits if isinstance(limits, Mapping) else ()):
            _warn(f"warning: {source}: devices.{name}.limits.{key} {LIMITS[key]}")


def _warn(line: str) -> None:
    if line not in _printed:
        _printed.add(line)
        say(line, file=sys.stderr)
