"""Control stages of cells: one set point, and the force or signal that follows it."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hil.control.controller import CellController
from hil.control.reference import NoReference, Reference
from hil.control.steering import Steerable, Tunable
from hil.loop.frame import Column, Commands, Frame

FORCE_COLUMNS = (
    Column("force_reference_N", "N", "reference", "set point; NaN where there is none"),
    Column("force_demand_N", "N", "commanded", "force the controller asks for; NaN if none"),
)


class CellStage:
    """A control stage with one set point, recorded with the demand of its controller.

    Parameters
    ----------
    columns : set point, demand, and further values that the stage writes
    law : controller with state or gains; None if there is none
    """

    def __init__(
        self, reference: Steerable, columns: Sequence[Column], law: CellController | None = None
    ) -> None:
        self.reference, self.columns, self._law = reference, list(columns), law

    @property
    def set_points(self) -> dict[str, Steerable]:
        """The set point that a user can hold; empty without a reference."""
        if isinstance(self.reference.configured, NoReference):
            return {}
        return {self.columns[0].name: self.reference}

    def set_gain(self, key: str, value: float) -> None:
        """Change a gain of the controller; KeyError for an unknown name."""
        if self._law is None or not isinstance(self._law, Tunable):
            raise KeyError(key)
        self._law.set_gain(key, value)

    def restart(self) -> None:
        if self._law is not None:
            self._law.restart()

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        self._values = frame.span([column.name for column in self.columns])
        self._measured, self._commands = measured, commands


class OnTimeBreaks:
    """Breaks in which the on-time limits of cells restart (docs/modulation.md), counted in turns.

    Parameters
    ----------
    most : number of turns on after which a cell gets a break
    length : turns of a break
    """

    def __init__(self, n_cells: int, most: float, length: int = 1) -> None:
        self._most, self._length = most, length
        self._on_for = np.zeros(n_cells)
        self._rests_for = np.zeros(n_cells)

    def restart(self) -> None:
        """All cells were off."""
        self._on_for[:] = self._rests_for[:] = 0.0

    def due(self, were_on: NDArray[np.bool_], n: int = 1) -> NDArray[np.bool_]:
        """The cells (N,) that must be off in the next turn, given those on for the last n turns."""
        on_for, rests_for = self._on_for, self._rests_for
        on_for[:] = np.where(were_on, on_for + n, 0.0)
        rests_for[:] = np.maximum(rests_for - n, 0.0)
        rests_for[on_for >= self._most] = self._length
        resting: NDArray[np.bool_] = rests_for > 0.0
        return resting


class ForceControl(CellStage):
    """A reference and a controller of cells with force feedback.

    Parameters
    ----------
    reference : a Steerable is used as it is, so that others may follow the same set point
    channel : index of the force among the readings; None for a controller without feedback
    """

    def __init__(
        self, reference: Reference, controller: CellController, channel: int | None
    ) -> None:
        follow = reference if isinstance(reference, Steerable) else Steerable(reference)
        super().__init__(follow, FORCE_COLUMNS, controller)
        self.controller, self._channel = controller, channel

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        super().bind(frame, measured, commands)
        at = self._channel
        self._force_N = np.full(1, np.nan) if at is None else measured[at : at + 1]

    def step(self, t_s: float) -> None:
        reference_N = self._values[0] = self.reference.at(t_s)
        self.controller.step(t_s, reference_N, self._force_N[0], self._commands.cells)
        self._values[1] = self.controller.demand_N


class MovingControl(ForceControl):
    """Cells as in `ForceControl`, while outputs follow curves.

    Parameters
    ----------
    curves : by index of the output
    """

    def __init__(self, force: ForceControl, curves: Mapping[int, Reference]) -> None:
        super().__init__(force.reference, force.controller, None)
        self._curves = curves

    def step(self, t_s: float) -> None:
        super().step(t_s)
        for i, curve in self._curves.items():
            self._commands.outputs[i] = curve.at(t_s)
