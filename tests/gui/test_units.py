"""Units in texts and at axes."""

import math

import pytest

from hil_gui.strip import Strip
from hil_gui.units import si


@pytest.mark.parametrize(
    ("value", "units", "text"),
    [(0.0123, "N", "12.3 mN"), (0.2, "MPa", "0.2 MPa"), (0.02, "mm", "0.02 mm"),
     (0.02, "m²", "0.02 m²"), (0.0005, "1/m", "0.0005 1/m"), (0.5, "degC", "0.5 °C"),
     (0.5, "1", "0.5"), (math.inf, "N", "inf N"), (math.nan, "N", "–")],
)  # fmt: skip
def test_only_a_unit_that_takes_a_prefix_gets_one(value, units, text):
    """0.2 MPa was 200 mMPa, 0.02 m² was 20 mm², and a curvature of 0.0005 1/m was 500 µ1/m."""
    assert si(value, units) == text


@pytest.mark.parametrize(("units", "prefix", "label"), [("MPa", "", "(MPa)"), ("N", "m", "(mN)")])
def test_an_axis_has_a_prefix_where_its_unit_takes_one(units, prefix, label, qtbot):
    strip = Strip("stress", units)
    axis = strip.plot.getAxis("left")
    strip.plot.setYRange(0.0, 0.01)
    assert axis.labelUnitPrefix == prefix
    assert label in axis.labelString()
