"""Cellular arrays as one linear state-space model with named states, inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import splu

from hil.errors import ModelError
from hil.mechanics.discrete import Discrete, discretise
from hil.systems.array.model import fingerprint, names, network
from hil.systems.array.model.cells import Cell
from hil.systems.array.model.network import Array, Point, Support
from hil.systems.array.model.statics import StaticNetwork, Statics

if TYPE_CHECKING:
    import xarray as xr

    import control
    from hil.systems.array.model.activation import CellActivation

EXACT_ORDER_MAX, DENSE_ORDER_MAX = 200, 4000  # states: of a step by the exponential; of a matrix


class CellArray:
    """One or more cellular arrays that share points: x' = A x + B u, y = C x + D u.

    Displacements are from the relaxed state, in m; forces are in N, positive in tension.
    Inputs F are after activation.

    Parameters
    ----------
    points : mapping of str to Point
    arrays : mapping of str to Array

    Raises
    ------
    ModelError
        The parts do not form a model; the message names the array, point or cell.

    Notes
    -----
    Source: MacNair & Ueda, eqs (8)-(40), with the misprints corrected in
    `hil.systems.array.model.network`.
    """

    def __init__(self, points: Mapping[str, Point], arrays: Mapping[str, Array]) -> None:
        if not arrays:
            raise ModelError("arrays: there is none: a model needs at least one array")
        self.points = dict(points)
        self.arrays = dict(arrays)
        self.nodes = network.number_nodes(self.points, self.arrays)
        self.coefficients = network.collect_coefficients(self.arrays)
        self.statics = StaticNetwork(self.nodes, self.coefficients)
        self._discrete: dict[float, Discrete] = {}

    @classmethod
    def from_fingerprint(  # noqa: PLR0913 - users write its keywords
        cls,
        text: str,
        *,
        cell: Cell | Sequence[Cell],
        mass_kg: ArrayLike,
        name: str = "array",
        left: Support = "fixed",
        right: Support = "fixed",
        dead_cells: Sequence[int] = (),
        broken_cells: Sequence[int] = (),
    ) -> CellArray:
        """Return one array between the points `left` and `right`; cells count from 1."""
        points = {"left": Point(left), "right": Point(right)}
        array = make_array(
            text,
            cell=cell,
            mass_kg=mass_kg,
            start="left",
            end="right",
            dead_cells=dead_cells,
            broken_cells=broken_cells,
        )
        return cls(points, {name: array})

    # Names

    @property
    def n_cells(self) -> int:
        return len(self.coefficients.Ke)

    @cached_property
    def cell_names(self) -> list[str]:
        """`array.n` for every cell in input order, n from 1."""
        return names.cells(self.arrays)

    @cached_property
    def node_names(self) -> list[str]:
        """Points, then interior masses `array.m`, m from 2."""
        return names.nodes(self.points, self.arrays)

    @cached_property
    def states(self) -> list[str]:
        return names.states(self.points, self.arrays, self.coefficients)

    @cached_property
    def inputs(self) -> list[str]:
        return names.inputs(self.points, self.arrays)

    @cached_property
    def outputs(self) -> list[str]:
        return names.outputs(self.points, self.arrays)

    # Matrices

    @cached_property
    def _order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices of the states, and of the driven inputs, in [x (n), v (n), d (R)]."""
        n = self.nodes.n
        picks = []
        first_node = len(self.points)
        for array, states in zip(self.arrays.values(), self.coefficients.own_states, strict=True):
            x = np.arange(first_node, first_node + array.topology.n_masses - 2)
            picks += [x, n + x, 2 * n + np.arange(states.start, states.stop)]
            first_node += len(x)
        for i, point in enumerate(self.points.values()):
            if point.support == "free":
                picks.append(np.array([i, n + i]))
        driven = np.flatnonzero(self.nodes.driven)
        columns = np.stack((driven, n + driven), axis=1).ravel()
        return np.concatenate(picks), columns

    @property
    def broken(self) -> list[int]:
        """The cells, from 0, that are mechanically broken."""
        cells, first = [], 0
        for array in self.arrays.values():
            cells += [first + n for n in sorted(array.broken)]
            first += array.topology.n_cells
        return cells

    def with_broken(self, cell: int) -> CellArray:
        """The same with one more cell, from 0, that is mechanically broken."""
        name, n = self._place_of(cell)
        array = self.arrays[name]
        changed = replace(array, broken=array.broken | {n})
        return CellArray(self.points, {**self.arrays, name: changed})

    def with_weak(self, cell: int, share: float) -> CellArray:
        """The same with a cell, from 0, that keeps this share of its tension."""
        name, n = self._place_of(cell)
        array = self.arrays[name]
        changed = replace(array, share={**array.share, n: share * array.share.get(n, 1.0)})
        return CellArray(self.points, {**self.arrays, name: changed})

    def _place_of(self, cell: int) -> tuple[str, int]:
        """The array of a cell, from 0, and its number there."""
        sizes = [array.topology.n_cells for array in self.arrays.values()]
        ends = np.cumsum(sizes)
        i = int(np.searchsorted(ends, cell, side="right"))
        return list(self.arrays)[i], cell - int(ends[i]) + sizes[i]

    @property
    def state_order(self) -> NDArray[np.int64]:
        """Index of every state in [x of nodes, v of nodes, internal states]."""
        return self._order[0]

    @cached_property
    def sparse(self) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array, sp.csr_array]:
        """A, B, C, D as SciPy sparse arrays."""
        b, nodes = network.assemble(self.nodes, self.coefficients), self.nodes
        n, n_internal = nodes.n, b.iota.shape[0]
        order, driven = self._order
        rate = sp.block_array(
            [
                [None, sp.eye_array(n), sp.csr_array((n, n_internal))],
                [b.alpha, b.beta, b.gamma],
                [b.zeta, b.eta, b.iota],
            ],
            format="csc",
        )
        from_F = sp.vstack([sp.csr_array((n, self.n_cells)), b.delta, b.kappa], format="csr")
        tension = sp.hstack([b.T_x, b.T_v, b.T_d], format="csc")

        at_left, at_right = self._ends
        sums = [at_left, at_right, self._net]
        force_z = sp.vstack([of_cells @ tension for of_cells in sums], format="csr")
        force_F = sp.vstack([of_cells @ b.T_F for of_cells in sums], format="csr")
        rows = self._output_rows()
        position = sp.eye_array(n, 2 * n + n_internal, format="csr")
        y_z = sp.csc_array(sp.vstack([position, force_z], format="csr")[rows])
        y_F = sp.vstack([sp.csr_array((n, self.n_cells)), force_F], format="csr")[rows]

        by_node = np.flatnonzero(nodes.free[: len(self.points)])
        push = sp.csr_array(
            (1.0 / nodes.mass_kg[by_node], (n + by_node, np.arange(len(by_node)))),
            shape=(2 * n + n_internal, len(by_node)),
        )
        B = sp.hstack([from_F[order], push[order], _with_unused(rate[:, driven][order])])
        D = sp.hstack([y_F, sp.csr_array((len(rows), len(by_node))), _with_unused(y_z[:, driven])])
        A = rate[:, order].tocsr()[order]
        return A, B.tocsr(), y_z[:, order].tocsr(), D.tocsr()

    @cached_property
    def _ends(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Matrices that sum the tensions at the first and at the last mass of every array."""
        ends = []
        for side in ("left", "right"):
            rows, cells, first = [], [], 0
            for i, array in enumerate(self.arrays.values()):
                t = array.topology
                end = 0 if side == "left" else t.n_masses - 1
                at = first + np.flatnonzero(getattr(t, side) == end)
                rows.append(np.full(len(at), i))
                cells.append(at)
                first += t.n_cells
            row, cell = np.concatenate(rows), np.concatenate(cells)
            shape = (len(self.arrays), self.n_cells)
            ends.append(sp.csr_array((np.ones(len(row)), (row, cell)), shape=shape))
        return ends[0], ends[1]

    @cached_property
    def _net(self) -> sp.csr_array:
        """Matrix of the net tensions on points between arrays: of those that end there, less."""
        at_left, at_right = self._ends
        points, arrays = names.between(self.points, self.arrays), self.arrays.values()
        ends, starts = (
            np.array([[getattr(a, side) == p for a in arrays] for p in points], dtype=float)
            for side in ("end", "start")
        )
        shape = (len(points), len(arrays))
        return (
            sp.csr_array(ends.reshape(shape)) @ at_right
            - sp.csr_array(starts.reshape(shape)) @ at_left
        )

    def _output_rows(self) -> NDArray[np.int64]:
        """Indices of the outputs in [node positions, left forces, right forces, net forces]."""
        n, n_arrays, n_points = self.nodes.n, len(self.arrays), len(self.points)
        rows: list[NDArray[np.int64]] = []
        first_node = n_points
        for i, array in enumerate(self.arrays.values()):
            n_interior = array.topology.n_masses - 2
            ends = np.array([n + i, n + n_arrays + i])
            rows += [ends, np.arange(first_node, first_node + n_interior)]
            first_node += n_interior
        moving = [self.nodes.free[:n_points], self.nodes.driven[:n_points]]
        net = n + 2 * n_arrays + np.arange(len(names.between(self.points, self.arrays)))
        return np.concatenate([*rows, *map(np.flatnonzero, moving), net])

    def _dense(self, which: int) -> NDArray[np.float64]:
        if len(self.states) > DENSE_ORDER_MAX:
            raise ModelError(
                f"a dense matrix of order {len(self.states)} is too large, the limit is "
                f"{DENSE_ORDER_MAX}: use .sparse"
            )
        return np.asarray(self.sparse[which].toarray(), dtype=float)

    @cached_property
    def A(self) -> NDArray[np.float64]:
        return self._dense(0)

    @cached_property
    def B(self) -> NDArray[np.float64]:
        return self._dense(1)

    @cached_property
    def C(self) -> NDArray[np.float64]:
        return self._dense(2)

    @cached_property
    def D(self) -> NDArray[np.float64]:
        return self._dense(3)

    @property
    def driven(self) -> list[str]:
        """Names of the points whose motion is prescribed."""
        return [name for name, point in self.points.items() if point.support == "driven"]

    def discrete(self, period_s: float) -> Discrete:
        """The model discretised exactly; once a period.

        Its inputs are the cells' forces, then position and velocity of every driven point.
        """
        if period_s not in self._discrete:
            moves = [
                f"{name}.{what}" for name in self.driven for what in ("x_m", "v_m_per_s")
            ]  # fmt: skip
            at = [*range(self.n_cells), *map(self.inputs.index, moves)]
            self._discrete[period_s] = discretise(
                self.A, self.B[:, at], self.C, self.D[:, at], period_s
            )
        return self._discrete[period_s]

    def to_control(self) -> control.StateSpace:
        """Return a python-control `StateSpace`, with underscores for the dots in names.

        python-control does not accept dots in the names of inputs and outputs.
        """
        import control

        names = {"states": self.states, "inputs": self.inputs, "outputs": self.outputs}
        plain = {key: [name.replace(".", "_") for name in list_] for key, list_ in names.items()}
        return control.ss(self.A, self.B, self.C, self.D, **plain)

    # Many parameter sets

    def batch(
        self,
        parameters: Mapping[str, ArrayLike | Sequence[Cell]],
        commands: ArrayLike,
        *,
        activation: Sequence[CellActivation],
        period_s: float,
        outputs: Sequence[str] | None = None,
    ) -> xr.Dataset:
        """Return the responses of N parameter sets of this array with its wires, open loop.

        All processors work at once, each on a set of its own, by the compiled law of the loop: a
        set has the numbers that plant and twin of a run have. A run starts at rest. Driven points
        stay at 0.

        Parameters
        ----------
        parameters : mapping of str to (N,) array, or (N, K) with a value for every cell
            `mass_kg` of every mass, `cell` (N instances of `Cell`, for all places), or a field of
            `CellActivation` or of its parts: `force_on_N`, `wire.convection_W_per_m2_K`,
            `loaded.law.heating.middle_C`. What is not named is as in the array and `activation`.
        commands : (n, K) array, or (N, n, K) with a table for every set
            Duty, 0 to 1, of every cell during every period.
        activation : K instances of `CellActivation`
        outputs : of `outputs`, `<cell>.wire_C` or `<cell>.austenite`; default `outputs`

        Returns
        -------
        xarray.Dataset
            A variable (set, t_s) for every output, t_s = 0 to n periods; the parameters are
            coordinates.

        Raises
        ------
        ModelError
            A parameter, a value, a shape or an output that cannot be; the message names it.
        """
        from hil.systems.array.model.batch import batch

        return batch(self, parameters, commands, activation, period_s, outputs)

    # Statics

    @property
    def floating(self) -> list[list[str]]:
        """Groups of masses that no live cell connects to a support; each is a rigid-body mode."""
        return [[self.node_names[node] for node in group] for group in self.statics.floating()]

    def solve_statics(
        self,
        F_N: ArrayLike,
        *,
        force_N: Mapping[str, float] | None = None,
        position_m: Mapping[str, float] | None = None,
    ) -> Statics:
        """Return the equilibrium T = K e + phi F at every mass that is connected to a support.

        Parameters
        ----------
        F_N : (K,) array, activation force of every cell
        force_N : mapping of str to float, external force on free points, positive to the right
        position_m : mapping of str to float, positions of driven points; default 0
        """
        node = {name: i for i, name in enumerate(self.points)}
        load_N, held_m = np.zeros(self.nodes.n), np.zeros(self.nodes.n)
        for name, value in (force_N or {}).items():
            load_N[node[name]] = value
        for name, value in (position_m or {}).items():
            held_m[node[name]] = value
        return self.statics.solve(np.asarray(F_N, dtype=float), load_N, held_m)

    def equilibrium(self, F_N: ArrayLike) -> NDArray[np.float64]:
        """Return the state (n,) at rest under constant cell forces.

        Driven points are at 0; floating masses stay at 0.
        """
        c, n = self.coefficients, self.nodes.n
        x = np.nan_to_num(self.solve_statics(F_N).position_m)
        z = np.zeros(2 * n + len(c.cell_of))
        z[:n] = x
        if len(c.cell_of):
            e = (self.statics.E @ x)[c.cell_of]
            pull = c.Ze * e + c.Kp * np.asarray(F_N, dtype=float)[c.cell_of]
            z[2 * n :] = splu(sp.csc_matrix(c.iota)).solve(-pull)
        return z[self.state_order]

    def weights_at(self, output: str) -> NDArray[np.float64]:
        """Return how much (K,) of every cell's tension a force has: 1, 0, or -1 in a net force.

        Raises
        ------
        ModelError
            `output` is no force of this model: `array.left_N`, `array.right_N`, `point.net_N`.
        """
        if output not in self._weights:
            self._weights[output] = self._row(output)
        return self._weights[output].copy()

    @cached_property
    def _weights(self) -> dict[str, NDArray[np.float64]]:
        """What `weights_at` has returned, by output."""
        return {}

    def _row(self, output: str) -> NDArray[np.float64]:
        name, _, side = output.rpartition(".")
        at_left, at_right = self._ends
        sums = {
            "left_N": (list(self.arrays), at_left),
            "right_N": (list(self.arrays), at_right),
            "net_N": (names.between(self.points, self.arrays), self._net),
        }
        of, weights = sums.get(side, ([], at_left))
        if name not in of:
            raise ModelError(f"'{output}' is not a force of this model")
        return np.asarray(weights[[of.index(name)]].toarray()[0])

    def force_at(self, output: str, tension_N: NDArray[np.float64]) -> float:
        """Return the force of these tensions (K,) at `output`."""
        weights = self.weights_at(output)
        summed = weights != 0.0  # floating cells have no tension that is known
        return float((weights[summed] * tension_N[summed]).sum())

    def static_gain(self, output: str) -> NDArray[np.float64]:
        """Return the static force at `output` per newton of every cell's F, in N/N, (K,).

        See `StaticNetwork.gain`.
        """
        return self.statics.gain(self.weights_at(output))


def _with_unused(columns: sp.sparray) -> sp.csr_array:
    """Insert an unused acceleration column after the columns (x, v) of every driven point."""
    n_driven = columns.shape[1] // 2
    wide = sp.csc_array((columns.shape[0], 3 * n_driven))
    if n_driven:
        place = np.array([3 * i + j for i in range(n_driven) for j in (0, 1)])
        spread = sp.csr_array(
            (np.ones(len(place)), (np.arange(len(place)), place)),
            shape=(len(place), 3 * n_driven),
        )
        wide = columns @ spread
    return sp.csr_array(wide)


def make_array(
    text: str,
    *,
    cell: Cell | Sequence[Cell],
    mass_kg: ArrayLike,
    start: str,
    end: str,
    dead_cells: Sequence[int] = (),
    broken_cells: Sequence[int] = (),
) -> Array:
    """Return an `Array`; a single mass or cell applies to all, failed cells count from 1."""
    topology = fingerprint.parse(text)
    mass = np.array(mass_kg, dtype=float)
    if mass.ndim == 0:
        mass = np.full(topology.n_masses, float(mass))
    return Array(
        topology=topology,
        cells=(cell,) if isinstance(cell, Cell) else tuple(cell),
        mass_kg=mass,
        start=start,
        end=end,
        dead=frozenset(n - 1 for n in dead_cells),
        broken=frozenset(n - 1 for n in broken_cells),
    )
