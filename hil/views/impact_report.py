"""What a recording of the impact experiment shows: the paper's Tables III and IV, Figs. 9 and 10.

Every trial is analysed on its own (`hil.models.impact_trial`); a case's figures are the mean over
its trials with their spread, and the standard uncertainty of that mean: the spread over sqrt(n) and
what the instruments and the rounding of the arm's parameters leave open.
"""

import json
import math
import tomllib
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hil.config.build_pantograph import ANGLES, NORMAL, TANGENTIAL, build_arm, contact_m
from hil.config.pantograph import ImpactTable, PantographTable
from hil.control.impact import APPROACH, CONTACT
from hil.models import ModelError
from hil.models.impact_trial import Trial, Uncertainty, analyse
from hil.models.pantograph import Elbows, Pantograph, Pose
from hil.models.pantograph_impact import (
    SYMMETRIC_M,
    TABLE_III,
    TABLE_IV,
    Impacts,
    bands,
    predict,
)
from hil.views.section import Section
from hil.views.style import CELL, MEASURED, MODEL, REFERENCE, mark_simulated, plot_style

Matrix = NDArray[np.float64]

# Figure of a trial: key, heading, scale, digits.
SHOWN = (
    ("speed_m_per_s", "speed m/s", 1.0, 4),
    ("T_c_J", "T_c- mJ", 1e3, 3),
    ("T_a_J", "T_a- mJ", 1e3, 3),
    ("T_a_after_J", "T_a+ mJ", 1e3, 3),
    ("xi", "xi", 1.0, 3),
    ("impulse_n_N_s", "F_n N ms", 1e3, 2),
    ("impulse_t_N_s", "F_t N ms", 1e3, 2),
)
# Of these the ideal event says something, under these names of its bands.
PREDICTED = {"speed_m_per_s": "speed_m_per_s", "T_c_J": "T_c_J", "T_a_J": "T_a_J",
             "T_a_after_J": "T_a_J", "xi": "xi", "impulse_n_N_s": "impulse_N_s"}  # fmt: skip
COVERAGE = 2.0  # standard uncertainties that error bars show


@dataclass(frozen=True)
class Case:
    """The trials at one angle, and what the ideal event says of them.

    Attributes
    ----------
    said, band : of the ideal event with the commanded energy, and with parameters in rounding
    at_speed : such bands at the speed and angle that were measured
    """

    gamma_deg: float
    trials: list[Trial]
    said: dict[str, float]
    band: dict[str, tuple[float, float]]
    at_speed: dict[str, tuple[float, float]]

    def values(self, key: str) -> Matrix:
        return np.array([getattr(trial, key) for trial in self.trials])

    def mean(self, key: str) -> float:
        return float(self.values(key).mean())

    def spread(self, key: str) -> float:
        """Standard deviation over the trials; 0 for one."""
        values = self.values(key)
        return float(values.std(ddof=1)) if len(values) > 1 else 0.0

    def standard(self, key: str) -> float:
        """Standard uncertainty of the mean: spread, instruments, parameters."""
        instruments = float(np.mean([trial.standard.get(key, 0.0) for trial in self.trials]))
        low, high = self.at_speed.get(PREDICTED.get(key, ""), (0.0, 0.0))
        parameters = (high - low) / math.sqrt(12.0)
        random = self.spread(key) / math.sqrt(len(self.trials))
        return math.hypot(random, instruments, parameters)


@dataclass(frozen=True)
class Impact:
    """Everything that the report shows."""

    rig: Pantograph
    pose: Pose
    energy_J: float
    cases: list[Case]
    failed: list[str]


def is_impact(run: xr.Dataset) -> bool:
    """Whether this is a recording of the impact experiment."""
    table = tomllib.loads(run.attrs["experiment"])
    return bool(table["controller"]["kind"] == "impact")


def evaluate(run: xr.Dataset) -> Impact:
    """Analyse every trial of a recording."""
    tables = tomllib.loads(run.attrs["experiment"])
    controller = ImpactTable.model_validate(tables["controller"])
    model = PantographTable.model_validate(tables["model"])
    rig = Pantograph(build_arm(model).parameters)  # what was measured may be beyond its range
    pose = rig.inverse(contact_m(controller, model), model.elbows)
    known = Uncertainty(
        controller.force_gain_uncertainty,
        controller.sensor_turned_uncertainty_rad,
        _angle_step_rad(tables),
    )
    gamma_deg = controller.gamma_deg
    found: list[list[Trial]] = [[] for _ in gamma_deg]
    failed = []
    t_s, q_rad, force_N = _signals(run, tables)
    trial_of, phase = run.trial.values, run.phase.values
    last = int(np.nanmax(trial_of, initial=-1.0))
    for number in range(last + 1):
        rows = np.flatnonzero((trial_of == number) & np.isin(phase, (APPROACH, CONTACT)))
        case = number % len(gamma_deg)
        try:
            found[case].append(
                analyse(rig, pose.assembly, t_s[rows], q_rad[rows], force_N[rows], known)
            )
        except ModelError as error:
            failed.append(f"trial {number} at {gamma_deg[case]:g} deg: {error}")
    ideal = predict(pose, gamma_deg, controller.energy_J)
    band = bands(rig, pose, gamma_deg, controller.energy_J, model.elbows)
    cases = [
        Case(
            gamma_deg=gamma,
            trials=found[i],
            said=_said(ideal, i),
            band=_of_case(band, i),
            at_speed=_at_speed(rig, pose, controller.energy_J, model.elbows, found[i]),
        )
        for i, gamma in enumerate(gamma_deg)
    ]
    return Impact(rig, pose, controller.energy_J, cases, failed)


def _of_case(band: dict[str, Matrix], i: int) -> dict[str, tuple[float, float]]:
    return {k: (float(v[0, i]), float(v[1, i])) for k, v in band.items() if v.ndim == 2}


def _at_speed(
    rig: Pantograph, pose: Pose, energy_J: float, elbows: Elbows, trials: list[Trial]
) -> dict[str, tuple[float, float]]:
    """What the parameters' rounding leaves open of figures that follow from a measured velocity."""
    if not trials:
        return {}
    gamma = float(np.mean([trial.gamma_deg for trial in trials]))
    speed = float(np.mean([trial.speed_m_per_s for trial in trials]))
    return _of_case(bands(rig, pose, [gamma], energy_J, elbows, [speed]), 0)


def _angle_step_rad(tables: dict[str, Any]) -> float:
    """Of the coarser encoder."""
    return max(
        2.0 * math.pi / float(channel["counts_per_turn"])
        for device in tables["devices"].values()
        for channel in device.get("channels", {}).values()
        if channel.get("signal") in ANGLES
    )


def _signals(run: xr.Dataset, tables: dict[str, Any]) -> tuple[Matrix, Matrix, Matrix]:
    """Time, both angles, both forces, by the signals that the channels measure."""
    names = {
        channel["signal"]: name
        for device in tables["devices"].values()
        for name, channel in device.get("channels", {}).items()
        if "signal" in channel
    }
    angles = [run[f"{names[signal]}_measured_rad"].values for signal in ANGLES]
    forces = [run[f"{names[s]}.force_measured_N"].values for s in (NORMAL, TANGENTIAL)]
    return run.t_s.values, np.column_stack(angles), np.column_stack(forces)


def _said(ideal: Impacts, i: int) -> dict[str, float]:
    split = ideal.split
    return {
        "speed_m_per_s": float(ideal.speed_m_per_s[i]), "T_c_J": float(split.T_c_J[i]),
        "T_a_J": float(split.T_a_J[i]), "T_a_after_J": float(split.T_a_J[i]),
        "xi": float(split.xi[i]), "impulse_n_N_s": float(ideal.impulse_N_s[i]),
        "impulse_t_N_s": 0.0,
    }  # fmt: skip


def as_json(impact: Impact) -> dict[str, Any]:
    """Every figure of every case: predicted with its band, and measured."""
    return {
        "pose_m": impact.pose.E_m.tolist(),
        "energy_J": impact.energy_J,
        "cases": [
            {
                "gamma_deg": case.gamma_deg,
                "n_trials": len(case.trials),
                "predicted": case.said,
                "band": case.band,
                "measured": {
                    key: {"mean": case.mean(key), "spread": case.spread(key),
                          "standard_uncertainty": case.standard(key)}
                    for key, *_ in SHOWN
                } if case.trials else {},
                "trials": [
                    {key: getattr(trial, key) for key, *_ in SHOWN}
                    | {"gamma_deg": trial.gamma_deg, "onset_s": trial.onset_s,
                       "end_s": trial.end_s, "closure": trial.closure}
                    for trial in case.trials
                ],
            }
            for case in impact.cases
        ],
        "failed": impact.failed,
    }  # fmt: skip


def sections(run: xr.Dataset, impact: Impact) -> list[Section]:
    """The parts of the page."""
    simulated = bool(run.attrs.get("simulated"))
    symmetric = bool(np.allclose(impact.pose.E_m, SYMMETRIC_M, rtol=0.0, atol=1e-9))
    printed = symmetric and math.isclose(impact.energy_J, 0.01)
    x, y = impact.pose.E_m
    number = 9 if symmetric else 10
    seen = [case for case in impact.cases if case.trials]
    parts = [
        Section(
            "Predicted impacts (the paper's Table III or V)",
            [f"Tip at ({x:g}, {y:g}) m, T = {1e3 * impact.energy_J:g} mJ, an ideal constraint. ±: "
             "how far the figures move while Table II's parameters move within their rounding."],
            None, ["gamma deg", *(h for k, h, *_ in SHOWN if k not in _AFTER)],
            _predicted_rows(impact, printed),
        ),
        Section(
            "Measured impacts (the paper's Table IV or VI)",
            ["Mean over the trials ± their standard deviation; below, the standard uncertainty of "
             "the mean from spread, instruments and parameters. Impulses run from onset to the "
             "end of compression.", *_remarks(impact, printed)],
            None, ["gamma deg", "trials", *(h for _, h, *_ in SHOWN)],
            _measured_rows(impact, printed),
        ),
    ]  # fmt: skip
    if seen:
        parts += [
            Section(
                f"Energies during an impact (the paper's Fig. {number})",
                ["One trial a case, the others faint. White spots: just before contact, and the "
                 "end of compression."],
                _draw_curves(seen, simulated),
            ),
            Section(
                "Predicted against measured",
                [f"Lines and bands: the ideal event with the parameters' rounding. Points: means; "
                 f"bars: {COVERAGE:g} standard uncertainties; crosses: single trials."],
                _draw_against(impact, seen, simulated),
            ),
        ]  # fmt: skip
    return parts


_AFTER = ("T_a_after_J", "impulse_t_N_s")


def _predicted_rows(impact: Impact, printed: bool) -> list[list[str]]:
    rows = []
    for case in impact.cases:
        row = [f"{case.gamma_deg:g}"]
        for key, _, scale, digits in SHOWN:
            if key in _AFTER:
                continue
            low, high = (scale * value for value in case.band[PREDICTED[key]])
            row.append(f"{scale * case.said[key]:.{digits}f} ± {(high - low) / 2.0:.{digits}f}")
        rows.append(row)
        if printed and case.gamma_deg in TABLE_III:
            rows.append(["printed", *TABLE_III[case.gamma_deg], ""])
    return rows


def _measured_rows(impact: Impact, printed: bool) -> list[list[str]]:
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
        if printed and case.gamma_deg in TABLE_IV:
            T_c, T_a, T_a_after, xi, F_n, F_t = TABLE_IV[case.gamma_deg]
            rows.append(["", "printed", "", f"{T_c:.3f}", f"{T_a:.3f}", f"{T_a_after:.3f}",
                         f"{xi:.2f}", f"{F_n:.2f}", f"{F_t:.2f}"])  # fmt: skip
    return rows


def _remarks(impact: Impact, printed: bool) -> list[str]:
    remarks = [f"Left out: {text}." for text in impact.failed]
    closure = [t.closure for case in impact.cases for t in case.trials if math.isfinite(t.closure)]
    if closure:
        remarks.append(
            "Change of the normal velocity across the whole contact, by the encoders over by "
            f"the force: {np.mean(closure):.4f} ± {np.std(closure):.4f} (1 where encoders, force "
            "sensor and the arm's mass agree)."
        )
    if printed:
        remarks.append(
            "Not reproduced: the printed normal impulses are 10 to 19 % above those that stop this "
            "arm at the printed energies, and the printed tangential ones follow no constant "
            "coefficient of friction."
        )
    else:
        remarks.append(
            "Not reproduced: in the paper's asymmetric pose the tangential impulse is above zero "
            "at 0 deg (1.40 N ms) and 15 deg, although the tip slides to +x."
        )
    return remarks


def _draw_curves(cases: list[Case], simulated: bool) -> Figure:
    columns = 2 if len(cases) < 5 else 3
    rows = -(-len(cases) // columns)
    with plot_style():
        figure = Figure(figsize=(9.0, 0.6 + 2.6 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axis, case in zip(axes.flat, cases, strict=False):
            for n, trial in enumerate(case.trials):
                _draw_trial(axis, trial, faint=n > 0)
            axis.set_title(f"gamma = {case.gamma_deg:g} deg", fontsize=9)
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
            middle.set_zorder(1.0)  # the mark reaches over its neighbours
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


def _draw_against(impact: Impact, cases: list[Case], simulated: bool) -> Figure:
    low = min(case.gamma_deg for case in cases) - 8.0
    high = max(case.gamma_deg for case in cases) + 8.0
    gamma = np.linspace(max(low, -89.0), min(high, 89.0), 60)
    ideal = predict(impact.pose, gamma, impact.energy_J)
    band = bands(impact.rig, impact.pose, gamma, impact.energy_J)
    with plot_style():
        figure = Figure(figsize=(9.0, 6.2), layout="constrained")
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
            axis.set_ylabel(label)
            axis.legend(frameon=False, fontsize=8)
            axis.margins(y=0.15)
        for axis in axes[1]:
            axis.set_xlabel("gamma [deg]")
        if simulated:
            mark_simulated(figure, axes[0, 0])
    return figure


def write_json(impact: Impact) -> str:
    """The text of the file beside the page."""
    return json.dumps(as_json(impact), indent=2, allow_nan=False) + "\n"
