"""A plug-in system: a class in a file or in an installed package."""

from hil.experiment.kind import SystemKind
from hil.experiment.signal_pid import SIGNAL_PID
from hil.experiment.twin import twin_of
from hil.plugins.load import PluginTable
from hil.plugins.system import PluginSystem
from hil.systems.plugin.controllers import CONTROLLER


def _build(table: PluginTable, period_s: float) -> PluginSystem:
    return PluginSystem(table.plugin, period_s)


__all__ = ["CONTROLLER", "SYSTEM"]

SYSTEM = SystemKind(
    kind="plugin", table=None, build=_build, estimator=twin_of, controllers=SIGNAL_PID
)
