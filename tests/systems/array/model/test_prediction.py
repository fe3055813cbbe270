"""Tables of a force to come against the array stepped period by period."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.prediction import free_response, predict
from hil.systems.array.model.system import ArraySystem

MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
TEXT = "-:1 | &1:2 | &1:1 &2:2 | &7:-1"
FORCE = "array.right_N"
PERIOD_S, LEAD_S, SAMPLE_S, N = 0.005, 0.02, 0.05, 20


def array(activation):
    model = CellArray.from_fingerprint(TEXT, cell=MIGA, mass_kg=0.01583)
    return model, [activation] * 6


@pytest.mark.parametrize(
    "activation",
    [CellActivation(4.0), CellActivation(4.0, "sigmoid", rate_per_s=5.0, delay_s=1.2)],
    ids=["step", "sigmoid"],
)
def test_the_free_response_is_what_the_array_does_if_nothing_is_switched(activation):
    model, each = array(activation)
    tables = predict(model, each, FORCE, lead_s=LEAD_S, sample_s=SAMPLE_S, n_samples=N)
    system = ArraySystem(model, each, PERIOD_S)
    rng = np.random.default_rng(0)
    on = np.zeros(6, dtype=np.uint8)
    for _ in range(30):  # somewhere in the middle of rising and falling
        on = rng.integers(0, 2, 6).astype(np.uint8)
        for _ in range(12):
            system.step(on)
    y, v = np.empty(N), np.empty(N + 2)
    free_response(tables, system.linear.x, system.activation.theta, on, y, v)
    output = model.outputs.index(FORCE)
    found = []
    for k in range(round((LEAD_S + N * SAMPLE_S) / PERIOD_S)):
        system.step(on)
        t_s = (k + 1) * PERIOD_S - LEAD_S
        if t_s > 1e-9 and abs(t_s / SAMPLE_S - round(t_s / SAMPLE_S)) < 1e-6:
            found.append(system.y[output])
    # the sigmoid, and its stop, are taken as straight between samples: h^2 f''/8 with f'' below
    # 0.1 rate^2 of a newton, and cells unlike in their share ring by less than a hundredth
    assert y == pytest.approx(np.array(found), abs=0.02 * tables.static_gains_N.sum())


def test_the_unit_response_is_that_of_the_cells_switched_on_from_rest():
    model, each = array(CellActivation(4.0))
    tables = predict(model, each, FORCE, lead_s=LEAD_S, sample_s=SAMPLE_S, n_samples=N)
    t_s = SAMPLE_S * np.arange(1, N + 1)
    lag = 1.0 - np.exp(-1386.52 / 500.0 * t_s)  # (k_se + k_ae) / b; the masses ring by about 1 %
    assert tables.g == pytest.approx(lag, abs=0.015)


def test_cells_that_respond_unlike_each_other_and_wires_are_refused():
    slow = cells.miga(
        k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=2000.0
    )
    model = CellArray.from_fingerprint(TEXT, cell=[MIGA, slow] * 3, mass_kg=0.01583)
    with pytest.raises(ModelError, match="responds differently from the others"):
        predict(model, [CellActivation(4.0)] * 6, FORCE, lead_s=LEAD_S, sample_s=SAMPLE_S,
                n_samples=N)  # fmt: skip
    model, wires = array(CellActivation(4.0, "thermal"))
    with pytest.raises(ModelError, match="planning does not support thermal cells"):
        predict(model, wires, FORCE, lead_s=LEAD_S, sample_s=SAMPLE_S, n_samples=N)
