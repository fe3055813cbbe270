"""Tables of soft links: beams of rubber, the tendons of arrays on them, and the ground."""

from typing import Annotated, Literal

from pydantic import Field

from hil.config.table import Name, NotNegative, Pair, Positive, Table
from hil.systems.array.tables import CellArraysTable

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class LinkTable(Table):
    """A straight beam on the base, divided into segments, at `angle_rad` to x.

    `elastic_share` of Young's modulus is permanent; `loss_s` is its damping over stiffness.
    `branches` are Maxwell branches, [share, tau_s] each: a Prony series.
    """

    length_m: Positive
    width_m: Positive
    height_m: Positive
    segments: Annotated[int, Field(ge=1, le=1000)]
    youngs_Pa: Positive
    density_kg_per_m3: Positive
    elastic_share: NotNegative = 1.0
    loss_s: NotNegative = 0.0
    branches: list[Pair] = []
    angle_rad: float = 0.0
    tip_mass_kg: NotNegative = 0.0


class MuscleTable(Table):
    """Path of the tendon of the array with the same name.

    It runs along `link`, `offset_m` to its left, from `start` to `end` (fractions of its length).
    With start 0 it comes from the base; otherwise the array is mounted on the link's surface.
    """

    link: str
    offset_m: float
    start: Share = 0.0
    end: Share = 1.0


class GroundTable(Table):
    """A half-space that pushes the ends of segments out along `normal` (penalty method).

    A step is taken in up to `pieces_max` pieces, to keep its error small.
    """

    at_m: Pair
    normal: Pair
    k_N_per_m: Positive
    c_N_s_per_m: NotNegative = 0.0
    friction: NotNegative = 0.0
    pieces_max: Annotated[int, Field(ge=1, le=64)] = 16


class SoftTable(CellArraysTable):
    """Links of rubber, bent by cellular arrays; the plane's y axis points up.

    Points and arrays are those of a cell_array. Every array ends at a driven point of its own,
    which its tendon moves according to `muscles`.
    """

    kind: Literal["soft_links"]
    links: Annotated[dict[Name, LinkTable], Field(min_length=1)]
    muscles: Annotated[dict[Name, MuscleTable], Field(min_length=1)]
    gravity_m_per_s2: Pair = [0.0, -9.81]
    ground: GroundTable | None = None
