"""Tables of scores of the recruitment study: means over plants with 95 % intervals, and ratios.

All intervals are Student's over plants, for the mean. A ratio to the optimum is formed on every
plant; of ratios, the mean is the geometric one.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from hil.pages.study import as_table
from hil_studies.recruitment.controllers import EXACT, KNOWS, OLD_LAW
from hil_studies.recruitment.plant import SET_POINTS
from hil_studies.recruitment.values import Bounds, Judged, Optima, Start, Values

AIM, LATE_AIM = 1.1, 1.2  # error over that of the optimum: whole run, after 2 s


class Mean(NamedTuple):
    """A mean over plants and its 95 % interval; the interval is infinite with one plant."""

    mean: float
    low: float
    high: float
    n: int


Ratios = dict[tuple[int, str], dict[str, Mean]]
WHOLE, LATE, LED, OVER_BOUND = "whole run", "after 2 s", "with lead-in", "over the lower bound"


def mean_of(numbers: Iterable[float]) -> Mean:
    """Return the mean and its interval, mean ± t s / sqrt(n)."""
    x = np.array(list(numbers), dtype=float)
    half = np.inf
    if len(x) > 1:
        half = float(student.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x)))
    return Mean(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, len(x))


def ratio_of(numbers: Iterable[float]) -> Mean:
    """Return the geometric mean and its interval, Student's for the logarithms."""
    mean, low, high, n = mean_of(np.log(list(numbers)))
    return Mean(float(np.exp(mean)), float(np.exp(low)), float(np.exp(high)), n)


def ratios(judged: Judged, optima: Optima, bounds: Bounds) -> Ratios:
    """Return every controller's errors over the optimum's, none dead, by what is compared."""
    found: Ratios = {}
    for start, rows in judged.items():
        n, dead, name, led = start
        own = {seed: best for (m, seed), best in optima.items() if m == n}
        if dead != 0.0 or not own:
            continue
        row = found.setdefault((n, name), {})
        if led:
            row[LED] = ratio_of(rows[seed].error / best.led for seed, best in own.items())
            continue
        row[WHOLE] = ratio_of(rows[seed].error / best.error for seed, best in own.items())
        late = {seed: rows[seed].late / best.late for seed, best in own.items()}
        row[LATE] = ratio_of(late.values())
        for i, kind in enumerate(SET_POINTS):
            of_kind = [ratio for seed, ratio in late.items() if seed % len(SET_POINTS) == i]
            if of_kind:
                row[f"{LATE}, {kind}"] = ratio_of(of_kind)
        proven = {seed: error for (m, seed), error in bounds.items() if m == n}
        if proven:
            row[OVER_BOUND] = ratio_of(rows[seed].error / e for seed, e in proven.items())
    return found


def tables(
    values: Values, judged: Judged, optima: Optima, bounds: Bounds, of: Ratios
) -> list[dict[str, Any]]:
    """Return, for every size: scores with a lead-in; from rest and with dead cells; ratios."""
    found = []
    for n in values.cells:
        found += [_led(values, judged, optima, n), _harder(values, judged, optima, bounds, n)]
        if any(m == n for m, _ in of):
            found.append(_over_optimum(values, of, n))
    return found


def _percent(x: Mean, digits: int = 1) -> str:
    low, high = (f"{100 * end:.{digits}f}" for end in (x.low, x.high))
    return f"{100 * x.mean:.{digits}f} % ({low} to {high})"


def _led(values: Values, judged: Judged, optima: Optima, n: int) -> dict[str, Any]:
    dead = values.dead_percent[0]
    rows = []
    for name in values.names_for(n):
        scores = judged[Start(n, dead, name, True)]
        kinds = [mean_of(s.error for s in scores[i::3]) for i in range(len(SET_POINTS))]
        rows.append([
            name, KNOWS[name.removesuffix(OLD_LAW)], _percent(mean_of(s.error for s in scores)),
            *[f"{100 * kind.mean:.1f} ± {100 * (kind.high - kind.mean):.1f} %" for kind in kinds],
            f"{n * np.mean([s.switches_per_s for s in scores]):.1f}",
            f"{np.mean([s.energy_J for s in scores]):.0f}",
            f"{3600 * np.mean([s.wear_per_s for s in scores]):.0f}",
        ])  # fmt: skip
    own = {seed: best.led for (m, seed), best in optima.items() if m == n}
    wear = [best.wear_per_s for (m, _), best in optima.items() if m == n]
    if own:
        best = [[e for seed, e in own.items() if seed % 3 == i] for i in range(len(SET_POINTS))]
        rows.append([f"optimum found ({len(own)} plants)", "everything",
                     _percent(mean_of(own.values())),
                     *[f"{100 * np.mean(kind):.1f} %" if kind else "" for kind in best],
                     "", "", f"{3600 * np.mean(wear):.0f}"])  # fmt: skip
    return as_table(
        f"{n} cells, {len(scores)} plants, with lead-in, {dead:g} % dead: RMS error over all "
        "cells' force, 95 % interval of the mean",
        ["", "knows", "error", *SET_POINTS, "switches/s", "energy [J]", "wear [cycles/h]"], rows,
    )  # fmt: skip


def _harder(
    values: Values, judged: Judged, optima: Optima, bounds: Bounds, n: int
) -> dict[str, Any]:
    more = values.dead_percent[1:]
    rows = []
    for name in values.names_for(n):
        rest = judged[Start(n, 0.0, name, False)]
        errors = [mean_of(s.error for s in rest), mean_of(s.late for s in rest)]
        errors += [mean_of(s.error for s in judged[Start(n, dead, name, True)]) for dead in more]
        rows.append([name, *map(_percent, errors)])
    own = [best for (m, _), best in optima.items() if m == n]
    if own:
        found = [mean_of(best.error for best in own), mean_of(best.late for best in own)]
        rows.append(
            [f"optimum found ({len(own)} plants)", *map(_percent, found)] + [""] * len(more)
        )
    least = [error for (m, _), error in bounds.items() if m == n]
    if least:
        row = [f"no sequence leaves less than ({len(least)} plants)", _percent(mean_of(least))]
        rows.append(row + [""] * (1 + len(more)))
    return as_table(
        f"{n} cells, {len(rest)} plants: RMS error over all cells' force, from rest, and with "
        "lead-in and dead cells",
        ["", "from rest", "from rest, after 2 s", *[f"{dead:g} % dead" for dead in more]], rows,
    )  # fmt: skip


def _over_optimum(values: Values, of: Ratios, n: int) -> dict[str, Any]:
    columns = list(of[n, values.names_for(n)[0]])
    rows = [
        [name, *[_ratio(of[n, name][what]) for what in columns]]
        for name in values.names_for(n)
    ]  # fmt: skip
    n_plants = of[n, values.names_for(n)[0]][WHOLE].n
    return as_table(
        f"{n} cells: error over that of the optimum found, geometric mean over {n_plants} "
        "plants and 95 % interval",
        ["", *columns],
        rows,
    )


def _ratio(x: Mean) -> str:
    return f"{x.mean:.2f}" + (f" ({x.low:.2f} to {x.high:.2f})" if x.n > 1 else "")


def notes(of: Ratios, optima: Optima, bounds: Bounds) -> list[str]:
    """Return a sentence for each size: what is proven over plants, and what is not."""
    sentences = []
    for n in sorted({m for m, _ in of}):
        told = [name for m, name in of if m == n and name != EXACT]
        best = min(told, key=lambda name: of[n, name][WHOLE].mean)
        row = of[n, best]
        whole, late = row[WHOLE], row[LATE]
        upper = row.get(OVER_BOUND, Mean(np.inf, -np.inf, np.inf, 0))
        verdict = "proven" if upper.high <= AIM else "refuted" if whole.low > AIM else "open"
        reached = "reached" if late.high <= LATE_AIM else "not reached"
        sentences.append(
            f"{n} cells, '{best}' from rest: {whole.mean:.3f} ({whole.low:.3f} to "
            f"{whole.high:.3f}) times the error of the best sequence found, {whole.n} plants"
            + (f"; {upper.mean:.3f} ({upper.low:.3f} to {upper.high:.3f}) times the lower bound, "
               f"{upper.n} plants" if upper.n else "")
            + f". Within {AIM:g} of the optimum, as 95 % interval of the mean over plants: "
            f"{verdict}. After 2 s {late.mean:.2f} ({late.low:.2f} to {late.high:.2f}); within "
            f"{LATE_AIM:g}: {reached}."
        )  # fmt: skip
        gaps = [optima[job].error / error - 1.0 for job, error in bounds.items() if job[0] == n]
        if gaps:
            sentences.append(
                f"{n} cells: the best sequence found is {100 * np.median(gaps):.1f} % above the "
                f"lower bound in the median of {len(gaps)} plants, {100 * max(gaps):.1f} % at "
                "most. The bound holds for every sequence that switches at ticks of 10 ms."
            )
    return sentences
