import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.guard import CAUSES, FAULTS, Guard, Limits, names_of

LIMITS = Limits(force_max_N=9.0, cell_on_max_s=0.05, reading_age_max_s=0.02, overruns_max=5)
PERIOD_S = 0.01
N_ON_MAX = 5  # 0.05 s of 0.01 s periods


def tick(guard, *, forces=(0.0,), valid=None, ages=(0.0,), overruns=0, cells=(0, 0), periods=1):
    """One step; the cells that come out, and the fault bits."""
    command = np.array(cells, dtype=np.uint8)
    there = np.ones(len(forces), dtype=bool) if valid is None else np.array(valid)
    bits = guard.step(
        np.array(forces, dtype=float),
        there,
        np.array(ages, dtype=float),
        overruns,
        command,
        periods,
    )
    return command.tolist(), names_of(bits)


def fresh():
    return Guard(LIMITS, 2, PERIOD_S)


def sweep(limit, relative=1e-3, n=2001):
    """Values close about a limit, its two floating-point neighbours included."""
    around = limit * np.linspace(1.0 - relative, 1.0 + relative, n)
    edge = [limit, math.nextafter(limit, math.inf), math.nextafter(limit, -math.inf)]
    return [*around, *edge]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("channel", [0, 1])
def test_force_trips_exactly_beyond_its_limit_in_either_direction(sign, channel):
    for force in sweep(LIMITS.force_max_N):
        forces = [0.0, 0.0]
        forces[channel] = sign * force
        cells, faults = tick(fresh(), forces=forces, cells=(1, 0))
        beyond = force > 9.0
        assert faults == (["force_high"] if beyond else [])
        assert cells == ([0, 0] if beyond else [1, 0])


@pytest.mark.parametrize("force", [math.inf, -math.inf, 1e308])
def test_a_force_without_end_trips(force):
    assert tick(fresh(), forces=(force,), cells=(1, 1)) == ([0, 0], ["force_high"])


@pytest.mark.parametrize("device", [0, 1, 2])
def test_age_trips_exactly_beyond_its_limit(device):
    for age in sweep(LIMITS.reading_age_max_s):
        ages = [0.0, 0.0, 0.0]
        ages[device] = age
        cells, faults = tick(fresh(), ages=ages, cells=(1, 0))
        assert faults == (["reading_stale"] if age > 0.02 else [])
        assert cells == ([0, 0] if age > 0.02 else [1, 0])


def test_an_age_that_is_not_a_number_is_stale():
    assert tick(fresh(), ages=(math.nan,), cells=(1, 0)) == ([0, 0], ["reading_stale"])


def test_a_reading_that_is_not_a_number_trips_but_a_missing_one_waits_for_its_age():
    assert tick(fresh(), forces=(math.nan,), cells=(1, 0)) == ([0, 0], ["force_nan"])
    assert tick(fresh(), forces=(math.nan,), valid=(False,), cells=(1, 0)) == ([1, 0], [])
    assert tick(fresh(), forces=(99.0, 0.0), valid=(False, True)) == ([0, 0], [])


def test_missed_periods_trip_from_their_number_on():
    for overruns in range(20):
        cells, faults = tick(fresh(), overruns=overruns, cells=(0, 1))
        assert faults == (["loop_late"] if overruns >= 5 else [])
        assert cells == ([0, 0] if overruns >= 5 else [0, 1])


@pytest.mark.parametrize("cell", [0, 1])
def test_a_cell_may_be_on_for_its_time_and_not_a_tick_longer(cell):
    guard = fresh()
    command = [0, 0]
    command[cell] = 1
    for _ in range(N_ON_MAX):
        assert tick(guard, cells=command) == (command, [])
    assert tick(guard, cells=command) == ([0, 0], ["cell_on_too_long"])


def test_time_on_is_counted_for_every_cell_and_starts_again_after_a_break():
    guard = fresh()
    for k in range(100):
        command = [1, 0] if k % 6 != 5 else [0, 1]
        assert tick(guard, cells=command) == (command, [])


def test_time_on_goes_on_while_ticks_are_missed():
    guard = fresh()
    assert tick(guard, cells=(1, 0)) == ([1, 0], [])
    assert tick(guard, cells=(1, 0), periods=4) == ([1, 0], [])
    assert tick(guard, cells=(1, 0)) == ([0, 0], ["cell_on_too_long"])
    guard = fresh()
    assert tick(guard, cells=(1, 0)) == ([1, 0], [])
    assert tick(guard, cells=(1, 0), periods=5) == ([0, 0], ["cell_on_too_long"])


def test_periods_missed_before_a_cell_is_switched_on_do_not_count():
    guard = fresh()
    assert tick(guard, cells=(0, 0)) == ([0, 0], [])
    assert tick(guard, cells=(1, 0), periods=50) == ([1, 0], [])


@pytest.mark.parametrize(
    ("cell_on_max_s", "period_s", "n"),
    [(10.0, 0.001, 10000), (0.3, 0.1, 3), (20.0, 1e-4, 200000), (0.0015, 0.001, 1)],
)
def test_no_rounding_of_periods_shortens_or_lengthens_the_time_on(cell_on_max_s, period_s, n):
    guard = Guard(Limits(9.0, cell_on_max_s, 1.0, 9), 1, period_s)
    steps = (guard.step, np.zeros(1), np.ones(1, dtype=bool), np.zeros(1))
    step, *readings = steps
    for _ in range(n):
        assert step(*readings, 0, np.ones(1, dtype=np.uint8)) == 0
    assert names_of(step(*readings, 0, np.ones(1, dtype=np.uint8))) == ["cell_on_too_long"]


def test_every_fault_of_one_tick_is_named_and_stays():
    guard = fresh()
    bad = {"forces": (99.0, math.nan), "ages": (1.0,), "overruns": 9, "cells": (1, 1)}
    wanted = ["force_high", "force_nan", "reading_stale", "loop_late"]
    assert tick(guard, **bad) == ([0, 0], wanted)
    for _ in range(10):
        assert tick(guard, cells=(1, 1)) == ([0, 0], wanted)
    guard.trip(1 << FAULTS.index("recorder_dead"))
    assert names_of(guard.fault_bits) == [*wanted, "recorder_dead"]
    assert names_of(guard.first_bits) == wanted


def test_a_trip_from_outside_turns_the_next_command_off():
    guard = fresh()
    guard.trip(1 << FAULTS.index("device_failed"))
    assert tick(guard, cells=(1, 1)) == ([0, 0], ["device_failed"])


def test_every_fault_has_a_cause_for_people():
    assert set(CAUSES) == set(FAULTS)


ticks = st.lists(
    st.fixed_dictionaries(
        {
            "forces": st.tuples(
                st.one_of(st.floats(-9.5, 9.5), st.just(math.nan), st.floats(8.9, 9.1))
            ),
            "valid": st.tuples(st.booleans()),
            "ages": st.tuples(st.floats(0.0, 0.021)),
            "overruns": st.integers(0, 5),
            "cells": st.tuples(*[st.integers(0, 1)] * 2),
        }
    )
    | st.fixed_dictionaries({"cells": st.tuples(*[st.sampled_from([0, 1, 1, 1, 255])] * 2)}),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(ticks)
def test_no_sequence_keeps_a_cell_on_too_long_or_passes_a_trip(sequence):
    guard = fresh()
    on = [0, 0]
    tripped = False
    for given_tick in sequence:
        cells, faults = tick(guard, **given_tick)
        assert not (tripped and not faults)
        tripped = tripped or bool(faults)
        if tripped:
            assert cells == [0, 0]
        else:
            assert cells == list(given_tick["cells"])
        on = [count + 1 if lit else 0 for count, lit in zip(on, cells, strict=True)]
        assert max(on) <= N_ON_MAX
