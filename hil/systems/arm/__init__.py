"""The arm: three links that hang on the shoulder, moved by pairs of muscles that only pull.

Attitudes are absolute Bryant angles (`hil.mechanics.rotations`); pitch is positive downwards.
A link's long axis is x, as eq (15) has it; Table 1 gives its moments of inertia as of a link
along z, which `long_axis` turns round. The effect on the movement is below 1 %.

- `links`: lengths, masses, fingertip, what torques a motion needs
- `pointing`: fingertip to angles, eq (15), and the movement of two seconds
- `actuators`: muscles with alpha and gamma inputs, pairs, paths over several joints
- `motion`: its step, compiled
- `system`: the arm as a plant
- `readings`: the published movement under four readings of the actuation

Source: Hemami & Hemami, "State Space Methods and Examples for Computational Models of Human
Movement", Mechanical Engineering Research 6(1), 2016, sections 5 and 6, appendix B.
"""

from hil.experiment.kind import BenchPart, SystemKind
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
    studies={"arm": "hil.systems.arm.study"},
    bench={"arm": BenchPart("hil.systems.arm.bench:compare", "hil.systems.arm.bench:as_text")},
)
