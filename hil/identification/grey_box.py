"""The model's equations as a function of the parameters, for several runs at once.

    y_r(t; theta, z_r) = reading of (array's force at the channel, cells as reported) + z_r

theta are logarithms of the parameters, z_r the zero of the channel in run r. Derivatives are
differences of STEP in the logarithm, central ones where an interval or an answer comes of them, and
one-sided ones on the way of a fit. The time stepping is exact, so the only errors are
rounding (1e-16 / STEP) and curvature (STEP^2). The law of a wire has corners, so that the error of
its derivatives falls with the step only in proportion: STEP_OF_WIRES is smaller. Where the air is
measured, its median over the run is that of the wires.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hil.errors import ConfigError, ModelError
from hil.identification import parameters
from hil.identification.runs import RunData
from hil.mechanics.arrays import Array
from hil.systems.array.build import build_activation, build_model
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.response import responses
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.tables import ModelTable

STEP, STEP_OF_WIRES = 1e-6, 1e-7
JUMP = 3.0  # a jump gives 100, a smooth reading 1
REACH_LEAST = 1e-6  # share of a step


@dataclass(frozen=True)
class GreyBox:
    """A model with free parameters, and runs of the rig to compare it with.

    Attributes
    ----------
    tables : of `[model]`, which hold what is not free
    free : keys of the parameters, in the order of theta
    runs : the runs
    """

    tables: parameters.Tables
    free: tuple[str, ...]
    runs: tuple[RunData, ...]

    @property
    def start(self) -> Array:
        """Theta of the tables."""
        return np.log([parameters.get(self.tables, key) for key in self.free])

    def with_free(self, free: Iterable[str]) -> "GreyBox":
        return GreyBox(self.tables, tuple(free), self.runs)

    def table_at(self, theta: Array) -> ModelTable:
        """`[model]` with these parameters; one beyond its limit is at the limit."""
        tables = copy.deepcopy(self.tables)
        within = np.clip(theta, *parameters.log_limits(self.free))
        for key, value in zip(self.free, np.exp(within), strict=True):
            parameters.put(tables, key, float(value))
        return ModelTable.model_validate(tables)

    def readings(self, theta: Array, until: Sequence[int] | None = None) -> list[Array]:
        """What the channel of every run would read, one entry a reading, the zero left out.

        Parameters
        ----------
        until : period of every run after which no more is asked for
        """
        return self.all_readings([theta], until)[0]

    def all_readings(
        self, thetas: Iterable[Array], until: Sequence[int] | None = None
    ) -> list[list[Array]]:
        """`readings` of every theta; all processors work on them."""
        models = [self.model(theta) for theta in thetas]
        readings: list[list[Array]] = [[] for _ in models]
        for i, run in enumerate(self.runs):
            n = len(run.cells) if until is None else min(until[i], len(run.cells))
            systems = [ArraySystem(model, cells, run.period_s) for model, cells in models]
            for system in systems:
                if np.isfinite(run.ambient_C):
                    system.wires.set_ambient(run.ambient_C, settled=True)
            at = [model.outputs.index(run.signal) for model, _ in models[:1]]  # of all alike
            rows = run.rows[: np.searchsorted(run.rows, n, side="right")]
            forces_N = responses(systems, np.array(at), run.cells[:n], run.moves_m)
            for series, force_N in zip(readings, forces_N, strict=True):
                series.append(run.reading.of(force_N[:, 0], run.period_s)[rows])
        return readings

    def model(self, theta: Array) -> tuple[CellArray, list[CellActivation]]:
        """The array with these parameters, and the activation of every cell.

        Raises
        ------
        ConfigError
            There is no such array.
        """
        table = self.table_at(theta)
        try:
            return build_model(table), build_activation(table)
        except ModelError as error:
            raise ConfigError(f"the model cannot be built with these parameters: {error}") from None

    def reach(self, theta: Array, step: Array) -> float:
        """The share of a step from theta, 1 or a power of a half, at whose end there is a model.

        A wire's A_s_C has to stay below its A_f_C, say.
        """
        share = 1.0
        while share > REACH_LEAST:
            try:
                self.model(theta + share * step)
            except ConfigError:
                share *= 0.5
                continue
            return share
        return 0.0

    def jumping(self, theta: Array) -> tuple[str, ...]:
        """Free parameters that make the readings of a wire's model jump.

        A difference over a step of 100 times the size then is a much smaller derivative.
        """
        if not parameters.has_wires(self.tables):
            return ()
        small, large = (
            np.concatenate(self.sensitivities(theta, size=size, central=False))
            for size in (STEP_OF_WIRES, 100.0 * STEP_OF_WIRES)
        )
        ratio = np.linalg.norm(small, axis=0) > JUMP * np.linalg.norm(large, axis=0)
        return tuple(key for key, jumps in zip(self.free, ratio, strict=True) if jumps)

    def sensitivities(
        self,
        theta: Array,
        until: Sequence[int] | None = None,
        *,
        size: float | None = None,
        central: bool = True,
    ) -> list[Array]:
        """(k, P) derivatives of every run's readings by theta.

        Central differences, or one-sided ones, which take half as many simulations. At a limit of
        a parameter they are taken a step inside.
        """
        if size is None:
            size = STEP_OF_WIRES if parameters.has_wires(self.tables) else STEP
        least, most = parameters.log_limits(self.free)
        theta = np.clip(theta, least + size, most - size)
        steps = size * np.eye(len(theta))
        if central:
            both = self.all_readings([theta + s for s in (*steps, *-steps)], until)
            ups, downs, width = both[: len(steps)], both[len(steps) :], 2.0 * size
        else:
            *ups, at_theta = self.all_readings([theta + s for s in steps] + [theta], until)
            downs, width = [at_theta] * len(steps), size
        columns = [
            [(u - d) / width for u, d in zip(up, down, strict=True)]
            for up, down in zip(ups, downs, strict=True)
        ]
        return [
            np.stack([column[i] for column in columns], axis=1)
            if columns
            else np.zeros((len(self.runs[i].rows), 0))
            for i in range(len(self.runs))
        ]


def with_zeros(parts: Sequence[Array]) -> list[Array]:
    """Every run's sensitivities with an additional column for the zero of each run."""
    eye = np.eye(len(parts))
    return [np.hstack((part, np.tile(eye[i], (len(part), 1)))) for i, part in enumerate(parts)]


def values(free: Sequence[str], theta: Array) -> Mapping[str, float]:
    """Parameters in their units, exp(theta)."""
    return dict(zip(free, np.exp(theta).tolist(), strict=True))
