"""The PID of both joints, by its own arithmetic."""

from types import SimpleNamespace

import numpy as np
import pytest

from hil.loop.frame import Frame
from hil.systems.pantograph.control import Case, Gains, ImpactControl, Timing, Wiring

H, N, RATE = 0.001, 101, 2.0


class Ramp:
    """An arm whose angles shall rise at RATE, from 0 at the first tick."""

    def __init__(self):
        self.n = 0

    def joint_reference(self, *tip):
        angle, self.n = RATE * H * self.n, self.n + 1
        return angle, angle, 0.0, 0.0

    def tip_of(self, *motors):
        return 0.0, 0.0, 0.0, 0.0


def torque_N_m(gains, every):
    """The torque after N ticks at rest, of which every `every`-th has a reading."""
    case = Case(0.0, (0.0, 1.0), (0.1, 0.1))
    timing = Timing(1, 1.0, *[1.0] * 8)
    stage = ImpactControl(Ramp(), [case], timing, gains, Wiring((0, 1), 2, (0, 1), 100.0), H)
    measured, commands = np.zeros(3), SimpleNamespace(outputs=np.zeros(2))
    stage.bind(Frame(stage.columns), measured, commands)
    for k in range(N):
        measured[:2] = 0.0 if k % every == 0 else np.nan
        stage.step(k * H)
    return commands.outputs[0]


@pytest.mark.parametrize("every", [1, 4])
def test_integral_and_derivative_have_their_rates_however_seldom_the_encoders_are_read(every):
    end_s = (N - 1) * H
    integral = torque_N_m(Gains(0.0, 10.0, 0.0, 0.001), every)
    assert integral == pytest.approx(10.0 * RATE * end_s**2 / 2.0, rel=0.05)
    derivative = torque_N_m(Gains(0.0, 0.0, 3.0, 0.001), every)
    assert derivative == pytest.approx(3.0 * RATE, rel=1e-6)
