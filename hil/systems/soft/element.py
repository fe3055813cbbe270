"""Viscoelastic elements: springs, dampers and Maxwell branches in parallel at one joint.

    Q = k (q - q0) + c (q' - q0') + sum_b R_b,    R_b' = kM_b q' - R_b / tau_b,  tau_b = cM_b / kM_b

Voigt: k and c. Maxwell: one branch. Standard linear solid: k and one branch. Prony series: k and
any number of branches. For a joint rate linear from v to v+ over a step h, a branch is exact:

    R+ = E R + kM (Ac v + Bc v+)
    E = exp(-z), z = h/tau, Bc = tau (1 - (1-E)/z), Ac = tau (1-E) - Bc

Source: Iwamura et al., eqs (5) and (6). Eq. (6) needs +Q(0) instead of -Q0 to be continuous at
t = 0. It is not evaluated as printed: exp(k t / c) overflows, and the integral over the complete
history becomes more expensive at every step.
"""

from dataclasses import dataclass

import numpy as np

from hil.compiled import njit
from hil.errors import ModelError

SERIES_BELOW = 0.05  # z below which 1 - (1-E)/z loses digits


@dataclass(frozen=True)
class Element:
    """Viscoelastic element of one joint.

    Attributes
    ----------
    k, c : N m/rad and N m s/rad (N/m and N s/m at a sliding joint)
    branches : tuple of (kM, tau_s)
        Maxwell branches.

    Raises
    ------
    ModelError
        A value is negative or not finite, a branch has no stiffness or time constant, or the
        element is empty.
    """

    k: float = 0.0
    c: float = 0.0
    branches: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("k", self.k), ("c", self.c)):
            if not (np.isfinite(value) and value >= 0.0):
                raise ModelError(f"element: {name} = {value}: must not be negative")
        for stiffness, tau_s in self.branches:
            if not (np.isfinite(stiffness) and stiffness > 0.0):
                raise ModelError(f"element: kM = {stiffness}: a branch needs stiffness above zero")
            if not (np.isfinite(tau_s) and tau_s > 0.0):
                raise ModelError(
                    f"element: tau = {tau_s} s: a branch needs a time above zero; "
                    f"at zero it does nothing, in the limit kM tau = c it is a damper c"
                )
        if self.k == 0.0 and self.c == 0.0 and not self.branches:
            raise ModelError(
                "element: zero stiffness with zero damping: give k, c or a branch, "
                "or no element for a free joint"
            )


@dataclass(frozen=True)
class Material:
    """A linear viscoelastic solid; shares are fractions of Young's modulus E.

    Attributes
    ----------
    elastic_share : permanent stiffness
    loss_s : damping over stiffness, c/k, of the Voigt part
    branches : tuple of (share, tau_s)
    """

    youngs_Pa: float
    density_kg_per_m3: float
    elastic_share: float = 1.0
    loss_s: float = 0.0
    branches: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("youngs_Pa", "density_kg_per_m3"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"material: {name} = {value}: must be above zero")
        if not (np.isfinite(self.loss_s) and self.loss_s >= 0.0):
            raise ModelError(f"material: loss_s = {self.loss_s}: a loss must not be negative")
        self.element(1.0)

    @classmethod
    def voigt(cls, youngs_Pa: float, density_kg_per_m3: float, loss_s: float) -> "Material":
        """Return a spring and a damper in parallel, eq. (5)."""
        return cls(youngs_Pa, density_kg_per_m3, loss_s=loss_s)

    @classmethod
    def maxwell(cls, youngs_Pa: float, density_kg_per_m3: float, tau_s: float) -> "Material":
        """Return a spring and a damper in series, eq. (6): a material that flows."""
        return cls(youngs_Pa, density_kg_per_m3, elastic_share=0.0, branches=((1.0, tau_s),))

    @classmethod
    def solid(
        cls, youngs_Pa: float, density_kg_per_m3: float, elastic_share: float, tau_s: float
    ) -> "Material":
        """Return a spring in parallel with a Maxwell element that has the remaining stiffness."""
        rest = ((1.0 - elastic_share, tau_s),)
        return cls(youngs_Pa, density_kg_per_m3, elastic_share=elastic_share, branches=rest)

    def element(self, stiffness: float) -> Element:
        """Return the element of a joint, given its purely elastic stiffness."""
        k = self.elastic_share * stiffness
        branches = tuple((share * stiffness, tau_s) for share, tau_s in self.branches)
        return Element(k, self.loss_s * k, branches)


@njit(cache=True, error_model="numpy")
def branch_coefficients(h, tau):  # type: ignore[no-untyped-def]
    """Return E, Ac and Bc of one branch; Ac and Bc must be multiplied by kM."""
    z = h / tau
    if z < SERIES_BELOW:
        # tau (z/2 - z^2/6 + z^3/24 - ...), term by term
        term, total = 0.5 * z, 0.0
        for n in range(3, 16):
            total += term
            term *= -z / n
        Bc = tau * total
    else:
        Bc = tau * (1.0 + np.expm1(-z) / z)
    return np.exp(-z), -tau * np.expm1(-z) - Bc, Bc
