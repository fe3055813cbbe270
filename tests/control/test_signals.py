"""One PID from a channel to an output."""

import numpy as np
import pytest

from hil.control.pid import PidGains
from hil.control.reference import Steps
from hil.control.signals import SignalLoop, SignalPid
from hil.loop.frame import Commands, Frame

PERIOD_S = 0.001


def outputs_of(gains, readings, most=np.inf):
    """The output after every reading, with a set point of 1; it moves by `most` a tick."""
    loop = SignalLoop(Steps([0.0], [1.0]), gains, "slide_reference_m", "m", 0, 0, -10.0, 10.0)
    control = SignalPid([loop], PERIOD_S)
    measured, commands = np.zeros(1), Commands(np.zeros(0, dtype=np.uint8), np.zeros(1))
    control.bind(Frame(control.columns), measured, commands)
    found = []
    for k, reading in enumerate(readings):
        measured[0], before = reading, commands.outputs[0]
        control.step(k * PERIOD_S)
        commands.outputs[0] = np.clip(commands.outputs[0], before - most, before + most)
        found.append(float(commands.outputs[0]))
    return found


@pytest.mark.parametrize("every", [1, 4, 10])
def test_an_integral_rises_at_its_rate_however_seldom_its_channel_is_read(every):
    readings = [0.5 if k % every == 0 else np.nan for k in range(1001)]
    found = outputs_of(PidGains(0.0, 4.0, 0.0, 0.02), readings)
    assert found[-1] == pytest.approx(4.0 * 0.5 * 1.001, abs=1e-9)


def test_an_output_stays_where_it_is_without_a_reading():
    found = outputs_of(PidGains(2.0, 1.0, 0.1, 0.02), [0.5, 0.6, np.nan, np.nan])
    assert found[1:] == [found[1]] * 3


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_integral_does_not_wind_up_while_the_output_lags_at_its_rate(sign):
    """For 1 s it moves at 0.003 a tick towards k_p e = 4; with e = 0 one tick's k_i e T is left."""
    readings = [1.0 - 4.0 * sign] * 1000 + [1.0] * 1500
    found = outputs_of(PidGains(1.0, 5.0, 0.0, 0.02), readings, most=0.003)
    assert sign * found[999] == pytest.approx(3.0)
    assert sign * found[-1] == pytest.approx(5.0 * 4.0 * PERIOD_S)
