"""A topology as inline SVG: layers from left to right, masses as dots, cells as curved lines."""

import itertools
from html import escape

import numpy as np
from numpy.typing import NDArray

from hil.systems.array.model.fingerprint import Topology

WIDTH, HEIGHT = 260.0, 118.0
_MARGIN = 15.0
_SPREAD_MAX = 44.0
"""Largest distance between neighbouring masses of a layer."""
_BOW = 9.0
"""Distance between the lines of neighbouring cells that join the same two masses."""
_SWEEPS = 4


def svg(topology: Topology) -> str:
    """Return the picture as one `<svg>` element; the page's style sheet sets its colours."""
    x, y = positions(topology)
    parts = [
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(topology.text)}">',
        f'<path class="layer" d="{_guides(topology, x)}"/>',
        f'<path class="cell" d="{_cells(topology, x, y)}"/>',
    ]
    last = topology.n_masses - 1
    for mass in range(topology.n_masses):
        if mass in (0, last):
            parts.append(
                f'<rect class="end" x="{x[mass] - 4:.4g}" y="{y[mass] - 15:.4g}" '
                'width="8" height="30" rx="2"/>'
            )
        else:
            parts.append(f'<circle class="mass" cx="{x[mass]:.4g}" cy="{y[mass]:.4g}" r="5"/>')
    return "".join([*parts, "</svg>"])


def _guides(topology: Topology, x: NDArray[np.float64]) -> str:
    """Return a faint vertical line per layer."""
    first = list(itertools.accumulate(topology.layers, initial=0))[1:-2]
    return "".join(f"M{x[mass]:.4g} 4V{HEIGHT - 4:.4g}" for mass in first)


def _cells(topology: Topology, x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Return a curve per cell; cells between the same two masses bow apart."""
    ends = list(zip(topology.left.tolist(), topology.right.tolist(), strict=True))
    curves = []
    for pair in dict.fromkeys(ends):
        n, (a, b) = ends.count(pair), pair
        bow = min(_BOW, (HEIGHT - 16.0) / n)
        length = np.hypot(x[b] - x[a], y[b] - y[a])
        across = np.array([y[a] - y[b], x[b] - x[a]]) / length
        for k in range(n):
            # A quadratic Bezier curve reaches half of its control point's offset.
            aside = 2.0 * bow * (k - (n - 1) / 2.0) * across
            mid = np.array([x[a] + x[b], y[a] + y[b]]) / 2.0 + aside
            curves.append(f"M{x[a]:.4g} {y[a]:.4g}Q{mid[0]:.4g} {mid[1]:.4g} {x[b]:.4g} {y[b]:.4g}")
    return "".join(curves)


def positions(topology: Topology) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return x and y of the masses, (M,) each, in a picture of WIDTH by HEIGHT.

    Layers are evenly spaced from left to right. Masses are centred, in an order that gives few
    crossings.
    """
    n_layers = len(topology.layers)
    starts = np.concatenate(([0], np.cumsum(topology.layers)))
    layer_of = np.repeat(np.arange(n_layers), topology.layers)
    x = _MARGIN + (WIDTH - 2.0 * _MARGIN) * layer_of / (n_layers - 1)
    room = HEIGHT - 2.0 * _MARGIN
    y = np.zeros(topology.n_masses)

    def put(layer: int, order: NDArray[np.int64]) -> None:
        n = len(order)
        step = min(_SPREAD_MAX, room / max(n - 1, 1))
        y[starts[layer] + order] = HEIGHT / 2.0 + step * (np.arange(n) - (n - 1) / 2.0)

    for layer in range(n_layers):
        put(layer, np.arange(topology.layers[layer]))
    # Barycentre heuristic (Sugiyama 1981): move each mass to the mean of its neighbours, using
    # the left and the right neighbours alternately.
    for sweep in range(_SWEEPS):
        here, right = (
            (topology.right, topology.left) if sweep % 2 == 0 else (topology.left, topology.right)
        )
        layers = range(n_layers) if sweep % 2 == 0 else reversed(range(n_layers))
        for layer in layers:
            masses = np.arange(starts[layer], starts[layer + 1])
            means = [y[right[here == m]].mean() if np.any(here == m) else y[m] for m in masses]
            put(layer, np.argsort(np.round(means, 6), kind="stable"))
    return x, y
