"""Any linear system, x' = A x + B u, y = C x + D u."""

from hil.config.values import Attributes
from hil.experiment.kind import SystemKind
from hil.experiment.signal_pid import SIGNAL_PID
from hil.experiment.twin import twin_of
from hil.systems.linear.system import LinearSystem
from hil.systems.linear.tables import LinearTable


def _build(table: LinearTable, period_s: float) -> LinearSystem:
    return LinearSystem(table.A, table.B, table.C, table.D, table.inputs, table.outputs, period_s)


def _recorded(table: LinearTable, model: LinearSystem) -> Attributes:
    matrices = {key: getattr(table, key) for key in "ABCD"}
    return {key: value for key, value in matrices.items() if value is not None}


SYSTEM = SystemKind(
    kind="linear",
    table=LinearTable,
    build=_build,
    estimator=twin_of,
    controllers=SIGNAL_PID,
    recorded=_recorded,
)
