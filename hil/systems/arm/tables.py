"""Tables of the three-link arm, and of the pointing movement."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from hil.config.table import Delay, Name, NotNegative, Positive, Records, Table
from hil.systems.arm.links import GRAVITY_M_PER_S2, TABLE_1

Triple = Annotated[list[float], Field(min_length=3, max_length=3)]
PositiveTriple = Annotated[list[Positive], Field(min_length=3, max_length=3)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


def _three_or_nine(values: list[float]) -> list[float]:
    if len(values) not in (3, 9):
        raise ValueError(
            f"{len(values)} values: give one a joint, or one for roll, pitch and yaw of each"
        )
    return values


Gains = Annotated[list[NotNegative], AfterValidator(_three_or_nine)]
LinkName = Literal["upper_arm", "forearm", "hand"]


class LinkTable(Table):
    """A link; moments of inertia are about its centre of mass, which is `com_m` from the joint."""

    mass_kg: Positive
    inertia_kg_m2: Triple
    com_m: Positive
    length_m: Positive


def _printed(i: int) -> LinkTable:
    link = TABLE_1[i]
    return LinkTable(
        mass_kg=link.mass_kg, inertia_kg_m2=list(link.inertia_kg_m2), com_m=link.com_m,
        length_m=link.length_m,
    )  # fmt: skip


class LinksTable(Table):
    """The three links; defaults are Table 1."""

    upper_arm: LinkTable = _printed(0)
    forearm: LinkTable = _printed(1)
    hand: LinkTable = _printed(2)


class CapTable(Table):
    """A cap over which a tendon turns with a link's pitch, or with its difference to another's.

    A positive radius lengthens the tendon as the pitch grows, downwards: its muscle raises.
    """

    radius_m: float
    pitch: LinkName
    minus: LinkName | None = None


class TendonTable(Table):
    """A muscle over several joints (`hil.mechanics.muscle`).

    With a `stiffness_N_per_m`, that of its spindles, it has an input for gamma beside alpha.
    """

    force_max_N: Positive
    stiffness_N_per_m: NotNegative = 0.0
    viscosity_N_s_per_m: NotNegative = 0.0
    caps: Annotated[list[CapTable], Field(min_length=1)]


class ArmTable(Table):
    """Three links on a shoulder, x front, y left, z up, with a muscle pair about every axis.

    `start_rad` are the Bryant angles roll, pitch, yaw of every link, in which a run starts at rest.
    """

    kind: Literal["arm"]
    start_rad: Annotated[list[float], Field(min_length=9, max_length=9)]
    torque_max_N_m: PositiveTriple
    viscosity_N_m_s_per_rad: Annotated[list[NotNegative], Field(min_length=3, max_length=3)]
    links: LinksTable = LinksTable()
    long_axis: Literal["as_printed", "x"] = "as_printed"
    gravity_m_per_s2: Positive = GRAVITY_M_PER_S2
    tendons: dict[Name, TendonTable] = {}
    record: Records = None


class SetTable(Table):
    """A set of pairs: the activation that both muscles keep, and a factor on the gains."""

    coactivation: Share
    gain: NotNegative = 1.0


class PointingTable(Table):
    """A movement of the arm, as `hil.systems.arm.control` controls it.

    The printed movement of two seconds from `start_s` on, or, where they are given, from the start
    to `fingertip_m` (x, y, z), there at rest at `t_s`, straight in between. Gains are those of
    shoulder, elbow and wrist, or of roll, pitch and yaw of each. The instruments are known to be
    this late; `correction_s` is how quickly they put the model right. `tendons` are kept at these
    activations, their spindles at the elongations `gammas_m`.
    """

    kind: Literal["pointing"]
    start_s: NotNegative = 0.5
    t_s: list[NotNegative] = []
    fingertip_m: list[Triple] = []
    gain_N_m_per_rad: Gains = [10.0, 2.0, 1.2]
    damping_N_m_s_per_rad: Gains = [0.0, 0.0, 0.0]
    integral_per_s: NotNegative = 0.0
    attention: SetTable
    hold: SetTable
    encoder_delay_s: Delay = 0.0
    tracker_delay_s: Delay = 0.0
    correction_s: Positive = 0.01
    tendons: dict[Name, Share] = {}
    gammas_m: dict[Name, float] = {}
