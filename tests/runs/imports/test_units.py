"""Units by definition: the inch is 25.4 mm, the kilogram-force 9.80665 N (SI Brochure, NIST)."""

import sys

import numpy as np
import pytest

from hil.errors import ConfigError
from hil.runs.imports import units
from hil.runs.imports.units import converted, split_header

DEFINED = [
    (1.0, "in", "m", 0.0254),
    (1.0, "lbf", "N", 4.4482216152605),
    (1.0, "kgf", "N", 9.80665),
    (2.5, "kN", "N", 2500.0),
    (0.001, "h", "s", 3.6),
    (25.0, "C", "degC", 25.0),
    (25.0, "°C", "degC", 25.0),
    (300.0, "K", "degC", 26.85),
    (1.5, "Ohm", "ohm", 1.5),
    (1.5, "Newtons", "mN", 1500.0),
    (1.5, "Amps", "mA", 1500.0),
    (212.0, "°F", "degC", 100.0),
    (50.0, "%", "1", 0.5),
    (180.0, "deg", "rad", np.pi),
    (3.0, "mm/mm", "1", 3.0),
    (1.5, "kOhm", "Ohm", 1500.0),
    (1.5, "m\u2126", "ohm", 0.0015),
    (2.0, "Ohm/m", "mohm/mm", 2.0),
    (2.0, "Nm", "N*m", 2.0),
    (2.0, "cm2", "m**2", 2e-4),
    (4.0, "1/s", "Hz", 4.0),
]


@pytest.mark.parametrize(("value", "unit", "wanted", "expected"), DEFINED)
def test_values_are_converted_by_the_definitions_of_units(value, unit, wanted, expected):
    found = converted(np.array([value]), unit, wanted, "key")
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("unit", "wanted", "expected"),
    [
        ("V", "N", "key: unit 'V' does not fit 'N'"),
        ("kg", "N", "kgf for kilograms of force"),
        ("furlonks", "m", "key: unit 'furlonks' is unknown"),
        ("", "N", "does not fit 'N'"),
    ],
)
def test_a_unit_that_does_not_fit_is_named_with_its_remedy(unit, wanted, expected):
    with pytest.raises(ConfigError, match=expected):
        converted(np.zeros(2), unit, wanted, "key")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Load (N)", ("Load", "N")),
        ("Kraft [kN]", ("Kraft", "kN")),
        ("force_N", ("force", "N")),
        ("v_mm/s", ("v", "mm/s")),
        ("rate_N/m2", ("rate", "N/m2")),
        ("Temperature (chamber)", ("Temperature (chamber)", "")),
        ("gate 1", ("gate 1", "")),
    ],
)
def test_the_unit_is_taken_from_a_header_only_if_it_is_one(header, expected):
    assert split_header(header) == expected


def test_without_pint_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pint", None)
    units._registry.cache_clear()
    with pytest.raises(ConfigError, match="scripts/setup import"):
        converted(np.zeros(1), "mN", "N", "key")
    monkeypatch.undo()
    units._registry.cache_clear()


@pytest.mark.parametrize(
    "header", ["Kraft_N", "Kraft [N]", "Kraft (N)", "Kraft / N", "Kraft in N", "Kraft, N"]
)
def test_a_header_states_its_unit_in_each_usual_way(header):
    assert split_header(header) == ("Kraft", "N")


@pytest.mark.parametrize("header", ["dF/dt", "Dev0/ai0", "x_1", "muscle.1", "Load N"])
def test_a_name_that_states_no_unit_has_none(header):
    assert split_header(header) == (header, "")


def test_a_difference_of_temperatures_is_no_temperature():
    with pytest.raises(ConfigError, match="'delta_degC' cannot be converted to 'degC'"):
        converted(np.ones(1), "delta_degC", "degC", "key")
