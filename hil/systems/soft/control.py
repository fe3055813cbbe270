"""Control stage of cells that follow the set point of any channel, such as a curvature."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil.control.controller import ArrayEstimate, CellController
from hil.control.steering import Selective, Steerable
from hil.loop.frame import CELL_UNKNOWN, Column, Commands, Frame
from hil.systems.array.recruitment.control import Recruiter
from hil.systems.array.recruitment.stage import CellStage


class MaskRecruiter:
    """Adapts a controller of masks, with levels in the channel's unit, to a recruiter."""

    columns: list[Column] = []  # noqa: RUF012  never changed

    def __init__(self, controller: CellController) -> None:
        self.controller = controller

    @property
    def demand_N(self) -> float:
        """Demand in the channel's unit."""
        return self.controller.demand_N

    def step(
        self, t_s: float, reference: float, estimate: ArrayEstimate, commands: Commands
    ) -> None:
        self.controller.step(t_s, reference, estimate.force_N, commands.cells)

    def write(self, values: NDArray[np.float64]) -> None:
        """Do nothing: there are no columns."""

    def restart(self) -> None:
        self.controller.restart()


@dataclass(frozen=True)
class FollowedChannel:
    """The channel that follows the set point.

    Attributes
    ----------
    index : among the readings
    reference_column, demand_column, units : of the row
    rest : its value with all cells off, which is the recruiter's zero
    """

    index: int
    reference_column: str
    demand_column: str
    units: str
    rest: float


class SignalCells(CellStage):
    """Control stage: a set point, a channel's reading and a recruiter."""

    def __init__(
        self,
        reference: Steerable,
        recruiter: Recruiter,
        channel: FollowedChannel,
        n_cells: int,
    ) -> None:
        law = recruiter.controller if isinstance(recruiter, MaskRecruiter) else None
        columns = [
            Column(channel.reference_column, channel.units, "reference",
                   "set point; NaN where there is none"),
            Column(channel.demand_column, channel.units, "commanded",
                   "what the controller asks the cells for"),
            *recruiter.columns,
        ]  # fmt: skip
        super().__init__(reference, columns, law)
        self.recruiter, self._index, self._rest = recruiter, channel.index, channel.rest
        self._estimate = ArrayEstimate(
            cells=np.zeros(n_cells, dtype=np.uint8),
            usable=np.ones(n_cells, dtype=np.uint8),
            x=np.zeros(0),
            theta=np.zeros(n_cells),
        )
        if law is not None and isinstance(law, Selective):
            law.usable = self._estimate.usable

    def restart(self) -> None:
        self.recruiter.restart()

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        super().bind(frame, measured, commands)
        self._reported = frame.cells("cells_reported")
        reports_open = any(column.name == "cells_open" for column in frame.columns)
        self._open = frame.cells("cells_open") if reports_open else None

    def step(self, t_s: float) -> None:
        estimate, values = self._estimate, self._values
        np.copyto(estimate.cells, self._reported, where=self._reported != CELL_UNKNOWN)
        if self._open is not None:
            np.equal(self._open, 0, out=estimate.usable, casting="unsafe")
        estimate.force_N = float(self._measured[self._index]) - self._rest
        values[0] = self.reference.at(t_s)
        self.recruiter.step(t_s, values[0] - self._rest, estimate, self._commands)
        values[1] = self.recruiter.demand_N + self._rest
        self.recruiter.write(values[2:])
