"""Wires under the tension of their own cell: force, stress and temperature, solved in every step.

A wire with the stretch d from rest carries the tension f of its cell, and sigma = f / (n A). Its
contraction follows the law (`hil.mechanics.sma.stress`), scaled such that full contraction at the
tension p of rest is force_on / k_ae, which is eq. (1) of MacNair & Ueda:

    d = (f - p) / k_ae - (force_on / k_ae) (1 - (1 - xi) h(sigma) / h(sigma_p)),   h = H + S sigma

with austenite's stiffness k_ae and f >= 0: a slack wire carries nothing. The array's linear model
has f - p = k_ae d + F, so that F = force_on (1 - (1 - xi) h(sigma) / h(sigma_p)): at the tension of
rest F = force_on xi, as without stress. Within a step the array moves with F, which is linear over
it, d = d_0 + g F, and

    f - p - k_ae d_0 - (1 + k_ae g) F(f) = 0

is solved by Newton's method, cell by cell, with the latest forces of the other cells, until none
changes. Thermal expansion is neglected.

A step is of second order (`hil.systems.array.model.wire_step`); how many a period has, says
`hil.systems.array.model.wire_steps`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.mechanics.arrays import Record
from hil.mechanics.discrete import Discrete, LinearStepper
from hil.mechanics.sma.limits import CellBranches
from hil.mechanics.sma.stress import StressLaw
from hil.mechanics.sma.stressed import PIECES, branches, constants_of, knots_C, places, stroke
from hil.mechanics.sma.wire import SmaWire, SmaWires, ohm_per_m_of
from hil.mechanics.system import Drive
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.sparse_step import SparseStepper
from hil.systems.array.model.wire_step import CELL, LOAD, StressedWires, solve_loaded

OVERSHOOT = 1.5  # assumed: of the stress in motion over that at rest with all cells on
UNFELT_N = 1e-12  # of a newton that another wire has more


@dataclass(frozen=True)
class Loaded:
    """Law and load of a wire under stress.

    Attributes
    ----------
    pretension_N : tension of every wire at rest
    k_ae_N_per_m : stiffness of its cell
    implicit : whether a step solves for the stress of its end; older recordings held that of its
        beginning
    """

    law: StressLaw
    pretension_N: float
    k_ae_N_per_m: float
    implicit: bool = True

    def __post_init__(self) -> None:
        if self.law.minor_loop_slope > 0.0 and not self.implicit:
            raise ValueError(
                f"minor_loop_slope = {self.law.minor_loop_slope:g}: minor loops of "
                "coupling = 'held' are flat: give coupling = 'implicit'"
            )

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
        stepper: LinearStepper | SparseStepper,
        period_s: float,
        bank: SmaWires,
    ) -> None:
        cells = np.array([n for n, *_ in wires], dtype=np.int64)
        self._at = stretch_states(model, cells)
        if isinstance(stepper, LinearStepper):
            per = stretch_per(stepper.discrete, model.n_cells, self._at)
        else:
            per = np.zeros((model.n_cells, len(cells)))
            for n in cells:
                per[n] = stepper.ramp_response(n)[self._at]
        self._own_m_per_N = taken_own(per, cells)
        cell_constants = np.array(
            [
                constants(wire, loaded, on_N, gain)
                for (_, wire, loaded, on_N), gain in zip(wires, self._own_m_per_N, strict=True)
            ],
            CELL,
        )
        moved_N = per[cells] * cell_constants["k_ae_N_per_m"]
        self.kernel = StressedWires(
            h=period_s,
            coupled=bool(
                (cell_constants["implicit"] != 0.0).all() and (abs(moved_N) > UNFELT_N).any()
            ),
            at=np.stack([cells, bank.rows(cells)]),
            constants=cell_constants,
            laws=bank.laws,
            state=bank.state,
            stretch_per=per,
            loads=np.zeros(len(cells), LOAD),
            free=np.zeros(len(cells)),
        )
        self._slacken(model)
        self.tension_N = self.kernel.loads["tension_N"]
        self.begin(cell_constants["pull_N"])

    def begin(self, tension_N: NDArray[np.float64]) -> None:
        """Set the tensions (m,) of the beginning, and the resistances under them."""
        self.tension_N[:] = tension_N
        _resistances(self.kernel)

    def feel(self, model: CellArray, stepper: LinearStepper) -> None:
        """Take the stretches of the same wires in an array that has changed."""
        kernel = self.kernel
        per = stretch_per(stepper.discrete, model.n_cells, self._at)
        self._own_m_per_N = taken_own(per, kernel.at[0])
        kernel.stretch_per[:], kernel.constants["own_m_per_N"] = per, self._own_m_per_N
        self._slacken(model)

    def _slacken(self, model: CellArray) -> None:
        """Let the wires of broken cells hang: no stretch of the cell loads them."""
        hang = np.isin(self.kernel.at[0], model.broken)
        for constant in ("pull_N", "force_on_N", "k_ae_N_per_m"):
            self.kernel.constants[constant][hang] = 0.0

    def hold(self, F_before: NDArray[np.float64], F: NDArray[np.float64]) -> None:
        """Set the forces of these wires (N,) before a step to those after the last one."""
        cells = self.kernel.at[0]
        F_before[cells] = F[cells]

    def step(self, drive: Drive, held: NDArray[np.float64], F: NDArray[np.float64]) -> None:
        """Advance by a step, given the array's state after it if their forces F (N,) were held."""
        kernel = self.kernel
        kernel.free[:] = held[self._at] - self._own_m_per_N * F[kernel.at[0]]
        solve_loaded(drive, kernel, F)

    def branches_C(self, fraction: NDArray[np.float64], into: NDArray[np.float64]) -> None:
        """Write the branches of these wires at their present stress over those of no stress.

        `fraction` and `into` are as of `SmaWires.branches_C`.
        """
        _branches(fraction, self.kernel, into)


def stretch_per(d: Discrete, n_cells: int, at: NDArray[np.int64]) -> NDArray[np.float64]:
    """`StressedWires.stretch_per` of wires whose stretch is the state `at` (m,)."""
    held, moved = d.B0[at], d.B1[at]
    rows = [moved[:, :n_cells], d.Ad[at], held[:, :n_cells], held[:, n_cells:], moved[:, n_cells:]]
    return np.concatenate(rows, axis=1).T.copy()


def taken_own(per: NDArray[np.float64], cells: NDArray[np.int64]) -> NDArray[np.float64]:
    """Take what the wires' own forces stretch them (m,) out of `stretch_per`."""
    wires = np.arange(len(cells))
    diagonal = per[cells, wires]
    per[cells, wires] = 0.0
    return diagonal


def constants(wire: SmaWire, loaded: Loaded, on_N: float, own_m_per_N: float) -> Record:
    """Constants of a cell's wires, a record of CELL."""
    cell: Record = np.zeros(1, CELL)[0]
    cell.law = constants_of(loaded.law)
    cell.area_m2 = wire.n_wires * 0.25 * pi * wire.diameter_m**2
    cell.pull_N, cell.force_on_N = wire.n_wires * loaded.pretension_N, on_N
    cell.k_ae_N_per_m, cell.own_m_per_N = loaded.k_ae_N_per_m, own_m_per_N
    cell.rest_strain, _ = stroke(cell.law, stress_Pa(wire, loaded.pretension_N))
    cell.implicit = loaded.implicit
    return cell


def stretch_states(model: CellArray, cells: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of the cells' internal states, the stretches of their wires, among the states."""
    owners, first = np.unique(model.coefficients.cell_of, return_index=True)
    place = np.empty(2 * model.nodes.n + len(model.coefficients.cell_of), dtype=np.int64)
    place[model.state_order] = np.arange(len(model.state_order))
    return place[2 * model.nodes.n + first[np.searchsorted(owners, cells)]]


@njit(cache=True)
def _branches(fraction, wires, into):  # type: ignore[no-untyped-def]
    for i in range(len(wires.constants)):
        n, c = wires.at[1, i], wires.constants[i]
        stress = wires.loads[i].tension_N / c.area_m2
        _, slope = stroke(c.law, stress)
        place = places(c.law, stress, slope)
        into[0, n], into[1, n] = branches(c.law.knots_K, place, fraction[n])


@njit(cache=True)
def _resistances(wires):  # type: ignore[no-untyped-def]
    for i in range(len(wires.constants)):
        n, law, c = wires.at[0, i], wires.laws[wires.at[1, i]], wires.constants[i]
        strain, _ = stroke(c.law, wires.loads[i].tension_N / c.area_m2)
        T, xi = wires.state[0, n], wires.state[1, n]
        wires.state[3, n] = law.cell_Ohm_m * ohm_per_m_of(law, T, xi, (1.0 - xi) * strain)
