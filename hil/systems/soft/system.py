"""Soft links moved by cellular arrays: plant and twin of a rig whose muscles bend rubber.

An array connects a fixed point with the end of a tendon, which runs through eyelets on a
link and is attached to it. The tendon drives the array's right point: x = l - l0, with the tendon's
length l between its first eyelet and its end. An array whose tendon begins and ends on the link
itself is surface-mounted. Over a period h the array is linear, and its force at the tendon is

    T+ = T0 + gx x+ + gv x'+,   [gx gv] of C B1 + D   (inputs linear over the period)

with T0 from its state and its cells. In the step of the links this acts as a tendon of stiffness gx
and damping gv, so links and arrays are solved together, whatever their stiffness. A tendon only
pulls: while it is slack, the array's end moves freely, without force.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.discrete import LinearStepper, discretise
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.systems.array.model.activation import Activation, CellActivation
from hil.systems.array.model.cell_array import CellArray
from hil.systems.soft import outside
from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import Beam, Body, Ground, Place, SoftTree, Tendon, turn_z


@dataclass(frozen=True)
class Link:
    """A beam on the base in segments, at an angle to x."""

    beam: Beam
    segments: int
    angle_rad: float = 0.0
    tip_mass_kg: float = 0.0


@dataclass(frozen=True)
class Muscle:
    """Path of an array's tendon on a link.

    Attributes
    ----------
    offset_m : offset of the eyelets from the middle of the link, positive to its left
    start, end : start and end of the tendon, as fractions of the link's length. A tendon with start
        0 comes from the base.
    """

    array: str
    link: str
    offset_m: float
    start: float = 0.0
    end: float = 1.0


class SoftArraySystem:
    """Steps links and arrays by one period: cell drives in; tensions, curvatures and tips out.

    A run starts at rest: cells cold, links in equilibrium with gravity, tendons and ground.

    Attributes
    ----------
    outputs
        `<array>.left_N`, `<array>.right_N` of every array; of every link
        `<link>.curvature_1_per_m` (mean, up to the middle of its last segment), `<link>.tip_x_m`,
        `<link>.tip_y_m` and `<link>.touch_N` (normal force of the ground).

    Raises
    ------
    ModelError
        A muscle has no link or driven point, or there is no equilibrium to start from.
    """

    inputs: tuple[str, ...] = ()

    def __init__(
        self,
        links: Mapping[str, Link],
        muscles: Mapping[str, Muscle],
        arrays: CellArray,
        activation: Sequence[CellActivation],
        period_s: float,
        gravity_m_per_s2: tuple[float, float] = (0.0, -9.81),
        ground: Ground | None = None,
    ) -> None:
        self.links, self.muscles, self.arrays, self.period_s = links, muscles, arrays, period_s
        self.cell_names = tuple(arrays.cell_names)
        ends = [f"{array}.{side}_N" for array in arrays.arrays for side in ("left", "right")]
        named = ("curvature_1_per_m", "tip_x_m", "tip_y_m", "touch_N")
        self.outputs = (*ends, *(f"{link}.{what}" for link in links for what in named))
        self.activation = Activation(activation, period_s)
        self.wires: SmaWires = self.activation.wires
        self._check()
        self._bodies: dict[str, slice] = {}
        self.tree = self._build(gravity_m_per_s2, ground)
        self._has_ground = ground is not None
        self.soft = SoftStepper(self.tree)
        self._n_cells = arrays.n_cells
        self._couple()
        self.y: Array = np.zeros(len(self.outputs))
        self._rest(self.activation.F_N)
        self._settled: dict[bytes, Array] = {}  # by cell forces

    def step(self, drive: Drive, inputs: Array) -> None:
        """Advance one period with `drive` held constant: one duty (0 to 1) per cell."""
        self.activation.step(drive)
        n, now, then = self._n_cells, self._u, self._u_next
        now[:n], then[:n] = self.activation.F_before_N, self.activation.F_N
        then[self._motion] = 0.0
        d = self.linear.discrete
        free = d.Ad @ self.linear.x + d.B0 @ now + d.B1 @ then
        tension_N = (d.C @ free + d.D @ then)[self._pulls]
        self.soft.step(self.period_s, tension_N)
        self._moved(then, tension_N, self._gains)
        self.linear.step(now, then)
        now[:] = then
        self._look()

    def settled(self, F_N: Array) -> Array:
        """Return the outputs at rest with constant cell forces; does not change the state.

        They are searched for once for each set of forces, from the state at that time.
        """
        key = F_N.tobytes()
        if key in self._settled:
            return self._settled[key].copy()
        kept = self.soft.snapshot(), self.linear.x.copy(), self._u.copy(), self.y.copy()
        try:
            self._rest(F_N)
            self._settled[key] = self.y.copy()
            return self.y.copy()
        finally:
            self.soft.restore(kept[0])
            self._stiffness(self._gains)
            self.linear.x[:], self._u[:] = kept[1], kept[2]
            self.y[:] = kept[3]

    # Building

    def _check(self) -> None:
        driven = [name for name, p in self.arrays.points.items() if p.support == "driven"]
        for name, muscle in self.muscles.items():
            array = self.arrays.arrays.get(name)
            if array is None:
                raise ModelError(f"muscles.{name}: there is no array of that name")
            if muscle.link not in self.links:
                raise ModelError(
                    f"muscles.{name}.link: '{muscle.link}': choose {', '.join(self.links)}"
                )
            if array.end not in driven:
                raise ModelError(f"arrays.{name}.to: must be driven, the tendon moves it")
            if not 0.0 <= muscle.start < muscle.end <= 1.0:
                raise ModelError(f"muscles.{name}.end: give 0 <= start < end <= 1")
        for name, array in self.arrays.arrays.items():
            if name not in self.muscles:
                raise ModelError(f"arrays.{name}: its tendon has no path: add muscles")
            if [a.end for a in self.arrays.arrays.values()].count(array.end) > 1:
                raise ModelError(f"arrays.{name}.to: every array needs a driven point of its own")
            if array.start in driven:
                raise ModelError(f"arrays.{name}.from: must be a fixed point")

    def _build(self, gravity: tuple[float, float], ground: Ground | None) -> SoftTree:
        bodies: list[Body] = []
        touching: list[Place] = []
        for name, link in self.links.items():
            first, s = len(bodies), link.beam.length_m / link.segments
            bodies += link.beam.segments(
                link.segments, first=first, parent=-1, joint_turn=turn_z(link.angle_rad),
                tip_mass_kg=link.tip_mass_kg,
            )  # fmt: skip
            self._bodies[name] = slice(first, len(bodies))
            touching += [Place(i, (s, 0.0, 0.0)) for i in range(first, len(bodies))]
        return SoftTree(
            tuple(bodies),
            gravity_m_per_s2=(*gravity, 0.0),
            tendons=tuple(Tendon(self._route(self.muscles[name])) for name in self._order()),
            touching=tuple(touching) if ground is not None else (),
            grounds=() if ground is None else (ground,),
        )

    def _order(self) -> list[str]:
        """Return arrays in the order of their driven points' inputs."""
        driven = [name for name, p in self.arrays.points.items() if p.support == "driven"]
        by_end = {array.end: name for name, array in self.arrays.arrays.items()}
        return [by_end[point] for point in driven if point in by_end]

    def _route(self, muscle: Muscle) -> tuple[Place, ...]:
        """Return the start, an eyelet at the middle of every segment in between, and the end."""
        link, first = self.links[muscle.link], self._bodies[muscle.link].start
        s = link.beam.length_m / link.segments

        def at(share: float) -> Place:
            i = min(int(share * link.segments), link.segments - 1)
            x = share * link.beam.length_m - i * s
            return Place(first + i, (x, muscle.offset_m, 0.0))

        start = at(muscle.start)
        if muscle.start == 0.0:
            c, s0 = np.cos(link.angle_rad), np.sin(link.angle_rad)
            start = Place(-1, (-muscle.offset_m * s0, muscle.offset_m * c, 0.0))
        middles = (np.arange(link.segments) + 0.5) / link.segments
        inside = (middles > muscle.start + 1e-9) & (middles < muscle.end - 1e-9)
        return (start, *(at(float(share)) for share in middles[inside]), at(muscle.end))

    def _couple(self) -> None:
        model, order = self.arrays, self._order()
        ends = [name for name in self.outputs if name in model.outputs]
        rows = [model.outputs.index(name) for name in ends]
        self._pulls = np.array([ends.index(f"{name}.right_N") for name in order])
        first = len(model.inputs) - 3 * sum(p.support == "driven" for p in model.points.values())
        self._motion = slice(first, len(model.inputs))
        discrete = discretise(model.A, model.B, model.C[rows], model.D[rows], self.period_s)
        none = np.zeros(len(model.inputs))
        self.linear = LinearStepper(discrete, np.zeros(len(model.states)), none)
        gain = discrete.C @ discrete.B1 + discrete.D
        rest = self._at_rest(none)[1]
        self._gains: list[tuple[float, float]] = []
        self._static: list[tuple[float, float]] = []
        for i, row in enumerate(self._pulls):
            x, v = first + 3 * i, first + 3 * i + 1
            self._gains.append((gain[row, x], gain[row, v]))
            self._static.append((rest[row, x], 0.0))
        self._u, self._u_next = np.zeros(len(model.inputs)), np.zeros(len(model.inputs))
        self._lines = self.soft.lines
        # The joints are straight before they settle: this is the length of a relaxed tendon.
        self._l0 = self._lines[:, outside.LENGTH].copy()

    def _stiffness(self, gains: Sequence[tuple[float, float]]) -> None:
        self._lines[:, outside.K], self._lines[:, outside.DAMP] = np.transpose(gains)
        self._lines[:, outside.L0] = self._l0

    def _at_rest(self, u: Array) -> tuple[Array, Array]:
        """Return the state at rest under the inputs u, and the force per input, (p, m)."""
        d, model = self.linear.discrete, self.arrays
        try:
            hold = np.linalg.solve(model.A, model.B)
        except np.linalg.LinAlgError:
            raise ModelError(
                "arrays: some of their masses have no connection to a support"
            ) from None
        return np.asarray(-hold @ u), np.asarray(d.D - d.C @ hold)

    # Motion

    def _rest(self, F_N: Array) -> None:
        """Set everything at rest with constant cell forces."""
        u = self._u
        u[:] = 0.0
        u[: self._n_cells] = F_N
        self._stiffness(self._static)
        tension_N = (self._at_rest(u)[1] @ u)[self._pulls]
        try:
            self.soft.relax(tension_N)
        except ModelError as error:
            raise ModelError(f"links: {error}") from None
        self._moved(u, tension_N, self._static)
        motion = u[self._motion].reshape(-1, 3)
        motion[:, 1] = 0.0
        self.linear.x[:] = self._at_rest(u)[0]
        d = self.linear.discrete
        self.linear.y[:] = d.C @ self.linear.x + d.D @ u
        # The same tension by the gains of a period: otherwise the links would start with a jerk.
        self._stiffness(self._gains)
        gx = np.transpose(self._gains)[0]
        self.soft.parts.u_last[:] = self.linear.y[self._pulls] - gx * motion[:, 0]
        self.soft.settle()
        self._look()

    def _moved(self, u: Array, tension_N: Array, gains: Sequence[tuple[float, float]]) -> None:
        """Write the tendons' motion to the inputs of their driven points.

        Where T0 + gx x + gv x' would push, the tendon is slack and the point moves to where this
        is zero.
        """
        x_m = self._lines[:, outside.LENGTH] - self._l0
        rate = self._lines[:, outside.RATE].copy()
        gx, gv = np.transpose(gains)
        motion, before = (v[self._motion].reshape(-1, 3) for v in (u, self._u))
        for i in np.flatnonzero(tension_N + gx * x_m + gv * rate < 0.0):
            was_m, lag = before[i, 0], gv[i] / self.period_s
            x_m[i] = (lag * was_m - tension_N[i]) / (gx[i] + lag)
            rate[i] = (x_m[i] - was_m) / self.period_s
        motion[:, 0], motion[:, 1] = x_m, rate

    def _look(self) -> None:
        """Compute the outputs of the current state."""
        at = len(self.linear.y)
        self.y[:at] = self.linear.y
        touch_N = self.soft.touch_N()
        for name, link in self.links.items():
            body = self._bodies[name]
            turn = np.cumsum(self.soft.q[body])
            s, angle = link.beam.length_m / link.segments, link.angle_rad + turn
            self.y[at : at + 4] = (
                turn[-1] / (link.beam.length_m - 0.5 * s),
                s * np.cos(angle).sum(),
                s * np.sin(angle).sum(),
                touch_N[body].sum() if self._has_ground else 0.0,
            )
            at += 4
