"""Units of columns: found in headers, checked, converted (pint)."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError, missing_extra

if TYPE_CHECKING:
    import pint

# What instruments write and pint reads otherwise: to it C is coulomb, and F is farad.
SPELLED = {"C": "degC", "deg C": "degC", "°C": "degC", "ºC": "degC", "° C": "degC", "K": "kelvin",
           "F": "degF", "deg F": "degF", "°F": "degF", "sec": "s", "secs": "s", "Deg": "degree",
           "Celsius": "degC", "Newton": "N", "Newtons": "N", "Volt": "V", "Volts": "V",
           "Amp": "A", "Amps": "A", "amp": "A", "amps": "A", "Second": "s", "Seconds": "s",
           "Kelvin": "kelvin", "Pascal": "Pa", "Grams": "g",
           "%": "percent", "-": "1", "": "1", "RPM": "rpm", "mV/V": "mV/V"}  # fmt: skip
# In any unit: Ohm in any case, the sign of ohm beside the letter, powers without a sign, torques.
WITHIN = (
    (re.compile(r"(?<![a-z])(Ohms?|OHMS?|ohms)\b"), "ohm"),
    (re.compile(r"([kmM])(Ohms?)\b"), r"\1ohm"),
    (re.compile("\u2126"), "\u03a9"),
    (re.compile(r"([a-zA-Z])([23])\b"), r"\1**\2"),
    (re.compile(r"\b([kmu]?N)(m)\b"), r"\1*\2"),
)
IN_HEADER = re.compile(r"^(?P<name>.*?)\s*[(\[](?P<unit>[^()\[\]]*)[)\]]\s*$")
AT_END = re.compile(
    r"^(?P<name>.+?)(?:\s*/\s*|\s+in\s+|,\s*|_)(?P<unit>[^\s/,_]+)(?P<over>/[^\s/,_]+)?$"
)
SUFFIXES = {"N": "N", "mN": "mN", "kN": "kN", "V": "V", "mV": "mV", "s": "s", "ms": "ms", "m": "m",
            "mm": "mm", "um": "um", "C": "degC", "degC": "degC", "K": "kelvin", "rad": "rad",
            "Pa": "Pa", "kPa": "kPa", "MPa": "MPa", "bar": "bar", "A": "A", "mA": "mA", "W": "W",
            "Ohm": "ohm", "mOhm": "mohm", "kOhm": "kohm", "deg": "degree", "Hz": "Hz", "Nm": "N*m",
            "g": "g", "kg": "kg", "°C": "degC", "%": "percent"}  # fmt: skip


@cache
def _registry() -> pint.UnitRegistry[float]:
    try:
        import pint
    except ImportError:
        raise missing_extra("a unit", "import") from None
    return pint.UnitRegistry(cache_folder=None)


def parsed(unit: str) -> pint.Unit | None:
    """The unit of this text; None if it is no unit."""
    text = SPELLED.get(unit.strip(), unit.strip())
    if len(text) > 40 or (text[:1].isdigit() and text != "1" and not text.startswith("1/")):
        return None
    for pattern, spelled in WITHIN:
        text = pattern.sub(spelled, text)
    try:
        return _registry().parse_units("dimensionless" if text == "1" else text)
    except ConfigError:
        raise
    except Exception:  # pint raises errors of its parser, tokenizer and arithmetic
        return None


def split_header(header: str) -> tuple[str, str]:
    """Name and unit of a header such as `Load (N)`, `Load / N` or `load_N`; unit "" if none."""
    match = IN_HEADER.match(header)
    if match and parsed(match["unit"]) is not None:
        return match["name"], match["unit"].strip()
    match = AT_END.match(header.strip())
    if match and match["unit"] in SUFFIXES:
        unit = SUFFIXES[match["unit"]] + (match["over"] or "")
        if not match["over"] or parsed(unit) is not None:
            return match["name"], unit
    return header, ""


def fits(unit: str, wanted: str) -> bool:
    """Whether a unit has the dimension of another one."""
    source, target = parsed(unit), parsed(wanted)
    return source is not None and target is not None and source.is_compatible_with(target)


def converted(
    values: NDArray[np.float64], unit: str, wanted: str, where: str
) -> NDArray[np.float64]:
    """Values in `unit` as values in `wanted`.

    Raises
    ------
    ConfigError
        The unit is unknown, or has another dimension; `where` names the key.
    """
    source, target = parsed(unit), parsed(wanted)
    if source is None:
        raise ConfigError(f"{where}: unit '{unit}' is unknown: give unit, such as '{wanted}'")
    if target is None:
        raise ConfigError(f"{where}: the rig's unit '{wanted}' is unknown: correct the rig")
    if source == target:
        return values
    if not source.is_compatible_with(target):
        hint = "kgf for kilograms of force" if str(source) in ("kilogram", "gram") else (
            f"one that converts to {wanted}, and scale if it is a raw signal")  # fmt: skip
        raise ConfigError(f"{where}: unit '{unit}' does not fit '{wanted}': give unit, {hint}")
    try:
        magnitudes: NDArray[np.float64] = _registry().Quantity(values, source).to(target).magnitude
    except Exception:  # a difference of temperatures is no temperature
        raise ConfigError(
            f"{where}: unit '{unit}' cannot be converted to '{wanted}': give unit"
        ) from None
    return magnitudes
