"""Random soft trees, and the same tree for pinocchio."""

import numpy as np

from hil.systems.soft.element import Element
from hil.systems.soft.tree import Body, SoftTree


def turn(rng):
    q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    return q * np.sign(np.linalg.det(q))


def random_tree(rng, n, *, planar=False, **keywords):
    bodies = []
    for i in range(n):
        half = rng.standard_normal((3, 3))
        inertia = 0.01 * (half @ half.T + np.trace(half @ half.T) * np.eye(3))
        axis = rng.standard_normal(3)
        common = {
            "parent": int(rng.integers(-1, i)) if i else -1,
            "mass_kg": rng.uniform(0.1, 2.0),
            "inertia_kg_m2": inertia,
            "centre_m": tuple(0.1 * rng.standard_normal(3)),
            "element": Element(k=1.0, c=0.1),
        }
        at = 0.3 * rng.standard_normal(3)
        if planar:
            a = rng.uniform(-3.0, 3.0)
            c, s = np.cos(a), np.sin(a)
            at[2] = 0.0
            bodies.append(
                Body(**common, joint_at_m=tuple(at), joint_turn=[[c, -s, 0], [s, c, 0], [0, 0, 1]])
            )
        else:
            bodies.append(
                Body(**common, joint_at_m=tuple(at), joint_turn=turn(rng),
                     slides=rng.random() < 0.3, axis=tuple(axis / np.linalg.norm(axis)))
            )  # fmt: skip
    return SoftTree(tuple(bodies), **keywords)


def torques(tree, q, v):
    """Of k = 1 and c = 0.1 at every joint, as `random_tree` gives them."""
    return -q - 0.1 * v
