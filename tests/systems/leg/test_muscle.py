"""The muscle: its published values, its laws over thousands of states, the choice of the root."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from hil.errors import ModelError
from hil.systems.leg import muscle
from hil.systems.leg.muscle import ActivationTimes, Hill, Muscles

TA, SOL = Hill(1528.0, 0.082, 0.223), Hill(3883.0, 0.055, 0.245)  # Table 6
BOTH = Muscles([TA, SOL])


@pytest.fixture(scope="module")
def states():
    """4000 states a muscle: fibres of 0.55 to 1.4, tendons up to 5 % long, all activations."""
    rng = np.random.default_rng(4)
    l_opt, l_slack = BOTH.parameters["l_CE_opt"], BOTH.parameters["l_SEE_0"]
    shape = (4000, 2)
    l_ce = l_opt * rng.uniform(0.55, 1.4, shape)
    l_mtc = l_ce + l_slack * rng.uniform(0.98, 1.05, shape)
    v_mtc = rng.uniform(-0.3, 0.3, shape)
    q = 10.0 ** rng.uniform(-3.0, 0.0, shape)
    return l_ce, l_mtc, v_mtc, q


def forces(p, l_ce, l_mtc, v_mtc, q, v):
    """F_CE + F_PEE and F_SEE + F_SDE at a rate of the fibre: both sides of the balance."""
    f_ce, f_pee = muscle.contractile(p, l_ce, v, q), muscle.parallel(p, l_ce)
    return f_ce + f_pee, muscle.serial(p, l_mtc - l_ce) + muscle.damper(p, f_ce, f_pee, v_mtc, v)


def test_the_muscle_starts_with_the_published_forces():
    # OpenSim's path lengths as they follow from Table 5 and Fig. 10
    start = np.array([0.302082619, 0.291809870])
    q = np.array([0.001, 0.001])
    l_ce = BOTH.at_rest(start, q)
    v, f_mtc, _ = BOTH.rates(l_ce, start, np.zeros(2), q)
    np.testing.assert_allclose(f_mtc, [9.579, 3.438], atol=5e-4)
    np.testing.assert_allclose(v, 0.0, atol=1e-12)


def test_every_rate_balances_the_forces_on_both_sides(states):
    v, f_mtc, f_ce = BOTH.rates(*states)
    assert np.isfinite(v).all()
    for k in range(len(v)):
        for i, p in enumerate(BOTH.parameters):
            fibre, tendon = forces(p, *(s[k, i] for s in states), v[k, i])
            scale = p.F_max * (1.0 + abs(v[k, i]) / p.l_CE_opt)
            assert abs(fibre - tendon) < 1e-9 * scale
            assert abs(fibre - f_mtc[k, i]) < 1e-9 * scale
            assert abs(muscle.contractile(p, states[0][k, i], v[k, i], states[3][k, i])
                       - f_ce[k, i]) < 1e-9 * scale  # fmt: skip


def test_the_root_lies_on_the_branch_whose_force_law_made_it(states):
    v, _, _ = BOTH.rates(*states)
    n_others = 0
    for k in range(0, len(v), 4):
        for i, p in enumerate(BOTH.parameters):
            at = [s[k, i] for s in states]
            fibre, tendon = forces(p, *at, 0.0)
            assert (v[k, i] > 0.0) == (tendon > fibre)
            l_ce, q = at[0], at[3]
            f = muscle.isometric(p, l_ce)
            a, b = muscle.hill_constants(p, l_ce, q, f)
            if v[k, i] > 0.0:
                b *= (1.0 - p.F_e) * q * f / (p.S_e * (q * f + a))
            # Hill's hyperbola has its pole at v = B l_opt: the fibre stays on this side of it.
            assert v[k, i] < b * p.l_CE_opt if b > 0.0 else v[k, i] > b * p.l_CE_opt
            n_others += _has_another_root(p, at, v[k, i])
    assert n_others > 0.5 * len(v[::4]) * 2


def _has_another_root(p, at, v):
    """Whether the quadratic of v's branch has its second root on that branch's side of zero or not
    within the hyperbola: the one that must not be taken.
    """
    l_ce, l_mtc, v_mtc, q = at
    f, f_pee = muscle.isometric(p, l_ce), muscle.parallel(p, l_ce)
    a, b = muscle.hill_constants(p, l_ce, q, f)
    if v > 0.0:
        b *= (1.0 - p.F_e) * q * f / (p.S_e * (q * f + a))
        a = -p.F_e * q * f
    r, d, f_max = p.R_SE, p.d_max, p.F_max
    c2 = d * (r - (a - f_pee / f_max) * (1.0 - r))
    d0 = p.l_CE_opt * b * d * (r + (1.0 - r) * (q * f + f_pee / f_max))
    pull = muscle.serial(p, l_mtc - l_ce) - f_pee
    c1 = -(c2 * v_mtc + d0 + pull + f_max * a)
    other = -c1 / c2 - v
    return np.isfinite(other) and abs(other - v) > 1e-9


def test_rates_are_those_of_a_bracketed_search(states):
    """Another solver on the balance itself, between no motion and far along the branch."""
    v, _, _ = BOTH.rates(*states)
    for k in range(0, 4000, 40):
        for i, p in enumerate(BOTH.parameters):
            at = [s[k, i] for s in states]

            def surplus(x, p=p, at=at):
                fibre, tendon = forces(p, *at, x)
                return tendon - fibre

            if surplus(0.0) > 0.0:
                far = 10.0
            else:
                far = -1e-3
                while surplus(far) < 0.0 and far > -5.0:
                    far *= 1.5
            if surplus(0.0) * surplus(far) < 0.0:
                found = scipy.optimize.brentq(surplus, 0.0, far, xtol=1e-14, rtol=1e-13)
                assert abs(found - v[k, i]) < 1e-9 * (1.0 + abs(found))


@pytest.mark.parametrize("p", BOTH.parameters)
def test_force_over_velocity_bends_by_two_at_zero_and_ends_at_one_and_a_half(p):
    for q in (0.01, 0.1, 1.0):
        for share in (0.8, 1.0, 1.2):
            l_ce = share * p.l_CE_opt
            isometric = q * p.F_max * muscle.isometric(p, l_ce)
            h = 1e-7 * p.l_CE_opt * q
            rising = (muscle.contractile(p, l_ce, h, q) - isometric) / h
            falling = (isometric - muscle.contractile(p, l_ce, -h, q)) / h
            assert abs(rising / falling - 2.0) < 1e-4
            assert abs(muscle.contractile(p, l_ce, 0.0, q) / isometric - 1.0) < 1e-12
            far = muscle.contractile(p, l_ce, 1e9, q)
            assert abs(far / isometric - 1.5) < 1e-6


def test_force_over_velocity_rises_throughout():
    for p in BOTH.parameters:
        v = np.linspace(-0.5, 0.5, 2001) * p.l_CE_opt
        for q in (0.001, 0.05, 1.0):
            force = [muscle.contractile(p, p.l_CE_opt, x, q) for x in v]
            assert np.all(np.diff(force) > 0.0)


def test_force_over_length_is_the_bell_and_the_springs_of_the_table():
    for hill, p in zip((TA, SOL), BOTH.parameters, strict=True):
        assert muscle.isometric(p, hill.l_CE_opt_m) == 1.0
        # one width away the bell is at 1/e, by its definition (25)
        for width in (1.0 + hill.dW_des, 1.0 - hill.dW_asc):
            assert abs(muscle.isometric(p, width * hill.l_CE_opt_m) - np.exp(-1.0)) < 1e-12
        # (31): at the end of the descending limb the PEE gives F_PEE F_max
        end = (1.0 + hill.dW_des) * hill.l_CE_opt_m
        assert abs(muscle.parallel(p, end) / (2.0 * hill.F_max_N) - 1.0) < 1e-12
        assert muscle.parallel(p, 0.9 * hill.l_CE_opt_m) == 0.0
        # (34)-(38): 568 N where the tendon turns linear, twice that one dU_l further, no kink
        turn = 1.0425 * hill.l_SEE_0_m
        assert abs(muscle.serial(p, turn) - 568.0) < 1e-9
        assert abs(muscle.serial(p, turn + 0.017 * hill.l_SEE_0_m) - 1136.0) < 1e-9
        h = 1e-9
        slopes = [(muscle.serial(p, turn + s * h) - 568.0) / (s * h) for s in (1.0, -1.0)]
        assert abs(slopes[0] / slopes[1] - 1.0) < 1e-5
        for force in (0.5, 20.0, 567.0, 2000.0):
            assert abs(muscle.serial(p, muscle.serial_length(p, force)) / force - 1.0) < 1e-12


def test_power_in_equals_power_stored_and_lost():
    """Over a stretch and release: work on the ends, springs, damper and fibre add up to nothing."""
    p, q = BOTH.parameters[0], 0.2
    l0, l1, w = 0.305, 0.006, 2.0 * np.pi * 3.0

    def path(t):
        return l0 + l1 * np.sin(w * t), l1 * w * np.cos(w * t)

    def slope(t, y):
        l_mtc, v_mtc = path(t)
        v, f_mtc, f_ce = muscle.rate(p, y[0], l_mtc, v_mtc, q)
        f_pee = muscle.parallel(p, y[0])
        lost = muscle.damper(p, f_ce, f_pee, v_mtc, v) * (v_mtc - v)
        return [v, f_mtc * v_mtc, lost, f_ce * v]

    start = muscle.equilibrium(p, l0, q)
    found = scipy.integrate.solve_ivp(
        slope, (0.0, 0.3), [start, 0.0, 0.0, 0.0], method="Radau", rtol=1e-9, atol=1e-12
    )
    l_ce, done, lost, fibre = found.y[:, -1]

    def stored(l_ce, l_mtc):
        springs = scipy.integrate.quad(lambda x: muscle.parallel(p, x), 0.9 * TA.l_CE_opt_m, l_ce)
        tendon = scipy.integrate.quad(
            lambda x: muscle.serial(p, x), TA.l_SEE_0_m, max(l_mtc - l_ce, TA.l_SEE_0_m)
        )
        return springs[0] * (l_ce > 0.9 * TA.l_CE_opt_m) + tendon[0]

    change = stored(l_ce, path(0.3)[0]) - stored(start, l0)
    assert lost > 0.0
    assert abs(done) > 1e-3
    assert abs(done - (change + lost + fibre)) < 1e-6 * (abs(done) + lost)


def test_a_fibre_that_shortens_faster_than_it_can_pushes_and_is_not_hidden():
    """(26) goes below zero beyond the largest velocity; F_MTC follows, slightly."""
    l_ce, l_mtc = np.array([0.07, 0.05]), np.array([0.07 + 0.2232, 0.05 + 0.2452])
    _, f_mtc, f_ce = BOTH.rates(l_ce, l_mtc, np.array([-0.6, -0.6]), np.array([0.01, 0.01]))
    assert (f_ce < 0.0).all()
    assert (f_mtc < 0.0).all()
    assert (np.abs(f_mtc) < 0.1 * BOTH.parameters["F_max"]).all()


def test_a_lengthening_fibre_without_stimulation_relaxes_in_a_third_of_a_millisecond():
    """What makes the leg stiff; leg.md: 0.3 ms at q = 0.001."""
    start, q = np.array([0.302082619, 0.291809870]), np.array([0.001, 0.001])
    l_ce = BOTH.at_rest(start, q)
    # so far off that the eccentric force has reached its limit, and only the damper holds back
    off = 5e-4
    slow, fast = (BOTH.rates(l_ce - x, start, np.zeros(2), q)[0] for x in (off, 1.001 * off))
    time_s = float((1e-3 * off / (fast - slow)).min())
    assert 0.2e-3 < time_s < 0.4e-3


def test_many_muscles_at_once_are_one_after_the_other(states):
    together = BOTH.rates(*states)
    for i, hill in enumerate((TA, SOL)):
        alone = Muscles([hill]).rates(*(s[:, i : i + 1] for s in states))
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a[:, 0], b[:, i])


def test_activation_rises_and_falls_as_thelen_gives_it():
    times = ActivationTimes()
    # at a = 1/3 both factors are 1: the bare time constants
    up = muscle.activation_rate(1.0, 1.0 / 3.0, times.tau_act_s, times.tau_deact_s)
    down = muscle.activation_rate(0.0, 1.0 / 3.0, times.tau_act_s, times.tau_deact_s)
    assert abs(up - (2.0 / 3.0) / 0.01) < 1e-9
    assert abs(down + (1.0 / 3.0) / 0.04) < 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"F_max_N": 0.0}, "F_max_N = 0: must be above 0"),
        ({"F_e": 1.0}, "F_e = 1: a lengthening muscle gives more"),
        ({"R_SE": 1.5}, "R_SE = 1.5: is a fraction"),
        ({"L_PEE_0": 1.4}, "must be below 1"),
        ({"dW_des": float("nan")}, "dW_des = nan: must be above 0"),
    ],
)
def test_what_makes_no_muscle_is_refused(change, message):
    with pytest.raises(ModelError, match=message):
        replace(TA, **change)


def test_a_muscle_shorter_than_its_slack_tendon_is_refused():
    with pytest.raises(ModelError, match=r"0.22 m is no longer than its slack tendon of 0.223 m"):
        BOTH.at_rest(np.array([0.22, 0.3]), np.array([0.001, 0.001]))
