"""Text of a board's latched faults: which cell, its value, and the board's limit."""

import math
from collections.abc import Mapping, Sequence

from hil.devices.board import protocol
from hil.loop import interlocks

# What of a cell a fault is about; a fault that is not named here has no value.
CURRENT, TEMPERATURE, ON_TIME = "current_A", "temperature_C", "on_s"
WHEN_OFF = "current_when_off"  # of the faults of currents the one that lasts with gates off
VALUES = {
    "cell_on_too_long": ON_TIME,
    "cell_energy_high": CURRENT,
    "current_high": CURRENT,
    "current_low": CURRENT,
    WHEN_OFF: CURRENT,
    "temperature_high": TEMPERATURE,
    "temperature_range": TEMPERATURE,
}
SUPPLY_STUCK = "the cells' supply stays on though it is cut: a relay is welded; switch it off"
_PLAIN = {
    "host_silent": "no valid command",
    "estop_open": "its e-stop loop is open",
    "scan_stale": "its own readings are too old",
    "scan_untrue": "its multiplexers pass on wrong inputs, or its supply is not 5 V",
    "limits_corrupt": "its table of limits is corrupt",
    "memory_corrupt": "its program or its memory has changed: reset it; if it comes back, flash it",
    "supply_stuck": SUPPLY_STUCK,
}
_PHRASES = {CURRENT: "at {:.3g} A", TEMPERATURE: "at {:.3g} degC", ON_TIME: "on for {:.4g} s"}
# Suffix of a limit's name, factor to the unit that people read, and that unit.
_UNITS = (
    ("_cA2ms", 1e-7, "A2 s"),
    ("_mA", 1e-3, "A"),
    ("_cC", 1e-2, "degC"),
    ("_ms", 1e-3, "s"),
)
COUNTS = 1024  # of a board's converter
_KEYS = {row.name: row.key for row in interlocks.BOARD}
_CAUSES = {row.name: f"{row.signal} {row.condition}" for row in interlocks.BOARD}


def words_of(
    faults: Sequence[str],
    cells: Sequence[str],
    limits: Mapping[str, int],
    values: Mapping[str, Mapping[str, float]],
) -> list[str]:
    """A phrase a fault, such as `current_high: a.1 at 1.5 A, limit 1.2 A (current_max_mA)`.

    Parameters
    ----------
    faults : names of what the board has latched, the first cause first
    cells : names of the affected cells
    limits : its table
    values : `current_A`, `temperature_C` and `on_s` by the name of a cell, when it tripped
    """
    return [_phrase(fault, cells, limits, values) for fault in faults]


def _phrase(
    fault: str,
    cells: Sequence[str],
    limits: Mapping[str, int],
    values: Mapping[str, Mapping[str, float]],
) -> str:
    keys = [key for key in _keys_of(fault) if key in limits]
    allowed = ", ".join(f"{level(key, limits)} ({key})" for key in keys)
    limit = f", limit{'s' if len(keys) > 1 else ''} {allowed}" if keys else ""
    if fault == "too_many_cells_on":
        who = f"{len(cells)} cells commanded on"
    elif fault in VALUES and cells:
        who = ", ".join(_cell(cell, fault, values) for cell in cells)
    else:
        who = _PLAIN.get(fault) or ", ".join(cells) or _CAUSES[fault]
    return f"{fault}: {who}{limit}"


def _cell(cell: str, fault: str, values: Mapping[str, Mapping[str, float]]) -> str:
    quantity = VALUES[fault]
    value = values.get(quantity, {}).get(cell, math.nan)
    unknown = math.isnan(value) or (quantity == ON_TIME and value == 0.0)  # off since
    return cell if unknown else f"{cell} {_PHRASES[quantity].format(value)}"


def _keys_of(fault: str) -> list[str]:
    """The limits that a row names; `x_min, _max` are two of one stem."""
    keys: list[str] = []
    for key in _KEYS.get(fault, "").split(", "):
        stem = keys[0].rpartition("_")[0] if keys and key.startswith("_") else ""
        keys.append(stem + key)
    return keys


def level(key: str, limits: Mapping[str, int]) -> str:
    """A limit of the board's table in the unit that people read."""
    value = limits[key]
    if key in ("temperature_counts_min", "temperature_counts_max"):
        above_zero_cC = value * limits["temperature_full_scale_cC"] / COUNTS
        return f"{1e-2 * (above_zero_cC + limits['temperature_zero_cC']):.4g} degC"
    for suffix, factor, unit in _UNITS:
        if key.endswith(suffix):
            return f"{factor * value:.4g} {unit}"
    return f"{value}"


def fault_order(first_bits: int, bits: int) -> list[str]:
    """Names of latched faults, the first cause first."""
    return [*protocol.fault_names(first_bits), *protocol.fault_names(bits & ~first_bits)]
