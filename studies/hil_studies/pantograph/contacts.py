"""Impacts of the study with the rig's plate and friction: energies and forces over time.

Figs. 9 and 10 are curves of T_c and T_a; the text has their white dots in Tables IV and VI.

Source: Font-Llagunes & Koevecses, section 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from hil.mechanics.arrays import Array
from hil.pages.style import CELL, FAULT, MEASURED, MODEL, REFERENCE, styled_figure
from hil.systems.pantograph.contact import ArmOnPlate, Plate
from hil.systems.pantograph.impact import Impacts, approach
from hil.systems.pantograph.linkage import Elbows, Pantograph, Pose

MU = 0.04
"""Coefficient of friction of `configs/pantograph`, the middle of Table IV's F_t / F_n."""
BACK_M, STEP_S, SHOWN_S = 5e-4, 2.5e-5, 0.012


@dataclass(frozen=True)
class Contact:
    """One impact over time.

    Attributes
    ----------
    t_s : (n,) array, from onset; T_c_J, T_a_J likewise
    force_N : (n, 2) array, of the plate on the tip: normal (a push is positive) and along x
    turned_rad : (n, 2) array, q1 and q3 from onset on, as the motors' encoders turn
    end : index of the end of compression
    impulse_N_s : (2,) array, integral of the force from onset to the end of compression
    """

    gamma_deg: float
    t_s: Array
    T_c_J: Array
    T_a_J: Array
    force_N: Array
    turned_rad: Array
    end: int
    impulse_N_s: Array


def simulate(rig: Pantograph, pose: Pose, impacts: Impacts, elbows: Elbows) -> list[Contact]:
    """Return the impacts with friction, from just before onset until well after compression."""
    return [
        _simulate(rig, pose, float(gamma), float(speed), elbows)
        for gamma, speed in zip(impacts.gamma_deg, impacts.speed_m_per_s, strict=True)
    ]


def _simulate(
    rig: Pantograph, pose: Pose, gamma_deg: float, speed: float, elbows: Elbows
) -> Contact:
    direction = approach(gamma_deg)[0]
    start = rig.inverse(np.asarray(pose.E_m) - BACK_M * direction, elbows)
    arm = ArmOnPlate(rig, Plate(float(pose.E_m[1]), mu=MU), start)
    arm.x[2:4] = start.qdot(speed * direction)
    rows, v_y = [], []
    for _ in range(round((BACK_M / speed + SHOWN_S) / STEP_S)):
        _, _, _, rate, f_t, f_n = arm.tip()
        rows.append([*arm.energies_J(), f_n, f_t, *arm.x[:2]])
        v_y.append(rate)
        arm.advance(np.zeros(2), STEP_S)
    trace = np.array(rows)
    onset, end = int(np.argmax(trace[:, 2] > 0.0)), int(np.argmax(np.array(v_y) < 0.0))
    t_s: Array = STEP_S * (np.arange(len(trace), dtype=np.float64) - onset)
    force_N = trace[:, 2:4]
    impulse = np.trapezoid(force_N[onset - 1 : end], dx=STEP_S, axis=0)
    share = v_y[end - 1] / (v_y[end - 1] - v_y[end])  # of the step in which compression ends
    impulse += share * STEP_S * force_N[end - 1]
    return Contact(
        gamma_deg, t_s, trace[:, 0], trace[:, 1],
        force_N, trace[:, 4:] - trace[onset, 4:], end, np.asarray(impulse, dtype=np.float64),
    )  # fmt: skip


def draw_contacts(
    contacts: list[Contact], printed: Mapping[float, tuple[float, ...]], title: str
) -> Figure:
    """Draw energies, forces and motor angles over time, one column per case.

    Parameters
    ----------
    printed : T_c and T_a before, and T_a after, in mJ, by gamma: the white dots
    """
    with styled_figure(2.4 * len(contacts) + 0.8, 6.4) as figure:
        axes = figure.subplots(3, len(contacts), sharex=True, sharey="row", squeeze=False)
        for column, contact in zip(axes.T, contacts, strict=True):
            t_ms, end_ms = 1e3 * contact.t_s, 1e3 * contact.t_s[contact.end]
            energy, force, angle = column
            energy.set_title(f"gamma = {contact.gamma_deg:g} deg", fontsize=9)
            energy.plot(t_ms, 1e3 * contact.T_c_J, color=MODEL, lw=1.2, label="$T_c$")
            energy.plot(t_ms, 1e3 * contact.T_a_J, color=MEASURED, lw=1.2, label="$T_a$")
            if contact.gamma_deg in printed:
                T_c, T_a, T_a_after = printed[contact.gamma_deg]
                energy.plot([0.0, end_ms], [T_c, 0.0], "o", mfc="white", mec=MODEL, ms=5)
                energy.plot([0.0, end_ms], [T_a, T_a_after], "o", mfc="white", mec=MEASURED, ms=5)
            force.plot(t_ms, contact.force_N[:, 0], color=REFERENCE, lw=1.0, label="normal")
            force.plot(t_ms, contact.force_N[:, 1], color=CELL, lw=1.0, label="along x")
            angle.plot(t_ms, 1e3 * contact.turned_rad[:, 0], color=REFERENCE, lw=1.0, label="q1")
            angle.plot(t_ms, 1e3 * contact.turned_rad[:, 1], color=CELL, lw=1.0, label="q3")
            angle.set_xlabel("time from onset [ms]")
        for axis, label in zip(
            axes[:, 0], ("energy [mJ]", "force [N]", "motor angle [mrad]"), strict=True
        ):
            axis.set_ylabel(label)
            axis.legend(frameon=False, fontsize=8)
        figure.align_ylabels(axes[:, 0])
        figure.suptitle(title, x=0.02, ha="left", fontsize=10)
        figure.text(0.99, 0.995, "SIMULATED", ha="right", va="top", fontweight="bold", color=FAULT)
    return figure
