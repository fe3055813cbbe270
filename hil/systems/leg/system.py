"""A limb with muscles as plant and twin: activations in; angles, positions and tensions out."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hil.errors import ModelError
from hil.mechanics.sma.wire import SmaWires
from hil.mechanics.system import Drive
from hil.systems.leg.limb import Limb, PathPoint
from hil.systems.leg.muscle import ACTIVATION_MIN, ActivationTimes
from hil.systems.leg.stepper import LimbStepper


class LimbSystem:
    """A `LimbStepper` with the interface of a plant (`hil.mechanics.system`).

    A run starts at rest at the joints' initial angles, with muscles at their least activation.
    Activations are limited to their physical range.

    Parameters
    ----------
    points : points on bodies whose x, y and z are outputs
    path_rates : False: the muscles' contraction takes the rates of their paths as zero

    Attributes
    ----------
    inputs
        `<muscle>.activation`; the stimulation if activation has dynamics.
    outputs
        `<angle>.angle_rad` of every joint, `<point>.x_m`, `.y_m`, `.z_m` of every point, and
        `<muscle>.tension_N`, `.path_m`, `.fibre_m`, `.fibre_N` (F_CE; below zero while it shortens
        faster than it can) of every muscle.
    shown : outputs of the twin that recordings keep besides the channels
    """

    cell_names: tuple[str, ...] = ()

    def __init__(
        self,
        limb: Limb,
        points: Mapping[str, PathPoint],
        period_s: float,
        activation: ActivationTimes | None = None,
        path_rates: bool = True,
    ) -> None:
        self.limb, self.points, self.period_s = limb, points, period_s
        self.activation = activation
        for name, point in points.items():
            if point.body not in {body.name for body in limb.bodies}:
                bodies = ", ".join(body.name for body in limb.bodies)
                raise ModelError(
                    f"points.{name}.body: there is no body '{point.body}': choose {bodies}"
                )
        self.stepper = LimbStepper(limb, activation, path_rates=path_rates)
        muscles = [m.name for m in limb.muscles]
        self.inputs = tuple(f"{name}.activation" for name in muscles)
        angles = tuple(f"{name}.angle_rad" for name in limb.coordinates)
        places = tuple(f"{name}.{axis}_m" for name in points for axis in "xyz")
        kinds = ("tension_N", "path_m", "fibre_m", "fibre_N")
        self.outputs = (*angles, *places, *(f"{m}.{kind}" for m in muscles for kind in kinds))
        self.shown = (*angles, *(f"{m}.tension_N" for m in muscles))
        self.wires = SmaWires([], np.zeros(0))
        links = [self.stepper.body_link[point.body] for point in points.values()]
        self._links = np.array(links, dtype=np.int64)
        self._at = np.array(
            [np.array(point.at_m) + self.stepper.links.centre[link]
             for link, point in zip(links, points.values(), strict=True)]
        ).reshape(-1, 3)  # fmt: skip
        self._inputs = np.full(len(muscles), ACTIVATION_MIN)
        self._y = np.zeros(len(self.outputs))
        self._look()

    @property
    def y(self) -> NDArray[np.float64]:
        """Current outputs, in the order of `outputs`."""
        return self._y

    def step(self, drive: Drive, inputs: NDArray[np.float64]) -> None:
        """Advance one period with these activations held constant."""
        np.clip(inputs, ACTIVATION_MIN, 1.0, out=self._inputs)
        self.stepper.step(self.period_s, self._inputs)
        self._look()

    def _look(self) -> None:
        """Update `y` from the state."""
        s, y = self.stepper, self._y
        n_q, n_m, n_points = s.n_q, s.n_m, len(self._links)
        y[:n_q] = s.x[:n_q]
        places = s.work.place[self._links] + np.einsum(
            "kij,kj->ki", s.work.turn[self._links], self._at
        )
        y[n_q : n_q + 3 * n_points] = places.ravel()
        of_muscles = y[n_q + 3 * n_points :].reshape(n_m, 4)
        of_muscles[:, 0], of_muscles[:, 1] = s.scratch.force[:, 0], s.work.length
        of_muscles[:, 2], of_muscles[:, 3] = s.x[2 * n_q : 2 * n_q + n_m], s.scratch.force[:, 1]
