"""A table of which an entry leaves a protection without effect; expected values by hand."""

import numpy as np
import pytest

from hil.devices.board import protocol
from hil.devices.board.ineffective import without_effect
from hil.devices.board.native import NativeBoard

# 2 A over 1024 counts: two counts are 3.9 mA. The clamp's sensor gives -50 degC at 0 V and 500 K at
# 5 V: -40.2 degC at 20 counts, 438 degC at 1000.
TABLE = protocol.default_limits()


def wrong(measures=True, room_C=(15.0, 30.0), **changes):
    found = without_effect({**TABLE, **changes}, measures=measures, room_C=room_C)
    return [key for key, _ in found]


def test_the_table_that_every_board_comes_with_protects():
    assert wrong() == []


SCALE = "temperature_full_scale_cC"


@pytest.mark.parametrize(
    ("entry", "last", "first", "key"),
    [
        ("current_on_min_mA", 1199, 1200, "current_on_min_mA"),  # current_max_mA
        ("current_full_scale_mA", 1212, 1211, "current_full_scale_mA"),  # 1015 / 1024: 1201, 1200
        ("current_off_max_mA", 20, 21, "current_off_max_mA"),  # current_on_min_mA
        ("temperature_counts_min", 3, 2, "temperature_counts_min"),
        ("temperature_counts_max", 1020, 1021, "temperature_counts_max"),
        ("temperature_counts_min", 133, 134, SCALE),  # 15 degC are 133.1 counts
        ("temperature_counts_max", 287, 286, SCALE),  # 90 degC are 286.7 counts
        (SCALE, 14337, 14336, SCALE),  # 140 K at 1000 counts
        ("temperature_zero_cC", 523, 524, SCALE),  # 15 degC less 9.77 K at 20 counts
    ],
)
def test_an_entry_is_refused_from_where_its_protection_has_no_effect(entry, last, first, key):
    assert wrong(**{entry: last}) == []
    assert wrong(**{entry: first}) == [key]


@pytest.mark.parametrize(("full_mA", "least_mA"), [(2000, 4), (4000, 8), (10_000, 20), (1250, 3)])
def test_the_least_current_of_a_cell_that_is_on_is_what_two_counts_cannot_show(full_mA, least_mA):
    others = {"current_full_scale_mA": full_mA, "current_off_max_mA": 4}
    if least_mA > 4:
        assert wrong(**others, current_on_min_mA=least_mA) == []
    assert wrong(**others, current_on_min_mA=least_mA - 1) == ["current_on_min_mA"]
    assert wrong(**others, current_on_min_mA=0) == ["current_on_min_mA"]


@pytest.mark.parametrize("every_ms", [0, 1, 19, 20, 60_000])
def test_a_period_of_measurements_is_refused_where_the_board_refuses_it(every_ms):
    board = NativeBoard(1, TABLE, np.random.default_rng(0))
    board.write(protocol.encode("set_limits", 2, limits={**TABLE, "sense_every_ms": every_ms}))
    [answer] = protocol.Decoder().feed(board.read(0.1))
    taken = protocol.result_name(answer["result"]) == "done"
    assert wrong(sense_every_ms=every_ms) == ([] if taken else ["sense_every_ms"])
    assert taken == (every_ms in (0, 20, 60_000))  # by firmware/core/protocol.h


def test_the_room_of_the_rig_must_be_within_what_its_sensors_show():
    assert wrong(temperature_counts_min=133, room_C=(14.0, 30.0)) == [SCALE]
    assert wrong(temperature_full_scale_cC=1) == [SCALE]
    assert wrong(temperature_full_scale_cC=2, temperature_zero_cC=8999) == [SCALE]


def test_a_build_that_measures_nothing_needs_no_limits_of_what_it_does_not_measure():
    loose = {"current_on_min_mA": 0, "current_off_max_mA": 1900, "temperature_full_scale_cC": 1}
    assert wrong(measures=False, **loose) == []
    assert wrong(measures=False, current_max_mA=1900, current_full_scale_mA=1900) == [
        "current_full_scale_mA"
    ]
