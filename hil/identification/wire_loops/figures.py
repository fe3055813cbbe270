"""Figures of `hil study wires`: loops measured and as the law has them, with its band."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from hil.identification.wire_loops.fit import Fitted, band
from hil.identification.wire_loops.loops import Loop
from hil.pages.study import saved
from hil.pages.style import MEASURED, MODEL, styled_figure

COLUMNS = 3


CAPTION = (
    "Strain over temperature at constant stress, heating and cooling, measured and by the law; "
    "the band is 2 standard deviations."
)


def loops(out: Path, name: str, panels: Sequence[tuple[Fitted, Loop, str]]) -> dict[str, str]:
    """Write the figure of `draw` into a folder; returns its entry in the results."""
    return saved(out, name, draw(panels), CAPTION)


def draw(panels: Sequence[tuple[Fitted, Loop, str]]) -> Figure:
    """One panel a loop, with the law that it is held against and a word on it."""
    n_rows = -(-len(panels) // COLUMNS)
    with styled_figure(9.0, 2.6 * n_rows + 0.4) as figure:
        axes = figure.subplots(n_rows, COLUMNS, squeeze=False)
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, (fitted, loop, how) in zip(axes.flat, panels, strict=False):
            strain, half = band(fitted, loop)
            for label, side in (("measured", loop.heating), (None, ~loop.heating)):
                order = np.flatnonzero(side)
                order = order[np.argsort(loop.T_C[order], kind="stable")]
                T_C, model = loop.T_C[order], 100.0 * strain[order]
                width = 100.0 * half[order]
                axis.fill_between(T_C, model - width, model + width, color=MODEL, alpha=0.2, lw=0)
                axis.plot(T_C, 100.0 * loop.strain[order], ".", ms=2, color=MEASURED, label=label)
                axis.plot(T_C, model, color=MODEL, lw=1.0, label=label and "law, band")
            axis.set_title(f"{loop.stress_Pa / 1e6:.0f} MPa, {how}")
        for axis in axes[-1]:
            axis.set_xlabel("temperature [deg C]")
        for axis in axes[:, 0]:
            axis.set_ylabel("strain above hot end [%]")
        axes[0, 0].legend(frameon=False, fontsize=7)
        return figure
