"""Compares the soft chain's recursion with dense, explicit and other tools: error and time.

Every time is a median or a minimum of alternating repeats in one run, on one thread.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Array
from hil.pages.study import as_table
from hil.systems.soft import kernel
from hil.systems.soft.parts import KM, TAU, X_NEW, R, carve
from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import Place, SoftTree
from hil_studies.soft_chain.cases import ElementKind, rubber_manipulator, servo_input
from hil_studies.soft_chain.dense import DenseStepper
from hil_studies.soft_chain.outputs import trace_m
from hil_studies.soft_chain.peers import exudyn_run, has, scipy_run
from hil_studies.soft_chain.speed import (
    DENSE,
    EXUDYN,
    EXUDYN_SEGMENTS_MAX,
    OURS,
    RK4,
    RK4_LIMIT,
    Row,
    fastest_pole_per_s,
)

EXTRAPOLATED = "the same, extrapolated from h and h/2"
EXPLICIT_STEPS_MAX = 200_000
REPEATED_BELOW_S = 1.0
UNSTABLE_M = 1e-2
DENSE_SEGMENTS_MAX = 16
DENSE_STEPS_S = (8e-3, 4e-3, 2e-3)
AIM = 5.0  # goal: times faster at equal error


@njit(cache=True, error_model="numpy")
def _rk4(ints, floats, h, u, y, k, scratch):  # type: ignore[no-untyped-def]
    """Take classical Runge-Kutta steps of [q, v, R], inputs every half step; return the number."""
    p = carve(ints, floats)
    n, at = p.state.shape[1], p.branch_joint
    km, tau, r = p.branches[KM], p.branches[TAU], p.branches[R]
    for step in range((len(u) - 1) // 2):
        for stage in range(4):
            ahead = 0.0 if stage == 0 else (h if stage == 3 else 0.5 * h)
            for i in range(len(y)):
                scratch[i] = y[i] + (ahead * k[stage - 1, i] if stage > 0 else 0.0)
            r[:] = scratch[2 * n :]
            p.u[:] = u[2 * step + (0 if stage == 0 else (2 if stage == 3 else 1))]
            kernel.explicit(ints, floats, scratch[:n], scratch[n : 2 * n], 0.0)
            for i in range(n):
                k[stage, i] = scratch[n + i]
                k[stage, n + i] = p.state[X_NEW, i]
            for b in range(len(at)):
                k[stage, 2 * n + b] = km[b] * scratch[n + at[b]] - r[b] / tau[b]
        total = 0.0
        for i in range(len(y)):
            y[i] += h / 6.0 * (k[0, i] + 2.0 * k[1, i] + 2.0 * k[2, i] + k[3, i])
            total += y[i]
        if not np.isfinite(total):
            return step
    return (len(u) - 1) // 2


def rk4_run(tree: SoftTree, h_s: float, duration_s: float) -> tuple[Array, float]:
    """Return final joint positions and seconds taken; NaN if the integration diverged."""
    stepper = SoftStepper(tree)
    n_steps = round(duration_s / h_s)
    u = servo_input(0.5 * h_s * np.arange(2 * n_steps + 1))
    y = np.zeros(2 * tree.n + len(tree.branch_joint))
    k, scratch = np.empty((4, len(y))), np.empty(len(y))
    began = time.perf_counter()
    done = _rk4(stepper.ints, stepper.floats, h_s, u, y, k, scratch)
    taken_s = time.perf_counter() - began
    return (y[: tree.n] if done == n_steps else np.full(tree.n, np.nan)), taken_s


def own_run(
    tree: SoftTree, h_s: float, duration_s: float, spectral_radius: float
) -> tuple[Array, float]:
    """Return final joint positions and seconds taken."""
    stepper = SoftStepper(tree, spectral_radius)
    u = servo_input(h_s * np.arange(1, round(duration_s / h_s) + 1))
    began = time.perf_counter()
    stepper.run(h_s, u, every=len(u))
    return stepper.q.copy(), time.perf_counter() - began


def work_precision(kind: ElementKind, n: int, exact_m: Array, spectral_radius: float) -> list[Row]:
    """Return the tip's error at 1 s and the time taken, for every tool at its own settings."""
    tree, place = rubber_manipulator(kind, n)
    runs = list(_settings(tree, kind, n, spectral_radius))
    taken: list[list[float]] = [[] for _ in runs]
    ends: list[Array] = [np.empty(0)] * len(runs)
    # Short runs are repeated, alternating with the others.
    for turn in range(3):
        for i, (_, _, run) in enumerate(runs):
            if turn > 0 and sum(taken[i]) > REPEATED_BELOW_S:
                continue
            ends[i], seconds = run()
            taken[i].append(seconds)
    rows = []
    for (tool, setting, _), q, times in zip(runs, ends, taken, strict=True):
        rows.append(
            {"tool": tool, **setting, "error_m": _error(tree, place, q, exact_m),
             "time_s": min(times)}
        )  # fmt: skip
    rows += _extrapolated(tree, place, runs, ends, taken, exact_m)
    if n <= DENSE_SEGMENTS_MAX:
        rows += _dense(tree, place, exact_m, spectral_radius)
    return rows


def _dense(tree: SoftTree, place: Place, exact_m: Array, rho: float) -> list[Row]:
    """Run the dense form with its own steps; in plain NumPy its time is not meaningful."""
    rows: list[Row] = []
    for h_s in DENSE_STEPS_S:
        stepper = DenseStepper(tree, rho)
        for u in servo_input(h_s * np.arange(1, round(1.0 / h_s) + 1)):
            stepper.step(h_s, u)
        rows.append({"tool": DENSE, "h_s": h_s, "error_m": _error(tree, place, stepper.q, exact_m)})
    return rows


def _settings(
    tree: SoftTree, kind: ElementKind, n: int, rho: float
) -> Iterator[tuple[str, dict[str, float], Callable[[], tuple[Array, float]]]]:
    for h_s in (8e-3, 4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4, 6.25e-5, 3.125e-5):
        yield OURS, {"h_s": h_s}, partial(own_run, tree, h_s, 1.0, rho)
    limit_s = RK4_LIMIT / fastest_pole_per_s(tree)
    for share in (0.95, 0.8, 0.4, 0.2):
        n_steps = round(1.0 / (share * limit_s))
        if n_steps <= EXPLICIT_STEPS_MAX:
            h_s = 1.0 / n_steps
            yield RK4, {"h_s": h_s}, partial(rk4_run, tree, h_s, 1.0)
    if has("exudyn") and kind == "voigt" and n <= EXUDYN_SEGMENTS_MAX:
        for h_s in (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4):
            yield EXUDYN, {"h_s": h_s}, partial(exudyn_run, tree, h_s, 1.0, rho)
    if n > EXUDYN_SEGMENTS_MAX:
        return
    methods: dict[str, tuple[float, ...]]
    methods = {"Radau": (1e-4, 1e-6, 1e-8), "BDF": (1e-4, 1e-6, 1e-8), "LSODA": (1e-4, 1e-6, 1e-8)}
    if limit_s > 5e-4:
        methods["DOP853"] = (1e-3, 1e-5, 1e-7, 1e-9)
    for method, tolerances in methods.items():
        for tolerance in tolerances:
            run = partial(scipy_run, tree, method, tolerance, 1.0)
            yield f"SciPy {method} on the recursion", {"tolerance": tolerance}, run


def _extrapolated(
    tree: SoftTree, place: Place, runs: Any, ends: list[Array], taken: Any, exact_m: Array
) -> list[Row]:
    """Richardson extrapolation: two runs with h and h/2 remove the second-order error."""
    ours = [i for i, (tool, _, _) in enumerate(runs) if tool == OURS]
    rows = []
    for coarse, fine in itertools.pairwise(ours):
        tips = [_tip(tree, place, ends[i]) for i in (coarse, fine)]
        error_m = float(np.linalg.norm(tips[1] + (tips[1] - tips[0]) / 3.0 - exact_m))
        rows.append(
            {"tool": EXTRAPOLATED, "h_s": runs[coarse][1]["h_s"], "error_m": error_m,
             "time_s": min(taken[coarse]) + min(taken[fine])}
        )  # fmt: skip
    return rows


def _tip(tree: SoftTree, place: Place, q: Array) -> Array:
    return trace_m(SoftStepper(tree), place, q[None])[0, :2]


def _error(tree: SoftTree, place: Place, q: Array, exact_m: Array) -> float | None:
    if not np.isfinite(q).all():
        return None
    error_m = float(np.linalg.norm(_tip(tree, place, q) - exact_m))
    return error_m if error_m < UNSTABLE_M else None


def ahead(rows: list[Row]) -> dict[str, list[float]]:
    """Return how many times faster this package is at every error that another tool reached.

    This package's time at that error is the one of its next smaller error, extrapolated or not.
    """
    ours = [row for row in rows if row["tool"] in (OURS, EXTRAPOLATED)]
    factors: dict[str, list[float]] = {}
    for row in rows:
        if row["tool"] in (OURS, EXTRAPOLATED, DENSE) or row["error_m"] is None:
            continue
        as_good = [mine["time_s"] for mine in ours if mine["error_m"] <= row["error_m"]]
        if as_good:
            factors.setdefault(row["tool"], []).append(row["time_s"] / min(as_good))
    return factors


def tables(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return tables of the cost over N and of the speed relative to other tools."""
    names = ("recursion", "pinocchio ABA", "dense")
    rows = [
        [str(row["segments"]), f"{row['step_us']:.1f}",
         *(f"{row[f'{name}_us']:.1f}" if f"{name}_us" in row else "" for name in names)]
        for row in results["cost"]
    ]  # fmt: skip
    columns = ["segments", "a step [us]", *(f"{name} [us]" for name in names)]
    title = "Time of a step of 1 ms, and of one evaluation called from Python"
    pages = [as_table(title, columns, rows)]
    lead = [
        [tool, f"{min(times):.1f}", f"{max(times):.1f}"] for tool, times in results["ahead"].items()
    ]
    if lead:
        title = "Speed relative to other tools at equal error"
        pages.append(as_table(title, ["tool", "least", "most"], lead))
    return pages


def notes(factors: dict[str, list[float]]) -> list[str]:
    """Return a sentence on the tools with less than the intended speed difference."""
    close = [f"{tool} ({min(times):.1f})" for tool, times in factors.items() if min(times) < AIM]
    if not close:
        return []
    return [f"Less than {AIM:g} times faster at equal error (minimum): {', '.join(close)}. Chains "
            "of few segments are not stiff; explicit methods of high order suit them."]  # fmt: skip
