import numpy as np
import pytest

from hil.errors import ModelError
from hil.experiment.load import load
from hil.mechanics.kalman import kalman_gain
from hil.systems.array.build_force import force_signal
from hil.systems.array.estimate.state_observer import ArrayObserver, ObserverNoise
from hil.systems.array.model.activation import Activation
from hil.systems.array.model.system import ArraySystem

NOISE = ObserverNoise(0.05, 0.002)
WANDERING = ObserverNoise(0.05, 0.002, 0.1)


def made(configs, experiment, noise=NOISE):
    """A configuration, an observer on its model, and which output it corrects."""
    config = load(configs / experiment)
    system = ArraySystem(config.model, config.activation(), config.tables.loop.period_s)
    output = config.model.outputs.index(force_signal(config.tables, config.model))
    return (
        config,
        ArrayObserver(system, output, noise),
        output,
        system.model.discrete(system.period_s),
    )


def readings(n_cells, n=400, missing=0.0):
    """Cells on, periods since the last reading, and readings."""
    rng = np.random.default_rng(0)
    cells = np.repeat(rng.integers(0, 2, (n // 40, n_cells)), 40, axis=0).astype(np.uint8)
    force_N = np.where(rng.random(n) < missing, np.nan, rng.normal(1.0, 0.5, n))
    return zip(cells, rng.integers(1, 4, n), force_N, strict=True)


@pytest.mark.parametrize("experiment", ["miga6/all_on.toml", "array14/groups.toml"])
def test_twin_and_observer_are_the_recursion_of_the_book(configs, experiment):
    """X = A x + B F, for the observer then x += L (y - C x - D F), in NumPy."""
    config, observer, output, d = made(configs, experiment)
    gain = kalman_gain(d, output, NOISE.cell_force_N, NOISE.force_N)
    activation = Activation(config.activation(), config.tables.loop.period_s)
    F_N = activation.F_N
    x = twin = config.model.equilibrium(F_N)
    for cells, n_periods, force_N in readings(config.model.n_cells):
        observer.step(cells, int(n_periods), float(force_N))
        for _ in range(n_periods):
            activation.step(cells)
            drive = d.B0 @ activation.F_before_N + d.B1 @ F_N
            twin, x = d.Ad @ twin + drive, d.Ad @ x + drive
        x = x + gain * (force_N - (d.C[output] @ x + d.D[output] @ F_N))
        # two orders of summing the same few hundred terms
        assert observer.twin_N == pytest.approx(d.C[output] @ twin + d.D[output] @ F_N, abs=1e-10)
        assert observer.estimate_N == pytest.approx(d.C[output] @ x + d.D[output] @ F_N, abs=1e-10)


def test_one_kernel_gives_the_bits_of_the_steppers_one_by_one(configs):
    _, one, _, _ = made(configs, "miga6/all_on.toml", WANDERING)
    _, each, _, _ = made(configs, "miga6/all_on.toml", WANDERING)
    assert one._kernel is not None
    each._kernel = None
    for cells, n_periods, force_N in readings(6, missing=0.2):
        for observer in (one, each):
            observer.step(cells, int(n_periods), float(force_N))
        np.testing.assert_array_equal(one.outputs, each.outputs)
        assert one.twin_N == each.twin_N
        np.testing.assert_array_equal(one.x, each.x)
        assert one.estimate_N == each.estimate_N


def test_rows_at_once_are_the_ticks_one_by_one_and_none_has_passed_at_the_first(configs):
    _, one, _, _ = made(configs, "miga6/all_on.toml", WANDERING)
    _, each, _, _ = made(configs, "miga6/all_on.toml", WANDERING)
    given = [(cells, force_N) for cells, _, force_N in readings(6, n=80, missing=0.2)]
    cells, force_N = (np.array(column) for column in zip(*given, strict=True))
    rows = one.step_rows(cells, force_N)
    assert rows.shape == (80, 3)
    for k in range(80):
        each.step(cells[k], min(k, 1), float(force_N[k]))
        np.testing.assert_array_equal(rows[k], each.outputs)
    each._kernel = None
    assert each.step_rows(cells, force_N) is None


def test_wires_are_stepped_by_their_own_model(configs):
    config, observer, _, _ = made(configs, "wires4/hold.toml")
    assert observer.step_rows(np.zeros((2, 4), dtype=np.uint8), np.zeros(2)) is None
    cold_C = observer.wires.T_C.copy()
    observer.step(np.ones(config.model.n_cells, dtype=np.uint8), 5, 0.5)
    assert (observer.wires.T_C > cold_C).all()
    assert observer.outputs[1] == observer.estimate_N


def test_a_model_without_a_stable_observer_is_one_line(configs):
    """With a noise that is no number, the Riccati equation has no solution."""
    *_, d = made(configs, "miga6/all_on.toml")
    with pytest.raises(ModelError, match="no stable observer for this model") as caught:
        kalman_gain(d, 0, float("nan"), 0.002)
    assert "\n" not in str(caught.value)
