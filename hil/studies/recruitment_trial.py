"""One trial of recruitment control: a controller on a plant that it was not told.

What the controller is told: the array's shape, nominal cells, a sigmoid activation. What the plant
has: SMA wires that heat and cool with hysteresis, every cell's stiffness, damper, force and wire
off by up to a stated share, dead cells, and a transducer with noise, a zero, steps and a delay.
"""

from collections import deque
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil import wire
from hil.config.recruitment import block_responses
from hil.control.broadcast import Broadcaster, BroadcastLaw
from hil.control.controller import Belief
from hil.control.groups import GroupRules, SizePrinciple
from hil.control.optimal import Optimal, PlanRules
from hil.control.pid import Pid, PidGains
from hil.control.planner import level_table
from hil.control.recruit import BroadcastRecruiter, GroupRecruiter, OptimalRecruiter, Recruiter
from hil.control.reference import Reach, Reference, Sine, Steps
from hil.frame import Broadcast, Commands
from hil.models import CellArray, cells
from hil.models.activation import CellActivation
from hil.models.array_system import ArraySystem
from hil.models.isolation import FAILED, Isolation, IsolationRules, broken_shares_N, lags
from hil.models.observer import ArrayObserver, ObserverNoise
from hil.models.prediction import Prediction, free_response, predict
from hil.models.recruitment import levels_N, shares_N
from hil.models.sma_wire import SmaWire

PERIOD_S = 0.01
RIGHT = "array.right_N"
ARRAYS = {
    6: "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
    14: "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
    100: "-:25 | &1FFFFFF:75 | &7FFFFFFFFFFFFFFFFFF:-1",
}
FORCE_ON_N = 4.0
CELL = {"k_pe_N_per_m": 20.0, "k_se_N_per_m": 386.52, "k_ae_N_per_m": 1000.0, "b_N_s_per_m": 500.0}
MASS_KG = 0.01583
RATE_PER_S, DELAY_S = 10.0, 0.87  # a nominal wire's rise and fall, averaged
OFF = 0.2  # largest relative error of a parameter
NOISE_N, ZERO_N, STEP_N, DELAY_TICKS = 0.002, 0.01, 0.0003, 2

Vector = NDArray[np.float64]
Mask = NDArray[np.uint8]


@dataclass(frozen=True)
class Told:
    """What a controller knows of an array."""

    model: CellArray
    activation: tuple[CellActivation, ...]
    shares_N: Vector
    broken_N: Vector

    @property
    def n_cells(self) -> int:
        return self.model.n_cells

    @property
    def total_N(self) -> float:
        return float(self.shares_N.sum())

    @property
    def largest_step_N(self) -> float:
        return float(np.diff(levels_N(self.shares_N)).max())


@cache
def told(n_cells: int) -> Told:
    """The array of this many cells as its controllers are told of it."""
    model = CellArray.from_fingerprint(ARRAYS[n_cells], cell=cells.miga(**CELL), mass_kg=MASS_KG)
    activation = tuple([CellActivation(FORCE_ON_N, "sigmoid", RATE_PER_S, DELAY_S)] * n_cells)
    shares = shares_N(model, np.full(n_cells, FORCE_ON_N), RIGHT)
    return Told(model, activation, shares, broken_shares_N(model, activation, RIGHT))


@dataclass(frozen=True)
class Plant:
    """The truth of one trial."""

    model: CellArray
    activation: tuple[CellActivation, ...]
    dead: tuple[int, ...]


def plant(n_cells: int, seed: int, n_dead: int, *, wires: bool = True, most: float = OFF) -> Plant:
    """Cells off by up to `most`, SMA wires, and n_dead cells that are dead from the start.

    Without wires the activation is the one that controllers are told, its force off as well.
    """
    rng = np.random.default_rng([seed, n_cells])

    def off(value: float, part: float = 1.0) -> float:
        return float(value * (1.0 + rng.uniform(-part * most, part * most)))

    laws = [cells.miga(**{key: off(value) for key, value in CELL.items()}) for _ in range(n_cells)]
    base = SmaWire()
    activation = []
    for _ in range(n_cells):
        own = replace(
            base,
            convection_W_per_m2_K=off(base.convection_W_per_m2_K, 0.5),
            specific_heat_J_per_kg_K=off(base.specific_heat_J_per_kg_K),
            # more than this and a wire might never be hot enough
            supply_V=off(base.cell_V, 0.25),
        )
        force_N = off(FORCE_ON_N)
        if wires:
            activation.append(CellActivation(force_N, "thermal", wire=own))
        else:
            activation.append(CellActivation(force_N, "sigmoid", RATE_PER_S, DELAY_S))
    dead = tuple(sorted(rng.permutation(n_cells)[:n_dead].tolist()))
    model = CellArray.from_fingerprint(
        ARRAYS[n_cells], cell=laws, mass_kg=MASS_KG, dead_cells=[n + 1 for n in dead]
    )
    return Plant(model, tuple(activation), dead)


def reference(kind: str, total_N: float) -> Reference:
    """Set points between a tenth and six tenths of what all cells give."""
    match kind:
        case "steps":
            return Steps([1.0, 5.0, 9.0, 13.0], [f * total_N for f in (0.3, 0.55, 0.15, 0.4)])
        case "sine":
            return Sine(0.35 * total_N, 0.2 * total_N, 0.1)
        case _:
            return Reach(0.1 * total_N, 0.55 * total_N, 2.0, 3.0, 3.0, True)


class Transducer:
    """Force as it is read: late, in steps, with noise and a zero."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 77])
        self._zero_N = float(self._rng.uniform(-ZERO_N, ZERO_N))
        self._late = deque([0.0] * DELAY_TICKS, maxlen=DELAY_TICKS + 1)

    def read(self, force_N: float) -> float:
        self._late.append(force_N)
        noisy = self._late[0] + self._zero_N + NOISE_N * self._rng.standard_normal()
        return float(round(noisy / STEP_N) * STEP_N)


class Control(Protocol):
    """A controller as a trial drives it."""

    def step(
        self, t_s: float, reference_N: float, force_N: float, belief: Belief, on: Mask
    ) -> None:
        """Write the cells that are on from now."""
        ...


@dataclass(frozen=True)
class Result:
    """Figures of one trial; the error is that of the true force."""

    rmse_N: float
    switches_per_s: float
    energy_J: float
    force_N: Vector
    reference_N: Vector
    n_on: Vector
    killed: int = -1
    found: tuple[tuple[float, tuple[int, ...]], ...] = ()


def run(
    n_cells: int,
    control: Control,
    truth: Plant,
    follow: Reference,
    seed: int,
    *,
    duration_s: float = 16.0,
    rules: IsolationRules | None = None,
    dies_s: float = np.inf,
) -> Result:
    """One run of a controller on a plant.

    Parameters
    ----------
    rules : tests for failed cells, whose findings the controller is told; None for no tests
    dies_s : when one of the cells then on, drawn by lot, dies
    """
    know = told(n_cells)
    system = ArraySystem(truth.model, truth.activation, PERIOD_S)
    output = truth.model.outputs.index(RIGHT)
    observer = ArrayObserver(
        ArraySystem(know.model, know.activation, PERIOD_S), output, observer_noise(know)
    )
    tests = None if rules is None else isolation(know, rules)
    lot = np.random.default_rng([seed, 5])
    killed = -1
    on, drive = np.zeros((2, n_cells), dtype=np.uint8)
    belief = Belief(
        np.zeros(n_cells, dtype=np.uint8), np.ones(n_cells, dtype=np.uint8), observer.x,
        observer.theta,
    )  # fmt: skip
    sensor = Transducer(seed)
    n_ticks = round(duration_s / PERIOD_S)
    force, wanted, n_on = np.zeros((3, n_ticks))
    switches, energy_J = 0, 0.0
    wires = system.activation.wires
    dead = np.isin(np.arange(n_cells), truth.dead)
    for k in range(n_ticks):
        t_s = k * PERIOD_S
        force[k] = system.y[output]
        read_N = sensor.read(force[k])
        if k:
            observer.advance(on, 1)
        residual_N = read_N - observer.twin_N
        observer.correct(read_N)
        if tests is not None:
            tests.step(t_s, residual_N, observer.activation_N / FORCE_ON_N, on)
            belief.usable[:] = tests.state != FAILED
        belief.force_N, belief.disturbance_N = observer.estimate_N, observer.disturbance_N
        belief.cells[:] = on
        wanted[k] = follow.at(t_s)
        control.step(t_s, wanted[k], read_N, belief, on)
        switches += int((on != belief.cells).sum())
        n_on[k] = on.sum()
        if t_s >= dies_s and killed < 0 and ((on != 0) & ~dead).any():
            killed = int(lot.choice(np.flatnonzero((on != 0) & ~dead)))
            dead[killed] = True
        drive[:] = np.where(dead, 0, on)
        system.step(drive)
        energy_J += float((wires.supply_V * wires.current_A).sum()) * PERIOD_S
    found: tuple[tuple[float, tuple[int, ...]], ...] = ()
    if tests is not None:
        found = tuple((f.t_s, f.cells) for f in tests.findings)
    return Result(
        float(np.sqrt(np.mean((force - wanted) ** 2))),
        switches / duration_s, energy_J, force, wanted, n_on, killed, found,
    )  # fmt: skip


def observer_noise(know: Told) -> ObserverNoise:
    return ObserverNoise(0.05, NOISE_N, 0.2 * float(know.shares_N.mean()))


def isolation(know: Told, rules: IsolationRules) -> Isolation:
    return Isolation(
        rules, know.shares_N, know.broken_N,
        lags(know.model), PERIOD_S,
    )  # fmt: skip


# Controllers


class PidControl:
    """PID with the nearest-level quantiser, small cells first."""

    def __init__(self, know: Told, k_p: float, k_i_per_s: float, dwell_s: float) -> None:
        gains = PidGains(k_p, k_i_per_s, 0.0, 0.02)
        order = np.argsort(know.shares_N, kind="stable").tolist()
        levels = np.concatenate(([0.0], np.cumsum(know.shares_N[order])))
        self._pid = Pid(gains, levels, order, 0.2, dwell_s, PERIOD_S)

    def step(
        self, t_s: float, reference_N: float, force_N: float, belief: Belief, on: Mask
    ) -> None:
        self._pid.step(t_s, reference_N, force_N, on)


class RecruiterControl:
    """A recruiter; what it broadcasts is drawn here as the boards draw it."""

    def __init__(self, recruiter: Recruiter) -> None:
        self.recruiter = recruiter
        self._drawn = 0

    def step(
        self, t_s: float, reference_N: float, force_N: float, belief: Belief, on: Mask
    ) -> None:
        message = Broadcast()
        self.recruiter.step(t_s, reference_N, belief, Commands(on, np.zeros(0), broadcast=message))
        if message.tick == self._drawn:
            return
        self._drawn = message.tick
        p, q = (wire.probability_per_65536(x) for x in (message.p_on, message.q_off))
        for n in range(len(on)):
            chance = q if on[n] else p
            draw = wire.draw(message.seed, message.tick, n)
            if chance == wire.PROBABILITY_ONE or draw < chance:
                on[n] = not on[n]


def broadcast(know: Told, law: BroadcastLaw, seed: int) -> RecruiterControl:
    """Cells that draw by themselves; the error is formed from what is commanded."""
    caster = Broadcaster(law, know.shares_N)
    return RecruiterControl(BroadcastRecruiter(caster, know.shares_N, "commanded", seed))


def size_principle(know: Told, rules: GroupRules) -> RecruiterControl:
    """Groups of like cells, small ones first."""
    sizes = sorted(set(np.round(know.shares_N, 9)))
    groups = [np.flatnonzero(np.isclose(know.shares_N, size)).tolist() for size in sizes]
    return RecruiterControl(GroupRecruiter(SizePrinciple(rules, groups, know.shares_N)))


@dataclass(frozen=True)
class Planning:
    """How the planner looks ahead, in ticks of the trial."""

    plan_ticks: int = 20
    n_blocks: int = 4
    sample_ticks: int = 10
    n_samples: int = 30
    price: float = 1.0
    least_s: float = 2.0
    levels_per_tick: int = 20_000


@cache
def _tables(n_cells: int, planning: Planning) -> tuple[Prediction, Vector]:
    know = told(n_cells)
    p = predict(
        know.model, know.activation, RIGHT, lead_s=PERIOD_S,
        sample_s=planning.sample_ticks * PERIOD_S, n_samples=planning.n_samples,
    )  # fmt: skip
    return p, block_responses(p, planning.plan_ticks // planning.sample_ticks, planning.n_blocks)


def optimal(know: Told, follow: Reference, planning: Planning) -> RecruiterControl:
    """The planner on the told model, which knows the set point to come."""
    p, G = _tables(know.n_cells, planning)
    work = np.zeros(planning.n_samples + 2)

    def free(belief: Belief, cells: Mask, y: Vector) -> None:
        free_response(p, belief.x, belief.theta, cells, y, work)
        y += belief.disturbance_N

    rules = PlanRules(
        planning.plan_ticks, 1, planning.levels_per_tick, planning.least_s, planning.least_s
    )
    price_N2 = planning.price * float(know.shares_N.min()) ** 2
    planner = Optimal(
        rules, level_table(know.shares_N), G, p.sample_s, price_N2, follow, free, PERIOD_S
    )
    return RecruiterControl(OptimalRecruiter(planner))
