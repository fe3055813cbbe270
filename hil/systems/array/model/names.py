"""Names of states, inputs and outputs. Other programs rely on the exact spelling."""

from collections.abc import Iterator, Mapping

from hil.systems.array.model.network import Array, Coefficients, Point, Support


def points_with(points: Mapping[str, Point], support: Support) -> list[str]:
    """Points of one kind, in file order."""
    return [name for name, point in points.items() if point.support == support]


def _interior(arrays: Mapping[str, Array]) -> Iterator[tuple[str, int]]:
    """Yield the masses between the ends, numbered from 1 in their array."""
    for name, array in arrays.items():
        for mass in range(2, array.topology.n_masses):
            yield name, mass


def cells(arrays: Mapping[str, Array]) -> list[str]:
    """`array.n`, n from 1."""
    return [f"{a}.{n}" for a, array in arrays.items() for n in range(1, array.topology.n_cells + 1)]


def wire_signal(cell: str) -> str:
    """The temperature of a cell's wire, which an instrument may measure."""
    return f"{cell}.wire_C"


def austenite_signal(cell: str) -> str:
    """The austenite fraction of a cell's wire."""
    return f"{cell}.austenite"


def nodes(points: Mapping[str, Point], arrays: Mapping[str, Array]) -> list[str]:
    """Points, then interior masses `array.m`."""
    return [*points, *(f"{name}.{mass}" for name, mass in _interior(arrays))]


def states(points: Mapping[str, Point], arrays: Mapping[str, Array], c: Coefficients) -> list[str]:
    """Return x, v, d of every array, then x and v of every free point (eq. 11)."""
    names: list[str] = []
    first_cell = 0
    for (name, array), internal in zip(arrays.items(), c.own_states, strict=True):
        masses = range(2, array.topology.n_masses)
        names += [f"{name}.x{m}_m" for m in masses]
        names += [f"{name}.v{m}_m_per_s" for m in masses]
        numbers = (c.cell_of[internal] - first_cell + 1).tolist()
        orders = (c.q_of[internal] + 1).tolist()
        names += [f"{name}.d{q}.{n}_m" for q, n in zip(orders, numbers, strict=True)]
        first_cell += array.topology.n_cells
    for point in points_with(points, "free"):
        names += [f"{point}.x_m", f"{point}.v_m_per_s"]
    return names


def inputs(points: Mapping[str, Point], arrays: Mapping[str, Array]) -> list[str]:
    """Return F of every cell, then the forces on free points, then the motion of driven points."""
    names = [
        f"{a}.F{n}_N" for a, array in arrays.items() for n in range(1, array.topology.n_cells + 1)
    ]
    names += [f"{point}.F_N" for point in points_with(points, "free")]
    for point in points_with(points, "driven"):
        names += [f"{point}.x_m", f"{point}.v_m_per_s", f"{point}.a_m_per_s2"]
    return names


def outputs(points: Mapping[str, Point], arrays: Mapping[str, Array]) -> list[str]:
    """Return end forces and interior positions of every array, then what points do.

    These are the positions of free and driven points, and the net force on points `between`.
    """
    names: list[str] = []
    for name, array in arrays.items():
        names += [f"{name}.left_N", f"{name}.right_N"]
        names += [f"{name}.x{m}_m" for m in range(2, array.topology.n_masses)]
    moving = [*points_with(points, "free"), *points_with(points, "driven")]
    names += [f"{point}.x_m" for point in moving]
    return names + [f"{point}.net_N" for point in between(points, arrays)]


def between(points: Mapping[str, Point], arrays: Mapping[str, Array]) -> list[str]:
    """Return the fixed points at which arrays pull from both sides."""
    ends, starts = ({getattr(a, side) for a in arrays.values()} for side in ("end", "start"))
    return [point for point in points_with(points, "fixed") if point in ends & starts]
