"""Figures of a system for the window: schematics of arrays, stick figures of mechanisms."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hil.config.values import TomlTable
from hil.experiment.registry import loaded, named


@dataclass(frozen=True)
class ArrayPicture:
    """Schematic of one array: masses in the unit square, cells as pairs of masses.

    Attributes
    ----------
    ends : names of the two ends
    left, right : (N,) arrays, indices of the two masses that each cell joins
    x, y : (M,) arrays, positions of the masses at rest; layers from left (0) to right (1)
    moves : tuple of str
        For every mass, the model output that is its displacement in m; '' if it is fixed.
    sprung : whether each end has a bias spring to the frame; one of several arrays draws it
    cells : (N,) array, indices of the cells in the columns `cells_*`
    dead, broken : frozenset of int
        Cells of this array, from 0, that produce no force, and that are mechanically broken.
    """

    name: str
    ends: tuple[str, str]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    moves: tuple[str, ...]
    sprung: tuple[bool, bool]
    cells: NDArray[np.int64]
    dead: frozenset[int]
    broken: frozenset[int]


class StickFigure(Protocol):
    """Side view of a mechanism: forward is right, up is up.

    Attributes
    ----------
    bones : one entry for each bone
    muscles : names of the muscles; empty if it has none
    angles : columns of a recording that give the pose
    activations : columns of the muscles' activations, '' for a muscle without one
    start : (n,) array, pose at the start
    """

    @property
    def bones(self) -> Sequence[object]: ...

    @property
    def muscles(self) -> Sequence[str]: ...

    @property
    def angles(self) -> Sequence[str]: ...

    @property
    def activations(self) -> Sequence[str]: ...

    @property
    def start(self) -> NDArray[np.float64]: ...

    def place(
        self, pose: NDArray[np.float64]
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Lines (k, 2) of bones and of muscles in this pose, m."""
        ...


@dataclass(frozen=True)
class Figure:
    """Figure of a system for the window.

    Attributes
    ----------
    arrays : schematics of cellular arrays
    moving : whether simulating the model again gives the positions of the arrays' masses
    mechanism : a stick figure
    """

    arrays: tuple[ArrayPicture, ...] = ()
    moving: bool = False
    mechanism: StickFigure | None = None


def figure_of(settings: TomlTable) -> Figure:
    """Figure of a configuration's system; an empty one if its kind has none."""
    kind = named(settings.get("model", {}).get("kind"))
    if kind is None or kind.figure is None:
        return Figure()
    try:
        figure: Figure = loaded(kind.figure)(settings)
    except ValueError:
        return Figure()  # the settings do not fit this version, as in an old recording
    return figure
