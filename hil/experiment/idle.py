"""`[controller] kind = "idle"`: commands nothing, on any rig; the run only records."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hil.config.table import Table
from hil.experiment.kind import ControlInputs, ControllerKind, SystemRun, nothing
from hil.loop.frame import Column, Commands, Frame


class IdleTable(Table):
    """Commands nothing: cells stay off, outputs idle. The run records readings and the twin."""

    kind: Literal["idle"]


class Idle:
    """A control stage that leaves all commands as they are: off."""

    columns: list[Column] = []  # noqa: RUF012  part of no dataclass

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        """Do nothing."""

    def step(self, t_s: float) -> None:
        """Do nothing."""

    def restart(self) -> None:
        """Do nothing."""


def _build(inputs: ControlInputs) -> Idle:
    return Idle()


def _plan(run: SystemRun) -> list[str]:
    return ["nothing is commanded: cells stay off, outputs idle"]


IDLE = {"idle": ControllerKind(IdleTable, _build, nothing, _plan)}
