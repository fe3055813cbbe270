"""Builds a skeleton from the tables of rigid bodies, and checks them."""

from collections.abc import Iterable
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from hil.config.files import Merged, read_merged
from hil.config.table import Table
from hil.config.validate import validated
from hil.errors import ConfigError, ModelError, one_line
from hil.mechanics.muscle import Muscle
from hil.systems.bodies.joints import Hold
from hil.systems.bodies.module import Link, Module
from hil.systems.bodies.motion import BodyMotion
from hil.systems.bodies.segments import MEAN_HEIGHT_M, SEGMENTS
from hil.systems.bodies.skeleton import Skeleton
from hil.systems.bodies.system import BodySystem, Push, Tendon, holds_of
from hil.systems.bodies.tables import (
    BodiesTable,
    BodyTendonTable,
    CylinderLinkTable,
    LinkTable,
    SegmentLinkTable,
)


class _Only(Table):
    model: BodiesTable


def load_skeleton(path: Path, sets: Iterable[str] = ()) -> tuple[Skeleton, BodiesTable]:
    """Return the skeleton of a rig, of an experiment, or of a file with only `[model]`.

    Raises
    ------
    ConfigError
        The file is invalid; one line per error.
    """
    merged = read_merged(path, sets)
    table = {key: value for key, value in merged.table.items() if key == "model"}
    kind = table.get("model", {}).get("kind")
    if kind != "bodies":
        raise ConfigError(f"{path}: model.kind = {kind!r}: this needs a model of kind 'bodies'")
    model = validated(_Only, Merged(table, merged.sources)).model
    try:
        return build_skeleton(model), model
    except ModelError as error:
        raise ConfigError(one_line(f"{path}: model.{error}")) from None


def build_skeleton(table: BodiesTable) -> Skeleton:
    """Return the connected modules; a ModelError names the key below the table."""
    modules = []
    for module in table.modules:
        try:
            modules.append(Module(module.name, [_link(link, table) for link in module.links]))
        except ModelError as error:
            raise ModelError(f"modules: {error}") from None
    connections = {name: (c.lower, c.upper) for name, c in table.connections.items()}
    return Skeleton(modules, connections, table.supports)


def build_bodies(table: BodiesTable, period_s: float) -> BodySystem:
    """Return the skeleton as a plant or a twin; a ModelError names the key."""
    skeleton = build_skeleton(table)
    at = {name: i for i, name in enumerate(skeleton.names)}
    theta = np.zeros((skeleton.n, 3))
    for name, pose in table.pose_rad.items():
        if name not in at:
            raise ModelError(f"pose_rad.{name}: no such link: choose {', '.join(at)}")
        theta[at[name]] = pose
    pushes = []
    for i, push in enumerate(table.pushes, start=1):
        if push.link not in at:
            raise ModelError(f"pushes: no link '{push.link}' (push {i}): choose {', '.join(at)}")
        x, y, z = push.force_N
        pushes.append(Push(at[push.link], (x, y, z), push.from_s, push.to_s))
    holds = {name: Hold(**hold.model_dump()) for name, hold in table.holds.items()}
    tendons = {name: _tendon(name, skeleton, tendon) for name, tendon in table.tendons.items()}
    gx, gy, gz = table.gravity_m_per_s2
    motion = BodyMotion(
        skeleton, holds_of(skeleton, holds), gravity=(gx, gy, gz), theta=theta,
        friction=table.friction,
    )  # fmt: skip
    return BodySystem(
        motion, period_s, coactivation=table.coactivation, pushes=pushes, tendons=tendons
    )


def untold_pushes(model: BodiesTable, plant: BodiesTable) -> list[str]:
    """Return the pushes of the plant that its model does not have, in words."""
    return [
        f"a push of {np.linalg.norm(push.force_N):g} N on {push.link} from {push.from_s:g} to "
        f"{push.to_s:g} s"
        for push in plant.pushes
        if push not in model.pushes
    ]


def _tendon(name: str, skeleton: Skeleton, table: BodyTendonTable) -> Tendon:
    joints = [j.name for j in skeleton.joints] + [s.name for s in skeleton.supports]
    for cap in table.caps:
        if cap.joint not in joints:
            raise ModelError(
                f"tendons.{name}.caps: no joint '{cap.joint}': choose {', '.join(joints)}"
            )
    muscle = Muscle(table.force_max_N, table.stiffness_N_per_m, table.viscosity_N_s_per_m)
    at = tuple(joints.index(cap.joint) for cap in table.caps)
    return Tendon(muscle, at, tuple(cap.radius_m for cap in table.caps))


def _link(link: LinkTable, table: BodiesTable) -> Link:
    if isinstance(link, SegmentLinkTable):
        segment = SEGMENTS[link.segment]
        mass_kg = segment.mass * table.mass_kg
        length_m = segment.length_m * table.height_m / MEAN_HEIGHT_M
        share = segment.centre if link.upper_end == "distal" else 1.0 - segment.centre
        centre_m = share * length_m
        inertia: ArrayLike = segment.inertia_kg_m2(mass_kg, length_m)
    elif isinstance(link, CylinderLinkTable):
        length_m, r = link.length_m, link.radius_m
        mass_kg = link.density_kg_per_m3 * pi * r**2 * length_m
        across = mass_kg * (3.0 * r**2 + length_m**2) / 12.0
        centre_m, inertia = length_m / 2.0, (across, across, mass_kg * r**2 / 2.0)
    else:
        mass_kg, length_m, centre_m = link.mass_kg, link.length_m, link.centre_m
        inertia = link.inertia_kg_m2
    points = {name: (x, y, z - centre_m) for name, (x, y, z) in link.points.items()}
    return Link(
        link.name, mass_kg, inertia, (0.0, 0.0, -centre_m), (0.0, 0.0, length_m - centre_m), points
    )
