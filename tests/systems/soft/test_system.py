"""Links moved by arrays: both obey their own laws, and give each other the same force."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.systems.array.model import cells
from hil.systems.array.model.activation import CellActivation
from hil.systems.array.model.cell_array import CellArray, make_array
from hil.systems.array.model.network import Point
from hil.systems.soft import outside
from hil.systems.soft.element import Material
from hil.systems.soft.system import Link, Muscle, SoftArraySystem
from hil.systems.soft.tree import Beam, Ground, Place
from hil_studies.soft_chain.outputs import trace_m

CELL = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=50.0)
SILICONE = Material.voigt(0.6e6, 1100.0, loss_s=0.02)
LINK = Link(Beam(0.1, 0.02, 0.01, SILICONE), 10, angle_rad=-np.pi / 2)
FLEXOR = Muscle("flexor", "finger", 0.008)


def arrays(text="-:2 | &3:2 | &3:-1"):
    points = {"ground": Point("fixed"), "hand": Point("driven")}
    return CellArray(
        points, {"flexor": make_array(text, cell=CELL, mass_kg=0.002, start="ground", end="hand")}
    )


def finger(period_s=1e-3, **keywords):
    model = arrays()
    settings = {"links": {"finger": LINK}, "muscles": {"flexor": FLEXOR}} | keywords
    return SoftArraySystem(
        **settings, arrays=model, activation=[CellActivation(2.0)] * 4, period_s=period_s
    )


def named(system, name, y=None):
    return float((system.y if y is None else y)[list(system.outputs).index(name)])


def test_the_array_and_its_tendon_have_the_same_force_and_length_at_every_step():
    system = finger()
    on = np.array([1, 1, 0, 1], dtype=np.uint8)
    for _ in range(300):
        system.step(on, np.zeros(0))
        pull_N = system.soft.lines[0, outside.TENSION]
        # The last recursion leaves 1e-10 of an acceleration; the force is stiff in the length.
        assert named(system, "flexor.right_N") == pytest.approx(pull_N, abs=1e-9)


def test_a_tendon_never_pushes_and_its_array_feels_no_force_while_it_is_slack():
    system = finger()
    tensions_N = []
    for k in range(600):  # let go after 0.2 s: the finger swings back beyond its rest
        system.step(np.full(4, k < 200, dtype=np.uint8), np.zeros(0))
        tensions_N.append(named(system, "flexor.right_N"))
        assert tensions_N[-1] == pytest.approx(system.soft.lines[0, outside.TENSION], abs=1e-9)
    assert min(tensions_N) > -1e-12
    slack = np.abs(tensions_N) < 1e-12
    assert slack.sum() > 100
    assert np.diff(slack.astype(int)).min() == -1  # it pulls again


def test_the_array_alone_moved_as_the_tendon_moved_gives_the_same_force():
    # A quarter of a second of the coupled motion, then the array by itself on that motion: its
    # own exact discretisation at a tenth of the period, on inputs splined in between.
    from scipy.interpolate import CubicHermiteSpline

    from hil.mechanics.discrete import LinearStepper, discretise

    system, model = finger(), arrays()
    on = np.ones(4, dtype=np.uint8)
    before = system.soft.lines[0, outside.LENGTH] - 0.1
    track = [(before, 0.0, named(system, "flexor.right_N"))]
    for _ in range(250):
        system.step(on, np.zeros(0))
        line = system.soft.lines[0]
        track.append((line[outside.LENGTH] - 0.1, line[outside.RATE],
                      named(system, "flexor.right_N")))  # fmt: skip
    x, v, force_N = np.transpose(track)
    t_s = 1e-3 * np.arange(251)
    curve = CubicHermiteSpline(t_s, x, v)
    fine_s = 1e-4 * np.arange(2501)
    at = model.outputs.index("flexor.right_N")
    d = discretise(model.A, model.B, model.C[[at]], model.D[[at]], 1e-4)
    u = np.zeros((2501, len(model.inputs)))
    u[:, :4] = 2.0
    u[:, -3], u[:, -2] = curve(fine_s), curve(fine_s, 1)
    cold = np.zeros(len(model.inputs))
    cold[-3] = before
    alone = LinearStepper(d, -np.linalg.solve(model.A, model.B @ cold), cold)
    felt = []
    for k in range(2500):
        alone.step(u[k], u[k + 1])
        felt.append(alone.y[0])
    # The cells go on with a step, which stirs the masses between: the ends' motion is linear over
    # a period for the coupled array, splined for the one alone.
    assert felt[9::10] == pytest.approx(force_N[1:], abs=2e-3 * force_N.max())


def test_periods_ten_times_shorter_lead_to_the_same_place():
    ends = []
    for period_s in (1e-3, 1e-4):
        system = finger(period_s)
        for _ in range(round(0.2 / period_s)):
            system.step(np.ones(4, dtype=np.uint8), np.zeros(0))
        ends.append(system.y)
    assert ends[0] == pytest.approx(ends[1], rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("angle_rad", [0.0, np.pi])
def test_a_finger_that_hangs_on_its_tendon_or_leaves_it_slack_starts_at_rest_and_stays(angle_rad):
    system = finger(links={"finger": Link(LINK.beam, 10, angle_rad)})
    before = system.y.copy()
    assert np.abs(system.soft.x).max() < 1e-6  # rad/s^2
    for _ in range(100):
        system.step(np.zeros(4, dtype=np.uint8), np.zeros(0))
    assert system.y == pytest.approx(before, abs=1e-9)
    taut = angle_rad == 0.0
    assert (named(system, "flexor.right_N") > 0.1) == taut


def test_a_pulled_finger_comes_to_the_rest_that_statics_gives():
    system = finger(5e-3)
    goal = system.settled(np.full(4, 2.0))
    before = system.y.copy()
    for _ in range(4000):
        system.step(np.ones(4, dtype=np.uint8), np.zeros(0))
    assert not np.allclose(before, goal, rtol=0.1)
    # The array's masses between their cells ring for long: 20 s leave 1e-4 of it at its ends.
    assert system.y == pytest.approx(goal, rel=2e-4, abs=1e-9)


def test_looking_at_statics_leaves_the_state_as_it_is():
    system, alone = finger(), finger()
    on = np.ones(4, dtype=np.uint8)
    for k in range(50):
        system.step(on, np.zeros(0))
        alone.step(on, np.zeros(0))
        if k % 7 == 0:
            system.settled(np.array([2.0, 0.0, 0.0, 1.0 + 0.01 * k]))  # searched for anew
    assert np.array_equal(system.y, alone.y)


def test_outputs_at_rest_are_those_of_their_forces_and_whoever_asks_may_change_them():
    system = finger()
    answers = [system.settled(np.array([2.0, 0.0, 0.0, last_N])) for last_N in (0.0, 1.0)]
    fresh = finger().settled(np.array([2.0, 0.0, 0.0, 1.0]))
    assert np.array_equal(answers[1], fresh)
    assert not np.allclose(answers[0], fresh, rtol=1e-3)
    for _ in range(2):
        again = system.settled(np.array([2.0, 0.0, 0.0, 1.0]))
        assert np.array_equal(again, fresh)
        again[:] = 0.0


def test_without_gravity_the_curvature_is_the_tensions_moment_over_EI():
    # Small bending: a tendon at a constant offset e bends the beam by T e / EI.
    system = finger(gravity_m_per_s2=(0.0, 0.0))
    y = system.settled(np.full(4, 0.02))
    tension_N = named(system, "flexor.right_N", y)
    expected = tension_N * 0.008 / LINK.beam.EI_z_N_m2
    # The line from eyelet to eyelet keeps its offset but for the bend, 3e-2/m over 1 cm.
    assert named(system, "finger.curvature_1_per_m", y) == pytest.approx(expected, rel=1e-3)


def test_a_surface_array_bends_only_what_it_is_mounted_on():
    mounted = Muscle("flexor", "finger", 0.008, start=0.35, end=0.75)
    system = finger(gravity_m_per_s2=(0.0, 0.0), muscles={"flexor": mounted})
    system._rest(np.full(4, 1.0))
    q = system.soft.q
    # Segments 3 to 7 carry it; joints 4 to 7 lie between its ends.
    assert np.abs(q[[0, 1, 2, 3, 8, 9]]).max() < 1e-12
    assert q[4:8].min() > 1e-3


def test_the_tip_is_where_the_chain_puts_it():
    system = finger()
    system.step(np.ones(4, dtype=np.uint8), np.zeros(0))
    tip = trace_m(system.soft, Place(9, (0.01, 0.0, 0.0)), system.soft.q[None])[0]
    assert named(system, "finger.tip_x_m") == pytest.approx(tip[0], abs=1e-15)
    assert named(system, "finger.tip_y_m") == pytest.approx(tip[1], abs=1e-15)


def test_the_ground_carries_what_presses_on_it():
    # A wall at the right: the flexed finger presses on it with what its depth gives.
    wall = Ground((-1.0, 0.0, 0.0), (0.008, 0.0, 0.0), k_N_per_m=2000.0, c_N_s_per_m=1.0)
    free, stopped = finger(2e-3), finger(2e-3, ground=wall)
    for system in (free, stopped):
        for _ in range(3000):
            system.step(np.ones(4, dtype=np.uint8), np.zeros(0))
    assert named(free, "finger.tip_x_m") > 0.012
    depth_m = named(stopped, "finger.tip_x_m") - 0.008
    assert 0.0 < depth_m < 1e-3
    assert named(stopped, "finger.touch_N") == pytest.approx(2000.0 * depth_m, rel=1e-3)
    assert named(free, "finger.touch_N") == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"muscles": {}}, "its tendon has no path"),
        ({"muscles": {"flexor": Muscle("flexor", "thumb", 0.01)}}, "'thumb': choose finger"),
        ({"muscles": {"flexor": FLEXOR, "other": FLEXOR}}, "muscles.other: there is no array"),
        ({"muscles": {"flexor": Muscle("flexor", "finger", 0.01, 0.5, 0.2)}}, "0 <= start < end"),
    ],
)
def test_a_muscle_that_hangs_on_nothing_is_refused(change, message):
    with pytest.raises(ModelError, match=message):
        finger(**change)
