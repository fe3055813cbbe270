"""Estimator stage of a cellular array: twin, observer, and tests for failed cells.

`hil.systems.array.estimate.state_observer` holds twin and observer. Controllers can use the
estimate.
"""

from collections.abc import Sequence
from math import isfinite, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.control.controller import ArrayEstimate
from hil.experiment.twin import LastDrive
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.mechanics.system import Drive
from hil.systems.array.estimate.state_observer import ArrayObserver
from hil.systems.array.estimate.twin import Motion, TwinReadings, room_C, start_hot
from hil.systems.array.failures.cell_failures import CellFailures
from hil.systems.array.failures.isolation import FAILED, HEALTHY, Isolation
from hil.systems.array.failures.wire_failures import WireFailures
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.wires.learning import LearnedWires


class Sensed:
    """The resistance of every cell, and its age, in a row; NaN where a board measures none."""

    def __init__(self, frame: Frame, cells: Sequence[str]) -> None:
        known = {column.name for column in frame.columns}
        names = [
            [f"{cell}.{what}" for cell in cells]
            for what in ("resistance_Ohm", "age_of_resistance_s")
        ]
        self._values = frame.values
        self._at = np.array([[frame.index(one) if one in known else -1 for one in row]
                             for row in names])  # fmt: skip

    def read(self) -> NDArray[np.float64]:
        """(2, N) array, of this tick."""
        return np.where(self._at < 0, nan, self._values[self._at])


Tests = Isolation | WireFailures | CellFailures


class RigInputs(NamedTuple):
    """The rig's part in the estimate.

    Attributes
    ----------
    force : index of the force channel among the readings
    ambient : index of the channel that measures the ambient temperature
    driven : index of the model's input that each output of the rig sets
    isolates : boards isolate cells with open wires; these count as failed, whatever the tests find
    """

    force: int
    ambient: int | None = None
    driven: Sequence[int] = ()
    isolates: bool = False


class ForceObserver:
    """Twin and observer of a cellular array, and tests for cells that have failed.

    Parameters
    ----------
    observer : observer of the output that the rig's force channel measures
    force_on_N : (N,) array, F of every cell while on
    isolation : the tests for cells that have failed
    wires : wire models for a controller that plans with them
    twin : the twin's other readings; None to record none
    """

    def __init__(
        self,
        observer: ArrayObserver,
        force_on_N: NDArray[np.float64],
        rig: RigInputs,
        isolation: Tests | None = None,
        wires: LearnedWires | None = None,
        twin: TwinReadings | None = None,
    ) -> None:
        self._force, self._ambient = rig.force, rig.ambient
        self._motion = Motion(observer.twin, rig.driven)
        self._twin = twin
        self._records_failed = rig.isolates or isolation is not None
        n_cells = len(force_on_N)
        self._observer = observer
        self._per_N = 1.0 / np.where(force_on_N == 0.0, 1.0, force_on_N)
        self._activation = np.zeros(n_cells)
        self.isolation = isolation
        self._wires = wires
        self._drive = LastDrive(n_cells)
        self.estimate = ArrayEstimate(
            cells=self._drive.cells,
            usable=np.ones(n_cells, dtype=np.uint8),
            x=observer.x,
            theta=observer.theta,
            wires=wires,
        )
        self._started = False

    @property
    def twin(self) -> ArraySystem:
        """The twin, for a controller that inverts its wires' model."""
        return self._observer.twin

    @property
    def columns(self) -> list[Column]:
        columns = self._force_columns
        if self._twin is not None:
            columns += self._twin.columns
        if self._records_failed:
            states, n = "0 healthy, 1 failed, 2 one of these failed", len(self.estimate.cells)
            columns.append(Column("cells_failed", "1", "model", states, n))
        return columns

    @property
    def _force_columns(self) -> list[Column]:
        columns = [
            Column("force_model_N", "N", "model", "twin run open loop on cells_reported"),
            Column("force_estimate_N", "N", "model", "observer corrected by the measured force"),
            Column("force_disturbance_N", "N", "model", "part of it that no cell accounts for"),
        ]
        if self.isolation is not None:
            columns.append(
                Column("failure_log_odds", "1", "model", "log odds of the most likely new failure")
            )
        return columns

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        self._values = frame.span([column.name for column in self._force_columns])
        if self._twin is not None:
            self._twin.bind(frame)
        self._observer.outputs = self._values[:3]
        self._t_s = frame.values[frame.index("t_s") :][:1]
        if self._records_failed:
            self._failed = frame.cells("cells_failed")
        if isinstance(self.isolation, CellFailures):
            self._sensed = Sensed(frame, self.twin.cell_names)
        self._readings, self._left_out = readings, b"unknown"
        self._drive.bind(readings)
        self._motion.bind(commands)

    def step(self, n_periods: int) -> None:
        r, observer, estimate, values = self._readings, self._observer, self.estimate, self._values
        n_steps = n_periods if self._started else 0
        self._started = True
        force_N = r.measured.item(self._force) if r.is_valid(self._force) else nan
        if isfinite(T_C := room_C(r, self._ambient)):
            self._set_ambient(T_C, settled=not n_steps)
        drive = self._drive.now()
        observer.step(drive, n_steps, force_N, self._motion.now())
        estimate.force_N, estimate.disturbance_N = values.item(1), values.item(2)
        if self._twin is not None:
            self._twin.write()
        if self._wires is not None:
            wires, t_s = observer.wires, float(self._t_s[0])
            twin_N = values.item(0)
            forces_N, state = (force_N - twin_N, twin_N), (wires.T_C, wires.xi)
            self._wires.step(t_s, forces_N, state, drive, n_periods)
        if self.isolation is not None:
            self._isolate(self.isolation, force_N - values[0], drive, n_periods)
        if len(r.cells_open):
            self._leave_out(r.cells_open)

    def step_rows(
        self, cells: NDArray[np.uint8], measured: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Twin and observer at successive ticks; None with more than those two."""
        more = self._wires is not None or self.isolation is not None or self._ambient is not None
        recorded = len(self.columns) > len(self._force_columns)
        if more or recorded or len(self._drive.duty):
            return None
        return self._observer.step_rows(cells, np.ascontiguousarray(measured[:, self._force]))

    def assume_hot(self, wire_C: NDArray[np.float64]) -> None:
        """Start the twin's wires (N,) as austenite at these temperatures; NaN skips a wire."""
        start_hot(self._observer.wires, wire_C)

    def _leave_out(self, cells_open: NDArray[np.uint8]) -> None:
        if self.isolation is None:
            if (left_out := cells_open.tobytes()) == self._left_out:
                return
            self._left_out = left_out
            self._failed[:] = HEALTHY
        np.copyto(self._failed, FAILED, where=cells_open != 0)
        np.not_equal(self._failed, FAILED, out=self.estimate.usable, casting="unsafe")

    def _set_ambient(self, T_C: float, *, settled: bool) -> None:
        self._observer.set_ambient(T_C, settled=settled)
        if self._wires is not None:
            self._wires.set_air(T_C, settled=settled)
        if isinstance(self.isolation, WireFailures):
            self.isolation.set_air(T_C, settled=settled)

    def _isolate(self, isolation: Tests, residual_N: float, drive: Drive, n_periods: int) -> None:
        estimate, t_s = self.estimate, float(self._t_s[0])
        if isinstance(isolation, WireFailures):
            wires = self._observer.wires
            isolation.step(t_s, residual_N, wires.T_C, wires.xi, drive, n_periods)
            estimate.suspicion = isolation.suspicion
        elif isinstance(isolation, CellFailures):
            wires, force_N = self._observer.wires, (residual_N, float(self._values[0]))
            twin, read = (wires.xi, wires.resistance_Ohm), self._sensed.read()
            isolation.step(t_s, force_N, twin, read, n_periods)
            estimate.suspicion = isolation.suspicion
        else:
            self._isolate_sigmoids(isolation, t_s, residual_N, n_periods)
        np.not_equal(isolation.state, FAILED, out=estimate.usable, casting="unsafe")
        self._values[3] = isolation.log_odds
        self._failed[:] = isolation.state

    def _isolate_sigmoids(
        self, isolation: Isolation, t_s: float, residual_N: float, n_periods: int
    ) -> None:
        np.multiply(self._observer.activation_N, self._per_N, out=self._activation)
        isolation.step(t_s, residual_N, self._activation, self.estimate.cells, n_periods)
