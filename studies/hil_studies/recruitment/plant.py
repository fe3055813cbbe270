"""Arrays of the recruitment study: the nominal array, and the plant with its errors.

The nominal array has nominal cells and a sigmoid activation. The plant has SMA wires that heat and
cool with hysteresis, errors of every cell's stiffness, damper, force and wire up to a given
fraction, and a transducer with noise, zero offset, quantisation and delay. The wires follow one of
two laws: `thermal`, with the maker's transformation temperatures, or `sma`, with the branches
measured on Flexinol, under the stress of their cells.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np

from hil.control.reference import Reach, Reference, Sine, Steps
from hil.mechanics.arrays import Array
from hil.mechanics.sma.wire import SmaWire
from hil.systems.array.build_wire import loaded_wire
from hil.systems.array.failures.isolation import broken_gains_N
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.cell_kinds import MigaCellTable
from hil.systems.array.model.delay import mean_delay_s
from hil.systems.array.model.force_levels import levels_N, static_gains_N
from hil.systems.array.tables import BranchTable, SmaTable

WireLaw = Literal["thermal", "sma"]
PERIOD_S = 0.01
RIGHT = "array.right_N"
ARRAYS = {
    6: "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
    14: "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
    100: "-:25 | &1FFFFFF:75 | &7FFFFFFFFFFFFFFFFFF:-1",
}
FORCE_ON_N = 4.0
CELL = {"k_pe_N_per_m": 20.0, "k_se_N_per_m": 386.52, "k_ae_N_per_m": 1000.0, "b_N_s_per_m": 500.0}
# The damper stands across the wire. With 500 N s/m, which delay the cell by 0.4 s, a wire that
# contracts in a second would carry up to 400 MPa in motion; assumed: a tenth.
CELLS: dict[WireLaw, dict[str, float]] = {"thermal": CELL, "sma": {**CELL, "b_N_s_per_m": 50.0}}
MASS_KG = 0.01583
RATE_PER_S, DELAY_S = 10.0, 0.87  # mean of rise and fall of a nominal wire
STRESSED = SmaTable(
    kind="sma", pretension_N=0.56,
    heating=BranchTable(middle_C=78.3, core_K=1.06, shoulder_ratio=8.3, shoulder_at_K=-4.0,
                        core_share=0.51, widens_per_MPa=0.0018),
    cooling=BranchTable(middle_C=56.3, core_K=1.27, shoulder_ratio=8.3, shoulder_at_K=-3.3,
                        core_share=0.53, widens_per_MPa=0.0006),
)  # fmt: skip
"""The nominal wire under stress: Flexinol as in configs/wires4."""
OFF = 0.2  # largest relative error of a parameter
SET_POINTS = ("steps", "sine", "reach")
LEAD_S = 4.0  # lead-in of a trial with a warm start
NOISE_N, ZERO_N, STEP_N, DELAY_TICKS = 0.002, 0.01, 0.0003, 2


@dataclass(frozen=True)
class KnownArray:
    """Array as known to a controller.

    Attributes
    ----------
    zero_N : tared zero offset of the transducer
    """

    model: CellArray
    activation: tuple[CellActivation, ...]
    static_gains_N: Array
    zero_N: float = 0.0

    @property
    def n_cells(self) -> int:
        return self.model.n_cells

    @property
    def total_N(self) -> float:
        return float(self.static_gains_N.sum())

    @cached_property
    def delay_s(self) -> float:
        """The mean delay of the force after its cells switch."""
        return mean_delay_s(self.model, self.activation, RIGHT, PERIOD_S)

    @property
    def broken_N(self) -> Array:
        return broken_gains_N(self.model, self.activation, RIGHT)


@cache
def nominal(n_cells: int) -> KnownArray:
    """Return the nominal array of n_cells cells; its activation is a symmetrical sigmoid."""
    model = CellArray.from_fingerprint(ARRAYS[n_cells], cell=cells.miga(**CELL), mass_kg=MASS_KG)
    activation = tuple([CellActivation(FORCE_ON_N, "sigmoid", RATE_PER_S, DELAY_S)] * n_cells)
    return KnownArray(model, activation, static_gains_N(model, np.full(n_cells, FORCE_ON_N), RIGHT))


@cache
def largest_step_N(n_cells: int) -> float:
    """Return the largest step between neighbouring force levels of the nominal array."""
    return float(np.diff(levels_N(nominal(n_cells).static_gains_N)).max())


@dataclass(frozen=True)
class Plant:
    """True parameters of one trial."""

    model: CellArray
    activation: tuple[CellActivation, ...]


def dead_cells(n_cells: int, seed: int, n_dead: int) -> tuple[int, ...]:
    """Return n_dead random cells."""
    return tuple(np.random.default_rng([seed, n_cells, 3]).permutation(n_cells)[:n_dead].tolist())


def plant(n_cells: int, seed: int, law: WireLaw = "thermal") -> Plant:
    """Return a plant with random errors up to OFF; both laws of one seed share all they can."""
    rng = np.random.default_rng([seed, n_cells])

    def off(value: float, part: float = 1.0) -> float:
        return float(value * (1.0 + rng.uniform(-part * OFF, part * OFF)))

    springs = [{key: off(value) for key, value in CELLS[law].items()} for _ in range(n_cells)]
    drawn = [(off(FORCE_ON_N), _wire(off)) for _ in range(n_cells)]
    activation = tuple(
        activated(law, force_N, wire, own, _stressed(off, wire) if law == "sma" else STRESSED)
        for own, (force_N, wire) in zip(springs, drawn, strict=True)
    )
    laws = [cells.miga(**own) for own in springs]
    model = CellArray.from_fingerprint(ARRAYS[n_cells], cell=laws, mass_kg=MASS_KG)
    return Plant(model, activation)


def activated(
    law: WireLaw,
    force_on_N: float,
    wire: SmaWire,
    springs: dict[str, float],
    stressed: SmaTable = STRESSED,
) -> CellActivation:
    """Return the activation of a cell by either law; `stressed` has what `sma` adds to the wire."""
    if law == "thermal":
        return CellActivation(force_on_N, "thermal", wire=wire)
    cell = MigaCellTable.model_validate({"kind": "miga", **springs})
    at_rest, loaded = loaded_wire(stressed, wire, cell, force_on_N)
    return CellActivation(force_on_N, "sma", wire=at_rest, loaded=loaded)


def _stressed(off: Callable[..., float], wire: SmaWire) -> SmaTable:
    """Errors of pretension and core widths up to OFF, of slopes half, of middles as A_s's."""
    base = SmaWire()
    above = (wire.A_s_C - base.ambient_C) / (base.A_s_C - base.ambient_C)

    def moved(side: BranchTable | None) -> BranchTable:
        assert side is not None
        middle_C = base.ambient_C + above * (side.middle_C - base.ambient_C)
        return side.model_copy(update={"middle_C": middle_C, "core_K": off(side.core_K)})

    return STRESSED.model_copy(update={
        "pretension_N": off(STRESSED.pretension_N),
        "C_A_MPa_per_K": off(STRESSED.C_A_MPa_per_K, 0.5),
        "C_M_MPa_per_K": off(STRESSED.C_M_MPa_per_K, 0.5),
        "heating": moved(STRESSED.heating), "cooling": moved(STRESSED.cooling),
    })  # fmt: skip


def later(truth: Plant, seed: int) -> Plant:
    """Return the same plant on another day, when it differs from its commissioning.

    The air is up to 2 K warmer or colder. Every cell's force differs by up to 2 %, its convection
    by 5 %, its supply by 1 % (assumed).
    """
    rng = np.random.default_rng([seed, 9])
    warmer_C = rng.uniform(-2.0, 2.0)

    def off(value: float, most: float) -> float:
        return float(value * (1.0 + rng.uniform(-most, most)))

    activation = []
    for a in truth.activation:
        own = replace(
            a.wire,
            ambient_C=a.wire.ambient_C + warmer_C,
            convection_W_per_m2_K=off(a.wire.convection_W_per_m2_K, 0.05),
            supply_V=off(a.wire.cell_V, 0.01),
        )
        activation.append(replace(a, force_on_N=off(a.force_on_N, 0.02), wire=own))
    return replace(truth, activation=tuple(activation))


def _wire(off: Callable[..., float]) -> SmaWire:
    base = SmaWire()
    above = off(1.0, 0.25)  # scales the transition temperatures relative to the ambient one
    air_C = base.ambient_C
    moved = {key: air_C + above * (getattr(base, key) - air_C)
             for key in ("A_s_C", "A_f_C", "M_s_C", "M_f_C")}  # fmt: skip
    return replace(
        base,
        convection_W_per_m2_K=off(base.convection_W_per_m2_K, 0.5),
        specific_heat_J_per_kg_K=off(base.specific_heat_J_per_kg_K),
        latent_heat_J_per_kg=off(base.latent_heat_J_per_kg),
        # with a larger error a wire might never get hot enough
        supply_V=off(base.cell_V, 0.25),
        **moved,
    )


def reference(kind: str, total_N: float) -> Reference:
    """Return a set point between 10 % and 60 % of the force of all cells."""
    match kind:
        case "steps":
            return Steps([1.0, 5.0, 9.0, 13.0], [f * total_N for f in (0.3, 0.55, 0.15, 0.4)])
        case "sine":
            return Sine(0.35 * total_N, 0.2 * total_N, 0.1)
        case _:
            return Reach(0.1 * total_N, 0.55 * total_N, 2.0, 3.0, 3.0, True)


@dataclass(frozen=True)
class Led:
    """A set point after a lead-in, so that it starts where the force is already.

    From 0, it moves with least jerk to its first value, and waits there for a second.
    """

    reference: Reference

    def at(self, t_s: float) -> float:
        if t_s >= LEAD_S - 1e-9:
            return self.reference.at(t_s - LEAD_S)
        return Reach(0.0, self.reference.at(0.0), 0.0, LEAD_S - 1.0, LEAD_S, False).at(t_s)

    def extremes(self, duration_s: float) -> tuple[float, float]:
        low, high = self.reference.extremes(max(0.0, duration_s - LEAD_S))
        return min(0.0, low), max(0.0, high)


class Transducer:
    """Force reading: delayed, quantised, with noise and a zero offset.

    Parameters
    ----------
    seed, turn : `seed` sets the zero offset; both together set the noise
    """

    def __init__(self, seed: int, turn: int = 0) -> None:
        self.zero_N = float(np.random.default_rng([seed, 77]).uniform(-ZERO_N, ZERO_N))
        self._rng = np.random.default_rng([seed, 78, turn])
        self._late = deque([0.0] * DELAY_TICKS, maxlen=DELAY_TICKS + 1)

    def read(self, force_N: float) -> float:
        self._late.append(force_N)
        noisy = self._late[0] + self.zero_N + NOISE_N * self._rng.standard_normal()
        return float(round(noisy / STEP_N) * STEP_N)
