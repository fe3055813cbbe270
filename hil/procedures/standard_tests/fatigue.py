"""`hil test fatigue`: a million cycles; one line of figures for each, every k-th recorded whole.

A block of cycles is one run of the session: self-test, arming, guard and logbook are those of any
run. Its recording is summarised and deleted. The first cycle and every `whole_every`-th are runs of
their own, whose recordings stay in `whole/`. The summaries are records of fixed size in
`cycles.bin`, on disk before the next block begins: after a kill, the same command continues with
the cycle after the last one there. Memory does not depend on the number of cycles.
"""

import gc
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from hil.config.table import Positive, Table
from hil.errors import ConfigError, writing
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.loop.channels import known_before
from hil.pages.study import as_table, saved
from hil.pages.style import MEASURED, MODEL, styled_figure
from hil.platform.whole_files import write_whole
from hil.procedures.standard_tests.analysis import drift, interval, mean_text
from hil.procedures.standard_tests.cycles import (
    FILE,
    SETTINGS,
    SUMMARY,
    Summaries,
    book_in,
    mean,
    rules,
)
from hil.procedures.standard_tests.forecast import forecasts, siblings_of
from hil.procedures.standard_tests.kind import Results
from hil.procedures.standard_tests.subject import Subject, write_experiment
from hil.record.read import open_run
from hil.rig.instruments import switching
from hil.runs import session
from hil.runs.campaign.runner import Options, Say
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.runs.session import View

LEVEL_S = 0.1  # last part of heating and of cooling, at most half, whose means are the levels
DONE, STOPPED, TRIPPED, INTERRUPTED = 0, 5, 3, 130
POINTS = 2000  # cycles that a figure shows


class Values(Table):
    """Settings; the rule stops the test when the stroke or the resistance has changed too far.

    Levels of reference are means over the first `reference_cycles`; present ones are means over as
    many of the last.
    """

    cycles: Annotated[int, Field(ge=1, le=2**31)] = 1_000_000
    heat_s: Positive = 3.0
    cool_s: Positive = 3.0
    whole_every: Annotated[int, Field(ge=1)] = 10_000
    block: Annotated[int, Field(ge=1, le=1000)] = 50
    reference_cycles: Annotated[int, Field(ge=1)] = 20
    stroke_lost_max: Annotated[float, Field(gt=0.0, le=1.0)] = 0.2
    resistance_drift_max: Annotated[float, Field(gt=0.0)] = 0.2


@dataclass(frozen=True)
class Span:
    """Cycles [first, last] of one run; `whole` if its recording is kept."""

    first: int
    last: int
    whole: bool


def spans(done: int, values: Values) -> Iterator[Span]:
    """The runs that remain after `done` cycles."""
    cycle = done + 1
    while cycle <= values.cycles:
        if _whole(cycle, values):
            yield Span(cycle, cycle, True)
            cycle += 1
            continue
        last = min(cycle + values.block - 1, values.cycles)
        to_whole = values.whole_every - cycle % values.whole_every
        last = min(last, cycle + to_whole - 1)
        yield Span(cycle, last, False)
        cycle = last + 1


def _whole(cycle: int, values: Values) -> bool:
    return cycle == 1 or cycle % values.whole_every == 0


def summarise(
    run: xr.Dataset, first: int, n_cycles: int, values: Values, columns: "Columns"
) -> NDArray[np.void]:
    """Summaries of the cycles of one recording, (n_cycles,)."""
    period_s = values.heat_s + values.cool_s
    t_s, y = run.t_s.values, run[columns.output].values
    T_C = run[columns.temperature].values if columns.temperature else np.full(len(t_s), np.nan)
    ohm = _resistance(run, columns)
    rows = np.zeros(n_cycles, SUMMARY)
    for i in range(n_cycles):
        hot_s, cold_s = i * period_s + values.heat_s, (i + 1) * period_s
        hot = (t_s >= hot_s - min(LEVEL_S, 0.5 * values.heat_s)) & (t_s < hot_s)
        cold = (t_s >= cold_s - min(LEVEL_S, 0.5 * values.cool_s)) & (t_s < cold_s)
        level = float(mean(y[cold]))
        rows[i] = (first + i, mean(y[hot]) - level, level, mean(T_C[hot]), mean(ohm[hot]))
    return rows


@dataclass(frozen=True)
class Columns:
    """Columns that are summarised; empty if the rig has none."""

    output: str
    temperature: str
    resistance: str
    current: str
    supply: str


def _columns(subject: Subject) -> Columns:
    config = subject.config
    cell = next(iter(switching(config.tables.devices).values())).cells_switched[0]
    supplies = [n for n, device in config.tables.devices.items() if device.role == "supply"]
    subject.needs("output")
    supply = f"{supplies[0]}_voltage_V" if supplies else ""
    return Columns(
        subject.output, subject.temperature, f"{cell}.resistance_Ohm", f"{cell}.current_A", supply
    )


def _resistance(run: xr.Dataset, columns: Columns) -> NDArray[np.float64]:
    """Of the board, or the supply's voltage over the cell's current while it is on; else NaN."""
    if columns.resistance in run:
        return np.asarray(run[columns.resistance].values)
    if columns.current not in run or columns.supply not in run:
        return np.full(run.sizes["tick"], np.nan)
    on = known_before(run.cells_reported.values)[:, 0] == 1
    amps = run[columns.current].values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(on & (amps > 0.0), run[columns.supply].values / amps, np.nan)


def verdict(reference: NDArray[np.void], latest: NDArray[np.void], values: Values) -> str:
    """Why the test stops; empty if it goes on."""
    criteria = rules(reference, latest, values.stroke_lost_max, values.resistance_drift_max)
    return next((rule.text for rule in criteria if rule.is_met), "")


def run(
    values: Values, subject: Subject, out: Path, options: Options, say: Say
) -> tuple[int, Results]:
    """Run the remaining cycles; returns the exit code and the results so far.

    Raises
    ------
    ConfigError
        The folder holds a test with other settings, or a setting contradicts the rig.
    """
    _refuse_other(values, subject, out)
    columns, book = _columns(subject), Summaries(out / FILE)
    if book.n:
        say(f"continues after {book.n} cycles")
    plant = None if options.backend != "sim" else subject.config.system(plant=True)
    n, code, why = values.reference_cycles, DONE, ""
    for span in spans(book.n, values):
        if book.n >= 2 * n:
            why = verdict(book.read(0, n), book.read(book.n - n), values)
        if why:
            code = STOPPED
            break
        n_cycles = span.last - span.first + 1
        config = _block(subject, out, n_cycles, values)
        path = out / "whole" / f"cycle-{span.first:07d}.h5" if span.whole else out / "block.h5"
        path.parent.mkdir(exist_ok=True)
        result = session.run(
            Plan(config, options.backend, options.clock or "", seed=span.first, plant=plant),
            Output(path, force=True, attributes={"fatigue_cycle": span.first}),
            View(options.progress, label=f"cycle {span.first}"),
        )
        if result.outcome != "complete":
            code = TRIPPED if result.outcome == "tripped" else INTERRUPTED
            why = f"cycle {span.first} or later: {result.outcome}, see {path}"
            break
        with open_run(path) as recording:
            book.add(summarise(recording, span.first, n_cycles, values, columns))
        if not span.whole:
            path.unlink()
        result.stop.pass_on()
        gc.collect()  # a run leaves cycles of references, 1 MB that Python would keep for 100 runs
    if why:
        say(f"stopped: {why}")
    return code, _results(values, subject, book, why, out)


def _refuse_other(values: Values, subject: Subject, out: Path) -> None:
    """Keep the settings in the folder; only the number of cycles may change when it continues."""
    subject.refuse_longer(values.heat_s)
    same = values.model_copy(update={"cycles": 1}).model_dump_json()
    text = f"{subject.rig.resolve()}\n{same}\n"
    path = out / SETTINGS
    if path.exists() and not path.read_text(encoding="utf-8").startswith(text):
        raise ConfigError(
            f"{out}: holds a fatigue test of another rig or with other settings: choose another "
            "--out"
        )
    test = {"cycles": values.cycles, "unit": "m" if subject.displacement else "N"}
    with writing(path):
        write_whole(path, f"{text}{json.dumps(test)}\n")


def _block(subject: Subject, out: Path, n_cycles: int, values: Values) -> Experiment:
    """The configuration of a run of so many cycles."""
    period_s = values.heat_s + values.cool_s
    steps: list[dict[str, object]] = []
    for i in range(n_cycles):
        steps += [
            {"t_s": round(i * period_s, 6), "on": "all"},
            {"t_s": round(i * period_s + values.heat_s, 6), "off": "all"},
        ]
    path = write_experiment(subject.rig, out, "fatigue", n_cycles * period_s, steps)
    return load(path)


def _forecast_notes(out: Path) -> list[str]:
    """How many cycles remain to each rule, from this specimen and its siblings beside it."""
    test = book_in(out)
    items = [] if test is None else forecasts(test, list(siblings_of(out)))
    return [f"Forecast: {one.text}." for one in items]


def _results(values: Values, subject: Subject, book: Summaries, why: str, out: Path) -> Results:
    if not book.n:
        return {"title": "fatigue", "figures": [], "notes": [why or "no cycle is complete"]}
    n = min(values.reference_cycles, book.n)
    first, last, shown = book.read(0, n), book.read(book.n - n), book.thinned(POINTS)
    scale, unit = (1e3, "mm") if subject.displacement else (1.0, "N")
    with styled_figure(7.0, 5.0) as figure:
        axes = figure.subplots(2, 1, sharex=True)
        axes[0].plot(shown["cycle"], scale * shown["stroke"], ".", ms=2, color=MEASURED)
        axes[0].set_ylabel(f"stroke [{unit}]")
        axes[1].plot(shown["cycle"], shown["ohm"], ".", ms=2, color=MODEL)
        axes[1].set(ylabel="resistance, hot [Ohm]", xlabel="cycle")
        caption = f"{len(shown)} of {book.n} cycles."
        figures = [saved(out, "drift.png", figure, caption)]
    rows = []
    shown_keys = (
        ("stroke", f"stroke [{unit}]", scale),
        ("ohm", "resistance [Ohm]", 1.0),
        ("hot_C", "hottest [degC]", 1.0),
    )
    for key, label, factor in shown_keys:
        slope, half = drift(shown["cycle"].astype(float), shown[key].astype(float))
        rows.append([label, mean_text(*interval(factor * first[key])),
                     mean_text(*interval(factor * last[key])),
                     mean_text(1e6 * factor * slope, 1e6 * factor * half)])  # fmt: skip
    columns = ["", f"first {n} cycles", f"last {n} cycles", "drift per million cycles"]
    return {
        "title": f"fatigue: {book.n} of {values.cycles} cycles",
        "figures": figures,
        "tables": [as_table("Means and drift, with 95 % intervals", columns, rows)],
        "notes": [
            f"stopped: {why}" if why else "no rule has stopped the test",
            *_forecast_notes(out),
            f"Every cycle has {SUMMARY.itemsize} bytes in {FILE}; whole recordings of the first "
            f"and of every {values.whole_every}-th cycle are in whole/.",
            "The drift is a line through the cycles shown; its interval takes them as independent.",
        ],
        "cycles": book.n, "stopped_by": why,
    }  # fmt: skip
