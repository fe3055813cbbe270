"""Contact at the usual step: against an exact bounce, and against an independent integrator."""

import numpy as np
import pytest
import scipy

from hil.systems.soft.parts import PIECES
from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import Body, Ground, Place, SoftTree
from hil_studies.soft_chain.cases import rubber_beam

G = 9.81


def bounced_m(t_s, k_N_per_m, m_kg, drop_m):
    """Position of a mass that falls on a spring without damper, until it leaves it; exact."""
    fall_s = np.sqrt(2.0 * drop_m / G)
    w, sag_m = np.sqrt(k_N_per_m / m_kg), m_kg * G / k_N_per_m
    since = t_s - fall_s
    # y = -drop - sag + sag cos wt - (v / w) sin wt
    on = -drop_m - sag_m + sag_m * np.cos(w * since) - G * fall_s / w * np.sin(w * since)
    return np.where(since < 0.0, -0.5 * G * t_s**2, on)


@pytest.mark.parametrize("k_N_per_m", [1e5, 1e6])
def test_a_block_that_falls_on_a_spring_moves_as_the_exact_solution(k_N_per_m):
    block = Body(-1, 2.0, (0.1, 0.1, 0.1), axis=(0.0, 1.0, 0.0), slides=True)
    ground = Ground((0.0, 1.0, 0.0), (0.0, -0.1, 0.0), k_N_per_m)
    tree = SoftTree((block,), touching=(Place(0, (0.0, 0.0, 0.0)),), grounds=(ground,))
    w = np.sqrt(k_N_per_m / 2.0)
    until_s = np.sqrt(0.2 / G) + np.pi / w  # it leaves the spring after more than half a turn
    run = SoftStepper(tree).run(1e-3, np.zeros((int(until_s / 1e-3), 0)))
    error_m = np.abs(run.q[:, 0] - bounced_m(run.t_s, k_N_per_m, 2.0, 0.1)).max()
    # Undivided steps leave 7e-5 m on the softer spring and 2.2e-4 m on the stiffer one.
    assert error_m < 4e-5


def beam_on_ground(ground, n=4):
    beam = rubber_beam("voigt")
    s = beam.length_m / n
    return SoftTree(
        tuple(beam.segments(n, first=0, parent=-1)),
        touching=tuple(Place(i, (s, 0.0, 0.0)) for i in range(n)), grounds=(ground,),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ground", "most_rad"),
    [
        (Ground((0.0, 1.0, 0.0), (0.0, -0.05, 0.0), 200.0, 0.5, 0.4), 1e-4),
        (Ground((0.0, 1.0, 0.0), (0.0, -0.05, 0.0), 2000.0, 1.0), 1.5e-4),
        (Ground((0.0, 1.0, 0.0), (0.0, -0.05, 0.0), 2000.0, 0.0, 0.4), 5e-4),
    ],
)
def test_a_beam_hits_the_ground_as_an_error_controlled_integrator_has_it(ground, most_rad):
    """Undivided steps of 1 ms leave 0.29, 0.51 and 2.2 mrad."""
    tree = beam_on_ground(ground)
    stepper, reference = SoftStepper(tree), SoftStepper(tree)
    run = stepper.run(1e-3, np.zeros((250, 0)))

    def slope(t_s, z):
        return np.concatenate([z[tree.n :], reference.accelerations(z[: tree.n], z[tree.n :])])

    start = np.concatenate([run.q[0], run.v[0]])
    exact = scipy.integrate.solve_ivp(
        slope, (0.0, 0.25), start, "LSODA", run.t_s, rtol=1e-8, atol=1e-9
    )
    assert np.abs(run.q - exact.y[: tree.n].T).max() < most_rad


def test_pieces_are_bounded_and_without_a_ground_a_step_is_whole():
    hard = Ground((0.0, 1.0, 0.0), (0.0, -0.02, 0.0), 5e4, 5.0)
    stepper = SoftStepper(beam_on_ground(hard))
    most = 0.0
    for _ in range(100):
        stepper.step(1e-3)
        most = max(most, stepper.parts.memory[PIECES])
    assert 1.0 < most <= hard.pieces_max
    free = SoftStepper(SoftTree(tuple(rubber_beam("voigt").segments(4, first=0, parent=-1))))
    free.run(1e-3, np.zeros((100, 0)))
    assert free.halvings == 0
