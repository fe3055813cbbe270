"""Parses the fingerprint text of a cellular array into its topology.

Each mass is a node ``mask:cells``; ``|`` separates layers::

    -:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1

``mask`` is hexadecimal; its least significant bit is the first cell that leaves the previous layer
(``-`` at the left end, where no cell arrives). ``cells`` is the number of cells that leave the mass
to the right (``-1`` at the right end).

Source: MacNair & Ueda, fingerprint of Fig. 2 and eq. (12).
"""

import itertools
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_NODE = re.compile(r"(?P<mask>-|&[0-9A-Fa-f]*|[^:]*):(?P<cells>[^:]*)")


class FingerprintError(ValueError):
    """The text is not a valid fingerprint; the message names layer and node."""


@dataclass(frozen=True)
class Topology:
    """The two masses that each cell connects, numbered from left to right.

    Attributes
    ----------
    layers : tuple of int, number of masses in each layer; the first and last layer have 1
    left, right : (N,) int arrays
        Index (from 0) of the mass at the left and right end of every cell.
    """

    layers: tuple[int, ...]
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def n_cells(self) -> int:
        return len(self.left)

    @property
    def n_masses(self) -> int:
        return sum(self.layers)

    @property
    def G(self) -> sp.csr_array:
        """Outgoing structure, M x N: G[m, n] = 1 where cell n leaves mass m (eq. 12)."""
        ones = np.ones(self.n_cells)
        shape = (self.n_masses, self.n_cells)
        return sp.csr_array((ones, (self.left, np.arange(self.n_cells))), shape=shape)

    @property
    def H(self) -> sp.csr_array:
        """Incoming structure, N x M: H[n, m] = 1 where cell n arrives at mass m (eq. 12)."""
        ones = np.ones(self.n_cells)
        shape = (self.n_cells, self.n_masses)
        return sp.csr_array((ones, (np.arange(self.n_cells), self.right)), shape=shape)

    @property
    def E(self) -> sp.csr_array:
        """Stretch map, N x M: e = E x, e_n = x_R - x_L; E = H - G^T."""
        return sp.csr_array(self.H - self.G.T)

    @property
    def text(self) -> str:
        """Fingerprint in canonical form: single spaces, capital hexadecimal digits."""
        starts = np.concatenate(([0], np.cumsum(self.layers)))
        n_leaving = np.bincount(self.left, minlength=self.n_masses)
        first_cell = np.concatenate(([0], np.cumsum(n_leaving)))
        masks = [0] * self.n_masses
        layer_of = np.repeat(np.arange(len(self.layers)), self.layers)
        for cell, mass in enumerate(self.right.tolist()):
            masks[mass] |= 1 << (cell - int(first_cell[starts[layer_of[mass] - 1]]))
        nodes = [
            f"{f'&{masks[m]:X}' if m else '-'}:{n_leaving[m] if m < self.n_masses - 1 else -1}"
            for m in range(self.n_masses)
        ]
        return " | ".join(" ".join(nodes[a:b]) for a, b in itertools.pairwise(starts))


@lru_cache(maxsize=64)
def parse(text: str) -> Topology:
    """Parse a fingerprint; the topology of the last texts is kept, and its arrays are read-only.

    Raises
    ------
    FingerprintError
        The text is not a valid fingerprint; the message names layer and node.
    """
    layers = text.split("|")
    if len(layers) < 2:
        raise FingerprintError(
            "a fingerprint has at least two layers split by '|', such as '-:1 | &1:-1'"
        )
    sizes: list[int] = []
    left: list[int] = []
    right: list[int] = []
    n_masses = 0
    n_available = 0  # cells that leave the previous layer
    for j, layer in enumerate(layers, start=1):
        nodes = layer.split()
        last = j == len(layers)
        if not nodes:
            raise FingerprintError(f"layer {j} is empty: a layer needs at least one 'mask:cells'")
        if j == 1 and len(nodes) > 1:
            raise FingerprintError(f"layer 1 has {len(nodes)} nodes: the left end is one mass")
        if last and len(nodes) > 1:
            raise FingerprintError(f"layer {j} has {len(nodes)} nodes: the right end is one mass")
        claimed_by = [0] * n_available
        leaving: list[int] = []
        for i, node in enumerate(nodes, start=1):
            where = f"layer {j}, node {i} ('{_shortened(node)}')"
            mask_text, n_leaving = _split(node, where, last=last)
            for cell in _claimed(mask_text, n_available, where, first=j == 1):
                if claimed_by[cell]:
                    raise FingerprintError(
                        f"{where}: cell {cell + 1} of layer {j - 1} is already claimed "
                        f"by node {claimed_by[cell]}"
                    )
                claimed_by[cell] = i
            leaving += [n_masses + i - 1] * n_leaving
        unclaimed = [cell + 1 for cell, node_number in enumerate(claimed_by) if not node_number]
        if unclaimed:
            raise FingerprintError(
                f"layer {j}: no node claims cell {unclaimed[0]} of the {n_available} that leave "
                f"layer {j - 1}: set bit {unclaimed[0]} in exactly one mask"
            )
        right += [n_masses + node_number - 1 for node_number in claimed_by]
        left += leaving
        n_available = len(leaving)
        n_masses += len(nodes)
        sizes.append(len(nodes))
    ends = np.array(left), np.array(right)
    for cells in ends:
        cells.flags.writeable = False
    return Topology(tuple(sizes), *ends)


def _shortened(node: str) -> str:
    return node if len(node) <= 24 else f"{node[:20]}..."


def _split(node: str, where: str, *, last: bool) -> tuple[str, int]:
    """Return a node's mask text and the number of cells that leave it (0 at the right end)."""
    match = _NODE.fullmatch(node)
    if match is None:
        raise FingerprintError(f"{where}: a node is written 'mask:cells', such as '&3:2'")
    cells = match["cells"]
    if not re.fullmatch(r"-1|[0-9]{1,7}", cells):
        raise FingerprintError(
            f"{where}: '{_shortened(cells)}' is not a cell count: give a whole number "
            "of at least 1, or -1 at the right end"
        )
    if last and cells != "-1":
        raise FingerprintError(
            f"{where}: the last layer is the right end: its cell count must be -1"
        )
    if not last and cells == "-1":
        raise FingerprintError(f"{where}: -1 is allowed only at the right end, in the last layer")
    if int(cells) == 0:
        raise FingerprintError(f"{where}: no cell leaves this mass: the count must be at least 1")
    return match["mask"], 0 if last else int(cells)


def _claimed(mask: str, n_available: int, where: str, *, first: bool) -> list[int]:
    """Return the indices (from 0) of the previous layer's cells whose bits the mask sets."""
    if first:
        if mask != "-":
            raise FingerprintError(
                f"{where}: nothing arrives at the left end: its mask is '-', not '{mask}'"
            )
        return []
    if mask == "-":
        raise FingerprintError(f"{where}: '-' is allowed only at the left end, in layer 1")
    if not re.fullmatch(r"&[0-9A-Fa-f]+", mask):
        raise FingerprintError(
            f"{where}: '{_shortened(mask)}' is not a mask: write '&' and hexadecimal digits"
        )
    bits = int(mask[1:], 16)
    if bits == 0:
        raise FingerprintError(f"{where}: the mask is empty: no cell arrives at this mass")
    if bits.bit_length() > n_available:
        raise FingerprintError(
            f"{where}: the mask claims cell {bits.bit_length()}, but {n_available} leave the "
            "previous layer"
        )
    return [n for n, bit in enumerate(reversed(bin(bits)[2:])) if bit == "1"]
