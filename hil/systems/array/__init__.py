"""Cellular arrays: SMA cells between nodes and points, after MacNair & Ueda."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hil.experiment.kind import SystemKind
from hil.experiment.twin import driven_inputs
from hil.loop.channels import RigLayout
from hil.loop.stages import Estimator
from hil.rig.instruments import AMBIENT, signals_of
from hil.rig.run_tables import RunTables
from hil.systems.array.build import build_activation, build_model, wires_of
from hil.systems.array.build_force import force_signal, nominal_of, right_end
from hil.systems.array.checks import check_reference, check_rig, check_run
from hil.systems.array.controllers import CONTROLLERS, looks_at_wires_s
from hil.systems.array.estimate.observer import ForceObserver
from hil.systems.array.estimate.twin import ArrayTwin, TwinReadings
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.names import wire_signal
from hil.systems.array.model.system import ArraySystem
from hil.systems.array.tables import ModelTable, ObserverTable


def _build(table: ModelTable, period_s: float) -> CellArray:
    model = build_model(table)
    build_activation(table)  # raises ModelError for an invalid activation
    return model


def _system(table: ModelTable, model: CellArray, period_s: float) -> ArraySystem:
    return ArraySystem(model, build_activation(table), period_s)


def _estimator(tables: RunTables, system: ArraySystem, layout: RigLayout) -> Estimator:
    name = None if tables.ambient is None else tables.ambient.ambient_channel
    ambient = None if name is None else layout.index(name)
    measured = signals_of(tables.devices)
    known = {*system.outputs, *map(wire_signal, system.cell_names)}
    channels = [(c, measured[c.name]) for c in layout.channels if measured[c.name] in known]
    driven = driven_inputs(tables, system)
    if not layout.force:
        return ArrayTwin(system, TwinReadings(system, channels), ambient, driven)
    nominal = nominal_of(tables, system.model)
    plans = tables.controller.kind == "optimal" and nominal.has_wires
    return ForceObserver(
        nominal.observer(tables.observer, system),
        np.array([a.force_on_N for a in nominal.activation]),
        layout.index(layout.force),
        nominal.tests(tables.observer),
        nominal.wires(tables.observer) if plans else None,
        ambient,
        layout.isolates,
        TwinReadings(system, channels),
        driven,
    )


def _observer_wait_s(tables: RunTables) -> float:
    failures = tables.observer.failures
    looks_s = 0.0 if tables.observer.wire_failures is None else looks_at_wires_s(tables)
    return max(0.0 if failures is None else float(failures.sample_s), looks_s)


def _signals(model: CellArray) -> Sequence[str]:
    return *model.outputs, *map(wire_signal, model.cell_names), AMBIENT


def _inputs(model: CellArray) -> Sequence[str]:
    return [f"{name}.x_m" for name in model.driven]


def _supply_V(table: ModelTable) -> list[tuple[str, float]]:
    """Supply voltage of every array whose cells are wires, by configuration key."""
    found = []
    for name, array in table.arrays.items():
        supply_V = getattr(array.activation, "supply_V", None)
        if supply_V is not None:
            found.append((f"model.arrays.{name}.activation.supply_V", supply_V))
    return found


def _recorded(table: ModelTable, model: CellArray) -> dict[str, Any]:
    return {
        "A": model.A,
        "B": model.B,
        "C": model.C,
        "D": model.D,
        "states": model.states,
        "inputs": model.inputs,
    }


SYSTEM = SystemKind(
    kind="cell_array",
    table=ModelTable,
    observer=ObserverTable,
    build=_build,
    estimator=_estimator,
    controllers=CONTROLLERS,
    system=_system,
    signals=_signals,
    inputs=_inputs,
    signal_needed=False,
    check_rig=check_rig,
    check_run=check_run,
    check_reference=check_reference,
    force_signal=force_signal,
    default_signal=right_end,
    activation=build_activation,
    observer_wait_s=_observer_wait_s,
    wires=wires_of,
    supply_V=_supply_V,
    recorded=_recorded,
    figure="hil.systems.array.topology.schematic:figure",
    description="hil.systems.array.description:describe",
)
