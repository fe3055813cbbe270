"""Effort of equations of motion: by the method, and derived from Newton's law with SymPy.

The derivation uses no matrix of the method: it writes each cell's springs, damper and force, solves
for the rate inside the cell, and sums the tensions at each mass.

Source: MacNair & Ueda, "Dynamic Cellular Actuator Arrays and Expanded Fingerprint Method for
Dynamic Modeling", "Simulation" and "Results": about 15 minutes to program six cells from base
principles, 1 minute to form the fingerprint and a negligible computation time.
"""

import time
from importlib.util import find_spec
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hil.experiment.loaded import Experiment
from hil.mechanics.arrays import Array
from hil.pages.style import MEASURED, MODEL, styled_figure
from hil.systems.array.model import fingerprint
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.fingerprint import Topology
from hil.systems.array.tables import CellArraysTable
from hil.systems.array.topology.figures import MIGA

MASS_KG = 0.01583
LAYERS = (3, 7, 15, 31, 63, 127, 255, 511)
SYMBOLIC_LAYERS_MAX = 31
TURNS = 9

Symbolic = tuple[Any, Any, dict[str, Any]]
"""A, B as SymPy's matrices, and the symbols that they hold."""


def derive(topology: Topology, kind: str) -> Symbolic:
    """Return A and B of an array between fixed ends, derived with symbols.

    The states are the positions and velocities of the interior masses and the length of every
    cell's actuator, the inputs every cell's F.

    Parameters
    ----------
    kind : `miga` (damper across the actuator) or `hill` (damper across the series spring)
    """
    import sympy as sp

    k_pe, k_se, k_ae, b, m = sp.symbols("k_pe k_se k_ae b m", positive=True)
    n_masses, n_cells = topology.n_masses, topology.n_cells
    x = [sp.S.Zero, *sp.symbols(f"x2:{n_masses}"), sp.S.Zero]
    v = [sp.S.Zero, *sp.symbols(f"v2:{n_masses}"), sp.S.Zero]
    d, F = sp.symbols(f"d1:{n_cells + 1}"), sp.symbols(f"F1:{n_cells + 1}")
    rate = sp.Symbol("rate")
    force = [sp.S.Zero] * n_masses
    inside = []
    for n, (i, j) in enumerate(zip(topology.left, topology.right, strict=True)):
        e, e_dot = x[j] - x[i], v[j] - v[i]
        actuator, series = k_ae * d[n] + F[n], k_se * (e - d[n])
        if kind == "miga":
            actuator += b * rate
        else:
            series += b * (e_dot - rate)
        solved = sp.solve(actuator - series, rate)[0]
        inside.append(solved)
        tension = k_pe * e + series.subs(rate, solved)
        force[i] += tension
        force[j] -= tension
    rates = [*v[1:-1], *(f / m for f in force[1:-1]), *inside]
    states = [*x[1:-1], *v[1:-1], *d]
    both, _ = sp.linear_eq_to_matrix([sp.expand(r) for r in rates], [*states, *F])
    n = len(states)
    return both[:, :n], both[:, n:], {"k_pe": k_pe, "k_se": k_se, "k_ae": k_ae, "b": b, "m": m}


def effort(name: str, config: Experiment) -> dict[str, Any]:
    """Compare the user's effort and the computing time with equations written by hand.

    By hand, the user writes one equation per state and one term per non-zero coefficient. With
    this method, the user writes one line, the fingerprint, and the cell's values. SymPy, where it
    is installed, derives the same equations; `symbolic_difference` is of A and B.
    """
    model = config.model
    A, B, _, _ = model.sparse
    symbolic_s = difference = None
    if find_spec("sympy") is not None:
        tables = config.tables.model
        assert isinstance(tables, CellArraysTable)
        began = time.perf_counter()
        derived = derive(model.arrays["muscle"].topology, tables.arrays["muscle"].cell[0].kind)
        symbolic_s = time.perf_counter() - began
        difference = disagreement(model, derived, tables.arrays["muscle"].cell[0].model_dump())
    return {
        "array": name,
        "fingerprint": model.arrays["muscle"].topology.text,
        "lines_with_the_method": 1,
        "equations_by_hand": len(model.states),
        "terms_by_hand": int(A.nnz + B.nnz),
        "assembly_s": assembly_s(model),
        "symbolic_s": symbolic_s,
        "symbolic_difference": difference,
    }


def disagreement(model: CellArray, derived: Symbolic, cell: dict[str, Any]) -> float:
    """Return the largest difference of A and B, relative to the largest entry of each."""
    import sympy as sp

    A, B, symbols = derived
    values = {key.partition("_N")[0]: value for key, value in cell.items()}
    values["m"] = float(model.arrays["muscle"].mass_kg[0])
    numbers = {symbol: values[name] for name, symbol in symbols.items()}
    worst = 0.0
    for symbolic, ours in ((A, model.A), (B, model.B)):
        other: Array = np.array(sp.Matrix(symbolic).subs(numbers).tolist(), dtype=np.float64)
        worst = max(worst, float(np.abs(other - ours).max() / np.abs(ours).max()))
    return worst


def assembly_s(model: CellArray) -> float:
    """Return the least time in which the method makes the sparse matrices of an array."""
    times_s = []
    for _ in range(TURNS):
        began = time.perf_counter()
        CellArray(model.points, model.arrays).sparse  # noqa: B018
        times_s.append(time.perf_counter() - began)
    return min(times_s)


def growth() -> list[dict[str, Any]]:
    """Return the times of both ways for arrays of ever more layers of two parallel cells."""
    rows = []
    for n_layers in LAYERS:
        text = " | ".join(["-:2", *["&3:2"] * (n_layers - 1), "&3:-1"])
        model = CellArray.from_fingerprint(text, cell=MIGA, mass_kg=MASS_KG, name="muscle")
        row = {"n_cells": model.n_cells, "method_s": assembly_s(model), "symbolic_s": None}
        if n_layers <= SYMBOLIC_LAYERS_MAX and find_spec("sympy") is not None:
            began = time.perf_counter()
            derive(fingerprint.parse(text), "miga")
            row["symbolic_s"] = time.perf_counter() - began
        rows.append(row)
    return rows


def draw_growth(rows: list[dict[str, Any]]) -> Figure:
    """Draw both times over the number of cells."""
    with styled_figure(7.0, 4.2) as figure:
        axis = figure.subplots()
        for key, colour, label in (
            ("symbolic_s", MEASURED, "derived with SymPy"), ("method_s", MODEL, "by the method"),
        ):  # fmt: skip
            shown = [row for row in rows if row[key] is not None]
            axis.loglog([row["n_cells"] for row in shown], [row[key] for row in shown], "o-",
                        color=colour, lw=1.2, ms=4, label=label)  # fmt: skip
        axis.set(xlabel="cells", ylabel="time for the equations of motion [s]")
        axis.legend(frameon=False)
    return figure
