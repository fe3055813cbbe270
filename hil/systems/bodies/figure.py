"""Stick figure of a skeleton of rigid bodies."""

import numpy as np
from numpy.typing import NDArray

from hil.config.values import TomlTable
from hil.experiment.figure import Figure
from hil.mechanics.rotations import attitude
from hil.systems.bodies.build import build_bodies
from hil.systems.bodies.tables import BodiesTable

PICTURE_PERIOD_S = 0.001  # period of a model that is built only for drawing


def figure(settings: TomlTable) -> Figure:
    """Return the skeleton of a configuration."""
    return Figure(mechanism=BodyPicture(settings["model"]))


class BodyPicture:
    """Oblique view of a skeleton: forward to the right, left into the depth, up.

    It has the attributes of `hil.experiment.figure.StickFigure`, without muscles.
    """

    DEPTH = np.array([[1.0, 0.0], [0.7, 0.15], [0.0, 1.0]])
    """Projection of front, left and up: an oblique view."""
    muscles: tuple[str, ...] = ()
    activations: tuple[str, ...] = ()

    def __init__(self, table: TomlTable) -> None:
        system = build_bodies(BodiesTable.model_validate(dict(table)), PICTURE_PERIOD_S)
        self._skeleton = system.motion.skeleton
        shown = system.shown
        self.angles = tuple(
            f"{name.rpartition('_')[0]}_model_{name.rpartition('_')[2]}" for name in shown
        )
        self.start = np.array([system.y[system.outputs.index(name)] for name in shown])
        self.bones = tuple(range(len(self._lines(self.start))))

    def _lines(self, pose: NDArray[np.float64]) -> NDArray[np.float64]:
        A = attitude(pose[:-3].reshape(-1, 3))
        lines: NDArray[np.float64] = self._skeleton.lines(A)
        return lines + pose[-3:] - self._skeleton.centre_of_mass(A)

    def place(
        self, pose: NDArray[np.float64]
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Return lines (2, 2) of links, m, for Bryant angles followed by the centre of mass."""
        return list(self._lines(pose) @ self.DEPTH), []
