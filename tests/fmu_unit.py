"""A functional mock-up unit in co-simulation, by the names of its variables; for tests."""

from collections.abc import Sequence

import fmpy
import numpy as np
from fmpy.fmi2 import FMU2Slave
from fmpy.fmi3 import FMU3Slave

PERIOD_S = 0.001


class Unit:
    """A unit that is instantiated; `start` initialises it."""

    def __init__(self, path, folder) -> None:
        self.description = fmpy.read_model_description(path)
        self.reference = {v.name: v.valueReference for v in self.description.modelVariables}
        self.is_3 = self.description.fmiVersion.startswith("3")
        self.fmu = (FMU3Slave if self.is_3 else FMU2Slave)(
            guid=self.description.guid,
            unzipDirectory=fmpy.extract(path, folder),
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName="unit",
        )
        self.fmu.instantiate()
        self.k = 0  # periods that have passed

    def start(self) -> None:
        if not self.is_3:
            self.fmu.setupExperiment(startTime=0.0)
        self.fmu.enterInitializationMode()
        self.fmu.exitInitializationMode()

    def set(self, names, values) -> None:
        write = self.fmu.setFloat64 if self.is_3 else self.fmu.setReal
        write([self.reference[name] for name in names], list(values))

    def get(self, name) -> float:
        return self.values([name])[0]

    def values(self, names: Sequence[str]) -> list[float]:
        read = self.fmu.getFloat64 if self.is_3 else self.fmu.getReal
        return read([self.reference[name] for name in names])

    def step(self, k, step_s=PERIOD_S) -> None:
        self.fmu.doStep(k * PERIOD_S, step_s)

    def run(self, n: int, names: Sequence[str]) -> np.ndarray:
        """Values of these variables (n, names) after each of n periods."""
        found = []
        for _ in range(n):
            self.step(self.k)
            self.k += 1
            found.append(self.values(names))
        return np.array(found)
