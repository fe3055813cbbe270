"""The estimator stage of an array with its parts only in name: what reaches which, and when."""

from types import SimpleNamespace

import numpy as np
import pytest

from hil.loop.channels import Channel, RigLayout
from hil.loop.frame import Column
from hil.systems.array.estimate.observer import ForceObserver, RigInputs
from hil.systems.array.failures.isolation import FAILED, HEALTHY
from hil.systems.array.failures.wire_failures import WireFailures
from rows import row_of

NAN = float("nan")
FORCE_ON_N = np.array([2.0, 0.0, 4.0])


class Observer:
    """An observer whose twin gives 1.5 N and whose estimate is 1.75 N, 0.25 N of it unexplained."""

    def __init__(self):
        self.twin = SimpleNamespace(inputs=("z",))
        self.x, self.theta = np.arange(4.0), np.arange(3.0)
        self.wires = SimpleNamespace(T_C=np.array([20.0, NAN, 30.0]), xi=np.zeros(3))
        self.activation_N, self.outputs = np.array([1.0, 0.0, 3.0]), np.zeros(3)
        self.steps, self.ambient = [], []

    def step(self, drive, n_steps, force_N, inputs):
        self.steps.append((drive.tolist(), n_steps, force_N, inputs.tolist()))
        self.outputs[:] = 1.5, 1.75, 0.25

    def set_ambient(self, T_C, *, settled):
        self.ambient.append((T_C, settled))

    def step_rows(self, cells, force_N):
        return cells, force_N


class Isolation:
    """Tests that find the third cell failed from the second look on."""

    def __init__(self):
        self.state = np.full(3, HEALTHY, dtype=np.uint8)
        self.log_odds, self.seen = 0.0, []

    def step(self, t_s, residual_N, activation, cells, n_periods):
        self.seen.append((t_s, residual_N, activation.tolist(), cells.tolist(), n_periods))
        if len(self.seen) == 2:
            self.state[2], self.log_odds = FAILED, 4.5


class OfWires(WireFailures):
    """The same of wires, which know their air and whom they suspect."""

    state = log_odds = suspicion = None

    def __init__(self):
        self.state, self.log_odds = np.array([HEALTHY, FAILED, HEALTHY], dtype=np.uint8), 2.5
        self.suspicion, self.seen, self.air = np.array([0.1, 0.7, 0.2]), [], []

    def step(self, t_s, residual_N, T_C, xi, drive, n_periods):
        self.seen.append((t_s, residual_N, T_C, xi, drive.tolist(), n_periods))

    def set_air(self, T_C, *, settled):
        self.air.append((T_C, settled))


class Twin:
    columns = (Column("x_model", "1", "model", ""),)

    def __init__(self):
        self.written = 0

    def bind(self, frame):
        self.bound = frame

    def write(self):
        self.written += 1


class Learned:
    def __init__(self):
        self.seen, self.air = [], []

    def step(self, *seen):
        self.seen.append(seen)

    def set_air(self, T_C, *, settled):
        self.air.append((T_C, settled))


class Bench:
    """A force, the temperature of the room, three cells and one output."""

    def __init__(self, isolates=False, ambient=None, **more):
        layout = RigLayout(
            (Channel("T", "_C"), Channel("f", "_N", "main")), ("o",), ("board",), ("board",), 3,
            cell_names=("a", "b", "c"), isolates=isolates,
        )  # fmt: skip
        self.observer = Observer()
        rig = RigInputs(force=1, ambient=ambient, driven=(0,), isolates=isolates)
        self.stage = ForceObserver(self.observer, FORCE_ON_N, rig, **more)
        time = [Column("t_s", "s", "timing", "")]
        self.frame = row_of(layout, *time, *self.stage.columns)
        self.readings, self.commands = layout.bind(self.frame)
        self.stage.bind(self.frame, self.readings, self.commands)
        self.every = (1 << self.readings.n_sources) - 1

    def step(self, t_s=0.0, n_periods=1, T_C=25.0, force_N=2.0, valid=True, cells=(1, 0, 1)):
        self.readings.mark_valid(self.every, self.every if valid else 0)
        self.readings.measured[:] = T_C, force_N
        self.readings.cells_reported[:] = cells
        self.commands.outputs[0] = 0.5
        self.frame.values[self.frame.index("t_s")] = t_s
        self.stage.step(n_periods)

    def __getitem__(self, name):
        return float(self.frame.values[self.frame.index(name)])

    @property
    def failed(self):
        return self.frame.cells("cells_failed").tolist()


def test_twin_and_observer_get_cells_force_and_driven_points_and_no_time_before_the_first_tick():
    bench = Bench()
    bench.step(n_periods=7)
    bench.step(n_periods=3, cells=(0, 1, 0))
    bench.step(n_periods=1, valid=False)
    first, second, third = bench.observer.steps
    assert first == ([1, 0, 1], 0, 2.0, [0.5])
    assert second == ([0, 1, 0], 3, 2.0, [0.5])
    assert third[:2] == ([1, 0, 1], 1)
    assert np.isnan(third[2])
    assert [c.name for c in bench.stage.columns] == [
        "force_model_N", "force_estimate_N", "force_disturbance_N",
    ]  # fmt: skip
    assert (bench["force_model_N"], bench["force_estimate_N"], bench["force_disturbance_N"]) == (
        1.5, 1.75, 0.25,
    )  # fmt: skip
    estimate = bench.stage.estimate
    assert (estimate.force_N, estimate.disturbance_N) == (1.75, 0.25)
    assert estimate.cells.tolist() == [1, 0, 1]
    assert estimate.usable.tolist() == [1, 1, 1]
    assert estimate.x is bench.observer.x
    assert bench.stage.twin is bench.observer.twin
    assert bench.observer.ambient == []  # nobody named a channel for it


def test_failures_are_looked_for_in_what_the_twin_does_not_explain():
    """Activations are shares of the force of a cell that is on: 1 N of 2, none of 0, 3 N of 4."""
    isolation = Isolation()
    bench = Bench(isolation=isolation)
    bench.step(0.25)
    assert bench.failed == [HEALTHY] * 3
    bench.step(0.5, n_periods=2)
    bench.step(0.75)
    seen = [(0.25, 1), (0.5, 2), (0.75, 1)]
    assert isolation.seen == [(t, 0.5, [0.5, 0.0, 0.75], [1, 0, 1], n) for t, n in seen]
    assert bench.failed == [HEALTHY, HEALTHY, FAILED]
    assert bench.stage.estimate.usable.tolist() == [1, 1, 0]
    assert bench["failure_log_odds"] == 4.5


def test_failures_of_wires_are_looked_for_with_their_heat_and_their_air():
    isolation = OfWires()
    bench = Bench(isolation=isolation, ambient=0)
    bench.step(0.25, n_periods=4)
    ((t_s, residual_N, T_C, xi, drive, n_periods),) = isolation.seen
    assert (t_s, residual_N, drive, n_periods) == (0.25, 0.5, [1, 0, 1], 4)
    assert T_C is bench.observer.wires.T_C
    assert xi is bench.observer.wires.xi
    assert bench.stage.estimate.suspicion is isolation.suspicion
    assert bench.stage.estimate.usable.tolist() == [1, 0, 1]
    assert bench.failed == [HEALTHY, FAILED, HEALTHY]
    assert isolation.air == [(25.0, True)]


def test_the_measured_air_settles_the_wires_at_first_and_later_only_surrounds_them():
    learned = Learned()
    bench = Bench(wires=learned, ambient=0)
    bench.step(0.0, T_C=21.0)
    bench.step(0.5, n_periods=2, T_C=22.0)
    bench.step(1.0, T_C=NAN)
    assert bench.observer.ambient == learned.air == [(21.0, True), (22.0, False)]
    assert [(t_s, forces_N, n) for t_s, forces_N, _, _, n in learned.seen] == [
        (0.0, (0.5, 1.5), 1), (0.5, (0.5, 1.5), 2), (1.0, (0.5, 1.5), 1),
    ]  # fmt: skip
    assert bench.stage.estimate.wires is learned


def test_cells_that_a_board_isolates_have_failed_whatever_the_tests_find():
    bench = Bench(isolates=True)
    for cells_open, failed in (([0, 1, 0], 1), ([0, 0, 0], None)):
        bench.readings.cells_open[:] = cells_open
        bench.step()
        assert bench.failed == [FAILED if n == failed else HEALTHY for n in range(3)]
        assert bench.stage.estimate.usable.tolist() == [int(n != failed) for n in range(3)]
    bench = Bench(isolates=True, isolation=Isolation())
    bench.readings.cells_open[:] = 1, 0, 0
    bench.step()
    bench.step()
    assert bench.failed == [FAILED, HEALTHY, FAILED]
    assert bench.stage.estimate.usable.tolist() == [0, 1, 0]


def test_what_is_recorded_is_what_there_is():
    for more, names in (
        ({"isolates": True}, ["cells_failed"]),
        ({"isolation": Isolation()}, ["failure_log_odds", "cells_failed"]),
        ({"twin": Twin()}, ["x_model"]),
    ):
        assert [c.name for c in Bench(**more).stage.columns[3:]] == names
    twin = Twin()
    bench = Bench(twin=twin)
    bench.step()
    bench.step()
    assert (twin.written, twin.bound) == (2, bench.frame)


@pytest.mark.parametrize(
    "more",
    [
        {"wires": Learned()}, {"isolation": Isolation()}, {"ambient": 0}, {"isolates": True},
        {"twin": Twin()},
    ],
)  # fmt: skip
def test_many_rows_are_stepped_at_once_only_by_twin_and_observer_alone(more):
    cells, measured = np.zeros((2, 3), dtype=np.uint8), np.array([[20.0, 1.0], [21.0, 2.0]])
    assert Bench(**more).stage.step_rows(cells, measured) is None
    rows, force_N = Bench().stage.step_rows(cells, measured)
    assert rows is cells
    assert force_N.tolist() == [1.0, 2.0]


def test_hot_wires_start_hot_and_what_is_no_wire_is_left_alone():
    bench = Bench()
    bench.stage.assume_hot(np.array([90.0, 80.0, NAN]))
    wires = bench.observer.wires
    np.testing.assert_array_equal(wires.T_C, [90.0, NAN, 30.0])
    assert wires.xi.tolist() == [1.0, 0.0, 0.0]
