"""Loads, tendons and ground: virtual work, Newton's laws, and no energy from nowhere."""

import itertools

import numpy as np
import pytest

from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import Body, Ground, Place, SoftTree, Tendon
from hil_studies.soft_chain.cases import rubber_beam
from hil_studies.soft_chain.dense import DenseForm
from hil_studies.soft_chain.outputs import energies, trace_m
from systems.soft.trees import random_tree, torques


@pytest.mark.parametrize("planar", [True, False])
def test_forces_from_outside_do_the_virtual_work_of_their_places(planar):
    rng = np.random.default_rng(2)
    n = 6
    bodies = random_tree(rng, n, planar=planar).bodies
    load = Place(4, (0.1, 0.2, 0.0))
    line = tuple(Place(b, tuple(0.1 * rng.standard_normal(3))) for b in (-1, 2, 5, 3))
    tree = SoftTree(bodies, loads=(load,), tendons=(Tendon(line),))
    assert tree.is_planar == planar
    stepper = SoftStepper(tree)
    q, v = rng.standard_normal(n), rng.standard_normal(n)
    force, tension = rng.standard_normal(3), 2.5
    ours = stepper.accelerations(q, v, np.array([*force, tension]))

    def work(q):
        """F . x - T l, whose gradient is the joint torques."""
        x = [np.array(p.at_m) if p.body < 0 else trace_m(stepper, p, q[None])[0] for p in line]
        length = sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(x))
        return force @ trace_m(stepper, load, q[None])[0] - tension * length

    step = 1e-6  # central differences leave 1e-10 of it
    torque = [(work(q + e) - work(q - e)) / (2.0 * step) for e in step * np.eye(n)]
    M, h = DenseForm(SoftTree(bodies))(q, v)
    expected = np.linalg.solve(M, torques(tree, q, v) + torque - h)
    assert ours == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())


def test_a_tendon_only_pulls():
    bar = Body(-1, 1.0, (0.0, 0.1, 0.1), (0.5, 0.0, 0.0))
    line = (Place(-1, (0.0, 1.0, 0.0)), Place(0, (1.0, 0.0, 0.0)))
    pull = SoftTree((bar,), gravity_m_per_s2=(0, 0, 0), tendons=(Tendon(line),))
    both = SoftTree((bar,), gravity_m_per_s2=(0, 0, 0), tendons=(Tendon(line, pulls_only=False),))
    q = np.zeros(1)
    # T sin 45 at 1 m on I = 0.1 + 0.25
    turns = np.sqrt(0.5) / 0.35
    assert SoftStepper(pull).accelerations(q, q, np.array([1.0])) == pytest.approx([turns])
    assert SoftStepper(pull).accelerations(q, q, np.array([-1.0])) == pytest.approx([0.0])
    assert SoftStepper(both).accelerations(q, q, np.array([-1.0])) == pytest.approx([-turns])


def test_an_elastic_tendon_stretches_by_its_law():
    slide = Body(-1, 2.0, (0.1, 0.1, 0.1), axis=(1.0, 0.0, 0.0), slides=True)
    line = (Place(-1, (-1.0, 0.0, 0.0)), Place(0, (0.0, 0.0, 0.0)))
    tree = SoftTree((slide,), tendons=(Tendon(line, k_N_per_m=50.0, c_N_s_per_m=4.0),))
    x = SoftStepper(tree).accelerations(np.array([0.2]), np.array([0.3]), np.array([1.0]))
    assert x == pytest.approx([-(1.0 + 50.0 * 0.2 + 4.0 * 0.3) / 2.0])


def test_a_block_rests_on_the_ground_at_the_depth_that_carries_it():
    slide = Body(-1, 2.0, (0.1, 0.1, 0.1), axis=(0.0, 1.0, 0.0), slides=True)
    ground = Ground((0.0, 1.0, 0.0), (0.0, -0.1, 0.0), k_N_per_m=5e3, c_N_s_per_m=80.0)
    tree = SoftTree((slide,), touching=(Place(0, (0.0, 0.0, 0.0)),), grounds=(ground,))
    stepper = SoftStepper(tree)
    stepper.run(1e-3, np.zeros((2000, 0)))
    assert stepper.q[0] == pytest.approx(-0.1 - 2.0 * 9.81 / 5e3, abs=1e-6)


def test_a_block_slides_down_a_slope_with_coulombs_friction():
    # On a slope of 30 degrees with mu = 0.3: a = g (sin - mu cos), once it sinks no further.
    ux, uy = np.cos(np.pi / 6), np.sin(np.pi / 6)
    bodies = (
        Body(-1, 0.0, (0.0, 0.0, 0.0), axis=(1.0, 0.0, 0.0), slides=True),
        Body(0, 1.0, (0.1, 0.1, 0.1), axis=(0.0, 1.0, 0.0), slides=True),
    )
    depth = 9.81 * ux / 1e4
    ground = Ground((-uy, ux, 0.0), (0.0, 0.0, 0.0), 1e4, 200.0, friction=0.3)
    tree = SoftTree(bodies, touching=(Place(1, (0.0, 0.0, 0.0)),), grounds=(ground,))
    # Off smoothing: it starts well above the slip at which friction is Coulomb's.
    stepper = SoftStepper(tree, q=np.array([uy * depth, -ux * depth]), v=np.array([-ux, -uy]) * 1.0)
    run = stepper.run(1e-3, np.zeros((200, 0)))
    along = -(run.v @ np.array([ux, uy]))
    expected = 9.81 * (uy - 0.3 * ux)
    assert (along[-1] - along[0]) / 0.2 == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_energy_balances_with_a_pulled_tendon_and_a_beam_that_hits_the_ground():
    beam, n = rubber_beam("solid"), 6
    s = beam.length_m / n
    line = (Place(-1, (0.0, 0.02, 0.0)), *(Place(i, (0.5 * s, 0.02, 0.0)) for i in range(n)))
    ground = Ground((0.0, 1.0, 0.0), (0.0, -0.08, 0.0), k_N_per_m=200.0, c_N_s_per_m=0.5)
    tree = SoftTree(
        tuple(beam.segments(n, first=0, parent=-1)),
        tendons=(Tendon(line),), touching=(Place(n - 1, (s, 0.0, 0.0)),), grounds=(ground,),
    )  # fmt: skip
    worst_J = []
    for h_s in (1e-4, 5e-5):
        stepper = SoftStepper(tree)
        t_s = h_s * np.arange(round(0.5 / h_s) + 1)
        u = 2.0 * np.sin(2.0 * np.pi * 2.0 * t_s)[:, None] ** 2
        run = stepper.run(h_s, u[1:])
        assert trace_m(stepper, tree.touching[0], run.q)[:, 1].min() < -0.08
        worst_J.append(np.abs(energies(stepper, run, u).balance).max())
    # The ground's damper jumps inside a step, whose power is then off by a share of it: order 1.
    assert worst_J[0] < 2e-5
    assert worst_J[1] < 0.6 * worst_J[0]
