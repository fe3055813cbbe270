"""Offsets between the clocks of devices, from edges that all of them have seen.

Every device states when its reading was taken: the time of the tick less the reading's age. By it
an edge lies between the last reading before it, or the command if that is later, and the first
reading after it: in an interval of width w, with the standard uncertainty w / sqrt(12).

    d = mean(m_device - m_reference),  u^2 = mean(w_device^2 + w_reference^2) / 12 + s^2 / n

where m are the middles of the intervals and s is the standard deviation of the n differences.

Source: JCGM 100:2008 (GUM), 4.2.3 (mean of n), 4.3.7 (rectangular distribution), eq. (10).
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures

LOST_MAX = 2  # edges that a device may not have seen, at the end


def edges_of(taken_s: NDArray[np.float64], on: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n, 2) times of the reading before each change of `on`, and of the one after it."""
    at = np.flatnonzero(on[1:] != on[:-1])
    return np.column_stack((taken_s[at], taken_s[at + 1]))


def offsets(
    commanded_s: NDArray[np.float64],
    reference: NDArray[np.float64],
    others: Mapping[str, NDArray[np.float64]],
) -> dict[str, Figures]:
    """Time by which each device dates an edge later than the reference does.

    Parameters
    ----------
    commanded_s : (n,) array, time of the command of each edge
    reference : (n, 2) array from `edges_of`
    others : the same of other devices, by name

    Returns
    -------
    By name: `offset_s`, its standard `uncertainty_s`, and the number of `edges`. Devices that have
    not seen all edges are left out.
    """
    figures = {}
    for name, seen in others.items():
        n = min(len(commanded_s), len(reference), len(seen))
        if n < 2 or max(len(commanded_s), len(reference), len(seen)) - n > LOST_MAX:
            continue
        middles_s, widths_s2 = [], 0.0
        for before_s, after_s in (seen[:n].T, reference[:n].T):
            begin_s = np.minimum(np.maximum(before_s, commanded_s[:n]), after_s)
            middles_s.append(0.5 * (begin_s + after_s))
            widths_s2 += float(np.mean((after_s - begin_s) ** 2))
        apart_s = middles_s[0] - middles_s[1]
        scatter_s2 = float(np.var(apart_s, ddof=1)) / n
        figures[name] = {
            "offset_s": float(np.mean(apart_s)),
            "uncertainty_s": float(np.sqrt(widths_s2 / 12.0 + scatter_s2)),
            "edges": n,
        }
    return figures
