"""Sections of `hil report` for impacts: the paper's Tables III and IV, Figs. 9 and 10."""

import json
import math
from collections.abc import Mapping

import numpy as np
import xarray as xr

from hil.pages.section import Section
from hil.record.summary import plain
from hil.systems.pantograph.cases import PREDICTED, SHOWN, Impact, as_json, evaluate
from hil.systems.pantograph.figures import COVERAGE, draw_against, draw_curves
from hil.systems.pantograph.impact import (
    ASYMMETRIC_M,
    SYMMETRIC_M,
    TABLE_III,
    TABLE_IV,
    TABLE_V,
    TABLE_VI_F_N,
    TABLE_VI_F_T,
)


def sections(run: xr.Dataset) -> list[Section]:
    """Return the sections of the page, with the same figures as JSON."""
    impact = evaluate(run)
    simulated = bool(run.attrs.get("simulated"))
    symmetric = bool(np.allclose(impact.pose.E_m, SYMMETRIC_M, rtol=0.0, atol=1e-9))
    printed = _printed(impact, symmetric)
    x, y = impact.pose.E_m
    number = 9 if symmetric else 10
    seen = [case for case in impact.cases if case.trials]
    parts = [
        Section(
            "Predicted impacts (the paper's Table III or V)",
            [f"Tip at ({x:g}, {y:g}) m, T = {1e3 * impact.energy_J:g} mJ, an ideal constraint. ±: "
             "effect of the rounding of Table II's parameters. "
             f"The last two columns: with the model's friction, mu = {impact.mu:g}."],
            None,
            ["gamma deg", *(h for k, h, *_ in SHOWN if k not in _AFTER), "T_a+ mJ", "F_t N ms"],
            _predicted_rows(impact, printed[0]),
            {"-impacts.json": write_json(impact)},
        ),
        Section(
            "Measured impacts (the paper's Table IV or VI)",
            ["Mean over the trials ± their standard deviation; below, the standard uncertainty of "
             "the mean from deviation, instruments and parameters. Impulses are integrated from "
             "onset to the end of compression.", *_messages(impact, symmetric)],
            None, ["gamma deg", "trials", *(h for _, h, *_ in SHOWN)],
            _measured_rows(impact, printed[1]),
        ),
    ]  # fmt: skip
    if seen:
        parts += [
            Section(
                f"Energies during an impact (the paper's Fig. {number})",
                ["One trial per case in full colour, the others faint. White dots: just before "
                 "contact, and the end of compression. Crosses: the same as printed, where the "
                 "paper's text has them."],
                draw_curves(seen, simulated, TABLE_IV if printed[1] and symmetric else {}),
            ),
            Section(
                "Predicted against measured",
                [f"Lines and bands: the ideal event with the parameters' rounding. Points: means; "
                 f"bars: {COVERAGE:g} standard uncertainties; crosses: single trials."],
                draw_against(impact, seen, simulated),
            ),
        ]  # fmt: skip
    return parts


_AFTER = ("T_a_after_J", "impulse_t_N_s")
Printed = Mapping[float, tuple[str, ...]]
"""Printed values by gamma in deg; empty where the paper's text has none."""


def _printed(impact: Impact, symmetric: bool) -> tuple[Printed, Printed]:
    """Return what is printed for this pose and energy: computed, and measured after the speed."""
    asymmetric = bool(np.allclose(impact.pose.E_m, ASYMMETRIC_M, rtol=0.0, atol=1e-9))
    if not math.isclose(impact.energy_J, 0.01):
        return {}, {}
    if symmetric:
        digits = (3, 3, 3, 2, 2, 2)
        return TABLE_III, {
            gamma: tuple(f"{value:.{d}f}" for value, d in zip(row, digits, strict=True))
            for gamma, row in TABLE_IV.items()
        }
    if asymmetric:
        return TABLE_V, {g: ("", "", "", "", F_n, TABLE_VI_F_T[g])
                         for g, F_n in TABLE_VI_F_N.items()}  # fmt: skip
    return {}, {}


def _predicted_rows(impact: Impact, printed: Printed) -> list[list[str]]:
    rows = []
    for case in impact.cases:
        row = [f"{case.gamma_deg:g}"]
        for key, _, scale, digits in SHOWN:
            if key in _AFTER:
                continue
            low, high = (scale * value for value in case.band[PREDICTED[key]])
            row.append(
                f"{scale * case.predicted[key]:.{digits}f} ± {(high - low) / 2.0:.{digits}f}"
            )
        if case.rough is None:
            row += ["sliding reverses", ""]
        else:
            row += [f"{1e3 * case.rough.T_a_after_J:.3f}",
                    f"{1e3 * case.friction_N_s(impact.pose):.2f}"]  # fmt: skip
        rows.append(row)
        if case.gamma_deg in printed:
            rows.append(["printed", *printed[case.gamma_deg], "", "", ""])
    return rows


def _measured_rows(impact: Impact, printed: Printed) -> list[list[str]]:
    rows = []
    for case in impact.cases:
        if not case.trials:
            rows.append([f"{case.gamma_deg:g}", "0", *["–"] * len(SHOWN)])
            continue
        rows.append([
            f"{case.gamma_deg:g}", str(len(case.trials)),
            *(f"{s * case.mean(k):.{d}f} ± {s * case.spread(k):.{d}f}" for k, _, s, d in SHOWN),
        ])  # fmt: skip
        rows.append(["", "u", *(f"{s * case.standard(k):.{d}f}" for k, _, s, d in SHOWN)])
        if case.gamma_deg in printed:
            rows.append(["", "printed", "", *printed[case.gamma_deg]])
    return rows


def _messages(impact: Impact, symmetric: bool) -> list[str]:
    messages = [f"Left out: {text}." for text in impact.failed]
    closure = [t.closure for case in impact.cases for t in case.trials if math.isfinite(t.closure)]
    if closure:
        messages.append(
            "Change of the normal velocity across the whole contact, by the encoders over by "
            f"the force: {np.mean(closure):.4f} ± {np.std(closure):.4f} (1 where encoders, force "
            "sensor and the arm's mass agree)."
        )
    if symmetric:
        messages.append(
            "Not reproduced: the printed normal impulses are 10 to 19 % above the impulses "
            "that stop this arm at the printed energies, and the printed tangential impulses "
            "do not fit a constant coefficient of friction."
        )
    else:
        messages.append(
            "Not reproduced: in the paper's asymmetric pose the tangential impulse is above zero "
            "at 0 deg (1.40 N ms) and 15 deg, although the tip slides to +x, and its normal "
            "impulses are 3.5 % below to 6.2 % above those that stop this arm."
        )
    return messages


def write_json(impact: Impact) -> str:
    """Return the text of the JSON file next to the page."""
    return json.dumps(plain(as_json(impact)), indent=2, allow_nan=False) + "\n"
