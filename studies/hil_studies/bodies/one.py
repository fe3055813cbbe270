"""One body for `hil study body`: four state spaces, singularity, hinge, Lyapunov functions."""

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from hil.mechanics.arrays import Array
from hil.mechanics.one_body import FORMS as STATE_SPACES
from hil.mechanics.one_body import (
    Hinge,
    OneBody,
    hinge_eliminated,
    hinge_simultaneous,
    hold_angles,
    hold_quaternion,
    lyapunov_angles_J,
    lyapunov_quaternion_J,
)
from hil.mechanics.rotations import angles, attitude, quaternion

CASE_J = (0.008, 0.006, 0.003)
CASE_THETA, CASE_OMEGA = (0.3, -0.4, 0.5), (1.0, -0.7, 1.5)
CASE_AT_2 = ("3.912927164", "-0.104420988", "-1.695351984")


def relative(value: Array, exact: Array) -> float:
    """Return the largest difference relative to the largest value."""
    return float(np.abs(value - exact).max() / np.abs(exact).max())


def case_torque(t_s: float) -> Array:
    """Return N of the test case, in the body's frame."""
    return np.array([0.010 * np.sin(2 * t_s), 0.008 * np.cos(3 * t_s), -0.006 * np.sin(t_s)])


def one_body() -> tuple[dict[str, Any], Array]:
    """Run the test case in four state spaces, free motion, and a run through the singularity."""
    body, t_s = OneBody.of(CASE_J), np.linspace(0.0, 2.0, 201)
    A0, omega0 = attitude(CASE_THETA), np.array(CASE_OMEGA)
    runs = {form: body.run(form, A0, omega0, case_torque, t_s) for form in STATE_SPACES}
    reference = runs["quaternion"]
    at_2_s = angles(reference[0])
    followed = np.unwrap(at_2_s, axis=0)[-1]

    def free(_t_s: float) -> Array:
        return np.zeros(3)

    drifts, courses = {}, {}
    met = body.run("quaternion", attitude([0.4, np.pi / 2, 0.2]), -omega0, free, [0.0, 0.5])
    through_s = np.linspace(0.0, 1.0, 201)
    for form in STATE_SPACES:
        A, omega = body.run(form, A0, omega0, free, t_s)
        L = np.einsum("nij,jk,nk->ni", A, body.J, omega)
        E = np.einsum("ni,ij,nj->n", omega, body.J, omega) / 2.0
        drifts[form] = {
            "L": float(np.abs(L - L[0]).max() / np.linalg.norm(L[0])),
            "E": float(np.abs(E - E[0]).max() / E[0]),
        }
        courses[form] = body.run(form, met[0][-1], -met[1][-1], free, through_s)[0]
    truth = courses["quaternion"]
    return {
        "theta_at_2_s": followed,
        "from_quaternion": {form: float(np.abs(A - reference[0]).max())
                            for form, (A, _) in runs.items()},
        "free_motion": drifts,
        "hinge": _hinge(body),
        "lyapunov": _lyapunov(body),
        "through_s": through_s,
        "pitch_deg": np.rad2deg(np.arcsin(np.clip(truth[:, 0, 2], -1.0, 1.0))),
        "through_deg": {form: _apart_deg(A, truth) for form, A in courses.items()},
        "clipped_deg": {f"{limit:g}": _clipped(body, limit) for limit in (10.0, 20.0, 100.0)},
    }, followed  # fmt: skip


def _hinge(body: OneBody) -> dict[str, float]:
    """Return the largest relative difference of the hinge force between both methods."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(20):
        r, omega, N, F = rng.normal(size=(4, 3))
        arguments = (Hinge(body, 1.3, 0.2 * r), attitude(rng.uniform(-3.0, 3.0, 3)), omega, N, F)
        worst = max(
            worst,
            relative(hinge_eliminated(*arguments).Gamma, hinge_simultaneous(*arguments).Gamma),
        )
    return {"apart": worst}


def _lyapunov(body: OneBody) -> dict[str, Any]:
    """Return v over time for a body stabilised on its angles and on its quaternion."""
    K, D, k, d = np.array([0.03, 0.05, 0.02]), np.array([2e-3, 1e-3, 3e-3]), 0.05, 2e-3
    t_s = np.linspace(0.0, 8.0, 201)
    theta = np.array([1.0, -0.6, 0.8])
    omega = np.array(CASE_OMEGA)
    on_angles = solve_ivp(
        lambda _t, x: body.newton_euler(x, hold_angles(x[:3], x[3:], K, D)), (0.0, t_s[-1]),
        np.concatenate((theta, omega)), t_eval=t_s, rtol=1e-8, atol=1e-10,
    ).y.T  # fmt: skip
    on_quaternion = solve_ivp(
        lambda _t, x: body.quaternion(x, hold_quaternion(x[:4], x[4:], k, d)), (0.0, t_s[-1]),
        np.concatenate((quaternion(theta), omega)), t_eval=t_s, rtol=1e-8, atol=1e-10,
    ).y.T  # fmt: skip
    return {
        "t_s": t_s,
        "angles_J": [lyapunov_angles_J(body, x[:3], x[3:], K) for x in on_angles],
        "quaternion_J": [lyapunov_quaternion_J(body, x[:4], x[4:], k) for x in on_quaternion],
    }


def _apart_deg(A: Array, B: Array) -> Array:
    """Return the angle between attitudes, from the sine, which is less sensitive to rounding."""
    turn = np.swapaxes(A, 1, 2) @ B - np.eye(3)
    half = np.linalg.norm(turn, axis=(1, 2)) / (2.0 * np.sqrt(2.0))
    apart: Array = np.rad2deg(2.0 * np.arcsin(np.minimum(half, 1.0)))
    return apart


def _clipped(body: OneBody, limit: float) -> dict[str, float]:
    """Return the error after a run near the singularity with 1/cos clipped at a limit."""
    miss = 0.4 / limit

    def free(_t_s: float) -> Array:
        return np.zeros(3)

    met, spin = attitude([0.4, np.pi / 2 - miss, 0.2]), -np.array(CASE_OMEGA)
    A, omega = body.run("quaternion", met, spin, free, [0.0, 0.5])
    A0, omega0 = A[-1], -omega[-1]
    truth, _ = body.run("quaternion", A0, omega0, free, [0.0, 1.0])

    def clipped(t_s: float, x: Array) -> Array:
        _, t2, t3 = x[:3]
        c2 = np.copysign(max(abs(np.cos(t2)), 1.0 / limit), np.cos(t2))
        first = (np.cos(t3) * x[3] - np.sin(t3) * x[4]) / c2
        second = np.sin(t3) * x[3] + np.cos(t3) * x[4]
        rates = (first, second, x[5] - np.sin(t2) * first)
        return np.concatenate((rates, body.omega_rate(x[3:], free(t_s))))

    x0 = body.state("newton_euler", A0, omega0)
    x = solve_ivp(clipped, (0.0, 1.0), x0, rtol=1e-9, atol=1e-11).y[:, -1]
    error = float(_apart_deg(attitude(x[None, :3]), truth[-1:])[0])
    return {"error_deg": error, "passing_at_deg": float(np.rad2deg(miss))}
