"""Tables of rigid bodies: links, modules of three, the connections between them."""

from typing import Annotated, Literal

from pydantic import Field

from hil.config.table import Name, NotNegative, Positive, Table
from hil.systems.bodies.segments import MEAN_HEIGHT_M, MEAN_MASS_KG

Triple = Annotated[list[float], Field(min_length=3, max_length=3)]
SegmentName = Literal[
    "head", "upper_trunk", "mid_trunk", "lower_trunk", "upper_arm", "forearm", "hand", "thigh",
    "shank", "foot",
]  # fmt: skip


class _LinkTable(Table):
    """A link along its z axis; `points` are further points by name, from its lower end."""

    name: Name
    points: dict[Name, Triple] = {}


class SegmentLinkTable(_LinkTable):
    """A segment of the human body (`hil.systems.bodies.segments`), scaled to mass and height.

    `upper_end` is the end that points up at rest: the proximal (cranial) one, or the distal one,
    as for an arm that is stretched upward.
    """

    kind: Literal["segment"]
    segment: SegmentName
    upper_end: Literal["proximal", "distal"] = "proximal"


class CylinderLinkTable(_LinkTable):
    """A solid cylinder."""

    kind: Literal["cylinder"]
    length_m: Positive
    radius_m: Positive
    density_kg_per_m3: Positive


class BodyLinkTable(_LinkTable):
    """Any rigid body; its centre of mass is on its axis, `centre_m` above its lower end.

    The inertia about the centre of mass is given as three principal moments or as a matrix.
    """

    kind: Literal["body"]
    length_m: NotNegative
    centre_m: float
    mass_kg: Positive
    inertia_kg_m2: list[float] | list[list[float]]


LinkTable = Annotated[
    SegmentLinkTable | CylinderLinkTable | BodyLinkTable, Field(discriminator="kind")
]


class ModuleTable(Table):
    """Three links, from the lowest up."""

    name: Name
    links: Annotated[list[LinkTable], Field(min_length=3, max_length=3)]


class ConnectionTable(Table):
    """A point joint between two modules; both ends are "module.link.point".

    A point is `bottom`, `top`, or one of the link's `points`. The joint's force is positive on
    `upper`.
    """

    lower: str
    upper: str


class HoldTable(Table):
    """Stiffness of a joint: passive, and by co-activation, 0 to 1 (`systems.bodies.joints`).

    With a `strength_N_m`, that of one fully activated muscle, the joint has a pair of muscles about
    each axis, which only pull; without it, pairs are never slack.
    """

    passive_N_m_per_rad: NotNegative = 0.0
    passive_N_m_s_per_rad: NotNegative = 0.0
    active_N_m_per_rad: NotNegative = 0.0
    viscosity_s: NotNegative = 0.0
    twist: NotNegative = 1.0
    strength_N_m: NotNegative = 0.0


class BodyCapTable(Table):
    """A cap over which a tendon turns with the pitch of a joint.

    A positive radius lengthens the tendon as the pitch of the upper link grows.
    """

    radius_m: float
    joint: str


class BodyTendonTable(Table):
    """A muscle over one or several joints (`hil.mechanics.muscle`).

    With a `stiffness_N_per_m`, that of its spindles, it has an input for gamma beside alpha.
    """

    force_max_N: Positive
    stiffness_N_per_m: NotNegative = 0.0
    viscosity_N_s_per_m: NotNegative = 0.0
    caps: Annotated[list[BodyCapTable], Field(min_length=1)]


class PushTable(Table):
    """A force on a link's centre of mass, in inertial axes, for a given time."""

    link: str
    force_N: Triple
    from_s: NotNegative
    to_s: NotNegative


class BodiesTable(Table):
    """Modules of three links each, connected into a tree.

    The first module keeps its translation. `supports` names the points that can stand on the
    ground, the plane z = 0; a point slides where it needs more than `friction` times its normal
    force. `holds` is looked up by joint, then by module, then "all"; joints
    without an entry rotate freely. `tendons` are muscles over joints. `pose_rad` gives the Bryant
    angles of links that are not upright.
    """

    kind: Literal["bodies"]
    mass_kg: Positive = MEAN_MASS_KG
    height_m: Positive = MEAN_HEIGHT_M
    gravity_m_per_s2: Triple = [0.0, 0.0, -9.81]
    modules: Annotated[list[ModuleTable], Field(min_length=1)]
    connections: dict[Name, ConnectionTable] = {}
    supports: dict[Name, str] = {}
    friction: Positive = 1.0
    holds: dict[str, HoldTable] = {}
    tendons: dict[Name, BodyTendonTable] = {}
    coactivation: NotNegative = 1.0
    pose_rad: dict[str, Triple] = {}
    pushes: list[PushTable] = []
