"""A skeleton on the ground as plant or twin: co-activation and torques in; angles, forces out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array, Vector
from hil.mechanics.muscle import Muscle
from hil.mechanics.rotations import angles
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.systems.bodies.joints import Hold
from hil.systems.bodies.motion import BodyMotion
from hil.systems.bodies.skeleton import Skeleton

STEPS_MAX = 100
STABLE = 2.0  # step times fastest rate; Runge-Kutta is stable up to 2.7


@dataclass(frozen=True)
class Push:
    """A force (N, inertial) on a body's centre of mass from `from_s` to `to_s`.

    A step of the integration has the force's mean over it, so that its impulse is exact.
    """

    body: int
    force_N: Vector
    from_s: float
    to_s: float


@dataclass(frozen=True)
class Tendon:
    """A muscle over one or several joints; `radii_m` are of its caps on their pitch.

    It is elongated by the sum of r phi_y over its joints; a positive radius makes the muscle pull
    the joint's pitch down. Its tension is held over a step of the integration.
    """

    muscle: Muscle
    joints: tuple[int, ...]
    radii_m: tuple[float, ...]


class BodySystem:
    """A `BodyMotion` with the interface of a plant (`hil.mechanics.system`).

    Inputs are an increment of the co-activation of all joints, and torques of joints and of
    standing points (on the upper body, about its axes). A joint whose hold has a strength also has
    increments of its six muscles' activations, `<joint>.<axis>_plus.activation` and `_minus`; each
    muscle has the co-activation plus its own increment, from 0 to 1. A tendon has the inputs
    `<name>.activation` and, with spindles, `<name>.gamma_m`. Outputs are every link's Bryant
    angles, the ground's forces and the centre of mass.
    """

    cell_names: tuple[str, ...] = ()

    def __init__(
        self, motion: BodyMotion, period_s: float, *, coactivation: float = 1.0,
        pushes: Sequence[Push] = (), tendons: Mapping[str, Tendon] | None = None,
    ) -> None:  # fmt: skip
        self.motion, self.period_s, skeleton = motion, period_s, motion.skeleton
        self.wires = SmaWires([], np.zeros(0))
        joints = [j.name for j in skeleton.joints] + [s.name for s in skeleton.supports]
        axes = ("roll", "pitch", "yaw")
        self._paired = motion.paired
        self.tendons = {} if tendons is None else dict(tendons)
        self.inputs = (
            "body.coactivation", *(f"{name}.{axis}_N_m" for name in joints for axis in axes),
            *(f"{name}.{axis}_{way}.activation"
              for name, paired in zip(joints, self._paired, strict=True) if paired
              for axis in axes for way in ("plus", "minus")),
            *(f"{name}.activation" for name in self.tendons),
            *(f"{name}.gamma_m" for name, tendon in self.tendons.items()
              if tendon.muscle.stiffness_N_per_m > 0.0),
        )  # fmt: skip
        self._parts = np.cumsum([1, 3 * len(joints), 6 * int(self._paired.sum()),
                                 len(self.tendons)])  # fmt: skip
        self.outputs = (
            *(f"{name}.{axis}_rad" for name in skeleton.names for axis in axes),
            *(f"{s.name}.{axis}_N" for s in skeleton.supports for axis in "xyz"),
            *(f"centre.{axis}_m" for axis in ("forward", "left", "up")),
        )
        self._coactivation, self.pushes = coactivation, tuple(pushes)
        fastest, joint = self.motion.fastest_per_s(np.full(len(joints), max(1.0, coactivation)))
        self.n_steps = max(1, ceil(period_s * fastest / STABLE))
        if self.n_steps > STEPS_MAX:
            raise ModelError(
                f"holds: joint '{joint}' moves at {fastest:.3g} 1/s, {self.n_steps} steps a "
                f"period where {STEPS_MAX} are allowed: lower its stiffness, viscosity or twist"
            )
        self._y = np.zeros(len(self.outputs))
        self.motion.c[:] = self.motion.a[:] = coactivation
        self.look()

    @property
    def shown(self) -> tuple[str, ...]:
        """Outputs of the twin that recordings keep: those that the stick figure needs."""
        n = 3 * self.motion.skeleton.n
        return (*self.outputs[:n], *self.outputs[-3:])

    @property
    def y(self) -> Array:
        """Current outputs, in the order of `outputs`."""
        return self._y

    def step(self, drive: Drive, inputs: Array) -> None:
        """Advance one period with constant inputs; limit activations to [0, max(1, given)]."""
        motion = self.motion
        upper = max(1.0, self._coactivation)
        motion.c[:] = min(max(self._coactivation + inputs[0], 0.0), upper)
        _, torques, pairs, alphas, gammas = np.split(inputs, self._parts)
        motion.a[self._paired] = np.clip(motion.c[0] + pairs.reshape(-1, 3, 2), 0.0, upper)
        h = self.period_s / self.n_steps
        for _ in range(self.n_steps):
            motion.push_N[:] = 0.0
            for push in self.pushes:
                during_s = min(push.to_s, motion.t_s + h) - max(push.from_s, motion.t_s)
                if during_s > 0.0:
                    motion.push_N[push.body] += np.multiply(during_s / h, push.force_N)
            motion.u[:] = torques.reshape(-1, 3)
            if self.tendons:
                self._pull(np.clip(alphas, 0.0, 1.0), gammas)
            motion.step(h)
        self.look()

    def _pull(self, alphas: Array, gammas: Array) -> None:
        """Add the tendons' torques, -(dl/dphi) T by virtual work, to those of their joints."""
        pitch, slope, rate = self.motion.pitches()
        spindles = iter(gammas)
        for tendon, alpha in zip(self.tendons.values(), alphas, strict=True):
            at, r = list(tendon.joints), np.array(tendon.radii_m)
            gamma_m = next(spindles) if tendon.muscle.stiffness_N_per_m > 0.0 else 0.0
            T = tendon.muscle.tension_N(alpha, gamma_m, r @ pitch[at], r @ rate[at])
            # Not u[at] -= ..., which takes one cap of several at a joint.
            np.subtract.at(self.motion.u, at, float(T) * r[:, None] * slope[at])

    def look(self) -> None:
        """Update `y` from the motion's state."""
        motion, n = self.motion, 3 * self.motion.skeleton.n
        motion.balance()
        self._y[:n] = angles(motion.A).ravel()
        self._y[n:-3] = motion.support_N.ravel()
        self._y[-3:] = motion.centre_of_mass_m()
        self._y += 0.0  # turns -0 into 0


def holds_of(skeleton: Skeleton, by_name: Mapping[str, Hold]) -> list[Hold]:
    """Return a `Hold` for every joint and support, found by its name, its module's, or "all".

    Raises
    ------
    ModelError
        A name is none of these.
    """
    joints = {joint.name for joint in skeleton.joints}
    supports = {support.name for support in skeleton.supports}
    within = {module.name for module in skeleton.modules}
    for name in by_name:
        if name not in joints | supports | within | {"all"}:
            known = ", ".join([*(j.name for j in skeleton.joints), *sorted(supports)])
            raise ModelError(f"holds.{name}: no such joint: choose {known}, a module, or all")
    holds = []
    for joint in skeleton.joints:
        module = joint.name.partition(".")[0] if "." in joint.name else None
        names = [joint.name, *([module] if module else []), "all"]
        holds.append(next((by_name[name] for name in names if name in by_name), Hold()))
    return [*holds, *(by_name.get(support.name, Hold()) for support in skeleton.supports)]
