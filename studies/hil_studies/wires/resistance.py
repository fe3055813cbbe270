"""`hil study resistance`: strain of a wire from its resistance alone, simulated or recorded.

Without a file three wires are simulated, each in colder air than the observer believes, with other
convection and latent heat, heated by duties at random. Current and supply pass the converter of a
board, with noise, once in `every_s`. Errors are over the stroke.

With `data`, the same observer runs on measurements of a real wire: a CSV file with the columns
`t_s`, `resistance_Ohm`, `duty` and, where known, `resistance_u_Ohm` and `strain` (from the hot end,
to compare with), or a recording (.h5) with the resistance of `cell`. `rig` names the file whose
model describes the wire of `cell`; the default is Flexinol 0.10 mm. The wire must be cold at first:
its resistances are scaled to the first reading.
"""

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from hil.config.table import NotNegative, Positive, Table
from hil.devices.board import protocol
from hil.devices.board.resistance import FULL_COUNTS, Chain
from hil.errors import ModelError
from hil.experiment.board_limits import thermal_cells
from hil.experiment.load import load_model
from hil.mechanics.arrays import Array
from hil.mechanics.sma.observer import ResistanceObserver
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.stress import Branch, StressLaw
from hil.mechanics.sma.stressed import advance as advance_stressed
from hil.mechanics.sma.stressed import places, row, stroke
from hil.mechanics.sma.wire import SmaWire, advance, ohm_per_m_of, wire_laws
from hil.pages.study import as_table, saved
from hil.pages.style import MEASURED, MODEL, styled_figure
from hil.platform.whole_files import whole
from hil.record.read import open_run

PERIOD_S, HOLD_S = 0.004, 4.0
LEVELS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SETTLED_S = 2.0  # left out of the errors: the observer begins without a reading
SHIPPED_mA, FINE_mA, SUPPLY_FULL_mV = 2000, 250, 10000
COLUMNS = ("t_s", "resistance_Ohm", "duty")
BETWEEN = 0.01  # of the stroke, from either end
OWN_U = 0.001  # assumed where a file gives none: of the first resistance

LIVELY = Resistivity(martensite_per_K=8e-4, austenite_per_K=3e-4, per_strain=2.0)  # assumed
STRESS_Pa = 150e6
FLEXINOL = StressLaw(  # docs/wires.md, fitted to loops at 50 and 200 MPa
    heating=Branch(78.3, 8.3e6, 1.05, 8.2, -3.9, 0.52, 0.0020e-6),
    cooling=Branch(56.3, 7.5e6, 1.23, 8.0, -3.4, 0.52, 0.0008e-6),
    stroke_min=0.040,
    stroke_max=0.041,
    stroke_rate_per_Pa=0.012e-6,
    modulus_A_Pa=70e9,
    modulus_M_Pa=1.0 / (1.0 / 70e9 + 25e-12),
)


class Values(Table):
    """What `--set` may change: a file of a real wire, or the simulated ones."""

    data: str = ""
    rig: str = ""
    cell: str = ""
    duration_s: Positive = 120.0
    every_s: Positive = 0.052
    noise_counts: Annotated[NotNegative, Field(le=50.0)] = 0.5
    supply_V: Positive = 9.0
    n_wires: Annotated[int, Field(ge=1)] = 4
    seed: int = 1


@dataclass(frozen=True)
class Record:
    """What an observer gets, and what it is held against: (n,) arrays; NaN where there is none."""

    t_s: Array
    duty: Array
    R_Ohm: Array
    u_Ohm: Array
    strain: Array


@dataclass(frozen=True)
class Case:
    """A wire, and the law and stress that it is under."""

    name: str
    wire: SmaWire
    stress: tuple[StressLaw, float] | None = None


def cases(values: Values) -> list[Case]:
    """The simulated wires."""
    plain = SmaWire(n_wires=values.n_wires, supply_V=values.supply_V)
    cold = 1.0 + LIVELY.per_strain * LIVELY.strain  # so that the cold wire is the same
    lively = replace(
        plain, martensite_Ohm_per_m=plain.martensite_Ohm_per_m / cold, resistivity=LIVELY
    )
    return [
        Case("phases alone", plain),
        Case("temperature and strain too", lively),
        Case("the same under 150 MPa", lively, (FLEXINOL, STRESS_Pa)),
    ]


def run(out: Path, values: Values) -> dict[str, Any]:
    """Observe, draw into the folder `out`; the results, as written to results.json.

    Raises
    ------
    ModelError
        The file of a real wire, or the wire, is not usable; one line.
    """
    return _own(out, values) if values.data else _simulated(out, values)


def _simulated(out: Path, values: Values) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    drawn = []
    for case in cases(values):
        for full_mA in (SHIPPED_mA, FINE_mA):
            record = simulated(case, values, full_mA)
            observer = ResistanceObserver(case.wire, case.stress)
            told = observed(observer, record)
            score = scores(told, record, observer.strain_max)
            rows.append({"resistance": case.name, "current_full_scale_mA": full_mA, **score})
            drawn.append((f"{case.name}: {1e-3 * full_mA:g} A full scale", record, told))
    return {
        "title": "Strain of a wire from its resistance",
        "rows": rows,
        "checks": [
            {
                "what": f"RMS over the stroke, {r['resistance']}, {1e-3 * FINE_mA:g} A full scale",
                "value": r["rms_of_stroke"],
                "expected": "<= 0.01",
                "unit": "",
                "agrees": r["rms_of_stroke"] <= 0.01,
            }
            for r in rows
            if r["current_full_scale_mA"] == FINE_mA
        ],
        "tables": [_table(rows)],
        "figures": [_figure(out, drawn)],
        "notes": [
            "The wire's air is 2 K colder than the observer believes, its convection 10 % and its "
            "latent heat 5 % different; its resistances are known.",
            "Errors count where the strain is between 1 and 99 % of the stroke.",
            f"The converter has {values.noise_counts:g} counts of noise beside its rounding, and "
            f"gives a resistance every {1e3 * values.every_s:g} ms.",
        ],
    }


def simulated(case: Case, values: Values, full_mA: int) -> Record:
    """A wire that differs from the model, through the chain of a board."""
    rng = np.random.default_rng(values.seed)
    wire = case.wire
    true = replace(
        wire,
        ambient_C=wire.ambient_C - 2.0,
        convection_W_per_m2_K=1.1 * wire.convection_W_per_m2_K,
        latent_heat_J_per_kg=0.95 * wire.latent_heat_J_per_kg,
    )
    n = round(values.duration_s / PERIOD_S)
    levels = rng.choice(np.array(LEVELS), n).astype(np.float64)
    duty = np.repeat(levels, round(HOLD_S / PERIOD_S))[:n]
    limits = protocol.default_limits() | {
        "current_full_scale_mA": full_mA,
        "supply_full_scale_mV": SUPPLY_FULL_mV,
    }
    chain, every = Chain.of(limits, 0.0, 0.0), max(1, round(values.every_s / PERIOD_S))
    R, u = np.full((2, n), np.nan)
    true_Ohm, strain = _stepped(true, case.stress, duty)
    for k in range(0, n, every):
        volts = _counts(1e3 * values.supply_V / SUPPLY_FULL_mV, values, rng)
        amps = _counts(1e3 * values.supply_V / true_Ohm[k] / full_mA, values, rng)
        R[k], u[k] = chain.ohms(amps, volts)
        u[k] *= np.hypot(1.0, values.noise_counts * 12.0**0.5)
    t_s = np.arange(1, n + 1, dtype=np.float64) * PERIOD_S
    return Record(t_s, duty, R, u, strain)


def _stepped(
    wire: SmaWire, stress: tuple[StressLaw, float] | None, duty: Array
) -> tuple[Array, Array]:
    """Resistance of the cell and strain of the wire after every period."""
    law, T, xi = wire_laws([wire])[0], wire.ambient_C, 0.0
    ohm, strain = np.empty((2, len(duty)))
    strain_max = wire.resistivity.strain
    if stress is not None:
        c = row(stress[0])
        strain_max, slope = stroke(c, stress[1])
        place = places(c, stress[1], slope)
    for k, d in enumerate(duty):
        if stress is None:
            T, xi = advance(law, d, T, xi, PERIOD_S)
        else:
            T, xi = advance_stressed(law, c, place, d, T, xi, PERIOD_S)
        strain[k] = strain_max * (1.0 - xi)
        ohm[k] = wire.cell_m * ohm_per_m_of(law, T, xi, strain[k])
    return ohm, strain


def _counts(share: float, values: Values, rng: np.random.Generator) -> int:
    noisy = share * FULL_COUNTS + values.noise_counts * rng.standard_normal()
    return int(min(FULL_COUNTS, max(0, round(noisy))))


def observed(observer: ResistanceObserver, record: Record) -> Array:
    """(n, 3): strain, its standard uncertainty and the temperature at every sample."""
    told = np.empty((len(record.t_s), 3))
    before_s = record.t_s[0]
    for k, t_s in enumerate(record.t_s):
        state = observer.step(record.duty[k], t_s - before_s, record.R_Ohm[k], record.u_Ohm[k])
        told[k] = state.strain, state.u_strain, state.T_C
        before_s = t_s
    return told


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
    }


def _own(out: Path, values: Values) -> dict[str, Any]:
    path = Path(values.data)
    record = read(path, values.cell)
    wire = _wire(values)
    first_Ohm = record.R_Ohm[np.isfinite(record.R_Ohm)][0]
    scale = first_Ohm / wire.ends_Ohm[0]
    wire = replace(
        wire,
        martensite_Ohm_per_m=scale * wire.martensite_Ohm_per_m,
        austenite_Ohm_per_m=scale * wire.austenite_Ohm_per_m,
    )
    u_Ohm = np.where(np.isfinite(record.u_Ohm), record.u_Ohm, OWN_U * first_Ohm)
    record = replace(record, u_Ohm=u_Ohm)
    observer = ResistanceObserver(wire)
    told = observed(observer, record)
    score = scores(told, record, observer.strain_max)
    columns = np.column_stack([record.t_s, told])
    header = "t_s,strain,strain_u,temperature_C"
    with whole(out / "observed.csv") as part:
        np.savetxt(part, columns, delimiter=",", header=header, comments="")
    held = "the file has no strain to compare with" if not score else "errors over the stroke"
    return {
        "title": f"Strain of a wire from its resistance: {path.name}",
        "rows": [{"file": path.name, **score}],
        "tables": [_table([{"resistance": path.name, **score}])] if score else [],
        "figures": [_figure(out, [(path.name, record, told)])],
        "notes": [
            f"{path.name}: {len(record.t_s)} samples, {held}; observed.csv has the estimates.",
            f"The wire's resistances were scaled by {scale:.4g} to its first, {first_Ohm:.4g} Ohm.",
        ],
    }


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


def read(path: Path, cell: str) -> Record:
    """The measurements of a wire in a CSV file or a recording.

    Raises
    ------
    ModelError
        Columns are missing or not numbers, times do not rise, or there is no resistance.
    """
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    found = _recorded(path, cell) if path.suffix == ".h5" else _columns(path)
    n = len(found["t_s"])
    none = np.full(n, np.nan)
    record = Record(
        found["t_s"],
        found["duty"],
        found["resistance_Ohm"],
        found.get("resistance_u_Ohm", none),
        found.get("strain", none),
    )
    if n < 2 or not (np.diff(record.t_s) > 0.0).all():
        raise ModelError(f"{path}: t_s must rise from row to row")
    if not ((record.duty >= 0.0) & (record.duty <= 1.0)).all():
        raise ModelError(f"{path}: duty must be within 0 to 1")
    if not (record.R_Ohm > 0.0).any():
        raise ModelError(f"{path}: no resistance: every value of resistance_Ohm is empty or 0")
    return record


def _columns(path: Path) -> dict[str, Array]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0]) if rows else []
    if missing := [name for name in COLUMNS if name not in names]:
        raise ModelError(f"{path}: has no column {', '.join(missing)}: it has {', '.join(names)}")
    try:
        return {n: np.array([float(r[n] or "nan") for r in rows]) for n in names}
    except (TypeError, ValueError):
        raise ModelError(f"{path}: a value is not a number: every column must be numbers") from None


def _recorded(path: Path, cell: str) -> dict[str, Array]:
    run = open_run(path)
    name = f"{cell}.resistance_Ohm"
    if name not in run:
        has = [str(c).removesuffix(".resistance_Ohm") for c in run if str(c).endswith("ce_Ohm")]
        remedy = f"give cell, one of {', '.join(has)}" if has else "its board measured none"
        raise ModelError(f"{path}: no resistance of cell '{cell}': {remedy}")
    at = list(run.cell.values).index(cell)
    duty = run["cells_duty"] if "cells_duty" in run else run["cells_commanded"]
    return {
        "t_s": np.asarray(run.t_s, dtype=float),
        "resistance_Ohm": np.asarray(run[name]),
        "resistance_u_Ohm": np.asarray(run[f"{cell}.resistance_u_Ohm"]),
        "duty": np.asarray(duty[:, at], dtype=float),
    }


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns = ["wire", "full scale", "RMS", "95 % below", "worst"]
    return as_table(
        "Error of the strain over the stroke",
        columns,
        [
            [
                r["resistance"],
                f"{1e-3 * r['current_full_scale_mA']:g} A" if "current_full_scale_mA" in r else "",
                *(f"{100 * r[key]:.2f} %" for key in
                  ("rms_of_stroke", "p95_of_stroke", "worst_of_stroke")),
            ]
            for r in rows
        ],
    )  # fmt: skip


def _figure(out: Path, drawn: list[tuple[str, Record, Array]]) -> dict[str, str]:
    with styled_figure(9.0, 2.2 * -(-len(drawn) // 2) + 0.6) as figure:
        axes = figure.subplots(-(-len(drawn) // 2), min(2, len(drawn)), squeeze=False)
        for axis, (title, record, told) in zip(axes.flat, drawn, strict=False):
            width = 200.0 * told[:, 1]
            strain = 100.0 * told[:, 0]
            axis.fill_between(
                record.t_s, strain - width, strain + width, color=MODEL, alpha=0.25, lw=0
            )
            axis.plot(record.t_s, strain, color=MODEL, lw=1.0, label="from resistance")
            axis.plot(record.t_s, 100.0 * record.strain, color=MEASURED, lw=0.7, label="true")
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
