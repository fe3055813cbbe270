"""Values as text."""

from math import isnan


def si(value: float, units: str, digits: int = 4) -> str:
    """A value with an SI prefix: `12.3 mN`; a dash where there is none."""
    if value is None or isnan(value):
        return "–"
    if units in ("1", "", "degC", "%"):
        return f"{value:.{digits}g} {units.replace('degC', '°C').replace('1', '')}".strip()
    if value == 0.0:
        return f"0 {units}"
    for scale, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")):
        if abs(value) >= scale:
            return f"{value / scale:.{digits}g} {prefix}{units}"
    return f"0 {units}"
