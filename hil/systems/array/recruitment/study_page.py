"""Tables, figures and sentences of `hil study recruitment`."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binomtest

from hil.pages.study import as_table, saved
from hil.pages.style import CELL, MEASURED, MODEL, REFERENCE, mark_simulated, styled_figure
from hil.systems.array.recruitment import study_trial as trial
from hil.systems.array.recruitment.study_commission import commissioned_plant
from hil.systems.array.recruitment.study_controllers import (
    AHEAD,
    OLD_LAW,
    UNTOLD,
    Setting,
    control_of,
)
from hil.systems.array.recruitment.study_failures import FAILURE_CONTROLLERS, WATCHED_S, WITHIN_S
from hil.systems.array.recruitment.study_plant import PERIOD_S, SET_POINTS, nominal, reference
from hil.systems.array.recruitment.study_values import Judged, Optimum, Values

TRACED = ("PID", "broadcast, LMS", "size principle", "preview", UNTOLD, "optimal")
TRACE_COLORS = (CELL, "#56B4E9", MODEL, "#009E73", "#CC79A7", MEASURED)

_CAPTION_TRACES = (
    "One plant of 14 cells (or the first size in `cells`), three set points. Preview and the "
    "optimal controllers know the set point in advance; they start to heat before a step. "
    "Cells take about a second to heat and to cool, each according to its own wire."
)
_CAPTION_ERRORS = (
    "RMS error relative to the force of all cells: mean and standard deviation over plants with "
    "different parameters (errors up to 20 %), dead cells, noise and zero offset. Lines: the "
    "full-information optimum without dead cells, found by descent over the cells; dynamic "
    "programming gives each cell's sequence on a grid of 0.05 s with bins of 4 K, a tenth of "
    "austenite and a twentieth of the lag, then with half that."
)
_CAPTION_FAILURES = (
    "A cell that is on dies: fraction of the deaths in which the force alone has identified the "
    "cell, over time. Dashed: without deliberate switching of suspects. The driver board's current "
    "check finds an open wire within 2 ms of switching on (docs/safety.md); this test is for "
    "failures that the current does not show."
)

_PLANTS = {
    "thermal": "wires with hysteresis that rise in 0.7 s and fall in 1.1 s",
    "sma": "wires under stress with the branches measured on Flexinol, pretension 0.56 N",
}

Rows = list[dict[str, Any]]
Tuned = dict[tuple[int, str], Setting]


def figures(
    out: Path,
    values: "Values",
    tuned: Tuned,
    judged: "Judged",
    optimum: "Optimum",
    failures: Rows,
) -> list[dict[str, str]]:
    """Write the figures into the folder."""
    return [
        saved(out, "traces.png", _draw_traces(values, tuned), _CAPTION_TRACES),
        saved(out, "errors.png", _draw_errors(values, judged, optimum), _CAPTION_ERRORS),
        *([saved(out, "failures.png", _draw_failures(failures), _CAPTION_FAILURES)]
          if failures else []),
    ]  # fmt: skip


def tables(
    values: "Values",
    tuned: Tuned,
    judged: "Judged",
    optimum: "Optimum",
    bounds: "Optimum",
    failures: Rows,
) -> list[dict[str, Any]]:
    return [
        *[_errors(values, judged, optimum, bounds, n_cells) for n_cells in values.cells],
        *([_deaths(failures)] if failures else []),
        _settings(values, tuned),
    ]


def _errors(
    values: "Values", judged: "Judged", optimum: "Optimum", bounds: "Optimum", n_cells: int
) -> dict[str, Any]:
    rows = []
    for name in values.names:
        row = [name, "yes" if name.removesuffix(OLD_LAW) in AHEAD else "no"]
        for dead in values.dead_percent:
            errors, switches, energy = np.array(judged[n_cells, dead, name]).T
            row.append(
                f"{100 * errors.mean():.1f} ± {100 * errors.std(ddof=1):.1f} % · "
                f"{n_cells * switches.mean():.1f}/s · {energy.mean():.0f} J"
            )
        rows.append(row)
    for label, of in (
        ("full-information optimum, found", optimum),
        ("no sequence leaves less than", bounds),
    ):
        best = [100.0 * e for (m, _), e in of.items() if m == n_cells]
        if best:
            rows.append([f"{label} ({len(best)} plants)", "yes, and the plant",
                         f"{np.mean(best):.1f} %"]
                        + [""] * (len(values.dead_percent) - 1))  # fmt: skip
    n_plants = len(judged[n_cells, values.dead_percent[0], values.names[0]])
    title = (
        f"{n_cells} cells, {n_plants} plants: RMS error over all cells' force, switches a second"
    )
    return as_table(
        f"{title}, energy",
        ["", "set point known ahead", *[f"{dead:g} % dead" for dead in values.dead_percent]],
        rows,
    )


def _named(f: dict[str, Any]) -> float:
    """Return the percentage of deaths named in time."""
    return float(100.0 * np.mean(np.array(f["delays_s"]) <= WITHIN_S))


def _deaths(failures: Rows) -> dict[str, Any]:
    rows = []
    for f in failures:
        delays = np.array(f["delays_s"])
        low, high = binomtest(int((delays <= WITHIN_S).sum()), f["n"]).proportion_ci(
            method="wilson"
        )
        rows.append([
            f"{f['n_cells']} cells, {f['controller']}" + (", switching" if f["swaps"] else ""),
            f"{_named(f):.0f} % ({100 * low:.0f} to {100 * high:.0f})",
            f"{100 * np.mean(delays <= WATCHED_S):.0f} %",
            f"{f['wrong']} of {f['n']}",
            f"{f['false_alarms']} in {f['hours']:.1f} h",
            f"{f['largest_log_odds']:.1f} of {f['threshold']:.1f}",
        ])  # fmt: skip
    return as_table(
        "A cell dies while it is on, seen by force alone (95 % interval of the share)",
        ["", f"named within {WITHIN_S:g} s", f"within {WATCHED_S:g} s", "another named",
         "false alarms", "log odds, healthy"], rows,
    )  # fmt: skip


def _settings(values: "Values", tuned: Tuned) -> dict[str, Any]:
    rows = [
        [name, *[", ".join(f"{x:g}" for x in tuned[n, name]) for n in values.cells]]
        for name in values.names
    ]
    title = "Settings selected by tuning (AXES in study_tuning.py)"
    return as_table(title, ["", *[f"{n} cells" for n in values.cells]], rows)


def notes(values: "Values", ratios: dict[str, float], failures: Rows) -> list[str]:
    """Return sentences on the procedure, the results, and the weakness of each method."""
    sentences = [
        "Procedure: every plant is commissioned (each cell is pulsed twice from rest), and every "
        f"controller except '{UNTOLD}' uses the result. The trials take place on another day: the "
        "air is up to 2 K warmer or colder, forces differ by up to 2 %, convection by 5 %, supply "
        "by 1 %. Every controller is tuned for the least mean error on "
        f"{values.tuning_seeds} tuning plant(s) under all three set points, without dead cells, on "
        "a grid that widens until its optimum is inside. The evaluation uses other plants; the "
        "set points alternate between plants.",
        "Unknown to the controllers: latent heat and transition temperatures of the wires, the "
        f"transducer's delay, and which cells died. The plant: {_PLANTS[values.plant]}, "
        "all parameters with errors up to 20 % (convection 10 %, supply "
        "and transitions 5 %), force read 20 ms late with 2 mN of noise and a zero offset of up to "
        "10 mN. 'optimal' also learns the wires from the force during the trial.",
    ]
    for n in values.cells:
        ratio_of = {name: ratios[f"{n} cells, {name}"] for name in values.names
                    if f"{n} cells, {name}" in ratios}  # fmt: skip
        if ratio_of:
            best = min(ratio_of, key=lambda name: ratio_of[name])
            each = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratio_of.items())
            within = "reached" if ratio_of[best] <= 1.1 else "not reached"
            sentences.append(
                f"{n} cells, error relative to the optimum, mean over set points: {each}. Within "
                f"10 % of the optimum: {within} (best: {best}, {100 * (ratio_of[best] - 1):.1f} % "
                "above)."
            )
    for f in failures:
        if not f["swaps"] and not f["controller"].startswith("broadcast"):
            continue
        good = _named(f) >= 95.0 and f["false_alarms"] == 0 and f["wrong"] == 0
        # 60 of 60 deaths, three days without an alarm: needed for 95 % confidence
        shown = f["n"] >= 60 and f["hours"] >= 72.0
        verdict = "not reached" if not good else "reached" if shown else "too few trials to show"
        sentences.append(
            f"{f['n_cells']} cells, {f['controller']}{', suspects switched' * f['swaps']}: "
            f"{_named(f):.0f} % of "
            f"{f['n']} deaths named within {WITHIN_S:g} s, {f['false_alarms']} false alarms in "
            f"{f['hours']:.1f} h; one a day is the threshold's bound for errors no larger than its "
            f"rules state. 95 % within {WITHIN_S:g} s: {verdict}."
        )
    sentences.append(
        "Weaknesses. PID: it waits for a force that is a second late, and integrates slowly. "
        "Broadcast: without addresses the randomness of the draw remains (less with many cells), "
        "and so does the dead zone of half a step; |e|/N and fixed gains are slow far from the "
        "set point. Size principle: without preview, the delay of the cells stays in the error. "
        "Preview: one delay for all cells, for rises and falls alike. "
        "Optimal, not commissioned: it assumes a symmetrical sigmoid, but wires fall later than "
        "they rise. Optimal: the first seconds, before it has learned what changed since "
        "commissioning or which cells are dead; with few cells, the steps between their levels. "
        "Failures: a cell that has been on for long still pulls for half a second, and similar "
        "cells are distinguished one after the other."
    )
    return sentences


def bracket(
    values: "Values",
    optimum: "Optimum",
    bounds: "Optimum",
    at_least: dict[str, float],
    at_most: dict[str, float],
) -> list[str]:
    """Return sentences that compare the two bounds of the optimum, and the goal.

    Parameters
    ----------
    at_least, at_most : dict
        Error relative to the optimum found, and to the lower bound, on plants that have both.
    """
    sentences = []
    for n in values.cells:
        over = [optimum[job] / error for job, error in bounds.items() if job[0] == n]
        if not over:
            continue
        best = min((name for name in values.names if f"{n} cells, {name}" in at_most),
                   key=lambda name: at_most[f"{n} cells, {name}"])  # fmt: skip
        low, high = at_least[f"{n} cells, {best}"], at_most[f"{n} cells, {best}"]
        verdict = "proven" if high <= 1.1 else "refuted" if low > 1.1 else "open"
        sentences.append(
            f"{n} cells, {len(over)} plant(s) with a lower bound, which holds for every sequence "
            "that switches at ticks of 10 ms: the optimum found is "
            f"{100 * (np.median(over) - 1):.1f} % above it (median; {100 * (max(over) - 1):.1f} % "
            f"at most). On these plants the error of '{best}' is between {low:.3f} and {high:.3f} "
            f"times the optimum; within 10 %: {verdict}."
        )
    return sentences


def _draw_traces(values: "Values", tuned: Tuned) -> Figure:
    n = 14 if 14 in values.cells else values.cells[0]
    total_N = nominal(n).total_N
    truth, commissioned = commissioned_plant(n, 1, values.plant, values.plant)
    with styled_figure(9.0, 7.5) as figure:
        axes = figure.subplots(3, 1, sharex=True)
        for axis, kind in zip(axes, SET_POINTS, strict=True):
            follow = reference(kind, total_N)
            for name, color in zip(TRACED, TRACE_COLORS, strict=True):
                if (n, name) not in tuned:
                    continue
                know = nominal(n) if name == UNTOLD else commissioned
                control = control_of(know, name, tuned[n, name], follow, 1)
                found = trial.run(know, control, truth, follow, 1)
                t_s = PERIOD_S * np.arange(len(found.force_N))
                axis.plot(t_s, found.force_N, color=color, lw=1.1, label=name)
            axis.plot(t_s, found.reference_N, color=REFERENCE, lw=0.8, ls="--", label="set point")
            axis.set_ylabel("force [N]")
            axis.margins(x=0.0, y=0.08)
        axes[0].set_title(f"{n} cells, one plant")
        axes[0].legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.08))
        axes[-1].set_xlabel("time [s]")
        mark_simulated(figure, axes[1])
    return figure


def _draw_errors(values: "Values", judged: "Judged", optimum: "Optimum") -> Figure:
    with styled_figure(9.0, 3.2 * len(values.cells)) as figure:
        axes = np.atleast_1d(figure.subplots(len(values.cells), 1, sharex=True))
        width = 0.8 / len(values.dead_percent)
        shades = ("#0072B2", "#56B4E9", "#BBDDF2", "#DDEEF8")
        for axis, n in zip(axes, values.cells, strict=True):
            for i, dead in enumerate(values.dead_percent):
                errors = [np.array(judged[n, dead, name])[:, 0] for name in values.names]
                at = np.arange(len(values.names)) + (i - (len(values.dead_percent) - 1) / 2) * width
                axis.bar(at, [100 * e.mean() for e in errors], width,
                         yerr=[100 * e.std(ddof=1) for e in errors], color=shades[i % 4],
                         error_kw={"lw": 0.8, "ecolor": "0.3"},
                         label=f"{dead:g} % dead")  # fmt: skip
            best = [100 * e for (m, _), e in optimum.items() if m == n]
            if best:
                axis.axhline(np.mean(best), color=REFERENCE, lw=1.0, ls="--",
                             label="optimum, none dead")  # fmt: skip
            axis.set_title(f"{n} cells")
            axis.margins(y=0.25)
            axis.set_ylabel("RMS error [% of full force]")
            axis.set_xticks(range(len(values.names)),
                            [name.replace(", ", ",\n") for name in values.names])  # fmt: skip
        axes[0].legend(frameon=False, ncols=2, fontsize=8)
        mark_simulated(figure, axes[-1])
    return figure


def _draw_failures(failures: Rows) -> Figure:
    sizes = sorted({f["n_cells"] for f in failures})
    with styled_figure(9.0, 3.6) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(sizes), sharey=True))
        for axis, n in zip(axes, sizes, strict=True):
            colors = dict(zip(FAILURE_CONTROLLERS, (MODEL, MEASURED, "#56B4E9"), strict=False))
            for f in failures:
                if f["n_cells"] != n:
                    continue
                delays = np.sort(f["delays_s"])
                seen = np.concatenate(([0.0], delays[np.isfinite(delays)], [WATCHED_S]))
                share = np.concatenate((np.arange(len(seen) - 1), [len(seen) - 2])) / f["n"]
                axis.step(seen, 100 * share, where="post", color=colors[f["controller"]],
                          ls="-" if f["swaps"] else "--", lw=1.2,
                          label=None if f["swaps"] else f["controller"])  # fmt: skip
            axis.axvline(WITHIN_S, color="0.75", lw=0.8)
            axis.axhline(95.0, color="0.75", lw=0.8)
            axis.set(title=f"{n} cells", xlabel="time since the cell died [s]")
            axis.set_xlim(0.0, WATCHED_S)
        axes[0].set_ylabel("deaths found [%]")
        axes[0].set_ylim(0.0, 103.0)
        axes[0].legend(frameon=False, fontsize=8, loc="lower right")
        mark_simulated(figure, axes[-1])
    return figure
