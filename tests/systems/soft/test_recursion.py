"""The O(N) recursions against the dense form, pinocchio, and motions known in closed form."""

import numpy as np
import pytest

from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import X_AXIS, Y_AXIS, Body, Place, SoftTree, still_base
from hil_studies.soft_chain.cases import rubber_manipulator
from hil_studies.soft_chain.dense import DenseForm
from hil_studies.soft_chain.outputs import trace_m
from hil_studies.soft_chain.peers import pinocchio_aba
from systems.soft.trees import random_tree, torques

ROUNDING = 1e-12  # relative; well-conditioned random trees lose four digits at most


@pytest.mark.parametrize("n", [1, 2, 7, 25])
def test_a_tree_in_space_accelerates_as_the_dense_form_and_pinocchio_say(n):
    rng = np.random.default_rng(n)
    tree = random_tree(rng, n)
    q, v = rng.standard_normal(n), rng.standard_normal(n)
    ours = SoftStepper(tree).accelerations(q, v)
    M, h = DenseForm(tree)(q, v)
    scale = np.abs(ours).max()
    torque = torques(tree, q, v)
    assert ours == pytest.approx(np.linalg.solve(M, torque - h), abs=ROUNDING * scale)
    assert ours == pytest.approx(pinocchio_aba(tree)(q, v, torque), abs=ROUNDING * scale)


@pytest.mark.parametrize("n", [1, 2, 7, 25])
def test_a_planar_tree_accelerates_as_the_dense_form_and_pinocchio_say(n):
    rng = np.random.default_rng(n)
    tree = random_tree(rng, n, planar=True, gravity_m_per_s2=(3.0, -9.0, 1.0))
    assert tree.is_planar
    q, v = rng.standard_normal(n), rng.standard_normal(n)
    ours = SoftStepper(tree).accelerations(q, v)
    M, h = DenseForm(tree)(q, v)
    scale = np.abs(ours).max()
    torque = torques(tree, q, v)
    assert ours == pytest.approx(np.linalg.solve(M, torque - h), abs=ROUNDING * scale)
    assert ours == pytest.approx(pinocchio_aba(tree)(q, v, torque), abs=ROUNDING * scale)


def test_the_reference_chain_accelerates_as_pinocchio_says():
    tree, _ = rubber_manipulator("voigt", 16)
    rng = np.random.default_rng(3)
    q, v = 0.3 * rng.standard_normal(17), rng.standard_normal(17)
    k = np.array([b.element.k for b in tree.bodies])
    c = np.array([b.element.c for b in tree.bodies])
    ours = SoftStepper(tree).accelerations(q, v)
    peer = pinocchio_aba(tree)(q, v, -k * q - c * v)
    # Light segments at the end of stiff joints: the mass matrix has a condition of 1e5.
    assert ours == pytest.approx(peer, abs=1e-10 * np.abs(peer).max())


def test_a_body_without_mass_between_joints_is_a_joint_of_two_freedoms():
    # A rod on a universal joint, released at rest level: only the joint in gravity's plane moves,
    # with m g l / (I + m l^2).
    m, arm, own = 0.7, 0.4, 0.02
    rod = (arm, 0.0, 0.0)
    bodies = (
        Body(-1, 0.0, (0.0, 0.0, 0.0), axis=Y_AXIS),
        Body(0, m, (0.0, own, own), centre_m=rod),
    )
    x = SoftStepper(SoftTree(bodies)).accelerations(np.zeros(2), np.zeros(2))
    assert x == pytest.approx([0.0, -m * 9.81 * arm / (own + m * arm * arm)], rel=1e-14)


def test_a_base_that_accelerates_is_gravity_the_other_way():
    rng = np.random.default_rng(5)
    n, a = 6, np.array([1.0, -2.0, 0.5])
    still = random_tree(rng, n)
    moved = SoftTree(still.bodies, base_moves=True)
    lifted = SoftTree(still.bodies, gravity_m_per_s2=tuple(np.array([0.0, -9.81, 0.0]) - a))
    q, v = rng.standard_normal(n), rng.standard_normal(n)
    u = still_base()
    u[21:24] = a
    ours = SoftStepper(moved).accelerations(q, v, u)
    assert ours == pytest.approx(SoftStepper(lifted).accelerations(q, v), rel=1e-11, abs=1e-9)


def test_a_base_that_turns_is_a_first_joint_that_does():
    # The whole tree on one more joint whose angle, rate and acceleration are prescribed.
    rng = np.random.default_rng(6)
    n, q0, v0 = 5, 0.7, 1.3
    tree = random_tree(rng, n)
    moved = tuple(
        Body(b.parent + 1, b.mass_kg, b.inertia_kg_m2, b.centre_m, b.joint_at_m, b.joint_turn,
             b.axis, b.slides, b.element)
        for b in tree.bodies
    )  # fmt: skip
    carrier = Body(-1, 1.0, (1.0, 1.0, 1.0))
    q, v = rng.standard_normal(n), rng.standard_normal(n)
    whole = SoftTree((carrier, *moved))
    x = SoftStepper(whole).accelerations(np.array([q0, *q]), np.array([v0, *v]))
    u = still_base()
    c, s = np.cos(q0), np.sin(q0)
    u[:9] = [c, -s, 0, s, c, 0, 0, 0, 1]
    u[14], u[20] = v0, x[0]
    based = SoftStepper(SoftTree(tree.bodies, base_moves=True))
    assert based.accelerations(q, v, u) == pytest.approx(x[1:], rel=1e-10, abs=1e-10)


def test_a_place_is_where_the_turns_put_it():
    bodies = (
        Body(-1, 1.0, (1.0, 1.0, 1.0), axis=X_AXIS),
        Body(0, 1.0, (1.0, 1.0, 1.0), joint_at_m=(0.0, 2.0, 0.0)),
    )
    stepper = SoftStepper(SoftTree(bodies))
    q = np.array([[np.pi / 2, np.pi / 2]])
    # y goes to z about x; then x of the second body goes to the first's y, that is to z.
    where = trace_m(stepper, Place(1, (1.0, 0.0, 0.0)), q)[0]
    assert where == pytest.approx([0.0, 0.0, 3.0], abs=1e-15)
