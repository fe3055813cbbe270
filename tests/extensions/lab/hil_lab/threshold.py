"""A controller for arrays: every cell on while the force is below the set point."""

from typing import Any, Literal

import numpy as np

from hil.config.table import Table
from hil.control.build import build_reference
from hil.experiment.kind import ControlInputs, ControllerKind, SystemRun, nothing
from hil.systems.array.recruitment.stage import ForceControl


class ThresholdTable(Table):
    """All cells on below the set point, all off above it."""

    kind: Literal["threshold"]


class Threshold:
    """Cells on while the force is below its set point."""

    demand_N = float("nan")

    def step(self, t_s: float, reference_N: float, force_N: float, cells: Any) -> None:
        if np.isfinite(force_N):
            cells[:] = force_N < reference_N

    def restart(self) -> None:
        """Nothing adds up."""


def build(given: ControlInputs) -> ForceControl:
    """The control stage."""
    layout = given.layout
    reference = build_reference(given.tables.reference)
    return ForceControl(reference, Threshold(), layout.index(layout.force))


def plan(run: SystemRun) -> list[str]:
    """The energise plan."""
    return [f"the controller decides: at most {run.model.n_cells} cells at once"]


CONTROLLER = ControllerKind(ThresholdTable, build, nothing, plan)
