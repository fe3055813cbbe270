"""The twin and the observer: the rig's model run beside the hardware.

The twin runs open loop on the cells that the boards report and the outputs commanded; nothing
measured enters it. The observer of an array (`hil.models.observer`) is the same model corrected by
the measured force; what it believes is open to controllers. An arm has an observer of its own.
"""

from collections.abc import Sequence
from math import nan
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hil.control.controller import Belief
from hil.frame import CELL_UNKNOWN, Column, Commands, Frame, unit_suffix, units
from hil.models.isolation import FAILED, HEALTHY, Isolation
from hil.models.observer import ArrayObserver
from hil.models.pantograph_system import PantographSystem
from hil.models.system import System
from hil.models.wire_failures import WireFailures
from hil.models.wire_learning import LearnedWires
from hil.slots import Channel, Readings

NO_WIRES: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
ROOM_C = (-50.0, 100.0)  # a reading beyond is none of a room


class Estimator(Protocol):
    """The stage of the tick that says what the readings should be."""

    @property
    def columns(self) -> list[Column]: ...

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        """Learn where to read and to write."""
        ...

    def step(self, n_periods: int) -> None:
        """Come to the current tick, this many periods after the last one."""
        ...


class Twin:
    """The model of any rig beside it: what every channel would read.

    Parameters
    ----------
    outputs : sequence of int
        Which of the system's outputs each channel measures.
    driven : sequence of int
        Which of the system's inputs each actuator's output sets; the others stay at 0.
    shown : names of outputs that recordings keep of the twin beside the channels
    """

    def __init__(
        self,
        system: System,
        channels: Sequence[Channel],
        outputs: Sequence[int],
        driven: Sequence[int],
        shown: Sequence[str] = (),
    ) -> None:
        self._system = system
        self._channels = channels
        self._shown = shown
        also = [list(system.outputs).index(name) for name in shown]
        self._outputs = np.array([*outputs, *also], dtype=np.int64)
        self._driven = np.array(driven, dtype=np.int64)
        self._inputs = np.zeros(len(system.inputs))
        self._cells = np.zeros(len(system.cell_names), dtype=np.uint8)
        self._started = False

    @property
    def columns(self) -> list[Column]:
        measured = [(c.column("model"), c.units, c.name) for c in self._channels]
        also = [
            (f"{name.removesuffix(unit_suffix(name))}_model{unit_suffix(name)}", units(name), name)
            for name in self._shown
        ]
        return [
            Column(column, unit, "model", f"{of} of the twin, run open loop on what was commanded")
            for column, unit, of in (*measured, *also)
        ]

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        self._model = frame.span([column.name for column in self.columns])
        self._reported = readings.cells_reported
        self._commanded = commands.outputs

    def step(self, n_periods: int) -> None:
        _keep_known(self._reported, self._cells)
        if self._started:
            self._inputs[self._driven] = self._commanded
            for _ in range(n_periods):
                self._system.step(self._cells, self._inputs)
        self._started = True
        self._model[:] = self._system.y[self._outputs]


class ArmObserver:
    """The model of an arm beside it, held to the arm by its encoders.

    Open loop it would drift away: a torque's small error is integrated twice. Every period the
    model takes the commanded torques; what it then says of every channel stands in the row; and
    its angles and rates are corrected by what the encoders read,

        q += (1 - p^2) e,   q' += (1 - p)^2 e / h,   p = exp(-h / CORRECTION_S)

    No measured force enters it: the forces it says are those of its own plate.

    Source: Benedict & Bordner 1962 (alpha-beta filter, critically damped).

    Parameters
    ----------
    outputs : sequence of int
        Which of the system's outputs each channel measures.
    slots : sequence of int
        Where each channel stands among the readings.
    driven : sequence of int
        Which of the system's inputs each actuator's output sets.
    """

    CORRECTION_S = 0.005  # assumed
    ANGLES = ("arm.q1_rad", "arm.q3_rad")

    _ESTIMATES = (
        Column("tip_x_estimate_m", "m", "model", "the tip by model and encoders"),
        Column("tip_y_estimate_m", "m", "model", "the tip by model and encoders"),
        Column("tip_vx_estimate_m_per_s", "m/s", "model", "the tip by model and encoders"),
        Column("tip_vy_estimate_m_per_s", "m/s", "model", "the tip by model and encoders"),
        Column("T_c_estimate_J", "J", "model", "kinetic energy that the plate would take"),
        Column("T_a_estimate_J", "J", "model", "kinetic energy that the plate would leave"),
    )

    def __init__(
        self,
        system: PantographSystem,
        channels: Sequence[Channel],
        outputs: Sequence[int],
        slots: Sequence[int],
        driven: Sequence[int],
    ) -> None:
        self._system = system
        self._channels = channels
        self._outputs = np.array(outputs, dtype=np.int64)
        measured = [system.outputs[output] for output in outputs]
        self._angles = [slots[measured.index(name)] for name in self.ANGLES]
        self._driven = np.array(driven, dtype=np.int64)
        self._inputs = np.zeros(len(system.inputs))
        pole = np.exp(-system.period_s / self.CORRECTION_S)
        self._gains = 1.0 - pole**2, (1.0 - pole) ** 2 / system.period_s
        self._cells = np.zeros(0, dtype=np.uint8)
        self._started = False

    @property
    def columns(self) -> list[Column]:
        said = [
            Column(c.column("model"), c.units, "model", f"{c.name} by model and encoders")
            for c in self._channels
        ]
        return [*said, *self._ESTIMATES]

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        names = [column.name for column in self.columns]
        self._model = frame.span(names[: len(self._channels)])
        self._estimates = frame.span(names[len(self._channels) :])
        self._measured = readings.measured
        self._commanded = commands.outputs

    def step(self, n_periods: int) -> None:
        arm, q = self._system.arm, self._measured[self._angles]
        seen = bool(np.isfinite(q).all())
        if self._started:
            self._inputs[self._driven] = self._commanded
            for _ in range(n_periods):
                self._system.step(self._cells, self._inputs)
        if seen and not (self._started and np.isfinite(arm.x).all()):
            arm.place(q)
        self._started = self._started or seen
        self._system.look()
        self._model[:] = self._system.y[self._outputs]
        if seen:
            error = q - arm.x[:2]
            arm.correct(self._gains[0] * error, self._gains[1] * error)
        self._estimates[:4] = arm.tip()[:4]
        self._estimates[4:] = arm.energies_J()


class ForceObserver:
    """Twin and observer of a cellular array, and tests for cells that have failed.

    Parameters
    ----------
    observer : ArrayObserver
        On the model whose output the rig's force channel measures.
    force_on_N : (N,) array
        F of every cell while on.
    force : int
        Where that channel stands among the readings.
    isolation : Isolation or WireFailures, optional
    wires : LearnedWires, optional
        For a controller that plans with them.
    room : int, optional
        The channel that measures the air around the wires.
    sets_apart : bool
        Boards set cells apart whose wires are broken: these have failed, whatever the tests say.
    cells : names of all cells, by which the temperatures of the twin's wires are recorded
    """

    def __init__(
        self,
        observer: ArrayObserver,
        force_on_N: NDArray[np.float64],
        force: int,
        isolation: Isolation | WireFailures | None = None,
        wires: LearnedWires | None = None,
        room: int | None = None,
        sets_apart: bool = False,
        cells: Sequence[str] = (),
    ) -> None:
        self._force = force
        self._room = room
        self._wired = np.flatnonzero(np.isfinite(observer.wires.T_C)) if cells else NO_WIRES
        self._wired_names = [cells[n] for n in self._wired]
        self._tells_failed = sets_apart or isolation is not None
        n_cells = len(force_on_N)
        self._observer = observer
        self._per_N = 1.0 / np.where(force_on_N == 0.0, 1.0, force_on_N)
        self._activation = np.zeros(n_cells)
        self.isolation = isolation
        self._wires = wires
        self.belief = Belief(
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
            Column("force_disturbance_N", "N", "model", "part of it that no cell explains"),
        ]
        if self.isolation is not None:
            columns.append(Column("failure_log_odds", "1", "model", "of the likeliest new failure"))
        columns += [
            Column(f"{cell}.wire_model_C", "degC", "model",
                   f"wire of {cell} in the twin, run open loop on cells_reported")
            for cell in self._wired_names
        ]  # fmt: skip
        if self._tells_failed:
            states, n = "0 healthy, 1 failed, 2 one of these failed", len(self.belief.cells)
            columns.append(Column("cells_failed", "1", "model", states, n))
        return columns

    def bind(self, frame: Frame, readings: Readings, commands: Commands) -> None:
        names = [column.name for column in self.columns if not column.n_cells]
        self._values = frame.span(names)
        self._wires_C = self._values[len(names) - len(self._wired) :]
        self._observer.outputs = self._values[:3]
        self._t_s = frame.values[frame.index("t_s") :][:1]
        if self._tells_failed:
            self._failed = frame.cells("cells_failed")
        self._readings = readings

    def step(self, n_periods: int) -> None:
        r, observer, belief, values = self._readings, self._observer, self.belief, self._values
        n_steps = n_periods if self._started else 0
        self._started = True
        force_N = float(r.measured[self._force]) if r.valid[self._force] else nan
        if self._room is not None and ROOM_C[0] <= r.measured[self._room] <= ROOM_C[1]:
            self._set_air(float(r.measured[self._room]), settled=not n_steps)
        _keep_known(r.cells_reported, belief.cells)
        observer.step(belief.cells, n_steps, force_N)
        belief.force_N, belief.disturbance_N = float(values[1]), float(values[2])
        if len(self._wired):
            self._wires_C[:] = observer.wires.T_C[self._wired]
        if self._wires is not None:
            own, t_s = observer.wires, float(self._t_s[0])
            residual_N = force_N - values[0]
            self._wires.step(t_s, residual_N, own.T_C, own.xi, belief.cells, n_periods)
        if self.isolation is not None:
            self._isolate(self.isolation, force_N - values[0], n_periods)
        if len(r.cells_open):
            self._leave_out(r.cells_open)

    def assume_hot(self, wire_C: NDArray[np.float64]) -> None:
        """Let the twin's wires, (N,), start as austenite at these temperatures; NaN leaves one."""
        wires = self._observer.wires
        known = np.isfinite(wires.T_C) & np.isfinite(wire_C)
        np.copyto(wires.T_C, wire_C, where=known)
        wires.xi[known] = 1.0

    def _leave_out(self, cells_open: NDArray[np.uint8]) -> None:
        if self.isolation is None:
            self._failed[:] = HEALTHY
        np.copyto(self._failed, FAILED, where=cells_open != 0)
        np.not_equal(self._failed, FAILED, out=self.belief.usable, casting="unsafe")

    def _set_air(self, T_C: float, *, settled: bool) -> None:
        self._observer.set_ambient(T_C, settled=settled)
        if self._wires is not None:
            self._wires.set_air(T_C, settled=settled)
        if isinstance(self.isolation, WireFailures):
            self.isolation.set_air(T_C, settled=settled)

    def _isolate(
        self, isolation: Isolation | WireFailures, residual_N: float, n_periods: int
    ) -> None:
        belief, t_s = self.belief, float(self._t_s[0])
        if isinstance(isolation, WireFailures):
            own = self._observer.wires
            isolation.step(t_s, residual_N, own.T_C, own.xi, belief.cells, n_periods)
            belief.suspicion = isolation.suspicion
        else:
            self._hold_to_sigmoids(isolation, t_s, residual_N, n_periods)
        np.not_equal(isolation.state, FAILED, out=belief.usable, casting="unsafe")
        self._values[3] = isolation.log_odds
        self._failed[:] = isolation.state

    def _hold_to_sigmoids(
        self, isolation: Isolation, t_s: float, residual_N: float, n_periods: int
    ) -> None:
        np.multiply(self._observer.activation_N, self._per_N, out=self._activation)
        isolation.step(t_s, residual_N, self._activation, self.belief.cells, n_periods)


@njit(cache=True)
def _keep_known(reported, cells):  # type: ignore[no-untyped-def]
    for n in range(len(cells)):
        if reported[n] != CELL_UNKNOWN:
            cells[n] = reported[n]
