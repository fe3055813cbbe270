"""`hil calibrate force_transducer`: dead weights, added and removed.

A weight of mass m and density rho_w in air of density rho_a exerts the force

    F = m g (1 - rho_a / rho_w)

Each of R runs starts at zero, applies the weights in increasing and in decreasing order, and ends
at zero. The readings y in mV/V are fitted as deflection over force,

    y = z_r(t) + (1 + b_r) sum_k g_k F^k + e,    k = 1 ... degree,    sum_r b_r = 0,

with the zero z_r of every run, which drifts linearly from its first to its last reading. With
`zero_at_top` the zero is read between the branches too, and drifts along a parabola if degree > 1:
without this reading a parabola cannot be told from the transducer's bend, as the largest load hangs
in the middle of a run.

Readings of one run share its span. The spans vary from run to run by s_b^2 = sum b_r^2 / (R - 1); a
force measured later has a span of its own, so that the record's covariance has
s_b^2 (1 + 1 / R) c c^T. This variance is known from R runs only: the covariance is
widened until 1.96 u at the largest force is Student's interval for the degrees of freedom of the
sum (Welch-Satterthwaite).

The record contains the inverse, F = sum_k c_k (y - z)^k; its covariance is C_c = J C_g J^T with J
by the chain rule. The weights' common uncertainty u_w adds u_w^2 c c^T, and hysteresis adds the
term of `loop_shape`. The scatter s includes what a polynomial of this degree cannot follow. The
lower limit factor is 2.4 s, in newtons, with one span for all runs.

Source: ASTM E74 (deflection over force; lower limit factor 2.4 s; class A from 400 times it);
JCGM 100:2008 (GUM), eq. (13), G.4.1 and H.5 (variance between groups of readings).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.stats import norm
from scipy.stats import t as student

from hil.config.table import NotNegative, Positive, Table
from hil.procedures.fits import (
    Fit,
    linear,
    refuse_implausible,
    refuse_saturated,
    refuse_stuck,
    refuse_unit_slip,
)
from hil.procedures.procedure import Readings, Step
from hil.procedures.session_file import TransducerFile

KIND = "force_transducer"
METHOD = "dead weights, up and down between zeros; deflection over force"
LLF, CLASS_A = 2.4, 400.0
AIR_KG_PER_M3 = 1.2
Density = Annotated[float, Field(ge=100.0, le=25e3)]  # of a solid: balsa 130, osmium 22 590
RelativeU = Annotated[float, Field(ge=0.0, le=0.5)]  # beyond a half a weight says nothing


class Settings(Table):
    """Weights, number of runs, and rated output from the transducer's label."""

    weights_kg: Annotated[list[Positive], Field(min_length=1, max_length=50)]
    rated_mV_per_V: float
    runs: Annotated[int, Field(ge=1, le=20)] = 3
    degree: Annotated[int, Field(ge=1, le=4)] = 2
    gravity_m_per_s2: Annotated[float, Field(ge=9.76, le=9.84)] = 9.80665
    density_kg_per_m3: Density = 8000.0
    weights_relative_u: RelativeU = 5e-5
    range_mV_per_V: Positive = 2.5
    creep_s: NotNegative = 60.0
    zero_at_top: bool = False


Session = TransducerFile[Settings]


@dataclass(frozen=True)
class Load:
    """Position of one reading in the procedure."""

    key: str
    run: int
    part: float  # elapsed share of the run, 0 to 1
    force_N: float
    rising: bool


def forces_N(s: Settings) -> NDArray[np.float64]:
    """F = m g (1 - rho_a / rho_w) of every weight [N]."""
    buoyancy = 1.0 - AIR_KG_PER_M3 / s.density_kg_per_m3
    return np.array(s.weights_kg) * s.gravity_m_per_s2 * buoyancy


def loads(s: Settings) -> list[Load]:
    """All readings; each run is zero, up, down, zero; with `zero_at_top`, zero and top between."""
    up = sorted(forces_N(s).tolist())
    between = [(0.0, False), (up[-1], True)] if s.zero_at_top else []
    down = [(F, False) for F in up[-2::-1]]
    series = []
    for run in range(1, s.runs + 1):
        sequence = [(0.0, True), *((F, True) for F in up), *between, *down, (0.0, False)]
        for i, (F, rising) in enumerate(sequence):
            key = f"run {run}, reading {i}"
            series.append(Load(key, run, i / (len(sequence) - 1), F, rising))
    return series


def steps(session: Session) -> list[Step]:
    s = session.procedure
    largest = float(forces_N(s).max(initial=0.0))
    if largest > 1.5 * session.article.capacity_N:
        what = "procedure.weights_kg: the largest load in N"
        refuse_unit_slip(largest, session.article.capacity_N, what, "give the weights in kg")
        refuse_implausible(largest, session.article.capacity_N, what)
    masses = {round(F, 9): m for F, m in zip(forces_N(s).tolist(), s.weights_kg, strict=True)}
    series = []
    for load in loads(s):
        mass = masses.get(round(load.force_N, 9))
        if mass is None:
            what = "nothing hangs on it"
        else:
            what = f"{'hang on' if load.rising else 'take off down to'} {mass:g} kg"
        series.append(Step(load.key, f"run {load.run}: {what}, wait until it stands", "mV/V"))
    if s.creep_s:
        top = max(s.weights_kg)
        series.append(Step("creep, at once", f"hang on {top:g} kg, read at once", "mV/V"))
        series.append(Step("creep, later", f"leave it for {s.creep_s:g} s, read again", "mV/V"))
    return series


def finish(session: Session, readings: Readings) -> dict[str, object]:
    s, every = session.procedure, loads(session.procedure)
    y = np.array([readings[load.key] for load in every])
    F = np.array([load.force_N for load in every])
    fitted = _fit(s, every, y, F)
    sensitivity = abs(float(fitted.values[0]))
    rated = abs(s.rated_mV_per_V / session.article.capacity_N)
    what = f"{KIND}: the sensitivity in mV/V per N"
    refuse_unit_slip(sensitivity, rated, what, "give the weights in kg and the readings in mV/V")
    refuse_saturated(y, s.range_mV_per_V, "mV/V", KIND)
    refuse_stuck(F, y, "N", KIND)
    refuse_implausible(sensitivity, rated, what)
    within, span2 = _spans(s, every, y, F, fitted)
    g, C_g = within.values[: s.degree], within.covariance[: s.degree, : s.degree]
    top_N = float(F.max())
    c, C = inverted(g, C_g, top_N)
    C[0, 0] += (within.sigma / g[0]) ** 2  # uncertainty of one reading of the zero
    top = float(np.polyval([*g[::-1], 0.0], top_N))
    powers = top ** np.arange(len(c))
    estimates = [(float(powers @ C @ powers), within.dof)]
    if s.runs > 1:
        later = span2 * (1.0 + 1.0 / s.runs)  # of a run after the calibration
        estimates.append((later * top_N**2, s.runs - 1))
        C += later * np.outer(c, c)
    C += s.weights_relative_u**2 * np.outer(c, c)
    loop = _hysteresis(every, y, F, float(g[0]))
    v = loop_shape(loop["hysteresis_N"] / np.sqrt(12.0), s.degree, top)
    C += np.outer(v, v)
    dof = effective_dof(float(powers @ C @ powers), estimates)
    wider = (student.ppf(0.975, dof) / norm.ppf(0.975)) ** 2 - 1.0
    C += wider * float(powers @ C @ powers) / top_N**2 * np.outer(c, c)
    residuals_N = -fitted.residuals / g[0]
    factor_N = LLF * float(fitted.sigma) / abs(g[0])
    extra: dict[str, object] = {"span_between_runs": float(np.sqrt(span2))} if s.runs > 1 else {}
    if "creep, later" in readings:
        extra["creep_N"] = (readings["creep, later"] - readings["creep, at once"]) / float(g[0])
    return {
        "conditioner": session.conditioner.model_dump(exclude_none=True)
        if session.conditioner
        else None,
        "model": {
            "kind": "polynomial",
            "coefficients_N": [float(f"{value:.9g}") for value in c],
            "covariance_N2": [[float(f"{value:.6g}") for value in row] for row in C],
            "range_mV_per_V": _range(g, top_N),
            "residual_rms_N": float(np.sqrt(np.mean(residuals_N**2))),
        },
        "fit": {
            "residuals_N": [float(f"{r:.4g}") for r in residuals_N],
            "degrees_of_freedom": fitted.dof,
            "effective_degrees_of_freedom": dof,
            "lower_limit_factor_N": factor_N,
            "class_a_min_N": CLASS_A * factor_N,
            "nonlinearity_N": _nonlinearity_N(g, top_N),
            **loop,
            **extra,
        },
        "raw": {
            "force_N": F,
            "reading_mV_per_V": y,
            "run": [float(load.run) for load in every],
            "rising": ["up" if load.rising else "down" for load in every],
        },
    }


def _fit(
    s: Settings,
    every: list[Load],
    y: NDArray[np.float64],
    F: NDArray[np.float64],
    more: Sequence[NDArray[np.float64]] = (),
) -> Fit:
    more_names = [f"span of run {run}" for run in range(1, len(more) + 1)]
    columns = [F**k for k in range(1, s.degree + 1)]
    names = [f"g_{k}" for k in range(1, s.degree + 1)]
    part = np.array([load.part for load in every]) - 0.5
    for run, mask in _runs(s, every).items():
        columns += [mask, mask * part]
        names += [f"zero of run {run}", f"drift of run {run}"]
        if s.zero_at_top and s.degree > 1:  # a line leaves every bend in its scatter
            columns.append(mask * part**2)
            names.append(f"bend of the drift of run {run}")
    return linear(np.column_stack([*columns, *more]), y, [*names, *more_names], KIND)


def _runs(s: Settings, every: list[Load]) -> dict[int, NDArray[np.float64]]:
    """1 at the readings of a run and 0 at others, by the number of the run."""
    number = np.array([load.run for load in every])
    return {run: (number == run) * 1.0 for run in range(1, s.runs + 1)}


def _spans(
    s: Settings, every: list[Load], y: NDArray[np.float64], F: NDArray[np.float64], common: Fit
) -> tuple[Fit, float]:
    """The fit with a span of every run, and the variance s_b^2 of the spans between runs.

    s_b^2 = sum_r b_r^2 / (R - 1), in which the readings' noise counts too.

    Parameters
    ----------
    common : the fit with one span, whose curve the spans scale
    """
    if s.runs == 1:
        return common, 0.0
    curve = np.polyval([*common.values[: s.degree][::-1], 0.0], F)
    *others, last = _runs(s, every).values()
    columns = [curve * (mask - last) for mask in others]
    fit = _fit(s, every, y, F, columns)
    n = len(columns)
    to_all = np.vstack((np.eye(n), -np.ones(n)))  # the last is less the sum of the others
    b = to_all @ fit.values[-n:]
    return fit, float(b @ b) / (s.runs - 1)


def effective_dof(variance: float, estimates: Sequence[tuple[float, int]]) -> float:
    """Degrees of freedom of a variance, nu = u^4 / sum_i (u_i^4 / nu_i) (Welch-Satterthwaite).

    Parameters
    ----------
    variance : u^2, the sum of all parts
    estimates : (u_i^2, nu_i) of the parts that are estimated; others are known

    Source: JCGM 100:2008 (GUM), eq. (G.2b).
    """
    return variance**2 / sum(part**2 / dof for part, dof in estimates)


def inverted(
    g: NDArray[np.float64], C_g: NDArray[np.float64], top_N: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Invert d = sum_k g_k F^k to F = sum_k c_k d^k for forces from 0 to `top_N`, with covariance.

    The coefficients are a least-squares fit at 33 Chebyshev points. The error of a polynomial of
    the same degree is far below the noise of a reading.

    Parameters
    ----------
    g : (degree,) coefficients
    C_g : (degree, degree) covariance of g
    top_N : largest force

    Returns
    -------
    c : (degree + 1,) coefficients; c_0 = 0
    C : (degree + 1, degree + 1) covariance of c
    """
    degree = len(g)
    F = 0.5 * top_N * (1.0 + np.cos(np.pi * (np.arange(33) + 0.5) / 33))
    powers = np.column_stack([F**k for k in range(1, degree + 1)])
    d = powers @ g
    slope = np.column_stack([k * F ** (k - 1) for k in range(1, degree + 1)]) @ g
    fit = np.linalg.pinv(np.column_stack([d**k for k in range(1, degree + 1)]))
    # c is a function of g through F alone: F_d = F - (d_g - d) / slope at fixed d.
    c = np.concatenate(([0.0], fit @ F))
    J = np.vstack((np.zeros(degree), fit @ (-powers / slope[:, None])))
    return c, J @ C_g @ J.T


def loop_shape(u_N: float, degree: int, top: float) -> NDArray[np.float64]:
    """Coefficients of u_N 4 x (1 - x) with x = d / top: the uncertainty due to hysteresis.

    Readings are distributed uniformly between the branches of the loop, half of its width to either
    side of the fitted curve: u = loop / sqrt(12). A straight line cannot follow the loop: for
    degree 1 the uncertainty is u_N at all forces.
    """
    v = np.zeros(degree + 1)
    if degree == 1:
        v[0] = u_N
    else:
        v[1:3] = 4.0 * u_N / top, -4.0 * u_N / top**2
    return v


def _range(g: NDArray[np.float64], top_N: float) -> list[float]:
    """Calibrated range [mV/V]: the loaded range and its mirror image in compression."""
    end = 1.02 * abs(float(np.polyval([*g[::-1], 0.0], top_N)))
    return [float(f"{-end:.4g}"), float(f"{end:.4g}")]


def _nonlinearity_N(g: NDArray[np.float64], top_N: float) -> float:
    F = np.linspace(0.0, top_N, 200)
    d = np.polyval([*g[::-1], 0.0], F)
    return float(np.abs(d - d[-1] * F / top_N).max() / abs(g[0]))


def _hysteresis(
    every: list[Load], y: NDArray[np.float64], F: NDArray[np.float64], g_1: float
) -> dict[str, float]:
    """Hysteresis: the largest mean difference of decreasing and increasing readings [N].

    Repeatability: the largest range of equal readings of several runs [N].

    The zero is that of the same time, between the zeros that were read in the run; its drift is
    no hysteresis. The fitted drift would have a part of the loop, whose decreasing branch is later.
    """
    run, part = (np.array([getattr(load, key) for load in every]) for key in ("run", "part"))
    zero = np.empty(len(y))
    for number in set(run.tolist()):
        at = run == number
        read = at & (F == 0.0)
        zero[at] = np.interp(part[at], part[read], y[read])
    deflection = (y - zero) / g_1
    of: dict[tuple[int, float, bool], float] = {
        (load.run, load.force_N, load.rising): float(deflection[i]) for i, load in enumerate(every)
    }
    runs = sorted(set(run.tolist()))
    levels = sorted({load.force_N for load in every if not load.rising and load.force_N})
    loops = [
        float(np.mean([of[n, level, False] - of[n, level, True] for n in runs])) for level in levels
    ]
    figures = {"hysteresis_N": max((abs(loop) for loop in loops), default=0.0)}
    if len(runs) > 1:
        spreads = [
            np.ptp([of[n, level, rising] for n in runs])
            for (n_, level, rising) in of
            if n_ == runs[0] and level
        ]
        figures["repeatability_N"] = float(max(spreads))
    return figures


@dataclass(frozen=True)
class Truth:
    """A simulated transducer with known properties, which `--rehearse` reads."""

    settings: Settings
    sensitivity: float  # mV/V per N
    curvature: float = 0.001  # share of full scale, as hysteresis and creep
    hysteresis: float = 0.0005
    creep: float = 0.0003
    noise_mV_per_V: float = 0.0002
    drift_mV_per_V: float = 0.0004
    zero_mV_per_V: float = 0.011

    @property
    def truth(self) -> dict[str, float]:
        top = float(forces_N(self.settings).max())
        # The middle of the loop is 2 hysteresis x (1 - x) of full scale above the rising branch.
        half = 2.0 * self.hysteresis * self.sensitivity
        middle = self.g + np.array([half, -half / top])
        c, _ = inverted(middle, np.zeros((2, 2)), top)
        return {f"coefficients_N.{k}": float(v) for k, v in enumerate(c)}

    @property
    def g(self) -> NDArray[np.float64]:
        """g_1 and g_2 of d = g_1 F + g_2 F^2."""
        top = float(forces_N(self.settings).max())
        return np.array([self.sensitivity, -self.curvature * self.sensitivity / top])

    def read(self, step: Step, seed: int) -> float:
        s = self.settings
        noise = self.noise_mV_per_V * float(np.random.default_rng(seed).standard_normal())
        top = float(forces_N(s).max())
        if step.key.startswith("creep"):
            later = step.key.endswith("later")
            creep = self.creep * self.sensitivity * top if later else 0.0
            return self.zero_mV_per_V + self._deflection(top) + creep + noise
        load = next(load for load in loads(s) if load.key == step.key)
        share = load.force_N / top
        loop = 0.0 if load.rising else 4.0 * share * (1.0 - share) * self.hysteresis
        zero = self.zero_mV_per_V * load.run + self.drift_mV_per_V * load.part
        full = self.sensitivity * top
        return zero + self._deflection(load.force_N) + loop * full + noise

    def _deflection(self, F: float) -> float:
        return float(np.polyval([*self.g[::-1], 0.0], F))


def rehearsal(session: Session, seed: int) -> Truth:
    s = session.procedure
    off = 1.0 + 0.01 * float(np.random.default_rng(seed).uniform(-1.0, 1.0))
    return Truth(s, off * s.rated_mV_per_V / session.article.capacity_N)
