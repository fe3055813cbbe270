"""Neural populations that solve eq (15) for the angles of a fingertip, beside the direct solution.

The paper names "three neural population circuits" of another paper (Hemami & Dariush 2012) and
gives none of their equations. Here two populations are assumed: one holds the error of the
fingertip and follows it with a lag T, one holds the angles and integrates::

    T e' = -e + X_p - f(theta),   theta' = k J(theta)^T e,   J = df / dtheta

f is eq (15) with three unknown angles: pitch and yaw of the upper arm, pitch of forearm and hand.
The circuit needs no inverse. Near a solution every singular value s of J has the rates

    lambda = (-1 +- sqrt(1 - 4 T k s^2)) / (2 T)

so k = 1 / (4 T S^2) with S above every s lets no mode oscillate, and a mode converges at about
k s^2.

Source: Hemami & Hemami, section 6, eq (15).
"""

import time
from typing import Any

import numpy as np
import scipy.integrate
from matplotlib.figure import Figure

from hil.mechanics.arrays import Array
from hil.pages.study import as_table, check
from hil.pages.style import CELL, MEASURED, MODEL, styled_figure
from hil.systems.arm.links import Arm
from hil.systems.arm.pointing import (
    FORE_PITCH,
    HAND_PITCH,
    MOVEMENT_S,
    UPPER_PITCH,
    UPPER_YAW,
    angles_of,
    printed_motion,
)

LAGS_S = (1e-4, 5e-4, 2e-3)  # assumed
UNKNOWN = (UPPER_PITCH, UPPER_YAW, FORE_PITCH)
SAMPLES = 401
CLOSE_M = 1e-3
DECADES_MM = 1e-3, 1e-1
"""Errors over which the rate of convergence is read: the fast modes are over."""


def fingertip_m(arm: Arm, angles: Array) -> Array:
    """Return f, eq (15), of the three angles."""
    l1, beyond = arm.lengths_m[0], arm.lengths_m[1] + arm.lengths_m[2]
    pitch, yaw, fore = angles
    return np.array([
        l1 * np.cos(pitch) * np.cos(yaw) + beyond * np.cos(fore), l1 * np.sin(yaw),
        -l1 * np.sin(pitch) * np.cos(yaw) - beyond * np.sin(fore),
    ])  # fmt: skip


def jacobian(arm: Arm, angles: Array) -> Array:
    """Return J = df / dtheta, (3, 3)."""
    l1, beyond = arm.lengths_m[0], arm.lengths_m[1] + arm.lengths_m[2]
    pitch, yaw, fore = angles
    return np.array([
        [-l1 * np.sin(pitch) * np.cos(yaw), -l1 * np.cos(pitch) * np.sin(yaw),
         -beyond * np.sin(fore)],
        [0.0, l1 * np.cos(yaw), 0.0],
        [-l1 * np.cos(pitch) * np.cos(yaw), l1 * np.sin(pitch) * np.sin(yaw),
         -beyond * np.cos(fore)],
    ])  # fmt: skip


def gain(arm: Arm, lag_s: float) -> float:
    """Return a k at which no mode oscillates in any pose: s is below S = l1 + l2 + l3."""
    return 1.0 / (4.0 * lag_s * float(arm.lengths_m.sum()) ** 2)


def slowest_rate_per_s(arm: Arm, angles: Array, lag_s: float) -> float:
    """Return the slowest rate of convergence near a solution."""
    s = np.linalg.svd(jacobian(arm, angles), compute_uv=False)[-1]
    return float((1.0 - np.sqrt(1.0 - 4.0 * lag_s * gain(arm, lag_s) * s**2)) / (2.0 * lag_s))


def solve(arm: Arm, t_s: Array, places_m: Array, start: Array, lag_s: float) -> Array:
    """Return the angles of the circuit, (n, 3), for fingertips (n, 3) wanted over time."""
    k = gain(arm, lag_s)

    def rates(t: float, state: Array) -> Array:
        e, angles = state[:3], state[3:]
        wanted = np.array([np.interp(t, t_s, axis) for axis in places_m.T])
        e_rate = (wanted - fingertip_m(arm, angles) - e) / lag_s
        return np.concatenate([e_rate, k * jacobian(arm, angles).T @ e])

    solution = scipy.integrate.solve_ivp(
        rates, (t_s[0], t_s[-1]), np.concatenate([np.zeros(3), start]), t_eval=t_s,
        method="LSODA", rtol=1e-6, atol=1e-8,
    )  # fmt: skip
    angles: Array = solution.y[3:].T
    return angles


def compare(arm: Arm) -> list[dict[str, Any]]:
    """Return the circuit beside the direct solution, one row per lag: to a fixed point, moving."""
    t_s = np.linspace(0.0, MOVEMENT_S, SAMPLES)
    places = arm.places_m(printed_motion(t_s).theta)[:, 2]
    began = time.perf_counter()
    direct = angles_of(arm, places)[:, UNKNOWN]
    direct_s = time.perf_counter() - began
    rows = []
    for lag_s in LAGS_S:
        began = time.perf_counter()
        moving = solve(arm, t_s, places, direct[0], lag_s)
        circuit_s = time.perf_counter() - began
        fixed = np.tile(places[0], (SAMPLES, 1))
        still = solve(arm, t_s, fixed, direct[SAMPLES // 4], lag_s)
        still_mm = 1e3 * np.linalg.norm(_tips(arm, still) - fixed, axis=1)
        moving_mm = 1e3 * np.linalg.norm(_tips(arm, moving) - places, axis=1)
        slow = (still_mm > DECADES_MM[0]) & (still_mm < DECADES_MM[1])
        rows.append({
            "lag_s": lag_s,
            "gain_per_m2_s": gain(arm, lag_s),
            "slowest_rate_per_s": slowest_rate_per_s(arm, direct[0], lag_s),
            "found_rate_per_s": -float(np.polyfit(t_s[slow], np.log(still_mm[slow]), 1)[0]),
            "converged_s": float(t_s[np.flatnonzero(still_mm > 1e3 * CLOSE_M)[-1]]),
            "moving_rms_mm": float(np.sqrt(np.mean(moving_mm**2))),
            "moving_angle_deg": np.rad2deg(np.abs(moving - direct).max(axis=0)),
            "direct_us": 1e6 * direct_s / SAMPLES,
            "circuit_us": 1e6 * circuit_s / SAMPLES,
            "t_s": t_s,
            "still_mm": still_mm,
            "moving_mm": moving_mm,
        })  # fmt: skip
    return rows


def as_rows(results: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the table, and checks of the rates against those of the linearised circuit."""
    table = as_table(
        "Eq (15) by two neural populations (assumed) and directly",
        ["lag ms", "slowest rate 1/s", "fixed point to 1 mm s", "moving, RMS mm", "largest deg",
         "us a sample", "directly us"],
        [[f"{1e3 * r['lag_s']:g}", f"{r['slowest_rate_per_s']:.1f}", f"{r['converged_s']:.3f}",
          f"{r['moving_rms_mm']:.2f}", f"{max(r['moving_angle_deg']):.2f}",
          f"{r['circuit_us']:.0f}", f"{r['direct_us']:.1f}"] for r in results],
    )  # fmt: skip
    return table, [
        check(f"populations, lag {1e3 * r['lag_s']:g} ms: rate of convergence",
              r["found_rate_per_s"], f"{r['slowest_rate_per_s']:.4g}", "1/s",
              tolerance=0.01 * r["slowest_rate_per_s"])
        for r in results
    ]  # fmt: skip


def _tips(arm: Arm, angles: Array) -> Array:
    theta = np.zeros((len(angles), 9))
    theta[:, UNKNOWN], theta[:, HAND_PITCH] = angles, angles[:, 2]
    tips: Array = arm.places_m(theta)[:, 2]
    return tips


def draw(results: list[dict[str, Any]]) -> Figure:
    """Draw the circuit's convergence to a fixed fingertip, and its error while the arm moves."""
    with styled_figure(8.4, 3.6) as figure:
        left, right = figure.subplots(1, 2)
        for row, colour in zip(results, (MEASURED, MODEL, CELL), strict=True):
            label = f"lag {1e3 * row['lag_s']:g} ms"
            left.semilogy(row["t_s"], row["still_mm"], color=colour, lw=1.2, label=label)
            right.plot(row["t_s"], row["moving_mm"], color=colour, lw=1.2, label=label)
        left.set(title="To a fixed fingertip", xlabel="time [s]", ylabel="fingertip off by [mm]")
        left.set_ylim(bottom=1e-4)
        right.set(title="Movement of section 6", xlabel="time [s]", ylabel="off by [mm]")
        right.legend(frameon=False)
    return figure
