"""Laws of others, and the law without stress, fitted to loops as this project's law is.

All have the same optimiser, residuals and expansion of both phases. Cosines and lines transform the
whole wire between four temperatures; in that is their freedom, beside what stress does:

- without stress: the distributions of `hil.mechanics.sma.stress`, at the same place for all loops,
  with one stroke;
- Liang & Rogers 1990, J. Intell. Mater. Syst. Struct. 1, 207-234, eqs (14) and (16): cosines moved
  by sigma / C_A and sigma / C_M, one stroke;
- Brinson 1993, J. Intell. Mater. Syst. Struct. 4, 229-242, eqs (23) to (25): the fraction that
  stress turns follows from critical stresses, sigma_s and sigma_f below M_s, C_M above it;
- Boyd & Lagoudas 1996, Int. J. Plasticity 12, 805-842: polynomial hardening, which makes a line at
  constant stress, moved by H sigma / (rho ds) on both branches alike, one stroke.

Two of them are also fitted with the stroke H(sigma) of `hil.mechanics.sma.stress`, which their
authors did not give them: what is left then is the shape of their branches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hil.identification.wire_loops.fit import MPa, best, middle_of
from hil.identification.wire_loops.loops import Loop, hot_end
from hil.mechanics.arrays import Array

Law = Callable[[Array, Array, float, bool], Array]
"""Martensite that strains, times the stroke, from parameters, T in deg C, MPa, on heating."""
WIDTHS = (0.02, 0.06, 0.15)  # of the span of temperature: A_f - A_s where the fit begins
EXPANSION = ((11.0, 10.0), (6.6, 10.0))  # ppm/K: prior and standard deviation of both phases


@dataclass(frozen=True)
class Rival:
    """A law: its name, its strain, and where its fit begins."""

    name: str
    law: Law
    start: Callable[[Sequence[Loop], float], list[float]]

    def fitted(self, loops: Sequence[Loop]) -> Callable[[Loop], Array]:
        """The strain along any loop, above its hot end, once it fits these."""
        span_K = max(float(np.ptp(loop.T_C)) for loop in loops)
        starts = [np.array([11.0, 6.6, *self.start(loops, width * span_K)]) for width in WIDTHS]
        n = len(starts[0])
        sd = np.array([EXPANSION[0][1], EXPANSION[1][1], *[np.inf] * (n - 2)])
        fit = best(self.strain, loops, starts, (starts[0], sd), np.full(n, -np.inf))
        return lambda loop: self.strain(fit.theta, loop)

    def strain(self, theta: Array, loop: Loop) -> Array:
        """Along a loop, above its hot end."""
        T_C, s = loop.T_C, loop.stress_Pa / MPa
        ends = np.array([T_C.min(), T_C.max()])
        most = float(self.law(theta[2:], ends[:1], s, False)[0])
        least = float(self.law(theta[2:], ends[1:], s, True)[0])
        pulled = np.where(
            loop.heating,
            np.minimum(self.law(theta[2:], T_C, s, True), most),
            np.maximum(self.law(theta[2:], T_C, s, False), least),
        )
        share = np.clip(pulled / max(abs(most), 1e-9), 0.0, 1.0)
        warm_K = 1e-6 * (T_C - ends[1]) * (theta[1] * share + theta[0] * (1.0 - share))
        strain = pulled + warm_K
        return np.asarray(strain - strain[hot_end(T_C)].mean())


def _cosine(u: Array) -> Array:
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * np.clip(u, 0.0, 1.0)))


def _line(u: Array) -> Array:
    return np.clip(u, 0.0, 1.0)


def _middles(loops: Sequence[Loop], heating: bool) -> tuple[float, float]:
    """Middle without stress and K/MPa, by a line through the loops' middles."""
    strokes = [loop.stroke for loop in loops]
    stress_MPa = [loop.stress_Pa / MPa for loop in loops]
    middles = [middle_of(loop, heating) for loop in loops]
    per_MPa, middle_C = np.polyfit(stress_MPa, middles, 1, w=strokes)
    return float(middle_C), float(per_MPa)


def _largest(loops: Sequence[Loop]) -> float:
    return max(loop.stroke for loop in loops)


def _between(shape: Callable[[Array], Array], n_slopes: int, stroke_bends: bool) -> Law:
    """Martensite by a shape between four temperatures that stress moves in a line."""

    def law(theta: Array, T_C: Array, s: float, heating: bool) -> Array:
        middle, ln_width = theta[:2] if heating else theta[2:4]
        per_MPa = theta[4] if heating else theta[3 + n_slopes]
        stroke = theta[4 + n_slopes]
        if stroke_bends:
            more, ln_rate, softer = theta[5 + n_slopes :]
            stroke = stroke - more * np.expm1(-np.exp(ln_rate) * s) + softer * s
        below = shape((middle + per_MPa * s - T_C) / np.exp(ln_width) + 0.5)
        return np.asarray(stroke * below)

    return law


def _between_start(n_slopes: int, stroke_bends: bool) -> Callable[..., list[float]]:
    def start(loops: Sequence[Loop], width_K: float) -> list[float]:
        lines, ln_width = [_middles(loops, True), _middles(loops, False)], float(np.log(width_K))
        slopes = [per_MPa for _, per_MPa in lines]
        theta = [lines[0][0], ln_width, lines[1][0], ln_width]
        theta += slopes if n_slopes == 2 else [float(np.mean(slopes))]
        stroke = _largest(loops)
        if stroke_bends:
            return [*theta, 0.3 * stroke, 0.8 * stroke, float(np.log(0.012)), 0.0]
        return [*theta, stroke]

    return start


def _unstressed(theta: Array, T_C: Array, s: float, heating: bool) -> Array:
    stroke, part = theta[0], theta[1:6] if heating else theta[6:11]
    middle, ln_core, ln_ratio, at, logit = part
    core_K, ratio = np.exp(ln_core), 1.0 + np.exp(ln_ratio)
    share = 0.5 + 0.5 * np.tanh(0.5 * logit)
    u = middle - T_C
    core, shoulder = np.tanh(0.5 * u / core_K), np.tanh(0.5 * (u / (ratio * core_K) + at))
    return np.asarray(stroke * (0.5 + 0.5 * (share * core + (1.0 - share) * shoulder)))


def _unstressed_start(loops: Sequence[Loop], width_K: float) -> list[float]:
    theta = [_largest(loops)]
    for heating in (True, False):
        middle = float(np.mean([middle_of(loop, heating) for loop in loops]))
        theta += [middle, float(np.log(0.25 * width_K)), np.log(3.0), 0.0, 0.0]
    return theta


def _brinson(theta: Array, T_C: Array, s: float, heating: bool) -> Array:
    A_mid, ln_width, A_per_MPa, M_s, C_M, critical, ln_more, stroke = theta
    if heating:
        return np.asarray(
            _brinson_cold(M_s, C_M, critical, ln_more, stroke, np.full(1, -1e4), s)
            * _cosine((A_mid + A_per_MPa * s - T_C) / np.exp(ln_width) + 0.5)
        )
    return _brinson_cold(M_s, C_M, critical, ln_more, stroke, T_C, s)


def _brinson_cold(
    M_s: float, C_M: float, critical: float, ln_more: float, stroke: float, T_C: Array, s: float
) -> Array:
    start_MPa = critical + C_M * np.maximum(T_C - M_s, 0.0)
    return np.asarray(stroke * _cosine((s - start_MPa) / np.exp(ln_more)))


def _brinson_start(loops: Sequence[Loop], width_K: float) -> list[float]:
    A_mid, A_per_MPa = _middles(loops, True)
    M_mid, M_per_MPa = _middles(loops, False)
    most_MPa = max(loop.stress_Pa for loop in loops) / MPa
    C_M = 1.0 / max(M_per_MPa, 0.02)
    theta = [A_mid, float(np.log(width_K)), A_per_MPa, M_mid, C_M, -0.5 * width_K * C_M]
    return [*theta, float(np.log(0.5 * most_MPa)), _largest(loops)]


RIVALS = (
    Rival("without stress", _unstressed, _unstressed_start),
    Rival("Liang-Rogers", _between(_cosine, 2, False), _between_start(2, False)),
    Rival("Brinson", _brinson, _brinson_start),
    Rival("Boyd-Lagoudas", _between(_line, 1, False), _between_start(1, False)),
    Rival("Liang-Rogers, H(sigma)", _between(_cosine, 2, True), _between_start(2, True)),
    Rival("Boyd-Lagoudas, H(sigma)", _between(_line, 1, True), _between_start(1, True)),
)
