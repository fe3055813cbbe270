"""A limb in its angles against Euler parameters with multipliers, MuJoCo, and energy."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
import scipy.integrate

from hil.errors import ModelError
from hil.systems.leg import minimal
from hil.systems.leg.build import build_limb
from hil.systems.leg.limb import Body, Joint, Limb, PathPoint
from hil.systems.leg.stepper import LimbStepper, Tolerances
from hil_studies.leg.euler import EulerLimb, g_body, g_ground, turn
from hil_studies.leg.mechanics import disagreement
from hil_studies.leg.peers import mujoco_model
from oracles import legs


@pytest.fixture(scope="module")
def leg(configs):
    return build_limb(legs.table(configs))


def nine(configs):
    return build_limb(legs.table(configs, "leg9"))


def oblique(limb):
    """The leg with a spherical hip, a knee that is askew, and a muscle from the ground."""
    hip, knee, ankle = limb.joints
    gas = replace(
        limb.muscles[0],
        name="far",
        path=(PathPoint("ground", (0.1, 0.2, 0.0)), PathPoint("foot", (0.02, -0.1, 0.01))),
    )
    joints = (
        replace(hip, kind="spherical"),
        replace(knee, axis=(1.0, 0.3, -0.2)),
        replace(ankle, axis=(0.9, 0.1, 0.4), damping_N_m_s_per_rad=0.7),
    )
    return Limb(limb.bodies, joints, (*limb.muscles, gas), (0.3, -0.2, -9.81))


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e4])
@pytest.mark.parametrize("make", [lambda leg: leg, oblique])
def test_minimal_coordinates_and_euler_parameters_give_the_same_accelerations(make, scale, leg):
    bodies = tuple(
        replace(b, mass_kg=b.mass_kg * (1.0 if b.name == "foot" else scale / 1e4))
        for b in leg.bodies
    )
    accelerations, constraints = disagreement(make(replace(leg, bodies=bodies)), 20, seed=1)
    assert accelerations < 1e-11
    assert constraints < 1e-12


def test_mujoco_gives_the_same_accelerations(leg):
    """An independent program; one joint damped, muscles pulling along their paths."""
    damped = tuple(replace(j, damping_N_m_s_per_rad=0.3) for j in leg.joints)
    light = tuple(replace(b, mass_kg=min(b.mass_kg, 9.0)) for b in leg.bodies)
    limb = replace(leg, joints=damped, bodies=light)
    model = mujoco_model(limb)
    data = mujoco.MjData(model)
    links, _ = minimal.links_of(limb)
    work, rng = minimal.work_for(links), np.random.default_rng(2)
    for _ in range(200):
        data.qpos[:], data.qvel[:] = rng.normal(0.0, 0.6, 3), rng.normal(0.0, 4.0, 3)
        data.ctrl[:] = rng.uniform(0.0, 800.0, 2)
        mujoco.mj_forward(model, data)
        v_dot = np.zeros(3)
        minimal.accelerations(
            links, work, data.qpos.copy(), data.qvel.copy(), data.ctrl.copy(), v_dot
        )
        np.testing.assert_allclose(v_dot, data.qacc, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(work.length, data.ten_length, rtol=1e-13)
        np.testing.assert_allclose(work.rate, data.ten_velocity, rtol=1e-10, atol=1e-12)


def test_nine_muscles_over_three_joints_pull_as_mujocos_tendons(configs):
    limb = nine(configs)
    data = mujoco.MjData(model := mujoco_model(limb))
    links, _ = minimal.links_of(limb)
    work, rng = minimal.work_for(links), np.random.default_rng(6)
    for _ in range(50):
        data.qpos[:], data.qvel[:] = rng.normal(0.0, 0.4, 3), rng.normal(0.0, 4.0, 3)
        data.ctrl[:] = rng.uniform(0.0, 800.0, 9)
        mujoco.mj_forward(model, data)
        v_dot, state = np.zeros(3), (data.qpos.copy(), data.qvel.copy(), data.ctrl.copy())
        minimal.accelerations(links, work, *state, v_dot)
        np.testing.assert_allclose(v_dot, data.qacc, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_a_triple_pendulum_keeps_its_energy(leg):
    limb = legs.pendulum(leg)
    limb = replace(limb, bodies=tuple(replace(b, mass_kg=min(b.mass_kg, 9.0)) for b in leg.bodies))
    tight = Tolerances(rtol=1e-9, angle_rad=1e-10, rate_rad_per_s=1e-9)
    stepper = LimbStepper(limb, tolerances=tight)
    stepper.x[:3] = 1.2, 0.8, -0.9
    before = legs.energy_J(stepper)
    for _ in range(100):
        stepper.step(0.02, np.zeros(0))
    assert np.abs(stepper.x[3:6]).max() > 1.0  # it swings
    # 2 s at a relative tolerance of 1e-9 a step, of 25 J exchanged
    assert abs(legs.energy_J(stepper) - before) < 1e-5


@pytest.mark.slow
def test_baumgarte_keeps_the_constraints_below_a_micrometre(leg):
    """As the source integrates: the triple pendulum in 42 states, started from rest."""
    limb = legs.pendulum(leg)
    euler = EulerLimb(limb)
    links, body_link = minimal.links_of(limb)
    work = minimal.work_for(links)
    own = [body_link[body.name] for body in euler.bodies]
    minimal.kinematics(links, work, np.array([0.5, 0.4, -0.6]), np.zeros(3))
    c = np.einsum("bij,bj->bi", work.turn[own], links.centre[own])
    start = euler.place(work.place[own] + c, work.turn[own])
    n = euler.n

    def slope(_, y):
        return np.concatenate((y[n:], euler.accelerations(y[:n], y[n:], np.zeros(0))[0]))

    found = scipy.integrate.solve_ivp(
        slope, (0.0, 0.15), np.concatenate((start, np.zeros(n))), method="BDF", rtol=1e-6, atol=1e-8
    )  # ode15s is of the same family; its RelTol was 1e-6
    assert found.success
    worst = max(np.abs(euler.constraints(y[:n], y[n:])[0]).max() for y in found.y.T)
    assert worst < 1e-6
    moved = found.y[:n, -1] - start
    assert np.abs(moved).max() > 0.01


def test_euler_parameters_turn_as_the_rotation_they_are():
    rng = np.random.default_rng(3)
    for _ in range(100):
        theta = rng.normal(size=4)
        theta /= np.linalg.norm(theta)
        A = turn(theta)
        np.testing.assert_allclose(A @ A.T, np.eye(3), atol=1e-14)
        # (4): A = E Ebar^T, with G = 2 E
        np.testing.assert_allclose(0.25 * g_ground(theta) @ g_body(theta).T, A, atol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": "shank"}, "joints.knee.parent: there is no body 'shank': choose ground"),
        ({"child": "thigh"}, "bodies.thigh: is the child of 2 joints"),
        ({"axis": (0.0, 0.0, 0.0)}, "joints.knee.axis: must not be zero"),
        ({"angles_rad": (0.1, 0.2)}, "joints.knee.angles_rad: 2 given, a revolute joint has 1"),
        ({"kind": "spherical", "damping_N_m_s_per_rad": 1.0}, "is for revolute joints"),
        ({"parent": "foot"}, "joints: knee, ankle form a loop"),
    ],
)
def test_what_makes_no_limb_is_refused_by_its_key(change, message, leg):
    hip, knee, ankle = leg.joints
    with pytest.raises(ModelError, match=message):
        replace(leg, joints=(hip, replace(knee, **change), ankle))


def test_a_body_that_cannot_be_is_refused(leg):
    bodies = (Body("thigh", 1.0, (1.0, 0.1, 0.1)), *leg.bodies[1:])
    with pytest.raises(ModelError, match=r"bodies.thigh.inertia_kg_m2: not physical, 1 with"):
        replace(leg, bodies=bodies)
    with pytest.raises(ModelError, match="must be above 0"):
        replace(leg, bodies=(Body("thigh", 0.0, (1.0, 1.0, 1.0)), *leg.bodies[1:]))


def test_a_body_on_the_side_of_another_hangs_on_a_tree(leg):
    """Order in the file does not matter, and branches are allowed."""
    extra = Body("patella", 0.1, (1e-4, 1e-4, 1e-4))
    joint = Joint("pf", "revolute", "thigh", "patella", (0.0, 0.04, -0.2), (0.0, 0.0, 0.02))
    limb = Limb((*leg.bodies, extra), (joint, *leg.joints[::-1]), leg.muscles)
    assert [j.name for j in limb.order()] == ["hip", "pf", "knee", "ankle"]
    links, _ = minimal.links_of(limb)
    assert links.parent.tolist() == [-1, 0, 0, 2]
    work, v_dot = minimal.work_for(links), np.zeros(4)
    minimal.accelerations(links, work, np.zeros(4), np.zeros(4), np.zeros(2), v_dot)
    data = mujoco.MjData(model := mujoco_model(limb))
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(np.sort(v_dot), np.sort(data.qacc), rtol=1e-9, atol=1e-10)


def test_points_of_a_path_at_one_place_pull_as_one(leg):
    """Twice the same point; and a tendon through the ankle's axis, which turns nothing there."""
    anterior, soleus = leg.muscles
    shin, *beyond = anterior.path
    ankle = next(joint for joint in leg.joints if joint.name == "ankle")
    through = (shin, PathPoint("shin", ankle.at_parent_m), PathPoint("foot", ankle.at_child_m),
               *beyond[-1:])  # fmt: skip
    rng = np.random.default_rng(4)
    paths = {"as it is": anterior.path, "twice": (shin, shin, *beyond), "through": through}
    states = [(rng.normal(0.0, 0.3, 3), rng.normal(size=3)) for _ in range(5)] + [
        (np.zeros(3),) * 2
    ]
    found = {}
    for name, path in paths.items():
        links, _ = minimal.links_of(replace(leg, muscles=(replace(anterior, path=path), soleus)))
        work, rows = minimal.work_for(links), []
        for q, v in states:
            for tension in (0.0, 100.0):
                v_dot = np.empty(3)
                minimal.accelerations(links, work, q, v, np.array([tension, 10.0]), v_dot)
                rows.append((*v_dot, work.length[0], work.rate[0]))
        found[name] = np.array(rows)
    np.testing.assert_allclose(found["twice"], found["as it is"], rtol=1e-12, atol=1e-12)
    slack, taut = found["through"][::2], found["through"][1::2]
    np.testing.assert_allclose(taut[:, :3], slack[:, :3], rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(slack[:, 3], slack[0, 3], rtol=1e-12)
    np.testing.assert_allclose(slack[:, 4], 0.0, atol=1e-12)
