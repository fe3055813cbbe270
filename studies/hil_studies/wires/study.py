"""`hil study wires`: laws of wires under stress, fitted to some loops, predicting others.

Without files it takes the shipped loops of NiTiCo and NiTiHf: each loop in turn is left out of the
fit and predicted, beside the law without stress and those of Liang & Rogers, Brinson, and Boyd &
Lagoudas. With `fit` and `predict` it does so with anybody's files (`loops`).
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hil.config.table import Positive, Table
from hil.errors import ModelError
from hil.identification.wire_loops import figures
from hil.identification.wire_loops.fit import (
    NAMES,
    Fitted,
    band,
    fit,
    isobaric,
    rms_of_stroke,
    worst_of_stroke,
)
from hil.identification.wire_loops.loops import SHIPPED, Loop, shipped
from hil.identification.wire_loops.recorded import read_loop
from hil.pages.study import as_table
from hil_studies.wires.heat import CONTRACTS_S, times
from hil_studies.wires.rivals import RIVALS

OURS = "this law"
Files = Annotated[list[str], Field(max_length=100)]
Strain = Callable[[Loop], NDArray[np.float64]]


class Values(Table):
    """What `--set` may change: the files to fit and to predict, and the wire's strength."""

    fit: Files = Field(default=[])
    predict: Files = Field(default=[])
    strength_MPa: Positive = 1000.0  # assumed: of NiTi wire


def run(out: Path, values: Values) -> dict[str, Any]:
    """Fit, predict, draw into the folder `out`; the results, as written to results.json."""
    if values.predict and not values.fit:
        raise ModelError("predict: files to predict, but none to fit: give fit=[...]")
    if values.fit:
        return _loops(out, values)
    return _shipped(out)


def _loops(out: Path, values: Values) -> dict[str, Any]:
    fitted_to = [read_loop(Path(name), values.strength_MPa) for name in values.fit]
    others = [read_loop(Path(name), values.strength_MPa) for name in values.predict]
    fitted = fit(fitted_to)
    laws = _laws(fitted, fitted_to)
    return {
        "title": f"Wires under stress: {len(fitted_to)} loops fitted, {len(others)} predicted",
        "fit": [_scores(fitted, loop) for loop in fitted_to],
        "predict": [_scores(fitted, loop) for loop in others],
        "parameters": _parameters(fitted),
        "laws": {
            name: [rms_of_stroke(strain(loop), loop) for loop in others]
            for name, strain in laws.items()
        },
        "tables": [
            *([_table("RMS over the stroke, loops predicted", others, laws)] if others else []),
            _table("RMS over the stroke, loops fitted", fitted_to, laws),
            _parameter_table(fitted),
        ],
        "figures": [
            figures.loops(
                out,
                "loops.png",
                [
                    *((fitted, loop, "fitted") for loop in fitted_to),
                    *((fitted, loop, "predicted") for loop in others),
                ],
            )
        ],
        "notes": _notes(fitted, others),
    }


def _shipped(out: Path) -> dict[str, Any]:
    tables, drawn, results = [], [], {}
    for name in SHIPPED:
        loops = shipped(name)
        whole = fit(loops)
        panels: list[tuple[Fitted, Loop, str]] = []
        left_out: list[dict[str, Any]] = []
        laws_out: dict[str, list[float]] = {}
        for loop in loops:
            rest = [other for other in loops if other is not loop]
            fitted = fit(rest)
            panels.append((fitted, loop, "predicted"))
            left_out.append(_scores(fitted, loop))
            for law, strain in _laws(fitted, rest).items():
                laws_out.setdefault(law, []).append(rms_of_stroke(strain(loop), loop))
        columns = ["left out of the fit", *(f"{loop.stress_Pa / 1e6:.0f} MPa" for loop in loops)]
        rows = [[law, *(f"{rms:.3f}" for rms in values)] for law, values in laws_out.items()]
        rows.append(["within this law's band", *(f"{s['band_holds']:.0%}" for s in left_out)])
        tables += [
            as_table(f"{name}: RMS over the stroke", columns, rows),
            {**_parameter_table(whole), "title": f"{name}: parameters, all loops fitted"},
        ]
        between = _between(loops)
        tables.append(_between_table(name, loops, between))
        drawn.append(figures.loops(out, f"{name}.png", panels))
        results[name] = {
            "left_out": left_out,
            "between": between,
            "laws": laws_out,
            "parameters": _parameters(whole),
        }
    heat = times()
    tables.append(_heat_table(heat))
    return {
        "title": "Wires under stress: each shipped loop predicted from the others",
        **results,
        "heat": heat,
        "tables": tables,
        "figures": drawn,
        "notes": [
            "The lowest stress of each set is predicted badly by every law: the stroke without "
            "load does not follow from loops under load.",
            "Every law has the same optimiser, residuals and thermal expansion. 'H(sigma)' gives a "
            "law the stroke of this project's, which its authors did not.",
        ],
    }


def _between(loops: Sequence[Loop]) -> list[dict[str, Any]]:
    """Scores of the loops between two that are fitted: the second lowest stress and the highest."""
    lowest, *others, highest = loops[1:]
    fitted = fit([lowest, highest])
    return [_scores(fitted, loop) for loop in others]


def _between_table(
    name: str, loops: Sequence[Loop], scores: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    low_MPa, high_MPa = (loop.stress_Pa / 1e6 for loop in (loops[1], loops[-1]))
    return as_table(
        f"{name}: loops between two fitted, {low_MPa:.0f} and {high_MPa:.0f} MPa",
        ["", *(f"{s['stress_MPa']:.0f} MPa" for s in scores)],
        [
            ["RMS over the stroke", *(f"{s['rms_of_stroke']:.3f}" for s in scores)],
            ["within the band", *(f"{s['band_holds']:.0%}" for s in scores)],
            ["half width of the band", *(f"{s['band_half_width_of_stroke']:.3f}" for s in scores)],
        ],
    )


def _heat_table(rows: Sequence[dict[str, float]]) -> dict[str, Any]:
    columns = ["diameter", "current", "h", "contracts", "printed", "cools", "printed",
               "both with printed heats"]  # fmt: skip
    return as_table(
        "Flexinol of 90 degC: contraction and cooling, against the maker's table",
        columns,
        [
            [
                f"{r['diameter_mm']:g} mm", f"{r['current_A']:g} A",
                f"{r['convection_W_per_m2_K']:.0f} W/m2 K", _seconds(r["contracts_s"]),
                f"{CONTRACTS_S:g} s", _seconds(r["cools_s"]), f"{r['makers_cools_s']:g} s",
                f"{_seconds(r['contracts_printed_heat_s'])}, "
                f"{_seconds(r['cools_printed_heat_s'])}",
            ]
            for r in rows
        ],
    )  # fmt: skip


def _seconds(t_s: float) -> str:
    return f"{t_s:.2g} s" if t_s < np.inf else "never"


def _laws(fitted: Fitted, loops: Sequence[Loop]) -> dict[str, Strain]:
    """The strain of every law fitted to these loops, this project's first."""
    laws: dict[str, Strain] = {OURS: lambda loop: isobaric(fitted.law, loop)}
    return laws | {rival.name: rival.fitted(loops) for rival in RIVALS}


def _scores(fitted: Fitted, loop: Loop) -> dict[str, Any]:
    strain, half = band(fitted, loop)
    return {
        "file": loop.name,
        "stress_MPa": loop.stress_Pa / 1e6,
        "rms_of_stroke": rms_of_stroke(strain, loop),
        "worst_of_stroke": worst_of_stroke(strain, loop),
        "band_holds": float(np.mean(np.abs(strain - loop.strain) <= half)),
        "band_half_width_of_stroke": float(half.mean() / loop.stroke),
    }


def _table(title: str, loops: Sequence[Loop], laws: dict[str, Strain]) -> dict[str, Any]:
    columns = [
        "law",
        *(f"{Path(loop.name).name}, {loop.stress_Pa / 1e6:.0f} MPa" for loop in loops),
    ]
    rows = [
        [name, *(f"{rms_of_stroke(strain(loop), loop):.3f}" for loop in loops)]
        for name, strain in laws.items()
    ]
    return as_table(title, columns, rows)


def _parameters(fitted: Fitted) -> dict[str, dict[str, Any]]:
    """Every parameter as fitted, its standard deviation, and whether the loops tell it."""
    return {
        name: {"value": value, "sd": sd, "identified": name not in fitted.unidentified}
        for name, value, sd in zip(NAMES, fitted.theta, fitted.sd, strict=True)
    }


def _parameter_table(fitted: Fitted) -> dict[str, Any]:
    rows = [
        [name, f"{p['value']:.4g}", f"{2.0 * p['sd']:.2g}", "loops" if p["identified"] else "prior"]
        for name, p in _parameters(fitted).items()
    ]
    columns = ["parameter", "value", "2 standard deviations", "determined by"]
    return as_table("Parameters", columns, rows)


def _notes(fitted: Fitted, others: Sequence[Loop]) -> list[str]:
    notes = ["Strain counts from each loop's hot end: a gauge's zero is arbitrary."]
    if fitted.unidentified:
        notes.append("Not identified by these loops: " + ", ".join(fitted.unidentified) + ".")
    low, high = fitted.stresses_Pa
    outside = [Path(o.name).name for o in others if not low <= o.stress_Pa <= high]
    if outside:
        notes.append(
            f"Beyond the stresses fitted ({low / 1e6:.0f} to {high / 1e6:.0f} MPa), where the law "
            "extrapolates: " + ", ".join(outside) + "."
        )
    return notes
