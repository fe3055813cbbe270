"""Duties as boards apply them, and the guard of a run whose controller commands them.

Limits are the protocol's (firmware/core/protocol.h): whole 255ths, 0 or at least 16 of them.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.devices.board import protocol
from hil.loop import duty
from hil.loop.channels import RigLayout
from hil.loop.guard import Guard, Limits, names_of
from hil.loop.trip_report import TripReport
from rows import BoundGuard

LEAST = 16 / 255
LIMITS = Limits(cell_on_max_s=0.05, reading_age_max_s=1.0, overruns_max=5, duty_min=LEAST)
PERIOD_S = 0.01


def test_the_smallest_duty_of_the_tests_is_the_protocols():
    assert protocol.DUTY_MIN_PER_255 == 16


def guarded(n_cells=2, limits=LIMITS):
    guard = Guard(limits, n_cells, PERIOD_S)
    row = BoundGuard(guard, n_cells=n_cells, modulates=True)
    assert guard.arm()
    return guard, row


def tick(guard, row, *duties):
    row.commands.duty[:] = duties
    bits = guard.step(0)
    return row.commands.duty.tolist(), row.commands.cells.tolist(), names_of(bits)


@given(st.floats(LEAST, 1.0))
def test_a_duty_is_applied_in_whole_steps_to_half_a_step(asked):
    guard, row = guarded(1)
    [applied], [on], faults = tick(guard, row, asked)
    assert faults == []
    assert on == 1
    assert abs(applied - asked) <= 0.5 / 255 + 1e-12
    assert applied * 255 == pytest.approx(round(applied * 255), abs=1e-12)


@pytest.mark.parametrize(
    "asked", [math.nan, math.inf, -math.inf, -1e-9, 1.0 + 1e-9, 2.0, 255.0, 1e-12, 15.4 / 255]
)
def test_a_duty_that_no_board_accepts_trips_and_switches_everything_off(asked):
    guard, row = guarded()
    assert tick(guard, row, 1.0, 0.5) == ([1.0, pytest.approx(128 / 255)], [1, 1], [])
    assert tick(guard, row, 1.0, asked) == ([0.0, 0.0], [0, 0], ["duty_invalid"])
    assert tick(guard, row, 1.0, 0.5) == ([0.0, 0.0], [0, 0], ["duty_invalid"])  # latched


def test_an_invalid_duty_is_never_applied_while_its_condition_may_last():
    guard, row = guarded(limits=Limits(0.05, 1.0, 5, duty_min=LEAST, hold_s={"duty_invalid": 0.02}))
    assert tick(guard, row, 1.0, math.nan) == ([1.0, 0.0], [1, 0], [])


def test_the_trip_names_the_cell_and_what_was_asked():
    guard, row = guarded()
    tick(guard, row, 0.5, 0.03)
    layout = RigLayout((), (), (), (), 2, cell_names=("a.1", "a.2"))
    [line] = TripReport(LIMITS, layout, PERIOD_S).lines(guard.fault_bits, guard.seen, {})
    assert line == "duty_invalid: a.2 at a duty of 0.03, not 0 nor 0.06275 to 1"


def test_a_cell_at_any_duty_counts_as_on_without_a_break():
    """0.05 s of 0.01 s periods; the board counts in the same way (firmware/core/guard.c)."""
    guard, row = guarded()
    for _ in range(5):
        assert tick(guard, row, LEAST, 0.0)[2] == []
    assert tick(guard, row, LEAST, 0.0)[2] == ["cell_on_too_long"]


def test_cells_at_any_duty_count_as_on_at_once():
    guard, row = guarded(3, Limits(1.0, 1.0, 5, cells_on_max=2, duty_min=LEAST))
    assert tick(guard, row, 0.1, 0.1, 0.0)[2] == []
    assert tick(guard, row, 0.1, 0.1, 0.1) == ([0.0] * 3, [0] * 3, ["too_many_cells_on"])


def test_nothing_is_commanded_before_the_rig_is_armed():
    guard = Guard(LIMITS, 2, PERIOD_S)
    row = BoundGuard(guard, n_cells=2, modulates=True)
    assert tick(guard, row, 1.0, 0.5) == ([0.0, 0.0], [0, 0], [])


def test_an_unknown_duty_keeps_the_last_one():
    known = np.array([0.25, 0.5])
    duty.keep_known(np.array([math.nan, 0.0]), known)
    assert known.tolist() == [0.25, 0.0]


def test_a_duty_that_is_rounded_up_to_the_least_is_valid():
    """A board gets whole 255ths: 15.6 of them are sent as 16."""
    guard, row = guarded()
    assert tick(guard, row, 15.6 / 255, 15.4 / 255) == ([0.0, 0.0], [0, 0], ["duty_invalid"])
    guard, row = guarded()
    assert tick(guard, row, 15.6 / 255, 0.0) == ([16 / 255, 0.0], [1, 0], [])
