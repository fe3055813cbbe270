"""One trial of recruitment control: a controller on a plant that it was not told.

What the controller is told: the array's shape, nominal cells, a sigmoid activation. What the plant
has: SMA wires that heat and cool with hysteresis, every cell's stiffness, damper, force and wire
off by up to a stated share, dead cells, and a transducer with noise, a zero, steps and a delay.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil import wire
from hil.control.broadcast import Broadcaster, BroadcastLaw
from hil.control.groups import GroupRules, SizePrinciple
from hil.control.optimal import Optimal, PlanRules
from hil.control.pid import Pid, PidGains
from hil.control.planner import level_table
from hil.control.reference import Reach, Reference, Sine, Steps
from hil.models import CellArray, cells
from hil.models.activation import CellActivation
from hil.models.array_system import ArraySystem
from hil.models.isolation import FAILED, Isolation, IsolationRules, broken_shares_N, lags
from hil.models.observer import ArrayObserver, ObserverNoise
from hil.models.prediction import free_response, predict
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
SIGMOID = {"rate_per_s": 10.0, "delay_s": 0.87}  # a nominal wire's rise and fall, averaged
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
    model = CellArray.from_fingerprint(
        ARRAYS[n_cells], cell=cells.miga(**CELL), mass_kg=MASS_KG
    )
    activation = tuple([CellActivation(FORCE_ON_N, "sigmoid", **SIGMOID)] * n_cells)
    shares = shares_N(model, np.full(n_cells, FORCE_ON_N), RIGHT)
    return Told(model, activation, shares, broken_shares_N(model, activation, RIGHT))


@dataclass(frozen=True)
class Plant:
    """The truth of one trial."""

    model: CellArray
    activation: tuple[CellActivation, ...]
    dead: tuple[int, ...]


def plant(n_cells: int, seed: int, n_dead: int) -> Plant:
    """Cells off by up to OFF, SMA wires, and n_dead cells that are dead from the start."""
    rng = np.random.default_rng([seed, n_cells])

    def off(value: float, share: float = OFF) -> float:
        return float(value * (1.0 + rng.uniform(-share, share)))

    laws = [cells.miga(**{key: off(value) for key, value in CELL.items()}) for _ in range(n_cells)]
    base = SmaWire()
    activation = []
    for _ in range(n_cells):
        own = replace(
            base,
            convection_W_per_m2_K=off(base.convection_W_per_m2_K, OFF / 2.0),
            specific_heat_J_per_kg_K=off(base.specific_heat_J_per_kg_K),
            # more than this and a wire might never be hot enough
            supply_V=off(base.cell_V, OFF / 4.0),
        )
        activation.append(CellActivation(off(FORCE_ON_N), "thermal", wire=own))
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


@dataclass
class Seen:
    """What every controller may look at, now."""

    t_s: float
    reference_N: float
    force_N: float
    observer: ArrayObserver
    reported: Mask
    usable: Mask


class Recruiter(Protocol):
    def step(self, seen: Seen, on: Mask) -> None:
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
    found: tuple[tuple[float, tuple[int, ...]], ...] = ()


def run(
    n_cells: int,
    recruiter: Recruiter,
    truth: Plant,
    follow: Reference,
    seed: int,
    *,
    duration_s: float = 16.0,
    isolate: bool = False,
    dies: tuple[float, int] | None = None,
) -> Result:
    """One run of a controller on a plant; `dies` = (t_s, cell) kills one cell on the way."""
    know = told(n_cells)
    system = ArraySystem(truth.model, truth.activation, PERIOD_S)
    output = truth.model.outputs.index(RIGHT)
    observer = ArrayObserver(
        ArraySystem(know.model, know.activation, PERIOD_S), output, observer_noise(know)
    )
    tests = isolation(know) if isolate else None
    on = np.zeros(n_cells, dtype=np.uint8)
    drive = np.zeros(n_cells, dtype=np.uint8)
    usable = np.ones(n_cells, dtype=np.uint8)
    seen = Seen(0.0, 0.0, 0.0, observer, on.copy(), usable)
    sensor = Transducer(seed)
    n_ticks = round(duration_s / PERIOD_S)
    force, wanted, n_on = np.zeros((3, n_ticks))
    switches, energy_J = 0, 0.0
    wires = system.activation.wires
    dead = np.array([n in truth.dead for n in range(n_cells)])
    for k in range(n_ticks):
        seen.t_s = k * PERIOD_S
        force[k] = system.y[output]
        seen.force_N = sensor.read(force[k])
        if k:
            observer.advance(on, 1)
        residual = seen.force_N - observer.twin_N
        observer.correct(seen.force_N)
        if tests is not None:
            tests.step(seen.t_s, residual, observer.activation_N / FORCE_ON_N)
            usable[:] = tests.state != FAILED
        seen.reference_N = wanted[k] = follow.force_N(seen.t_s)
        seen.reported[:] = on
        recruiter.step(seen, on)
        switches += int((on != seen.reported).sum())
        n_on[k] = on.sum()
        if dies is not None and seen.t_s >= dies[0]:
            dead[dies[1]] = True
        drive[:] = np.where(dead, 0, on)
        system.step(drive)
        energy_J += float((wires.supply_V * wires.current_A).sum()) * PERIOD_S
    found = ()
    if tests is not None:
        found = tuple((f.t_s, f.cells) for f in tests.findings)
    return Result(
        float(np.sqrt(np.mean((force - wanted) ** 2))),
        switches / duration_s, energy_J, force, wanted, n_on, found,
    )  # fmt: skip


def observer_noise(know: Told) -> ObserverNoise:
    return ObserverNoise(0.05, NOISE_N, 0.2 * float(know.shares_N.mean()))


def isolation(know: Told, **rules: float) -> Isolation:
    return Isolation(
        replace(IsolationRules(noise_N=0.02), **rules), know.shares_N, know.broken_N,
        lags(know.model), PERIOD_S,
    )  # fmt: skip


# Controllers


class PidRecruiter:
    """PID with the nearest-level quantiser, cells in order of their number."""

    def __init__(self, know: Told, k_p: float, k_i_per_s: float, dwell_s: float) -> None:
        levels = np.concatenate(([0.0], np.cumsum(know.shares_N)))
        gains = PidGains(k_p, k_i_per_s, 0.0, 0.02)
        order = np.argsort(know.shares_N, kind="stable").tolist()
        levels = np.concatenate(([0.0], np.cumsum(know.shares_N[order])))
        self._pid = Pid(gains, levels, order, 0.2, dwell_s, PERIOD_S)

    def step(self, seen: Seen, on: Mask) -> None:
        self._pid.step(seen.t_s, seen.reference_N, seen.force_N, on)


class BroadcastRecruiter:
    """Cells that draw as the boards do."""

    def __init__(
        self, know: Told, law: BroadcastLaw, seed: int, *, commanded: bool = True
    ) -> None:
        self._caster = Broadcaster(law, know.shares_N)
        self._shares = know.shares_N
        self._seed = seed
        self._commanded = commanded

    def step(self, seen: Seen, on: Mask) -> None:
        force = seen.force_N
        if self._commanded:
            force = float(self._shares @ seen.reported) + seen.observer.disturbance_N
        if not self._caster.step(seen.t_s, seen.reference_N, force, seen.usable):
            return
        p, q = (wire.probability_per_65536(x) for x in (self._caster.p_on, self._caster.q_off))
        for n in range(len(on)):
            chance = q if on[n] else p
            draw = wire.draw(self._seed, self._caster.tick, n)
            if chance == wire.PROBABILITY_ONE or draw < chance:
                on[n] = not on[n]


class GroupRecruiter:
    """The size principle over groups of like cells, small ones first."""

    def __init__(self, know: Told, rules: GroupRules) -> None:
        sizes = sorted(set(np.round(know.shares_N, 9)))
        groups = [np.flatnonzero(np.isclose(know.shares_N, size)).tolist() for size in sizes]
        self._law = SizePrinciple(rules, groups, know.shares_N)

    def step(self, seen: Seen, on: Mask) -> None:
        observer = seen.observer
        self._law.step(
            seen.t_s, seen.reference_N, observer.estimate_N, observer.disturbance_N, seen.usable, on
        )


class OptimalRecruiter:
    """The planner on the told model."""

    def __init__(
        self,
        know: Told,
        follow: Reference,
        *,
        plan_ticks: int = 20,
        n_blocks: int = 4,
        n_samples: int = 24,
        sample_ticks: int = 10,
        price: float = 0.02,
        levels_per_tick: int = 4000,
        least_s: float = 0.8,
    ) -> None:
        p = predict(
            know.model, know.activation, RIGHT, lead_s=PERIOD_S,
            sample_s=sample_ticks * PERIOD_S, n_samples=n_samples,
        )  # fmt: skip
        per_block = plan_ticks // sample_ticks
        G = np.zeros((n_samples, n_blocks))
        for b in range(n_blocks):
            G[b * per_block :, b] = p.g[: n_samples - b * per_block]
        self._p = p
        self._v = np.zeros(n_samples + 2)
        self._observer: ArrayObserver | None = None
        price_N2 = price * float(know.shares_N.min()) ** 2
        self.optimal = Optimal(
            PlanRules(plan_ticks, 1, levels_per_tick, least_s, least_s), level_table(know.shares_N), G,
            p.sample_s, price_N2, follow, self._free, PERIOD_S,
        )  # fmt: skip
        self.late = 0

    def _free(self, on: Mask, y: Vector) -> None:
        assert self._observer is not None
        free_response(self._p, self._observer.x, self._observer.theta, on, y, self._v)
        y += self._observer.disturbance_N

    def step(self, seen: Seen, on: Mask) -> None:
        self._observer = seen.observer
        self.optimal.step(seen.t_s, seen.reported, seen.usable, on)
        self.late += self.optimal.late
