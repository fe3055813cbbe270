"""Cellular arrays as one linear state-space model with named states, inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from hil.models import fingerprint, network
from hil.models.cells import Cell
from hil.models.network import Array, ModelError, Point, Support

if TYPE_CHECKING:
    import control

DENSE_ORDER_MAX = 4000


@dataclass(frozen=True)
class Statics:
    """Equilibrium under constant inputs.

    Attributes
    ----------
    position_m : (n,) array
        Of every node (points first, then interior masses); NaN where nothing holds it.
    tension_N : (K,) array
        Carried by every cell.
    """

    position_m: NDArray[np.float64]
    tension_N: NDArray[np.float64]


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
        When the parts do not make a model; the message names the array, point or cell.

    Notes
    -----
    Source: MacNair & Ueda, eqs (8)-(40), with the misprints corrected in `hil.models.network`.
    """

    def __init__(self, points: Mapping[str, Point], arrays: Mapping[str, Array]) -> None:
        if not arrays:
            raise ModelError("arrays: there is none: a model needs at least one array")
        self.points = dict(points)
        self.arrays = dict(arrays)
        self._nodes = network.number_nodes(self.points, self.arrays)
        self._coefficients = network.collect_coefficients(self.arrays)
        self._blocks = network.assemble(self._nodes, self._coefficients)

    @classmethod
    def from_fingerprint(
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
        """One array between the points `left` and `right`; cells are numbered from 1."""
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

    @property
    def nodes(self) -> network.Nodes:
        """Every mass once, and the two that each cell joins."""
        return self._nodes

    @property
    def coefficients(self) -> network.Coefficients:
        """Every cell's coefficients, failures applied."""
        return self._coefficients

    # Names

    @property
    def n_cells(self) -> int:
        return len(self._coefficients.Ke)

    @cached_property
    def cell_names(self) -> list[str]:
        """`array.n` for every cell in input order, n from 1."""
        return [f"{a}.{n}" for a, array in self.arrays.items() for n in _cells(array)]

    @cached_property
    def states(self) -> list[str]:
        names = []
        for name, array in self.arrays.items():
            masses = range(2, array.topology.n_masses)
            names += [f"{name}.x{m}_m" for m in masses]
            names += [f"{name}.v{m}_m_per_s" for m in masses]
            names += [f"{name}.d{q + 1}.{n + 1}_m" for q, n in self._internal(name)]
        for point in self._points("free"):
            names += [f"{point}.x_m", f"{point}.v_m_per_s"]
        return names

    @cached_property
    def inputs(self) -> list[str]:
        names = [f"{a}.F{n}_N" for a, array in self.arrays.items() for n in _cells(array)]
        names += [f"{point}.F_N" for point in self._points("free")]
        for point in self._points("driven"):
            names += [f"{point}.x_m", f"{point}.v_m_per_s", f"{point}.a_m_per_s2"]
        return names

    @cached_property
    def outputs(self) -> list[str]:
        names = []
        for name, array in self.arrays.items():
            names += [f"{name}.left_N", f"{name}.right_N"]
            names += [f"{name}.x{m}_m" for m in range(2, array.topology.n_masses)]
        return names + [f"{point}.x_m" for point in self._points("free")]

    def _points(self, support: Support) -> list[str]:
        return [name for name, point in self.points.items() if point.support == support]

    def _internal(self, name: str) -> list[tuple[int, int]]:
        """(q, n) of every internal state of one array, from 0, in state order."""
        first = sum(a.topology.n_cells for other, a in self._before(name) if other in self.arrays)
        own = self._own_internal(name)
        c = self._coefficients
        cells = c.cell_of[own] - first
        return list(zip(c.q_of[own].tolist(), cells.tolist(), strict=True))

    def _before(self, name: str) -> list[tuple[str, Array]]:
        names = list(self.arrays)
        return [(other, self.arrays[other]) for other in names[: names.index(name)]]

    def _own_internal(self, name: str) -> NDArray[np.int64]:
        first = sum(a.topology.n_cells for _, a in self._before(name))
        of = self._coefficients.cell_of
        last = first + self.arrays[name].topology.n_cells
        return np.flatnonzero((of >= first) & (of < last))

    # Matrices

    @cached_property
    def _order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where states sit in [x (n), v (n), d (R)], and driven inputs in [x, v] there."""
        n = self._nodes.n
        picks = []
        first_node = len(self.points)
        for name, array in self.arrays.items():
            x = np.arange(first_node, first_node + array.topology.n_masses - 2)
            picks += [x, n + x, 2 * n + self._own_internal(name)]
            first_node += len(x)
        for i, point in enumerate(self.points.values()):
            if point.support == "free":
                picks.append(np.array([i, n + i]))
        driven = np.flatnonzero(self._nodes.driven)
        columns = np.stack((driven, n + driven), axis=1).ravel()
        return np.concatenate(picks), columns

    @property
    def state_order(self) -> NDArray[np.int64]:
        """Where every state sits among [x of nodes, v of nodes, internal states]."""
        return self._order[0]

    @cached_property
    def sparse(self) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array, sp.csr_array]:
        """A, B, C, D as SciPy sparse arrays."""
        b, nodes = self._blocks, self._nodes
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

        at_left, at_right = self._ends()
        force_z = sp.vstack([at_left @ tension, at_right @ tension], format="csr")
        force_F = sp.vstack([at_left @ b.T_F, at_right @ b.T_F], format="csr")
        rows = self._output_rows()
        position = sp.eye_array(n, 2 * n + n_internal, format="csr")
        y_z = sp.csc_array(sp.vstack([force_z, position], format="csr")[rows])
        y_F = sp.vstack([force_F, sp.csr_array((n, self.n_cells))], format="csr")[rows]

        by_node = np.flatnonzero(nodes.free[: len(self.points)])
        push = sp.csr_array(
            (1.0 / nodes.mass_kg[by_node], (n + by_node, np.arange(len(by_node)))),
            shape=(2 * n + n_internal, len(by_node)),
        )
        B = sp.hstack([from_F[order], push[order], _with_unused(rate[:, driven][order])])
        D = sp.hstack([y_F, sp.csr_array((len(rows), len(by_node))), _with_unused(y_z[:, driven])])
        A = rate[:, order].tocsr()[order]
        return A, B.tocsr(), y_z[:, order].tocsr(), D.tocsr()

    def _ends(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Rows that sum the tensions at every array's first and last mass."""
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

    def _output_rows(self) -> NDArray[np.int64]:
        """Rows of [left forces, right forces, node positions] in output order."""
        n_arrays = len(self.arrays)
        rows: list[NDArray[np.int64]] = []
        first_node = 2 * n_arrays + len(self.points)
        for i, array in enumerate(self.arrays.values()):
            n_interior = array.topology.n_masses - 2
            rows += [np.array([i, n_arrays + i]), np.arange(first_node, first_node + n_interior)]
            first_node += n_interior
        free = np.flatnonzero(self._nodes.free[: len(self.points)])
        return np.concatenate([*rows, 2 * n_arrays + free])

    def _dense(self, which: int) -> NDArray[np.float64]:
        if len(self.states) > DENSE_ORDER_MAX:
            raise ModelError(
                f"a dense matrix of order {len(self.states)} is refused beyond "
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

    def to_control(self) -> control.StateSpace:
        """As a python-control `StateSpace`, dots in names replaced by underscores.

        python-control refuses dots in the names of inputs and outputs.
        """
        import control

        names = {"states": self.states, "inputs": self.inputs, "outputs": self.outputs}
        plain = {key: [name.replace(".", "_") for name in list_] for key, list_ in names.items()}
        return control.ss(self.A, self.B, self.C, self.D, **plain)

    # Statics

    @cached_property
    def _components(self) -> tuple[int, NDArray[np.int64]]:
        """Pieces of the network joined by cells that carry static load."""
        nodes, K = self._nodes, self._coefficients.K_static
        live = np.flatnonzero(K != 0.0)
        ones = np.ones(len(live))
        graph = sp.coo_array(
            (ones, (nodes.left[live], nodes.right[live])), shape=(nodes.n, nodes.n)
        )
        n_pieces, piece = connected_components(graph, directed=False)
        return n_pieces, piece

    @cached_property
    def _held(self) -> NDArray[np.bool_]:
        """Nodes that live cells join to a fixed or driven point, these points included."""
        n_pieces, piece = self._components
        holds = np.zeros(n_pieces, dtype=bool)
        holds[piece[~self._nodes.free]] = True
        return holds[piece]

    @cached_property
    def node_names(self) -> list[str]:
        """Points, then interior masses `array.m`, m from 2."""
        names = list(self.points)
        for name, array in self.arrays.items():
            names += [f"{name}.{m}" for m in range(2, array.topology.n_masses)]
        return names

    @property
    def floating(self) -> list[list[str]]:
        """Groups of masses that no live cell joins to a support; each is one rigid mode."""
        _, piece = self._components
        loose = np.flatnonzero(~self._held)
        groups: dict[int, list[str]] = {}
        for node in loose.tolist():
            groups.setdefault(int(piece[node]), []).append(self.node_names[node])
        return list(groups.values())

    def solve_statics(
        self,
        F_N: ArrayLike,
        *,
        force_N: Mapping[str, float] | None = None,
        position_m: Mapping[str, float] | None = None,
    ) -> Statics:
        """Equilibrium T = K e + phi F at every held mass.

        Parameters
        ----------
        F_N : (K,) array
            Activation force of every cell.
        force_N : mapping of str to float
            External force on free points, positive to the right.
        position_m : mapping of str to float
            Of driven points; 0 where not given.
        """
        nodes, c, E = self._nodes, self._coefficients, self._blocks_E
        names = {name: i for i, name in enumerate(self.points)}
        load = np.zeros(nodes.n)
        for name, value in (force_N or {}).items():
            load[names[name]] = value
        x = np.zeros(nodes.n)
        for name, value in (position_m or {}).items():
            x[names[name]] = value
        pull = c.phi * np.asarray(F_N, dtype=float)
        solved = np.flatnonzero(self._held & nodes.free)
        if len(solved):
            tension = c.K_static * (E @ x) + pull
            x[solved] = self._static_factor.solve((load - E.T @ tension)[solved])
        x[~self._held] = 0.0
        tension_N = c.K_static * (E @ x) + pull
        x[~self._held] = np.nan
        return Statics(x, tension_N)

    def equilibrium(self, F_N: ArrayLike) -> NDArray[np.float64]:
        """State in which these constant cell forces leave everything at rest, (n,).

        Points rest where they are held; floating masses stay at 0.
        """
        c, n = self._coefficients, self._nodes.n
        x = np.nan_to_num(self.solve_statics(F_N).position_m)
        z = np.zeros(2 * n + len(c.cell_of))
        z[:n] = x
        if len(c.cell_of):
            e = (self._blocks_E @ x)[c.cell_of]
            pull = c.Ze * e + c.Kp * np.asarray(F_N, dtype=float)[c.cell_of]
            z[2 * n :] = splu(sp.csc_matrix(c.iota)).solve(-pull)
        return z[self.state_order]

    @cached_property
    def _blocks_E(self) -> sp.csr_array:
        return self._nodes.E

    @cached_property
    def _static_factor(self) -> splu:
        """Factorised stiffness of the held free nodes, E^T K E."""
        E = self._blocks_E
        solved = np.flatnonzero(self._held & self._nodes.free)
        K = sp.csc_array(E.T @ sp.diags_array(self._coefficients.K_static) @ E)
        return splu(sp.csc_matrix(K[:, solved].tocsr()[solved]))

    def cells_at(self, output: str) -> NDArray[np.bool_]:
        """Cells whose tensions `array.left_N` or `array.right_N` sums, (K,).

        Raises
        ------
        ModelError
            Another name.
        """
        name, _, side = output.rpartition(".")
        ends = dict(zip(("left_N", "right_N"), self._ends(), strict=True))
        if name not in self.arrays or side not in ends:
            raise ModelError(f"'{output}' is no force of this model")
        row = ends[side][[list(self.arrays).index(name)]]
        return np.asarray(row.toarray()[0] != 0.0)

    def force_at(self, output: str, tension_N: NDArray[np.float64]) -> float:
        """Sum of tensions at `array.left_N` or `array.right_N`."""
        return float(tension_N[self.cells_at(output)].sum())

    def static_gain(self, output: str) -> NDArray[np.float64]:
        """Static force at `output` per newton of every cell's F, in N/N, (K,).

        With h = 1 for the cells that `output` sums and E of the held free masses alone, the
        equilibrium E^T (K E x + phi F) = 0 gives the force h^T (K E x + phi F) = g^T F,

            g = phi (h - E z),    E^T K E z = E^T K h,

        so that one solve serves all cells. With fixed ends h - E z is the cell's share of a
        unit motion of that end. Cells that touch a floating mass have g = 0.

        Source: the static law of section 2 of the fingerprint method; reciprocity (Betti).
        """
        c, E = self._coefficients, self._blocks_E
        h = self.cells_at(output).astype(float)
        z = np.zeros(self._nodes.n)
        solved = np.flatnonzero(self._held & self._nodes.free)
        if len(solved):
            z[solved] = self._static_factor.solve((E.T @ (c.K_static * h))[solved])
        held = self._held[self._nodes.left] & self._held[self._nodes.right]
        return np.where(held, c.phi * (h - E @ z), 0.0)


def _cells(array: Array) -> range:
    return range(1, array.topology.n_cells + 1)


def _with_unused(columns: sp.sparray) -> sp.csr_array:
    """Columns (x, v) of every driven point, each pair followed by its unused acceleration."""
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
    """An `Array` from its fingerprint; one mass or cell stands for all, cells count from 1."""
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
