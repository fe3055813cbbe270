"""Compares a limb in joint angles with the same limb in Euler parameters with multipliers."""

import numpy as np

from hil.mechanics.arrays import Array
from hil.systems.leg import minimal
from hil.systems.leg.limb import Limb
from hil_studies.leg.euler import EulerLimb


def disagreement(limb: Limb, n_states: int, seed: int = 0) -> tuple[float, float]:
    """Return the largest differences over random states and tensions.

    Returns
    -------
    accelerations : of centres of mass and angular accelerations, relative to the largest of each
    constraints : of C and of C_q q', in m, rad and their rates

    Stabilisation is off: the constraints hold exactly at these states, and stabilisation would
    only multiply rounding errors by beta^2.
    """
    links, body_link = minimal.links_of(limb)
    work, n = minimal.work_for(links), len(links.parent)
    euler = EulerLimb(limb, 0.0, 0.0)
    order = [body_link[body.name] for body in euler.bodies]
    rng = np.random.default_rng(seed)
    worst = broken = 0.0
    for _ in range(n_states):
        q, v = rng.normal(0.0, 0.5, n), rng.normal(0.0, 3.0, n)
        tension_N, v_dot = rng.uniform(0.0, 500.0, len(limb.muscles)), np.zeros(n)
        minimal.accelerations(links, work, q, v, tension_N, v_dot)
        c = np.einsum("bij,bj->bi", work.turn[order], links.centre[order])
        at = euler.place(work.place[order] + c, work.turn[order])
        rates = euler.rates(at, work.v[order] + np.cross(work.w[order], c), work.w[order])
        C, Cq, _ = euler.constraints(at, rates)
        broken = max(broken, float(np.abs(C).max()), float(np.abs(Cq @ rates).max()))
        q_ddot, _ = euler.accelerations(at, rates, tension_N)
        turning = euler.turning_rates(at, rates, q_ddot)
        for a, b in zip(turning, _accelerations(links, work, order, v_dot), strict=True):
            worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max()))
    return worst, broken


def _accelerations(
    links: minimal.Links, work: minimal.Work, order: list[int], v_dot: Array
) -> tuple[Array, Array]:
    """Return accelerations of centres of mass and angular accelerations, (B, 3) each."""
    n = len(links.parent)
    turning, linear = np.zeros((n, 3)), np.zeros((n, 3))
    for i in range(n):
        up = links.parent[i]
        if up >= 0:
            linear[i] = linear[up] + np.cross(turning[up], work.place[i] - work.place[up])
            turning[i] = turning[up]
        turning[i] += work.axis[i] * v_dot[i]
    turning += work.alpha
    linear += work.a + links.gravity
    c = np.einsum("bij,bj->bi", work.turn, links.centre)
    linear += np.cross(turning, c) + np.cross(work.w, np.cross(work.w, c))
    return linear[order], turning[order]
