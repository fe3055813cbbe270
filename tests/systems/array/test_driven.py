"""Driven points: a cell stretched by its end, against its own equations solved by SciPy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.model.wire_load import Loaded, stress_Pa
from hil.systems.array.model.wire_rest import at_rest
from hil_studies.wires.heat import FLEXINOL

K_PE, K_SE, K_AE, B = 20.0, 600.0, 1000.0, 50.0
PERIOD_S, SPEED = 0.001, 0.004
OFF = np.zeros(1, dtype=np.uint8)


def stretched(activation, k_pe=K_PE):
    law = cells.hill(k_pe_N_per_m=k_pe, k_se_N_per_m=K_SE, k_ae_N_per_m=K_AE, b_N_s_per_m=B)
    model = CellArray.from_fingerprint("-:1 | &1:-1", cell=law, mass_kg=0.01, right="driven")
    return ArraySystem(model, [activation], PERIOD_S)


def test_a_ramp_of_the_end_stretches_a_cell_by_its_own_equation():
    """k_ae d = k_se (x - d) + b (x' - d'), and the force k_pe x + k_ae d."""
    system = stretched(CellActivation(1.0))
    right, at = system.outputs.index("array.right_N"), system.outputs.index("right.x_m")
    assert system.inputs == ("right.x_m",)
    n = 200
    for k in range(n):
        system.step(OFF, np.array([SPEED * PERIOD_S * (k + 1)]))
    t_s = n * PERIOD_S
    found = solve_ivp(
        lambda t, d: SPEED + (K_SE * SPEED * t - (K_SE + K_AE) * d) / B,
        (0.0, t_s), [0.0], rtol=1e-11, atol=1e-14,
    )  # fmt: skip
    assert system.y[at] == pytest.approx(SPEED * t_s, rel=1e-12)
    assert system.y[right] == pytest.approx(K_PE * SPEED * t_s + K_AE * found.y[0, -1], rel=1e-8)


def test_a_held_end_gives_the_springs_in_series():
    system = stretched(CellActivation(1.0))
    for _ in range(2000):
        system.step(OFF, np.array([0.001]))
    series = K_PE + K_SE * K_AE / (K_SE + K_AE)
    assert system.y[system.outputs.index("array.right_N")] == pytest.approx(1e-3 * series, rel=1e-9)


def law_of_tension(one, stretch_m):
    """Tension of a wire of martensite at a stretch, from the law of the module `loaded`."""
    rest_N, area = one.loaded.pretension_N, stress_Pa(one.wire, 1.0)

    def stroke(f_N):
        s = f_N * area
        law = one.loaded.law
        return float(law.stroke(s)) + (1.0 / law.modulus_M_Pa - 1.0 / law.modulus_A_Pa) * s

    def off(f_N):
        F_N = one.force_on_N * (1.0 - stroke(f_N) / stroke(rest_N))
        return f_N - rest_N - K_AE * stretch_m - F_N

    return brentq(off, 0.0, 100.0)


def test_a_cold_wire_under_a_driven_end_carries_what_its_law_says():
    one = CellActivation(4.0, "sma", loaded=Loaded(FLEXINOL, 0.8, K_AE))
    system = stretched(one, k_pe=0.0)
    for k in range(3000):
        system.step(OFF, np.array([min(0.002, 2e-6 * (k + 1))]))
    tension_N = system.loaded.tension_N[0]
    stretch_m = 0.002 - (tension_N - 0.8) / K_SE  # what the series spring leaves
    assert tension_N == pytest.approx(law_of_tension(one, stretch_m), rel=1e-6)
    assert tension_N > 0.8 + 0.5 * 0.002 * K_SE * K_AE / (K_SE + K_AE)


@pytest.mark.parametrize("air_C", [25.0, 85.0, 110.0])
def test_wires_in_warm_air_begin_in_equilibrium(air_C):
    """Nothing moves over a second that is many of the wire's and the array's time constants."""
    base = CellActivation(4.0, "sma", loaded=Loaded(FLEXINOL, 0.8, K_AE))
    one = replace(base, wire=replace(base.wire, ambient_C=air_C))
    system = stretched(one)
    before = system.wires.xi[0], system.loaded.tension_N[0], system.y.copy()
    assert (air_C > 30.0) == (before[0] > 0.01) == (at_rest(system.model, [one]) is not None)
    for _ in range(1000):
        system.step(OFF, np.zeros(1))
    after = system.wires.xi[0], system.loaded.tension_N[0]
    assert after == pytest.approx(before[:2], abs=1e-8)
    assert system.y == pytest.approx(before[2], abs=1e-8)
