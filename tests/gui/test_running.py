import numpy as np
import pytest

from hil.record import metrics
from hil_gui import running

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("amplitude", [0.0, 4.5, 7.0])  # 0, 3.2 and 4.9 times the noise in RMS
def test_figures_that_grow_block_by_block_are_those_of_the_whole(amplitude):
    y = 50.0 + amplitude * np.sin(np.linspace(0.0, 20.0, 9000)) + RNG.normal(size=9000)
    model = y + 0.1 * RNG.normal(size=9000)
    y[[0, 400, 401, 5000]] = np.nan  # nothing was read
    seen = running.Running()
    for rows in np.split(np.arange(9000), [1, 2, 777, 5001, 8999]):
        seen.add(0.001 * rows, y[rows], model[rows], np.zeros(len(rows)))
    figures, _ = seen.now
    there = np.isfinite(y)
    y, model = y[there], model[there]
    assert figures.rms == pytest.approx(metrics.rms(y - model), rel=1e-9)
    assert figures.nrmse == pytest.approx(metrics.nrmse(y, model), rel=1e-9)
    assert figures.vaf == pytest.approx(metrics.vaf(y, model), rel=1e-9)
    assert figures.held is metrics.held(y) is (amplitude < 5.0)


def test_an_encoder_that_moves_by_a_count_is_held_in_the_window_too():
    y = np.repeat([0.0, 0.1, 0.0], 500)
    seen = running.Running()
    for rows in np.split(np.arange(1500), [500, 900]):  # a block begins with the step
        seen.add(0.001 * rows, y[rows], np.zeros(len(rows)), np.zeros(len(rows)))
    assert seen.now[0].held is metrics.held(y) is True


def test_the_window_takes_a_signal_for_held_where_the_summary_does():
    assert running.MOVES == metrics.MOVES
