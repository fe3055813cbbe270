"""Static equilibria of a limb at one joint: activations, forces, and the rest angle.

All other joints stay at their initial angles. Of the muscles across the joint, one raises the
observed point and one lowers it; the muscle that is not needed stays at its least activation.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.leg import minimal, muscle
from hil.systems.leg.limb import PathPoint
from hil.systems.leg.stepper import LimbStepper

SWING_RAD = 1.2
"""Range of a joint around its initial angle."""


@dataclass(frozen=True)
class Held:
    """A limb at rest: the joint's angle, and activation and tension per muscle."""

    angle_rad: float
    activation: Array
    tension_N: Array


class JointStatics:
    """Equilibria of one joint of a limb.

    Parameters
    ----------
    coordinate : an angle of the limb, such as `ankle`
    point : point whose height (z) is observed; None: the joint's angle is observed instead
    muscles : names of the muscle that raises the point, or the angle, and the one that lowers it
    least : activation of these two when they are not needed

    Raises
    ------
    ModelError
        The limb has no such joint or muscle, or a muscle acts in the opposite direction.
    """

    def __init__(
        self,
        stepper: LimbStepper,
        coordinate: str,
        point: PathPoint | None,
        muscles: tuple[str, str],
        least: float = muscle.ACTIVATION_MIN,
    ) -> None:
        limb = stepper.limb
        names = [m.name for m in limb.muscles]
        if coordinate not in limb.coordinates:
            raise ModelError(
                f"joint = '{coordinate}': there is none: choose {', '.join(limb.coordinates)}"
            )
        for key, name in zip(("raises", "lowers"), muscles, strict=True):
            if name not in names:
                raise ModelError(f"{key} = '{name}': no muscle: choose {', '.join(names)}")
        self.stepper, self.least = stepper, least
        self.at = limb.coordinates.index(coordinate)
        self.up, self.down = (names.index(name) for name in muscles)
        self.relaxed_activation = np.full(stepper.n_m, muscle.ACTIVATION_MIN)
        self.relaxed_activation[[self.up, self.down]] = least
        self._q0 = stepper.x[: stepper.n_q].copy()
        self._link, self._point = -1, np.zeros(3)
        if point is not None:
            self._link = stepper.body_link[point.body]
            self._point = np.array(point.at_m) + stepper.links.centre[self._link]
        self._rate = np.zeros(stepper.n_q)
        self._rate[self.at] = 1.0
        rise = self.height(self.start + 1e-4) - self.height(self.start - 1e-4)
        self.sign = 1.0 if rise > 0.0 else -1.0
        self._swing = self._monotone()
        arms = self.sign * self.arms(self.start)
        if not arms[self.up] > 0.0:
            raise ModelError(f"raises = '{muscles[0]}': lowers it, or does not move it: swap them")
        if not arms[self.down] < 0.0:
            raise ModelError(f"lowers = '{muscles[1]}': raises it, or does not move it: swap them")

    @property
    def start(self) -> float:
        """Initial angle of the joint."""
        return float(self._q0[self.at])

    def _pose(self, angle: float, rate: float = 0.0) -> None:
        q = self._q0.copy()
        q[self.at] = angle
        minimal.kinematics(self.stepper.links, self.stepper.work, q, rate * self._rate)

    def height(self, angle: float) -> float:
        """Return z of the point, or the angle itself."""
        if self._link < 0:
            return angle
        self._pose(angle)
        work = self.stepper.work
        return float((work.place[self._link] + work.turn[self._link] @ self._point)[2])

    def angle(self, height_m: float) -> float:
        """Return the angle at which the point has this height, nearest to the initial one.

        Raises
        ------
        ModelError
            The height is out of reach.
        """
        low, high = self.reach()
        if not low <= height_m <= high:
            raise ModelError(f"{height_m:g} is out of reach: choose {low:.4g} to {high:.4g}")
        return float(
            scipy.optimize.brentq(lambda a: self.height(a) - height_m, *self._swing, xtol=1e-14)
        )

    def _monotone(self) -> tuple[float, float]:
        """Return the range of angles around the initial one in which the height is monotone."""
        ends = []
        for way in (-1.0, 1.0):
            angles = self.start + way * np.linspace(0.0, SWING_RAD, 121)
            heights = np.array([self.height(a) for a in angles])
            turns = np.flatnonzero(np.diff(heights) * way * self.sign <= 0.0)
            ends.append(float(angles[turns[0] if len(turns) else -1]))
        return ends[0], ends[1]

    def reach(self) -> tuple[float, float]:
        """Return the lowest and the highest position of the point within the range."""
        low, high = sorted(self.height(a) for a in self._swing)
        return low, high

    def arms(self, angle: float) -> Array:
        """Return -dl_MTC/dq of every muscle, (M,), m: its moment about the joint for 1 N."""
        self._pose(angle, 1.0)
        return -self.stepper.work.rate

    def demand(self, angle: float, rate: float, acceleration: float) -> float:
        """Return the muscle moment for an acceleration, N m; the other joints do not move."""
        s = self.stepper
        self._pose(angle, rate)
        minimal.dynamics(s.links, s.work, rate * self._rate, np.zeros(s.n_m))
        return float(s.work.M[self.at, self.at] * acceleration - s.work.Q[self.at])

    def relaxed(self, angle: float) -> Array:
        """Return every muscle's tension at rest, (M,), with these two at least activation."""
        return self._tension(angle, self.relaxed_activation)

    def _tension(self, angle: float, q: Array) -> Array:
        s = self.stepper
        self._pose(angle)
        l_mtc = s.work.length.copy()
        tension = np.empty(s.n_m)
        muscle.tensions_at_rest(s.scratch.muscles, l_mtc, q, tension)
        return tension

    def holding(self, height_m: float) -> Held:
        """Return the static state that holds the point at a height.

        Raises
        ------
        ModelError
            The height is out of reach of joint or muscles.
        """
        angle = self.angle(height_m)
        demand = self.demand(angle, 0.0, 0.0)
        arms = self.arms(angle)
        tension = self.relaxed(angle)
        missing = demand - float(arms @ tension)
        works = self.up if missing * self.sign > 0.0 else self.down
        tension[works] += missing / arms[works]
        activation = self.relaxed_activation.copy()
        self._pose(angle)
        p, l_mtc = self.stepper.scratch.muscles[works], self.stepper.work.length[works]
        l_ce = l_mtc - muscle.serial_length(p, tension[works])
        if l_ce > 0.0:
            active = tension[works] - muscle.parallel(p, l_ce)
            activation[works] = active / (p.F_max * muscle.isometric(p, l_ce))
        if not (l_ce > 0.0 and self.least <= activation[works] <= 1.0):
            name = self.stepper.limb.muscles[works].name
            raise ModelError(
                f"{height_m:g} is out of reach: '{name}' would have to pull with "
                f"{tension[works]:.4g} N"
            )
        return Held(angle, activation, tension)

    def rest(self) -> Held:
        """Return the equilibrium with all muscles at their least activation."""

        def surplus(angle: float) -> float:
            return float(self.arms(angle) @ self.relaxed(angle)) - self.demand(angle, 0.0, 0.0)

        angle = float(scipy.optimize.brentq(surplus, *self._swing, xtol=1e-13))
        return Held(angle, self.relaxed_activation.copy(), self.relaxed(angle))
