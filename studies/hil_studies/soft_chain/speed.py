"""Soft links for `hil bench`: a step and an evaluation over the number of segments, and peers.

Every time is the minimum over alternating rounds, because other processes can only add time.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from hil.runs.timing import repeated_s
from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import SoftTree
from hil_studies.soft_chain.cases import rubber_manipulator, servo_input
from hil_studies.soft_chain.peers import exudyn_run, has, pinocchio_aba, pinocchio_dense

SEGMENTS = (4, 8, 16, 32, 64, 128, 256, 512, 1000)
EXUDYN_SEGMENTS_MAX = 64
EXPLICIT_SEGMENTS_MAX = 128
PINOCCHIO_SEGMENTS_MAX = 256  # 1000 joints would take tens of GB
STEP_S = 1e-3
TURNS = 7
OURS = "recursion, generalized-alpha"
DENSE = "dense, generalized-alpha"
RK4 = "recursion, explicit RK4"
EXUDYN = "Exudyn, generalized-alpha"
RK4_LIMIT = 2.785  # |h lambda| on the negative real axis

Row = dict[str, Any]


def cost_over_segments(spectral_radius: float = 0.8) -> list[Row]:
    """Measure an evaluation, a step and a simulated second over N segments, Voigt."""
    tools = {n: _tools(n, spectral_radius) for n in SEGMENTS}
    times: dict[int, dict[str, list[float]]] = {n: {t: [] for t in tools[n]} for n in tools}
    # Run the dense tools last: LAPACK's threads keep spinning after every call.
    for last in (False, True):
        for _ in range(TURNS):
            for n, each in tools.items():
                for tool, measure in each.items():
                    if (tool == "dense") == last:
                        times[n][tool].append(measure())
    least = {n: {tool: min(s) for tool, s in times[n].items()} for n in tools}
    return [_row(n, least[n], spectral_radius) for n in SEGMENTS]


def _tools(n: int, rho: float) -> Mapping[str, Callable[[], float]]:
    """Return, for this size, functions that return their time in seconds."""
    tree, _ = rubber_manipulator("voigt", n)
    rng = np.random.default_rng(0)
    q, v = 0.05 * rng.standard_normal(n + 1), 0.5 * rng.standard_normal(n + 1)
    torque, u = np.zeros(n + 1), servo_input(0.1)
    tools: dict[str, Callable[[], Any]] = {
        "recursion": partial(SoftStepper(tree, rho).accelerations, q, v, u)
    }
    if has("pinocchio") and n <= PINOCCHIO_SEGMENTS_MAX:
        tools["pinocchio ABA"] = partial(pinocchio_aba(tree), q, v, torque)
        tools["dense"] = partial(pinocchio_dense(tree), q, v, torque)
    timed = {tool: partial(repeated_s, evaluate) for tool, evaluate in tools.items()}
    return timed | {"step": partial(_steps, tree, rho)}


def _steps(tree: SoftTree, rho: float) -> float:
    """Return seconds per compiled step; short runs (2 ms) are less affected by other processes."""
    stepper = SoftStepper(tree, rho)
    n_steps = max(10, min(100, 20_000 // tree.n))
    inputs = servo_input(STEP_S * np.arange(1, n_steps + 1))
    began = time.perf_counter()
    stepper.run(STEP_S, inputs)
    return (time.perf_counter() - began) / len(inputs)


def _row(n: int, least_s: dict[str, float], rho: float) -> Row:
    tree, _ = rubber_manipulator("voigt", n)
    row: Row = {"segments": n} | {f"{tool}_us": 1e6 * s for tool, s in least_s.items()}
    second = {OURS: least_s["step"] / STEP_S}
    if n <= EXPLICIT_SEGMENTS_MAX:
        n_explicit = fastest_pole_per_s(tree) / RK4_LIMIT
        second[RK4] = 4.0 * n_explicit * least_s["recursion"]
        row["explicit_step_us"] = 1e6 / n_explicit
    if "dense" in least_s:
        stepper = SoftStepper(tree, rho)
        stepper.run(STEP_S, servo_input(STEP_S * np.arange(1, 101)))
        second[DENSE] = least_s["dense"] * stepper.passes / STEP_S
    if has("exudyn") and n <= EXUDYN_SEGMENTS_MAX:
        second[EXUDYN] = min(exudyn_run(tree, STEP_S, 0.1, rho)[1] for _ in range(3)) / 0.1
    return row | {"simulated_second_s": second}


def fastest_pole_per_s(tree: SoftTree) -> float:
    """Return the largest |lambda| of the chain at rest, which limits explicit steps."""
    stepper = SoftStepper(tree)
    n, n_branches, small = tree.n, len(tree.branch_joint), 1e-6
    u = servo_input(0.0)
    kM, tau_s = stepper.parts.branches[:2]
    rest = stepper.accelerations(np.zeros(n), np.zeros(n), u)
    A = np.zeros((2 * n + n_branches,) * 2)
    A[:n, n : 2 * n] = np.eye(n)
    for i, row in enumerate(small * np.eye(n)):
        A[n : 2 * n, i] = (stepper.accelerations(row, np.zeros(n), u) - rest) / small
        A[n : 2 * n, n + i] = (stepper.accelerations(np.zeros(n), row, u) - rest) / small
    for b in range(n_branches):
        stepper.R[b] = small
        A[n : 2 * n, 2 * n + b] = (
            stepper.accelerations(np.zeros(n), np.zeros(n), u) - rest
        ) / small
        stepper.R[b] = 0.0
        A[2 * n + b, n + tree.branch_joint[b]] = kM[b]
        A[2 * n + b, 2 * n + b] = -1.0 / tau_s[b]
    return float(np.abs(scipy.linalg.eigvals(A)).max())


def as_text(rows: list[Row]) -> str:
    """Return the rows as a table."""
    lines = [f"{'soft link, us':<20}{'a step of 1 ms':>16}{'evaluation':>12}{'pinocchio':>12}"
             f"{'dense':>10}{'Exudyn, a step':>16}"]  # fmt: skip
    for row in rows:
        exudyn_s = row["simulated_second_s"].get(EXUDYN)
        cells = [row.get("pinocchio ABA_us"), row.get("dense_us"),
                 None if exudyn_s is None else 1e6 * STEP_S * exudyn_s]  # fmt: skip
        others = [f"{cell:.1f}" if cell is not None else "" for cell in cells]
        ours = f"{row['step_us']:>16.1f}{row['recursion_us']:>12.1f}"
        lines.append(
            f"{row['segments']:>5} segments      {ours}"
            f"{others[0]:>12}{others[1]:>10}{others[2]:>16}".rstrip()
        )
    return "\n".join(lines)
