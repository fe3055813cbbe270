"""The pantograph impact rig: a five-bar arm that strikes a plate."""

from hil.experiment.kind import SystemKind
from hil.experiment.twin import driven_inputs, measured_outputs
from hil.loop.channels import RigLayout
from hil.rig.run_tables import RunTables
from hil.systems.pantograph.build import build_pantograph
from hil.systems.pantograph.controllers import CONTROLLERS, check_angles, doubts
from hil.systems.pantograph.observer import ArmObserver
from hil.systems.pantograph.system import PantographSystem
from hil.systems.pantograph.tables import PantographTable


def _estimator(tables: RunTables, system: PantographSystem, layout: RigLayout) -> ArmObserver:
    channels, outputs = measured_outputs(tables, system, layout)
    indices = [layout.index(c.name) for c in channels]
    return ArmObserver(system, channels, outputs, indices, driven_inputs(tables, system))


SYSTEM = SystemKind(
    kind="pantograph",
    table=PantographTable,
    build=build_pantograph,
    estimator=_estimator,
    controllers=CONTROLLERS,
    check_rig=check_angles,
    doubts=doubts,
)
