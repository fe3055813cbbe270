"""Tables that predict a force over the next seconds, for controllers that plan.

Cells with the same dynamics differ only by their static gains. With samples at
t_j = lead + j T_s, j = 1..J, after now, the state x, and the sum v_i of static gains times
activations at i = 0 (now), 1 (lead), 2 (lead + T_s), ... (linear in between), the force is

    y_j = Phi_j x + H_ji v_i + sum_b g(t_j - lead - b T) dL_b

dL_b is the static force switched on at block b. Phi and H are the exact discrete model. g is the
response to a unit force switched on from rest, including its activation. Switching off from a
settled state gives -g because the sigmoid of activation is symmetrical.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.discrete import discretise
from hil.systems.array.model.activation import (
    SIGMOID,
    UNSCALED,
    CellActivation,
    sigmoid_N,
    two_rows,
)
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.force_levels import static_gains_N
from hil.systems.array.model.response import responses
from hil.systems.array.model.system import ArraySystem

ALIKE = 0.05
"""Largest deviation of one cell's response from that of all cells, relative to its static gain.

The modes of the array ring by less than 1 % when cells with series dampers switch.
"""


class Prediction(NamedTuple):
    """Prediction tables of a model; the module gives the equation.

    Attributes
    ----------
    Phi : (J, n) array
    H : (J, J + 2) array
    g : (J,) array, response at every sample to a unit force switched on at `lead`
    static_gains_N : (N,) array
    kind : (N,) array
    stop, rate_per_s : (2, N) arrays, activation of every cell, as in `activation`
    """

    Phi: Array
    H: Array
    g: Array
    static_gains_N: Array
    kind: NDArray[np.uint8]
    stop: Array
    rate_per_s: Array
    lead_s: float
    sample_s: float


def predict(
    model: CellArray,
    activation: Sequence[CellActivation],
    output: str,
    *,
    lead_s: float,
    sample_s: float,
    n_samples: int,
) -> Prediction:
    """Return the tables for the force at `output`.

    Raises
    ------
    ModelError
        The cells respond differently, are thermal, or add no force.
    """
    F_N = np.array([a.force_on_N for a in activation])
    gains_N = static_gains_N(model, F_N, output)
    total = float(gains_N.sum())
    if any(a.has_wire for a in activation):
        raise ModelError(
            "planning does not support thermal cells: give [model] a sigmoid activation"
        )
    if not total > 0.0:
        raise ModelError("the cells add nothing to the force")
    row = [model.outputs.index(output)]
    n, N = len(model.states), model.n_cells
    B, C, D = model.B[:, :N] @ F_N / total, model.C[row], model.D[row][:, :N] @ F_N / total
    first = discretise(model.A, B[:, None], C, D[:, None], lead_s)
    step = discretise(model.A, B[:, None], C, D[:, None], sample_s)
    # Propagate the state and every grid value of v together, as columns of one matrix.
    width = n + n_samples + 2
    x = np.zeros((n, width))
    x[:, :n] = np.eye(n)
    v = np.zeros((n_samples + 2, width))
    v[:, n:] = np.eye(n_samples + 2)
    rows = np.empty((n_samples, width))
    for i in range(n_samples + 1):
        d = first if i == 0 else step
        x = d.Ad @ x + d.B0 @ v[i : i + 1] + d.B1 @ v[i + 1 : i + 2]
        if i > 0:
            rows[i - 1] = (C @ x + D * v[i + 1])[0]
    return Prediction(
        Phi=np.ascontiguousarray(rows[:, :n]),
        H=np.ascontiguousarray(rows[:, n:]),
        g=_unit_response(model, activation, gains_N, row[0], sample_s, n_samples),
        static_gains_N=gains_N,
        kind=np.array([a.code for a in activation], dtype=np.uint8),
        stop=two_rows([a.stops for a in activation]),
        rate_per_s=two_rows([a.rates_per_s for a in activation]),
        lead_s=lead_s,
        sample_s=sample_s,
    )


def _unit_response(
    model: CellArray,
    activation: Sequence[CellActivation],
    gains_N: Array,
    output: int,
    sample_s: float,
    n_samples: int,
) -> Array:
    """Return the response of all cells switched on from rest, relative to their static force."""
    pieces = max(1, int(np.ceil(sample_s / 0.005)))  # the sigmoid is linear within a piece
    period_s = sample_s / pieces

    kinds = _one_of_each(gains_N, activation)
    on = np.array([np.ones(len(gains_N)), *np.eye(len(gains_N))[kinds]], dtype=np.uint8)
    systems = [ArraySystem(model, activation, period_s) for _ in on]
    held = [np.tile(one, (n_samples * pieces, 1)) for one in on]
    first, *others = (y[pieces::pieces, 0] - y[0, 0]
                      for y in responses(systems, np.array([output]), held))  # fmt: skip
    together: Array = first / float(gains_N.sum())
    for n, y in zip(kinds, others, strict=True):
        alone = y / gains_N[n]
        if np.abs(alone - together).max() > ALIKE:
            raise ModelError(
                f"cell {n + 1} responds differently from the others: planning needs cells that "
                f"differ by "
                "their static force only"
            )
    return together


def _one_of_each(gains_N: Array, activation: Sequence[CellActivation]) -> list[int]:
    """Return the first cell of every combination of static gain and activation."""
    seen: dict[object, int] = {}
    tiny = 1e-9 * float(np.abs(gains_N).sum())
    for n, (gain_N, a) in enumerate(zip(gains_N, activation, strict=True)):
        if abs(gain_N) > tiny:
            seen.setdefault((round(gain_N / tiny / 10), a.code, a.rates_per_s, a.stops), n)
    return list(seen.values())


@njit(cache=True)
def free_response(  # type: ignore[no-untyped-def]
    prediction, x: Array, theta: Array, on: NDArray[np.uint8], y: Array, v: Array
) -> None:
    """Write into y (J,) the force if no cell is switched; v (J + 2,) is work space.

    A `Prediction` passes faster from Python as a plain tuple.
    """
    Phi, H, _, gains_N, kind, stop, rate, lead_s, sample_s = prediction
    for i in range(len(v)):
        t_s = 0.0 if i == 0 else lead_s + (i - 1) * sample_s
        total = 0.0
        for n in range(len(gains_N)):
            if kind[n] == SIGMOID or kind[n] == UNSCALED:
                turn = rate[0, n] * t_s if on[n] else -rate[1, n] * t_s
                angle = min(stop[1, n], max(-stop[0, n], theta[n] + turn))
                total += sigmoid_N(gains_N[n], kind[n], stop[0, n], stop[1, n], angle)
            elif on[n]:
                total += gains_N[n]
        v[i] = total
    for j in range(len(y)):
        total = 0.0
        for i in range(len(x)):
            total += Phi[j, i] * x[i]
        for i in range(len(v)):
            total += H[j, i] * v[i]
        y[j] = total
