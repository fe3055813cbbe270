"""Controllers of the recruitment study, built from what is known of an array."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from hil.control.controller import ArrayEstimate
from hil.control.pid import Pid, PidGains, Switching
from hil.control.reference import Ahead, Reference
from hil.devices.board import protocol
from hil.loop.frame import Broadcast, Commands
from hil.mechanics.arrays import Array, Mask
from hil.systems.array.build_recruitment import block_responses
from hil.systems.array.build_recruitment import wire_optimal as build_wire_optimal
from hil.systems.array.model.prediction import Prediction, predict
from hil.systems.array.recruitment.broadcast import Broadcaster, BroadcastLaw, Law
from hil.systems.array.recruitment.control import (
    BroadcastRecruiter,
    GroupRecruiter,
    OptimalRecruiter,
    Recruiter,
)
from hil.systems.array.recruitment.groups import GroupRules, SizePrinciple
from hil.systems.array.recruitment.optimal import Optimal, PlanRules
from hil.systems.array.recruitment.planner import level_table
from hil.systems.array.recruitment.wire_plan import PlanPrices
from hil.systems.array.wires.cells import wire_model
from hil_studies.recruitment.plant import (
    PERIOD_S,
    RIGHT,
    KnownArray,
    WireLaw,
    largest_step_N,
    nominal,
)
from hil_studies.recruitment.trial import Control

BROADCASTS: dict[str, Law] = {
    "broadcast, dead beat": "dead_beat",
    "broadcast, LMS": "least_mean_square",
    "broadcast, |e|/N": "error_over_n",
    "broadcast, fixed gain": "fixed_gain",
}
ROTATE_S, REST_S = 6.0, 1.0
Setting = tuple[float, ...]
UNTOLD = "optimal, not commissioned"
EXACT = "optimal, exact plant"
CONTROLLERS = ("PID", *BROADCASTS, "size principle", "preview", UNTOLD, "optimal", EXACT)
OLD_LAW = ", law without stress"  # a controller commissioned by it, on wires under stress
_AHEAD = "set point ahead"
KNOWS = {
    **dict.fromkeys(("PID", *BROADCASTS, "size principle"), "forces"),
    "preview": f"forces, delay, {_AHEAD}",
    UNTOLD: f"nominal array, {_AHEAD}",
    "optimal": f"forces, wires, {_AHEAD}; learns",
    EXACT: f"the plant of the day, {_AHEAD}",
}
"""What a controller knows before the trial; "forces" are the cells' static forces."""


class PidControl:
    """PID with the nearest-level quantiser, and with preview a feedforward; small cells first."""

    def __init__(
        self,
        know: KnownArray,
        k_p: float,
        k_i_per_s: float,
        dwell_s: float,
        feedforward: Reference | None = None,
    ) -> None:
        gains = PidGains(k_p, k_i_per_s, 0.0, 0.02)
        order = np.argsort(know.static_gains_N, kind="stable").tolist()
        levels = np.concatenate(([0.0], np.cumsum(know.static_gains_N[order])))
        self._pid = Pid(gains, levels, order, Switching(0.2, dwell_s), PERIOD_S, feedforward)

    def step(
        self, t_s: float, reference_N: float, force_N: float, estimate: ArrayEstimate, on: Mask
    ) -> None:
        self._pid.step(t_s, reference_N, force_N, on)


class RecruiterControl:
    """A recruiter; draws the random numbers of a broadcast as the boards do."""

    def __init__(self, recruiter: Recruiter) -> None:
        self.recruiter = recruiter
        self._drawn = 0

    def step(
        self, t_s: float, reference_N: float, force_N: float, estimate: ArrayEstimate, on: Mask
    ) -> None:
        message = Broadcast()
        self.recruiter.step(
            t_s, reference_N, estimate, Commands(on, np.zeros(0), broadcast=message)
        )
        if message.tick == self._drawn:
            return
        self._drawn = message.tick
        p, q = (protocol.probability_per_65536(x) for x in (message.p_on, message.q_off))
        for n in range(len(on)):
            chance = q if on[n] else p
            draw = protocol.draw(message.seed, message.tick, n)
            if chance == protocol.PROBABILITY_ONE or draw < chance:
                on[n] = not on[n]


def broadcast(know: KnownArray, name: str, setting: Setting, seed: int) -> RecruiterControl:
    """Return a broadcast controller; the error is formed from the commanded cells.

    The setting gives the dead zone relative to half the largest step between nominal levels.
    """
    period_s, zone, gain = setting
    zone_N = 0.5 * zone * largest_step_N(know.n_cells) * (1.0 + 1e-9)
    law = BroadcastLaw(BROADCASTS[name], gain, zone_N, period_s)
    caster = Broadcaster(law, know.static_gains_N)
    return RecruiterControl(BroadcastRecruiter(caster, know.static_gains_N, "commanded", seed))


def size_principle(
    know: KnownArray, k_p: float, hysteresis: float, dwell_s: float
) -> RecruiterControl:
    """Return the size principle on groups of nominally equal cells, small ones first."""
    rules = GroupRules(k_p, hysteresis, dwell_s, rest_s=REST_S, rotate_s=ROTATE_S)
    drawn_N = np.round(nominal(know.n_cells).static_gains_N, 9)
    groups = [np.flatnonzero(drawn_N == size).tolist() for size in sorted(set(drawn_N))]
    return RecruiterControl(GroupRecruiter(SizePrinciple(rules, groups, know.static_gains_N)))


@dataclass(frozen=True)
class Planning:
    """Settings of the planner, in ticks of the trial."""

    plan_ticks: int = 20
    n_blocks: int = 4
    sample_ticks: int = 10
    n_samples: int = 30
    price: float = 1.0
    least_s: float = 2.0
    levels_per_tick: int = 20_000


@cache
def _tables(n_cells: int, planning: Planning) -> tuple[Prediction, Array]:
    know = nominal(n_cells)
    p = predict(
        know.model, know.activation, RIGHT, lead_s=PERIOD_S,
        sample_s=planning.sample_ticks * PERIOD_S, n_samples=planning.n_samples,
    )  # fmt: skip
    return p, block_responses(p, planning.plan_ticks // planning.sample_ticks, planning.n_blocks)


def optimal(know: KnownArray, follow: Reference, planning: Planning) -> RecruiterControl:
    """Return the planner on the nominal array, with preview of the set point."""
    p, G = _tables(know.n_cells, planning)
    rules = PlanRules(
        planning.plan_ticks, 1, planning.levels_per_tick, planning.least_s, planning.least_s,
        PERIOD_S,
    )  # fmt: skip
    price_N2 = planning.price * float(know.static_gains_N.min()) ** 2
    planner = Optimal(rules, level_table(know.static_gains_N), G, p, price_N2, follow)
    return RecruiterControl(OptimalRecruiter(planner))


@dataclass(frozen=True)
class WirePlanning:
    """Settings of the planner of wires, in ticks of the trial."""

    plan_ticks: int = 5
    n_blocks: int = 30
    price: float = 0.1
    steps_per_tick: int = 120_000


def wire_optimal(know: KnownArray, follow: Reference, planning: WirePlanning) -> RecruiterControl:
    """Return the planner on the commissioned wires."""
    rules = PlanRules(planning.plan_ticks, 1, planning.steps_per_tick, 0.0, 0.0, PERIOD_S)
    prices = PlanPrices(planning.price * float(know.static_gains_N.min()) ** 2)
    cells = wire_model(know.model, know.activation, know.static_gains_N)
    planner = build_wire_optimal(rules, cells, planning.n_blocks, prices, follow)
    return RecruiterControl(OptimalRecruiter(planner))


def names_of(plant: WireLaw, controllers: Sequence[str]) -> tuple[str, ...]:
    """Return the controllers of a plant's tables.

    On wires under stress every controller is commissioned by either law, and UNTOLD, whose nominal
    array has a sigmoid that resembles a wire without stress, has no place; nor has EXACT.
    """
    if plant == "thermal":
        return tuple(controllers)
    told = [name for name in controllers if name not in {UNTOLD, EXACT}]
    return tuple(each for name in told for each in (name, name + OLD_LAW))


def law_known(plant: WireLaw, name: str) -> WireLaw:
    """Return the law by which a controller's array is commissioned."""
    return "thermal" if name.endswith(OLD_LAW) else plant


def control_of(
    know: KnownArray, name: str, setting: Setting, follow: Reference, seed: int
) -> Control:
    """Return a controller with one of its settings."""
    name = name.removesuffix(OLD_LAW)
    if name == "PID":
        k_p, k_i_per_s, dwell_s = setting
        return PidControl(know, k_p, k_i_per_s, dwell_s)
    if name == "preview":
        delays, k_p, k_i_per_s, dwell_s = setting
        return PidControl(know, k_p, k_i_per_s, dwell_s, Ahead(follow, delays * know.delay_s))
    if name in BROADCASTS:
        return broadcast(know, name, setting, seed)
    if name == "size principle":
        return size_principle(know, *setting)
    if name == UNTOLD:
        price, least_s, n_blocks = setting
        planning = Planning(price=price, least_s=least_s, n_blocks=round(n_blocks))
        return optimal(know, follow, planning)
    price, plan_ticks, n_blocks = setting
    for_wires = WirePlanning(round(plan_ticks), round(n_blocks), price)
    return wire_optimal(know, follow, for_wires)
