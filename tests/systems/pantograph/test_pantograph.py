"""The five-bar: geometry, the printed tables, and the same event in maximal coordinates."""

import numpy as np
import pytest

from hil.errors import ModelError
from hil.mechanics.impact import decompose, nonideal
from hil.systems.pantograph.impact import (
    ASYMMETRIC_M,
    SYMMETRIC_M,
    bands,
    gamma_of_xi_1_deg,
    predict,
    with_friction,
    workspace_map,
)
from hil.systems.pantograph.linkage import Pantograph, dynamics, solve_forward
from oracles.impacts import FiveBar, energy

RIG = Pantograph()
RANDOM = np.random.default_rng(7)
PLACES = [(x, y) for x, y in RANDOM.uniform((-0.18, 0.08), (0.18, 0.28), (40, 2))
          if 0.08 < np.hypot(abs(x) + 0.0223, y) < 0.32][:20]  # fmt: skip


STRETCHED_M = (0.0, np.sqrt((0.3433 * (1 - 1e-10)) ** 2 - 0.02225**2))


def oracle(pose):
    p = RIG.parameters
    elbows = [
        np.array([side * p.l_5_m / 2, 0.0]) + p.l_1_m * np.array([np.cos(a), np.sin(a)])
        for side, a in ((-1, pose.q_rad[0]), (1, pose.q_rad[2]))
    ]
    return FiveBar(pose.E_m, elbows, p.l_5_m, p.l_1_m, p.l_2_m, p.a_1_m, p.a_2_m, p.m_1_kg,
                   p.m_2_kg, p.m_EE_kg, p.I_1_kg_m2, p.I_2_kg_m2)  # fmt: skip


@pytest.mark.parametrize("place", [SYMMETRIC_M, ASYMMETRIC_M, *PLACES])
def test_the_event_is_that_of_the_unreduced_bodies(place):
    pose = RIG.inverse(place)
    bodies = oracle(pose)
    v = RANDOM.normal(size=2) * 0.2
    before = bodies.moving(v)
    after, impulse = bodies.stop_y(before)
    found = decompose(pose.M_kg_m2, pose.A_m, pose.qdot(v))
    T = energy(bodies.mass, before)
    assert found.T_c_J + found.T_a_J == pytest.approx(T, rel=1e-10)
    assert found.T_a_J == pytest.approx(energy(bodies.mass, after), rel=1e-10, abs=1e-12 * T)
    assert found.impulse[0] == pytest.approx(impulse[0], rel=1e-10)
    np.testing.assert_allclose(pose.J_m @ found.qdot_after, after[12:], atol=1e-10)


@pytest.mark.parametrize("place", [SYMMETRIC_M, ASYMMETRIC_M, *PLACES[:5]])
def test_friction_is_that_of_the_unreduced_bodies(place):
    pose = RIG.inverse(place)
    bodies = oracle(pose)
    v, mu = np.array([0.15, 0.12]), 0.05
    after, impulse = bodies.stop_y(bodies.moving(v), mu)
    found = nonideal(pose.M_kg_m2, pose.A_m, pose.qdot(v), D=mu * pose.J_m[:1].T)
    assert found.impulse[0] == pytest.approx(impulse[0], rel=1e-10)
    np.testing.assert_allclose(pose.J_m @ found.qdot_after, after[12:], atol=1e-10)
    assert found.T_a_after_J == pytest.approx(energy(bodies.mass, after), rel=1e-10)


@pytest.mark.parametrize(
    ("gamma_deg", "speed", "T_c_mJ", "T_a_mJ", "xi", "impulse_N_ms"),
    [
        (0.0, 0.1974, 10.0, 0.0, 1.0, 101.26),
        (15.0, 0.1975, 9.34, 0.66, 0.93, 97.85),
        (30.0, 0.1978, 7.53, 2.47, 0.75, 87.84),
        (45.0, 0.1981, 5.03, 4.97, 0.50, 71.84),
    ],
)
def test_table_iii_is_reproduced(gamma_deg, speed, T_c_mJ, T_a_mJ, xi, impulse_N_ms):
    found = predict(RIG.inverse(SYMMETRIC_M), gamma_deg, 0.01)
    # The inertias' rounding moves the speed by more than this.
    assert found.speed_m_per_s[0] == pytest.approx(speed, abs=2e-4)
    assert 1e3 * found.split.T_c_J[0] == pytest.approx(T_c_mJ, abs=0.006)
    assert 1e3 * found.split.T_a_J[0] == pytest.approx(T_a_mJ, abs=0.006)
    assert found.split.xi[0] == pytest.approx(xi, abs=0.005)
    assert 1e3 * found.impulse_N_s[0] == pytest.approx(impulse_N_ms, abs=0.005)


def test_the_derived_figures_of_both_poses_are_reproduced():
    symmetric, asymmetric = RIG.inverse(SYMMETRIC_M), RIG.inverse(ASYMMETRIC_M)
    np.testing.assert_allclose(np.diag(symmetric.M_kg_m2), 0.0104240, atol=5e-8)
    assert symmetric.M_kg_m2[0, 1] == pytest.approx(-6.5e-6, abs=5e-8)
    effective = 1.0 / (symmetric.A_m @ np.linalg.solve(symmetric.M_kg_m2, symmetric.A_m.T))
    assert effective[0, 0] == pytest.approx(0.51264, abs=5e-6)
    assert gamma_of_xi_1_deg(asymmetric) == pytest.approx(-7.582, abs=5e-4)
    assert gamma_of_xi_1_deg(symmetric) == pytest.approx(0.0, abs=1e-9)  # by symmetry
    best = predict(asymmetric, gamma_of_xi_1_deg(asymmetric), 0.01)
    assert best.split.xi[0] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("gamma_deg", [20.0, 45.0, -40.0])
def test_impacts_with_friction_are_those_of_the_unreduced_bodies(gamma_deg):
    pose, mu = RIG.inverse(ASYMMETRIC_M), 0.05
    ideal = predict(pose, gamma_deg, 0.01)
    (found,) = with_friction(pose, ideal, mu)
    bodies = oracle(pose)
    v = ideal.speed_m_per_s[0] * np.array([np.sin(np.deg2rad(gamma_deg)),
                                           np.cos(np.deg2rad(gamma_deg))])  # fmt: skip
    after, impulse = bodies.stop_y(bodies.moving(v), mu * np.sign(gamma_deg))
    assert found.impulse[0] == pytest.approx(impulse[0], rel=1e-10)
    assert found.T_a_after_J == pytest.approx(energy(bodies.mass, after), rel=1e-10)


def test_where_sliding_turns_friction_has_no_answer():
    # At -7.58 deg the tip slides to -x before, and friction turns it round.
    pose = RIG.inverse(ASYMMETRIC_M)
    assert with_friction(pose, predict(pose, -7.58, 0.01), 0.05) == [None]
    (straight,) = with_friction(RIG.inverse(SYMMETRIC_M), predict(RIG.inverse(SYMMETRIC_M), 0.0,
                                                                  0.01), 0.05)  # fmt: skip
    np.testing.assert_array_equal(straight.f_N, 0.0)


def test_rounding_of_the_inertias_alone_gives_the_band_of_case_1():
    low, high = (
        predict(RIG.with_(I_1_kg_m2=4e-4 + s, I_2_kg_m2=7e-4 + s).inverse(SYMMETRIC_M), 0.0, 0.01)
        for s in (5e-5, -5e-5)
    )
    assert low.speed_m_per_s[0] == pytest.approx(0.1969, abs=5e-5)
    assert high.speed_m_per_s[0] == pytest.approx(0.1982, abs=5e-5)


def test_bands_hold_every_random_set_of_parameters_within_the_rounding():
    pose = RIG.inverse(ASYMMETRIC_M)
    gamma = [-30.0, 0.0, 45.0]
    band = bands(RIG, pose, gamma, 0.01)
    for _ in range(200):
        moved = RIG.vector + RANDOM.uniform(-0.5e-4, 0.5e-4, len(RIG.vector))
        names = RIG.parameters.__dataclass_fields__
        found = predict(
            RIG.with_(**dict(zip(names, moved, strict=True))).inverse(ASYMMETRIC_M), gamma, 0.01
        )
        for key, values in (
            ("speed_m_per_s", found.speed_m_per_s),
            ("T_c_J", found.split.T_c_J),
            ("impulse_N_s", found.impulse_N_s),
        ):
            least, most = band[key]
            assert np.all((least - 1e-12 <= values) & (values <= most + 1e-12))


@pytest.mark.parametrize("elbows", ["outward", "inward", "left", "right"])
@pytest.mark.parametrize("place", [*PLACES[:6], (0.05, -0.2)])
def test_forward_kinematics_undo_inverse_kinematics_in_every_mode(elbows, place):
    pose = RIG.inverse(place, elbows)
    back = RIG.forward(pose.q_rad[0], pose.q_rad[2], pose.assembly)
    np.testing.assert_allclose(back.E_m, place, atol=1e-12)
    np.testing.assert_allclose(np.sin(back.q_rad - pose.q_rad), 0.0, atol=1e-9)
    # Both chains of links end at E.
    p = RIG.parameters
    for side, a, b in ((-1, 0, 1), (1, 2, 3)):
        end = np.array([side * p.l_5_m / 2, 0.0])
        for length, angle in ((p.l_1_m, pose.q_rad[a]), (p.l_2_m, pose.q_rad[b])):
            end = end + length * np.array([np.cos(angle), np.sin(angle)])
        np.testing.assert_allclose(end, place, atol=1e-12)


def test_the_four_modes_are_four_poses():
    poses = [RIG.inverse((0.03, 0.2), e) for e in ("outward", "inward", "left", "right")]
    assert len({tuple(np.round(p.q_rad, 6)) for p in poses}) == 4


def angles(q1, q3):
    f = solve_forward(RIG.vector, q1, q3, 1.0)
    return np.array([f[0], f[2], f[4], f[6]]), np.array([f[1], f[3], f[5], f[7]]), f[8:10]


@pytest.mark.parametrize("place", PLACES[:5])
def test_jacobian_and_velocity_terms_are_the_derivatives_of_geometry_and_energy(place):
    q1, _, q3, _ = RIG.inverse(place).q_rad
    w, h = RANDOM.normal(size=2), 1e-5
    c, s, _ = angles(q1, q3)
    _, velocity_terms, J, bias = dynamics(RIG.vector, c, s, *w)

    def at(q):
        c, s, E = angles(*q)
        return dynamics(RIG.vector, c, s, *w)[0], np.array(E)

    q = np.array([q1, q3])
    M_up, E_up = zip(*(at(q + h * np.eye(2)[i]) for i in range(2)), strict=True)
    M_down, E_down = zip(*(at(q - h * np.eye(2)[i]) for i in range(2)), strict=True)
    slope_E = np.array([(u - d) / (2 * h) for u, d in zip(E_up, E_down, strict=True)]).T
    np.testing.assert_allclose(J, slope_E, atol=1e-7)
    dM = np.array([(u - d) / (2 * h) for u, d in zip(M_up, M_down, strict=True)])
    lagrange = np.einsum("kij,k,j->i", dM, w, w) - 0.5 * np.einsum("kij,i,j->k", dM, w, w)
    np.testing.assert_allclose(velocity_terms, lagrange, atol=1e-7 * np.abs(dM).max() * 10)
    along = np.array(at(q + h * w)[1]) - 2 * np.array(at(q)[1]) + np.array(at(q - h * w)[1])
    np.testing.assert_allclose(bias, along / h**2, atol=1e-4)


def test_the_map_is_the_prediction_place_by_place_and_has_no_value_out_of_reach():
    x, y = np.linspace(-0.4, 0.4, 9), np.linspace(0.0, 0.4, 6)
    xi, mass = workspace_map(RIG, x, y)
    for i, j in np.ndindex(xi.shape):
        try:
            pose = RIG.inverse((x[j], y[i]))
        except ModelError:
            assert xi.mask[i, j]
            assert np.isfinite(xi.data[i, j])
            continue
        assert xi[i, j] == pytest.approx(predict(pose, 0.0, 0.01).split.xi[0], rel=1e-9)
        m_y = 1.0 / (pose.A_m @ np.linalg.solve(pose.M_kg_m2, pose.A_m.T))[0, 0]
        assert mass[i, j] == pytest.approx(m_y, rel=1e-9)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: RIG.inverse((0.3, 0.3)), "unreachable: 0.44.* m from the left motor"),
        (lambda: RIG.inverse((-0.0223, 0.01)), "unreachable: 0.0100 m from the left motor"),
        (lambda: RIG.inverse((0.0, np.nan)), "two finite numbers"),
        (lambda: RIG.inverse((0.1, 0.0)), "both assembly modes are possible"),
        (lambda: RIG.inverse(STRETCHED_M), "singular: a leg is stretched"),
        (lambda: RIG.forward(2.5, 0.6), "both assembly modes are possible: name assembly"),
        (
            lambda: Pantograph(q1_range_rad=(1.0, 2.0)).inverse(SYMMETRIC_M),
            "unreachable: q1 = 2.5177 rad, whose motor turns from 1 to 2",
        ),
        (lambda: RIG.with_(l_5_m=0.5).forward(np.pi, 0.0, "upper"), "too far apart"),
        (lambda: RIG.with_(m_1_kg=-1.0), "m_1_kg = -1: must be above zero"),
        (lambda: predict(RIG.inverse(SYMMETRIC_M), 90.0, 0.01), "gamma_deg = 90.*no impact"),
        (lambda: predict(RIG.inverse(SYMMETRIC_M), -90.0, 0.01), "gamma_deg = -90.*no impact"),
        (lambda: predict(RIG.inverse(SYMMETRIC_M), 120.0, 0.01), "separating"),
        (lambda: predict(RIG.inverse(SYMMETRIC_M), np.nan, 0.01), "finite"),
        (lambda: predict(RIG.inverse(SYMMETRIC_M), 0.0, 0.0), "energy_J = 0: must be above"),
    ],
)
def test_what_cannot_be_is_refused_in_words(act, message):
    with pytest.raises(ModelError, match=message):
        act()
