"""Deaths, breaks and hours without either, on plants that no rule was chosen on."""

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from hil_studies.recruitment.failures import (
    BREAKS,
    DIES,
    HEALTHY,
    HEALTHY_S,
    WATCHED_S,
    WITHIN_S,
    one,
)

SETTINGS = {"optimal": (0.1, 5, 30), "size principle": (0.4, 0.1, 0.1)}
SEED = 90_000
N_FAILED, N_HEALTHY = 40, 12


def looked_at(name, how, n):
    jobs = [(14, name, SETTINGS[name], SEED + i, True, how, "thermal") for i in range(n)]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(one, jobs))


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_of_many_dead_wires_most_are_named_in_time_and_few_wrongly(name):
    """Fewer than seven in ten would be as before the wires' own derivatives were known."""
    found = looked_at(name, DIES, N_FAILED)
    assert np.mean([f[0] <= WITHIN_S for f in found]) > 0.7
    assert sum(f[1] > 0 for f in found) <= 0.1 * N_FAILED
    assert sum(f[2] for f in found) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_of_many_broken_wires_half_are_named_and_few_wrongly(name):
    found = looked_at(name, BREAKS, N_FAILED)
    assert np.mean([f[0] <= WATCHED_S for f in found]) > 0.5
    assert sum(f[1] > 0 for f in found) <= 0.15 * N_FAILED


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_in_hours_of_health_no_cell_is_named(name):
    found = looked_at(name, HEALTHY, N_HEALTHY)
    assert sum(f[3] for f in found) == N_HEALTHY * HEALTHY_S
    assert sum(f[2] for f in found) == 0
