"""A discrete model with its state, one step at a time, against its matrices."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.discrete import LinearStepper, discretise

# an output that follows its input at once: D is not zero
A, B = np.array([[-2.0, 1.0], [0.0, -0.5]]), np.array([[1.0, 0.0], [0.5, 2.0]])
C, D = np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([[0.25, -3.0], [0.0, 0.75]])
X0, U0, U1 = np.array([1.0, -2.0]), np.array([0.5, 1.0]), np.array([1.5, -1.0])


@pytest.fixture
def stepper():
    return LinearStepper(discretise(A, B, C, D, 0.1), X0, U0)


def test_outputs_include_what_the_input_gives_at_once(stepper):
    """Y = C x + D u, before the first step, after each, and after a correction."""
    d = stepper.discrete
    np.testing.assert_allclose(stepper.y, C @ X0 + D @ U0, rtol=1e-14)
    stepper.step(U0, U1)
    x = d.Ad @ X0 + d.B0 @ U0 + d.B1 @ U1
    np.testing.assert_allclose(stepper.x, x, rtol=1e-14)
    np.testing.assert_allclose(stepper.y, C @ x + D @ U1, rtol=1e-14)
    gain = np.array([0.3, -0.2])
    for output in (0, 1):
        before = stepper.y.copy()
        stepper.correct(gain, output, 2.0, U1)
        x = x + 2.0 * gain
        np.testing.assert_allclose(stepper.x, x, rtol=1e-14)
        assert stepper.y[output] == pytest.approx(C[output] @ x + D[output] @ U1, rel=1e-14)
        assert stepper.y[1 - output] == before[1 - output]  # the one that was measured


def test_a_step_is_exact_for_an_input_that_is_a_ramp():
    """One state, x' = a x + b u, u from 1 to 3 over h: by variation of constants."""
    a, b, h = -3.0, 2.0, 0.2
    one = LinearStepper(discretise([[a]], [[b]], [[1.0]], [[0.0]], h), [0.5], [1.0])
    one.step(np.array([1.0]), np.array([3.0]))
    slope = 2.0 / h
    # particular solution -b/a u - b/a^2 slope, with u = 1 + slope t
    p0, p1 = -b / a * 1.0 - b / a**2 * slope, -b / a * 3.0 - b / a**2 * slope
    assert one.x[0] == pytest.approx((0.5 - p0) * np.exp(a * h) + p1, rel=1e-12)


def test_many_steps_at_once_are_the_same_steps(stepper):
    d, u = stepper.discrete, np.array([U0, U1, U1, U0])
    ys = stepper.run(u)
    one = LinearStepper(d, X0, U0)
    for k, inputs in enumerate(u):
        one.step(inputs, inputs)
        np.testing.assert_array_equal(ys[k], one.y)
    np.testing.assert_array_equal(stepper.x, one.x)


def test_a_model_that_is_many_orders_off_is_refused():
    with pytest.raises(ModelError, match="give masses in kg"):
        discretise([[1e9]], [[1.0]], [[1.0]], [[0.0]], 1.0)
