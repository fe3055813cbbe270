"""The body of 18 links and the hand: three forms, the recursion and pinocchio as peers."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.recursion import Recursion
from hil.systems.bodies.build import load_skeleton
from hil.systems.bodies.forms import (
    FORMS,
    Acting,
    free_bodies,
    joint_forces,
    mass_matrix,
    modules,
    momentum_rates,
    projected,
    support_rows,
)
from hil.systems.bodies.module import Module
from hil.systems.bodies.skeleton import Skeleton
from hil_studies.bodies.peer import Peer
from systems.bodies.skeletons import random_state, rig, shipped, upright

BODY, HAND = shipped("body"), shipped("hand")
BOTH = ("right_toe", "left_toe")
STANDING = [(BODY, ()), (BODY, BOTH[:1]), (BODY, BOTH), (HAND, ()), (HAND, ("wrist",))]
NAMES = ["body in the air", "on one foot", "on both", "hand in the air", "on its wrist"]
CONNECTIONS = {
    name: {k: (c.lower, c.upper) for k, c in load_skeleton(rig(name))[1].connections.items()}
    for name in ("body", "hand")
}
WEIGHT_N = BODY.mass_kg.sum() * 9.81


def relative(found, exact):
    return np.abs(found - exact).max() / np.abs(exact).max()


def test_the_body_weighs_what_it_should_and_has_the_papers_dimensions():
    assert BODY.dimensions == HAND.dimensions == (108, 72, 57)
    assert BODY.mass_kg.sum() == pytest.approx(73.0, abs=1e-5)  # the file's rounding
    assert len(BODY.joints) == 17
    assert [joint.name for joint in BODY.connections] == [
        "right_hip", "left_hip", "right_shoulder", "left_shoulder", "neck"
    ]  # fmt: skip


def test_head_and_neck_together_are_de_levas_head():
    m, X, J = BODY.mass_kg[15:], BODY.centres(np.tile(np.eye(3), (18, 1, 1)))[15:], BODY.J[15:]
    bottom = X[0, 2] - 0.0225
    c = m @ X / m.sum()
    assert m.sum() == pytest.approx(0.0694 * 73.0, abs=1e-6)
    assert c[2] - bottom == pytest.approx(0.2429 * (1 - 0.5002), abs=1e-5)
    d = X - c
    about = J.sum(axis=0) + sum(
        m[i] * (d[i] @ d[i] * np.eye(3) - np.outer(d[i], d[i])) for i in range(3)
    )
    expected = 0.0694 * 73.0 * (0.2429 * np.array([0.303, 0.315, 0.261])) ** 2
    assert np.allclose(about, np.diag(expected), atol=1e-5)


@pytest.mark.parametrize(("skeleton", "held"), STANDING, ids=NAMES)
def test_all_three_forms_agree(skeleton, held):
    rng = np.random.default_rng(108)
    for _ in range(10):
        now = random_state(skeleton, rng, held)
        one, two, three = (form(skeleton, now) for form in FORMS.values())
        for other in (two, three):
            assert relative(other.V_rate, one.V_rate) < 1e-13
            assert relative(other.omega_rate, one.omega_rate) < 1e-13
            if held:
                assert relative(other.support_N, one.support_N) < 1e-13
        assert relative(two.joint_N, one.joint_N[2 * len(skeleton.modules) :]) < 1e-13
        assert relative(joint_forces(skeleton, now, three), one.joint_N) < 1e-13


def test_the_forms_agree_to_the_last_digits_on_the_middle_of_many_states():
    # 1e-14 is 45 roundings; single states reach a few times that, with 165 unknowns.
    rng, gaps = np.random.default_rng(72), []
    for held in ((), BOTH[:1], BOTH):
        for _ in range(10):
            now = random_state(BODY, rng, held, spread=0.8)
            one, two, three = (form(BODY, now) for form in FORMS.values())
            gaps += [relative(a.V_rate, one.V_rate) for a in (two, three)]
            gaps += [relative(a.omega_rate, one.omega_rate) for a in (two, three)]
    assert np.median(gaps) < 1e-14


def test_free_bodies_obey_newton_and_every_joint_holds():
    rng = np.random.default_rng(57)
    now = random_state(BODY, rng, BOTH)
    answer = free_bodies(BODY, now)
    force = np.zeros((18, 3)) + BODY.mass_kg[:, None] * np.array([0, 0, -9.81])
    for joint, gamma in zip(BODY.joints, answer.joint_N, strict=True):
        force[joint.upper] += gamma
        force[joint.lower] -= gamma
    for foot, gamma in zip(BODY.supports, answer.support_N, strict=True):
        force[foot.body] += gamma
    assert np.abs(force - BODY.mass_kg[:, None] * answer.V_rate).max() < 1e-10

    def rate(body, r):
        w, dw = now.omega[body], answer.omega_rate[body]
        return answer.V_rate[body] + now.A[body] @ (np.cross(dw, r) + np.cross(w, np.cross(w, r)))

    for joint in BODY.joints:
        gap = rate(joint.upper, joint.upper_m) - rate(joint.lower, joint.lower_m)
        assert np.abs(gap).max() < 1e-10
    for foot in BODY.supports:
        assert np.abs(rate(foot.body, foot.at_m)).max() < 1e-10


def test_internal_torques_leave_the_angular_momentum_alone_only_if_rotated():
    rng = np.random.default_rng(17)
    for _ in range(5):
        now = random_state(BODY, rng)
        push, turn = momentum_rates(BODY, now, projected(BODY, now))
        assert np.abs(turn).max() < 1e-11  # N m; sums of 18 terms of some 100 N m
        assert np.allclose(push, [0.0, 0.0, -WEIGHT_N], rtol=1e-12, atol=1e-11)
    torques = 5.0 * rng.normal(size=(17, 3))
    N = np.zeros((18, 3))
    for joint, torque in zip(BODY.joints, torques, strict=True):
        N[joint.upper] += torque
        N[joint.lower] -= torque  # as if both frames were one
    wrong = Acting(now.A, now.omega, N)
    assert np.abs(momentum_rates(BODY, wrong, projected(BODY, wrong))[1]).max() > 5.0


def test_upright_on_both_toes_the_ground_gives_the_weight_and_no_more():
    for form in FORMS.values():
        answer = form(BODY, upright(BODY, BOTH))
        assert answer.support_N.sum(axis=0)[2] == pytest.approx(WEIGHT_N, rel=1e-14)
        assert np.abs(answer.support_N[:, :2]).max() < 1e-11
        assert np.abs(answer.V_rate).max() < 1e-12
    hips = modules(BODY, upright(BODY, BOTH)).joint_N[:2, 2]
    legs = BODY.mass_kg[3:9].sum() * 9.81
    assert hips.sum() == pytest.approx(WEIGHT_N - legs, rel=1e-13)


def test_in_the_air_nothing_holds_and_on_one_foot_one_foot_does():
    assert projected(BODY, upright(BODY)).support_N.shape == (0, 3)
    assert np.allclose(projected(BODY, upright(BODY)).V_rate, [0, 0, -9.81], atol=1e-12)
    assert projected(BODY, upright(BODY, BOTH[1:])).support_N.shape == (1, 3)
    with pytest.raises(ModelError, match="support 'heel': unknown name"):
        projected(BODY, upright(BODY, ["heel"]))


@pytest.mark.parametrize("skeleton", [BODY, HAND], ids=["body", "hand"])
def test_the_recursion_gives_the_projected_forms_accelerations(skeleton):
    order, carried = skeleton.tree()
    tree, rng = Recursion(carried), np.random.default_rng(3)
    for _ in range(10):
        now = random_state(skeleton, rng)
        tree.solve(now.A[order], now.omega[order], now.N[order])
        answer = projected(skeleton, now)
        assert relative(tree.V_rate, answer.V_rate[order]) < 1e-12
        assert relative(tree.omega_rate, answer.omega_rate[order]) < 1e-12


@pytest.mark.parametrize("skeleton", [BODY, HAND], ids=["body", "hand"])
def test_pinocchio_finds_the_same_accelerations(skeleton):
    pytest.importorskip("pinocchio")
    peer, rng = Peer(skeleton), np.random.default_rng(5)
    for _ in range(10):
        A = random_state(skeleton, rng).A
        torques = 5.0 * rng.normal(size=(len(skeleton.joints), 3))
        now = Acting(A, rng.normal(size=(skeleton.n, 3)), skeleton.paired(A, torques))
        answer = projected(skeleton, now)
        V_rate, omega_rate = peer.accelerations(A, now.omega, torques)
        assert relative(V_rate, answer.V_rate) < 1e-10
        assert relative(omega_rate, answer.omega_rate) < 1e-10


@pytest.mark.parametrize("held", [BOTH[:1], BOTH])
def test_pinocchio_finds_the_same_forces_of_the_ground(held):
    pytest.importorskip("pinocchio")
    peer, rng = Peer(BODY), np.random.default_rng(6)
    for _ in range(5):
        A = random_state(BODY, rng).A
        torques = 5.0 * rng.normal(size=(17, 3))
        now = Acting(A, rng.normal(size=(18, 3)), BODY.paired(A, torques), held)
        answer = projected(BODY, now)
        V_rate, omega_rate, support_N = peer.standing(A, now.omega, torques, held)
        assert relative(V_rate, answer.V_rate) < 1e-10
        assert relative(omega_rate, answer.omega_rate) < 1e-10
        assert relative(support_N, answer.support_N) < 1e-10


def test_the_mass_matrix_and_the_supports_rows_are_those_of_the_velocities():
    rng = np.random.default_rng(9)
    now = random_state(BODY, rng)
    V_a = rng.normal(size=3)
    v = np.concatenate((now.omega[0], V_a, now.omega[1:].ravel()))
    V = BODY.velocities(V_a, now.A, now.omega)
    T = 0.5 * (BODY.mass_kg @ (V**2).sum(axis=1))
    T += 0.5 * np.einsum("ni,nij,nj", now.omega, BODY.J, now.omega)
    assert v @ mass_matrix(BODY, now.A) @ v / 2.0 == pytest.approx(T, rel=1e-13)
    feet = [V[s.body] + now.A[s.body] @ np.cross(now.omega[s.body], s.at_m) for s in BODY.supports]
    assert np.allclose(support_rows(BODY, now.A, BOTH) @ v, np.concatenate(feet), atol=1e-13)


def test_with_four_hands_at_its_hands_and_feet_the_body_has_the_papers_ninety_links():
    modules = [Module(m.name, m.links) for m in BODY.modules]
    connections = dict(CONNECTIONS["body"])
    for side, at in (("rh", "right_arm.hand.top"), ("lh", "left_arm.hand.top"),
                     ("rf", "right_leg.foot.bottom"), ("lf", "left_leg.foot.bottom")):  # fmt: skip
        modules += [Module(f"{side}_{m.name}", m.links) for m in HAND.modules]
        for name, (lower, upper) in CONNECTIONS["hand"].items():
            connections[f"{side}_{name}"] = (f"{side}_{lower}", f"{side}_{upper}")
        connections[side] = (at, f"{side}_palm.carpus.bottom")
    whole = Skeleton(modules, connections, {})
    assert whole.n == 90
    assert whole.dimensions == (540, 360, 273)
    order, carried = whole.tree()
    tree = Recursion(carried)
    now = random_state(whole, np.random.default_rng(90))
    tree.solve(now.A[order], now.omega[order], now.N[order])
    answer = projected(whole, now)
    assert relative(tree.V_rate, answer.V_rate[order]) < 1e-10
    assert relative(tree.omega_rate, answer.omega_rate[order]) < 1e-10
    assert np.abs(momentum_rates(whole, now, answer)[1]).max() < 1e-9
