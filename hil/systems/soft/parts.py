"""All numbers and state of a soft tree in two arrays, which keeps compiled calls cheap.

`carve` returns named views of them in compiled code, `views` the same views in Python.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hil.compiled import njit
from hil.mechanics.arrays import Array, Indices
from hil.systems.soft import outside, planar, spatial
from hil.systems.soft.tree import SoftTree, still_base

# Rows of `joints`: element and inputs.
K, C, REST, REST_RATE, TORQUE = range(5)
# Rows of `state`.
Q, V, A, X, X_BEFORE, Q_STAR, V_STAR, KAPPA, F, Q_NEW, V_NEW, X_NEW, Y = range(13)
# Rows of `branches`.
KM, TAU, E, AC, BC, R = range(6)
# Entries of `memory`.
H_LAST, H_COEFFICIENTS, SHRINK, PASSES, HALVINGS, T, ERROR, PIECES = range(8)

_TABLES = (
    "geo_planar", "geo_spatial", "joints", "branches", "state", "w", "pose", "wrench", "at",
    "lines", "grounds", "place_x", "place_v",
)  # fmt: skip
_ROWS = ("gravity", "base", "u", "u_last", "memory", "alpha")
_INDICES = ("parent", "branch_joint", "body", "starts", "drives")
_AFTER_TABLES = 3 * len(_TABLES)
_HEAD = _AFTER_TABLES + 2 * (len(_ROWS) + len(_INDICES)) + 2


class Parts(NamedTuple):
    """Named views; N bodies, B branches, P places."""

    geo_planar: Array  # (7, N), empty for spatial trees
    geo_spatial: Array  # (N, 26), empty for planar trees
    joints: Array  # (5, N)
    branches: Array  # (6, B)
    state: Array  # (13, N)
    w: Array  # scratch of the recursion
    pose: Array  # (N, 18) for planar trees; spatial trees use the first columns of `w`
    wrench: Array  # (N, 6)
    at: Array  # (P, 3)
    lines: Array  # (tendons, 7)
    grounds: Array  # (grounds, 11)
    place_x: Array  # (P, 3)
    place_v: Array  # (P, 3)
    gravity: Array
    base: Array
    u: Array
    u_last: Array
    memory: Array
    alpha: Array
    parent: Indices
    branch_joint: Indices
    body: Indices
    starts: Indices
    drives: Indices
    is_planar: bool
    n_loads: int


def pack(tree: SoftTree, alpha: tuple[float, ...]) -> tuple[Indices, Array]:
    """Return the two arrays of a tree: offsets with all indices, and all numbers."""
    n, flat = tree.n, tree.is_planar
    body, at, starts = outside.places(tree)
    rest = tree.rest_input()
    tables = {
        "geo_planar": planar.geometry(tree) if flat else np.zeros((7, 0)),
        "geo_spatial": np.zeros((0, spatial.GEO)) if flat else spatial.geometry(tree),
        "joints": _joints(tree),
        "branches": _branches(tree),
        "state": np.zeros((13, n)),
        "w": np.zeros((planar.ROWS, n) if flat else (n, spatial.ROWS)),
        "pose": np.zeros((n, 18) if flat else (0, 18)),
        "wrench": np.zeros((n, 6)),
        "at": at,
        "lines": outside.lines(tree),
        "grounds": outside.grounds(tree),
        "place_x": np.zeros((len(body), 3)),
        "place_v": np.zeros((len(body), 3)),
    }
    rows: Mapping[str, ArrayLike] = {
        "gravity": tree.gravity_m_per_s2, "base": still_base(), "u": rest, "u_last": rest,
        "memory": np.zeros(8), "alpha": alpha,
    }  # fmt: skip
    indices: Mapping[str, Any] = {
        "parent": [b.parent for b in tree.bodies], "branch_joint": tree.branch_joint,
        "body": body, "starts": starts, "drives": tree.drives,
    }  # fmt: skip
    head: list[int] = []
    floats: list[Array] = []
    used = 0
    for name in _TABLES:
        head += [used, *tables[name].shape]
        floats.append(tables[name].ravel())
        used += tables[name].size
    for name in _ROWS:
        row = np.asarray(rows[name], dtype=float)
        head += [used, used + len(row)]
        floats.append(row)
        used += len(row)
    ints: list[int] = []
    for name in _INDICES:
        first = _HEAD + len(ints)
        ints += [int(i) for i in indices[name]]
        head += [first, _HEAD + len(ints)]
    head += [int(flat), len(tree.loads)]
    return np.array(head + ints, dtype=np.int64), np.concatenate(floats)


def _joints(tree: SoftTree) -> Array:
    joints = np.zeros((5, tree.n))
    for i, body in enumerate(tree.bodies):
        if body.element is not None:
            joints[K, i], joints[C, i] = body.element.k, body.element.c
        joints[REST, i] = body.rest
    return joints


def _branches(tree: SoftTree) -> Array:
    pairs = [pair for b in tree.bodies if b.element is not None for pair in b.element.branches]
    branches = np.zeros((6, len(pairs)))
    if pairs:
        branches[KM], branches[TAU] = np.transpose(pairs)
    return branches


@njit(inline="always", cache=True)
def _table(ints, floats, k):  # type: ignore[no-untyped-def]
    first, rows, columns = ints[3 * k], ints[3 * k + 1], ints[3 * k + 2]
    return floats[first : first + rows * columns].reshape(rows, columns)


@njit(inline="always", cache=True)
def _row(ints, floats, k):  # type: ignore[no-untyped-def]
    at = _AFTER_TABLES + 2 * k
    return floats[ints[at] : ints[at + 1]]


@njit(cache=True)
def carve(ints, floats):  # type: ignore[no-untyped-def]
    """Return views of the two arrays."""
    return Parts(
        geo_planar=_table(ints, floats, 0),
        geo_spatial=_table(ints, floats, 1),
        joints=_table(ints, floats, 2),
        branches=_table(ints, floats, 3),
        state=_table(ints, floats, 4),
        w=_table(ints, floats, 5),
        pose=_table(ints, floats, 6),
        wrench=_table(ints, floats, 7),
        at=_table(ints, floats, 8),
        lines=_table(ints, floats, 9),
        grounds=_table(ints, floats, 10),
        place_x=_table(ints, floats, 11),
        place_v=_table(ints, floats, 12),
        gravity=_row(ints, floats, 0),
        base=_row(ints, floats, 1),
        u=_row(ints, floats, 2),
        u_last=_row(ints, floats, 3),
        memory=_row(ints, floats, 4),
        alpha=_row(ints, floats, 5),
        parent=_row(ints, ints, 6),
        branch_joint=_row(ints, ints, 7),
        body=_row(ints, ints, 8),
        starts=_row(ints, ints, 9),
        drives=_row(ints, ints, 10),
        is_planar=ints[_HEAD - 2] != 0,
        n_loads=ints[_HEAD - 1],
    )


def views(ints: Indices, floats: Array) -> Parts:
    """Return the same views in Python."""
    in_python: Any = carve
    parts: Parts = in_python.py_func(ints, floats)
    return parts
