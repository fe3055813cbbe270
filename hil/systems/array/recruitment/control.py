"""The control stage of recruitment: controllers that work on what the estimator believes."""

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hil.control.controller import ArrayEstimate
from hil.control.steering import Steerable
from hil.loop.frame import Column, Commands, Frame
from hil.systems.array.recruitment.broadcast import Broadcaster
from hil.systems.array.recruitment.diagnosis import Diagnosis
from hil.systems.array.recruitment.groups import SizePrinciple
from hil.systems.array.recruitment.optimal import Optimal
from hil.systems.array.recruitment.sma_optimal import WireOptimal

Error = Literal["measured", "commanded"]


class Recruiter(Protocol):
    """Turns a set point and an estimate into a mask or a message."""

    @property
    def columns(self) -> list[Column]:
        """What it adds to every row, beside set point and demand."""
        ...

    @property
    def demand_N(self) -> float: ...

    def step(
        self, t_s: float, reference_N: float, estimate: ArrayEstimate, commands: Commands
    ) -> None: ...

    def write(self, values: NDArray[np.float64]) -> None:
        """Put its columns' values of this tick into this part of the row."""
        ...


class Recruitment:
    """A set point and a recruiter, as a stage of the tick.

    Parameters
    ----------
    diagnosis : Diagnosis, optional
        Overrides the recruiter to tell suspects apart; not for a broadcast, which names no cell.
    """

    def __init__(
        self,
        reference: Steerable,
        recruiter: Recruiter,
        estimate: ArrayEstimate,
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self._diagnosis = diagnosis
        self.reference = reference
        self.recruiter = recruiter
        self._estimate = estimate

    @property
    def columns(self) -> list[Column]:
        return [
            Column("force_reference_N", "N", "reference", "set point; NaN where there is none"),
            Column(
                "force_demand_N", "N", "commanded", "force the controller asks for; NaN if none"
            ),
            *self.recruiter.columns,
        ]

    @property
    def set_points(self) -> dict[str, Steerable]:
        """The set point that can be held."""
        return {"force_reference_N": self.reference}

    def restart(self) -> None:
        """Nothing adds up here: recruiters go by what the observer believes."""

    def set_gain(self, key: str, value: float) -> None:
        """No gain may change while it runs."""
        raise KeyError(key)

    def bind(self, frame: Frame, measured: NDArray[np.float64], commands: Commands) -> None:
        self._values = frame.span([column.name for column in self.columns])
        self._commands = commands

    def step(self, t_s: float) -> None:
        reference_N = self.reference.at(t_s)
        self.recruiter.step(t_s, reference_N, self._estimate, self._commands)
        if self._diagnosis is not None:
            estimate = self._estimate
            self._diagnosis.step(t_s, estimate.suspicion, estimate.usable, self._commands.cells)
        self._values[0] = reference_N
        self._values[1] = self.recruiter.demand_N
        self.recruiter.write(self._values[2:])


class BroadcastRecruiter:
    """Sends p and q; the mask of the row is what the cells drew.

    Parameters
    ----------
    error : {"measured", "commanded"}
        Formed from the observer's force, for broadcasts further apart than cells take to heat and
        to cool, or from the force that the cells now on will come to.
    seed : int
        Of the cells' draws.
    """

    columns = [  # noqa: RUF012  never changed
        Column("p_on", "1", "commanded", "chance of a cell that is off to go on, as broadcast"),
        Column("q_off", "1", "commanded", "chance of a cell that is on to go off, as broadcast"),
        Column("broadcast_tick", "1", "commanded", "number of the draw; repeated, none is drawn"),
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


class GroupRecruiter:
    """The size principle on the observer's force and disturbance."""

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
        """It has no columns of its own."""


class OptimalRecruiter:
    """Plans on the observer's state."""

    columns = [  # noqa: RUF012  never changed
        Column("plan_late", "1", "commanded", "1: the search was cut off when its plan was due"),
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
        self._optimal.step(t_s, estimate, commands.cells)
        # Those that have failed go off now; the plan is made without them when it is made anew.
        np.minimum(commands.cells, estimate.usable, out=commands.cells)

    def write(self, values: NDArray[np.float64]) -> None:
        values[0], values[1] = self._optimal.late, self._optimal.n_looked_at
