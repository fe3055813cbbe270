"""One body in four state spaces; oracles: the published case, laws of physics, a pendulum."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hil.errors import ModelError
from hil.mechanics.one_body import (
    FORMS,
    Hinge,
    OneBody,
    hinge_eliminated,
    hinge_simultaneous,
    hold_angles,
    hold_quaternion,
    lyapunov_angles_J,
    lyapunov_quaternion_J,
)
from hil.mechanics.rotations import (
    angles,
    attitude,
    omega_to_rates,
    omega_to_rates_slopes,
    quaternion,
    quaternion_rate,
    rates_to_omega,
    skew,
)

RNG = np.random.default_rng(2)
BODY = OneBody.of([0.008, 0.006, 0.003])
THETA, OMEGA = np.array([0.3, -0.4, 0.5]), np.array([1.0, -0.7, 1.5])
THETA_AT_2 = np.array([3.912927164, -0.104420988, -1.695351984])


def torque(t):
    return np.array([0.010 * np.sin(2 * t), 0.008 * np.cos(3 * t), -0.006 * np.sin(t)])


def free(_t):
    return np.zeros(3)


def angle_between_deg(A, B):
    # Of the sine, which rounding spoils less than the cosine of a small angle.
    turn = A.T @ B
    half = np.linalg.norm(turn - np.eye(3)) / (2.0 * np.sqrt(2.0))
    return np.rad2deg(2.0 * np.arcsin(min(half, 1.0)))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_arrives_where_the_case_says(form):
    A, _ = BODY.run(form, attitude(THETA), OMEGA, torque, [0.0, 2.0])
    # t1 = 3.91 is the angle followed without jumps; its attitude is that of 3.91 - 2 pi.
    assert np.abs(A[-1] - attitude(THETA_AT_2)).max() < 2e-9  # the figures' last place
    expected = angles(attitude(THETA_AT_2))
    assert np.abs(angles(A[-1]) - expected).max() < 2e-9


def test_all_forms_are_one_trajectory():
    t = np.linspace(0.0, 2.0, 21)
    runs = [BODY.run(form, attitude(THETA), OMEGA, torque, t) for form in FORMS]
    for A, omega in runs[1:]:
        assert np.abs(A - runs[0][0]).max() < 1e-10
        assert np.abs(omega - runs[0][1]).max() < 1e-10


def test_maps_between_the_state_spaces_are_each_others_inverse():
    for form in FORMS:
        A, omega = BODY.motion(form, BODY.state(form, attitude(THETA), OMEGA))
        assert np.allclose(A, attitude(THETA), atol=1e-15)
        assert np.allclose(omega, OMEGA, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_free_motion_keeps_momentum_and_energy(form):
    A, omega = BODY.run(form, attitude(THETA), OMEGA, free, np.linspace(0.0, 2.0, 9))
    L = np.array([BODY.angular_momentum(a, w) for a, w in zip(A, omega, strict=True)])
    E = np.array([BODY.kinetic_J(w) for w in omega])
    assert np.abs(L - L[0]).max() < 1e-12 * np.linalg.norm(L[0])
    assert np.abs(E - E[0]).max() < 1e-12 * E[0]


def _through_the_singularity(miss_rad):
    """Start of a free motion that comes this close to a pitch of 90 degrees at t = 0.5 s."""
    at = attitude([0.4, np.pi / 2 - miss_rad, 0.2])
    A, omega = BODY.run("quaternion", at, -OMEGA, free, [0.0, 0.5])
    return A[-1], -omega[-1]


@pytest.mark.parametrize("miss_rad", [0.0, 0.003])
@pytest.mark.parametrize("form", FORMS)
def test_a_run_through_the_singularity_stays_true(form, miss_rad):
    A0, omega0 = _through_the_singularity(miss_rad)
    A, _ = BODY.run(form, A0, omega0, free, [0.0, 0.5, 1.0])
    assert abs(angles(A[1])[1]) > np.pi / 2 - miss_rad - 1e-4  # it does go there
    # Reference: the attitude's matrix itself, which has no chart at all, A' = A skew(Omega).
    truth = solve_ivp(
        lambda _t, x: np.concatenate(
            ((x[:9].reshape(3, 3) @ skew(x[9:])).ravel(), BODY.omega_rate(x[9:], 0.0))
        ),
        (0.0, 1.0), np.concatenate((A0.ravel(), omega0)), method="DOP853", rtol=1e-12, atol=1e-13,
    ).y[:9, -1].reshape(3, 3)  # fmt: skip
    assert angle_between_deg(A[-1], truth) < 1e-6  # the aim is 0.01 deg


def test_a_clipped_cosine_goes_wrong_by_degrees_without_a_word():
    A0, omega0 = _through_the_singularity(0.02)
    A, _ = BODY.run("quaternion", A0, omega0, free, [0.0, 1.0])

    def clipped(_t, x):
        _, t2, t3 = x[:3]
        c2 = np.cos(t2)
        c2 = np.copysign(max(abs(c2), 0.05), c2)  # the inverse is 20 at most
        first = (np.cos(t3) * x[3] - np.sin(t3) * x[4]) / c2
        second = np.sin(t3) * x[3] + np.cos(t3) * x[4]
        rates = [first, second, x[5] - np.sin(t2) * first]
        return np.concatenate((rates, BODY.omega_rate(x[3:], 0.0)))

    x0 = BODY.state("newton_euler", A0, omega0)
    x = solve_ivp(clipped, (0.0, 1.0), x0, rtol=1e-9, atol=1e-11).y[:, -1]
    assert angle_between_deg(attitude(x[:3]), A[-1]) > 1.0


def test_accelerations_of_the_angles_are_an_output_of_the_newton_euler_form():
    N = torque(0.7)
    x = BODY.state("lagrange", attitude(THETA), OMEGA)
    expected = BODY.lagrange(x, N)[3:]
    assert np.allclose(BODY.angle_accelerations(THETA, OMEGA, N), expected, rtol=1e-13)


def test_the_hamiltonian_is_the_kinetic_energy_and_gives_hamiltons_equations():
    P = BODY.momentum(THETA, OMEGA)
    assert BODY.hamiltonian_J(THETA, P) == pytest.approx(BODY.kinetic_J(OMEGA), rel=1e-14)
    rate, h = BODY.hamilton(np.concatenate((THETA, P)), np.zeros(3)), 1e-6
    for k, step in enumerate(np.eye(3) * h):
        by_angle = BODY.hamiltonian_J(THETA + step, P) - BODY.hamiltonian_J(THETA - step, P)
        by_momentum = BODY.hamiltonian_J(THETA, P + 1e-3 * step) - BODY.hamiltonian_J(
            THETA, P - 1e-3 * step
        )
        assert rate[3 + k] == pytest.approx(-by_angle / (2 * h), abs=1e-9)
        assert rate[k] == pytest.approx(by_momentum / (2e-3 * h), rel=1e-6)


def test_power_is_the_same_by_torque_and_by_generalised_torque():
    N, B_i = torque(0.7), rates_to_omega(THETA)
    rate = omega_to_rates(THETA) @ OMEGA
    assert (B_i.T @ N) @ rate == pytest.approx(N @ OMEGA, rel=1e-14)  # eqs (1)-(4)


def test_the_hamiltonian_as_printed_is_not_the_energy():
    P, B_i = BODY.momentum(THETA, OMEGA), rates_to_omega(THETA)
    printed = P @ (B_i.T @ BODY.J @ B_i) @ P / 2.0
    assert abs(printed / BODY.kinetic_J(OMEGA) - 1.0) > 0.9


def test_equation_8_as_printed_breaks_free_motion_and_knows_no_torque():
    P = BODY.momentum(THETA, OMEGA)
    slope = np.einsum("i,kij->kj", P, omega_to_rates_slopes(THETA))
    printed = slope @ np.linalg.solve(BODY.J, omega_to_rates(THETA).T @ P)
    right = BODY.hamilton(np.concatenate((THETA, P)), np.zeros(3))[3:]
    assert np.allclose(printed, -right)
    assert np.linalg.norm(printed - right) > 0.5 * np.linalg.norm(right)
    pushed = BODY.hamilton(np.concatenate((THETA, P)), torque(0.7))[3:]
    assert np.linalg.norm(pushed - right) > 1e-3


def test_kanes_inertia_force_needs_its_minus_sign():
    N = torque(0.7)
    B_i, omega_rate = rates_to_omega(THETA), BODY.omega_rate(OMEGA, N)
    inertia = B_i.T @ (BODY.J @ omega_rate + np.cross(OMEGA, BODY.J @ OMEGA))
    active = B_i.T @ N
    assert np.allclose(active - inertia, 0.0, atol=1e-16)  # F_r + F_r* = 0
    assert np.linalg.norm(active + inertia) > 1e-3  # as printed


@pytest.mark.slow
def test_springs_on_the_angles_lose_what_their_dampers_take():
    K, D = np.array([0.03, 0.05, 0.02]), np.array([0.002, 0.001, 0.003])

    def closed(_t, x):
        return BODY.newton_euler(x, hold_angles(x[:3], x[3:], K, D))

    x, h = np.concatenate((THETA, OMEGA)), 1e-4
    ahead = solve_ivp(closed, (0.0, h), x, rtol=1e-12, atol=1e-14).y[:, -1]
    back = solve_ivp(closed, (0.0, -h), x, rtol=1e-12, atol=1e-14).y[:, -1]
    v = [lyapunov_angles_J(BODY, s[:3], s[3:], K) for s in (ahead, back)]
    rate = omega_to_rates(THETA) @ OMEGA
    assert (v[0] - v[1]) / (2 * h) == pytest.approx(-rate @ (D * rate), rel=1e-5)
    t = np.linspace(0.0, 20.0, 200)
    path = solve_ivp(closed, (0.0, 20.0), x, t_eval=t, rtol=1e-10, atol=1e-12).y
    v = [lyapunov_angles_J(BODY, s[:3], s[3:], K) for s in path.T]
    assert np.all(np.diff(v) <= 1e-12)
    assert v[-1] < 0.02 * v[0]


def test_a_body_held_by_its_quaternion_comes_to_rest_from_upside_down():
    k, d = 0.05, 0.02

    def closed(_t, x):
        return BODY.quaternion(x, hold_quaternion(x[:4], x[4:], k, d))

    x0 = np.concatenate((quaternion([3.0, 0.2, 0.1]), [0.5, -1.0, 0.3]))
    t = np.linspace(0.0, 20.0, 200)
    path = solve_ivp(closed, (0.0, 20.0), x0, t_eval=t, rtol=1e-10, atol=1e-12).y
    v = [lyapunov_quaternion_J(BODY, s[:4], s[4:], k) for s in path.T]
    assert np.all(np.diff(v) <= 1e-12)
    assert v[-1] < 1e-6
    rate = quaternion_rate(x0[:4], x0[4:])
    slope = x0[4:] @ BODY.J @ closed(0.0, x0)[4:] - 2.0 * k * np.sign(x0[0]) * rate[0]
    assert slope == pytest.approx(-d * x0[4:] @ x0[4:], rel=1e-12)


def test_both_methods_find_the_same_force_of_the_hinge():
    for _ in range(20):
        r, omega, N, F = RNG.normal(size=(4, 3))
        A = attitude(RNG.uniform(-3, 3, 3))
        hinge = Hinge(BODY, 1.3, 0.2 * r)
        one = hinge_simultaneous(hinge, A, omega, N, F)
        two = hinge_eliminated(hinge, A, omega, N, F)
        for a, b in ((one.Gamma, two.Gamma), (one.omega_rate, two.omega_rate),
                     (one.X_acceleration, two.X_acceleration)):  # fmt: skip
            assert np.abs(a - b).max() < 1e-12 * max(1.0, np.abs(a).max())


def test_hinged_at_the_centre_of_mass_the_force_is_minus_all_applied_ones():
    F = np.array([1.0, -2.0, 3.0])
    found = hinge_eliminated(Hinge(BODY, 1.3, [0, 0, 0]), attitude(THETA), OMEGA, torque(0.3), F)
    assert np.allclose(found.Gamma, -F, atol=1e-15)


def test_a_pendulum_pulls_its_hinge_as_the_textbook_says():
    m, length, g, phi, rate = 1.3, 0.4, 9.81, 0.7, 2.0  # about y, hanging at phi = 0
    A, omega = attitude([0.0, phi, 0.0]), np.array([0.0, rate, 0.0])
    found = hinge_simultaneous(Hinge(BODY, m, [0, 0, length]), A, omega, [0, 0, 0], [0, 0, -m * g])
    acceleration = -m * g * length * np.sin(phi) / (BODY.J[1, 1] + m * length**2)
    assert found.omega_rate[1] == pytest.approx(acceleration, rel=1e-13)
    along = A[:, 2]  # from the centre to the hinge
    assert found.Gamma @ along == pytest.approx(m * (g * np.cos(phi) + length * rate**2), rel=1e-13)


@pytest.mark.parametrize(
    ("inertia", "says"),
    [([0.008, -0.001, 0.003], "not positive definite"), ([0.0, 1.0, 1.0], "not positive definite"),
     ([1.0, 0.2, 0.3], "are not physical"), ([1.0, 2.0], "three principal moments"),
     ([[1.0], [0.0, 1.0]], "three principal moments"),
     ([[1, 0.5, 0], [0.2, 1, 0], [0, 0, 1]], "symmetric")],
)  # fmt: skip
def test_an_inertia_that_no_body_has_is_refused_in_one_line(inertia, says):
    with pytest.raises(ModelError, match=says) as refused:
        OneBody.of(inertia)
    assert "\n" not in str(refused.value)
