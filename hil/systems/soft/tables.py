"""Tables of soft links: beams of rubber, the tendons of arrays on them, and the ground."""

from typing import Annotated, Literal

from pydantic import Field

from hil.config.table import Name, NotNegative, Pair, Positive, Table
from hil.systems.array.tables import CellArraysTable

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class LinkTable(Table):
    """A straight beam on the base, cut into segments, pointing at `angle_rad` to x.

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
    """Where the tendon of the array of the same name runs.

    Along `link`, `offset_m` to its left, from `start` to `end` (shares of its length); at 0 it
    comes from the base, else it begins on the link, which mounts the array on its surface.
    """

    link: str
    offset_m: float
    start: Share = 0.0
    end: Share = 1.0


class GroundTable(Table):
    """A half-space that pushes ends of segments out along `normal` (penalty method)."""

    at_m: Pair
    normal: Pair
    k_N_per_m: Positive
    c_N_s_per_m: NotNegative = 0.0
    friction: NotNegative = 0.0


class SoftTable(CellArraysTable):
    """Links of rubber, bent by cellular arrays; the plane's y points up.

    Points and arrays are those of a cell_array; every array ends at a driven point of its own,
    which its tendon moves as `muscles` says.
    """

    kind: Literal["soft_links"]
    links: Annotated[dict[Name, LinkTable], Field(min_length=1)]
    muscles: Annotated[dict[Name, MuscleTable], Field(min_length=1)]
    gravity_m_per_s2: Pair = [0.0, -9.81]
    ground: GroundTable | None = None
