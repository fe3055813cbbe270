"""What a rig's tables must agree on: each disagreement is named, and what agrees is not."""

import pytest

import hil
from hil.errors import ConfigError
from hil.experiment import checks
from rig_file import loosen


def complaints(rigs, name, *sets):
    """The lines of a rig's file with these values, through one of its experiments."""
    rig = rigs / name / "rig.toml"
    loosen(rig, *sets)
    experiment = next(file for file in sorted(rig.parent.glob("*.toml")) if file != rig)
    try:
        hil.load(experiment)
    except ConfigError as error:
        return str(error)
    return ""


SUPPLY = (
    'devices.second={kind="supply", resource="ASRL/dev/ttyUSB1::INSTR", voltage_V=8.0, '
    "current_A=0.7, voltage_max_V=10.0, current_max_A=1.2}"
)


@pytest.mark.parametrize(
    ("rig", "sets", "said"),
    [
        ("wires4", [SUPPLY], "devices: 2 supplies: keep the one that powers the cells"),
        ("wires4", ["devices.daq.every=100"], "daq.every = 100: one reading every 0.1 s, but"),
        ("wires4", ["devices.board.every=60"], "board.every = 60: one command every 0.06 s, but"),
        (
            "wires4",
            ["loop.period_s=0.05", "devices.board.every=1", "guard.reading_age_max_s=0.05"],
            "loop.period_s = 0.05: answers of 'board' are a period old, but guard.reading_age_max_",
        ),
        (
            "wires4",
            ["loop.period_s=0.04", "devices.board.every=1", "devices.board.hold_s=0.039"],
            "loop.period_s = 0.04: a command to 'board' expires before the next one, after hold_s",
        ),
        (
            "wires4",  # commanded every 4 ms
            ["devices.board.limits.hold_max_ms=4"],
            "limits.hold_max_ms = 4: one command every 0.004 s, and 0.004 s after each the board "
            "switches its cells off",
        ),
        (
            "wires4",
            [
                "devices.board.every=1",
                "devices.board.limits.silence_max_ms=1",
                "loop.period_s=0.0011",
            ],
            "limits.silence_max_ms = 1: one command every 0.0011 s, and 0.001 s after each the "
            "board trips (host_silent)",
        ),
        (
            "wires4",
            ["devices.supply.channel=2"],
            "supply.channel = 2: dialect = 'scpi' names no output: it would switch another than",
        ),
        (
            "wires4",
            ["guard.cell_on_max_s=20.5"],
            "cell_on_max_s = 20.5: board 'board' switches a cell off after 20 s",
        ),
        (
            "hand",
            ["devices.daq.outputs.index_flexor.units_per_V=0.0299"],
            "units_per_V = 0.0299: the card's 10 V reach only 0.299",
        ),
        (
            "hand",
            ["devices.daq.outputs.index_flexor.units_per_V=-0.0299"],
            "units_per_V = -0.0299: the card's 10 V reach only 0.299",
        ),
    ],
)
def test_tables_that_disagree_are_refused(rigs, rig, sets, said):
    assert said in complaints(rigs, rig, *sets)


@pytest.mark.parametrize(
    ("rig", "sets"),
    [
        ("wires4", []),  # its cells may be on for 20 s, and the board's own default is 10 s
        (
            "wires4",
            ["loop.period_s=0.05", "devices.board.every=1", "guard.reading_age_max_s=0.051"],
        ),
        (
            "wires4",
            ["devices.board.limits.hold_max_ms=5", "devices.board.limits.silence_max_ms=5"],
        ),
        ("wires4", ["devices.supply.channel=2", "devices.supply.dialect='tti'"]),
        ("hand", ["devices.daq.outputs.index_flexor.units_per_V=-0.03"]),
    ],
)
def test_tables_that_agree_are_taken(rigs, rig, sets):
    assert complaints(rigs, rig, *sets) == ""


def test_more_channels_than_a_word_has_bits_are_refused(rigs, monkeypatch):
    monkeypatch.setattr(checks, "WORD_BITS", 0)
    assert "devices: 1 channels: a rig may have 0" in complaints(rigs, "miga6")
