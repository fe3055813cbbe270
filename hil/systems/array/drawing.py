"""An array as text: its cells between its ends, with what is behind them."""

from collections.abc import Mapping, Sequence
from typing import Any

from hil.systems.array.model.fingerprint import parse


def drawing(
    arrays: Mapping[str, tuple[str, str, str]], points: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Lines that show every cell as =[array.n]= between two masses or points.

    Parameters
    ----------
    arrays : the two ends and the fingerprint of each array, by name
    points : `support`, `mass_kg` and `spring_N_per_m` of each end, as in [model.points]
    """
    lines = [line for name, array in arrays.items() for line in _array(name, *array)]
    return [*lines, *(_point(name, point) for name, point in points.items())]


def _array(name: str, start: str, end: str, fingerprint: str) -> list[str]:
    topology = parse(fingerprint)
    n_nodes = topology.n_masses
    labels = [start, *(f"m{i + 1}" for i in range(1, n_nodes - 1)), end]
    between: dict[tuple[int, int], list[int]] = {}
    pairs = zip(topology.left, topology.right, strict=True)
    for cell, (left, right) in enumerate(pairs, 1):
        between.setdefault((int(left), int(right)), []).append(cell)
    chain = [(i, i + 1) for i in range(n_nodes - 1)]
    if sorted(between) == chain and all(len(cells) == 1 for cells in between.values()):
        links = [f"==[{name}.{between[pair][0]}]==" for pair in chain]
        return ["".join(part for pair in zip(labels, [*links, ""], strict=True) for part in pair)]
    lines: list[str] = []
    for (left, right), cells in sorted(between.items()):
        lines += _side_by_side(labels[left], labels[right], [f"{name}.{cell}" for cell in cells])
    return lines


def _side_by_side(left: str, right: str, cells: Sequence[str]) -> list[str]:
    wide = max(map(len, cells))
    middle = (len(cells) - 1) // 2
    lines = []
    for i, cell in enumerate(cells):
        edge = "-" if len(cells) == 1 else "+"
        begin, end = (left, right) if i == middle else (" " * len(left), "")
        lines.append(f"{begin} {edge}==[{cell:<{wide}}]=={edge} {end}".rstrip())
    return lines


def _point(name: str, point: Mapping[str, Any]) -> str:
    parts = [point["support"]]
    if point.get("mass_kg"):
        parts.append(f"{1e3 * point['mass_kg']:g} g")
    if point.get("spring_N_per_m"):
        parts.append(f"a spring /\\/\\/ of {point['spring_N_per_m']:g} N/m to the frame")
    return f"{name}: {', '.join(parts)}"
