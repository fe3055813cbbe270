"""Figures of `hil study body`."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from hil.mechanics.arrays import Array
from hil.pages.study import saved
from hil.pages.style import CELL, FAULT, MEASURED, MODEL, REFERENCE, RESIDUAL, styled_figure
from hil.systems.bodies.skeleton import Skeleton

FORM_NAMES = {"newton_euler": "Newton-Euler", "lagrange": "Lagrange, Kane",
              "hamilton": "Hamilton", "quaternion": "quaternion"}  # fmt: skip
COLOURS = (MODEL, MEASURED, RESIDUAL, CELL, FAULT, REFERENCE)
ROUNDING = 1e-17


def singularity(out: Path, one: dict[str, Any]) -> dict[str, str]:
    """Draw the run through a pitch of 90 degrees, and the error of every form."""
    with styled_figure(8.0, 3.6) as figure:
        pitch, error = figure.subplots(1, 2)
        t_s = one["through_s"]
        pitch.plot(t_s, one["pitch_deg"], color=MODEL, lw=1.4)
        pitch.axhline(90.0, color="0.7", lw=0.8, ls="--")
        pitch.set(xlabel="time [s]", ylabel="pitch [deg]")
        pitch.set_title("One body, free: through the singularity")
        for (form, course), colour in zip(one["through_deg"].items(), COLOURS, strict=False):
            if form != "quaternion":
                error.semilogy(t_s, np.maximum(course, 1e-16), color=colour, lw=1.2,
                               label=FORM_NAMES[form])  # fmt: skip
        error.axhline(0.01, color="0.5", lw=0.8, ls="--")
        error.annotate("0.01 deg", (0.02, 0.012), fontsize=8, color="0.4")
        for (limit, row), style in zip(one["clipped_deg"].items(), (":", "--", "-"), strict=True):
            error.axhline(row["error_deg"], color=FAULT, lw=1.0, ls=style,
                          label=f"1/cos limited to {limit}")  # fmt: skip
        error.set_ylim(1e-16, 1e3)
        error.set(xlabel="time [s]", ylabel="from the quaternion form [deg]")
        error.legend(frameon=False, fontsize=8, loc="center right")
    return saved(out, "singularity.png", figure,
                 "A body without torque rotates through a pitch of 90 deg, where Bryant angles are "
                 "singular. Forms in angles change their chart and stay accurate; the paper's "
                 "remedy, a large finite 1/cos, has errors of degrees near it.")  # fmt: skip


def lyapunov(out: Path, course: dict[str, Any]) -> dict[str, str]:
    """Draw the Lyapunov functions over time: kinetic energy plus potential of the controller."""
    with styled_figure(8.0, 2.8) as figure:
        axis = figure.subplots()
        for name, label, colour in (
            ("angles_J", "springs and dampers on the angles", MODEL),
            ("quaternion_J", "on the quaternion", MEASURED),
        ):
            axis.semilogy(course["t_s"], course[name], color=colour, lw=1.4, label=label)
        axis.set(xlabel="time [s]", ylabel="Lyapunov function [J]")
        axis.set_title("One stabilised body: Lyapunov functions never increase")
        axis.legend(frameon=False)
    return saved(out, "lyapunov.png", figure,
                 "Lyapunov functions as outputs: kinetic energy plus spring energy, for a "
                 "body stabilised by its Bryant angles and by its quaternion.")  # fmt: skip


def agreement(out: Path, gaps: list[dict[str, Any]]) -> dict[str, str]:
    """Draw the differences between the forms, the recursion and pinocchio."""
    stands = list(dict.fromkeys(row["stands on"] for row in gaps))
    colours = dict(zip(stands, COLOURS, strict=False))
    compared = list(dict.fromkeys(row["compared"] for row in gaps))
    with styled_figure(8.0, 0.9 + 0.55 * len(compared)) as figure:
        axis = figure.subplots()
        for k, stand in enumerate(stands):
            rows = {row["compared"]: row for row in gaps if row["stands on"] == stand}
            at = [compared.index(what) + 0.16 * (k - (len(stands) - 1) / 2) for what in rows]
            median = [max(row["median"], ROUNDING) for row in rows.values()]
            largest = [max(row["largest"], ROUNDING) for row in rows.values()]
            axis.hlines(at, median, largest, color=colours[stand], lw=1.2)
            axis.plot(median, at, "o", color=colours[stand], ms=5, label=stand)
            axis.plot(largest, at, "|", color=colours[stand], ms=8)
        axis.axvline(1e-14, color="0.5", lw=0.8, ls="--")
        axis.set_xscale("log")
        axis.set_yticks(range(len(compared)), compared)
        axis.invert_yaxis()
        axis.set_xlabel("largest difference over largest value: median (dot) to largest (bar)")
        axis.set_title("Dimensions and peers agree")
        axis.legend(frameon=False, fontsize=8, title="standing on", title_fontsize=8,
                    loc="center left", bbox_to_anchor=(1.0, 0.5))  # fmt: skip
    return saved(out, "agreement.png", figure,
                 "Accelerations and forces at random attitudes, velocities and torques: free "
                 "bodies, modules and the projected form, the compiled recursion, pinocchio. "
                 "Dashed: 1e-14.")  # fmt: skip


def stick(axis: Axes, skeleton: Skeleton, X_a: Array, A: Array, *, across: int, **how: Any) -> None:
    """Draw a skeleton's links as lines, seen along y (across 0) or x (across 1)."""
    for line in X_a + skeleton.lines(A):
        axis.plot(line[:, across], line[:, 2], solid_capstyle="round", **how)


def pushed(out: Path, skeleton: Skeleton, runs: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Draw a pushed body: stick figures, its centre of mass and the ground's forces."""
    with styled_figure(8.0, 6.4) as figure:
        axes = figure.subplots(2, 3, width_ratios=[0.8, 1.0, 1.0])
        front = axes[0, 0]
        first = runs["co-activated"]["pictures"][0]
        stick(front, skeleton, first[1], first[2], across=1, color=REFERENCE, lw=2.0)
        front.set_title("from the front, at rest")
        for axis, (name, run) in zip(axes[0, 1:], runs.items(), strict=True):
            last = len(run["pictures"]) - 1
            for i, (_, X_a, A) in enumerate(run["pictures"]):
                shade = str(0.82 - 0.82 * i / max(1, last))
                stick(axis, skeleton, X_a, A, across=0, color=shade, lw=1.6)
            axis.set_title(f"{name}, from the side")
        for axis in axes[0]:
            axis.set_aspect("equal", adjustable="datalim")
            axis.axhline(0.0, color="0.7", lw=0.8, zorder=0)
            axis.set_xlabel("m")
        height, sway, ground = axes[1]
        for (name, run), colour in zip(runs.items(), COLOURS, strict=False):
            height.plot(run["t_s"], run["centre_m"][:, 2], color=colour, lw=1.3, label=name)
            sway.plot(run["t_s"], run["centre_m"][:, 0], color=colour, lw=1.3)
            ground.plot(run["t_s"], run["support_z_N"].sum(axis=1), color=colour, lw=1.0)
        height.set_ylabel("centre of mass, height [m]")
        sway.set_ylabel("centre of mass, forward [m]")
        ground.set_ylabel("ground's force, vertical [N]")
        height.legend(frameon=False)
        for axis in axes[1]:
            axis.set_xlabel("time [s]")
    return saved(out, "pushed.png", figure,
                 "Standing on its supports, pushed forward for 0.2 s at 0.1 s. Co-activation holds "
                 "the joints; when relaxed, only passive structures do. Stick figures from light "
                 "to dark over the run, which ends when a body has fallen.")  # fmt: skip


def dropped(out: Path, run: dict[str, Any]) -> dict[str, str]:
    """Draw a dropped skeleton: heights of its supports, and the ground's forces on them."""
    with styled_figure(8.0, 3.4) as figure:
        place, force = figure.subplots(1, 2)
        for k, (name, colour) in enumerate(zip(run["supports"], COLOURS, strict=False)):
            place.plot(run["t_s"], 1e3 * run["foot_z_m"][:, k], color=colour, lw=1.3, label=name)
            force.plot(run["t_s"], run["support_z_N"][:, k], color=colour, lw=1.1)
        place.set_ylabel("height of the support [mm]")
        force.set_ylabel("ground's force, vertical [N]")
        place.set_title("Dropped, tilted to a side")
        place.legend(frameon=False)
        for axis in (place, force):
            axis.set_xlabel("time [s]")
    return saved(out, "dropped.png", figure,
                 "The inert-constraint kernel makes contact and removes the energy T_c; contact is "
                 "broken where the ground would have to pull.")  # fmt: skip


def timings(out: Path, rows: list[dict[str, Any]]) -> dict[str, str]:
    """Draw the times of all tools."""
    with styled_figure(8.0, 2.6) as figure:
        axis = figure.subplots()
        names = [row["tool"] for row in rows]
        us = [row["us"] for row in rows]
        colours = [MODEL, MEASURED, *["0.6"] * len(rows)][: len(rows)]
        axis.barh(names, us, color=colours, height=0.6)
        for i, value in enumerate(us):
            axis.annotate(f" {value:.1f} us", (value, i), va="center", fontsize=8)
        axis.set_xscale("log")
        axis.set_xlim(min(us) / 2.0, max(us) * 4.0)
        axis.invert_yaxis()
        axis.set(xlabel="an evaluation of all accelerations [us]", title="Time, from Python")
    return saved(out, "timings.png", figure,
                 "The compiled recursion and pinocchio run at loop rate; the forms with matrices "
                 "are kept as readable formulations of the same equations.")  # fmt: skip
