"""`hil study resistance`: strain of a wire from its resistance alone, simulated or recorded.

Without a file wires are simulated that differ from what the observer believes (`wires`): each in
one thing, and `draws` of them in everything at random, as much as the observer believes to be
uncertain. These are observed with resistances as printed, and with both ends measured on the wire
itself. Errors are over the stroke; coverage is the share of errors within 1.96 standard
uncertainties.

With `data`, the same observer runs on measurements of a real wire: a CSV file with the columns
`t_s`, `resistance_Ohm`, `duty` and, where known, `resistance_u_Ohm` and `strain` (from the hot end,
to compare with), or a recording (.h5) with the resistance of `cell`. `rig` names the file whose
model describes the wire of `cell`; the default is Flexinol 0.10 mm with `n_wires` in series at
`supply_V`. `ends` is a file of the same kind in which the wire is cold at first and then hot;
without it the wire's resistances are scaled to the first reading of `data`, at which it must be
cold.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from hil.config.table import NotNegative, Positive, Table
from hil.errors import ModelError
from hil.experiment.load import load_model
from hil.mechanics.arrays import Array
from hil.mechanics.sma.observer import ResistanceObserver, Uncertain
from hil.mechanics.sma.wire import SmaWire
from hil.pages.study import as_table, check, saved
from hil.pages.style import MEASURED, MODEL, styled_figure
from hil.platform.parallel import on_all_cores
from hil.platform.whole_files import whole
from hil.record.progress import count_progress
from hil_studies.resistance.ends import measured_ends, observed
from hil_studies.resistance.files import read
from hil_studies.resistance.wires import (
    CASES,
    COLD_S,
    DEVIATIONS,
    DUTY_OF_ENDS,
    HOLD_S,
    HOT_S,
    Case,
    Chain,
    Record,
    believed,
    case_of,
    drawn,
    random_duty,
    simulated,
)

SETTLED_S = 2.0  # left out of the errors: the observer begins without a reading
SHIPPED_mA, FINE_mA = 2000, 250
BETWEEN = 0.01  # of the stroke, from either end
OWN_U = 0.001  # assumed where a file gives none: of the first resistance
Z_95 = 1.96
SHOWN = 3000  # points of a curve in the figure
ENDS_AS_PRINTED, ENDS_MEASURED = "as printed", "measured"


class Values(Table):
    """What `--set` may change: a file of a real wire, or the simulated ones."""

    data: str = ""
    ends: str = ""
    rig: str = ""
    cell: str = ""
    duration_s: Positive = 120.0
    noise_counts: Annotated[NotNegative, Field(le=50.0)] = 0.5
    supply_V: Positive = 9.0
    n_wires: Annotated[int, Field(ge=1)] = 4
    draws: Annotated[int, Field(ge=0)] = 4
    seed: int = 1


class Work(NamedTuple):
    """A wire to simulate and to observe.

    Attributes
    ----------
    differs : the name of its deviation; empty: it is drawn, and its ends are measured too
    draw : number of the draw
    """

    case: str
    chain: Chain
    duration_s: float
    seed: int
    differs: str = ""
    draw: int = 0


class Trial(NamedTuple):
    """A wire that was observed, what the observer said (n, 3), and its score."""

    row: dict[str, Any]
    record: Record
    told: Array


def run(out: Path, values: Values) -> dict[str, Any]:
    """Observe, draw into the folder `out`; the results, as written to results.json.

    Raises
    ------
    ModelError
        The file of a real wire, or the wire, is not usable; one line.
    """
    return _from_data(out, values) if values.data else _simulated(out, values)


def _simulated(out: Path, values: Values) -> dict[str, Any]:
    fine, shipped = (Chain(mA, values.noise_counts) for mA in (FINE_mA, SHIPPED_mA))
    works = [
        Work(case, fine, values.duration_s, values.seed, name)
        for case, wire in CASES.items()
        for name, deviate in DEVIATIONS.items()
        if deviate(wire) != wire
    ] + [
        Work(case, chain, values.duration_s, values.seed, draw=i)
        for case in CASES
        for chain in (shipped, fine)
        for i in range(values.draws)
    ]
    by_work: dict[Work, list[Trial]] = {}
    with count_progress("wires", len(works), wanted=True) as done:
        for work, trials in on_all_cores(works, assessed):
            by_work[work] = trials
            done(1)
    different = [by_work[work][0] for work in works if work.differs]
    drawn_rows = [trial.row for work in works if not work.differs for trial in by_work[work]]
    random = [_together(rows) for rows in _alike(drawn_rows)]
    return {
        "title": "Strain of a wire from its resistance",
        "rows": [trial.row for trial in different] + random,
        "checks": [_check(row) for row in random],
        "tables": [
            _table("Wires that differ in one thing", [trial.row for trial in different]),
            _table(f"Wires that differ in everything, {values.draws} each", random),
        ],
        "figures": [
            _figure(
                out,
                [(f"{t.row['resistance']}: {t.row['differs']}", *t[1:]) for t in different[-6:]],
            )
        ],
        "notes": [
            "Errors count where the strain is between 1 and 99 % of the stroke.",
            f"The converter has {values.noise_counts:g} counts of noise beside its rounding; the "
            "board gives a resistance every 60 ms.",
        ],
    }


def assessed(*work: Any) -> list[Trial]:
    """Simulate the wire of `Work` and observe it; of a drawn one also with both ends measured."""
    case, chain, duration_s, seed, differs, draw = Work(*work)
    wire, seed = CASES[case], seed + draw
    rng = np.random.default_rng([seed - draw, draw])
    true = DEVIATIONS[differs](wire) if differs else drawn(wire, rng)
    drive = random_duty(duration_s, seed), HOLD_S, duration_s
    record = simulated(case, true, chain, drive, seed)
    about = {
        "resistance": case,
        "differs": differs or "everything",
        "current_full_scale_mA": chain.full_scale_mA,
    }
    observers = {ENDS_AS_PRINTED: (believed(case), Uncertain())}
    if not differs:
        ends = simulated(case, true, chain, (DUTY_OF_ENDS, COLD_S, COLD_S + HOT_S), seed)
        observers[ENDS_MEASURED] = measured_ends(believed(case), ends)
    trials = []
    for name, (of, uncertain) in observers.items():
        told = observed(ResistanceObserver(of.wire, of.stress, uncertain), record)
        score = scores(told, record, float(record.strain.max()))
        trials.append(Trial({**about, "ends": name, **score}, record, told))
    return trials


def _alike(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Rows of the same wire, sensor and ends together."""
    by: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        key = row["resistance"], row["current_full_scale_mA"], row["ends"]
        by.setdefault(key, []).append(row)
    return list(by.values())


def _together(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The scores of random wires together: root of the mean square, worst, mean coverage."""
    rms, p95, worst, coverage = (np.array([row[key] for row in rows]) for key in SCORES)
    return rows[0] | {
        "rms_of_stroke": float(np.sqrt(np.mean(rms**2))),
        "p95_of_stroke": float(p95.max()),
        "worst_of_stroke": float(worst.max()),
        "coverage": float(coverage.mean()),
    }


def _check(row: dict[str, Any]) -> dict[str, Any]:
    what = f"{row['resistance']}, {1e-3 * row['current_full_scale_mA']:g} A, ends {row['ends']}"
    return check(f"coverage of 95 % bands, {what}", row["coverage"], ">= 0.90",
                 agrees=row["coverage"] >= 0.90)  # fmt: skip


SCORES = ("rms_of_stroke", "p95_of_stroke", "worst_of_stroke", "coverage")


def scores(told: Array, record: Record, stroke_max: float) -> dict[str, float]:
    """Errors over the stroke, after the observer has settled, of a wire that is between its ends.

    At an end a wire tells nothing and every observer is right.
    """
    between = (record.strain > BETWEEN * stroke_max) & (
        record.strain < (1.0 - BETWEEN) * stroke_max
    )
    counts = between & (record.t_s > record.t_s[0] + SETTLED_S)
    if not counts.any():
        return {}
    error = (told[counts, 0] - record.strain[counts]) / stroke_max
    return {
        "rms_of_stroke": float(np.sqrt(np.mean(error**2))),
        "p95_of_stroke": float(np.quantile(np.abs(error), 0.95)),
        "worst_of_stroke": float(np.abs(error).max()),
        "coverage": float(np.mean(np.abs(error) * stroke_max <= Z_95 * told[counts, 1])),
    }


def _from_data(out: Path, values: Values) -> dict[str, Any]:
    path = Path(values.data)
    record = _with_u(read(path, values.cell))
    of, uncertain, how = _ends(values, record)
    told = observed(ResistanceObserver(of.wire, of.stress, uncertain), record)
    score = scores(told, record, of.strain_max)
    columns = np.column_stack([record.t_s, told])
    header = "t_s,strain,strain_u,temperature_C"
    with whole(out / "observed.csv") as part:
        np.savetxt(part, columns, delimiter=",", header=header, comments="")
    held = "the file has no strain to compare with" if not score else "errors over the stroke"
    row = {"resistance": path.name, **score}
    return {
        "title": f"Strain of a wire from its resistance: {path.name}",
        "rows": [{"file": path.name, **score}],
        "tables": [_table("Error of the strain over the stroke", [row])] if score else [],
        "figures": [_figure(out, [(path.name, record, told)])],
        "notes": [
            f"{path.name}: {len(record.t_s)} samples, {held}; observed.csv has the estimates.",
            how,
        ],
    }


def _with_u(record: Record) -> Record:
    """The record with an uncertainty wherever the file has none."""
    first_Ohm = record.R_Ohm[np.isfinite(record.R_Ohm)][0]
    known = np.isfinite(record.u_Ohm)
    return replace(record, u_Ohm=np.where(known, record.u_Ohm, OWN_U * first_Ohm))


def _ends(values: Values, record: Record) -> tuple[Case, Uncertain, str]:
    """The wire with its resistances, how uncertain they are, and where they come from."""
    case = Case(SmaWire(n_wires=values.n_wires, supply_V=values.supply_V))
    if values.rig:
        try:
            case = case_of(load_model(values.rig).tables.model, values.cell)
        except ModelError as error:
            raise ModelError(f"{values.rig}: {error}") from None
    if values.ends:
        path = Path(values.ends)
        try:
            case, uncertain = measured_ends(case, read(path, values.cell))
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None
        cold, hot = case.wire.ends_Ohm
        return case, uncertain, (
            f"Ends measured in {path.name}: {cold:.4g} Ohm cold (u {uncertain.martensite:.2%}), "
            f"{hot:.4g} Ohm hot (u {uncertain.austenite:.2%})."
        )  # fmt: skip
    first_Ohm = record.R_Ohm[np.isfinite(record.R_Ohm)][0]
    scale = first_Ohm / case.wire.ends_Ohm[0]
    wire = replace(
        case.wire,
        martensite_Ohm_per_m=scale * case.wire.martensite_Ohm_per_m,
        austenite_Ohm_per_m=scale * case.wire.austenite_Ohm_per_m,
    )
    how = f"The wire's resistances were scaled by {scale:.4g} to its first, {first_Ohm:.4g} Ohm."
    return replace(case, wire=wire), Uncertain(), how


def _table(title: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns = ["wire", "differs in", "full scale", "ends", "RMS", "95 % below", "worst", "coverage"]
    return as_table(
        title,
        columns,
        [
            [
                r["resistance"],
                r.get("differs", ""),
                f"{1e-3 * r['current_full_scale_mA']:g} A" if "current_full_scale_mA" in r else "",
                r.get("ends", ""),
                *(f"{100 * r[key]:.2f} %" for key in SCORES[:3] if key in r),
                *(f"{100 * r[key]:.0f} %" for key in SCORES[3:] if key in r),
            ]
            for r in rows
        ],
    )


def _figure(out: Path, drawn: list[tuple[str, Record, Array]]) -> dict[str, str]:
    with styled_figure(9.0, 2.2 * -(-len(drawn) // 2) + 0.6) as figure:
        axes = figure.subplots(-(-len(drawn) // 2), min(2, len(drawn)), squeeze=False)
        for axis, (title, record, told) in zip(axes.flat, drawn, strict=False):
            shown = slice(None, None, max(1, len(told) // SHOWN))
            t_s, width, strain = record.t_s[shown], 200.0 * told[shown, 1], 100.0 * told[shown, 0]
            axis.fill_between(t_s, strain - width, strain + width, color=MODEL, alpha=0.25, lw=0)
            axis.plot(t_s, strain, color=MODEL, lw=1.0, label="from resistance")
            axis.plot(t_s, 100.0 * record.strain[shown], color=MEASURED, lw=0.7, label="true")
            axis.set_title(title, fontsize=8)
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        for axis in axes[:, 0]:
            axis.set_ylabel("strain [%]")
        axes[0, 0].legend(frameon=False, fontsize=7)
        caption = (
            "Strain of a wire observed from its resistance, with two standard deviations, and the "
            "true strain."
        )
        return saved(out, "resistance.png", figure, caption)
