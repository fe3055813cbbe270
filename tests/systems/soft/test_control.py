"""Cells that follow any channel: units, what is read, and a restart."""

import numpy as np
import pytest

from hil.control.pid import Pid, PidGains, Switching
from hil.control.reference import Steps
from hil.control.steering import Steerable
from hil.loop.frame import CELL_UNKNOWN, Column, Commands, Frame
from hil.systems.soft.control import FollowedChannel, MaskRecruiter, SignalCells


@pytest.fixture
def stage():
    """Four cells of 2 1/m each on the channel of index 1, which reads 0.5 1/m at rest."""
    pid = Pid(
        PidGains(1.0, 10.0, 0.0, 0.02),
        0.5 + 2.0 * np.arange(5),
        range(4),
        Switching(0.1, 0.0),
        0.01,
    )
    control = SignalCells(
        Steerable(Steps([0.0], [4.6])), MaskRecruiter(pid),
        FollowedChannel(1, "bend_reference_1_per_m", "bend_demand_1_per_m", "1/m", 0.0), 4,
    )  # fmt: skip
    cells = [
        Column("cells_commanded", "1", "commanded", "", n_cells=4),
        Column("cells_reported", "1", "measured", "", n_cells=4),
    ]
    frame = Frame([*control.columns, *cells])
    measured = np.array([99.0, 0.5])
    commands = Commands(frame.cells("cells_commanded"), np.zeros(0))
    frame.cells("cells_reported")[:] = CELL_UNKNOWN
    control.bind(frame, measured, commands)
    return control, frame, measured, commands


def test_cells_join_until_the_channel_is_nearest_to_its_set_point(stage):
    control, frame, measured, commands = stage
    for k in range(300):
        control.step(0.01 * k)
        measured[1] = 0.5 + 2.0 * commands.cells.sum()
    assert commands.cells.tolist() == [1, 1, 0, 0]
    assert frame.values[frame.index("bend_reference_1_per_m")] == 4.6
    columns = {column.name: column for column in control.columns}
    assert columns["bend_demand_1_per_m"].units == "1/m"


def test_a_missing_reading_changes_nothing(stage):
    control, _, measured, commands = stage
    for k in range(50):
        control.step(0.01 * k)
        measured[1] = 0.5 + 2.0 * commands.cells.sum()
    before = commands.cells.tolist()
    measured[1] = np.nan
    for k in range(50, 100):
        control.step(0.01 * k)
    assert commands.cells.tolist() == before


def test_a_restart_forgets_the_integral_and_a_set_point_can_be_held(stage):
    control, _, measured, commands = stage
    measured[1] = 0.5  # a stuck sensor: the integral winds up to all cells
    for k in range(300):
        control.step(0.01 * k)
    assert commands.cells.all()
    control.restart()
    control.set_points["bend_reference_1_per_m"].held = 0.5
    control.step(3.0)
    assert not commands.cells.any()
