"""Estimator stage of a cellular array: twin, observer, and tests for failed cells.

`hil.systems.array.state_observer` holds twin and observer. Controllers can use the estimate.
"""

from collections.abc import Sequence
from math import nan

import numpy as np
from numpy.typing import NDArray

from hil.control.controller import ArrayEstimate
from hil.experiment.twin import keep_known
from hil.loop.channels import Readings
from hil.loop.frame import Column, Commands, Frame
from hil.systems.array.isolation import FAILED, HEALTHY, Isolation
from hil.systems.array.sma.failures import WireFailures
from hil.systems.array.sma.learning import LearnedWires
from hil.systems.array.state_observer import ArrayObserver

NO_WIRES: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
AMBIENT_RANGE_C = (
    -50.0,
    100.0,
)  # readings outside this range are not plausible ambient temperatures


class ForceObserver:
    """Twin and observer of a cellular array, and tests for cells that have failed.

    Parameters
    ----------
    observer : observer of the output that the rig's force channel measures
    force_on_N : (N,) array, F of every cell while on
    force : index of the force channel among the readings
    wires : wire models for a controller that plans with them
    ambient : index of the channel that measures the ambient temperature
    isolates : bool
        Boards isolate cells with open wires. These count as failed, whatever the tests find.
    cells : names of all cells, used to record the temperatures of the twin's wires
    """

    def __init__(
        self,
        observer: ArrayObserver,
        force_on_N: NDArray[np.float64],
        force: int,
        isolation: Isolation | WireFailures | None = None,
        wires: LearnedWires | None = None,
        ambient: int | None = None,
        isolates: bool = False,
        cells: Sequence[str] = (),
    ) -> None:
        self._force = force
        self._ambient = ambient
        self._wired = np.flatnonzero(np.isfinite(observer.wires.T_C)) if cells else NO_WIRES
        self._wired_names = [cells[n] for n in self._wired]
        self._records_failed = isolates or isolation is not None
        n_cells = len(force_on_N)
        self._observer = observer
        self._per_N = 1.0 / np.where(force_on_N == 0.0, 1.0, force_on_N)
        self._activation = np.zeros(n_cells)
        self.isolation = isolation
        self._wires = wires
        self.estimate = ArrayEstimate(
            cells=np.zeros(n_cells, dtype=np.uint8),
            usable=np.ones(n_cells, dtype=np.uint8),
            x=observer.x,
            theta=observer.theta,
            wires=wires,
        )
        self._started = False

    @property
    def columns(self) -> list[Column]:
        columns = [
            Column("force_model_N", "N", "model", "twin run open loop on cells_reported"),
            Column("force_estimate_N", "N", "model", "observer corrected by the measured force"),
            Column("force_disturbance_N", "N", "model", "part of it that no cell accounts for"),
        ]
        if self.isolation is not None:
            columns.append(
                Column("failure_log_odds", "1", "model", "log odds of the most likely new failure")
            )
        columns += [
            Column(f"{cell}.wire_model_C", "degC", "model",
                   f"wire of {cell} in the twin, run open loop on cells_reported")
            for cell in self._wired_names
        ]  # fmt: skip
        if self._records_failed:
            states, n = "0 healthy, 1 failed, 2 one of these failed", len(self.estimate.cells)
            columns.append(Column("cells_failed", "1", "model", states, n))
        return columns

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        names = [column.name for column in self.columns if not column.n_cells]
        self._values = frame.span(names)
        self._wires_C = self._values[len(names) - len(self._wired) :]
        self._observer.outputs = self._values[:3]
        self._t_s = frame.values[frame.index("t_s") :][:1]
        if self._records_failed:
            self._failed = frame.cells("cells_failed")
        self._readings = readings

    def step(self, n_periods: int) -> None:
        r, observer, estimate, values = self._readings, self._observer, self.estimate, self._values
        n_steps = n_periods if self._started else 0
        self._started = True
        force_N = float(r.measured[self._force]) if r.is_valid(self._force) else nan
        if (
            self._ambient is not None
            and AMBIENT_RANGE_C[0] <= r.measured[self._ambient] <= AMBIENT_RANGE_C[1]
        ):
            self._set_ambient(float(r.measured[self._ambient]), settled=not n_steps)
        keep_known(r.cells_reported, estimate.cells)
        observer.step(estimate.cells, n_steps, force_N)
        estimate.force_N, estimate.disturbance_N = float(values[1]), float(values[2])
        if len(self._wired):
            self._wires_C[:] = observer.wires.T_C[self._wired]
        if self._wires is not None:
            own, t_s = observer.wires, float(self._t_s[0])
            residual_N = force_N - values[0]
            self._wires.step(t_s, residual_N, own.T_C, own.xi, estimate.cells, n_periods)
        if self.isolation is not None:
            self._isolate(self.isolation, force_N - values[0], n_periods)
        if len(r.cells_open):
            self._leave_out(r.cells_open)

    def assume_hot(self, wire_C: NDArray[np.float64]) -> None:
        """Start the twin's wires (N,) as austenite at these temperatures; NaN skips a wire."""
        wires = self._observer.wires
        known = np.isfinite(wires.T_C) & np.isfinite(wire_C)
        np.copyto(wires.T_C, wire_C, where=known)
        wires.xi[known] = 1.0

    def _leave_out(self, cells_open: NDArray[np.uint8]) -> None:
        if self.isolation is None:
            self._failed[:] = HEALTHY
        np.copyto(self._failed, FAILED, where=cells_open != 0)
        np.not_equal(self._failed, FAILED, out=self.estimate.usable, casting="unsafe")

    def _set_ambient(self, T_C: float, *, settled: bool) -> None:
        self._observer.set_ambient(T_C, settled=settled)
        if self._wires is not None:
            self._wires.set_air(T_C, settled=settled)
        if isinstance(self.isolation, WireFailures):
            self.isolation.set_air(T_C, settled=settled)

    def _isolate(
        self, isolation: Isolation | WireFailures, residual_N: float, n_periods: int
    ) -> None:
        estimate, t_s = self.estimate, float(self._t_s[0])
        if isinstance(isolation, WireFailures):
            own = self._observer.wires
            isolation.step(t_s, residual_N, own.T_C, own.xi, estimate.cells, n_periods)
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
