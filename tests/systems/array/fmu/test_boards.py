"""Units with a driver board's firmware: against runs of hil, and its faults."""

from functools import cache

import numpy as np
import pytest

from fmu_unit import PERIOD_S
from hil.__main__ import main
from hil.devices.board import protocol
from hil.record.read import open_run

# The plant of the run is its model, as that of the unit is; its board is commanded every period. It
# sends no sensing pulses: they warm the unit's wires by 0.07 K, and the twin of a run is not told.
AS_MODELLED = (
    "devices.board.limits.sense_every_ms=0",
    "plant.arrays.muscle.cell.k_se_N_per_m=611.0",
    "plant.arrays.muscle.activation.ambient_C=25.0",
    "devices.board.every=1",
)
MIGA6 = [f"muscle.{n}" for n in range(1, 7)]
FAULTS = [f"board.fault.{name}" for name in protocol.FAULTS]
SILENCE_MAX_MS = protocol.default_limits()["silence_max_ms"]
SCAN_MS = 4


@pytest.fixture(scope="module")
def recorded(configs, tmp_path_factory):
    """The run of an experiment with these settings, made once."""
    folder = tmp_path_factory.mktemp("runs")

    @cache
    def run(rig, experiment, sets, duration_s):
        out = folder / f"{rig}.h5"
        words = ["run", str(configs / rig / f"{experiment}.toml"), "--out", str(out)]
        changes = [word for one in sets for word in ("--set", one)]
        assert main([*words, *changes, "--duration", str(duration_s)]) == 0
        return open_run(out)

    return run


@pytest.fixture
def board(built, opened, configs):
    """The unit of miga6 with its board, armed, after 20 periods with cells 1 and 2 on."""
    with opened(built(configs / "miga6/rig.toml", with_boards=True)) as unit:
        yield unit


def begin(unit, **limits):
    unit.set([f"board.limit.{name}" for name in limits], list(limits.values()))
    unit.start()
    unit.set(["muscle.1.duty", "muscle.2.duty"], [1.0, 1.0])
    assert unit.run(20, ["board.state", "muscle.1.gate_duty"])[-1].tolist() == [1.0, 1.0]


def latched(unit):
    return [
        name.rsplit(".", 1)[1]
        for name, on in zip(FAULTS, unit.values(FAULTS), strict=True)
        if on == 1.0
    ]


@pytest.mark.slow
@pytest.mark.parametrize("fmi", [3, 2])
@pytest.mark.parametrize(
    ("rig", "experiment", "sets", "duration_s"),
    [("miga6", "all_on", (), 0.8), ("wires4", "modulate", AS_MODELLED, 1.2)],
)
def test_a_unit_repeats_a_run_with_its_board(
    rig, experiment, sets, duration_s, fmi, built, opened, configs, recorded
):
    """Force to 1e-9 N, and what the board measures to the last bit: it is the same firmware.

    A row of a run has the board's answer to the command of the row before.
    """
    run = recorded(rig, experiment, sets, duration_s)
    duties = (run.cells_duty if "cells_duty" in run else run.cells_commanded).values.astype(float)
    cells = list(run.cell.values)
    measured = [f"{cell}.{name}" for cell in cells for name in ("current_A", "temperature_C")]
    names = ["muscle.right_N", *measured, *(f"{cell}.gate_duty" for cell in cells)]
    found = []
    unit_file = built(configs / rig / "rig.toml", fmi, sets=sets, with_boards=True)
    with opened(unit_file) as unit:
        unit.start()
        for k, duty in enumerate(duties):
            found.append(unit.values(names))
            unit.set([f"{cell}.duty" for cell in cells], duty)
            unit.step(k)
    found = np.array(found)
    assert np.ptp(found[:, 0]) > 0.05
    np.testing.assert_allclose(found[:, 0], run.force_model_N.values, rtol=0.0, atol=1e-9)
    for i, name in enumerate(measured):
        answers = run[name].values[1:]
        known = np.isfinite(answers)
        assert known.sum() > 100
        np.testing.assert_allclose(found[:-1, 1 + i][known], answers[known], rtol=0.0, atol=1e-12)
    gates = found[:, -len(cells) :] > 0.0
    np.testing.assert_array_equal(gates[1:], run.cells_reported.values[1:] == 1)


def test_a_silent_host_is_latched_by_the_watchdog(board):
    """The command holds for hold_s = 50 ms; after silence_max_ms the fault latches."""
    begin(board)
    board.set(["board.silence"], [1.0])
    on, fault, force_N = board.run(
        200, ["muscle.1.gate_duty", "board.fault.host_silent", "muscle.right_N"]
    ).T
    # The last command was a period before the silence.
    assert 49 <= on.argmin() + 1 <= 51
    assert SILENCE_MAX_MS - 1 <= fault.argmax() + 1 <= SILENCE_MAX_MS + 1
    assert force_N[-1] < 0.8 * force_N.max()
    board.set(["board.silence"], [0.0])
    on, state = board.run(50, ["muscle.1.gate_duty", "board.state"])[-1]
    assert (on, state) == (0.0, 2.0)
    assert latched(board) == ["host_silent"]


def test_a_latched_board_is_armed_again_after_it_was_disarmed(board):
    begin(board)
    board.set(["board.silence"], [1.0])
    board.run(150, [])
    board.set(["board.silence", "board.arm"], [0.0, 0.0])
    assert board.run(20, ["board.state"])[-1] == 0.0
    assert latched(board) == []
    board.set(["board.arm"], [1.0])
    # relay K1 is seen open and then closed, at readings 16 ms apart
    assert board.run(60, ["board.state", "muscle.1.gate_duty"])[-1].tolist() == [1.0, 1.0]


def test_a_cell_on_for_too_long_is_latched_and_named(board):
    on_time_max_ms = 300
    begin(board, on_time_max_ms=on_time_max_ms)
    board.set(["muscle.2.duty"], [0.0])
    on, fault = board.run(400, ["muscle.1.gate_duty", "board.fault.cell_on_too_long"]).T
    expected_ms = on_time_max_ms - 20
    assert expected_ms <= on.argmin() + 1 <= expected_ms + SCAN_MS + 1
    assert fault.argmax() == on.argmin()
    assert fault[-1] == 1.0
    assert board.values(["muscle.1.faulted", "muscle.2.faulted"]) == [1.0, 0.0]
    assert latched(board) == ["cell_on_too_long"]


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("board.estop_open", 1.0, "estop_open"),
        ("muscle.2.current_on_A", 0.0, "current_low"),
        ("muscle.2.current_on_A", 1.5, "current_high"),
    ],
)
def test_what_goes_wrong_at_the_board_is_latched(name, value, fault, board):
    begin(board)
    board.set([name], [value])
    assert board.run(30, ["muscle.1.gate_duty"])[-1] == 0.0
    assert latched(board) == [fault]


@pytest.mark.slow
def test_wires_without_a_supply_are_found_broken(built, opened, configs):
    with opened(built(configs / "wires4/rig.toml", with_boards=True)) as unit:
        unit.start()
        unit.set(["muscle.1.duty", "muscle.1.supply_V"], [1.0, 0.0])
        unit.run(40, [])
        assert latched(unit) == ["current_low"]


@pytest.mark.slow
def test_a_limit_out_of_its_range_is_refused(board):
    for value in (0.0, 60001.0, 12.5):
        with pytest.raises(Exception, match="SetFloat64"):
            board.set(["board.limit.on_time_max_ms"], [value])


@pytest.mark.slow
def test_limits_are_fixed_while_the_unit_runs(board):
    begin(board)
    with pytest.raises(Exception, match="SetFloat64"):
        board.set(["board.limit.on_time_max_ms"], [300.0])


@pytest.mark.slow
def test_a_state_is_continued_in_another_instance(built, opened, configs):
    """The firmware's memory moves with the state: it must not act on the first one's pins."""
    path, names = built(configs / "miga6/rig.toml", with_boards=True), ["muscle.right_N", *FAULTS]
    with opened(path) as first, opened(path) as second:
        begin(first)
        kept = first.fmu.getFMUState()
        serialised = first.fmu.serializeFMUState(kept)
        first.fmu.freeFMUState(kept)
        first.set(["board.silence"], [1.0])
        expected = first.run(130, names)
        second.start()
        second.fmu.setFMUState(second.fmu.deserializeFMUState(serialised))
        second.k = 20
        second.set(["board.silence"], [1.0])
        found = second.run(130, names)
    np.testing.assert_array_equal(found, expected)
    assert found[-1, 1:].sum() == 1.0


@pytest.mark.slow
def test_the_unit_has_the_limits_of_the_rig(built, opened, configs):
    with opened(built(configs / "wires4/rig.toml", with_boards=True)) as unit:
        assert unit.get("board.limit.heat_max_cA2ms") == 217932.0
        assert unit.get("board.limit.current_max_mA") == 222.0


@pytest.mark.slow
def test_a_period_of_a_unit_is_that_of_its_steps(built, opened, configs):
    path = built(configs / "miga6/rig.toml", period_s=0.002, with_boards=True)
    with opened(path) as unit:
        unit.start()
        unit.set(["board.silence"], [1.0])
        for k in range(60):
            unit.step(2 * k, 2 * PERIOD_S)
        assert unit.get("board.fault.host_silent") == 1.0
