"""Analysis of one recorded impact: onset, end of compression, energies, impulses, uncertainty.

Joint angles and the tip's force are sampled together. The tip's velocity at onset is the slope of a
parabola fitted to its Cartesian positions just before (a straight line in joint space is curved
here and would bias T_a). From onset on, the velocity is integrated from the force, with the tip's
inverse mass W = J M^-1 J^T::

    v(t) = v- + W int (F_t, -F_n) dt
    T_c = v_n^2 / (2 W_nn),   T_a = v^T W^-1 v / 2 - T_c

since differences of quantised angles are too coarse over a contact of some milliseconds.
Compression ends where v_n = 0, located between samples; impulses are integrated up to this point.
The normal impulse is then the one that stops the tip, whatever the sensor's gain. `closure` checks
gain and mass of the arm independently: the change of v_n over the whole contact from the angles,
divided by the change from the integral of the force.

Source: Font-Llagunes & Koevecses, section 6 (what is measured); the fusion is ours.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.pantograph.linkage import Assembly, Pantograph

FIT_S = 0.05
BIAS_S = 0.08
CLEAR_S = 0.002  # interval next to the contact that fits and bias exclude
AFTER_S = 0.015
TAIL_S = 0.02
LEAST_SAMPLES = 8
THRESHOLD_SIGMA = 6.0
THRESHOLD_N = 0.1
RISE_SHARE = 0.5  # fraction of the peak: the first rise of the force, which gives the onset


@dataclass(frozen=True)
class Uncertainty:
    """Standard uncertainties of the instruments, besides those from the fit.

    Attributes
    ----------
    force_gain : relative
    misalignment_rad : of the force sensor with respect to the plate's normal
    angle_step_rad : step of the encoders; a slow joint stays on one step for long, which the
        scatter about the fit does not show
    """

    force_gain: float = 0.0
    misalignment_rad: float = 0.0
    angle_step_rad: float = 0.0


@dataclass(frozen=True)
class Trial:
    """Results of one impact, at onset (-) and at the end of compression (+).

    Attributes
    ----------
    speed_m_per_s, gamma_deg : of the tip at onset; gamma from the plate's normal towards +x
    closure : 1 if angles, force and mass agree; NaN if the recording ends too early
    t_s, v_m_per_s, T_c_curve_J, T_a_curve_J : arrays
        From before onset to after the end, at the samples; v is (n, 2), along x and y.
    standard : dict, standard uncertainty of every figure of the same name
    """

    onset_s: float
    end_s: float
    speed_m_per_s: float
    gamma_deg: float
    T_c_J: float
    T_a_J: float
    xi: float
    T_a_after_J: float
    impulse_n_N_s: float
    impulse_t_N_s: float
    peak_N: float
    closure: float
    t_s: Array
    v_m_per_s: Array
    T_c_curve_J: Array
    T_a_curve_J: Array
    standard: dict[str, float]


def analyse(
    rig: Pantograph, assembly: Assembly, t_s: Array, q_rad: Array, force_N: Array,
    known: Uncertainty | None = None,
) -> Trial:  # fmt: skip
    """Analyse the first impact in a range of samples.

    Parameters
    ----------
    t_s : (n,) array
    q_rad : (n, 2) array, q1 and q3
    force_N : (n, 2) array, normal (positive if the plate pushes) and tangential (along x)

    Raises
    ------
    ModelError
        There is no contact, too little before it, or no end of compression.
    """
    complete = np.isfinite(t_s) & np.isfinite(q_rad).all(axis=1) & np.isfinite(force_N).all(axis=1)
    t, q, F = t_s[complete], q_rad[complete], force_N[complete]
    first = _onset_index(t, F[:, 0])
    quiet = (t > t[first] - BIAS_S) & (t < t[first] - CLEAR_S)
    if quiet.sum() < LEAST_SAMPLES:
        raise ModelError("too little is recorded before the contact")
    bias_N, noise_N = F[quiet].mean(axis=0), F[quiet].std(axis=0)
    F = F - bias_N
    onset_s = _onset_s(t, F[:, 0], first)
    run_up = (t > onset_s - FIT_S) & (t < onset_s - CLEAR_S)
    if run_up.sum() < LEAST_SAMPLES:
        raise ModelError("too little is recorded before the contact")
    E = np.array([rig.forward(a, b, assembly).E_m for a, b in q[run_up]])
    centre = t[run_up] - onset_s
    fit, u_v = _parabola(centre, E)
    v_before = fit[1]
    q_fit, _ = _parabola(centre, q[run_up])
    pose = rig.forward(q_fit[0, 0], q_fit[0, 1], assembly)
    W: Array = pose.J_m @ np.linalg.solve(pose.M_kg_m2, pose.J_m.T)

    # From onset on, integrate the force; the integral starts at zero force between two samples.
    after = np.flatnonzero(t > onset_s)
    times = np.concatenate(([onset_s], t[after]))
    push = np.vstack(([0.0, 0.0], np.column_stack((F[after, 1], -F[after, 0]))))
    impulse = np.vstack(
        ([0.0, 0.0], np.cumsum(np.diff(times)[:, None] * (push[1:] + push[:-1]) / 2.0, axis=0))
    )
    v = v_before + impulse @ W.T
    ended = np.flatnonzero(v[:, 1] <= 0.0)
    if not ended.size:
        raise ModelError("compression does not end: the force is too small to stop the tip")
    k = int(ended[0])
    share = v[k - 1, 1] / (v[k - 1, 1] - v[k, 1])
    end_s = times[k - 1] + share * (times[k] - times[k - 1])
    J_end = impulse[k - 1] + share * (impulse[k] - impulse[k - 1])
    v_end = v_before + W @ J_end

    normal_N = F[:, 0]
    left = np.flatnonzero(
        (np.arange(len(t)) > np.argmax(normal_N)) & (normal_N < 0.02 * normal_N.max())
    )
    closure = float("nan")
    if left.size:
        by_force = (W @ impulse[np.searchsorted(times, t[left[0]])])[1]
        v_after = _v_after(rig, assembly, t, q, float(t[left[0]]))
        closure = float((v_after - v_before[1]) / by_force)
    T_c, T_a = _split(v_before[None], W)
    _, T_a_end = _split(v_end[None], W)
    shown = (t >= onset_s - TAIL_S) & (t <= end_s + TAIL_S)
    stays = t[shown] <= onset_s
    at = np.searchsorted(times, t[shown][~stays])
    velocities = np.vstack((np.broadcast_to(v_before, (int(stays.sum()), 2)), v[at]))
    T_c_curve, T_a_curve = _split(velocities, W)
    speed, T = float(np.hypot(*v_before)), float(T_c[0] + T_a[0])
    trial = Trial(
        onset_s=onset_s, end_s=float(end_s), speed_m_per_s=speed,
        gamma_deg=float(np.rad2deg(np.arctan2(v_before[0], v_before[1]))),
        T_c_J=float(T_c[0]), T_a_J=float(T_a[0]), xi=float(T_c[0]) / T,
        T_a_after_J=float(T_a_end[0]), impulse_n_N_s=float(-J_end[1]),
        impulse_t_N_s=float(J_end[0]), peak_N=float(F[:, 0].max()), closure=closure, t_s=t[shown],
        v_m_per_s=velocities, T_c_curve_J=T_c_curve, T_a_curve_J=T_a_curve, standard={},
    )  # fmt: skip
    duration_s = end_s - onset_s
    step_s = float(np.median(np.diff(t)))
    u_J = np.array([noise_N[1], noise_N[0]]) * np.sqrt(step_s * duration_s)
    u_J = np.hypot(u_J, np.array([noise_N[1], noise_N[0]]) / np.sqrt(quiet.sum()) * duration_s)
    known = known or Uncertainty()
    # Standard deviation of an encoder step that occurs once within the fit.
    u_rate = 2.0 * known.angle_step_rad / np.sqrt(12.0) / FIT_S
    u_v = np.hypot(u_v, u_rate * np.hypot(pose.J_m[:, 0], pose.J_m[:, 1]))
    trial.standard.update(_standard(trial, TipVelocity(v_before, v_end, u_v), W, u_J, known))
    return trial


def _onset_index(t: Array, normal_N: Array) -> int:
    """Return the first sample that is clearly above the earlier ones."""
    if len(t) < 2 * LEAST_SAMPLES:
        raise ModelError("too few samples")
    peak = int(np.argmax(normal_N))
    before = normal_N[: max(peak // 2, LEAST_SAMPLES)]
    level = np.median(before)
    sigma = 1.4826 * float(np.median(np.abs(before - level)))
    above = normal_N - level > max(THRESHOLD_SIGMA * sigma, THRESHOLD_N)
    if not above.any():
        raise ModelError("no contact: the normal force stays in its noise")
    return int(np.argmax(above))


def _onset_s(t: Array, normal_N: Array, first: int) -> float:
    """Return the time at which the force's first rise, f = c (t - t0), starts.

    The force law starts as k v (t - t0); a parabola over the first half of the rise also covers
    its curvature.
    """
    peak = first + int(np.argmax(normal_N[first : first + 200]))
    rise = np.arange(first, peak + 1)
    rise = rise[normal_N[rise] < RISE_SHARE * normal_N[peak]]
    if len(rise) < 3:
        rise = np.arange(first, min(first + 3, len(t)))
    # t as a polynomial of the force, read at zero
    order = 2 if len(rise) >= 5 else 1
    t0 = float(t[rise[0]])
    onset_s = np.polynomial.polynomial.polyfit(normal_N[rise], t[rise] - t0, order)[0] + t0
    return float(np.clip(onset_s, t[max(first - 2, 0)], t[first]))


def _v_after(rig: Pantograph, assembly: Assembly, t: Array, q: Array, release_s: float) -> float:
    """Return the tip's normal velocity after its release from the angles; NaN if it is unknown."""
    later = (t > release_s + CLEAR_S) & (t < release_s + CLEAR_S + AFTER_S)
    if later.sum() < LEAST_SAMPLES or t[-1] < release_s + CLEAR_S + 0.8 * AFTER_S:
        return float("nan")
    E = np.array([rig.forward(a, b, assembly).E_m for a, b in q[later]])
    return float(np.polynomial.polynomial.polyfit(t[later] - release_s, E[:, 1], 1)[1])


def _parabola(t: Array, E: Array) -> tuple[Array, Array]:
    """Return position and velocity (2, 2) at t = 0, and the velocity's uncertainty (2,)."""
    design = np.column_stack((np.ones_like(t), t, t * t))
    fit: Array = np.linalg.lstsq(design, E, rcond=None)[0].astype(np.float64)
    sigma = (E - design @ fit).std(axis=0, ddof=3)
    u: Array = np.sqrt(np.linalg.inv(design.T @ design)[1, 1]) * sigma
    return fit[:2], u


def _split(v: Array, W: Array) -> tuple[Array, Array]:
    """Return T_c and T_a (k,) of tip velocities (k, 2)."""
    T_c: Array = np.asarray(v[:, 1] ** 2 / (2.0 * W[1, 1]), dtype=np.float64)
    T = np.einsum("ki,ki->k", v, np.linalg.solve(W, v.T).T) / 2.0
    T_a: Array = np.maximum(np.asarray(T, dtype=np.float64) - T_c, 0.0)
    return T_c, T_a


class TipVelocity(NamedTuple):
    """The tip's velocity before the impact and at its end, and its standard uncertainty, m/s."""

    before: Array
    end: Array
    u: Array


def _standard(
    trial: Trial, velocity: TipVelocity, W: Array, u_J: Array, known: Uncertainty
) -> dict[str, float]:
    """Propagate fit, force noise, gain and misalignment to first order."""
    v_before, v_end, u_v = velocity
    tilt = known.misalignment_rad
    u_t = np.sqrt(u_J[0] ** 2 + (known.force_gain * trial.impulse_t_N_s) ** 2
                  + (tilt * trial.impulse_n_N_s) ** 2)  # fmt: skip
    # The impulse that stops the tip: W_nn J_n = v_n- - W_nt J_t.
    u_n = np.hypot(u_v[1], W[1, 0] * u_t) / W[1, 1]
    p = np.linalg.solve(W, v_before)  # momentum of the tip: dT = p . dv
    u_T_c = abs(v_before[1]) / W[1, 1] * u_v[1]
    slip = p - np.array([0.0, v_before[1] / W[1, 1]])
    u_T_a = float(np.hypot(slip[0] * u_v[0], slip[1] * u_v[1]))
    speed = trial.speed_m_per_s
    u_speed = float(np.hypot(v_before[0] * u_v[0], v_before[1] * u_v[1]) / speed)
    u_gamma = float(np.hypot(v_before[1] * u_v[0], v_before[0] * u_v[1]) / speed**2)
    T = trial.T_c_J + trial.T_a_J
    u_xi = float(np.hypot(trial.T_a_J * u_T_c, trial.T_c_J * u_T_a) / T**2)
    p_end = np.linalg.solve(W, v_end)
    u_end = np.hypot(p_end * u_v, (W @ p_end) * np.array([u_t, u_n]))
    return {
        "speed_m_per_s": u_speed, "gamma_deg": float(np.rad2deg(u_gamma)), "T_c_J": float(u_T_c),
        "T_a_J": u_T_a, "xi": u_xi, "T_a_after_J": float(np.hypot(*u_end)),
        "impulse_n_N_s": float(u_n), "impulse_t_N_s": float(u_t),
    }  # fmt: skip
