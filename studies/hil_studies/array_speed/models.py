"""Compares model steps with general tools: build time, step time, error.

All simulate the same case: a cellular array between fixed ends, every cell switched on at t = 0
and held, the force at the right end read every millisecond. The error is the largest difference
from a reference in 80-bit arithmetic, relative to the largest force.
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.integrate
import scipy.signal
import scipy.sparse as sp
from numpy.typing import NDArray

from hil.mechanics.arrays import Array
from hil.mechanics.discrete import LinearStepper, discretise
from hil.systems.array.model import cells
from hil.systems.array.model.cell_array import EXACT_ORDER_MAX, CellArray
from hil.systems.array.model.sparse_step import SparseStepper

PERIOD_S = 0.001
DENSE_CELLS_MAX = 1100
FINGERPRINTS = (
    "-:1 | &1:2 | &1:1 &2:2 | &7:-1",
    "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
)
MESHES = ((10, 50, 400), (100, 50, 500))
STEPS = 5000

Run = Callable[[], tuple[float, float, Array]]


def mesh(width: int, n_layers: int) -> str:
    """Return the fingerprint of a cylinder; two cells leave every mass: straight and diagonal."""
    masks = [1 << (2 * i) | 1 << (2 * ((i - 1) % width) + 1) for i in range(width)]
    first = " ".join(f"&{1 << i:X}:2" for i in range(width))
    layer = " ".join(f"&{mask:X}:2" for mask in masks)
    return f"-:{width} | {first} | {f'{layer} | ' * (n_layers - 1)}&{4**width - 1:X}:-1"


def compare() -> list[dict[str, Any]]:
    """Return one row per tool and size; times in s, memory in B."""
    rows = []
    for text in FINGERPRINTS:
        rows += _compare_at(text, STEPS)
    for width, n_layers, n_steps in MESHES:
        rows += _compare_at(mesh(width, n_layers), n_steps)
    return rows


def as_text(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table, with step times relative to this package."""
    lines = [f"{'':<14}{'tool':<30}{'build':>10}{'a step':>12}{'ratio':>8}{'error':>10}"]
    ours: dict[str, float] = {}
    for row in rows:
        ours.setdefault(row["size"], row.get("step_s", float("nan")))
        if "step_s" not in row:
            lines.append(f"{row['size']:<14}{row['tool']:<30}{row['why']}")
            continue
        ratio = row["step_s"] / ours[row["size"]]
        lines.append(
            f"{row['size']:<14}{row['tool']:<30}{1e3 * row['build_s']:>7.1f} ms"
            f"{1e6 * row['step_s']:>9.2f} us{ratio:>8.1f}{row['error']:>10.1e}"
        )
    return "\n".join(lines)


def _compare_at(text: str, n_steps: int) -> list[dict[str, Any]]:
    model = _assembled(text)
    size = f"{model.n_cells} cells"
    tools: dict[str, Run] = {"this package": lambda: _this_package(text, n_steps)}
    if model.n_cells <= DENSE_CELLS_MAX:
        tools["scipy.signal.lsim"] = lambda: _lsim(text, n_steps)
        if find_spec("control") is not None:
            tools["control.forced_response"] = lambda: _forced_response(text, n_steps)
    tools["solve_ivp, RK45"] = lambda: _rk45(text, n_steps)
    _this_package(text, 2)  # compiled before it is timed
    exact = _reference(model, n_steps)
    rows = []
    for tool, run in tools.items():
        build_s, step_s, y = run()
        error = float(np.abs(y - exact).max() / np.abs(exact).max())
        rows.append(
            {"size": size, "tool": tool, "n_cells": model.n_cells, "order": len(model.states),
             "n_steps": n_steps, "build_s": build_s, "step_s": step_s, "error": error}
        )  # fmt: skip
    if model.n_cells > DENSE_CELLS_MAX:
        need_GB = 8.0 * len(model.states) ** 2 / 1e9
        why = f"not run: A alone takes {need_GB:.1f} GB, its exponential several times that"
        rows.append({"size": size, "tool": "dense tools", "n_cells": model.n_cells, "why": why})
    return rows


def _assembled(text: str) -> CellArray:
    cell = cells.miga(
        k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0
    )
    return CellArray.from_fingerprint(text, cell=cell, mass_kg=0.01583)


def _right(model: CellArray) -> int:
    return model.outputs.index("array.right_N")


def _this_package(text: str, n_steps: int) -> tuple[float, float, Array]:
    began = time.perf_counter()
    model = _assembled(text)
    n = model.n_cells
    on, rest = np.ones(n), np.zeros(n)
    stepper: LinearStepper | SparseStepper
    if len(model.states) <= EXACT_ORDER_MAX:
        row = [_right(model)]
        exact = discretise(model.A, model.B, model.C[row], model.D[row], PERIOD_S)
        stepper = LinearStepper(exact, np.zeros(len(model.states)), rest)
    else:
        x0 = model.equilibrium(rest)
        stepper = SparseStepper(model, PERIOD_S, ["array.right_N"], x0, rest)
    built = time.perf_counter()
    y = stepper.run(np.broadcast_to(on, (n_steps, n)))
    return built - began, (time.perf_counter() - built) / n_steps, y[:, 0]


def _all_on(model: CellArray) -> tuple[Array, Array, Array, Array]:
    """One input for all cells, one output."""
    row = [_right(model)]
    together = np.ones((model.n_cells, 1))
    return model.A, model.B @ together, model.C[row], model.D[row] @ together


def _times(n_steps: int) -> Array:
    return np.linspace(0.0, PERIOD_S * n_steps, n_steps + 1)


def _lsim(text: str, n_steps: int) -> tuple[float, float, Array]:
    began = time.perf_counter()
    system = _all_on(_assembled(text))

    def simulate(n: int) -> Array:
        return np.asarray(scipy.signal.lsim(system, np.ones(n + 1), _times(n), interp=False)[1])

    return _split(simulate, n_steps, began)


def _forced_response(text: str, n_steps: int) -> tuple[float, float, Array]:
    import control

    began = time.perf_counter()
    system = control.ss(*_all_on(_assembled(text)))

    def simulate(n: int) -> Array:
        return np.asarray(control.forced_response(system, _times(n), np.ones(n + 1)).outputs)

    return _split(simulate, n_steps, began)


def _split(
    simulate: Callable[[int], Array], n_steps: int, began: float
) -> tuple[float, float, Array]:
    """Tools that discretise at every call: a call of one step counts as building."""
    simulate(1)
    built = time.perf_counter()
    one_s, all_s = [], []
    for _ in range(2):
        start = time.perf_counter()
        simulate(1)
        middle = time.perf_counter()
        y = simulate(n_steps)
        one_s.append(middle - start)
        all_s.append(time.perf_counter() - middle)
    return built - began, (min(all_s) - min(one_s)) / (n_steps - 1), y[1:]


def _rk45(text: str, n_steps: int) -> tuple[float, float, Array]:
    """The paper's ODE45, with tolerances for an error of about 1e-8."""
    began = time.perf_counter()
    model = _assembled(text)
    A, B, C, D = model.sparse
    push, at = B @ np.ones(model.n_cells), _right(model)
    small = len(model.states) <= EXACT_ORDER_MAX
    matrix = A.toarray() if small else A
    built = time.perf_counter()
    answer = scipy.integrate.solve_ivp(
        lambda t, x: matrix @ x + push, (0.0, n_steps * PERIOD_S), np.zeros(len(push)),
        t_eval=_times(n_steps)[1:], rtol=1e-8, atol=1e-13,
    )  # fmt: skip
    y = C[[at]] @ answer.y + (D[[at]] @ np.ones(model.n_cells))[:, None]
    return built - began, (time.perf_counter() - built) / n_steps, np.asarray(y)[0]


def _reference(model: CellArray, n_steps: int) -> Array:
    """Taylor series of the exponential to 1e-19, in 80-bit arithmetic, term by term."""
    A, B, C, D = (sp.csr_array(matrix.astype(np.longdouble)) for matrix in model.sparse)
    push = B @ np.ones(model.n_cells, dtype=np.longdouble)
    at = _right(model)
    row, feed = C[[at]], (D[[at]] @ np.ones(model.n_cells, dtype=np.longdouble))[0]
    x: NDArray[Any] = np.zeros(len(push), dtype=np.longdouble)
    y = np.empty(n_steps)
    h = np.longdouble(PERIOD_S)
    for step in range(n_steps):
        term = x.copy()
        for k in range(1, 60):
            term = h / k * (A @ term + (push if k == 1 else 0.0))
            x = x + term
            if np.abs(term).max() <= 1e-19 * np.abs(x).max():
                break
        y[step] = (row @ x)[0] + feed
    return y
