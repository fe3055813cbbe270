"""Control stage of recruitment: controllers that use the estimate."""

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hil.control.controller import ArrayEstimate
from hil.control.steering import Steerable
from hil.loop.frame import Column, Commands
from hil.mechanics.system import Drive
from hil.systems.array.recruitment.broadcast import Broadcaster
from hil.systems.array.recruitment.diagnosis import Diagnosis
from hil.systems.array.recruitment.groups import SizePrinciple
from hil.systems.array.recruitment.optimal import Optimal
from hil.systems.array.recruitment.stage import FORCE_COLUMNS, CellStage, OnTimeBreaks
from hil.systems.array.recruitment.wire_optimal import WireOptimal

Error = Literal["measured", "commanded"]


class Recruiter(Protocol):
    """Turns a set point and an estimate into a mask of cells or a broadcast message."""

    @property
    def columns(self) -> list[Column]:
        """Columns besides set point and demand."""
        ...

    @property
    def demand_N(self) -> float: ...

    def step(
        self, t_s: float, reference_N: float, estimate: ArrayEstimate, commands: Commands
    ) -> None: ...

    def write(self, values: NDArray[np.float64]) -> None:
        """Write the values of its columns of this tick."""
        ...

    def restart(self) -> None:
        """All cells were off: nothing that was decided before is commanded again."""
        ...


def commanded_cells(commands: Commands) -> Drive:
    """The duties that a controller commands, or the cells if it does not modulate."""
    return commands.duty if len(commands.duty) else commands.cells


class Recruitment(CellStage):
    """Control stage: a set point and a recruiter. The observer provides integral action.

    Parameters
    ----------
    diagnosis : switches suspects individually and overrides the recruiter. Not available for a
        broadcast, which does not address cells.
    breaks : of cells that are on for long; None for a recruiter that switches them anyway
    """

    def __init__(
        self,
        reference: Steerable,
        recruiter: Recruiter,
        estimate: ArrayEstimate,
        diagnosis: Diagnosis | None = None,
        breaks: OnTimeBreaks | None = None,
    ) -> None:
        super().__init__(reference, [*FORCE_COLUMNS, *recruiter.columns])
        self._breaks, self._were_on = breaks, np.zeros(len(estimate.usable), dtype=np.bool_)
        self.recruiter, self._estimate, self._diagnosis = recruiter, estimate, diagnosis

    def restart(self) -> None:
        super().restart()
        self._were_on[:] = False
        self.recruiter.restart()
        if self._diagnosis is not None:
            self._diagnosis.restart()
        if self._breaks is not None:
            self._breaks.restart()

    def step(self, t_s: float) -> None:
        reference_N = self.reference.at(t_s)
        self.recruiter.step(t_s, reference_N, self._estimate, self._commands)
        if self._diagnosis is not None:
            estimate = self._estimate
            commanded = commanded_cells(self._commands)
            self._diagnosis.step(t_s, estimate.suspicion, estimate.usable, commanded)
        if self._breaks is not None:
            duty = self._commands.duty
            duty[self._breaks.due(self._were_on)] = 0.0
            self._were_on = duty > 0.0
        self._values[0] = reference_N
        self._values[1] = self.recruiter.demand_N
        self.recruiter.write(self._values[2:])


class BroadcastRecruiter:
    """Sends p and q; the cells draw the mask themselves.

    Parameters
    ----------
    error : {"measured", "commanded"}
        Force from which the error is formed: the observer's force (for broadcast periods longer
        than cells take to heat and cool), or the force to which the cells now on will settle.
    seed : seed of the cells' random numbers
    """

    columns = [  # noqa: RUF012  never changed
        Column("p_on", "1", "commanded", "broadcast probability that an off cell switches on"),
        Column("q_off", "1", "commanded", "broadcast probability that an on cell switches off"),
        Column("broadcast_tick", "1", "commanded", "number of the draw; cells ignore a repetition"),
    ]

    def __init__(
        self, caster: Broadcaster, static_gains_N: NDArray[np.float64], error: Error, seed: int
    ) -> None:
        self._caster = caster
        self._gains_N = static_gains_N
        self._error = error
        self._seed = seed

    @property
    def demand_N(self) -> float:
        return self._caster.demand_N

    def step(
        self, t_s: float, reference_N: float, estimate: ArrayEstimate, commands: Commands
    ) -> None:
        force_N = estimate.force_N
        if self._error == "commanded":
            force_N = float(np.dot(self._gains_N, estimate.cells)) + estimate.disturbance_N
        self._caster.step(t_s, reference_N, force_N, estimate.usable)
        message = commands.broadcast
        message.tick = self._caster.tick
        message.p_on, message.q_off = self._caster.p_on, self._caster.q_off
        message.seed = self._seed
        commands.cells[:] = estimate.cells

    def write(self, values: NDArray[np.float64]) -> None:
        values[0], values[1] = self._caster.p_on, self._caster.q_off
        values[2] = self._caster.tick

    def restart(self) -> None:
        self._caster.restart()


class GroupRecruiter:
    """The size principle, applied to the observer's force and disturbance."""

    columns: list[Column] = []  # noqa: RUF012  never changed

    def __init__(self, law: SizePrinciple) -> None:
        self.law = law

    @property
    def demand_N(self) -> float:
        return self.law.demand_N

    def step(
        self, t_s: float, reference_N: float, estimate: ArrayEstimate, commands: Commands
    ) -> None:
        self.law.step(
            t_s,
            reference_N,
            estimate.force_N,
            estimate.disturbance_N,
            estimate.usable,
            commands.cells,
        )

    def write(self, values: NDArray[np.float64]) -> None:
        """Do nothing: there are no columns."""

    def restart(self) -> None:
        self.law.restart()


class OptimalRecruiter:
    """The optimal controller, applied to the observer's state."""

    columns = [  # noqa: RUF012  never changed
        Column("plan_late", "1", "commanded", "1: the search did not finish before its due time"),
        Column("plan_levels", "1", "commanded", "levels tried in the current search"),
    ]

    def __init__(self, optimal: Optimal | WireOptimal) -> None:
        self._optimal = optimal

    @property
    def demand_N(self) -> float:
        return self._optimal.demand_N

    def step(
        self, t_s: float, reference_N: float, estimate: ArrayEstimate, commands: Commands
    ) -> None:
        commanded = commanded_cells(commands)
        self._optimal.step(t_s, estimate, commanded)
        # Switch failed cells off at once; the next plan excludes them.
        np.minimum(commanded, estimate.usable, out=commanded)

    def write(self, values: NDArray[np.float64]) -> None:
        values[0], values[1] = self._optimal.late, self._optimal.n_looked_at

    def restart(self) -> None:
        self._optimal.restart()
