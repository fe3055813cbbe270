import numpy as np
import pytest
import scipy.linalg

import hil
from hil.errors import ModelError
from hil.experiment.load import load
from hil.mechanics import kalman
from hil.mechanics.kalman import kalman_gain
from hil.systems.array.build_force import force_signal
from hil.systems.array.estimate import state_observer
from hil.systems.array.estimate.state_observer import ObserverNoise, observer_gain
from hil.systems.array.model import cells
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem


def discrete_of(configs, experiment):
    config = load(configs / experiment)
    system = ArraySystem(config.model, config.activation(), config.tables.loop.period_s)
    output = config.model.outputs.index(force_signal(config.tables, config.model))
    return system.linear.discrete, output


@pytest.mark.parametrize("experiment", ["miga6/all_on.toml", "silicone4/levels.toml"])
def test_the_gain_is_where_the_covariance_recursion_ends(configs, experiment):
    d, output = discrete_of(configs, experiment)
    q, r = 0.05, 0.002
    A, B, C = d.Ad, d.B0 + d.B1, d.C[output : output + 1]
    P = np.eye(len(A))
    for _ in range(30000):
        L = P @ C.T / (C @ P @ C.T + r**2)
        P = A @ (P - L @ C @ P) @ A.T + q**2 * B @ B.T
        P = (P + P.T) / 2.0
    L = (P @ C.T / (C @ P @ C.T + r**2)).ravel()
    found = kalman_gain(d, output, q, r)
    np.testing.assert_allclose(found, L, rtol=1e-5, atol=1e-7 * np.abs(L).max())


def test_with_a_disturbance_the_gain_is_that_of_the_model_with_one_more_state(configs):
    """d+ = d + w adds to the output; of its variance a second, a period brings its share."""
    d, output = discrete_of(configs, "silicone4/levels.toml")
    q, r, wander = 0.05, 0.002, 0.1
    n = len(d.Ad)
    A, Q = np.eye(n + 1), np.zeros((n + 1, n + 1))
    A[:n, :n], B = d.Ad, d.B0 + d.B1
    Q[:n, :n], Q[n, n] = q**2 * B @ B.T, wander**2 * d.period_s
    C = np.append(d.C[output], 1.0)[None]
    P = np.eye(n + 1)
    for _ in range(30000):
        L = P @ C.T / (C @ P @ C.T + r**2)
        P = A @ (P - L @ C @ P) @ A.T + Q
        P = (P + P.T) / 2.0
    L = (P @ C.T / (C @ P @ C.T + r**2)).ravel()
    found = kalman_gain(d, output, q, r, wander)
    np.testing.assert_allclose(found, L, rtol=1e-5, atol=1e-7 * np.abs(L).max())
    assert len(kalman_gain(d, output, q, r)) == n


def strands(n, length, mass_kg=0.01583):
    """An array of n strands of so many cells, all alike."""
    rows = [" ".join(f"&{1 << i:X}:1" for i in range(n))] * (length - 1)
    miga = {"k_pe_N_per_m": 20.0, "k_se_N_per_m": 386.52, "k_ae_N_per_m": 1000.0,
            "b_N_s_per_m": 500.0}  # fmt: skip
    text = " | ".join([f"-:{n}", *rows, f"&{(1 << n) - 1:X}:-1"])
    return CellArray.from_fingerprint(text, cell=cells.miga(**miga), mass_kg=mass_kg)


def spread_N(gain, discrete, output, q, r):
    """Standard deviation of the estimate of an output, by the equation of Lyapunov."""
    A, B, C = discrete.Ad, discrete.B0 + discrete.B1, discrete.C[output]
    before = A @ (np.eye(len(A)) - np.outer(gain, C))
    noise = q**2 * B @ B.T + r**2 * np.outer(A @ gain, A @ gain)
    P = scipy.linalg.solve_discrete_lyapunov(before, noise)
    left = np.eye(len(A)) - np.outer(gain, C)
    after = left @ P @ left.T + r**2 * np.outer(gain, gain)
    return np.sqrt(C @ after @ C)


def test_of_alike_strands_the_gain_serves_as_well_as_that_of_all_their_states(monkeypatch):
    model, q, r = strands(5, 4), 0.05, 0.002
    discrete, output = model.discrete(1e-3), model.outputs.index("array.right_N")
    whole = kalman_gain(discrete, output, q, r)
    monkeypatch.setattr(state_observer, "EXACT_ORDER_MAX", 0)
    monkeypatch.delattr(CellArray, "discrete")  # without the exponential of all states
    found = observer_gain(model, 1e-3, output, ObserverNoise(q, r))
    best_N = spread_N(whole, discrete, output, q, r)
    assert spread_N(found, discrete, output, q, r) <= (1.0 + 1e-6) * best_N
    assert spread_N(0.5 * found, discrete, output, q, r) > 1.001 * best_N


def test_of_a_hundred_layers_the_gain_needs_no_exponential_of_all_their_states(monkeypatch):
    text = " | ".join(["-:3", *["&7:3"] * 99, "&7:-1"])
    cell = cells.miga(
        k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0
    )
    model = CellArray.from_fingerprint(text, cell=cell, mass_kg=0.01583)
    assert len(model.states) == 2 * 99 + 300
    monkeypatch.delattr(CellArray, "discrete")
    gain = observer_gain(
        model, 1e-3, model.outputs.index("array.right_N"), ObserverNoise(0.05, 0.002, 0.1)
    )
    assert 0.0 < gain[-1] < 1.0  # the share of a step of the output that is disturbance


def test_masses_that_are_not_alike_bound_the_states_of_an_observer(monkeypatch):
    masses = np.random.default_rng(1).uniform(0.012, 0.02, 74)
    model, noise = strands(72, 2, masses), ObserverNoise(0.05, 0.02, 0.02)
    output = model.outputs.index("array.right_N")
    monkeypatch.setattr(kalman, "SHOWN_MAX", 100)
    monkeypatch.setattr(state_observer, "UNLIKE_ORDER_MAX", 200)
    with pytest.raises(ModelError, match="differ an observer may have 200 states"):
        observer_gain(model, 1e-3, output, noise)


def test_the_observer_is_stable(configs):
    d, output = discrete_of(configs, "miga6/all_on.toml")
    gain = kalman_gain(d, output, 0.05, 0.002)
    closed = (np.eye(len(d.Ad)) - np.outer(gain, d.C[output])) @ d.Ad
    assert np.abs(np.linalg.eigvals(closed)).max() < 1.0


def test_the_observer_follows_a_plant_that_the_twin_does_not(all_on):
    run = hil.open_run(all_on)
    measured = run.force_measured_N.values
    observed = np.std(measured - run.force_estimate_N.values)
    assert observed < 0.5 * np.std(measured - run.force_model_N.values)


def test_no_measured_force_enters_the_twin(configs):
    """Another noise on the reading, and a reading that is off, leave the twin as it is."""
    name = configs / "miga6/all_on.toml"
    found = []
    for change in ("noise_rms_V=0.002", "noise_rms_V=0.1", "offset_V=0.3"):
        sets = ("experiment.duration_s=0.3", f"devices.daq.channels.force.sim.{change}")
        run = hil.simulate(load(name, sets), seed=1)
        found.append((run.force_model_N.values, run.force_estimate_N.values))
    for model_N, estimate_N in found[1:]:
        np.testing.assert_array_equal(model_N, found[0][0])
        assert (estimate_N != found[0][1]).any()
