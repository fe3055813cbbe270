"""The estimator of an array: a twin, and an observer of the controlled force."""

import numpy as np

from hil.experiment.twin import driven_inputs
from hil.loop.channels import RigLayout
from hil.loop.stages import Estimator
from hil.rig.instruments import signals_of
from hil.rig.run_tables import RunTables
from hil.systems.array.build_force import nominal_of
from hil.systems.array.estimate.observer import ForceObserver, RigInputs
from hil.systems.array.estimate.twin import ArrayTwin, TwinReadings
from hil.systems.array.model.names import wire_signal
from hil.systems.array.model.system import ArraySystem


def force_estimator(tables: RunTables, system: ArraySystem, layout: RigLayout) -> Estimator:
    """The twin, with an observer of the force if a channel measures it."""
    return _estimator(tables, system, layout, learns_wires=False)


def wire_estimator(tables: RunTables, system: ArraySystem, layout: RigLayout) -> Estimator:
    """The same, which also learns the state and law of every wire, for controllers that plan.

    The estimator of a `hil.experiment.kind.ControllerKind`. Cells that are no wires have none.
    """
    return _estimator(tables, system, layout, learns_wires=True)


def _estimator(
    tables: RunTables, system: ArraySystem, layout: RigLayout, *, learns_wires: bool
) -> Estimator:
    name = None if tables.ambient is None else tables.ambient.ambient_channel
    ambient = None if name is None else layout.index(name)
    measured = signals_of(tables.devices)
    known = {*system.outputs, *map(wire_signal, system.cell_names)}
    channels = [(c, measured[c.name]) for c in layout.channels if measured[c.name] in known]
    driven = driven_inputs(tables, system)
    if not layout.force:
        return ArrayTwin(system, TwinReadings(system, channels), ambient, driven)
    nominal = nominal_of(tables, system.model)
    return ForceObserver(
        nominal.observer(tables.observer, system),
        np.array([a.force_on_N for a in nominal.activation]),
        RigInputs(layout.index(layout.force), ambient, driven, layout.isolates),
        nominal.tests(tables.observer),
        nominal.wires(tables.observer) if learns_wires and nominal.has_wires else None,
        TwinReadings(system, channels),
    )
