"""What any sudden constraint obeys, for any M and A, to 1e-10."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.impact import decompose, decompose_many, nonideal
from hil.systems.pantograph.linkage import Pantograph
from hil_studies.walker.model import Walker

RANDOM = np.random.default_rng(20260311)


def an_event(n, m):
    """Masses and lengths of unlike sizes, as in machines."""
    B = RANDOM.normal(size=(n, n))
    scale = np.diag(10.0 ** RANDOM.uniform(-1.0, 1.0, n))
    M = scale @ (B @ B.T + 0.5 * np.eye(n)) @ scale
    return (M + M.T) / 2.0, RANDOM.normal(size=(m, n)), RANDOM.normal(size=n)


def at_a_pose_of_the_pantograph():
    radius, turn = RANDOM.uniform(0.12, 0.3), RANDOM.uniform(0.4, 2.7)
    pose = Pantograph().inverse((radius * np.cos(turn), radius * np.sin(turn)))
    return pose.M_kg_m2, pose.A_m, RANDOM.normal(size=2)


def at_a_pose_of_the_walker():
    walker = Walker(rho=RANDOM.uniform(0.0, 0.6), mu=10.0 ** RANDOM.uniform(-1.0, 1.0))
    angles = RANDOM.uniform(-0.8, 0.8, 3)
    return walker.mass_matrix(angles)[0], walker.contact_rows(angles)[0], RANDOM.normal(size=5)


EVENTS = [an_event(n, m) for n in range(1, 8) for m in range(1, n + 1) for _ in range(4)]
POSES = [make() for make in (at_a_pose_of_the_pantograph, at_a_pose_of_the_walker)
         for _ in range(30)]  # fmt: skip


@pytest.mark.parametrize(("M", "A", "qdot"), [*EVENTS, *POSES])
def test_the_laws_of_the_two_spaces_hold(M, A, qdot):
    d = decompose(M, A, qdot)
    T = 0.5 * qdot @ M @ qdot
    near = {"rtol": 0.0, "atol": 1e-10}
    size = np.abs(d.P_c).max()  # the projector is oblique in the coordinates
    np.testing.assert_allclose((d.P_c @ d.P_c - d.P_c) / size, 0.0, **near)
    np.testing.assert_allclose(d.P_a.T @ M @ d.P_c / np.abs(M).max() / size, 0.0, **near)
    np.testing.assert_allclose((d.P_c @ qdot - d.v_c) / size, 0.0, **near)
    np.testing.assert_allclose(d.v_c + d.v_a, qdot, **near)
    np.testing.assert_allclose((d.T_c_J + d.T_a_J) / T, 1.0, **near)
    np.testing.assert_allclose((2.0 * d.T_c_J + qdot @ A.T @ d.impulse) / T, 0.0, **near)
    np.testing.assert_allclose(A @ d.qdot_after / size, 0.0, **near)
    momentum = M @ (d.qdot_after - qdot) - A.T @ d.impulse
    np.testing.assert_allclose(momentum / np.abs(M @ qdot).max(), 0.0, **near)
    after = 0.5 * d.qdot_after @ M @ d.qdot_after
    np.testing.assert_allclose((after - d.T_a_J) / T, 0.0, **near)
    np.testing.assert_allclose(d.xi, d.T_c_J / T, **near)


@pytest.mark.parametrize(("M", "A", "qdot"), EVENTS[::5])
def test_gauss_no_other_admissible_velocity_is_nearer_in_the_mass_metric(M, A, qdot):
    d = decompose(M, A, qdot)

    def distance(v):
        return (v - qdot) @ M @ (v - qdot)

    for _ in range(20):
        other = d.qdot_after + d.P_a @ RANDOM.normal(size=len(qdot))
        assert distance(other) >= distance(d.qdot_after) - 1e-12


def test_many_events_at_once_are_the_events_one_by_one():
    events = [an_event(4, 2) for _ in range(50)]
    many = decompose_many(*(np.array(part) for part in zip(*events, strict=True)))
    for k, event in enumerate(events):
        one = decompose(*event)
        for name in ("v_c", "v_a", "impulse", "qdot_after", "T_c_J", "T_a_J", "xi", "P_c"):
            np.testing.assert_array_equal(getattr(many, name)[k], getattr(one, name))


def test_a_contact_that_opens_exerts_nothing():
    M, A = np.eye(2), [[0.0, 1.0]]
    away = decompose(M, A, [1.0, -2.0], closing=[1.0])
    assert away.separating
    np.testing.assert_array_equal(away.impulse, [0.0])
    np.testing.assert_array_equal(away.qdot_after, [1.0, -2.0])
    toward = decompose(M, A, [1.0, 2.0], closing=[1.0])
    assert not toward.separating
    np.testing.assert_allclose(toward.impulse, [-2.0])
    assert decompose(M, A, [1.0, 0.0], closing=[1.0]).separating


def test_at_rest_nothing_is_lost_and_nothing_is_undefined():
    d = decompose(np.eye(2), [[0.0, 1.0]], [0.0, 0.0])
    assert (d.T_c_J, d.T_a_J, d.xi) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("M", "A", "qdot", "message"),
    [
        (np.eye(2), [[1.0, 2.0], [2.0, 4.0]], [1.0, 0.0], "A: row 1 is zero or repeats"),
        (np.eye(3), [[1, 0, 0], [0, 1, 0], [1, 1, 0]], [1.0, 0, 0], "A: row 2 is zero or repeats"),
        (np.eye(2), [[0.0, 0.0]], [1.0, 0.0], "A: row 0 is zero"),
        (np.diag([1.0, 0.0]), [[1.0, 0.0]], [1.0, 0.0], "M: not positive definite"),
        ([[1.0, 1.0], [1.0, 1.0 + 1e-13]], [[1.0, 0.0]], [1.0, 0.0], "ill-conditioned"),
        ([[1.0, 0.5], [0.0, 1.0]], [[1.0, 0.0]], [1.0, 0.0], "M: must be symmetric"),
        (np.eye(2), [[1.0, np.nan]], [1.0, 0.0], "A: every value must be finite"),
        (np.eye(2), [[1.0, 0.0]], [np.inf, 0.0], "qdot: every value must be finite"),
        (np.eye(2), [1.0, 0.0], [1.0, 0.0], "do not fit"),
        (np.eye(2), np.eye(3), [1.0, 0.0], "do not fit"),
        (np.eye(2), np.ones((3, 2)), [1.0, 0.0], "do not fit"),
    ],
)
def test_what_cannot_be_decomposed_is_refused_in_words(M, A, qdot, message):
    with pytest.raises(ModelError, match=message):
        decompose(M, A, qdot)


def test_of_many_events_the_bad_one_is_named():
    A = np.array([[[1.0, 0.0]], [[0.0, 0.0]]])
    with pytest.raises(ModelError, match="event 1: A: row 0"):
        decompose_many(np.array([np.eye(2)] * 2), A, np.ones((2, 2)))


@pytest.mark.parametrize(("M", "A", "qdot"), [an_event(n, 1) for n in (2, 3, 5) for _ in range(5)])
def test_nonideal_forces_balance_momentum_and_leave_the_constraint_kept(M, A, qdot):
    B = RANDOM.normal(size=(1, len(qdot)))
    f_0, D = 0.1 * RANDOM.normal(size=len(qdot)), 0.02 * B.T
    found, ideal = nonideal(M, A, qdot, f_0=f_0, D=D), decompose(M, A, qdot)
    np.testing.assert_allclose(A @ found.qdot_after, 0.0, atol=1e-10 * np.abs(ideal.P_c).max())
    momentum = M @ (found.qdot_after - qdot)
    np.testing.assert_allclose(
        momentum, A.T @ found.impulse + found.f_N, atol=1e-10 * np.abs(momentum).max()
    )
    np.testing.assert_allclose(found.f_N, f_0 + D @ found.impulse, atol=1e-12)
    np.testing.assert_allclose(found.impulse + found.impulse_nonideal, ideal.impulse, rtol=1e-12)
    # Eq. (19): only the admissible part of f_N moves T_a.
    v_a = ideal.v_a + np.linalg.solve(M, ideal.P_a.T @ found.f_N)
    np.testing.assert_allclose(found.T_a_after_J, 0.5 * v_a @ M @ v_a, rtol=1e-9)


def test_friction_that_jams_is_refused():
    # A rod that digs in: pushing back makes it push harder (Painleve).
    M, A = [[1.0, 0.9], [0.9, 1.0]], [[1.0, 0.0]]
    D = [[0.0], [2.0]]
    with pytest.raises(ModelError, match="jams"):
        nonideal(M, A, [-1.0, 0.0], D=D)
