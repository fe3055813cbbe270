"""`hil board bom`: ratings computed from a rig's wires, by Ohm's law and parts' data."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hil.__main__ import main
from hil.devices.board import protocol
from hil.errors import ConfigError
from hil.experiment import board_parts
from hil.experiment.board_limits import Protection
from hil.mechanics.sma.limits import Bench, CellWire
from hil.mechanics.sma.wire import SmaWire

RIG = Path("rig.toml")


def a_board(ohm=40.0, n=4, supply_V=8.0, supply_A=1.0, **limits):
    """A board with n equal wires of this resistance, whatever their state."""
    wire = SmaWire(
        diameter_m=1e-4, length_m=1.0, supply_V=supply_V, martensite_Ohm_per_m=ohm,
        austenite_Ohm_per_m=ohm, convection_W_per_m2_K=125.0,
    )  # fmt: skip
    cells = [CellWire(f"muscle.{i}", wire) for i in range(1, n + 1)]
    bench = Bench(15.0, 30.0, supply_V, supply_A, 0.0175, 0.0)
    table = protocol.default_limits() | {"current_max_mA": 250} | limits
    made = Protection("board", table, cells, [], bench)
    return made.with_full_scale(table["current_full_scale_mA"])


def the_bill(kind="board", **of):
    return board_parts.bill(RIG, a_board(**of), kind)


def rating(made, name):
    (row,) = [row for row in made.rows if row.name == name]
    return row.rating


def test_ratings_follow_from_ohms_law():
    """8.24 V (3 % up) over 40 Ohm: 0.206 A a cell, 0.824 A in four; 75 % of 2 A carry it."""
    made = the_bill()
    assert "0.206 A, 4 on at once: 0.82 A" in made.facts[0]
    assert rating(made, "fuse").endswith("2 A")
    # 0.206^2 37 mOhm 1.6 = 2.5 mW, 100 K/W
    assert "0.206 A of 4 A, 2.5 mW, 0.3 K; 8 V of 30 V" in rating(made, "mosfet")
    # 5 V / (50 x 2 A) = 50 mOhm
    assert "50 mOhm, 10 mV and 2.1 mW at 0.206 A" in rating(made, "shunt")
    assert "2 A of 6 A at 8 V of 24 V direct current" in rating(made, "relay")
    # the supply ends at 1 A: 0.25 mm2 at 4 A/mm2; the fuse at 2 A: 0.5 mm2
    assert "0.5 mm2, 29 mV a metre in each; of a cell: 0.25 mm2" in made.facts[2]


def test_cells_that_may_not_be_on_at_once_do_not_load_the_fuse():
    made = the_bill(cells_on_max=2)
    assert "2 on at once: 0.41 A" in made.facts[0]
    assert rating(made, "fuse").endswith("1 A")


def test_the_error_of_a_reading_names_a_better_full_scale():
    """Offset 190 uV / 50 mOhm, 3.8 mA of 206: 1.8 %; sqrt(1 + 1 + 0.09) and the 5 V, 1.9 %."""
    made = the_bill(supply_A=0.3)
    assert "error at 0.206 A: 5.2 %" in made.facts[3]
    warning = made.warnings[-1]
    assert warning.startswith("limits.current_full_scale_mA = 500 with its shunt is better")
    better = the_bill(current_full_scale_mA=500, supply_A=0.3)
    # 0.95 mA of 206: 0.5 %
    assert "error at 0.206 A: 3.8 %" in better.facts[3]
    assert "200 mOhm" in rating(better, "shunt")
    assert not any("full_scale" in one for one in better.warnings)


def test_the_better_full_scale_is_the_one_that_leaves_the_wires_more_heat():
    """A short of 0.9 A is seen as 0.5 A for three scans by the finest sensor: 1 A is better."""
    made = the_bill(n=1, supply_A=0.9, current_max_mA=230)
    assert made.warnings[-1].startswith("limits.current_full_scale_mA = 1000 with its shunt")
    # 2 A: the offset is twice as large; 0.5 A: (3 0.81 - 2 0.25) A2 a scan are late, not 0.81
    assert (
        the_bill(n=1, supply_A=0.9, current_max_mA=230, current_full_scale_mA=1000).warnings == []
    )
    finest = the_bill(n=1, supply_A=0.9, current_max_mA=230, current_full_scale_mA=500)
    assert finest.warnings[-1].startswith("limits.current_full_scale_mA = 1000")


def test_modules_read_less_well_than_limits_assume_and_the_bill_says_what_heat_is_left():
    """Gain 2 %, offset 1 mV / 1 Ohm: 1 mA of 206; the limits assume gain 1 % and 0.95 mA."""
    made = the_bill("modules", current_full_scale_mA=500)
    [warning] = [one for one in made.warnings if "error of a reading" in one]
    assert warning.startswith("the error of a reading, 4.6 %, is above the 3.8 % that the wires'")
    left = int(warning.rsplit(" ", 1)[1])
    board = a_board(current_full_scale_mA=500)
    whole = board_parts.severest_table(board.cells, board.bench, board.limits)["heat_max_cA2ms"]
    # (1 - e)^2 of both, at the 194 mA of the lowest voltage: e grows by 0.87 %
    assert left == pytest.approx(
        whole * (1 - 0.0087 / (1 - board.bench.current_error)) ** 2, rel=1e-3
    )


def test_a_current_limit_below_that_of_an_intact_cell_is_told_and_no_full_scale_made_for_it():
    """8.24 V over 40 Ohm are 206 mA."""
    (warning,) = the_bill(current_max_mA=100).warnings
    assert warning.startswith("limits.current_max_mA = 100 is below the 206 mA of an intact cell")
    assert not any("is below" in one for one in the_bill(current_max_mA=207).warnings)


def test_parts_are_counted_by_cells():
    made = the_bill(n=12, ohm=200.0, current_full_scale_mA=200, current_max_mA=50)
    counts = {row.name: row.count for row in made.rows}
    assert (counts["sense"], counts["mosfet"], counts["mux"]) == (12, 14, 2)
    assert any("the leak cut may not see" in line for line in made.warnings)


# (what the board is given, what the line says)
REFUSED = {
    "too many cells": ({"n": 13, "ohm": 200.0}, "cells: 13 cells, and this build has 12: use two"),
    "too much voltage": (
        {"supply_V": 18.0, "ohm": 90.0},
        "18 V is above 18 V, where the suppressor",
    ),
    "a current beyond the transistor": (
        {"ohm": 1.9, "n": 1, "current_full_scale_mA": 10000},
        "a cell draws 4.34 A, and Infineon IRLML6344TRPbF bears 4 A",
    ),
    "more current than the relays": (
        {"n": 12, "ohm": 20.0, "current_max_mA": 500},
        "these cells draw 4.94 A, and a fuse of 5 A, the largest that the contact of Panasonic "
        "SF4D-DC12V permits (6 A), carries 3.75 A: set limits.cells_on_max = 9, or use two boards",
    ),
    "a full scale without a shunt": (
        {"current_full_scale_mA": 700},
        "current_full_scale_mA = 700: needs a shunt of 143 mOhm, which is not made: set it to 500",
    ),
    "a limit beyond the amplifier": (
        {"current_full_scale_mA": 500, "current_max_mA": 490},
        "current_max_mA = 490 saturates the amplifier: set it to 1000",
    ),
    "a wire too thin to measure": (
        {"ohm": 400.0, "current_max_mA": 30},
        "an intact cell's 0.0206 A is measured with an error of 22 %: set it to 200",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_rig_that_the_board_cannot_feed_or_sense_is_refused_in_one_line(name):
    of, said = REFUSED[name]
    with pytest.raises(ConfigError) as error:
        the_bill(**of)
    assert said in str(error.value)
    assert str(error.value).startswith("rig.toml: devices.board")
    assert "\n" not in str(error.value)


def test_modules_measure_above_their_lowest_voltage_only():
    with pytest.raises(ConfigError, match=r"from 6.5 V on.*2.2 V: build the board"):
        the_bill("modules", supply_V=2.2, ohm=11.0)
    with pytest.raises(ConfigError, match="7 cells, and this build has 6"):
        the_bill("modules", n=7)
    made = the_bill("modules", current_full_scale_mA=500)
    # gain 10: 5 V / (10 x 0.5 A) = 1 Ohm; 0.206 A: 206 mV
    assert "1000 mOhm, 206 mV" in rating(made, "sense_module")


def test_an_arduino_that_measures_nothing_needs_no_sense_modules():
    board = replace(a_board(), measures=False)
    made = board_parts.bill(RIG, board, "modules")
    assert not {row.name for row in made.rows} & set(board_parts.MEASURING)


def test_a_wire_that_nobody_described_is_asked_for():
    with pytest.raises(ConfigError, match=r"wire of 'm.1' is not described: add \[devices.board"):
        board_parts.bill(RIG, replace(a_board(), unknown=["m.1"]), "board")


def test_the_command_prints_the_bill_of_a_rig(configs, capsys):
    assert main(["board", "bom", str(configs / "wires4/rig.toml"), "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["boards"]
    assert "4 on at once: 0.73 A" in made["facts"][0]
    assert main(["board", "bom", str(configs / "wires4/rig.toml")]) == 0
    out = capsys.readouterr().out
    assert "protects: wiring, connector and relays" in out
    assert "error at 0.182 A: 4.4 %" in out
    assert "warning" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bom"], "hil board bom: give a RIG.toml"),
        (["bom", "nowhere.toml"], "nowhere.toml"),
        (["limits", "usb:1", "--modules"], "--modules belongs to hil board bom"),
    ],
)
def test_bad_words_get_one_line(words, said, capsys):
    assert main(["board", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
