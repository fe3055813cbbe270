"""A shape memory alloy under stress: austenite fraction and strain from temperature and stress.

With the stress sigma, the temperature T and the austenite fraction xi, the strain beyond that of
unloaded austenite is

    eps = sigma / E(xi) + alpha(xi) (T - T_0) + H(sigma) (1 - xi)                               (1)
    H(sigma) = H_min + (H_max - H_min) (1 - exp(-k sigma))                                      (2)

with 1/E and alpha linear in xi. H_min is the two-way stroke of a trained wire without load, and
S = 1/E_M - 1/E_A. Grains transform at temperatures of their own. Of those that a heated wire has,
the fraction F_A lies below T, likewise F_M for a cooled wire; each F is a sum of two logistic
distributions, a core and a broad shoulder,

    F(T, sigma) = G((T - T_m(sigma)) / exp(lambda sigma)),
    G(u) = c L(u / w) + (1 - c) L((u - u_s) / (r w)),    L(x) = 1 / (1 + exp(-x))               (3)

The middle T_m rises with stress after Clausius-Clapeyron, dT/dsigma = (H + S sigma) / (rho ds):

    T_m = T_m0 + ((1 - b) sigma + b R Phi(sigma) / Phi(R)) / C,
    Phi(sigma) = integral of H + S sigma from 0 to sigma                                        (4)

C is the mean stress per kelvin from 0 to R = 150 MPa. With b = 1 the slope is thermodynamics' with
a hysteresis that no stress changes; b = 0 is the line of Liang and Rogers. What stress does to the
hysteresis makes b, one for each branch. Where H is constant and S = 0, both are sigma / C.

The same ds is the latent heat: C Phi(R) / R = rho ds, so that

    L = T_m0 C Phi(R) / (R rho)                                                                 (5)

of each side, which hysteresis makes unequal; of one transformation, their mean.

Hysteresis: xi stays where it is, but never below F_A and never above the larger of F_A and F_M. So
grains that transform first on heating transform last on cooling, a closed excursion of temperature
and stress returns to its point, and minor loops close. They are flat between the branches.

Where a share m of the grains (`minor_loop_slope`) transforms on cooling regardless of its
temperature on heating, minor loops slope. In GROUPS equal groups of these, by their temperature on
heating, the same hysteresis has its own branches, and

    xi = (1 - m) x_0 + (m / K) sum of x_k,    A_0 = F_A,  A_k = clip(K F_A - k + 1, 0, 1),
    A_k <= x_k <= max(A_k, F_M),    k = 1 .. K                                                  (6)

Minor loops still close. The outer loop is the same for every m where the branches do not overlap;
else its cooling branch lies higher, by m F_A (1 - F_M) at most. With m = 1 and many groups, a
wire that was heated to xi and cools has xi F_M: the cooling branch, scaled to the turning point.

Source
------
(1), (2): Lagoudas, Hartl, Chemisky, Machado & Popov 2012, Int. J. Plasticity 32-33, 155-183: their
strain decomposition and current transformation strain H_cur. The slope dT/dsigma = H / (rho ds) of
(4): Wollants, Roos & Delaey 1993, Prog. Mater. Sci. 37, 227-288. Hysteresis as a play between two
curves: Visintin 1994, Differential Models of Hysteresis, ch. III (generalised play). (6) is a model
of Preisach (Mayergoyz 1991, Mathematical Models of Hysteresis); its scaled branch is that of Ivshin
& Pence 1994, Int. J. Eng. Sci. 32, 681-704 (neither seen in print here). The m between that and
flat loops, and the distributions (3), a narrow core with broad tails, are this project's choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hil.mechanics.arrays import Array

REFERENCE_Pa = 150e6
ZERO_K = 273.15
GROUPS = 8


@dataclass(frozen=True)
class Branch:
    """One side of the loop, equation (3) and (4); slope is C, work_share is b, widens is lambda."""

    middle_C: float
    slope_Pa_per_K: float
    core_K: float
    shoulder_ratio: float = 3.0
    shoulder_at_K: float = 0.0
    core_share: float = 1.0
    widens_per_Pa: float = 0.0
    work_share: float = 0.5

    def distribution(self, u_K: ArrayLike) -> Array:
        """G of equation (3): the fraction that has transformed, u_K above the middle."""
        u = np.asarray(u_K, dtype=float)
        broad_K = self.shoulder_ratio * self.core_K
        core = logistic(u / self.core_K)
        shoulder = logistic((u - self.shoulder_at_K) / broad_K)
        return np.asarray(self.core_share * core + (1.0 - self.core_share) * shoulder)


@dataclass(frozen=True)
class LineBranch(Branch):
    """A branch that is a line from its start to its end, core_K apart, as makers print them."""

    def distribution(self, u_K: ArrayLike) -> Array:
        """The fraction that has transformed, u_K above the middle."""
        return np.clip(np.asarray(u_K, dtype=float) / self.core_K + 0.5, 0.0, 1.0)


@dataclass(frozen=True)
class StressLaw:
    """A wire's law under stress; see the module.

    Attributes
    ----------
    stroke_min, stroke_max, stroke_rate_per_Pa : H_min, H_max and k of equation (2)
    modulus_A_Pa, modulus_M_Pa : of austenite and martensite
    expansion_A_per_K, expansion_M_per_K : alpha of both; defaults are usual for NiTi (assumed)
    minor_loop_slope : m of equation (6), 0 to 1
    """

    heating: Branch
    cooling: Branch
    stroke_min: float
    stroke_max: float
    stroke_rate_per_Pa: float
    modulus_A_Pa: float = np.inf
    modulus_M_Pa: float = np.inf
    expansion_A_per_K: float = 11e-6
    expansion_M_per_K: float = 6.6e-6
    minor_loop_slope: float = 0.0

    def stroke(self, stress_Pa: ArrayLike) -> Array:
        """H of equation (2)."""
        remainder = np.exp(-self.stroke_rate_per_Pa * np.asarray(stress_Pa, dtype=float))
        return np.asarray(self.stroke_max - (self.stroke_max - self.stroke_min) * remainder)

    def work_J_per_m3(self, stress_Pa: ArrayLike) -> Array:
        """Phi of equation (4)."""
        s = np.asarray(stress_Pa, dtype=float)
        k, more = self.stroke_rate_per_Pa, self.stroke_max - self.stroke_min
        elastic = 0.5 * (1.0 / self.modulus_M_Pa - 1.0 / self.modulus_A_Pa) * s**2
        return np.asarray(self.stroke_max * s + more * np.expm1(-k * s) / k + elastic)

    def latent_heat_J_per_kg(self, density_kg_per_m3: float) -> tuple[float, float]:
        """L of equation (5): taken up on heating, given off on cooling."""
        mean = float(self.work_J_per_m3(REFERENCE_Pa)) / REFERENCE_Pa / density_kg_per_m3
        heating, cooling = (
            mean * side.slope_Pa_per_K * (side.middle_C + ZERO_K)
            for side in (self.heating, self.cooling)
        )
        return heating, cooling

    def middle_C(self, branch: Branch, stress_Pa: ArrayLike) -> Array:
        """T_m of equation (4), deg C."""
        s = np.asarray(stress_Pa, dtype=float)
        work = REFERENCE_Pa * self.work_J_per_m3(s) / self.work_J_per_m3(REFERENCE_Pa)
        share = branch.work_share
        return np.asarray(
            branch.middle_C + ((1.0 - share) * s + share * work) / branch.slope_Pa_per_K
        )

    def branch(self, branch: Branch, T_C: ArrayLike, stress_Pa: ArrayLike) -> Array:
        """F of equation (3): the austenite fraction along one side of the loop."""
        above_K = np.asarray(T_C, dtype=float) - self.middle_C(branch, stress_Pa)
        return branch.distribution(above_K * np.exp(-branch.widens_per_Pa * np.asarray(stress_Pa)))

    def least(self, T_C: ArrayLike, stress_Pa: ArrayLike) -> Array:
        """The least austenite fraction at a temperature and stress."""
        return self.branch(self.heating, T_C, stress_Pa)

    def most(self, T_C: ArrayLike, stress_Pa: ArrayLike) -> Array:
        """The largest austenite fraction at a temperature and stress."""
        return np.maximum(self.least(T_C, stress_Pa), self.branch(self.cooling, T_C, stress_Pa))

    def moved(self, xi: ArrayLike, T_C: ArrayLike, stress_Pa: ArrayLike) -> Array:
        """The austenite fraction, of flat minor loops, once T and stress have come here from xi."""
        return np.clip(xi, self.least(T_C, stress_Pa), self.most(T_C, stress_Pa))

    def parts(self, xi: float) -> Array:
        """x_0 .. x_K of equation (6) of a wire that was heated until it had xi."""
        return np.concatenate([[xi], np.clip(GROUPS * xi - np.arange(GROUPS), 0.0, 1.0)])

    def parts_moved(self, parts: Array, T_C: float, stress_Pa: float) -> Array:
        """x_0 .. x_K once temperature and stress have come here from `parts`."""
        least = self.parts(float(self.least(T_C, stress_Pa)))
        return np.clip(parts, least, np.maximum(least, self.branch(self.cooling, T_C, stress_Pa)))

    def whole(self, parts: Array) -> float:
        """The austenite fraction of equation (6)."""
        m = self.minor_loop_slope
        return float((1.0 - m) * parts[0] + m * np.mean(parts[1:]))

    def strain(self, xi: ArrayLike, T_C: ArrayLike, stress_Pa: ArrayLike, zero_C: float) -> Array:
        """The strain of equation (1), T_0 = zero_C."""
        x, s = np.asarray(xi, dtype=float), np.asarray(stress_Pa, dtype=float)
        elastic = s * (x / self.modulus_A_Pa + (1.0 - x) / self.modulus_M_Pa)
        alpha = x * self.expansion_A_per_K + (1.0 - x) * self.expansion_M_per_K
        warm_K = np.asarray(T_C, dtype=float) - zero_C
        return np.asarray(elastic + alpha * warm_K + self.stroke(s) * (1.0 - x))


def logistic(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * np.asarray(x, dtype=float)))
