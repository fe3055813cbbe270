"""Values as text."""

from math import floor, isinf, isnan, log10

_PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_PREFIXED = frozenset(
    ("N", "V", "A", "m", "s", "Pa", "Ohm", "rad", "W", "J", "Hz", "N m", "m/s", "rad/s")
)
"""Units that take a prefix; of the others some have one, or a power, such as MPa, mm, 1/m, m²."""
_WORDS = {"1": "", "degC": "°C"}


def takes_prefix(units: str) -> bool:
    """Whether a prefix before this unit makes another one."""
    return units in _PREFIXED


def written(units: str) -> str:
    """A unit as people write it; empty for a bare number."""
    return _WORDS.get(units, units)


def si(value: float | None, units: str, digits: int = 4) -> str:
    """Format a value with an SI prefix where its unit takes one: `12.3 mN`; NaN gives a dash."""
    if value is None or isnan(value):
        return "–"
    if units not in _PREFIXED or isinf(value):
        return f"{value:.{digits}g} {written(units)}".rstrip()
    if value == 0.0:
        return f"0 {units}"
    # Round before choosing the prefix: 0.9999 mN becomes 1 mN and not 1000 µN.
    rounded = round(value, digits - 1 - floor(log10(abs(value))))
    for scale, prefix in _PREFIXES:
        if abs(rounded) >= scale * (1.0 - 1e-9):
            return f"{rounded / scale:.{digits}g} {prefix}{units}"
    return f"0 {units}"
