"""The observer with an unknown force."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.discrete import Discrete
from hil.mechanics.kalman import kalman_gain
from hil.systems.array.estimate.state_observer import ArrayObserver, ObserverNoise
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem

MIGA = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
PERIOD_S = 0.005
NOISE = ObserverNoise(cell_force_N=0.02, force_N=0.002, disturbance_N_per_sqrt_s=0.05)


def system(dead=()):
    model = CellArray.from_fingerprint(
        "-:1 | &1:2 | &1:1 &2:2 | &7:-1", cell=MIGA, mass_kg=0.01583, dead_cells=dead
    )
    return ArraySystem(model, [CellActivation(4.0)] * 6, PERIOD_S)


def test_the_disturbance_is_what_a_dead_cell_does_not_give():
    """At rest the unknown force is minus the static share of the cell that is dead."""
    told, plant = system(), system(dead=[3])
    output = told.model.outputs.index("array.right_N")
    observer = ArrayObserver(told, output, NOISE)
    on = np.ones(6, dtype=np.uint8)
    rng = np.random.default_rng(0)
    for _ in range(4000):
        plant.step(on)
        observer.advance(on, 1)
        observer.correct(float(plant.y[output]) + 0.002 * rng.standard_normal())
    F_N = np.zeros(6)
    F_N[2] = 4.0
    gain_N = told.model.force_at("array.right_N", told.model.solve_statics(F_N).tension_N)
    # its own steady-state error: 0.05 N/sqrt(s) wandering seen through 2 mN of noise
    assert observer.disturbance_N == pytest.approx(-gain_N, abs=0.02)
    assert observer.estimate_N == pytest.approx(float(plant.y[output]), abs=0.01)
    assert observer.twin_N == pytest.approx(float(plant.y[output]) + gain_N, abs=0.01)


def test_without_a_disturbance_none_is_estimated():
    told = system()
    output = told.model.outputs.index("array.right_N")
    observer = ArrayObserver(told, output, ObserverNoise(0.02, 0.002))
    for _ in range(50):
        observer.advance(np.ones(6, dtype=np.uint8), 1)
        observer.correct(5.0)
    assert observer.disturbance_N == 0.0


def test_the_gain_with_a_disturbance_is_where_the_covariance_recursion_ends():
    """A scalar lag and a wandering force: the Riccati recursion run to its end."""
    a, q, r, w = 0.9, 0.1, 0.05, 0.02
    d = Discrete(np.array([[a]]), np.array([[0.0]]), np.array([[1.0]]), np.array([[1.0]]),
                 np.array([[0.0]]), period_s=1.0)  # fmt: skip
    A, C, Q = np.diag([a, 1.0]), np.array([[1.0, 1.0]]), np.diag([q**2, w**2])
    P = np.eye(2)
    for _ in range(20_000):
        K = P @ C.T / (C @ P @ C.T + r**2)
        P = A @ (P - K @ C @ P) @ A.T + Q
    K = P @ C.T / (C @ P @ C.T + r**2)
    assert kalman_gain(d, 0, q, r, w) == pytest.approx(K.ravel(), rel=1e-8)


def test_a_growing_state_that_nothing_shows_has_no_stable_observer():
    d = Discrete(np.diag([0.9, 1.1]), np.zeros((2, 1)), np.array([[1.0], [0.0]]),
                 np.array([[1.0, 0.0]]), np.array([[0.0]]), period_s=1.0)  # fmt: skip
    with pytest.raises(ModelError, match="observer"):
        kalman_gain(d, 0, 0.1, 0.1)
