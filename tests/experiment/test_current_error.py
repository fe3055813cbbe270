"""How far too low a board may read a current: by hand from data sheets, and from the firmware."""

import re
from dataclasses import replace
from math import floor, sqrt

import pytest

from hil.devices.board import protocol
from hil.experiment.board_limits import leak_A
from hil.experiment.current_error import catalogue, reading_error, unnoticed_5V_error
from hil.experiment.load import load_rig
from hil.mechanics.sma.board_heat import SENSOR_COUNTS
from hil.mechanics.sma.limits import Thermal, peak

RIGS = ("wires4", "stage", "isotonic", "spring_bias")


def test_the_5_V_may_be_as_far_off_as_the_check_of_the_firmware_leaves_unnoticed(pytestconfig):
    """LM4040A: 0.1 % and 100 ppm/K for 40 K; the converter: 2 counts; of 1024 x 4.096 / 5."""
    guard_h = (pytestconfig.rootpath / "firmware/core/guard.h").read_text()
    allowed = int(re.search(r"GUARD_REFERENCE_COUNTS = (\d+)", guard_h)[1])
    own = sqrt((838.86 * 0.001) ** 2 + (838.86 * 0.004) ** 2 + 2.0**2)
    assert unnoticed_5V_error() == pytest.approx((allowed + own) / 838.86, rel=1e-4)
    # the firmware's own sum for a sound board stays within what it allows: the regulator 1.2 %
    assert sqrt((838.86 * 0.012) ** 2 + own**2 + 0.5**2) < allowed


def test_a_sensor_ends_where_its_amplifier_ends():
    """30 mV below 5 V, which may be 16 counts of 838.86 low; the converter's two counts."""
    least_V = 5.0 * (1.0 - unnoticed_5V_error())
    shown = 1024.0 * (1.0 - catalogue()["sense"]["swing_to_supply_V"] / least_V)
    assert floor(shown - catalogue()["chip"]["converter_counts"]) == SENSOR_COUNTS


@pytest.mark.parametrize(
    ("full_A", "offset_mA"), [(2.0, 3.8), (1.0, 1.9), (0.5, 0.95)]
)  # 190 uV over 50, 100 and 200 mOhm
def test_a_reading_is_too_low_by_gain_and_shunt_5_V_and_offset(full_A, offset_mA):
    """Gain 1 %, shunt 1 % and 75 ppm/K for 40 K, as a root of squares; the others in full."""
    error = reading_error(catalogue()["sense"], full_A, 0.2)
    shared = sqrt(0.01**2 + 0.01**2 + 0.003**2) + unnoticed_5V_error()
    assert error == pytest.approx(shared + 1e-3 * offset_mA / 0.2, rel=1e-6)


def test_a_current_as_small_as_the_offset_is_not_read_at_all_and_leaves_no_wire_protected():
    for current_A in (0.003, 0.0):  # a wire so long that it draws nothing
        assert reading_error(catalogue()["sense"], 2.0, current_A) == 0.99


def test_the_largest_current_of_a_cell_that_is_off_is_what_is_read_as_the_limit():
    """20 mA, and below a milliamp and a count that the board cuts off; its error is in full."""
    for full_A, offset_A in ((2.0, 0.0038), (1.0, 0.0019)):
        table = protocol.default_limits() | {"current_full_scale_mA": round(1e3 * full_A)}
        most_A = leak_A(catalogue()["sense"], table)
        read_A = most_A * (1.0 - reading_error(catalogue()["sense"], full_A, most_A))
        assert read_A == pytest.approx(0.021 + full_A / 1024)
        shared = sqrt(0.01**2 + 0.01**2 + 0.003**2) + unnoticed_5V_error()
        assert most_A == pytest.approx((0.021 + full_A / 1024 + offset_A) / (1.0 - shared))


@pytest.mark.parametrize("rig", RIGS)
def test_a_bundled_board_protects_its_wires_with_the_error_of_its_bill(rig, configs):
    """8 V less 3 % over 50.4 Ohm are 154 mA, 2.2 V over 12.6 Ohm 169 mA."""
    (board,) = load_rig(configs / rig / "rig.toml").protections
    least_A = 0.97 * (8.0 / 50.4 if rig == "wires4" else 2.2 / 12.6)
    full_A = 1e-3 * board.limits["current_full_scale_mA"]
    error = reading_error(catalogue()["sense"], full_A, least_A)
    assert board.bench.current_error == pytest.approx(error)
    thermal = Thermal.of(board.limits)
    assert all(p.protected for p in board.peaks())
    # 3 %, which was assumed once, makes the same table look cooler than it is
    once = replace(board.bench, current_error=0.03)
    assert all(peak(p.cell, thermal, once).worst_C < p.worst_C - 1.0 for p in board.peaks())


def test_another_sensor_has_another_error():
    (board,) = load_rig("configs/wires4/rig.toml").protections
    coarse = board.with_full_scale(2000)
    assert coarse.bench.current_error - board.bench.current_error == pytest.approx(
        0.0019 / (0.97 * 8.0 / 50.4), rel=1e-3
    )
    assert coarse.limits["current_full_scale_mA"] == 2000
