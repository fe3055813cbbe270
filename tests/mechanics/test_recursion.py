"""The recursion against the free-body equations written out, and laws."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.recursion import Carried, Recursion
from hil.mechanics.rotations import attitude, skew

RNG = np.random.default_rng(7)
G = np.array([0.0, 0.0, -9.81])


def random_tree(n):
    bodies = []
    for i in range(n):
        root = RNG.normal(size=(3, 3))
        spread = root @ root.T  # second moments of mass, from which any inertia comes
        J = 0.01 * (np.trace(spread) * np.eye(3) - spread)
        parent = -1 if i == 0 else int(RNG.integers(0, i))
        bodies.append(
            Carried(parent, RNG.uniform(0.5, 3.0), J, RNG.normal(size=3), RNG.normal(size=3))
        )
    return bodies


def written_out(bodies, fixed, A, omega, N, F, a_root):
    """Newton's and Euler's equations of every body and every joint, all at once."""
    n = len(bodies)
    joints = range(0 if fixed else 1, n)
    matrix, right = np.zeros((9 * n, 9 * n)), np.zeros(9 * n)
    for i, body in enumerate(bodies):
        v, w = slice(3 * i, 3 * i + 3), slice(3 * (n + i), 3 * (n + i) + 3)
        J = np.asarray(body.inertia_kg_m2)
        matrix[v, v], matrix[w, w] = body.mass_kg * np.eye(3), J
        right[v] = body.mass_kg * G + F[i]
        right[w] = N[i] - np.cross(omega[i], J @ omega[i])
    for i in range(n):
        g = slice(3 * (2 * n + i), 3 * (2 * n + i) + 3)
        if i not in joints:
            matrix[g, g] = np.eye(3)
            continue
        ends = [(i, bodies[i].own_m, 1.0)]
        if bodies[i].parent >= 0:
            ends.append((bodies[i].parent, bodies[i].at_m, -1.0))
        else:
            right[g] += a_root
        for j, r, sign in ends:
            v, w = slice(3 * j, 3 * j + 3), slice(3 * (n + j), 3 * (n + j) + 3)
            matrix[v, g] = -sign * np.eye(3)
            matrix[w, g] = -sign * skew(r) @ A[j].T
            matrix[g, v] = sign * np.eye(3)
            matrix[g, w] = -sign * A[j] @ skew(r)
            right[g] -= sign * A[j] @ np.cross(omega[j], np.cross(omega[j], r))
    return np.linalg.solve(matrix, right).reshape(3, n, 3)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("n", [1, 3, 18])
def test_the_recursion_solves_every_bodys_equations(n, fixed):
    for _ in range(5):
        bodies = random_tree(n)
        tree = Recursion(bodies, fixed=fixed)
        A = attitude(RNG.uniform(-3.0, 3.0, (n, 3)))
        omega, N, F = RNG.normal(size=(3, n, 3))
        a_root = RNG.normal(size=3) if fixed else np.zeros(3)
        tree.solve(A, omega, N, F, a_root=tuple(a_root))
        if not fixed:
            # A free root has no joint.
            first = bodies[0]
            bodies[0] = Carried(-1, first.mass_kg, first.inertia_kg_m2)
        expected = written_out(bodies, fixed, A, omega, N, F, a_root)
        for found, exact in zip((tree.V_rate, tree.omega_rate, tree.Gamma), expected, strict=True):
            assert np.abs(found - exact).max() < 1e-11 * max(1.0, np.abs(exact).max())


def test_a_tree_in_free_fall_falls_and_pulls_no_joint():
    tree = Recursion(random_tree(6))
    A = attitude(RNG.uniform(-3.0, 3.0, (6, 3)))
    tree.solve(A, np.zeros((6, 3)), np.zeros((6, 3)))
    assert np.abs(tree.V_rate - G).max() < 1e-12
    assert np.abs(tree.Gamma).max() < 1e-11


@pytest.mark.parametrize(
    ("bodies", "says"),
    [([], "root"), ([Carried(0, 1.0, [1, 1, 1])], "root"),
     ([Carried(-1, 1.0, [1, 1, 1]), Carried(1, 1.0, [1, 1, 1])], "body 1: parent 1"),
     ([Carried(-1, 0.0, [1, 1, 1])], "mass_kg"),
     ([Carried(-1, 1.0, [1, -1, 1])], "not positive definite")],
)  # fmt: skip
def test_what_is_no_tree_of_bodies_is_refused(bodies, says):
    with pytest.raises(ModelError, match=says):
        Recursion(bodies)
