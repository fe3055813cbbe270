"""Rigid bodies: one in four state spaces, modules of three, the body of eighteen, chains of any.

A body's frame sits at its centre of mass; A turns its vectors into the inertial frame (x front,
y left, z up). Its angular velocity Omega and the torque N on it are in its own frame, velocities V
and forces Gamma in the inertial one. Angles are Bryant's: roll, pitch, yaw, each body's own, from
the inertial frame. Points of a body are measured from its centre of mass.

- `rotations`: A = Rx Ry Rz, the matrices that turn rates into Omega, quaternions
- `one_body`: Newton-Euler, Lagrange/Kane, Hamilton, quaternions, and the maps between them
- `segments`: published masses, lengths and inertias of the human body
- `module`: three links in free-body and projected form
- `skeleton`: modules put together into a tree: a body, a hand
- `forms`: 108, 72 and 57 coordinates of a skeleton: accelerations, forces of joints and ground
- `motion`: a skeleton that moves: on both feet, one, none; contact made and broken
- `joints`: passive and co-activated joints
- `system`: the same as the plant or the twin of a rig
- `recursion`: the same equations in a compiled O(N) recursion

Source: Hemami & Hemami, "State Space Methods and Examples for Computational Models of Human
Movement", Mechanical Engineering Research 6(1), 2016. Misprints are named where they are put right.
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
