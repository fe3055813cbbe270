"""Hill-type muscle with serial damping and an eccentric branch, compiled, for many muscles.

A contractile element (CE) and a parallel elastic element (PEE) are in parallel, and in series with
a serial elastic element (SEE) and a serial damper (SDE), which are in parallel too:

    F_CE + F_PEE = F_SEE + F_SDE = F_MTC

The state of a muscle is l_CE; its rate solves C2 v^2 + C1 v + C0 = 0 (39). Lengthening uses the
same equation with A_e = -F_e q F_isom and B_e = B (1 - F_e) q F_isom / (S_e (q F_isom + A)).
The force balance at v = 0 selects the branch (`rate`); the other root is not physical.

Source: Haeufle, Guenther, Bayer & Schmitt 2014, J. Biomech. 47(6), as printed in Makkonen 2021,
eqs (25)-(43); (34), printed as F_PEE(l_CE), is F_SEE(l_SEE). Activation: Thelen 2003, J. Biomech.
Eng. 125(1).
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np

from hil.compiled import njit
from hil.errors import ModelError
from hil.mechanics.arrays import Array, Record, Records, record_type

HILL = record_type(
    "F_max", "l_CE_opt", "dW_des", "dW_asc", "v_CE_des", "v_CE_asc", "A_rel_0", "B_rel_0", "S_e",
    "F_e", "l_PEE_0", "v_PEE", "K_PEE", "d_max", "R_SE", "l_SEE_0", "l_SEE_nll", "v_SEE", "K_nl",
    "K_l", "dF_SEE_0",
)  # fmt: skip
"""A muscle as kernels take it: `Hill`, with the constants that follow from it."""
ACTIVATION_MIN = 0.001
"""q of a muscle without stimulation. Source: Makkonen 2021, app. I."""
_BISECTIONS = 100


@dataclass(frozen=True)
class Hill:
    """Parameters of one muscle-tendon complex, with the symbols of Makkonen 2021, Table 6.

    Lengths in m, forces in N; the others are dimensionless. Defaults are the values that all
    muscles of Table 6 share.

    Raises
    ------
    ModelError
        A value is outside its physical range.
    """

    F_max_N: float
    l_CE_opt_m: float
    l_SEE_0_m: float
    dW_des: float = 0.35
    dW_asc: float = 0.35
    v_CE_des: float = 1.5
    v_CE_asc: float = 3.0
    A_rel_0: float = 0.25
    B_rel_0: float = 2.25
    S_e: float = 2.0
    F_e: float = 1.5
    L_PEE_0: float = 0.9
    v_PEE: float = 2.5
    F_PEE: float = 2.0
    D_SE: float = 0.3
    R_SE: float = 0.01
    dU_SEE_nll: float = 0.0425
    dU_SEE_l: float = 0.017
    dF_SEE_0_N: float = 568.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"{name} = {value:g}: must be above 0")
        if self.F_e <= 1.0:
            raise ModelError(f"F_e = {self.F_e:g}: a lengthening muscle gives more: choose above 1")
        if self.R_SE > 1.0:
            raise ModelError(f"R_SE = {self.R_SE:g}: is a fraction: choose up to 1")
        if self.L_PEE_0 >= 1.0 + self.dW_des:
            raise ModelError(f"L_PEE_0 = {self.L_PEE_0:g}: must be below 1 + dW_des")

    def constants(self) -> Record:
        """Return what kernels take of the muscle, a record of HILL."""
        c: Record = np.zeros(1, HILL)[0]
        p = self
        c.F_max, c.l_CE_opt = p.F_max_N, p.l_CE_opt_m
        c.dW_des, c.dW_asc, c.v_CE_des, c.v_CE_asc = p.dW_des, p.dW_asc, p.v_CE_des, p.v_CE_asc
        c.A_rel_0, c.B_rel_0, c.S_e, c.F_e = p.A_rel_0, p.B_rel_0, p.S_e, p.F_e
        c.v_PEE, c.R_SE, c.dF_SEE_0 = p.v_PEE, p.R_SE, p.dF_SEE_0_N
        c.l_PEE_0 = p.L_PEE_0 * p.l_CE_opt_m  # (29)
        c.K_PEE = p.F_PEE * p.F_max_N / (p.l_CE_opt_m * (p.dW_des + 1.0 - p.L_PEE_0)) ** p.v_PEE
        c.d_max = p.D_SE * p.F_max_N * p.A_rel_0 / (p.l_CE_opt_m * p.B_rel_0)  # (33)
        c.l_SEE_0, c.l_SEE_nll = p.l_SEE_0_m, (1.0 + p.dU_SEE_nll) * p.l_SEE_0_m
        c.v_SEE = v_see = p.dU_SEE_nll / p.dU_SEE_l  # (36)
        c.K_nl = p.dF_SEE_0_N / (p.dU_SEE_nll * p.l_SEE_0_m) ** v_see  # (37)
        c.K_l = p.dF_SEE_0_N / (p.dU_SEE_l * p.l_SEE_0_m)  # (38)
        return c


@dataclass(frozen=True)
class ActivationTimes:
    """Time constants of activation: a' = (u - a) / tau, with tau = tau_act (0.5 + 1.5 a) while
    rising and tau_deact / (0.5 + 1.5 a) while falling. Source: Thelen 2003, eqs (1), (2).
    """

    tau_act_s: float = 0.01
    tau_deact_s: float = 0.04

    def __post_init__(self) -> None:
        for name, value in zip(("tau_act_s", "tau_deact_s"), astuple(self), strict=True):
            if not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"{name} = {value:g}: must be above 0")


class Muscles:
    """Many muscles at once; arguments and results have one entry per muscle.

    Arguments broadcast against the M muscles on the last axis.
    """

    def __init__(self, muscles: Sequence[Hill]) -> None:
        self.parameters: Records = np.array([m.constants() for m in muscles], HILL)

    def rates(self, l_CE: Array, l_MTC: Array, v_MTC: Array, q: Array) -> tuple[Array, ...]:
        """Return the rate of l_CE, the tendon force F_MTC, and F_CE."""
        arrays = np.broadcast_arrays(l_CE, l_MTC, v_MTC, q)
        shape = arrays[0].shape
        n_muscles = len(self.parameters)
        flat = [np.ascontiguousarray(g, dtype=float).reshape(-1, n_muscles) for g in arrays]
        out = np.empty((3, *flat[0].shape))
        _rates(self.parameters, flat[0], flat[1], flat[2], flat[3], out)
        return out[0].reshape(shape), out[1].reshape(shape), out[2].reshape(shape)

    def at_rest(self, l_MTC: Array, q: Array) -> Array:
        """Return l_CE in static equilibrium, (M,).

        Raises
        ------
        ModelError
            A muscle's path is no longer than its slack tendon.
        """
        l_CE = np.empty(len(self.parameters))
        for i, p in enumerate(self.parameters):
            if l_MTC[i] <= p.l_SEE_0:
                raise ModelError(
                    f"{i}: its path of {l_MTC[i]:.4g} m is no longer than its slack tendon of "
                    f"{p.l_SEE_0:g} m: lower l_SEE_0_m or lengthen the path"
                )
            l_CE[i] = equilibrium(p, l_MTC[i], q[i])
        return l_CE


@njit(cache=True, error_model="numpy")
def isometric(p, l_ce):  # type: ignore[no-untyped-def]
    """F_isom, (25); dimensionless."""
    x = l_ce / p.l_CE_opt - 1.0
    if x > 0.0:
        return np.exp(-((x / p.dW_des) ** p.v_CE_des))
    return np.exp(-((-x / p.dW_asc) ** p.v_CE_asc))


@njit(cache=True, error_model="numpy")
def parallel(p, l_ce):  # type: ignore[no-untyped-def]
    """F_PEE, (30)."""
    stretch = l_ce - p.l_PEE_0
    return p.K_PEE * stretch**p.v_PEE if stretch > 0.0 else 0.0


@njit(cache=True, error_model="numpy")
def serial(p, l_see):  # type: ignore[no-untyped-def]
    """F_SEE, (34)."""
    if l_see <= p.l_SEE_0:
        return 0.0
    if l_see < p.l_SEE_nll:
        return p.K_nl * (l_see - p.l_SEE_0) ** p.v_SEE
    return p.dF_SEE_0 + p.K_l * (l_see - p.l_SEE_nll)


@njit(cache=True, error_model="numpy")
def serial_length(p, force):  # type: ignore[no-untyped-def]
    """l_SEE at which the tendon has this force, the inverse of (34)."""
    if force <= 0.0:
        return p.l_SEE_0
    if force < p.dF_SEE_0:
        return p.l_SEE_0 + (force / p.K_nl) ** (1.0 / p.v_SEE)
    return p.l_SEE_nll + (force - p.dF_SEE_0) / p.K_l


@njit(cache=True, error_model="numpy")
def hill_constants(p, l_ce, q, f_isom):  # type: ignore[no-untyped-def]
    """A_rel (27) and B_rel (28) of a shortening muscle."""
    a = p.A_rel_0 * 0.25 * (1.0 + 3.0 * q)
    if l_ce >= p.l_CE_opt:
        a *= f_isom
    return a, p.B_rel_0 * (3.0 + 4.0 * q) / 7.0


@njit(cache=True, error_model="numpy")
def contractile(p, l_ce, v_ce, q):  # type: ignore[no-untyped-def]
    """F_CE at a rate of l_CE; shortening (26) or lengthening."""
    f = isometric(p, l_ce)
    a, b = hill_constants(p, l_ce, q, f)
    if v_ce > 0.0:
        b *= (1.0 - p.F_e) * q * f / (p.S_e * (q * f + a))
        a = -p.F_e * q * f
        if b == 0.0:
            return -p.F_max * a
    return p.F_max * ((q * f + a) / (1.0 - v_ce / (b * p.l_CE_opt)) - a)


@njit(cache=True, error_model="numpy")
def damper(p, f_ce, f_pee, v_mtc, v_ce):  # type: ignore[no-untyped-def]
    """F_SDE, (32)."""
    share = (1.0 - p.R_SE) * (f_ce + f_pee) / p.F_max + p.R_SE
    return p.d_max * share * (v_mtc - v_ce)


@njit(cache=True, error_model="numpy")
def rate(p, l_ce, l_mtc, v_mtc, q):  # type: ignore[no-untyped-def]
    """Return the rate of l_CE, F_MTC and F_CE.

    At v = 0 the CE lengthens if SEE and SDE pull harder than CE and PEE. Each root is computed in
    the form without cancellation.
    """
    f_max, l_opt, r = p.F_max, p.l_CE_opt, p.R_SE
    f = isometric(p, l_ce)
    a, b = hill_constants(p, l_ce, q, f)
    f_pee, f_see = parallel(p, l_ce), serial(p, l_mtc - l_ce)
    at_rest = p.d_max * (r + (1.0 - r) * (q * f + f_pee / f_max))  # D0 / (l_opt B)
    pull = f_see + at_rest * v_mtc - f_max * q * f - f_pee
    lengthens = pull > 0.0
    if lengthens:
        b *= (1.0 - p.F_e) * q * f / (p.S_e * (q * f + a))
        a = -p.F_e * q * f
    c2 = p.d_max * (r - (a - f_pee / f_max) * (1.0 - r))  # (41)
    d0 = l_opt * b * at_rest  # (40)
    minus_c1 = c2 * v_mtc + d0 + f_see - f_pee + f_max * a  # (42)
    c0 = l_opt * b * pull  # (43)
    root = np.sqrt(max(minus_c1 * minus_c1 - 4.0 * c2 * c0, 0.0))
    if lengthens:
        v = (minus_c1 + root) / (2.0 * c2) if minus_c1 > 0.0 else 2.0 * c0 / (minus_c1 - root)
    elif minus_c1 >= 0.0:
        v = 2.0 * c0 / (minus_c1 + root) if minus_c1 + root > 0.0 else 0.0
    else:
        v = (minus_c1 - root) / (2.0 * c2)
    if lengthens and b == 0.0:
        f_ce = -f_max * a
    else:
        f_ce = f_max * ((q * f + a) / (1.0 - v / (b * l_opt)) - a)
    return v, f_ce + f_pee, f_ce


@njit(cache=True, error_model="numpy")
def equilibrium(p, l_mtc, q):  # type: ignore[no-untyped-def]
    """l_CE at which CE and PEE balance the SEE at rest; bisection always converges."""
    low, high = 0.0, l_mtc - p.l_SEE_0
    for _ in range(_BISECTIONS):
        l_ce = 0.5 * (low + high)
        held = q * p.F_max * isometric(p, l_ce) + parallel(p, l_ce)
        if serial(p, l_mtc - l_ce) > held:
            low = l_ce
        else:
            high = l_ce
    return 0.5 * (low + high)


@njit(cache=True, error_model="numpy")
def tensions_at_rest(muscles, l_mtc, q, tension):  # type: ignore[no-untyped-def]
    """Write F_MTC of every muscle in static equilibrium, (M,)."""
    for i in range(len(muscles)):
        p = muscles[i]
        tension[i] = serial(p, l_mtc[i] - equilibrium(p, l_mtc[i], q[i]))


@njit(cache=True, error_model="numpy")
def activation_rate(u, a, tau_act, tau_deact):  # type: ignore[no-untyped-def]
    """Return a' of Thelen 2003, eqs (1), (2)."""
    slow = 0.5 + 1.5 * a
    return (u - a) / (tau_act * slow if u > a else tau_deact / slow)


@njit(cache=True)
def _rates(parameters, l_ce, l_mtc, v_mtc, q, out):  # type: ignore[no-untyped-def]
    for k in range(len(l_ce)):
        for i in range(len(parameters)):
            v, f_mtc, f_ce = rate(parameters[i], l_ce[k, i], l_mtc[k, i], v_mtc[k, i], q[k, i])
            out[0, k, i], out[1, k, i], out[2, k, i] = v, f_mtc, f_ce
