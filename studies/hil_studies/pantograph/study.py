"""`hil study pantograph`: impacts of the paper at any pose, with ranges and a workspace map.

Source: Font-Llagunes & Koevecses, "Analytical and Experimental Studies of the Dynamics of Variable
Topology Systems", section 6.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from pydantic import BeforeValidator, Field

from hil.config.table import Table, as_list
from hil.pages.study import as_table, saved
from hil.pages.style import CELL, MEASURED, MODEL, REFERENCE, styled_figure
from hil.systems.pantograph.impact import (
    ASYMMETRIC_M,
    SYMMETRIC_M,
    TABLE_IV,
    Impacts,
    bands,
    gamma_of_xi_1_deg,
    predict,
    workspace_map,
)
from hil.systems.pantograph.linkage import Elbows, Pantograph, Pose
from hil_studies.pantograph.contacts import MU, Contact, draw_contacts, simulate
from hil_studies.pantograph.published import asymmetric, symmetric

PRINTED_ENERGY_J = 0.01
PAPER = {
    "symmetric": (SYMMETRIC_M, (0.0, 15.0, 30.0, 45.0)),
    "asymmetric": (ASYMMETRIC_M, (-7.58, 0.0, 15.0, 30.0, 45.0)),
}
"""Cases 1 to 4 and 5 to 9."""


class Values(Table):
    """Values that `--set` can change: position, directions and energy of the impacts.

    The defaults are both poses of the paper, each with its own directions.
    """

    pose_m: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    gamma_deg: (
        Annotated[list[float], BeforeValidator(as_list), Field(min_length=1, max_length=1000)]
        | None
    ) = None
    energy_J: Annotated[float, Field(gt=0.0, le=1e3)] = PRINTED_ENERGY_J
    elbows: Elbows = "outward"


@dataclass(frozen=True)
class Case:
    """Impacts at one pose, what they are compared with, and the end of its figures' names."""

    pose_m: list[float]
    gamma_deg: list[float]
    published: str
    suffix: str = ""


def _cases(values: Values) -> list[Case]:
    poses = PAPER if values.pose_m is None else {"": (tuple(values.pose_m), PAPER["symmetric"][1])}
    as_printed = values.energy_J == PRINTED_ENERGY_J and values.elbows == "outward"
    cases = []
    for name, (place, gamma_deg) in poses.items():
        same = [key for key, (paper, _) in PAPER.items()
                if as_printed and np.allclose(place, paper, rtol=0.0, atol=1e-9)]  # fmt: skip
        cases.append(Case(list(place), list(values.gamma_deg or gamma_deg),
                          same[0] if same else "",
                          "_asymmetric" if name == "asymmetric" else ""))  # fmt: skip
    return cases


def run(out: Path, values: Values) -> dict[str, Any]:
    """Predict every impact into the folder `out`; return the results, as in results.json.

    The results of the first pose are at the top, with the same keys as those in `poses`.
    """
    poses = [_at_pose(out, values, case) for case in _cases(values)]
    merged = {key: [item for _, shown in poses for item in shown[key]] for key in poses[0][1]}
    return {
        "title": "Impacts of the pantograph's tip on a plate: energies and impulses",
        **poses[0][0],
        "poses": [pose for pose, _ in poses],
        **merged,
        "notes": [*_NOTES, *merged["notes"]],
    }


def _at_pose(out: Path, values: Values, case: Case) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the figures of a pose, and what the page shows of it."""
    rig = Pantograph()
    pose = rig.inverse(case.pose_m, values.elbows)
    impacts = predict(pose, case.gamma_deg, values.energy_J)
    band = bands(rig, pose, case.gamma_deg, values.energy_J, values.elbows)
    contacts = simulate(rig, pose, impacts, values.elbows)
    best_deg = gamma_of_xi_1_deg(pose)
    printed, checks = case.published, []
    dots: dict[float, tuple[float, ...]] = {}
    if printed == "symmetric":
        checks = symmetric(impacts, band, contacts)
        dots = {gamma: row[:3] for gamma, row in TABLE_IV.items()}
    elif printed == "asymmetric":
        checks = asymmetric(impacts, band, contacts, best_deg)
    number = {"symmetric": "Fig. 9: ", "asymmetric": "Fig. 10: "}.get(printed, "")
    title = f"{number}tip at ({case.pose_m[0]:g}, {case.pose_m[1]:g}) m, mu = {MU:g}"
    figures = [
        saved(out, f"impacts{case.suffix}.png", _draw_impacts(rig, pose, case, values, impacts),
              _CAPTION_IMPACTS),
        saved(out, f"contacts{case.suffix}.png", draw_contacts(contacts, dots, title),
              _CAPTION_CONTACTS),
        saved(out, f"map{case.suffix}.png", _draw_map(rig, pose, values.elbows), _CAPTION_MAP),
    ]  # fmt: skip
    result = {
        "pose_m": case.pose_m,
        "rows": _rows(impacts, band, contacts),
        "gamma_of_xi_1_deg": best_deg,
        "gamma_of_xi_1_band_deg": band["gamma_of_xi_1_deg"],
        "mass_matrix": pose.M_kg_m2,
        "constraint_row": pose.A_m[0],
        "q_deg": np.rad2deg(pose.q_rad),
        "assembly": pose.assembly,
    }
    shown: dict[str, list[Any]] = {
        "tables": [_table(case, impacts, band)],
        "checks": checks,
        "figures": figures,
        "notes": _notes(impacts, printed),
    }
    return result, shown


_CAPTION_CONTACTS = (
    "Kinetic energies, forces on the tip and motor angles during each impact, with the plate and "
    "the friction of configs/pantograph. White dots: the printed T_c and T_a at onset and at the "
    "end of compression. The text of the paper has no other values of Figs. 9 and 10, and no "
    "traces of force or angle."
)
_CAPTION_IMPACTS = (
    "Energies and impulse over the angle gamma of the tip's velocity from the plate's normal "
    "(positive towards +x), at constant kinetic energy. Bands: rounding of the parameters in "
    "Table II."
)
_CAPTION_MAP = (
    "Fraction of the kinetic energy that an impact along the normal removes (xi), and effective "
    "mass at the tip, over the workspace. Black: the arm at the chosen pose."
)


def _rows(impacts: Impacts, band: dict[str, Any], contacts: list[Contact]) -> list[dict[str, Any]]:
    return [
        {
            "gamma_deg": impacts.gamma_deg[i],
            "speed_m_per_s": impacts.speed_m_per_s[i],
            "T_c_J": impacts.split.T_c_J[i],
            "T_a_J": impacts.split.T_a_J[i],
            "xi": impacts.split.xi[i],
            "impulse_N_s": impacts.impulse_N_s[i],
            "tip_velocity_after_m_per_s": impacts.tip_velocity_after_m_per_s[i],
            "with_friction": {
                "T_a_after_J": contacts[i].T_a_J[contacts[i].end],
                "impulse_N_s": contacts[i].impulse_N_s[0],
                "impulse_t_N_s": contacts[i].impulse_N_s[1],
            },
            "bands": {key: value[:, i] for key, value in band.items()
                      if key != "gamma_of_xi_1_deg"},
        }
        for i in range(len(impacts.gamma_deg))
    ]  # fmt: skip


def _table(case: Case, impacts: Impacts, band: dict[str, Any]) -> dict[str, Any]:
    def text(value: float, key: str, i: int, scale: float, digits: int) -> str:
        least, most = scale * band[key][:, i]
        return f"{scale * value:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"

    rows = [
        [
            f"{gamma:g}",
            text(impacts.speed_m_per_s[i], "speed_m_per_s", i, 1.0, 4),
            text(impacts.split.T_c_J[i], "T_c_J", i, 1e3, 3),
            text(impacts.split.T_a_J[i], "T_a_J", i, 1e3, 3),
            text(impacts.split.xi[i], "xi", i, 1.0, 3),
            text(impacts.impulse_N_s[i], "impulse_N_s", i, 1e3, 2),
        ]
        for i, gamma in enumerate(impacts.gamma_deg)
    ]
    return as_table(
        f"Impacts at ({case.pose_m[0]:g}, {case.pose_m[1]:g}) m (in brackets: parameters within "
        "the rounding of Table II)",
        ["gamma deg", "speed m/s", "T_c mJ", "T_a mJ", "xi", "impulse N ms"], rows,
    )  # fmt: skip


_NOTES = [
    "The poses of Fig. 8 are not in the text: both elbows outward, tip at (0, 0.22538) m and "
    "(0.19981, 0.22538) m are derived from Tables III and V.",
    "The predicted constraint is ideal: no tangential impulse; the tip continues along the plate. "
    f"T_a after and F_t are simulated with mu = {MU:g}.",
]


def _notes(impacts: Impacts, printed: str) -> list[str]:
    if printed == "symmetric":
        same = [(g, *TABLE_IV[g][-2:]) for g in impacts.gamma_deg if g in TABLE_IV and g > 0.0]
        if same:
            parts = ", ".join(f"{F_t / F_n:.3f} at {g:g} deg" for g, F_n, F_t in same)
            return [
                f"Table IV's F_t / F_n is {parts}, but Coulomb friction with constant sliding "
                "direction gives a single value. Its F_n are above the impulses that stop this arm "
                "by more than speeds or parameter rounding can explain."
            ]
    if printed == "asymmetric":
        return [
            "Rows 5 to 9 of Tables V and VI are missing in the text used; compared are what its "
            "section 6.2 states, and F_n by its ratio to the computed impulse. With the normal "
            "velocity stopped, this tip slides to +x at 0 and 15 deg, so friction is below zero."
        ]
    return []


def _draw_impacts(
    rig: Pantograph, pose: Pose, case: Case, values: Values, impacts: Impacts
) -> Figure:
    gamma = np.linspace(-85.0, 85.0, 86)
    curve = predict(pose, gamma, values.energy_J)
    band = bands(rig, pose, gamma, values.energy_J, values.elbows)
    with styled_figure(8.0, 7.0) as figure:
        axes = figure.subplots(3, 1, sharex=True, height_ratios=[1.4, 1, 1])
        energy, impulse, speed = axes
        for key, line, points, colour, label in (
            ("T_c_J", curve.split.T_c_J, impacts.split.T_c_J, MODEL, "$T_c$, lost"),
            ("T_a_J", curve.split.T_a_J, impacts.split.T_a_J, MEASURED, "$T_a$, stays"),
        ):
            energy.fill_between(gamma, *(1e3 * band[key]), color=colour, alpha=0.25, lw=0)
            energy.plot(gamma, 1e3 * line, color=colour, lw=1.2, label=label)
            energy.plot(impacts.gamma_deg, 1e3 * points, "o", color=colour, ms=4)
        best_deg = gamma_of_xi_1_deg(pose)
        energy.axvline(best_deg, color="0.6", lw=0.7, ls=":")
        energy.annotate(f"xi = 1 at {best_deg:.2f} deg", (best_deg, 0.5), xytext=(4, 0),
                        xycoords=("data", "axes fraction"), textcoords="offset points",
                        color="0.3")  # fmt: skip
        energy.set_ylabel("energy [mJ]")
        energy.legend(frameon=False, loc="center right")
        energy.set_title(
            f"Tip at ({case.pose_m[0]:g}, {case.pose_m[1]:g}) m, T = {1e3 * values.energy_J:g} mJ"
        )
        for axis, key, line, points, scale, label in (
            (impulse, "impulse_N_s", curve.impulse_N_s, impacts.impulse_N_s, 1e3, "impulse [N ms]"),
            (
                speed,
                "speed_m_per_s",
                curve.speed_m_per_s,
                impacts.speed_m_per_s,
                1.0,
                "speed [m/s]",
            ),
        ):
            axis.fill_between(gamma, *(scale * band[key]), color=CELL, alpha=0.35, lw=0)
            axis.plot(gamma, scale * line, color=REFERENCE, lw=1.0)
            axis.plot(impacts.gamma_deg, scale * points, "o", color=REFERENCE, ms=4)
            axis.set_ylabel(label)
        speed.set_xlabel("gamma, from the plate's normal [deg]")
    return figure


_XI_LEVELS = np.array([0.0, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0])


def _draw_map(rig: Pantograph, pose: Pose, elbows: Elbows) -> Figure:
    sign = 1.0 if pose.E_m[1] > 0.0 else -1.0
    x, y = np.linspace(-0.36, 0.36, 289), sign * np.linspace(0.002, 0.36, 180)
    xi, mass = workspace_map(rig, x, y, 0.0, elbows)
    with styled_figure(8.0, 7.4) as figure:
        axes = figure.subplots(2, 1, sharex=True)
        for axis, field, levels, label in (
            (axes[0], xi, _XI_LEVELS, "xi at gamma = 0"),
            (axes[1], mass, np.linspace(0.35, 0.85, 11), "effective mass along y [kg]"),
        ):
            drawn = axis.contourf(
                x, y, field, levels=levels, cmap="viridis", norm=BoundaryNorm(levels, 256),
                extend="both" if axis is axes[1] else "neither",
            )  # fmt: skip
            figure.colorbar(drawn, ax=axis, label=label, shrink=0.9)
            half, l_1 = rig.parameters.l_5_m / 2.0, rig.parameters.l_1_m
            for side, angle in ((-1.0, pose.q_rad[0]), (1.0, pose.q_rad[2])):
                elbow = (side * half + l_1 * np.cos(angle), l_1 * np.sin(angle))
                axis.plot([side * half, elbow[0], pose.E_m[0]], [0.0, elbow[1], pose.E_m[1]],
                          "o-", color="black", lw=1.2, ms=3)  # fmt: skip
            axis.set_aspect("equal")
            axis.set_ylabel("y [m]")
        axes[1].set_xlabel("x [m]")
        axes[0].set_title("Fraction of energy that an impact along the plate's normal removes")
    return figure
