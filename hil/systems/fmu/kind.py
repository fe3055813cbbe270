"""The descriptor of a functional mock-up unit."""

from hil.experiment.kind import SystemKind
from hil.experiment.signal_pid import SIGNAL_PID
from hil.experiment.twin import twin_of
from hil.systems.fmu.description import UnitModel, described
from hil.systems.fmu.system import UnitSystem
from hil.systems.fmu.tables import FmuTable


def _system(table: FmuTable, model: UnitModel, period_s: float) -> UnitSystem:
    return UnitSystem(model)


SYSTEM = SystemKind(
    kind="fmu",
    table=FmuTable,
    build=described,
    estimator=twin_of,
    controllers=SIGNAL_PID,
    system=_system,
    foreign=True,
    code="file",
)
