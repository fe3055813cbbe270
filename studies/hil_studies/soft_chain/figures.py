"""Figures of `hil study soft-chain`."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from hil.pages.study import saved
from hil.pages.style import CELL, FAULT, MEASURED, MODEL, REFERENCE, RESIDUAL, styled_figure
from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import Place
from hil_studies.soft_chain import compare as study_compare
from hil_studies.soft_chain.cases import CRANK_M, ElementKind, rubber_manipulator, servo_input
from hil_studies.soft_chain.outputs import trace_m
from hil_studies.soft_chain.speed import DENSE, EXUDYN, OURS, RK4

SHAPES = 9
STYLE = {
    OURS: (MODEL, "o", "-"),
    study_compare.EXTRAPOLATED: (MODEL, "o", ":"),
    RK4: (RESIDUAL, "^", "-"),
    EXUDYN: (MEASURED, "s", "-"),
    DENSE: (REFERENCE, "D", "-"),
    "SciPy Radau on the recursion": (CELL, "v", "-"),
    "SciPy BDF on the recursion": (CELL, "<", "--"),
    "SciPy LSODA on the recursion": ("0.5", ">", "-"),
    "SciPy DOP853 on the recursion": (FAULT, "P", "-"),
}


def motion(out: Path, kind: ElementKind, n: int, spectral_radius: float) -> dict[str, str]:
    """Draw the link's shapes over the first second, and the tip's path."""
    tree, tip = rubber_manipulator(kind, n)
    stepper = SoftStepper(tree, spectral_radius)
    h_s = 1e-3
    history = stepper.run(h_s, servo_input(h_s * np.arange(1, 1001)))
    length = tip.at_m[0]
    with styled_figure(8.0, 4.2) as figure:
        shape, course = figure.subplots(1, 2, width_ratios=[1.15, 1.0])
        for i, k in enumerate(np.linspace(0, 1000, SHAPES).astype(int)):
            q = history.q[k : k + 1]
            points = [np.zeros(2), trace_m(stepper, Place(0, (CRANK_M, 0, 0)), q)[0, :2]]
            points += [trace_m(stepper, Place(j, (length, 0, 0)), q)[0, :2]
                       for j in range(1, n + 1)]  # fmt: skip
            x, y = np.transpose(points)
            shade = str(0.8 - 0.8 * i / (SHAPES - 1))
            shape.plot(x[:2], y[:2], color=shade, lw=3.0, solid_capstyle="round")
            shape.plot(x[1:], y[1:], color=MODEL, alpha=0.25 + 0.75 * i / (SHAPES - 1), lw=1.4,
                       marker=".", ms=2.5 if n < 40 else 0.0)  # fmt: skip
        path = trace_m(stepper, tip, history.q)
        shape.plot(path[:, 0], path[:, 1], color="0.6", lw=0.6, ls="--")
        shape.set_aspect("equal", adjustable="datalim")
        shape.set(xlabel="x [m]", ylabel="y [m]", title="crank and rubber, every 1/8 s; pale first")
        course.plot(history.t_s, path[:, 0], color=MEASURED, label="tip x")
        course.plot(history.t_s, path[:, 1], color=MODEL, label="tip y")
        course.plot(history.t_s, 0.5 * np.sin(np.pi / 6 * (1 - np.cos(2 * np.pi * history.t_s))),
                    color="0.6", ls="--", lw=0.9, label="y, if rigid")  # fmt: skip
        course.set(xlabel="time [s]", ylabel="[m]")
        course.legend(frameon=False)
        course.margins(x=0.01)
    return saved(
        out, "motion.png", figure, f"The link of {n} segments, {kind}, in the first second."
    )


def error_over_step(out: Path, kind: str, n: int, rows: list[dict[str, Any]]) -> dict[str, str]:
    """Draw Fig. 3: integration error over step."""
    with styled_figure(7.0, 4.6) as figure:
        axis = figure.subplots()
        for tool in (OURS, EXUDYN, DENSE, RK4):
            colour, marker, line = STYLE[tool]
            good = _of(rows, tool, "h_s")
            if not good.size:
                continue
            exact = tool in (EXUDYN, DENSE)
            axis.loglog(*good, color=colour, marker=marker, ls="none" if exact else line,
                        label=tool, ms={EXUDYN: 8, DENSE: 11}.get(tool, 5),
                        mfc="none" if exact else colour)  # fmt: skip
        limit_s = max((row["h_s"] for row in rows if row["tool"] == RK4
                       and row["error_m"] is not None), default=None)  # fmt: skip
        if limit_s is not None:
            axis.axvline(1.25 * limit_s, color=RESIDUAL, lw=0.8, ls="--")
            axis.annotate(" explicit steps\n diverge beyond", (1.25 * limit_s, 0.97),
                          color=RESIDUAL, va="top", xycoords=("data", "axes fraction"))  # fmt: skip
        ours = _of(rows, OURS, "h_s")
        axis.loglog(ours[0], ours[1][3] * (ours[0] / ours[0][3]) ** 2 * 0.4, color="0.7", lw=0.8)
        axis.annotate("slope 2", (ours[0][5], ours[1][5] * 0.4), color="0.5", va="top",
                      xytext=(4, -2), textcoords="offset points")  # fmt: skip
        axis.set(xlabel="step [s]", ylabel="error of the tip at 1 s [m]")
        axis.set_title(f"Fig. 3: integration error, {n} segments, {kind}")
        axis.legend(frameon=False)
    return saved(
        out, "fig3.png", figure,
        "Fig. 3, integration error over step. Exudyn uses the same steps with its own recursion "
        "and Newton iteration, and so does the dense form. Explicit steps diverge "
        "beyond the limit of the stiffest joint.",
    )  # fmt: skip


def time_over_segments(out: Path, cost: list[dict[str, Any]]) -> dict[str, str]:
    """Draw Fig. 4: computing time over the number of segments."""
    n = np.array([row["segments"] for row in cost])
    with styled_figure(9.0, 4.4) as figure:
        left, right = figure.subplots(1, 2)
        for key, label, colour, marker in (
            ("recursion_us", "this recursion", MODEL, "o"),
            ("pinocchio ABA_us", "pinocchio, ABA", MEASURED, "s"),
            ("dense_us", "dense: pinocchio's M, LAPACK", REFERENCE, "D"),
            ("step_us", "a whole step of 1 ms, compiled", CELL, "v"),
        ):
            have = np.array([key in row for row in cost])
            if have.any():
                left.loglog(n[have], [row[key] for row in cost if key in row], color=colour,
                            marker=marker, ms=4, label=label)  # fmt: skip
        left.set(title="Fig. 4: one evaluation, and one step", ylabel="time [us]")
        for tool in (OURS, DENSE, EXUDYN,
                     RK4):  # fmt: skip
            colour, marker, line = STYLE[tool]
            have = np.array([tool in row["simulated_second_s"] for row in cost])
            if have.any():
                each = [row["simulated_second_s"][tool] for row in cost
                        if tool in row["simulated_second_s"]]  # fmt: skip
                label = tool + (", largest stable step" if tool == RK4 else ", 1 ms")
                right.loglog(n[have], each, color=colour, marker=marker, ms=4, ls=line, label=label)
        right.axhline(1.0, color="0.5", lw=0.8, ls="--")
        right.annotate("real time", (n[-1], 1.0), color="0.4", ha="right", va="bottom")
        right.set_ylim(bottom=3e-5)
        right.set(title="a simulated second", ylabel="time [s]")
        for axis in (left, right):
            axis.set_xlabel("segments")
            axis.legend(
                frameon=False, fontsize=8, loc="upper left" if axis is left else "lower right"
            )
            _plain_log(axis)
    return saved(
        out, "fig4.png", figure,
        "Fig. 4, computing time over the number of segments, Voigt. Left: called from Python. "
        "Right: the explicit and the dense curves are computed from the time of one evaluation, "
        "the largest stable step of RK4 (from the chain's fastest pole) and the passes per step.",
    )  # fmt: skip


def error_over_time(out: Path, kind: str, n: int, rows: list[dict[str, Any]]) -> dict[str, str]:
    """Draw error over computing time."""
    with styled_figure(8.6, 4.4) as figure:
        axis = figure.subplots()
        for tool, (colour, marker, line) in STYLE.items():
            good = _of(rows, tool, "time_s")
            if good.size:
                axis.loglog(*good, color=colour, marker=marker, ls=line, ms=4, label=tool)
        axis.set(xlabel="time for the first second [s]", ylabel="error of the tip at 1 s [m]")
        axis.set_title(f"work and precision, {n} segments, {kind}")
        figure.legend(*axis.get_legend_handles_labels(), frameon=False, fontsize=8,
                      loc="outside right center")  # fmt: skip
    return saved(
        out, "work_precision.png", figure,
        "Error over computing time for the same equations, all tools in alternating runs. SciPy's "
        "methods call this package's compiled recursion.",
    )  # fmt: skip


def _of(rows: list[dict[str, Any]], tool: str, key: str) -> Any:
    """Return abscissa and error of a tool's runs, (2, k)."""
    return np.array(
        [(row[key], row["error_m"]) for row in rows
         if row["tool"] == tool and row["error_m"] is not None and key in row]
    ).T  # fmt: skip


def _plain_log(axis: Axes) -> None:
    for each in (axis.xaxis, axis.yaxis):
        each.set_major_locator(LogLocator(numticks=12))
        each.set_minor_formatter(NullFormatter())
