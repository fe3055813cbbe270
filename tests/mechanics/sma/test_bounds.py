"""A real wire is between its eager and its lazy copy, though it is at the edge of all that may be.

The real wires are those of `oracles.sma_wires`, which have a balance of energy of their own.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from hil.mechanics.sma.bounds import (
    BRANCH_K,
    CAPACITY,
    EAGER,
    LATENT,
    LAZY,
    Surroundings,
    WireBounds,
)
from hil.mechanics.sma.limits import COOLING_LEAST, CellWire
from hil.mechanics.sma.resistance import Resistivity
from hil.mechanics.sma.wire import SmaWire
from oracles.sma_wires import Wires

PERIOD_S, TOLERANCE, LEFT_K = 1e-3, 0.1, 40.0
COLD_C, WARM_C = 15.0, 28.0
SLACK = 0.01  # of the austenite: one step of the oracle overshoots a branch by as much


def at_the_edge(wire, side):
    """A wire that gets and keeps as much heat as may be, or as little; its heats are drawn."""
    ahead = 1.0 if side == EAGER else -1.0
    r = 1.0 - ahead * TOLERANCE
    moved_K = -ahead * BRANCH_K
    return SimpleNamespace(
        martensite_Ohm_per_m=r * wire.martensite_Ohm_per_m,
        austenite_Ohm_per_m=r * wire.austenite_Ohm_per_m,
        A_s_C=wire.A_s_C + moved_K, A_f_C=wire.A_f_C + moved_K,
        M_s_C=wire.M_s_C + moved_K, M_f_C=wire.M_f_C + moved_K,
        capacity_J_per_m_K=wire.capacity_J_per_m_K, latent_J_per_m=wire.latent_J_per_m,
        loss_W_per_m_K=wire.loss_W_per_m_K,
        field_V_per_m=wire.field_V_per_m * (1.0 + 0.03 * ahead),
    )  # fmt: skip


@pytest.mark.slow_beyond(4)
@pytest.mark.parametrize("side", [EAGER, LAZY])
@pytest.mark.parametrize("ratio", [0.9, 1.2])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_wire_at_the_edge_is_never_beyond_its_copy(side, ratio, seed):
    random = np.random.default_rng(seed)
    n = 60
    wire = SmaWire(n_wires=4, supply_V=14.0, austenite_Ohm_per_m=126.0 * ratio)
    around = Surroundings(0.97 * 14.0, 1.03 * 14.0, COLD_C, WARM_C, LEFT_K, TOLERANCE)
    bounds = WireBounds([(CellWire("a", wire), around)] * n, PERIOD_S)
    real = at_the_edge(wire, side)
    real.capacity_J_per_m_K *= random.uniform(1.0 - CAPACITY, 1.0 + CAPACITY, n)
    real.latent_J_per_m *= random.uniform(1.0 - LATENT, 1.0 + LATENT, n)
    air_C = WARM_C if side == EAGER else COLD_C
    wires = Wires(real, n, air_C, COOLING_LEAST if side == EAGER else 1.0 / COOLING_LEAST)
    wires.T_C += LEFT_K if side == EAGER else 0.0
    on, rate = np.zeros(n), PERIOD_S * 10.0 ** random.uniform(0.0, 1.3, (2, n))
    most = 0.0
    for _ in range(4000):
        on = np.where(random.random(n) < np.where(on > 0.0, *rate), 1.0 - on, on)
        r = real.martensite_Ohm_per_m + wires.xi * (
            real.austenite_Ohm_per_m - real.martensite_Ohm_per_m
        )
        wires.step(on * (real.field_V_per_m / r) ** 2, PERIOD_S)
        bounds.step(np.stack([on, on], axis=1), 1)
        copy = bounds.state[:, side, 1]
        beyond = wires.xi - copy if side == EAGER else copy - wires.xi
        assert beyond.max() < SLACK
        most = max(most, np.abs(beyond).max())
    assert most > 0.5  # they do transform, and the copy before them, or after


def test_wires_of_which_everything_is_known_are_the_same_copy_twice_but_for_their_heats():
    """Both get 14 V in air of 25 degC; held on for ever they come to austenite, 45.2 Ohm."""
    wire = SmaWire(n_wires=4, supply_V=14.0)
    known = Surroundings(14.0, 14.0, 25.0, 25.0, 0.0, 0.0)
    bounds = WireBounds([(CellWire("a", wire), known)], PERIOD_S)
    ohms = np.zeros((1, 2))
    bounds.resistances_Ohm(ohms)
    assert ohms[0] == pytest.approx(50.4)
    bounds.step(np.ones((1, 2)), 20000)
    bounds.resistances_Ohm(ohms)
    assert ohms[0] == pytest.approx(45.2)
    settles_K = wire.field_V_per_m**2 / 113.0 / wire.loss_W_per_m_K
    assert bounds.state[0, :, 0] == pytest.approx(
        [25.0 + settles_K / COOLING_LEAST, 25.0 + settles_K * COOLING_LEAST], rel=1e-3
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_resistance_is_between_those_of_all_states_between_the_copies(seed):
    """The law of the R-phase, written out at 2001 temperatures and 201 fractions."""
    random = np.random.default_rng(seed)
    a_M, a_A = random.uniform(-2e-3, 2e-3, 2)
    law = Resistivity(a_M, a_A, 25.0, 0.0, 113.0 + 60.0 * a_A * 113.0 * random.random(), 60.0, 30.0)
    wire = SmaWire(resistivity=law)
    around = Surroundings(1.0, 1.0, COLD_C, WARM_C, LEFT_K, TOLERANCE)
    bounds = WireBounds([(CellWire("a", wire), around)], PERIOD_S)
    bounds.state[0] = np.sort([random.uniform(20.0, 80.0, 2), random.uniform(0.2, 1.0, 2)]).T
    (low_C, least), (high_C, most) = bounds.state[0]
    corners_C = np.clip([30.0, 60.0], low_C, high_C)
    T = np.union1d(np.linspace(low_C, high_C, 2001), corners_C)[:, None]
    xi = np.linspace(least, most, 201)
    parent = 113.0 * (1.0 + a_A * (T - 25.0))
    parent += (law.r_phase_Ohm_per_m - parent) * np.clip((60.0 - T) / 30.0, 0.0, 1.0)
    all_Ohm = wire.cell_m * (126.0 * (1.0 + a_M * (T - 25.0)) * (1.0 - xi) + parent * xi)
    ohms = np.zeros((1, 2))
    bounds.resistances_Ohm(ohms)
    assert ohms[0] == pytest.approx([all_Ohm.min(), all_Ohm.max()], rel=1e-7)
