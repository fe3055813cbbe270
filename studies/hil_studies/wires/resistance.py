"""`hil study resistance`: strain of a wire from its resistance alone, simulated or recorded.

Without a file wires are simulated that differ from what the observer believes: each in one thing,
and `draws` of them in everything at random, as much as the observer believes to be uncertain. These
are observed with resistances as printed, and with both ends measured on the wire itself. Errors are
over the stroke; coverage is the share of errors within 1.96 standard uncertainties.

With `data`, the same observer runs on measurements of a real wire: a CSV file with the columns
`t_s`, `resistance_Ohm`, `duty` and, where known, `resistance_u_Ohm` and `strain` (from the hot end,
to compare with), or a recording (.h5) with the resistance of `cell`. `rig` names the file whose
model describes the wire of `cell`; the default is Flexinol 0.10 mm. `ends` is a file of the same
kind in which the wire is cold at first and then hot; without it the wire's resistances are scaled
to the first reading of `data`, at which it must be cold.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from hil.config.table import NotNegative, Positive, Table
from hil.errors import ModelError
from hil.experiment.board_limits import thermal_cells
from hil.experiment.load import load_model
from hil.mechanics.arrays import Array
from hil.mechanics.sma.observer import ResistanceObserver, Uncertain
from hil.mechanics.sma.wire import SmaWire
from hil.pages.study import as_table, check, saved
from hil.pages.style import MEASURED, MODEL, styled_figure
from hil.platform.whole_files import whole
from hil_studies.wires.resistance_ends import measured_ends
from hil_studies.wires.resistance_files import read
from hil_studies.wires.resistance_plant import (
    DEVIATIONS,
    Board,
    Case,
    Record,
    cases,
    drawn,
    duty_of_ends,
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
    every_s: Positive = 0.052
    noise_counts: Annotated[NotNegative, Field(le=50.0)] = 0.5
    supply_V: Positive = 9.0
    n_wires: Annotated[int, Field(ge=1)] = 4
    draws: Annotated[int, Field(ge=0)] = 4
    seed: int = 1


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
    return _own(out, values) if values.data else _simulated(out, values)


def _simulated(out: Path, values: Values) -> dict[str, Any]:
    believed = cases(values.n_wires, values.supply_V)
    different = [
        _trial(case, name, deviate(case), FINE_mA, values, values.seed)
        for case in believed
        for name, deviate in DEVIATIONS.items()
        if name != "stress +30 MPa" or case.stress is not None
    ]
    random = [
        _of_draws(case, full_mA, ends, values)
        for case in believed
        for full_mA in (SHIPPED_mA, FINE_mA)
        for ends in (ENDS_AS_PRINTED, ENDS_MEASURED)
    ]
    rows = [trial.row for trial in different] + random
    return {
        "title": "Strain of a wire from its resistance",
        "rows": rows,
        "checks": [_check(row) for row in random if values.draws],
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
            f"The converter has {values.noise_counts:g} counts of noise beside its rounding, and "
            f"gives a resistance every {1e3 * values.every_s:g} ms.",
        ],
    }


def _trial(
    case: Case,
    differs: str,
    true: Case,
    full_mA: int,
    values: Values,
    seed: int,
    ends: str = ENDS_AS_PRINTED,
) -> Trial:
    board = Board(values.every_s, values.noise_counts, full_mA)
    wire, uncertain = case.wire, Uncertain()
    if ends == ENDS_MEASURED:
        wire, uncertain = measured_ends(case, simulated(true, board, duty_of_ends(), seed))
    record = simulated(true, board, random_duty(values.duration_s, seed), seed)
    told = observed(ResistanceObserver(wire, case.stress, uncertain), record)
    row = {
        "resistance": case.name,
        "differs": differs,
        "current_full_scale_mA": full_mA,
        "ends": ends,
        **scores(told, record, float(record.strain.max())),
    }
    return Trial(row, record, told)


def _of_draws(case: Case, full_mA: int, ends: str, values: Values) -> dict[str, Any]:
    """The scores of random wires together: root of the mean square, worst, mean coverage."""
    rows = [
        _trial(
            case,
            "everything",
            drawn(case, Uncertain(), np.random.default_rng([values.seed, i])),
            full_mA,
            values,
            values.seed + i,
            ends,
        ).row
        for i in range(values.draws)
    ]
    of = {key: np.array([row[key] for row in rows if key in row]) for key in SCORES}
    name = {
        "resistance": case.name,
        "differs": "everything",
        "current_full_scale_mA": full_mA,
        "ends": ends,
    }
    if not len(of["coverage"]):
        return name
    return name | {
        "rms_of_stroke": float(np.sqrt(np.mean(of["rms_of_stroke"] ** 2))),
        "p95_of_stroke": float(of["p95_of_stroke"].max()),
        "worst_of_stroke": float(of["worst_of_stroke"].max()),
        "coverage": float(of["coverage"].mean()),
    }


def _check(row: dict[str, Any]) -> dict[str, Any]:
    what = f"{row['resistance']}, {1e-3 * row['current_full_scale_mA']:g} A, ends {row['ends']}"
    return check(f"coverage of 95 % bands, {what}", row["coverage"], ">= 0.90",
                 agrees=row["coverage"] >= 0.90)  # fmt: skip


def observed(observer: ResistanceObserver, record: Record) -> Array:
    """(n, 3): strain, its standard uncertainty and the temperature at every sample."""
    told = np.empty((len(record.t_s), 3))
    before_s = record.t_s[0]
    for k, t_s in enumerate(record.t_s):
        state = observer.step(record.duty[k], t_s - before_s, record.R_Ohm[k], record.u_Ohm[k])
        told[k] = state.strain, state.u_strain, state.T_C
        before_s = t_s
    return told


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


def _own(out: Path, values: Values) -> dict[str, Any]:
    path = Path(values.data)
    record = _with_u(read(path, values.cell))
    wire, uncertain, how = _ends(values, record)
    told = observed(ResistanceObserver(wire, None, uncertain), record)
    score = scores(told, record, wire.resistivity.strain)
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


def _ends(values: Values, record: Record) -> tuple[SmaWire, Uncertain, str]:
    """The wire with its resistances, how uncertain they are, and where they come from."""
    wire = _wire(values)
    if values.ends:
        path = Path(values.ends)
        try:
            wire, uncertain = measured_ends(Case("", wire), read(path, values.cell))
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None
        cold, hot = wire.ends_Ohm
        return wire, uncertain, (
            f"Ends measured in {path.name}: {cold:.4g} Ohm cold (u {uncertain.martensite:.2%}), "
            f"{hot:.4g} Ohm hot (u {uncertain.austenite:.2%})."
        )  # fmt: skip
    first_Ohm = record.R_Ohm[np.isfinite(record.R_Ohm)][0]
    scale = first_Ohm / wire.ends_Ohm[0]
    wire = replace(
        wire,
        martensite_Ohm_per_m=scale * wire.martensite_Ohm_per_m,
        austenite_Ohm_per_m=scale * wire.austenite_Ohm_per_m,
    )
    how = f"The wire's resistances were scaled by {scale:.4g} to its first, {first_Ohm:.4g} Ohm."
    return wire, Uncertain(), how


def _wire(values: Values) -> SmaWire:
    if not values.rig:
        return SmaWire(n_wires=values.n_wires, supply_V=values.supply_V)
    rig = load_model(values.rig)
    cells = thermal_cells(rig.tables.model, rig.models[0])
    if values.cell not in cells:
        named = ", ".join(cells) or "none"
        raise ModelError(
            f"{values.rig}: no wire of cell '{values.cell}': give cell, one of {named}"
        )
    return cells[values.cell].wire


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
