"""Builds recruiters from the tables of recruitment controllers, and checks these tables.

Every check yields (key, text) pairs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hil.config.table import same_named
from hil.control.reference import NoReference, Reference
from hil.control.tables import AntagonistTable
from hil.devices.board import protocol
from hil.errors import ModelError
from hil.experiment.kind import Faults
from hil.plugins.load import PluginTable
from hil.systems.array.estimate.state_observer import ArrayObserver, ObserverNoise, observer_gain
from hil.systems.array.failures.cell_failures import CellFailures, CellRules, SensedWires
from hil.systems.array.failures.isolation import Isolation, IsolationRules, broken_gains_N
from hil.systems.array.failures.wire_failures import WireFailures, WireRules
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.delay import mean_delay_s
from hil.systems.array.model.force_levels import levels_N, static_gains_N
from hil.systems.array.model.lags import lags
from hil.systems.array.model.prediction import Prediction, predict
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.recruitment.broadcast import Broadcaster, BroadcastLaw
from hil.systems.array.recruitment.control import (
    BroadcastRecruiter,
    GroupRecruiter,
    OptimalRecruiter,
    Recruiter,
)
from hil.systems.array.recruitment.groups import GroupRules, SizePrinciple
from hil.systems.array.recruitment.optimal import Optimal, PlanRules
from hil.systems.array.recruitment.planner import level_table
from hil.systems.array.recruitment.wire_optimal import WireOptimal
from hil.systems.array.recruitment.wire_plan import PlanGrid, WirePlanner
from hil.systems.array.recruitment.wire_plan_kernel import PlanPrices
from hil.systems.array.tables import ObserverTable, RecruitTable
from hil.systems.array.tables_recruitment import (
    BroadcastTable,
    FailuresTable,
    GroupsTable,
    OptimalTable,
    WiresTable,
)
from hil.systems.array.wires.cells import WireModel, wire_model
from hil.systems.array.wires.filter import WireErrors
from hil.systems.array.wires.learning import LearnedWires

SEED_BITS = 32
RISEN_SHARE = 0.9
LEVEL_MIN = 1e-9
JUDGEMENT_S_PER_CELL3 = 3e-9  # 0.76 ms of 64 cells, 6.4 ms of 128
SAMPLES_MAX, BLOCKS_MAX = 200, 400  # of a plan; blocks of one for wires
ONLY_LEVELS = "n_blocks", "sample_s"
ONLY_WIRES = "power", "wear_price_s", "energy_price"
ONLY_SWITCHED = "price", "on_min_s", "off_min_s"


@dataclass(frozen=True, eq=False)
class NominalArray:
    """The nominal array for recruitment: the rig's model, cell activation, force signal.

    Derived values are computed once, when they are first used.
    """

    model: CellArray
    activation: Sequence[CellActivation]
    signal: str
    period_s: float

    @cached_property
    def static_gains_N(self) -> NDArray[np.float64]:
        F_N = [a.force_on_N for a in self.activation]
        return static_gains_N(self.model, F_N, self.signal)

    @cached_property
    def broken_gains_N(self) -> NDArray[np.float64]:
        """The static gains (N, N) of all cells when cell n (row) is mechanically broken."""
        return broken_gains_N(self.model, self.activation, self.signal)

    @property
    def has_wires(self) -> bool:
        return any(a.has_wire for a in self.activation)

    @property
    def output(self) -> int:
        return self.model.outputs.index(self.signal)

    def observer(self, table: ObserverTable, system: ArraySystem) -> ArrayObserver:
        """Return an observer on this system; ModelError if no stable observer exists."""
        return ArrayObserver(system, self.output, observer_noise(table))

    def check_observer(self, table: ObserverTable) -> None:
        """ModelError if no stable observer exists."""
        observer_gain(self.model, self.period_s, self.output, observer_noise(table))

    def isolation(self, table: FailuresTable | None) -> Isolation | None:
        """Return the failure tests; None if the table is missing.

        Raises
        ------
        ModelError
            A judgement of so many cells outlasts a period.
        """
        if table is None:
            return None
        n_max = int((self.period_s / JUDGEMENT_S_PER_CELL3) ** (1.0 / 3.0) + 1e-9)
        if self.model.n_cells > n_max:
            raise ModelError(
                f"failures: a judgement of {self.model.n_cells} cells outlasts a period of "
                f"{1e3 * self.period_s:g} ms: {n_max} cells at most: remove the tests"
            )
        return Isolation(
            same_named(IsolationRules, table), self.static_gains_N, self.broken_gains_N,
            lags(self.model), self.period_s,
        )  # fmt: skip

    def wire_failures(self, table: ObserverTable) -> WireFailures | None:
        """Return the failure tests for wires, or None; ModelError if the cells are not wires."""
        tests = table.wire_failures
        if tests is None:
            return None
        cells = wire_model(self.model, self.activation, self.static_gains_N)
        return WireFailures(
            same_named(WireRules, tests), _errors(table), cells, self.broken_gains_N, self.period_s
        )

    def cell_failures(self, table: ObserverTable) -> CellFailures | None:
        """Return the tests by force and resistance, or None; ModelError if a cell is no wire."""
        tests = table.cell_failures
        if tests is None:
            return None
        laws = wire_model(self.model, self.activation, self.static_gains_N).laws
        contrast = laws["r_change"] / laws["r_martensite"]
        stressed = [one.loaded is not None for one in self.activation]
        wires = SensedWires(self.static_gains_N, self.broken_gains_N, contrast, stressed)
        return CellFailures(same_named(CellRules, tests), _errors(table), wires, self.period_s)

    def wires(self, table: ObserverTable) -> LearnedWires:
        """Return wire models that are learned during the run; ModelError for other cells."""
        cells = wire_model(self.model, self.activation, self.static_gains_N)
        return LearnedWires(_errors(table), cells, self.period_s)

    def tests(self, table: ObserverTable) -> Isolation | WireFailures | CellFailures | None:
        """Return the failure tests of one kind, or None."""
        kinds = table.failures, table.wire_failures, table.cell_failures
        if sum(kind is not None for kind in kinds) > 1:
            raise ModelError("give one of failures, wire_failures and cell_failures")
        return (
            self.wire_failures(table) or self.cell_failures(table) or self.isolation(table.failures)
        )

    @cached_property
    def rise_s(self) -> float:
        """Return the time in which all cells, on from rest, reach RISEN_SHARE of the force."""
        system = ArraySystem(self.model, self.activation, max(self.period_s, 0.01))
        on = np.ones(self.model.n_cells, dtype=np.uint8)
        goal_N = RISEN_SHARE * float(self.static_gains_N.sum())
        t_s = 0.0
        while system.y[self.output] < goal_N and t_s < 60.0:
            system.step(on)
            t_s += system.period_s
        return t_s

    @cached_property
    def delay_s(self) -> float:
        """The mean delay of the force after its cells switch."""
        return mean_delay_s(self.model, self.activation, self.signal, self.period_s)


def observer_noise(table: ObserverTable) -> ObserverNoise:
    """The noise that `[observer]` states."""
    return ObserverNoise(
        table.cell_force_noise_N, table.force_noise_N, table.disturbance_N_per_sqrt_s
    )


def _errors(table: ObserverTable) -> WireErrors:
    wires = table.wires or WiresTable()
    return WireErrors(noise_N=table.force_noise_N, **wires.model_dump())


def build_recruiter(
    table: RecruitTable, nominal: NominalArray, reference: Reference, seed: int,
    answer_ticks: int = 1,
) -> Recruiter:  # fmt: skip
    """Return the recruiter that `[controller]` describes.

    `answer_ticks` after a command the boards have reported it.
    """
    gains_N = nominal.static_gains_N
    match table:
        case BroadcastTable():
            zone_N = table.dead_zone_N or smallest_dead_zone_N(gains_N)
            draw = BroadcastLaw(table.law, table.gain, zone_N, table.period_s)
            caster = Broadcaster(draw, gains_N)
            return BroadcastRecruiter(caster, gains_N, table.error, seed % 2**SEED_BITS)
        case GroupsTable():
            groups = [indices(group, nominal.model) for group in table.groups]
            law = SizePrinciple(same_named(GroupRules, table), groups, gains_N)
            return GroupRecruiter(law)
        case OptimalTable():
            return OptimalRecruiter(_optimal(table, nominal, reference, answer_ticks))


def _optimal(
    table: OptimalTable, nominal: NominalArray, reference: Reference, answer_ticks: int = 1
) -> Optimal | WireOptimal:
    period_s = nominal.period_s
    rules = PlanRules(
        plan_ticks=round(table.plan_s / period_s),
        budget_ticks=max(1, round(table.budget_s / period_s)),
        levels_per_tick=table.levels_per_tick,
        on_min_s=table.on_min_s,
        off_min_s=table.off_min_s,
        period_s=period_s,
        answer_ticks=answer_ticks,
    )
    if nominal.has_wires:
        cells = wire_model(nominal.model, nominal.activation, nominal.static_gains_N)
        n_blocks = round(table.horizon_s / table.plan_s)
        prices = wire_prices(table, cells.static_gains_N, rules.block_s)
        return wire_optimal(rules, cells, n_blocks, prices, reference, modulated=table.modulates)
    n_samples = round(table.horizon_s / table.sample_s)
    p = _prediction(nominal, rules.lead_s, table.sample_s, n_samples)
    G = block_responses(p, round(table.plan_s / table.sample_s), table.n_blocks)
    levels = level_table(p.static_gains_N)
    price = 1.0 if table.price is None else table.price
    price_N2 = price * float(np.abs(levels.gain_N).min()) ** 2
    return Optimal(rules, levels, G, p, price_N2, reference)


def wire_prices(table: OptimalTable, gains_N: NDArray[np.float64], block_s: float) -> PlanPrices:
    """The prices of `[controller]`, for errors that are summed over blocks of this length."""
    smallest_N2 = float(np.abs(gains_N[gains_N != 0.0]).min()) ** 2
    return PlanPrices(
        switch_N2=(table.price or 0.0) * smallest_N2,
        turn_N2=table.wear_s / block_s * smallest_N2,
        power_N2=table.energy_price * smallest_N2,
    )


@lru_cache(maxsize=4)
def _prediction(
    nominal: NominalArray, lead_s: float, sample_s: float, n_samples: int
) -> Prediction:
    return predict(
        nominal.model, nominal.activation, nominal.signal, lead_s=lead_s, sample_s=sample_s,
        n_samples=n_samples,
    )  # fmt: skip


def wire_optimal(
    rules: PlanRules,
    cells: WireModel,
    n_blocks: int,
    prices: PlanPrices,
    reference: Reference,
    *,
    modulated: bool = False,
) -> WireOptimal:
    """Return the controller that plans with wires, over n_blocks times between plans."""
    grid = PlanGrid(rules.lead_s, rules.block_s, n_blocks, *rules.least_blocks())
    planner = WirePlanner(cells, grid, prices, modulated=modulated)
    return WireOptimal(rules, planner, reference, protocol.DUTY_MIN_PER_255)


def block_responses(p: Prediction, per_block: int, n_blocks: int) -> NDArray[np.float64]:
    """Return G (J, M): the unit response, shifted by one block per column."""
    G = np.zeros((len(p.g), n_blocks))
    for b in range(n_blocks):
        G[b * per_block :, b] = p.g[: len(p.g) - b * per_block]
    return G


def smallest_dead_zone_N(gains_N: NDArray[np.float64]) -> float:
    """Return half the largest step between force levels, plus a margin for rounding."""
    return 0.5 * float(np.diff(levels_N(gains_N)).max()) * (1.0 + 1e-9)


def indices(cells: list[int | str], model: CellArray) -> list[int]:
    """Return the 0-based indices of cells given by number (from 1) or name."""
    return [c - 1 if isinstance(c, int) else model.cell_names.index(c) for c in cells]


def unknown_cells(key: str, cells: list[int | str], model: CellArray) -> Faults:
    """Report cells, given by number or name, that do not exist."""
    for cell in cells:
        known = 1 <= cell <= model.n_cells if isinstance(cell, int) else cell in model.cell_names
        if not known:
            yield (
                key,
                f"there is no cell {cell!r}: cells are 1 to {model.n_cells}, or "
                f"{model.cell_names[0]} to {model.cell_names[-1]}",
            )


def reachable_N(table: object, nominal: NominalArray) -> tuple[float, float]:
    """Return the least and the largest static force of the cells that the controller can switch.

    Only a controller of antagonists, or one's own, can hold a negative force.
    """
    gains_N = nominal.static_gains_N
    if isinstance(table, GroupsTable):
        gains_N = gains_N[
            sorted({n for group in table.groups for n in indices(group, nominal.model)})
        ]
    pulls_back = isinstance(table, AntagonistTable | PluginTable)
    least_N = float(gains_N.clip(max=0.0).sum()) if pulls_back else 0.0
    return least_N, float(gains_N.clip(0.0).sum())


def check(table: RecruitTable, observer: ObserverTable, nominal: NominalArray) -> Faults:
    """Check a recruitment controller against the nominal array and the observer."""
    if observer.disturbance_N_per_sqrt_s == 0.0:
        yield (
            "observer.disturbance_N_per_sqrt_s = 0",
            f"a {table.kind} controller needs an observer of unknown forces: give how fast one "
            "may wander, such as a tenth of a cell's force",
        )
    if not nominal.static_gains_N.max() > 0.0:
        yield "controller", "no cell adds to the measured force: no cell can be recruited"
        return
    match table:
        case BroadcastTable():
            yield from _broadcast(table, nominal)
        case GroupsTable():
            yield from _groups(table, nominal)
        case OptimalTable():
            yield from _plan(table, nominal)


def _broadcast(table: BroadcastTable, nominal: NominalArray) -> Faults:
    gains_N = nominal.static_gains_N
    if gains_N.min() < -LEVEL_MIN * np.abs(gains_N).sum():
        name = nominal.model.cell_names[int(gains_N.argmin())]
        yield "controller", f"cell '{name}' reduces the force, and a broadcast cannot exclude it"
        return
    try:
        least_N = smallest_dead_zone_N(gains_N)
    except ModelError as error:
        yield "controller", f"{error}"
        return
    if table.dead_zone_N is not None and table.dead_zone_N < least_N:
        yield (
            f"controller.dead_zone_N = {table.dead_zone_N:g}",
            f"the largest step between force levels is {2.0 * least_N:.4g} N: below half of it "
            f"some set points are never reached: give at least {least_N * (1 + 1e-4):.4g}",
        )
    if table.period_s < nominal.period_s:
        yield (
            f"controller.period_s = {table.period_s:g}",
            f"give at least loop.period_s = {nominal.period_s:g}",
        )
    rise_s = nominal.rise_s if table.error == "measured" else 0.0
    if table.period_s < rise_s:
        yield (
            f"controller.period_s = {table.period_s:g}",
            f"cells need {rise_s:.2f} s for {100 * RISEN_SHARE:g} % of their force: "
            "broadcast no sooner, "
            "or form the error from what is commanded: error = 'commanded'",
        )


def _groups(table: GroupsTable, nominal: NominalArray) -> Faults:
    model = nominal.model
    gains_N, seen = nominal.static_gains_N, Counter[int]()
    for i, group in enumerate(table.groups):
        key = f"controller.groups.{i}"
        if not group:
            yield key, "has no cell: name some, or leave the group out"
        if wrong := list(unknown_cells(key, group, model)):
            yield wrong[0]
            return
        for n in indices(group, model):
            seen[n] += 1
            if seen[n] == 2:
                yield key, f"cell '{model.cell_names[n]}' is in two groups: every cell has one"
            if gains_N[n] < -LEVEL_MIN * np.abs(gains_N).sum():
                yield key, f"cell '{model.cell_names[n]}' reduces the force: remove it"


def _plan(table: OptimalTable, nominal: NominalArray) -> Faults:
    wires = nominal.has_wires
    unfit = [(key, "is not for a model whose cells are wires") for key in ONLY_LEVELS if wires]
    unfit += [(key, "is for a model whose cells are wires") for key in ONLY_WIRES if not wires]
    if table.modulates:
        unfit += [(key, "is for switched power: a change of duty is free") for key in ONLY_SWITCHED]
    for key, why in unfit:
        # recordings contain every key, so a key equal to its default is accepted
        setting, default = getattr(table, key), type(table).model_fields[key].default
        if setting != default and (setting or key not in ONLY_SWITCHED):
            yield f"controller.{key}", f"{why}: leave it out"
            return
    fine, most = ("plan_s", BLOCKS_MAX) if wires else ("sample_s", SAMPLES_MAX)
    fine_s = getattr(table, fine)
    of_fine = f"controller.{fine}", fine_s
    for key, unit_key, unit in (
        (fine, "loop.period_s", nominal.period_s),
        *(() if wires else (("plan_s", *of_fine),)),
        ("horizon_s", *of_fine),
    ):
        value = getattr(table, key)
        if abs(value / unit - round(value / unit)) > 1e-6 or value < unit * (1.0 - 1e-6):
            yield f"controller.{key} = {value:g}", f"give a whole multiple of {unit_key} = {unit:g}"
            return
    if table.horizon_s > most * fine_s * (1.0 + 1e-6):
        yield (
            f"controller.horizon_s = {table.horizon_s:g}",
            f"more than {most} times controller.{fine} = {fine_s:g} s: choose less",
        )
        return
    if table.budget_s > table.plan_s:
        yield f"controller.budget_s = {table.budget_s:g}", f"a plan is due every {table.plan_s:g} s"
    if not wires and table.n_blocks * table.plan_s > table.horizon_s * (1.0 + 1e-9):
        yield (
            f"controller.horizon_s = {table.horizon_s:g}",
            f"{table.n_blocks} blocks of {table.plan_s:g} s do not fit: make it longer",
        )
        return
    rise_s = nominal.rise_s if wires else 0.0
    if table.horizon_s < rise_s:
        yield (
            f"controller.horizon_s = {table.horizon_s:g}",
            f"the wires need {rise_s:.1f} s for {100 * RISEN_SHARE:g} % of their force: make the "
            f"horizon that long",
        )
        return
    try:
        _optimal(table, nominal, NoReference())
    except (ModelError, ValueError) as error:
        yield "controller.kind = 'optimal'", f"{error}"
