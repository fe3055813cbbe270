"""What a cellular array can do: poles, controllability, statics."""

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from hil.errors import ModelError
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import force_levels_N

ANALYSIS_ORDER_MAX = 600
ROUNDING = 1e-12  # of a cell's stiffness


@dataclass(frozen=True)
class Pole:
    """An eigenvalue of A, a complex pair once.

    Attributes
    ----------
    frequency_Hz : |imag|/2 pi, as it rings; 0 for a real pole
    damping : -real/|value|; 1 for a real stable pole
    count : how often it occurs
    """

    value_per_s: complex
    frequency_Hz: float
    damping: float
    count: int

    def facts(self) -> dict[str, float]:
        """Return what `hil model --json` prints."""
        return {"real_per_s": self.value_per_s.real, "frequency_Hz": self.frequency_Hz,
                "damping": self.damping, "count": self.count}  # fmt: skip


def check_order(model: CellArray, what: str) -> None:
    """Refuse a dense analysis beyond its order."""
    if len(model.states) > ANALYSIS_ORDER_MAX:
        raise ModelError(
            f"{what} needs dense matrices: order {len(model.states)} is beyond "
            f"{ANALYSIS_ORDER_MAX}, it would take minutes"
        )


def poles(model: CellArray, *, tolerance: float = 1e-6) -> list[Pole]:
    """Poles from slow to fast, equal ones counted."""
    check_order(model, "finding the poles")
    return grouped(scipy.linalg.eigvals(model.A), tolerance=tolerance)


def grouped(values: NDArray[np.complex128], *, tolerance: float = 1e-6) -> list[Pole]:
    """Return eigenvalues or zeros from slow to fast, equal ones counted, a complex pair once."""
    values = values[values.imag >= -tolerance * np.abs(values)]
    values = values[np.lexsort((values.imag, -values.real))]
    groups: list[list[complex]] = []
    for value in values[np.argsort(np.abs(values), kind="stable")].tolist():
        for group in groups:
            if abs(value - group[0]) <= tolerance * max(abs(value), 1.0):
                group.append(value)
                break
        else:
            groups.append([value])
    sets = []
    for group in groups:
        value = complex(np.mean(group))
        if abs(value.imag) <= tolerance * abs(value):
            value = complex(value.real, 0.0)
        size = abs(value)
        damping = -value.real / size if size > tolerance else 0.0
        sets.append(Pole(value, abs(value.imag) / (2.0 * np.pi), damping, len(group)))
    return sets


def unreachable(A: NDArray[np.float64], B: NDArray[np.float64], *, tolerance: float = 1e-9) -> int:
    """Number of states that the inputs cannot move.

    The order minus the dimension of the reachable subspace, by orthogonal staircase
    reduction of balanced A; the observable count is that of (A^T, C^T).

    Source: Van Dooren 1981, staircase algorithm.
    """
    n = len(A)
    if n == 0:
        return 0
    balanced, (scale, permutation) = scipy.linalg.matrix_balance(A, separate=True)
    b = B[permutation] / scale[:, None]
    norms = np.linalg.norm(b, axis=0)
    b = b[:, norms > 0.0] / norms[norms > 0.0]
    a = balanced / max(np.linalg.norm(balanced, 2), np.finfo(float).tiny)
    rest = n
    while rest and b.size:
        u, s, _ = np.linalg.svd(b)
        rank = int(np.sum(s > tolerance * max(1.0, s[0] if len(s) else 0.0)))
        if rank == 0:
            break
        a = u.T @ a @ u
        b = a[rank:, :rank]
        a = a[rank:, rank:]
        rest -= rank
    return rest


def stiffness_N_per_m(model: CellArray, name: str) -> float | None:
    """Static stiffness of one array between its held ends; None where an end is free."""
    array = model.arrays[name]
    if "free" in (model.points[array.start].support, model.points[array.end].support):
        return None
    moved = model.solve_statics(np.zeros(model.n_cells), position_m={array.end: 1.0})
    force_N = model.force_at(f"{name}.right_N", moved.tension_N)
    # of an array that broken cells have cut, only rounding is left
    of_a_cell = float(np.abs(model.coefficients.K_static).max(initial=0.0))
    return force_N if abs(force_N) > ROUNDING * of_a_cell else 0.0


def describe(model: CellArray, force_on_N: NDArray[np.float64]) -> dict[str, Any]:
    """Order, poles, statics, controllability: what `hil model` prints."""
    facts: dict[str, Any] = {
        "order": len(model.states),
        "n_cells": model.n_cells,
        "n_inputs": len(model.inputs),
        "n_outputs": len(model.outputs),
        "floating": model.floating,
    }
    if len(model.states) <= ANALYSIS_ORDER_MAX:
        its_poles = poles(model)
        facts["poles"] = [pole.facts() for pole in its_poles]
        facts["stable"] = all(p.value_per_s.real < 1e-9 for p in its_poles)
        facts["uncontrollable_states"] = unreachable(model.A, model.B)
        facts["unobservable_states"] = unreachable(model.A.T, model.C.T)
    on = model.solve_statics(force_on_N)
    facts["free_points_m"] = {
        name: float(x)
        for name, x in zip(model.points, on.position_m, strict=False)
        if model.points[name].support == "free"
    }
    for name in model.arrays:
        statics: dict[str, Any] = {}
        for side in ("left_N", "right_N"):
            statics[f"all_on_{side}"] = model.force_at(f"{name}.{side}", on.tension_N)
        stiffness = stiffness_N_per_m(model, name)
        statics["stiffness_N_per_m"] = stiffness
        if stiffness:
            statics["stroke_m"] = statics["all_on_right_N"] / stiffness
        statics["shares"] = model.static_gain(f"{name}.right_N").tolist()
        with contextlib.suppress(ModelError):  # too many levels to list
            levels = force_levels_N(model, force_on_N, f"{name}.right_N")
            steps = np.diff(levels)
            statics["n_force_levels"] = len(levels)
            statics["smallest_step_N"] = float(steps.min()) if len(steps) else 0.0
            statics["largest_step_N"] = float(steps.max()) if len(steps) else 0.0
        facts.setdefault("statics", {})[name] = statics
    return facts
