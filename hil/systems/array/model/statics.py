"""Equilibrium of a network of cells under constant forces: T = K e + phi F."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.array.model.network import Coefficients, Nodes


@dataclass(frozen=True)
class Statics:
    """Equilibrium under constant inputs.

    Attributes
    ----------
    position_m : (n,) array
        Position of every node (points first, then interior masses); NaN for floating nodes.
    tension_N : (K,) array, tension of every cell
    """

    position_m: Array
    tension_N: Array


@dataclass(frozen=True)
class StaticNetwork:
    """Static equations of a network, factorised once."""

    nodes: Nodes
    coefficients: Coefficients

    def __getstate__(self) -> dict[str, object]:
        """Without the factors, which cannot go to another process; it makes them again."""
        return {key: value for key, value in vars(self).items() if key != "_factor"}

    @cached_property
    def E(self) -> sp.csr_array:
        """Stretch map over all nodes."""
        return self.nodes.E

    @cached_property
    def E_T(self) -> sp.csr_array:
        """Its transpose, which sums the pulls of cells at their nodes."""
        return sp.csr_array(self.E.T)

    @cached_property
    def piece(self) -> NDArray[np.int64]:
        """Connected component of every node; cells with static stiffness are the edges."""
        live = np.flatnonzero(self.coefficients.K_static != 0.0)
        graph = sp.coo_array(
            (np.ones(len(live)), (self.nodes.left[live], self.nodes.right[live])),
            shape=(self.nodes.n, self.nodes.n),
        )
        pieces: NDArray[np.int64] = connected_components(graph, directed=False)[1]
        return pieces

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """Nodes connected by live cells to a support or a bias spring, these points included."""
        holds = np.zeros(self.nodes.n, dtype=bool)
        supported = ~self.nodes.free | (self.nodes.spring_N_per_m > 0.0)
        holds[self.piece[supported]] = True
        return holds[self.piece]

    @cached_property
    def solved(self) -> NDArray[np.int64]:
        """Nodes whose position is an unknown of the static equations."""
        return np.flatnonzero(self.held & self.nodes.free)

    @cached_property
    def _factor(self) -> splu:
        """LU factors of E^T K E over the solved nodes."""
        cells = self.E_T @ sp.diags_array(self.coefficients.K_static) @ self.E
        K = sp.csc_array(cells + sp.diags_array(self.nodes.spring_N_per_m))
        try:
            return splu(sp.csc_matrix(K[:, self.solved].tocsr()[self.solved]))
        except RuntimeError:
            raise ModelError(
                "statics: custom cells of negative stiffness leave no equilibrium"
            ) from None

    def floating(self) -> list[list[int]]:
        """Return groups of nodes that no live cell connects to a support (rigid-body modes)."""
        groups: dict[int, list[int]] = {}
        for node in np.flatnonzero(~self.held).tolist():
            groups.setdefault(int(self.piece[node]), []).append(node)
        return list(groups.values())

    def solve(self, F_N: Array, load_N: Array, position_m: Array) -> Statics:
        """Return the equilibrium for node loads (n,) and given positions of fixed points."""
        c = self.coefficients
        x = position_m.copy()
        pull = c.phi * F_N
        if len(self.solved):
            tension = c.K_static * (self.E @ x) + pull
            x[self.solved] = self._factor.solve((load_N - self.E_T @ tension)[self.solved])
        x[~self.held] = 0.0
        tension_N = c.K_static * (self.E @ x) + pull
        x[~self.held] = np.nan
        return Statics(x, tension_N)

    def gain(self, h: Array) -> Array:
        """Return the sum h^T T of the tensions (K,) per newton of every cell's F, in N/N, (K,).

        With h = 1 for summed cells and E restricted to the solved nodes, the equilibrium
        E^T (K E x + phi F) = 0 gives the sum h^T (K E x + phi F) = g^T F,

            g = phi (h - E z),    E^T K E z = E^T K h,

        so one solve gives the gains of all cells. With fixed ends, h - E z is the stretch of a
        cell per unit motion of that end. Cells at a floating mass have g = 0.

        Source: the static law of section 2 of the fingerprint method; reciprocity (Betti).
        """
        c = self.coefficients
        z = np.zeros(self.nodes.n)
        if len(self.solved):
            z[self.solved] = self._factor.solve((self.E_T @ (c.K_static * h))[self.solved])
        held = self.held[self.nodes.left] & self.held[self.nodes.right]
        return np.where(held, c.phi * (h - self.E @ z), 0.0)
