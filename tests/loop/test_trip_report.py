"""The line of every fault: who, its value, its limit and the key; written here by hand."""

from dataclasses import replace

import numpy as np
import pytest

from hil.loop.channels import Channel, RigLayout
from hil.loop.guard import FAULTS, CellHeat, Limits, SignalLimits, Snapshot
from hil.loop.trip_report import TripReport, merged

PERIOD_S = 1 / 16
NAN = float("nan")
LAYOUT = RigLayout(
    (
        Channel("f", "_N", "main"), Channel("g", "_N", "further"), Channel("x", "", unit="mm"),
        Channel("ratio", "", unit="1"),
    ),
    ("o1", "o2"), ("board",), ("board", "card"), 5, cell_names=("a", "b", "c", "d", "e"),
)  # fmt: skip
LIMITS = Limits(
    2.0, 0.02, 5,
    (
        SignalLimits(-9.0, 9.0, True, 50.0, 3.0, 0.5, 2.0, 0.5),
        SignalLimits(-4.0, 4.0, True, 50.0, 3.0, 0.5, 2.0, 0.5),
        SignalLimits(0.0, 10.0, rate_max_per_s=7.0), SignalLimits(max=10.0, rate_max_per_s=1.0),
    ),
    cells_on_max=2,
    hold_s={"force_rate_high": 0.05, "force_residual_high": 0.0, "force_no_rise": 0.0},
    duty_min=0.2,
    heat=[CellHeat(rise_max_K=15.0)] * 5,
)  # fmt: skip
CALM = Snapshot(
    measured=np.ones(4), valid=np.ones(4, dtype=bool), model=np.full(4, NAN),
    unread_s=np.zeros(4),
    slope_per_s=np.zeros(4), change=np.zeros(4), same_s=np.zeros(4), ages_s=np.zeros(2),
    on_s=np.zeros(5), cells=np.zeros(5, dtype=np.uint8), outputs=np.zeros(2), overruns=0,
    duty=np.zeros(5), rise_K=np.zeros(5),
)  # fmt: skip


def line(fault, details=(), force_max_N=9.0, limits=LIMITS, **seen):
    """The one line of a fault, without its name; `seen` are changed places: {2: 10.5}."""
    changed = {}
    for name, places in seen.items():
        changed[name] = places
        if isinstance(places, dict):
            changed[name] = getattr(CALM, name).copy()
            for place, value in places.items():
                changed[name][place] = value
    report = TripReport(limits, LAYOUT, PERIOD_S, force_max_N)
    bits = 1 << FAULTS.index(fault)
    (text,) = report.lines(bits, replace(CALM, **changed), {fault: details} if details else {})
    name, found = text.split(": ", 1)
    assert name == fault
    return found


FORCE_CAUSE = "every force: beyond its limit in either direction (guard.force_max_N)"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({"measured": {0: 9.5}}, "f 9.5 N, limit 9 N (guard.force_max_N)"),
        ({"measured": {0: -9.5}}, "f -9.5 N, limit -9 N (guard.force_max_N)"),
        ({"measured": {1: 4.5}}, "g 4.5 N, limit 4 N (guard.signals.g.max)"),
        ({"measured": {1: -4.5}}, "g -4.5 N, limit -4 N (guard.signals.g.min)"),
        ({"measured": {0: NAN}}, "f gives no number"),
        (
            {"measured": {0: 9.5, 1: 4.5}},
            "f 9.5 N, limit 9 N (guard.force_max_N); g 4.5 N, limit 4 N (guard.signals.g.max)",
        ),
        # at its limit, without a reading, and what is no force: none of them is the cause
        ({"measured": {0: 9.0, 1: -4.0}}, FORCE_CAUSE),
        ({"measured": {0: 9.5}, "valid": {0: False}}, FORCE_CAUSE),
        ({"measured": {2: 10.5}}, FORCE_CAUSE),
    ],
)
def test_a_force_that_is_too_high_is_named_with_its_limit_and_the_key(seen, said):
    assert line("force_high", **seen) == said


def test_a_force_s_key_is_the_signal_s_own_where_its_limit_is_not_the_rig_s():
    said = "f 9.5 N, limit 9 N (guard.signals.f.max)"
    assert line("force_high", measured={0: 9.5}, force_max_N=12.0) == said
    report = TripReport(LIMITS, LAYOUT, PERIOD_S)  # the rig has none
    (text,) = report.lines(1 << FAULTS.index("force_high"), replace(
        CALM, measured=np.array([9.5, 0.0, 0.0, 0.0])), {})  # fmt: skip
    assert text == "force_high: " + said
    wide = replace(LIMITS, signals=(*LIMITS.signals[:2], SignalLimits(0.0, 9.0), SignalLimits()))
    said = "x 9.5 mm, limit 9 mm (guard.signals.x.max)"  # as far as the force's, and no force
    assert line("signal_out_of_range", measured={2: 9.5}, limits=wide) == said


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({2: 10.5}, "x 10.5 mm, limit 10 mm (guard.signals.x.max)"),
        ({2: -0.5}, "x -0.5 mm, limit 0 mm (guard.signals.x.min)"),
        ({3: NAN}, "ratio gives no number"),
        ({3: 10.5}, "ratio 10.5, limit 10 (guard.signals.ratio.max)"),
    ],
)
def test_another_signal_out_of_range_is_named_and_no_force_beside_it(seen, said):
    assert line("signal_out_of_range", measured={0: 9.5} | seen) == said


def test_only_forces_without_a_number_are_named_for_it():
    assert line("force_nan", measured={1: NAN, 2: NAN}) == "g gives no number"
    assert line("force_nan", measured={1: NAN}, valid={1: False}) == "every force: is not a number"


@pytest.mark.parametrize(
    ("ages", "said"),
    [
        ({0: 0.03}, "board: reading 0.03 s old, limit 0.02 s (guard.reading_age_max_s)"),
        ({0: 0.02, 1: 0.5}, "card: reading 0.5 s old, limit 0.02 s (guard.reading_age_max_s)"),
        ({1: NAN}, "card: reading nan s old, limit 0.02 s (guard.reading_age_max_s)"),
    ],
)
def test_an_old_reading_is_named_with_its_device_and_its_age(ages, said):
    assert line("reading_stale", ages_s=ages) == said


def test_a_channel_without_readings_is_named_if_its_device_answers():
    said = "x: no reading for 0.0625 s, limit 0.02 s (guard.reading_age_max_s)"
    assert line("reading_stale", unread_s={2: PERIOD_S}) == said
    device = "card: reading 0.5 s old, limit 0.02 s (guard.reading_age_max_s)"
    assert line("reading_stale", unread_s={2: PERIOD_S}, ages_s={1: 0.5}) == device


def test_only_boards_are_silent():
    said = "board: last answer 0.03 s old, limit 0.02 s (guard.reading_age_max_s)"
    assert line("board_silent", ages_s={0: 0.03, 1: 0.5}) == said


def test_missed_periods_are_counted_with_their_length():
    said = "7 periods of 62.5 ms missed in a row, limit 5 (loop.overruns_max)"
    assert line("loop_late", overruns=7) == said


@pytest.mark.parametrize(
    ("on_s", "said"),
    [
        ({0: 1.9375}, "a on for 1.938 s, limit 2 s (guard.cell_on_max_s)"),
        # 2 s less one and a half periods: the tick before the last allowed one
        ({0: 1.90625, 1: 2.0, 4: 2.5}, "b, e on for 2.5 s, limit 2 s (guard.cell_on_max_s)"),
        (
            {0: 2.0, 1: 2.0, 3: 2.0, 4: 2.0},
            "a, b, d and 1 more on for 2 s, limit 2 s (guard.cell_on_max_s)",
        ),
        ({0: 2.0, 1: 2.0, 3: 2.0}, "a, b, d on for 2 s, limit 2 s (guard.cell_on_max_s)"),
    ],
)
def test_cells_that_are_on_too_long_are_named(on_s, said):
    assert line("cell_on_too_long", on_s=on_s) == said


def test_cells_that_were_not_on_so_long_are_not_named():
    assert "guard.cell_on_max_s" in line("cell_on_too_long", on_s={0: 1.0})
    assert "on for" not in line("cell_on_too_long", on_s={0: 1.0})


def test_outputs_that_are_not_numbers_are_named():
    assert line("output_invalid", outputs={1: NAN}) == "o2 is not a number"


@pytest.mark.parametrize(
    ("fault", "slopes", "said"),
    [
        (
            "force_rate_high", {0: -60.0, 1: 50.0, 2: 8.0},
            "f changes by -60 N/s, limit 50 N/s (guard.force_rate_max_N_per_s), for 0.05 s",
        ),
        (
            "signal_fast", {0: -60.0, 2: 8.0, 3: 1.0},
            "x changes by 8 mm/s, limit 7 mm/s (guard.signals.x.rate_max_per_s)",
        ),
        (
            "signal_fast", {3: 2.0},
            "ratio changes by 2 /s, limit 1 /s (guard.signals.ratio.rate_max_per_s)",
        ),
    ],
)  # fmt: skip
def test_what_changes_too_fast_is_named_with_the_time_that_it_must_last(fault, slopes, said):
    assert line(fault, slope_per_s=slopes) == said


def test_a_hold_time_that_is_not_configured_is_the_one_of_the_table():
    """docs/safety.md: 5 ms for force_rate_high."""
    limits = replace(LIMITS, hold_s={})
    assert line("force_rate_high", limits=limits, slope_per_s={0: 60.0}).endswith(", for 0.005 s")


def test_a_jump_is_told_from_where_to_where():
    said = "f from 4.5 N to 1 N between two readings, limit 3 N (guard.force_jump_max_N)"
    assert line("force_jump", change={0: -3.5, 1: 3.0}) == said


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (2.0, "f measured 1 N, model 2 N: 1 N apart"),
        (-1.0, "f measured 1 N, model -1 N: 2 N apart"),
    ],
)
def test_a_force_that_is_far_from_its_model_is_told_with_both(model, said):
    said += ", limit 0.5 N (guard.force_residual_max_N)"
    assert line("force_residual_high", model={0: model, 1: 1.5}) == said


def test_a_force_that_does_not_rise_is_told_with_a_third_of_the_model():
    said = "f measured 0.5 N, model 3 N, limit a third of it, 1 N (guard.force_rise_min_N)"
    seen = {"measured": {0: 0.5, 1: 1.0}, "model": {0: 3.0, 1: 3.0}}
    assert line("force_no_rise", **seen) == said
    # at guard.force_rise_min_N nothing is asked for yet
    seen = {"measured": {0: 0.5, 1: 0.5}, "model": {0: 2.0, 1: 3.0}}
    assert line("force_no_rise", **seen).startswith("g measured 0.5 N, model 3 N")


def test_a_frozen_sensor_is_told_with_its_value_and_for_how_long():
    """Half a period less than the limit is the tick that trips."""
    said = "f at 1 N for 0.5 s, limit 0.5 s (guard.frozen_s)"
    assert line("sensor_frozen", same_s={0: 0.5, 1: 0.46875}) == said


def test_too_many_cells_are_counted_and_the_first_are_named():
    said = "4 cells commanded on (a, b, d and 1 more), limit 2 (guard.cells_on_max)"
    assert line("too_many_cells_on", cells={0: 1, 1: 1, 3: 1, 4: 1}) == said


def test_duties_that_no_board_applies_are_named():
    """51 of 255ths, 0.2, is the shortest here."""
    duty = {1: 0.1, 2: 0.2, 3: 1.0, 4: 1.5}
    said = "b at a duty of 0.1, not 0 nor 0.2 to 1; e at a duty of 1.5, not 0 nor 0.2 to 1"
    assert line("duty_invalid", duty=duty) == said


def test_hot_cells_are_named_with_their_rise():
    said = "b 15.01 K above the air by its heat budget, limit 15.00 K"
    assert line("cell_energy_high", rise_K={0: 15.0, 1: 15.01}) == said


def test_what_devices_tell_comes_first_and_at_most_three_of_it():
    assert line("force_high", ["p", "q"], measured={0: 9.5}) == "p; q"
    assert line("board_fault", ["p", "q", "r"]) == "p; q; r"
    assert line("board_fault", ["p", "q", "r", "s", "t"]) == "p; q; r and 2 more"


def test_a_line_is_cut_to_the_room_of_an_event_and_never_within_a_letter():
    """256 bytes less 'board_fault: ' are 243: 121 letters of two bytes."""
    assert line("board_fault", ["ü" * 200]) == "ü" * 121
    assert line("disk_low", ["ü" * 200]) == "ü" * 123


def test_every_fault_has_its_line_also_without_a_snapshot():
    report = TripReport(LIMITS, LAYOUT, PERIOD_S)
    bits = 1 << FAULTS.index("force_high") | 1 << FAULTS.index("disk_low")
    first, second = report.lines(bits, None, {})
    assert first == f"force_high: {FORCE_CAUSE}"
    assert second.startswith("disk_low: ")
    assert second == f"disk_low: {line('disk_low')}"  # a snapshot says no more of a disk


def test_details_of_several_devices_are_put_together_by_the_fault():
    parts = [{"a": ["1"], "b": ["2"]}, {}, {"a": ["3", "4"]}]
    assert merged(parts) == {"a": ["1", "3", "4"], "b": ["2"]}
