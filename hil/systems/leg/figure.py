"""Stick figure of a limb with muscles."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hil.config.values import TomlTable
from hil.experiment.figure import Figure
from hil.systems.leg import minimal
from hil.systems.leg.build import build_limb
from hil.systems.leg.tables import LimbTable


def figure(settings: TomlTable) -> Figure:
    """Return the limb of a configuration."""
    outputs = {
        str(output["drives"]): f"{name}_commanded"
        for device in settings.get("devices", {}).values()
        for name, output in device.get("outputs", {}).items()
    }
    return Figure(mechanism=LimbPicture(settings["model"], outputs))


class LimbPicture:
    """Side view of a limb with muscles: forward to the right, up.

    Attributes
    ----------
    bones : names of bodies
    muscles : names
    angles, activations : columns of a recording, one per angle and one per muscle
    start : (n,) array, initial angles
    """

    def __init__(self, table: TomlTable, outputs: Mapping[str, str]) -> None:
        model = LimbTable.model_validate(dict(table))
        limb = build_limb(model)
        self._links, self._body_link = minimal.links_of(limb)
        self._work = minimal.work_for(self._links)
        self._kinematics = minimal.kinematics
        joints = limb.order()
        self.bones = tuple(joint.child for joint in joints)
        self.muscles = tuple(muscle.name for muscle in limb.muscles)
        self.angles = tuple(f"{name}.angle_model_rad" for name in limb.coordinates)
        self.activations = tuple(outputs.get(f"{name}.activation", "") for name in self.muscles)
        angles = [a for j in joints for a in (j.angles_rad or (0.0,) * j.n_angles)]
        self.start = np.array(angles, dtype=float)
        self._ends = {
            body: np.array([j.at_parent_m for j in joints if j.parent == body]).reshape(-1, 3)
            for body in self.bones
        }
        for body, ends in self._ends.items():
            if not len(ends):  # the last body: from its rearmost to its foremost point
                places = [list(p.at_m) for m in limb.muscles for p in m.path if p.body == body]
                places += [list(p.at_m) for p in model.points.values() if p.body == body]
                order = sorted(places, key=lambda place: place[1]) or [[0.0, 0.0, 0.0]]
                self._ends[body] = np.array([order[0], order[-1]], dtype=float)

    def place(
        self, angles: NDArray[np.float64]
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Return lines (k, 2) of bones and of muscles in this pose, in m."""
        self._kinematics(self._links, self._work, angles, np.zeros(len(angles)))
        bones = []
        for body in self.bones:
            link = self._body_link[body]
            joint, turn = self._work.place[link], self._work.turn[link]
            ends = (self._ends[body] + self._links.centre[link]) @ turn.T + joint
            closed = [joint] if len(ends) > 1 else []
            bones.append(np.array([joint, *ends, *closed])[:, 1:].copy())
        first = self._links.first
        points = self._work.points[:, 1:3]
        muscles = [points[a:b].copy() for a, b in pairwise(first)]
        return bones, muscles
