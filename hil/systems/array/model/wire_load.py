"""Wires under the tension of their own cell: force, stress and temperature, solved in every step.

A wire with the stretch d from rest carries the tension f of its cell, and sigma = f / (n A). Its
contraction follows the law (`hil.mechanics.sma.stress`), scaled such that full contraction at the
tension p of rest is force_on / k_ae, which is eq. (1) of MacNair & Ueda:

    d = (f - p) / k_ae - (force_on / k_ae) (1 - (1 - xi) h(sigma) / h(sigma_p)),   h = H + S sigma

with austenite's stiffness k_ae and f >= 0: a slack wire carries nothing. The array's linear model
has f - p = k_ae d + F, so that F = force_on (1 - (1 - xi) h(sigma) / h(sigma_p)): at the tension of
rest F = force_on xi, as without stress. Within a step the array moves with F, d = d_0 + g F, and

    f - p - k_ae d_0 - (1 + k_ae g) F(f) = 0

is solved by Newton's method, cell by cell, with the latest forces of the other cells. Thermal
expansion is neglected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.discrete import Discrete, LinearStepper
from hil.mechanics.sma.limits import CellBranches
from hil.mechanics.sma.stress import StressLaw
from hil.mechanics.sma.stressed import (
    N_CONSTANTS,
    PIECES,
    advance,
    branches,
    knots_C,
    places,
    row,
    stroke,
)
from hil.mechanics.sma.wire import (
    CELL_OHM_M_AT,
    CELL_V_AT,
    SmaWire,
    SmaWires,
    ohm_per_m_of,
)
from hil.systems.array.model.cell_array import CellArray

NEWTON_STEPS = 5
OVERSHOOT = 1.5  # assumed: of the stress in motion over that at rest with all cells on
SOLVED = (
    1e-3  # of a newton and of the pull of rest: what is left then is of the order of its square
)
AREA_AT, PULL_AT, FORCE_ON_AT, K_AE_AT, REST_AT, GAIN_AT = range(N_CONSTANTS, N_CONSTANTS + 6)


@dataclass(frozen=True)
class Loaded:
    """Law and load of a wire under stress.

    Attributes
    ----------
    pretension_N : tension of every wire at rest
    k_ae_N_per_m : stiffness of its cell
    """

    law: StressLaw
    pretension_N: float
    k_ae_N_per_m: float

    def branches(self, wire: SmaWire, contracted_N: float) -> CellBranches:
        """Branches of the cell's wires; contracted_N: its tension's gain when all cells are on."""
        rest, working = (
            stress_Pa(wire, max(0.0, self.pretension_N + more_N / wire.n_wires))
            for more_N in (0.0, contracted_N)
        )
        along_Pa = np.linspace(rest, working, PIECES + 1)
        working_C = [
            knots_C(self.law, side, along_Pa) for side in (self.law.heating, self.law.cooling)
        ]
        stressed_C = knots_C(self.law, self.law.heating, OVERSHOOT * max(rest, working))
        return CellBranches(tuple(np.concatenate(working_C)), tuple(stressed_C))


def stress_Pa(wire: SmaWire, tension_N: float) -> float:
    """Stress of a wire at this tension, Pa."""
    return tension_N / (0.25 * pi * wire.diameter_m**2)


class LoadedWires:
    """The cells of a model whose wires are under stress.

    Attributes
    ----------
    tension_N : (m,) array, of every such cell
    """

    def __init__(
        self,
        model: CellArray,
        wires: Sequence[tuple[int, SmaWire, Loaded, float]],
        stepper: Any,
        bank: SmaWires,
    ) -> None:
        if not isinstance(stepper, LinearStepper):
            raise ModelError(
                "activation.kind = 'sma': the array has too many states for wires under stress: "
                "give kind = 'thermal'"
            )
        self._bank = bank
        cells = np.array([n for n, *_ in wires], dtype=np.int64)
        self._where = np.stack([cells, bank.rows(cells)])
        found = [constants(model, stepper.discrete, *one) for one in wires]
        self._own = np.array([own for own, _ in found])
        # What the stretches after a period (m,) follow from: the state, forces before and after,
        # motion of driven points before and after. Wires are columns, for vector instructions.
        self._from = np.ascontiguousarray(np.transpose([rows for _, rows in found]))
        self._free = np.empty(len(cells))
        self.tension_N = self._own[:, PULL_AT].copy()

    def step(
        self,
        drive: NDArray[Any],
        period_s: float,
        x: NDArray[np.float64],
        F_before_N: NDArray[np.float64],
        F_N: NDArray[np.float64],
        moves: NDArray[np.float64],
    ) -> None:
        """Advance one period from the state x of the array, with these duties held.

        `moves` has position and velocity of every driven point, before and after the period.
        """
        step_loaded(drive, period_s, x, self.arrays, F_before_N, F_N, moves)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What `step_loaded` takes of these wires."""
        of_bank = (self._bank.laws, self._bank.state)
        return (self._from, self._free, self._where, self._own, *of_bank, self.tension_N)

    def branches_C(self, fraction: NDArray[np.float64], into: NDArray[np.float64]) -> None:
        """Write the branches of these wires at their present stress over those of no stress.

        `fraction` and `into` are as of `SmaWires.branches_C`.
        """
        _branches(fraction, self._where[1], self._own, self.tension_N, into)


def constants(
    model: CellArray, d: Discrete, n: int, wire: SmaWire, loaded: Loaded, on_N: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Parameters of the wire of cell n for the kernel, and what its stretch follows from."""
    at, law = stretch_state(model, n), row(loaded.law)
    n_cells = model.n_cells
    after = d.B1[at, :n_cells].copy()
    own, after[n] = after[n], 0.0
    area_m2 = wire.n_wires * 0.25 * pi * wire.diameter_m**2
    rest, _ = stroke(law, stress_Pa(wire, loaded.pretension_N))
    pull_N = wire.n_wires * loaded.pretension_N
    cell = [area_m2, pull_N, on_N, loaded.k_ae_N_per_m, rest, own]
    rows = [d.Ad[at], d.B0[at, :n_cells], after, d.B0[at, n_cells:], d.B1[at, n_cells:]]
    return np.concatenate([law, cell]), np.concatenate(rows)


def stretch_state(model: CellArray, cell: int) -> int:
    """Index of a cell's internal state, the stretch of its wire, among the model's states."""
    own = np.flatnonzero(model.coefficients.cell_of == cell)
    [at] = np.flatnonzero(model.state_order == 2 * model.nodes.n + own[0])
    return int(at)


@njit(cache=True)
def step_loaded(drive, h, x, arrays, F_before, F, moves):  # type: ignore[no-untyped-def]
    """Advance the wires under stress by a period; see `LoadedWires.step`."""
    origin, free, where, own, laws, state, tension = arrays
    T, xi, current, resistance = state[0], state[1], state[2], state[3]
    for i in range(len(tension)):
        F_before[where[0, i]] = F[where[0, i]]
    first = len(x) + len(F)  # row of the first force after the period
    free[:] = 0.0
    _add(origin, 0, x, free)
    _add(origin, len(x), F_before, free)
    _add(origin, first, F, free)
    _add(origin, first + len(F), moves[0], free)
    _add(origin, first + len(F) + moves.shape[1], moves[1], free)
    for i in range(len(tension)):
        n, c, law = where[0, i], own[i], laws[where[1, i]]
        area, pull, k_ae = c[AREA_AT], c[PULL_AT], c[K_AE_AT]
        duty = min(1.0, float(drive[n])) if drive[n] > 0 else 0.0
        f = tension[i]
        strain, slope = stroke(c, f / area)
        place = places(c, f / area, slope)
        T[n], xi[n] = advance(law, c, place, duty, T[n], xi[n], h)
        share, eases = (1.0 - xi[n]) * c[FORCE_ON_AT] / c[REST_AT], 1.0 + k_ae * c[GAIN_AT]
        known = pull + k_ae * free[i]
        for _ in range(NEWTON_STEPS):
            off = f - known - eases * (c[FORCE_ON_AT] - share * strain)
            change = off / (1.0 + eases * share * slope / area)
            f = max(0.0, f - change)
            if abs(change) < SOLVED * (1.0 + pull):
                break
            strain, slope = stroke(c, f / area)
        tension[i] = f
        ohm = ohm_per_m_of(law, T[n], xi[n], (1.0 - xi[n]) * strain)
        resistance[n] = law[CELL_OHM_M_AT] * ohm
        current[n] = duty * law[CELL_V_AT] / resistance[n]
        force = (f - known) / eases
        change = force - F[n]
        for k in range(len(free)):  # the wires that follow feel it
            free[k] += origin[first + n, k] * change
        F[n] = force


@njit(cache=True)
def _branches(fraction, rows, own, tension, into):  # type: ignore[no-untyped-def]
    for i in range(len(tension)):
        n, c = rows[i], own[i]
        stress = tension[i] / c[AREA_AT]
        _, slope = stroke(c, stress)
        into[0, n], into[1, n] = branches(c, places(c, stress, slope), fraction[n])


@njit(cache=True)
def _add(origin, first, values, into):  # type: ignore[no-untyped-def]
    """Add to `into` what these values move every wire; row by row, without a sum to reorder."""
    for j in range(len(values)):
        for k in range(len(into)):
            into[k] += origin[first + j, k] * values[j]
