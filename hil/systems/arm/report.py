"""Sections of `hil report` for the arm: path of the fingertip, the arm, its errors."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from hil.mechanics.arrays import Array
from hil.pages.section import Section
from hil.pages.style import MEASURED, REFERENCE, mark_simulated, styled_figure
from hil.systems.arm.links import AXES, LINKS

POSES = 9
MOVED_RAD = 1e-9


def _place(run: xr.Dataset, place: str, role: str = "estimate") -> Array:
    return np.stack([run[f"{place}_{axis}_{role}_m"].values for axis in "xyz"], axis=1)


def _moving(run: xr.Dataset) -> slice:
    """Return the ticks from the first to the last change of a set point."""
    reference = np.stack([run[f"{link}_{axis}_reference_rad"].values for link in LINKS
                       for axis in AXES], axis=1)  # fmt: skip
    changes = np.flatnonzero(np.abs(np.diff(reference, axis=0)).max(axis=1) > 0.0)
    return slice(changes[0], changes[-1] + 2) if len(changes) else slice(0, len(reference))


def sections(run: xr.Dataset) -> list[Section]:
    """Return the sections of the page."""
    during = _moving(run)
    t_s = run.t_s.values[during]
    miss = _place(run, "tip") - _place(run, "tip", "reference")
    miss_mm = 1e3 * np.linalg.norm(miss[during], axis=1)
    rows = []
    for link in LINKS:
        for axis in AXES:
            reference = run[f"{link}_{axis}_reference_rad"].values[during]
            estimate = run[f"{link}_{axis}_estimate_rad"].values[during]
            error = np.rad2deg(estimate - reference)
            rows.append([
                f"{link} {axis}".replace("_", " "),
                "moves" if np.ptp(reference) > MOVED_RAD else "holds still",
                f"{np.sqrt(np.nanmean(error**2)):.3f}", f"{np.nanmax(np.abs(error)):.3f}",
            ])  # fmt: skip
    return [
        Section(
            "The movement",
            [f"From {t_s[0]:g} to {t_s[-1]:g} s the fingertip is "
             f"{np.sqrt(np.nanmean(miss_mm**2)):.2f} mm from its set point (RMS), "
             f"{np.nanmax(miss_mm):.2f} mm at most. Places and angles are the observer's: model "
             "and instruments. Grey: the arm along the way."],
            _draw(run, during),
            ["angle", "", "RMS error, deg", "largest, deg"],
            rows,
        )
    ]  # fmt: skip


def _draw(run: xr.Dataset, during: slice) -> Figure:
    points = np.stack([_place(run, p)[during] for p in ("shoulder", "elbow", "wrist", "tip")])
    reference = _place(run, "tip", "reference")[during]
    views = (("from the side", 0, 2), ("from above", 0, 1))
    names = ("x, front (m)", "y, left (m)", "z, up (m)")
    with styled_figure(8.4, 3.8) as figure:
        axes = figure.subplots(1, 2)
        for axis, (title, i, j) in zip(axes, views, strict=True):
            for at in np.linspace(0, points.shape[1] - 1, POSES).astype(int):
                axis.plot(points[:, at, i], points[:, at, j], "-o", color="0.75", ms=3, lw=1.2)
            axis.plot(reference[:, i], reference[:, j], "--", color=REFERENCE, label="set point")
            axis.plot(points[3, :, i], points[3, :, j], color=MEASURED, label="fingertip")
            axis.set_aspect("equal", adjustable="datalim")
            axis.set(title=title, xlabel=names[i], ylabel=names[j])
        axes[0].legend(frameon=False, loc="lower left")
        if run.attrs.get("simulated"):
            mark_simulated(figure, axes[0])
    return figure
