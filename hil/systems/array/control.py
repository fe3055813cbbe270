"""Control stage of a cellular array: one force follows one set point."""

import numpy as np
from numpy.typing import NDArray

from hil.control.controller import CellController
from hil.control.reference import NoReference, Reference
from hil.control.steering import Steerable, Tunable
from hil.loop.frame import Column, Commands, Frame


class ForceControl:
    """A reference and a controller of cells with force feedback.

    Parameters
    ----------
    channel : index of the force among the readings; None for a controller without feedback
    """

    columns = [  # noqa: RUF012  never changed
        Column("force_reference_N", "N", "reference", "set point; NaN where there is none"),
        Column("force_demand_N", "N", "commanded", "force the controller asks for; NaN if none"),
    ]

    def __init__(
        self, reference: Reference, controller: CellController, channel: int | None
    ) -> None:
        self.reference = Steerable(reference)
        self.controller = controller
        self._channel = channel

    @property
    def set_points(self) -> dict[str, Steerable]:
        """The set point that a user can hold; empty without a reference."""
        if isinstance(self.reference.configured, NoReference):
            return {}
        return {"force_reference_N": self.reference}

    def set_gain(self, key: str, value: float) -> None:
        """Change a gain of the controller; KeyError for an unknown name."""
        if not isinstance(self.controller, Tunable):
            raise KeyError(key)
        self.controller.set_gain(key, value)

    def restart(self) -> None:
        self.controller.restart()

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        self._values = frame.values
        self._reference, self._demand = (frame.index(column.name) for column in self.columns)
        at = self._channel
        self._force_N = np.full(1, np.nan) if at is None else measured[at : at + 1]
        self._cells = commands.cells

    def step(self, t_s: float) -> None:
        reference_N = self.reference.at(t_s)
        self._values[self._reference] = reference_N
        self.controller.step(t_s, reference_N, self._force_N[0], self._cells)
        self._values[self._demand] = self.controller.demand_N
