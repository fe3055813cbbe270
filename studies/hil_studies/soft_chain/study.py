"""`hil study soft-chain`: a manipulator with a rubber link, and the paper's Figs. 3 and 4.

Source: Iwamura, Takenouci, Watanabe, Kai & Fukuda, "A recursive simulation algorithm for soft
robotics". The paper gives no parameters, and its figures have no numbers: RUBBER-MANIP-1 is this
project's own case.
"""

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import scipy.interpolate
from pydantic import BeforeValidator, Field

from hil.config.table import Table, as_list
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.pages.study import check
from hil.record.progress import count_progress
from hil.systems.soft.stepper import History, SoftStepper
from hil_studies.soft_chain import compare as study_compare
from hil_studies.soft_chain import figures as study_figures
from hil_studies.soft_chain import speed as bench
from hil_studies.soft_chain.cases import ElementKind, rubber_manipulator, servo_input
from hil_studies.soft_chain.outputs import energies, trace_m
from hil_studies.soft_chain.peers import has

STEPS_MAX = 50_000_000
CHUNK = 20_000  # number of steps whose motion is in memory at a time
ORDER_STEPS_S = (2e-3, 1e-3, 5e-4, 2.5e-4)
REFERENCE_STEPS_S = (4e-5, 2e-5)  # the exact solution is extrapolated from these
ENERGY_STEP_S = 5e-6
ENERGY_EVERY = 10
# Tip at 1 s as printed in the case's specification; at 1 ms accurate to 2e-5 m.
PRINTED_TIP_M: dict[tuple[str, int], tuple[str, str]] = {
    ("voigt", 4): ("0.25953295", "-0.26909116"),
    ("voigt", 16): ("0.29831140", "-0.26168300"),
    ("maxwell", 4): ("0.15911772", "-0.27637540"),
    ("maxwell", 16): ("0.17337122", "-0.26542299"),
}


class Values(Table):
    """Values that `--set` can change."""

    case: Literal["RUBBER-MANIP-1"] = "RUBBER-MANIP-1"
    element: ElementKind = "voigt"
    segments: Annotated[int, Field(ge=1, le=1000)] = 16
    h_s: Annotated[float, Field(ge=1e-7, le=0.1)] = 1e-3
    t_s: Annotated[
        list[Annotated[float, Field(ge=0.0, le=60.0)]],
        BeforeValidator(as_list),
        Field(min_length=1, max_length=1000),
    ] = Field(default_factory=lambda: [1.0])
    spectral_radius: Annotated[float, Field(ge=0.0, le=1.0)] = 0.8
    compare: bool = True  # with dense, explicit, pinocchio, Exudyn and SciPy


def run(out: Path, values: Values) -> dict[str, Any]:
    """Simulate and compare into the folder `out`; return the results, as in results.json."""
    kind, n = values.element, values.segments
    end_s = max(values.t_s)
    if end_s / values.h_s > STEPS_MAX:
        raise ModelError(f"h_s = {values.h_s:g} needs more than {STEPS_MAX} steps: take it longer")
    with count_progress("soft chain", 6, wanted=True) as advance:
        tip_m = tips_m(values, values.h_s, values.t_s)
        advance(1)
        exact_m = exact_tip_m(values)
        errors_m = [
            float(np.linalg.norm(tips_m(values, h_s, [1.0])[0] - exact_m)) for h_s in ORDER_STEPS_S
        ]
        slope = float(np.polyfit(np.log(ORDER_STEPS_S), np.log(errors_m), 1)[0])
        advance(1)
        energy_h_s = min(values.h_s, ENERGY_STEP_S)
        balance_J = energy_balance_J(values, energy_h_s)
        at_h_J = energy_balance_J(values, values.h_s)
        advance(1)
        step_us = step_time_us(values)
        advance(1)
        results: dict[str, Any] = {
            "title": f"A rubber manipulator of {n} segments, {kind}: {values.case}",
            "tip_m": tip_m,
            "energy_balance_J": balance_J,
            "energy_balance_h_s": energy_h_s,
            "energy_balance_at_h_s_J": at_h_J,
            "order": slope,
            "order_steps_s": ORDER_STEPS_S,
            "order_errors_m": errors_m,
            "tip_exact_at_1_s_m": exact_m,
            "step_us": step_us,
            "checks": _checks(values, exact_m, slope, balance_J),
            "notes": _notes(values),
        }
        figures = [study_figures.motion(out, kind, n, values.spectral_radius)]
        if values.compare:
            precision = study_compare.work_precision(kind, n, exact_m, values.spectral_radius)
            advance(1)
            cost = bench.cost_over_segments(values.spectral_radius)
            advance(1)
            results |= {"work_precision": precision, "cost": cost,
                        "ahead": study_compare.ahead(precision)}  # fmt: skip
            figures += [
                study_figures.error_over_step(out, kind, n, precision),
                study_figures.time_over_segments(out, cost),
                study_figures.error_over_time(out, kind, n, precision),
            ]
            results["tables"] = study_compare.tables(results)
            results["notes"] += study_compare.notes(results["ahead"])
    return results | {"figures": figures}


def _stepper(values: Values) -> SoftStepper:
    tree, _ = rubber_manipulator(values.element, values.segments)
    return SoftStepper(tree, values.spectral_radius)


def _chunks(stepper: SoftStepper, h_s: float, end_s: float, every: int = 1) -> Any:
    """Yield consecutive histories with their inputs, up to the first step at or after end_s."""
    n_steps = max(1, int(np.ceil(end_s / h_s - 1e-9)))
    n_steps += -n_steps % every
    for first in range(0, n_steps, CHUNK):
        last = min(first + CHUNK, n_steps)
        u = servo_input(h_s * np.arange(first, last + 1))
        yield stepper.run(h_s, u[1:], every), u[::every]


def tips_m(values: Values, h_s: float, t_s: list[float]) -> Array:
    """Return the tip at these times, (k, 2), for steps of h_s; cubic interpolation in between."""
    stepper = _stepper(values)
    place = rubber_manipulator(values.element, values.segments)[1]
    wanted = np.asarray(t_s, dtype=float)
    q = np.empty((len(wanted), stepper.tree.n))
    q[wanted == 0.0] = stepper.q
    for history, _ in _chunks(stepper, h_s, float(wanted.max())):
        began, ended = history.t_s[0], history.t_s[-1]
        slack = 1e-9 * h_s
        here = (wanted > began) & (wanted <= ended + slack)
        if here.any():
            q[here] = _between(history, wanted[here])
    return trace_m(stepper, place, q)[:, :2]


def _between(history: History, t_s: Array) -> Array:
    curve = scipy.interpolate.CubicHermiteSpline(history.t_s, history.q, history.v)
    return np.asarray(curve(t_s), dtype=float)


def exact_tip_m(values: Values) -> Array:
    """Return the tip at 1 s, extrapolated from two short steps by the order of the scheme."""
    coarse, fine = (tips_m(values, h_s, [1.0])[0] for h_s in REFERENCE_STEPS_S)
    ratio = (REFERENCE_STEPS_S[0] / REFERENCE_STEPS_S[1]) ** 2
    return np.asarray(fine + (fine - coarse) / (ratio - 1.0))


def energy_balance_J(values: Values, h_s: float) -> float:
    """Return the largest imbalance of work, loss and energy over the run."""
    stepper = _stepper(values)
    every = ENERGY_EVERY if h_s <= 2.0 * ENERGY_STEP_S else 1
    worst, carried = 0.0, 0.0
    for history, u in _chunks(stepper, h_s, max(values.t_s), every):
        balance = energies(stepper, history, u).balance + carried
        worst, carried = max(worst, float(np.abs(balance).max())), float(balance[-1])
    return worst


def step_time_us(values: Values) -> float:
    """Return the minimum time of a compiled step, over repeated short runs of about 2 ms."""
    n_steps = max(10, min(400, 40_000 // (values.segments + 1)))
    u = servo_input(values.h_s * np.arange(1, n_steps + 1))
    times = []
    for _ in range(25):
        stepper = _stepper(values)
        began = time.perf_counter()
        stepper.run(values.h_s, u)
        times.append((time.perf_counter() - began) / len(u))
    return 1e6 * min(times)


def _checks(values: Values, exact_m: Array, slope: float, balance_J: float) -> list[dict[str, Any]]:
    checks = [
        check("order of the tip's error in the step", slope, "1.95 to 2.05",
              agrees=1.95 <= slope <= 2.05),
        check("energy imbalance at short steps", balance_J, "< 1e-9", "J",
              agrees=balance_J < 1e-9),
    ]  # fmt: skip
    printed = PRINTED_TIP_M.get((values.element, values.segments))
    if printed is not None:
        at_1_ms = tips_m(values, 1e-3, [1.0])[0]
        for axis, short, at_h, text in zip("xy", exact_m, at_1_ms, printed, strict=True):
            for what, value, tolerance in (("short steps", short, 1e-8), ("1 ms", at_h, 2e-5)):
                checks.append(check(f"tip {axis} at 1 s, {what}", value, text, "m",
                                    agrees=abs(value - float(text)) < tolerance))  # fmt: skip
    return checks


def _notes(values: Values) -> list[str]:
    notes = [
        "The paper gives neither parameters nor numbers: the case is this project's own, and its "
        "curves are compared with other tools instead.",
        "Eq. (6) is used with +Q(0) instead of the printed -Q0, which is not continuous at t = 0. "
        "It is stepped exactly by recursion, because exp(k t/c) as printed overflows.",
    ]
    if values.element != "voigt":
        notes.append("Exudyn's kinematic tree has no Maxwell element: it is compared for Voigt.")
    missing = [tool for tool in ("pinocchio", "exudyn") if not has(tool)]
    if values.compare and missing:
        notes.append(f"Not installed, so not compared: {', '.join(missing)}.")
    return notes
