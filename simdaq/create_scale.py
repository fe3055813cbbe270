"""The DAQmxCreate...Scale functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nidaqmx.constants import ScaleType

from simdaq import scales
from simdaq.system import System


def create_lin_scale(
    system: System, *, name: str, slope: float, y_intercept: float, pre_scaled_units: int,
    scaled_units: str,
) -> None:  # fmt: skip
    """A straight line."""
    system.scales.add(
        name, ScaleType.LINEAR,
        {"lin_slope": slope, "lin_y_intercept": y_intercept,
         "pre_scaled_units": pre_scaled_units, "scaled_units": scaled_units},
    )  # fmt: skip


def create_map_scale(
    system: System, *, name: str, prescaled_min: float, prescaled_max: float, scaled_min: float,
    scaled_max: float, pre_scaled_units: int, scaled_units: str,
) -> None:  # fmt: skip
    """A range onto a range."""
    system.scales.add(
        name, ScaleType.MAP_RANGES,
        {"map_pre_scaled_min": prescaled_min, "map_pre_scaled_max": prescaled_max,
         "map_scaled_min": scaled_min, "map_scaled_max": scaled_max,
         "pre_scaled_units": pre_scaled_units, "scaled_units": scaled_units},
    )  # fmt: skip


def create_polynomial_scale(
    system: System, *, name: str, forward_coeffs: Sequence[float],
    reverse_coeffs: Sequence[float], pre_scaled_units: int, scaled_units: str,
) -> None:  # fmt: skip
    """A polynomial, constant term first."""
    system.scales.add(
        name, ScaleType.POLYNOMIAL,
        {"poly_forward_coeff": [float(c) for c in forward_coeffs],
         "poly_reverse_coeff": [float(c) for c in reverse_coeffs],
         "pre_scaled_units": pre_scaled_units, "scaled_units": scaled_units},
    )  # fmt: skip


def create_table_scale(
    system: System, *, name: str, prescaled_vals: Sequence[float], scaled_vals: Sequence[float],
    pre_scaled_units: int, scaled_units: str,
) -> None:  # fmt: skip
    """Points and straight lines between them."""
    system.scales.add(
        name, ScaleType.TABLE,
        {"table_pre_scaled_vals": [float(v) for v in prescaled_vals],
         "table_scaled_vals": [float(v) for v in scaled_vals],
         "pre_scaled_units": pre_scaled_units, "scaled_units": scaled_units},
    )  # fmt: skip


def calculate_reverse_poly_coeff(
    system: System, *, forward_coeffs: Sequence[float], min_val_x: float, max_val_x: float,
    num_points_to_compute: int, reverse_poly_order: int, **_: Any,
) -> list[float]:  # fmt: skip
    """Coefficients of the inverse."""
    del system
    return scales.reverse(
        forward_coeffs, min_val_x, max_val_x, num_points_to_compute, reverse_poly_order
    )
