"""From what a converter measures to what a channel reports: bridges, sensors, custom scales."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from nidaqmx.constants import BridgePhysicalUnits, BridgeUnits, ScaleType

from simdaq import errors
from simdaq.errors import DaqmxError

Scaling = Callable[[Any], Any]

# In newtons, pascals, newton metres (BIPM, NIST SP 811).
SI = {
    BridgePhysicalUnits.NEWTONS: 1.0,
    BridgePhysicalUnits.POUNDS: 4.4482216152605,
    BridgePhysicalUnits.KILOGRAM_FORCE: 9.80665,
    BridgePhysicalUnits.PASCALS: 1.0,
    BridgePhysicalUnits.POUNDS_PER_SQ_INCH: 6894.757293168,
    BridgePhysicalUnits.BAR: 1.0e5,
    BridgePhysicalUnits.NEWTON_METERS: 1.0,
    BridgePhysicalUnits.INCH_OUNCES: 0.00706155181422,
    BridgePhysicalUnits.INCH_POUNDS: 0.1129848290276,
    BridgePhysicalUnits.FOOT_POUNDS: 1.3558179483314,
}
MILLI = BridgeUnits.MILLIVOLTS_PER_VOLT.value


def identity(value: Any) -> Any:
    return value


def polynomial(coefficients: Sequence[float]) -> Scaling:
    """Y = sum of c_k x^k, c_0 first."""
    c = [float(v) for v in coefficients]
    if not c:
        raise DaqmxError(errors.BAD_VALUE, "A polynomial needs coefficients.")

    def scaling(x: Any) -> Any:
        y = c[-1]
        for factor in c[-2::-1]:
            y = y * x + factor
        return y

    return scaling


def table(x: Sequence[float], y: Sequence[float]) -> Scaling:
    """Straight lines between points, level beyond them."""
    if len(x) != len(y) or len(x) < 2:
        raise DaqmxError(errors.BAD_VALUE, "A table needs as many values as points, two or more.")
    order = np.argsort(x)
    xs, ys = np.asarray(x, float)[order], np.asarray(y, float)[order]
    return lambda value: np.interp(value, xs, ys)


def two_points(x: Sequence[float], y: Sequence[float]) -> Scaling:
    """The straight line through two points, beyond them too."""
    if x[1] == x[0]:
        raise DaqmxError(errors.BAD_VALUE, "A line needs two different points.")
    slope = (y[1] - y[0]) / (x[1] - x[0])
    return lambda value: y[0] + slope * (value - x[0])


def bridge(electrical_units: int, curve: Scaling, physical_units: int, units: int) -> Scaling:
    """V/V of a bridge -> channel units through a sensor's curve.

    The curve takes `electrical_units` and gives `physical_units`.
    """
    into = 1e3 if electrical_units == MILLI else 1.0
    same = physical_units == units or units not in {u.value for u in SI}
    out = 1.0 if same else SI[BridgePhysicalUnits(physical_units)] / SI[BridgePhysicalUnits(units)]
    return lambda ratio: out * curve(into * ratio)


@dataclass
class CustomScale:
    """A scale that the user made; `properties` by the package's names.

    Attributes
    ----------
    scaling : what is measured -> scaled value
    """

    name: str
    kind: ScaleType
    scaling: Scaling
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest scaled value that can be written."""
        p = self.properties
        if self.kind == ScaleType.MAP_RANGES:
            return min(_mapped(p)[1]), max(_mapped(p)[1])
        if self.kind == ScaleType.TABLE:
            return min(p["table_scaled_vals"]), max(p["table_scaled_vals"])
        return -np.inf, np.inf

    @property
    def unscaling(self) -> Scaling:
        """Scaled value -> what is put out."""
        p = self.properties
        if self.kind == ScaleType.LINEAR:
            return two_points((p["lin_y_intercept"], p["lin_y_intercept"] + p["lin_slope"]), (0, 1))
        if self.kind == ScaleType.MAP_RANGES:
            pre_scaled, scaled = _mapped(p)
            return two_points(scaled, pre_scaled)
        if self.kind == ScaleType.POLYNOMIAL:
            return polynomial(p["poly_reverse_coeff"])
        return table(p["table_scaled_vals"], p["table_pre_scaled_vals"])


class Scales:
    """All custom scales of a system."""

    def __init__(self) -> None:
        self._scales: dict[str, CustomScale] = {}

    def add(self, name: str, kind: ScaleType, properties: dict[str, Any]) -> None:
        """Make a scale or replace it."""
        if not name:
            raise DaqmxError(errors.BAD_NAME, Custom_Scale_Name=repr(name))
        self._scales[name] = CustomScale(name, kind, _scaling(kind, properties), properties)

    def remove(self, name: str) -> None:
        """Forget a scale."""
        self._scales.pop(name, None)

    def __contains__(self, name: str) -> bool:
        return name in self._scales

    def change(self, name: str, key: str, value: Any) -> None:
        """Set one property."""
        scale = self.get(name)
        self.add(name, scale.kind, {**scale.properties, key: value})

    def get(self, name: str) -> CustomScale:
        """The scale of this name, or DaqmxError."""
        if name not in self._scales:
            raise DaqmxError(errors.NO_SUCH_SCALE, Custom_Scale_Name=name)
        return self._scales[name]


def _mapped(p: dict[str, Any]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Both ranges of a map: before and after scaling."""
    return (
        (p["map_pre_scaled_min"], p["map_pre_scaled_max"]),
        (p["map_scaled_min"], p["map_scaled_max"]),
    )


def _scaling(kind: ScaleType, p: dict[str, Any]) -> Scaling:
    if kind == ScaleType.LINEAR:
        return polynomial([p["lin_y_intercept"], p["lin_slope"]])
    if kind == ScaleType.MAP_RANGES:
        pre_scaled, scaled = _mapped(p)
        line = two_points(pre_scaled, scaled)
        return lambda value: np.clip(line(value), min(scaled), max(scaled))
    if kind == ScaleType.POLYNOMIAL:
        return polynomial(p["poly_forward_coeff"])
    return table(p["table_pre_scaled_vals"], p["table_scaled_vals"])


def reverse(
    forward: Sequence[float], low: float, high: float, n_points: int, order: int
) -> list[float]:
    """Least-squares polynomial of the inverse of a polynomial over [low, high]."""
    if not low < high:
        raise DaqmxError(errors.BAD_VALUE, Minimum_Value=low, Maximum_Value=high)
    x = np.linspace(low, high, max(n_points, 2))
    y = polynomial(forward)(x)
    degree = len(forward) - 1 if order < 0 else order
    return [float(c) for c in np.polynomial.polynomial.polyfit(y, x, degree)]
