"""A figure of many runs over time, with the limits between which it stays by chance.

Shewhart's chart of single values: centre and standard deviation sigma are those of the first runs,
sigma = mean |x_i - x_(i-1)| / d2; a run beyond centre +- 3 sigma broke the limits. Small shifts
show sooner in the tabular cumulative sum: C+_i = max(0, C+_(i-1) + x_i - (centre + k sigma)), C-_i
the same downwards; it signals beyond h sigma, with k = 1/2 and h = 5.

Source: Montgomery, Introduction to Statistical Quality Control, 6th edition, eqs. (6.33), (9.2) and
(9.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hil.config.values import Figures
from hil.errors import ConfigError, one_line, writing
from hil.pages.style import FAULT, MEASURED, mark_simulated, styled_figure
from hil.platform.whole_files import whole
from hil.runs.catalogue.query import Answer, Catalogue, Filter

D2 = 1.128  # mean range of two values of a normal distribution, in sigma
SHEWHART, SLACK, DECISION = 3.0, 0.5, 5.0
BASE_MAX, BASE_MIN = 20, 5
PANELS_MAX = 8


@dataclass(frozen=True)
class Limits:
    """Centre and standard deviation of a figure, from its first runs."""

    centre: float
    sigma: float
    n_base: int


@dataclass(frozen=True)
class Trend:
    """A figure of the runs of one group, oldest first, with its limits.

    Attributes
    ----------
    cusum : (n, 2) upward and downward sums, in sigma
    first_beyond, first_shift : index of the first run beyond the limits, and of the first at which
        a cumulative sum signals; -1 for none
    """

    name: str
    times: list[datetime]
    paths: list[str]
    values: NDArray[np.float64]
    limits: Limits
    cusum: NDArray[np.float64]
    first_beyond: int
    first_shift: int
    simulated: bool

    def lines(self) -> Iterator[str]:
        """The limits, and which run broke them first."""
        c, s = self.limits.centre, self.limits.sigma
        yield one_line(
            f"{self.name}: {len(self.values)} runs, {c:.4g} +- {SHEWHART * s:.2g} "
            f"by the first {self.limits.n_base}"
        )
        for index, what in ((self.first_beyond, "beyond the limits"),
                            (self.first_shift, "shifted, by the cumulative sum")):  # fmt: skip
            if index >= 0:
                yield one_line(f"  {what} first: {self.paths[index]} ({self.values[index]:.4g})")
        if self.first_beyond < 0 and self.first_shift < 0:
            yield "  within the limits"


def limits_of(values: NDArray[np.float64], n_base: int) -> Limits:
    """Centre and standard deviation by the moving range of the first values."""
    base = values[:n_base]
    sigma = float(np.mean(np.abs(np.diff(base)))) / D2
    centre = float(np.mean(base)) if sigma else float(base[0])  # the mean of equals is rounded
    return Limits(centre, sigma, len(base))


def cumulative_sums(values: NDArray[np.float64], limits: Limits) -> NDArray[np.float64]:
    """The upward and the downward sum at every value, in sigma."""
    z = (values - limits.centre) / (limits.sigma or np.finfo(float).tiny)
    sums = np.zeros((len(values), 2))
    up = down = 0.0
    for i, value in enumerate(z):
        up, down = max(0.0, up + value - SLACK), max(0.0, down - value - SLACK)
        sums[i] = up, down
    return sums


def trend_of(
    name: str, rows: Sequence[tuple[datetime, str, float]], *, simulated: bool = False
) -> Trend:
    """The trend of runs, oldest first; the limits come from the first half, at most BASE_MAX."""
    values = np.array([value for *_, value in rows])
    n_base = min(BASE_MAX, max(BASE_MIN, len(values) // 2))
    limits = limits_of(values, n_base)
    sums = cumulative_sums(values, limits)
    beyond = np.abs(values - limits.centre) > SHEWHART * limits.sigma
    return Trend(
        name, [time for time, *_ in rows], [path for _, path, _ in rows], values, limits, sums,
        _first(beyond), _first((sums > DECISION).any(axis=1)), simulated,
    )  # fmt: skip


def _first(mask: np.bool_ | NDArray[np.bool_]) -> int:
    return int(np.argmax(mask)) if mask.any() else -1


def trends(catalogue: Catalogue, wanted: Filter, figure: str, by: str = "") -> list[Trend]:
    """The trend of a figure for each value of a column, or of all runs.

    Raises
    ------
    ConfigError
        An unknown column, one that is no number, or too few runs.
    """
    for column, option in ((figure, "--trend"), *(((by, "--by"),) if by else ())):
        catalogue.refuse_unknown(column, option)
    columns = ("time_utc", "path", figure, "simulated", *((by,) if by else ()))
    answer: Answer = catalogue.find(Filter(**{**vars(wanted), "columns": columns, "limit": 0}))
    rows = [row for row in reversed(answer.rows) if row[2] is not None]
    if any(isinstance(row[2], bool) or not isinstance(row[2], int | float) for row in rows):
        raise ConfigError(f"--trend {figure}: is no number: choose a figure")

    def group_of(row: tuple[Any, ...]) -> str:
        return str(row[4]) if by else ""

    groups = groupby(sorted(rows, key=group_of), group_of)
    result = [
        trend_of(f"{by} {name}" if by else figure, of, simulated=any(row[3] for row in rows))
        for name, group in groups
        if len(of := [(row[0], row[1], float(row[2])) for row in group]) >= BASE_MIN
    ]
    if not result:
        raise ConfigError(f"--trend {figure}: needs {BASE_MIN} runs with this figure, or more")
    return result


def as_dict(trends: Sequence[Trend], figure: str) -> Figures:
    """The trends as values for JSON."""
    return {
        "figure": figure,
        "trends": [
            {
                "group": t.name, "centre": t.limits.centre, "sigma": t.limits.sigma,
                "n_base": t.limits.n_base, "paths": t.paths, "values": t.values.tolist(),
                "first_beyond": t.paths[t.first_beyond] if t.first_beyond >= 0 else None,
                "first_shift": t.paths[t.first_shift] if t.first_shift >= 0 else None,
            }
            for t in trends
        ],
    }  # fmt: skip


def save(trends: Sequence[Trend], figure: str, path: Path) -> None:
    """Write the figure; its ending is the format. ConfigError if it cannot be written."""
    drawn = draw(trends, figure)
    known = drawn.canvas.get_supported_filetypes()
    if (ending := path.suffix[1:].lower() or "png") not in known:
        raise ConfigError(f"--out {path}: no figure can end so: give .png, .svg or .pdf")
    with writing(path), whole(path) as part:
        drawn.savefig(part, format=ending, dpi=150)


def draw(trends: Sequence[Trend], name: str) -> Figure:
    """Two panels a group: the figure with its limits, and its cumulative sums."""
    shown = trends[:PANELS_MAX]
    with styled_figure(10.0, 0.6 + 2.8 * len(shown)) as figure:
        axes = figure.subplots(2 * len(shown), 1, squeeze=False, height_ratios=[2, 1] * len(shown))[
            :, 0
        ]
        for top, low, trend in zip(axes[::2], axes[1::2], shown, strict=True):
            c, s = trend.limits.centre, trend.limits.sigma
            n = np.arange(1, len(trend.values) + 1)
            top.plot(n, trend.values, "o-", color=MEASURED, ms=3.5, lw=0.6)
            top.axhline(c, color="0.4", lw=0.8)
            for limit in (c - SHEWHART * s, c + SHEWHART * s):
                top.axhline(limit, color=FAULT, lw=0.8, ls="--")
            top.axvspan(0.5, trend.limits.n_base + 0.5, color="0.93")
            top.set_ylabel(name, parse_math=False)
            low.step(n, trend.cusum[:, 0], where="mid", color=MEASURED, lw=0.9)
            low.step(n, -trend.cusum[:, 1], where="mid", color="0.4", lw=0.9)
            for limit in (-DECISION, DECISION):
                low.axhline(limit, color=FAULT, lw=0.8, ls="--")
            low.set_ylabel("sum [sigma]")
            for axis, first in ((top, trend.first_beyond), (low, trend.first_shift)):
                if first >= 0:
                    axis.axvline(first + 1, color=FAULT, lw=1.0)
            out = [first for first in (trend.first_beyond, trend.first_shift) if first >= 0]
            since = f"; first out {trend.times[min(out)]:%Y-%m-%d %H:%M}" if out else ""
            low.sharex(top)
            top.set_title(f"{trend.name}{since}", parse_math=False, fontsize=9)
        axes[-1].set_xlabel("run, oldest first; grey: the runs that give the limits")
        if any(trend.simulated for trend in shown):
            mark_simulated(figure, axes[0])
    return figure
