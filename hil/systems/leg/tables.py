"""Tables of limbs with muscles, and of the controller that moves a joint with two of them."""

from typing import Annotated, Literal

from pydantic import Field

from hil.config.table import Name, NotNegative, Positive, Records, Table

Triple = Annotated[list[float], Field(min_length=3, max_length=3)]
Activation = Annotated[float, Field(ge=0.001, le=1.0)]


class BodyTable(Table):
    """A rigid body; moments of inertia about its centre of mass. `mass_scale` scales the mass."""

    mass_kg: Positive
    inertia_kg_m2: Triple
    mass_scale: Positive = 1.0


class JointTable(Table):
    """Connects `child` to `parent`; points relative to centres of mass or the ground's origin."""

    kind: Literal["revolute", "spherical"] = "revolute"
    parent: str
    child: str
    at_parent_m: Triple
    at_child_m: Triple
    axis: Triple = [1.0, 0.0, 0.0]
    angles_rad: list[float] = []
    damping_N_m_s_per_rad: NotNegative = 0.0


class PlaceTable(Table):
    """A point on a body, relative to its centre of mass, or on the ground."""

    body: str
    at_m: Triple


class MuscleTable(Table):
    """A muscle (`hil.systems.leg.muscle.Hill`) along straight lines through `path`."""

    path: Annotated[list[PlaceTable], Field(min_length=2)]
    F_max_N: Positive
    l_CE_opt_m: Positive
    l_SEE_0_m: Positive
    dW_des: Positive = 0.35
    dW_asc: Positive = 0.35
    v_CE_des: Positive = 1.5
    v_CE_asc: Positive = 3.0
    A_rel_0: Positive = 0.25
    B_rel_0: Positive = 2.25
    S_e: Positive = 2.0
    F_e: Positive = 1.5
    L_PEE_0: Positive = 0.9
    v_PEE: Positive = 2.5
    F_PEE: Positive = 2.0
    D_SE: Positive = 0.3
    R_SE: Positive = 0.01
    dU_SEE_nll: Positive = 0.0425
    dU_SEE_l: Positive = 0.017
    dF_SEE_0_N: Positive = 568.0


class ActivationDynamicsTable(Table):
    """Time constants of activation dynamics (`systems.leg.muscle.ActivationTimes`)."""

    tau_act_s: Positive = 0.01
    tau_deact_s: Positive = 0.04


class LimbTable(Table):
    """Rigid bodies connected by joints and moved by muscles; x to the side, y forward, z up.

    Without `activation` a muscle's activation equals its input. Without `path_rates` the muscles'
    contraction takes the rates of l_MTC as 0, as Makkonen's program did (section 4.2).
    """

    kind: Literal["musculoskeletal"]
    bodies: Annotated[dict[Name, BodyTable], Field(min_length=1)]
    joints: Annotated[dict[Name, JointTable], Field(min_length=1)]
    muscles: Annotated[dict[Name, MuscleTable], Field(min_length=1)]
    points: dict[Name, PlaceTable] = {}
    gravity_m_per_s2: Triple = [0.0, 0.0, -9.81]
    activation: ActivationDynamicsTable | None = None
    path_rates: bool = True
    record: Records = None


class AntagonistsTable(Table):
    """One joint moved by two muscles that follows a channel's set point (`systems.leg.control`).

    The channel measures the joint's angle or the height of a point beyond it. `raises` and
    `lowers` are outputs. The feed-forward activations are `rehearsed` (simulated on the model),
    `static` (they hold the set point) or `none`. `least` is the minimum activation of both
    muscles: co-activation. `delay_s` is the known delay of the channel. The plan follows the set
    point, smoothed over `smooth_s`, with poles at `plan_rad_per_s`, and stretches tendons within
    `tendon_s`; the defaults are as fast as the activation of the muscles permits. The correction
    changes activations by equal amounts; with `relative_from`, in proportion to activation plus
    `relative_from`.
    """

    kind: Literal["antagonists"]
    channel: str
    joint: str
    raises: str
    lowers: str
    feed_forward: Literal["rehearsed", "static", "none"] = "rehearsed"
    least: Activation = 0.001
    smooth_s: NotNegative | None = None
    plan_rad_per_s: Positive | None = None
    tendon_s: Positive | None = None
    delay_s: NotNegative = 0.0
    k_p: NotNegative = 0.0
    k_i_per_s: NotNegative = 0.0
    k_d_s: NotNegative = 0.0
    derivative_filter_s: Positive = 0.002
    relative_from: Activation | None = None
