"""The arm: three links from the shoulder, moved by pairs of muscles that can only pull.

Attitudes are absolute Bryant angles (`hil.mechanics.rotations`); pitch is positive downwards.
A link's long axis is x, as in eq (15). Table 1 gives moments of inertia of a link along z, which
`long_axis` corrects. The effect on the movement is below 1 %.

Source: Hemami & Hemami, "State Space Methods and Examples for Computational Models of Human
Movement", Mechanical Engineering Research 6(1), 2016, sections 5 and 6, appendix B.
"""

from hil.experiment.kind import SystemKind
from hil.experiment.twin import twin_of
from hil.systems.arm.build import build_arm_system
from hil.systems.arm.controllers import CONTROLLERS
from hil.systems.arm.tables import ArmTable
from hil.systems.leg.controllers import check_activations

SYSTEM = SystemKind(
    kind="arm",
    table=ArmTable,
    build=build_arm_system,
    estimator=twin_of,
    controllers=CONTROLLERS,
    check_rig=check_activations,
)
