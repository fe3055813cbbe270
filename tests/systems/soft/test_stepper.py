"""The implicit steps against the specification, peers, laws and the dense stepper."""

import numpy as np
import pytest
import scipy.integrate

from hil.errors import ModelError
from hil.systems.soft.element import Element, Material, branch_coefficients
from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import Beam, Body, SoftTree
from hil_studies.soft_chain.cases import rubber, rubber_manipulator, servo_input
from hil_studies.soft_chain.dense import DenseStepper
from hil_studies.soft_chain.outputs import energies, torques_N_m, trace_m
from hil_studies.soft_chain.peers import exudyn_run

# Tip at 1 s, from the specification of RUBBER-MANIP-1.
REFERENCE_M = {
    ("voigt", 4): (0.25953295, -0.26909116),
    ("voigt", 16): (0.29831140, -0.26168300),
    ("maxwell", 4): (0.15911772, -0.27637540),
    ("maxwell", 16): (0.17337122, -0.26542299),
}
KINDS = ("voigt", "maxwell", "solid")


def history(kind, n, h_s, duration_s=1.0, spectral_radius=0.8):
    tree, tip = rubber_manipulator(kind, n)
    stepper = SoftStepper(tree, spectral_radius)
    u = servo_input(h_s * np.arange(round(duration_s / h_s) + 1))
    return stepper, tip, stepper.run(h_s, u[1:]), u


def tip_m(kind, n, h_s, **keywords):
    stepper, tip, h, _ = history(kind, n, h_s, **keywords)
    return trace_m(stepper, tip, h.q[-1:])[0, :2]


@pytest.mark.parametrize("case", REFERENCE_M)
def test_the_tip_is_where_the_specification_says(case):
    assert np.abs(tip_m(*case, 1e-3) - REFERENCE_M[case]).max() < 2e-5
    # 1e-8, of which the printed digits take half.
    assert np.abs(tip_m(*case, 2e-5) - REFERENCE_M[case]).max() < 1e-8


@pytest.mark.parametrize("kind", KINDS)
def test_the_tips_error_falls_with_the_square_of_the_step(kind):
    steps = (2e-3, 1e-3, 5e-4, 2.5e-4)
    fine, finest = tip_m(kind, 4, 4e-5), tip_m(kind, 4, 2e-5)
    exact = finest + (finest - fine) / 3.0
    errors = [np.linalg.norm(tip_m(kind, 4, h) - exact) for h in steps]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert 1.95 < slope < 2.05


@pytest.mark.parametrize("spectral_radius", [0.0, 0.5, 1.0])
def test_any_spectral_radius_goes_to_the_same_place_with_order_two(spectral_radius):
    errors = [
        np.linalg.norm(
            tip_m("solid", 4, h, duration_s=0.4, spectral_radius=spectral_radius)
            - tip_m("solid", 4, 2e-5, duration_s=0.4)
        )
        for h in (2e-3, 1e-3)
    ]
    assert errors[1] < 2e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_recursion_takes_the_steps_of_the_dense_form(kind):
    tree, _ = rubber_manipulator(kind, 8)
    ours, dense = SoftStepper(tree), DenseStepper(tree)
    for k in range(1, 101):
        u = servo_input(2e-3 * k)
        ours.step(2e-3, u)
        dense.step(2e-3, u)
    # Both leave 1e-10 of an acceleration of 30 rad/s^2 in a step.
    assert ours.q == pytest.approx(dense.q, abs=1e-12)
    assert ours.v == pytest.approx(dense.v, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_of_steps_is_the_steps_one_by_one(kind):
    stepper, _, h, u = history(kind, 4, 1e-3, duration_s=0.05)
    single = SoftStepper(stepper.tree)
    for row in u[1:]:
        single.step(1e-3, row)
    assert np.array_equal(single.q, h.q[-1])
    assert single.t_s == pytest.approx(0.05)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("kind", KINDS)
def test_no_energy_appears_or_vanishes(kind):
    # The imbalance is the scheme's own error: 2e-5 J at 1 ms for 1 J of work, of order 2, so that
    # 5 us bring it below 1e-9 J.
    balance_J = []
    for h_s in (1e-3, 2.5e-4, 5e-6):
        stepper, _, h, u = history(kind, 4, h_s, duration_s=0.5)
        balance_J.append(np.abs(energies(stepper, h, u).balance).max())
    assert balance_J[0] / balance_J[1] == pytest.approx(16.0, rel=0.15)
    assert balance_J[2] < 1e-9


def test_a_maxwell_branch_that_relaxes_at_once_is_a_damper():
    c, tau_s = 0.02, 1e-9

    def swing(element):
        bar = Body(-1, 0.1, (0.0, 1e-3, 1e-3), (0.1, 0.0, 0.0), element=element)
        return SoftStepper(SoftTree((bar,))).run(1e-3, np.zeros((500, 0))).q[:, 0]

    assert swing(Element(branches=((c / tau_s, tau_s),))) == pytest.approx(
        swing(Element(c=c)), abs=1e-6
    )


def test_a_maxwell_branch_that_never_relaxes_is_a_spring():
    def swing(element):
        bar = Body(-1, 0.1, (0.0, 1e-3, 1e-3), (0.1, 0.0, 0.0), element=element)
        return SoftStepper(SoftTree((bar,))).run(1e-3, np.zeros((500, 0))).q[:, 0]

    # Over 0.5 s a branch of 1e9 s loses 5e-10 of its torque. A rate that is linear over the step
    # is not the scheme's own stretch, which differs from it by order 2: 1e-5 rad here.
    assert swing(Element(branches=((3.0, 1e9),))) == pytest.approx(swing(Element(k=3.0)), abs=5e-5)


def test_alike_branches_side_by_side_are_one():
    def swing(element):
        bar = Body(-1, 0.1, (0.0, 1e-3, 1e-3), (0.1, 0.0, 0.0), element=element)
        return SoftStepper(SoftTree((bar,))).run(1e-3, np.zeros((500, 0))).q[:, 0]

    three = Element(k=0.5, branches=((1.0, 0.05), (0.5, 0.05), (1.5, 0.05)))
    assert swing(three) == pytest.approx(swing(Element(k=0.5, branches=((3.0, 0.05),))), abs=1e-12)


def test_a_prony_series_swings_as_its_differential_equations_say():
    m, arm, own = 0.1, 0.1, 1e-3
    element = Element(k=0.4, c=1e-3, branches=((1.0, 0.02), (0.5, 0.3)))
    bar = Body(-1, m, (0.0, own, own), (arm, 0.0, 0.0), element=element)

    def rates(t, y):
        q, v, *R = y
        torque = -element.k * q - element.c * v - sum(R) - m * 9.81 * arm * np.cos(q)
        branches = [kM * v - r / tau for r, (kM, tau) in zip(R, element.branches, strict=True)]
        return [v, torque / (own + m * arm * arm), *branches]

    exact = scipy.integrate.solve_ivp(rates, (0.0, 1.0), np.zeros(4), rtol=1e-11, atol=1e-13)
    errors = []
    for h_s in (2e-3, 1e-3):
        ours = SoftStepper(SoftTree((bar,))).run(h_s, np.zeros((round(1.0 / h_s), 0)))
        errors.append(np.abs(np.array([*ours.q[-1], *ours.R[-1]]) - exact.y[[0, 2, 3], -1]).max())
    assert errors[1] < 1e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize("z", [1e-12, 1e-3, 0.0499, 0.0501, 1.0, 40.0, 1e6])
def test_a_branch_is_stepped_exactly_for_a_rate_linear_over_the_step(z):
    # R(h) = E R + kM int exp(-(h - s)/tau) (v0 + (v1 - v0) s/h) ds, by quadrature with h = 1.
    E, Ac, Bc = branch_coefficients(1.0, 1.0 / z)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    # The kernel lives within some tau of the end.
    width = min(1.0, 50.0 / z)
    back = 0.5 * width * (nodes + 1.0)
    kernel = 0.5 * width * weights * np.exp(-z * back)
    assert np.exp(-z) == pytest.approx(E, rel=1e-14)
    assert kernel @ (1.0 - back) == pytest.approx(Bc, rel=1e-13)
    assert kernel @ back == pytest.approx(Ac, rel=1e-9)  # falls with 1/z^2 while tau falls with 1/z


@pytest.mark.parametrize("spectral_radius", [0.8, 0.5])
def test_exudyn_takes_the_same_steps(spectral_radius):
    # The joints' angles, with an independent recursion, Newton iteration and integrator.
    tree, _ = rubber_manipulator("voigt", 4)
    ours = history("voigt", 4, 1e-3, duration_s=0.3, spectral_radius=spectral_radius)[2].q[-1]
    theirs, _ = exudyn_run(tree, 1e-3, 0.3, spectral_radius)
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_element_torques_hold_the_chain_up():
    # At rest every joint carries the moment of what hangs beyond it.
    beam = Beam(0.3, 0.03, 0.02, rubber("voigt"))
    stepper = SoftStepper(SoftTree(tuple(beam.segments(8, first=0, parent=-1))))
    stepper.relax()
    resting = stepper.run(1e-3, np.zeros((1, 0)))
    angle = np.cumsum(stepper.q)
    s, m = 0.3 / 8, 1100.0 * 0.3 / 8 * 0.03 * 0.02
    starts = s * np.concatenate(([0.0], np.cumsum(np.cos(angle))))[:8]
    centres = starts + 0.5 * s * np.cos(angle)
    moment = [-(9.81 * m * (centres[i:] - starts[i])).sum() for i in range(8)]
    assert torques_N_m(stepper, resting)[0] == pytest.approx(moment, rel=1e-9)


def test_adaptive_steps_keep_to_their_tolerance_and_grow_when_it_is_calm():
    # A beam let go: lively at first, then it creeps. Global error over 1 s stays within what the
    # steps may leave, and falls with the tolerance.
    tree, tip = rubber_manipulator("maxwell", 4)
    exact = tip_m("maxwell", 4, 2e-5)
    errors, counts = [], []
    for tolerance in (1e-6, 1e-7, 1e-8):
        stepper = SoftStepper(tree)
        t_s = stepper.adapt(1.0, lambda t: servo_input(np.array(t)), tolerance)
        assert t_s[-1] == pytest.approx(1.0, abs=1e-12)
        errors.append(np.linalg.norm(trace_m(stepper, tip, stepper.q[None])[0, :2] - exact))
        counts.append(len(t_s) - 1)
        assert np.diff(t_s)[:-1].max() > 2.0 * np.diff(t_s)[:-1].min()
    # Local error h^3, global h^2: a tenth of the tolerance costs 10^(1/3) the steps.
    assert counts[2] / counts[1] == pytest.approx(10.0 ** (1.0 / 3.0), rel=0.1)
    assert errors[0] < 1e-3
    assert errors[2] < 0.4 * errors[1] < 0.4 * errors[0]


def test_a_free_swing_of_changing_steps_is_the_swing_of_equal_ones():
    # Changing h moves the instant to which `a` belongs; forgetting that costs an order.
    errors = []
    for h_s in (2e-3, 1e-3):
        tree, tip = rubber_manipulator("solid", 4)
        stepper = SoftStepper(tree)
        pattern = h_s * np.tile([0.4, 1.6], round(0.4 / (2.0 * h_s)))
        for t_s, h in zip(np.cumsum(pattern), pattern, strict=True):
            stepper.step(h, servo_input(np.array(t_s)))
        exact = tip_m("solid", 4, 2e-5, duration_s=0.4)
        errors.append(np.linalg.norm(trace_m(stepper, tip, stepper.q[None])[0, :2] - exact))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15)


# Steps that are refused


def test_a_tolerance_below_rounding_is_refused():
    tree, _ = rubber_manipulator("voigt", 4)
    with pytest.raises(ModelError, match=r"at t = 0 s still leave more than 1e-40 rad"):
        SoftStepper(tree).adapt(1.0, lambda t: servo_input(np.array(t + 0.1)), 1e-40)


def stiff_spin():
    """A pendulum that turns so fast that a step of a second means nothing."""
    bodies = (
        Body(-1, 1.0, (0.0, 0.1, 0.1), (0.5, 0.0, 0.0)),
        Body(0, 1.0, (0.0, 0.1, 0.1), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0)),
    )
    return SoftStepper(SoftTree(bodies), v=np.array([3.0, -20.0]))


def test_a_step_too_large_to_converge_is_halved():
    large, small = stiff_spin(), stiff_spin()
    large.step(0.2)
    assert large.halvings > 0
    small.run(0.2 / 2**large.halvings, np.zeros((2**large.halvings, 0)))
    assert large.q == pytest.approx(small.q, abs=1e-12)


def test_a_step_that_never_converges_is_refused_with_the_time_it_failed_at():
    stepper = stiff_spin()
    stepper.step(1e-3)
    stepper.v[:] = np.nan
    with pytest.raises(ModelError, match=r"a step of 0.001 s does not converge at t = 0.001 s"):
        stepper.step(1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Element(), "zero stiffness with zero damping"),
        (lambda: Element(k=-1.0), "k = -1.0: must not be negative"),
        (lambda: Element(k=1.0, c=-0.1), "c = -0.1: must not be negative"),
        (lambda: Element(k=np.nan), "k = nan"),
        (lambda: Element(branches=((1.0, 0.0),)), "tau = 0.0 s"),
        (lambda: Element(branches=((-1.0, 0.1),)), "kM = -1.0"),
        (lambda: Material.voigt(5e6, 1100.0, -0.01), "loss_s = -0.01: a loss must not be negative"),
        (lambda: Material.voigt(0.0, 1100.0, 0.01), "youngs_Pa = 0.0: must be above zero"),
        (lambda: Material(5e6, 1100.0, elastic_share=0.0), "zero stiffness with zero damping"),
        (lambda: Beam(0.3, 0.0, 0.02, rubber("voigt")), "width_m = 0.0: must be above zero"),
        (lambda: rubber("jelly"), "choose voigt, maxwell, solid"),
        (lambda: rubber_manipulator("voigt", 0), "0 segments"),
        (lambda: SoftTree(()), "there is no body"),
        (lambda: SoftTree((Body(0, 1.0, (1.0, 1.0, 1.0)),)), "its parent 0 must come before it"),
        (lambda: SoftTree((Body(-1, 0.0, (0.0, 0.0, 0.0)),)), "neither it nor what it carries"),
        (lambda: SoftTree((Body(-1, 1.0, (1.0, 1.0, 1.0), axis=(1, 1, 0)),)), "length 1"),
        (lambda: SoftStepper(rubber_manipulator("voigt", 2)[0], 1.5), "from 0 to 1"),
        (lambda: SoftStepper(rubber_manipulator("maxwell", 2)[0]).relax(), "has no spring"),
    ],
)
def test_what_makes_no_model_is_refused_in_one_line(make, message):
    with pytest.raises(ModelError) as refusal:
        make()
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
