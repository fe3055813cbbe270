"""What a window draws of a system: arrays as they are built, a limb or a mechanism as lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hil.experiment.registry import loaded, named


@dataclass(frozen=True)
class ArrayPicture:
    """One array as it is built: masses on a plane 1 by 1, cells as pairs of masses.

    Attributes
    ----------
    x, y : (M,) arrays
        Where masses are drawn at rest, layers from left (0) to right (1).
    moves : tuple of str
        For every mass the model's output that is its displacement in m; '' where it is held.
    cells : (N,) array
        The cells' places in the columns `cells_*`.
    dead, broken : frozenset of int
        Cells of this array, from 0, that heat nothing, and that hold nothing.
    """

    name: str
    ends: tuple[str, str]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    moves: tuple[str, ...]
    cells: NDArray[np.int64]
    dead: frozenset[int]
    broken: frozenset[int]


class StickFigure(Protocol):
    """A mechanism seen from its side: forward to the right, up.

    Attributes
    ----------
    bones : one an entry, whatever names it
    muscles : names; none where it has no muscles
    angles : columns of a recording that give the pose
    activations : columns of the muscles' activations, '' where there is none
    start : (n,) array
        The pose at the start.
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
    """What a window draws of a system.

    Attributes
    ----------
    arrays : cellular arrays
    moving : the model, run once more, says where the arrays' masses are
    limb : a stick figure
    """

    arrays: tuple[ArrayPicture, ...] = ()
    moving: bool = False
    limb: StickFigure | None = None


def figure_of(settings: Mapping[str, Any]) -> Figure:
    """What the kind of system of a configuration has drawn; nothing where it does not say."""
    kind = named(settings.get("model", {}).get("kind"))
    if kind is None or kind.figure is None:
        return Figure()
    try:
        figure: Figure = loaded(kind.figure)(settings)
    except ValueError:
        return Figure()  # a recording of another version
    return figure
