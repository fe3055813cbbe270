"""Links of rubber, bent by cellular arrays; continuous matter as trees of rigid segments."""

from hil.experiment.kind import SystemKind
from hil.experiment.twin import twin_of
from hil.mechanics.sma.limits import CellWire
from hil.systems.array.build import build_activation, cell_wires
from hil.systems.soft.build import build_soft
from hil.systems.soft.controllers import CONTROLLERS
from hil.systems.soft.system import SoftArraySystem
from hil.systems.soft.tables import SoftTable


def _wires(table: SoftTable, model: SoftArraySystem) -> dict[str, CellWire]:
    names = model.cell_names
    return cell_wires(table, names, [None] * len(names))


SYSTEM = SystemKind(
    kind="soft_links",
    table=SoftTable,
    build=build_soft,
    estimator=twin_of,
    controllers=CONTROLLERS,
    activation=build_activation,
    wires=_wires,
    figure="hil.systems.array.topology.schematic:still",
)
