"""Two wires between which a real one is: what its resistance may be now, and how warm its clamp is.

Of a cell's wire an eager copy is warmed by the highest supply, in the warmest room and the least
cooling, and transforms early; a lazy one by the lowest supply, in the coldest room and the most
cooling, and transforms late. Heat capacity and latent heat are those that keep a copy ahead, or
behind, of the real wire, whether it warms or cools. What the copies leave open is what nobody knows
of the wire. Its resistance is linear in the austenite, the strain and, outside the R-phase's
corners, the temperature, and a parabola between these: the corners of the copies' states and the
vertices of the parabolas bound it (`hil.mechanics.sma.resistance`).

The lazy wire warms a clamp (`hil.mechanics.sma.clamp`): at least so far is the real one above its
room.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Array, Records
from hil.mechanics.sma.clamp import clamp_share, end_loss_W_per_K
from hil.mechanics.sma.limits import COLDEST_C, COOLING_LEAST, CellWire
from hil.mechanics.sma.resistance import vertex_C
from hil.mechanics.sma.stressed import AS_TABULATED, PIECES, advance
from hil.mechanics.sma.wire import PHASES_ALONE, SmaWire, ohm_per_m_of, wire_laws

CAPACITY, LATENT = 0.1, 0.45  # assumed: by which a wire's heats may differ from the described ones
BRANCH_K = 10.0  # assumed: by which its branches may be elsewhere
EAGER, LAZY = 0, 1
WARMS, COOLS = 0, 1


@dataclass(frozen=True)
class Surroundings:
    """What is not known of a cell.

    Attributes
    ----------
    lowest_V, highest_V : across it while its gate is on
    cold_C, warm_C : of its room
    left_K : how much warmer than its room its wire may be at first
    tolerance : by which its resistance may differ from the described one
    """

    lowest_V: float
    highest_V: float
    cold_C: float
    warm_C: float
    left_K: float
    tolerance: float


class WireBounds:
    """The eager and the lazy copy of every wire.

    Attributes
    ----------
    state : (n, 2, 2) array, temperature and austenite of both copies of every wire
    clamp_K : (n,) array, how far above its room every clamp is at least, which began at it
    clamp_periods : (n,) array, its time constant
    arrays : constants and state of `step_bounds` and `range_bounds`
    """

    def __init__(self, wires: Sequence[tuple[CellWire, Surroundings]], period_s: float) -> None:
        cells = [cell for cell, _ in wires]
        self._period_s = period_s
        self._laws = np.array([_laws(cell, around) for cell, around in wires])
        self._knots = np.array([_knots(cell) for cell in cells])
        self._clamps = np.array([_clamp(cell, period_s) for cell in cells])
        self._described = wire_laws([cell.wire for cell in cells])
        self.state = np.array(
            [_begins(around, knots) for (_, around), knots in zip(wires, self._knots, strict=True)]
        )
        self.clamp_K = np.zeros(len(wires))
        self.arrays = (
            (self._laws, self._knots, self._clamps, self._described),
            (self.state, self.clamp_K),
        )
        self.clamp_periods = -1.0 / np.log(self._clamps[:, 1])

    def step(self, duty: NDArray[np.float64], n_periods: int) -> None:
        """Advance by some periods with the duty (n, 2) of both copies held."""
        step_bounds((duty, n_periods, self._period_s), *self.arrays)

    def resistances_Ohm(self, into: NDArray[np.float64]) -> None:
        """Write the least and the greatest resistance of every cell now, (n, 2)."""
        range_bounds(*self.arrays, into)


def _laws(cell: CellWire, around: Surroundings) -> Records:
    """The law of both copies, each for warming and for cooling, (2, 2)."""
    wire, rows = cell.wire, []
    for ahead, volts, air_C, cooling, ohms in (
        (1.0, around.highest_V, around.warm_C, COOLING_LEAST, 1.0 - around.tolerance),
        (-1.0, around.lowest_V, around.cold_C, 1.0 / COOLING_LEAST, 1.0 + around.tolerance),
    ):
        rows += [
            replace(
                _heated(cell, ahead),
                supply_V=volts / sqrt(ohms), ambient_C=air_C,
                convection_W_per_m2_K=cooling * wire.convection_W_per_m2_K,
                specific_heat_J_per_kg_K=(1.0 + sign * CAPACITY) * wire.specific_heat_J_per_kg_K,
                latent_heat_J_per_kg=(1.0 + sign * LATENT) * wire.latent_heat_J_per_kg,
            )
            for sign in (-ahead, ahead)
        ]  # fmt: skip
    return wire_laws(rows).reshape(2, 2)


def _heated(cell: CellWire, ahead: float) -> SmaWire:
    """The wire by which a copy is heated: of one resistance, where transforming may raise it."""
    wire = cell.wire
    if wire.austenite_Ohm_per_m <= wire.martensite_Ohm_per_m and not wire.resistivity.varies:
        return wire
    least, most = wire.extremes_Ohm_per_m(COLDEST_C, cell.temperature_max_C)
    ohms = least if ahead > 0.0 else most
    return replace(
        wire, martensite_Ohm_per_m=ohms, austenite_Ohm_per_m=ohms, resistivity=PHASES_ALONE
    )


def _knots(cell: CellWire) -> Array:
    """The branches of both copies, (2, N_KNOTS): under the least and the largest stress, moved."""
    branches = cell.own_branches
    working = np.array(branches.working_C)
    more_K = np.maximum(0.0, np.array(branches.stressed_C) - working[: PIECES + 1])
    return np.stack([working - BRANCH_K, working + np.tile(more_K, 2) + BRANCH_K])


def _begins(around: Surroundings, knots: Array) -> Array:
    """Both copies before they are heated: settled from the hot, and from the cold."""
    shares = np.linspace(0.0, 1.0, PIECES + 1)
    warm_C = around.warm_C + around.left_K
    xi = np.interp(warm_C, knots[EAGER, PIECES + 1 :], shares)
    least = np.interp(around.cold_C, knots[LAZY, : PIECES + 1], shares)
    return np.array([[warm_C, xi], [around.cold_C, least]])


def _clamp(cell: CellWire, period_s: float) -> tuple[float, float]:
    """How far a clamp follows its wires, and what a period leaves of its distance to that."""
    wire = cell.wire
    total = end_loss_W_per_K(wire) + wire.clamp_loss_W_per_K
    return clamp_share(wire), exp(-total / wire.clamp_capacity_J_per_K * period_s)


@njit(cache=True)
def step_bounds(held, constants, kept):  # type: ignore[no-untyped-def]
    """`WireBounds.step`, in one compiled call."""
    (laws, knots, clamps, _), (state, clamp_K) = constants, kept
    duty, n_periods, period_s = held
    for i in range(len(state)):
        for _ in range(n_periods):
            for side in range(2):
                T, xi = state[i, side]
                law = laws[i, side, WARMS]
                power = duty[i, side] * law.E2 / (law.r_martensite + law.r_change * xi)
                if power < law.G * (T - law.T_a):
                    law = laws[i, side, COOLS]
                state[i, side] = advance(
                    law, knots[i, side], AS_TABULATED, duty[i, side], T, xi, period_s
                )
            settles_K = clamps[i, 0] * (state[i, LAZY, 0] - laws[i, LAZY, WARMS].T_a)
            clamp_K[i] = settles_K + clamps[i, 1] * (clamp_K[i] - settles_K)


@njit(cache=True)
def range_bounds(constants, kept, into):  # type: ignore[no-untyped-def]
    """`WireBounds.resistances_Ohm`, in one compiled call."""
    laws, state = constants[3], kept[0]
    for i in range(len(state)):
        law = laws[i]
        low_C, high_C = min(state[i, 0, 0], state[i, 1, 0]), max(state[i, 0, 0], state[i, 1, 0])
        into[i, 0], into[i, 1] = np.inf, 0.0
        r, r_M, r_A = law.resistivity, law.r_martensite, law.r_martensite + law.r_change
        for xi in (state[i, 0, 1], state[i, 1, 1]):
            for T in (low_C, high_C, r.R_f_C, r.R_s_C, vertex_C(r, r_M, r_A, xi)):
                for strain in (0.0, law.strain):
                    ohm = law.cell_Ohm_m * ohm_per_m_of(law, min(max(T, low_C), high_C), xi, strain)
                    into[i, 0] = min(into[i, 0], ohm)
                    into[i, 1] = max(into[i, 1], ohm)
