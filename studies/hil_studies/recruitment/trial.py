"""One trial of recruitment control: a controller with its known array on a plant of the study."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hil.control.controller import ArrayEstimate
from hil.control.reference import Reference
from hil.mechanics.arrays import Array, Mask
from hil.systems.array.estimate.state_observer import ArrayObserver, ObserverNoise
from hil.systems.array.failures.isolation import FAILED
from hil.systems.array.failures.wire_failures import WireFailures, WireRules
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.recruitment.diagnosis import Diagnosis
from hil.systems.array.wires.cells import wire_model
from hil.systems.array.wires.filter import WireErrors
from hil.systems.array.wires.learning import LearnedWires
from hil_studies.recruitment.plant import (
    NOISE_N,
    PERIOD_S,
    RIGHT,
    KnownArray,
    Plant,
    Transducer,
    nominal,
)

ERRORS = WireErrors(noise_N=NOISE_N)


class Control(Protocol):
    """Controller interface of a trial."""

    def step(
        self, t_s: float, reference_N: float, force_N: float, estimate: ArrayEstimate, on: Mask
    ) -> None:
        """Write the cells that are on from now."""
        ...


@dataclass(frozen=True)
class Result:
    """Figures of one trial; the error refers to the true force.

    Attributes
    ----------
    wear_per_s : full transformations there and back of a wire a second, mean over all wires

    Figures and arrays start at `counted_from_s`.
    """

    rmse_N: float
    switches_per_s: float
    energy_J: float
    wear_per_s: float
    force_N: Array
    reference_N: Array
    log_odds: Array
    failed: int = -1
    found: tuple[tuple[float, tuple[int, ...]], ...] = ()


def run(
    know: KnownArray,
    control: Control,
    truth: Plant,
    follow: Reference,
    seed: int,
    *,
    dead: tuple[int, ...] = (),
    duration_s: float = 16.0,
    counted_from_s: float = 0.0,
    tests: WireFailures | None = None,
    diagnosis: Diagnosis | None = None,
    fails_s: float = np.inf,
    breaks: bool = False,
) -> Result:
    """Run a controller on a plant.

    Parameters
    ----------
    dead : cells that are dead from the start
    counted_from_s : start of what is counted, a lead-in before it
    tests : tests for failed cells; the controller gets their findings
    diagnosis : switches suspects
    fails_s : time at which a random cell that is on dies
    breaks : the cell breaks mechanically instead, and is still heated
    """
    n_cells = know.n_cells
    system = ArraySystem(truth.model, truth.activation, PERIOD_S)
    output = truth.model.outputs.index(RIGHT)
    observer = ArrayObserver(
        ArraySystem(know.model, know.activation, PERIOD_S), output, observer_noise(know)
    )
    wires = _learned_wires(know)
    lot = np.random.default_rng([seed, 5])
    failed = -1
    on, drive = np.zeros((2, n_cells), dtype=np.uint8)
    estimate = ArrayEstimate(
        np.zeros(n_cells, dtype=np.uint8), np.ones(n_cells, dtype=np.uint8), observer.x,
        observer.theta, wires=wires,
    )  # fmt: skip
    sensor = Transducer(seed)
    n_ticks = round(duration_s / PERIOD_S)
    force, wanted, log_odds = np.zeros((3, n_ticks))
    first = round(counted_from_s / PERIOD_S)
    switches, energy_J, turned = 0, 0.0, 0.0
    before = np.zeros(n_cells)
    is_dead = np.isin(np.arange(n_cells), dead)
    for k in range(n_ticks):
        t_s = k * PERIOD_S
        force[k] = system.y[output]
        read_N = sensor.read(force[k]) - know.zero_N
        if k:
            observer.advance(on, 1)
        residual_N = read_N - observer.twin_N
        observer.correct(read_N)
        twin = observer.wires
        if wires is not None:
            wires.step(t_s, residual_N, twin.T_C, twin.xi, on)
        if tests is not None:
            tests.step(t_s, residual_N, twin.T_C, twin.xi, on)
            estimate.usable[:] = tests.state != FAILED
            log_odds[k] = tests.log_odds
        estimate.force_N, estimate.disturbance_N = observer.estimate_N, observer.disturbance_N
        estimate.cells[:] = on
        wanted[k] = follow.at(t_s)
        control.step(t_s, wanted[k], read_N, estimate, on)
        if diagnosis is not None and tests is not None:
            diagnosis.step(t_s, tests.suspicion, estimate.usable, on)
        switched = int((on != estimate.cells).sum())
        if t_s >= fails_s and failed < 0 and ((on != 0) & ~is_dead).any():
            failed = int(lot.choice(np.flatnonzero((on != 0) & ~is_dead)))
            if breaks:
                system = without(system, failed)
            else:
                is_dead[failed] = True
        drive[:] = np.where(is_dead, 0, on)
        before[:] = system.wires.xi
        system.step(drive)
        if k >= first:
            switches += switched
            energy_J += float((system.wires.supply_V * system.wires.current_A).sum()) * PERIOD_S
            turned += float(np.abs(system.wires.xi - before).sum())
    found: tuple[tuple[float, tuple[int, ...]], ...] = ()
    if tests is not None:
        found = tuple((f.t_s, f.cells) for f in tests.findings)
    counted_s = duration_s - counted_from_s
    force, wanted, log_odds = force[first:], wanted[first:], log_odds[first:]
    return Result(
        float(np.sqrt(np.mean((force - wanted) ** 2))),
        switches / counted_s, energy_J, 0.5 * turned / n_cells / counted_s, force, wanted,
        log_odds, failed, found,
    )  # fmt: skip


def without(system: ArraySystem, cell: int) -> ArraySystem:
    """Return the same array in the same state, with one cell mechanically broken."""
    ((name, array),) = system.model.arrays.items()
    left = replace(array, broken=array.broken | {cell})
    then = ArraySystem(CellArray(system.model.points, {name: left}), system.cells, system.period_s)
    then.activation.F_N[:] = system.activation.F_N
    then.wires.state[:] = system.wires.state
    if system.loaded is not None and then.loaded is not None:
        then.loaded.tension_N[:] = system.loaded.tension_N
    then.linear.x[:] = system.linear.x
    return then


def observer_noise(know: KnownArray) -> ObserverNoise:
    return ObserverNoise(0.05, NOISE_N, 0.2 * float(know.static_gains_N.mean()))


def wire_failures(know: KnownArray, rules: WireRules) -> WireFailures:
    cells = wire_model(know.model, know.activation, know.static_gains_N)
    return WireFailures(rules, ERRORS, cells, know.broken_N, PERIOD_S)


def _learned_wires(know: KnownArray) -> LearnedWires | None:
    """Return the learned wires; None for the nominal array, which has no wires."""
    if know is nominal(know.n_cells):
        return None
    cells = wire_model(know.model, know.activation, know.static_gains_N)
    return LearnedWires(ERRORS, cells, PERIOD_S)
