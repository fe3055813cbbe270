"""Values as text."""

from math import floor, isnan, log10

_PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_PLAIN = {"1": "", "degC": " °C", "%": " %"}
"""Units that take no prefix."""


def si(value: float | None, units: str, digits: int = 4) -> str:
    """Format a value with an SI prefix: `12.3 mN`; NaN gives a dash."""
    if value is None or isnan(value):
        return "–"
    if units in _PLAIN:
        return f"{value:.{digits}g}{_PLAIN[units]}"
    if value == 0.0:
        return f"0 {units}"
    # Round before choosing the prefix: 0.9999 mN becomes 1 mN and not 1000 µN.
    rounded = round(value, digits - 1 - floor(log10(abs(value))))
    for scale, prefix in _PREFIXES:
        if abs(rounded) >= scale * (1.0 - 1e-9):
            return f"{rounded / scale:.{digits}g} {prefix}{units}"
    return f"0 {units}"
