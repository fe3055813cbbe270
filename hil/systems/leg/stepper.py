"""Time integration of a limb with muscles: stiff, error-controlled steps, compiled.

State x = (angles, rates, l_CE of every muscle, and activations if they have dynamics); inputs u,
one stimulation per muscle, are held constant. At q = 0.001 a lengthening fibre relaxes within
0.3 ms, which requires a linearly implicit method: Rodas, of order 4(3), L-stable and stiffly
accurate, with a Jacobian by forward differences. The error alone determines the step length, not
the period; the last step length carries over to the next period.

Source: Hairer & Wanner 1996, *Solving Ordinary Differential Equations II*, section IV.7 (RODAS);
step control: eqs (IV.8.19), (IV.8.20) without the predictive part.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit, put
from hil.errors import ModelError
from hil.mechanics.arrays import Array, Records
from hil.systems.leg import minimal, muscle
from hil.systems.leg.limb import Limb
from hil.systems.leg.muscle import ActivationTimes

GAMMA = 0.25
_A = np.zeros((6, 6))
_C = np.zeros((6, 6))
_A[1, :1] = 1.544
_A[2, :2] = 0.9466785280815826, 0.2557011698983284
_A[3, :3] = 3.314825187068521, 2.896124015972201, 0.9986419139977817
_A[4, :4] = 1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950
_A[5, :5] = *_A[4, :4], 1.0
_C[1, :1] = -5.6688
_C[2, :2] = -2.430093356833875, -0.2063599157091915
_C[3, :3] = -0.1073529058151375, -9.594562251023355, -20.47028614809616
_C[4, :4] = 7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160
_C[5, :5] = (
    8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054
)  # fmt: skip
H_MIN_S = 1e-9
"""Below this step length, the equations are considered unsolvable."""
GROW_MAX, SHRINK_MAX, SAFETY = 5.0, 0.2, 0.9


@dataclass(frozen=True)
class Tolerances:
    """Tolerances of a step's error: rtol |x| + atol.

    With these values, halving the steps changes the height of the leg's control point by less
    than 1e-3 mm, for activations that jump every period (tests/systems/leg).
    """

    rtol: float = 1e-6
    angle_rad: float = 1e-8
    rate_rad_per_s: float = 1e-6
    length_m: float = 1e-9
    activation: float = 1e-8
    h_max_s: float = 1.0


TOLERANCES = Tolerances()


class Scratch(NamedTuple):
    """Scratch arrays of the method."""

    muscles: Records
    times: Array  # tau_act, tau_deact; empty without activation dynamics
    atol: Array
    force: Array  # (M, 2) F_MTC and F_CE of the last evaluation
    tension: Array
    v_dot: Array
    control: Array  # length of the next step, rtol, largest step, 1 or 0: the paths' rates count
    J: Array
    LU: Array
    pivot: NDArray[np.int64]
    k: Array
    f: Array
    y: Array
    counts: NDArray[np.int64]  # steps taken, steps rejected, evaluations


class LimbStepper:
    """State of a limb, and its integration.

    Attributes
    ----------
    x : (n,) array, angles, rates, l_CE, activations
    links, work
        The compiled limb; after `look`, `work` holds positions, path lengths and their rates.
    body_link : link of each body

    Parameters
    ----------
    path_rates : False: the muscles' contraction takes the rates of their paths as zero

    Raises
    ------
    ModelError
        At the start of the limb, a muscle is shorter than its slack tendon.
    """

    def __init__(
        self,
        limb: Limb,
        activation: ActivationTimes | None = None,
        tolerances: Tolerances = TOLERANCES,
        path_rates: bool = True,
    ) -> None:
        self.limb = limb
        self.links, self.body_link = minimal.links_of(limb)
        self.work = minimal.work_for(self.links)
        self.n_q, self.n_m = len(self.links.parent), len(limb.muscles)
        n_a = self.n_m if activation is not None else 0
        n, t = 2 * self.n_q + self.n_m + n_a, tolerances
        atol = np.concatenate(
            [np.full(size, tol) for size, tol in (
                (self.n_q, t.angle_rad), (self.n_q, t.rate_rad_per_s), (self.n_m, t.length_m),
                (n_a, t.activation),
            )]
        )  # fmt: skip
        times = [] if activation is None else [activation.tau_act_s, activation.tau_deact_s]
        self.scratch = Scratch(
            muscle.Muscles([m.hill for m in limb.muscles]).parameters, np.array(times), atol,
            np.zeros((self.n_m, 2)), np.zeros(self.n_m), np.zeros(self.n_q),
            np.array([1e-5, t.rtol, t.h_max_s, path_rates]), np.zeros((n, n)), np.zeros((n, n)),
            np.zeros(n, dtype=np.int64), np.zeros((6, n)), np.zeros((2, n)), np.zeros((2, n)),
            np.zeros(3, dtype=np.int64),
        )  # fmt: skip
        self.x: Array = np.zeros(n)
        self.start(np.full(self.n_m, muscle.ACTIVATION_MIN))

    def start(self, activation: Array) -> None:
        """Set the limb at rest at the joints' initial angles; muscle forces are in equilibrium."""
        x, n_q, n_m = self.x, self.n_q, self.n_m
        joints = self.limb.order()
        angles = [a for j in joints for a in (j.angles_rad or (0.0,) * j.n_angles)]
        x[:n_q], x[n_q : 2 * n_q] = angles, 0.0
        minimal.kinematics(self.links, self.work, x[:n_q], x[n_q : 2 * n_q])
        muscles = muscle.Muscles([m.hill for m in self.limb.muscles])
        try:
            x[2 * n_q : 2 * n_q + n_m] = muscles.at_rest(self.work.length, activation)
        except ModelError as error:
            number, _, text = str(error).partition(": ")
            name = self.limb.muscles[int(number)].name
            raise ModelError(f"muscles.{name}: {text}") from None
        x[2 * n_q + n_m :] = activation if len(self.scratch.times) else []
        self.scratch.control[0] = 1e-5
        self.look(activation)

    def step(self, duration_s: float, u: Array) -> None:
        """Advance by a duration with these stimulations held constant.

        Raises
        ------
        ModelError
            The step does not converge at the smallest step length.
        """
        if not advance(self.links, self.work, self.scratch, self.x, u, duration_s):
            raise ModelError(f"a step of {duration_s:g} s does not converge")

    def look(self, u: Array) -> None:
        """Update positions, lengths and forces to the current state."""
        look(self.links, self.work, self.scratch, self.x, u)

    def slope(self, x: Array, u: Array) -> Array:
        """Return x' of any state."""
        out = np.empty_like(x)
        slope(self.links, self.work, self.scratch, x, u, out)
        return out


@njit(cache=True, error_model="numpy")
def slope(p, k, r, x, u, out):  # type: ignore[no-untyped-def]
    """Compute x' of the state x with stimulations u."""
    n, m = len(r.v_dot), len(r.tension)
    q, v = x[:n], x[n : 2 * n]
    minimal.kinematics(p, k, q, v)
    dynamic = len(r.times) > 0
    for i in range(m):
        active = x[2 * n + m + i] if dynamic else u[i]
        along = k.rate[i] * r.control[3]
        rate, f_mtc, f_ce = muscle.rate(r.muscles[i], x[2 * n + i], k.length[i], along, active)
        out[2 * n + i] = rate
        r.force[i, 0], r.force[i, 1], r.tension[i] = f_mtc, f_ce, f_mtc
        if dynamic:
            out[2 * n + m + i] = muscle.activation_rate(u[i], active, r.times[0], r.times[1])
    minimal.dynamics(p, k, v, r.tension)
    minimal.solve(k, r.v_dot)
    for i in range(n):
        out[i], out[n + i] = v[i], r.v_dot[i]
    r.counts[2] += 1


@njit(cache=True, error_model="numpy")
def _jacobian(p, k, r, x, u):  # type: ignore[no-untyped-def]
    n, y, f0, f1 = len(x), r.y[0], r.f[0], r.f[1]
    slope(p, k, r, x, u, f0)
    put(x, y)
    for j in range(n):
        # l_CE and angles are of the order 1e-2 to 1; activations down to 1e-3
        h = 1.5e-8 * max(abs(x[j]), 1e-2)
        y[j] = x[j] + h
        h = y[j] - x[j]
        slope(p, k, r, y, u, f1)
        for i in range(n):
            r.J[i, j] = (f1[i] - f0[i]) / h
        y[j] = x[j]


@njit(cache=True, error_model="numpy")
def _factor(a, pivot):  # type: ignore[no-untyped-def]
    """Factorise in place (LU with partial pivoting); return False if singular."""
    n = len(a)
    for j in range(n):
        best = j
        for i in range(j + 1, n):
            if abs(a[i, j]) > abs(a[best, j]):
                best = i
        pivot[j] = best
        if best != j:
            for m in range(n):
                a[j, m], a[best, m] = a[best, m], a[j, m]
        if not abs(a[j, j]) > 0.0:
            return False
        for i in range(j + 1, n):
            a[i, j] /= a[j, j]
            for m in range(j + 1, n):
                a[i, m] -= a[i, j] * a[j, m]
    return True


@njit(cache=True, error_model="numpy")
def _solve(a, pivot, b):  # type: ignore[no-untyped-def]
    n = len(b)
    for j in range(n):
        b[j], b[pivot[j]] = b[pivot[j]], b[j]
    for i in range(n):
        for j in range(i):
            b[i] -= a[i, j] * b[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[i, j] * b[j]
        b[i] /= a[i, i]


@njit(cache=True, error_model="numpy")
def _try(p, k, r, x, u, h):  # type: ignore[no-untyped-def]
    """Compute one step of length h into r.y[1]; return its error relative to the tolerance."""
    n = len(x)
    for i in range(n):
        for j in range(n):
            r.LU[i, j] = -r.J[i, j]
        r.LU[i, i] += 1.0 / (h * GAMMA)
    if not _factor(r.LU, r.pivot):
        return np.inf
    y = r.y[1]
    for s in range(6):
        if s == 0:
            put(r.f[0], r.k[0])
        else:
            for i in range(n):
                y[i] = x[i]
                for j in range(s):
                    y[i] += _A[s, j] * r.k[j, i]
            slope(p, k, r, y, u, r.k[s])
            for i in range(n):
                for j in range(s):
                    r.k[s, i] += _C[s, j] / h * r.k[j, i]
        _solve(r.LU, r.pivot, r.k[s])
    worst = 0.0
    for i in range(n):
        y[i] += r.k[5, i]
        allowed = r.atol[i] + r.control[1] * max(abs(x[i]), abs(y[i]))
        share = abs(r.k[5, i]) / allowed
        if not share <= worst:  # includes NaN
            worst = share
    return worst


@njit(cache=True, error_model="numpy")
def look(p, k, r, x, u):  # type: ignore[no-untyped-def]
    """Update positions, lengths and forces to the state x."""
    slope(p, k, r, x, u, r.f[0])


@njit(cache=True, error_model="numpy")
def advance(p, k, r, x, u, duration):  # type: ignore[no-untyped-def]
    """Advance x by a duration with u constant; return False if no step converges."""
    elapsed = 0.0
    while elapsed < duration:
        _jacobian(p, k, r, x, u)
        while True:
            left = duration - elapsed
            h = min(r.control[0], r.control[2])
            last = h >= left * (1.0 - 1e-9)
            if last:
                h = left
            elif h > 0.5 * left:
                h = 0.5 * left  # two equal steps instead of a long and a tiny one
            worst = _try(p, k, r, x, u, h)
            factor = SHRINK_MAX
            if worst < np.inf:
                factor = min(GROW_MAX, max(SHRINK_MAX, SAFETY * max(worst, 1e-10) ** -0.25))
            if worst <= 1.0:
                break
            r.counts[1] += 1
            r.control[0] = h * factor
            if h < H_MIN_S:
                return False
        r.counts[0] += 1
        put(r.y[1], x)
        elapsed = duration if last else elapsed + h
        if not last or factor < 1.0 or h >= r.control[0]:
            r.control[0] = h * factor
        else:
            r.control[0] = max(r.control[0], h * factor)
    look(p, k, r, x, u)
    return True
