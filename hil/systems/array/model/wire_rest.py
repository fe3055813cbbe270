"""Wires under stress at rest in air that is warm enough to contract them.

Every wire has the temperature of its air and comes from the cold, so it is on its heating branch,
xi = F_h(T, f / A). With the stretch d = G F of the array at rest, its tension f is the zero of

    f - p - k_ae (d - G_n F_n) - (1 + k_ae G_n) F(f)
    F(f) = F_on (1 - (1 - xi(f)) h(f / A) / h(p / A))

which rises with f. `hil.systems.array.model.wire_load` has the symbols. The cells are solved one
after the other until none changes. The wire of a broken cell hangs: f = F = 0.
"""

from collections.abc import Sequence

import numpy as np

from hil.mechanics.arrays import Array
from hil.mechanics.sma.stressed import PIECES, knots_C
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.wire_load import Loaded, stress_Pa, stretch_states

SWEEPS_MAX, SETTLED_N = 200, 1e-9
SHARES = np.linspace(0.0, 1.0, PIECES + 1)


def at_rest(model: CellArray, cells: Sequence[CellActivation]) -> tuple[Array, Array, Array] | None:
    """Return austenite, force F and tension in N, (N,) each; None if all wires are cold.

    Cells without a wire under stress have zeros.
    """
    loaded = [n for n, cell in enumerate(cells) if cell.loaded is not None]
    hang = set(model.broken)
    rest_Pa = {n: 0.0 if n in hang else _rest_Pa(cells[n]) for n in loaded}
    if all(_austenite(cells[n], rest_Pa[n]) == 0.0 for n in loaded):
        return None
    n_cells = len(cells)
    at = stretch_states(model, loaded)
    per_N = np.array([model.equilibrium(one)[at] for one in np.eye(n_cells)[loaded]]).T
    F_N, f_N, xi = np.zeros((3, n_cells))
    for _ in range(SWEEPS_MAX):
        before = F_N.copy()
        for i, n in enumerate(loaded):
            if n in hang:
                xi[n] = _austenite(cells[n], 0.0)
                continue
            per_own_N = float(per_N[i, i])
            others_m = float(per_N[i] @ F_N[loaded]) - per_own_N * F_N[n]
            f_N[n], F_N[n], xi[n] = _one(cells[n], others_m, per_own_N)
        if np.abs(F_N - before).max() < SETTLED_N:
            break
    return xi, F_N, f_N


def _one(cell: CellActivation, others_m: float, own_m_per_N: float) -> tuple[float, float, float]:
    """Tension, force and austenite of a cell whose wire others stretch by others_m."""
    load = _load(cell)
    pull_N, wire = cell.wire.n_wires * load.pretension_N, cell.wire
    eases = 1.0 + load.k_ae_N_per_m * own_m_per_N
    known_N = pull_N + load.k_ae_N_per_m * others_m

    def force_N(f_N: float) -> float:
        share = _stroke(cell, f_N / wire.n_wires) / _stroke(cell, load.pretension_N)
        left = 1.0 - _austenite(cell, stress_Pa(wire, f_N / wire.n_wires))
        return cell.force_on_N * (1.0 - left * share)

    def off_N(f_N: float) -> float:
        return f_N - known_N - eases * force_N(f_N)

    f_N = 0.0  # slack
    if off_N(0.0) < 0.0:
        from scipy.optimize import brentq  # 0.3 s, which runs without wires save

        f_N = float(brentq(off_N, 0.0, abs(known_N) + cell.force_on_N * (1.0 + abs(eases))))
    # Under a weight the tension is the weight, eases is 0, and the force is not told by it.
    F_N = force_N(f_N) if f_N > 0.0 else -known_N / eases
    return f_N, F_N, _austenite(cell, stress_Pa(wire, f_N / wire.n_wires))


def _load(cell: CellActivation) -> Loaded:
    assert cell.loaded is not None
    return cell.loaded


def _rest_Pa(cell: CellActivation) -> float:
    return stress_Pa(cell.wire, _load(cell).pretension_N)


def _stroke(cell: CellActivation, tension_N: float) -> float:
    law, s = _load(cell).law, stress_Pa(cell.wire, tension_N)
    return float(law.stroke(s) + (1.0 / law.modulus_M_Pa - 1.0 / law.modulus_A_Pa) * s)


def _austenite(cell: CellActivation, s: float) -> float:
    """On the heating branch, as tabulated for the kernel."""
    law = _load(cell).law
    return float(np.interp(cell.wire.ambient_C, knots_C(law, law.heating, s), SHARES))
