"""Which estimator an array's controllers get."""

from dataclasses import replace

import pytest

from hil.experiment.load import load
from hil.rig.instruments import layout_of
from hil.systems.array import controllers
from hil.systems.array.build_estimator import wire_estimator


@pytest.fixture
def wires4(pytestconfig):
    return load(pytestconfig.rootpath / "configs/wires4/follow.toml")


def estimator_of(config, kind):
    layout = layout_of(config.tables, config.system().cell_names)
    build = kind.estimator or config.kind.estimator
    return build(config.tables, config.system(), layout)


def test_a_controller_of_another_name_that_asks_for_it_gets_the_state_of_every_wire(wires4):
    schedule = controllers.CONTROLLERS["schedule"]
    installed = replace(schedule, estimator=wire_estimator)
    assert estimator_of(wires4, schedule).estimate.wires is None
    laws, gains_N, states = estimator_of(wires4, installed).estimate.wires.look()
    assert len(laws) == len(gains_N) == len(states) == wires4.model.n_cells
