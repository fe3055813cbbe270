"""Assembly of cellular arrays that share connection points into one linear system.

With e = E x the stretch of every cell and W = diag(1/mass), the masses obey (eqs 18-25,
corrected)::

    alpha = -W E^T Ke E      beta = -W E^T Kv E
    gamma_q = W (G - H^T) Kd_q     delta = W (G - H^T) Kf     [G - H^T = -E^T]
    zeta_q = Ze_q E     eta_q = Zv_q E     iota_qr = diag I_qr     kappa_q = diag Kp_q

All masses of all arrays are first put into one list of nodes, with each connection point once.
The coupling blocks of eqs (30)-(40) then are ordinary rows and columns of the same matrices.
Finally the rows and columns are selected: states of interior masses and free points, and
inputs of driven points. Fixed points drop out.

Source: MacNair & Ueda, eqs (8)-(40); misprints corrected in (9), (21), (24), (29), (33)-(36).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hil.errors import ModelError
from hil.systems.array.model.cells import Cell
from hil.systems.array.model.fingerprint import Topology

Support = Literal["fixed", "free", "driven"]


@dataclass(frozen=True)
class Point:
    """An end of arrays: `fixed`, `free` (with a mass) or `driven` (prescribed motion).

    `spring_N_per_m` is a bias spring from a free point to the frame.
    """

    support: Support = "fixed"
    mass_kg: float = 0.0
    spring_N_per_m: float = 0.0


@dataclass(frozen=True)
class Array:
    """One cellular array between two points.

    Attributes
    ----------
    cells : sequence of Cell, one cell for all places, or N cells
    mass_kg : (M,) array, every mass, both ends included
    start, end : names of the points at the left and the right end
    dead, broken : frozenset of int, electrically dead and mechanically broken cells, from 0
    share : share of its tension that a weak cell keeps, by cell: the rest of its strands is torn
    """

    topology: Topology
    cells: Sequence[Cell]
    mass_kg: NDArray[np.float64]
    start: str
    end: str
    dead: frozenset[int] = field(default_factory=frozenset)
    broken: frozenset[int] = field(default_factory=frozenset)
    share: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of the cells of all arrays; K cells, R internal states in state order.

    `cell_of` and `q_of` give the cell and the index q of each internal state; `own_states`
    gives the range of internal states of each array.
    """

    Ke: NDArray[np.float64]
    Kv: NDArray[np.float64]
    Kf: NDArray[np.float64]
    K_static: NDArray[np.float64]
    phi: NDArray[np.float64]
    cell_of: NDArray[np.int64]
    q_of: NDArray[np.int64]
    Kd: NDArray[np.float64]
    Ze: NDArray[np.float64]
    Zv: NDArray[np.float64]
    Kp: NDArray[np.float64]
    iota: sp.csr_array
    own_states: tuple[slice, ...]


@dataclass(frozen=True)
class Nodes:
    """All masses, each once: points first, then the interior masses of each array.

    `left` and `right` (K,) are the end nodes of every cell; `mass_kg` is the total mass of each
    node (its own plus the end masses of all arrays that meet there). `spring_N_per_m` is the
    stiffness between a node and the frame.
    """

    mass_kg: NDArray[np.float64]
    spring_N_per_m: NDArray[np.float64]
    free: NDArray[np.bool_]
    driven: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def n(self) -> int:
        return len(self.mass_kg)

    @property
    def E(self) -> sp.csr_array:
        """Stretch map over all nodes, K x n."""
        rows = np.arange(len(self.left))
        ones = np.ones(len(rows))
        E = sp.coo_array(
            (
                np.concatenate((ones, -ones)),
                (np.concatenate((rows, rows)), np.concatenate((self.right, self.left))),
            ),
            shape=(len(rows), self.n),
        )
        return sp.csr_array(E)


def number_nodes(points: Mapping[str, Point], arrays: Mapping[str, Array]) -> Nodes:
    """Join the arrays at their points.

    Raises
    ------
    ModelError
        A point is unknown or unused, a mass is not above zero, or a cell does not exist.
    """
    index = {name: i for i, name in enumerate(points)}
    used: set[str] = set()
    point_mass = np.array([p.mass_kg for p in points.values()], dtype=float)
    interior_mass = []
    lefts, rights = [], []
    n_nodes = len(points)
    for name, array in arrays.items():
        _check_array(name, array, index)
        used |= {array.start, array.end}
        n_interior = array.topology.n_masses - 2
        nodes = np.concatenate(
            (
                [index[array.start]],
                np.arange(n_nodes, n_nodes + n_interior),
                [index[array.end]],
            )
        )
        n_nodes += n_interior
        lefts.append(nodes[array.topology.left])
        rights.append(nodes[array.topology.right])
        interior_mass.append(array.mass_kg[1:-1])
        point_mass[index[array.start]] += array.mass_kg[0]
        point_mass[index[array.end]] += array.mass_kg[-1]
    for name, point in points.items():
        if not (np.isfinite(point.mass_kg) and point.mass_kg >= 0.0):
            raise ModelError(f"points.{name}: mass_kg = {point.mass_kg:g} must not be negative")
        if not (np.isfinite(point.spring_N_per_m) and point.spring_N_per_m >= 0.0):
            k = point.spring_N_per_m
            raise ModelError(f"points.{name}: spring_N_per_m = {k:g} must not be negative")
        if point.spring_N_per_m > 0.0 and point.support != "free":
            raise ModelError(
                f"points.{name}: spring_N_per_m moves nothing at a {point.support} point: remove "
                "it, or set support = 'free'"
            )
        if name not in used:
            raise ModelError(f"points.{name}: no array ends here: remove the point or join it")
    support = np.array([p.support for p in points.values()])
    interior = np.concatenate(interior_mass)
    return Nodes(
        mass_kg=np.concatenate((point_mass, interior)),
        spring_N_per_m=np.concatenate(
            ([p.spring_N_per_m for p in points.values()], np.zeros(len(interior)))
        ),
        free=np.concatenate((support == "free", np.ones(len(interior), dtype=bool))),
        driven=np.concatenate((support == "driven", np.zeros(len(interior), dtype=bool))),
        left=np.concatenate(lefts),
        right=np.concatenate(rights),
    )


def _check_array(name: str, array: Array, points: Mapping[str, int]) -> None:
    n_cells, n_masses = array.topology.n_cells, array.topology.n_masses
    for key, point in (("from", array.start), ("to", array.end)):
        if point not in points:
            known = ", ".join(points)
            raise ModelError(f"arrays.{name}.{key}: no point '{point}'; there are: {known}")
    if array.start == array.end:
        raise ModelError(f"arrays.{name}: both ends are '{array.start}': give two points")
    if array.mass_kg.shape != (n_masses,):
        raise ModelError(
            f"arrays.{name}.mass_kg: {array.mass_kg.size} masses given, the fingerprint has "
            f"{n_masses}: give one number for all or a list of {n_masses}"
        )
    if not np.all(np.isfinite(array.mass_kg) & (array.mass_kg > 0.0)):
        raise ModelError(f"arrays.{name}.mass_kg: every mass must be above zero")
    if len(array.cells) not in (1, n_cells):
        raise ModelError(
            f"arrays.{name}.cell: {len(array.cells)} cells given, the fingerprint has "
            f"{n_cells}: give one table for all or a list of {n_cells}"
        )
    for key, failed in (("dead_cells", array.dead), ("broken_cells", array.broken)):
        outside = [n + 1 for n in sorted(failed) if not 0 <= n < n_cells]
        if outside:
            raise ModelError(
                f"arrays.{name}.{key}: there is no cell {outside[0]}: cells are 1 to {n_cells}"
            )


def collect_coefficients(arrays: Mapping[str, Array]) -> Coefficients:
    """Return the coefficients with failures.

    A dead cell has F = 0, a broken one no tension, and a weak one a share of it, while it moves
    inside as before.
    """
    columns: dict[str, list[NDArray[np.float64]]] = {
        name: [] for name in ("Ke", "Kv", "Kf", "K_static", "phi", "Kd", "Ze", "Zv", "Kp")
    }
    cell_of, q_of, iotas = [], [], []
    first_cell = 0
    for array in arrays.values():
        n_cells = array.topology.n_cells
        kinds = list(array.cells)
        kind_of = np.arange(n_cells) if len(kinds) == n_cells else np.zeros(n_cells, dtype=int)
        alive = np.ones(n_cells)
        alive[list(array.broken)] = 0.0
        answers = alive.copy()
        answers[list(array.dead)] = 0.0
        pull = alive.copy()
        pull[list(array.share)] *= list(array.share.values())

        n_internal = np.array([c.n_internal for c in kinds])[kind_of]
        owner = np.repeat(np.arange(n_cells), n_internal)
        q = np.concatenate([np.arange(n) for n in n_internal] or [np.zeros(0, dtype=int)])
        order = np.lexsort((owner, q))  # by q, then by cell (eq. 11)
        owner, q = owner[order], q[order]
        position = np.empty_like(order)
        position[order] = np.arange(len(order))

        static = np.array([c.static for c in kinds])[kind_of]
        columns["Ke"].append(pull * np.array([c.Ke for c in kinds])[kind_of])
        columns["Kv"].append(pull * np.array([c.Kv for c in kinds])[kind_of])
        columns["Kf"].append(pull * answers * np.array([c.Kf for c in kinds])[kind_of])
        columns["K_static"].append(pull * static[:, 0])
        columns["phi"].append(pull * answers * static[:, 1])
        widest = max(n_internal, default=0)
        for name, scale in (
            ("Kd", pull[owner]),
            ("Ze", 1.0),
            ("Zv", 1.0),
            ("Kp", answers[owner]),
        ):
            table = np.zeros((len(kinds), max(widest, 1)))
            for i, cell in enumerate(kinds):
                table[i, : cell.n_internal] = getattr(cell, name)
            columns[name].append(scale * table[kind_of[owner], q])

        iota = np.zeros((len(kinds), max(widest, 1), max(widest, 1)))
        for i, cell in enumerate(kinds):
            iota[i, : cell.n_internal, : cell.n_internal] = cell.I
        first_row = np.concatenate(([0], np.cumsum(n_internal)))
        rows, cols, values = [], [], []
        for r in range(widest):
            coupled = n_internal[owner] > r
            rows.append(np.flatnonzero(coupled))
            cols.append(position[first_row[owner[coupled]] + r])
            values.append(iota[kind_of[owner[coupled]], q[coupled], r])
        n_states = len(owner)
        iotas.append(
            sp.coo_array(
                (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))),
                shape=(n_states, n_states),
            )
            if n_states
            else sp.coo_array((0, 0))
        )
        cell_of.append(first_cell + owner)
        q_of.append(q)
        first_cell += n_cells
    return Coefficients(
        **{name: np.concatenate(parts) for name, parts in columns.items()},
        own_states=tuple(
            slice(int(b - len(q)), int(b))
            for q, b in zip(q_of, np.cumsum([len(q) for q in q_of]), strict=True)
        ),
        cell_of=np.concatenate(cell_of),
        q_of=np.concatenate(q_of),
        iota=sp.csr_array(sp.block_diag(iotas)),
    )


@dataclass(frozen=True)
class Blocks:
    """Accelerations, internal states and tensions over nodes, before supports are applied.

    a  = alpha x + beta v + gamma d + delta F            (n nodes)
    d' = zeta x + eta v + iota d + kappa F               (R internal states)
    T  = T_x x + T_v v + T_d d + T_F F                   (K cells)
    """

    alpha: sp.csr_array
    beta: sp.csr_array
    gamma: sp.csr_array
    delta: sp.csr_array
    zeta: sp.csr_array
    eta: sp.csr_array
    iota: sp.csr_array
    kappa: sp.csr_array
    T_x: sp.csr_array
    T_v: sp.csr_array
    T_d: sp.csr_array
    T_F: sp.csr_array


def assemble(nodes: Nodes, c: Coefficients) -> Blocks:
    """Evaluate eqs (18)-(25) for all arrays at once, over all nodes."""
    E = nodes.E
    n_cells, n_internal = len(c.Ke), len(c.cell_of)
    R = np.arange(n_internal)
    pick = sp.csr_array((np.ones(n_internal), (R, c.cell_of)), shape=(n_internal, n_cells))
    moving = np.where(nodes.free, nodes.mass_kg, np.inf)
    towards = sp.csr_array(sp.diags_array(-1.0 / moving) @ E.T)  # W (G - H^T)
    T_x = sp.csr_array(sp.diags_array(c.Ke) @ E)
    T_v = sp.csr_array(sp.diags_array(c.Kv) @ E)
    T_d = sp.csr_array((c.Kd, (c.cell_of, R)), shape=(n_cells, n_internal))
    T_F = sp.csr_array(sp.diags_array(c.Kf))
    E_of_d = pick @ E
    return Blocks(
        alpha=towards @ T_x - sp.diags_array(nodes.spring_N_per_m / moving),
        beta=towards @ T_v,
        gamma=towards @ T_d,
        delta=towards @ T_F,
        zeta=sp.csr_array(sp.diags_array(c.Ze) @ E_of_d) if n_internal else E_of_d,
        eta=sp.csr_array(sp.diags_array(c.Zv) @ E_of_d) if n_internal else E_of_d,
        iota=c.iota,
        kappa=sp.csr_array((c.Kp, (R, c.cell_of)), shape=(n_internal, n_cells)),
        T_x=T_x,
        T_v=T_v,
        T_d=T_d,
        T_F=T_F,
    )
