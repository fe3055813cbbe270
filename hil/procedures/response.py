"""`hil calibrate damping`, `activation`, `cell_force`: one cell between fixed ends, on and off.

The isometric (e = 0) force of a cell with the law of `hil.systems.array.model.cells` is

    T = Kd d + Kf F,   d' = I d + Kp F,   tau = -1 / I = b / (k_se + k_ae)

- damping: F is a step, so T = T_inf + A exp(-t / tau) after both edges; b = tau (k_se + k_ae).
- activation: F = F_0 + A / (1 + exp(-theta)), filtered by the lag tau of the rig's damper. theta
  rises at rate r from -r delay to r_f delay_f and falls back at r_f
  (`hil.systems.array.model.activation`).
- cell force: F_on = (T_on - T_off) / phi at rest, phi = k_se / (k_se + k_ae).

Source: MacNair & Ueda, eqs (2)-(4), Figs. 5 and 10; JCGM 100:2008 (GUM), eq. (13).
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field
from scipy.signal import lfilter

from hil.config.table import NotNegative, Positive, Table
from hil.errors import ConfigError
from hil.procedures.fits import Fit, nonlinear
from hil.procedures.on_rig import OneCell, force_of, pulses_of
from hil.record.read import open_run

REST_SHARE = 0.2  # last part of a hold or a pause that counts as at rest
SKIPPED_S = 0.01  # omitted after an edge: latency of the board
AMPLITUDE_MIN = 10.0  # in units of the noise

Array = NDArray[np.float64]


class Settings(Table):
    """The cell is on for `on_s` and off for `off_s`, `pulses` times."""

    on_s: Positive = 3.0
    off_s: Positive = 3.0
    before_s: Positive = 0.5
    pulses: Annotated[int, Field(ge=1, le=100)] = 1

    def schedule(self) -> tuple[list[tuple[float, float]], float]:
        """(on, off) times of the pulses, and the duration of the run [s]."""
        period_s = self.on_s + self.off_s
        begins = [self.before_s + i * period_s for i in range(self.pulses)]
        return [(t, t + self.on_s) for t in begins], self.before_s + self.pulses * period_s


class ActivationSettings(Settings):
    """`latency_s` of the force channel (`hil calibrate latency`) is subtracted from the delays."""

    latency_s: NotNegative = 0.0
    latency_u_s: NotNegative = 0.0


class ForceSettings(Settings):
    pulses: Annotated[int, Field(ge=3, le=100)] = 5


def _clear(fit: Fit, force_N: Array, what: str) -> None:
    """ConfigError if the response is not clearly above the noise."""
    if np.ptp(force_N) < AMPLITUDE_MIN * fit.sigma:
        raise ConfigError(
            f"{what}: the force changes by {np.ptp(force_N):.3g} N, noise is {fit.sigma:.2g} N: "
            "no response: does the cell work, is the board armed?"
        )


def damping(path: Path, cell: OneCell) -> dict[str, object]:
    """Damping b from the first pulse of a recording, b = tau (k_se + k_ae).

    Raises
    ------
    ConfigError
        The force does not respond, or the pulse is too short for the time constant.
    """
    run = open_run(path)
    t, T = run.t_s.values, force_of(run, path, cell.force)
    (on, off, end) = _first_pulse(run, path)
    skip = round(SKIPPED_S / float(np.median(np.diff(t))))
    parts = [np.arange(on + skip, off), np.arange(off + skip, end)]
    rows = np.concatenate(parts)
    after = np.concatenate([t[part] - t[part[0]] for part in parts])
    first = np.concatenate([np.full(len(part), i == 0) for i, part in enumerate(parts)])

    def curve(p: Array) -> Array:
        tau, T_on, A_on, T_off, A_off = p
        decay = np.exp(-after / tau)
        return np.asarray(np.where(first, T_on + A_on * decay, T_off + A_off * decay))

    T_on, T_off = T[off - 1], T[end - 1]
    start = [0.1 * (t[off - 1] - t[on]), T_on, T[on] - T_on, T_off, T[off] - T_off]
    names = ("tau", "T_on", "A_on", "T_off", "A_off")
    duration_s = float(after.max())
    bounds = ([1e-4, *[-np.inf] * 4], [3.0 * duration_s, *[np.inf] * 4])
    fit = nonlinear(lambda p: curve(p) - T[rows], start, names, "damping", bounds)
    _clear(fit, T[rows], "damping")
    tau, K = float(fit.values[0]), cell.k_se + cell.k_ae
    if tau > duration_s:
        raise ConfigError(
            f"damping: a time constant of {tau:.3g} s in {duration_s:.3g} s: hold the cell on "
            "longer"
        )
    u_b = float(np.hypot(np.sqrt(fit.covariance[0, 0]) * K, tau * cell.sum_u()))
    messages = [f"time constant {tau:.5g} s, of k_se + k_ae = {K:g} N/m"]
    if not _white(fit.residuals):
        messages.append("the residual is not noise: the response is not a single exponential")
    return {
        "values": {"b_N_s_per_m": tau * K},
        "covariance": [[u_b**2]],
        "equation": "T = T_inf + A exp(-t / tau) after both edges; b = tau (k_se + k_ae)",
        "dof": fit.dof,
        "residual_rms": fit.sigma,
        "raw": _thinned(t, T, on, end),
        "said": messages,
    }


def activation(path: Path, cell: OneCell, settings: ActivationSettings) -> dict[str, object]:
    """Rate and delay from the first pulse of a recording, separately for rise and fall.

    Raises
    ------
    ConfigError
        The force does not respond, or the pulse is too short.
    """
    run = open_run(path)
    t, T = run.t_s.values, force_of(run, path, cell.force)
    on, off, end = _first_pulse(run, path)
    period_s = float(np.median(np.diff(t)))
    # theta of an edge ends at the start of the other edge, so the two fits are iterated once.
    fits: dict[str, Fit] = {}
    edges = (("rise", slice(on, off), 1.0, "fall"), ("fall", slice(off, end), -1.0, "rise"))
    for name, rows, sign, other in (*edges, *edges):
        far = float(np.prod(fits[other].values[:2])) if other in fits else None
        fits[name] = _profile(T[rows], period_s, sign, far, cell, f"activation: {name}")
    values: dict[str, float] = {}
    C = np.zeros((4, 4))
    for i, (prefix, fit) in enumerate((("", fits["rise"]), ("fall_", fits["fall"]))):
        values |= {
            f"{prefix}rate_per_s": float(fit.values[0]),
            f"{prefix}delay_s": float(fit.values[1]) - settings.latency_s,
        }
        C[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = fit.covariance[:2, :2]
    late = np.array([0.0, 1.0, 0.0, 1.0]) * settings.latency_u_s
    C += np.outer(late, late)
    if 2.0 * float(fits["rise"].values[1]) > t[off] - t[on]:
        raise ConfigError(
            f"activation: half after {fits['rise'].values[1]:.3g} s, off after "
            f"{t[off] - t[on]:.3g} s: the activation was not complete: keep it on longer"
        )
    messages = [
        f"{name}: rate {f.values[0]:.4g}/s, half after {f.values[1]:.4g} s"
        for name, f in fits.items()
    ]
    messages += [
        f"{name}: the residual is not noise: no sigmoid fits"
        for name, f in fits.items()
        if not _white(f.residuals)
    ]
    return {
        "values": values,
        "covariance": C,
        "equation": "F = F_0 + A / (1 + exp(-theta)), theta = +-rate (t - delay) between its stops",
        "dof": min(f.dof for f in fits.values()),
        "residual_rms": float(np.sqrt(np.mean([f.sigma**2 for f in fits.values()]))),
        "raw": _thinned(t, T, on, end),
        "said": messages,
    }


def _profile(
    T: Array, period_s: float, sign: float, far: float | None, cell: OneCell, what: str
) -> Fit:
    """Rate, delay, amplitude and rest of the edge at the first sample.

    theta goes from -rate delay to `far`; without `far` to rate delay.
    """
    t = period_s * np.arange(len(T))

    def curve(p: Array) -> Array:
        rate, delay, amplitude, rest = p
        stop = rate * delay
        theta = sign * np.clip(rate * (t - delay), -stop, stop if far is None else far)
        F = 1.0 / (1.0 + np.exp(-theta))
        return np.asarray(rest + amplitude * _lagged(F, period_s, cell))

    low, high = float(T.min()), float(T.max())
    half = float(t[np.argmax(sign * T > sign * 0.5 * (low + high))])
    start = [4.0 / max(half, period_s), max(half, 2.0 * period_s), high - low, low]
    bounds = ([0.01, period_s, 0.0, -np.inf], [1e4, float(t[-1]), np.inf, np.inf])
    fit = nonlinear(
        lambda p: curve(p) - T, np.clip(start, *bounds), ("rate", "delay", "amplitude", "rest"),
        what, bounds,
    )  # fmt: skip
    _clear(fit, T, what)
    if float(fit.values[1]) > 0.8 * float(t[-1]):
        raise ConfigError(f"{what}: half is not reached in {t[-1]:.3g} s: hold it longer")
    return fit


def _lagged(F: Array, period_s: float, cell: OneCell) -> Array:
    """T / F_on of a cell that starts at rest, by its law at e = 0.

    The discretisation is exact for F that is linear within each period.
    """
    law = cell.law
    I, Kp, Kd = float(law.I[0, 0]), float(law.Kp[0]), float(law.Kd[0])  # noqa: E741
    a = np.exp(I * period_s)
    held = (a - 1.0) / I  # response to constant F
    ramp = (held - period_s) / I / period_s  # response to the linear change of F
    b_now, b_next = Kp * (held - ramp), Kp * ramp
    before = -Kp / I * F[0]
    d = lfilter([b_next, b_now], [1.0, -a], F, zi=[before - b_next * F[0]])[0]
    return np.asarray((Kd * d + law.Kf * F) / cell.share)


def cell_force(path: Path, cell: OneCell) -> dict[str, object]:
    """F_on from the pulses of a recording, F_on = (T_on - T_off) / phi.

    Raises
    ------
    ConfigError
        There are fewer than three pulses, or their forces differ too much.
    """
    run = open_run(path)
    T = force_of(run, path, cell.force)
    levels = []
    for on, off, end in pulses_of(run):
        high = T[off - max(2, round(REST_SHARE * (off - on))) : off]
        low = T[end - max(2, round(REST_SHARE * (end - off))) : end]
        levels.append((float(low.mean()), float(high.mean())))
    if len(levels) < 3:
        raise ConfigError(f"cell_force: {len(levels)} pulses are too few for an uncertainty: 3")
    rise = np.array([high - low for low, high in levels])
    spread = float(rise.std(ddof=1))
    if abs(rise.mean()) < AMPLITUDE_MIN * spread:
        raise ConfigError(
            f"cell_force: the pulses give {rise.min():.3g} to {rise.max():.3g} N: the force does "
            "not repeat: does the cell work, are the pauses long enough?"
        )
    low_N, high_N = np.mean(levels, axis=0).tolist()
    F_on = float(rise.mean()) / cell.share
    u = [
        spread / np.sqrt(len(rise)) / cell.share,
        _transducer_u_N(cell, low_N, high_N) / cell.share,
        F_on * cell.share_u() / cell.share,
    ]
    return {
        "values": {"force_on_N": F_on},
        "covariance": [[float(np.sum(np.square(u)))]],
        "equation": "F_on = (T_on - T_off) (k_se + k_ae) / k_se",
        "dof": len(rise) - 1,
        "residuals": (rise - rise.mean()) / cell.share,
        "raw": {
            "T_off_N": [level[0] for level in levels],
            "T_on_N": [level[1] for level in levels],
        },
        "said": [f"uncertainty of pulses {u[0]:.2g}, transducer {u[1]:.2g}, springs {u[2]:.2g} N"],
    }


def _transducer_u_N(cell: OneCell, low_N: float, high_N: float) -> float:
    """Standard uncertainty of a force difference from the transducer's coefficients [N]."""
    if cell.transducer is None:
        return 0.0
    chain = cell.transducer.chain(bridge=True)
    k = np.arange(len(chain.coefficients))
    g = chain.raw(high_N) ** k - chain.raw(low_N) ** k
    return float(np.sqrt(g @ cell.transducer.covariance @ g))


def _first_pulse(run: xr.Dataset, path: Path) -> tuple[int, int, int]:
    pulses = pulses_of(run)
    if not pulses or pulses[0][2] <= pulses[0][1]:
        raise ConfigError(f"{path}: its first cell does not go on and off again")
    return pulses[0]


def _white(residuals: Array) -> bool:
    from hil.record.metrics import whiteness

    return whiteness(residuals).p_uncorrelated > 1e-4


def _thinned(t: Array, T: Array, on: int, end: int) -> dict[str, object]:
    """200 points of the fitted data; the record names the recording with all data."""
    rows = np.linspace(on, end - 1, 200).astype(int)
    return {"t_s": t[rows], "force_N": [float(f"{v:.6g}") for v in T[rows]]}
