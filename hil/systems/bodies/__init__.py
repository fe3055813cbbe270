"""Rigid bodies: one body in four state spaces, modules of three, skeletons of any modules.

A body's frame is at its centre of mass; A transforms its vectors to the inertial frame (x front,
y left, z up). Its angular velocity Omega and the torque N on it are in its own frame; velocities V
and forces Gamma are in the inertial frame. Angles are Bryant angles (roll, pitch, yaw) of each body
from the inertial frame. Points of a body are relative to its centre of mass.

- `hil.mechanics.rotations`: A = Rx Ry Rz, matrices between angle rates and Omega, quaternions
- `hil.mechanics.one_body`: Newton-Euler, Lagrange/Kane, Hamilton, quaternions, and conversions
- `segments`: published masses, lengths and inertias of the human body
- `module`: three links in free-body and projected form
- `skeleton`: modules connected into a tree: a body, a hand
- `forms`: 108, 72 and 57 coordinates of a skeleton: accelerations, forces of joints and ground
- `motion`: a skeleton in motion: on both feet, one, none; contact made and broken
- `joints`: passive and co-activated joints
- `system`: a skeleton as the plant or the twin of a rig
- `hil.mechanics.recursion`: the same equations in a compiled O(N) recursion

Source: Hemami & Hemami, "State Space Methods and Examples for Computational Models of Human
Movement", Mechanical Engineering Research 6(1), 2016. Each module lists the misprints it corrects.
"""

from hil.experiment.kind import BenchPart, SystemKind
from hil.experiment.signal_pid import SIGNAL_PID
from hil.experiment.twin import Twin, twin_of
from hil.loop.channels import RigLayout
from hil.rig.run_tables import RunTables
from hil.systems.bodies.build import build_bodies
from hil.systems.bodies.system import BodySystem
from hil.systems.bodies.tables import BodiesTable


def _estimator(tables: RunTables, system: BodySystem, layout: RigLayout) -> Twin:
    return twin_of(tables, system, layout, system.shown)


SYSTEM = SystemKind(
    kind="bodies",
    table=BodiesTable,
    build=build_bodies,
    estimator=_estimator,
    controllers=SIGNAL_PID,
    figure="hil.systems.bodies.figure:figure",
    description="hil.systems.bodies.description:describe",
    studies={"body": "hil.systems.bodies.study"},
    bench={
        "bodies": BenchPart("hil.systems.bodies.bench:cost", "hil.systems.bodies.bench:as_text")
    },
)
