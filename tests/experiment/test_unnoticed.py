"""How far too low a current may be read: by hand, and of wires and boards of every tolerance."""

from dataclasses import replace
from math import inf, pi
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from hil.__main__ import main
from hil.config.files import read_merged
from hil.devices.board import protocol
from hil.devices.board.resistance import Chain
from hil.devices.tables import BoardResistanceTable
from hil.experiment.board_limits import Protection, as_text, doubts, watched
from hil.experiment.load import load_rig
from hil.experiment.unnoticed import on_min_mA
from hil.mechanics.sma.bounds import EAGER, LAZY, WireBounds
from hil.mechanics.sma.limits import Bench, CellWire
from hil.mechanics.sma.wire import SmaWire

ROOT = Path(__file__).resolve().parents[2]
SENSING = {"sense_every_ms": 100, "supply_full_scale_mV": 10000}


def a_board(wire=None, n=4, supply_A=0.74, most_C=180.0, **limits):
    """A board of n wires at 8 V with a sensor of 1 A, and the limits that hil derives."""
    wire = wire or SmaWire(n_wires=4, supply_V=8.0)
    cells = [CellWire(f"a.{i + 1}", wire, most_C) for i in range(n)]
    table = protocol.default_limits() | {"current_full_scale_mA": 1000, "on_time_max_ms": 60000}
    bench = Bench(15.0, 28.0, wire.cell_V, supply_A, 4.42e-3, 0.0)
    return Protection("board", table | limits, cells, [], bench).with_full_scale(1000)


def with_its_table(board):
    return replace(board, limits={**board.limits, **board.wanted()})


def test_the_limit_is_below_what_the_least_sound_cell_reads():
    """8 V less 3 % over 50.4 Ohm and a tenth, 4.6 % too low, a count of 0.98 mA and a mA less."""
    board = a_board()
    least_mA = 8000 * 0.97 / (50.4 * 1.1) * (1.0 - board.bench.current_error)
    assert board.wanted()["current_on_min_mA"] == int(least_mA - 1000 / 1023) - 1


def test_leads_lower_the_least_current_of_a_sound_cell_and_with_it_the_limit():
    """5 Ohm in series with 50.4 Ohm and a tenth."""
    board = replace(a_board(), resistance=BoardResistanceTable(lead_Ohm=5.0))
    least_mA = 8000 * 0.97 / (50.4 * 1.1 + 5.0) * (1.0 - board.bench.current_error)
    assert board.wanted()["current_on_min_mA"] == int(least_mA - 1000 / 1023) - 1


def test_a_supply_that_sags_and_a_last_wire_in_parallel_are_no_low_readings():
    whole = a_board().wanted()["current_on_min_mA"]
    # four contracted cells would draw 0.708 A
    sagging = a_board(supply_A=0.354).wanted()["current_on_min_mA"]
    assert sagging == pytest.approx(0.5 * whole, abs=2)
    pair = SmaWire(n_wires=2, wiring="parallel", supply_V=2.0)
    alone = SmaWire(supply_V=2.0)
    both, one = (
        on_min_mA([CellWire("a.1", wire)], replace(a_board(wire).bench, supply_A=None),
                  a_board(wire).limits, 0.1)
        for wire in (pair, alone)
    )  # fmt: skip
    assert both == pytest.approx(one, abs=4)  # the offset's share is less of two


@pytest.mark.parametrize(
    ("fuse_A", "supply_A", "share"),
    [(None, 0.4, 0.4 / 0.708), (None, 0.71, 1.0), (0.4, 0.4, 1.0)],
)
def test_a_supply_sags_by_the_cells_of_all_boards_that_it_feeds(fuse_A, supply_A, share, rigs):
    """Two boards of two wires, each of which draws 8 V over 45.2 Ohm, 0.177 A, when contracted.

    One that states a current of its own has a supply or a fuse of its own.
    """
    path = rigs / "wires4/rig.toml"
    table = read_merged(path).table
    table["devices"]["supply"]["current_A"] = supply_A
    board = table["devices"].pop("board")
    for name, cells in (("one", board["cells"][:2]), ("other", board["cells"][2:])):
        more = {} if fuse_A is None else {"supply_current_max_A": fuse_A}
        table["devices"][name] = {**board, "port": f"usb:{name}", "cells": cells, **more}
    path.write_text(tomli_w.dumps(table))
    for board in load_rig(path).protections:
        least_mA = 8000 * 0.97 * share / (50.4 * 1.1) * (1.0 - board.bench.current_error)
        assert board.on_min_mA == int(least_mA - 1000 / 1023) - 1


def test_a_wire_behind_leads_is_warmer_than_the_least_that_it_may_be():
    """7.76 V over 20 and 50.4 Ohm warm a metre of 126 Ohm by 39 K, below where it transforms.

    Without the leads the least was 59 K: the wire's resistance could then be none that is known.
    """
    sets = ["devices.board.resistance.lead_Ohm=20.0"]
    rig = load_rig(ROOT / "configs/wires4/rig.toml", sets)
    one = watched(rig.tables, rig.protections, [f"muscle.{n}" for n in (1, 2, 3, 4)])[0]
    rise_K = (7.76 / 70.4) ** 2 * 126.0 / (125.0 * pi * 1e-4)
    assert rise_K == pytest.approx(39.0, abs=0.1)
    bounds = WireBounds([(one.cell, one.around)], 1e-3)
    bounds.step(np.ones((1, 2)), 10_000)
    assert bounds.state[0, LAZY, 0] < one.around.cold_C + rise_K < bounds.state[0, EAGER, 0]


@given(
    st.floats(100.0, 140.0), st.floats(0.8, 1.2), st.floats(2.0, 12.0), st.integers(1, 12),
    st.sampled_from([500, 1000, 2000]), st.data(),
)  # fmt: skip
def test_no_sound_cell_of_any_tolerance_reads_below_the_limit(r_M, ratio, supply_V, n, full, data):
    """In any phase, with any of the wires in parallel broken, as the firmware rounds."""
    wiring = data.draw(st.sampled_from(["series", "parallel"]))
    wire = SmaWire(
        n_wires=n, wiring=wiring, supply_V=supply_V, martensite_Ohm_per_m=r_M,
        austenite_Ohm_per_m=ratio * r_M,
    )  # fmt: skip
    bench = replace(a_board().bench, supply_V=supply_V, supply_A=None)
    limits = a_board().limits | {"current_full_scale_mA": full}
    board = Protection("b", limits, [CellWire("a.1", wire)], [], bench).with_full_scale(full)
    least_mA = on_min_mA(board.cells, board.bench, limits, 0.1)
    left = data.draw(st.integers(1, n)) if wiring == "parallel" else 1
    metres = 0.1 * n if wiring == "series" else 0.1 / left
    xi = data.draw(st.floats(0.0, 1.0))
    ohms = metres * (r_M + (ratio - 1.0) * r_M * xi) * data.draw(st.floats(0.9, 1.1))
    volts = supply_V * data.draw(st.floats(0.97, 1.03))
    error = data.draw(st.floats(0.0, board.bench.current_error))
    counts = int(volts / ohms * (1.0 - error) * 1e3 / full * 1024)
    assert least_mA == 1 or min(counts, 1023) * full // 1024 >= least_mA or counts > 1023


def test_what_is_heated_unnoticed_is_that_of_a_calculation_by_hand():
    """20.6 V/m over 113 Ohm/m for ever, or the reading of 131 mA that heats as 182 mA."""
    [one, *_] = with_its_table(a_board()).unnoticed()
    most_A = 1.03 * 8.0 / 45.2
    assert one.share == pytest.approx(0.131 / most_A)
    assert one.times == pytest.approx(most_A**2 * 113.0 / 126.0 / 0.131**2)
    held_K = (1.03 * 20.0) ** 2 / 113.0 / (0.85 * pi * 1e-4 * 125.0)
    assert one.worst_C == pytest.approx(28.0 + held_K)
    assert one.protected


def test_a_board_that_measures_resistance_notices_more():
    """V / I beyond 1.1 x 50.4 Ohm; half a count of 843 and of 149."""
    [sensed, *_] = with_its_table(a_board(**SENSING)).unnoticed()
    limits = a_board(**SENSING).limits
    counts = sensed.share * 1.03 * 8.0 / 45.2 * 1023
    _, low = 0.0, Chain.of(limits, 0.0, 0.0).bounds_Ohm(round(counts), round(8.24 / 10.0 * 1023))[0]
    assert low == pytest.approx(1.1 * 50.4, rel=0.01)
    assert sensed.share == pytest.approx(45.2 / (1.1 * 50.4), rel=0.01)
    assert sensed.times == pytest.approx(1.1**2 * 126.0 / 113.0, rel=0.02)


def test_a_given_greatest_resistance_and_a_tolerance_move_what_is_noticed():
    board = with_its_table(a_board(**SENSING))
    share = board.unnoticed()[0].share
    known = replace(board, resistance=board.resistance.model_copy(update={"tolerance": 0.02}))
    assert known.unnoticed()[0].share == pytest.approx(1.1 / 1.02 * share, rel=0.01)
    given_ = replace(board, resistance=board.resistance.model_copy(update={"max_Ohm": 50.4}))
    assert given_.unnoticed()[0].share == pytest.approx(1.1 * share, rel=0.01)


def test_where_a_supply_burns_a_wire_the_heat_budget_is_that_of_the_lowest_reading():
    """14 V: a wire that bears 280 C is protected from readings too low, with less heat."""
    fast = SmaWire(n_wires=4, supply_V=14.0)
    blind, sensing = (
        with_its_table(a_board(fast, n=1, most_C=280.0, **more))
        for more in ({}, SENSING | {"supply_full_scale_mV": 20000})
    )
    assert not blind.unnoticed()[0].protected
    assert sensing.unnoticed()[0].protected
    assert sensing.unnoticed()[0].worst_C == pytest.approx(280.0, abs=0.5)
    assert sensing.limits["heat_max_cA2ms"] < blind.limits["heat_max_cA2ms"]
    [of_min] = doubts([blind])
    assert "current_on_min_mA = 233: a current of 'a.1' that is read 27 % too low" in of_min
    assert doubts([sensing]) == []


@pytest.mark.parametrize(
    ("changes", "warns"),
    [({}, False), ({"current_on_min_mA": 20}, True),
     ({"current_on_min_mA": 20} | SENSING, False)],
)  # fmt: skip
def test_a_board_that_compares_no_current_is_told(changes, warns):
    """Without the limit that follows from the wires, and without readings of resistance."""
    board = with_its_table(a_board())
    lines = doubts([replace(board, limits={**board.limits, **changes})])
    assert [("no current is compared" in line, "give 131" in line) for line in lines] == (
        [(True, True)] if warns else []
    )


def test_a_divider_that_ends_below_the_supply_compares_nothing():
    board = with_its_table(a_board(**SENSING | {"supply_full_scale_mV": 6000}))
    assert board.unnoticed()[0].share < 0.75
    [line] = doubts([board])
    assert "supply_full_scale_mV = 6000: the divider shows no more" in line


def test_a_board_whose_limit_is_0_notices_nothing_and_its_wire_is_held_on_for_ever():
    board = with_its_table(a_board())
    [one, *_] = replace(board, limits={**board.limits, "current_on_min_mA": 0}).unnoticed()
    assert (one.share, one.times) == (0.0, inf)
    assert one.worst_C == board.unnoticed()[0].worst_C


def test_a_supply_heats_unnoticed_by_what_its_tolerance_leaves_unnoticed():
    """2.2 V and 0.2 V over 0.1 m of 113 Ohm/m, held on for ever in the least cooling, at 30 degC.

    3 % above 2.2 V, which a tolerance of 0.066 V leaves, take it to 166 degC.
    """
    loss_W_per_m_K = 0.85 * 125.0 * pi * 1e-4
    for tolerance_V in (0.2, 0.066):
        sets = [f"devices.supply.voltage_tolerance_V={tolerance_V}"]
        [board] = load_rig(ROOT / "configs/isotonic/rig.toml", sets).protections
        rise_K = ((2.2 + tolerance_V) / 0.1) ** 2 / 113.0 / loss_W_per_m_K
        assert board.unnoticed()[0].worst_C == pytest.approx(30.0 + rise_K, abs=0.1)


def test_an_arduino_reads_no_current_that_could_be_too_low():
    assert replace(a_board(), measures=False).unnoticed() == []


@pytest.mark.parametrize("rig", ["wires4", "stage", "isotonic", "spring_bias"])
def test_the_wires_of_a_bundled_rig_bear_every_reading_that_is_too_low(rig, configs, capsys):
    (board,) = load_rig(configs / rig / "rig.toml").protections
    assert board.limits["sense_every_ms"] == 100
    assert all(one.protected for one in board.unnoticed())
    assert doubts([board]) == []
    assert any("is read 19 % too low" in line for line in as_text([board]))
    assert main(["check", str(configs / rig / "rig.toml"), "--strict"]) in (0, 2)
    assert "compared" not in capsys.readouterr().err
