"""Identification of simulated rigs with known parameters: tests the coverage of the intervals.

Every rig is drawn from its own seed and run on the loop of `hil run` (`rigs`). A stated 95 %
interval must contain the true value in 182 to 197 of 200 rigs and be at most 1.3 times as wide as
the Cramer-Rao bound. A second set of rigs has an effect that the model lacks; the identification
must detect this.

Source: Kay 1993, Fundamentals of Statistical Signal Processing: Estimation Theory, ch. 3.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.stats
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from hil.config.table import Table
from hil.identification import parameters
from hil.identification.grey_box import GreyBox, with_zeros
from hil.identification.identifiability import short
from hil.identification.identify import Z_95, Identified, Options, identify
from hil.mechanics.arrays import Array
from hil.pages.study import as_table, check, saved
from hil.pages.style import MEASURED, MODEL, mark_simulated, styled_figure
from hil.platform.parallel import on_all_cores
from hil.record.progress import count_progress
from hil_studies.identification.rigs import DRAWN, EFFECTS, TABLES, Effect, Rig, make_rig

WIDTH_MAX = 1.3


class Values(Table):
    """Settings of the study."""

    rigs: Annotated[int, Field(ge=4)] = 200
    coloured: Annotated[int, Field(ge=0)] = 50
    lacking: Annotated[int, Field(ge=0)] = 10
    bootstrapped: Annotated[int, Field(ge=0)] = 20
    seed: Annotated[int, Field(ge=0)] = 10


class Work(NamedTuple):
    """A rig to make and to identify."""

    seed: int
    number: int
    effect: Effect = "none"
    ar: float = 0.0
    n_bootstrap: int = 0


@dataclass(frozen=True)
class Outcome:
    """Results of one set of rigs, or of one rig without the first axis.

    Attributes
    ----------
    inside : (n, P) bool array, the interval contains the true value
    ratio : (n, P) array, width of the interval over that of the Cramer-Rao bound
    error : (n, P) array, error in standard deviations of the bound
    boot : (n, P) array
        Whether the bootstrap's interval contains the true value; NaN without a bootstrap.
    called : (n,) bool array, the identification reported a missing effect
    """

    inside: NDArray[np.bool_]
    ratio: Array
    error: Array
    boot: Array
    called: NDArray[np.bool_]


def bound(rig: Rig) -> Array:
    """Cramer-Rao bound: smallest standard deviation of every parameter's logarithm."""
    tables = copy.deepcopy(TABLES)
    for key, value in rig.truth.items():
        parameters.put(tables, key, value)
    box = GreyBox(tables, DRAWN, (rig.data,))
    J = rig.noise.whitened(with_zeros(box.sensitivities(box.start))[0])
    n = len(DRAWN)
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(J.T @ J))[:n]) * rig.noise.rms_N)


def coverage_range(n: int, p: float = 0.95, least: float = 0.015) -> tuple[int, int]:
    """Range of the number of n intervals that contain the true value, with probability 1 - `least`.

    For 200 intervals it is 182 to 197.
    """
    low, high = scipy.stats.binom.interval(1.0 - least, n, p)
    return int(low), int(high)


def trial(rig: Rig, n_bootstrap: int = 0) -> Identified:
    """Identify with the nominal tables only."""
    return identify(TABLES, [rig.data], Options(bootstrap=n_bootstrap))


def assessed(*work: Any) -> Outcome:
    """Make and identify the rig of `Work`, and compare the intervals with the true values."""
    seed, number, effect, ar, n_bootstrap = Work(*work)
    rig = make_rig(seed, number, effect, ar)
    identification, least = trial(rig, n_bootstrap), bound(rig)
    by_key = {p.key: p for p in identification.parameters}
    fitted, truth = [by_key[key] for key in DRAWN], np.array([rig.truth[key] for key in DRAWN])
    low, high = np.transpose([p.fisher for p in fitted])
    boot = np.full(len(DRAWN), np.nan)
    if n_bootstrap:
        resampled = np.transpose([p.resampled or (np.nan, np.nan) for p in fitted])
        boot = ((resampled[0] <= truth) & (truth <= resampled[1])).astype(float)
    return Outcome(
        (low <= truth) & (truth <= high),
        np.log(high / low) / (2.0 * Z_95 * least),
        np.log(np.array([p.value for p in fitted]) / truth) / least,
        boot,
        np.array(not identification.adequacy.adequate),
    )


def run_rigs(works: Sequence[Work], done: Callable[[int], None] = lambda n_more: None) -> Outcome:
    """The outcomes of all rigs, in their order."""
    by_work = {}
    for work, outcome in on_all_cores(works, assessed):
        by_work[work] = outcome
        done(1)
    rows = [by_work[work] for work in works]
    return Outcome(
        *(np.array([getattr(row, key) for row in rows]) for key in Outcome.__annotations__)
    )


def run(out: Path, values: Values) -> dict[str, Any]:
    """Run all sets of rigs; returns the content of results.json."""
    seed = values.seed
    plain = [Work(seed, i, n_bootstrap=200 * (i < values.bootstrapped)) for i in range(values.rigs)]
    coloured = [Work(seed + 1, i, ar=0.8) for i in range(values.coloured)]
    lacking = [Work(seed + 2, i, effect) for effect in EFFECTS for i in range(values.lacking)]
    works = [*plain, *coloured, *lacking]
    with count_progress("rigs", len(works), wanted=True) as done:
        whole = run_rigs(works, done)
    of_plain, of_coloured = _part(whole, 0, len(plain)), _part(whole, len(plain), len(coloured))
    called = whole.called[len(plain) + len(coloured) :].reshape(len(EFFECTS), -1).sum(axis=1)
    return {
        "title": f"Identification on {values.rigs} simulated rigs",
        "figures": [
            saved(out, "identification.png", _draw(of_plain), "Left: errors over the Cramer-Rao "
                  "bound, with a normal distribution. Right: width of the stated interval over "
                  "that of the bound.", dpi=150),
        ],
        "checks": [*_checks(of_plain, ""),
                   *(_checks(of_coloured, ", coloured noise") if coloured else [])],
        "tables": [
            as_table("Models that lack an effect, and how many were detected",
                  ["effect of the rig that the model lacks", "rigs", "detected"],
                  [[text, str(values.lacking), str(n)]
                   for text, n in zip(EFFECTS.values(), called, strict=True)]),
        ],
        "notes": [
            "The number of intervals with the true value must be in the central 98.5 % of the "
            "binomial distribution at 95 %: "
            f"{'..'.join(map(str, coverage_range(values.rigs)))} of {values.rigs}.",
            "Cramer-Rao bound: for normal noise with the variance of sensor and quantisation.",
        ],
        "called_lacking": dict(zip(EFFECTS, called, strict=True)),
    }  # fmt: skip


def _part(whole: Outcome, at: int, n: int) -> Outcome:
    return Outcome(*(getattr(whole, key)[at : at + n] for key in Outcome.__annotations__))


def _checks(outcome: Outcome, what: str) -> list[dict[str, Any]]:
    n = len(outcome.called)
    low, high = coverage_range(n)
    made: list[dict[str, Any]] = []
    for j, key in enumerate(DRAWN):
        held = int(outcome.inside[:, j].sum())
        made.append(check(f"{short(key)}: intervals with the truth{what}", held, f"{low}..{high}",
                          agrees=low <= held <= high))  # fmt: skip
        widest = float(outcome.ratio[:, j].max())
        made.append(check(f"{short(key)}: widest over Cramer-Rao{what}", widest,
                          f"<= {WIDTH_MAX}", agrees=widest <= WIDTH_MAX))  # fmt: skip
    mask = np.isfinite(outcome.boot[:, 0])
    for j, key in enumerate(DRAWN if mask.any() else ()):
        held, (low, high) = int(outcome.boot[mask, j].sum()), coverage_range(int(mask.sum()))
        made.append(check(f"{short(key)}: bootstrap intervals with the truth{what}", held,
                          f"{low}..{high}", agrees=low <= held <= high))  # fmt: skip
    alarms, most = int(outcome.called.sum()), int(scipy.stats.binom.ppf(0.995, n, 0.01))
    made.append(check(f"false alarms{what}", alarms, f"<= {most}", agrees=alarms <= most))
    return made


def _draw(outcome: Outcome) -> Figure:
    with styled_figure(9.0, 4.1) as figure:
        errors, widths = figure.subplots(1, 2)
        edges = np.linspace(-4.0, 4.0, 33)
        errors.hist(outcome.error.ravel(), edges, density=True, color=MEASURED, alpha=0.75)
        errors.plot(
            edges, scipy.stats.norm.pdf(edges), color=MODEL, lw=1.5, label="normal distribution"
        )
        errors.set(xlabel="error / Cramer-Rao standard deviation", ylabel="density")
        errors.legend(frameon=False)
        widths.boxplot(outcome.ratio, orientation="horizontal", widths=0.6,
                       medianprops={"color": MODEL}, flierprops={"markersize": 3})  # fmt: skip
        widths.axvline(1.0, color="0.7", lw=0.8)
        widths.axvline(WIDTH_MAX, color=MODEL, lw=1.0, ls="--")
        widths.set_yticks(range(1, len(DRAWN) + 1), [short(key) for key in DRAWN])
        widths.set_xlabel("width of the interval / Cramer-Rao width (allowed: 1.3)")
        figure.suptitle(f"{len(outcome.called)} simulated rigs", x=0.01, ha="left",
                        fontweight="bold", fontsize=11)  # fmt: skip
        mark_simulated(figure, errors)
    return figure
