import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.loop.channels import RigLayout
from hil.loop.frame import Column
from hil.loop.guard import CAUSES, FAULTS, CellHeat, Envelope, Guard, Limits, SignalLimits, names_of
from rows import BoundGuard, row_of

FORCE_MAX_N = 9.0
FORCE = SignalLimits(-FORCE_MAX_N, FORCE_MAX_N, is_force=True)
LIMITS = Limits(cell_on_max_s=0.05, reading_age_max_s=0.02, overruns_max=5, signals=(FORCE, FORCE))
PERIOD_S = 0.01
N_ON_MAX = 5  # 0.05 s of 0.01 s periods


def tick(
    guard,
    *,
    forces=(0.0,),
    valid=None,
    ages=(0.0,),
    overruns=0,
    cells=(0, 0),
    periods=1,
    board_faults=(0,),
    supply_faults=(0,),
):
    """One step; the cells that come out, and the fault bits."""
    boards = [f"b{i}" for i in range(len(board_faults))]
    supplies = [f"s{i}" for i in range(len(supply_faults))]
    devices = [f"d{i}" for i in range(len(ages))]
    row = BoundGuard(guard, 2, devices, boards, supplies, n_cells=len(cells))
    row.readings.measured[: len(forces)] = forces
    if valid is not None:
        row.set_valid([*valid, *[True] * (2 - len(valid))])
    for name, age_s in zip(devices, ages, strict=True):
        row.set(f"{name}_age_s", age_s)
    for name, bits in zip([*boards, *supplies], [*board_faults, *supply_faults], strict=True):
        row.set_bits(f"{name}_fault_bits", bits)
    row.commands.cells[:] = cells
    bits = guard.step(overruns, periods)
    return row.commands.cells.tolist(), names_of(bits)


def armed(*limits, **more):
    guard = Guard(*limits, **more)
    assert guard.arm()
    return guard


def fresh():
    return armed(LIMITS, 2, PERIOD_S)


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0, []),
        (1, ["supply_silent"]),
        (2, ["supply_wrong"]),
        (4, ["supply_not_off"]),
        (5, ["supply_silent", "supply_not_off"]),
    ],
)
def test_what_is_wrong_with_a_supply_trips_by_its_name(bits, names):
    cells, faults = tick(fresh(), cells=(1, 1), supply_faults=(bits,))
    assert faults == names
    assert cells == ([0, 0] if names else [1, 1])


def test_what_has_to_come_on_first_lets_an_armed_guard_begin():
    guard = fresh()
    assert not guard.running
    assert guard.begin()
    assert guard.running
    assert not guard.begin()


def sweep(limit, relative=1e-3, n=201):
    """Values close about a limit, its two floating-point neighbours included."""
    around = limit * np.linspace(1.0 - relative, 1.0 + relative, n)
    edge = [limit, math.nextafter(limit, math.inf), math.nextafter(limit, -math.inf)]
    return [*around, *edge]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("channel", [0, 1])
def test_force_trips_exactly_beyond_its_limit_in_either_direction(sign, channel):
    for force in sweep(FORCE_MAX_N):
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


@pytest.mark.parametrize("channel", [0, 1])
def test_a_channel_without_readings_is_stale_beyond_the_age_though_its_device_answers(channel):
    """0.02 s are two periods; until the first reading the time counts from the first tick."""
    for read_at in (None, 0, 3):
        guard = fresh()
        for k in range((read_at or 0) + 4):
            valid = [True, True]
            valid[channel] = k == read_at
            cells, faults = tick(guard, valid=valid, cells=(1, 0))
            late = k - (read_at or 0) > 2
            assert (cells, faults) == (([0, 0], ["reading_stale"]) if late else ([1, 0], []))
            if k == 2 and read_at == 3:
                break  # it would be stale before its first reading


def test_a_held_condition_stands_until_a_reading_says_otherwise():
    limits = SignalLimits(is_force=True, residual_max=0.1)
    hold_s = {"force_residual_high": 3 * PERIOD_S}
    for valid, wanted in (([True] + [False] * 5, 3), ([True, False, True, False, True, False], 3)):
        found = channel_faults([0.2] * 6, limits, model=[0.0] * 6, hold_s=hold_s, valid=valid)
        assert [bool(names) for names in found] == [k >= wanted for k in range(6)]
    fine = channel_faults([0.2, 0.2, 0.0, 0.2, 0.2, 0.2], limits, model=[0.0] * 6, hold_s=hold_s,
                          valid=[True, False, True, False, False, False])  # fmt: skip
    assert not any(fine)


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
    guard = armed(Limits(cell_on_max_s, 1.0, 9), 1, period_s)
    cells = BoundGuard(guard, n_cells=1).commands.cells
    cells[:] = 1
    for _ in range(n):
        assert guard.step(0) == 0
    assert names_of(guard.step(0)) == ["cell_on_too_long"]
    assert not cells.any()


OUTPUT = Envelope(min=-1.0, max=2.0, rate_max_per_s=50.0, rest=0.0)


def outputs(wished, *, envelope=OUTPUT, faulted_at=None, periods=1):
    """What an output is let do, tick by tick, and the guard."""
    guard = armed(Limits(1.0, 1.0, 9, outputs=(envelope,)), 0, PERIOD_S)
    value = BoundGuard(guard, n_outputs=1).commands.outputs
    assert value[0] == envelope.rest
    found = []
    for k, wish in enumerate(wished):
        value[0] = wish
        if k == faulted_at:
            guard.trip(1)
        guard.step(0, periods)
        found.append(value[0])
    return found, guard


def test_an_output_moves_to_its_wish_no_faster_than_its_rate_and_no_further_than_its_range():
    # 50 per s over 10 ms: half a unit a tick
    assert outputs([5.0] * 6)[0] == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0, 2.0])
    assert outputs([-5.0] * 4)[0] == pytest.approx([-0.5, -1.0, -1.0, -1.0])
    assert outputs([0.3, 0.1, -0.2])[0] == pytest.approx([0.3, 0.1, -0.2])
    assert outputs([5.0, 5.0], periods=3)[0] == pytest.approx([1.5, 2.0])


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
def test_no_wish_however_wild_makes_an_output_leave_its_envelope(wishes):
    before = 0.0
    for value in outputs(wishes)[0]:
        assert -1.0 <= value <= 2.0
        assert abs(value - before) <= 0.5 + 1e-12
        before = value


def test_an_output_that_is_asked_for_what_is_not_a_number_trips_and_goes_to_rest():
    found, guard = outputs([0.4, math.nan, 0.4])
    assert found == [0.4, 0.0, 0.0]
    assert names_of(guard.first_bits) == ["output_invalid"]


def test_after_a_trip_an_output_is_at_rest_at_once_and_stays_there():
    assert outputs([0.4, 0.4, 0.4], faulted_at=1)[0] == [0.4, 0.0, 0.0]


@pytest.mark.parametrize(("value", "trips"), [(-0.1, False), (0.7, False), (-0.11, True),
                                              (0.71, True), (math.nan, True)])  # fmt: skip
def test_a_signal_beyond_its_own_limits_trips(value, trips):
    guard = armed(Limits(1.0, 1.0, 9, signals=(SignalLimits(-0.1, 0.7),)), 0, PERIOD_S)
    BoundGuard(guard, 1).readings.measured[0] = value
    assert names_of(guard.step(0)) == (["signal_out_of_range"] if trips else [])


def test_a_board_that_latched_a_fault_trips():
    assert tick(fresh(), board_faults=(0, 4), cells=(1, 1)) == ([0, 0], ["board_fault"])


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
    tick(guard, cells=(1, 1))
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


@settings(max_examples=3 * settings().max_examples, deadline=None)
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


def channel_faults(values, limits, *, model=None, hold_s=None, valid=None):
    """Faults after every reading of one force channel."""
    guard = armed(Limits(1e9, 1e9, 10**9, signals=(limits,), hold_s=hold_s or {}), 0, PERIOD_S)
    row = BoundGuard(guard, 1, model=True)
    found = []
    for k, value in enumerate(values):
        row.readings.measured[0] = value
        row.set_valid([valid is None or valid[k]])
        row.set(row.models[0], math.nan if model is None else model[k])
        found.append(names_of(guard.step(0)))
    return found


def test_a_jump_between_two_readings_trips_exactly_beyond_its_limit():
    for step_N in [*sweep(0.5), *(-v for v in sweep(0.5))]:
        faults = channel_faults([1.0, 1.0 + step_N], SignalLimits(is_force=True, jump_max=0.5))
        beyond = abs((1.0 + step_N) - 1.0) > 0.5
        assert faults == [[], ["force_jump"] if beyond else []]


@pytest.mark.parametrize("slope", [5.0, -19.9, 20.5, -20.5, 100.0])
def test_a_slope_trips_when_its_filtered_value_is_beyond_the_limit_for_long_enough(slope):
    """A ramp's filtered slope comes up as 1 - (1 - a)^k, a = h / (T + h)."""
    n, a = 60, PERIOD_S / (0.01 + PERIOD_S)
    found = channel_faults(
        [slope * PERIOD_S * k for k in range(n)],
        SignalLimits(is_force=True, rate_max_per_s=20.0),
        hold_s={"force_rate_high": 0.05},
    )
    beyond = np.abs(slope) * (1.0 - (1.0 - a) ** np.arange(n)) > 20.0
    first = int(np.argmax(beyond)) + 5 if beyond.any() else n  # 0.05 s of 0.01 s periods
    assert [bool(names) for names in found] == [k >= first for k in range(n)]


@pytest.mark.parametrize("hold_periods", [0, 1, 7])
def test_a_condition_trips_once_it_has_lasted_and_a_break_starts_it_again(hold_periods):
    limits = SignalLimits(is_force=True, residual_max=0.1)
    hold_s = {"force_residual_high": hold_periods * PERIOD_S}
    n = hold_periods
    off = [0.2] * n + [0.0] + [0.2] * (n + 3)
    found = channel_faults(off, limits, model=[0.0] * len(off), hold_s=hold_s)
    first = next(k for k, names in enumerate(found) if names)
    assert first == (2 * n + 1 if n else 1)


def test_a_residual_trips_exactly_beyond_its_limit():
    limits, hold_s = SignalLimits(is_force=True, residual_max=0.1), {"force_residual_high": 0.0}
    for residual_N in [*sweep(0.1), *(-v for v in sweep(0.1))]:
        faults = channel_faults([residual_N], limits, model=[0.0], hold_s=hold_s)
        assert faults == [["force_residual_high"] if abs(residual_N) > 0.1 else []]


def test_cells_that_heat_and_do_not_pull_trip_and_those_that_pull_a_little_do_not():
    limits, hold_s = SignalLimits(is_force=True, rise_min=0.5), {"force_no_rise": 0.05}
    model = [1.2] * 10
    faults = channel_faults([0.39] * 10, limits, model=model, hold_s=hold_s)
    assert faults == [[]] * 5 + [["force_no_rise"]] * 5
    assert not any(channel_faults([0.41] * 10, limits, model=model, hold_s=hold_s))
    assert not any(channel_faults([0.0] * 10, limits, model=[0.5] * 10, hold_s=hold_s))


@pytest.mark.parametrize("n_same", [3, 4, 5, 6])
def test_a_reading_that_stays_the_same_trips_after_its_time_and_counts_through_gaps(n_same):
    limits = SignalLimits(is_force=True, frozen_s=0.04)
    values = [0.1, *[0.2] * (n_same + 1), 0.3]
    faults = channel_faults(values, limits)
    assert any(faults) == (n_same > 4)
    valid = [True] * len(values)
    valid[3] = False
    assert any(channel_faults(values, limits, valid=valid)) == (n_same > 4)


def test_too_many_cells_trip_and_all_go_off():
    for n_on, wanted in ((2, []), (3, ["too_many_cells_on"])):
        guard = armed(Limits(1.0, 1.0, 9, cells_on_max=2), 4, PERIOD_S)
        cells = BoundGuard(guard, n_cells=4).commands.cells
        cells[:n_on] = 1
        assert names_of(guard.step(0)) == wanted
        assert cells.sum() == (0 if wanted else 2)


def test_boards_come_first_among_the_devices_and_their_silence_has_its_own_name():
    guard = armed(Limits(1.0, 0.02, 9), 0, PERIOD_S)
    row = BoundGuard(guard, devices=("board", "card"), boards=("board",))
    row.set("board_age_s", 0.03)
    assert names_of(guard.step(0)) == ["reading_stale", "board_silent"]


def test_a_condition_lasts_from_the_tick_that_first_saw_it_however_many_were_missed_before():
    limits = SignalLimits(is_force=True, max=1.0)
    guard = Guard(
        Limits(1e9, 1e9, 10**9, signals=(limits,), hold_s={"force_high": 3 * PERIOD_S}), 0, PERIOD_S
    )
    readings = BoundGuard(guard, 1).readings
    found = []
    for value, n_periods in ((0.0, 1), (2.0, 10), (2.0, 1), (2.0, 1), (2.0, 1)):
        readings.measured[0] = value
        found.append(bool(guard.step(0, n_periods)))
    assert found == [False, False, False, False, True]


def test_a_bit_trips_by_its_name_wherever_it_stands_in_its_word():
    shuffled = ("x_at_rail", "y_frozen", "estop_open", "watchdog_expired")
    layout = RigLayout((), (), (), ("card",), 0)
    faults = ("channel_untrue", "channel_untrue", "estop_open", "device_failed")
    for bit, wanted in enumerate(faults):
        frame = row_of(layout, Column("card_fault_bits", "1", "fault", "", flags=shuffled))
        guard = fresh_without_channels()
        guard.bind(frame, layout, *layout.bind(frame))
        frame.bits[frame.bit_index("card_fault_bits")] = 1 << bit
        assert names_of(guard.step(0)) == [wanted]


def test_a_board_without_link_bits_is_refused_when_the_guard_is_bound():
    layout = RigLayout((), (), ("b",), ("b",), 0)
    frame = row_of(layout, Column("b_link_bits", "1", "fault", "", flags=("board_reset",)))
    with pytest.raises(KeyError, match="b_link_bits has no bit board_refused"):
        fresh_without_channels().bind(frame, layout, *layout.bind(frame))


def fresh_without_channels():
    return armed(Limits(cell_on_max_s=0.05, reading_age_max_s=0.02, overruns_max=5), 0, PERIOD_S)


BOARD = (("board",), ("board",))  # devices, boards


def test_a_trip_leaves_nothing_on_whatever_was_commanded():
    """Cells, duties, outputs, supplies and a broadcast, in which boards would draw on."""
    limits = Limits(1.0, 1.0, 9, signals=(FORCE,), outputs=(Envelope(-1.0, 2.0, 1e3, rest=0.25),))
    guard = armed(limits, 2, PERIOD_S)
    row = BoundGuard(guard, 1, n_cells=2, n_outputs=1, modulates=True)
    commands = row.commands
    assert not commands.enabled[0]
    for force_N, on in ((0.0, True), (9.1, False), (0.0, False)):
        row.readings.measured[0] = force_N
        commands.duty[:], commands.outputs[:], commands.broadcast.tick = 1.0, 1.0, 7
        guard.step(0)
        assert commands.cells.tolist() == [on, on]
        assert commands.duty.tolist() == [on, on]
        assert commands.outputs[0] == (1.0 if on else 0.25)
        assert commands.enabled[0] == on
        assert commands.broadcast.tick == (7 if on else 0)


def test_until_it_is_armed_and_once_it_is_disarmed_nothing_is_commanded():
    guard = Guard(Limits(1.0, 1.0, 9, outputs=(Envelope(-1.0, 2.0, 1e3, rest=0.5),)), 1, PERIOD_S)
    commands = BoundGuard(guard, n_cells=1, n_outputs=1).commands
    for act, on in ((None, False), (guard.arm, True), (guard.disarm, False)):
        if act is not None:
            act()
        commands.cells[:], commands.outputs[:], commands.broadcast.tick = 1, 1.0, 3
        assert guard.step(0) == 0
        assert (commands.cells[0], commands.enabled[0]) == (on, on)
        assert commands.outputs[0] == (1.0 if on else 0.5)
        assert commands.broadcast.tick == (3 if on else 0)
        assert guard.commands_anything == on


@pytest.mark.parametrize("other", [0, 1 << FAULTS.index("force_high")])
def test_an_open_emergency_stop_ends_in_its_own_state_whatever_else_has_tripped(other):
    """The operator sees that the e-stop is open, before, with and after another fault."""
    estop = 1 << FAULTS.index("estop_open")
    guard = fresh()
    BoundGuard(guard, 2)
    guard.trip(other | estop)
    assert guard.states.now == "estop"
    guard.trip(1 << FAULTS.index("force_nan"))
    assert guard.states.now == "estop"
    guard = fresh()
    BoundGuard(guard, 2)
    guard.trip(1 << FAULTS.index("force_nan"))
    assert guard.states.now == "fault"
    guard.trip(other | estop)
    assert guard.states.now == "estop"
    assert not guard.armed
    assert not guard.arm()


def test_boards_that_answer_after_the_last_tick_still_trip_and_anything_else_waits_for_a_tick():
    guard = fresh_without_channels()
    row = BoundGuard(guard, 0, *BOARD, supplies=("s",))
    row.set_bits("s_fault_bits", 1)
    guard.trip_when_boards_failed()
    assert guard.fault_bits == 0
    row.set_bits("board_fault_bits", 1)
    guard.trip_when_boards_failed()
    assert names_of(guard.first_bits) == ["board_fault"]
    seen = guard.seen
    row.set_bits("board_link_bits", row.frame.flag("board_link_bits", "board_reset"))
    guard.trip_when_boards_failed()
    assert names_of(guard.fault_bits) == ["board_fault", "board_reset"]
    assert names_of(guard.first_bits) == ["board_fault"]
    assert guard.seen is not seen
    seen = guard.seen
    guard.trip_when_boards_failed()  # nothing new: the values of the trip are kept
    assert guard.seen is seen


def test_an_output_alone_or_a_cell_alone_counts_as_driven():
    """No tare then."""
    for cell, output, driven in ((0, 0.5, False), (1, 0.5, True), (0, 0.6, True), (0, 0.4, True)):
        limits = Limits(1.0, 1.0, 9, outputs=(Envelope(-1.0, 2.0, 1e3, rest=0.5),))
        guard = armed(limits, 2, PERIOD_S)
        commands = BoundGuard(guard, n_cells=2, n_outputs=1).commands
        commands.cells[1], commands.outputs[0] = cell, output
        assert guard.commands_anything == driven


def test_an_output_whose_idle_value_lies_outside_its_range_is_brought_into_it_at_once():
    """The range holds in every tick; the rate only within it."""
    found, _ = outputs([5.0, 5.0], envelope=Envelope(1.0, 2.0, rate_max_per_s=10.0, rest=0.0))
    assert found == [1.0, pytest.approx(1.1)]


def test_a_device_without_new_reading_may_stay_the_same_for_exactly_as_long_as_allowed():
    """0.04 s of 0.01 s periods: the fifth tick without a change trips, not the fourth."""
    limits = SignalLimits(frozen_s=0.04)
    faults = channel_faults([0.2] * 6, limits)
    assert faults == [[]] * 5 + [["sensor_frozen"]]
    faults = channel_faults([0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.4], limits)
    assert not any(faults)


def test_an_output_that_is_no_number_leaves_no_other_output_without_its_limits():
    """Before the trip puts all to rest, in the tick itself: the second one may not jump."""
    limits = Limits(1.0, 1.0, 9, outputs=(OUTPUT, OUTPUT), hold_s={"output_invalid": 1.0})
    guard = armed(limits, 0, PERIOD_S)
    commands = BoundGuard(guard, n_outputs=2).commands
    commands.outputs[:] = math.nan, 99.0
    guard.step(0)
    assert commands.outputs[1] == pytest.approx(0.5)


@pytest.mark.parametrize("overruns", range(8))
def test_periods_missed_after_the_last_tick_trip_from_their_number_on(overruns):
    guard = armed(Limits(cell_on_max_s=0.05, reading_age_max_s=7.0, overruns_max=5), 0, PERIOD_S)
    BoundGuard(guard)
    assert guard.trip_when_late(overruns) == (overruns >= 5)
    assert names_of(guard.fault_bits) == (["loop_late"] if overruns >= 5 else [])
    assert (guard.seen is None) == (overruns < 5)
    assert guard.seen is None or guard.seen.overruns == overruns


def test_before_any_trip_nothing_is_known_of_one_and_afterwards_what_the_guard_saw():
    limits = Limits(1e9, 0.5, 99, (SignalLimits(jump_max=1e9), SignalLimits(-9.0, 9.0)))
    guard = armed(limits, 3, PERIOD_S)
    row = BoundGuard(guard, 2, devices=("b", "d"), boards=("b",), n_cells=3, model=True)
    assert (guard.fault_bits, guard.first_bits, guard.seen) == (0, 0, None)
    row.set(row.models[0], 0.75)
    row.set(row.models[1], 0.25)
    row.set("b_age_s", 0.125)
    for force, cells in ((1.0, (1, 0, 0)), (1.0, (1, 0, 0)), (9.5, (1, 1, 0))):
        row.readings.measured[:] = 2.0, force
        row.commands.cells[:] = cells
        guard.step(3)
    seen = guard.seen
    assert seen.measured.tolist() == [2.0, 9.5]
    assert seen.model.tolist() == [0.75, 0.25]
    assert seen.change.tolist() == [0.0, 8.5]
    assert seen.same_s == pytest.approx([0.02, 0.0])
    assert seen.ages_s.tolist() == [0.125, 0.0]
    # the time before this tick: on for two periods, just switched on, and off
    assert seen.on_s == pytest.approx([0.02, 0.0, 0.0])
    assert seen.cells.tolist() == [1, 1, 0]
    assert seen.overruns == 3
    row.set_bits("b_fault_bits", 1)
    guard.trip_when_boards_failed()
    assert guard.seen.overruns == 0


def test_a_channel_without_a_model_shows_none():
    guard = armed(Limits(1e9, 1e9, 99, (SignalLimits(-9.0, 9.0),)), 0, PERIOD_S)
    row = BoundGuard(guard, 1)
    row.readings.measured[0] = 9.5
    guard.step(0)
    assert np.isnan(guard.seen.model).all()


@pytest.mark.parametrize("model", [3.0, -3.0])
def test_a_residual_is_the_distance_from_the_model_on_either_side(model):
    limits, hold_s = SignalLimits(is_force=True, residual_max=0.5), {"force_residual_high": 0.0}
    for away, trips in ((0.0, False), (0.5, False), (-0.5, False), (0.625, True), (-0.625, True)):
        (faults,) = channel_faults([model + away], limits, model=[model], hold_s=hold_s)
        assert bool(faults) == trips


def test_a_slope_or_a_heat_at_its_limit_is_allowed():
    # a step of 0.25 in one period of 0.0625 s, filtered: 0.0625 / (0.01 + 0.0625) of 4 per s
    limit = 0.0 + 0.0625 / (0.01 + 0.0625) * 4.0
    for rate_max, trips in ((limit, False), (math.nextafter(limit, 0.0), True)):
        limits = Limits(
            1e9, 1e9, 9, (SignalLimits(rate_max_per_s=rate_max),), hold_s={"signal_fast": 0.0}
        )
        guard = armed(limits, 0, 0.0625)
        readings = BoundGuard(guard, 1).readings
        guard.step(0)
        readings.measured[0] = 0.25
        assert names_of(guard.step(0)) == (["signal_fast"] if trips else [])
    for rise_max_K, trips in ((8.0, False), (7.75, True)):
        guard = armed(
            Limits(1e9, 1e9, 9, heat=(CellHeat(0.0, math.inf, rise_max_K, rise_K=8.0),)), 1, 0.5
        )
        BoundGuard(guard, n_cells=1)
        assert names_of(guard.step(0)) == (["cell_energy_high"] if trips else [])


def test_what_has_no_limit_never_trips():
    """Of a rig that sets nothing but what it must: all cells on, at any duty, however hot."""
    limits = Limits(1e9, 1e9, 9, (SignalLimits(),), heat=(CellHeat(),) * 300)
    guard = armed(limits, 300, PERIOD_S)
    row = BoundGuard(guard, 1, n_cells=300, modulates=True)
    for value, duty in ((-1e12, 1.0), (1e12, 0.01), (1e12, 0.01)):
        row.readings.measured[0], row.commands.duty[:] = value, duty
        assert guard.step(8) == 0
        assert row.commands.cells.all()
    assert Envelope(-1.0, 1.0, 1.0).rest == 0.0


@pytest.mark.parametrize("bit", [0, 1])
def test_a_resistance_that_a_board_finds_out_of_range_trips(bit):
    layout = RigLayout((), (), ("b",), ("b",), 0)
    flags = ("low", "high")
    frame = row_of(layout, Column("b_resistance_bits", "1", "fault", "", flags=flags))
    guard = fresh_without_channels()
    guard.bind(frame, layout, *layout.bind(frame))
    frame.bits[frame.bit_index("b_resistance_bits")] = 1 << bit
    assert names_of(guard.step(0)) == ["resistance_out_of_range"]


def test_what_the_guard_saw_is_of_the_tick_that_brought_something_new():
    """The report tells of the cause, not of a later tick in which it still lasts."""
    guard = fresh()
    row = BoundGuard(guard, 2)
    for force_N in (9.5, 9.75):
        row.readings.measured[0] = force_N
        guard.step(0)
    assert guard.seen.measured[0] == 9.5
    row.readings.measured[1] = math.nan
    guard.step(0)
    assert np.isnan(guard.seen.measured[1])


@pytest.mark.parametrize("step_N", [0.5, -0.5, 0.625, -0.625])
def test_a_jump_in_either_direction_trips_beyond_its_limit(step_N):
    faults = channel_faults([1.0, 1.0 + step_N], SignalLimits(is_force=True, jump_max=0.5))
    assert faults == [[], ["force_jump"] if abs(step_N) > 0.5 else []]


@pytest.mark.parametrize(("stale", "named"), [("b0", ["board_silent"]), ("d0", [])])
def test_a_board_is_known_by_its_name_wherever_it_stands_among_the_devices(stale, named):
    row = BoundGuard(guard := fresh(), 2, ("d0", "b0"), ("b0",), n_cells=2)
    row.set(f"{stale}_age_s", 1.0)
    assert names_of(guard.step(0)) == ["reading_stale", *named]


def test_the_slope_of_a_channel_is_taken_over_all_periods_since_its_last_reading():
    """2 N within 8 periods are 25 N/s; 0.08 s through the filter of 0.01 s leave 8/9 of that."""
    guard = armed(replace(LIMITS, reading_age_max_s=0.06), 2, PERIOD_S)
    tick(guard, forces=(1.0,))
    tick(guard, valid=(False,), periods=5)
    tick(guard, forces=(3.0,), periods=3, ages=(1.0,))  # which trips, so that it tells
    assert guard.seen.slope_per_s[0] == pytest.approx(25.0 * 8.0 / 9.0)


def test_missed_periods_count_into_how_long_a_condition_has_lasted():
    limits = Limits(1.0, 1.0, 9, signals=(FORCE, FORCE), hold_s={"force_high": 5 * PERIOD_S})
    for missed, faults in ((4, []), (5, ["force_high"])):
        guard = armed(limits, 2, PERIOD_S)
        assert tick(guard, forces=(9.5,))[1] == []
        assert tick(guard, forces=(9.5,), periods=missed)[1] == faults


def test_an_output_that_a_trip_put_to_rest_is_not_led_back_to_where_it_was():
    slow = Envelope(-1.0, 1.0, rate_max_per_s=1.0, rest=0.0)
    guard = armed(Limits(1.0, 1.0, 9, signals=(FORCE,), outputs=(slow,)), 1, PERIOD_S)
    row = BoundGuard(guard, 1, n_cells=1, n_outputs=1)
    for force in (0.0, 0.0, 0.0, 9.5, 0.0):  # the force that tripped is gone after a tick
        row.commands.outputs[:] = 1.0
        row.readings.measured[:] = force
        guard.step(0)
    assert row.commands.outputs.tolist() == [0.0]


def test_a_push_is_no_rise_of_a_pull():
    limits = Limits(
        1.0, 1.0, 9, (SignalLimits(is_force=True, rise_min=3.0),), hold_s={"force_no_rise": 0.0}
    )
    for force, faults in ((8.0, []), (-8.0, ["force_no_rise"])):
        row = BoundGuard(guard := armed(limits, 1, PERIOD_S), 1, n_cells=1, model=True)
        row.set(row.models[0], 9.0)
        row.readings.measured[:] = force
        assert names_of(guard.step(0)) == faults


def test_a_trip_that_the_guard_did_not_find_itself_leads_no_output_slowly_to_rest():
    slow = Envelope(-1.0, 1.0, rate_max_per_s=1.0)
    guard = armed(Limits(1.0, 1.0, 9, signals=(FORCE,), outputs=(slow,)), 1, PERIOD_S)
    row = BoundGuard(guard, 1, n_cells=1, n_outputs=1)
    for _ in range(50):
        row.commands.outputs[:] = 1.0
        guard.step(0)
    assert row.commands.outputs[0] == pytest.approx(0.5)
    guard.trip(1 << FAULTS.index("own_code_failed"))  # as the loop does where a controller fails
    row.commands.outputs[:] = 1.0
    guard.step(0)
    assert row.commands.outputs.tolist() == [0.0]


def test_a_tare_is_no_jump_and_no_slope_of_a_force():
    steep = SignalLimits(is_force=True, jump_max=0.1, rate_max_per_s=1.0)
    limits = Limits(1.0, 1.0, 9, signals=(steep,), hold_s={"force_rate_high": 0.0})
    for tared, faults in ((True, []), (False, ["force_rate_high", "force_jump"])):
        guard = armed(limits, 1, PERIOD_S)
        row = BoundGuard(guard, 1, n_cells=1)
        assert math.isnan(guard.last_reading(0))
        row.readings.measured[:] = 2.0
        assert names_of(guard.step(0)) == []
        if tared:
            guard.tare(0, 0.5)
        row.readings.measured[:] = 1.5
        assert names_of(guard.step(0)) == faults
        assert guard.last_reading(0) == 1.5
