"""A soft tree with its state, stepped in time by `hil.systems.soft.kernel`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.soft import kernel, outside
from hil.systems.soft.outside import GROUND_K
from hil.systems.soft.parts import (  # fmt: skip
    ERROR,
    H_LAST,
    HALVINGS,
    PASSES,
    REST,
    SHRINK,
    X_BEFORE,
    X_NEW,
    A,
    K,
    Q,
    R,
    T,
    V,
    X,
    pack,
    views,
)
from hil.systems.soft.tree import SoftTree

GROUND_RAMP = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # found by trial to converge
SHORTEST = 1e-12  # shortest step of an adaptive run, relative to its length
_NO_PATH = np.empty((0, 0))


@dataclass(frozen=True)
class AlphaParameters:
    """Parameters from the spectral radius at infinite frequency: 0 (most damping) to 1 (none)."""

    spectral_radius: float = 0.8

    def __post_init__(self) -> None:
        if not 0.0 <= self.spectral_radius <= 1.0:
            raise ModelError(f"spectral_radius = {self.spectral_radius}: must be from 0 to 1")

    @property
    def values(self) -> tuple[float, float, float, float]:
        """am, af, beta, gamma."""
        rho = self.spectral_radius
        am, af = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
        gamma = 0.5 + af - am
        return am, af, 0.25 * (gamma + 0.5) ** 2, gamma


@dataclass(frozen=True)
class History:
    """Recorded steps of `run`, one row every `every` steps, initial state first.

    Attributes
    ----------
    t_s : (k+1,) array
    q, v, x : (k+1, N) arrays, positions, rates and accelerations of the joints
    R : (k+1, B) array, torques of the Maxwell branches
    """

    t_s: Array
    q: Array
    v: Array
    x: Array
    R: Array


class SoftStepper:
    """State of a soft tree, stepped in time.

    Parameters
    ----------
    spectral_radius : of the scheme, 0 to 1
    q, v : (N,) arrays
        Initial state; default: joints at rest with zero velocity and relaxed branches.
    u : (m,) array, initial inputs; default `tree.rest_input()`

    Attributes
    ----------
    q, v, x : (N,) arrays, current joint positions, rates and accelerations
    """

    def __init__(
        self,
        tree: SoftTree,
        spectral_radius: float = 0.8,
        q: Array | None = None,
        v: Array | None = None,
        u: Array | None = None,
    ) -> None:
        self.tree = tree
        self.parameters = AlphaParameters(spectral_radius)
        self.ints, self.floats = pack(tree, self.parameters.values)
        self.parts = p = views(self.ints, self.floats)
        self.q, self.v, self.x, self.R = p.state[Q], p.state[V], p.state[X], p.branches[R]
        self._x_new = p.state[X_NEW]
        self.q[:] = p.joints[REST] if q is None else q
        self.v[:] = 0.0 if v is None else v
        p.u_last[:] = tree.rest_input() if u is None else u
        p.u[:] = p.u_last
        self._goal = np.empty((1, len(p.u)))
        kernel.measure(self.ints, self.floats, self.q, self.v)
        p.lines[:, outside.L0] = p.lines[:, outside.LENGTH]
        self.settle()

    @property
    def t_s(self) -> float:
        return float(self.parts.memory[T])

    @property
    def passes(self) -> int:
        """Number of recursions in the last step."""
        return int(self.parts.memory[PASSES])

    @property
    def halvings(self) -> int:
        """Number of halved steps since the start."""
        return int(self.parts.memory[HALVINGS])

    @property
    def lines(self) -> Array:
        """Tendons, one row each; `outside` names the columns."""
        return np.asarray(self.parts.lines)

    def settle(self) -> None:
        """Compute the accelerations of the current state: at the start, or after setting q or v."""
        p = self.parts
        p.u[:] = p.u_last
        kernel.explicit(self.ints, self.floats, self.q, self.v, 0.0)
        for row in (X, A, X_BEFORE):
            p.state[row] = p.state[X_NEW]
        p.memory[H_LAST], p.memory[SHRINK] = 0.0, 1.0

    def accelerations(self, q: Array, v: Array, u: Array | None = None) -> Array:
        """Return true accelerations in a state, with constant branches: explicit, O(N)."""
        p = self.parts
        if u is not None:
            p.u[:] = u
        kernel.explicit(self.ints, self.floats, q, v, 0.0)
        return np.array(self._x_new)

    def step(self, h_s: float, u: Array | None = None) -> None:
        """Advance by h_s to the inputs u.

        Raises
        ------
        ModelError
            The step does not converge even after all halvings.
        """
        p = self.parts
        self._goal[0] = p.u_last if u is None else u
        if kernel.run(self.ints, self.floats, h_s, self._goal, _NO_PATH, 0) == 0:
            self._refuse(h_s)

    def run(self, h_s: float, u: Array, every: int = 1) -> History:
        """Take steps of h_s to the inputs in the rows of u, (k, m); keep one row in `every`."""
        n, start, inputs = self.tree.n, self.t_s, np.ascontiguousarray(u, dtype=float)
        path = np.empty((len(u) // every + 1, 3 * n + len(self.R)))
        if kernel.run(self.ints, self.floats, h_s, inputs, path, every) < len(u):
            self._refuse(h_s)
        t_s = np.asarray(start + every * h_s * np.arange(len(path)), dtype=float)
        q, v, x, R = path[:, :n], path[:, n : 2 * n], path[:, 2 * n : 3 * n], path[:, 3 * n :]
        return History(t_s, q, v, x, R)

    def adapt(
        self, until_s: float, inputs: Callable[[float], Array], tolerance: float, h_s: float = 1e-3
    ) -> Array:
        """Advance to `until_s` with error-controlled steps; return the times, (k+1,).

        Parameters
        ----------
        inputs : u as a function of time
        tolerance : rad (m), largest error of a step in any joint position
        h_s : first step

        Raises
        ------
        ModelError
            The tolerance needs steps below the rounding error of time, or a step does not
            converge.
        """
        times = [self.t_s]
        while until_s - self.t_s > SHORTEST * until_s:
            before, left_s = self.snapshot(), until_s - self.t_s
            h = min(h_s, left_s)
            self.step(h, inputs(self.t_s + h))
            error = max(float(self.parts.memory[ERROR]), 1e-300)
            h_s = h * min(2.0, max(0.2, 0.9 * (tolerance / error) ** (1.0 / 3.0)))
            if error > tolerance:
                self.restore(before)
                if h_s < SHORTEST * until_s:
                    raise ModelError(
                        f"steps of {h_s:.3g} s at t = {self.t_s:.9g} s still leave more than "
                        f"{tolerance:g} rad: allow a larger error"
                    )
                continue
            times.append(self.t_s)
        return np.array(times)

    def touch_N(self) -> Array:
        """Return the grounds' normal force on every touching place, at the last evaluation."""
        p, first = self.parts, self.parts.n_loads
        x, v = p.place_x[first : p.starts[0]], p.place_v[first : p.starts[0]]
        total = np.zeros(len(x))
        for ground in p.grounds:
            depth = (ground[3:6] - x) @ ground[:3]
            force = ground[6] * depth - ground[7] * (v @ ground[:3])
            total += np.where(depth > 0.0, np.maximum(force, 0.0), 0.0)
        return total

    def snapshot(self) -> tuple[Array, ...]:
        """Return the state, for `restore`."""
        p = self.parts
        return p.state.copy(), p.branches.copy(), p.memory.copy(), p.u_last.copy()

    def restore(self, before: tuple[Array, ...]) -> None:
        """Restore the state that `snapshot` returned."""
        p = self.parts
        for now, then in zip((p.state, p.branches, p.memory, p.u_last), before, strict=True):
            now[:] = then

    def relax(self, u: Array | None = None) -> None:
        """Set the tree to static equilibrium under the inputs u, with relaxed branches.

        Newton-Krylov on K^-1 f(q), the displacement of the springs: one recursion each.

        Raises
        ------
        ModelError
            A joint has no spring, or the search from the current state does not converge.
        """
        p = self.parts
        if not np.all(p.joints[K] > 0.0):
            raise ModelError(
                f"joint {int(np.argmin(p.joints[K]))} has no spring, so no static equilibrium"
            )
        if u is not None:
            p.u_last[:] = u
        p.u[:] = p.u_last
        self.v[:] = 0.0
        self.R[:] = 0.0

        stiffness = p.grounds[:, GROUND_K].copy()
        start = self.q.copy()
        try:
            for share in ((1.0,), GROUND_RAMP) if len(stiffness) else ((1.0,),):
                self.q[:] = start
                if self._sags_to_rest(stiffness, share):
                    self.settle()
                    return
        finally:
            p.grounds[:, GROUND_K] = stiffness
        raise ModelError("no static equilibrium found: the load is too large")

    def _sags_to_rest(self, stiffness: Array, shares: Sequence[float]) -> bool:
        """Search for equilibrium with the grounds' stiffness scaled by each share in turn."""
        p, close = self.parts, kernel.SAG_TOLERANCE

        def sag(q: Array) -> Array:
            kernel.explicit(self.ints, self.floats, q, self.v, kernel.SOFTEST)
            return np.asarray(p.state[X_NEW] * kernel.SOFTEST)

        for share in shares:
            p.grounds[:, GROUND_K] = share * stiffness
            if np.abs(sag(self.q)).max() <= close:
                continue
            try:
                self.q[:] = scipy.optimize.newton_krylov(sag, self.q.copy(), f_tol=close)
            except (scipy.optimize.NoConvergence, ValueError):
                return False
        return True

    def _refuse(self, h_s: float) -> None:
        raise ModelError(
            f"a step of {h_s:g} s does not converge at t = {self.t_s:.9g} s, not even when it is "
            f"halved {kernel.HALVINGS_MAX} times: take a shorter step"
        )
