"""Figures of the impact experiment: energies during an impact, predicted and measured values."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hil.pages.style import CELL, MEASURED, MODEL, REFERENCE, mark_simulated, styled_figure
from hil.systems.pantograph.cases import Case, Impact
from hil.systems.pantograph.impact import bands, predict
from hil.systems.pantograph.impact_trial import Trial

COVERAGE = 2.0  # length of error bars in standard uncertainties


def draw_curves(
    cases: list[Case], simulated: bool, printed: Mapping[float, tuple[float, ...]]
) -> Figure:
    """Draw T_c and T_a over time, one panel per case, and printed T_c, T_a, T_a after in mJ."""
    columns = 2 if len(cases) < 5 else 3
    rows = -(-len(cases) // columns)
    with styled_figure(9.0, 0.6 + 2.6 * rows) as figure:
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axis, case in zip(axes.flat, cases, strict=False):
            for n, trial in enumerate(case.trials):
                _draw_trial(axis, trial, faint=n > 0)
            axis.set_title(f"gamma = {case.gamma_deg:g} deg", fontsize=9)
            if case.gamma_deg in printed:
                trial = case.trials[0]
                T_c, T_a, T_a_after, *_ = printed[case.gamma_deg]
                end_ms = 1e3 * (trial.end_s - trial.onset_s)
                axis.plot([0.0, end_ms], [T_c, 0.0], "x", color=REFERENCE, ms=6)
                axis.plot([0.0, end_ms], [T_a, T_a_after], "x", color=REFERENCE, ms=6)
        for axis in axes.flat[len(cases) :]:
            axis.set_visible(False)
        for axis in axes[-1]:
            axis.set_xlabel("time from onset [ms]")
        for axis in axes[:, 0]:
            axis.set_ylabel("energy [mJ]")
        axes[0, 0].set_xlim(-6.0, 14.0)
        axes[0, 0].legend(frameon=False, loc="upper right")
        if simulated:
            middle = axes[0, (columns - 1) // 2]
            middle.set_zorder(1.0)  # its label extends over the neighbouring panels
            mark_simulated(figure, middle)
    return figure


def _draw_trial(axis: Axes, trial: Trial, faint: bool) -> None:
    t_ms = 1e3 * (trial.t_s - trial.onset_s)
    end_ms = 1e3 * (trial.end_s - trial.onset_s)
    for name, curve, colour, first, last in (
        ("$T_c$", trial.T_c_curve_J, MODEL, trial.T_c_J, 0.0),
        ("$T_a$", trial.T_a_curve_J, MEASURED, trial.T_a_J, trial.T_a_after_J),
    ):
        if faint:
            axis.plot(t_ms, 1e3 * curve, color=colour, lw=0.6, alpha=0.35)
            continue
        axis.plot(t_ms, 1e3 * curve, color=colour, lw=1.3, label=name)
        axis.plot([0.0, end_ms], [1e3 * first, 1e3 * last], "o", mfc="white", mec=colour, ms=5)


def draw_against(impact: Impact, cases: list[Case], simulated: bool) -> Figure:
    """Draw energies and impulses over gamma: ideal event, with friction, trials."""
    low = min(case.gamma_deg for case in cases) - 8.0
    high = max(case.gamma_deg for case in cases) + 8.0
    gamma = np.linspace(max(low, -89.0), min(high, 89.0), 60)
    ideal = predict(impact.pose, gamma, impact.energy_J)
    band = bands(impact.rig, impact.pose, gamma, impact.energy_J, impact.elbows)
    with styled_figure(9.0, 6.2) as figure:
        axes = figure.subplots(2, 2, sharex=True)
        for axis, keys, label in (
            (axes[0, 0], (("T_c_J", "T_c_J", ideal.split.T_c_J, MODEL, "$T_c^-$"),
                          ("T_a_J", "T_a_J", ideal.split.T_a_J, MEASURED, "$T_a^-$")),
             "energy before [mJ]"),
            (axes[0, 1], (("T_a_after_J", "T_a_J", ideal.split.T_a_J, MEASURED, "$T_a^+$"),),
             "energy after [mJ]"),
            (axes[1, 0], (("impulse_n_N_s", "impulse_N_s", ideal.impulse_N_s, REFERENCE, "n"),),
             "normal impulse [N ms]"),
            (axes[1, 1], (("impulse_t_N_s", "", np.zeros_like(gamma), CELL, "t"),),
             "tangential impulse [N ms]"),
        ):  # fmt: skip
            for key, banded, line, colour, name in keys:
                if banded:
                    axis.fill_between(gamma, *(1e3 * band[banded]), color=colour, alpha=0.25, lw=0)
                axis.plot(gamma, 1e3 * line, color=colour, lw=1.0, label=f"{name} ideal")
                for case in cases:
                    axis.plot(np.full(len(case.trials), case.gamma_deg), 1e3 * case.values(key),
                              "x", color=colour, ms=3, alpha=0.5)  # fmt: skip
                axis.errorbar(
                    [case.gamma_deg for case in cases], [1e3 * case.mean(key) for case in cases],
                    [COVERAGE * 1e3 * case.standard(key) for case in cases], fmt="o", color=colour,
                    ms=4, capsize=3, label=f"{name} measured",
                )  # fmt: skip
            rough = [case for case in impact.cases if case.rough is not None]
            friction = {
                "T_a_after_J": [c.rough.T_a_after_J for c in rough if c.rough],
                "impulse_t_N_s": [c.friction_N_s(impact.pose) for c in rough],
            }
            for key in {key for key, *_ in keys} & friction.keys():
                axis.plot(
                    [c.gamma_deg for c in rough], 1e3 * np.array(friction[key]), "s", mfc="none",
                    color=REFERENCE, ms=7, label=f"with mu = {impact.mu:g}",
                )  # fmt: skip
            axis.set_ylabel(label)
            axis.legend(frameon=False, fontsize=8)
            axis.margins(y=0.15)
        for axis in axes[1]:
            axis.set_xlabel("gamma [deg]")
        if simulated:
            mark_simulated(figure, axes[0, 0])
    return figure
