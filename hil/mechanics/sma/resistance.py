"""The electrical resistance of a wire: by its phases, its temperature and its length.

A wire of the resting length l and cross-section A_0, with the austenite fraction xi, the
temperature T and the strain e of transformation, measured from austenite's length, has

    R = l / A_0 (rho_M(T) (1 - xi) + rho_P(T) xi) (1 + k e)

    rho_M = rho_M0 (1 + a_M (T - T_0)),    rho_A = rho_A0 (1 + a_A (T - T_0))
    rho_P = rho_A + (rho_R - rho_A) clip((R_s - T) / (R_s - R_f), 0, 1)

k is dR/R by geometry: L (1 + e) over A = A_0 / (1 + e) at constant volume gives k = 2, to first
order. rho_P is the parent phase, which below R_s is R-phase: it has a resistance of its own, little
strain and a hysteresis of 1 to 2 K, neglected here. Martensite turns into austenite above R_s, so
R-phase shows on cooling alone.

Sources
-------
Law of mixture and geometry: Ikuta, Tsukamoto & Hirose 1988, Shape memory alloy servo actuator
system with electric resistance feedback (ICRA); Novak, Sittner, Dayananda, Braz-Fernandes & Mahesh
2008, Electric resistance variation of NiTi shape memory alloy wires in thermomechanical tests,
Mater. Sci. Eng. A 481-482 (neither seen in print here). R-phase in self-sensing: abstract of doi
10.1177/1045389X261417975. No value is taken from them.

Resistivities in print contradict each other: F1140 has 80 (martensite) and 100 microOhm cm
(austenite), Nitinol's usual figures are 76 and 82, and loaded actuator wires lose a tenth of their
resistance when they contract. Geometry takes 8 % of that at 4 % strain. So measure the two ends of
the own wire.
"""

from dataclasses import dataclass

import numpy as np

from hil.compiled import njit
from hil.mechanics.arrays import Record, record_type

NO_R_PHASE = 0.0


@dataclass(frozen=True)
class Resistivity:
    """What moves a wire's resistance beside its phases; by default nothing does.

    Attributes
    ----------
    martensite_per_K, austenite_per_K : a_M, a_A
    at_C : T_0, at which the resistances of the two phases hold
    per_strain : k
    r_phase_Ohm_per_m : of R-phase at every temperature; 0: there is no R-phase
    R_s_C, R_f_C : where R-phase begins and is complete on cooling
    strain : of martensite; where no stress moves it, the strain is strain (1 - xi)
    """

    martensite_per_K: float = 0.0
    austenite_per_K: float = 0.0
    at_C: float = 25.0
    per_strain: float = 0.0
    r_phase_Ohm_per_m: float = NO_R_PHASE
    R_s_C: float = 60.0
    R_f_C: float = 50.0
    strain: float = 0.04

    def __post_init__(self) -> None:
        if not self.R_f_C < self.R_s_C:
            raise ValueError("R_f_C must be below R_s_C")

    @property
    def constants(self) -> Record:
        """A record of RESISTIVITY, as `ohm_per_m` takes it."""
        values = tuple(vars(self)[name] for name in RESISTIVITY.names or ())
        constants: Record = np.array([values], RESISTIVITY)[0]
        return constants

    @property
    def varies(self) -> bool:
        """Whether anything but the two phases moves the resistance."""
        moved = (self.martensite_per_K, self.austenite_per_K, self.per_strain)
        return any(moved) or self.r_phase_Ohm_per_m != NO_R_PHASE


RESISTIVITY = record_type(
    "martensite_per_K", "austenite_per_K", "at_C", "per_strain", "r_phase_Ohm_per_m", "R_s_C",
    "R_f_C",
)  # fmt: skip


@njit(cache=True, error_model="numpy")
def ohm_per_m(c, r_M, r_A, T, xi, strain):  # type: ignore[no-untyped-def]
    """R / l; c is a record of RESISTIVITY, r_M and r_A are the phases' at T_0."""
    martensite = r_M * (1.0 + c.martensite_per_K * (T - c.at_C))
    parent = r_A * (1.0 + c.austenite_per_K * (T - c.at_C))
    if c.r_phase_Ohm_per_m > 0.0:
        complete = min(1.0, max(0.0, (c.R_s_C - T) / (c.R_s_C - c.R_f_C)))
        parent += (c.r_phase_Ohm_per_m - parent) * complete
    return (martensite + (parent - martensite) * xi) * (1.0 + c.per_strain * strain)


@njit(cache=True, error_model="numpy")
def vertex_C(c, r_M, r_A, xi):  # type: ignore[no-untyped-def]
    """T at the vertex of the parabola by which R of a fraction depends on T from R_f to R_s.

    The vertex may lie outside these corners, where R is linear; without one, T is R_s.
    dR/dT ~ (1 - xi) r_M a_M + xi (r_A a_A (2 T - T_0 - R_f) + r_A - r_R) / (R_s - R_f)
    """
    per_K = r_A * c.austenite_per_K
    if xi * per_K == 0.0:
        return c.R_s_C
    others = (1.0 - xi) / xi * r_M * c.martensite_per_K * (c.R_s_C - c.R_f_C)
    return 0.5 * (c.at_C + c.R_f_C + (c.r_phase_Ohm_per_m - r_A - others) / per_K)
