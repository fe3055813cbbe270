"""A running unit, in its own process: initialised, then stepped by periods."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fmpy.model_description import ModelDescription

OK, FAILED = b"o", b"f"  # first byte of an answer
SMALL_S = 1e-12  # shorter than any step


class RunningUnit:
    """A unit of FMI 2.0 or 3.0, at rest after construction.

    Parameters
    ----------
    description : of FMPy
    folder : where the unit was unpacked
    start : references and values of parameters to set
    """

    def __init__(
        self,
        description: "ModelDescription",
        folder: str,
        exchange: bool,
        start: Sequence[Sequence[float]],
        tolerance: float,
    ) -> None:
        from fmpy import fmi2, fmi3

        self._is_3 = description.fmiVersion.startswith("3")
        interface = description.modelExchange if exchange else description.coSimulation
        classes = {
            (True, True): fmi3.FMU3Model,
            (True, False): fmi3.FMU3Slave,
            (False, True): fmi2.FMU2Model,
            (False, False): fmi2.FMU2Slave,
        }
        self.fmu = classes[self._is_3, exchange](
            guid=description.guid,
            unzipDirectory=folder,
            modelIdentifier=interface.modelIdentifier,
            instanceName=Path(folder).name,
        )
        self.fmu.instantiate()
        self.get = self.fmu.getFloat64 if self._is_3 else self.fmu.getReal
        self.set = self.fmu.setFloat64 if self._is_3 else self.fmu.setReal
        if start:
            self.set([int(r) for r, _ in start], [value for _, value in start])
        if self._is_3:
            self.fmu.enterInitializationMode(tolerance=tolerance, startTime=0.0)
        else:
            self.fmu.setupExperiment(tolerance=tolerance, startTime=0.0)
            self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()
        self.t_s, self._n_periods = 0.0, 0
        self._solver = _Solver(self, description, tolerance) if exchange else None
        self._written: list[float] = []

    def write(self, references: Sequence[int], values: Sequence[float]) -> None:
        """Set inputs; they are constant until the next call."""
        if self._solver is None:
            self.set(references, values)
        elif list(values) != self._written:
            self._solver.change_inputs(self.t_s, lambda: self.set(references, values))
            self._written = list(values)

    def step(self, period_s: float) -> None:
        """Advance one period with the inputs that were set; a sum of periods would drift."""
        self._n_periods += 1
        end_s = self._n_periods * period_s
        if self._solver is not None:
            self._solver.advance(self.t_s, end_s)
        elif self._is_3:
            _, terminated, early, reached_s = self.fmu.doStep(self.t_s, period_s)
            if terminated:
                raise RuntimeError("the unit ended its simulation")
            if early:
                raise RuntimeError(f"the unit returned at {reached_s:g} s, within a period")
        else:
            self.fmu.doStep(self.t_s, period_s)
        self.t_s = end_s


class _Solver:
    """Model exchange: CVode between events. Source: FMI 2.0.4, 3.2; FMI 3.0.2, 3.1."""

    def __init__(
        self, unit: RunningUnit, description: "ModelDescription", tolerance: float
    ) -> None:
        from fmpy.sundials import CVodeSolver

        self._fmu, self._is_3 = unit.fmu, unit._is_3
        self._next_event_s = np.inf
        self._handle_events()
        derivative = "getContinuousStateDerivatives" if self._is_3 else "getDerivatives"
        self._solver = CVodeSolver(
            nx=description.numberOfContinuousStates,
            nz=description.numberOfEventIndicators,
            get_x=self._fmu.getContinuousStates,
            set_x=self._fmu.setContinuousStates,
            get_dx=getattr(self._fmu, derivative),
            get_z=self._fmu.getEventIndicators,
            get_nominals=self._fmu.getNominalsOfContinuousStates,
            set_time=self._fmu.setTime,
            input=SimpleNamespace(apply=lambda t_s: None),  # inputs are constant over a period
            startTime=0.0,
            relativeTolerance=tolerance,
        )

    def change_inputs(self, t_s: float, write: Callable[[], None]) -> None:
        """Change inputs, which is an event."""
        self._fmu.enterEventMode()
        write()
        self._handle_events()
        self._solver.reset(t_s)

    def advance(self, t_s: float, end_s: float) -> None:
        """Solve to end_s with constant inputs."""
        while end_s - t_s > SMALL_S:
            event, _, t_s = self._solver.step(t_s, min(end_s, self._next_event_s))
            self._fmu.setTime(t_s)
            needs_event_mode, terminated = self._fmu.completedIntegratorStep()
            if terminated:
                raise RuntimeError("the unit ended its simulation")
            if event or needs_event_mode or self._next_event_s - t_s < SMALL_S:
                self._fmu.enterEventMode()
                self._handle_events()
                self._solver.reset(t_s)

    def _handle_events(self) -> None:
        update = self._fmu.updateDiscreteStates if self._is_3 else self._fmu.newDiscreteStates
        again = True
        while again:
            again, terminated, _, _, timed, next_s = update()
            if terminated:
                raise RuntimeError("the unit ended its simulation")
        self._next_event_s = next_s if timed else np.inf
        self._fmu.enterContinuousTimeMode()
