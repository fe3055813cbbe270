"""Style of all figures: colours for colour-blind readers, and the SIMULATED mark."""

import contextlib
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# The palette of Okabe & Ito, which is also legible in grey print.
MEASURED, MODEL, REFERENCE, RESIDUAL, CELL, FAULT = (
    "#0072B2",
    "#D55E00",
    "#000000",
    "#009E73",
    "#E69F00",
    "#CC3311",
)


@contextlib.contextmanager
def styled_figure(width_in: float, height_in: float) -> Iterator[Figure]:
    """Set the style while drawing: axes on two sides, left titles, small type. Sizes in inches."""
    settings: dict[Any, Any] = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
    }
    with matplotlib.rc_context(settings):
        yield Figure(figsize=(width_in, height_in), layout="constrained")


def mark_simulated(figure: Figure, axis: Axes, size: float = 44.0) -> None:
    """Write SIMULATED in the figure's corner and across these axes."""
    figure.text(
        0.99, 0.995, "SIMULATED", ha="right", va="top", fontsize=11, fontweight="bold", color=FAULT
    )
    across = axis.text(
        0.5, 0.5, "SIMULATED", transform=axis.transAxes, ha="center", va="center", fontsize=size,
        color="0.5", alpha=0.13, fontweight="bold",
    )  # fmt: skip
    across.set_in_layout(False)  # the text must not change the layout of narrow axes


def mark_imported(figure: Figure) -> None:
    """Write in the figure's corner that another program recorded the readings."""
    text = "IMPORTED, not measured by hil"
    figure.text(0.99, 0.995, text, ha="right", va="top", fontsize=9, color="0.35")


POINTS_MAX = 6000  # points of a line in a figure


def decimated(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decimate a curve to the minimum and maximum of every interval, which keeps all peaks."""
    size = -(-2 * len(x) // POINTS_MAX)
    if size <= 2:
        return x, y
    n_bins = -(-len(x) // size)
    padded = np.full(n_bins * size, np.nan)
    padded[: len(y)] = y
    blocks = padded.reshape(n_bins, size)
    missing = np.isnan(blocks)
    low = np.argmin(np.where(missing, np.inf, blocks), axis=1)
    high = np.argmax(np.where(missing, -np.inf, blocks), axis=1)
    first = np.arange(n_bins) * size
    picked = np.sort(np.stack((first + low, first + high), axis=1), axis=1).ravel()
    picked = np.minimum(picked, len(x) - 1)
    return x[picked], y[picked]
