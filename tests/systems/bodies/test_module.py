"""The three-link module: laws at random states, and every misprint of appendix A and (13)."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.rotations import attitude, skew
from hil.systems.bodies.forms import Acting, free_bodies, modules, projected, strips
from hil.systems.bodies.module import End, Link, Module
from hil.systems.bodies.skeleton import Skeleton
from systems.bodies.skeletons import random_state, shipped

RNG = np.random.default_rng(16)
ROUNDING = 1e-13
H = 1e-6


@pytest.fixture(autouse=True)
def _the_same_numbers_in_any_order(monkeypatch):
    monkeypatch.setattr(f"{__name__}.RNG", np.random.default_rng(16))


def vector():
    return tuple(RNG.normal(size=3))


def torso():
    points = {"right": vector(), "left": vector()}
    links = [
        Link(f"{i}", RNG.uniform(1, 5), [0.3, 0.4, 0.5], vector(), vector(), points)
        for i in range(3)
    ]
    return Module("torso", links)


def torso_joints(module):
    """The forces in the paper's order: 12, 13 (thighs), 2, 3 (inner), 14, 15 (arms), 16 (neck)."""
    one, three = module.links[0], module.links[2]
    thighs = [[End(0, one.point(name), 1.0)] for name in ("right", "left")]
    arms = [[End(2, three.point(name), -1.0)] for name in ("right", "left", "top")]
    return [*thighs, *module.inner, *arms]


def state():
    return attitude(RNG.uniform(-3, 3, (3, 3))), RNG.normal(size=(3, 3))


def turned_by(A, omega, h):
    """Attitudes a moment later (earlier), Omega constant."""
    angle = np.linalg.norm(omega, axis=1)[:, None, None] * h
    K = skew(omega / np.linalg.norm(omega, axis=1)[:, None])
    return A @ (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K)


def test_the_projection_drops_the_inner_forces_and_leaves_h_d():
    module = torso()
    A, _ = state()
    one, two, three = module.links
    S11, R12, S12, R13 = one.top_m, two.bottom_m, two.top_m, three.bottom_m
    R1r, R1l = (np.array(one.point(name)) for name in ("right", "left"))
    S1r, S1l = (np.array(three.point(name)) for name in ("right", "left"))
    zero, eye = np.zeros((3, 3)), np.eye(3)
    t = np.swapaxes(A, 1, 2)
    # H1_d as it should be printed: rows O1, Vm, O2, O3; columns 12, 13, 2, 3, 14, 15, 16.
    corrected = np.block([
        [skew(R1r - S11) @ t[0], skew(R1l - S11) @ t[0], zero, zero, zero, zero, zero],
        [eye, eye, zero, zero, -eye, -eye, -eye],
        [skew(R12) @ t[1], skew(R12) @ t[1], zero, zero,
         -skew(S12) @ t[1], -skew(S12) @ t[1], -skew(S12) @ t[1]],
        [zero, zero, zero, zero, skew(R13 - S1r) @ t[2], skew(R13 - S1l) @ t[2],
         skew(np.subtract(R13, three.top_m)) @ t[2]],
    ])  # fmt: skip
    assert np.abs(module.H_d(A, torso_joints(module)) - corrected).max() < ROUNDING
    # As printed, row O2 has the wrong sign in its first column, row O3 the wrong attitude.
    printed = corrected.copy()
    printed[6:9, 0:3] *= -1.0
    printed[9:12, 12:15] = skew(R13 - S1r) @ t[1]
    printed[9:12, 15:18] = skew(R13 - S1l) @ t[1]
    assert np.abs(module.H_d(A, torso_joints(module)) - printed).max() > 0.1


def test_h_c_as_printed_has_a_lever_of_the_wrong_joint():
    # (16) prints S1l, the left arm's joint on link 3, where S11 has to be.
    module = torso()
    A, _ = state()
    joints = torso_joints(module)
    one, three = module.links[0], module.links[2]
    joints[2] = (joints[2][0], End(0, three.point("left"), -1.0))
    assert np.abs(module.H_d(A, joints)[:, 6:9]).max() > 0.1
    assert np.abs(module.H_d(A, torso_joints(module))[:, 6:12]).max() < ROUNDING
    assert one.top_m != three.point("left")


def test_h_a_and_h_b_are_the_derivatives_of_the_constraints():
    module = torso()
    A, omega = state()
    one, two, three = module.links

    def places(A):  # (21), with the middle at rest
        first = A[1] @ two.bottom_m - A[0] @ one.top_m
        return np.array([first, A[1] @ two.top_m - A[2] @ three.bottom_m])

    ahead, back = (places(turned_by(A, omega, h)) for h in (H, -H))
    V = module.H_a(A) @ np.concatenate((omega[0], np.zeros(3), omega[1], omega[2]))
    assert np.allclose(V.reshape(3, 6)[[0, 2], :3], (ahead - back) / (2 * H), atol=1e-8)
    ahead, now, back = (places(turned_by(A, omega, h)) for h in (1e-4, 0.0, -1e-4))
    H_b = module.H_b(A, omega).reshape(3, 6)
    second = (ahead - 2 * now + back) / 1e-8
    assert np.allclose(H_b[[0, 2], :3], second, atol=1e-5)
    # (23) prints R22, a joint the middle link has not, for R12: any other point fails.
    other = two.top_m
    printed = A[1] @ np.cross(omega[1], np.cross(omega[1], other)) - A[0] @ np.cross(
        omega[0], np.cross(omega[0], one.top_m)
    )
    assert np.abs(printed - second[0]).max() > 0.1


def test_velocities_ordered_as_22_prints_them_do_not_fit_the_masses():
    module = torso()
    A, omega = state()
    V_n = np.concatenate((omega[0], [0.3, -0.2, 0.1], omega[1], omega[2]))
    V = module.H_a(A) @ V_n
    T = V @ module.J @ V / 2.0
    by_parts = sum(
        link.mass_kg * V[6 * i : 6 * i + 3] @ V[6 * i : 6 * i + 3]
        + omega[i] @ np.diag(link.inertia_kg_m2) @ omega[i]
        for i, link in enumerate(module.links)
    ) / 2.0  # fmt: skip
    assert T == pytest.approx(by_parts, rel=1e-13)
    parts = V.reshape(3, 2, 3)
    as_22 = np.concatenate((parts[:, 0].ravel(), parts[:, 1].ravel()))
    assert abs(as_22 @ module.J @ as_22 / 2.0 / T - 1.0) > 0.1
    # (10) prints Theta3 before X3; its derivative in that order misses (11) in the same way.
    as_10 = np.concatenate((V[:12], V[15:], V[12:15]))
    assert abs(as_10 @ module.J @ as_10 / 2.0 / T - 1.0) > 0.01
    # The derivative of (22) multiplies [O1', Vm', O2', O3']; with V1' first nothing fits.
    wrong = module.H_a(A) @ np.concatenate((V[:3], omega[0], omega[1], omega[2]))
    assert np.abs(wrong - V).max() > 0.1


def test_the_right_thighs_force_is_not_a_force_between_the_torsos_links():
    # (16) prints Gamma_23 where the left thigh's Gamma_13 acts: the sum of what moves the torso.
    module = torso()
    A, _ = state()
    H_c = module.H_c(A, torso_joints(module))
    forces = RNG.normal(size=(7, 3))
    total = sum(H_c[6 * i : 6 * i + 3] @ forces.ravel() for i in range(3))
    outer = forces[0] + forces[1] - forces[4] - forces[5] - forces[6]
    assert np.allclose(total, outer, atol=ROUNDING)
    assert not np.allclose(total, outer - forces[1], atol=0.1)


@pytest.mark.parametrize("upper", [True, False])
def test_a_module_stands_as_leg_or_hangs_as_arm(upper):
    # The same module twice, above or below the other: forces of the ground hold the whole weight.
    links = [Link(str(i), 2.0, [0.1, 0.1, 0.05], (0, 0, -0.2), (0, 0, 0.2)) for i in range(3)]
    ends = ("one.2.top", "two.0.bottom") if upper else ("two.2.top", "one.0.bottom")
    skeleton = Skeleton(
        [Module("one", links), Module("two", links)],
        {"between": ends},
        {"foot": "one.0.bottom" if upper else "two.0.bottom"},
    )
    still = np.zeros((6, 3))
    now = Acting(np.tile(np.eye(3), (6, 1, 1)), still, still, ["foot"])
    answer = modules(skeleton, now)
    assert np.allclose(answer.support_N, [[0.0, 0.0, 12.0 * 9.81]], rtol=1e-13)
    assert np.allclose(answer.joint_N, [[0.0, 0.0, 6.0 * 9.81]], rtol=1e-13)


def test_equation_13_as_printed_tears_the_joints_apart():
    body = shipped("body")
    A = attitude(RNG.uniform(-1, 1, (18, 3)))
    X = body.centres(A)
    gaps = [
        X[j.upper] + A[j.upper] @ j.upper_m - X[j.lower] - A[j.lower] @ j.lower_m
        for j in body.joints
    ]
    assert np.abs(gaps).max() < ROUNDING
    # In the paper's numbers: torso 11 12 13, right leg 21 22 23, right arm 41 42 43.
    (t1, t2, t3), (l1, l2, l3) = (body.modules[m].links for m in (0, 1))
    a1, a2 = body.modules[3].links[:2]
    A11, A12, A13, _, A22, A23, = A[:6]  # fmt: skip
    A41, A42 = A[9:11]
    R1r, S1r = t1.point("right_hip"), t3.point("right_shoulder")
    right_leg = (
        A12 @ t2.bottom_m - A11 @ t1.top_m + A11 @ R1r
        - A23 @ l3.top_m + A23 @ l3.bottom_m - A22 @ l2.top_m
    )  # fmt: skip
    right_arm = (
        A12 @ t2.top_m - A13 @ t3.bottom_m + A13 @ S1r
        - A41 @ a1.bottom_m + A41 @ a1.top_m - A42 @ a2.bottom_m
    )  # fmt: skip
    assert np.abs(X[4] - right_leg).max() < ROUNDING
    assert np.abs(X[10] - right_arm).max() < ROUNDING
    S2l, printed_23 = l1.top_m, A23 @ l3.bottom_m
    assert np.abs(X[4] - (right_leg + A11 @ t1.top_m - A11 @ S2l)).max() > 0.01
    printed = right_arm + A13 @ t3.bottom_m - A13 @ S1r - printed_23 + A23 @ S1r
    assert np.abs(X[10] - printed).max() > 0.1
    assert np.abs(right_arm - A12 @ t2.top_m + A22 @ t2.top_m - X[10]).max() > 0.01


def test_the_strips_of_h_a_are_the_derivative_of_13():
    body = shipped("body")
    now = random_state(body, RNG)
    H_a, H_b = strips(body, now.A, now.omega)
    v = np.concatenate((now.omega[0], [0.3, -0.2, 0.1], now.omega[1:].ravel()))

    def middles(h):
        return body.centres(turned_by(now.A, now.omega, h))[1::3] + h * v[3:6]

    speeds = (middles(H) - middles(-H)) / (2 * H)
    assert np.allclose([strip[3:6] @ v for strip in H_a], speeds, atol=1e-8)
    second = (middles(1e-4) - 2 * middles(0.0) + middles(-1e-4)) / 1e-8
    assert np.allclose([drift[3:6] for drift in H_b], second, atol=1e-5)


def test_one_module_alone_is_a_skeleton_too():
    skeleton = Skeleton([torso()], {}, {})
    assert skeleton.dimensions == (18, 12, 12)
    now = random_state(skeleton, RNG)
    assert np.allclose(free_bodies(skeleton, now).V_rate, projected(skeleton, now).V_rate)


LINK = Link("a", 1.0, [1, 1, 1], (0, 0, -1), (0, 0, 1))
ABC = [Link(name, 1.0, [1, 1, 1], (0, 0, -1), (0, 0, 1)) for name in "abc"]


def three(*names):
    return [Module(name, ABC) for name in names]


@pytest.mark.parametrize(
    ("connections", "says"),
    [
        ({"j": ("m.a.top", "x.a.bottom")}, "no module 'x': choose m, n, o"),
        ({"j": ("m.a.top", "n.z.bottom")}, "module 'n' has no link 'z': choose a, b, c"),
        ({"j": ("m.a.top", "n.a.side")}, "has no point 'side': choose bottom, top"),
        ({"j": ("m.a", "n.a.side")}, "give 'module.link.point'"),
        ({"j": ("m.a.top", "m.c.bottom")}, "closed loop"),
        ({"j": ("m.a.top", "n.a.top"), "k": ("m.c.top", "n.c.top")}, "k: closes a loop"),
        ({"j": ("m.c.top", "n.a.bottom"), "k": ("n.c.top", "o.a.bottom"),
          "l": ("o.c.top", "m.a.bottom")}, "l: closes a loop: 'o' and 'm'"),
        ({"j": ("m.a.top", "n.a.top")}, "module 'o': not connected to 'm'"),
    ],
)  # fmt: skip
def test_connections_that_make_no_tree_are_refused_in_one_line(connections, says):
    with pytest.raises(ModelError, match=says) as refused:
        Skeleton(three("m", "n", "o"), connections, {})
    assert "\n" not in str(refused.value)


def test_links_that_make_no_module_are_refused():
    with pytest.raises(ModelError, match="give three"):
        Module("m", [LINK])
    with pytest.raises(ModelError, match="different names"):
        Module("m", [LINK] * 3)
    bad = Link("b", 1.0, [1, -1, 1], (0, 0, 0), (0, 0, 0))
    with pytest.raises(ModelError, match="module 'm', link 'b': inertia_kg_m2: not positive"):
        Module("m", [ABC[0], bad, ABC[2]])
    light = Link("b", 0.0, [1, 1, 1], (0, 0, 0), (0, 0, 0))
    with pytest.raises(ModelError, match="mass_kg"):
        Module("m", [ABC[0], light, ABC[2]])
