"""Rigid bodies: one body in four state spaces, modules of three, skeletons of any modules.

A body's frame is at its centre of mass; A transforms its vectors to the inertial frame (x front,
y left, z up). Its angular velocity Omega and the torque N on it are in its own frame; velocities V
and forces Gamma are in the inertial frame. Angles are Bryant angles (roll, pitch, yaw) of each body
from the inertial frame. Points of a body are relative to its centre of mass.

Source: Hemami & Hemami, "State Space Methods and Examples for Computational Models of Human
Movement", Mechanical Engineering Research 6(1), 2016. Each module lists the misprints it corrects.
"""

from hil.experiment.kind import SystemKind
from hil.experiment.signal_pid import SIGNAL_PID
from hil.experiment.twin import twin_of
from hil.systems.bodies.build import build_bodies, untold_pushes
from hil.systems.bodies.tables import BodiesTable

SYSTEM = SystemKind(
    kind="bodies",
    table=BodiesTable,
    build=build_bodies,
    estimator=twin_of,
    controllers=SIGNAL_PID,
    figure="hil.systems.bodies.figure:figure",
    description="hil.systems.bodies.description:describe",
    untold=untold_pushes,
)
